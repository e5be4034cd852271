------------------------------------------ MODULE Bundle ------------------------------------------
(* Several resources in one lease: docs/protocols.md, "Bundles". That each resource has one holder
   and serves its queue by tickets is what Queue.tla and Order.tla are about. So a resource is one
   place here: a holder and a queue. README.md says what is left out.

   A resource executes the requests of a client in the order in which they were sent, at any time.
   Its answers, and the grants of its queue, are heard at any time. *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS
    Wants,      \* for each client, the sequence of its items as its caller names them
    Rounds,     \* how often each client acquires them
    Losses,     \* how often an item of a client is lost, in all
    GiveUps,    \* whether clients give up
    Broken      \* the variants that are switched on: {} is the protocol

Variants == {
    "unsorted",         \* the order is the caller's
    "keeps-all",        \* who waits for one keeps what comes after it, too
    "keeps-nothing",    \* who waits for one keeps nothing
    "leaves-prefix",    \* who gives up keeps what it has
    "loss-counts" }     \* an item that was lost is still counted

ASSUME Broken \subseteq Variants

VARIABLES
    client,     \* what each client knows and wants
    sent,       \* to each resource by each client, and not executed
    said,       \* by each resource to each client, and not heard
    resource,   \* who has it, and who is in its queue
    clock,      \* gives the tickets
    losses      \* that have happened

vars == <<client, sent, said, resource, clock, losses>>

Is(variant) == variant \in Broken
Clients == 1..Len(Wants)
Items(c) == {Wants[c][i] : i \in 1..Len(Wants[c])}
Resources == UNION {Items(c) : c \in Clients}
None == 0
Place(c, r) == CHOOSE i \in 1..Len(Wants[c]) : Wants[c][i] = r
Before(c, r, s) == IF Is("unsorted") THEN Place(c, r) < Place(c, s) ELSE r < s
First(c, set) == CHOOSE r \in set : \A s \in set \ {r} : Before(c, r, s)
Missing(c) == Items(c) \ client[c].held
After(c, f) == {r \in Items(c) : Before(c, f, r)}

TypeOK ==
    /\ client \in [Clients -> [
            state : {"idle", "trying", "waiting", "held"},
            held : SUBSET Resources,
            asked : SUBSET Resources,   \* these have not answered
            ticket : Nat, rounds : 0..Rounds,
            waits : Nat ]]              \* in this round
    /\ sent \in [Clients -> [Resources -> Seq({"try", "wait", "release"})]]
    /\ said \in [Clients -> [Resources -> {"nothing", "won", "denied"}]]
    /\ resource \in [Resources -> [holder : Clients \cup {None}, queue : SUBSET Clients]]
    /\ losses \in 0..Losses

Init ==
    /\ client = [c \in Clients |-> [state |-> "idle", held |-> {}, asked |-> {}, ticket |-> 0,
                                    rounds |-> 0, waits |-> 0]]
    /\ sent = [c \in Clients |-> [r \in Resources |-> <<>>]]
    /\ said = [c \in Clients |-> [r \in Resources |-> "nothing"]]
    /\ resource = [r \in Resources |-> [holder |-> None, queue |-> {}]]
    /\ clock = 1 /\ losses = 0

(* --- what a client does --- *)

Send(c, set, what) ==
    [sent EXCEPT ![c] = [r \in Resources |-> IF r \in set THEN Append(@[r], what) ELSE @[r]]]

(* The same with releases before it. *)
SendAlso(c, released, set, what) ==
    [sent EXCEPT ![c] = [r \in Resources |-> IF r \in released THEN Append(@[r], "release")
                                             ELSE IF r \in set THEN Append(@[r], what) ELSE @[r]]]

Begin(c) ==
    /\ client[c].state = "idle" /\ client[c].rounds < Rounds
    /\ \A r \in Resources : sent[c][r] = <<>>       \* of its last round
    /\ client' = [client EXCEPT ![c] = [state |-> "trying", held |-> {}, asked |-> Items(c),
                                        ticket |-> clock, rounds |-> @.rounds + 1, waits |-> 0]]
    /\ sent' = Send(c, Items(c), "try")
    /\ clock' = clock + 1
    /\ UNCHANGED <<said, resource, losses>>

