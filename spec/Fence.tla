------------------------------------------ MODULE Fence -------------------------------------------
(* Fencing tokens by quorum: docs/protocols.md, "Fencing tokens" and "Different quorums".
   README.md says what is left out.

   There is no time: a message that is under way may be executed at any time, in any order, or
   never, also when its attempt is long over. A node that refuses a number, because it is too far
   ahead of its clock, is a node that never executes that message. A key may end at any time. A
   client may give up at any time. Clocks may have any value: a proposal is any of a few numbers. *)
EXTENDS Integers, FiniteSets, Sequences, TLC

CONSTANTS
    Nodes,          \* all nodes that some client asks
    Attempts,       \* a sequence: whose each attempt is, by the client's number from 1 on
    Setup,          \* of each client: [nodes |-> the nodes that it asks, quorum |-> how many]
    Proposals,      \* clocks are anything: a proposal is one of so many numbers
    FromQueue,      \* whether a lease may come from a queue: then it proposes nothing
    Rounds,         \* of step 4 in one attempt: one, and more when it is beaten (step 5)
    Losses,         \* how often nodes lose their counter and their key, in all
    Collide,        \* whether numbers have no digits of their own for each client
    InTurn,         \* whether a client begins when those before it have their tokens
    RightClocks,    \* whether each proposal is above every number that anyone has used before
    Broken          \* the variants that are switched on: {} is the protocol

Variants == {
    "incr",             \* each node counts by itself, and the token is the highest count
    "no-write-back",    \* the highest counter + 1, which is not written back
    "accepts-equal",    \* a node accepts a proposal that is equal to its counter
    "acks-equal",       \* a node confirms a write-back of the number that it has already
    "acks-unlocked" }   \* no bug alone: a node confirms a write-back whoever has the lock

ASSUME Broken \subseteq Variants

VARIABLES
    node,       \* each node: its key and its counter
    try,        \* each attempt: its own token of the lock, one proposal
    losses      \* that have happened

vars == <<node, try, losses>>

Is(variant) == variant \in Broken
Tries == 1..Len(Attempts)
Clients == {Attempts[i] : i \in Tries}
ClientCount == CHOOSE k \in Clients : \A j \in Clients : j <= k

Asks(i) == Setup[Attempts[i]].nodes
Quorum(i) == Setup[Attempts[i]].quorum
Larger(a, b) == IF a > b THEN a ELSE b
Highest(numbers) == CHOOSE a \in numbers : \A b \in numbers : b <= a

(* The key of a node: none, the token of a try, or a token that nobody compares any more. *)
Free == 0
LeftBehind == -1

(* Step 1: the lowest number above `seen` that the client of this try may use. The low digits are
   its own. *)
NextNumber(i, seen) ==
    IF Collide THEN seen + 1 ELSE seen + 1 + ((Attempts[i] - 1 - seen) % ClientCount)

(* unused   Begin                                  -> asking   the acquire script to all nodes
   asking   Conclude: q GRANTED, q accepted        -> granted  fast: the proposal is the token
            Conclude: q GRANTED, fewer accepted    -> writing  slow: a number above all heard, the
                                                               fence script to the nodes that may
                                                               have the key
   writing  HearWrite: q raised their counters     -> granted  what was written is the token
            WriteAgain: a refusal, rounds left     -> writing  once more, higher than that
   asking, writing  GiveUp                         -> over *)
Phases == {"unused", "asking", "writing", "granted", "over"}

(* The answer to the acquire script, or that it is under way. `over`: not asked, or the answer
   does not matter any more. *)
Acquires == {"over", "sent", "denied", "granted", "accepted"}
(* The same for the fence script. *)
Writes == {"none", "sent", "acked", "refused"}

(* An answer waits until its client looks. A client looks only when what it has heard decides,
   and that step chooses which answers it has heard. *)
Nothing == [acquire |-> "over", write |-> "none", older |-> FALSE, counter |-> 0]

