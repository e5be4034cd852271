"""Programs of greenlets, by gevent and eventlet, on five real servers. Each is a process of its own: to patch
this one would change the other tests."""
import importlib.util
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from redlock_client import _native
from servers import PATIENT_S, Servers

PROGRAM = Path(__file__).with_name("greenlet_cases.py")
CASES = re.findall(r"^def case_(\w+)", PROGRAM.read_text(), re.MULTILINE)


class Greenlets:
    """The tests of both libraries."""

    library = ""
    left_out = ()

    @classmethod
    def setUpClass(cls):
        if not importlib.util.find_spec(cls.library):
            raise unittest.SkipTest(f"{cls.library} is not installed (Debian: python3-{cls.library})")
        cls.servers = Servers(5)
        cls.addClassCleanup(cls.servers.stop)

    def setUp(self):
        self.servers.clear()

    def run_cases(self, patched, *cases):
        processes = " ".join(str(server.process.pid) for server in self.servers.all)
        ran = subprocess.run([sys.executable, "-W", "ignore", str(PROGRAM), self.library, patched, ",".join(cases),
                              *self.servers.nodes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             timeout=4 * PATIENT_S, check=False,
                             env={**os.environ, "SERVERS": processes, "EVENTLET_NO_GREENDNS": "yes"})
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertEqual(self.servers.with_key("r"), 0)

    def test_each_case(self):
        self.run_cases("before", *(case for case in CASES if case not in self.left_out))

    def test_it_is_patched_after_the_import(self):
        self.run_cases("after", "a_reentrant_hold_belongs_to_a_greenlet", "a_wait_lets_others_run",
                       "a_wait_that_is_killed_holds_nothing", "the_close_ends_waits")

    def test_nothing_is_patched(self):
        self.run_cases("never", "a_reentrant_hold_belongs_to_a_greenlet", "a_wait_lets_others_run",
                       "without_cooperation_the_thread_blocks")


class Gevent(Greenlets, unittest.TestCase):
    library = "gevent"


class Eventlet(Greenlets, unittest.TestCase):
    library = "eventlet"
    left_out = ("a_loss_stops_a_greenlet",)  # eventlet cannot be called from another thread


class Neither(unittest.TestCase):
    def test_to_cooperate_needs_a_library(self):
        ran = subprocess.run([sys.executable, "-c", "import redlock_client\n"
                              "redlock_client.Client('127.0.0.1:1', cooperative=True)"],
                             stderr=subprocess.PIPE, text=True, check=False)
        self.assertIn("ValueError: cooperative is True; it needs gevent or eventlet, and none of them is imported",
                      ran.stderr)

    def test_a_thread_without_greenlets(self):
        self.assertFalse(_native.has_greenlets())
        self.assertEqual(_native.this(), _native.get_ident())
        self.assertEqual(_native.owner(), _native.owner())


if __name__ == "__main__":
    unittest.main()
