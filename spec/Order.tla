------------------------------------------ MODULE Order -------------------------------------------
(* The order of a queue: docs/waiting.md, "Those who read", "Splits", "Order", "Beside those who do
   not queue" and "Who gives up"; when a waiter asks again: the table of src/core/waiter.h. Who
   comes after whom, and that whoever waits is served in the end. README.md says what is left out.

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
    Readers,    \* of these, the clients that would read, beside others who do; 0: the first holder
    Downgrades, \* whether one who writes may go on as one who reads
    Together,   \* so many readers get the lock in one step
    Again,      \* so many of the last ones come again and again
    Tries,      \* so many of the last ones try first, before they queue
    GivesUp,    \* whether a client may give up before it has the lock
    Breaks,     \* how often a connection breaks, in all
    Losses,     \* how many pushes are lost, in all
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
    "told-forgets",     \* who was told so forgets it at its next WAIT, however early
    "gone-untold",      \* nor when a place is given up where the lock is free
    "push-unanswered",  \* a push for a token that was released is not answered
    "try-joins",        \* the try of a reader joins others, also if somebody waits
    "serves-past",      \* readers behind a writer come in while others read
    "one-by-one",       \* a lock that is handed over goes to one reader only
    "limit-untold",     \* who is left, because enough readers came in at once, is not told
    "reader-keeps",     \* the release of a reader serves nobody
    "leaves-quietly",   \* the same while others read on
    "gone-quietly",     \* nobody is served when a place is given up where others read
    "writer-ignores",   \* a writer does not see the readers at a node
    "line-ignored",     \* a reader does not see the writer who is first in line, and keeps it out
    "yield-rests",      \* who has handed its nodes to nobody does not come back to them
    "over-yields" }     \* no bug: a waiter that yields claims the place that it had before

ASSUME Broken \subseteq Variants

VARIABLES
    client,     \* each client
    link,       \* what is under way from a client to a node, its places there, and what it saw
    node,       \* the key of each node
    faults      \* that have happened

vars == <<client, link, node, faults>>

Is(variant) == variant \in Broken
Clients == 1..Waiters
Reading == Readers \cap Clients
Quorum == (Cardinality(Nodes) + Lost) \div 2 + 1

(* Whose token has the key of a node. The holder at the start has released the lock, but its
   RELEASE is still under way to the nodes. Its ticket is the lowest. *)
Nothing == 0
FirstHolder == -1
FirstReads == 0 \in Readers

(* out      Begin                          -> trying  SET to all nodes
            Begin                          -> queued  WAIT to all nodes
   trying   Hold: q nodes are ours         -> held
            LoseTry: q cannot be ours      -> queued  RELEASE of the token; WAIT under a new one
            GiveUp                         -> ended   RELEASE to all nodes
   queued   Hold: q nodes are ours         -> held
            JudgeWait, WaitAgain, Look     -> queued  WAIT to all nodes
            JudgeLook: it must yield       -> queued  RELEASE, and WAIT under a new token
            GiveUp                         -> ended   RELEASE to all nodes
   held     Release                        -> ended   RELEASE to all nodes
            Downgrade                      -> reading SHARE keep to all nodes
   reading  Release                        -> ended   RELEASE to all nodes
   ended    Begin, if it comes again *)
Phases == {"out", "trying", "queued", "held", "reading", "ended"}

(* What is under way to a node. "set" is SET, or SHARE try of a reader; "share" is SHARE keep. WAIT
   is "enter" (it takes no lock that is free) or "take"; RELEASE is "release" (it hands over),
   "keep" (it hands over to nobody), "delete" (it hands over if the key has a mark), or "leave" (it
   leaves the lock free, and tells who is in line). *)
Requests == {"set", "share", "enter", "take", "release", "keep", "delete", "leave"}
Releases == {"release", "keep", "delete", "leave"}

(* What a node says in answer to a WAIT that is queued: which token has the key. A client may have
   several, one after the other: its present one ("now"), or the one of its try, or older ones. A
   reader is told of a writer that is first in line where others read ("ahead"). *)
Kinds == {"now", "try", "old", "ahead"}
Nobody == <<Nothing, "now">>        \* the lock is free
Others == <<Nothing, "ahead">>      \* others read, and nobody keeps us out
Unanswered == <<Nothing, "old">>

