"""Elections for threads, on five real servers."""
import os
import signal
import threading
import unittest

import redlock_client
from redlock_client import Code, EventKind
from client_kit import Base, PATIENT_MS
from servers import eventually


class Elections(Base):
    def until(self, election, kind):
        while True:
            event = election.next(PATIENT_MS)
            self.assertIsNotNone(event)
            if event.kind == kind:
                return event

    def test_leaders_follow_each_other(self):
        first = self.open(holder="one").elect("e", ttl_ms=PATIENT_MS, fencing=True)
        leading = self.until(first, EventKind.LEADING)
        self.assertGreater(first.validity_ms(leading.term), 0)
        self.assertEqual(first.validity_ms(leading.term + 1), 0)
        second = self.client.elect("e", ttl_ms=PATIENT_MS, fencing=True)
        self.assertEqual(self.until(second, EventKind.LEADER).leader.holder, "one")
        self.assertIsNone(second.next(0))
        first.resign()
        self.assertEqual(first.validity_ms(leading.term), 0)
        self.assertGreater(self.until(second, EventKind.LEADING).fence, leading.fence)
        self.assertEqual(self.until(first, EventKind.RESIGNED).code, Code.OK)
        first.campaign()
        with second:
            pass
        self.assertGreater(self.until(first, EventKind.LEADING).term, leading.term)
        first.end()
        self.assertEqual([event.kind for event in first][-1], EventKind.ENDED)
        with self.assertRaises(redlock_client.ClosedError):
            first.next()
        with self.assertRaises(redlock_client.InvalidError):
            first.campaign()

    def test_a_leader_that_is_cut_off_is_told_before_its_end(self):
        def to_servers(number):
            for server in self.servers.all:
                server.process.send_signal(number)

        election = self.client.elect("e", ttl_ms=6000, expiring_ms=3000)
        term = self.until(election, EventKind.LEADING).term
        self.addCleanup(to_servers, signal.SIGCONT)
        to_servers(signal.SIGSTOP)
        event = self.until(election, EventKind.EXPIRING)
        self.assertEqual(event.term, term)
        self.assertTrue(0 < event.remaining_ms <= 3000)
        self.assertGreater(election.validity_ms(term), 0)
        to_servers(signal.SIGCONT)
        eventually(lambda: election.validity_ms(term) > 3000)
        election.end()

    def test_an_event_that_comes_with_ctrl_c_is_not_lost(self):
        def interrupt(number, frame):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        first = self.open().elect("e", ttl_ms=PATIENT_MS)
        self.until(first, EventKind.LEADING)
        second = self.client.elect("e", ttl_ms=PATIENT_MS)
        self.until(second, EventKind.LEADER)

        def hand_over():
            os.kill(os.getpid(), signal.SIGUSR1)
            first.resign()

        threading.Timer(0.02, hand_over).start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                self.assertNotEqual(second.next().kind, EventKind.LEADING)
        self.until(second, EventKind.LEADING)

    def test_the_close_wakes_a_reader(self):
        election = self.client.elect("e")
        kinds = []

        def read():
            with self.assertRaises(redlock_client.ClosedError):
                while True:
                    kinds.append(election.next().kind)

        thread = threading.Thread(target=read)
        thread.start()
        eventually(lambda: EventKind.LEADING in kinds)
        self.client.close()
        thread.join()
        self.assertEqual(election.validity_ms(1), 0)
        with self.assertRaisesRegex(ValueError, "name|resource"):
            self.open().elect("")


if __name__ == "__main__":
    unittest.main()
