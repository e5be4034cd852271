------------------------------------------ MODULE Shared ------------------------------------------
(* A lock that some read and others write: docs/protocols.md, "Shared locks". Who may have it, and
   until when, however late requests come. The order in which clients come is in Order.tla.
   README.md says what is left out.

   A WAIT, a SHARE try and a SET are one kind of request here. A client that waits sends one in each
   tick. The node may execute it at any later time, in any order, or never, also when its key was
   already granted; but not in a later run. One that is queued and served later is executed when it
   is served. Time is ticks that all clocks share, and every time is relative to now. Between two
   ticks anything may happen in any order.

   A request is known by its age, the ticks since it was sent, which is also the bound of its
   grant. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes,
    Clients,
    Readers,    \* the clients that would read; the others write, and may downgrade then
    Ttl,        \* of all keys and entries, and of a quarantine, in ticks
    Restarts,   \* how often nodes restart, in all
    Late,       \* whether requests of tokens that were given up are executed, too
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "quorum-half",      \* half of the nodes are a quorum
    "bound-at-arrival", \* the bound of a grant is the time when its client counts it
    "newest-bound",     \* the deadline follows the newest of the bounds that are counted
    "unguarded",        \* a new run votes at once
    "quarantine-short", \* its quarantine is one tick too short
    "heal-quarantined", \* a node in quarantine is healed
    "writer-joins",     \* a writer is served while others read
    "release-all",      \* the release of one who reads is that of all
    "release-keeps",    \* the key keeps its time to live when the one who would read longest leaves
    "one-life",         \* the key ends with the first who joined
    "keep-joins",       \* an extension of one who reads joins again, and counts
    "keep-shortens",    \* an extension of one who reads ends the others' entries at the next tick
    "downgrade-gap" }   \* a downgrade deletes the key, and joins with a later request

ASSUME Broken \subseteq Variants /\ Readers \subseteq Clients

VARIABLES
    client,     \* each client
    link,       \* what is under way between a client and a node, and what it knows of it
    node,       \* the key of each node
    restarts    \* that have happened

vars == <<client, link, node, restarts>>

Is(variant) == variant \in Broken

(* The tokens of those who have a key: the present one of a client, and all that were given up. Of
   these, the one that ends last matters. *)
LeftBehind == "left behind"
Tokens == Clients \cup {LeftBehind}

None == 9
Ages == 0..(Ttl - 1)
Less(ticks) == IF ticks > 0 THEN ticks - 1 ELSE 0
Longer(a, b) == IF a > b THEN a ELSE b
Younger(a, b) == IF a < b THEN a ELSE b

Quorum == Cardinality(Nodes) \div 2 + (IF Is("quorum-half") THEN 0 ELSE 1)
Quarantine == IF Is("quarantine-short") THEN Ttl - 1 ELSE IF Is("unguarded") THEN 0 ELSE Ttl
(* How a client sees a run that it has not met. *)
Unseen == Ttl + 1

TypeOK ==
    /\ client \in [Clients -> [
            left : 0..Ttl,                  \* ticks to its deadline; 0: it does not hold
            reads : BOOLEAN,                \* it reads, beside others who do
            next : 0..Ttl ]]                \* to the deadline of the extension that is under way
    /\ link \in [Clients -> [Nodes -> [
            sent : SUBSET Ages,             \* the requests of one who waits
            grant : Ages \cup {None},       \* the youngest of them that was granted
            kept : BOOLEAN,                 \* granted the extension that is under way
            sees : 0..Unseen ]]]            \* the ticks of quarantine that are left
    /\ node \in [Nodes -> [
            alone : BOOLEAN,                \* R is a string: its token has the lock alone
            life : [Tokens -> 0..Ttl],      \* that the string lives, or each entry; 0: not there
            key : 0..Ttl ]]                 \* that the key lives
    /\ restarts \in 0..Restarts

Empty == [alone |-> FALSE, life |-> [t \in Tokens |-> 0], key |-> 0]

