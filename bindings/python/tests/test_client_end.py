"""How a Client, its leases and its process end."""
import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import redlock_client
from client_kit import Base, PATIENT_MS
from servers import PATIENT_S, eventually


class Ends(Base):
    def test_the_close_ends_leases_and_waits(self):
        held = self.client.acquire("r", ttl_ms=PATIENT_MS)
        errors = []

        def wait():
            try:
                self.client.acquire("r", wait_timeout_ms=redlock_client.FOREVER)
            except redlock_client.Error as error:
                errors.append(type(error))

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        eventually(lambda: self.client.statistics()["queued"] == 3)
        self.client.close()
        for thread in threads:
            thread.join()
        self.assertEqual(set(errors), {redlock_client.CancelledError})
        self.assertEqual(held.validity_ms, 0)
        with self.assertRaises(redlock_client.ClosedError):
            held.release()
        with self.assertRaises(redlock_client.ClosedError):
            self.client.acquire("r")
        self.client.close()
        self.gone("r")

    def test_a_lease_that_nobody_keeps_is_released_with_a_warning(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            lease = self.client.acquire("r", ttl_ms=PATIENT_MS, on_lost=print)
            del lease
            gc.collect()
        self.assertEqual([warning.category for warning in told], [ResourceWarning])
        self.gone("r")
        self.assertEqual(self.client._core.told, {})

    def test_a_callback_may_close_the_client(self):
        closed = threading.Event()

        def lost(reason):
            self.client.close()
            closed.set()

        self.client.acquire("r", ttl_ms=500, on_lost=lost)._end_codes = []  # so nobody ends it
        self.servers.delete("r")
        self.assertTrue(closed.wait(PATIENT_S))
        eventually(lambda: self.client._core.is_closed)

    def test_a_child_process_needs_its_own_client(self):
        lease = self.client.acquire("r", ttl_ms=PATIENT_MS)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self.client.acquire("other")
            except redlock_client.ForkedError:
                status = 2 if lease.validity_ms else 0
            self.client.close()
            os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertGreater(lease.validity_ms, 0)
        lease.release()

    def run_program(self, text, **options):
        return subprocess.Popen([sys.executable, "-c", text, *self.servers.nodes], stdout=subprocess.PIPE, text=True,
                                **options)

    def test_the_end_of_the_program_releases(self):
        program = self.run_program("import redlock_client, sys\n"
                                   "client = redlock_client.Client(sys.argv[1:], on_log=print, log_level=3)\n"
                                   "lease = client.acquire('r', ttl_ms=60000)\n")
        output, _ = program.communicate(timeout=PATIENT_S)
        self.assertEqual(program.returncode, 0, output)
        self.gone("r")

    def test_ctrl_c_in_the_middle_of_a_call(self):
        """The handler runs when C has returned: neither a lock nor memory may be lost."""

        def interrupt(number, frame):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

        def send_all(number):
            for server in self.servers.all:
                server.process.send_signal(number)

        def hang_and_interrupt():
            def go_on():
                os.kill(os.getpid(), signal.SIGUSR1)
                send_all(signal.SIGCONT)

            send_all(signal.SIGSTOP)
            threading.Timer(0.05, go_on).start()

        hang_and_interrupt()
        with self.assertRaises(KeyboardInterrupt):
            self.client.acquire("r", ttl_ms=10 * PATIENT_MS)
        self.gone("r")
        lease = self.client.acquire("r", ttl_ms=10 * PATIENT_MS)
        hang_and_interrupt()
        with self.assertRaises(KeyboardInterrupt):
            lease.release()
        self.assertFalse(lease._held)
        self.gone("r")
        # The close waits for another thread. What ends its wait does not end the close.
        held, other = (self.client.acquire(name, ttl_ms=10 * PATIENT_MS) for name in ("r", "other"))
        send_all(signal.SIGSTOP)
        thread = threading.Thread(target=other.release)
        thread.start()
        eventually(lambda: not other._held)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.client.close()
        self.assertEqual(held.validity_ms, 0)
        send_all(signal.SIGCONT)
        thread.join()
        self.gone("r")

    def interrupt_step(self, number, work):
        """Python runs handlers of signals when a function begins, and when one of C has returned. Raises
        KeyboardInterrupt at the step of this number. Returns whether there was one."""
        steps = itertools.count()

        def step(frame, event, argument):
            if event in ("call", "c_return") and next(steps) == number:
                raise KeyboardInterrupt

        sys.setprofile(step)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return next(steps) > number  # it was in a __del__(), where Python ignores exceptions

    def test_ctrl_c_at_each_step_keeps_no_lock(self):
        client = self.open()
        token = 32 * "a"

        def adopt():
            lease = client.adopt("adopted", token)
            lease.forget()

        def block():
            with client.acquire("r", ttl_ms=10 * PATIENT_MS, on_lost=print):
                pass

        def renewed():
            with client.lock("r", ttl_ms=10 * PATIENT_MS):
                pass

        works = {"release": lambda: client.acquire("r", ttl_ms=10 * PATIENT_MS).release(), "block": block,
                 "renewed": renewed, "adopt": adopt, "reentrant": lambda: client.acquire(
                     "r", ttl_ms=10 * PATIENT_MS, reentrant=True, on_lost=print).release(),
                 "wait": lambda: client.acquire(
                     "r", ttl_ms=10 * PATIENT_MS, wait_timeout_ms=PATIENT_MS).release()}
        ignored = sys.unraisablehook
        self.addCleanup(setattr, sys, "unraisablehook", ignored)
        sys.unraisablehook = lambda _: None
        for name, work in works.items():
            number = 0
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                while self.interrupt_step(number, work):
                    number += 1
                    self.assertEqual(client.statistics()["leases_held"], 0, f"step {number}")
                    self.assertEqual((client._core.inside, client._core.cancels), (set(), set()), f"step {number}")
            self.assertGreater(number, 30)
        client.close()
        self.gone("r")

    def test_ctrl_c_ends_a_wait(self):
        with self.client.acquire("r", ttl_ms=PATIENT_MS):
            program = self.run_program("import redlock_client, sys\n"
                                       "client = redlock_client.Client(sys.argv[1:])\n"
                                       "try:\n"
                                       "    client.acquire('r', wait_timeout_ms=redlock_client.FOREVER)\n"
                                       "except KeyboardInterrupt:\n"
                                       "    print('stopped')\n")
            eventually(lambda: self.client.inspect("r").waiters == 1)
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.communicate(timeout=PATIENT_S)[0], "stopped\n")
            self.assertEqual(program.returncode, 0)
            eventually(lambda: self.client.inspect("r").waiters == 0)


if __name__ == "__main__":
    unittest.main()
