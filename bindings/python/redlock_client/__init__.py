"""Locks and leader election over N independent Redis nodes (Redlock), on libredlock.

    client = redlock_client.Client(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"])
    with client.lock("invoice-17", ttl_ms=10_000, wait_timeout_ms=60_000) as lease:
        ...  # ask lease.validity_ms before each step that counts: 0 means stop

redlock_client.aio has the same for asyncio.
"""
from ._base import FOREVER, token_holder, version
from ._client import Client, Lease
from ._election import Election
from ._enums import (
    Code, EventKind, LogLevel, NodeState, Order, RestartGuard, TelemetryKind, VoteKind,
)
from ._news import Event, Histogram, Leader, Listed, NodeInfo, Telemetry, TelemetryEvent
from ._result import (
    BusyError, CancelledError, ClosedError, ContendedError, Error, ForkedError, InvalidError,
    LimitError, LostError, NoMemoryError, NoQuorumError, NotOwnerError, RandomError, Result,
    SystemCallError, TooSlowError, UpgradeError, Vote,
)

__all__ = [
    "BusyError", "CancelledError", "Client", "ClosedError", "Code", "ContendedError", "Election",
    "Error", "Event", "EventKind", "FOREVER", "ForkedError", "Histogram", "InvalidError",
    "Leader", "Lease", "LimitError", "Listed", "LogLevel", "LostError", "NodeInfo", "NodeState",
    "NoMemoryError", "NoQuorumError", "NotOwnerError", "Order", "RandomError", "RestartGuard",
    "Result", "SystemCallError", "Telemetry", "TelemetryEvent", "TelemetryKind", "token_holder",
    "TooSlowError", "UpgradeError", "version", "Vote", "VoteKind",
]
