# Workload (d): which contests there are, and what comes of the waits that contenders report. Pure.
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import stats
from .results import PERCENTILES
from .schedule import ASYNC, BLOCKING, POLLING

NEAR, FAR, UNEVEN = "near", "1ms", "uneven"
# Round trips of the five nodes' links in microseconds; none is behind the proxy in NEAR.
LINKS_US: dict[str, tuple[int, ...]] = {NEAR: (), FAR: (1000,) * 5, UNEVEN: (200, 500, 1000, 2000, 5000)}
LINK_TITLES = {NEAR: "loopback", FAR: "links of 1 ms", UNEVEN: "links of 0.2, 0.5, 1, 2, 5 ms"}

LINE, LOOP = "line", "loop"
UNCONTENDED, RESTED, MIXED = "uncontended", "uncontended, rested", "mixed"
HOLDER_DEAD, WAITER_DEAD, FREE_RELEASE = "holder dead", "waiter dead", "free release"
LEAST_HANDOVER = "least handover"  # of the least possible program, beside FIFTY
REST_US = 1000  # of RESTED: as long as the holders of most contests hold
SPACE_US = 500  # from the begin of one waiter to that of the next, over all processes
MIXED_PEERS = ("redsync", "node-redlock", "redlock-py")
DEAD_TTL_MS = 500
CLOCKS_US = 5000  # processes need not agree more exactly than this on who began first
EACH_US = 400  # an estimate of a handover, for the plan
BETWEEN_SECONDS = 0.15  # what a contest takes beside its own time
CONNECT_SECONDS = 0.01  # a process
FREE_RELEASE_SECONDS = 1.2  # of each round
LEAST_HANDOVER_SECONDS = 0.8  # the same
PEER_SECONDS = 2.5  # what the processes of a peer take to start


@dataclass(frozen=True)
class Case:
    """So many clients in so many processes. In a line each wants the lock once, and all wait when
    it first gets free; in a loop each begins again at once."""

    kind: str
    clients: int
    processes: int = 1
    hold_ms: int = 1
    link: str = NEAR
    # A loop's length, or the longest time that a line may take from its first release on.
    ms: int = 0
    counted: bool = False  # with MONITOR, which counts requests and costs the nodes time

    @property
    def point(self) -> str:
        words = [self.kind, str(self.clients), str(self.processes), str(self.hold_ms), self.link]
        return ":".join(words + ["counted"] * self.counted)

    @property
    def hold_us(self) -> int:
        return self.hold_ms * 1000

    @property
    def settle_us(self) -> int:
        """From the last one's begin until the lock gets free: all of them wait."""
        return 100_000 + 300 * self.clients

    @property
    def seconds(self) -> float:
        """An estimate."""
        around = BETWEEN_SECONDS + self.processes * CONNECT_SECONDS
        if self.kind == LOOP:
            return around + self.ms / 1000
        line_us = self.clients * (
            SPACE_US + self.hold_us + EACH_US + max(LINKS_US[self.link], default=0)
        ) + self.settle_us
        return around + line_us / 1e6


def title(point: str) -> str:
    words = point.split(":")
    if len(words) < 5:
        return point
    kind, clients, processes, hold_ms, link = words[:5]
    where = "1 process" if processes == "1" else f"{processes} processes"
    return f"{kind} of {clients} in {where}, held for {hold_ms} ms, {LINK_TITLES[link]}"


@dataclass(frozen=True)
class Plan:
    bound_seconds: float  # then no contest begins any more
    rounds: int
    cases: tuple[Case, ...]  # ours, each round
    others: tuple[Case, ...]  # of the blocking API and of polling, each round
    peers: tuple[Case, ...]  # once
    uncontended_ms: int
    deaths: int  # of each kind, each round
    mixed_rounds: int
    mixed_ms: int

    @property
    def seconds(self) -> float:
        links = len({case.link for case in self.cases})
        round_seconds = sum(case.seconds for case in self.cases) + 2 * sum(case.seconds for case in self.others)
        round_seconds += 2 * links * (self.uncontended_ms / 1000 + BETWEEN_SECONDS)
        round_seconds += self.deaths * (DEAD_TTL_MS / 1000 + 1.2) + FREE_RELEASE_SECONDS + LEAST_HANDOVER_SECONDS
        return self.rounds * round_seconds + self.mixed_rounds * (self.mixed_ms / 1000 + BETWEEN_SECONDS)

    def peer_seconds(self) -> float:
        """Of one peer."""
        across = any(case.processes > 1 for case in self.peers)
        return PEER_SECONDS * across + sum(
            case.seconds + (case.ms / 2000 if case.kind == LINE else 0) for case in self.peers
        )


TEN, FIFTY = Case(LINE, 10, 10, ms=3000), Case(LINE, 50, 10, ms=5000)
TWO_HUNDRED, SPREAD_OUT = Case(LINE, 200, 1, ms=8000), Case(LINE, 200, 20, ms=8000)
THOUSAND = Case(LINE, 1000, 20, ms=25_000)
FAR_FIFTY = Case(LINE, 50, 10, link=FAR, ms=5000)


