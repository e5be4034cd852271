----------------------------------------- MODULE MCBundle -----------------------------------------
(* Bundle.tla for TLC: the setups, and what a good search must meet. *)
EXTENDS Bundle, Goals

(* Each client names its items in some order. *)
Opposite == << <<1, 2>>, <<2, 1>>, <<2>> >>
Circle == << <<1, 2>>, <<2, 3>>, <<3, 1>> >>
Nested == << <<1, 2, 3>>, <<3, 1>>, <<2>> >>
Crowd == << <<1, 2>>, <<2, 1>>, <<1>>, <<2>> >>

ASSUME Expect(
    {"two waits in one round", "kept while another one waits", "released because of an earlier one"}
    \cup (IF Losses > 0 THEN {"lost while it waits"} ELSE {})
    \cup (IF GiveUps THEN {"gave up with a prefix"} ELSE {}))

MeetGoals ==
    /\ Meets(1, "two waits in one round", \E c \in Clients : client'[c].waits = 2)
    /\ Meets(2, "kept while another one waits",
             \E c, d \in Clients : /\ client[c].state = "waiting" /\ client[d].state = "waiting"
                                   /\ client[c].held \cap client[d].asked # {})
    /\ Meets(3, "released because of an earlier one",
             \E c \in Clients : /\ client[c].state = "trying" /\ client'[c].state = "waiting"
                                 /\ client[c].held \ client'[c].held # {})
    /\ Meets(4, "lost while it waits",
             \E c \in Clients, r \in Resources : client[c].state = "waiting" /\ Lose(c, r))
    /\ Meets(5, "gave up with a prefix",
             \E c \in Clients : client[c].held # {} /\ GiveUp(c))

===================================================================================================
