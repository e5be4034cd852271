# The floor over TLS, on real nodes.
import os
import re
import shutil
import tempfile
import time
import unittest
from pathlib import Path

from .contenders import Contender, ContenderError, Program
from .release_cost import Link
from .servers import HOST, Fleet, Tls, free_ports, make_certificate

PROGRAM = os.environ.get("FLOOR_WITH_TLS", "")


@unittest.skipUnless(PROGRAM, "FLOOR_WITH_TLS does not name the program")
@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not here")
@unittest.skipUnless(shutil.which("openssl"), "openssl is not here")
class Exchange(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)
        self.certificate = self.folder / "tls.pem"
        make_certificate(self.certificate)
        ports = free_ports(6)
        self.fleet = Fleet(ports[:3], self.folder, [Tls(port, self.certificate) for port in ports[3:]])
        self.addCleanup(self.fleet.close)
        self.fleet.ensure(3)
        self.links = [Link(server.port) for server in self.fleet.servers]
        for link in self.links:
            self.addCleanup(link.close)

    def floor(self, word: str, ca_file: Path | None = None) -> Contender:
        made = Contender(Program(f"floor_{word}", (PROGRAM, word, str(ca_file or self.certificate))), self.folder)
        self.addCleanup(made.kill)
        return made

    def connect(self, floor: Contender) -> None:
        floor.connect(tuple(server.tls_address for server in self.fleet.servers))

    def calls(self) -> list[int]:
        """Acquires and releases that the nodes have run, all together."""
        stats = b"".join(link.ask(["INFO", "commandstats"])[0] for link in self.links)
        return [sum(map(int, re.findall(b"cmdstat_%s:calls=([0-9]+)" % name, stats))) for name in (b"set", b"evalsha")]

    def test_each_cycle_asks_each_node_twice(self) -> None:
        for word in ("tls", "sealed"):
            floor = self.floor(word)
            self.connect(floor)
            before, cycles = self.calls(), 0
            # What is sealed for one run and not used is used in the next one.
            for _ in range(3):
                answer = floor.ask("cycles 1 20 1", 20.0)
                self.assertIsNone(answer.error)
                self.assertEqual((answer.figures["failed"], len(answer.figures["acquire_us"])), (0, 1))
                cycles += answer.figures["cycles"]
            wanted = [count + 3 * cycles for count in before]
            # A node may run a late request after the answer.
            deadline = time.monotonic() + 10
            while self.calls() != wanted and time.monotonic() < deadline:
                pass
            self.assertEqual(self.calls(), wanted)
            assert floor.about
            self.assertEqual(floor.about.name, f"floor_{word}")

    def test_thousands_at_a_time(self) -> None:
        floor = self.floor("tls")
        self.connect(floor)
        answer = floor.ask("cycles 4096 20 0", 20.0)
        self.assertEqual((answer.error, answer.figures["failed"]), (None, 0))
        self.assertGreaterEqual(answer.figures["cycles"], 4096)

    def test_sealed_finds_a_refusal_afterwards(self) -> None:
        floor = self.floor("sealed")
        self.connect(floor)
        self.links[0].ask(["SET", "bench-0-3", "another"])
        self.assertEqual(floor.ask("cycles 1 20 0", 20.0).error, "a reply was missing or was no yes")

    def test_sealed_finds_that_a_reply_is_missing(self) -> None:
        floor = self.floor("sealed")
        self.connect(floor)
        self.fleet.servers[2].kill()
        self.assertEqual(floor.ask("cycles 1 20 0", 20.0).error, "a reply was missing or was no yes")

    def test_sealed_is_for_one_worker(self) -> None:
        floor = self.floor("sealed")
        self.connect(floor)
        self.assertRegex(floor.ask("cycles 2 20 0", 20.0).error or "", "one worker only")

    def test_the_certificate_is_checked(self) -> None:
        other = self.folder / "other.pem"
        make_certificate(other)
        with self.assertRaisesRegex(ContenderError, f"{HOST}:.*Protocol error"):
            self.connect(self.floor("tls", other))


if __name__ == "__main__":
    unittest.main()
