"""What both interfaces share: codes, errors, results, options, and callbacks from C."""
from __future__ import annotations

import enum
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, TypedDict, Union

from ._redlock import ffi, lib

if TYPE_CHECKING:
    CData = Any

FOREVER: int = lib.REDLOCK_WAIT_FOREVER
"""As wait_timeout_ms: until the lock is taken."""


def _enum(name: str, type_: str, prefix: str) -> type[enum.IntEnum]:
    """A Python enum of an enum of C."""
    members = sorted(ffi.typeof(type_).elements.items())
    return enum.IntEnum(name, [(  # type: ignore
        member[len(prefix):].removeprefix("ERR_"), value) for value, member in members])


Code = _enum("Code", "redlock_error", "REDLOCK_")
"""What can come of a call: OK, CONTENDED, NO_QUORUM, …"""
VoteKind = _enum("VoteKind", "redlock_vote_kind", "REDLOCK_VOTE_")
"""What one node said: GRANTED, DENIED, FAILED, UNKNOWN, ABSTAINED, PENDING."""
EventKind = _enum("EventKind", "redlock_election_event_kind", "REDLOCK_ELECTION_")
"""What an election tells: LEADING, LOST, RESIGNED, LEADER, TROUBLE, ENDED; NOTHING if time is over."""
NodeState = _enum("NodeState", "redlock_node_state", "REDLOCK_NODE_")
"""The state of the connection to a node: CONNECTING, READY, STALLED, WAITING, UNUSABLE."""
LogLevel = _enum("LogLevel", "redlock_log_level", "REDLOCK_LOG_")
"""ERROR, WARNING, INFO, DEBUG."""
RestartGuard = _enum("RestartGuard", "redlock_restart_guard", "REDLOCK_RESTART_GUARD_")
"""OFF, OBSERVED, STRICT."""
Order = _enum("Order", "redlock_order", "REDLOCK_ORDER_")
"""FAIR: in a queue on the nodes; NONE: by trying again."""


class ManagerOptions(TypedDict, total=False):
    """Options of a client or a manager: those of redlock_manager_options, by the same names."""

    node_timeout_ms: int
    connect_timeout_ms: int
    key_prefix: str
    client_name: str
    on_log: Callable[[int, str], None]
    log_level: int
    restart_guard: int
    clock_guard: bool
    first_boot: bool
    ttl_max_ms: int
    fence_suffix: str
    fence_expiry_ms: int
    wait_suffix: str
    listen: bool
    holder: str
    quorum: int


class AcquireOptions(TypedDict, total=False):
    """Options of an acquire: those of redlock_acquire_options, by the same names."""

    ttl_ms: int
    wait_timeout_ms: int
    retry_delay_min_ms: int
    retry_delay_max_ms: int
    auto_extend: bool
    auto_extend_max_ms: int
    on_lost: Callable[[str], None]
    fencing: bool
    heal: bool
    lock_delay_ms: int
    order: int


class ClientAcquireOptions(AcquireOptions, total=False):
    """Options of an acquire of a client."""

    reentrant: bool
    owner: int


class ElectionOptions(TypedDict, total=False):
    """Options of an election: those of redlock_election_options, by the same names."""

    ttl_ms: int
    campaign: bool
    fencing: bool
    heal: bool
    lock_delay_ms: int


def text(bytes_: CData) -> str:
    """A text of C; "" for NULL."""
    return "" if bytes_ == ffi.NULL else ffi.string(bytes_).decode("utf-8", "backslashreplace")


def to_bytes(name: str, string: str) -> bytes:
    """A text for C."""
    if not isinstance(string, str):
        raise TypeError(f"{name} must be a str, not {type(string).__name__}")
    if "\0" in string:
        raise ValueError(f"{name} has a NUL inside")
    return string.encode()


def version() -> str:
    """The version of the library that is loaded."""
    return text(lib.redlock_version())


def token_holder(token: str) -> str:
    """Who a token says its holder is; "" if it does not."""
    bytes_ = ffi.new("char[]", to_bytes("token", token))
    return text(lib.redlock_token_holder(bytes_))


@dataclass(frozen=True)
class Vote:
    """What one node said."""

    node: str
    kind: int
    error: str
    latency_us: Optional[int]
    holder: str
    holder_ttl_ms: Optional[int]
    holder_text: str


