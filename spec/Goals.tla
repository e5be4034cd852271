------------------------------------------ MODULE Goals -------------------------------------------
(* States and steps that a good search must meet. A search that never met a slow path, or a
   restart under a lease, proves nothing about them. TLC prints each goal when a worker first
   meets it; check.sh fails if one that it expects is missing. *)
EXTENDS Integers, TLC

GoalsMax == 31
Expected == GoalsMax + 1

ASSUME \A i \in 1..GoalsMax : TLCSet(i, FALSE)

(* Says what the search is expected to meet. *)
Expect(names) == TLCSet(Expected, names) /\ \A name \in names : PrintT(<<"expected", name>>)

(* Goal i is met by this step. Always true: it hinders no search. To look for what is not expected
   would take time at every step. *)
Meets(i, name, step) ==
    IF TLCGet(i) THEN TRUE
    ELSE IF name \notin TLCGet(Expected) THEN TLCSet(i, TRUE)
    ELSE IF step THEN TLCSet(i, TRUE) /\ PrintT(<<"met", name>>)
    ELSE TRUE

===================================================================================================
