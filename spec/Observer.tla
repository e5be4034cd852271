----------------------------------------- MODULE Observer -----------------------------------------
(* What an observer of an election is told of who leads: docs/waiting.md, "Observers", and
   docs/protocols.md, "What channels say". README.md says what is left out.

   The leaders come one after the other: term k + 1 begins when the leader of term k has resigned
   or has lost the lock, or when its candidate has given up before it led. That there is one at a
   time is what Lock.tla and Queue.tla show. The nodes learn of each change at their own times, in
   any order.

   There is no time. An observer may ask a node whenever it likes, as anybody may hint that
   something has changed there: so what channels say is of no matter but for one variant. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes,
    Terms,      \* how many terms there are
    Own,        \* the terms in which the observer leads, since it is a candidate, too
    Fails,      \* whether nodes may fail to answer
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "any-node",     \* whom one node names leads
    "old-words",    \* words from before a leader was found make another one
    "believes",     \* what a channel says counts as the word of the node
    "unchecked",    \* nobody leads as soon as a quorum says so
    "asks-once" }   \* who knows a leader asks nobody

ASSUME Broken \subseteq Variants /\ Own \subseteq 1..Terms

VARIABLES
    owner,      \* of the key of each node: 0, or the term of the leader or candidate that has it
    term,       \* who is, or wants to be, the leader: all terms before it are over
    led,        \* the terms whose leader has had a quorum
    leads,      \* the last of our own terms in which we began to lead
    said,       \* what the observer knows of each node
    leader,     \* who leads, as the observer knows it
    checked,    \* a quorum has said that nobody does, and is asked again
    highest     \* the latest term of which it has been told

vars == <<owner, term, led, leads, said, leader, checked, highest>>

Is(variant) == variant \in Broken
Quorum == Cardinality(Nodes) \div 2 + 1
Tokens == 0..Terms      \* 0: nobody
Unknown == -1
(* No question is under way; or it is, and the node has not read it. Else: its answer. *)
NoQuestion == -1
Sent == -2

TypeOK ==
    /\ owner \in [Nodes -> Tokens]
    /\ term \in 1..(Terms + 1)
    /\ led \subseteq 1..Terms
    /\ leads \in Tokens
    /\ said \in [Nodes -> [
            word : Tokens \cup {Unknown},
            old : BOOLEAN,      \* said before the leader was found, and not that one
            left : BOOLEAN,     \* until `checked`: it named the leader, and is free since
            question : Tokens \cup {NoQuestion, Sent},
            late : BOOLEAN ]]   \* so will be the answer that is to come
    /\ leader \in Tokens \cup {Unknown}
    /\ checked \in BOOLEAN
    /\ highest \in Tokens

Init ==
    /\ owner = [n \in Nodes |-> 0]
    /\ term = 1
    /\ led = {}
    /\ leads = 0
    /\ said = [n \in Nodes |->
            [word |-> Unknown, old |-> FALSE, left |-> FALSE, question |-> NoQuestion,
             late |-> FALSE]]
    /\ leader = Unknown
    /\ checked = FALSE
    /\ highest = 0

Larger(a, b) == IF a > b THEN a ELSE b
Names(owners, k) == Cardinality({n \in Nodes : owners[n] = k}) >= Quorum

---------------------------------------------------------------------------------------------------
(* The election. *)

Owns(n, k) ==
    /\ owner' = [owner EXCEPT ![n] = k]
    /\ led' = led \cup (IF k > 0 /\ Names(owner', k) THEN {k} ELSE {})
    /\ UNCHANGED <<term, leads, said, leader, checked, highest>>

(* A WAIT takes a lock that is free. *)
Take(n) == owner[n] = 0 /\ term <= Terms /\ Owns(n, term)

(* A RELEASE deletes the key, or hands over; or the key ends. *)
Free(n) ==
    /\ owner[n] \in 1..(term - 1)
    /\ Owns(n, 0) \/ (term <= Terms /\ Owns(n, term))

(* The leader resigns, or dies; or a candidate gives up before. If we lead, we have known it. *)
Resign ==
    /\ term <= Terms
    /\ term \in Own \cap led => leads = term
    /\ term' = term + 1
    /\ UNCHANGED <<owner, led, leads, said, leader, checked, highest>>

---------------------------------------------------------------------------------------------------
(* The observer. *)

(* When a leader is found, all words that do not name it are old, and so are the answers to
   earlier questions. *)
