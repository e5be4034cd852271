# Ratios, tables and plots' scripts, made from records that are written here.
import json
import tempfile
import unittest
from pathlib import Path

from . import contest, gnuplot, load, plots, ratios, report, stats, tables
from .contenders import About
from .peers import Peer
from .results import OVER, Record, Results, figures_of
from .schedule import ASYNC, FLOOR, FULL, LETTERS, TLS, TOOL, Planner, Step


def results(*, peers: dict[str, float] | None = None) -> Results:
    """Ours takes 110 µs where the floor takes 100; the second round is ten times as slow for all."""
    made = Results()
    for number, factor in ((0, 1.0), (1, 10.0)):
        for name, latency in ((FLOOR, 100.0), (ASYNC, 110.0)):
            answer = {
                "cycles": 40,
                "failed": 0,
                "seconds": 1.0,
                "acquire_us": [latency * factor] * 40,
                "release_us": [50.0] * 40,
            }
            step = Step(name, "1", "cycles 1 1000 40", 1000, 2.0)
            made.add(Record("a", "1", name, number, step.command, figures_of(step, answer, 0.001, 0.002)), answer)
        for name, rate in {FLOOR: 1000.0, ASYNC: 900.0, **(peers or {})}.items():
            step = Step(name, "256", "cycles 256 1000 0", 1000, 2.0)
            answer = {"cycles": rate / factor, "failed": 0, "seconds": 1.0, "acquire_us": [], "release_us": []}
            made.add(Record("b", "256", name, number, step.command, figures_of(step, answer, 0.5, 1.0)), answer)
    return made


def by_name(made: Results) -> dict[str, ratios.Ratio]:
    return {ratio.name: ratio for ratio in ratios.make(made)}


class Figures(unittest.TestCase):
    def test_cycles(self) -> None:
        step = Step(FLOOR, "1", "cycles 1 1000 3", 1000, 2.0)
        answer = {"cycles": 200, "failed": 1, "seconds": 0.5, "acquire_us": [3.0, 1.0, 2.0], "release_us": []}
        figures = figures_of(step, answer, 0.01, 0.02)
        self.assertEqual(figures["cycles_per_s"], 400.0)
        self.assertEqual(figures["acquire_p50_us"], 2.0)
        self.assertAlmostEqual(figures["cpu_us_each"], 50.0)
        self.assertAlmostEqual(figures["servers_cpu_us_each"], 100.0)
        self.assertNotIn("release_p50_us", figures)

    def test_no_cycle_makes_no_figure_a_cycle(self) -> None:
        step = Step(FLOOR, "1", "cycles 1 1000 0", 1000, 2.0)
        figures = figures_of(step, {"cycles": 0, "failed": 3, "seconds": 1.0}, 0.01, 0.02)
        self.assertNotIn("cpu_us_each", figures)
        self.assertNotIn("cycles_per_s", figures)


