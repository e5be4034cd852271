# The protocol, with a fake contender: answers, deadlines, deaths, restarts; and the runner over
# nodes that are fakes too.
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from typing import cast

from . import processes, ratios
from .contenders import Contender, ContenderError, Program
from .results import Results
from .schedule import ASYNC, CORE, FLOOR, FLOOR_THREADS, QUICK, SECURED, Planner, Stage, Step, Workload
from .servers import Fleet, Proxy
from .workloads import Runner

FAKE = Path(__file__).with_name("fake_contender.py")


class FakeServer:
    def __init__(self, number: int) -> None:
        self.port = number
        self.address = f"127.0.0.1:{number}"
        self.tls_address = f"127.0.0.1:{number + 100}"
        self.state = "runs"

    def kill(self) -> None:
        self.state = "dead"

    def stop(self) -> None:
        self.state = "hung"


class FakeFleet:
    """Remembers what was done to its nodes."""

    def __init__(self) -> None:
        self.servers = [FakeServer(number) for number in range(9)]
        self.seen: list[str] = []

    def ensure(self, count: int) -> None:
        for server in self.servers[:count]:
            server.state = "runs"

    def flush(self) -> None:
        self.seen.append("".join(server.state[0] for server in self.servers[:5]))

    def cpu_seconds(self) -> float:
        return 0.0


class FakeProxy:
    def __init__(self) -> None:
        self.addresses = [f"127.0.0.1:{1000 + number}" for number in range(5)]
        self.round_trips_us = [0] * 5

    def set_round_trip(self, link: int, round_trip_us: int) -> None:
        self.round_trips_us[link] = round_trip_us


class WithContenders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.logs = Path(folder.name)

    def contender(self, name: str = "fake", latency_us: int = 1000, *words: str) -> Contender:
        made = Contender(Program(name, (sys.executable, "-B", str(FAKE), name, str(latency_us), *words)), self.logs)
        self.addCleanup(made.kill)
        return made


class Protocol(WithContenders):
    def test_answers_and_stays_up(self) -> None:
        contender = self.contender()
        contender.connect(("127.0.0.1:1",))
        for _ in range(2):
            self.assertEqual(contender.ask("cycles 1 10 4", 20.0).figures["cycles"], 10)
        self.assertEqual(contender.starts, 1)
        assert contender.about
        self.assertEqual(contender.about.notes, "made up")

    def test_processor_time_is_that_of_the_contender(self) -> None:
        answer = self.contender("fake", 1000, "burns-on", "cycles").ask("cycles 1 10 0", 20.0)
        # It burns 20 ms, without ever leaving the processor by itself.
        self.assertGreater(answer.cpu_seconds, 0.0195)
        self.assertLess(answer.cpu_seconds, 20.0)

    def test_an_error_is_an_answer(self) -> None:
        contender = self.contender("fake", 1000, "refuses", "cycles")
        self.assertEqual(contender.ask("cycles 1 10 0", 20.0).error, "refused, as it was told")
        self.assertEqual(contender.ask("hold 1 1 1", 20.0).error, "unsupported")
        self.assertEqual(contender.starts, 1)

    def test_silence_ends_it_and_the_next_command_starts_it_again(self) -> None:
        contender = self.contender("fake", 1000, "hangs-on", "64")
        with self.assertRaisesRegex(ContenderError, "no answer in"):
            contender.ask("cycles 64 10 0", 0.3)
        self.assertIsNone(contender.ask("cycles 1 10 0", 20.0).error)
        self.assertEqual(contender.starts, 2)

    def test_a_death_tells_its_last_words(self) -> None:
        with self.assertRaisesRegex(ContenderError, "dies, as it was told"):
            self.contender("fake", 1000, "dies-on", "cycles").ask("cycles 1 10 0", 20.0)

    def test_a_program_that_does_not_introduce_itself(self) -> None:
        contender = Contender(Program("true", ("true",)), self.logs)
        with self.assertRaisesRegex(ContenderError, "did not introduce itself"):
            contender.start()

    def test_a_wrapper_that_does_not_exec_is_refused(self) -> None:
        command = f"{sys.executable} -B {FAKE} fake 1000; exit 0"
        contender = Contender(Program("wrapper", ("bash", "-c", command)), self.logs)
        self.addCleanup(contender.kill)
        with self.assertRaisesRegex(ContenderError, "runs another process"):
            contender.ask("cycles 1 10 0", 20.0)

    def test_who_is_killed_does_not_see_its_input_end_before(self) -> None:
        cleaned = self.logs / "cleaned"
        hello = '{"name": "", "version": "", "language": "", "notes": ""}'
        program = (
            f"import sys, pathlib; print('{hello}', flush=True); "
            f"sys.stdin.read(); pathlib.Path('{cleaned}').touch()"
        )
        for end, expected in ((Contender.kill, False), (Contender.close, True)):
            contender = Contender(Program("cleaner", (sys.executable, "-c", program)), self.logs)
            self.addCleanup(contender.kill)
            contender.start()
            end(contender)
            self.assertEqual(cleaned.exists(), expected)

    def test_its_clock_counts_other_processes_threads(self) -> None:
        program = (
            "import threading, time\n"
            "thread = threading.Thread(target=lambda: [None for _ in range(10**7)])\n"
            "thread.start(); thread.join(); print(1, flush=True); time.sleep(60)"
        )
        burner = processes.start(
            [sys.executable, "-c", program],
            log=self.logs / "burner.log",
            pipes=True,
        )
        self.addCleanup(processes.end, burner)
        assert burner.stdout
        burner.stdout.readline()
        self.assertGreater(processes.cpu_seconds(burner.pid), 0.05)


