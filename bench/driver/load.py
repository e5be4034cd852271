# The load of others: how many processors other programs kept busy while this run rested or
# measured. The load average would not do: this run's own processes raise it.
from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import processes

AVERAGE_LIMIT = 1.0
OTHERS_LIMIT = 0.1  # processors: on a machine with two, others then have a twentieth
REST_SECONDS = 2.0

KERNEL_THREAD = 0x200000  # PF_KTHREAD: they work for all
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def busy_seconds(stat: str) -> float:
    """Processor time of all programs by /proc/stat, and what the host took from this machine.
    Interrupts are left out: it does not say whose they are, and our packets cause most of them."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(int, stat.split()[1:9])
    return (user + nice + system + steal) / TICKS_A_SECOND


def used_seconds(pid: int) -> float:
    """Processor time of a process, and of those that it started, that ended, and that it waited for."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has just ended
    return 0.0 if int(words[6]) & KERNEL_THREAD else sum(map(int, words[11:15])) / TICKS_A_SECOND


def tree(pid: int) -> set[int]:
    """A process, and all that it started and that still run."""
    return {pid}.union(*map(tree, processes.children(pid)))


def others_seconds() -> tuple[float, float]:
    """What others have used so far, in two ways. Where the kernel books interrupts on the program that
    they interrupt, the first misses much. The second misses who is out of sight of a container."""
    used = {pid: used_seconds(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    own = sum(used.pop(pid, 0.0) for pid in tree(os.getpid()))
    return busy_seconds(Path("/proc/stat").read_text()) - own, sum(used.values())


@contextlib.contextmanager
def during(what: str, loads: dict[str, float]) -> Iterator[None]:
    """Notes the load of others meanwhile, and warns where it disturbs."""
    began, before = time.monotonic(), others_seconds()
    try:
        yield
    finally:
        spent = max(now - then for now, then in zip(others_seconds(), before, strict=True))
        loads[what] = max(spent, 0.0) / (time.monotonic() - began)
        for text in (f"load of others: {summary({what: loads[what]})}", *warnings({what: loads[what]})):
            print(text, file=sys.stderr, flush=True)


def rest(what: str, loads: dict[str, float]) -> None:
    """The same while nothing of this run works."""
    with during(what, loads):
        time.sleep(REST_SECONDS)


def summary(loads: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {load:.2f}" for what, load in loads.items()) + " processors"


def warnings(loads: Mapping[str, float], average: float = 0.0) -> list[str]:
    made = [
        f"warning: others kept {load:.2f} processors busy ({what}): figures of such a run say little"
        for what, load in loads.items()
        if load > OTHERS_LIMIT
    ]
    if average > AVERAGE_LIMIT:
        made.insert(0, f"warning: the load average was {average:.2f} when run.sh began: the machine was not quiet")
    return made
