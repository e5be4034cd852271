"""What C tells: of leaders, nodes, locks and telemetry."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Optional

from ._base import text
from ._enums import Code, EventKind, NodeState, TelemetryKind
from ._redlock import ffi, lib
from ._result import copy_of

if TYPE_CHECKING:
    from ._base import CData
    from ._result import Result


@dataclass(frozen=True)
class Leader:
    """Who leads. `token` is "" if nobody does; `holder` is who the leader says it is."""

    token: str
    holder: str
    is_self: bool

    @staticmethod
    def of(leader: CData) -> Optional[Leader]:
        return None if leader == ffi.NULL else Leader(text(leader.token), text(leader.holder), bool(leader.is_self))


@dataclass(frozen=True)
class NodeInfo:
    """What is known of a node, as redlock_node_info says it."""

    name: str
    state: NodeState
    version: str
    role: str
    warning: str
    error: str
    uptime_s: Optional[int]
    round_trip_us: Optional[int]
    connects: int
    quarantine_ms: int
    quarantine: str
    listens: bool
    queue_error: str
    queue_refused: bool
    credentials_pending: bool
    credentials_error: str
    round_trip_min_us: Optional[int]
    shared_error: str

    @staticmethod
    def of(info: CData) -> NodeInfo:
        return NodeInfo(text(info.name), NodeState(info.state), text(info.version), text(info.role),
                        text(info.warning), text(info.error), None if info.uptime_s < 0 else info.uptime_s,
                        None if info.round_trip_us < 0 else info.round_trip_us, info.connects, info.quarantine_ms,
                        text(info.quarantine), bool(info.listens), text(info.queue_error), bool(info.queue_refused),
                        bool(info.credentials_pending), text(info.credentials_error),
                        None if info.round_trip_min_us < 0 else info.round_trip_min_us, text(info.shared_error))


@dataclass(frozen=True)
class Event:
    """What an election tells. Only the members that its kind uses say something."""

    kind: EventKind
    term: int
    fence: int
    code: Code
    result: Optional[Result]
    reason: str
    leader: Optional[Leader]
    remaining_ms: int

    @staticmethod
    def of(event: CData) -> Event:
        return Event(EventKind(event.kind), event.term, event.fence, Code(event.code), copy_of(event.result),
                     text(event.reason), Leader.of(event.leader), event.remaining_ms)


@dataclass(frozen=True)
class TelemetryEvent:
    """One step of a lock, or of a node, as redlock_telemetry_event says it."""

    kind: TelemetryKind
    code: Code
    id: int
    resource: str
    node: str
    node_index: int
    reason: str
    attempts: int
    elapsed_us: int
    validity_ms: int
    fence: int
    automatic: bool

    @staticmethod
    def of(event: CData) -> TelemetryEvent:
        return TelemetryEvent(TelemetryKind(event.kind), Code(event.code), event.id, text(event.resource),
                              text(event.node), event.node_index, text(event.reason), event.attempts,
                              event.elapsed_us, event.validity_ms, event.fence, bool(event.automatic))


@dataclass(frozen=True)
class Listed:
    """One lock at one node, as redlock_listed says it."""

    node: int
    resource: str
    token: str
    ttl_ms: Optional[int]
    waiters: Optional[int]

    @staticmethod
    def of(lock: CData) -> Listed:
        return Listed(lock.node, text(lock.resource), text(lock.token), None if lock.ttl_ms < 0 else lock.ttl_ms,
                      None if lock.waiters < 0 else lock.waiters)


class Histogram:
    """How long something took, and how often."""

    def __init__(self, c: CData, snapshot: CData) -> None:
        self._c = c
        self._snapshot = snapshot  # c points into it
        self.count = int(c.count)
        self.sum_us = int(c.sum_us)
        self.buckets: list[int] = list(c.buckets)

    def quantile_us(self, quantile: float) -> Optional[int]:
        """Such as the median for 0.5; None if there is no value."""
        us = lib.redlock_histogram_quantile_us(self._c, quantile)
        return None if us < 0 else int(us)

    @staticmethod
    def bound_us(bucket: int) -> int:
        """What all values of the bucket are below."""
        return int(lib.redlock_histogram_bound_us(bucket))


class Telemetry:
    """A snapshot of redlock_telemetry."""

    def __init__(self, call: Callable[[CData], None], nodes: int) -> None:
        c = ffi.new("redlock_telemetry *")
        c.size = ffi.sizeof("redlock_telemetry")
        call(c)
        self.acquire = Histogram(ffi.addressof(c, "acquire"), c)
        self.wait = Histogram(ffi.addressof(c, "wait"), c)
        self.held = Histogram(ffi.addressof(c, "held"), c)
        self.renewal_late = Histogram(ffi.addressof(c, "renewal_late"), c)
        self.node_ups: list[int] = list(c.node_ups)[:nodes]
        self.node_downs: list[int] = list(c.node_downs)[:nodes]
        # What each node voted, by the name of redlock_voted_name(): "granted", "timeout", …
        self.votes: dict[str, list[int]] = {
            text(lib.redlock_voted_name(voted)): list(votes)[:nodes] for voted, votes in enumerate(c.votes)
            if lib.redlock_voted_name(voted)[0] != b"\0"}


def statistics_of(call: Callable[[CData], None]) -> dict[str, int]:
    """The counters that `call` fills in."""
    counted = ffi.new("redlock_statistics *")
    counted.size = ffi.sizeof("redlock_statistics")
    call(counted)
    return {name: int(getattr(counted, name)) for name, _ in ffi.typeof("redlock_statistics").fields if name != "size"}
