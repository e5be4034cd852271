---------------------------------------- MODULE MCObserver ----------------------------------------
(* Observer.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Observer, Goals

CONSTANTS n1, n2, n3, n4, n5

Symmetry == Permutations(Nodes)

ASSUME Expect(
    {"told who leads", "told that nobody leads", "told of the next leader at once",
     "old words named another leader", "nodes asked again before nobody leads",
     "the leader has taken one of these", "named a candidate that gave up"}
    \cup (IF Own # {} THEN {"led before the nodes said so"} ELSE {})
    \cup (IF Fails THEN {"word lost"} ELSE {}))

TellsNow(k) == leader # k /\ leader' = k

MeetGoals ==
    /\ Meets(1, "told who leads", \E k \in 1..Terms : TellsNow(k))
    /\ Meets(2, "told that nobody leads", leader > 0 /\ TellsNow(0))
    /\ Meets(3, "told of the next leader at once",
             leader > 0 /\ \E k \in 1..Terms : TellsNow(k))
    /\ Meets(4, "old words named another leader",
             \E k \in Tokens : /\ k # leader' /\ leader' > 0
                               /\ Cardinality({n \in Nodes : said'[n].word = k}) >= Quorum)
    /\ Meets(7, "nodes asked again before nobody leads", ~checked /\ checked')
    /\ Meets(8, "the leader has taken one of these",
             \E n \in Nodes : checked /\ leader > 0 /\ said[n].word = 0 /\ said'[n].word = leader)
    /\ Meets(9, "named a candidate that gave up",
             \E n \in Nodes : /\ said[n].word # said'[n].word /\ said'[n].word > 0
                              /\ said'[n].word \in 1..(term - 1) \ led)
    /\ Meets(5, "led before the nodes said so", Lead /\ leader # term)
    /\ Meets(6, "word lost", \E n \in Nodes : said[n].word # Unknown /\ Fail(n))

===================================================================================================
