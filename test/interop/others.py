"""Readers and writers beside the plain locks of another library: each keeps the other out, changes nothing of it,
and gets the lock behind it. others.py PEER: a contender of bench/peers, whose commands are in bench/README.md."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kit import ask, check, command, eventually, HOUR, look, now_us, read_by, RESOURCE, servers, skip, SOURCE

PEER = sys.argv[1]


class Peer:
    """The other library's process."""

    def __init__(self):
        out = Path(os.environ["REDLOCK_PEERS"], PEER)
        built = subprocess.run([SOURCE / "bench/peers" / PEER / "build.sh", out], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
        if built.returncode == 77:
            skip(built.stdout.strip())
        check(built.returncode == 0, built.stdout)
        self.process = subprocess.Popen([out / "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(json.loads(self.process.stdout.readline())["version"])
        self.begin(f"connect {' '.join(servers.nodes)}")
        check(self.end() == {}, "it does not connect")

    def begin(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def end(self):
        check(self.process.stdout.readline() == "done\n", "it has ended")
        return json.loads(self.process.stdout.readline())

    def begin_lock(self, hold_ms, wait_ms):
        """One client wants the lock, for so long at most, and holds it."""
        begin = now_us()
        self.begin(f"line 1 {hold_ms * 1000} {begin} 0 {begin + wait_ms * 1000} 0")

    def got_it(self):
        (_, _, granted, _), = self.end()["waits"]
        return granted != 0

    def is_refused(self):
        self.begin_lock(0, 700)
        return not self.got_it()


def free():
    return look()["verdict"] == "free"


def test(peer):
    # Nobody: it is served. A control of what "refused" means.
    peer.begin_lock(0, 20000)
    check(peer.got_it(), "it does not get a lock that is free")
    eventually(free)

    # Those who read keep it out, and it leaves them alone; so does one who wrote and reads now.
    readers = [ask("acquire", *HOUR, "--shared", RESOURCE) for _ in range(2)]
    eventually(lambda: read_by(*readers))
    check(peer.is_refused(), "it has a lock that others read")
    check(read_by(*readers), "it changed who reads")
    ask("release", RESOURCE, readers.pop())
    check(peer.is_refused(), "it has a lock that another one reads")
    # It comes in behind the last of them.
    peer.begin_lock(0, 20000)
    ask("release", RESOURCE, readers.pop())
    check(peer.got_it(), "it does not get the lock behind those who read")
    eventually(free)
    writer = ask("acquire", *HOUR, RESOURCE)
    check(peer.is_refused(), "it has a lock that another one writes")
    ask("downgrade", *HOUR, RESOURCE, writer)
    eventually(lambda: read_by(writer))
    check(peer.is_refused(), "it has a lock that was downgraded")
    check(read_by(writer), "it changed who reads")
    ask("release", RESOURCE, writer)
    eventually(free)

    # It keeps out those who read and who write, whether they try or wait; then they get it.
    for mode in ([], ["--shared"]):
        peer.begin_lock(2000, 20000)
        eventually(lambda: look()["held_on"] == 3)
        check(look()["mode"] == "exclusive", "its lock looks shared")
        ask("acquire", *mode, RESOURCE, status=75)
        with subprocess.Popen(command("acquire", *HOUR, "-w", "1h", *mode, RESOURCE), stdout=subprocess.PIPE,
                              text=True) as waiter:
            eventually(lambda: look()["waiters"] == 1)
            check(look()["mode"] == "exclusive" and waiter.poll() is None, "who waits came in beside it")
            token = waiter.stdout.readline().strip()
        check(peer.got_it() and waiter.returncode == 0, "nobody is behind it")
        ask("release", RESOURCE, token)
        eventually(free)


try:
    test(Peer())
finally:
    servers.stop()
print("each keeps the other out")