TypeOK ==
    /\ client \in [Clients -> [
            phase : Phases,
            slow : BOOLEAN,         \* "own-clock": its ticket is before those of right clocks
            due : SUBSET Clients,   \* who were queued on a quorum when it began: they come first
            \* The last WAIT: it takes or not; or it looks, because we had nodes. Or all answers
            \* to it were judged.
            wait : {"take", "enter", "look", "judged"},
            behind : BOOLEAN,       \* one other token had a quorum when we last judged
            \* They said that the lock is free, or will be left free so long, or that others read.
            told : SUBSET Nodes,
            returns : BOOLEAN,      \* it gave its nodes to nobody, and will come back to them
            yielded : BOOLEAN ]]    \* Tries: it has yielded, and no WAIT has taken since
    /\ link \in [Clients -> [Nodes -> [
            requests : Seq(Requests),
            place : BOOLEAN,        \* the node has the present token in its queue
            deaf : BOOLEAN,         \* it has granted it the lock, and the push was lost
            ghost : BOOLEAN,        \* it has one that was released
            late : {"none", "present", "ghost"},    \* a WAIT on an old connection, by its token
            seen : (Clients \cup {Nothing, FirstHolder}) \X Kinds ]]] \* the answer to the last WAIT
    /\ node \in [Nodes -> [
            owners : SUBSET (Clients \cup {FirstHolder}),   \* one, or all who read
            ghosts : SUBSET Clients,    \* likewise, by tokens released before they were granted
            shared : BOOLEAN,           \* they read
            tries : SUBSET Clients,     \* the owners by the token of a try
            marked : BOOLEAN,           \* "The mark": the token of a try, which has the lock alone
            left : BOOLEAN,             \* the lock is left free: no WAIT takes it
            \* Tries: a yield gave it back to nobody while others were queued, and it is free
            \* since, or a try took it.
            back : BOOLEAN ]]
    /\ faults \in [breaks : 0..Breaks, losses : 0..Losses]

Init ==
    /\ client = [c \in Clients |-> [phase |-> "out", slow |-> FALSE, due |-> {}, wait |-> "judged",
                                    behind |-> FALSE, told |-> {}, returns |-> FALSE,
                                    yielded |-> FALSE]]
    /\ link = [c \in Clients |-> [n \in Nodes |->
            [requests |-> <<>>, place |-> FALSE, deaf |-> FALSE, ghost |-> FALSE, late |-> "none",
             seen |-> Unanswered]]]
    /\ node = [n \in Nodes |->
            [owners |-> {FirstHolder}, ghosts |-> {}, shared |-> FirstReads, tries |-> {},
             marked |-> FALSE, left |-> FALSE, back |-> FALSE]]
    /\ faults = [breaks |-> 0, losses |-> 0]

---------------------------------------------------------------------------------------------------
(* What a state says. *)

(* Whether a release of an earlier token is still under way to this node. *)
IsReleasing(links, c, n) ==
    \E i \in DOMAIN links[c][n].requests : links[c][n].requests[i] \in Releases
Releasing(c, n) == IsReleasing(link, c, n)
IsIdle(c) == \A n \in Nodes : link[c][n].requests = <<>>

(* Nodes that have the present token of the client: as their key, also as far as it knows, and in
   their queue. *)
Granted(c) == {n \in Nodes : c \in node[n].owners /\ ~Releasing(c, n)}
Owned(c) == {n \in Granted(c) : ~link[c][n].deaf}
Queued(c) == {n \in Nodes : link[c][n].place /\ ~Releasing(c, n)}
HasQuorum(c) == Cardinality(Owned(c)) >= Quorum

Holds(c) == client[c].phase \in {"held", "reading"}
Reads(c) == c \in Reading \/ client[c].phase = "reading"

(* Whether the ticket of a is lower. *)
IsBefore(a, b) == IF client[a].slow # client[b].slow THEN client[a].slow ELSE a < b
Earliest(clients) == CHOOSE c \in clients : \A d \in clients \ {c} : IsBefore(c, d)

IsFree(at) == at.owners = {} /\ at.ghosts = {}

(* Who has an entry in the queue of this node, with these links. *)
Line(links, n) == {c \in Clients : links[c][n].place \/ links[c][n].ghost}

