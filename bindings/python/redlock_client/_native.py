"""Threads and locks of the system, also where gevent or eventlet have put their own in their place; and
waits for C that let the other greenlets of a thread run."""
from __future__ import annotations

import _thread
import atexit
import contextlib
import importlib
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from typing_extensions import Protocol

    class _Done(Protocol):
        """Says on one thread to another that work has ended. `ended` has an item then."""

        ended: list[bool]

        def wait(self) -> Any: ...
        def end(self) -> None: ...
        def close(self) -> None: ...


def _original(name: str) -> Any:
    """That of the module _thread, if nothing had been patched."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent:
        return gevent.get_original("_thread", name)
    module = eventlet.original("_thread") if eventlet else _thread
    return getattr(module, name)

# Threads of C use these, too: what belongs to greenlets works on the thread of their hub only.
RLock = _thread.RLock  # nobody replaces it
allocate_lock = _original("allocate_lock")
get_ident = _original("get_ident")
start_new_thread = _original("start_new_thread")
_local = _original("_local")


class Changed:
    """A condition of an RLock: threading.Condition would take its locks from what is patched."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._waiting: list[Any] = []

    def notify_all(self) -> None:
        for waiter in self._waiting:
            with contextlib.suppress(RuntimeError):  # notified already
                waiter.release()
        self._waiting.clear()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """With the lock: until others let the condition hold. Ctrl-C may have taken their notification, so it
        looks each second."""
        while not condition():
            waiter = allocate_lock()
            waiter.acquire()
            self._waiting.append(waiter)
            depth = self._lock._release_save()
            try:
                waiter.acquire(True, 1)
            finally:
                self._lock._acquire_restore(depth)
                with contextlib.suppress(ValueError):
                    self._waiting.remove(waiter)

# The threads of start(), by a lock that each holds.
_running: set[Any] = set()


def start(run: Callable[[], None]) -> None:
    """On a thread of its own. The program ends after it."""
    running = allocate_lock()
    running.acquire()
    _running.add(running)

    def ran() -> None:
        try:
            run()
        finally:
            _running.discard(running)
            running.release()

    try:
        start_new_thread(ran, ())
    except BaseException:
        _running.discard(running)
        raise


@atexit.register
def _join() -> None:
    for running in list(_running):
        call(lambda running=running: bool(running.acquire()))


def _gevent_hub() -> Any:
    """That of this thread, if there is one. To ask for it by its public name would make one. A greenlet that
    has not run yet is false."""
    local = sys.modules.get("gevent._hub_local")
    return local.get_hub_if_exists() if local else None


def _eventlet_hub() -> Any:
    hubs = sys.modules.get("eventlet.hubs")
    return getattr(hubs._threadlocal, "hub", None) if hubs else None


def has_greenlets() -> bool:
    """Whether greenlets share this thread."""
    return _gevent_hub() is not None or _eventlet_hub() is not None


def _current() -> Any:
    return sys.modules["greenlet"].getcurrent()  # type: ignore[attr-defined]


def this() -> object:
    """Who runs: this thread; or this greenlet, if others may run meanwhile."""
    return id(_current()) if has_greenlets() else get_ident()


def _is_patched(module: str, asked: str, name: str) -> bool:
    patcher = sys.modules.get(module)
    return bool(patcher and getattr(patcher, asked)(name))


def _cooperative_wait(cooperative: Optional[bool]) -> Optional[Callable[[int], Any]]:
    """How to wait for a descriptor so that the other greenlets of this thread run meanwhile. None: there are
    none, or they are not to."""
    if cooperative is False:
        return None
    hub = _gevent_hub()
    if hub is not None and _current() is not hub:
        if cooperative or _is_patched("gevent.monkey", "is_module_patched", "threading"):
            return importlib.import_module("gevent.socket").wait_read
        return None
    hub = _eventlet_hub()
    if hub is not None and _current() is not hub.greenlet:
        if cooperative or _is_patched("eventlet.patcher", "is_monkey_patched", "thread"):
            trampoline = sys.modules["eventlet.hubs"].trampoline
            return lambda descriptor: trampoline(descriptor, read=True)
    return None


