------------------------------------------ MODULE Order -------------------------------------------
(* The order of a queue: docs/waiting.md, "Splits", "Order", "Beside those who do not queue" and
   "Who gives up"; when a waiter asks again: the table of src/core/waiter.h. Who comes after whom,
   and that whoever waits is served in the end. README.md says what is left out.

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
    GivesUp,    \* whether a client may give up before it has the lock
    Breaks,     \* how often a connection breaks, in all
    LeavesFree, \* whether a release may leave the lock free for those who do not queue
    Told,       \* how many of the first in line are told of a lock that is free
    Refreshes,  \* whether who waits asks again now and then, also without a reason
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "own-clock",        \* a ticket is the client's own clock, which may be slow
    "stays-queued",     \* a release does not leave the queue
    "try-keeps",        \* the release of a lost try hands over to nobody
    "enters",           \* the WAIT after a lost try takes no lock that is free
    "never-yields",     \* a waiter that has some nodes keeps them
    "left-untold",      \* a lock is left free, and nobody in line is told
    "gone-untold",      \* nor when a place is given up where the lock is free
    "push-unanswered",  \* a push for a token that was released is not answered
    "over-yields" }     \* no bug: a waiter that yields claims the place that it had before

ASSUME Broken \subseteq Variants

VARIABLES
    client,     \* each client
    link,       \* what is under way from a client to a node, its places there, and what it saw
    node,       \* the key of each node
    breaks      \* that have happened

vars == <<client, link, node, breaks>>

Is(variant) == variant \in Broken
Clients == 1..Waiters
Quorum == (Cardinality(Nodes) + Lost) \div 2 + 1

(* Whose token has the key of a node. The holder at the start has released the lock, but its
   RELEASE is still under way to the nodes. Its ticket is the lowest. *)
Free == 0
FirstHolder == -1

(* out      Begin                          -> trying  SET to all nodes
            Begin                          -> queued  WAIT to all nodes
   trying   Hold: q nodes are ours         -> held
            LoseTry: q cannot be ours      -> queued  RELEASE of the token; WAIT under a new one
            GiveUp                         -> ended   RELEASE to all nodes
   queued   Hold: q nodes are ours         -> held
            JudgeWait, WaitAgain, Look     -> queued  WAIT to all nodes
            JudgeLook: it must yield       -> queued  RELEASE, and WAIT under a new token
            GiveUp                         -> ended   RELEASE to all nodes
   held     Release                        -> ended   RELEASE to all nodes *)
Phases == {"out", "trying", "queued", "held", "ended"}

(* What is under way to a node. WAIT is "enter" (it takes no lock that is free) or "take";
   RELEASE is "release" (it hands over), "keep" (it hands over to nobody), "delete" (it hands over
   if the key has a mark), or "leave" (it leaves the lock free, and tells who is in line). *)
Requests == {"set", "enter", "take", "release", "keep", "delete", "leave"}
Releases == {"release", "keep", "delete", "leave"}

(* What a node says in answer to a WAIT that is queued: which token has the key. A client may have
   several, one after the other: its present one ("now"), or the one of its try, or older ones. *)
Kinds == {"now", "try", "old"}
Nobody == <<Free, "now">>
Unanswered == <<Free, "old">>

TypeOK ==
    /\ client \in [Clients -> [
            phase : Phases,
            slow : BOOLEAN,         \* "own-clock": its ticket is before those of right clocks
            due : SUBSET Clients,   \* who were queued on a quorum when it began: they come first
            \* The last WAIT: it takes or not; or it looks, because we had nodes. Or all answers
            \* to it were judged.
            wait : {"take", "enter", "look", "judged"},
            behind : BOOLEAN,       \* one other token had a quorum when we last judged
            told : BOOLEAN,         \* somebody said that the lock is free
            yielded : BOOLEAN ]]    \* Tries: it has yielded, and no WAIT has taken since
    /\ link \in [Clients -> [Nodes -> [
            requests : Seq(Requests),
            place : BOOLEAN,        \* the node has the present token in its queue
            ghost : BOOLEAN,        \* it has one that was released
            late : {"none", "present", "ghost"},    \* a WAIT on an old connection, by its token
            seen : (Clients \cup {Free, FirstHolder}) \X Kinds ]]] \* the answer to the last WAIT
    /\ node \in [Nodes -> [
            owner : Clients \cup {Free, FirstHolder},
            ghost : BOOLEAN,        \* the owner's token was released before it was granted
            left : BOOLEAN,         \* the lock is left free: no WAIT takes it
            \* Tries: a yield gave it back to nobody while others were queued, and it is free
            \* since, or a try took it.
            back : BOOLEAN,
            try : {"no", "plain", "marked"} ]]  \* "The mark": the key is a try's
    /\ breaks \in 0..Breaks

