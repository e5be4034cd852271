"""What all modules share: texts and numbers for C."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ._redlock import ffi, lib

if TYPE_CHECKING:
    CData = Any

FOREVER: int = lib.REDLOCK_WAIT_FOREVER
"""As wait_timeout_ms: until the lock is taken."""


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
    kind = "a bool" if type_ == "_Bool" else f"a {type_[5:]}" if type_.startswith("enum ") else "an int"
    try:
        return int(ffi.new(f"{type_} *", operator.index(value))[0])
    except TypeError:
        raise TypeError(f"{name} must be {kind}, not {type(value).__name__}") from None
    except OverflowError:
        must = "it must be True or False" if type_ == "_Bool" else "it is out of range"
        raise ValueError(f"{name} is {value}; {must}") from None


def slots_of(lease: CData) -> tuple[int, ...]:
    """The slots of a lease of C."""
    count = lib.redlock_lease_slots(lease, ffi.NULL, 0)
    slots = ffi.new("uint32_t[]", max(count, 1))
    lib.redlock_lease_slots(lease, slots, count)
    return tuple(int(slots[index]) for index in range(count))


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
