"""The ends of leases, on five real servers: C frees one while Python still holds what belongs to it."""
import gc
import warnings
from unittest import mock

import redlock_client
from redlock_client import _native
from client_kit import Base, PATIENT_MS
from servers import eventually


class Lost(Base):
    def test_a_lease_that_is_collected_in_the_middle_of_a_call(self):
        """The collector of garbage may run anywhere, also where this thread holds the lock of the client."""
        known = []
        client = redlock_client.Client(self.servers.nodes, on_event=lambda event: known and known[0].quorum)
        self.addCleanup(client.close)
        known.append(client)  # its callback needs that lock
        lease = client.acquire("r", ttl_ms=PATIENT_MS)
        lease.itself = lease
        del lease
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with client._core.lock:
                gc.collect()
        self.gone("r")

    def test_ctrl_c_while_the_thread_of_a_wait_begins(self):
        start, held = _native.start_new_thread, self.client.acquire("r", ttl_ms=PATIENT_MS)

        def nothing(run, arguments):
            raise KeyboardInterrupt

        def begins(run, arguments):
            start(run, arguments)
            raise KeyboardInterrupt

        for interrupted in (nothing, begins):
            with mock.patch.object(_native, "start_new_thread", interrupted), self.assertRaises(KeyboardInterrupt):
                self.client.acquire("r", ttl_ms=PATIENT_MS, wait_timeout_ms=PATIENT_MS)
            # C has let go: what is freed now, it does not use.
            self.assertEqual(self.client.statistics()["requests_pending"], 0)
            self.assertEqual(self.client._core.cancels, set())
            self.assertEqual(self.client._core.inside, set())
        held.release()
        self.gone("r")

    def test_ctrl_c_when_c_has_made_the_lease(self):
        with mock.patch.object(redlock_client._core, "result_of", side_effect=KeyboardInterrupt):
            for wait_ms in (0, PATIENT_MS):
                with self.assertRaises(KeyboardInterrupt):
                    self.client.acquire("r", ttl_ms=10 * PATIENT_MS, wait_timeout_ms=wait_ms)
                self.gone("r")

    def is_told(self, lease, heard):
        self.servers.delete(lease.resource)
        with self.assertRaises(redlock_client.LostError):
            lease.extend(PATIENT_MS)
        eventually(lambda: heard)
        with self.assertRaises(redlock_client.LostError):
            lease.release()
        self.assertEqual(self.client._core.told, {})

    def test_a_lease_at_the_address_of_one_that_ends(self):
        heard, drops, core = [], [], self.client._core
        drop = core.drop

        def taken_at_the_same_address():
            first = self.client.acquire("one", ttl_ms=PATIENT_MS, on_lost=print)
            before = first._handle
            core.drop = drops.append  # the thread of the release is slow
            first.release()
            second = self.client.acquire("two", ttl_ms=PATIENT_MS, on_lost=heard.append)
            core.drop = drop
            drop(drops.pop())
            if second._handle == before:
                return second
            second.release()  # C had an answer to wait for before it could free the first
            return None

        leases = []
        eventually(lambda: leases.append(taken_at_the_same_address()) or leases[-1])
        gc.collect()
        self.is_told(leases[-1], heard)

    def test_a_lease_that_others_of_its_owner_share(self):
        heard, owned = [], {"reentrant": True, "owner": 7}
        outer = self.client.acquire("r", ttl_ms=PATIENT_MS, on_lost=heard.append, **owned)
        inner = self.client.acquire("r", on_lost=print, **owned)
        self.assertIsNone(outer.release())
        gc.collect()
        self.is_told(inner, heard)
