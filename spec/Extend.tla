------------------------------------------ MODULE Extend ------------------------------------------
(* What one lease knows of its own keys: docs/protocols.md, "Extension and known loss". Lock.tla
   has the same rounds between clients. Here ttls differ, requests come late over a connection
   that broke, nodes lose keys, and others take them; and the client keeps the set of nodes that
   may have its key. README.md says what is left out.

   A node executes the requests of a connection in the order in which they were sent (R9), at any
   time, or never. Time is ticks that all clocks share, and every time is relative to now. *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS
    Nodes,
    Ttls,       \* each extension asks for one of these, in ticks
    Losses,     \* how often nodes lose the key, in all
    Breaks,     \* how often a connection breaks, with an EXTEND on the way, in all
    Heals,      \* whether the lease is healed
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "extend-shortens",  \* an extension sets the ttl of the key, also if that makes its life shorter
    "denied-backs",     \* the old deadline stands, however many nodes have answered DENIED since
    "heal-unnoted" }    \* a node that was sent a heal is not noted as one that may have the key

ASSUME Broken \subseteq Variants

VARIABLES
    lease,      \* what the client knows
    link,       \* what is under way to each node
    node,       \* the key of each node
    forgot,     \* nodes that have lost the key since they granted it
    losses,     \* that have happened
    breaks

vars == <<lease, link, node, forgot, losses, breaks>>

Is(variant) == variant \in Broken
Quorum == Cardinality(Nodes) \div 2 + 1
Longest == CHOOSE a \in Ttls : \A b \in Ttls : b <= a
Larger(a, b) == IF a > b THEN a ELSE b
Less(ticks) == IF ticks > 0 THEN ticks - 1 ELSE 0

(* "set" is that of the acquire. Its answer and that of "extend" are votes, that of "heal" is
   not. *)
Request == [what : {"set", "extend", "heal"}, ttl : Ttls,
            votes : BOOLEAN]    \* of the present round

TypeOK ==
    /\ lease \in [
            held : BOOLEAN,
            left : 0..Longest,          \* to the deadline
            won : BOOLEAN,              \* the present round is
            onRound : BOOLEAN,          \* the deadline is that of the present round
            roundLeft : 0..Longest,     \* else: to the deadline that this round would make
            ttl : Ttls,                 \* of the present round
            granted : SUBSET Nodes,     \* the votes of the present round, heard by now
            denied : SUBSET Nodes,
            mayHave : SUBSET Nodes,     \* by what was said before the present round
            healed : SUBSET Nodes,      \* were sent a heal in the present round
            backing : SUBSET Nodes ]
    /\ link \in [Nodes -> [
            requests : Seq(Request),
            answer : {"none", "granted", "denied"}, \* the vote that is on the way back
            late : Ttls \cup {0} ]]                 \* an EXTEND on an old connection, with this ttl
    /\ node \in [Nodes -> [key : {"none", "ours", "other"}, life : 0..Longest]]
    /\ forgot \subseteq Nodes
    /\ losses \in 0..Losses
    /\ breaks \in 0..Breaks

(* A quorum has just granted the SET. It is on its way to the other nodes. *)
Init ==
    \E ttl \in Ttls, granted \in {g \in SUBSET Nodes : Cardinality(g) = Quorum} :
        /\ lease = [held |-> TRUE, left |-> ttl, won |-> TRUE, onRound |-> TRUE,
                    roundLeft |-> 0, ttl |-> ttl, granted |-> granted, denied |-> {},
                    mayHave |-> Nodes, healed |-> {}, backing |-> granted]
        /\ link = [n \in Nodes |->
                [requests |-> IF n \in granted THEN <<>>
                              ELSE <<[what |-> "set", ttl |-> ttl, votes |-> TRUE]>>,
                 answer |-> "none", late |-> 0]]
        /\ node = [n \in Nodes |-> IF n \in granted THEN [key |-> "ours", life |-> ttl]
                                   ELSE [key |-> "none", life |-> 0]]
        /\ forgot = {}
        /\ losses = 0
        /\ breaks = 0

