# The schedule: contenders take turns, faults rotate, and the plan of each mode keeps its bound.
import itertools
import unittest

from . import contest
from .schedule import (
    ALONE,
    ASYNC,
    CORE,
    EXCLUSIVE,
    FAR,
    FAULTS,
    FAULTS_LINK_US,
    FLOOR,
    FLOOR_SEALED,
    FLOOR_TLS,
    FULL,
    HANDOVER,
    HANDOVERS,
    LETTERS,
    NODES,
    OURS,
    QUICK,
    SECURED,
    SHARED,
    SLOW_US,
    TLS,
    TOOL,
    Planner,
    Workload,
    healthy_point,
)

EIGHT = [f"peer{number}" for number in range(8)]


def workload(
    letter: str, *, quick: bool = False, peers: list[str] | None = None, without: tuple[str, ...] = ()
) -> Workload:
    planner = Planner(QUICK if quick else FULL, EIGHT if peers is None else peers, without)
    return next(made for made in planner.workloads(LETTERS) if made.letter == letter)


class Plan(unittest.TestCase):
    def test_each_mode_keeps_its_bound_with_eight_peers(self) -> None:
        for mode in (QUICK, FULL):
            with self.subTest(mode=mode.name):
                planned = sum(made.seconds for made in Planner(mode, EIGHT).workloads(LETTERS))
                plan = contest.PLANS[mode.name]
                planned += plan.seconds + len(EIGHT) * plan.peer_seconds()
                self.assertLess(planned, 0.95 * mode.bound_seconds)

    def test_only_what_is_asked_for(self) -> None:
        made = Planner(QUICK, []).workloads(["c", "a", TOOL])
        self.assertEqual([one.letter for one in made], ["warm-up", "c", "a"])

    def test_warm_up_is_not_recorded(self) -> None:
        steps = [step for stage in workload("warm-up").rounds[0] for step in stage.steps]
        self.assertEqual({step.contender for step in steps}, {*CORE, *EIGHT})
        self.assertFalse(any(step.recorded for step in steps))

    def test_a_contender_that_does_not_start_has_no_steps(self) -> None:
        for stages in workload("b", without=(FLOOR,)).rounds:
            self.assertNotIn(FLOOR, {step.contender for stage in stages for step in stage.steps})

    def test_every_answer_has_a_bound_beyond_its_slice(self) -> None:
        for mode in (QUICK, FULL):
            for made in Planner(mode, EIGHT).workloads(LETTERS):
                for step in (step for stages in made.rounds for stage in stages for step in stage.steps):
                    self.assertGreater(step.bound_seconds, step.ms / 1000)


class Turns(unittest.TestCase):
    def test_each_round_has_everybody_once_in_the_same_order(self) -> None:
        made = workload("a")
        for stages in made.rounds[-FULL.sizes["a"].peer_rounds :]:
            self.assertEqual([step.contender for step in stages[0].steps], [*ALONE, *EIGHT])
        self.assertEqual([step.contender for step in made.rounds[0][0].steps], list(ALONE))

    def test_at_each_concurrency_ours_is_next_to_the_floor(self) -> None:
        steps = workload("b").rounds[0][0].steps
        for position, step in enumerate(steps):
            if step.contender == ASYNC:
                near = steps[max(position - 2, 0) : position]
                self.assertIn((FLOOR, step.point), [(one.contender, one.point) for one in near])

    def test_tls_comes_right_after_the_same_without(self) -> None:
        for letter in ("a", "b"):
            steps = workload(letter).rounds[0][0].steps
            for before, step in itertools.pairwise(steps):
                if step.contender == TLS:
                    self.assertEqual((before.contender, before.point), (ASYNC, step.point))
        first = [step.contender for step in workload("a").rounds[0][0].steps][:3]
        self.assertEqual(first, [FLOOR_SEALED, FLOOR_TLS, FLOOR])
        for letter, wanted in (("b", {TLS}), ("g", set())):
            steps = workload(letter).rounds[0][0].steps
            self.assertEqual({step.contender for step in steps} & {*SECURED}, wanted)


class Faults(unittest.TestCase):
    def test_healthy_nodes_come_right_before_each_fault(self) -> None:
        for stages in workload("c").rounds:
            for before, after, fault in zip(stages[::2], stages[1::2], FAULTS, strict=True):
                self.assertFalse(before.dead or before.hung or any(delay_us for _, delay_us in before.delayed))
                self.assertTrue(after.disturbs)
                self.assertEqual({step.point for step in before.steps}, {healthy_point(fault)})
                self.assertEqual({step.point for step in after.steps}, {fault})
                self.assertLessEqual(set(OURS), {step.contender for step in before.steps})

    def test_never_the_quorum_and_every_node_once(self) -> None:
        made = workload("c")
        for position, fault in enumerate(FAULTS):
            hit: set[int] = set()
            for stages in made.rounds:
                stage = stages[2 * position + 1]
                nodes = {*stage.dead, *stage.hung, *(node for node, _ in stage.delayed)}
                self.assertEqual(len(nodes), int(fault[-1]))
                self.assertLess(len(nodes), NODES / 2)
                hit |= nodes
            self.assertEqual(hit, set(range(NODES)))

    def test_at_a_distance_all_nodes_are_behind_the_proxy_before_and_after(self) -> None:
        for stages in workload("h").rounds:
            for before, after, fault in zip(stages[::2], stages[1::2], FAULTS, strict=True):
                self.assertEqual(dict(before.delayed), dict.fromkeys(range(NODES), FAULTS_LINK_US))
                slowed = sum(delay_us == FAULTS_LINK_US + SLOW_US for _, delay_us in after.delayed)
                self.assertEqual(slowed, int(fault[-1]) if fault.startswith("slow") else 0)
                self.assertEqual(len(after.delayed), NODES)


class Fencing(unittest.TestCase):
    def test_the_last_rounds_have_handovers_and_links_too(self) -> None:
        for quick in (False, True):
            rounds = workload("i", quick=quick).rounds
            self.assertEqual(len(rounds[0]), 1)
            near, far = rounds[-1]
            self.assertEqual({step.point for step in near.steps if step.contender == HANDOVER}, set(HANDOVERS))
            self.assertEqual([node for node, _ in far.delayed], list(range(NODES)))
            self.assertEqual([step.point for step in far.steps], [FAR])


class Readers(unittest.TestCase):
    def test_each_mode_has_the_same_crowd_one_after_the_other(self) -> None:
        near, far = workload("j").rounds[0]
        crowds = [step.command.split() for step in near.steps[1:]]
        for exclusive, shared in zip(crowds[::2], crowds[1::2], strict=True):
            self.assertEqual((exclusive[-1], shared[-1]), (EXCLUSIVE, SHARED))
            self.assertEqual(exclusive[:-1], shared[:-1])
        self.assertEqual([node for node, _ in far.delayed], list(range(NODES)))


class Links(unittest.TestCase):
    def test_every_node_is_behind_the_proxy(self) -> None:
        for stage in workload("g").rounds[0]:
            self.assertEqual([node for node, _ in stage.delayed], list(range(NODES)))
            self.assertEqual(
                {str(round_trip // 1000) for _, round_trip in stage.delayed}, {step.point for step in stage.steps}
            )


if __name__ == "__main__":
    unittest.main()
