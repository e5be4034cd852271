------------------------------------------- MODULE Lock -------------------------------------------
(* The lock on nodes that restart without memory: docs/protocols.md, "The lock", "Extension and
   known loss", "Restart guard", "Healing" and "Different quorums". The rules R1 to R18 are those
   of docs/algorithm.md. README.md says what is left out.

   A message that is under way may be executed at any time, or never; but not by a later run of
   the node than the one that it was sent to, because the connection ends with the run. A message
   that the node denies changes nothing, and its vote does not count: it is one that is never
   executed.

   Time is ticks, and every time is relative to now: so many ticks are left. Between two ticks
   anything may happen in any order. A tick is one of the slowest client. Other clocks may be
   faster: the keys of a node may end `Drift` ticks before their ttl is over, and a client may
   find a quarantine over so much sooner. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes,      \* all nodes that some client asks
    Clients,
    Setup,      \* of each client: [nodes |-> the nodes that it asks, quorum |-> how many it needs]
    Ttl,        \* of all keys, in ticks
    TtlMax,     \* for which the guard keeps a new run from voting, in ticks
    Drift,      \* the allowance for clocks, in ticks
    Patience,   \* a round is decided, and nodes are healed, within so many ticks of its start
    Restarts,   \* how often nodes restart, in all
    OldCopies,  \* whether a node may come back with an old copy of its data
    Broken      \* the variants that are switched on: {} is the protocol

ASSUME /\ Ttl \in Nat /\ Drift \in 0..(Ttl - 1) /\ TtlMax >= Ttl /\ Patience \in 1..Ttl
       /\ \A c \in Clients : /\ Setup[c].nodes \subseteq Nodes
                            /\ Setup[c].quorum \in 1..Cardinality(Setup[c].nodes)

(* Each is wrong, but for the last three: those are margins, not needed for exclusion. *)
Variants == {
    "unguarded",            \* a new run votes at once
    "quarantine-short",     \* its quarantine is one tick too short
    "quarantine-by-uptime", \* its quarantine ends by its uptime, and its clock may be stepped once
    "heal-counts",          \* an extension sets a missing key again, and counts that as a vote
    "heal-quarantined",     \* a node in quarantine is healed
    "set-queued",           \* a SET waits for the connection to the new run
    "marker-old-copy",      \* a marker in the data is believed, also in an old copy of the data
    "quorum-half",          \* half of the nodes are a quorum
    "no-drift",             \* the deadline is start + ttl
    "start-after-send",     \* the client reads `start` when the answers are there
    "release-any-token",    \* a release deletes whatever key is there
    "token-reused",         \* a client has one token for all its attempts
    "unknown-grants",       \* UNKNOWN counts as GRANTED
    "extend-after-end",     \* an extension is won after the deadline
    "heal-unproven",        \* no bug: nodes are healed at any time of a lease
    "heal-late",            \* no bug: nodes are healed until the new deadline
    "marker" }              \* no bug: a marker in the data is believed; a restart loses all data

ASSUME Broken \subseteq Variants

VARIABLES
    client,     \* what each client knows, and what it has under way to each node
    node,       \* each node: its key, and what else it stores
    restarts,   \* that have happened
    steps       \* of clocks that have happened ("quarantine-by-uptime")

vars == <<client, node, restarts, steps>>

(* The key of a node: none, the present token of a client, or a token that its client has given
   up. *)
Free == "free"
LeftBehind == "left behind"
NoKey == [owner |-> Free, life |-> 0]

Is(variant) == variant \in Broken
HasMarkers == Is("marker") \/ Is("marker-old-copy")
(* A token that the client does not draw anew stays in its keys, and RELEASE runs beside the next
   attempt. *)
TracksReleases == Is("release-any-token") \/ Is("token-reused")

Less(ticks) == IF ticks > 0 THEN ticks - 1 ELSE 0

(* R1: from `start` to the deadline. *)
Validity == IF Is("no-drift") THEN Ttl ELSE Ttl - Drift
(* TtlMax + Drift by the client's clock, which may be fast. *)
Quarantine == TtlMax
(* How a client sees a run that it has not met. *)
Unseen == Quarantine + 1

Asks(c) == Setup[c].nodes
Quorum(c) == IF Is("quorum-half") THEN Cardinality(Asks(c)) \div 2 ELSE Setup[c].quorum

(* idle       Begin                         -> acquiring  SET to the nodes that it may ask, under
                                                          a new token (R10)
   acquiring  Win: q GRANTED, in time       -> held
              deadline, GiveUp              -> idle
   held       Extend                        -> extending  EXTEND to all nodes with which it is
                                                          connected
              Heal                          -> held       SET under the same token to all nodes
                                                          that may vote, before the old deadline
   extending  Win: q that matched           -> held       the deadline anew, from this round's start
              GiveUpExtension               -> held       the old deadline stands (R12)
   held,
   extending  deadline, GiveUp              -> idle       its keys are left behind, until they are
                                                          released or have ended *)
Phases == {"idle", "acquiring", "held", "extending"}

TypeOK ==
    /\ client \in [Clients -> [
            phase : Phases,
            left : 0..Ttl,              \* to the deadline; while acquiring, to what it would be
            nextLeft : 0..Ttl,          \* to the deadline of the extension that is under way
            healLeft : 0..Ttl,          \* in which it may heal
            sent : SUBSET Nodes,        \* where a SET is under way: of the acquire, or to heal
            asked : SUBSET Nodes,       \* where an EXTEND is under way
            granted : SUBSET Nodes,     \* that granted the present round
            release : SUBSET Nodes,     \* where a RELEASE is under way (TracksReleases)
            sees : [Nodes -> 0..Unseen] \* the ticks of quarantine that are left, by its own clock
       ]]
    /\ node \in [Nodes -> [
            owner : Clients \cup {Free, LeftBehind},
            life : 0..Ttl,              \* that the key lives
            copy : [owner : Clients \cup {Free}, life : 0..Ttl], \* of the key (OldCopies)
            stepped : BOOLEAN,          \* its clock was stepped in this run
            marker : 0..Unseen          \* HasMarkers: ticks since it was set, and one; 0: none
       ]]
    /\ restarts \in 0..Restarts
    /\ steps \in 0..1

(* All runs have been known for long. *)
Init ==
    /\ client = [c \in Clients |-> [
            phase |-> "idle", left |-> 0, nextLeft |-> 0, healLeft |-> 0, sent |-> {}, asked |-> {},
            granted |-> {}, release |-> {}, sees |-> [n \in Nodes |-> 0] ]]
    /\ node = [n \in Nodes |-> [
            owner |-> Free, life |-> 0, copy |-> NoKey, stepped |-> FALSE,
            marker |-> IF HasMarkers THEN Unseen ELSE 0 ]]
    /\ restarts = 0
    /\ steps = 0

Holds(c) == client[c].phase \in {"held", "extending"} /\ client[c].left > 0

(* The client gives its token up (R8, R10). What it has under way could only set a key that
   nobody extends. Like any message that is lost, that only keeps others out, so it is left out. *)
Ended(c) ==
    [client[c] EXCEPT
        !.phase = "idle", !.left = 0, !.nextLeft = 0, !.healLeft = 0,
        !.sent = {}, !.asked = {}, !.granted = {},
        !.release = IF TracksReleases THEN Asks(c) ELSE {}]

(* The keys of clients whose tokens are given up. *)
Forsaken(n, givers) ==
    IF node[n].owner \in givers /\ ~Is("token-reused") THEN LeftBehind ELSE node[n].owner

(* An old copy of such a key could only keep others out. *)
ForsakenCopy(n, givers) == IF node[n].copy.owner \in givers THEN NoKey ELSE node[n].copy

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

(* "The lock", steps 1 and 2. "Restart guard", steps 3 and 5: nothing goes to a node that is in
   quarantine or not connected. *)
Begin(c) ==
    LET may == {n \in Asks(c) : client[c].sees[n] = 0}
    IN  /\ client[c].phase = "idle"
        /\ Cardinality(may) >= Quorum(c)
        /\ client' = [client EXCEPT ![c].phase = "acquiring", ![c].left = Validity, ![c].sent = may]
        /\ UNCHANGED <<node, restarts, steps>>

(* Whether a round whose lease would have `left` ticks to go began too long ago. *)
IsOver(left) == Validity - left > Patience

(* "Extension", step 1. "Restart guard", step 3: extensions go on in a quarantine. *)
Extend(c) ==
    LET connected == {n \in Asks(c) : client[c].sees[n] # Unseen}
    IN  /\ client[c].phase = "held"
        /\ client' = [client EXCEPT ![c].phase = "extending", ![c].nextLeft = Validity,
                                    ![c].healLeft = 0, ![c].asked = connected,
                                    ![c].granted = {}, ![c].sent = @ \cap connected]
        /\ UNCHANGED <<node, restarts, steps>>

(* "The lock" and "Extension", step 3. The round is won at the q-th GRANTED (R5): the lease ends at
   the round's start + ttl - drift (R1, R12). As all ttls are alike, the later deadline is that of
   the later round. A client looks at the votes only when they decide, so it need not hear them
   one by one. *)
Win(c) ==
    LET extends == client[c].phase = "extending"
        deadline == IF extends THEN client[c].nextLeft ELSE client[c].left
        unknown == IF Is("unknown-grants") /\ ~extends THEN client[c].sent ELSE {}
        left == IF Is("start-after-send") THEN Validity ELSE deadline
    IN  /\ client[c].phase \in {"acquiring", "extending"}
        /\ Cardinality(client[c].granted \cup unknown) >= Quorum(c)
        /\ ~IsOver(deadline)
        /\ client' = [client EXCEPT
                ![c].phase = "held", ![c].left = left, ![c].nextLeft = 0, ![c].granted = {},
                \* "Healing", step 2
                ![c].healLeft = IF Is("heal-late") THEN left ELSE client[c].left]
        /\ UNCHANGED <<node, restarts, steps>>

(* "Healing", steps 1 to 3. The library heals once after a won round, and only nodes that do not
   back the lease. Where the key is, NX does nothing, but it may end before the node executes the
   SET. *)
MayHeal(c) ==
    LET greeted == {n \in Asks(c) : client[c].sees[n] # Unseen}
    IN  IF Is("heal-quarantined") THEN greeted ELSE {n \in greeted : client[c].sees[n] = 0}

Heal(c, nodes) ==
    /\ client[c].phase = "held"
    /\ client[c].healLeft > 0 \/ Is("heal-unproven")
    /\ ~IsOver(client[c].left)
    /\ nodes \subseteq MayHeal(c)
    /\ client' = [client EXCEPT ![c].sent = @ \cup nodes]
    /\ UNCHANGED <<node, restarts, steps>>

(* A release, a cancel, or a loss that is known before the deadline ("Known loss"). *)
GiveUp(c) ==
    /\ client[c].phase # "idle"
    /\ client' = [client EXCEPT ![c] = Ended(c)]
    /\ node' = [n \in Nodes |-> [node[n] EXCEPT !.owner = Forsaken(n, {c}),
                                                !.copy = ForsakenCopy(n, {c})]]
    /\ UNCHANGED <<restarts, steps>>

