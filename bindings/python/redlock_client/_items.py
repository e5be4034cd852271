"""Several resources in one lease."""
from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Optional, TYPE_CHECKING

from ._base import text, to_bytes
from ._redlock import ffi, lib

if TYPE_CHECKING:
    from ._base import CData


class Item(NamedTuple):
    """A resource of a lease."""

    resource: str
    token: str
    fence: int


class Items:
    """What is asked for, for C: those that the lease has alone, then those that it shares."""

    def __init__(self, resources: Iterable[str], shared: Iterable[str],
                 tokens: Optional[Mapping[str, str]] = None) -> None:
        alone, together = _to_list("resources", resources), _to_list("shared", shared)
        names = alone + together
        self._kept: list[CData] = []
        self.count = len(names)
        self.c = ffi.new("redlock_item[]", max(1, self.count))
        for at, name in enumerate(names):
            item = self.c[at]
            item.size = ffi.sizeof("redlock_item")
            item.resource = self._keep("resource", name)
            item.mode = lib.REDLOCK_SHARED if at >= len(alone) else lib.REDLOCK_EXCLUSIVE
            if tokens is not None:
                item.token = self._keep("token", tokens[name])

    def _keep(self, name: str, string: str) -> CData:
        bytes_ = ffi.new("char[]", to_bytes(name, string))
        self._kept.append(bytes_)
        return bytes_


def items_of(lease: CData) -> list[Item]:
    """Those of a lease of C, in the order in which they were given."""
    return [Item(text(lib.redlock_lease_item_resource(lease, at)), text(lib.redlock_lease_item_token(lease, at)),
                 int(lib.redlock_lease_item_fence(lease, at))) for at in range(lib.redlock_lease_item_count(lease))]


def to_adopt(tokens: Mapping[str, str], shared: Iterable[str]) -> Items:
    """The items of these tokens. Those in `shared` were downgraded."""
    together = _to_list("shared", shared)
    for name in together:
        if name not in tokens:
            raise ValueError(f"shared has {name!r}, which has no token")
    return Items([name for name in tokens if name not in together], together, tokens)


def _to_list(name: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{name} must be an iterable of str, not a str")
    return list(given)
