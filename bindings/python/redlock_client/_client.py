"""Locks for threads that block."""
from __future__ import annotations

import contextlib
import os
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from . import _native
from ._base import slots_of, text, to_bytes, to_callable, to_int
from ._callbacks import Handle
from ._core import check_call, Core
from ._election import Election
from ._items import Item, Items, items_of, to_adopt
from ._news import NodeInfo, statistics_of, Telemetry
from ._options import election_options, list_options, manager_options, Options, set_told
from ._redlock import ffi, lib
from ._result import check, error_of, result_of

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._base import CData
    from ._news import Listed
    from ._options import ClientAcquireOptions, ClientOptions, ElectionOptions
    from ._result import Result


class Client:
    """A set of nodes, and a thread of C that talks to them. Any number of threads may use it.

    `nodes` is a list of node URIs, or a text with commas. The options are those of redlock_manager_options
    in redlock/redlock.h, by the same names. Nodes that are down are no error here.

    Calls block their thread. Where gevent or eventlet have patched threading, and their hub runs in the thread,
    they block only the calling greenlet. With `cooperative` True it is the same where nothing is patched; with
    False the thread always blocks.
    """

    def __init__(self, nodes: Union[str, Iterable[str]], **options: Unpack[ClientOptions]) -> None:
        given: dict[str, Any] = dict(options)
        cooperative = _to_cooperative(given.pop("cooperative", None))
        cores: Callable[[], Optional[Core]] = lambda: None

        def on_loop(run: Callable[..., None]) -> Callable[..., None]:
            def ran(*arguments: object) -> None:
                core = cores()
                if core:
                    core.on_loop_thread()
                run(*arguments)

            return ran

        for name in ("on_log", "on_event"):
            if given.get(name) is not None:
                given[name] = on_loop(to_callable(name, given[name]))
        made, handles = manager_options(nodes, given)
        client = ffi.new("redlock_client **")
        error = ffi.new("char[]", 512)
        try:
            check(_native.call(lambda: lib.redlock_client_open(made.c, client, error, 512), None, cooperative), None,
                  text(error))
            self._core = Core(client[0], handles, cooperative)
        except BaseException:  # a greenlet was killed, or a signal came
            if client[0] != ffi.NULL:
                lib.redlock_client_close(client[0])
            raise
        cores = weakref.ref(self._core)
        # Also at the end of the program: C must not call Python after it.
        self._end = weakref.finalize(self, self._core.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases all leases, ends all elections, and closes the client. Acquires that wait in other
        threads, and listings, raise CancelledError; other calls end first. Leases that are left have no
        validity."""
        self._end()

    @property
    def closed(self) -> bool:
        return self._core.is_closing

    def acquire(self, resource: str, **options: Unpack[ClientAcquireOptions]) -> Lease:
        """Takes the lock, and raises ContendedError or another Error if it cannot.

        The options are those of redlock_acquire_options and redlock_client_acquire_options, by the same
        names; wait_timeout_ms=0, the default, tries once. With mode=Mode.SHARED, others who read may have the
        lock at the same time, and nobody alone. With permits=k and limit=L, the lease has k of L permits of the
        resource: its slots. on_lost(reason) and on_expiring(remaining_ms) run on another thread. An owner of a
        reentrant lease is below 2**63.
        """
        name = to_bytes("resource", resource)
        return self._acquire(
            lambda client, made, slot, result: int(lib.redlock_client_acquire(client, name, made, slot, result)),
            dict(options))

    def acquire_all(self, resources: Iterable[str], shared: Iterable[str] = (),
                    **options: Unpack[ClientAcquireOptions]) -> Lease:
        """Takes several resources in one lease, all of them or none: `resources` alone, `shared` to read. If they
        are free, it takes as long as one. The lease ends with the first of them. It cannot be reentrant. Otherwise as
        acquire()."""
        items = Items(resources, shared)
        return self._acquire(
            lambda client, made, slot, result: int(
                lib.redlock_client_acquire_all(client, items.c, items.count, made, slot, result)), dict(options))

    def _acquire(self, ask: Callable[[CData, CData, CData, CData], int], given: dict[str, Any]) -> Lease:
        if to_int("owner", given.get("owner", 0), "uint64_t") >= _native.FIRST_OWNER:
            raise ValueError(f"owner is {given['owner']}; it must be below 2**63")
        made = Options("redlock_client_acquire_options", lib.redlock_client_acquire_options_default)
        lost, expiring = self._told("on_lost", given), self._told("on_expiring", given)
        lock = ffi.addressof(made.c, "lock")
        made.set(given.items(), lock, made.c)
        set_told(lock, lost, expiring)
        if made.c.reentrant and made.c.owner == 0:
            made.c.owner = _native.owner()
        owner = made.c.owner if made.c.reentrant else 0
        lease = Lease(self, owner, lost, expiring)
        with self._core.call() as client:

            def acquire(result: CData) -> int:
                return ask(client, made.c, lease._slot, result)

            try:
                if lock.wait_timeout_ms == 0:
                    code, said = self._core.ask(acquire)
                else:
                    with self._core.cancel() as cancel:
                        lock.cancel = cancel
                        code, said = self._core.ask(acquire, lambda: lib.redlock_cancel_set(cancel))
                check(code, said)
                lease._begin(said)
                return lease
            except BaseException:  # a signal may have come when C had made it
                lease._undo(lambda handle, made: lib.redlock_client_release_as(client, handle, owner, made))
                raise

    @contextlib.contextmanager
    def lock(self, resource: str, **options: Unpack[ClientAcquireOptions]) -> Iterator[Lease]:
        """The lock for a `with` block. The lease is renewed meanwhile, unless auto_extend is False. At the
        end of the block, LostError says that the lock was not ours until then."""
        options.setdefault("auto_extend", True)
        with self.acquire(resource, **options) as lease:
            yield lease

    @contextlib.contextmanager
    def lock_all(self, resources: Iterable[str], shared: Iterable[str] = (),
                 **options: Unpack[ClientAcquireOptions]) -> Iterator[Lease]:
        """As lock(), for several resources: acquire_all()."""
        options.setdefault("auto_extend", True)
        with self.acquire_all(resources, shared, **options) as lease:
            yield lease

    def adopt(self, resource: str, token: str, **options: Unpack[ClientAcquireOptions]) -> Lease:
        """A lease of a lock that was taken elsewhere. Its validity is 0 until an extend(). The token of a lease
        that was downgraded needs mode=Mode.SHARED."""
        name, kept = to_bytes("resource", resource), to_bytes("token", token)
        return self._adopt(lambda client, made, slot: int(lib.redlock_client_adopt(client, name, kept, made, slot)),
                           dict(options))

    def adopt_all(self, tokens: Mapping[str, str], shared: Iterable[str] = (),
                  **options: Unpack[ClientAcquireOptions]) -> Lease:
        """As adopt(), for several: the token of each resource. Those that were downgraded are in `shared`, too."""
        items = to_adopt(tokens, shared)
        return self._adopt(
            lambda client, made, slot: int(lib.redlock_client_adopt_all(client, items.c, items.count, made, slot)),
            dict(options))

    def _adopt(self, ask: Callable[[CData, CData, CData], int], given: dict[str, Any]) -> Lease:
        lost, expiring = self._told("on_lost", given), self._told("on_expiring", given)
        made = Options("redlock_acquire_options", lib.redlock_acquire_options_default)
        made.set(given.items())
        set_told(made.c, lost, expiring)
        lease = Lease(self, 0, lost, expiring)
        with self._core.call() as client:
            try:
                self._core.check(lambda: ask(client, made.c, lease._slot))
                lease._begin(None)
                return lease
            except BaseException:  # a signal: the keys stay as they were
                lease._undo(lambda handle, _: lib.redlock_client_forget(client, handle))
                raise

    def inspect(self, resource: str) -> Result:
        """Who holds the resource: the votes have the holder at each node, and read_by all who read it. Takes no
        lock."""
        name = to_bytes("resource", resource)
        with self._core.call() as client:
            code, found = self._core.ask(lambda result: lib.redlock_client_inspect(client, name, result))
        check(code, found)
        assert found
        return found

    def locks(self, match: str = "", others: bool = False) -> tuple[list[Listed], Result]:
        """All locks of all nodes whose resource matches the pattern: one that is held at three nodes comes
        three times. The result says which nodes named all of theirs."""
        found: list[Listed] = []
        made = list_options(match, others)
        handle = Handle((found,))
        with self._core.call() as client, self._core.cancel() as cancel:
            made.c.cancel = cancel
            code, said = self._core.ask(
                lambda result: int(lib.redlock_client_list(client, made.c, lib.redlock_py_listed, handle.c, result)),
                lambda: lib.redlock_cancel_set(cancel))
        check(code, said)
        assert said
        return found, said

    def elect(self, name: str, **options: Unpack[ElectionOptions]) -> Election:
        """Becomes a candidate. The options are those of redlock_election_options, by the same names."""
        made = election_options(options.items())
        election = ffi.new("redlock_client_election **")
        with self._core.call() as client:
            of = to_bytes("name", name)
            try:
                self._core.check(lambda: lib.redlock_client_elect(client, of, made.c, election))
                return Election(self, election[0])
            except BaseException:  # a signal: nobody would know of this candidate
                if election[0] != ffi.NULL:
                    self._core.run(lambda: lib.redlock_client_election_end(election[0], ffi.NULL))
                raise

    def statistics(self) -> dict[str, int]:
        """The counters of redlock_statistics."""
        with self._core.call() as client:
            return statistics_of(
                lambda counted: self._core.check(lambda: lib.redlock_client_statistics(client, counted)))

    def telemetry(self) -> Telemetry:
        """Histograms, and the votes of each node by cause."""
        with self._core.call() as client:
            return Telemetry(lambda c: self._core.check(lambda: lib.redlock_client_telemetry(client, c)),
                             lib.redlock_client_node_count(client))

    def nodes(self) -> list[NodeInfo]:
        """What is known of each node."""
        with self._core.call() as client:
            return [self._node(client, index) for index in range(lib.redlock_client_node_count(client))]

    @property
    def quorum(self) -> int:
        """How many nodes must grant a lock."""
        with self._core.call() as client:
            return int(lib.redlock_client_quorum(client))

    def set_credentials(self, user: Optional[str], password: str, node: Optional[int] = None) -> None:
        """New credentials for one node or for all. A node has accepted them when its credentials_pending in
        nodes() is False; its credentials_error says why it refuses them."""
        name = ffi.NULL if user is None else to_bytes("user", user)
        index = lib.REDLOCK_ALL_NODES if node is None else to_int("node", node, "size_t")
        secret = to_bytes("password", password)
        with self._core.call() as client:
            self._core.check(lambda: lib.redlock_client_set_credentials(client, index, name, secret))

    def _node(self, client: CData, index: int) -> NodeInfo:
        info = ffi.new("redlock_node_info *")
        info.size = ffi.sizeof("redlock_node_info")
        self._core.check(lambda: lib.redlock_client_node(client, index, info))
        try:
            return NodeInfo.of(info)
        finally:
            lib.redlock_node_info_free(info)

    def _told(self, name: str, options: dict[str, Any]) -> Optional[Handle]:
        """Takes this callback out of the options."""
        given = options.pop(name, None)
        if given is None:
            return None
        core, run = self._core, to_callable(name, given)

        def told(*what: object) -> None:
            core.on_loop_thread()
            run(*what)

        return Handle(told)


def _to_cooperative(value: Any) -> Optional[bool]:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"cooperative must be a bool or None, not {type(value).__name__}")
    if value:
        _native.must_be_able_to_cooperate()
    return value


def _is_over(owner: int, result: Optional[CData]) -> bool:
    """Whether C has ended the lease: one that is still held for others of its owner has no result."""
    return owner == 0 or result is None or result[0] != ffi.NULL


class Lease:
    """A lock of a Client. As a context manager it is released at the end of the block. Any number of
    threads may use it; when one has begun to release it, it has ended for the others."""

    # Until __init__() has made them, and after it was interrupted.
    _slot: CData = (ffi.NULL,)
    _end_codes: Optional[list[int]] = None

    def __init__(self, client: Client, owner: int, *told: Optional[Handle]) -> None:
        self._client = client
        self._owner = owner
        self._told = [handle for handle in told if handle]
        self._id: object = object()
        self._users: dict[object, object] = {}  # who is inside a call of C that does not end it
        self._result: Optional[Result] = None
        self.resource = ""
        self.token = ""
        self.fence = 0
        self.items: list[Item] = []
        self.slots: tuple[int, ...] = ()  # of permits
        # C writes the handle here. So __del__() releases it, whenever a signal comes.
        self._slot = ffi.new("redlock_lease **")

    def _begin(self, result: Optional[Result]) -> None:
        """C has made the handle."""
        self._result = result
        self.resource = text(lib.redlock_lease_resource(self._handle))
        self.token = text(lib.redlock_lease_token(self._handle))
        self.fence = int(lib.redlock_lease_fence(self._handle))
        self.items = items_of(self._handle)
        self.slots = slots_of(self._handle)
        # All who share a reentrant lease of C know it by this.
        self._id = self.token if self._owner else self._id
        if self._told:
            self._client._core.keep(self._id, self._told, self._owner != 0 and result is None)

    def _undo(self, end: Callable[[CData, CData], int]) -> None:
        """Ends the handle, if C has made it: the caller will not get it."""
        if self._handle == ffi.NULL:
            return
        result = ffi.new("redlock_result **")
        handle, self._slot[0] = self._handle, ffi.NULL
        try:
            self._client._core.run(lambda: end(handle, result))
        finally:
            if _is_over(self._owner, result):
                self._client._core.drop(self._id)
            lib.redlock_result_free(result[0])

    @property
    def _handle(self) -> CData:
        return self._slot[0]

    @property
    def _held(self) -> bool:
        """Whether there is a handle, and nobody has begun to end it."""
        return bool(self._slot[0] != ffi.NULL) and self._end_codes is None

    def __repr__(self) -> str:
        return f"<Lease of {self.resource!r}: {self.validity_ms} ms>"

    @property
    def result(self) -> Optional[Result]:
        """What the nodes said to the acquire; None if none was asked."""
        return self._result

    @property
    def validity_ms(self) -> int:
        """The time that is left; 0 means stop work. Ask before each step that the lock protects."""
        try:
            with self._use():
                handle = self._handle
                return int(lib.redlock_lease_validity_ms(handle)) if handle else 0
        except Exception:  # ended, closed, or in a child process
            return 0

    def check(self) -> None:
        """Raises LostError if no time is left."""
        if self.validity_ms == 0:
            raise error_of(lib.REDLOCK_ERR_LOST)

    def extend(self, ttl_ms: int) -> Result:
        """Gives it at least this much time from now."""
        time_ms = to_int("ttl_ms", ttl_ms)
        with self._use() as client:
            code, made = self._client._core.ask(
                lambda result: lib.redlock_client_extend(client, self._handle, time_ms, result))
        check(code, made)
        assert made
        return made

    def downgrade(self) -> Result:
        """Lets others read the lock, too, without a gap in which one of them could write. It is shared from this
        call on, also if it raises. There is no way back: release it, and acquire it again."""
        with self._use() as client:
            code, made = self._client._core.ask(
                lambda result: lib.redlock_client_downgrade(client, self._handle, result))
        check(code, made)
        assert made
        return made

    def release(self) -> Optional[Result]:
        """Ends it. Raises LostError if the lock was not ours until now. The result is None for a reentrant
        lease that is still held."""
        result = ffi.new("redlock_result **")
        try:
            code = self._end(lib.redlock_client_release_as, result, self._owner, result)
            taken, result[0] = result[0], ffi.NULL
            made = result_of(taken)
        finally:
            lib.redlock_result_free(result[0])
        check(code, made)
        return made

    def forget(self) -> None:
        """Leaves the keys to their ttl: they can be adopted."""
        check_call(self._end(lib.redlock_client_forget, None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if not self._held:
            return
        try:
            self.release()
        except Exception:
            if kind is None:  # otherwise the block's own exception says more
                raise
        except BaseException:  # a signal came before the call of C
            if self._held:
                with contextlib.suppress(Exception):
                    self.release()
            raise

    def __del__(self) -> None:
        if not self._held:
            return
        core = self._client._core
        if core.is_closing or os.getpid() != core.process:
            return
        handle, owner, id_ = self._handle, self._owner, self._id

        def release() -> None:
            result = ffi.new("redlock_result **")
            with contextlib.suppress(Exception), core.call() as client:
                lib.redlock_client_release_as(client, handle, owner, result)
                if _is_over(owner, result):
                    core.drop(id_)
            lib.redlock_result_free(result[0])

        if core.may_wait():
            release()
        else:
            _native.start(release)
        warnings.warn(f"the lease of {self.resource!r} was never released", ResourceWarning, source=self)

    @contextlib.contextmanager
    def _use(self) -> Iterator[CData]:
        """A call of C with the handle. No other thread ends it meanwhile."""
        core, this = self._client._core, object()
        with core.call() as client:
            try:
                with core.lock:
                    self._must_be_held()
                    self._users[this] = _native.this()
                yield client
            finally:
                with core.lock:
                    self._users.pop(this, None)
                    core.changed.notify_all()

    def _end(self, end: Callable[..., int], result: Optional[CData], *arguments: object) -> int:
        """Ends the handle. C frees it, so no other thread may use it from now on. This thread may be in
        _use(), if a handler of a signal calls this; C refuses a call on the loop thread."""
        core, this = self._client._core, _native.this()
        on_loop_thread = core.is_loop_thread()
        stays = (lib.REDLOCK_ERR_INVALID, lib.REDLOCK_ERR_FORKED, lib.REDLOCK_ERR_NOT_OWNER, lib.REDLOCK_ERR_BUSY)
        codes: list[int] = []
        with core.call() as client:
            try:
                with core.lock:
                    self._must_be_held()
                    self._end_codes = codes
                core.wait_for(lambda: on_loop_thread or set(self._users.values()) <= {this})
                # One step of Python: no signal comes before the code is noted.
                core.run(lambda: codes.extend(
                    map(end, (client,), (self._handle,), *((value,) for value in arguments))))
            finally:
                if self._end_codes is codes:
                    if not codes or codes[0] in stays:
                        self._end_codes = None
                    else:
                        self._slot[0] = ffi.NULL
                        if _is_over(self._owner, result):
                            core.drop(self._id)
        return codes[0]

    def _must_be_held(self) -> None:
        if not self._held:
            raise error_of(lib.REDLOCK_ERR_INVALID, None, f"the lease of {self.resource!r} has ended already")
