----------------------------------------- MODULE MCOrder ------------------------------------------
(* Order.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Order, Goals

CONSTANTS
    n1, n2, n3, n4, n5,
    Short       \* whether the search goes no further than it takes a try to pass without a yield

(* Clients are not alike: they begin one after the other. *)
Symmetry == Permutations(Nodes)

ASSUME Short => Tries > 0   \* otherwise nobody notes a yield

Goes == Short =>
    /\ \A c \in Clients : ~client[c].yielded /\ client[c].phase \notin {"held", "ended"}
    /\ \E c \in Clients : client[c].phase \in {"out", "trying"}

ASSUME Expect(
    {"lock handed over", "free lock taken by a WAIT",
     "began when an earlier one was queued on a quorum", "look that changes nothing"}
    \cup (IF Short THEN {} ELSE {
        "held by a queued client", "yield because an earlier waiter has a node",
        "yield that gives a lock to another one", "refresh or WAIT that takes nothing"})
    \cup (IF Cardinality(Nodes) > Quorum /\ ~Short
          THEN {"yield because another token has a quorum"} ELSE {})
    \cup (IF Tries > 0 THEN {"lost try that had a node"} ELSE {})
    \cup (IF Tries > 0 /\ ~Short
          THEN {"held by a try", "lock of a try handed over, because of its mark"} ELSE {})
    \cup (IF Tries > 0 /\ Waiters > 2 /\ ~Short
          THEN {"try passes one who did not yield, with what a yield gave back"} ELSE {})
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
OwnsNow(c, n) == node[n].owner # c /\ node'[n].owner = c
IsToldNow(c) == ~client[c].told /\ client'[c].told
IsNext(c, n, request) == link[c][n].requests # <<>> /\ Head(link[c][n].requests) = request
                         /\ link'[c][n].requests = Tail(link[c][n].requests)

MeetGoals ==
    /\ Meets(1, "lock handed over",
             \E c \in Clients, n \in Nodes : node[n].owner = FirstHolder /\ OwnsNow(c, n))
    /\ Meets(2, "free lock taken by a WAIT",
             \E c \in Clients, n \in Nodes :
                    node[n].owner = Free /\ OwnsNow(c, n) /\ client[c].phase = "queued")
    /\ Meets(3, "began when an earlier one was queued on a quorum",
             \E c \in Clients : client'[c].due # {})
    /\ Meets(4, "held by a queued client", \E c \in Clients : HoldsNow(c, "queued"))
    /\ Meets(5, "yield because another token has a quorum",
             \E c \in Clients : JudgeLook(c) /\ IsBehind(Seen(c)))
    /\ Meets(6, "yield that gives a lock to another one",
             \E c, d \in Clients, n \in Nodes :
                    /\ c # d /\ client[c].phase = "queued" /\ client[d].phase = "queued"
                    /\ node[n].owner = c /\ ~node[n].ghost /\ OwnsNow(d, n))
    /\ Meets(7, "held by a try", \E c \in Clients : HoldsNow(c, "trying"))
    /\ Meets(8, "lost try that had a node", \E c \in Clients : Owned(c) # {} /\ LoseTry(c))
    /\ Meets(14, "lock of a try handed over, because of its mark",
             \E c, d \in Clients, n \in Nodes :
                    /\ node[n].owner = c /\ node[n].try = "marked" /\ client[c].phase = "ended"
                    /\ OwnsNow(d, n))
    /\ Meets(9, "WAIT executed after its RELEASE: queued",
             \E c \in Clients, n \in Nodes : link'[c][n].ghost)
    /\ Meets(10, "the same, served: its push is answered by RELEASE",
             \E c \in Clients, n \in Nodes :
                    link[c][n].ghost /\ node'[n].owner = c /\ node'[n].ghost)
    /\ Meets(11, "WAIT executed after its RELEASE: took a free lock, no push",
             \E c \in Clients, n \in Nodes :
                    /\ node[n].owner = Free /\ ~link[c][n].ghost
                    /\ node'[n].owner = c /\ node'[n].ghost)
    /\ Meets(12, "told that the lock is left free",
             \E c \in Clients, n \in Nodes :
                    IsToldNow(c) /\ ~node[n].left /\ node'[n].left)
    /\ Meets(13, "asks, because it was told",
             \E c \in Clients : client[c].told /\ WaitAgain(c))
    /\ Meets(15, "told, because another one gave up where the lock is free",
             \E c, d \in Clients, n \in Nodes :
                    IsToldNow(d) /\ client[c].phase = "ended" /\ IsNext(c, n, "release"))
    /\ Meets(16, "WAIT takes nothing where the lock is left free",
             \E c \in Clients, n \in Nodes :
                    /\ node[n].left /\ node[n].owner = Free /\ IsNext(c, n, "take")
                    /\ node'[n].owner = Free)
    /\ Meets(17, "lock that is left free taken by a try",
             \E c \in Clients, n \in Nodes :
                    node[n].left /\ node[n].owner = Free /\ OwnsNow(c, n))
    /\ Meets(18, "yield because an earlier waiter has a node",
             \E c \in Clients : JudgeLook(c) /\ client'[c].wait = "enter"
                                /\ ~IsBehind(Seen(c)))
    /\ Meets(19, "look that changes nothing",
             \E c \in Clients : JudgeLook(c) /\ client'[c].wait = "judged")
    /\ Meets(20, "refresh or WAIT that takes nothing",
             \E c \in Clients, n \in Nodes :
                    IsNext(c, n, "enter") /\ node[n].owner = Free /\ ~node[n].left)
    /\ Meets(21, "try passes one who did not yield, with what a yield gave back",
             \E c \in Clients : HoldsNow(c, "trying") /\ client'[c].due # {})

===================================================================================================