(* The token that has the key of a node; of several who read, the lowest. That of a try comes
   last. *)
Token(at, links, n) ==
    LET placed == (at.owners \ (at.tries \cup {FirstHolder})) \cup at.ghosts
        c == Earliest(IF placed = {} THEN at.tries ELSE placed)
        kind == IF placed = {} THEN "try"
                ELSE IF c \in at.ghosts \/ IsReleasing(links, c, n) THEN "old" ELSE "now"
    IN  IF FirstHolder \in at.owners THEN <<FirstHolder, "now">> ELSE <<c, kind>>

(* The answer to a client that is in line there. *)
View(at, links, n, c) ==
    LET first == Earliest(Line(links, n) \cup {c})
    IN  IF IsFree(at) THEN Nobody
        ELSE IF at.shared /\ c \in Reading
        THEN IF first \in Reading \/ Is("line-ignored") THEN Others ELSE <<first, "ahead">>
        ELSE IF at.shared /\ Is("writer-ignores") THEN Others
        ELSE Token(at, links, n)

(* What the nodes have said to a client that are not its own: in answer to its last WAIT, or if
   all of them answered now. *)
Seen(c) == [n \in Nodes |-> IF n \in Owned(c) THEN Unanswered ELSE link[c][n].seen]
SeenNow(c) == [n \in Nodes |-> IF n \in Granted(c) THEN Unanswered ELSE View(node[n], link, n, c)]

(* What a client finds there: one other token has a quorum; an earlier waiter has a node, or keeps
   this one out of it. *)
IsBehind(seen) ==
    \E n \in Nodes : /\ seen[n] \notin {Nobody, Others, Unanswered}
                     /\ seen[n][2] # "ahead"
                     /\ Cardinality({m \in Nodes : seen[m] = seen[n]}) >= Quorum
SeesAnEarlier(c, seen) ==
    \E n \in Nodes : LET of == seen[n][1]
                     IN  /\ of # Nothing /\ seen[n][2] # "try"
                         /\ IF of = FirstHolder THEN TRUE ELSE IsBefore(of, c)
Answered(c) == Cardinality(Owned(c) \cup {n \in Nodes : link[c][n].seen # Unanswered})

MustYield(c, seen) ==
    Owned(c) # {} /\ (IsBehind(seen) \/ SeesAnEarlier(c, seen)) /\ ~Is("never-yields")

(* Whether a WAIT that takes would change anything now. *)
WouldChange(c) ==
    \E n \in Nodes :
        LET at == node[n]
        IN  IF c \in at.owners THEN link[c][n].deaf
            ELSE \/ IsFree(at) /\ ~at.left
                 \/ ~link[c][n].place
                 \/ at.tries # {} /\ ~at.shared /\ ~at.marked
                 \/ at.shared /\ Earliest(Line(link, n) \cup {c}) \in Reading

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
        THEN [link[c][n] EXCEPT !.requests = @ \o requests, !.seen = Unanswered, !.deaf = FALSE,
                                !.late = IF @ = "none" THEN "none" ELSE "ghost"]
        ELSE [link[d][n] EXCEPT !.seen = IF @ = <<c, "now">> THEN <<c, "old">> ELSE @]]]

(* Who began later need not wait for this one any more. *)
Excused(c, next) ==
    [d \in Clients |-> IF d = c THEN next ELSE [client[d] EXCEPT !.due = @ \ {c}]]

(* Whoever tries first sends SET, and all others WAIT. What a waiter gave back when it yielded may
   be free until it sends a WAIT that takes. Meanwhile a try may come first. Readers are not in each
   other's way. *)
Begin(c) ==
    LET tries == c + Tries > Waiters
        due == {d \in 1..(c - 1) : /\ client[d].phase = "queued"
                                   /\ ~(tries /\ client[d].yielded)
                                   /\ ~(c \in Reading /\ d \in Reading)
                                   /\ Cardinality(Queued(d) \cup Granted(d)) >= Quorum}
    IN  /\ \/ client[c].phase = "out"
           \/ c + Again > Waiters /\ client[c].phase = "ended" /\ IsIdle(c)
        /\ c > 1 => client[c - 1].phase # "out"
        /\ \E slow \in (IF Is("own-clock") THEN BOOLEAN ELSE {FALSE}) :
                client' = [client EXCEPT ![c] =
                    [@ EXCEPT !.phase = IF tries THEN "trying" ELSE "queued", !.slow = slow,
                              !.due = due, !.wait = IF tries THEN @ ELSE "take"]]
        /\ link' = Sent(c, <<IF tries THEN "set" ELSE "take">>)
        /\ UNCHANGED <<node, faults>>

