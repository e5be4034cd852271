"""What both interfaces share: codes, errors, results, options, and callbacks from C."""
from __future__ import annotations

import enum
import operator
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, TypedDict, Union

from ._redlock import ffi, lib

if TYPE_CHECKING:
    from types import TracebackType

    CData = Any

FOREVER: int = lib.REDLOCK_WAIT_FOREVER
"""As wait_timeout_ms: until the lock is taken."""


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


class Order(_Enum):
    """FAIR: in a queue on the nodes; NONE: by trying again."""

    FAIR = lib.REDLOCK_ORDER_FAIR
    NONE = lib.REDLOCK_ORDER_NONE


class TlsOptions(TypedDict, total=False):
    """How to speak TLS: redlock_tls_options, by the same names."""

    ca_file: str
    ca_dir: str
    cert_file: str
    key_file: str
    server_name: str
    min_version: int
    verify: bool


class ManagerOptions(TypedDict, total=False):
    """Options of a client or a manager: those of redlock_manager_options, by the same names."""

    node_timeout_ms: int
    connect_timeout_ms: int
    key_prefix: str
    client_name: str
    on_log: Callable[[LogLevel, str], None]
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
    tls: TlsOptions
    on_event: Callable[[TelemetryEvent], None]


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
    try:
        return string.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is not valid text: {error.reason} at position {error.start}") from None


def to_int(name: str, value: Any, type_: str = "int64_t") -> int:
    """A number, a member of an enum, or a bool for C."""
    kind = "a bool" if type_ == "_Bool" else "an int"
    try:
        return int(ffi.new(f"{type_} *", operator.index(value))[0])
    except TypeError:
        raise TypeError(f"{name} must be {kind}, not {type(value).__name__}") from None
    except OverflowError:
        must = "it must be True or False" if type_ == "_Bool" else "it is out of range"
        raise ValueError(f"{name} is {value}; {must}") from None


def to_callable(name: str, run: Any) -> Any:
    """A function that C will cause to run."""
    if not callable(run):
        raise TypeError(f"{name} must be callable, not {type(run).__name__}")
    return run


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
    kind: VoteKind
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
    def code(self) -> Code:
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

    code: Code
    result: Optional[Result]

    def __init__(self, code: Code, result: Optional[Result] = None, sentence: str = "") -> None:
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

    @staticmethod
    def of(info: CData) -> NodeInfo:
        return NodeInfo(text(info.name), NodeState(info.state), text(info.version), text(info.role),
                        text(info.warning), text(info.error), None if info.uptime_s < 0 else info.uptime_s,
                        None if info.round_trip_us < 0 else info.round_trip_us, info.connects, info.quarantine_ms,
                        text(info.quarantine), bool(info.listens), text(info.queue_error), bool(info.queue_refused))


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

    @staticmethod
    def of(event: CData) -> Event:
        return Event(EventKind(event.kind), event.term, event.fence, Code(event.code), copy_of(event.result),
                     text(event.reason), Leader.of(event.leader))


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

    def __init__(self, call: Callable[[CData], int], nodes: int) -> None:
        c = ffi.new("redlock_telemetry *")
        c.size = ffi.sizeof("redlock_telemetry")
        check(call(c))
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
                          "on_event", "trace", "tls", "on_log", "on_lost"))

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
        else:
            value = to_int(name, value, type_.cname)
        setattr(struct, name, value)


def list_options(match: str, others: bool) -> Options:
    """The options of a listing."""
    made = Options("redlock_list_options", lib.redlock_list_options_default)
    made.set({"others": others, **({"match": match} if match else {})}.items())
    return made


def manager_options(nodes: Union[str, Iterable[str]], options: dict[str, Any]) -> tuple[Options, list[Handle]]:
    """The options of a client or a manager. The handles of its callbacks must live as long."""
    made = Options("redlock_manager_options", lib.redlock_manager_options_default)
    if not isinstance(nodes, Iterable):
        raise TypeError(f"nodes must be a str or a list of str, not {type(nodes).__name__}")
    names = nodes.split(",") if isinstance(nodes, str) else nodes
    uris = [ffi.new("char[]", to_bytes(f"nodes[{index}]", name)) for index, name in enumerate(names)]
    made.kept.append(uris)
    made.c.nodes = array = ffi.new("const char *[]", uris)
    made.c.node_count = len(uris)
    made.kept.append(array)
    on_log, on_event, tls = (options.pop(name, None) for name in ("on_log", "on_event", "tls"))
    made.set(options.items())
    handles: list[Handle] = []
    if on_log is not None:
        handles.append(Handle(to_callable("on_log", on_log)))
        made.c.on_log, made.c.log_data = lib.redlock_py_log, handles[-1].c
    if on_event is not None:
        handles.append(Handle(to_callable("on_event", on_event)))
        made.c.on_event, made.c.event_data = lib.redlock_py_step, handles[-1].c
    if tls is not None:
        if not isinstance(tls, Mapping):
            raise TypeError(f"tls must be a dict, not {type(tls).__name__}")
        how = Options("redlock_tls_options", lib.redlock_tls_options_default)
        how.set(tls.items())
        made.kept.append(how)
        made.c.tls = how.c
    return made, handles


class Handle:
    """A Python object as the `data` of a C callback. It must live until C uses it no more."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.c = ffi.new_handle(self)


def target_of(data: CData) -> Any:
    """The object of a Handle."""
    return ffi.from_handle(data).target


def report(kind: type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
    """An exception must not pass through C: it is printed, and the program goes on."""
    print("redlock_client: an exception in a callback:", file=sys.stderr)
    traceback.print_exception(kind, error, trace)


@ffi.def_extern(onerror=report)
def redlock_py_log(level: int, line: CData, data: CData) -> None:
    target_of(data)(LogLevel(level), text(line))


@ffi.def_extern(onerror=report)
def redlock_py_step(event: CData, data: CData) -> None:
    target_of(data)(TelemetryEvent.of(event))


@ffi.def_extern(onerror=report)
def redlock_py_lost(lease: CData, reason: CData, data: CData) -> None:
    target_of(data)(text(reason))


@ffi.def_extern(onerror=report)
def redlock_py_result(result: CData, data: CData) -> None:
    target_of(data)(result)


@ffi.def_extern(onerror=report, error=False)
def redlock_py_listed(lock: CData, data: CData) -> bool:
    target_of(data)[0].append(Listed.of(lock))
    return True


@ffi.def_extern(onerror=report)
def redlock_py_list_done(result: CData, data: CData) -> None:
    target_of(data)[1](result)


@ffi.def_extern(onerror=report)
def redlock_py_closed(data: CData) -> None:
    target_of(data)()


@ffi.def_extern(onerror=report)
def redlock_py_event(event: CData, data: CData) -> None:
    target_of(data)(event)


@ffi.def_extern(onerror=report)
def redlock_py_leader(leader: CData, data: CData) -> None:
    target_of(data)(leader)