(* "Extension", step 4: the old deadline stands (R12). *)
GiveUpExtension(c) ==
    /\ client[c].phase = "extending"
    /\ client[c].left > 0
    /\ client' = [client EXCEPT ![c].phase = "held", ![c].nextLeft = 0, ![c].granted = {}]
    /\ UNCHANGED <<node, restarts, steps>>

(* "Restart guard", steps 1 and 2: the client reads the run_id on a new connection, before its
   first vote. *)
Connect(c, n) ==
    LET quarantine ==
            IF Is("unguarded") \/ (Is("quarantine-by-uptime") /\ node[n].stepped) THEN 0
            ELSE IF Is("quarantine-short") THEN Quarantine - 1
            ELSE IF HasMarkers /\ node[n].marker = Unseen THEN 0
            ELSE Quarantine
    IN  /\ client[c].sees[n] = Unseen
        /\ client' = [client EXCEPT ![c].sees[n] = quarantine,
                                    \* "set-queued": the SET that waited for the connection
                                    ![c].sent = IF IsOver(client[c].left) THEN @ \ {n} ELSE @]
        /\ node' = [node EXCEPT ![n].marker = IF HasMarkers /\ @ = 0 THEN 1 ELSE @]
        /\ UNCHANGED <<restarts, steps>>