TypeOK ==
    /\ node \in [Nodes -> [lock : {Free, LeftBehind} \cup Tries, counter : Nat]]
    /\ try \in [Tries -> [
            phase : Phases,
            round : 0..Rounds,      \* of write-backs
            proposal : Nat,
            target : Nat,           \* the number that is written back; once granted, the token
            olderTarget : Nat,      \* of the round before
            floor : Nat,            \* the highest token that was returned before this try began
            at : [Nodes -> [
                acquire : Acquires,
                write : Writes,
                older : BOOLEAN,    \* the write-back of the round before is still under way
                counter : Nat ]]]]  \* in the answer that waits
    /\ losses \in 0..Losses

Init ==
    /\ node = [n \in Nodes |-> [lock |-> Free, counter |-> 0]]
    /\ try = [i \in Tries |-> [phase |-> "unused", round |-> 0, proposal |-> 0, target |-> 0,
                               olderTarget |-> 0, floor |-> 0, at |-> [n \in Nodes |-> Nothing]]]
    /\ losses = 0

---------------------------------------------------------------------------------------------------
(* Settle leaves out what nothing reads any more, so that states with the same future are one
   state. It takes no step away and adds none. TLCEval(x) is x: TLC then computes it once. *)

IsDone(t) == t.phase \in {"granted", "over"}

(* Whether a write-back, whose answer no client waits for, can still change this node. *)
MayRaise(number, target) == Losses > 0 \/ number < target

SettledAt(t, at, number) ==
    [acquire |-> IF t.phase # "asking" /\ at.acquire # "sent" THEN "over" ELSE at.acquire,
     write |-> IF ~IsDone(t) THEN at.write
               ELSE IF at.write = "sent" /\ MayRaise(number, t.target) THEN "sent" ELSE "none",
     older |-> at.older /\ MayRaise(number, t.olderTarget),
     counter |-> IF IsDone(t) THEN 0 ELSE at.counter]

(* Whether no later try of the same client looks at the numbers of this one. *)
IsLast(i) == \A j \in Tries : j > i => Attempts[j] # Attempts[i]

SettledTry(i, t, nodes) ==
    LET at == TLCEval([n \in Nodes |-> SettledAt(t, t.at[n], nodes[n].counter)])
        sent == \E n \in Nodes : at[n].acquire = "sent"
        written == \E n \in Nodes : at[n].write = "sent"
        older == \E n \in Nodes : at[n].older
        given == t.phase = "over" /\ ~written
        \* The next proposal of the client is above all numbers that it has used.
        target == IF ~given THEN t.target
                  ELSE IF IsLast(i) /\ ~RightClocks THEN 0 ELSE Larger(t.target, t.proposal)
        proposal == IF given /\ ~sent THEN 0 ELSE t.proposal
    IN  [phase |-> t.phase,
         round |-> IF IsDone(t) THEN 0 ELSE t.round,
         proposal |-> IF t.phase # "asking" /\ ~sent /\ proposal <= target THEN 0 ELSE proposal,
         target |-> target,
         olderTarget |-> IF older THEN t.olderTarget ELSE 0,
         floor |-> IF IsDone(t) THEN 0 ELSE t.floor,
         at |-> at]

(* The key of a try that is done, and has no fence script under way that would look at it. *)
SettledLock(n, lock, tries) ==
    IF lock \notin Tries THEN lock
    ELSE IF IsDone(tries[lock]) /\ tries[lock].at[n].write # "sent" /\ ~tries[lock].at[n].older
    THEN LeftBehind ELSE lock

(* The step leads to these nodes and these tries. *)
Becomes(nodes, tries) ==
    LET settled == TLCEval([i \in Tries |-> SettledTry(i, tries[i], nodes)])
    IN  /\ try' = settled
        /\ node' = [n \in Nodes |-> [nodes[n] EXCEPT !.lock = SettledLock(n, @, settled)]]

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

Used(i) == Larger(try[i].proposal, try[i].target)
SameBefore(i) == {j \in Tries : j < i /\ Attempts[j] = Attempts[i]}

(* Step 1: a clock may show anything, and the client may have seen any counter by now. A lease that
   came from a queue proposes nothing: 0 is above no counter. *)
MayPropose(i) ==
    LET everyone == Highest({0} \cup {Used(j) : j \in Tries})
        seen == Highest({0} \cup {Used(j) : j \in SameBefore(i)})
        clock[k \in 1..Proposals] ==
            IF k = 1 THEN NextNumber(i, 0) ELSE NextNumber(i, clock[k - 1])
    IN  IF RightClocks THEN {NextNumber(i, everyone)}
        ELSE {clock[k] : k \in 1..Proposals} \cup {NextNumber(i, seen)}
             \cup (IF FromQueue THEN {0} ELSE {})

