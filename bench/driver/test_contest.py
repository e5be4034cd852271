# Workload (d): the plan, figures of waits worked out by hand, and whole runs with fake contenders.
import contextlib
import io
import itertools
import sys
import time
import unittest
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest import mock

from . import contest, floor_handover, ratios, release_cost, tables
from .contenders import Contender, Program
from .contention import Contention
from .contest import LINE, LOOP, Case
from .results import Results
from .schedule import ASYNC, BLOCKING, FLOOR, FLOOR_HANDOVER, POLLING
from .servers import Fleet, Proxy
from .stats import Wait
from .test_contenders import FAKE, FakeFleet, FakeProxy, WithContenders

LEADER = Wait(9, 0, 1, 1000)


class Figures(unittest.TestCase):
    def test_a_line(self) -> None:
        waits = [Wait(0, 10, 1200, 2200), Wait(1, 20, 2400, 3400)]
        figures, between = contest.line_figures(Case(LINE, 2), LEADER, waits)
        self.assertEqual(between, [200, 200])
        self.assertEqual((figures["served"], figures["bypasses"], figures["overlaps"]), (2, 0, 0))
        self.assertEqual(figures["total_ms"], 2.4)
        self.assertAlmostEqual(figures["total_ratio"], 1.0)

    def test_a_line_that_was_not_served_to_its_end_has_no_total(self) -> None:
        figures, _ = contest.line_figures(Case(LINE, 2), LEADER, [Wait(0, 10), Wait(1, 20, 1200, 2200)])
        self.assertEqual((figures["served"], figures["bypasses"]), (1, 1))
        self.assertNotIn("total_ms", figures)

    def test_a_line_counts_only_where_all_waited_when_the_lock_got_free(self) -> None:
        in_time, early, late = (Wait(0, began, 1200, 2200) for began in (10, 0, 1000))
        for case, leader, wait in (
            (Case(LINE, 1), LEADER, early),
            (Case(LINE, 1), LEADER, late),
            (Case(LINE, 2), LEADER, in_time),
            (Case(LINE, 1), Wait(9, 0), in_time),
        ):
            with self.assertRaises(ValueError):
                contest.line_figures(case, leader, [wait])

    def test_a_loop_has_those_who_got_nothing_in_its_index(self) -> None:
        waits = [Wait(0, 0, 10, 20), Wait(0, 20, 30, 40), Wait(1, 5)]
        figures, between = contest.loop_figures(Case(LOOP, 2, ms=1000), 2, waits)
        self.assertEqual((figures["jain"], figures["grants"], figures["grants_per_s"]), (0.5, 2, 2.0))
        self.assertEqual((between, figures["bypasses"]), ([10], 1))

    def test_clients_of_several_processes_are_told_apart(self) -> None:
        waits = [wait for process in (0, 1) for wait in contest.waits_of({"waits": [[0, 1, 2, 3]]}, process)]
        self.assertEqual(len({wait.client for wait in waits}), 2)

    def test_shares(self) -> None:
        self.assertEqual(contest.shares(10, 4), [3, 3, 2, 2])
        self.assertEqual(sum(contest.shares(1000, 20)), 1000)


class Plans(unittest.TestCase):
    def test_alone_the_workload_keeps_its_bounds_with_eight_peers(self) -> None:
        for plan in (contest.QUICK, contest.FULL):
            self.assertLess(plan.seconds + 8 * plan.peer_seconds(), plan.bound_seconds)

    def test_every_named_value_is_measured_in_both(self) -> None:
        needed = {
            contest.TEN, contest.FIFTY, contest.TWO_HUNDRED, contest.SPREAD_OUT, contest.THOUSAND, contest.FAR_FIFTY
        }
        points = {case.point for case in needed} | {ratios.LOOP_64, ratios.LOOP_256, ratios.LOOP_COUNTED}
        for plan in (contest.QUICK, contest.FULL):
            self.assertLessEqual(points, {case.point for case in plan.cases})
            self.assertEqual(plan.mixed_rounds, 5)
            self.assertIn(contest.TWO_HUNDRED.point, {case.point for case in plan.peers})
            links = [link for link, _ in itertools.groupby(case.link for case in plan.cases)]
            self.assertEqual(len(links), len(set(links)))


