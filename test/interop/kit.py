"""Servers, and our tool, for the tests beside other clients."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(os.environ["REDLOCK_SOURCE"])
sys.path.insert(0, str(SOURCE / "bindings/python/tests"))
from servers import eventually, Servers  # noqa: E402

HOUR = ("-t", "1h")
RESOURCE = "bench-contended"  # that of the contenders of bench/README.md
servers = Servers(3)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def command(*words, tool=os.environ["REDLOCK_TOOL"]):
    """The words of a tool, ours or another one, on the servers."""
    return [tool, "-n", ",".join(servers.nodes), "--node-timeout", "5000", *words]


def ask(*words, status=0, **of):
    """What the tool prints. It ends with this exit status."""
    done = subprocess.run(command(*words, **of), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    check(done.returncode == status, f"{words} ended with {done.returncode}, not {status}: {done.stderr}")
    return done.stdout.strip()


def look():
    """What status --json says of the resource."""
    return json.loads(ask("--json", "status", RESOURCE))["resources"][0]


def read_by(*tokens):
    """Whether all nodes have these who read, and nobody else."""
    seen = [(reader["token"], reader["held_on"]) for reader in look()["read_by"]]
    return sorted(seen) == sorted((token, 3) for token in tokens)


def now_us():
    return time.monotonic_ns() // 1000
