------------------------------------------ MODULE Order -------------------------------------------
(* The order of a queue: docs/waiting.md, "Splits", "Order" and "Beside those who do not queue".
   Who comes after whom, and that whoever waits is served in the end. README.md says what is left
   out.

   There is no time, and there are no faults but connections that break: no message is lost, and
   no key ends. A node executes what a client sends in the order in which it was sent (R9),
   however late. A key that is free was released.

   Clients are numbered in the order in which they begin. So the lower number is the lower
   ticket, but for the variant "own-clock". *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS
    Nodes,
    Lost,       \* how many more nodes there are that never answer: they count for the quorum only
    Waiters,    \* how many clients there are; each wants the lock once
    Tries,      \* so many of the last ones try first, before they queue
    Breaks,     \* how often a connection breaks, in all
    LeavesFree, \* whether a release may leave the lock free for those who do not queue
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "own-clock",        \* a ticket is the client's own clock, which may be slow
    "stays-queued",     \* a release does not leave the queue
    "try-keeps",        \* the release of a lost try hands over to nobody
    "enters",           \* the WAIT after a lost try takes no lock that is free
    "never-yields",     \* a waiter that has some nodes keeps them
    "push-unanswered",  \* a push for a token that was released is not answered
    "over-yields" }     \* no bug: a waiter that yields claims the place that it had before

ASSUME Broken \subseteq Variants

VARIABLES
    client,     \* each client
    link,       \* what is under way from a client to a node, and its places there
    node,       \* the key of each node
    breaks      \* that have happened

vars == <<client, link, node, breaks>>

Is(variant) == variant \in Broken
Clients == 1..Waiters
Quorum == (Cardinality(Nodes) + Lost) \div 2 + 1

(* Whose token has the key of a node. The holder at the start has released the lock, but its
   RELEASE is still under way to the nodes. *)
Free == 0
FirstHolder == -1

(* out      Begin                          -> trying  SET to all nodes
            Begin                          -> queued  WAIT to all nodes
   trying   Hold: q nodes are ours         -> held
            LoseTry: q cannot be ours      -> queued  RELEASE of the token; WAIT under a new one
   queued   Hold: q nodes are ours         -> held
            WaitAgain: all answered,
            a node could be ours           -> queued  WAIT to all nodes
            Yield: the look says so        -> queued  RELEASE, and WAIT under a new token
   held     Release                        -> ended   RELEASE to all nodes *)
Phases == {"out", "trying", "queued", "held", "ended"}

(* What is under way to a node. WAIT is "enter" (it takes no lock that is free) or "take";
   RELEASE is "release" (it hands over), "keep" (it hands over to nobody), "delete" (it hands over
   if the key has a mark), "leave" (it leaves the lock free), or "hand" (the end of that: it hands
   over also a lock that is free). *)
Requests == {"set", "enter", "take", "release", "keep", "delete", "leave", "hand"}
Releases == {"release", "keep", "delete", "leave"}

TypeOK ==
    /\ client \in [Clients -> [
            phase : Phases,
            slow : BOOLEAN,         \* "own-clock": its ticket is before those of right clocks
            due : SUBSET Clients ]] \* who were queued on a quorum when it began: they come first
    /\ link \in [Clients -> [Nodes -> [
            requests : Seq(Requests),
            place : BOOLEAN,        \* the node has the present token in its queue
            ghost : BOOLEAN,        \* it has one that was released
            late : {"none", "present", "ghost"} ]]] \* a WAIT on an old connection, by its token
    /\ node \in [Nodes -> [
            owner : Clients \cup {Free, FirstHolder},
            ghost : BOOLEAN,        \* the owner's token was released before it was granted
            left : BOOLEAN,         \* the lock is left free: no WAIT takes it
            try : {"no", "plain", "marked"} ]]  \* "The mark": the key is a try's
    /\ breaks \in 0..Breaks

Init ==
    /\ client = [c \in Clients |-> [phase |-> "out", slow |-> FALSE, due |-> {}]]
    /\ link = [c \in Clients |-> [n \in Nodes |->
            [requests |-> <<>>, place |-> FALSE, ghost |-> FALSE, late |-> "none"]]]
    /\ node = [n \in Nodes |->
            [owner |-> FirstHolder, ghost |-> FALSE, left |-> FALSE, try |-> "no"]]
    /\ breaks = 0

---------------------------------------------------------------------------------------------------
(* What a state says. *)

(* Whether a release of an earlier token is still under way to this node. *)
Releasing(c, n) == \E i \in DOMAIN link[c][n].requests : link[c][n].requests[i] \in Releases
IsIdle(c) == \A n \in Nodes : link[c][n].requests = <<>>