---------------------------------------------------------------------------------------------------
(* The steps of a node: one command or script each. *)

(* SET key token NX PX ttl. Only the vote of an acquire counts, and only that of a node that may
   vote ("Healing", step 4; "Restart guard", step 3). *)
ExecuteSet(c, n) ==
    LET counts == client[c].phase = "acquiring" /\ client[c].sees[n] = 0
    IN  /\ n \in client[c].sent
        /\ client[c].sees[n] # Unseen
        /\ node[n].owner = Free
        /\ client' = [client EXCEPT ![c].sent = @ \ {n},
                                    ![c].granted = IF counts THEN @ \cup {n} ELSE @]
        /\ node' = [node EXCEPT ![n].owner = c, ![n].life = Ttl]
        /\ UNCHANGED <<restarts, steps>>

(* "Extension", step 2: PEXPIRE if the key has our token (R11). As all ttls are alike, that never
   makes its life shorter (R12). *)
ExecuteExtend(c, n) ==
    LET counts == client[c].phase = "extending"
    IN  /\ n \in client[c].asked
        /\ node[n].owner = c \/ (node[n].owner = Free /\ Is("heal-counts"))
        /\ client' = [client EXCEPT ![c].asked = @ \ {n},
                                    ![c].granted = IF counts THEN @ \cup {n} ELSE @]
        /\ node' = [node EXCEPT ![n].owner = c, ![n].life = Ttl]
        /\ UNCHANGED <<restarts, steps>>