(* The highest token that anyone had when this try began. *)
Floor == Highest({0} \cup {try[j].target : j \in {k \in Tries : try[k].phase = "granted"}})

Begin(i) ==
    /\ try[i].phase = "unused"
    /\ \A j \in SameBefore(i) : IsDone(try[j])
    /\ InTurn => \A j \in Tries : Attempts[j] < Attempts[i] => try[j].phase = "granted"
    /\ \E proposal \in MayPropose(i) :
            Becomes(node, [try EXCEPT ![i].phase = "asking", ![i].proposal = proposal,
                                      ![i].floor = Floor,
                                      ![i].at = [n \in Nodes |->
                                        IF n \in Asks(i) THEN [Nothing EXCEPT !.acquire = "sent"]
                                        ELSE Nothing]])
    /\ UNCHANGED losses

Grant(i, token) ==
    Becomes(node, [try EXCEPT ![i].phase = "granted", ![i].target = token])

(* Step 4. The client has heard these nodes refuse: they do not have its key. *)
WriteBack(i, denied, target) ==
    Becomes(node, [try EXCEPT
        ![i].phase = "writing", ![i].round = 1, ![i].target = target,
        ![i].at = [n \in Nodes |->
            [try[i].at[n] EXCEPT
                !.counter = 0,
                !.write = IF n \in denied \/ n \notin Asks(i) THEN "none" ELSE "sent"]]])

(* Steps 3 and 4: the client has heard these nodes grant, and these refuse. It may take any
   counter that it heard for a lie, and follow a lower one ("Numbers that no clock explains"). *)
ConcludeWith(i, granted, denied) ==
    LET at == try[i].at
        counters(nodes) == {at[n].counter : n \in nodes}
    IN  IF Is("incr") THEN Grant(i, Highest(counters(granted)))
        ELSE IF \A n \in granted : at[n].acquire = "accepted" THEN Grant(i, try[i].proposal)
        ELSE IF Is("no-write-back")
        THEN Grant(i, NextNumber(i, Highest({try[i].proposal} \cup counters(granted \cup denied))))
        ELSE \E believed \in {try[i].proposal} \cup counters(granted \cup denied) :
                /\ believed >= try[i].proposal
                /\ WriteBack(i, denied, NextNumber(i, believed))

(* R5: it decides at the q-th GRANTED. It may or may not have heard the other answers by then. *)
Conclude(i) ==
    LET granted == {n \in Nodes : try[i].at[n].acquire \in {"granted", "accepted"}}
        denied == {n \in Nodes : try[i].at[n].acquire = "denied"}
    IN  /\ try[i].phase = "asking"
        /\ \E heard \in SUBSET granted, refused \in SUBSET denied :
                /\ Cardinality(heard) = Quorum(i)
                /\ ConcludeWith(i, heard, refused)
        /\ UNCHANGED losses

(* Step 4: q nodes have raised their counters to the number. *)
HearWrite(i) ==
    /\ try[i].phase = "writing"
    /\ Cardinality({n \in Nodes : try[i].at[n].write = "acked"}) >= Quorum(i)
    /\ Grant(i, try[i].target)
    /\ UNCHANGED losses

(* Step 5: some counters are not below the number. *)
WriteAgain(i) ==
    LET at == try[i].at
        refusing == {n \in Nodes : at[n].write = "refused"}
    IN  /\ try[i].phase = "writing"
        /\ try[i].round < Rounds
        /\ \E heard \in SUBSET refusing \ {{}} :
                Becomes(node, [try EXCEPT
                    ![i].round = @ + 1,
                    ![i].olderTarget = try[i].target,
                    ![i].target = NextNumber(i, Highest({@} \cup {at[n].counter : n \in heard})),
                    ![i].at = [n \in Nodes |->
                        [at[n] EXCEPT
                            !.counter = 0,
                            !.older = (at[n].write = "sent"),
                            !.write = IF @ = "none" THEN "none" ELSE "sent"]]])
        /\ UNCHANGED losses

