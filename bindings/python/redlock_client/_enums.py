"""The codes and kinds of C."""
from __future__ import annotations

import enum
from typing import Any

from ._redlock import lib


class _Enum(enum.IntEnum):
    """An enum of C. A library that is newer may have more members."""

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


class Code(_Enum):
    """What can come of a call."""

    OK = lib.REDLOCK_OK
    CONTENDED = lib.REDLOCK_ERR_CONTENDED
    NO_QUORUM = lib.REDLOCK_ERR_NO_QUORUM
    TOO_SLOW = lib.REDLOCK_ERR_TOO_SLOW
    LOST = lib.REDLOCK_ERR_LOST
    CANCELLED = lib.REDLOCK_ERR_CANCELLED
    CLOSED = lib.REDLOCK_ERR_CLOSED
    INVALID = lib.REDLOCK_ERR_INVALID
    NO_MEMORY = lib.REDLOCK_ERR_NO_MEMORY
    BUSY = lib.REDLOCK_ERR_BUSY
    FORKED = lib.REDLOCK_ERR_FORKED
    RANDOM = lib.REDLOCK_ERR_RANDOM
    SYSTEM = lib.REDLOCK_ERR_SYSTEM
    NOT_OWNER = lib.REDLOCK_ERR_NOT_OWNER
    LIMIT = lib.REDLOCK_ERR_LIMIT
    UPGRADE = lib.REDLOCK_ERR_UPGRADE


class VoteKind(_Enum):
    """What one node said."""

    PENDING = lib.REDLOCK_VOTE_PENDING
    GRANTED = lib.REDLOCK_VOTE_GRANTED
    DENIED = lib.REDLOCK_VOTE_DENIED
    FAILED = lib.REDLOCK_VOTE_FAILED
    UNKNOWN = lib.REDLOCK_VOTE_UNKNOWN
    ABSTAINED = lib.REDLOCK_VOTE_ABSTAINED


class EventKind(_Enum):
    """What an election tells."""

    NOTHING = lib.REDLOCK_ELECTION_NOTHING
    LEADING = lib.REDLOCK_ELECTION_LEADING
    LOST = lib.REDLOCK_ELECTION_LOST
    RESIGNED = lib.REDLOCK_ELECTION_RESIGNED
    LEADER = lib.REDLOCK_ELECTION_LEADER
    TROUBLE = lib.REDLOCK_ELECTION_TROUBLE
    ENDED = lib.REDLOCK_ELECTION_ENDED
    EXPIRING = lib.REDLOCK_ELECTION_EXPIRING


class NodeState(_Enum):
    """The state of the connection to a node."""

    CONNECTING = lib.REDLOCK_NODE_CONNECTING
    READY = lib.REDLOCK_NODE_READY
    STALLED = lib.REDLOCK_NODE_STALLED
    WAITING = lib.REDLOCK_NODE_WAITING
    UNUSABLE = lib.REDLOCK_NODE_UNUSABLE


class LogLevel(_Enum):
    """How much on_log gets."""

    ERROR = lib.REDLOCK_LOG_ERROR
    WARNING = lib.REDLOCK_LOG_WARNING
    INFO = lib.REDLOCK_LOG_INFO
    DEBUG = lib.REDLOCK_LOG_DEBUG


class RestartGuard(_Enum):
    """Which nodes may not vote after a restart."""

    OFF = lib.REDLOCK_RESTART_GUARD_OFF
    OBSERVED = lib.REDLOCK_RESTART_GUARD_OBSERVED
    STRICT = lib.REDLOCK_RESTART_GUARD_STRICT


class TelemetryKind(_Enum):
    """What on_event tells."""

    STARTED = lib.REDLOCK_TELEMETRY_STARTED
    DENIED = lib.REDLOCK_TELEMETRY_DENIED
    QUEUED = lib.REDLOCK_TELEMETRY_QUEUED
    ACQUIRED = lib.REDLOCK_TELEMETRY_ACQUIRED
    FAILED = lib.REDLOCK_TELEMETRY_FAILED
    ADOPTED = lib.REDLOCK_TELEMETRY_ADOPTED
    EXTENDED = lib.REDLOCK_TELEMETRY_EXTENDED
    LOST = lib.REDLOCK_TELEMETRY_LOST
    RELEASED = lib.REDLOCK_TELEMETRY_RELEASED
    FORGOTTEN = lib.REDLOCK_TELEMETRY_FORGOTTEN
    NODE_UP = lib.REDLOCK_TELEMETRY_NODE_UP
    NODE_DOWN = lib.REDLOCK_TELEMETRY_NODE_DOWN
    EXPIRING = lib.REDLOCK_TELEMETRY_EXPIRING


class Order(_Enum):
    """FAIR: in a queue on the nodes; NONE: by trying again."""

    FAIR = lib.REDLOCK_ORDER_FAIR
    NONE = lib.REDLOCK_ORDER_NONE