Init ==
    /\ client = [c \in Clients |-> [phase |-> "out", slow |-> FALSE, due |-> {}, wait |-> "judged",
                                    behind |-> FALSE, told |-> FALSE, yielded |-> FALSE]]
    /\ link = [c \in Clients |-> [n \in Nodes |->
            [requests |-> <<>>, place |-> FALSE, ghost |-> FALSE, late |-> "none",
             seen |-> Unanswered]]]
    /\ node = [n \in Nodes |->
            [owner |-> FirstHolder, ghost |-> FALSE, left |-> FALSE, back |-> FALSE, try |-> "no"]]
    /\ breaks = 0

---------------------------------------------------------------------------------------------------
(* What a state says. *)

(* Whether a release of an earlier token is still under way to this node. *)
IsReleasing(links, c, n) ==
    \E i \in DOMAIN links[c][n].requests : links[c][n].requests[i] \in Releases
Releasing(c, n) == IsReleasing(link, c, n)
IsIdle(c) == \A n \in Nodes : link[c][n].requests = <<>>

(* Nodes that have the present token of the client: as their key, and in their queue. *)
Owned(c) == {n \in Nodes : node[n].owner = c /\ ~node[n].ghost /\ ~Releasing(c, n)}
Queued(c) == {n \in Nodes : link[c][n].place /\ ~Releasing(c, n)}
HasQuorum(c) == Cardinality(Owned(c)) >= Quorum

(* Whether the ticket of a is lower. *)
IsBefore(a, b) == IF client[a].slow # client[b].slow THEN client[a].slow ELSE a < b

(* The token that has the key of a node. *)
Token(links, nodes, n) ==
    LET at == nodes[n]
        kind == IF at.try # "no" THEN "try"
                ELSE IF at.owner \in Clients /\ (at.ghost \/ IsReleasing(links, at.owner, n))
                THEN "old" ELSE "now"
    IN  <<at.owner, kind>>

(* What the nodes have said to a client that are not its own: in answer to its last WAIT, or if
   all of them answered now. *)
Seen(c) == [n \in Nodes |-> IF n \in Owned(c) THEN Unanswered ELSE link[c][n].seen]
SeenNow(c) == [n \in Nodes |-> IF n \in Owned(c) THEN Unanswered ELSE Token(link, node, n)]

(* What a client finds there: one other token has a quorum; an earlier waiter has a node. *)
IsBehind(seen) ==
    \E n \in Nodes : /\ seen[n] \notin {Nobody, Unanswered}
                     /\ Cardinality({m \in Nodes : seen[m] = seen[n]}) >= Quorum
SeesAnEarlier(c, seen) ==
    \E n \in Nodes : LET of == seen[n][1]
                     IN  /\ of # Free /\ seen[n][2] # "try"
                         /\ IF of = FirstHolder THEN TRUE ELSE IsBefore(of, c)