GiveUp(i) ==
    /\ try[i].phase \in {"asking", "writing"}
    /\ Becomes(node, [try EXCEPT ![i].phase = "over"])
    /\ UNCHANGED losses

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* Step 2, the acquire script: one atomic step that locks, compares the proposal with the
   counter, and raises it. *)
ExecuteAcquire(i, n) ==
    LET here == node[n]
        proposal == try[i].proposal
        answer == IF here.lock # Free THEN "denied"
                  ELSE IF Is("incr") THEN "granted"
                  ELSE IF \/ proposal > here.counter
                          \/ proposal = here.counter /\ Is("accepts-equal")
                  THEN "accepted"
                  ELSE "granted"
        counter == IF answer = "accepted" THEN proposal
                   ELSE IF answer = "granted" /\ Is("incr") THEN here.counter + 1
                   ELSE here.counter
        told == IF try[i].phase # "asking" THEN try[i].at[n].counter
                ELSE IF answer = "accepted" THEN 0 ELSE counter
    IN  /\ try[i].at[n].acquire = "sent"
        /\ Becomes([node EXCEPT ![n] = [lock |-> IF answer = "denied" THEN here.lock ELSE i,
                                        counter |-> counter]],
                   [try EXCEPT ![i].at[n].acquire = answer, ![i].at[n].counter = told])
        /\ UNCHANGED losses

(* Whether the fence script raises the counter to the number: "if the key is mine and the counter
   is below t: raise it to t". *)
Raises(i, n, target) ==
    /\ node[n].lock = i \/ Is("acks-unlocked")
    /\ node[n].counter < target \/ (Is("acks-equal") /\ node[n].counter = target)

ExecuteWrite(i, n) ==
    LET raises == Raises(i, n, try[i].target)
    IN  /\ try[i].at[n].write = "sent"
        /\ Becomes(IF raises THEN [node EXCEPT ![n].counter = try[i].target] ELSE node,
                   [try EXCEPT ![i].at[n].write = IF raises THEN "acked" ELSE "refused",
                               ![i].at[n].counter = IF raises THEN 0 ELSE node[n].counter])
        /\ UNCHANGED losses

(* The write-back of the round before, whose answer counts no more. *)
ExecuteOlderWrite(i, n) ==
    LET raises == Raises(i, n, try[i].olderTarget)
    IN  /\ try[i].at[n].older
        /\ Becomes(IF raises THEN [node EXCEPT ![n].counter = try[i].olderTarget] ELSE node,
                   [try EXCEPT ![i].at[n].older = FALSE])
        /\ UNCHANGED losses

(* The key ends, is released, or is deleted. *)
Expire(n) ==
    /\ node[n].lock # Free
    /\ Becomes([node EXCEPT ![n].lock = Free], try)
    /\ UNCHANGED losses

(* A restart without data: the node has forgotten its key and its counter. *)
Lose(n) ==
    /\ losses < Losses
    /\ node[n].counter > 0
    /\ losses' = losses + 1
    /\ Becomes([node EXCEPT ![n] = [lock |-> Free, counter |-> 0]], try)

Next ==
    \/ \E i \in Tries : Begin(i) \/ Conclude(i) \/ HearWrite(i) \/ WriteAgain(i) \/ GiveUp(i)
    \/ \E n \in Nodes : Expire(n) \/ Lose(n)
    \/ \E i \in Tries, n \in Nodes :
            ExecuteAcquire(i, n) \/ ExecuteWrite(i, n) \/ ExecuteOlderWrite(i, n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold: the proof's steps 3 and 4. *)

(* Two leases never have the same token. *)
Unique ==
    \A i, j \in Tries :
        /\ try[i].phase = "granted" /\ try[j].phase = "granted"
        /\ try[i].target = try[j].target
        => i = j

(* A lease that began when another had been granted has the higher token. *)
Rises ==
    [][\A i \in Tries :
            try[i].phase # "granted" /\ try'[i].phase = "granted"
            => try'[i].target > try[i].floor]_vars

(* "It never falls", but for a node that loses it. *)
CounterNeverFalls ==
    [][\A n \in Nodes : losses' = losses => node'[n].counter >= node[n].counter]_vars

===================================================================================================
