"""Without a server: options, codes, errors."""
import dataclasses
import unittest

import redlock_client
from redlock_client import Code, Mode


class Values(unittest.TestCase):
    def test_codes_are_those_of_c(self):
        self.assertEqual((Code.OK, Code.CONTENDED, Code.LIMIT), (0, -1, -14))
        self.assertEqual(redlock_client.EventKind.ENDED.name, "ENDED")
        self.assertEqual([kind.name for kind in redlock_client.VoteKind],
                         ["PENDING", "GRANTED", "DENIED", "FAILED", "UNKNOWN", "ABSTAINED"])
        self.assertEqual(redlock_client.FOREVER, -1)
        self.assertRegex(redlock_client.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(redlock_client.token_holder(32 * "0" + "@web-3"), "web-3")

    def test_the_enums_have_every_member(self):
        types = {"Code": "redlock_error", "VoteKind": "redlock_vote_kind", "EventKind": "redlock_election_event_kind",
                 "NodeState": "redlock_node_state", "LogLevel": "redlock_log_level", "Order": "redlock_order",
                 "Mode": "redlock_mode",
                 "RestartGuard": "redlock_restart_guard", "TelemetryKind": "redlock_telemetry_kind"}
        for name, type_ in types.items():
            members = redlock_client._redlock.ffi.typeof(type_).elements
            kinds = getattr(redlock_client, name)
            self.assertEqual({int(kind) for kind in kinds}, set(members))
            for value, member in members.items():
                self.assertTrue(member.endswith(kinds(value).name), member)
        self.assertEqual(Code(-1000).name, "UNKNOWN_-1000")
        self.assertEqual(type(redlock_client._result.error_of(-1000)), redlock_client.Error)

    def test_what_is_told_has_every_member(self):
        told = {"NodeInfo": ("redlock_node_info", set()), "Vote": ("redlock_vote", set()),
                "LockReader": ("redlock_lock_reader", set()), "LockWaiter": ("redlock_lock_waiter", set()),
                "Listed": ("redlock_listed", set()), "TelemetryEvent": ("redlock_telemetry_event", {"trace"}),
                "Event": ("redlock_election_event", {"election", "lease"})}
        for name, (type_, left_out) in told.items():
            members = {member for member, _ in redlock_client._redlock.ffi.typeof(type_).fields}
            self.assertEqual({field.name for field in dataclasses.fields(getattr(redlock_client, name))},
                             members - {"size"} - left_out, name)

    def test_every_code_has_an_exception(self):
        for code in Code:
            if code != Code.OK:
                error = redlock_client._result.error_of(code)
                self.assertIsNot(type(error), redlock_client.Error, code.name)
                self.assertEqual(error.code, code)
                self.assertTrue(str(error))

    def test_a_wrong_option_is_named(self):
        with self.assertRaisesRegex(redlock_client.InvalidError, "node_count is 0"):
            redlock_client.Client([])
        with self.assertRaisesRegex(ValueError, "node_timeout"):
            redlock_client.Client(["127.0.0.1:1"], node_timeout_ms=0)
        with self.assertRaisesRegex(TypeError, "unknown option 'color'"):
            redlock_client.Client(["127.0.0.1:1"], color="red")
        with self.assertRaisesRegex(TypeError, "unknown option 'size'$"):
            redlock_client.Client("127.0.0.1:1", size=3)
        with self.assertRaisesRegex(TypeError, "unknown option 'node_timeout'; did you mean 'node_timeout_ms'"):
            redlock_client.Client("127.0.0.1:1", node_timeout=50)
        with self.assertRaisesRegex(TypeError, "unknown option 'hold'; did you mean 'holder'"):
            redlock_client.Client("127.0.0.1:1", hold="me")
        with self.assertRaisesRegex(TypeError, "holder must be a str"):
            redlock_client.Client(["127.0.0.1:1"], holder=3)
        with self.assertRaisesRegex(TypeError, "unknown option 'ca'"):
            redlock_client.Client(["127.0.0.1:1"], tls={"ca": "x"})
        with self.assertRaisesRegex(ValueError, "no-such-file|without it"):
            redlock_client.Client(["rediss://127.0.0.1:1"], tls={"ca_file": "/no-such-file.pem"})
        with self.assertRaisesRegex(ValueError, "holder has a NUL"):
            redlock_client.Client(["127.0.0.1:1"], holder="a\0b")
        with self.assertRaisesRegex(ValueError, "holder is not valid text"):
            redlock_client.Client(["127.0.0.1:1"], holder="\ud800")

    def test_an_option_of_a_wrong_type_is_named(self):
        wrong = [
            ({"node_timeout_ms": "50"}, TypeError, "^node_timeout_ms must be an int, not str$"),
            ({"node_timeout_ms": 1.5}, TypeError, "^node_timeout_ms must be an int, not float$"),
            ({"node_timeout_ms": None}, TypeError, "^node_timeout_ms must be an int, not NoneType$"),
            ({"node_timeout_ms": 1 << 70}, ValueError, f"^node_timeout_ms is {1 << 70}; it is out of range$"),
            ({"quorum": -1}, ValueError, "^quorum is -1; it is out of range$"),
            ({"clock_guard": "no"}, TypeError, "^clock_guard must be a bool, not str$"),
            ({"clock_guard": 5}, ValueError, "^clock_guard is 5; it must be True or False$"),
            ({"restart_guard": "strict"}, TypeError, "^restart_guard must be a redlock_restart_guard, not str$"),
            ({"restart_guard": -1}, ValueError, "^restart_guard is -1; it "),
            ({"restart_guard": 7}, ValueError, "restart_guard is 7; it must be"),
            ({"on_log": 3}, TypeError, "^on_log must be callable, not int$"),
            ({"on_event": "print"}, TypeError, "^on_event must be callable, not str$"),
            ({"tls": "yes"}, TypeError, "^tls must be a dict, not str$"),
            ({"cooperative": 1}, TypeError, "^cooperative must be a bool or None, not int$"),
            ({"tls": {"verify": "no"}}, TypeError, "^verify must be a bool, not str$"),
            ({"tls": {"ca_file": 3}}, TypeError, "^ca_file must be a str, not int$"),
            ({"nodes": 3}, TypeError, "^nodes must be a str or a list of str, not int$"),
            ({"nodes": ["127.0.0.1:1", 3]}, TypeError, r"^nodes\[1\] must be a str, not int$"),
        ]
        for options, kind, sentence in wrong:
            with self.subTest(options), self.assertRaisesRegex(kind, sentence):
                redlock_client.Client(**{"nodes": ["127.0.0.1:1"], **options})

    def test_an_argument_of_a_wrong_type_is_named(self):
        with redlock_client.Client("127.0.0.1:1") as client:
            for call, sentence in [
                (lambda: client.acquire(3), "^resource must be a str, not int$"),
                (lambda: client.acquire("r", ttl_ms="10"), "^ttl_ms must be an int, not str$"),
                (lambda: client.acquire("r", reentrant=True, owner="x"), "^owner must be an int, not str$"),
                (lambda: client.acquire("r", heal="yes"), "^heal must be a bool, not str$"),
                (lambda: client.acquire("r", on_lost=3), "^on_lost must be callable, not int$"),
                (lambda: client.acquire("r", on_expiring=3), "^on_expiring must be callable, not int$"),
                (lambda: client.adopt("r", 3), "^token must be a str, not int$"),
                (lambda: client.elect("e", lock_delay_ms="1"), "^lock_delay_ms must be an int, not str$"),
                (lambda: client.elect("e", mode=Mode.SHARED), "^an election has no mode: one leads at a time; "),
                (lambda: client.acquire("r", mode="shared"), "^mode must be a redlock_mode, not str$"),
                (lambda: client.elect("e").next("1"), "^timeout_ms must be an int, not str$"),
                (lambda: client.elect("e").validity_ms(None), "^term must be an int, not NoneType$"),
                (lambda: client.locks(3), "^match must be a str, not int$"),
                (lambda: client.locks(others="x"), "^others must be a bool, not str$"),
                (lambda: client.set_credentials(3, "p"), "^user must be a str, not int$"),
                (lambda: client.set_credentials("u", "p", "0"), "^node must be an int, not str$"),
            ]:
                with self.subTest(sentence), self.assertRaisesRegex(TypeError, sentence):
                    call()
            with self.assertRaisesRegex(ValueError, "^node is -1; it is out of range$"):
                client.set_credentials("u", "p", -1)
            with self.assertRaisesRegex(ValueError, "^node is 1; it must be|index is 1|node is 1"):
                client.set_credentials("u", "p", 1)

    def test_nodes_that_are_down_are_told(self):
        with redlock_client.Client("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3") as client:
            with self.assertRaises(redlock_client.NoQuorumError) as raised:
                client.acquire("r")
            self.assertIn("127.0.0.1:2", str(raised.exception))
            votes = raised.exception.result.votes
            self.assertEqual([vote.kind for vote in votes], [redlock_client.VoteKind.FAILED] * 3)
            self.assertEqual(votes[0].node, "127.0.0.1:1")
            self.assertTrue(votes[0].error)


if __name__ == "__main__":
    unittest.main()
