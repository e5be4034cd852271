"""Cases for test_greenlets.py: `greenlet_cases.py LIBRARY PATCHED CASE,… NODE…` is a program of greenlets.

LIBRARY is gevent or eventlet. PATCHED says when it is patched: before the import of redlock_client, after it, or
never. The cases are the functions whose names begin with case_.
"""
import os
import signal
import sys
import time

LIBRARY, PATCHED, CASES, *NODES = sys.argv[1:]
PATIENT_S = 60
PATIENT_MS = PATIENT_S * 1000

if PATCHED == "after":
    import redlock_client
if LIBRARY == "gevent":
    import gevent
    import gevent.monkey as patcher
    from gevent import sleep, spawn, Timeout

    patch = patcher.patch_all
    native_threading = lambda name: patcher.get_original("_thread", name)
    join = lambda greenlet: greenlet.get()
    kill = lambda greenlet: greenlet.kill(block=False)
else:
    import eventlet
    from eventlet import patcher, sleep, spawn, Timeout

    patch = eventlet.monkey_patch
    native_threading = lambda name: getattr(patcher.original("_thread"), name)
    join = lambda greenlet: greenlet.wait()
    kill = lambda greenlet: spawn(greenlet.kill)
if PATCHED != "never":
    patch()

import redlock_client  # noqa: E402
from redlock_client import _native  # noqa: E402
from servers import die_with_parent  # noqa: E402


def eventually(condition):
    deadline = time.monotonic() + PATIENT_S
    while not condition():
        assert time.monotonic() < deadline, "this never came true"
        sleep(0.002)


def open_client(**options):
    return redlock_client.Client(NODES, node_timeout_ms=5000, connect_timeout_ms=20000, **options)


def is_quiet(client):
    """Nobody is inside C, and nothing is held."""
    counted = client.statistics()
    return (counted["requests_pending"], counted["leases_held"], client._core.cancels, client._core.inside) == \
        (0, 0, set(), set())


def takes(client, seen):
    """A greenlet that waits for the lock, and says what came of it."""
    def take():
        try:
            with client.lock("r", ttl_ms=PATIENT_MS, wait_timeout_ms=PATIENT_MS):
                seen.append("held")
        except redlock_client.Error as error:
            seen.append(type(error).__name__)
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    return take


def waiting(client, count=1):
    return lambda: client.statistics()["queued"] >= count


def to_servers(number):
    for process in os.environ["SERVERS"].split():
        os.kill(int(process), number)


def case_a_wait_lets_others_run():
    client, seen = open_client(cooperative=True if PATCHED == "never" else None), []
    with client.lock("r", ttl_ms=PATIENT_MS):
        waiter = spawn(takes(client, seen))
        eventually(waiting(client))  # it is this greenlet that goes on
        assert seen == []
    join(waiter)
    assert seen == ["held"]
    client.close()
    assert client.closed


def case_without_cooperation_the_thread_blocks():
    client, steps, seen = open_client(cooperative=False if PATCHED != "never" else None), [], []
    held = client.acquire("r", ttl_ms=PATIENT_MS)

    def step():
        while not seen:
            steps.append(1)
            sleep(0)

    stepper = spawn(step)
    sleep(0)
    before = len(steps)
    try:
        client.acquire("r", wait_timeout_ms=100)
    except redlock_client.ContendedError:
        seen.append(len(steps))
    assert seen == [before], (seen, before)
    join(stepper)
    held.release()


def case_many_wait_and_all_are_served():
    """More than the libraries' pools of threads have."""
    client, holders, most, seen = open_client(), [], [], []
    count = 50

    def take(number):
        with client.lock("r", ttl_ms=PATIENT_MS, wait_timeout_ms=PATIENT_MS):
            holders.append(number)
            most.append(len(holders))
            sleep(0)
            holders.remove(number)
        seen.append(number)

    with client.lock("r", ttl_ms=PATIENT_MS):
        greenlets = [spawn(take, number) for number in range(count)]
        eventually(waiting(client, count))
    for greenlet in greenlets:
        join(greenlet)
    assert sorted(seen) == list(range(count)) and set(most) == {1}
    eventually(lambda: is_quiet(client))


def case_a_wait_that_is_killed_holds_nothing():
    client, seen = open_client(), []
    with client.lock("r", ttl_ms=PATIENT_MS):
        waiter = spawn(takes(client, seen))
        eventually(waiting(client))
        kill(waiter)
        eventually(lambda: seen)
    assert seen == ["GreenletExit"], seen
    eventually(lambda: is_quiet(client))
    client.acquire("r").release()


def case_a_timeout_ends_a_wait():
    client = open_client()
    with client.lock("r", ttl_ms=PATIENT_MS):
        try:
            with Timeout(0.05):
                client.acquire("r", wait_timeout_ms=PATIENT_MS)
            assert False, "it has the lock of another one"
        except Timeout:
            assert not client._core.cancels
        assert client.statistics()["leases_held"] == 1
    eventually(lambda: is_quiet(client))


def case_a_kill_while_the_nodes_grant_the_lock():
    client, seen = open_client(), []

    def take():
        try:
            client.acquire("r", ttl_ms=PATIENT_MS)
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    to_servers(signal.SIGSTOP)
    try:
        taker = spawn(take)
        eventually(lambda: client._core.inside)
        sleep(0.05)  # its request is at the nodes, or soon will be
        kill(taker)
        sleep(0.05)
        assert seen == []  # C must let go first
    finally:
        to_servers(signal.SIGCONT)
    eventually(lambda: seen)
    assert seen == ["GreenletExit"], seen
    eventually(lambda: is_quiet(client))
    client.acquire("r").release()