(* The release of a token that its client has given up, at any time (R8, R11). *)
ExecuteRelease(n) ==
    /\ node[n].owner = LeftBehind
    /\ node' = [node EXCEPT ![n].owner = Free, ![n].life = 0]
    /\ UNCHANGED <<client, restarts, steps>>

(* The same where a release may hit the key of another attempt: it does not compare, or tokens
   are alike. *)
ExecuteBrokenRelease(c, n) ==
    /\ n \in client[c].release
    /\ client' = [client EXCEPT ![c].release = @ \ {n}]
    /\ node' = IF Is("release-any-token") \/ node[n].owner = c
               THEN [node EXCEPT ![n].owner = Free, ![n].life = 0] ELSE node
    /\ UNCHANGED <<restarts, steps>>

(* The node's clock is fast: its key ends within the drift of its ttl. *)
EndEarly(n) ==
    /\ node[n].owner # Free
    /\ node[n].life <= Drift
    /\ node' = [node EXCEPT ![n].owner = Free, ![n].life = 0]
    /\ UNCHANGED <<client, restarts, steps>>

(* A copy of the node's data, with the time at which the key ends. *)
Save(n) ==
    /\ OldCopies
    /\ node[n].owner \in Clients
    /\ \A m \in Nodes : node[m].copy = NoKey   \* keeps the search small
    /\ node' = [node EXCEPT ![n].copy = [owner |-> node[n].owner, life |-> node[n].life]]
    /\ UNCHANGED <<client, restarts, steps>>

(* The node forgets its key, or has an old one again; and all connections to it end. *)
Restart(n) ==
    /\ restarts < Restarts
    /\ restarts' = restarts + 1
    /\ \E key \in {NoKey, node[n].copy} :
        node' = [node EXCEPT ![n] = [owner |-> key.owner, life |-> key.life, copy |-> @.copy,
                                     stepped |-> FALSE,
                                     marker |-> IF Is("marker-old-copy") THEN @.marker ELSE 0]]
    /\ client' = [c \in Clients |->
            [client[c] EXCEPT
                !.sees[n] = IF n \in Asks(c) THEN Unseen ELSE 0,
                !.sent = IF Is("set-queued") /\ client[c].phase = "acquiring" THEN @ ELSE @ \ {n},
                !.asked = @ \ {n}]]
    /\ UNCHANGED steps

(* "quarantine-by-uptime": the wall clock leaps by more than ttl_max, and so does the uptime that
   it says. *)
StepClock(n) ==
    /\ Is("quarantine-by-uptime")
    /\ steps = 0
    /\ steps' = 1
    /\ node' = [node EXCEPT ![n].stepped = TRUE]
    /\ client' = [c \in Clients |-> [client[c] EXCEPT !.sees[n] = IF @ = Unseen THEN @ ELSE 0]]
    /\ UNCHANGED restarts

