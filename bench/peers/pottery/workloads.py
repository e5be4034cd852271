# The two workloads, on the one event loop: a worker or client is a task.
from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from pottery import AIORedlock
from pottery.exceptions import PrimitiveError
from redis.exceptions import RedisError

import nodes

NAMES = 8
RESOURCE = "bench-contended"

ERRORS = (PrimitiveError, RedisError)


def microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 1)


class NotAcquired(PrimitiveError):
    """pottery says no more than False; what went wrong on the nodes is in its log."""


def told(error: Exception) -> str:
    """A message for people: of its own errors the name and the key, for they print all clients with all options."""
    return f"{type(error).__name__}: {error.key if isinstance(error, PrimitiveError) else error}"


class Cycles:
    def __init__(self, seconds: float, samples: int) -> None:
        self.samples = samples
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.figures: dict[str, Any] = {"cycles": 0, "failed": 0, "seconds": 0.0, "acquire_us": [], "release_us": []}

    async def worker(self, locks: list[AIORedlock]) -> None:
        figures, now, turn = self.figures, time.monotonic, 0
        while (began := now()) < self.end:
            lock, turn = locks[turn], (turn + 1) % NAMES
            try:
                if not await lock.acquire(blocking=False):
                    raise NotAcquired(lock.key, masters=lock.masters)
                acquired = now()
                await lock.release()
            except ERRORS as error:
                figures["failed"] += 1
                figures.setdefault("error", told(error))
                continue
            figures["cycles"] += 1
            if len(figures["acquire_us"]) < self.samples:
                figures["acquire_us"].append(microseconds(acquired - began))
                figures["release_us"].append(microseconds(now() - acquired))


async def cycles(masters: nodes.Masters, workers: int, ms: int, samples: int) -> dict[str, Any]:
    locks = [[nodes.lock(f"bench-{w}-{n}", masters) for n in range(NAMES)] for w in range(workers)]
    run = Cycles(ms / 1000, samples)
    await asyncio.gather(*(run.worker(own) for own in locks))
    run.figures["seconds"] = time.monotonic() - run.began
    return run.figures


def now_us() -> int:
    """CLOCK_MONOTONIC."""
    return time.monotonic_ns() // 1000


async def sleep_until(us: int) -> None:
    await asyncio.sleep(max((us - now_us()) / 1e6, 0))


class Contest:
    """`last` is FREE_US of a line, or COUNTER of a loop."""

    def __init__(self, again: bool, given: list[int], last: str) -> None:
        self.again = again
        self.clients, self.hold_us, self.begin_us, self.space_us, self.end_us = given
        self.free_us = 0 if again else int(last)
        self.counter = Path(last) if again and last != "-" else None
        self.waits: list[list[int]] = []  # client, began, granted, released
        self.failed = 0
        self.error: str | None = None

    async def client(self, number: int, begin_us: int, lock: AIORedlock) -> None:
        await sleep_until(begin_us)
        await self._compete(number, lock)
        while self.again and now_us() < self.end_us:
            await self._compete(number, lock)

    async def _compete(self, number: int, lock: AIORedlock) -> None:
        wait = [number, now_us(), 0, 0]
        self.waits.append(wait)
        try:
            # Of itself it would wait for ever; it does not begin another try once the time is over.
            if await lock.acquire(timeout=max((self.end_us - now_us()) / 1e6, 0.001)):
                await self._hold(wait)
                await lock.release()
        except ERRORS as error:
            self.failed += 1
            self.error = self.error or told(error)

    async def _hold(self, wait: list[int]) -> None:
        granted = now_us()
        if granted >= self.end_us:
            return
        value = int(self.counter.read_text()) if self.counter else 0
        await sleep_until(self.free_us if wait[0] == self.clients else granted + self.hold_us)
        if self.counter:
            self.counter.write_text(str(value + 1))
        wait[2:] = [granted, now_us()]


async def contend(masters: nodes.Masters, again: bool, given: list[int], last: str) -> dict[str, Any]:
    contest = Contest(again, given, last)
    begins = [contest.begin_us + number * contest.space_us for number in range(contest.clients)]
    if contest.free_us:
        begins.append(0)
    locks = [nodes.lock(RESOURCE, masters) for _ in begins]
    await asyncio.gather(*(contest.client(number, begin, locks[number]) for number, begin in enumerate(begins)))
    figures = {"waits": contest.waits, "failed": contest.failed}
    return {**figures, "error": contest.error} if contest.error else figures
