"""asyncio, on three real servers."""
import asyncio
import contextlib
import gc
import inspect
import os
import subprocess
import sys
import unittest
import warnings

import redlock_client
from redlock_client import Code, EventKind, Mode
from redlock_client.aio import Manager
from servers import PATIENT_S, Servers

PATIENT_MS = PATIENT_S * 1000


def setUpModule():
    global servers
    servers = Servers(3)


def tearDownModule():
    servers.stop()


async def eventually(condition):
    """Lets the loop run until the condition holds."""
    async with asyncio.timeout(PATIENT_S):
        while not condition():
            await asyncio.sleep(0.002)


class Base(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        servers.clear()
        self.manager = self.open()

    def open(self, **options):
        manager = Manager(servers.nodes, node_timeout_ms=5000, connect_timeout_ms=20000, **options)
        self.addAsyncCleanup(manager.close)
        return manager

    async def gone(self, key):
        await eventually(lambda: servers.with_key(key) == 0)


class Locks(Base):
    async def test_a_block_holds_the_lock(self):
        self.assertEqual((await self.manager.connect(20000)).code, Code.OK)
        async with self.manager.lock("r", ttl_ms=PATIENT_MS, fencing=True) as lease:
            self.assertGreater(lease.validity_ms, 0)
            self.assertEqual((lease.resource, len(lease.token)), ("r", 32))
            self.assertGreater(lease.fence, 0)
            await eventually(lambda: servers.with_key("r") == 3)
            with self.assertRaises(redlock_client.ContendedError) as raised:
                await self.manager.acquire("r")
            self.assertIn("'r'", str(raised.exception))
            self.assertEqual((await self.manager.inspect("r")).waiters, 0)
            self.assertEqual((await lease.extend(2 * PATIENT_MS)).code, Code.OK)
            self.assertGreater(lease.validity_ms, PATIENT_MS)
        self.assertEqual(lease.validity_ms, 0)
        await self.gone("r")
        with self.assertRaises(redlock_client.InvalidError):
            await lease.release()
        self.assertEqual(self.manager.statistics()["released"], 1)

    async def test_several_resources_in_one_lease(self):
        async with self.manager.lock_all(["b", "a"], ["c"], ttl_ms=PATIENT_MS) as lease:
            self.assertEqual([item.resource for item in lease.items], ["b", "a", "c"])
            with self.assertRaises(redlock_client.ContendedError):
                await self.manager.acquire_all(["a"], ttl_ms=PATIENT_MS)
            tokens = {item.resource: item.token for item in lease.items}
            lease.forget()
            adopted = self.manager.adopt_all(tokens, ttl_ms=PATIENT_MS)
            await adopted.extend(PATIENT_MS)
            self.assertGreater(adopted.validity_ms, 0)
            await adopted.release()
        for key in "abc":
            await self.gone(key)
        with self.assertRaises(redlock_client.InvalidError):
            await self.manager.acquire_all(["a", "a"])

    async def test_many_take_turns(self):
        inside = 0
        turns = []

        async def worker(number):
            nonlocal inside
            async with self.manager.lock("r", ttl_ms=PATIENT_MS, wait_timeout_ms=redlock_client.FOREVER):
                inside += 1
                self.assertEqual(inside, 1)
                await asyncio.sleep(0)
                turns.append(number)
                inside -= 1

        await asyncio.gather(*(worker(number) for number in range(20)))
        self.assertEqual(sorted(turns), list(range(20)))
        await self.gone("r")

    async def test_many_read_and_a_writer_becomes_one_of_them(self):
        lease = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        waiting = [asyncio.create_task(self.manager.acquire("r", mode=Mode.SHARED, ttl_ms=PATIENT_MS,
                                                            wait_timeout_ms=redlock_client.FOREVER))
                   for _ in range(2)]
        await eventually(lambda: self.manager.statistics()["queued"] == 2)
        self.assertEqual((await lease.downgrade()).code, Code.OK)
        readers = [lease, *await asyncio.gather(*waiting)]
        with self.assertRaises(redlock_client.ContendedError):
            await self.manager.acquire("r")
        while True:
            seen = await self.manager.inspect("r")
            if [reader.nodes for reader in seen.read_by] == [3, 3, 3]:
                break
        self.assertEqual({reader.token for reader in seen.read_by}, {reader.token for reader in readers})
        self.assertEqual(seen.readers, 3)
        for reader in readers:
            await reader.release()
        await self.gone("r")
        with self.assertRaisesRegex(TypeError, "an election has no mode"):
            self.manager.elect("e", mode=Mode.SHARED)

    async def test_a_cancelled_task_gives_up(self):
        async with self.manager.lock("r", ttl_ms=PATIENT_MS):
            task = asyncio.create_task(self.manager.acquire("r", wait_timeout_ms=redlock_client.FOREVER))
            await eventually(lambda: self.manager.statistics()["queued"] == 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await eventually(lambda: self.manager.statistics()["requests_pending"] == 0)
        await self.gone("r")
        # Cancelled at every moment, also when the lock was just taken: nothing stays.
        for turns in range(12):
            task = asyncio.create_task(self.manager.acquire("r", ttl_ms=PATIENT_MS))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await task).release()
            await self.gone("r")
        await eventually(lambda: self.manager.statistics()["leases_held"] == 0)
        await eventually(lambda: not self.manager._kept)

    async def test_a_loss_is_told(self):
        reasons = []
        with self.assertRaises(redlock_client.LostError):
            async with self.manager.lock("r", ttl_ms=1000, on_lost=reasons.append) as lease:
                servers.delete("r")
                self.assertTrue(await lease.wait_lost())
                self.assertEqual(lease.validity_ms, 0)
                with self.assertRaises(redlock_client.LostError):
                    lease.check()
                await eventually(lambda: reasons)
        with self.assertRaises(KeyError):
            async with self.manager.lock("r", ttl_ms=PATIENT_MS):
                raise KeyError
        await self.gone("r")

    async def test_an_end_that_is_near_is_told_before_it(self):
        told, loop = [], asyncio.get_running_loop()
        lease = await self.manager.acquire("r", ttl_ms=4000, expiring_ms=2000, on_expiring=lambda left_ms: told.append(
            (left_ms, lease.validity_ms, asyncio.get_running_loop() is loop)))
        await eventually(lambda: told)
        left_ms, validity_ms, on_the_loop = told[0]
        self.assertTrue(0 < validity_ms <= left_ms <= 2000 and on_the_loop)
        await lease.release()
        self.assertEqual(len(told), 1)
        await eventually(lambda: not self.manager._kept)

    async def test_nothing_is_told_after_the_release(self):
        told = []
        lease = await self.manager.acquire("r", ttl_ms=PATIENT_MS, expiring_ms=2, on_expiring=told.append)
        lease._lost._expires(1)  # C told it, and the loop has not run since
        await lease.release()
        await asyncio.sleep(0)
        self.assertEqual(told, [])

    async def test_a_wait_for_a_loss_ends_with_the_lease(self):
        released = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        waiting = asyncio.create_task(released.wait_lost())
        await asyncio.sleep(0)
        await released.release()
        async with asyncio.timeout(PATIENT_S):
            with self.assertRaisesRegex(redlock_client.InvalidError, "ended already"):
                await waiting
        held = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        waiting = asyncio.create_task(held.wait_lost())
        await asyncio.sleep(0)
        await self.manager.close()
        async with asyncio.timeout(PATIENT_S):
            with self.assertRaises(redlock_client.ClosedError):
                await waiting

    async def test_a_forgotten_lease_is_adopted(self):
        lease = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        lease.forget()
        self.assertGreaterEqual(servers.with_key("r"), 2)
        async with self.manager.adopt("r", lease.token) as adopted:
            self.assertEqual(adopted.validity_ms, 0)
            await adopted.extend(PATIENT_MS)
            self.assertGreater(adopted.validity_ms, 0)
        await self.gone("r")

    async def test_a_lease_that_nobody_keeps_is_released_with_a_warning(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            await self.manager.acquire("r", ttl_ms=PATIENT_MS)
            await asyncio.sleep(0)  # until then the event loop refers to it
            gc.collect()
        self.assertEqual([warning.category for warning in told], [ResourceWarning])
        await self.gone("r")

    async def test_wrong_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "ttl_ms is 0"):
            await self.manager.acquire("r", ttl_ms=0)
        with self.assertRaisesRegex(ValueError, "node_count is 0"):
            Manager([])
        with self.assertRaisesRegex(ValueError, "token"):
            self.manager.adopt("r", "")
        with self.assertRaises(ValueError):
            await self.manager.inspect("")
        with self.assertRaisesRegex(TypeError, "'reentrant'"):
            await self.manager.acquire("r", reentrant=True)
        for call in (self.manager.elect, self.manager.observe):
            with self.assertRaisesRegex(ValueError, "NUL"):
                call("a\0b")
        with self.assertRaisesRegex(ValueError, "NUL"):
            await self.manager.acquire("a\0b")
        with self.assertRaisesRegex(TypeError, "^heal must be a bool, not str$"):
            await self.manager.acquire("r", heal="yes")
        with self.assertRaisesRegex(TypeError, "^on_lost must be callable, not int$"):
            await self.manager.acquire("r", on_lost=3)
        with self.assertRaisesRegex(TypeError, "^on_expiring must be callable, not int$"):
            await self.manager.acquire("r", on_expiring=3)
        with self.assertRaisesRegex(TypeError, "^timeout_ms must be an int, not str$"):
            await self.manager.connect("1")
        with self.assertRaisesRegex(ValueError, "^node is -1; it is out of range$"):
            self.manager.set_credentials("u", "p", -1)
        self.assertEqual(self.manager._kept, set())

    async def test_all_locks_are_listed(self):
        async with self.manager.lock("job:1") as lease, self.manager.lock("other"):
            found, result = await self.manager.locks("job:*")
            self.assertEqual(result.code, Code.OK)
            self.assertGreaterEqual(len(found), 2)
            self.assertEqual({(lock.resource, lock.token, lock.waiters) for lock in found},
                             {("job:1", lease.token, 0)})
            self.assertEqual({lock.resource for lock in (await self.manager.locks())[0]}, {"job:1", "other"})
        with self.assertRaises(ValueError):
            await self.manager.locks(5000 * "x")

    async def test_the_close_ends_everything(self):
        held = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        waiting = asyncio.create_task(self.manager.acquire("r", wait_timeout_ms=redlock_client.FOREVER))
        observing = asyncio.create_task(anext(self.manager.observe("nobody")))
        self.assertEqual((await observing).token, "")
        observer = self.manager.observe("other")
        await anext(observer)
        observing = asyncio.create_task(anext(observer, None))
        await eventually(lambda: self.manager.statistics()["queued"] == 1)
        await asyncio.gather(self.manager.close(), self.manager.close())
        with self.assertRaises(redlock_client.ClosedError):
            await waiting
        self.assertIsNone(await observing)
        self.assertEqual(held.validity_ms, 0)
        with self.assertRaises(redlock_client.ClosedError):
            await held.release()
        with self.assertRaises(redlock_client.ClosedError):
            await self.manager.acquire("r")
        self.assertEqual(servers.with_key("r"), 0)

    async def test_a_child_process_that_runs_the_loop_does_not_stop_its_parent(self):
        lease = await self.manager.acquire("r", ttl_ms=PATIENT_MS)
        child = os.fork()
        if child == 0:
            self.manager._dispatch()  # as its loop would: it shares the descriptors of its parent's
            os._exit(1 if lease.validity_ms else 0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertGreater(lease.validity_ms, 0)
        async with asyncio.timeout(PATIENT_S):
            await lease.release()

    async def test_a_child_process_that_outlives_its_parent_does_not_watch_the_nodes(self):
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import asyncio, os, sys, time\n"
            "from redlock_client.aio import Manager\n"
            "async def main():\n"
            "    manager = Manager(sys.argv[1:])\n"
            "    parent = os.getpid()\n"
            "    if os.fork():\n"
            "        os._exit(0)\n"
            "    while os.path.exists(f'/proc/{parent}'):\n"  # a zombie lives, too
            "        time.sleep(0.01)\n"
            "    manager._dispatch()\n"
            "    print(manager._loop.remove_reader(manager._fd), flush=True)\n"
            "    os._exit(0)\n"
            "asyncio.run(main())\n", *servers.nodes, stdout=subprocess.PIPE)
        async with asyncio.timeout(PATIENT_S):
            self.assertEqual((await program.communicate())[0], b"False\n")

    async def test_what_is_known_of_the_nodes(self):
        lines = []
        manager = self.open(on_log=lambda level, line: lines.append(line),
                            log_level=redlock_client.LogLevel.INFO)
        await manager.connect(20000)
        await eventually(lambda: all(node.state == redlock_client.NodeState.READY for node in manager.nodes()))
        self.assertEqual([node.name for node in manager.nodes()], servers.nodes)
        self.assertEqual(manager.quorum, 2)
        self.assertTrue(any(servers.nodes[0] in line for line in lines))

    async def test_who_is_told_of_a_step_may_end_the_lease(self):
        """C tells of it in the middle of its work with this lease."""
        inside, forgotten = [], asyncio.Event()

        def told(event):
            if event.kind == redlock_client.TelemetryKind.EXTENDED and not forgotten.is_set():
                inside.append(any(frame.function == "_dispatch" for frame in inspect.stack()))
                lease.forget()
                forgotten.set()

        manager = self.open(on_event=told)
        lease = await manager.acquire("r", ttl_ms=3000, auto_extend=True)
        async with asyncio.timeout(PATIENT_S):
            await forgotten.wait()
        self.assertEqual(inside, [False])
        self.assertEqual(lease.validity_ms, 0)


class Elections(Base):
    async def until(self, election, kind):
        async with asyncio.timeout(PATIENT_S):
            while True:
                event = await election.next()
                if event.kind == kind:
                    return event

    async def test_leaders_follow_each_other(self):
        manager = self.open(holder="one")
        news = []

        async def observe():
            async for leader in self.manager.observe("e"):
                news.append(leader.holder)

        observing = asyncio.create_task(observe())
        await eventually(lambda: news == [""])
        first = manager.elect("e", ttl_ms=PATIENT_MS, fencing=True)
        leading = await self.until(first, EventKind.LEADING)
        self.assertGreater(first.validity_ms(leading.term), 0)
        self.assertEqual(first.validity_ms(leading.term + 1), 0)
        await eventually(lambda: news[-1] == "one")
        second = self.manager.elect("e", ttl_ms=PATIENT_MS, fencing=True)
        self.assertEqual((await self.until(second, EventKind.LEADER)).leader.holder, "one")
        self.assertEqual((await first.resign()).code, Code.OK)
        self.assertIsNone(await first.resign())  # out already
        self.assertGreater((await self.until(second, EventKind.LEADING)).fence, leading.fence)
        first.campaign()
        await second.end()
        self.assertEqual([event.kind async for event in second][-1], EventKind.ENDED)
        self.assertGreater((await self.until(first, EventKind.LEADING)).term, leading.term)
        with self.assertRaises(redlock_client.InvalidError):
            second.campaign()
        with self.assertRaises(redlock_client.ClosedError):
            await second.next()
        await manager.close()
        self.assertEqual((await self.until(first, EventKind.ENDED)).code, Code.CLOSED)
        self.assertEqual(first.validity_ms(leading.term), 0)
        await self.manager.close()
        await observing

    async def test_all_who_wait_for_an_event_hear_of_the_end(self):
        async def read(election):
            return [event.kind async for event in election]

        election = self.manager.elect("e", campaign=False)
        reading = [asyncio.create_task(read(election)) for _ in range(3)]
        await asyncio.sleep(0)
        await election.end()
        async with asyncio.timeout(PATIENT_S):
            read = await asyncio.gather(*reading, return_exceptions=True)
        closed = [error for error in read if isinstance(error, redlock_client.ClosedError)]
        self.assertEqual(len(closed), 2)

    async def test_a_candidate_that_only_observes(self):
        async with self.manager.elect("e", campaign=False) as election:
            self.assertIsNone(await election.resign())
            election.campaign()
            resigning = asyncio.create_task(election.resign())
            await asyncio.sleep(0)
            election.campaign()  # as soon as it has resigned
            await resigning
            await self.until(election, EventKind.LEADING)


if __name__ == "__main__":
    unittest.main()