SetLeader(words, k) ==
    /\ leader' = k
    /\ highest' = Larger(highest, k)
    /\ checked' = FALSE
    /\ said' = [n \in Nodes |-> [words[n] EXCEPT !.old = (words[n].word \notin {k, Unknown}),
                                                 !.left = FALSE,
                                                 !.late = (words[n].question # NoQuestion)]]

(* A quorum says that the lock is free, but for some of them we do not know that they were the
   leader's before: the leader may have taken these since they said so. So they are asked again. *)
Check(words) ==
    /\ checked' = TRUE
    /\ said' = [n \in Nodes |->
            IF words[n].left \/ words[n].word = leader THEN [words[n] EXCEPT !.left = FALSE]
            ELSE [words[n] EXCEPT !.old = (words[n].word # Unknown),
                                  !.late = (words[n].question # NoQuestion)]]
    /\ UNCHANGED <<leader, highest>>

(* A word has changed, so only whom it names can have a quorum now. *)
Decide(words, k) ==
    LET naming == {n \in Nodes : words[n].word = k}
        fresh == {n \in naming : ~words[n].old}
        left == {n \in naming : words[n].left}
        counted == IF Is("old-words") THEN naming ELSE fresh
        enough == IF Is("any-node") THEN 1 ELSE Quorum
        isSure == \/ k > 0 \/ leader = Unknown \/ checked \/ Is("unchecked")
                  \/ Cardinality(left) >= enough
    IN  IF k = leader \/ Cardinality(counted) < enough
        THEN said' = words /\ UNCHANGED <<leader, checked, highest>>
        ELSE IF isSure THEN SetLeader(words, k) ELSE Check(words)

(* One question a node is under way at any time. *)
Ask(n) ==
    /\ said[n].question = NoQuestion
    /\ Is("asks-once") => leader = Unknown
    /\ said' = [said EXCEPT ![n].question = Sent, ![n].late = FALSE]
    /\ UNCHANGED <<owner, term, led, leads, leader, checked, highest>>

(* The node reads the question. *)
Answer(n) ==
    /\ said[n].question = Sent
    /\ said' = [said EXCEPT ![n].question = owner[n]]
    /\ UNCHANGED <<owner, term, led, leads, leader, checked, highest>>

Hear(n) ==
    LET at == said[n]
    IN  /\ at.question \in Tokens
        /\ Decide([said EXCEPT ![n] = [
                word |-> at.question, old |-> at.late /\ at.question # leader,
                left |-> /\ at.question = 0 /\ leader > 0 /\ ~checked
                         /\ at.left \/ at.word = leader,
                question |-> NoQuestion, late |-> FALSE]], at.question)
        /\ UNCHANGED <<owner, term, led, leads>>

(* The node cannot answer, or is another server now: what it said counts no more. *)
Fail(n) ==
    /\ Fails
    /\ said[n].question # NoQuestion
    /\ said' = [said EXCEPT ![n].question = NoQuestion, ![n].word = Unknown, ![n].old = FALSE,
                            ![n].left = FALSE, ![n].late = FALSE]
    /\ UNCHANGED <<owner, term, led, leads, leader, checked, highest>>

(* "believes": anybody may say anything on the node's channel. *)
Forge(n, k) ==
    /\ Is("believes")
    /\ Decide([said EXCEPT ![n].word = k, ![n].old = FALSE], k)
    /\ UNCHANGED <<owner, term, led, leads>>

(* We begin to lead: whatever the nodes have said until now is old if it is not that. *)
Lead ==
    /\ term \in Own \cap led
    /\ leads # term
    /\ leads' = term
    /\ SetLeader(said, term)
    /\ UNCHANGED <<owner, term, led>>

Next ==
    \/ Resign \/ Lead
    \/ \E n \in Nodes : Take(n) \/ Free(n) \/ Ask(n) \/ Answer(n) \/ Hear(n) \/ Fail(n)
    \/ \E n \in Nodes, k \in 1..Terms : Forge(n, k)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

(* Who is said to lead, leads or has led. *)
HasLed == leader > 0 => leader \in led

(* A leader does not come back once a later one was told. *)
NeverBack == [][leader' # leader /\ leader' > 0 => leader' >= highest]_vars

(* Nor after "nobody". *)
NeverAgain == [][leader' # leader /\ leader' > 0 => leader' > highest]_vars

(* While we lead, nobody else is said to lead. *)
OwnTermStands == leads = term => leader = term

---------------------------------------------------------------------------------------------------
(* What happens in the end, if nodes answer and the observer asks them from time to time: a step
   that can be taken cannot be taken for ever. That is weak fairness of these steps, as none of
   them can be taken twice in a row, and TLC checks it in less time. *)

FairSpec ==
    /\ Spec
    /\ \A n \in Nodes : []<>~ENABLED Ask(n) /\ []<>~ENABLED Answer(n) /\ []<>~ENABLED Hear(n)

(* The newest change is never left out: if a quorum names one leader for ever, or nobody, the
   observer is told. *)
Told == \A k \in Tokens : <>[](Names(owner, k)) => <>[](leader = k)

===================================================================================================
