"""Locks and elections for asyncio. One event loop: that in which the Manager was made."""
from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
import weakref
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterable, Mapping, Optional, Union

from ._aio_election import Election, Observer
from ._base import slots_of, text, to_bytes, to_callable, to_int
from ._callbacks import Handle
from ._items import Item, Items, items_of, to_adopt
from ._news import NodeInfo, statistics_of, Telemetry
from ._options import election_options, list_options, manager_options, Options, set_told
from ._redlock import ffi, lib
from ._result import check, copy_of, error_of

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._base import CData
    from ._news import Listed
    from ._options import AcquireOptions, ElectionOptions, ManagerOptions
    from ._result import Result

__all__ = ["Election", "Lease", "Manager", "Observer"]


class Manager:
    """A set of nodes, on the running event loop. Make it inside a coroutine.

        async with Manager(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]) as manager:
            async with manager.lock("invoice-17", wait_timeout_ms=60_000) as lease:
                ...

    The options are those of redlock_manager_options in redlock/redlock.h, by the same names.
    """

    def __init__(self, nodes: Union[str, Iterable[str]], **options: Unpack[ManagerOptions]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        given: dict[str, Any] = dict(options)
        for told in ("on_log", "on_event"):
            if given.get(told) is not None:
                given[told] = self._later(to_callable(told, given[told]))
        made, self._handles = manager_options(nodes, given)
        # What callbacks that are still to come refer to.
        self._kept: set[object] = set()
        self._closing: Optional[asyncio.Future[None]] = None
        self._observers: weakref.WeakSet[Observer] = weakref.WeakSet()
        self._losses: weakref.WeakSet[_Loss] = weakref.WeakSet()
        self._poll = lib.redlock_poll_new()
        if self._poll == ffi.NULL:
            raise error_of(lib.REDLOCK_ERR_SYSTEM)
        manager = ffi.new("redlock_manager **")
        error = ffi.new("char[]", 512)
        code = lib.redlock_manager_create_poll(self._poll, made.c, manager, error, 512)
        if code != lib.REDLOCK_OK:
            lib.redlock_poll_free(self._poll)
            raise error_of(code, None, text(error))
        self._c = manager[0]
        self._fd = lib.redlock_poll_fd(self._poll)
        self._loop.add_reader(self._fd, self._dispatch)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if getattr(self, "_closing", self) is None and hasattr(self, "_c"):
            warnings.warn("a redlock_client.aio.Manager was never closed", ResourceWarning, source=self)

    async def close(self) -> None:
        """Releases all leases, ends all elections, and closes. Acquires that wait raise ClosedError."""
        if self._closing is None:
            closing = self._loop.create_future()

            def closed() -> None:
                self._loop.remove_reader(self._fd)
                lib.redlock_poll_free(self._poll)
                self._kept.clear()
                closing.set_result(None)

            handle = self._keep(closed)
            check(lib.redlock_manager_close(self._c, lib.redlock_py_closed, handle.c))
            self._closing = closing
            for observer in list(self._observers):
                observer.end()
            for loss in list(self._losses):
                loss.over.set()
        await asyncio.shield(self._closing)

    @property
    def closed(self) -> bool:
        return self._closing is not None

    async def connect(self, timeout_ms: int = 1000) -> Result:
        """Waits for the first connections. Raises NoQuorumError if too few nodes are ready."""
        timeout = to_int("timeout_ms", timeout_ms)
        return await self._request(lambda cb, data: lib.redlock_manager_connect(self._open(), timeout, cb, data))

    async def acquire(self, resource: str, **options: Unpack[AcquireOptions]) -> Lease:
        """Takes the lock, and raises ContendedError or another Error if it cannot. A task that is cancelled
        meanwhile gives up the lock.

        The options are those of redlock_acquire_options, by the same names; wait_timeout_ms=0, the default,
        tries once. With mode=Mode.SHARED, others who read may have the lock at the same time. on_lost(reason)
        and on_expiring(remaining_ms) run on the event loop.
        """
        name = to_bytes("resource", resource)
        return await self._acquire(
            lambda made, request, cb, data: int(lib.redlock_acquire(self._open(), name, made, request, cb, data)),
            options)

    async def acquire_all(self, resources: Iterable[str], shared: Iterable[str] = (),
                          **options: Unpack[AcquireOptions]) -> Lease:
        """Takes several resources in one lease, all of them or none: `resources` alone, `shared` to read. If they
        are free, it takes as long as one. The lease ends with the first of them. Otherwise as acquire()."""
        items = Items(resources, shared)
        return await self._acquire(
            lambda made, request, cb, data: int(
                lib.redlock_acquire_all(self._open(), items.c, items.count, made, request, cb, data)), options)

    async def _acquire(self, ask: Callable[[CData, CData, CData, CData], int], options: AcquireOptions) -> Lease:
        made, lost = self._acquire_options(options)
        future: asyncio.Future[Lease] = self._loop.create_future()
        request = ffi.new("redlock_request **")

        def answered(result: CData) -> None:
            self._kept.discard(handle)
            request[0] = ffi.NULL
            lease = lib.redlock_result_lease(result)
            if future.cancelled():
                if lease != ffi.NULL:
                    lib.redlock_release(lease, ffi.NULL, ffi.NULL)
            elif lease != ffi.NULL:
                future.set_result(Lease(self, lease, lost, copy_of(result)))
            else:
                future.set_exception(error_of(lib.redlock_result_code(result), copy_of(result)))

        handle = self._keep(answered)
        self._begin(handle, lambda: ask(made.c, request, lib.redlock_py_result, handle.c))
        try:
            return await future
        except asyncio.CancelledError:
            if request[0] != ffi.NULL:
                lib.redlock_request_cancel(request[0])
            elif not future.cancelled() and not future.exception():
                future.result()._end()
            raise

    @contextlib.asynccontextmanager
    async def lock(self, resource: str, **options: Unpack[AcquireOptions]) -> AsyncIterator[Lease]:
        """The lock for an `async with` block. The lease is renewed meanwhile, unless auto_extend is False.
        At the end of the block, LostError says that the lock was not ours until then."""
        options.setdefault("auto_extend", True)
        async with await self.acquire(resource, **options) as lease:
            yield lease

    @contextlib.asynccontextmanager
    async def lock_all(self, resources: Iterable[str], shared: Iterable[str] = (),
                       **options: Unpack[AcquireOptions]) -> AsyncIterator[Lease]:
        """As lock(), for several resources: acquire_all()."""
        options.setdefault("auto_extend", True)
        async with await self.acquire_all(resources, shared, **options) as lease:
            yield lease

    def adopt(self, resource: str, token: str, **options: Unpack[AcquireOptions]) -> Lease:
        """A lease of a lock that was taken elsewhere. Its validity is 0 until an extend(). The token of a lease
        that was downgraded needs mode=Mode.SHARED."""
        made, lost = self._acquire_options(options)
        lease = ffi.new("redlock_lease **")
        self._check(lib.redlock_adopt(self._open(), to_bytes("resource", resource), to_bytes("token", token), made.c,
                                      lease))
        return Lease(self, lease[0], lost, None)

    def adopt_all(self, tokens: Mapping[str, str], shared: Iterable[str] = (),
                  **options: Unpack[AcquireOptions]) -> Lease:
        """As adopt(), for several: the token of each resource. Those that were downgraded are in `shared`, too."""
        items = to_adopt(tokens, shared)
        made, lost = self._acquire_options(options)
        lease = ffi.new("redlock_lease **")
        self._check(lib.redlock_adopt_all(self._open(), items.c, items.count, made.c, lease))
        return Lease(self, lease[0], lost, None)

    async def inspect(self, resource: str) -> Result:
        """Who holds the resource: the votes have the holder at each node, and read_by all who read it. Takes no
        lock."""
        name = to_bytes("resource", resource)
        return await self._request(lambda cb, data: lib.redlock_inspect(self._open(), name, cb, data))

    async def locks(self, match: str = "", others: bool = False) -> tuple[list[Listed], Result]:
        """All locks of all nodes whose resource matches the pattern: one that is held at three nodes comes
        three times. The result says which nodes named all of theirs."""
        made = list_options(match, others)
        found: list[Listed] = []
        return found, await self._request(
            lambda cb, data: lib.redlock_list(self._open(), made.c, lib.redlock_py_listed, cb, data), found)

    def elect(self, name: str, **options: Unpack[ElectionOptions]) -> Election:
        """Becomes a candidate. The options are those of redlock_election_options, by the same names."""
        return Election(self, name, election_options(options.items()))

    def observe(self, name: str) -> Observer:
        """Tells who leads, from now on."""
        return Observer(self, name)

    def statistics(self) -> dict[str, int]:
        """The counters of redlock_statistics."""
        return statistics_of(lambda counted: self._check(lib.redlock_manager_statistics(self._open(), counted)))

    def telemetry(self) -> Telemetry:
        """Histograms, and the votes of each node by cause."""
        return Telemetry(lambda c: self._check(lib.redlock_manager_telemetry(self._open(), c)),
                         lib.redlock_manager_node_count(self._c))

    def nodes(self) -> list[NodeInfo]:
        """What is known of each node."""
        return [self._node(index) for index in range(lib.redlock_manager_node_count(self._open()))]

    @property
    def quorum(self) -> int:
        """How many nodes must grant a lock."""
        return int(lib.redlock_manager_quorum(self._open()))

    def set_credentials(self, user: Optional[str], password: str, node: Optional[int] = None) -> None:
        """New credentials for one node or for all. A node has accepted them when its credentials_pending in
        nodes() is False; its credentials_error says why it refuses them."""
        name = ffi.NULL if user is None else to_bytes("user", user)
        index = lib.REDLOCK_ALL_NODES if node is None else to_int("node", node, "size_t")
        self._check(lib.redlock_manager_set_credentials(self._open(), index, name, to_bytes("password", password)))

    def _later(self, run: Callable[..., None]) -> Callable[..., None]:
        """C tells this in the middle of its work, where it must not be called."""
        loop = self._loop

        def told(*arguments: object) -> None:
            if not loop.is_closed():
                loop.call_soon(run, *arguments)

        return told

    def _dispatch(self) -> None:
        if lib.redlock_poll_dispatch(self._poll) != lib.REDLOCK_ERR_FORKED:
            return
        # A child process that runs the loop of its parent shares its epoll instance, too: what one
        # removes, the other loses. As long as the parent lives, it takes what made the descriptor
        # readable.
        try:
            os.kill(self._process, 0)
        except ProcessLookupError:
            self._loop.remove_reader(self._fd)

    def _open(self) -> CData:
        if self._closing is not None:
            raise error_of(lib.REDLOCK_ERR_CLOSED)
        return self._c

    def _keep(self, target: object) -> Handle:
        handle = Handle(target)
        self._kept.add(handle)
        return handle

    def _begin(self, handle: Handle, begin: Callable[[], int]) -> None:
        """Makes a request. If it is refused, no callback will come."""
        try:
            self._check(begin())
        except BaseException:
            self._kept.discard(handle)
            raise

    def _check(self, code: int) -> None:
        check(code, None, text(lib.redlock_manager_invalid(self._c)) if code == lib.REDLOCK_ERR_INVALID else "")

    def _drop(self, lease: CData, lost: Handle) -> None:
        """Releases a lease that nobody refers to."""
        if self._closing is None:
            lib.redlock_release(lease, ffi.NULL, ffi.NULL)
        self._kept.discard(lost)

    async def _request(self, begin: Callable[[CData, CData], int],
                       found: Optional[list[Listed]] = None) -> Result:
        future: asyncio.Future[Result] = self._loop.create_future()

        def answered(result: CData) -> None:
            self._kept.discard(handle)
            if future.cancelled():
                return
            copy = copy_of(result)
            code = lib.redlock_result_code(result)
            if code == lib.REDLOCK_OK and copy:
                future.set_result(copy)
            else:
                future.set_exception(error_of(code or lib.REDLOCK_ERR_NO_MEMORY, copy))

        handle = self._keep(answered if found is None else (found, answered))
        answer = lib.redlock_py_result if found is None else lib.redlock_py_list_done
        self._begin(handle, lambda: begin(answer, handle.c))
        return await future

    def _acquire_options(self, options: AcquireOptions) -> tuple[Options, _Loss]:
        given: dict[str, Any] = dict(options)
        lost = _Loss(given.pop("on_lost", None), given.pop("on_expiring", None))
        made = Options("redlock_acquire_options", lib.redlock_acquire_options_default)
        made.set(given.items())
        set_told(made.c, lost.handle, lost.expiring)
        return made, lost

    def _node(self, index: int) -> NodeInfo:
        info = ffi.new("redlock_node_info *")
        info.size = ffi.sizeof("redlock_node_info")
        check(lib.redlock_manager_node(self._open(), index, info))
        return NodeInfo.of(info)


class _Loss:
    """Whether a lease is lost, and who wants to know that, or that its end is near."""

    def __init__(self, on_lost: Optional[Callable[[str], None]], on_expiring: Optional[Callable[[int], None]]) -> None:
        self.over = asyncio.Event()  # lost, ended, or the manager is closed
        self.is_lost = False
        self.reason = ""
        self.on_lost = None if on_lost is None else to_callable("on_lost", on_lost)
        self.handle = Handle(self._run)
        self.on_expiring = None if on_expiring is None else to_callable("on_expiring", on_expiring)
        self.expiring = self.on_expiring and Handle(self._expires)

    def _run(self, reason: str) -> None:
        self.reason, self.is_lost = reason, True
        self.over.set()
        if self.on_lost:
            asyncio.get_running_loop().call_soon(self.on_lost, reason)

    def _expires(self, remaining_ms: int) -> None:
        asyncio.get_running_loop().call_soon(self._tell_expiring, remaining_ms)

    def _tell_expiring(self, remaining_ms: int) -> None:
        if self.on_expiring and not self.over.is_set():
            self.on_expiring(remaining_ms)


class Lease:
    """A lock of a Manager. As an async context manager it is released at the end of the block."""

    def __init__(self, manager: Manager, handle: CData, lost: _Loss, result: Optional[Result]) -> None:
        self._manager = manager
        self._handle = handle
        self._lost = lost
        self._held = True
        self._result = result
        manager._kept.add(lost.handle)
        manager._losses.add(lost)
        self.resource: str = text(lib.redlock_lease_resource(handle))
        self.token: str = text(lib.redlock_lease_token(handle))
        self.fence: int = int(lib.redlock_lease_fence(handle))
        self.items: list[Item] = items_of(handle)
        self.slots: tuple[int, ...] = slots_of(handle)

    def __repr__(self) -> str:
        return f"<Lease of {self.resource!r}: {self.validity_ms} ms>"

    @property
    def result(self) -> Optional[Result]:
        """What the nodes said to the acquire."""
        return self._result

    @property
    def validity_ms(self) -> int:
        """The time that is left; 0 means stop work. Ask before each step that the lock protects."""
        return int(lib.redlock_lease_validity_ms(self._handle)) if self._is_live() else 0

    def check(self) -> None:
        """Raises LostError if no time is left."""
        if self.validity_ms == 0:
            raise error_of(lib.REDLOCK_ERR_LOST, None, self._lost.reason)

    async def wait_lost(self) -> str:
        """Waits until the lease is lost. Returns why. Raises InvalidError once it is released or forgotten,
        ClosedError once the manager is closed."""
        await self._lost.over.wait()
        if not self._lost.is_lost:
            self._live()
        return self._lost.reason

    async def extend(self, ttl_ms: int) -> Result:
        """Gives it at least this much time from now."""
        ttl = to_int("ttl_ms", ttl_ms)
        return await self._manager._request(lambda cb, data: lib.redlock_extend(self._live(), ttl, cb, data))

    async def downgrade(self) -> Result:
        """Lets others read the lock, too, without a gap in which one of them could write. It is shared from this
        call on, also if it raises. There is no way back: release it, and acquire it again."""
        return await self._manager._request(lambda cb, data: lib.redlock_downgrade(self._live(), cb, data))

    async def release(self) -> Result:
        """Ends it at once, and waits for the answers. Raises LostError if the lock was not ours until now."""

        def begin(cb: CData, data: CData) -> int:
            code = int(lib.redlock_release(self._live(), cb, data))
            self._ended(code)
            return code

        return await self._manager._request(begin)

    def forget(self) -> None:
        """Leaves the keys to their ttl: they can be adopted."""
        lib.redlock_lease_forget(self._live())
        self._ended(lib.REDLOCK_OK)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if not self._held:
            return
        try:
            await self.release()
        except Exception:
            if kind is None:  # otherwise the block's own exception says more
                raise

    def __del__(self) -> None:
        if getattr(self, "_held", False) and self._is_live() and self._manager._loop.is_running():
            warnings.warn(f"{self!r} was never released", ResourceWarning, source=self)
            self._manager._loop.call_soon_threadsafe(self._manager._drop, self._handle, self._lost.handle)

    def _is_live(self) -> bool:
        return self._held and not self._manager.closed and os.getpid() == self._manager._process

    def _live(self) -> CData:
        self._manager._open()
        if not self._held:
            raise error_of(lib.REDLOCK_ERR_INVALID, None, f"the lease of {self.resource!r} has ended already")
        return self._handle

    def _end(self) -> None:
        if self._is_live():
            self._ended(lib.redlock_release(self._handle, ffi.NULL, ffi.NULL))

    def _ended(self, code: int) -> None:
        if code == lib.REDLOCK_OK:
            self._held = False
            self._lost.over.set()
            self._manager._kept.discard(self._lost.handle)
