# The two workloads, on the one event loop: a worker or client is a task.
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pottery import AIORedlock
from pottery.exceptions import PrimitiveError
from redis.exceptions import RedisError

import nodes

NAMES = 8
RESOURCE = "bench-contended"
HANDOVERS_MAX = 20_000

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


class Fight:
    def __init__(self, clients: int, seconds: float, hold_us: int) -> None:
        self.grants, self.handovers, self.hold_seconds = [0] * clients, [], hold_us / 1e6
        self.failed = self.overlaps = self.holders = 0
        self.released: float | None = None  # when a release was last called; None once a grant has followed
        self.error: str | None = None
        self.began = time.monotonic()
        self.end = self.began + seconds

    async def client(self, index: int, lock: AIORedlock) -> None:
        while (left := self.end - time.monotonic()) > 0:
            try:
                # Of itself it would wait for ever; it does not begin another try once the time is over.
                if await lock.acquire(timeout=left):
                    async with self._holding(index):
                        await asyncio.sleep(self.hold_seconds)
                    await lock.release()
            except ERRORS as error:
                self.failed += 1
                self.error = self.error or told(error)

    @asynccontextmanager
    async def _holding(self, index: int) -> AsyncIterator[None]:
        now = time.monotonic()
        self.overlaps += self.holders > 0
        self.holders += 1
        if now < self.end:
            self.grants[index] += 1
            if self.released is not None and len(self.handovers) < HANDOVERS_MAX:
                self.handovers.append(microseconds(now - self.released))
            self.released = None
        yield
        self.holders -= 1
        self.released = time.monotonic()


async def contend(masters: nodes.Masters, clients: int, ms: int, hold_us: int) -> dict[str, Any]:
    locks = [nodes.lock(RESOURCE, masters) for _ in range(clients)]
    fight = Fight(clients, ms / 1000, hold_us)
    await asyncio.gather(*(fight.client(index, lock) for index, lock in enumerate(locks)))
    return {
        "grants": fight.grants,
        "seconds": min(time.monotonic() - fight.began, ms / 1000),  # in which grants were counted
        "handover_us": fight.handovers,
        "failed": fight.failed,
        "overlaps": fight.overlaps,
        **({"error": fight.error} if fight.error else {}),
    }
