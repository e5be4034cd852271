"""Real redis-servers for the tests, and a deadline for what must happen."""
import contextlib
import ctypes
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENT_S = 60


def eventually(condition):
    """Polls until the condition holds."""
    deadline = time.monotonic() + PATIENT_S
    while not condition():
        assert time.monotonic() < deadline, "this never came true"
        time.sleep(0.002)


def die_with_parent():
    """In a child process: the kernel kills it when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """One server, in a folder of its own."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.socket = self.folder / "socket"
        for _ in range(50):
            self.port = random.randint(20000, 32000)
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                 "--unixsocket", str(self.socket)], stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
            if self._answers():
                return
        raise RuntimeError("no redis-server could be started")

    def _answers(self):
        deadline = time.monotonic() + PATIENT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if self.ask("PING") == "+PONG":
                    return True
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        return False

    def ask(self, *words):
        """The first line of the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.makefile("r", newline="\r\n").readline().strip()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Servers:
    """Some servers. `nodes` is for a client."""

    def __init__(self, count):
        self.folder = tempfile.mkdtemp()
        self.all = []
        for index in range(count):
            folder = Path(self.folder, str(index))
            folder.mkdir()
            self.all.append(Server(str(folder)))
        self.nodes = [f"127.0.0.1:{server.port}" for server in self.all]

    def with_key(self, key):
        """How many have the key."""
        return sum(server.ask("EXISTS", key) == ":1" for server in self.all)

    def delete(self, key):
        for server in self.all:
            server.ask("DEL", key)

    def clear(self):
        for server in self.all:
            server.ask("FLUSHALL")

    def stop(self):
        for server in self.all:
            server.stop()
        shutil.rmtree(self.folder)