class Running(WithContenders):
    def setUp(self) -> None:
        super().setUp()
        # Progress is for people.
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def run_workloads(
        self, contenders: dict[str, Contender], workloads: list[Workload], bound_seconds: float = 100.0
    ) -> tuple[Results, FakeFleet, FakeProxy]:
        results, fleet, proxy = Results(), FakeFleet(), FakeProxy()
        Runner(cast(Fleet, fleet), cast(Proxy, proxy), contenders, results, bound_seconds).run(workloads)
        return results, fleet, proxy

    def test_the_whole_quick_schedule(self) -> None:
        contenders = {
            name: self.contender(name, latency)
            for name, latency in zip((*CORE, FLOOR_THREADS, "peer"), (100, 110, 105, 150, 120, 900), strict=True)
        }
        # These would refuse the plain port of the first node.
        for name, latency in zip(SECURED, (168, 160, 140), strict=True):
            contenders[name] = self.contender(name, latency, "refuses", FakeServer(0).address)
        planned = Planner(QUICK, ["peer"]).workloads(["a", "b", "c", "e", "f", "g", "h"])
        results, fleet, proxy = self.run_workloads(contenders, planned)
        ratio = results.ratio("a", "1", ASYNC, "acquire_p50_us", ("1", FLOOR))
        assert ratio
        self.assertAlmostEqual(ratio.median, 1.05)
        found = {ratio.name: ratio.value for ratio in ratios.make(results)}
        for name, value in (
            ("blocking_cycles_ratio_16", 100 / 150),
            ("blocking_cycles_to_threads_16", 120 / 150),
            ("tls_acquire_ratio", 1.6),
            ("tls_floor_acquire_ratio", 1.6),
            ("tls_sealed_acquire_ratio", 1.4),
            ("tls_acquire_to_floor", 1.05),
        ):
            self.assertAlmostEqual(cast(float, found[name]), value, delta=0.02)
        self.assertEqual(results.reason("e", "hold", ASYNC), "unsupported")
        self.assertEqual(list(results.load), [workload.letter for workload in planned])
        self.assertIn("drrrr", fleet.seen)
        self.assertTrue(any(seen.count("h") == 2 for seen in fleet.seen))
        self.assertEqual(proxy.round_trips_us, [0] * 5)
        for name in (*CORE, FLOOR_THREADS, *SECURED, "peer"):
            self.assertEqual(contenders[name].starts, 1)

    def workload(self, *names: str, rounds: int = 2, peer_bound_seconds: float = 20.0) -> Workload:
        bounds = {"peer": peer_bound_seconds}
        steps = tuple(Step(name, "1", "cycles 1 10 5", 10, bounds.get(name, 20.0)) for name in names)
        return Workload("a", "", ((Stage(steps),),) * rounds)

    def test_a_peer_that_hangs_is_given_up_and_the_others_go_on(self) -> None:
        contenders = {FLOOR: self.contender(FLOOR), "peer": self.contender("peer", 1000, "hangs-on", "cycles")}
        results, _, _ = self.run_workloads(contenders, [self.workload(FLOOR, "peer", peer_bound_seconds=0.5)])
        self.assertEqual(len(results.by_round("a", "1", FLOOR, "cycles")), 2)
        self.assertEqual(
            [record.error for record in results.records if record.contender == "peer"], ["no answer in 0.5 s"]
        )

    def test_who_cannot_connect_is_left_out(self) -> None:
        contenders = {FLOOR: self.contender(FLOOR), "peer": self.contender("peer", 1000, "refuses", "connect")}
        results, _, _ = self.run_workloads(contenders, [self.workload(FLOOR, "peer")])
        self.assertRegex(results.reason("a", "1", "peer") or "", "could not connect: refused, as it was told")
        self.assertEqual(len(results.by_round("a", "1", FLOOR, "cycles")), 2)

    def test_without_time_it_says_so(self) -> None:
        results, _, _ = self.run_workloads({FLOOR: self.contender(FLOOR)}, [self.workload(FLOOR)], bound_seconds=0.0)
        self.assertEqual(results.reason("a", "1", FLOOR), "not measured: the time was over")


if __name__ == "__main__":
    unittest.main()
