# Other libraries: each is built by its own script, and one that cannot be is skipped with the
# reason that the script printed.
from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import processes
from .contenders import Program

SKIPPED = 77
BUILD_SECONDS = 900.0


@dataclass(frozen=True)
class Peer:
    name: str
    program: Program | None
    build_seconds: float
    reason: str | None  # why there is no program


def known(folder: Path) -> list[str]:
    return sorted(script.parent.name for script in folder.glob("*/build.sh"))


def build(folder: Path, name: str, out: Path, logs: Path) -> Peer:
    log = logs / f"build-{name}.log"
    log.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    process = processes.start(["bash", folder / name / "build.sh", out], log=log)
    try:
        status = process.wait(BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        processes.end_group(process)
    took = time.monotonic() - began
    words = processes.last_line(log)
    if status == SKIPPED:
        return Peer(name, None, took, f"skipped: {words or 'its script gave no reason'}")
    if status is None:
        return Peer(name, None, took, f"its build did not end in {BUILD_SECONDS:.0f} s; see {log.name}")
    if status != 0:
        return Peer(name, None, took, f"its build failed: {words or f'status {status}'}")
    run = out / "run"
    if not run.is_file():
        return Peer(name, None, took, "its build made no program 'run'")
    return Peer(name, Program(name, (str(run),)), took, None)


def chosen(wanted: str, folder: Path) -> Sequence[str]:
    """What --peers names: all, none, or a list with commas."""
    names = known(folder)
    if wanted == "all":
        return names
    if wanted == "none":
        return []
    asked = [name for name in wanted.split(",") if name]
    for name in asked:
        if name not in names:
            raise ValueError(f"there is no peer {name!r}; there are: {', '.join(names) or 'none'}")
    return asked
