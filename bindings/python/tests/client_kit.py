"""What the tests of the Client begin with: five real servers, and a client of them."""
import unittest

import redlock_client
from servers import PATIENT_S, Servers, eventually

PATIENT_MS = PATIENT_S * 1000


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.servers = Servers(5)
        cls.addClassCleanup(cls.servers.stop)

    def setUp(self):
        self.servers.clear()
        self.client = self.open()

    def open(self, **options):
        client = redlock_client.Client(self.servers.nodes, node_timeout_ms=5000, connect_timeout_ms=20000, **options)
        self.addCleanup(client.close)
        return client

    def gone(self, key):
        eventually(lambda: self.servers.with_key(key) == 0)
