------------------------------------------ MODULE MCLock ------------------------------------------
(* Lock.tla for TLC: the setups of clients, what is alike, and what a good search must meet. *)
EXTENDS Lock, Goals

CONSTANTS n1, n2, n3, n4, n5, n6, A, B

Both(setup) == (A :> setup) @@ (B :> setup)
With(nodes, quorum) == [nodes |-> nodes, quorum |-> quorum]

(* Client A beside client B: nodes and quorum of each. *)
Three == Both(With({n1, n2, n3}, 2))
Five == Both(With({n1, n2, n3, n4, n5}, 3))
(* Five nodes, of which each client reaches four: their quorums may share one node only. *)
FiveReachFour == (A :> With({n1, n2, n3, n4}, 3)) @@ (B :> With({n2, n3, n4, n5}, 3))
(* They may run beside each other. *)
ThreeBesideFive4 == (A :> With({n1, n2, n3}, 2)) @@ (B :> With({n1, n2, n3, n4, n5}, 4))
Five4BesideFive3 == (A :> With({n1, n2, n3, n4, n5}, 4)) @@ (B :> With({n1, n2, n3, n4, n5}, 3))
Three3BesideOtherThree2 == (A :> With({n1, n2, n3}, 3)) @@ (B :> With({n1, n2, n4}, 2))
Three3BesideThree2 == (A :> With({n1, n2, n3}, 3)) @@ (B :> With({n1, n2, n3}, 2))
(* They may not. *)
ThreeBesideFive3 == (A :> With({n1, n2, n3}, 2)) @@ (B :> With({n1, n2, n3, n4, n5}, 3))
FiveBesideOtherFive == (A :> With({n1, n2, n3, n4, n5}, 3)) @@ (B :> With({n1, n2, n3, n4, n6}, 3))
ThreeBesideOtherThree == (A :> With({n1, n2, n3}, 2)) @@ (B :> With({n1, n2, n4}, 2))

(* Nodes that the same clients ask are alike, and so are clients with the same setup. *)
Symmetry ==
    {p \in Permutations(Nodes) : \A c \in Clients : {p[n] : n \in Asks(c)} = Asks(c)}
    \cup {p \in Permutations(Clients) : \A c \in Clients : Setup[p[c]] = Setup[c]}

RestartGoals == {"restart that forgot the key of a lease"}
GuardGoals == {"attempt without a node in quarantine", "quarantine over"}

ASSUME Expect(
    {"acquired", "extended", "key set after the acquire was decided", "lost at the deadline",
     "heal sent where the key still is"}
    \cup (IF OldCopies THEN {"old key of a lease came back"} ELSE {})
    \cup (IF Restarts > 0 THEN RestartGoals ELSE {})
    \cup (IF Restarts > 0 /\ ~Is("unguarded") THEN GuardGoals ELSE {})
    \cup (IF Drift > 0 THEN {"key ended early under a lease"} ELSE {}))

MeetGoals ==
    /\ Meets(1, "acquired",
             \E c \in Clients : client[c].phase = "acquiring" /\ client'[c].phase = "held")
    /\ Meets(2, "extended",
             \E c \in Clients : client[c].phase = "extending" /\ client'[c].left > client[c].left)
    /\ Meets(3, "key set after the acquire was decided",
             \E c \in Clients, n \in Nodes : Holds(c) /\ node[n].owner = Free /\ node'[n].owner = c)
    /\ Meets(4, "lost at the deadline",
             Tick /\ \E c \in Clients : Holds(c) /\ client'[c].phase = "idle")
    /\ Meets(5, "restart that forgot the key of a lease",
             \E c \in Clients, n \in Nodes : Holds(c) /\ node[n].owner = c /\ Restart(n))
    /\ Meets(6, "attempt without a node in quarantine",
             \E c \in Clients : Begin(c) /\ \E n \in Asks(c) : client[c].sees[n] \in 1..Quarantine)
    /\ Meets(7, "quarantine over",
             \E c \in Clients, n \in Nodes : client[c].sees[n] = 1 /\ client'[c].sees[n] = 0)
    /\ Meets(9, "heal sent where the key still is",
             \E c \in Clients, n \in Nodes :
                    /\ client[c].phase = "held" /\ node[n].owner = c
                    /\ n \in client'[c].sent \ client[c].sent)
    /\ Meets(10, "old key of a lease came back",
             \E c \in Clients, n \in Nodes :
                    /\ Holds(c) /\ Restart(n) /\ node'[n].owner = c
                    /\ node'[n].life < node[n].life)
    /\ Meets(8, "key ended early under a lease",
             \E c \in Clients, n \in Nodes : Holds(c) /\ node[n].owner = c /\ EndEarly(n))

===================================================================================================
