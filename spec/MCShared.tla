----------------------------------------- MODULE MCShared -----------------------------------------
(* Shared.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Shared, Goals

CONSTANTS n1, n2, n3, A, B, C

Symmetry == Permutations(Nodes) \cup Permutations(Readers) \cup Permutations(Clients \ Readers)

Writers == Clients \ Readers

ASSUME Expect(
    {"held for less than a ttl, because a bound was old", "extended",
     "key set after the acquire was decided", "lost at the deadline"}
    \cup (IF Readers # {} THEN
         {"entry ended, and another one lives on", "key shortened by a release"} ELSE {})
    \cup (IF Cardinality(Readers) > 1 THEN {"held by two who read"} ELSE {})
    \cup (IF Readers # {} /\ Writers # {} THEN
         {"string set where others have read", "held by one who reads and one who was downgraded",
          "joined the entry of a downgrade"} ELSE {})
    \cup (IF Writers # {} THEN
         {"string made an entry", "string of one who was downgraded, set later"} ELSE {})
    \cup (IF Restarts > 0 THEN
         {"restart that forgot the entry of a lease", "quarantine over"} ELSE {}))

HoldsNow(c) == client[c].left = 0 /\ client'[c].left > 0
JoinsNow(c, n) == node[n].life[c] = 0 /\ node'[n].life[c] > 0 /\ ~node'[n].alone
SetsNow(c, n) == node[n].life[c] = 0 /\ node'[n].life[c] > 0 /\ node'[n].alone

MeetGoals ==
    /\ Meets(1, "held for less than a ttl, because a bound was old",
             \E c \in Clients : HoldsNow(c) /\ client'[c].left < Ttl)
    /\ Meets(2, "extended", \E c \in Clients : Holds(c) /\ client'[c].left > client[c].left)
    /\ Meets(3, "key set after the acquire was decided",
             \E c \in Clients, n \in Nodes : Holds(c) /\ (JoinsNow(c, n) \/ SetsNow(c, n)))
    /\ Meets(4, "lost at the deadline", Tick /\ \E c \in Clients : client[c].left = 1)
    /\ Meets(5, "entry ended, and another one lives on",
             \E c, d \in Tokens, n \in Nodes :
                    Tick /\ node[n].life[c] = 1 /\ c \notin {e \in Clients : client[e].left = 1}
                    /\ node'[n].life[d] > 0)
    /\ Meets(6, "key shortened by a release",
             \E n \in Nodes : ExecuteRelease(n) /\ node'[n].key \in 1..(node[n].key - 1))
    /\ Meets(7, "held by two who read",
             \E c, d \in Readers : c # d /\ Holds(c) /\ Holds(d))
    /\ Meets(8, "string set where others have read",
             \E c, d \in Clients, n \in Nodes :
                    SetsNow(c, n) /\ Holds(d) /\ Reads(d) /\ \E m \in Nodes : Has(d, m))
    /\ Meets(9, "held by one who reads and one who was downgraded",
             \E c \in Readers, d \in Writers : Holds(c) /\ Holds(d))
    /\ Meets(10, "joined the entry of a downgrade",
             \E c \in Readers, d \in Writers, n \in Nodes :
                    IsSet(n) /\ Has(d, n) /\ JoinsNow(c, n))
    /\ Meets(11, "string made an entry",
             \E c \in Clients, n \in Nodes : node[n].alone /\ Has(c, n) /\ ~node'[n].alone
                                             /\ node'[n].life[c] > 0)
    /\ Meets(12, "string of one who was downgraded, set later",
             \E c \in Clients, n \in Nodes : Reads(c) /\ SetsNow(c, n))
    /\ Meets(13, "restart that forgot the entry of a lease",
             \E c \in Readers, n \in Nodes : Holds(c) /\ Has(c, n) /\ Restart(n))
    /\ Meets(14, "quarantine over",
             \E c \in Clients, n \in Nodes : link[c][n].sees = 1 /\ link'[c][n].sees = 0)

===================================================================================================