Init ==
    /\ client = [c \in Clients |-> [left |-> 0, reads |-> c \in Readers, next |-> 0]]
    /\ link = [c \in Clients |-> [n \in Nodes |->
            [sent |-> {0}, grant |-> None, kept |-> FALSE, sees |-> 0]]]
    /\ node = [n \in Nodes |-> Empty]
    /\ restarts = 0

Holds(c) == client[c].left > 0
Reads(c) == client[c].reads
Has(c, n) == node[n].life[c] > 0
IsFree(n) == node[n].key = 0
IsSet(n) == ~IsFree(n) /\ ~node[n].alone

(* When the last entry ends. *)
LastOf(life) == CHOOSE last \in 0..Ttl : /\ \A t \in Tokens : life[t] <= last
                                         /\ last > 0 => \E t \in Tokens : life[t] = last

(* The key of a node whose entries live so long. *)
Key(alone, life, key) ==
    IF key = 0 \/ \A t \in Tokens : life[t] = 0 THEN Empty
    ELSE [alone |-> alone, life |-> life, key |-> key]

(* The same without these tokens; the key ends with the last of the others. *)
Without(at, tokens) ==
    LET life == [t \in Tokens |-> IF t \in tokens THEN 0 ELSE at.life[t]]
    IN  Key(at.alone, life, IF Is("release-keeps") THEN at.key ELSE LastOf(life))

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

(* "Waiting in a queue", step 2: the deadline follows the q-th latest bound. *)
GrantsWithin(c, age) == Cardinality({n \in Nodes : link[c][n].grant <= age})
Base(c) ==
    LET few == IF Is("newest-bound") THEN 1 ELSE Quorum
    IN  CHOOSE age \in Ages : /\ GrantsWithin(c, age) >= few
                              /\ \A other \in Ages : GrantsWithin(c, other) >= few => age <= other

Hold(c) ==
    /\ ~Holds(c)
    /\ GrantsWithin(c, Ttl - 1) >= Quorum
    /\ client' = [client EXCEPT ![c].left = Ttl - Base(c)]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |->
            [link[c][n] EXCEPT !.sent = {}, !.grant = None]]]
    /\ UNCHANGED <<node, restarts>>

(* "Extension": SHARE keep, or EXTEND. A downgrade is one from which on the owner counts as a
   reader. *)
StartRound(c, reads) ==
    /\ client' = [client EXCEPT ![c].next = Ttl, ![c].reads = reads]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |-> [link[c][n] EXCEPT !.kept = FALSE]]]
    /\ UNCHANGED <<node, restarts>>
Extend(c) ==
    /\ Holds(c) /\ client[c].left < Ttl /\ client[c].next < Ttl
    /\ StartRound(c, Reads(c))
Downgrade(c) == Holds(c) /\ ~Reads(c) /\ StartRound(c, TRUE)

Win(c) ==
    /\ Holds(c) /\ client[c].next > 0
    /\ Cardinality({n \in Nodes : link[c][n].kept}) >= Quorum
    /\ client' = [client EXCEPT ![c].left = client[c].next, ![c].next = 0]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |-> [link[c][n] EXCEPT !.kept = FALSE]]]
    /\ UNCHANGED <<node, restarts>>

(* Clients that give their tokens up. What is under way for these could only set a key that nobody
   extends (Late). *)
Ended(c) == [left |-> 0, reads |-> c \in Readers, next |-> 0]
Fresh(at) == [at EXCEPT !.sent = IF at.sees = 0 THEN {0} ELSE {}, !.grant = None, !.kept = FALSE]
Forsaken(at, givers) ==
    [at EXCEPT !.life = [t \in Tokens |->
        IF t \in givers THEN 0
        ELSE IF t \in Clients THEN at.life[t]
        ELSE LastOf([u \in Tokens |-> IF u \in givers \cup {t} THEN at.life[u] ELSE 0])]]

(* A yield, a cancel, a release, or a loss that is known before the deadline. A client that died is
   one that never does anything more. *)
