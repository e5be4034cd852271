"""Elections and observers for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, AsyncIterator, Callable, Optional

from ._base import to_bytes, to_int
from ._enums import EventKind
from ._news import Event, Leader
from ._redlock import ffi, lib
from ._result import check, error_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._base import CData
    from ._options import Options
    from ._result import Result
    from .aio import Manager


class Election:
    """A candidate. Iterate over it to get the events, until ENDED."""

    def __init__(self, manager: Manager, name: str, options: Options) -> None:
        self._manager = manager
        self._events: asyncio.Queue[Optional[Event]] = asyncio.Queue()  # None is the end
        self._ended = False
        self._is_out = not options.c.campaign
        self._campaigns_again = False
        self._leaving: list[asyncio.Future[Optional[Result]]] = []
        self._handle = manager._keep(self._told)
        election = ffi.new("redlock_election **")
        manager._begin(self._handle,
                       lambda: lib.redlock_elect(manager._open(), to_bytes("name", name), options.c,
                                                 lib.redlock_py_event, self._handle.c, election))
        self._c = election[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._ended and not self._manager.closed:
            with contextlib.suppress(Exception):
                await self.end()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._iterate()

    async def next(self) -> Event:
        """The next event. Raises ClosedError after ENDED."""
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)  # others may wait, too
            raise error_of(lib.REDLOCK_ERR_CLOSED)
        return event

    async def resign(self) -> Optional[Result]:
        """Stops to lead, or gives up the campaign, and stays out until campaign(). Raises LostError if we
        did not lead until now."""
        self._campaigns_again = False
        if self._is_out:
            self._live()
            return None
        return await self._leave(lib.redlock_election_resign)

    def campaign(self) -> None:
        """Campaigns, at the end of the queue."""
        check(lib.redlock_election_campaign(self._live()))
        self._campaigns_again = bool(self._leaving)
        self._is_out = False

    async def end(self) -> Optional[Result]:
        """Resigns, and ends: ENDED is the last event."""
        return await self._leave(lib.redlock_election_end)

    def validity_ms(self, term: int) -> int:
        """How much longer we lead in this term; 0 means stop work. Ask before each step that counts."""
        number = to_int("term", term, "uint64_t")
        gone = self._ended or self._manager.closed
        return 0 if gone else int(lib.redlock_election_validity_ms(self._c, number))

    async def _iterate(self) -> AsyncIterator[Event]:
        while True:
            event = await self.next()
            yield event
            if event.kind == EventKind.ENDED:
                return

    def _live(self) -> CData:
        self._manager._open()
        if self._ended:
            raise error_of(lib.REDLOCK_ERR_INVALID, None, "the election has ended already")
        return self._c

    async def _leave(self, leave: Callable[[CData], int]) -> Optional[Result]:
        future: asyncio.Future[Optional[Result]] = self._manager._loop.create_future()
        check(leave(self._live()))
        self._leaving.append(future)
        return await future

    def _told(self, c: CData) -> None:
        event = Event.of(c)
        self._events.put_nowait(event)
        if event.kind == EventKind.RESIGNED:
            self._is_out = not self._campaigns_again
            self._campaigns_again = False
        elif event.kind == EventKind.ENDED:
            self._ended = True
            self._events.put_nowait(None)
            self._manager._kept.discard(self._handle)
        if event.kind in (EventKind.ENDED, EventKind.RESIGNED):
            for future in self._leaving:
                if future.cancelled():
                    continue
                if event.code == lib.REDLOCK_OK:
                    future.set_result(event.result)
                else:
                    future.set_exception(error_of(event.code, event.result))
            self._leaving.clear()


class Observer:
    """Tells who leads: iterate over it. It tells the newest leader; those in between may be left out."""

    def __init__(self, manager: Manager, name: str) -> None:
        self._manager = manager
        self._news: Optional[Leader] = None
        self._changed = asyncio.Event()
        self._handle = manager._keep(self._told)
        observer = ffi.new("redlock_observer **")
        manager._begin(self._handle,
                       lambda: lib.redlock_observe(manager._open(), to_bytes("name", name), lib.redlock_py_leader,
                                                   self._handle.c, observer))
        self._c: Optional[CData] = observer[0]
        manager._observers.add(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Leader:
        while self._news is None:
            if self._c is None:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        news, self._news = self._news, None
        return news

    def end(self) -> None:
        """Tells nothing more: the iteration ends."""
        if self._c is not None:
            if not self._manager.closed:
                lib.redlock_observer_end(self._c)
            self._c = None
            self._manager._kept.discard(self._handle)
            self._changed.set()

    def _told(self, c: CData) -> None:
        self._news = Leader.of(c)
        self._changed.set()