(* Nodes that have the present token of the client: as their key, and in their queue. *)
Owned(c) == {n \in Nodes : node[n].owner = c /\ ~node[n].ghost /\ ~Releasing(c, n)}
Queued(c) == {n \in Nodes : link[c][n].place /\ ~Releasing(c, n)}
HasQuorum(c) == Cardinality(Owned(c)) >= Quorum

(* Whether the ticket of a is lower. *)
IsBefore(a, b) == IF client[a].slow # client[b].slow THEN client[a].slow ELSE a < b

(* What a look finds ("Splits"): an earlier waiter has a node, or another token has a quorum. *)
AnEarlierHasANode(c) == \E d \in Clients \ {c} : Owned(d) # {} /\ IsBefore(d, c)
IsBehind(c) == \E d \in Clients \ {c} : HasQuorum(d)
MustYield(c) == Owned(c) # {} /\ (AnEarlierHasANode(c) \/ IsBehind(c)) /\ ~Is("never-yields")

(* Whether its next WAIT takes a lock that is free. *)
Takes(c) == ~IsBehind(c)

(* Whether a WAIT of a client that is queued would change anything now. *)
WaitsAgain(c) ==
    \E n \in Nodes : \/ node[n].owner = Free /\ ~node[n].left /\ Takes(c)
                     \/ ~link[c][n].place /\ node[n].owner # c

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

(* These requests go to all nodes, one after the other; a new token gives up what the old one had
   on old connections. *)
Sent(c, requests) ==
    [link EXCEPT ![c] = [n \in Nodes |-> [link[c][n] EXCEPT !.requests = @ \o requests]]]
GivenUp(c, requests) ==
    [link EXCEPT ![c] = [n \in Nodes |->
        [link[c][n] EXCEPT !.requests = @ \o requests,
                           !.late = IF @ = "none" THEN "none" ELSE "ghost"]]]

(* Whoever tries first sends SET, and all others WAIT. *)
Begin(c) ==
    LET tries == c + Tries > Waiters
        due == {d \in 1..(c - 1) : client[d].phase = "queued"
                                   /\ Cardinality(Queued(d)) + Cardinality(Owned(d)) >= Quorum}
    IN  /\ client[c].phase = "out"
        /\ c > 1 => client[c - 1].phase # "out"
        /\ \E slow \in (IF Is("own-clock") THEN BOOLEAN ELSE {FALSE}) :
                client' = [client EXCEPT ![c] = [phase |-> IF tries THEN "trying" ELSE "queued",
                                                 slow |-> slow, due |-> due]]
        /\ link' = Sent(c, <<IF tries THEN "set" ELSE "take">>)
        /\ UNCHANGED <<node, breaks>>

(* q nodes are ours. *)
Hold(c) ==
    /\ client[c].phase \in {"trying", "queued"}
    /\ HasQuorum(c)
    /\ client' = [d \in Clients |->
            IF d = c THEN [client[c] EXCEPT !.phase = "held"]
            ELSE [client[d] EXCEPT !.due = @ \ {c}]]
    /\ UNCHANGED <<link, node, breaks>>

(* So many nodes refused that the others are no quorum. *)
LoseTry(c) ==
    LET open == {n \in Nodes : node[n].owner = c \/ link[c][n].requests # <<>>}
    IN  /\ client[c].phase = "trying"
        /\ Cardinality(open) < Quorum
        /\ client' = [client EXCEPT ![c].phase = "queued"]
        /\ link' = GivenUp(c, <<IF Is("try-keeps") THEN "keep" ELSE "release",
                                IF Is("enters") THEN "enter" ELSE "take">>)
        /\ UNCHANGED <<node, breaks>>

WaitAgain(c) ==
    /\ client[c].phase = "queued"
    /\ ~HasQuorum(c) /\ IsIdle(c) /\ WaitsAgain(c)
    /\ link' = Sent(c, <<IF Takes(c) THEN "take" ELSE "enter">>)
    /\ UNCHANGED <<client, node, breaks>>

(* Out of all queues until the WAIT is executed, which takes nothing. If it is behind, its RELEASE
   hands over to nobody. Where an earlier waiter has a node, it hands over; but after two such
   yields in a row to nobody, too. Here that may be at any of them. *)