(* q nodes are ours. *)
Hold(c) ==
    /\ client[c].phase \in {"trying", "queued"}
    /\ HasQuorum(c)
    /\ client' = Excused(c, [client[c] EXCEPT !.phase = "held", !.wait = "judged",
                                             !.behind = FALSE, !.told = {},
                                             !.returns = FALSE, !.yielded = FALSE])
    /\ link' = Sent(c, <<>>)
    /\ UNCHANGED <<node, faults>>

(* So many nodes refused that the others are no quorum. *)
LoseTry(c) ==
    LET open == {n \in Nodes : c \in node[n].owners \/ link[c][n].requests # <<>>}
        wait == IF Is("enters") THEN "enter" ELSE "take"
    IN  /\ client[c].phase = "trying"
        /\ Cardinality(open) < Quorum
        /\ client' = [client EXCEPT ![c].phase = "queued", ![c].wait = wait]
        /\ link' = GivenUp(c, <<IF Is("try-keeps") THEN "keep" ELSE "release", wait>>)
        /\ UNCHANGED <<node, faults>>

(* A WAIT that a node executes while it leaves the lock free is not the look that c was told to
   take. *)
StillTold(c) == {n \in client[c].told : node[n].left /\ ~Is("told-forgets")}

(* WAIT under the present token. *)
Ask(c, request, wait) ==
    /\ client' = [client EXCEPT ![c].wait = wait, ![c].behind = FALSE, ![c].told = StillTold(c),
                                 ![c].returns = FALSE]
    /\ link' = Sent(c, <<request>>)
    /\ UNCHANGED <<node, faults>>

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
                /\ UNCHANGED <<node, faults>>

(* Somebody said that the lock is free; or it comes back to its nodes, or a refresh is due. *)
WaitAgain(c) ==
    LET wait == IF client[c].behind THEN "enter" ELSE "take"
    IN  /\ IsWaiting(c) /\ Owned(c) = {} /\ client[c].wait = "judged"
        /\ \/ \E n \in client[c].told : ~node[n].left
           \/ client[c].returns
           \/ Refreshes /\ WouldChange(c)
        /\ Ask(c, wait, wait)

(* It has nodes, but no quorum. So it looks again and again. *)
Look(c) ==
    /\ IsWaiting(c) /\ Owned(c) # {} /\ client[c].wait # "look"
    /\ IF client[c].wait = "judged" /\ ~Refreshes
       THEN WouldChange(c) \/ MustYield(c, SeenNow(c)) ELSE TRUE
    /\ Ask(c, "take", "look")

(* "Splits". Who yields is out of all queues until its WAIT is executed. If it is behind, its
   RELEASE hands over to nobody. Where an earlier waiter has a node, it hands over; but after two
   such yields in a row to nobody, too. Here that may be at any of them. Then it asks again, because
   it may be the only one who knows. Where nobody reads, it need not: that is left out. *)
JudgeLook(c) ==
    LET seen == Seen(c)
        behind == IsBehind(seen)
        few == Answered(c) < Quorum
        releases == IF behind THEN {"keep"} ELSE IF MustYield(c, seen) THEN {"keep", "release"}
                    ELSE {"release"}
        wait == IF MustYield(c, seen) THEN "enter" ELSE "take"
        returns(release) == release = "keep" /\ ~behind /\ Reading # {} /\ ~Is("yield-rests")
        next(release) == [client[c] EXCEPT !.wait = wait, !.told = StillTold(c),
                                           !.returns = returns(release), !.yielded = Tries > 0]
    IN  /\ IsWaiting(c) /\ Owned(c) # {} /\ client[c].wait = "look"
        /\ IF MustYield(c, seen) \/ (few /\ ~Is("never-yields"))
           THEN \E release \in releases :
                /\ link' = GivenUp(c, <<release, wait>>)
                /\ client' = IF Is("over-yields") THEN [client EXCEPT ![c] = next(release)]
                             ELSE Excused(c, next(release))
           ELSE /\ client' = [client EXCEPT ![c].wait = "judged", ![c].yielded = FALSE]
                /\ link' = Sent(c, <<>>)
        /\ UNCHANGED <<node, faults>>

