------------------------------------------ MODULE Goals -------------------------------------------
(* States and steps that a good search must meet. A search that never met a slow path, or a
   restart under a lease, proves nothing about them. TLC prints each goal when a worker first
   meets it; check.sh fails if one that it expects is missing. *)
EXTENDS Integers, TLC

GoalsMax == 30

ASSUME \A i \in 1..GoalsMax : TLCSet(i, 0)

(* Prints what the search is expected to meet. *)
Expect(names) == \A name \in names : PrintT(<<"expected", name>>)

(* Goal i is met by this step. Always true: it hinders no search. *)
Meets(i, name, step) ==
    IF TLCGet(i) = 1 THEN TRUE
    ELSE IF step THEN TLCSet(i, 1) /\ PrintT(<<"met", name>>)
    ELSE TRUE

===================================================================================================
