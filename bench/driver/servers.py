# The nodes: redis-servers on loopback that are killed, stopped and started again; and the proxy
# that delays links to them.
from __future__ import annotations

import contextlib
import os
import random
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import processes

HOST = "127.0.0.1"
READY_SECONDS = 10.0
ANSWER_SECONDS = 5.0


class ServerError(Exception):
    """A node or the proxy does not do what the benchmark needs of it."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that the kernel gives to clients: while a node is
    dead, no client's own end of a connection may sit on its port."""
    lowest_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(10_000, max(lowest_of_clients, 12_000))
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        with socket.socket() as trial:
            # As redis-server does it: connections that wait for their end do not count.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ServerError(f"there are no {count} free ports on {HOST}")


def command(port: int, words: list[str]) -> bytes:
    """The first line of what a node answers to one command."""
    request = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with socket.create_connection((HOST, port), ANSWER_SECONDS) as link:
        link.sendall(request.encode())
        answer = b""
        while b"\r\n" not in answer:
            part = link.recv(4096)
            if not part:
                raise ServerError(f"the node on port {port} closed the connection at {words[0]}")
            answer += part
    return answer.split(b"\r\n", 1)[0]


def make_certificate(path: Path) -> None:
    """A certificate for the nodes, which is its own authority, and its key: both in one file."""
    subject = ["-subj", "/CN=redlock-bench", "-addext", f"subjectAltName=IP:{HOST}", "-days", "2"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = subprocess.run(
        ["openssl", "req", "-x509", *key, *subject, "-keyout", path, "-out", path], capture_output=True, text=True
    )
    if made.returncode != 0:
        raise ServerError(f"openssl made no certificate: {made.stderr.strip()}")


@dataclass(frozen=True)
class Tls:
    """What a node needs to speak TLS on a second port."""

    port: int
    certificate: Path


class Server:
    """One redis-server without persistence, on a port that it keeps over restarts."""

    def __init__(self, port: int, folder: Path, tls: Tls | None = None) -> None:
        self.port = port
        self.address = f"{HOST}:{port}"
        self.tls_address = f"{HOST}:{tls.port}" if tls else ""
        self._tls = tls
        self.stopped = False
        self._folder = folder
        self._log = folder / f"redis-{port}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._cpu_before = 0.0

    def start(self) -> None:
        arguments = [
            "--port", str(self.port), "--bind", HOST, "--save", "", "--appendonly", "no", "--dir", str(self._folder)
        ]
        if self._tls:
            file = str(self._tls.certificate)
            arguments += ["--tls-port", str(self._tls.port), "--tls-auth-clients", "no"]
            arguments += ["--tls-cert-file", file, "--tls-key-file", file]
        self._process = processes.start(["redis-server", *arguments], log=self._log)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(OSError, ServerError):
                if command(self.port, ["PING"]) == b"+PONG":
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"redis-server does not answer on port {self.port}: {processes.tail(self._log)}")
            time.sleep(0.005)

    @property
    def runs(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        if self._process:
            with contextlib.suppress(OSError):  # it may have ended by itself
                self._cpu_before = self.cpu_seconds()
            processes.end(self._process)
            self._process = None
            self.stopped = False

    def stop(self) -> None:
        """Hangs it: it keeps its connections and answers nothing."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)
        self.stopped = True

    def resume(self) -> None:
        if self._process and self.stopped:
            os.kill(self._process.pid, signal.SIGCONT)
            self.stopped = False

    def flush(self) -> None:
        if self._process and not self.stopped and command(self.port, ["FLUSHALL"]) != b"+OK":
            raise ServerError(f"the node on port {self.port} refuses FLUSHALL")

    def cpu_seconds(self) -> float:
        """Of all its lives."""
        return self._cpu_before + (processes.cpu_seconds(self._process.pid) if self._process else 0.0)


class Fleet:
    """The nodes of the benchmark; as many as were asked for at most so far."""

    def __init__(self, ports: list[int], folder: Path, tls: Sequence[Tls] = ()) -> None:
        """The first nodes speak TLS, too: as many as there is `tls`."""
        secured = [*tls, *[None] * (len(ports) - len(tls))]
        self.servers = [Server(port, folder, own) for port, own in zip(ports, secured, strict=True)]

    def ensure(self, count: int) -> None:
        """The first count nodes run and answer, none of them from before a fault; the others do not run."""
        for server in self.servers[:count]:
            server.resume()
            if not server.runs:
                server.start()
        for server in self.servers[count:]:
            server.kill()

    def flush(self) -> None:
        for server in self.servers:
            server.flush()

    def cpu_seconds(self) -> float:
        return sum(server.cpu_seconds() for server in self.servers)

    def close(self) -> None:
        for server in self.servers:
            server.kill()


class Proxy:
    """redlock-proxy: one link to each node, which delays every byte by a time of the link's own."""

    def __init__(self, program: Path, ports: list[int], targets: list[int], log: Path) -> None:
        self.addresses = [f"{HOST}:{port}" for port in ports]
        self._delays_us = [0] * len(ports)
        self._log = log
        links = [f"{port}={target}" for port, target in zip(ports, targets, strict=True)]
        self._process = processes.start([program, *links], log=log, pipes=True)
        self._unread = b""
        try:
            self._expect("ready", READY_SECONDS)
        except ServerError:
            self.close()
            raise

    def set_round_trip(self, link: int, round_trip_us: int) -> None:
        """Half of it for each way."""
        if self._delays_us[link] == round_trip_us:
            return
        assert self._process.stdin
        self._process.stdin.write(f"set {link} delay_us {round_trip_us // 2}\n".encode())
        self._process.stdin.flush()
        self._expect("ok", ANSWER_SECONDS)
        self._delays_us[link] = round_trip_us

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self._process.pid)

    def close(self) -> None:
        processes.end(self._process)

    def _expect(self, word: str, seconds: float) -> None:
        assert self._process.stdout
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ServerError(
                        f"the delaying proxy did not say {word!r} in {seconds:g} s: {processes.tail(self._log)}"
                    )
                part = os.read(self._process.stdout.fileno(), 4096)
                if not part:
                    raise ServerError(f"the delaying proxy ended: {processes.tail(self._log)}")
                self._unread += part
        line, self._unread = self._unread.split(b"\n", 1)
        if line.decode().split()[:1] != [word]:
            raise ServerError(f"the delaying proxy said {line.decode()!r} instead of {word!r}")