(* "The core keeps the set of nodes that may have the key": by now, with this round's votes. *)
MayHave(l) == (l.mayHave \ l.denied) \cup l.granted \cup l.healed

---------------------------------------------------------------------------------------------------
(* The steps of the client. *)

Outdated(requests) == [i \in DOMAIN requests |-> [requests[i] EXCEPT !.votes = FALSE]]

(* "Extension", step 1. The round before says no more. *)
Extend(ttl) ==
    /\ lease.held
    /\ \A n \in Nodes : Len(link[n].requests) < 2   \* of no matter: keeps the search small
    /\ lease' = [lease EXCEPT !.won = FALSE, !.onRound = FALSE, !.roundLeft = ttl, !.ttl = ttl,
                              !.granted = {}, !.denied = {}, !.healed = {},
                              !.mayHave = MayHave(lease),
                              !.backing = @ \cap MayHave(lease)]
    /\ link' = [n \in Nodes |->
            [link[n] EXCEPT
                !.answer = "none",
                !.requests = Append(Outdated(link[n].requests),
                                    [what |-> "extend", ttl |-> ttl, votes |-> TRUE])]]
    /\ UNCHANGED <<node, forgot, losses, breaks>>

(* Step 3: with q GRANTED votes the deadline is the later one. The old one stands only while q of
   its backing nodes have not answered DENIED since: votes that come after the round was won count,
   too. If the deadline of this round is over by then, the lease is LOST. *)
HasQuorum(l) == Cardinality(l.granted) >= Quorum
Stands(l) ==
    /\ l.roundLeft <= l.left
    /\ Cardinality(l.backing \ l.denied) >= Quorum \/ Is("denied-backs")
Won(l) ==
    IF l.onRound THEN [l EXCEPT !.backing = @ \cup l.granted]
    ELSE IF ~HasQuorum(l) THEN l
    ELSE IF Stands(l) THEN [l EXCEPT !.won = TRUE, !.backing = @ \ l.denied]
    ELSE [l EXCEPT !.won = TRUE, !.onRound = TRUE, !.left = l.roundLeft, !.roundLeft = 0,
                   !.backing = l.granted]

(* "Known loss": when fewer than q nodes may have the key, the lease is LOST at once. At the
   deadline it is lost in any case (R3). *)
Known(l) ==
    IF Cardinality(MayHave(l)) < Quorum \/ l.left = 0
    THEN [l EXCEPT !.held = FALSE, !.won = FALSE, !.left = 0, !.roundLeft = 0]
    ELSE l

Hear(n) ==
    LET heard == IF link[n].answer = "granted" THEN [lease EXCEPT !.granted = @ \cup {n}]
                 ELSE [lease EXCEPT !.denied = @ \cup {n}]
    IN  /\ lease.held
        /\ link[n].answer # "none"
        /\ lease' = Known(Won(heard))
        /\ link' = [link EXCEPT ![n].answer = "none"]
        /\ UNCHANGED <<node, forgot, losses, breaks>>

(* "Healing": once in a round that is won, to a node that does not back the lease. *)
Heal(n) ==
    /\ Heals
    /\ lease.held /\ lease.won
    /\ n \notin lease.backing \cup lease.healed
    /\ Len(link[n].requests) < 2
    /\ lease' = IF Is("heal-unnoted") THEN lease ELSE [lease EXCEPT !.healed = @ \cup {n}]
    /\ link' = [link EXCEPT ![n].requests =
                    Append(@, [what |-> "heal", ttl |-> lease.ttl, votes |-> FALSE])]
    /\ UNCHANGED <<node, forgot, losses, breaks>>

(* The node answers a heal with an error, so the heal has certainly done nothing. *)
HealFails(n) ==
    LET requests == link[n].requests
    IN  /\ lease.held
        /\ requests # <<>>
        /\ Head(requests).what = "heal"
        /\ lease' = Known([lease EXCEPT !.healed = @ \ {n}])
        /\ link' = [link EXCEPT ![n].requests = Tail(@)]
        /\ UNCHANGED <<node, forgot, losses, breaks>>

(* The connection breaks with an EXTEND on the way. What comes later goes over a new one. *)
Break(n) ==
    LET requests == link[n].requests
    IN  /\ lease.held
        /\ breaks < Breaks
        /\ requests # <<>>
        /\ Head(requests).what = "extend"
        /\ link[n].late = 0
        /\ breaks' = breaks + 1
        /\ link' = [link EXCEPT ![n].requests = Tail(@), ![n].late = Head(requests).ttl]
        /\ UNCHANGED <<lease, node, forgot, losses>>

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* Step 2: a node whose key has our token sets the key's ttl if that makes it longer, never if
   shorter (R12). *)