(* Its wait is over, or was cancelled. *)
GiveUp(c) ==
    /\ GivesUp
    /\ client[c].phase \in {"trying", "queued"}
    /\ client' = Excused(c, [client[c] EXCEPT !.phase = "ended", !.wait = "judged",
                                             !.behind = FALSE, !.told = {},
                                             !.returns = FALSE, !.yielded = FALSE])
    /\ link' = GivenUp(c, <<"release">>)
    /\ UNCHANGED <<node, faults>>

(* "Beside those who do not queue": now and then the lock is left free. *)
Release(c) ==
    LET isTry == \E n \in Owned(c) : c \in node[n].tries
    IN  /\ Holds(c)
        /\ client' = [client EXCEPT ![c].phase = "ended"]
        /\ \/ link' = GivenUp(c, <<IF isTry /\ ~Reads(c) THEN "delete" ELSE "release">>)
           \/ LeavesFree /\ ~isTry /\ link' = GivenUp(c, <<"leave">>)
        /\ UNCHANGED <<node, faults>>

(* From now on it reads. *)
Downgrade(c) ==
    /\ Downgrades
    /\ client[c].phase = "held" /\ c \notin Reading
    /\ client' = [client EXCEPT ![c].phase = "reading"]
    /\ link' = Sent(c, <<"share">>)
    /\ UNCHANGED <<node, faults>>

---------------------------------------------------------------------------------------------------
(* The steps of a node. *)

(* What a script makes of a node: its key, the links, and who is told that the lock is free. *)
Made(at, links, told) == [at |-> at, links |-> links, told |-> told]

(* A step of a node, at a request of this client. Others learn by a push that they have the lock
   now, and one may be lost: then its client knows only what was answered before. Who has given up
   the token that is told something does not listen. *)
Becomes(n, of, makes) ==
    \E made \in {makes} :    \* TLC computes it once, also where it asks what is enabled
        LET hears(c) == /\ c \in made.told /\ client[c].phase = "queued" /\ Owned(c) = {}
                        /\ ~made.links[c][n].ghost /\ ~IsReleasing(made.links, c, n)
            pushed == made.at.owners \ (node[n].owners \cup {of})
        IN  /\ node' = [node EXCEPT ![n] = made.at]
            /\ client' = IF made.told = {} THEN client
                         ELSE [c \in Clients |-> [client[c] EXCEPT
                             !.told = IF hears(c) THEN @ \cup {n} ELSE @]]
            /\ \/ link' = made.links /\ UNCHANGED faults
               \/ /\ faults.losses < Losses
                  /\ \E c \in pushed :
                        link' = [made.links EXCEPT ![c][n].deaf = TRUE,
                                                   ![c][n].seen = link[c][n].seen]
                  /\ faults' = [faults EXCEPT !.losses = @ + 1]

Before(line, c) == {d \in line : IsBefore(d, c)}
FirstOf(line, count) == {c \in line : Cardinality(Before(line, c)) < count}

(* "Those who read": who is served of a line where others read, or where the first one reads; and
   who is told, because no more come in at once. *)
Fit(line) ==
    {c \in line \cap Reading : Before(line, c) \subseteq Reading \/ Is("serves-past")}
Limit == IF Is("one-by-one") THEN 1 ELSE Together
AtLimit(line) ==
    IF Is("one-by-one") \/ Is("limit-untold") THEN {}
    ELSE {c \in Fit(line) : Cardinality(Before(line, c)) = Together}

(* The node hands its key to the first in its queue. If that one reads, all readers up to the next
   writer get it. Where others read, nobody else fits. *)
Serve(at, links, n) ==
    LET line == Line(links, n)
        first == Earliest(line)
        joins == at.shared \/ first \in Reading
        served == IF joins THEN Fit(line) \cap FirstOf(line, Limit) ELSE {first}
        ghosts == {c \in served : links[c][n].ghost}
        owners == {c \in served : links[c][n].place /\ (joins \/ c \notin ghosts)}
    IN  IF line = {} THEN Made(at, links, {})
        ELSE Made([at EXCEPT !.owners = @ \cup owners, !.ghosts = @ \cup ghosts, !.shared = joins,
                             !.back = @ /\ at.shared],
                  [c \in Clients |-> [links[c] EXCEPT
                      ![n] = [@ EXCEPT !.ghost = @ /\ c \notin ghosts,
                                       !.place = @ /\ c \notin owners,
                                       !.seen = IF c \in owners THEN Unanswered ELSE @]]],
                  IF joins THEN AtLimit(line) ELSE {})