Answered(c) == Cardinality(Owned(c) \cup {n \in Nodes : link[c][n].seen # Unanswered})

MustYield(c, seen) ==
    Owned(c) # {} /\ (IsBehind(seen) \/ SeesAnEarlier(c, seen)) /\ ~Is("never-yields")

(* Whether a WAIT that takes would change anything now. *)
WouldChange(c) ==
    \E n \in Nodes : \/ node[n].owner = Free /\ ~node[n].left
                     \/ ~link[c][n].place /\ node[n].owner # c
                     \/ node[n].owner # c /\ node[n].try = "plain"

---------------------------------------------------------------------------------------------------
(* The steps of a client. *)

(* These requests go to all nodes, one after the other. A new token gives up what the old one had
   on old connections; who has seen the old one has not seen the new one. *)
Sent(c, requests) ==
    [link EXCEPT ![c] = [n \in Nodes |->
        [link[c][n] EXCEPT !.requests = @ \o requests, !.seen = Unanswered]]]
GivenUp(c, requests) ==
    [d \in Clients |-> [n \in Nodes |->
        IF d = c
        THEN [link[c][n] EXCEPT !.requests = @ \o requests, !.seen = Unanswered,
                                !.late = IF @ = "none" THEN "none" ELSE "ghost"]
        ELSE [link[d][n] EXCEPT !.seen = IF @ = <<c, "now">> THEN <<c, "old">> ELSE @]]]

(* Who began later need not wait for this one any more. *)
Excused(c, next) ==
    [d \in Clients |-> IF d = c THEN next ELSE [client[d] EXCEPT !.due = @ \ {c}]]

(* Whoever tries first sends SET, and all others WAIT. What a waiter gave back when it yielded may
   be free until it sends a WAIT that takes. Meanwhile a try may come first. *)
Begin(c) ==
    LET tries == c + Tries > Waiters
        due == {d \in 1..(c - 1) : /\ client[d].phase = "queued"
                                   /\ ~(tries /\ client[d].yielded)
                                   /\ Cardinality(Queued(d) \cup Owned(d)) >= Quorum}
    IN  /\ client[c].phase = "out"
        /\ c > 1 => client[c - 1].phase # "out"
        /\ \E slow \in (IF Is("own-clock") THEN BOOLEAN ELSE {FALSE}) :
                client' = [client EXCEPT ![c] =
                    [@ EXCEPT !.phase = IF tries THEN "trying" ELSE "queued", !.slow = slow,
                              !.due = due, !.wait = IF tries THEN @ ELSE "take"]]
        /\ link' = Sent(c, <<IF tries THEN "set" ELSE "take">>)
        /\ UNCHANGED <<node, breaks>>

(* q nodes are ours. *)
Hold(c) ==
    /\ client[c].phase \in {"trying", "queued"}
    /\ HasQuorum(c)
    /\ client' = Excused(c, [client[c] EXCEPT !.phase = "held", !.wait = "judged",
                                             !.behind = FALSE, !.told = FALSE,
                                             !.yielded = FALSE])
    /\ link' = Sent(c, <<>>)
    /\ UNCHANGED <<node, breaks>>

(* So many nodes refused that the others are no quorum. *)
LoseTry(c) ==
    LET open == {n \in Nodes : node[n].owner = c \/ link[c][n].requests # <<>>}
        wait == IF Is("enters") THEN "enter" ELSE "take"
    IN  /\ client[c].phase = "trying"
        /\ Cardinality(open) < Quorum
        /\ client' = [client EXCEPT ![c].phase = "queued", ![c].wait = wait]
        /\ link' = GivenUp(c, <<IF Is("try-keeps") THEN "keep" ELSE "release", wait>>)
        /\ UNCHANGED <<node, breaks>>

(* WAIT under the present token. *)
Ask(c, request, wait) ==
    /\ client' = [client EXCEPT ![c].wait = wait, ![c].behind = FALSE, ![c].told = FALSE]
    /\ link' = Sent(c, <<request>>)
    /\ UNCHANGED <<node, breaks>>

IsWaiting(c) == client[c].phase = "queued" /\ ~HasQuorum(c) /\ IsIdle(c)

(* All have answered, and none has granted. The keys of a quorum have ended where the lock is free
   there, or left free. Who is not behind finds out what it may have missed. *)
JudgeWait(c) ==
    LET seen == Seen(c)
        behind == IsBehind(seen)
        ended == Cardinality({n \in Nodes : seen[n] = Nobody}) >= Quorum
        missed == Lost > 0 \/ \E n \in Nodes : seen[n] = Unanswered
        plain == client[c].wait = "enter" /\ ~SeesAnEarlier(c, seen)
    IN  /\ IsWaiting(c) /\ Owned(c) = {} /\ client[c].wait \in {"take", "enter"}
        /\ IF ended \/ (~behind /\ (plain \/ missed))
           THEN Ask(c, "take", "take")
           ELSE /\ client' = [client EXCEPT ![c].wait = "judged", ![c].behind = behind,
                                           ![c].yielded = @ /\ client[c].wait = "enter"]
                /\ link' = Sent(c, <<>>)
                /\ UNCHANGED <<node, breaks>>