GiveUp(c) ==
    /\ client' = [client EXCEPT ![c] = Ended(c)]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |-> Fresh(link[c][n])]]
    /\ node' = [n \in Nodes |-> Forsaken(node[n], {c})]
    /\ UNCHANGED restarts

(* "Restart guard": the client meets the new run. *)
Connect(c, n) ==
    /\ link[c][n].sees = Unseen
    /\ link' = [link EXCEPT ![c][n].sees = Quarantine]
    /\ UNCHANGED <<client, node, restarts>>

---------------------------------------------------------------------------------------------------
(* The steps of a node: one command or script each. *)

(* This token has the lock for the whole ttl: alone, or as an entry beside the others. *)
Joined(at, t, alone) ==
    Key(alone, [at.life EXCEPT ![t] = Ttl],
        IF Is("one-life") /\ at.key > 0 /\ ~alone THEN at.key ELSE Ttl)

(* What a request that is granted makes of R. A token that is there lives for the whole ttl.
   Otherwise, a writer needs a key that is free, and who reads may also join others. Who was
   downgraded may have requests of both kinds under way. A request that is granted when a younger
   one was is left out: it could only let a key live longer. *)
Granted(c, n) ==
    LET at == node[n]
        joins == Reads(c) /\ ~at.alone
        sets == c \notin Readers /\ (IsFree(n) \/ (Is("writer-joins") /\ IsSet(n)))
    IN  IF Has(c, n) THEN {Joined(at, c, at.alone)}
        ELSE (IF joins THEN {Joined(at, c, FALSE)} ELSE {})
             \cup (IF sets THEN {Joined(at, c, IsFree(n))} ELSE {})

Execute(c, n, age) ==
    /\ age \in link[c][n].sent
    /\ age < link[c][n].grant \/ ~Has(c, n)
    /\ \E at \in Granted(c, n) : node' = [node EXCEPT ![n] = at]
    /\ link' = [link EXCEPT ![c][n].grant = IF Is("bound-at-arrival") THEN 0 ELSE Younger(@, age)]
    /\ UNCHANGED <<client, restarts>>

(* "Healing": SET or SHARE heal; or a request of before the acquire was decided. Neither counts. *)
ExecuteHeal(c, n) ==
    /\ Holds(c) /\ ~Has(c, n)
    /\ link[c][n].sees = 0 \/ (link[c][n].sees # Unseen /\ Is("heal-quarantined"))
    /\ \E at \in Granted(c, n) : node' = [node EXCEPT ![n] = at]
    /\ UNCHANGED <<client, link, restarts>>

(* SHARE keep of who reads, EXTEND of who writes. A string of one who reads becomes an entry. *)
ExecuteKeep(c, n) ==
    LET at == node[n]
        joins == Is("keep-joins") /\ Reads(c) /\ ~at.alone
        gap == Is("downgrade-gap") /\ Reads(c) /\ at.alone
        kept == Joined(at, c, at.alone /\ ~Reads(c))
        cut == [t \in Tokens |-> IF t = c THEN Ttl ELSE Younger(kept.life[t], 1)]
    IN  /\ client[c].next > 0 /\ ~link[c][n].kept /\ link[c][n].sees # Unseen
        /\ Has(c, n) \/ joins
        /\ node' = [node EXCEPT ![n] =
                IF gap THEN Empty
                ELSE IF Is("keep-shortens") /\ Reads(c) THEN [kept EXCEPT !.life = cut]
                ELSE kept]
        /\ link' = [link EXCEPT ![c][n].kept = ~gap]
        /\ UNCHANGED <<client, restarts>>

(* The RELEASE of tokens that were given up, at any time. *)
ExecuteRelease(n) ==
    /\ node[n].life[LeftBehind] > 0
    /\ node' = [node EXCEPT ![n] = IF Is("release-all") THEN Empty ELSE Without(@, {LeftBehind})]
    /\ UNCHANGED <<client, link, restarts>>