class Result:
    """What came of a request. `votes` has what each node said; str() gives a sentence."""

    def __init__(self, handle: CData) -> None:
        self._handle = ffi.gc(handle, lib.redlock_result_free)

    @property
    def code(self) -> int:
        return Code(lib.redlock_result_code(self._handle))

    @property
    def resource(self) -> str:
        return text(lib.redlock_result_resource(self._handle))

    @property
    def attempts(self) -> int:
        return int(lib.redlock_result_attempts(self._handle))

    @property
    def passed_over(self) -> int:
        return int(lib.redlock_result_passed_over(self._handle))

    @property
    def waiters(self) -> Optional[int]:
        """inspect(): how many wait; None if it is not known."""
        count = lib.redlock_result_waiters(self._handle)
        return None if count < 0 else int(count)

    @property
    def waited_ms(self) -> Optional[int]:
        """inspect(): how long the first of them has waited; None if nobody waits or it is not known."""
        waited = lib.redlock_result_waited_ms(self._handle)
        return None if waited < 0 else int(waited)

    @property
    def votes(self) -> list[Vote]:
        return [self._vote(index) for index in range(lib.redlock_result_vote_count(self._handle))]

    def _vote(self, index: int) -> Vote:
        vote = ffi.new("redlock_vote *")
        vote.size = ffi.sizeof("redlock_vote")
        lib.redlock_result_vote(self._handle, index, vote)
        return Vote(text(vote.node), VoteKind(vote.kind), text(vote.error),
                    None if vote.latency_us < 0 else vote.latency_us, text(vote.holder),
                    None if vote.holder_ttl_ms < 0 else vote.holder_ttl_ms, text(vote.holder_text))

    def __str__(self) -> str:
        size = lib.redlock_result_message(self._handle, ffi.NULL, 0) + 1
        buffer = ffi.new("char[]", size)
        lib.redlock_result_message(self._handle, buffer, size)
        return text(buffer)

    def __repr__(self) -> str:
        return f"<Result {self.code.name}: {self}>"


def result_of(handle: CData) -> Optional[Result]:
    """Takes over a result of C, or NULL."""
    return None if handle == ffi.NULL else Result(handle)


def copy_of(handle: CData) -> Optional[Result]:
    """Copies a result that is valid only now."""
    return None if handle == ffi.NULL else result_of(lib.redlock_result_copy(handle))


class Error(Exception):
    """Why a call failed. `code` says what, `result` what the nodes said, str() what to do."""

    code: int
    result: Optional[Result]

    def __init__(self, code: int, result: Optional[Result] = None, sentence: str = "") -> None:
        super().__init__(sentence or (str(result) if result else text(lib.redlock_strerror(code))))
        self.code = code
        self.result = result


class ContendedError(Error):
    """Held by others."""


class NoQuorumError(Error):
    """Too few nodes answered."""


class TooSlowError(Error):
    """No validity is left of the ttl."""


class LostError(Error):
    """The lease expired or was taken."""


class CancelledError(Error):
    """The acquire was cancelled."""


class ClosedError(Error):
    """The client or the manager is closed."""


class InvalidError(Error, ValueError):
    """Invalid argument."""


class NoMemoryError(Error, MemoryError):
    """Out of memory."""


class BusyError(Error):
    """Another operation is under way."""


class ForkedError(Error):
    """Created before a fork: the child process needs a client of its own."""


class RandomError(Error):
    """The kernel gave no random bytes."""


class SystemCallError(Error):
    """A system call failed."""


class NotOwnerError(Error):
    """The owner does not hold the reentrant lease."""


class LimitError(Error):
    """A bound of the library is reached."""


_ERRORS: dict[str, type[Error]] = {
    "CONTENDED": ContendedError, "NO_QUORUM": NoQuorumError, "TOO_SLOW": TooSlowError, "LOST": LostError,
    "CANCELLED": CancelledError, "CLOSED": ClosedError, "INVALID": InvalidError, "NO_MEMORY": NoMemoryError,
    "BUSY": BusyError, "FORKED": ForkedError, "RANDOM": RandomError, "SYSTEM": SystemCallError,
    "NOT_OWNER": NotOwnerError, "LIMIT": LimitError,
}


def error_of(code: int, result: Optional[Result] = None, sentence: str = "") -> Error:
    """The exception for a code."""
    return _ERRORS.get(text(lib.redlock_error_name(code)), Error)(Code(code), result, sentence)


def check(code: int, result: Optional[Result] = None, sentence: str = "") -> None:
    """Raises the exception for a code other than OK."""
    if code != lib.REDLOCK_OK:
        raise error_of(code, result, sentence)


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
    state: int
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

    @staticmethod
    def of(info: CData) -> NodeInfo:
        return NodeInfo(text(info.name), NodeState(info.state), text(info.version), text(info.role),
                        text(info.warning), text(info.error), None if info.uptime_s < 0 else info.uptime_s,
                        None if info.round_trip_us < 0 else info.round_trip_us, info.connects, info.quarantine_ms,
                        text(info.quarantine), bool(info.listens), text(info.queue_error), bool(info.queue_refused))


