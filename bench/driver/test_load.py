# The load of others: what /proc/stat counts, what counts as this run's own, and when it disturbs.
import contextlib
import io
import os
import subprocess
import sys
import time
import unittest

from . import load

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def own_seconds() -> float:
    return sum(map(load.used_seconds, load.tree(os.getpid())))


class Seconds(unittest.TestCase):
    def test_idle_processors_and_interrupts_are_not_busy(self) -> None:
        stat = "cpu  100 20 300 4000 500 60 7000 8 90 900\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
        self.assertAlmostEqual(load.busy_seconds(stat), (100 + 20 + 300 + 8) / load.TICKS_A_SECOND)

    def test_what_this_process_started_is_its_own_while_it_runs_and_afterwards(self) -> None:
        before = own_seconds()
        command = [sys.executable, "-c", f"{BURN}\nprint(flush=True)\ninput()"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout
            child.stdout.readline()
            self.assertGreaterEqual(own_seconds() - before, 0.3)
            child.communicate(b"\n")
        self.assertGreaterEqual(own_seconds() - before, 0.3)
        self.assertEqual(load.used_seconds(child.pid), 0.0)

    def test_what_others_started_is_theirs(self) -> None:
        said = io.StringIO()
        loads: dict[str, float] = {}
        before, began = load.others_seconds(), time.monotonic()
        with contextlib.redirect_stderr(said), load.during("b", loads):
            # Its parent ends at once, so it is of this tree no more. The pipe ends with it.
            orphan = f"import os, sys\nif os.fork(): sys.exit()\n{BURN}"
            subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE, check=True)
        self.assertGreater(loads["b"] * (time.monotonic() - began), 0.3)
        for now, then in zip(load.others_seconds(), before, strict=True):
            self.assertGreater(now - then, 0.3)
        self.assertIn("warning: others kept", said.getvalue())


class Warnings(unittest.TestCase):
    def test_a_quiet_machine_has_none(self) -> None:
        self.assertEqual(load.warnings({"before": 0.02, "a": load.OTHERS_LIMIT}, load.AVERAGE_LIMIT), [])

    def test_name_the_workload_and_the_load(self) -> None:
        (only,) = load.warnings({"a": 0.02, "b": 0.34})
        self.assertIn("0.34 processors busy (b)", only)

    def test_the_load_average_comes_first(self) -> None:
        first, _ = load.warnings({"a": 0.5}, 1.2)
        self.assertIn("load average was 1.20", first)


if __name__ == "__main__":
    unittest.main()