(* A request of such a token that comes late: a SHARE try, or a SET. *)
ExecuteLate(n) ==
    /\ Late
    /\ \/ ~node[n].alone /\ node' = [node EXCEPT ![n] = Joined(@, LeftBehind, FALSE)]
       \/ IsFree(n) /\ node' = [node EXCEPT ![n] = Joined(@, LeftBehind, TRUE)]
    /\ UNCHANGED <<client, link, restarts>>

(* The node forgets its key and its queue, and all connections to it end. *)
Restart(n) ==
    /\ restarts < Restarts
    /\ restarts' = restarts + 1
    /\ node' = [node EXCEPT ![n] = Empty]
    /\ link' = [c \in Clients |-> [link[c] EXCEPT
            ![n] = [@ EXCEPT !.sent = {}, !.sees = Unseen]]]
    /\ UNCHANGED client

---------------------------------------------------------------------------------------------------
(* A tick passes: entries end, each by itself, and the key with the last; leases end at their
   deadline. *)
Tick ==
    LET ending == {c \in Clients : client[c].left = 1}
        older(age) == IF age + 1 < Ttl THEN age + 1 ELSE None
        aged(c, n) ==
            LET at == link[c][n]
                sees == IF at.sees = Unseen THEN Unseen ELSE Less(at.sees)
            IN  [at EXCEPT
                    !.sent = IF Holds(c) THEN @
                             ELSE ({age + 1 : age \in @} \cap Ages)
                                  \cup (IF sees = 0 THEN {0} ELSE {}),
                    !.grant = IF Is("bound-at-arrival") THEN @ ELSE older(@),
                    !.kept = @ /\ client[c].next > 1,
                    !.sees = sees]
    IN  /\ client' = [c \in Clients |->
                IF c \in ending THEN Ended(c)
                ELSE [client[c] EXCEPT !.left = Less(@), !.next = Less(@)]]
        /\ link' = [c \in Clients |-> [n \in Nodes |->
                IF c \in ending THEN Fresh(aged(c, n)) ELSE aged(c, n)]]
        /\ node' = [n \in Nodes |->
                LET at == Forsaken(node[n], ending)
                IN  Key(at.alone, [t \in Tokens |-> Less(at.life[t])], Less(at.key))]
        /\ UNCHANGED restarts

ClientStep(c) == Hold(c) \/ Extend(c) \/ Downgrade(c) \/ Win(c) \/ GiveUp(c)
NodeStep(n) == ExecuteRelease(n) \/ ExecuteLate(n) \/ Restart(n)
LinkStep(c, n) ==
    Connect(c, n) \/ ExecuteHeal(c, n) \/ ExecuteKeep(c, n) \/ \E age \in Ages : Execute(c, n, age)

Next ==
    \/ Tick
    \/ \E c \in Clients : ClientStep(c)
    \/ \E n \in Nodes : NodeStep(n)
    \/ \E c \in Clients, n \in Nodes : LinkStep(c, n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

(* Nobody has the lock beside one who writes: no other writer, and nobody who reads. *)
Exclusion == \A c, d \in Clients : Holds(c) /\ Holds(d) /\ c # d => Reads(c) /\ Reads(d)

(* The invariant: while a lease is valid, at least q nodes have its token at R until the deadline,
   and for a lease that writes as the string; until a node restarts. *)
Backing ==
    restarts = 0 =>
        \A c \in Clients : Holds(c) =>
            LET backing == {n \in Nodes : /\ node[n].life[c] >= client[c].left
                                          /\ Reads(c) \/ node[n].alone}
            IN  Cardinality(backing) >= Quorum

(* A string has one token. A key ends with the last entry, no sooner and no later: who died or left
   takes nobody along, and keeps nobody out for longer than its own time. *)
EndsWithLast ==
    \A n \in Nodes : /\ node[n].key = LastOf(node[n].life)
                     /\ node[n].alone => Cardinality({t \in Tokens : node[n].life[t] > 0}) = 1

===================================================================================================
