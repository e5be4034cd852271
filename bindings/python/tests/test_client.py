"""Locks for threads, on five real servers."""
import contextlib
import os
import signal
import threading
import unittest

import redlock_client
from redlock_client import Code, Mode
from redlock_client._redlock import ffi
from client_kit import Base, PATIENT_MS
from servers import eventually


class Locks(Base):
    def test_a_block_holds_the_lock(self):
        with self.client.lock("r", ttl_ms=PATIENT_MS, fencing=True) as lease:
            self.assertGreater(lease.validity_ms, 0)
            self.assertEqual(lease.resource, "r")
            self.assertEqual(len(lease.token), 32)
            self.assertGreater(lease.fence, 0)
            self.assertEqual(lease.result.code, Code.OK)
            eventually(lambda: self.servers.with_key("r") == 5)
            lease.check()
        self.assertEqual(lease.validity_ms, 0)
        self.gone("r")
        with self.assertRaises(redlock_client.LostError):
            lease.check()
        with self.assertRaisesRegex(redlock_client.InvalidError, "ended already"):
            lease.release()

    def test_several_resources_in_one_lease(self):
        with self.client.lock_all(["b", "a"], ["c"], ttl_ms=PATIENT_MS, fencing=True) as lease:
            self.assertEqual([item.resource for item in lease.items], ["b", "a", "c"])
            self.assertEqual([len(item.token) for item in lease.items], [32, 32, 33])
            self.assertTrue(all(item.fence > 0 for item in lease.items))
            self.assertEqual((lease.resource, lease.token), (lease.items[0].resource, lease.items[0].token))
            # Who reads, reads with others.
            with self.client.acquire_all([], ["c"], ttl_ms=PATIENT_MS):
                pass
            with self.assertRaises(redlock_client.ContendedError) as raised:
                self.client.acquire_all(["0", "a"])
            self.assertIn("'a'", str(raised.exception))
            tokens = {item.resource: item.token for item in lease.items}
            lease.forget()
            adopted = self.client.adopt_all(tokens, ttl_ms=PATIENT_MS)
            self.assertEqual(adopted.validity_ms, 0)
            adopted.extend(PATIENT_MS)
            self.assertGreater(adopted.validity_ms, 0)
            adopted.release()
        for key in "abc":
            self.gone(key)

    def test_what_is_asked_for_is_checked(self):
        for resources in (["a", "a"], []):
            with self.assertRaises(redlock_client.InvalidError):
                self.client.acquire_all(resources)
        with self.assertRaisesRegex(redlock_client.InvalidError, "of one resource"):
            self.client.acquire_all(["a"], reentrant=True)
        with self.assertRaisesRegex(TypeError, "resources must be an iterable of str"):
            self.client.acquire_all("ab")
        with self.assertRaisesRegex(ValueError, "NUL"):
            self.client.acquire_all(["a", "b\0"])
        with self.assertRaisesRegex(ValueError, "which has no token"):
            self.client.adopt_all({"a": "x"}, shared=["b"])

    def test_so_many_have_permits(self):
        first = self.client.acquire("r", ttl_ms=PATIENT_MS, permits=2, limit=3)
        self.assertEqual(len(set(first.slots)), 2)
        with self.assertRaisesRegex(redlock_client.ContendedError, "too few slots are free"):
            self.client.acquire("r", permits=2, limit=3)
        with self.client.lock("r", ttl_ms=PATIENT_MS, permits=1, limit=3) as second:
            self.assertEqual({*first.slots, *second.slots}, {0, 1, 2})
        with self.assertRaisesRegex(redlock_client.InvalidError, "permits is 4, and limit is 3"):
            self.client.acquire("r", permits=4, limit=3)
        token, slots = first.token, first.slots
        first.forget()
        adopted = self.client.adopt("r", token, ttl_ms=PATIENT_MS, slots=slots, limit=3)
        self.assertEqual(adopted.slots, slots)
        adopted.extend(PATIENT_MS)
        adopted.release()
        with self.client.acquire("r") as lock:
            self.assertEqual(lock.slots, ())

    def test_the_holder_is_told(self):
        client = self.open(holder="web-3:4711")
        with client.acquire("r"):
            with self.assertRaises(redlock_client.ContendedError) as raised:
                self.client.acquire("r")
            self.assertEqual(raised.exception.code, Code.CONTENDED)
            self.assertEqual(raised.exception.result.code, Code.CONTENDED)
            seen = self.client.inspect("r")
            votes = [vote for vote in seen.votes if vote.kind == redlock_client.VoteKind.GRANTED]
            self.assertGreaterEqual(len(votes), 3)
            self.assertEqual(votes[0].holder_text, "web-3:4711")
            self.assertGreater(votes[0].holder_ttl_ms, 0)
            self.assertEqual(seen.waiters, 0)

    def test_an_exception_in_the_block_goes_on(self):
        with self.assertRaises(KeyError):
            with self.client.lock("r", ttl_ms=PATIENT_MS):
                self.servers.delete("r")  # the release would raise LostError
                raise KeyError

    def test_an_end_that_is_near_is_told_before_it(self):
        told, reasons = [], []
        lease = self.client.acquire("r", ttl_ms=4000, expiring_ms=2000, on_lost=reasons.append,
                                    on_expiring=lambda left_ms: told.append((left_ms, list(reasons))))
        eventually(lambda: told)
        self.assertTrue(0 < told[0][0] <= 2000 and told[0][1] == [])
        lease.extend(PATIENT_MS)
        eventually(lambda: lease.validity_ms > 2000)
        lease.release()
        self.assertEqual((len(told), reasons, self.client._core.told), (1, [], {}))
        self.assertEqual(self.client.statistics()["expiring"], 1)
        with self.assertRaisesRegex(redlock_client.InvalidError, "expiring_ms is 2001; it must be 0 to 2000"):
            self.client.acquire("r", ttl_ms=4000, expiring_ms=2001)
        with self.assertRaisesRegex(redlock_client.InvalidError, "on_expiring needs expiring_ms"):
            self.client.acquire("r", on_expiring=told.append)

    def test_a_block_that_loses_its_lock_raises(self):
        reasons = []
        with self.assertRaises(redlock_client.LostError):
            with self.client.lock("r", ttl_ms=1000, on_lost=reasons.append) as lease:
                self.servers.delete("r")
                eventually(lambda: reasons)
                self.assertEqual(lease.validity_ms, 0)
        self.assertEqual(len(reasons), 1)

    def test_a_block_is_renewed(self):
        with self.client.lock("r", ttl_ms=300):
            eventually(lambda: self.client.statistics()["extends"] >= 2)
        with self.client.lock("r", ttl_ms=PATIENT_MS, auto_extend=False) as lease:
            self.assertEqual(lease.extend(2 * PATIENT_MS).code, Code.OK)
            self.assertGreater(lease.validity_ms, PATIENT_MS)

    def test_a_forgotten_lease_is_adopted(self):
        lease = self.client.acquire("r", ttl_ms=PATIENT_MS)
        lease.forget()
        self.assertGreaterEqual(self.servers.with_key("r"), 3)
        adopted = self.client.adopt("r", lease.token)
        self.assertEqual(adopted.validity_ms, 0)
        adopted.extend(PATIENT_MS)
        self.assertGreater(adopted.validity_ms, 0)
        adopted.release()
        self.gone("r")

    def test_an_acquire_waits(self):
        first = self.client.acquire("r", ttl_ms=PATIENT_MS)
        fences = []

        def wait():
            with self.client.lock("r", wait_timeout_ms=redlock_client.FOREVER) as lease:
                fences.append(lease.resource)

        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: [waiter.nodes for waiter in self.client.inspect("r").waiting] == [5])
        waiter = self.client.inspect("r").waiting[0]
        self.assertEqual((len(waiter.token), waiter.holder_text, waiter.reads), (48, "", False))
        self.assertGreaterEqual(waiter.waited_ms, 0)
        first.release()
        thread.join()
        self.assertEqual(fences, ["r"])
        self.assertEqual(self.client.statistics()["handed_over"], 1)

    def test_many_read_and_nobody_writes_meanwhile(self):
        client = self.open(holder="web-3:4711")
        with client.lock("r", mode=Mode.SHARED) as first, self.client.lock("r", mode=Mode.SHARED) as second:
            self.assertEqual([lease.token[32] for lease in (first, second)], ["s", "s"])
            for refused in ({}, {"mode": Mode.EXCLUSIVE}):
                with self.assertRaises(redlock_client.ContendedError):
                    self.client.acquire("r", **refused)
            eventually(lambda: [reader.nodes for reader in self.client.inspect("r").read_by] == [5, 5])
            seen = self.client.inspect("r")
            self.assertEqual(seen.readers, 2)
            self.assertEqual({reader.token for reader in seen.read_by}, {first.token, second.token})
            self.assertEqual({reader.holder_text for reader in seen.read_by}, {"web-3:4711", ""})
            self.assertTrue(all(reader.ttl_ms > 0 for reader in seen.read_by))
            self.assertEqual([vote.readers for vote in seen.votes], [2] * 5)
            self.assertEqual([lock.readers for lock in self.client.locks()[0]], [2] * 5)
        with self.client.lock("r"):
            with self.assertRaises(redlock_client.ContendedError):
                self.client.acquire("r", mode=Mode.SHARED)
            seen = self.client.inspect("r")
            self.assertEqual((seen.readers, seen.read_by), (0, []))
        with self.assertRaisesRegex(redlock_client.InvalidError, "mode is 2; it must be"):
            self.client.acquire("r", mode=2)

    def test_a_writer_becomes_a_reader(self):
        told = []
        client = self.open(on_event=lambda event: told.append((event.kind, event.mode)))
        lease = client.acquire("r", ttl_ms=PATIENT_MS)
        self.assertEqual(lease.downgrade().code, Code.OK)
        with self.client.lock("r", mode=Mode.SHARED):
            lease.extend(PATIENT_MS)
            with self.assertRaises(redlock_client.ContendedError):
                self.client.acquire("r")
        lease.forget()
        adopted = client.adopt("r", lease.token, mode=Mode.SHARED)
        adopted.extend(PATIENT_MS)
        adopted.release()
        self.gone("r")
        kind = redlock_client.TelemetryKind
        eventually(lambda: (kind.RELEASED, Mode.SHARED) in told)
        self.assertEqual(told[0], (kind.NODE_UP, Mode.EXCLUSIVE))
        self.assertIn((kind.ACQUIRED, Mode.EXCLUSIVE), told)
        self.assertIn((kind.EXTENDED, Mode.SHARED), told)
        with self.assertRaisesRegex(redlock_client.InvalidError, "ended already"):
            adopted.downgrade()

    def test_reentrant_leases_read(self):
        with self.client.lock("r", mode=Mode.SHARED, reentrant=True) as outer:
            with self.client.lock("r", mode=Mode.SHARED, reentrant=True) as inner:
                self.assertEqual(inner.token, outer.token)
            with self.assertRaises(redlock_client.UpgradeError):  # it would wait for itself
                self.client.acquire("r", reentrant=True, wait_timeout_ms=redlock_client.FOREVER)
        with self.client.lock("r", reentrant=True) as outer:
            with self.client.lock("r", mode=Mode.SHARED, reentrant=True):
                with self.assertRaises(redlock_client.BusyError):
                    outer.downgrade()
            outer.downgrade()
            self.client.acquire("r", mode=Mode.SHARED).release()

    def test_reentrant_leases_nest(self):
        with self.client.lock("r", reentrant=True) as outer:
            with self.client.lock("r", reentrant=True) as inner:
                self.assertEqual(inner.token, outer.token)
                self.assertIsNone(inner.result)
            eventually(lambda: self.servers.with_key("r") == 5)
            self.assertGreater(outer.validity_ms, 0)
            refused = []

            def other():
                with self.assertRaises(redlock_client.ContendedError) as raised:
                    self.client.acquire("r", reentrant=True)
                refused.append(raised.exception)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.assertEqual(len(refused), 1)
        self.gone("r")

    def test_a_dead_thread_leaves_its_reentrant_lease_to_nobody(self):
        kept, refused, threads = [], [], []

        def take():
            kept.append(self.client.acquire("r", ttl_ms=PATIENT_MS, reentrant=True))

        def try_it():
            threads.append(threading.get_ident())
            with self.assertRaises(redlock_client.ContendedError) as raised:
                kept.append(self.client.acquire("r", reentrant=True))
            refused.append(raised.exception)

        first = threading.Thread(target=take)
        first.start()
        first.join()
        while first.ident not in threads:  # Python uses the ids of threads again
            thread = threading.Thread(target=try_it)
            thread.start()
            thread.join()
        self.assertEqual(len(refused), len(threads))
        kept[0].release()
        with self.assertRaisesRegex(ValueError, "2\\*\\*63"):
            self.client.acquire("r", reentrant=True, owner=2**63)

    def test_threads_that_use_a_lease_that_ends(self):
        """C frees the lease in the release: nobody may be in C with it then, or get there."""
        for _ in range(20):
            lease = self.client.acquire("r", ttl_ms=PATIENT_MS)
            ended, seen = threading.Event(), []

            def ask():
                while not ended.is_set():
                    seen.append((lease._held, lease.validity_ms))

            def extend():
                with self.assertRaisesRegex(redlock_client.InvalidError, "ended already"):
                    while True:
                        lease.extend(PATIENT_MS)

            def release():
                with contextlib.suppress(redlock_client.InvalidError):
                    lease.release()
                    ended.set()

            threads = [threading.Thread(target=work) for work in (ask, ask, extend, release, release)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertTrue(all(validity_ms == 0 for held, validity_ms in seen if not held))
            self.assertEqual(lease._handle, ffi.NULL)
        self.gone("r")

    def test_a_handler_of_a_signal_may_release(self):
        lease = self.client.acquire("r", ttl_ms=PATIENT_MS)
        handled = []

        def handler(number, frame):
            if lease._held:
                lease.release()
            handled.append(number)

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with self.assertRaises(redlock_client.InvalidError):
            while True:
                lease.extend(PATIENT_MS)
        while not handled:
            self.assertGreaterEqual(lease.validity_ms, 0)
        self.gone("r")

    def test_wrong_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "ttl_ms is 0"):
            self.client.acquire("r", ttl_ms=0)
        with self.assertRaisesRegex(ValueError, "NUL"):
            self.client.acquire("a\0b")
        with self.assertRaisesRegex(TypeError, "'tll_ms'"):
            self.client.acquire("r", tll_ms=5)
        with self.assertRaisesRegex(ValueError, "token"):
            self.client.adopt("r", "")
        with self.assertRaises(ValueError):
            self.client.inspect("")
        with self.client.lock("r") as lease, self.assertRaisesRegex(TypeError, "^ttl_ms must be an int, not float$"):
            lease.extend(1.5)

    def test_each_thread_gets_the_sentence_about_its_own_arguments(self):
        sentences = []

        def ask(word, call):
            for _ in range(300):
                with self.assertRaises(redlock_client.InvalidError) as raised:
                    call()
                sentences.append((word, str(raised.exception)))

        calls = {"token": lambda: self.client.adopt("r", ""), "name": lambda: self.client.elect(""),
                 "node": lambda: self.client.set_credentials(None, "x", 7),
                 "ttl_ms": lambda: self.client.acquire("r", ttl_ms=0)}
        threads = [threading.Thread(target=ask, args=call) for call in calls.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(sentences), 300 * len(calls))
        self.assertEqual([said for word, said in sentences if word not in said], [])

    def test_a_call_in_a_callback_says_why_it_is_refused(self):
        refused = []

        def lost(reason):
            for call in (lambda: self.client.adopt("r", 32 * "0"), lambda: lease.extend(1000), lease.forget,
                         self.client.statistics, self.client.nodes, lambda: self.client.elect("e")):
                try:
                    call()
                except redlock_client.InvalidError as error:
                    refused.append(str(error))

        lease = self.client.acquire("r", ttl_ms=500, on_lost=lost)
        eventually(lambda: len(refused) == 6)
        self.assertEqual([said for said in refused if "callback on the client's loop thread may not block" not in said],
                         [])
        with self.assertRaises(redlock_client.LostError):
            lease.release()

    def test_all_locks_are_listed(self):
        with self.client.lock("job:1") as lease, self.client.lock("other"):
            eventually(lambda: self.servers.with_key("job:1") == 5)
            found, result = self.client.locks("job:*")
            self.assertEqual(result.code, Code.OK)
            self.assertEqual(sorted(lock.node for lock in found), list(range(5)))
            self.assertEqual({(lock.resource, lock.token, lock.waiters) for lock in found},
                             {("job:1", lease.token, 0)})
            self.assertEqual({lock.resource for lock in self.client.locks()[0]}, {"job:1", "other"})
        with self.assertRaisesRegex(ValueError, "match has"):
            self.client.locks(5000 * "x")

    def test_the_close_ends_a_listing(self):
        client = redlock_client.Client(self.servers.nodes, node_timeout_ms=60000, connect_timeout_ms=20000)
        errors = []

        def tell_servers(number):
            for server in self.servers.all:
                server.process.send_signal(number)

        def read():
            try:
                client.locks()
            except redlock_client.Error as error:
                errors.append(type(error))

        reader, closer = threading.Thread(target=read), threading.Thread(target=client.close)
        self.addCleanup(tell_servers, signal.SIGCONT)
        tell_servers(signal.SIGSTOP)
        reader.start()
        eventually(lambda: client.statistics()["requests_pending"] == 1)
        closer.start()
        reader.join()
        self.assertEqual(errors, [redlock_client.CancelledError])
        tell_servers(signal.SIGCONT)
        closer.join()

    def test_what_is_known_of_the_nodes(self):
        nodes = self.client.nodes()
        self.assertEqual([node.name for node in nodes], self.servers.nodes)
        self.assertEqual({node.state for node in nodes}, {redlock_client.NodeState.READY})
        self.assertRegex(nodes[0].version, "^(redis|valkey) [0-9]")
        self.assertEqual(self.client.quorum, 3)

    def test_the_nodes_tell_whether_they_accept_new_credentials(self):
        for server in self.servers.all:
            self.assertEqual(server.ask("ACL SETUSER rotated on >new ~* &* +@all"), "+OK")
            self.addCleanup(server.ask, "ACL DELUSER rotated")
        self.client.set_credentials("rotated", "new")
        eventually(lambda: not any(node.credentials_pending for node in self.client.nodes()))
        self.client.set_credentials("rotated", "wrong", node=1)
        eventually(lambda: self.client.nodes()[1].credentials_error)
        nodes = self.client.nodes()
        self.assertEqual([node.credentials_pending for node in nodes], [False, True, False, False, False])
        self.assertIn("WRONGPASS", nodes[1].credentials_error)
        self.assertEqual(nodes[0].credentials_error, "")

    def test_each_step_is_told(self):
        told = []
        client = self.open(on_event=told.append)
        with client.lock("r", ttl_ms=PATIENT_MS):
            pass
        telemetry = client.telemetry()
        self.assertEqual((telemetry.acquire.count, telemetry.held.count, telemetry.wait.count), (1, 1, 0))
        median = telemetry.acquire.quantile_us(0.5)
        self.assertLess(median, PATIENT_MS * 1000)
        self.assertIsNone(telemetry.wait.quantile_us(0.5))
        self.assertEqual(sum(telemetry.acquire.buckets), 1)
        self.assertGreaterEqual(sum(telemetry.votes["granted"]), 3)
        self.assertEqual(telemetry.node_ups, [1] * 5)
        client.close()
        self.assertEqual([event.kind.name for event in told if event.resource == "r"],
                         ["STARTED", "ACQUIRED", "RELEASED"])
        self.assertEqual({event.node for event in told if event.kind.name == "NODE_UP"}, set(self.servers.nodes))

    def test_the_log(self):
        lines = []
        client = self.open(on_log=lambda level, line: lines.append((level, line)),
                           log_level=redlock_client.LogLevel.INFO)
        eventually(lambda: len(lines) >= 5)
        self.assertTrue(any(self.servers.nodes[0] in line for _, line in lines))
        client.close()


if __name__ == "__main__":
    unittest.main()
