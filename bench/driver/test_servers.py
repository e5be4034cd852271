# The nodes as processes: real redis-servers are started, hung, killed and started again.
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from .servers import HOST, Fleet, Tls, command, free_ports, make_certificate


def answers(port: int) -> bool:
    try:
        return command(port, ["PING"]) == b"+PONG"
    except OSError:
        return False


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not here")
class Nodes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fleet = Fleet(free_ports(2), Path(folder.name))
        self.addCleanup(self.fleet.close)

    def test_killed_and_back_empty_on_its_port(self) -> None:
        self.fleet.ensure(2)
        server = self.fleet.servers[0]
        command(server.port, ["SET", "key", "value"])
        used = self.fleet.cpu_seconds()
        server.kill()
        self.assertFalse(answers(server.port))
        self.fleet.ensure(2)
        self.assertEqual(command(server.port, ["DBSIZE"]), b":0")
        self.assertGreaterEqual(self.fleet.cpu_seconds(), used)

    def test_hung_keeps_silent_and_comes_back(self) -> None:
        self.fleet.ensure(2)
        server = self.fleet.servers[1]
        server.stop()
        with socket.create_connection((HOST, server.port), 5) as link:
            link.sendall(b"PING\r\n")
            link.settimeout(0.1)
            with self.assertRaises(TimeoutError):
                link.recv(1)
            self.fleet.flush()  # leaves it out
            self.fleet.ensure(2)
            link.settimeout(10)
            self.assertEqual(link.recv(7), b"+PONG\r\n")

    def test_flush_and_fewer_nodes(self) -> None:
        self.fleet.ensure(2)
        command(self.fleet.servers[0].port, ["SET", "key", "value"])
        self.fleet.flush()
        self.assertEqual(command(self.fleet.servers[0].port, ["DBSIZE"]), b":0")
        self.fleet.ensure(1)
        self.assertFalse(answers(self.fleet.servers[1].port))

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not here")
    def test_the_first_nodes_speak_tls_too(self) -> None:
        ports, folder = free_ports(3), Path(self.enterContext(tempfile.TemporaryDirectory()))
        certificate = folder / "tls.pem"
        make_certificate(certificate)
        fleet = Fleet(ports[:2], folder, [Tls(ports[2], certificate)])
        self.addCleanup(fleet.close)
        fleet.ensure(2)
        self.assertEqual([server.tls_address for server in fleet.servers], [f"{HOST}:{ports[2]}", ""])
        context = ssl.create_default_context(cafile=str(certificate))
        with socket.create_connection((HOST, ports[2]), 5) as link:
            with context.wrap_socket(link, server_hostname=HOST) as secured:
                secured.sendall(b"PING\r\n")
                self.assertEqual(secured.recv(7), b"+PONG\r\n")


class Ends(unittest.TestCase):
    def test_ports_differ_and_are_none_of_the_clients(self) -> None:
        ports = free_ports(14)
        self.assertEqual(len(set(ports)), 14)
        self.assertLess(max(ports), int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))

    def test_a_child_dies_with_its_parent(self) -> None:
        program = (
            "import sys, pathlib; from driver import processes; "
            "child = processes.start(['sleep', '600'], log=pathlib.Path('/dev/null')); print(child.pid, flush=True); "
            "sys.stdin.read()"
        )
        bench = Path(__file__).resolve().parents[1]
        parent = subprocess.Popen(
            [sys.executable, "-B", "-c", program], cwd=bench, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout and parent.stdin
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        parent.stdout.close()
        parent.stdin.close()
        # Its parent is gone, so somebody else reaps it: it has no name any more, or it is a zombie.
        for _ in range(1000):
            try:
                state = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                return
            if state == "Z":
                return
            time.sleep(0.01)
        self.fail("the child lives on")


if __name__ == "__main__":
    unittest.main()