(* The key of a node when one who had it has left. *)
Left(at) ==
    IF IsFree(at) THEN [at EXCEPT !.shared = FALSE, !.marked = FALSE, !.back = FALSE] ELSE at
Without(at, c) == Left([at EXCEPT !.owners = @ \ {c}, !.tries = @ \ {c}])
WithoutGhost(at, c) == Left([at EXCEPT !.ghosts = @ \ {c}])

(* Whether one who leaves lets others in who wait. *)
Serves(at, rest) ==
    /\ at.shared => ~Is("reader-keeps")
    /\ rest.shared => ~Is("leaves-quietly")
Handed(at, rest, links, n) ==
    IF Serves(at, rest) THEN Serve(rest, links, n) ELSE Made(rest, links, {})

(* A WAIT that queues behind a try says so in the key. *)
Marked(at) == IF at.tries # {} /\ ~at.shared THEN [at EXCEPT !.marked = TRUE] ELSE at

(* The WAIT script. While the lock is left free, nobody takes it. *)
Queue(at, links, n, takes) ==
    IF takes /\ (at.shared \/ (IsFree(at) /\ ~at.left)) THEN Serve(at, links, n)
    ELSE Made(Marked(at), links, {})

(* The same, with its answer. Who has the lock is granted. *)
ExecuteWait(links, c, n, takes) ==
    LET made == Queue(node[n], [links EXCEPT ![c][n].place = TRUE], n, takes)
        counts == client[c].phase = "queued" /\ ~IsReleasing(links, c, n)
        view == View(made.at, made.links, n, c)
    IN  IF c \in node[n].owners
        THEN Made(node[n], [links EXCEPT ![c][n].deaf = FALSE], {})
        ELSE IF counts /\ c \notin made.at.owners
        THEN [made EXCEPT !.links = [@ EXCEPT ![c][n].seen = view]]
        ELSE made

(* SET; and SHARE try, which joins others who read, if nobody waits. *)
ExecuteTry(links, c, n) ==
    LET at == node[n]
        joins == c \in Reading /\ (at.shared \/ IsFree(at))
                 /\ (Line(links, n) = {} \/ (Is("try-joins") /\ at.shared))
        sets == c \notin Reading /\ IsFree(at)
    IN  Made(IF joins \/ sets
             THEN [at EXCEPT !.owners = @ \cup {c}, !.tries = @ \cup {c}, !.shared = joins] ELSE at,
             links, {})

(* SHARE keep of a downgrade: the string becomes an entry, and who reads comes in. *)
ExecuteShare(links, c, n) ==
    LET at == node[n]
    IN  IF c \in at.owners /\ ~at.shared
        THEN Serve([at EXCEPT !.shared = TRUE, !.marked = FALSE], links, n)
        ELSE Made(at, links, {})

(* The RELEASE script: leaves the queue; hands over or deletes the key if it is ours, or leaves it
   free. Where we leave the queue, and the key is free, we may be the only one who knew; and where
   others read, we may have kept those out who read behind us. *)
ExecuteRelease(links, c, n, release) ==
    LET at == node[n]
        rest == Without(at, c)
        stays == Is("stays-queued")
        gone == IF stays THEN links ELSE [links EXCEPT ![c][n].place = FALSE]
        line == Line(gone, n)
        isLeft == release = "leave" /\ line # {} /\ ~rest.shared
        hands == release = "release" \/ (release = "delete" /\ at.marked)
                 \/ (release = "leave" /\ ~isLeft)
        isBack == Tries > 0 /\ release = "keep" /\ c \notin at.tries /\ line # {}
                  /\ IsFree(rest)
        leaves == links[c][n].place /\ ~stays
    IN  IF c \in at.owners
        THEN IF hands THEN Handed(at, rest, gone, n)
             ELSE Made([rest EXCEPT !.left = isLeft \/ @, !.back = isBack \/ @], gone,
                       IF isLeft /\ ~Is("left-untold") THEN FirstOf(line, Told) ELSE {})
        ELSE IF leaves /\ at.shared /\ release # "keep" /\ ~Is("gone-quietly")
        THEN Serve(at, gone, n)
        ELSE Made(at, gone,
                  IF leaves /\ IsFree(at) /\ ~Is("gone-untold") THEN FirstOf(line, Told) ELSE {})