@dataclass(frozen=True)
class Event:
    """What an election tells. Only the members that its kind uses say something."""

    kind: int
    term: int
    fence: int
    code: int
    result: Optional[Result]
    reason: str
    leader: Optional[Leader]

    @staticmethod
    def of(event: CData) -> Event:
        return Event(EventKind(event.kind), event.term, event.fence, Code(event.code), copy_of(event.result),
                     text(event.reason), Leader.of(event.leader))


def statistics_of(call: Callable[[CData], int]) -> dict[str, int]:
    """The counters that `call` fills in."""
    counted = ffi.new("redlock_statistics *")
    counted.size = ffi.sizeof("redlock_statistics")
    check(call(counted))
    return {name: int(getattr(counted, name)) for name, _ in ffi.typeof("redlock_statistics").fields if name != "size"}


class Options:
    """A struct of options, and what its pointers refer to."""

    # What the binding sets itself.
    RESERVED = frozenset(("size", "nodes", "node_count", "log_data", "lost_data", "lock", "cancel", "event_data",
                          "on_event", "trace", "tls"))

    def __init__(self, type_: str, default: Callable[[CData], None]) -> None:
        self.c = ffi.new(f"{type_} *")
        default(self.c)
        self.kept: list[object] = []

    def set(self, options: Iterable[tuple[str, Any]], *structs: CData) -> None:
        """Sets each option in the first struct that has it."""
        for name, value in options:
            for struct in structs or (self.c,):
                field = dict(ffi.typeof(struct).item.fields).get(name)
                if field and name not in self.RESERVED:
                    self._set(struct, name, field.type, value)
                    break
            else:
                raise TypeError(f"unknown option {name!r}")

    def _set(self, struct: CData, name: str, type_: CData, value: Any) -> None:
        if type_.kind == "pointer" and type_.item.kind == "primitive":
            value = ffi.new("char[]", to_bytes(name, value))
            self.kept.append(value)
        elif type_.kind == "enum":
            value = int(value)
        setattr(struct, name, value)


def manager_options(nodes: Union[str, Iterable[str]], options: dict[str, Any]) -> tuple[Options, Optional[Handle]]:
    """The options of a client or a manager. The handle of on_log must live as long."""
    made = Options("redlock_manager_options", lib.redlock_manager_options_default)
    names = nodes.split(",") if isinstance(nodes, str) else list(nodes)
    uris = [ffi.new("char[]", to_bytes("a node", name)) for name in names]
    made.kept.append(uris)
    made.c.nodes = array = ffi.new("const char *[]", uris)
    made.c.node_count = len(uris)
    made.kept.append(array)
    on_log = options.pop("on_log", None)
    made.set(options.items())
    if on_log is None:
        return made, None
    handle = Handle(on_log)
    made.c.on_log = lib.redlock_py_log
    made.c.log_data = handle.c
    return made, handle


class Handle:
    """A Python object as the `data` of a C callback. It must live until C uses it no more."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.c = ffi.new_handle(self)


def target_of(data: CData) -> Any:
    """The object of a Handle."""
    return ffi.from_handle(data).target


def report(kind: object, error: object, trace: object) -> None:
    """An exception must not pass through C: it is printed, and the program goes on."""
    print("redlock_client: an exception in a callback:", file=sys.stderr)
    traceback.print_exception(kind, error, trace)  # type: ignore[arg-type]


@ffi.def_extern(onerror=report)
def redlock_py_log(level: int, line: CData, data: CData) -> None:
    target_of(data)(LogLevel(level), text(line))


@ffi.def_extern(onerror=report)
def redlock_py_lost(lease: CData, reason: CData, data: CData) -> None:
    target_of(data)(text(reason))


@ffi.def_extern(onerror=report)
def redlock_py_result(result: CData, data: CData) -> None:
    target_of(data)(result)


@ffi.def_extern(onerror=report)
def redlock_py_closed(data: CData) -> None:
    target_of(data)()


@ffi.def_extern(onerror=report)
def redlock_py_event(event: CData, data: CData) -> None:
    target_of(data)(event)


@ffi.def_extern(onerror=report)
def redlock_py_leader(leader: CData, data: CData) -> None:
    target_of(data)(leader)
