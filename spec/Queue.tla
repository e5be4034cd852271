------------------------------------------ MODULE Queue -------------------------------------------
(* The grants of a queue: docs/protocols.md, "Waiting in a queue". Who may hold the lock, and
   until when, however late pushes come. The order of the queue is in Order.tla. README.md says
   what is left out.

   A message that is under way may be executed at any time, in any order, or never, also when its
   key was already granted. A push arrives at any later time, or never. Time is ticks that all
   clocks share, and every time is relative to now. Between two ticks anything may happen in any
   order.

   A client sends one WAIT in a tick at most. So a WAIT is known by its age, the ticks since it
   was sent. The age stands for its serial (step 1) and for the bound of its grant (step 2): the
   younger WAIT has the higher serial and the later bound. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes,
    Lost,       \* how many more nodes there are that never answer: they count for the quorum only
    Clients,
    Holder,     \* the client that has the lock at the start
    Ttl,        \* ticks
    Stale,      \* ticks until a place is stale; clients may die, no WAIT is late. 0: none of this
    InOrder,    \* whether a node executes no WAIT of a client after a younger one
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "same-token",       \* a yield keeps its token
    "bound-at-arrival", \* the bound of a push is the time when it arrives
    "no-serials",       \* a push names no WAIT, so it counts for the last one that was answered
    "newest-bound",     \* the deadline follows the newest of the bounds that are counted
    "late-backing",     \* a late push adds backing whatever its bound is
    "stale-served" }    \* a node serves a place that is stale

ASSUME Broken \subseteq Variants /\ Holder \in Clients

VARIABLES
    client,     \* each client
    link,       \* what is under way between a client and a node, and what it knows of it
    node        \* the key of each node

vars == <<client, link, node>>

Is(variant) == variant \in Broken

(* The key of a node: none, the present token of a client, or a token that its client gave up. *)
Free == "free"
LeftBehind == "left behind"

(* No WAIT, or one that is so old that it does not matter any more. *)
None == 9
Ages == 0..(Ttl - 1)
PlaceAges == 0..(IF Stale > 0 THEN Stale ELSE Ttl - 1)
Younger(a, b) == IF a < b THEN a ELSE b
(* A tick later. *)
Older(age, most) == IF age + 1 < most THEN age + 1 ELSE None

(* Of all nodes, also those that never answer. *)
Quorum == (Cardinality(Nodes) + Lost) \div 2 + 1

(* How a push says which WAIT it grants is of no matter in the protocol: the age says it. *)
TracksPushes == Is("same-token") \/ Is("bound-at-arrival") \/ Is("no-serials")
(* Without this, a variant that breaks exclusion would break backing first. *)
TracksBacking == ~TracksPushes /\ ~Is("newest-bound") /\ ~Is("stale-served")

TypeOK ==
    /\ client \in [Clients -> [
            left : 0..Ttl,                  \* ticks to its deadline; 0: it does not hold
            waited : BOOLEAN,               \* it has sent a WAIT in this tick
            dead : 0..(Stale + Ttl + 1) ]]  \* ticks since it died, and one; 0: it is alive
    /\ link \in [Clients -> [Nodes -> [
            sent : SUBSET Ages,             \* the WAITs that are under way
            place : PlaceAges \cup {None},  \* the WAIT that the node has in its queue
            \* The youngest WAIT that the node granted, whether or not its client has heard it.
            grant : Ages \cup {None},
            backs : BOOLEAN,                \* the client counts on this node until its deadline
            answered : Ages \cup {None},    \* "no-serials": the youngest WAIT that was answered
            push : BOOLEAN,                 \* TracksPushes: a push is under way
            release : BOOLEAN ]]]           \* "same-token": the RELEASE of a yield is under way
    /\ node \in [Nodes -> [owner : Clients \cup {Free, LeftBehind}, life : 0..Ttl]]

Nothing == [sent |-> {}, place |-> None, grant |-> None, backs |-> FALSE, answered |-> None,
            push |-> FALSE, release |-> FALSE]

(* A holder, whose key is on all nodes. *)
Init ==
    /\ client = [c \in Clients |->
            [left |-> IF c = Holder THEN Ttl ELSE 0, waited |-> FALSE, dead |-> 0]]
    /\ link = [c \in Clients |-> [n \in Nodes |->
            [Nothing EXCEPT !.backs = (c = Holder) /\ TracksBacking]]]
    /\ node = [n \in Nodes |-> [owner |-> Holder, life |-> Ttl]]

Holds(c) == client[c].left > 0
IsAlive(c) == client[c].dead = 0

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

