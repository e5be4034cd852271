"""The client of C, and calls that signals interrupt."""
from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional

from . import _native
from ._base import text
from ._redlock import ffi, lib
from ._result import check, error_of, result_of

if TYPE_CHECKING:
    from ._base import CData
    from ._callbacks import Handle
    from ._result import Result


class Core:
    """The client of C. It knows who is inside a call of C: after the close C must not be called, and a
    thread of Python may be stopped between any two steps."""

    def __init__(self, c: CData, keeps: object, cooperative: Optional[bool]) -> None:
        self.c = c
        self.keeps = keeps
        self.cooperative = cooperative
        self.process = os.getpid()
        self.loop_threads: set[int] = set()
        # Nobody waits for C, and no greenlet lets others run, while it has the lock.
        self.lock = _native.RLock()
        self.changed = _native.Changed(self.lock)
        self.is_closing = False
        self.is_closed = False
        self.inside: set[object] = set()
        self.cancels: set[CData] = set()
        self.elections: set[CData] = set()
        # What on_lost and on_expiring need, until C has ended the lease. Not by its address:
        # another lease may have that before this one is dropped here.
        self.told: dict[object, list[Handle]] = {}

    @contextlib.contextmanager
    def call(self) -> Iterator[CData]:
        """A call of C."""
        if os.getpid() != self.process:
            raise error_of(lib.REDLOCK_ERR_FORKED)
        this = object()
        try:
            with self.lock:
                if self.is_closing:
                    raise error_of(lib.REDLOCK_ERR_CLOSED)
                self.inside.add(this)
            yield self.c
        finally:
            with self.lock:
                self.inside.discard(this)
                self.changed.notify_all()

    @contextlib.contextmanager
    def cancel(self) -> Iterator[CData]:
        """A flag for an acquire that waits, or a listing. close() sets it."""
        made = ffi.new("redlock_cancel **")
        check_call(lib.redlock_cancel_new(self.c, made))
        cancel = ffi.gc(made[0], lib.redlock_cancel_free)
        try:
            with self.lock:
                self.cancels.add(cancel)
                if self.is_closing:
                    lib.redlock_cancel_set(cancel)
            yield cancel
        finally:
            with self.lock:
                self.cancels.discard(cancel)

    def keep(self, lease: object, told: list[Handle], shared: bool) -> None:
        """C may call these for this lease. If the lease is shared, it calls those of who took it, who
        may not have come here yet."""
        with self.lock:
            if not shared or lease not in self.told:
                self.told.setdefault(lease, []).extend(told)

    def drop(self, lease: object) -> None:
        """C has ended this lease."""
        with self.lock:
            self.told.pop(lease, None)

    def run(self, work: Callable[[], Any], interrupt: Optional[Callable[[], None]] = None) -> Any:
        """A call of C that may block."""
        return _native.call(work, interrupt, self.cooperative)

    def check(self, work: Callable[[], int]) -> None:
        """The same, of a call that has no result: C keeps the sentence of each thread's last one."""
        self.run(lambda: check_call(work()))

    def ask(self, work: Callable[[CData], int], interrupt: Optional[Callable[[], None]] = None
            ) -> tuple[int, Optional[Result]]:
        """The same, of a call that has a result."""
        result = ffi.new("redlock_result **")
        try:
            code = self.run(lambda: work(result), interrupt)
            made, result[0] = result[0], ffi.NULL
            return code, result_of(made)
        finally:  # a signal may have come when C had made it
            lib.redlock_result_free(result[0])

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until others let the condition hold."""
        def wait() -> None:
            with self.lock:
                self.changed.wait_for(condition)

        with self.lock:
            if condition():
                return
        self.run(wait)

    def on_loop_thread(self) -> None:
        """Callbacks say so: there a call cannot block."""
        self.loop_threads.add(_native.get_ident())

    def is_loop_thread(self) -> bool:
        return bool(_native.get_ident() in self.loop_threads)

    def may_wait(self) -> bool:
        """Whether whoever collects garbage may wait for C: not inside a callback, nor while this thread holds
        the lock, which a callback may need, nor where other greenlets would run meanwhile."""
        return not (self.is_loop_thread() or self.lock._is_owned() or _native.has_greenlets())

    def close(self) -> None:
        # In a child process the threads that were inside, or held a mutex, are not here.
        if os.getpid() != self.process:
            if not self.is_closed:
                self.is_closed = True
                lib.redlock_client_close(self.c)
            return
        if self.is_loop_thread():
            _native.start(self.close)
            return
        with self.lock:
            begins = not self.is_closing
            self.is_closing = True
        if begins:  # on another thread: Ctrl-C ends the wait for the close, and not the close
            try:
                _native.start(self._close)
            except RuntimeError:  # at the end of the program
                self._close()
        self.wait_for(lambda: self.is_closed)

    def _close(self) -> None:
        with self.lock:
            for cancel in self.cancels:
                lib.redlock_cancel_set(cancel)
            elections = list(self.elections)
        for election in elections:  # wakes who waits for its news
            lib.redlock_client_election_end(election, ffi.NULL)
        with self.lock:
            self.changed.wait_for(lambda: not self.inside)
        lib.redlock_client_close(self.c)
        with self.lock:
            self.is_closed = True
            self.told.clear()
            self.changed.notify_all()


def check_call(code: int) -> None:
    """Raises the exception for the code of a call of the client that has no result. C keeps the sentence of
    each thread's last one."""
    sentence = ffi.new("char[]", 256)
    if code == lib.REDLOCK_ERR_INVALID:
        lib.redlock_client_invalid(ffi.NULL, sentence, 256)
    check(code, None, text(sentence))