def case_a_reentrant_hold_belongs_to_a_greenlet():
    owned = {"ttl_ms": PATIENT_MS, "reentrant": True}
    client, seen = open_client(), []
    before = _native.owner()
    outer = client.acquire("r", **owned)

    def other(own):
        seen.append(_native.owner())
        try:
            client.acquire("r", **owned)
        except redlock_client.ContendedError:
            seen.append("contended")
        with client.lock(own, **owned), client.lock(own, **owned):
            assert _native.owner() in seen

    greenlets = [spawn(other, "a"), spawn(other, "b")]
    for greenlet in greenlets:
        join(greenlet)
    owners = {owner for owner in seen if owner != "contended"}
    assert seen.count("contended") == 2 and len(owners | {before}) == 3, seen
    assert _native.owner() == before  # also now that there is a hub
    inner = client.acquire("r", **owned)
    assert inner.token == outer.token
    assert inner.release() is None
    outer.release()
    assert is_quiet(client)


def case_a_release_waits_for_who_uses_the_lease():
    client, seen = open_client(), []
    lease = client.acquire("r", ttl_ms=PATIENT_MS)
    to_servers(signal.SIGSTOP)
    try:
        extender = spawn(lambda: seen.append(lease.extend(PATIENT_MS)))
        eventually(lambda: lease._users)
        releaser = spawn(lambda: seen.append(lease.release()))
        eventually(lambda: lease._end_codes is not None)
        sleep(0.05)
        assert seen == []
    finally:
        to_servers(signal.SIGCONT)
    join(extender)
    join(releaser)
    assert [result.code for result in seen] == [0, 0]


def case_plain_threads_beside_greenlets():
    client, done, counts = open_client(), [], {"threads": 0, "greenlets": 0}
    held = []

    def turns(kind):
        for _ in range(10):
            with client.lock("r", ttl_ms=PATIENT_MS, wait_timeout_ms=PATIENT_MS):
                held.append(kind)
                assert len(held) == 1
                counts[kind] += 1
                held.pop()
        done.append(kind)

    for _ in range(3):
        native_threading("start_new_thread")(turns, ("threads",))
    greenlets = [spawn(turns, "greenlets") for _ in range(3)]
    eventually(lambda: len(done) == 6)
    for greenlet in greenlets:
        join(greenlet)
    assert counts == {"threads": 30, "greenlets": 30}
    eventually(lambda: is_quiet(client))


def case_callbacks_run_on_a_thread_of_their_own():
    ident = native_threading("get_ident")
    told, events = [], []
    client = open_client(on_event=lambda event: events.append(ident()))
    lease = client.acquire("r", ttl_ms=2000, expiring_ms=1000, on_expiring=lambda left_ms: told.append(ident()),
                           on_lost=lambda reason: told.append(ident()))
    eventually(lambda: len(told) == 2)
    assert len(set(told + events)) == 1 and told[0] != ident()
    try:
        lease.release()
        assert False, "it was lost"
    except redlock_client.LostError:
        pass


def case_a_loss_stops_a_greenlet():
    """As README says."""
    client, stopped = open_client(), []

    def work():
        try:
            while True:
                sleep(1)
        finally:
            stopped.append(True)

    worker = spawn(work)
    loop = gevent.get_hub().loop
    lease = client.acquire("r", ttl_ms=1000,
                           on_lost=lambda reason: loop.run_callback_threadsafe(gevent.kill, worker))
    eventually(lambda: stopped)
    assert lease.validity_ms == 0


def case_the_close_ends_waits():
    client, seen = open_client(), []
    held = client.acquire("r", ttl_ms=PATIENT_MS)
    waiters = [spawn(takes(client, seen)) for _ in range(3)]
    eventually(waiting(client, 3))
    closers = [spawn(client.close) for _ in range(2)]
    for greenlet in waiters + closers:
        join(greenlet)
    assert seen == 3 * ["CancelledError"] and held.validity_ms == 0, seen


def case_an_election_lets_others_run():
    client, kinds = open_client(), []
    election = client.elect("e", ttl_ms=PATIENT_MS)

    def read():
        for event in election:
            kinds.append(event.kind.name)

    reader = spawn(read)
    eventually(lambda: "LEADING" in kinds)
    election.end()
    join(reader)
    assert kinds[-1] == "ENDED"


def case_a_lease_that_is_collected():
    import gc
    import warnings

    client = open_client()
    lease = client.acquire("r", ttl_ms=PATIENT_MS)
    spawn(sleep, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        del lease
        gc.collect()
    eventually(lambda: is_quiet(client))


def case_the_program_ends():
    """With a lease, and greenlets that wait: the test looks for keys. The last case."""
    client, seen = open_client(), []
    client.lease = client.acquire("r", ttl_ms=PATIENT_MS)
    for _ in range(3):
        spawn(takes(client, seen))
    eventually(waiting(client, 3))


die_with_parent()
for case in CASES.split(","):
    print(case, flush=True)  # the last one is that which failed
    globals()["case_" + case]()
