------------------------------------------- MODULE Trace -------------------------------------------
(* Whether what the simulator did is a behaviour of Lock.tla. README.md, "Traces of the simulator",
   says what each step of a trace stands for.

   A trace has what clients send and decide, and what changes keys, each with its tick. What it
   leaves out comes here right before the step that needs it: a tick, the end of a key, a release
   that a node executes, a round that is won. So a trace has one behaviour at most. Where Lock.tla
   has no step for the next one of a trace, nothing more can happen: TLC reports a deadlock, and
   the trace is refused. *)
EXTENDS Lock, Sequences, TraceData

VARIABLES
    trace,  \* which of Traces: [seed |-> of its schedule, steps |-> <<<<tick, what, c, n>>, ...>>]
    at,     \* its next step
    now     \* in ticks, from the beginning of the trace

traceVars == <<vars, trace, at, now>>

Steps == Traces[trace].steps

Nothing == UNCHANGED vars
(* The next step of the trace is this one. *)
This(step) == step /\ at' = at + 1
(* This comes first. *)
Before(step) == step /\ UNCHANGED at

(* An attempt with too few nodes that may vote: Lock.tla does not begin it, the library does. *)
IsHopeless(c) == Cardinality({n \in Asks(c) : client[c].sees[n] = 0}) < Quorum(c)

SeeBegin(c) ==
    IF client[c].phase # "idle" THEN Before(GiveUp(c))
    ELSE IF IsHopeless(c) THEN This(Nothing)
    ELSE This(Begin(c))

(* The key of a client that is idle here is one that is left behind: it keeps others out. *)
SeeSet(c, n) ==
    IF client[c].phase = "idle" THEN This(Nothing)
    ELSE IF node[n].owner = LeftBehind THEN Before(ExecuteRelease(n))
    ELSE IF node[n].owner # Free THEN Before(EndEarly(n))
    ELSE This(ExecuteSet(c, n))

SeeExtend(c) ==
    IF client[c].phase = "extending" THEN Before(GiveUpExtension(c)) ELSE This(Extend(c))

SeeExtended(c, n) ==
    IF client[c].phase = "idle" THEN This(Nothing)
    ELSE This(node[n].owner = c /\ ExecuteExtend(c, n))

SeeHeal(c, n) ==
    IF n \in client[c].sent THEN This(Nothing) ELSE This(Heal(c, {n}))

(* A round is won. The client says that it will hold the lock at this tick. *)
SeeHolds(c, tick) ==
    IF client[c].phase \in {"acquiring", "extending"} THEN Before(Win(c))
    ELSE This(client[c].phase = "held" /\ client[c].left > tick - now /\ Nothing)

SeeGiveUp(c) == IF client[c].phase = "idle" THEN This(Nothing) ELSE This(GiveUp(c))

See(what, c, n) ==
    CASE what = "begin" -> SeeBegin(c)
      [] what = "set" -> SeeSet(c, n)
      [] what = "extend" -> SeeExtend(c)
      [] what = "extended" -> SeeExtended(c, n)
      [] what = "heal" -> SeeHeal(c, n)
      [] what = "holds" -> SeeHolds(c, n)
      [] what = "give up" -> SeeGiveUp(c)
      [] what = "restart" -> This(Restart(n))
      [] what = "connect" -> This(Connect(c, n))
      [] what = "end" -> This(Nothing)

TraceInit ==
    /\ Init
    /\ trace \in DOMAIN Traces
    /\ at = 1
    /\ now = 0

IsAccepted == at > Len(Steps)

TraceNext ==
    /\ UNCHANGED trace
    /\ IF IsAccepted THEN UNCHANGED <<vars, at, now>>
       ELSE LET step == Steps[at]
            IN  IF step[1] > now THEN Before(Tick) /\ now' = now + 1
                ELSE See(step[2], step[3], step[4]) /\ UNCHANGED now

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

===================================================================================================
