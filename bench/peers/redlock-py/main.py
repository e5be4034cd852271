# redlock-py as a contender of one resource, each client a thread: commands in, figures out, as
# bench/README.md says.
from __future__ import annotations

import json
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redis import StrictRedis
from redlock import MultipleRedlockException, Redlock

RESOURCE = "bench-contended"
TTL_MS = 10_000
CLIENTS_MAX = 1024
STACK_BYTES = 256 * 1024
NOTES = (
    "threads; one node after the other; 3 tries 200 ms apart (its defaults), again and again until one wins; cannot be "
    "cancelled: a client goes on to the end of its tries; only in (d)"
)


class Refused(Exception):
    """What a command is answered with instead of figures."""


def now_us() -> int:
    """CLOCK_MONOTONIC."""
    return time.monotonic_ns() // 1000


def sleep_until(us: int) -> None:
    time.sleep(max((us - now_us()) / 1e6, 0))


class Contest:
    """`last` is FREE_US of a line, or COUNTER of a loop."""

    def __init__(self, locks: Redlock, again: bool, given: list[int], last: str) -> None:
        self.locks, self.again = locks, again
        self.clients, self.hold_us, self.begin_us, self.space_us, self.end_us = given
        self.free_us = 0 if again else int(last)
        self.counter = Path(last) if again and last != "-" else None
        self.waits: list[list[int]] = []  # client, began, granted, released
        self.failed = 0
        self.error: str | None = None

    def run(self) -> dict[str, Any]:
        begins = [self.begin_us + number * self.space_us for number in range(self.clients)]
        if self.free_us:
            begins.append(0)
        threads = [threading.Thread(target=self._client, args=one) for one in enumerate(begins)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"waits": self.waits, "failed": self.failed, **({"error": self.error} if self.error else {})}

    def _client(self, number: int, begin_us: int) -> None:
        sleep_until(begin_us)
        self._compete(number)
        while self.again and now_us() < self.end_us:
            self._compete(number)

    def _compete(self, number: int) -> None:
        wait = [number, now_us(), 0, 0]
        self.waits.append(wait)
        while now_us() < self.end_us:
            try:
                if lock := self.locks.lock(RESOURCE, TTL_MS):
                    self._hold(wait)
                    self.locks.unlock(lock)
                    return
            except MultipleRedlockException as error:
                self.failed += 1
                self.error = self.error or str(error)
                return

    def _hold(self, wait: list[int]) -> None:
        granted = now_us()
        if granted >= self.end_us:
            return
        value = int(self.counter.read_text()) if self.counter else 0
        sleep_until(self.free_us if wait[0] == self.clients else granted + self.hold_us)
        if self.counter:
            self.counter.write_text(str(value + 1))
        wait[2:] = [granted, now_us()]


class Session:
    def __init__(self) -> None:
        self._nodes: list[StrictRedis] = []

    def execute(self, command: str, words: list[str]) -> dict[str, Any]:
        if command == "connect":
            return self._connect(words)
        if command not in ("line", "loop"):
            raise Refused("unsupported")
        if not self._nodes:
            raise Refused("not connected")
        if len(words) != 6 or not all(word.isdigit() for word in words[:5]) or int(words[0]) > CLIENTS_MAX:
            raise Refused(f"{command} needs CLIENTS HOLD_US BEGIN_US SPACE_US END_US and FREE_US or COUNTER")
        return Contest(Redlock(self._nodes), command == "loop", [int(word) for word in words[:5]], words[5]).run()

    def _connect(self, addresses: list[str]) -> dict[str, Any]:
        for node in self._nodes:
            node.close()
        self._nodes = [StrictRedis.from_url(f"redis://{address}") for address in addresses]
        locks = Redlock(self._nodes, retry_count=40)
        if not (lock := locks.lock("bench-connect", TTL_MS)):
            raise Refused("no lock could be taken in 8 s")
        locks.unlock(lock)
        return {}


def main() -> None:
    threading.stack_size(STACK_BYTES)
    about = {
        "name": "redlock-py",
        "version": f"{version('redlock-py')}, redis-py {version('redis')}",
        "language": "Python",
        "notes": NOTES,
    }
    print(json.dumps(about), flush=True)
    session = Session()
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split(" ")
        try:
            figures = session.execute(command, words)
        except Refused as refused:
            figures = {"error": str(refused)}
        print("done", flush=True)
        print(json.dumps(figures), flush=True)


main()
