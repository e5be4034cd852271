"""The client of C, and calls that signals interrupt."""
from __future__ import annotations

import _thread
import contextlib
import os
import threading
from typing import TYPE_CHECKING, Callable, Iterator, Optional

from ._base import text
from ._redlock import ffi, lib
from ._result import check, error_of

if TYPE_CHECKING:
    from ._base import CData
    from ._callbacks import Handle


class Core:
    """The client of C. It knows who is inside a call of C: after the close C must not be called, and a
    thread of Python may be stopped between any two steps."""

    def __init__(self, c: CData, keeps: object) -> None:
        self.c = c
        self.keeps = keeps
        self.process = os.getpid()
        self.loop_thread = 0
        # Condition is written in Python: a signal may come when it has the lock and 'with' has not.
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.is_closing = False
        self.is_closed = False
        self.inside: set[object] = set()
        self.cancels: set[CData] = set()
        self.elections: set[CData] = set()
        # What on_lost and on_expiring need, until C has ended the lease. Not by the address of that:
        # another lease may have it before this one is dropped here.
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

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """With the lock: until others let the condition hold. Ctrl-C may have taken their notification."""
        while not self.changed.wait_for(condition, 1):
            pass

    def on_loop_thread(self) -> None:
        """Callbacks say so: there a call cannot block."""
        self.loop_thread = threading.get_ident()

    def may_wait(self) -> bool:
        """Whether this thread may wait for C: not inside a callback, nor while it holds the lock, which a
        callback may need."""
        if threading.get_ident() == self.loop_thread:
            return False
        try:
            self.changed.notify(0)
        except RuntimeError:  # the lock is not held
            return True
        return False

    def close(self) -> None:
        # In a child process the threads that were inside, or held a mutex, are not here.
        if os.getpid() != self.process:
            if not self.is_closed:
                self.is_closed = True
                lib.redlock_client_close(self.c)
            return
        if threading.get_ident() == self.loop_thread:
            threading.Thread(target=self.close).start()
            return
        with self.lock:
            begins = not self.is_closing
            self.is_closing = True
        if begins and not self._close_on_a_thread():
            self._close()
        with self.lock:
            self.changed.wait_for(lambda: self.is_closed)

    def _close_on_a_thread(self) -> bool:
        """On the main thread: Ctrl-C ends the wait for the close, and not the close."""
        if threading.current_thread() is not threading.main_thread():
            return False
        try:
            threading.Thread(target=self._close).start()
        except RuntimeError:  # at the end of the program
            return False
        return True

    def _close(self) -> None:
        with self.lock:
            for cancel in self.cancels:
                lib.redlock_cancel_set(cancel)
            elections = list(self.elections)
        for election in elections:  # wakes who waits for its news
            lib.redlock_client_election_end(election, ffi.NULL)
        with self.lock:
            self.wait_for(lambda: not self.inside)
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


def interruptible(work: Callable[[], int], interrupt: Callable[[], None]) -> int:
    """Python runs signal handlers, as that of Ctrl-C, only between steps of the main thread. So another
    thread waits in C there. Thread and Event are written in Python: a signal in the middle of one of
    their functions would break them."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    codes: list[int] = []
    begins: list[bool] = []  # by its first item: a signal may come before the thread begins
    done = threading.Lock()
    done.acquire()

    def run() -> None:
        begins.append(True)
        if begins[0]:
            codes.append(work())
            done.release()

    try:
        _thread.start_new_thread(run, ())
        done.acquire()
        return codes[0]
    except BaseException:
        begins.append(False)
        if begins[0]:
            interrupt()
            while not codes:
                with contextlib.suppress(BaseException):  # one more Ctrl-C: C must let go first
                    done.acquire()
        raise