(* Somebody said that the lock is free, or a refresh is due. *)
WaitAgain(c) ==
    LET wait == IF client[c].behind THEN "enter" ELSE "take"
    IN  /\ IsWaiting(c) /\ Owned(c) = {} /\ client[c].wait = "judged"
        /\ client[c].told \/ (Refreshes /\ WouldChange(c))
        /\ Ask(c, wait, wait)

(* It has nodes, but no quorum. So it looks again and again. *)
Look(c) ==
    /\ IsWaiting(c) /\ Owned(c) # {} /\ client[c].wait # "look"
    /\ IF client[c].wait = "judged" /\ ~Refreshes
       THEN WouldChange(c) \/ MustYield(c, SeenNow(c)) ELSE TRUE
    /\ Ask(c, "take", "look")

(* "Splits". Who yields is out of all queues until its WAIT is executed. If it is behind, its
   RELEASE hands over to nobody. Where an earlier waiter has a node, it hands over; but after two
   such yields in a row to nobody, too. Here that may be at any of them. *)
JudgeLook(c) ==
    LET seen == Seen(c)
        behind == IsBehind(seen)
        few == Answered(c) < Quorum
        releases == IF behind THEN {"keep"} ELSE IF MustYield(c, seen) THEN {"keep", "release"}
                    ELSE {"release"}
        wait == IF MustYield(c, seen) THEN "enter" ELSE "take"
        next == [client[c] EXCEPT !.wait = wait, !.told = FALSE, !.yielded = Tries > 0]
    IN  /\ IsWaiting(c) /\ Owned(c) # {} /\ client[c].wait = "look"
        /\ IF MustYield(c, seen) \/ (few /\ ~Is("never-yields"))
           THEN /\ \E release \in releases : link' = GivenUp(c, <<release, wait>>)
                /\ client' = IF Is("over-yields") THEN [client EXCEPT ![c] = next]
                             ELSE Excused(c, next)
           ELSE /\ client' = [client EXCEPT ![c].wait = "judged", ![c].yielded = FALSE]
                /\ link' = Sent(c, <<>>)
        /\ UNCHANGED <<node, breaks>>

(* Its wait is over, or was cancelled. *)
GiveUp(c) ==
    /\ GivesUp
    /\ client[c].phase \in {"trying", "queued"}
    /\ client' = Excused(c, [client[c] EXCEPT !.phase = "ended", !.wait = "judged",
                                             !.behind = FALSE, !.told = FALSE,
                                             !.yielded = FALSE])
    /\ link' = GivenUp(c, <<"release">>)
    /\ UNCHANGED <<node, breaks>>

(* "Beside those who do not queue": now and then the lock is left free. *)
Release(c) ==
    LET isTry == \E n \in Owned(c) : node[n].try # "no"
    IN  /\ client[c].phase = "held"
        /\ client' = [client EXCEPT ![c].phase = "ended"]
        /\ \/ link' = GivenUp(c, <<IF isTry THEN "delete" ELSE "release">>)
           \/ LeavesFree /\ ~isTry /\ link' = GivenUp(c, <<"leave">>)
        /\ UNCHANGED <<node, breaks>>

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* Who has an entry in the queue of this node, with these links. *)
Line(links, n) == {c \in Clients : links[c][n].place \/ links[c][n].ghost}
First(links, n) == CHOOSE c \in Line(links, n) : \A d \in Line(links, n) \ {c} : IsBefore(c, d)

(* The node gives its key to the first in its queue, or deletes it. *)
Serve(links, n) ==
    IF Line(links, n) = {}
    THEN /\ node' = [node EXCEPT ![n] = [@ EXCEPT !.owner = Free, !.ghost = FALSE,
                                                  !.back = FALSE, !.try = "no"]]
         /\ link' = links
    ELSE LET c == First(links, n)
             ghost == links[c][n].ghost
         IN  /\ node' = [node EXCEPT ![n] = [@ EXCEPT !.owner = c, !.ghost = ghost,
                                                      !.back = FALSE, !.try = "no"]]
             /\ link' = IF ghost THEN [links EXCEPT ![c][n].ghost = FALSE]
                        ELSE [links EXCEPT ![c][n].place = FALSE, ![c][n].seen = Unanswered]