(* The client has this of its items, and every request was answered: steps 1 to 3. *)
GoOn(c, held) ==
    LET missing == Items(c) \ held
        f == First(c, missing)
        dropped == IF Is("keeps-all") THEN {}
                   ELSE IF Is("keeps-nothing") THEN held ELSE held \cap After(c, f)
    IN IF missing = {}
       THEN /\ client' = [client EXCEPT ![c].state = "held", ![c].held = held, ![c].asked = {}]
            /\ sent' = sent
       ELSE /\ client' = [client EXCEPT ![c].state = "waiting", ![c].held = held \ dropped,
                                        ![c].asked = {f}, ![c].waits = @ + 1]
            /\ sent' = SendAlso(c, dropped, {f}, "wait")

HearTry(c, r) ==
    /\ client[c].state = "trying"
    /\ LET held == IF said[c][r] = "won" THEN client[c].held \cup {r} ELSE client[c].held
           asked == client[c].asked \ {r}
       IN IF asked = {} THEN GoOn(c, held)
          ELSE /\ client' = [client EXCEPT ![c].held = held, ![c].asked = asked]
               /\ sent' = sent

(* Step 3: what is granted is kept, and the rest is tried. *)
HearGrant(c, r) ==
    /\ client[c].state = "waiting"
    /\ LET held == client[c].held \cup {r}
           missing == Items(c) \ held
       IN IF missing = {} THEN GoOn(c, held)
          ELSE /\ client' = [client EXCEPT ![c].state = "trying", ![c].held = held,
                                           ![c].asked = missing]
               /\ sent' = Send(c, missing, "try")

Hear(c, r) ==
    /\ said[c][r] # "nothing" /\ r \in client[c].asked
    /\ HearTry(c, r) \/ HearGrant(c, r)
    /\ said' = [said EXCEPT ![c][r] = "nothing"]
    /\ UNCHANGED <<resource, clock, losses>>

(* Gives these up, with what may still be granted. What is heard of them later is stale. *)
Leave(c, set) ==
    /\ sent' = Send(c, set, "release")
    /\ said' = [said EXCEPT ![c] = [r \in Resources |-> IF r \in set THEN "nothing" ELSE @[r]]]

(* Step 4. The place for the item that was waited for is given up. *)
Lose(c, r) ==
    /\ r \in client[c].held /\ losses < Losses
    /\ losses' = losses + 1
    /\ IF Is("loss-counts")
       THEN /\ client' = client
            /\ said' = said
            /\ sent' = Send(c, {r}, "release")
       ELSE CASE client[c].state = "held" ->
                   /\ client' = [client EXCEPT ![c].state = "idle", ![c].held = {}]
                   /\ Leave(c, Items(c))
              [] client[c].state = "trying" ->
                   /\ client' = [client EXCEPT ![c].held = @ \ {r}]
                   /\ Leave(c, {r})
              [] client[c].state = "waiting" ->
                   LET given == client[c].asked \cup {r} \cup (client[c].held \cap After(c, r))
                       held == client[c].held \ given
                   IN /\ client' = [client EXCEPT ![c].held = held, ![c].asked = {r},
                                                  ![c].waits = @ + 1]
                      /\ said' = [said EXCEPT ![c] = [s \in Resources |-> IF s \in given
                                                      THEN "nothing" ELSE @[s]]]
                      /\ sent' = [sent EXCEPT ![c] = [s \in Resources |->
                                      IF s = r THEN @[s] \o <<"release", "wait">>
                                      ELSE IF s \in given THEN Append(@[s], "release") ELSE @[s]]]
              [] OTHER -> FALSE
    /\ UNCHANGED <<resource, clock>>

Finish(c) ==
    /\ client[c].state = "held"
    /\ client' = [client EXCEPT ![c].state = "idle", ![c].held = {}]
    /\ Leave(c, Items(c))
    /\ UNCHANGED <<resource, clock, losses>>

GiveUp(c) ==
    /\ GiveUps /\ client[c].state \in {"trying", "waiting"}
    /\ client' = [client EXCEPT ![c].state = "idle", ![c].held = {}, ![c].asked = {}]
    /\ Leave(c, IF Is("leaves-prefix") THEN client[c].asked ELSE client[c].asked \cup client[c].held)
    /\ UNCHANGED <<resource, clock, losses>>

