# A contender: a program that stays up and speaks the protocol of bench/README.md; what it answered
# and what that cost.
from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from . import processes

HELLO_SECONDS = 30.0
CONNECT_SECONDS = 15.0
JSON_SECONDS = 20.0
GOODBYE_SECONDS = 1.0
SETTLE_SECONDS = 0.002
SHORT_LINE = 1000  # bytes, of an answer without samples

UNSUPPORTED = "unsupported"  # a contender's word for a command that it does not have


class ContenderError(Exception):
    """It ended, kept silent, or said what is no protocol. It was killed; the next command starts it again."""


@dataclass(frozen=True)
class Program:
    """How a contender is started."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """What a contender says of itself."""

    name: str
    version: str
    language: str
    notes: str


@dataclass(frozen=True)
class Answer:
    figures: dict[str, Any]
    cpu_seconds: float  # of the contender, from the command to `done`
    wall_seconds: float
    error: str | None = field(default=None)


class Contender:
    def __init__(self, program: Program, logs: Path) -> None:
        self.name = program.name
        self.about: About | None = None
        self.starts = 0
        self._command = program.command
        self._log = logs / f"{program.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._addresses: tuple[str, ...] = ()
        self._before = self._began = 0.0  # processor time and time when the last command was sent

    def ask(self, command: str, seconds: float) -> Answer:
        """One command. Its processor time is read from outside, the same way for all, threads included."""
        self.send(command)
        return self.receive(seconds)

    def send(self, command: str) -> None:
        """A command whose answer is received later: others can be at work at the same time."""
        self.start()
        assert self._process and self._process.stdin
        self._before, self._began = processes.cpu_seconds(self._process.pid), time.monotonic()
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self._broken(error)

    def receive(self, seconds: float) -> Answer:
        """The answer to the command that was sent, in so many seconds from now."""
        if not self._process:
            raise ContenderError("ended before its answer")
        pid = self._process.pid
        try:
            said = self._line(seconds)
            at_done, wall = processes.cpu_seconds(pid), time.monotonic() - self._began
            if said != b"done":
                raise ContenderError(f"said {said[:80].decode(errors='replace')!r} instead of 'done'")
            if processes.children(pid):
                raise ContenderError("runs another process, whose processor time would be missed; its run must exec it")
            line = self._line(JSON_SECONDS)
            cpu = self._settled(pid, at_done, line) - self._before
            figures = json.loads(line)
            if not isinstance(figures, dict):
                raise ContenderError("answered with JSON that is no object")
        except (ContenderError, OSError, ValueError) as error:
            self._broken(error)
        refused = figures.get("error") if not any(key in figures for key in ("cycles", "grants", "waits")) else None
        return Answer(figures, cpu, wall, str(refused) if refused is not None else None)

    def _broken(self, error: Exception) -> NoReturn:
        self.kill()
        raise ContenderError(self._ended() if isinstance(error, BrokenPipeError) else str(error)) from error

    @staticmethod
    def _settled(pid: int, at_done: float, line: bytes) -> float:
        """The kernel books what a running thread uses when it leaves the processor or the timer
        ticks: the clock of another process that still runs lags by up to 4 ms. So it is read again
        once the contender waits for its next command. Samples are long to write, which is none of
        the work: with them the first reading stands."""
        if len(line) > SHORT_LINE:
            return at_done
        time.sleep(SETTLE_SECONDS)
        return processes.cpu_seconds(pid)

    def connect(self, addresses: tuple[str, ...]) -> None:
        """Only where the nodes are not those that it is connected to already."""
        if self._process and self._addresses == addresses:
            return
        answer = self.ask("connect " + " ".join(addresses), CONNECT_SECONDS)
        if answer.error:
            raise ContenderError(f"could not connect: {answer.error}")
        self._addresses = addresses

    def forget_connections(self) -> None:
        """After a fault: the next connect is made anew."""
        self._addresses = ()

    def start(self) -> About:
        if self._process and self.about:
            return self.about
        self.kill()
        self._process = processes.start(self._command, log=self._log, pipes=True)
        self.starts += 1
        try:
            hello = json.loads(self._line(HELLO_SECONDS))
            about = About(*(str(hello[key]) for key in ("name", "version", "language", "notes")))
        except (ContenderError, ValueError, KeyError, TypeError) as error:
            self.kill()
            raise ContenderError(f"did not introduce itself ({error}): {processes.tail(self._log)}") from error
        self.about = about
        return about

    def kill(self) -> None:
        self._end(0.0)

    def close(self) -> None:
        """At the end of its input it should exit by itself."""
        self._end(GOODBYE_SECONDS)

    def _end(self, kindly: float) -> None:
        if self._process:
            processes.end(self._process, kindly=kindly)
            self._process = None
        self._unread, self._addresses = b"", ()

    def _line(self, seconds: float) -> bytes:
        assert self._process and self._process.stdout
        deadline = time.monotonic() + seconds
        parts = [self._unread]
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ContenderError(f"no answer in {seconds:.1f} s")
                part = os.read(self._process.stdout.fileno(), 1 << 20)
                if not part:
                    raise ContenderError(self._ended())
                parts.append(part)
        line, self._unread = b"".join(parts).split(b"\n", 1)
        return line.strip()

    def _ended(self) -> str:
        words = processes.tail(self._log)
        return f"ended: {words}" if words else "ended without a word"
