----------------------------------------- MODULE MCQueue ------------------------------------------
(* Queue.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Queue, Goals

CONSTANTS n1, n2, n3, n4, n5, A, B, C

(* The holder at the start is a client like the others, but for the first state. TLC takes one
   state of each orbit, so it does not matter whose name it has. *)
Symmetry == Permutations(Nodes) \cup Permutations(Clients)

ASSUME Expect(
    {"free lock granted in answer to WAIT", "lock handed over by RELEASE",
     "served for a WAIT of an earlier tick", "quorum of grants counted",
     "held for less than a ttl, because a bound was old",
     "key ended before its client counted a quorum", "lease over at its deadline",
     "WAIT raised the ttl of a key of its own"}
    \cup (IF Quorum < Cardinality(Nodes) THEN {"grant added backing to a lease"} ELSE {})
    \cup (IF Stale > 0 THEN {"queued client died"} ELSE {}))

HoldsNow(c) == client[c].left = 0 /\ client'[c].left > 0
ServedNow(c, n) == link[c][n].place # None /\ node[n].owner # c /\ node'[n].owner = c

MeetGoals ==
    /\ Meets(1, "free lock granted in answer to WAIT",
             \E c \in Clients, n \in Nodes :
                    node[n].owner = Free /\ node'[n].owner = c /\ link[c][n].place = None)
    /\ Meets(2, "lock handed over by RELEASE",
             \E c \in Clients, n \in Nodes : node[n].owner = LeftBehind /\ ServedNow(c, n))
    /\ Meets(3, "served for a WAIT of an earlier tick",
             \E c \in Clients, n \in Nodes : link[c][n].place > 0 /\ ServedNow(c, n))
    /\ Meets(4, "quorum of grants counted", \E c \in Clients : HoldsNow(c))
    /\ Meets(5, "held for less than a ttl, because a bound was old",
             \E c \in Clients : HoldsNow(c) /\ client'[c].left < Ttl)
    /\ Meets(6, "key ended before its client counted a quorum",
             \E c \in Clients, n \in Nodes :
                    Tick /\ ~Holds(c) /\ link[c][n].grant # None /\ link'[c][n].grant = None)
    /\ Meets(7, "lease over at its deadline", Tick /\ \E c \in Clients : client[c].left = 1)
    /\ Meets(8, "WAIT raised the ttl of a key of its own",
             \E c \in Clients, n \in Nodes :
                    node[n].owner = c /\ node'[n].owner = c /\ node'[n].life > node[n].life)
    /\ Meets(9, "grant added backing to a lease",
             \E c \in Clients, n \in Nodes : Holds(c) /\ ~link[c][n].backs /\ link'[c][n].backs)
    /\ Meets(10, "queued client died",
             \E c \in Clients, n \in Nodes : link[c][n].place # None /\ Die(c))

===================================================================================================