(* WAIT to all nodes, the first or a refresh. *)
SendWait(c) ==
    /\ IsAlive(c) /\ ~Holds(c) /\ ~client[c].waited
    /\ client' = [client EXCEPT ![c].waited = TRUE]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |->
            [link[c][n] EXCEPT !.sent = @ \cup {0}]]]
    /\ UNCHANGED node

(* The age of the bound of this node's grant, as the client counts it. *)
Bound(c, n) ==
    LET at == link[c][n]
    IN  IF at.push /\ Is("bound-at-arrival") THEN 0
        ELSE IF at.push /\ Is("no-serials") THEN Younger(at.grant, at.answered)
        ELSE at.grant

(* How many grants have a bound of this age or a younger one. *)
GrantsWithin(c, age) == Cardinality({n \in Nodes : Bound(c, n) <= age})

(* Step 2: the age of the q-th latest bound. *)
Base(c) ==
    LET enough == {age \in Ages : GrantsWithin(c, age) >= Quorum}
        some == {age \in Ages : GrantsWithin(c, age) > 0}
        from == IF Is("newest-bound") THEN some ELSE enough
    IN  CHOOSE age \in from : \A other \in from : age <= other

(* Step 2. A client looks at the grants only when they make a quorum. "Queued" (step 3) only
   takes grants away: what a client does that has heard it, it may also do if that answer is
   lost. *)
Hold(c) ==
    /\ IsAlive(c) /\ ~Holds(c)
    /\ GrantsWithin(c, Ttl - 1) >= Quorum
    /\ client' = [client EXCEPT ![c].left = Ttl - Base(c)]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |->
            [link[c][n] EXCEPT
                !.backs = /\ TracksBacking
                          /\ link[c][n].grant # None
                          /\ link[c][n].grant <= Base(c) \/ Is("late-backing"),
                !.grant = None, !.answered = None, !.push = FALSE]]]
    /\ UNCHANGED node

(* The keys of clients that give their tokens up. *)
Forsaken(n, givers) == IF node[n].owner \in givers THEN LeftBehind ELSE node[n].owner

(* Step 4: a yield, a cancel, or a release: RELEASE to all nodes, and a new token for the next
   WAIT. What is under way for the old token could only set a key that its RELEASE or its ttl
   ends. Like any message that is lost, that only keeps others out, so it is left out. *)
GiveUp(c) ==
    /\ IsAlive(c)
    /\ Holds(c) \/ ~Is("same-token")
    /\ client' = [client EXCEPT ![c].left = 0, ![c].waited = FALSE]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |-> Nothing]]
    /\ node' = [n \in Nodes |-> [node[n] EXCEPT !.owner = Forsaken(n, {c})]]

(* "same-token": the client forgets what was granted, and a push that is under way counts later. *)
YieldSameToken(c) ==
    /\ Is("same-token")
    /\ IsAlive(c) /\ ~Holds(c)
    /\ client' = [client EXCEPT ![c].waited = FALSE]
    /\ link' = [link EXCEPT ![c] = [n \in Nodes |->
            [link[c][n] EXCEPT !.release = TRUE, !.grant = IF link[c][n].push THEN @ ELSE None]]]
    /\ UNCHANGED node

(* It sends no RELEASE, and nothing else. *)
Die(c) ==
    /\ Stale > 0 /\ IsAlive(c)
    /\ client' = [client EXCEPT ![c].dead = 1]
    /\ UNCHANGED <<link, node>>

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* The node gives its key to this client, for the WAIT of this age: with the whole ttl. To a
   lease that is held already it adds backing, if it is not before the deadline's bound (step 5). *)
Granted(links, c, n, age, pushes) ==
    LET late == age > Ttl - client[c].left
        at == links[c][n]
        counts == age < Ttl
    IN  [links EXCEPT ![c][n] =
            [at EXCEPT
                !.place = None,
                !.push = (@ \/ pushes) /\ TracksPushes,
                !.grant = IF counts /\ ~Holds(c) THEN Younger(@, age) ELSE @,
                !.backs = @ \/ (counts /\ Holds(c) /\ TracksBacking
                                /\ (~late \/ Is("late-backing")))]]

(* The node hands its key to somebody in its queue, with a push. It may pass over anybody: nobody
   listens on that channel. So it may serve any place that is not stale. *)
Serve(links, n, others) ==
    \E c \in others :
        LET age == links[c][n].place
        IN  /\ age # None
            /\ (Stale > 0 /\ age >= Stale) => Is("stale-served")
            /\ link' = Granted(links, c, n, age, TRUE)
            /\ node' = [node EXCEPT ![n] = [owner |-> c, life |-> Ttl]]

(* The WAIT script. If the key is ours: raises its ttl. Else takes or refreshes our place; if the
   key is free, hands it to the first in the queue, which may be us. *)