Extended(at, ttl) ==
    IF at.key # "ours" THEN at
    ELSE [at EXCEPT !.life = IF Is("extend-shortens") THEN ttl ELSE Larger(@, ttl)]

(* SET NX PX. *)
Set(at, ttl) == IF at.key = "none" THEN [key |-> "ours", life |-> ttl] ELSE at

Execute(n) ==
    LET requests == link[n].requests
        request == Head(requests)
        grants == node[n].key = IF request.what = "extend" THEN "ours" ELSE "none"
        answer == IF ~request.votes THEN link[n].answer
                  ELSE IF grants THEN "granted" ELSE "denied"
    IN  /\ lease.held
        /\ requests # <<>>
        /\ node' = [node EXCEPT ![n] = IF request.what = "extend" THEN Extended(@, request.ttl)
                                       ELSE Set(@, request.ttl)]
        /\ link' = [link EXCEPT ![n].requests = Tail(@), ![n].answer = answer]
        /\ forgot' = IF request.votes /\ grants THEN forgot \ {n} ELSE forgot
        /\ UNCHANGED <<lease, losses, breaks>>

(* An EXTEND on an old connection. Nobody hears its answer. *)
ExecuteLate(n) ==
    /\ lease.held
    /\ link[n].late # 0
    /\ node' = [node EXCEPT ![n] = Extended(@, link[n].late)]
    /\ link' = [link EXCEPT ![n].late = 0]
    /\ UNCHANGED <<lease, forgot, losses, breaks>>

(* The node loses our key: a restart without data, an eviction, a deletion by hand. *)
Lose(n) ==
    /\ lease.held
    /\ losses < Losses
    /\ node[n].key = "ours"
    /\ losses' = losses + 1
    /\ node' = [node EXCEPT ![n] = [key |-> "none", life |-> 0]]
    /\ forgot' = forgot \cup {n}
    /\ UNCHANGED <<lease, link, breaks>>

(* Another client takes a key that is free, and gives it back. *)
Other(n) ==
    /\ lease.held
    /\ \/ node[n].key = "none" /\ node' = [node EXCEPT ![n].key = "other"]
       \/ node[n].key = "other" /\ node' = [node EXCEPT ![n].key = "none"]
    /\ UNCHANGED <<lease, link, forgot, losses, breaks>>

Tick ==
    /\ lease.held
    /\ lease' = Known([lease EXCEPT !.left = Less(@), !.roundLeft = Less(@)])
    /\ node' = [n \in Nodes |->
            IF node[n].key # "ours" THEN node[n]
            ELSE IF node[n].life <= 1 THEN [key |-> "none", life |-> 0]
            ELSE [node[n] EXCEPT !.life = @ - 1]]
    /\ UNCHANGED <<link, forgot, losses, breaks>>

Next ==
    \/ Tick
    \/ \E ttl \in Ttls : Extend(ttl)
    \/ \E n \in Nodes :
            \/ Hear(n) \/ Heal(n) \/ HealFails(n) \/ Break(n)
            \/ Execute(n) \/ ExecuteLate(n) \/ Lose(n) \/ Other(n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

(* The backing nodes have the key and keep it until the deadline, but for those that lost it
   since. *)
Backing ==
    lease.held =>
        /\ losses = 0 => Cardinality(lease.backing) >= Quorum
        /\ \A n \in lease.backing \ forgot :
                node[n].key = "ours" /\ node[n].life >= lease.left

(* "By the invariant a valid lease has q keys. If fewer than q nodes can have one, the invariant
   is broken already": so no node has the key that is not in the set. A lease is LOST before its
   deadline only if fewer than q keys are left. *)
KeysAreKnown == lease.held => {n \in Nodes : node[n].key = "ours"} \subseteq MayHave(lease)

(* When a quorum has granted a round, and the old deadline stands, it stands on q nodes that have
   not answered DENIED since, in whatever order these votes came. *)
StandsOnQuorum ==
    lease.held /\ HasQuorum(lease) /\ ~lease.onRound
    => Cardinality(lease.backing \ lease.denied) >= Quorum

===================================================================================================