Yield(c) ==
    /\ client[c].phase = "queued"
    /\ ~HasQuorum(c) /\ IsIdle(c) /\ MustYield(c)
    /\ \/ link' = GivenUp(c, <<"keep", "enter">>)
       \/ ~IsBehind(c) /\ link' = GivenUp(c, <<"release", "enter">>)
    /\ client' = IF Is("over-yields") THEN client
                 ELSE [d \in Clients |-> [client[d] EXCEPT !.due = @ \ {c}]]
    /\ UNCHANGED <<node, breaks>>

(* "Beside those who do not queue": now and then the lock is left free, and handed over later. *)
Release(c) ==
    LET isTry == \E n \in Nodes : node[n].owner = c /\ node[n].try # "no"
    IN  /\ client[c].phase = "held"
        /\ client' = [client EXCEPT ![c].phase = "ended"]
        /\ \/ link' = GivenUp(c, <<IF isTry THEN "delete" ELSE "release">>)
           \/ LeavesFree /\ ~isTry /\ link' = GivenUp(c, <<"leave", "hand">>)
        /\ UNCHANGED <<node, breaks>>

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* Who has an entry in the queue of this node, with these links. *)
Line(links, n) == {c \in Clients : links[c][n].place \/ links[c][n].ghost}
First(links, n) == CHOOSE c \in Line(links, n) : \A d \in Line(links, n) \ {c} : IsBefore(c, d)

(* The node gives its key to the first in its queue, or deletes it. *)
Serve(links, n) ==
    IF Line(links, n) = {}
    THEN /\ node' = [node EXCEPT ![n] = [owner |-> Free, ghost |-> FALSE, left |-> FALSE,
                                            try |-> "no"]]
         /\ link' = links
    ELSE LET c == First(links, n)
             ghost == links[c][n].ghost
         IN  /\ node' = [node EXCEPT ![n] = [owner |-> c, ghost |-> ghost, left |-> FALSE,
                                               try |-> "no"]]
             /\ link' = IF ghost THEN [links EXCEPT ![c][n].ghost = FALSE]
                        ELSE [links EXCEPT ![c][n].place = FALSE]

(* A WAIT that queues behind a try says so in the key. *)
Marked(n) == [node EXCEPT ![n].try = IF @ = "plain" THEN "marked" ELSE @]

(* The WAIT script. *)
ExecuteWait(links, c, n, takes) ==
    LET ours == node[n].owner = c /\ ~node[n].ghost
        queued == IF ours THEN links ELSE [links EXCEPT ![c][n].place = TRUE]
    IN  IF node[n].owner = Free /\ ~node[n].left /\ takes THEN Serve(queued, n)
        ELSE link' = queued /\ node' = IF ours THEN node ELSE Marked(n)

(* The RELEASE script: leaves the queue; hands over or deletes the key if it is ours. *)
ExecuteRelease(links, c, n, release) ==
    LET ours == node[n].owner = c /\ ~node[n].ghost
        gone == IF Is("stays-queued") THEN links ELSE [links EXCEPT ![c][n].place = FALSE]
        isLeft == release = "leave" /\ Line(gone, n) # {}
        hands == release = "release" \/ (release = "delete" /\ node[n].try = "marked")
    IN  IF ours /\ hands THEN Serve(gone, n)
        ELSE /\ link' = gone
             /\ node' = IF ours
                        THEN [node EXCEPT ![n] = [owner |-> Free, ghost |-> FALSE,
                                                  left |-> isLeft \/ @.left, try |-> "no"]]
                        ELSE node

(* The end of the time in which the lock is left free. *)
ExecuteHand(links, n) ==
    IF node[n].owner = Free THEN Serve(links, n)
    ELSE link' = links /\ node' = [Marked(n) EXCEPT ![n].left = FALSE]

Execute(c, n) ==
    LET requests == link[c][n].requests
        request == Head(requests)
        links == [link EXCEPT ![c][n].requests = Tail(requests)]
    IN  /\ requests # <<>>
        /\ CASE request = "set" ->
                    /\ link' = links
                    /\ node' = IF node[n].owner = Free
                               THEN [node EXCEPT ![n] = [owner |-> c, ghost |-> FALSE,
                                                         left |-> @.left, try |-> "plain"]]
                               ELSE node
             [] request = "enter" -> ExecuteWait(links, c, n, FALSE)
             [] request = "take" -> ExecuteWait(links, c, n, TRUE)
             [] request = "hand" -> ExecuteHand(links, n)
             [] OTHER -> ExecuteRelease(links, c, n, request)
        /\ UNCHANGED <<client, breaks>>

(* The RELEASE of the holder at the start. *)
FirstRelease(n) ==
    /\ node[n].owner = FirstHolder
    /\ Serve(link, n)
    /\ UNCHANGED <<client, breaks>>

