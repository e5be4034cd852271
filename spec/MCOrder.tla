----------------------------------------- MODULE MCOrder ------------------------------------------
(* Order.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Order, Goals

CONSTANTS
    n1, n2, n3, n4, n5,
    Short       \* whether the search goes no further than it takes a try to pass without a yield

(* Clients are not alike: they begin one after the other. *)
Symmetry == Permutations(Nodes)

Writing == Clients \ Reading
Trying == {c \in Clients : c + Tries > Waiters}

ASSUME Short => Tries > 0   \* otherwise nobody notes a yield

Goes == Short =>
    /\ \A c \in Clients : ~client[c].yielded /\ client[c].phase \notin {"held", "ended"}
    /\ \E c \in Clients : client[c].phase \in {"out", "trying"}

ASSUME Expect(
    {"lock handed over", "free lock taken by a WAIT"}
    \cup (IF Short THEN {} ELSE {
        "held by a queued client", "yield because an earlier waiter has a node",
        "yield that gives a lock to another one", "refresh or WAIT that takes nothing"})
    \cup (IF Writing # {} THEN
         {"began when an earlier one was queued on a quorum", "look that changes nothing"} ELSE {})
    \cup (IF Cardinality(Nodes) > Quorum /\ ~Short
          THEN {"yield because another token has a quorum"} ELSE {})
    \cup (IF Trying \cap Writing # {} THEN {"lost try that had a node"} ELSE {})
    \cup (IF Trying \cap Writing # {} /\ ~Short
          THEN {"held by a try", "lock of a try handed over, because of its mark"} ELSE {})
    \cup (IF Trying \cap Writing # {} /\ Waiters > 2 /\ ~Short
          THEN {"try passes one who did not yield, with what a yield gave back"} ELSE {})
    \cup (IF Trying \cap Reading # {} THEN
         {"held by a try", "try of a reader refused, because somebody waits"} ELSE {})
    \cup (IF 1 \in Reading /\ Writing # {} THEN {"yield of a writer to a reader"} ELSE {})
    \cup (IF Cardinality(Reading) > 1 THEN {"held by two who read"} ELSE {})
    \cup (IF Cardinality(Reading) > 1 THEN
         {IF Together > 1 THEN "two readers served in one step"
          ELSE "reader told, because enough came in at once"} ELSE {})
    \cup (IF Cardinality(Reading) > 1 /\ 1 \notin Reading THEN
         {"yield of a reader to a writer that is first in line"} ELSE {})
    \cup (IF Downgrades /\ Reading # {} THEN
         {"reader let in by a downgrade"} ELSE {})
    \cup (IF Downgrades /\ Cardinality(Nodes) > Quorum THEN
         {"string of one who was downgraded"} ELSE {})
    \cup (IF GivesUp /\ FirstReads /\ Reading # {} THEN
         {"reader let in because a place was given up"} ELSE {})
    \cup (IF Losses > 0 THEN {"WAIT that learns of a lost push"} ELSE {})
    \cup (IF Breaks > 0 THEN {"WAIT executed after its RELEASE: queued",
                              "the same, served: its push is answered by RELEASE",
                              "WAIT executed after its RELEASE: took a free lock, no push"} ELSE {})
    \cup (IF GivesUp THEN {"told, because another one gave up where the lock is free"} ELSE {})
    \cup (IF LeavesFree THEN {"WAIT takes nothing where the lock is left free"} ELSE {})
    \cup (IF LeavesFree /\ ~Is("left-untold")
          THEN {"told that the lock is left free", "asks, because it was told"} ELSE {})
    \cup (IF LeavesFree /\ Tries > 0 /\ Waiters > 2
          THEN {"lock that is left free taken by a try"} ELSE {}))

HoldsNow(c, phase) == client[c].phase = phase /\ client'[c].phase = "held"
OwnsNow(c, n) == c \notin node[n].owners /\ c \in node'[n].owners
IsToldNow(c) == client[c].told = {} /\ client'[c].told # {}
IsNext(c, n, request) == link[c][n].requests # <<>> /\ Head(link[c][n].requests) = request
                         /\ link'[c][n].requests = Tail(link[c][n].requests)

MeetGoals ==
    /\ Meets(1, "lock handed over",
             \E c \in Clients, n \in Nodes : FirstHolder \in node[n].owners /\ OwnsNow(c, n))
    /\ Meets(2, "free lock taken by a WAIT",
             \E c \in Clients, n \in Nodes :
                    IsFree(node[n]) /\ OwnsNow(c, n) /\ client[c].phase = "queued")
    /\ Meets(3, "began when an earlier one was queued on a quorum",
             \E c \in Clients : client'[c].due # {})
    /\ Meets(4, "held by a queued client", \E c \in Clients : HoldsNow(c, "queued"))
    /\ Meets(5, "yield because another token has a quorum",
             \E c \in Clients : JudgeLook(c) /\ IsBehind(Seen(c)))
    /\ Meets(6, "yield that gives a lock to another one",
             \E c, d \in Clients, n \in Nodes :
                    /\ c # d /\ client[c].phase = "queued" /\ client[d].phase = "queued"
                    /\ c \in node[n].owners /\ OwnsNow(d, n))
    /\ Meets(7, "held by a try", \E c \in Clients : HoldsNow(c, "trying"))
    /\ Meets(8, "lost try that had a node", \E c \in Clients : Owned(c) # {} /\ LoseTry(c))
    /\ Meets(14, "lock of a try handed over, because of its mark",
             \E c, d \in Clients, n \in Nodes :
                    /\ c \in node[n].owners /\ node[n].marked /\ client[c].phase = "ended"
                    /\ OwnsNow(d, n))
    /\ Meets(9, "WAIT executed after its RELEASE: queued",
             \E c \in Clients, n \in Nodes : link'[c][n].ghost)
    /\ Meets(10, "the same, served: its push is answered by RELEASE",
             \E c \in Clients, n \in Nodes :
                    link[c][n].ghost /\ c \in node'[n].ghosts)
    /\ Meets(11, "WAIT executed after its RELEASE: took a free lock, no push",
             \E c \in Clients, n \in Nodes :
                    IsFree(node[n]) /\ ~link[c][n].ghost /\ c \in node'[n].ghosts)
    /\ Meets(12, "told that the lock is left free",
             \E c \in Clients, n \in Nodes :
                    IsToldNow(c) /\ ~node[n].left /\ node'[n].left)
    /\ Meets(13, "asks, because it was told",
             \E c \in Clients : client[c].told # {} /\ WaitAgain(c))
    /\ Meets(15, "told, because another one gave up where the lock is free",
             \E c, d \in Clients, n \in Nodes :
                    IsToldNow(d) /\ client[c].phase = "ended" /\ IsNext(c, n, "release"))
    /\ Meets(16, "WAIT takes nothing where the lock is left free",
             \E c \in Clients, n \in Nodes :
                    /\ node[n].left /\ IsFree(node[n]) /\ IsNext(c, n, "take")
                    /\ IsFree(node'[n]))
    /\ Meets(17, "lock that is left free taken by a try",
             \E c \in Clients, n \in Nodes :
                    node[n].left /\ IsFree(node[n]) /\ OwnsNow(c, n))
    /\ Meets(18, "yield because an earlier waiter has a node",
             \E c \in Clients : JudgeLook(c) /\ client'[c].wait = "enter"
                                /\ ~IsBehind(Seen(c)))
    /\ Meets(19, "look that changes nothing",
             \E c \in Clients : JudgeLook(c) /\ client'[c].wait = "judged")
    /\ Meets(21, "two readers served in one step",
             \E c, d \in Reading, n \in Nodes : c # d /\ OwnsNow(c, n) /\ OwnsNow(d, n))
    /\ Meets(22, "held by two who read",
             \E c, d \in Clients : c # d /\ Holds(c) /\ Holds(d))
    /\ Meets(23, "yield of a reader to a writer that is first in line",
             \E c \in Reading :
                    /\ JudgeLook(c) /\ client'[c].wait = "enter"
                    /\ \A n \in Nodes : link[c][n].seen \notin (Clients \cup {FirstHolder})
                                                            \X {"now", "old", "try"})
    /\ Meets(24, "yield of a writer to a reader",
             \E c \in Clients \ Reading, n \in Nodes :
                    /\ JudgeLook(c) /\ client'[c].wait = "enter"
                    /\ link[c][n].seen \in Reading \X {"now"})
    /\ Meets(25, "WAIT that learns of a lost push",
             \E c \in Clients, n \in Nodes :
                    link[c][n].deaf /\ (IsNext(c, n, "take") \/ IsNext(c, n, "enter"))
                    /\ c \in node'[n].owners)
    /\ Meets(26, "reader let in because a place was given up",
             \E c \in Reading, d \in Clients, n \in Nodes :
                    /\ OwnsNow(c, n) /\ link[d][n].place /\ ~link'[d][n].place
                    /\ d \notin node[n].owners /\ d \notin node'[n].owners)
    /\ Meets(27, "reader let in by a downgrade",
             \E c \in Reading, d \in Clients, n \in Nodes :
                    OwnsNow(c, n) /\ IsNext(d, n, "share"))
    /\ Meets(28, "string of one who was downgraded",
             \E c \in Clients, n \in Nodes :
                    OwnsNow(c, n) /\ client[c].phase = "reading" /\ ~node'[n].shared)
    /\ Meets(29, "reader told, because enough came in at once",
             \E c, d \in Reading, n \in Nodes : IsToldNow(c) /\ OwnsNow(d, n))
    /\ Meets(30, "try of a reader refused, because somebody waits",
             \E c \in Reading, n \in Nodes :
                    IsNext(c, n, "set") /\ node[n].shared /\ ~OwnsNow(c, n))
    /\ Meets(20, "refresh or WAIT that takes nothing",
             \E c \in Clients, n \in Nodes :
                    IsNext(c, n, "enter") /\ IsFree(node[n]) /\ ~node[n].left)
    /\ Meets(31, "try passes one who did not yield, with what a yield gave back",
             \E c \in Clients : HoldsNow(c, "trying") /\ client'[c].due # {})

===================================================================================================
