# Child processes: they end when the driver ends, however that comes; and the processor time that
# one has used.
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
END_SECONDS = 5.0

_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_the_driver() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(
    command: Sequence[str | Path],
    *,
    log: Path,
    pipes: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program in a session of its own, so that Ctrl-C reaches the driver alone; its words go to the log."""
    with log.open("ab") as words:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else words,
            stderr=words,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_die_with_the_driver,
        )


def end(process: subprocess.Popen[bytes], *, kindly: float = 0.0) -> None:
    """Ends it and reaps it: after some seconds of kindness for one that ends by itself, at once for
    one that does not. Without kindness it has no time to clean up: its input ends only after it."""
    if kindly > 0:
        _close_input(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(kindly)
    if process.poll() is None:
        # A stopped process takes SIGKILL too; SIGCONT comes first so that nothing stays stopped
        # should that fail.
        for number in (signal.SIGCONT, signal.SIGKILL):
            os.kill(process.pid, number)
        process.wait(END_SECONDS)
    _close_input(process)
    if process.stdout:
        process.stdout.close()


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Also what it started, as far as that stayed in its group, which is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_SECONDS)


def cpu_seconds(pid: int) -> float:
    """What all threads of the process have used, user and system. Linux makes a clock for each
    process; this is its number."""
    return time.clock_gettime((~pid << 3) | 2)


def children(pid: int) -> list[int]:
    """The processes that it started and that still run."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            continue  # the thread has just ended
    return found


def tail(log: Path, characters: int = 300) -> str:
    """The last words in a log, on one line."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        return ""
    return " ".join(text[-characters:].split())


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