(* The time is over for which the lock was left free. *)
EndLeft(n) ==
    /\ node[n].left
    /\ node' = [node EXCEPT ![n].left = FALSE]
    /\ UNCHANGED <<client, link, faults>>

Execute(c, n) ==
    LET requests == link[c][n].requests
        request == Head(requests)
        links == [link EXCEPT ![c][n].requests = Tail(requests)]
    IN  /\ requests # <<>>
        /\ Becomes(n, c, CASE request = "set" -> ExecuteTry(links, c, n)
                           [] request = "share" -> ExecuteShare(links, c, n)
                           [] request = "enter" -> ExecuteWait(links, c, n, FALSE)
                           [] request = "take" -> ExecuteWait(links, c, n, TRUE)
                           [] OTHER -> ExecuteRelease(links, c, n, request))

(* The RELEASE of the holder at the start. *)
FirstRelease(n) ==
    /\ FirstHolder \in node[n].owners
    /\ Becomes(n, FirstHolder, Handed(node[n], Without(node[n], FirstHolder), link, n))

(* A connection breaks when a WAIT is next on it: the node may execute that at any later time.
   The client sends what comes after it on a new connection. *)
Break(c, n) ==
    LET requests == link[c][n].requests
        after == Tail(requests)
        released == \E i \in DOMAIN after : after[i] \in Releases
    IN  /\ faults.breaks < Breaks
        /\ requests # <<>>
        /\ Head(requests) = "take"
        /\ link[c][n].late = "none"
        /\ faults' = [faults EXCEPT !.breaks = @ + 1]
        /\ link' = [link EXCEPT ![c][n].requests = after,
                                ![c][n].late = IF released THEN "ghost" ELSE "present"]
        /\ UNCHANGED <<client, node>>

ExecuteLate(c, n) ==
    LET released == link[c][n].late = "ghost" /\ ~Releasing(c, n)
        links == [link EXCEPT ![c][n].late = "none"]
        queued == [links EXCEPT ![c][n].ghost = TRUE]
        waited == ExecuteWait(links, c, n, TRUE)
    IN  /\ link[c][n].late # "none"
        /\ Becomes(n, c, IF released THEN Queue(node[n], queued, n, TRUE)
                         \* its answer goes to a closed connection
                         ELSE [waited EXCEPT !.links = [@ EXCEPT
                                   ![c][n].seen = IF c \in waited.at.owners THEN @
                                                  ELSE link[c][n].seen]])

(* "Waiting in a queue", step 4: the RELEASE that answers a push for a token that its client has
   given up, or that the client still owes the node (R9). *)
ReleaseGhost(n) ==
    /\ ~Is("push-unanswered")
    /\ \E c \in node[n].ghosts :
            Becomes(n, c, Handed(node[n], WithoutGhost(node[n], c), link, n))

GoOn(c) ==
    \/ Hold(c) \/ LoseTry(c) \/ Release(c)
    \/ JudgeWait(c) \/ WaitAgain(c) \/ Look(c) \/ JudgeLook(c)
ClientStep(c) == Begin(c) \/ GoOn(c) \/ Downgrade(c) \/ GiveUp(c)
NodeStep(n) == FirstRelease(n) \/ ReleaseGhost(n) \/ EndLeft(n)

Next ==
    \/ \E c \in Clients : ClientStep(c)
    \/ \E n \in Nodes : NodeStep(n)
    \/ \E c \in Clients, n \in Nodes : Execute(c, n) \/ ExecuteLate(c, n) \/ Break(c, n)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------------------------------
(* What must hold. *)

Exclusion == \A c, d \in Clients : Holds(c) /\ Holds(d) /\ c # d => Reads(c) /\ Reads(d)

