------------------------------------------ MODULE MCTrace ------------------------------------------
(* Trace.tla for TLC: the setup of the simulator's clients, and what good traces must meet.
   trace.sh makes TraceData. *)
EXTENDS Trace, Goals

Five == [c \in Clients |-> [nodes |-> Nodes, quorum |-> 3]]

ASSUME Expect({
    "acquired", "extended", "heal that sets a key", "key set after the acquire was decided",
    "attempt that another one's keys keep out", "lost at the deadline",
    "restart that forgot the key of a lease", "attempt without a node in quarantine",
    "key whose ttl was over"})

IsNext(what) == ~IsAccepted /\ Steps[at][1] <= now /\ Steps[at][2] = what

MeetGoals ==
    /\ Meets(1, "acquired",
             \E c \in Clients : client[c].phase = "acquiring" /\ client'[c].phase = "held")
    /\ Meets(2, "extended",
             \E c \in Clients : client[c].phase = "extending" /\ client'[c].left > client[c].left)
    /\ Meets(3, "heal that sets a key",
             IsNext("heal") /\ \E c \in Clients : client'[c].sent # client[c].sent)
    /\ Meets(4, "key set after the acquire was decided",
             \E c \in Clients, n \in Nodes : Holds(c) /\ node[n].owner = Free /\ node'[n].owner = c)
    /\ Meets(5, "attempt that another one's keys keep out",
             IsNext("give up") /\ \E c, d \in Clients :
                client[c].phase = "acquiring" /\ client'[c].phase = "idle" /\ Holds(d))
    /\ Meets(6, "lost at the deadline",
             \E c \in Clients : Holds(c) /\ now' > now /\ client'[c].phase = "idle")
    /\ Meets(7, "restart that forgot the key of a lease",
             IsNext("restart") /\ \E c \in Clients, n \in Nodes :
                Holds(c) /\ node[n].owner = c /\ node'[n].owner = Free)
    /\ Meets(8, "attempt without a node in quarantine",
             \E c \in Clients : client[c].phase = "idle" /\ client'[c].phase = "acquiring"
                                /\ \E n \in Nodes : client[c].sees[n] > 0)
    /\ Meets(9, "key whose ttl was over",
             IsNext("set") /\ \E n \in Nodes : node[n].owner \in Clients /\ node'[n].owner = Free)

===================================================================================================