def loops(ms: int) -> tuple[Case, Case, Case]:
    long_ms = max(ms, 2000)
    # Who waits at the end of a loop made its requests without a grant, so a short loop counts too
    # many a grant.
    return Case(LOOP, 64, ms=ms), Case(LOOP, 256, 16, ms=long_ms), Case(LOOP, 64, ms=long_ms, counted=True)


QUICK = Plan(
    bound_seconds=50.0,
    rounds=1,
    cases=(TEN, FIFTY, TWO_HUNDRED, SPREAD_OUT, THOUSAND, *loops(1000), FAR_FIFTY),
    others=(),
    peers=(replace(TWO_HUNDRED, ms=1500),),
    uncontended_ms=200,
    deaths=2,
    mixed_rounds=5,
    mixed_ms=1000,
)

FULL = Plan(
    bound_seconds=800.0,
    rounds=3,
    cases=(
        Case(LINE, 2, 1, ms=3000),
        Case(LINE, 10, 1, ms=3000),
        TEN,
        FIFTY,
        Case(LINE, 50, 10, hold_ms=20, ms=10_000),
        TWO_HUNDRED,
        SPREAD_OUT,
        THOUSAND,
        replace(SPREAD_OUT, counted=True),
        Case(LOOP, 2, 2, ms=1000),
        Case(LOOP, 16, 4, hold_ms=20, ms=3000),
        Case(LOOP, 64, 16, ms=2500),
        *loops(2500),
        Case(LINE, 10, 10, link=FAR, ms=3000),
        FAR_FIFTY,
        Case(LINE, 200, 20, link=FAR, ms=8000),
        Case(LOOP, 64, 1, link=FAR, ms=2500),
        Case(LINE, 50, 10, link=UNEVEN, ms=5000),
        Case(LOOP, 64, 4, link=UNEVEN, ms=2500),
    ),
    others=(TEN, FIFTY, TWO_HUNDRED, Case(LOOP, 64, ms=2500)),
    peers=(
        Case(LINE, 10, 1, ms=6000),
        Case(LINE, 50, 1, ms=6000),
        TWO_HUNDRED,
        Case(LINE, 40, 4, ms=6000),
        Case(LOOP, 64, ms=2500),
        Case(LOOP, 16, 4, hold_ms=20, ms=3000),
        Case(LINE, 50, 1, link=FAR, ms=6000),
    ),
    uncontended_ms=500,
    deaths=3,
    mixed_rounds=5,
    mixed_ms=2500,
)

PLANS = {"quick": QUICK, "full": FULL}
OTHERS = (POLLING, BLOCKING)


def shares(clients: int, processes: int) -> list[int]:
    """How many of the clients each process has."""
    return [clients // processes + (number < clients % processes) for number in range(processes)]


def waits_of(answer: dict[str, Any], process: int) -> list[stats.Wait]:
    """A client's number is its own over all processes."""
    return [stats.Wait(process * 10_000 + client, *times) for client, *times in answer["waits"]]


def _common(waits: Sequence[stats.Wait]) -> tuple[dict[str, Any], list[int]]:
    grants = sum(1 for wait in waits if wait.granted)
    between = stats.handovers(waits)
    figures: dict[str, Any] = {"grants": grants, "overlaps": stats.overlaps(waits)}
    if between:
        ordered = sorted(between)
        figures["handover_samples"] = len(ordered)
        figures |= {f"handover_{key}_us": stats.percentile(ordered, share) for key, share in PERCENTILES.items()}
    return figures, between


def _order(waits: Sequence[stats.Wait], grants: int) -> dict[str, Any]:
    strict, clear = stats.bypasses(waits), stats.bypasses(waits, CLOCKS_US)
    share = {"bypass_share": strict / grants, "bypass_clear_share": clear / grants} if grants else {}
    return {"bypasses": strict, "bypasses_clear": clear, **share}


def line_figures(case: Case, leader: stats.Wait, waits: Sequence[stats.Wait]) -> tuple[dict[str, Any], list[int]]:
    """And the handovers. Raises ValueError where not all waited when the leader released."""
    if not leader.released or not leader.granted <= min(wait.began for wait in waits):
        raise ValueError("the leader did not hold the lock before the others began")
    if len(waits) < case.clients or max(wait.began for wait in waits) >= leader.released:
        raise ValueError("not all waited when the lock first got free")
    figures, between = _common([leader, *waits])
    served = figures["grants"] - 1
    figures |= {"grants": served, "served": served, "waiters": case.clients, **_order(waits, served)}
    if served == case.clients:
        total_us = max(wait.released for wait in waits) - leader.released
        figures["total_ms"] = total_us / 1000
        figures["total_ratio"] = total_us / (case.clients * (case.hold_us + figures["handover_p50_us"]))
    return figures, between


def loop_figures(case: Case, clients: int, waits: Sequence[stats.Wait]) -> tuple[dict[str, Any], list[int]]:
    figures, between = _common(waits)
    grants = Counter(wait.client for wait in waits if wait.granted)
    figures["jain"] = stats.jain([float(count) for count in grants.values()] + [0.0] * (clients - len(grants)))
    figures["grants_per_s"] = figures["grants"] / (case.ms / 1000)
    figures |= _order(waits, figures["grants"])
    return figures, between