(* No client holds the lock that began when an earlier one had its place on a quorum (in the
   queue, or the key itself) and has not yielded since, unless both read. A try may, while the lock
   is left free, or with nodes that somebody gave back who yielded. It has no more others than a
   quorum leaves out: on none of them did the earlier one have its place. *)
InTheOrder == \A c \in Clients : Holds(c) =>
    \/ client[c].due = {}
    \/ Cardinality({n \in Owned(c) : ~node[n].back \/ c \notin node[n].tries})
            <= Cardinality(Nodes) - Quorum

(* No token is in the queue of a node that has executed its RELEASE, unless a WAIT on an old
   connection put it there. A present token is new when a RELEASE was sent before it. *)
LeavesTheQueue == [][\A c \in Clients, n \in Nodes :
    /\ link[c][n].requests # <<>>
    /\ Head(link[c][n].requests) \in Releases
    /\ link'[c][n].requests = Tail(link[c][n].requests)
    => ~link'[c][n].place]_vars

(* "Shared locks", "Wake-up": after a RELEASE that hands over where others read, the first in line
   does not fit, unless as many came in as may at once. *)
WakesUp == [][\A c \in Clients, n \in Nodes :
    /\ node'[n].shared /\ Cardinality(Reading) <= Together
    /\ link[c][n].requests # <<>> /\ Head(link[c][n].requests) = "release"
    /\ link'[c][n].requests = Tail(link[c][n].requests)
    /\ c \in node[n].owners \/ link[c][n].place
    => {d \in Clients : link'[d][n].place} \cap Fit(Line(link', n)) = {}]_vars

(* Clients wait, and nothing is under way that could end that. Nobody need begin. *)
Waiting == {c \in Clients : client[c].phase \notin {"out", "ended"} \/ ~IsIdle(c)}
NothingUnderWay ==
    /\ \A c \in Clients, n \in Nodes : link[c][n].late = "none"
    /\ \A n \in Nodes : /\ FirstHolder \notin node[n].owners /\ ~node[n].left
                        /\ node[n].ghosts # {} => Is("push-unanswered")
Rests(c) ==
    /\ IsWaiting(c)
    /\ IF Owned(c) = {}
       THEN /\ client[c].wait = "judged" /\ client[c].told = {} /\ ~client[c].returns
            /\ ~(Refreshes /\ WouldChange(c))
       ELSE ~WouldChange(c) /\ ~MustYield(c, SeenNow(c))
NeverStuck == ~(Waiting # {} /\ NothingUnderWay /\ \A c \in Waiting : Rests(c))

(* "Those who read": nobody waits for a lock that a quorum of nodes would let it read, if nothing is
   under way. *)
Lets(n, c) == c \in node[n].owners \/ (node[n].shared /\ c \in Fit(Line(link, n)))
JoinsOthers ==
    /\ NothingUnderWay
    /\ \A c \in Clients : IsIdle(c) /\ (client[c].phase = "queued" => Rests(c))
    => \A c \in Reading : client[c].phase = "queued" =>
            Cardinality({n \in Nodes : Lets(n, c)}) < Quorum

---------------------------------------------------------------------------------------------------
(* What happens in the end, if messages arrive and clients go on. A connection need not break,
   nobody need begin, and nobody need give up.

   A step that can be taken cannot be taken for ever. That is weak fairness of these steps, as
   none of them goes on for ever without a pause: a client that has asked waits for all nodes, and
   so does one that comes again; whatever else it sends, it sends once. TLC checks it in less
   time. *)

(* When a step of a node is enabled, which TLC takes long to find out by itself. *)
NodeMay(n) == \/ FirstHolder \in node[n].owners \/ node[n].left
              \/ node[n].ghosts # {} /\ ~Is("push-unanswered")

FairSpec ==
    /\ Spec
    /\ \A c \in Clients : []<>~ENABLED GoOn(c)
    /\ \A n \in Nodes : []<>~NodeMay(n)
    /\ \A c \in Clients, n \in Nodes :
            []<>(link[c][n].requests = <<>>) /\ []<>(link[c][n].late = "none")

(* Whoever waits is served in the end, or gives up: also a writer while readers keep coming, and the
   other way round. So a split ends, and yields do not go on for ever. *)
Served == \A c \in Clients :
    client[c].phase \in {"trying", "queued"} ~> client[c].phase \in {"held", "ended"}

===================================================================================================