---------------------------------------------------------------------------------------------------
(* A tick passes: keys end with their ttl, and leases at their deadline (R3), whatever nodes
   answer. *)

GoesOnAfterEnd(c) ==
    Is("extend-after-end") /\ client[c].phase = "extending" /\ client[c].nextLeft > 1

Older(c) ==
    [client[c] EXCEPT
        !.left = Less(@), !.nextLeft = Less(@), !.healLeft = Less(@),
        !.sees = [n \in Nodes |->
            IF client[c].sees[n] = Unseen THEN Unseen ELSE Less(client[c].sees[n])]]

Tick ==
    LET ending == {c \in Clients :
                    client[c].phase # "idle" /\ client[c].left <= 1 /\ ~GoesOnAfterEnd(c)}
        aged(c) == IF c \in ending THEN [Ended(c) EXCEPT !.sees = Older(c).sees] ELSE Older(c)
        older == {n \in Nodes : node[n].marker \in 1..(Unseen - 1)}
    IN  /\ client' = [c \in Clients |-> aged(c)]
        /\ node' = [n \in Nodes |->
                [node[n] EXCEPT !.life = Less(@), !.marker = IF n \in older THEN @ + 1 ELSE @,
                                !.owner = IF node[n].life <= 1 THEN Free ELSE Forsaken(n, ending),
                                !.copy = IF @.life <= 1 THEN NoKey
                                         ELSE [ForsakenCopy(n, ending) EXCEPT !.life = Less(@)]]]
        /\ UNCHANGED <<restarts, steps>>

ClientStep(c) ==
    \/ Begin(c) \/ Extend(c) \/ Win(c) \/ GiveUp(c) \/ GiveUpExtension(c)
    \/ Heal(c, MayHeal(c))
    \/ \E n \in Nodes : Connect(c, n)

NodeStep(n) ==
    \/ ExecuteRelease(n) \/ EndEarly(n) \/ Save(n) \/ Restart(n) \/ StepClock(n)
    \/ \E c \in Clients : ExecuteSet(c, n) \/ ExecuteExtend(c, n) \/ ExecuteBrokenRelease(c, n)

Next == Tick \/ (\E c \in Clients : ClientStep(c)) \/ (\E n \in Nodes : NodeStep(n))

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

(* At most one client may believe that it holds the lock. *)
Exclusion == \A c, d \in Clients : Holds(c) /\ Holds(d) => c = d

(* "The lock", the invariant: while a lease is valid, at least q nodes have its token at its key,
   and keep it there until the deadline, even if their clocks are fast. A restart may break it:
   from then on the guard keeps exclusion. *)
Backing ==
    restarts = 0 =>
        \A c \in Clients : Holds(c) =>
            LET backing == {n \in Asks(c) : /\ node[n].owner = c
                                            /\ node[n].life - Drift >= client[c].left}
            IN  Cardinality(backing) >= Quorum(c)

(* A lease that is over never comes back: an extension is won before the deadline, or not at all. *)
NoResurrection ==
    [][\A c \in Clients :
            client[c].phase = "extending" /\ client'[c].left > client[c].left
            => client[c].left > 0]_vars

(* "Different quorums": the condition, and what it is for. The one holds where the other does. *)
MayRunBeside ==
    \A c, d \in Clients : Setup[c].quorum + Setup[d].quorum > Cardinality(Asks(c) \cup Asks(d))
Quorums(c) == {q \in SUBSET Asks(c) : Cardinality(q) = Setup[c].quorum}
QuorumsMeet ==
    \A c, d \in Clients : \A q \in Quorums(c), r \in Quorums(d) : q \cap r # {}

ASSUME MayRunBeside <=> QuorumsMeet

---------------------------------------------------------------------------------------------------
(* What happens in the end. Time passes: no other fairness is assumed, so also when no node
   answers. *)

FairSpec == Spec /\ WF_vars(Tick)

(* R3, R5: an attempt that nobody answers is over at its deadline. *)
AttemptsEnd == \A c \in Clients : client[c].phase = "acquiring" ~> client[c].phase # "acquiring"

(* A key that is left behind is not there for ever, also if its release is lost. *)
KeysEnd == \A n \in Nodes : node[n].owner = LeftBehind ~> node[n].owner # LeftBehind

===================================================================================================
