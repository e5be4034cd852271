"""Options, by the names that they have in C."""
from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, TypedDict, Union

from ._base import to_bytes, to_callable, to_int
from ._callbacks import Handle
from ._redlock import ffi, lib

if TYPE_CHECKING:
    from ._base import CData
    from ._enums import LogLevel
    from ._news import TelemetryEvent


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


class ClientOptions(ManagerOptions, total=False):
    """Options of a client."""

    loops: int
    cooperative: Optional[bool]


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
    mode: int
    expiring_ms: int
    on_expiring: Callable[[int], None]
    permits: int
    limit: int
    slots: Sequence[int]


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
    expiring_ms: int


class Options:
    """A struct of options, and what its pointers refer to."""

    # What the binding sets itself.
    RESERVED = frozenset(("size", "nodes", "node_count", "log_data", "lost_data", "lock", "cancel", "event_data",
                          "on_event", "trace", "tls", "on_log", "on_lost", "on_expiring", "expiring_data"))

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
                raise TypeError(f"unknown option {name!r}{self._hint(name, structs or (self.c,))}")

    @classmethod
    def _hint(cls, name: str, structs: Iterable[CData]) -> str:
        """Names the option that was meant: mostly one without its unit, such as ttl."""
        known = {field for struct in structs for field, _ in ffi.typeof(struct).item.fields} - cls.RESERVED
        meant = [f"{name}_ms"] if f"{name}_ms" in known else difflib.get_close_matches(name, known, 1)
        return f"; did you mean {meant[0]!r}?" if meant else ""

    def _set(self, struct: CData, name: str, type_: CData, value: Any) -> None:
        if name == "slots":
            value = ffi.new("uint32_t[]", [to_int(name, slot, "uint32_t") for slot in value])
            self.kept.append(value)
            struct.permits = struct.permits or len(value)
        elif type_.kind == "pointer" and type_.item.kind == "primitive":
            value = ffi.new("char[]", to_bytes(name, value))
            self.kept.append(value)
        else:
            value = to_int(name, value, type_.cname)
        setattr(struct, name, value)


def set_told(lock: CData, lost: Optional[Handle], expiring: Optional[Handle]) -> None:
    """Whom an acquire or an adoption tells. The handles must live until C has ended the lease."""
    if lost:
        lock.on_lost, lock.lost_data = lib.redlock_py_lost, lost.c
    if expiring:
        lock.on_expiring, lock.expiring_data = lib.redlock_py_expiring, expiring.c


def election_options(options: Iterable[tuple[str, Any]]) -> Options:
    """The options of a candidate."""
    given = dict(options)
    if "mode" in given:
        raise TypeError("an election has no mode: one leads at a time; those who read take a lock that is shared")
    made = Options("redlock_election_options", lib.redlock_election_options_default)
    made.set(given.items())
    return made


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
