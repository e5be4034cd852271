# pottery's AIORedlock as a contender: commands in, figures out, as bench/README.md says.
from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib.metadata import version
from typing import Any

import nodes
import workloads

WORKERS_MAX = 4096
CLIENTS_MAX = 1024
SAMPLES_MAX = 200_000
OVERTIME_SECONDS = 25.0

NOTES = (
    "AIORedlock on asyncio, which is faster than its threads; acquire and release wait for all nodes; "
    "a node that keeps silent costs redis-py's timeout of 5 s, each time; at most 50 commands a node "
    "outstanding, each on a connection of its own; release by EVALSHA; validity is checked; "
    "where the time would be over 25 s too long, the command ends with an error"
)


class Refused(Exception):
    """What a command is answered with instead of figures."""


def numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words] if all(word.isascii() and word.isdigit() for word in words) else []


class Session:
    def __init__(self) -> None:
        self._masters: nodes.Masters = ()

    async def execute(self, command: str, words: list[str]) -> dict[str, Any]:
        if command == "connect":
            await self._connect(words)
            return {}
        if command == "cycles":
            match numbers(words):
                case [workers, ms, samples] if 1 <= workers <= WORKERS_MAX and samples <= SAMPLES_MAX:
                    return await self._bounded(ms, workloads.cycles, workers, ms, samples)
            raise Refused("cycles needs WORKERS MS SAMPLES")
        if command in ("line", "loop"):
            match numbers(words[:5]):
                case [clients, _, _, _, end_us] as given if clients <= CLIENTS_MAX and len(words) == 6:
                    ms = max(end_us / 1000 - time.monotonic() * 1000, 0)
                    return await self._bounded(ms, workloads.contend, command == "loop", given, words[5])
            raise Refused(f"{command} needs CLIENTS HOLD_US BEGIN_US SPACE_US END_US and FREE_US or COUNTER")
        raise Refused("unsupported")

    async def _connect(self, addresses: list[str]) -> None:
        await nodes.close(self._masters)
        self._masters = ()
        try:
            self._masters = await nodes.connect(addresses)
        except nodes.ConnectError as error:
            raise Refused(str(error)) from error

    async def _bounded(self, ms: float, workload: Any, *arguments: Any) -> dict[str, Any]:
        """Where nodes keep silent or workers are too many, it may take minutes; the driver is to get
        an answer all the same."""
        if not self._masters:
            raise Refused("not connected")
        try:
            return await asyncio.wait_for(workload(self._masters, *arguments), ms / 1000 + OVERTIME_SECONDS)
        except asyncio.TimeoutError:
            await nodes.cancel_others()
            await nodes.close(self._masters)
            self._masters = ()
            raise Refused(
                f"had not ended {OVERTIME_SECONDS:.0f} s after its time: pottery waits for all nodes"
            ) from None


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    about = {
        "name": "pottery",
        "version": f"{version('pottery')}, redis-py {version('redis')}",
        "language": "Python",
        "notes": NOTES,
    }
    say(json.dumps(about))
    session, loop = Session(), asyncio.new_event_loop()
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split(" ")
        try:
            figures = loop.run_until_complete(session.execute(command, words))
        except Refused as refused:
            figures = {"error": str(refused)}
        say("done")
        say(json.dumps(figures))


main()
