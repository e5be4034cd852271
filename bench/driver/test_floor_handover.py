# The least program's handovers, on real nodes with the library's own RELEASE.
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from . import floor_handover
from .floor_handover import KEY
from .release_cost import Link
from .servers import Fleet, Proxy, free_ports

PROGRAM, PROXY = (os.environ.get(name, "") for name in ("FLOOR_HANDOVER", "REDLOCK_PROXY"))
SCRIPTS = Path(__file__).resolve().parents[2] / "src" / "wire" / "scripts"
SLOW_US = 50_000
HOLD_US = 1000
QUEUE, WAITERS = f"{KEY}:wait", f"{KEY}:waiter"
# A node that has the key `silent` tells nobody.
SILENT = f"if redis.call('exists', 'silent') == 1 then redis.call('del', '{QUEUE}', '{WAITERS}') return 2 end"


def release_script() -> str:
    text, includes = (SCRIPTS / "release.lua").read_text(), 1
    while includes:  # what is included includes more
        text, includes = re.subn(
            r"(?m)^ *-- include (\S+)$", lambda found: (SCRIPTS / found.group(1)).read_text(), text
        )
    return text


@unittest.skipUnless(PROGRAM and PROXY, "FLOOR_HANDOVER and REDLOCK_PROXY do not name the programs")
@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not here")
class Handovers(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)
        self.fleet = Fleet(free_ports(5), self.folder)
        self.addCleanup(self.fleet.close)
        self.fleet.ensure(5)
        self.addresses = [server.address for server in self.fleet.servers]
        self.links = [Link(server.port) for server in self.fleet.servers]
        for link in self.links:
            self.addCleanup(link.close)
        self.release = self.words(f"{SILENT}\n{release_script()}")

    def words(self, script: str) -> list[str]:
        sha = [link.ask(["SCRIPT", "LOAD", script])[0].decode() for link in self.links][0]
        return ["EVALSHA", sha, "1", "some-key", "some-token", ":wait", "0"]

    def measure(self, ms: int, release: list[str] | None = None) -> list[float]:
        words = self.release if release is None else release
        return floor_handover.measure([PROGRAM], self.addresses, words, HOLD_US, self.folder / "log", ms)

    def releases(self) -> list[int]:
        """How many each node has run."""
        stats = [link.ask(["INFO", "commandstats"])[0] for link in self.links]
        found = [re.search(rb"cmdstat_evalsha:calls=(\d+)", text) for text in stats]
        return [int(calls.group(1)) if calls else 0 for calls in found]

    def test_there_is_a_figure_for_each_release_and_none_is_longer_than_the_run(self) -> None:
        began = time.monotonic()
        handover_us = self.measure(200)
        took_us = (time.monotonic() - began) * 1e6
        self.assertGreater(len(handover_us), 1)
        self.assertEqual(self.releases(), [len(handover_us)] * 5)
        self.assertGreater(min(handover_us), 0)
        self.assertLess(sum(handover_us) + len(handover_us) * HOLD_US, took_us)

    def test_the_lock_is_held_once_a_quorum_told(self) -> None:
        targets = [server.port for server in self.fleet.servers]
        proxy = Proxy(Path(PROXY), free_ports(5), targets, self.folder / "proxy.log")
        self.addCleanup(proxy.close)
        self.addresses = proxy.addresses
        for node in range(2):
            proxy.set_round_trip(node, SLOW_US)
        self.assertLess(min(self.measure(1000)), SLOW_US)
        proxy.set_round_trip(2, SLOW_US)
        self.assertGreaterEqual(min(self.measure(1)), SLOW_US)

    def test_each_node_has_to_tell_the_waiter(self) -> None:
        for link in self.links[:3]:
            link.ask(["SET", "silent", "x"])
        with self.assertRaisesRegex(ValueError, f"3 of 5 nodes sent no push .* {self.addresses[0]} .*ended"):
            self.measure(1000)

    def test_who_keeps_the_lock_did_not_hand_it_over(self) -> None:
        with self.assertRaisesRegex(ValueError, f"{self.addresses[0]}: unexpected answer: :1"):
            self.measure(100, self.words("return 1"))

    def test_a_push_of_another_form_is_an_error(self) -> None:
        other = "for _, c in ipairs(redis.call('pubsub', 'channels')) do redis.call('publish', c, 'x') end return 2"
        with self.assertRaisesRegex(ValueError, "5 of 5 nodes sent no push"):
            self.measure(100, self.words(other))

    def test_a_node_that_dies_ends_it(self) -> None:
        command = [PROGRAM, "60000", str(HOLD_US), *self.addresses, "--", *self.release]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 10
        while min(self.releases()) < 3:
            self.assertLess(time.monotonic(), deadline)
        self.fleet.servers[4].kill()
        answer, words = process.communicate(timeout=10)
        self.assertEqual((answer, process.returncode), ("", 1))
        self.assertIn(self.addresses[4], words)

    def test_its_answer_is_one_line_of_json(self) -> None:
        command = [PROGRAM, "0", "0", *self.addresses[:1], "--", *self.release]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
        figures = json.loads(answer)
        self.assertEqual((answer.count("\n"), figures["rounds"], len(figures["handover_us"])), (1, 1, 1))

    def test_wrong_arguments_are_refused(self) -> None:
        for words, reason in (
            ([*self.addresses], "usage"),
            (["--", *self.release], "usage"),
            ([*self.addresses, "--", *self.release[:5]], "usage"),
            (["127.0.0.1:0", "--", *self.release], "127.0.0.1:0: "),
        ):
            ended = subprocess.run([PROGRAM, "1", "1", *words], capture_output=True, text=True, timeout=10)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))
            self.assertIn(reason, ended.stderr)


if __name__ == "__main__":
    unittest.main()