class Ratios(unittest.TestCase):
    def test_are_those_of_rounds(self) -> None:
        found = by_name(results())["acquire_p50_ratio"]
        self.assertEqual((found.value, found.low, found.high), (1.1, 1.1, 1.1))

    def test_the_nodes_time_a_cycle_is_compared_with_that_under_the_floor(self) -> None:
        found = by_name(results())
        # The same processor time for 1000 and for 900 cycles, and for a tenth of each.
        self.assertAlmostEqual(float(found["servers_cpu_ratio_256"].value or 0), 10 / 9)
        low, high = found["servers_cpu_us_256"].low, found["servers_cpu_us_256"].high
        self.assertAlmostEqual(low or 0, 1e6 / 900)
        self.assertAlmostEqual(high or 0, 1e7 / 900)
        self.assertIn("servers' processor time a cycle, ours to the floor", "\n".join(tables.throughput(results())))

    def test_every_promised_name_is_printed_and_never_as_nan(self) -> None:
        lines = ratios.lines(ratios.make(Results()))
        self.assertEqual(
            {line.split("=")[0] for line in lines if "=" in line and not line.startswith("#")}, ratios.PROMISED
        )
        self.assertNotIn("nan", "\n".join(lines))

    def test_what_was_not_measured_says_why_on_the_line_before(self) -> None:
        made = results()
        made.add(Record("d", ratios.LOOP_64, ASYNC, 0, "loop", error="no answer in 45 s"))
        lines = ratios.lines(ratios.make(made))
        at = lines.index("contended_jain_64=unmeasured")
        self.assertIn("no answer in 45 s", lines[at - 1])
        self.assertIn("(e) did not run", lines[lines.index("lease_bytes=unmeasured") - 1])

    def test_best_peer_is_the_one_that_comes_nearest(self) -> None:
        found = by_name(results(peers={"slow": 90.0, "fast": 450.0}))
        self.assertEqual(found["peer_best_name"].value, "fast")
        self.assertEqual(found["peer_best_cycles_ratio"].value, 2.0)
        # The same processor time for half the cycles.
        self.assertEqual(found["peer_best_cpu_ratio"].value, 2.0)
        self.assertEqual(found["peer_best_cpu_name"].value, "fast")

    def test_tls_is_compared_with_the_same_without(self) -> None:
        made = of_whole_plan()
        found = by_name(made)
        for name in (
            "tls_acquire_ratio",
            "tls_cpu_256_ratio",
            "tls_floor_acquire_ratio",
            "tls_sealed_acquire_ratio",
            "tls_acquire_to_floor",
        ):
            self.assertEqual(found[name].value, 1.0)
        step = Step(TLS, "256", "cycles 256 1000 0", 1000, 2.0)
        made = results()
        for number in (0, 1):
            answer = {"cycles": 300.0, "failed": 0, "seconds": 1.0}
            made.add(Record("b", "256", TLS, number, step.command, figures_of(step, answer, 0.5, 1.0)), answer)
        # As much processor time as 900 cycles took, and as 90 took in the slow round.
        self.assertAlmostEqual(by_name(made)["tls_cpu_256_ratio"].low or 0, 0.3)
        self.assertAlmostEqual(by_name(made)["tls_cpu_256_ratio"].high or 0, 3.0)
        self.assertIsNone(by_name(made)["tls_acquire_ratio"].value)
        self.assertIn("TLS to plain", "\n".join(tables.throughput(made)))

    def test_one_round_of_a_peer_is_compared_with_that_round_of_ours(self) -> None:
        made = results()
        step = Step("peer", "256", "cycles 256 1000 0", 1000, 2.0)
        answer = {"cycles": 30.0, "failed": 0, "seconds": 1.0}
        made.add(Record("b", "256", "peer", 1, step.command, figures_of(step, answer, 0.5, 1.0)))
        self.assertEqual(by_name(made)["peer_best_cycles_ratio"].value, 3.0)


