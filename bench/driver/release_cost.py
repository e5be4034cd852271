# What a RELEASE costs a node where nobody waits: its server time ÷ that of a plain
# compare-and-delete script.
from __future__ import annotations

import contextlib
import re
import shlex
import socket
from collections.abc import Sequence
from typing import Any

from . import stats
from .contenders import Contender
from .servers import ANSWER_SECONDS, HOST

KEY = "bench-free"
PLAIN = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
CALLS = 250  # of one script at one node in a turn
TURNS = 8
CATCH_MS = 20


class Link:
    """A connection to a node."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), ANSWER_SECONDS)
        self._lines = self._socket.makefile("rb")

    def ask(self, *commands: Sequence[str]) -> list[bytes]:
        """The replies, which are lines or bulk strings."""
        request = "".join(
            f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words) for words in commands
        )
        self._socket.sendall(request.encode())
        return [self._reply() for _ in commands]

    def _reply(self) -> bytes:
        line = self.line()
        if line.startswith(b"$") and line != b"$-1":
            return self._lines.read(int(line[1:]) + 2)[:-2]
        return line

    def line(self) -> bytes:
        line = self._lines.readline()
        if not line.endswith(b"\r\n"):
            raise ValueError("a node closed the connection")
        return line[:-2]

    def scripts_us(self) -> int:
        """The time that the node has spent in EVALSHA so far."""
        found = re.search(rb"cmdstat_evalsha:calls=\d+,usec=(\d+)", self.ask(["INFO", "commandstats"])[0])
        return int(found.group(1)) if found else 0

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def catch(port: int, contender: Contender) -> list[str]:
    """The words of a RELEASE, as the contender sends it where nobody waits."""
    with contextlib.closing(Link(port)) as link:
        link.ask(["MONITOR"])
        answer = contender.ask(f"cycles 1 {CATCH_MS} 0", ANSWER_SECONDS)
        if answer.error or not answer.figures["cycles"]:
            raise ValueError(answer.error or "no cycle in the time for one")
        while True:
            line = link.line().decode()
            words = shlex.split(line.split("] ", 1)[1])
            if words[0] == "EVALSHA":
                return words


def compare(ports: Sequence[int], release: list[str]) -> dict[str, Any]:
    """Both scripts by turns on each node, each call on a lock that is held under its token."""
    _, sha, keys, _, token, *rest = release
    if keys != "1":
        raise ValueError(f"a RELEASE with {keys} keys")
    turns: list[dict[str, int]] = []
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(contextlib.closing(Link(port))) for port in ports]
        plain = [link.ask(["SCRIPT", "LOAD", PLAIN])[0].decode() for link in links]
        for turn in range(TURNS):
            spent_us = {"release": 0, "plain": 0}
            for link, plain_sha in zip(links, plain, strict=True):
                calls = {
                    "release": ["EVALSHA", sha, "1", KEY, token, *rest],
                    "plain": ["EVALSHA", plain_sha, "1", KEY, token],
                }
                for name in sorted(calls, reverse=turn % 2 == 0):
                    before_us = link.scripts_us()
                    replies = link.ask(*[["SET", KEY, token, "NX", "PX", "10000"], calls[name]] * CALLS)
                    if replies != [b"+OK", b":1"] * CALLS:
                        raise ValueError(f"{name}: not every SET and script succeeded: {set(replies)}")
                    spent_us[name] += link.scripts_us() - before_us
            turns.append(spent_us)
    # The median of turns: a node that loses the processor within a script counts that time.
    ratio = stats.spread([turn["release"] / turn["plain"] for turn in turns])
    assert ratio
    each = {f"{name}_us": sum(turn[name] for turn in turns) / (TURNS * len(ports) * CALLS) for name in turns[0]}
    return {"server_ratio": ratio.median, **each}