def must_be_able_to_cooperate() -> None:
    """For cooperative=True."""
    if "gevent" not in sys.modules and "eventlet" not in sys.modules:
        raise ValueError("cooperative is True; it needs gevent or eventlet, and none of them is imported")


class _DoneByLock:
    """For the main thread: signals end the wait."""

    def __init__(self) -> None:
        self.ended: list[bool] = []
        self._lock = allocate_lock()
        self._lock.acquire()
        self.wait = self._lock.acquire

    def end(self) -> None:
        self.ended.append(True)  # first: a wait that has the lock looks there
        self._lock.release()

    def close(self) -> None: ...


class _DoneByPipe:
    """For greenlets: their hub watches a descriptor, which becomes readable when the other end is closed."""

    def __init__(self, wait: Callable[[int], Any]) -> None:
        self.ended: list[bool] = []
        self._wait = wait
        self._reads, self._writes = os.pipe()

    def wait(self) -> None:
        self._wait(self._reads)

    def end(self) -> None:
        os.close(self._writes)
        self.ended.append(True)  # last: from now on close() may come, and others may get the number

    def close(self) -> None:
        if not self.ended:  # the work has not begun
            os.close(self._writes)
        os.close(self._reads)


def _beside(work: Callable[[], Any], interrupt: Callable[[], None], done: _Done) -> Any:
    """Another thread does the work. What ends the wait, as Ctrl-C or the kill of a greenlet, interrupts it, and
    is raised when C has let go. The functions of threading are written in Python: a signal in the middle of one
    of them would break it."""
    values: list[Any] = []
    errors: list[BaseException] = []
    begins: list[bool] = []  # by its first item: a signal may come before the thread begins

    def run() -> None:
        begins.append(True)
        if not begins[0]:
            return
        try:
            values.append(work())
        except BaseException as error:
            errors.append(error)
        done.end()

    try:
        try:
            start_new_thread(run, ())
        except RuntimeError:  # at the end of the program, or there are too many
            return work()
        while not done.ended:
            done.wait()
    except BaseException:
        begins.append(False)
        if begins[0]:
            interrupt()
            while not done.ended:
                with contextlib.suppress(BaseException):  # one more: C must let go first
                    done.wait()
        raise
    if errors:
        raise errors[0]
    return values[0]


def call(work: Callable[[], Any], interrupt: Optional[Callable[[], None]] = None,
         cooperative: Optional[bool] = None) -> Any:
    """Does work that blocks. Where greenlets share this thread, the others run meanwhile. Python runs signal
    handlers, as that of Ctrl-C, only between steps of the main thread: work that can be interrupted is done
    beside it."""
    wait = _cooperative_wait(cooperative)
    done: _Done
    if wait:
        done = _DoneByPipe(wait)
    elif interrupt and _thread.get_native_id() == os.getpid():
        done = _DoneByLock()
    else:
        return work()
    try:
        return _beside(work, interrupt or (lambda: None), done)
    finally:
        done.close()


FIRST_OWNER = 1 << 63
_owners = itertools.count(FIRST_OWNER)


class _ThreadOwner(_local):  # type: ignore[misc, valid-type]
    def __init__(self) -> None:
        self.id = next(_owners)

_thread_owner = _ThreadOwner()


def owner() -> int:
    """The calling thread or greenlet, as the owner of reentrant leases. Python uses their ids again: a new one
    would own what a dead one holds. C cannot tell: another thread may make the call there."""
    if has_greenlets():
        current = _current()
        if current.parent is not None:  # else it is the thread's own
            return int(current.__dict__.setdefault("_redlock_client_owner", next(_owners)))
    return int(_thread_owner.id)