(* Tells the first in line. Who has given up the token that is named there does not listen. *)
Tell(links, n) ==
    LET line == Line(links, n)
        told == {c \in line : Cardinality({d \in line : IsBefore(d, c)}) < Told}
    IN  client' = [c \in Clients |->
            [client[c] EXCEPT !.told = @ \/ /\ c \in told /\ client[c].phase = "queued"
                                            /\ Owned(c) = {} /\ ~links[c][n].ghost
                                            /\ ~IsReleasing(links, c, n)]]

(* A WAIT that queues behind a try says so in the key. *)
Marked(n) == [node EXCEPT ![n].try = IF @ = "plain" THEN "marked" ELSE @]

(* The WAIT script. While the lock is left free, nobody takes it. *)
ExecuteWait(links, c, n, takes) ==
    LET ours == node[n].owner = c /\ ~node[n].ghost
        queued == IF ours THEN links ELSE [links EXCEPT ![c][n].place = TRUE]
    IN  IF node[n].owner = Free /\ ~node[n].left /\ takes THEN Serve(queued, n)
        ELSE link' = queued /\ node' = IF ours THEN node ELSE Marked(n)

(* The same, with its answer. *)
ExecuteAndAnswer(links, c, n, takes) ==
    LET ours == node[n].owner = c /\ ~node[n].ghost
        queued == [links EXCEPT ![c][n].place = TRUE]
        counts == client[c].phase = "queued" /\ ~IsReleasing(links, c, n)
        serves == node[n].owner = Free /\ ~node[n].left /\ takes
        first == First(queued, n)
        answer == IF serves THEN <<first, IF queued[first][n].ghost \/ IsReleasing(links, first, n)
                                          THEN "old" ELSE "now">>
                  ELSE Token(links, node, n)
    IN  ExecuteWait(IF ours \/ ~counts THEN links ELSE [links EXCEPT ![c][n].seen = answer],
                    c, n, takes)

(* The RELEASE script: leaves the queue; hands over or deletes the key if it is ours, or leaves it
   free. Where the key is free and we leave the queue, we may be the only one who knew. *)
ExecuteRelease(links, c, n, release) ==
    LET ours == node[n].owner = c /\ ~node[n].ghost
        stays == Is("stays-queued")
        gone == IF stays THEN links ELSE [links EXCEPT ![c][n].place = FALSE]
        isLeft == release = "leave" /\ Line(gone, n) # {}
        hands == release = "release" \/ (release = "delete" /\ node[n].try = "marked")
                 \/ (release = "leave" /\ ~isLeft)
        isBack == Tries > 0 /\ release = "keep" /\ node[n].try = "no" /\ Line(gone, n) # {}
        leaves == ~ours /\ node[n].owner = Free /\ links[c][n].place /\ ~stays
    IN  /\ IF ours /\ hands THEN Serve(gone, n)
           ELSE /\ link' = gone
                /\ node' = IF ours
                           THEN [node EXCEPT ![n] = [owner |-> Free, ghost |-> FALSE,
                                                     left |-> isLeft \/ @.left,
                                                     back |-> isBack, try |-> "no"]]
                           ELSE node
        /\ IF (ours /\ isLeft /\ ~Is("left-untold")) \/ (leaves /\ ~Is("gone-untold"))
           THEN Tell(gone, n)
           ELSE UNCHANGED client

(* The time is over for which the lock was left free. *)
EndLeft(n) ==
    /\ node[n].left
    /\ node' = [node EXCEPT ![n].left = FALSE]
    /\ UNCHANGED <<client, link, breaks>>

