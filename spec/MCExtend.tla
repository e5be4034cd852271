----------------------------------------- MODULE MCExtend -----------------------------------------
(* Extend.tla for TLC: what is alike, and what a good search must meet. *)
EXTENDS Extend, Goals

CONSTANTS n1, n2, n3, n4, n5

Symmetry == Permutations(Nodes)

ASSUME Expect(
    {"extended", "old deadline stands", "lost at the deadline", "key that another one has"}
    \cup (IF Losses > 1
          THEN {"lost because too few may have the key", "deadline is earlier",
                "lost because of an answer after the deadline of its round"} ELSE {})
    \cup (IF Breaks > 0 THEN {"late EXTEND, not longer"} ELSE {})
    \cup (IF Heals /\ Losses > 0 THEN {"healed"} ELSE {}))

MeetGoals ==
    /\ Meets(1, "extended", lease'.held /\ lease'.left > lease.left)
    /\ Meets(2, "old deadline stands",
             lease.won /\ ~lease.onRound /\ lease.roundLeft \in 1..(lease.left - 1))
    /\ Meets(3, "lost at the deadline", Tick /\ ~lease'.held)
    /\ Meets(4, "key that another one has", \E n \in Nodes : node[n].key = "none" /\ Other(n))
    /\ Meets(5, "lost because too few may have the key",
             \E n \in Nodes : Hear(n) /\ lease.left > 0 /\ ~lease'.held)
    /\ Meets(6, "deadline is earlier",
             \E n \in Nodes : Hear(n) /\ lease'.held /\ lease'.left < lease.left)
    /\ Meets(9, "lost because of an answer after the deadline of its round",
             \E n \in Nodes : /\ lease.won /\ ~lease.onRound /\ lease.roundLeft = 0
                              /\ Hear(n) /\ Cardinality(MayHave(lease) \ {n}) >= Quorum
                              /\ ~lease'.held)
    /\ Meets(7, "late EXTEND, not longer",
             \E n \in Nodes : ExecuteLate(n) /\ node[n].key = "ours" /\ link[n].late < node[n].life)
    /\ Meets(8, "healed",
             \E n \in Nodes : /\ link[n].requests # <<>>
                              /\ Head(link[n].requests).what = "heal"
                              /\ Execute(n) /\ node[n].key = "none")

===================================================================================================