(* --- what a resource does --- *)

(* The lowest ticket. *)
LowestIn(queue) ==
    CHOOSE c \in queue : \A d \in queue \ {c} : client[c].ticket < client[d].ticket

(* Of a request that was given up, nobody hears an answer: a release follows it, which gives back
   what it is granted. `left` is what this client's requests are without the one that is
   executed. *)
Says(c, r, what, left) ==
    IF \E i \in 1..Len(left) : left[i] = "release" THEN said
    ELSE [said EXCEPT ![c][r] = what]

(* To the first in the queue, or to nobody. *)
Hand(r, queue) ==
    IF queue = {}
    THEN /\ resource' = [resource EXCEPT ![r] = [holder |-> None, queue |-> {}]]
         /\ said' = said
    ELSE LET c == LowestIn(queue)
         IN /\ resource' = [resource EXCEPT ![r] = [holder |-> c, queue |-> queue \ {c}]]
            /\ said' = Says(c, r, "won", sent'[c][r])

Execute(c, r) ==
    /\ sent[c][r] # <<>>
    /\ sent' = [sent EXCEPT ![c][r] = Tail(@)]
    /\ LET free == resource[r].holder = None
       IN CASE Head(sent[c][r]) = "try" ->
                /\ resource' = [resource EXCEPT ![r].holder = IF free THEN c ELSE @]
                /\ said' = Says(c, r, IF free THEN "won" ELSE "denied", Tail(sent[c][r]))
            [] Head(sent[c][r]) = "wait" /\ free -> Hand(r, resource[r].queue \cup {c})
            [] Head(sent[c][r]) = "wait" /\ ~free ->
                /\ resource' = [resource EXCEPT ![r].queue = @ \cup {c}]
                /\ said' = said
            [] Head(sent[c][r]) = "release" /\ resource[r].holder = c ->
                Hand(r, resource[r].queue \ {c})
            [] OTHER ->
                /\ resource' = [resource EXCEPT ![r].queue = @ \ {c}]
                /\ said' = said
    /\ UNCHANGED <<client, clock, losses>>

Next ==
    \/ \E c \in Clients : Begin(c) \/ Finish(c) \/ GiveUp(c)
    \/ \E c \in Clients, r \in Resources : Hear(c, r) \/ Lose(c, r) \/ Execute(c, r)

Spec == Init /\ [][Next]_vars

(* --- what must hold --- *)

Holds(c) == client[c].state = "held"
Asks(c) == client[c].state \in {"trying", "waiting"}

(* No two hold an item, and who holds its items has them. *)
Exclusion ==
    /\ \A c, d \in Clients : c # d /\ Holds(c) /\ Holds(d) => Items(c) \cap Items(d) = {}
    /\ \A c \in Clients : \A r \in client[c].held : resource[r].holder = c

(* Who waits for one holds what comes before it, and no other. *)
Prefix ==
    \A c \in Clients : client[c].state = "waiting" =>
        \A f \in client[c].asked, r \in client[c].held : r < f

(* Somebody holds, or something is under way. *)
NeverStuck ==
    (\E c \in Clients : Asks(c)) =>
        \/ \E c \in Clients : Holds(c)
        \/ \E c \in Clients, r \in Resources :
              sent[c][r] # <<>> \/ (said[c][r] # "nothing" /\ r \in client[c].asked)

(* Each wait ends with a grant that is kept. A loss may cost what comes after the lost item. *)
FewWaits == \A c \in Clients : client[c].waits <= Cardinality(Items(c)) * (losses + 1)

LeavesNothing ==
    \A c \in Clients, r \in Resources :
        client[c].state = "idle" /\ sent[c][r] = <<>> =>
            resource[r].holder # c /\ c \notin resource[r].queue

Served == \A c \in Clients : Asks(c) ~> ~Asks(c)

FairSpec ==
    /\ Spec
    /\ \A c \in Clients : WF_vars(Finish(c))
    /\ \A c \in Clients, r \in Resources : WF_vars(Hear(c, r)) /\ WF_vars(Execute(c, r))

===================================================================================================
