"""Callbacks from C: each finds its Python object by a handle."""
from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any, Optional

from ._base import text
from ._enums import LogLevel
from ._news import Listed, TelemetryEvent
from ._redlock import ffi

if TYPE_CHECKING:
    from types import TracebackType

    from ._base import CData


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
def redlock_py_expiring(lease: CData, remaining_ms: int, data: CData) -> None:
    target_of(data)(remaining_ms)


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
