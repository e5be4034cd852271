"""Readers and writers beside a tool of a version from before readers, on the same resource: REDLOCK_OLDER=PATH."""
from __future__ import annotations

import os
import subprocess

from kit import ask, check, command, eventually, HOUR, look, read_by, RESOURCE, servers, skip

OLDER = os.environ.get("REDLOCK_OLDER", "")


def waits(*words, **of):
    """Somebody who waits for the lock."""
    return subprocess.Popen(command("acquire", *HOUR, "-w", "1h", *words, RESOURCE, **of), stdout=subprocess.PIPE,
                            text=True)


def token_of(waiter):
    token = waiter.communicate()[0].strip()
    check(waiter.returncode == 0, "who waits does not get it")
    return token


def free():
    return look()["verdict"] == "free"


def test():
    # Readers keep it out; it cannot extend or release a reader, and changes nothing.
    readers = [ask("acquire", *HOUR, "--shared", RESOURCE) for _ in range(2)]
    eventually(lambda: read_by(*readers))
    ask("acquire", RESOURCE, status=75, tool=OLDER)
    ask("extend", *HOUR, RESOURCE, readers[0], status=76, tool=OLDER)
    ask("release", RESOURCE, readers[0], status=76, tool=OLDER)
    check(read_by(*readers), "it changed who reads")
    # It stands in line behind them: no reader passes it, and the last of them hands it over.
    older = waits(tool=OLDER)
    eventually(lambda: look()["waiters"] == 1)
    ask("acquire", "--shared", RESOURCE, status=75)
    late = waits("--shared")
    eventually(lambda: look()["waiters"] == 2)
    for token in readers:
        ask("release", RESOURCE, token)
    token = token_of(older)
    check(look()["mode"] == "exclusive" and late.poll() is None, "a reader is beside it")
    # It hands the lock to who reads, and then others can read, too.
    ask("release", RESOURCE, token, tool=OLDER)
    token = token_of(late)
    ask("extend", "-t", "2h", RESOURCE, token)
    eventually(lambda: read_by(token))
    beside = ask("acquire", *HOUR, "--shared", RESOURCE)
    for one in (token, beside):
        ask("release", RESOURCE, one)
    eventually(free)
    # Its lock keeps out both.
    token = ask("acquire", *HOUR, RESOURCE, tool=OLDER)
    for mode in ([], ["--shared"]):
        ask("acquire", *mode, RESOURCE, status=75)
    ask("release", RESOURCE, token, tool=OLDER)
    eventually(free)


if not OLDER:
    servers.stop()
    skip("no REDLOCK_OLDER, the path of an older tool")
try:
    test()
finally:
    servers.stop()
print("each keeps the other out, and hands it over")