class Tables(unittest.TestCase):
    def test_amounts(self) -> None:
        for value, text in (
            (None, "–"), (0.0, "0"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234"), (0.5, "0.50")
        ):
            self.assertEqual(tables.amount(value), text)

    def test_a_bar_in_a_cell_does_not_end_it(self) -> None:
        self.assertEqual(tables.table(["a", "b"], [["x|y", "two\nlines"]]).splitlines()[2], "| x/y | two lines |")

    def test_a_cell_has_median_and_spread(self) -> None:
        self.assertIn(
            "| **redlock_async** | 495 (90.0 … 900) |", tables.grid(results(), "b", [("256", "256")], "cycles_per_s")
        )

    def test_report_names_a_peer_that_was_skipped_and_why(self) -> None:
        made = results()
        about = {ASYNC: About(ASYNC, "0.1", "C", "nothing")}
        peer = Peer("redisson", None, 0.1, "skipped: no Java here")
        text = report.as_markdown(
            report.Report("quick", {"kernel": "6"}, made, ratios.make(made), about, [peer], {}, [], [], 1.0)
        )
        self.assertIn("| redisson | – | – | not measured: skipped: no Java here |", text)
        self.assertIn("Not measured: redisson (skipped: no Java here).", text)
        self.assertIn("## (a)", text)
        self.assertNotIn("## (c)", text)

    def test_all_outputs_name_the_load_and_what_disturbed(self) -> None:
        made = results()
        made.load = {"before": 0.01, "b": 0.25}
        found = load.warnings(made.load)
        one = report.Report("full", {"kernel": "6"}, made, ratios.make(made), {}, [], {}, [], found, 9.0)
        text = report.as_markdown(one)
        self.assertIn("| load of others | before 0.01, b 0.25 processors |", text)
        self.assertIn("**warning: others kept 0.25 processors busy (b)", text)
        first, second, *between, last = report.lines(one, Path("/here"))
        self.assertEqual((first, second), ("# load of others: before 0.01, b 0.25 processors", f"# {found[0]}"))
        self.assertIn("acquire_p50_ratio=1.1", between)
        self.assertEqual(last, "# measured for 9 s; results: /here/results.md")
        with tempfile.TemporaryDirectory() as folder:
            report.write(one, Path(folder))
            written = json.loads((Path(folder) / "results.json").read_text())
        self.assertEqual((written["load"], written["warnings"]), (made.load, found))

    def test_a_failed_cell_is_listed(self) -> None:
        made = results()
        made.add(Record("b", "4096", "peer", 0, "cycles", error="no answer in 5 s"))
        self.assertIn("| peer | b | 4096 | no answer in 5 s |", tables.failures(made) or "")


def of_whole_plan() -> Results:
    """An answer to every command that a full run gives."""
    made = Results()
    shapes: dict[str, dict[str, object]] = {
        "cycles": {"cycles": 40, "acquire_us": [110.0] * 40, "release_us": [50.0] * 40},
        "hold": {"leases": 100_000, "late": 0, "bytes_each": 507.0},
        "alternate": {
            "cycles": 80,
            "acquire_us": [110.0] * 40,
            "fenced_us": [121.0] * 40,
            "shared_us": [132.0] * 40,
            "fenced_fast": 40,
            "fenced_slow": 0,
        },
        "readers": {"cycles": 800, "read_us": [10.0] * 760, "write_us": [20.0] * 40, "write_longest_us": 21.0},
        "fenced": {"cycles": 40, "fenced_fast": 39, "fenced_slow": 1},
        "handover": {
            "grants": [30, 10],
            "handover_us": [5.0],
            "handovers": 20,
            "handovers_slow": 5,
            "fenced_fast": 35,
            "fenced_slow": 5,
            "not_rising": 0,
        },
        "churn": {"cycles": 1_000_000, "heap_before": 1000, "heap_after": 1000},
    }
    for workload in Planner(FULL, ["peer"]).workloads(LETTERS):
        for number, stages in enumerate(workload.rounds):
            for step in (step for stage in stages for step in stage.steps if step.recorded):
                answer = {"failed": 0, "seconds": 1.0, **shapes[step.command.split()[0]]}
                figures = figures_of(step, answer, 0.5, 1.0)
                made.add(Record(workload.letter, step.point, step.contender, number, step.command, figures), answer)
    waits = [stats.Wait(number, number + 3, 2000 * number + 2000, 2000 * number + 3000) for number in range(1000)]
    for case in (*contest.FULL.cases, *contest.FULL.peers):
        if case.kind == contest.LOOP:
            figures, between = contest.loop_figures(case, case.clients, waits[: case.clients])
        else:
            figures, between = contest.line_figures(case, stats.Wait(-1, 1, 2, 1500), waits[: case.clients])
        for name in (ASYNC, "peer"):
            made.add(Record("d", case.point, name, 0, case.point, figures), {"handover_us": between})
    return made


class WholeRun(unittest.TestCase):
    def test_every_workload_has_its_section_and_its_figures(self) -> None:
        made = of_whole_plan()
        all_ratios = ratios.make(made)
        text = report.as_markdown(report.Report("full", {}, made, all_ratios, {}, [], {}, [], [], 1.0))
        for letter in LETTERS:
            if letter != TOOL:
                self.assertIn(f"## ({letter})", text)
        drawn = {figure.name for figure in plots.figures(made)}
        self.assertEqual(drawn, {name for _, _, names in report.SECTIONS.values() for name in names})
        by_fault = {ratio.name: ratio.value for ratio in all_ratios if ratio.name.startswith(("hung1", "link2_hung1"))}
        self.assertEqual(set(by_fault.values()), {1.0})

    def test_contests(self) -> None:
        made = of_whole_plan()
        found = by_name(made)
        self.assertEqual(found["contended_jain_64"].value, 1.0)
        self.assertEqual(found["contended_handover_ratio_1000_10"].value, 1.0)
        self.assertEqual(
            (found["contended_peer_total_ratio_200"].value, found["contended_peer_name"].value), (1.0, "peer")
        )
        # All of these handovers take 1 ms.
        made.add(Record("d", contest.LEAST_HANDOVER, FLOOR, 0, "", {"handover_p50_us": 500.0}))
        made.add(Record("d", f"{contest.UNCONTENDED}:{contest.NEAR}", ASYNC, 0, "", {"acquire_p50_us": 100.0}))
        floor = by_name(made)
        self.assertEqual(floor["contended_handover_to_floor"].value, 2.0)
        self.assertEqual(floor["floor_handover_ratio"].value, 5.0)
        self.assertEqual((found["contended_overlaps"].value, found["contended_bypass_share"].value), (0, 0))
        made.add(Record("d", contest.TWO_HUNDRED.point, "best", 0, "line", error=OVER))
        self.assertIsNone(by_name(made)["contended_peer_total_ratio_200"].value)
        text = "\n".join(tables.contention(made))
        self.assertIn("Line of 200 in 20 processes, held for 1 ms, links of 1 ms:", text)

    def test_fencing(self) -> None:
        made = of_whole_plan()
        found = by_name(made)
        self.assertAlmostEqual(float(found["fenced_p50_ratio"].value or 0), 1.1)
        self.assertAlmostEqual(float(found["fenced_fast_share"].value or 0), 79 / 80)
        self.assertAlmostEqual(float(found["link1_fenced_p50_ratio"].value or 0), 1.1)
        self.assertAlmostEqual(float(found["fenced_fast_share_next"].value or 0), 35 / 40)
        self.assertEqual(found["fenced_not_rising"].value, 0)
        text = "\n".join(tables.fencing(made))
        self.assertIn("| with ÷ without, round by round | 1.10 (1.10 … 1.10) |", text)
        self.assertIn("| 120 | 87.50 % | 75.00 % | 5.00 |", text)


    def test_readers(self) -> None:
        made = of_whole_plan()
        found = by_name(made)
        self.assertAlmostEqual(float(found["shared_p50_ratio"].value or 0), 1.2)
        self.assertAlmostEqual(float(found["link1_shared_p99_ratio"].value or 0), 1.2)
        self.assertEqual(found["readers_grants_ratio_16"].value, 1.0)
        self.assertEqual(found["readers_write_longest_us_256"].value, 21.0)
        text = "\n".join(tables.readers(made))
        self.assertIn("| shared ÷ exclusive, round by round | 1.20 (1.20 … 1.20) |", text)
        self.assertIn("| 16, shared | 800 (800 … 800) | 10.0 (10.0 … 10.0) |", text)


class Plots(unittest.TestCase):
    def test_every_contender_of_the_plan_is_drawn(self) -> None:
        for figure in plots.figures(of_whole_plan()):
            text = gnuplot.script(figure, ["peer"])
            for name in {series.name for panel in figure.panels for series in panel.series}:
                self.assertIn(f"title '{name}'", text)

    def test_each_figure_names_its_contenders_and_units(self) -> None:
        made = {figure.name: figure for figure in plots.figures(results(peers={"it's": 10.0}))}
        self.assertEqual(list(made), ["latency", "throughput", "cpu"])
        text = gnuplot.script(made["throughput"], ["it's"])
        self.assertIn("title 'it''s'", text)
        self.assertIn("cycles (acquire and release) a second", text)


if __name__ == "__main__":
    unittest.main()