(* A connection breaks when a WAIT is next on it: the node may execute that at any later time.
   The client sends what comes after it on a new connection. *)
Break(c, n) ==
    LET requests == link[c][n].requests
        after == Tail(requests)
        released == \E i \in DOMAIN after : after[i] \in Releases
    IN  /\ breaks < Breaks
        /\ requests # <<>>
        /\ Head(requests) = "take"
        /\ link[c][n].late = "none"
        /\ breaks' = breaks + 1
        /\ link' = [link EXCEPT ![c][n].requests = after,
                                ![c][n].late = IF released THEN "ghost" ELSE "present"]
        /\ UNCHANGED <<client, node>>

ExecuteLate(c, n) ==
    LET released == link[c][n].late = "ghost" /\ ~Releasing(c, n)
        links == [link EXCEPT ![c][n].late = "none"]
        queued == [links EXCEPT ![c][n].ghost = TRUE]
    IN  /\ link[c][n].late # "none"
        /\ IF ~released THEN ExecuteWait(links, c, n, TRUE)
           ELSE IF node[n].owner = Free /\ ~node[n].left THEN Serve(queued, n)
           ELSE link' = queued /\ node' = Marked(n)
        /\ UNCHANGED <<client, breaks>>

(* "Waiting in a queue", step 4: the RELEASE that answers a push for a token that its client has
   given up, or that the client still owes the node (R9). *)
ReleaseGhost(n) ==
    /\ node[n].ghost
    /\ ~Is("push-unanswered")
    /\ Serve(link, n)
    /\ UNCHANGED <<client, breaks>>

ClientStep(c) ==
    Begin(c) \/ Hold(c) \/ LoseTry(c) \/ WaitAgain(c) \/ Yield(c) \/ Release(c)
NodeStep(n) == FirstRelease(n) \/ ReleaseGhost(n)

Next ==
    \/ \E c \in Clients : ClientStep(c)
    \/ \E n \in Nodes : NodeStep(n)
    \/ \E c \in Clients, n \in Nodes : Execute(c, n) \/ ExecuteLate(c, n) \/ Break(c, n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

Exclusion == \A c, d \in Clients : client[c].phase = "held" /\ client[d].phase = "held" => c = d

(* No client holds the lock that began when an earlier one had its place on a quorum (in the
   queue, or the key itself) and has not yielded since. A try may, while the lock is left free. *)
InTheOrder == \A c \in Clients : client[c].phase = "held" => client[c].due = {}

(* No token is in the queue of a node that has executed its RELEASE, unless a WAIT on an old
   connection put it there. A present token is new when a RELEASE was sent before it. *)
LeavesTheQueue == [][\A c \in Clients, n \in Nodes :
    /\ link[c][n].requests # <<>>
    /\ Head(link[c][n].requests) \in Releases
    /\ link'[c][n].requests = Tail(link[c][n].requests)
    => ~link'[c][n].place]_vars

(* Clients wait, and nothing is under way that could end that. *)
Waiting == {c \in Clients : client[c].phase # "ended" \/ ~IsIdle(c)}
NothingUnderWay ==
    /\ \A c \in Clients, n \in Nodes : link[c][n].late = "none"
    /\ \A n \in Nodes : /\ node[n].owner # FirstHolder
                        /\ node[n].ghost => Is("push-unanswered")
Rests(c) == /\ client[c].phase = "queued" /\ IsIdle(c)
            /\ ~WaitsAgain(c) /\ ~MustYield(c) /\ ~HasQuorum(c)
NeverStuck == ~(Waiting # {} /\ NothingUnderWay /\ \A c \in Waiting : Rests(c))

---------------------------------------------------------------------------------------------------
(* What happens in the end, if messages arrive and clients go on. A connection need not break,
   and nobody need begin. *)

FairSpec ==
    /\ Spec
    /\ \A c \in Clients :
            WF_vars(Hold(c)) /\ WF_vars(LoseTry(c)) /\ WF_vars(WaitAgain(c)) /\ WF_vars(Yield(c))
            /\ WF_vars(Release(c))
    /\ \A n \in Nodes : WF_vars(FirstRelease(n)) /\ WF_vars(ReleaseGhost(n))
    /\ \A c \in Clients, n \in Nodes : WF_vars(Execute(c, n)) /\ WF_vars(ExecuteLate(c, n))

(* Whoever waits is served in the end. So a split ends, and yields do not go on for ever. *)
Served == \A c \in Clients : client[c].phase \in {"trying", "queued"} ~> client[c].phase = "held"

===================================================================================================
