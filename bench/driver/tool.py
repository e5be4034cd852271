# What one lock costs a shell script: whole processes of redlock, flock and redis-cli, in turns.
from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from .results import Record, Results
from .schedule import TOOL

POINT = "whole process"


def commands(redlock: Path, addresses: tuple[str, ...], folder: Path) -> dict[str, list[str]]:
    port = addresses[0].rsplit(":", 1)[1]
    return {
        "true": ["true"],
        "flock FILE true": ["flock", str(folder / "flock"), "true"],
        "redis-cli SET": ["redis-cli", "-p", port, "SET", "bench-tool-set", "x", "PX", "10000"],
        "redlock run … true": [str(redlock), "-n", ",".join(addresses), "run", "bench-tool", "--", "true"],
    }


def _run(command: list[str], program: str) -> tuple[float, float, int]:
    """Wall and processor time in microseconds, and the exit status."""
    quiet = [
        (os.POSIX_SPAWN_OPEN, number, os.devnull, flags, 0)
        for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY))
    ]
    began = time.perf_counter_ns()
    pid = os.posix_spawn(program, command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    took_us = (time.perf_counter_ns() - began) / 1000
    return took_us, (usage.ru_utime + usage.ru_stime) * 1e6, os.waitstatus_to_exitcode(status)


def measure(
    results: Results, redlock: Path, addresses: tuple[str, ...], folder: Path, rounds: int, go_on: Callable[[], bool]
) -> None:
    given_up: set[str] = set()
    for number in range(rounds):
        if number and not go_on():
            return
        for name, command in commands(redlock, addresses, folder).items():
            if name in given_up:
                continue
            program = shutil.which(command[0])
            if not program:
                given_up.add(name)
                results.add(Record(TOOL, POINT, name, number, name, error=f"{command[0]} is not here"))
                continue
            took_us, cpu_us, status = _run(command, program)
            if status:
                given_up.add(name)
                results.add(Record(TOOL, POINT, name, number, name, error=f"ended with status {status}"))
                continue
            results.add(Record(TOOL, POINT, name, number, name, {"wall_us": took_us, "cpu_us": cpu_us}))