class Running(WithContenders):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        # The fake nodes run no scripts.
        self.enterContext(mock.patch.object(release_cost, "catch", return_value=["EVALSHA"]))
        cost = {"server_ratio": 1.5, "release_us": 3.0, "plain_us": 2.0}
        self.enterContext(mock.patch.object(release_cost, "compare", return_value=cost))
        least = mock.patch.object(floor_handover, "measure", return_value=[80.0, 20.0, 50.0])
        self.least = self.enterContext(least)

    def run_plan(self, plan: contest.Plan, names: list[str], *words: str, seconds: float = 100.0) -> Results:
        results = Results()
        programs = {name: Program(name, (sys.executable, "-B", str(FAKE), name, "100", *words)) for name in names}
        contenders = {name: Contender(program, self.logs) for name, program in programs.items()}
        programs[FLOOR_HANDOVER] = Program(FLOOR_HANDOVER, ("the-least",))
        for contender in contenders.values():
            self.addCleanup(contender.kill)
        fleet, proxy = cast(Fleet, FakeFleet()), cast(Proxy, FakeProxy())
        end = time.monotonic() + seconds
        run = Contention(fleet, proxy, contenders, programs, results, Path(self.logs), self.logs, end)
        run.run(plan, [name for name in names if name not in (ASYNC, BLOCKING, FLOOR, POLLING)])
        return results

    def plan(self) -> contest.Plan:
        cases = (contest.TEN, contest.FIFTY, Case(LINE, 4, 2, link=contest.FAR, ms=100), Case(LOOP, 4, 2, ms=100))
        return replace(contest.QUICK, cases=cases, others=cases[:1], deaths=1, mixed_rounds=2, uncontended_ms=20)

    def test_a_whole_plan(self) -> None:
        results = self.run_plan(self.plan(), [ASYNC, FLOOR, BLOCKING, POLLING, *contest.MIXED_PEERS])
        self.assertIsNone(tables.failures(results))
        self.assertEqual(len(results.rounds_of("d", contest.HOLDER_DEAD, ASYNC, "beyond_ttl_ms")), 1)
        self.assertEqual(len(results.rounds_of("d", contest.WAITER_DEAD, ASYNC, "gap_ms")), 1)
        self.assertEqual(results.rounds_of("d", contest.MIXED, ASYNC, "share"), [0.25, 0.25])
        self.assertEqual(results.total("d", contest.MIXED, ASYNC, "lost"), 0)
        for name in (ASYNC, BLOCKING, POLLING):
            self.assertEqual(results.total("d", contest.TEN.point, name, "served"), 10)
        for name in (ASYNC, *contest.MIXED_PEERS):
            self.assertEqual(results.total("d", contest.TWO_HUNDRED.point, name, "served"), 200)
        # The fake's clients of several processes hold at the same time, and that shows.
        found = {ratio.name: ratio.value for ratio in ratios.make(results)}
        self.assertGreater(float(found["contended_overlaps"] or 0), 0)
        self.assertEqual(found["contended_mixed_lost"], 0)
        self.assertEqual(found["contended_free_release_server_ratio"], 1.5)
        self.assertAlmostEqual(float(found["contended_peer_total_ratio_200"] or 0), 1.0, places=1)
        ours = results.total("d", contest.FIFTY.point, ASYNC, "handover_p50_us")
        self.assertEqual(found["contended_handover_to_floor"], (ours or 0) / 50)
        # The fake's acquires take 100 to 199 µs.
        self.assertAlmostEqual(float(found["floor_handover_ratio"] or 0), 50 / 149, places=2)
        (program, addresses, release, hold_us, _), _ = self.least.call_args
        self.assertEqual((program, len(addresses), release, hold_us), (("the-least",), 5, ["EVALSHA"], 1000))
        points = [record.point for record in results.records if record.round == 0]
        self.assertEqual(points[points.index(contest.FIFTY.point) + 1], contest.LEAST_HANDOVER)

    def test_without_the_least_program_its_ratios_say_why(self) -> None:
        self.least.side_effect = ValueError("a node sent no push")
        lines = ratios.lines(ratios.make(self.run_plan(self.plan(), [ASYNC, FLOOR])))
        for name in ("contended_handover_to_floor", "floor_handover_ratio"):
            self.assertIn("a node sent no push", lines[lines.index(f"{name}=unmeasured") - 1])

    def test_without_our_handovers_the_least_ones_are_not_to_blame(self) -> None:
        results = self.run_plan(self.plan(), [ASYNC, FLOOR], "dies-on", "line")
        lines = ratios.lines(ratios.make(results))
        self.assertIn("dies, as it was told", lines[lines.index("contended_handover_to_floor=unmeasured") - 1])
        self.assertEqual(len(results.by_round("d", contest.LEAST_HANDOVER, FLOOR, "handover_p50_us")), 1)

    def test_who_dies_is_recorded_and_the_others_go_on(self) -> None:
        results = self.run_plan(self.plan(), [ASYNC], "dies-on", "loop")
        self.assertIn("dies, as it was told", results.reason("d", Case(LOOP, 4, 2).point, ASYNC) or "")
        self.assertEqual(results.total("d", contest.TWO_HUNDRED.point, ASYNC, "served"), 200)
        self.assertIn("without redsync", results.reason("d", contest.MIXED, ASYNC) or "")

    def test_without_time_nothing_begins(self) -> None:
        results = self.run_plan(self.plan(), [ASYNC], seconds=0.0)
        self.assertEqual(results.reason("d", contest.TEN.point, ASYNC), "not measured: the time was over")


if __name__ == "__main__":
    unittest.main()
