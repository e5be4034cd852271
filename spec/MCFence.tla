----------------------------------------- MODULE MCFence ------------------------------------------
(* Fence.tla for TLC: the attempts, the setups of clients, what is alike, and what a good search
   must meet. *)
EXTENDS Fence, Goals

CONSTANTS n1, n2, n3, n4, n5, n6

(* A letter for each attempt of a client. *)
AB == <<1, 2>>
AAB == <<1, 1, 2>>
ABC == <<1, 2, 3>>

With(nodes, quorum) == [nodes |-> nodes, quorum |-> quorum]
All(setup) == <<setup, setup, setup>>

Three == All(With({n1, n2, n3}, 2))
(* They may run beside each other. *)
ThreeBesideFive4 == <<With({n1, n2, n3}, 2), With({n1, n2, n3, n4, n5}, 4)>>
Three3BesideThree2 == <<With({n1, n2, n3}, 3), With({n1, n2, n3}, 2)>>
Three3BesideOtherThree2 == <<With({n1, n2, n3}, 3), With({n1, n2, n4}, 2)>>
(* The second meets the first and the third. *)
Three2ThenThree3ThenOtherThree2 ==
    <<With({n1, n2, n3}, 2), With({n1, n2, n3}, 3), With({n1, n2, n4}, 2)>>
(* These do not meet. *)
ThreeBesideFive3 == <<With({n1, n2, n3}, 2), With({n1, n2, n3, n4, n5}, 3)>>
FiveBesideOtherFive == <<With({n1, n2, n3, n4, n5}, 3), With({n1, n2, n3, n4, n6}, 3)>>

(* Nodes that the same clients ask are alike. *)
Symmetry == {p \in Permutations(Nodes) : \A i \in Tries : {p[n] : n \in Asks(i)} = Asks(i)}

ASSUME Expect(
    {"fast path", "slow path", "grant after a grant", "key expired before its attempt ended",
     "SET executed after its attempt ended", "write-back executed after its attempt ended"}
    \cup (IF Rounds > 1 THEN {"write-back beaten, then won"} ELSE {})
    \cup (IF Losses > 0 THEN {"counter lost"} ELSE {}))

GrantedNow(i) == try[i].phase # "granted" /\ try'[i].phase = "granted"

MeetGoals ==
    /\ Meets(1, "fast path", \E i \in Tries : try[i].phase = "asking" /\ GrantedNow(i))
    /\ Meets(2, "slow path",
             \E i \in Tries : try[i].phase = "writing" /\ try[i].round = 1 /\ GrantedNow(i))
    /\ Meets(3, "write-back beaten, then won", \E i \in Tries : try[i].round > 1 /\ GrantedNow(i))
    /\ Meets(4, "grant after a grant", \E i \in Tries : try[i].floor > 0 /\ GrantedNow(i))
    /\ Meets(5, "key expired before its attempt ended",
             \E n \in Nodes : node[n].lock \in Tries /\ ~IsDone(try[node[n].lock]) /\ Expire(n))
    /\ Meets(6, "SET executed after its attempt ended",
             \E i \in Tries, n \in Nodes :
                    try[i].phase # "asking" /\ node[n].lock = Free /\ ExecuteAcquire(i, n))
    /\ Meets(7, "write-back executed after its attempt ended",
             \E i \in Tries, n \in Nodes :
                    IsDone(try[i]) /\ Raises(i, n, try[i].target) /\ ExecuteWrite(i, n))
    /\ Meets(8, "counter lost", losses' > losses)

===================================================================================================
