# The server time of a RELEASE, on real nodes.
import shutil
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from . import release_cost
from .contenders import Contender
from .release_cost import KEY, PLAIN, Link
from .servers import Fleet, free_ports

COSTLY = f"local sum = 0 for i = 1, 3000 do sum = sum + i end {PLAIN}"
KEEPS = "return redis.call('exists', KEYS[1]) + 0 * #ARGV[2]"


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not here")
class Costs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        fleet = Fleet(free_ports(2), Path(folder.name))
        self.addCleanup(fleet.close)
        fleet.ensure(2)
        self.ports = [server.port for server in fleet.servers]
        self.links = [Link(port) for port in self.ports]
        for link in self.links:
            self.addCleanup(link.close)

    def release(self, script: str) -> list[str]:
        sha = [link.ask(["SCRIPT", "LOAD", script])[0].decode() for link in self.links][0]
        return ["EVALSHA", sha, "1", "some-key", "some-token", ":wait"]

    def test_a_costly_script_has_a_high_ratio_and_the_plain_one_does_not(self) -> None:
        plain, costly = (release_cost.compare(self.ports, self.release(script)) for script in (PLAIN, COSTLY))
        self.assertLess(plain["server_ratio"], 2)
        self.assertGreater(plain["server_ratio"], 0.5)
        self.assertGreater(costly["server_ratio"], 2)
        self.assertGreater(costly["release_us"], costly["plain_us"])

    def test_a_script_that_keeps_the_lock_is_no_release(self) -> None:
        with self.assertRaisesRegex(ValueError, "release: not every SET"):
            release_cost.compare(self.ports, self.release(KEEPS))

    def test_the_words_are_those_of_the_client(self) -> None:
        words = self.release(PLAIN)
        commands: list[str] = []

        def ask(command: str, _: float) -> SimpleNamespace:
            commands.append(command)
            self.links[0].ask(["SET", KEY, "x"], words)
            return SimpleNamespace(error=None, figures={"cycles": 1})

        contender = cast(Contender, SimpleNamespace(ask=ask))
        caught = release_cost.catch(self.ports[0], contender)
        self.assertEqual(caught, words)
        self.assertEqual([command.split()[:2] for command in commands], [["cycles", "1"]])


if __name__ == "__main__":
    unittest.main()