ExecuteWait(c, n, age) ==
    LET at == link[c][n]
        left == IF InOrder THEN {a \in at.sent : a < age} ELSE at.sent \ {age}
        read == [link EXCEPT ![c][n].sent = left]
        queued == [read EXCEPT ![c][n].place = age,
                               ![c][n].answered =
                                    IF Is("no-serials") THEN Younger(@, age) ELSE None]
        owner == node[n].owner
    IN  /\ age \in at.sent
        /\ \/ /\ owner \in {Free, c}                        \* the answer: granted
              /\ link' = Granted(read, c, n, age, FALSE)
              /\ node' = [node EXCEPT ![n] = [owner |-> c, life |-> Ttl]]
           \/ /\ owner # c                                  \* the answer: queued
              /\ link' = queued
              /\ UNCHANGED node
           \/ /\ owner = Free                               \* queued, and another is served
              /\ Serve(queued, n, Clients \ {c})
        /\ UNCHANGED client

(* The RELEASE script for the token that has the key: hands over, or deletes the key. *)
FreeKey(links, n) ==
    \/ /\ link' = links
       /\ node' = [node EXCEPT ![n] = [owner |-> Free, life |-> 0]]
    \/ Serve(links, n, Clients)

ExecuteRelease(n) ==
    /\ node[n].owner = LeftBehind
    /\ FreeKey(link, n)
    /\ UNCHANGED client

(* "same-token": the token that is released is also that of the next WAIT. *)
ExecuteSameRelease(c, n) ==
    LET read == [link EXCEPT ![c][n].release = FALSE, ![c][n].place = None]
    IN  /\ link[c][n].release
        /\ IF node[n].owner = c THEN FreeKey(read, n) ELSE link' = read /\ UNCHANGED node
        /\ UNCHANGED client

---------------------------------------------------------------------------------------------------
(* A tick passes: keys end with their ttl, leases at their deadline, places get stale. *)

OlderPlace(age) ==
    LET older == Older(age, IF Stale > 0 THEN Stale ELSE Ttl)
    IN  IF age # None /\ older = None /\ Is("stale-served") THEN Stale ELSE older

Tick ==
    LET losing == {c \in Clients : client[c].left = 1}      \* at their deadline
        ending == {c \in losing : IsAlive(c)}               \* with a RELEASE
        aged(c, n) ==
            IF c \in ending THEN Nothing
            ELSE [link[c][n] EXCEPT
                    !.sent = IF Stale > 0 THEN {} ELSE {a + 1 : a \in @} \cap Ages,
                    !.place = OlderPlace(@),
                    !.grant = Older(@, Ttl),
                    !.answered = Older(@, Ttl),
                    !.backs = @ /\ c \notin losing]
    IN  /\ client' = [c \in Clients |->
                [client[c] EXCEPT
                    !.left = IF @ > 0 THEN @ - 1 ELSE 0,
                    !.waited = FALSE,
                    !.dead = IF @ > 0 /\ @ < Stale + Ttl + 1 THEN @ + 1 ELSE @]]
        /\ link' = [c \in Clients |-> [n \in Nodes |-> aged(c, n)]]
        /\ node' = [n \in Nodes |->
                IF node[n].life <= 1 THEN [owner |-> Free, life |-> 0]
                ELSE [owner |-> Forsaken(n, ending), life |-> node[n].life - 1]]

Next ==
    \/ Tick
    \/ \E c \in Clients : SendWait(c) \/ Hold(c) \/ GiveUp(c) \/ YieldSameToken(c) \/ Die(c)
    \/ \E n \in Nodes : ExecuteRelease(n)
    \/ \E c \in Clients, n \in Nodes :
            ExecuteSameRelease(c, n) \/ \E age \in Ages : ExecuteWait(c, n, age)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

(* At most one client may believe that it holds the lock. *)
Exclusion == \A c, d \in Clients : Holds(c) /\ Holds(d) => c = d

(* The invariant: while a lease is valid, its backing nodes are at least q, have its token at
   their key, and keep it there until the deadline. *)
Backs(c) == {n \in Nodes : link[c][n].backs}
Backing ==
    TracksBacking =>
        \A c \in Clients : Holds(c) =>
            /\ Cardinality(Backs(c)) >= Quorum
            /\ \A n \in Backs(c) : node[n].owner = c /\ node[n].life >= client[c].left

(* A dead waiter keeps no node for longer than stale + ttl after its death. *)
DeadKeepNothing ==
    \A c \in Clients, n \in Nodes : node[n].owner = c => client[c].dead <= Stale + Ttl

===================================================================================================
