"""Elections for threads that block."""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Callable, Iterator, Optional

from ._base import to_int
from ._core import check_call
from ._enums import EventKind
from ._news import Event
from ._redlock import ffi, lib
from ._result import check

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._base import CData
    from ._client import Client
    from ._result import Result


class Election:
    """A candidate. Any number of threads may use it, but one at a time reads the events. Iterate over it
    to get them."""

    # So long a signal, or the kill of a greenlet, may wait while somebody waits for an event.
    _SLICE_MS = 500

    def __init__(self, client: Client, handle: CData) -> None:
        self._client = client
        self._handle = handle
        self._unread: list[CData] = []
        with client._core.lock:
            client._core.elections.add(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # ended, or closed
            self.end()

    def __iter__(self) -> Iterator[Event]:
        """The events, until ENDED."""
        while True:
            event = self.next()
            assert event
            yield event
            if event.kind == EventKind.ENDED:
                return

    def next(self, timeout_ms: Optional[int] = None) -> Optional[Event]:
        """The next event; None if the time is over before. Raises ClosedError after ENDED."""
        event = ffi.new("redlock_election_event *")
        event.size = ffi.sizeof("redlock_election_event")
        left = None if timeout_ms is None else to_int("timeout_ms", timeout_ms)
        while True:
            slice_ms = self._SLICE_MS if left is None else min(left, self._SLICE_MS)
            with self._client._core.call():
                if self._unread:
                    return Event.of(self._unread.pop())
                try:
                    self._client._core.check(
                        lambda: lib.redlock_client_election_next(self._handle, slice_ms, event))
                except BaseException:  # a signal came meanwhile, and its handler raised this
                    if event.kind != lib.REDLOCK_ELECTION_NOTHING:
                        self._unread.append(event)
                    raise
                if event.kind != lib.REDLOCK_ELECTION_NOTHING:
                    return Event.of(event)
            if left is not None:
                left -= slice_ms
                if left <= 0:
                    return None

    def resign(self) -> Optional[Result]:
        """Stops to lead, or gives up the campaign, and stays out until campaign(). Raises LostError if we
        did not lead until now."""
        return self._leave(lib.redlock_client_election_resign)

    def campaign(self) -> None:
        """Campaigns, at the end of the queue."""
        with self._client._core.call():
            self._client._core.check(lambda: lib.redlock_client_election_campaign(self._handle))

    def end(self) -> Optional[Result]:
        """Resigns, and ends. A thread that waits for an event gets ENDED."""
        result = self._leave(lib.redlock_client_election_end)
        with self._client._core.lock:
            self._client._core.elections.discard(self._handle)
        return result

    def validity_ms(self, term: int) -> int:
        """How much longer we lead in this term; 0 means stop work. Ask before each step that counts."""
        number = to_int("term", term, "uint64_t")
        try:
            with self._client._core.call():
                return int(lib.redlock_client_election_validity_ms(self._handle, number))
        except Exception:  # closed, or in a child process
            return 0

    def _leave(self, leave: Callable[[CData, CData], int]) -> Optional[Result]:
        def left(result: CData) -> int:
            code = leave(self._handle, result)
            if result[0] == ffi.NULL:
                check_call(code)
            return code

        with self._client._core.call():
            code, made = self._client._core.ask(left)
        check(code, made)
        return made