Execute(c, n) ==
    LET requests == link[c][n].requests
        request == Head(requests)
        links == [link EXCEPT ![c][n].requests = Tail(requests)]
    IN  /\ requests # <<>>
        /\ CASE request = "set" ->
                    /\ link' = links
                    /\ node' = IF node[n].owner = Free
                               THEN [node EXCEPT ![n] = [owner |-> c, ghost |-> FALSE,
                                                         left |-> @.left, back |-> @.back,
                                                         try |-> "plain"]]
                               ELSE node
                    /\ UNCHANGED client
             [] request = "enter" -> ExecuteAndAnswer(links, c, n, FALSE) /\ UNCHANGED client
             [] request = "take" -> ExecuteAndAnswer(links, c, n, TRUE) /\ UNCHANGED client
             [] OTHER -> ExecuteRelease(links, c, n, request)
        /\ UNCHANGED breaks

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

GoOn(c) ==
    \/ Hold(c) \/ LoseTry(c) \/ Release(c)
    \/ JudgeWait(c) \/ WaitAgain(c) \/ Look(c) \/ JudgeLook(c)
ClientStep(c) == Begin(c) \/ GoOn(c) \/ GiveUp(c)
NodeStep(n) == FirstRelease(n) \/ ReleaseGhost(n) \/ EndLeft(n)

Next ==
    \/ \E c \in Clients : ClientStep(c)
    \/ \E n \in Nodes : NodeStep(n)
    \/ \E c \in Clients, n \in Nodes : Execute(c, n) \/ ExecuteLate(c, n) \/ Break(c, n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

Exclusion == \A c, d \in Clients : client[c].phase = "held" /\ client[d].phase = "held" => c = d

(* No client holds the lock that began when an earlier one had its place on a quorum (in the
   queue, or the key itself) and has not yielded since. A try may, while the lock is left free, or
   with nodes that somebody gave back who yielded. It has no more others than a quorum leaves out:
   on none of them did the earlier one have its place. *)
InTheOrder == \A c \in Clients : client[c].phase = "held" =>
    \/ client[c].due = {}
    \/ Cardinality({n \in Owned(c) : ~node[n].back}) <= Cardinality(Nodes) - Quorum

(* No token is in the queue of a node that has executed its RELEASE, unless a WAIT on an old
   connection put it there. A present token is new when a RELEASE was sent before it. *)
LeavesTheQueue == [][\A c \in Clients, n \in Nodes :
    /\ link[c][n].requests # <<>>
    /\ Head(link[c][n].requests) \in Releases
    /\ link'[c][n].requests = Tail(link[c][n].requests)
    => ~link'[c][n].place]_vars

(* Clients wait, and nothing is under way that could end that. Nobody need begin. *)
Waiting == {c \in Clients : client[c].phase \notin {"out", "ended"} \/ ~IsIdle(c)}
NothingUnderWay ==
    /\ \A c \in Clients, n \in Nodes : link[c][n].late = "none"
    /\ \A n \in Nodes : /\ node[n].owner # FirstHolder /\ ~node[n].left
                        /\ node[n].ghost => Is("push-unanswered")
Rests(c) ==
    /\ IsWaiting(c)
    /\ IF Owned(c) = {}
       THEN client[c].wait = "judged" /\ ~client[c].told /\ ~(Refreshes /\ WouldChange(c))
       ELSE ~WouldChange(c) /\ ~MustYield(c, SeenNow(c))
NeverStuck == ~(Waiting # {} /\ NothingUnderWay /\ \A c \in Waiting : Rests(c))

---------------------------------------------------------------------------------------------------
(* What happens in the end, if messages arrive and clients go on. A connection need not break,
   nobody need begin, and nobody need give up.

   A step that can be taken cannot be taken for ever. That is weak fairness of these steps, as
   none of them goes on for ever without a pause: a client that has asked waits for all nodes, and
   whatever else it sends, it sends once. TLC checks it in less time. *)

FairSpec ==
    /\ Spec
    /\ \A c \in Clients : []<>~ENABLED GoOn(c)
    /\ \A n \in Nodes : []<>~ENABLED NodeStep(n)
    /\ \A c \in Clients, n \in Nodes :
            []<>~ENABLED Execute(c, n) /\ []<>~ENABLED ExecuteLate(c, n)

(* Whoever waits is served in the end, or gives up. So a split ends, and yields do not go on for
   ever. *)
Served == \A c \in Clients :
    client[c].phase \in {"trying", "queued"} ~> client[c].phase \in {"held", "ended"}

===================================================================================================
