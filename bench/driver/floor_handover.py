# What a handover costs the least possible program, bench/floor_handover.c.
from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import processes

KEY = "bench-floor"
MS = 500
OVERTIME_SECONDS = 10.0  # it waits half as long for a node


def measure(
    program: Sequence[str], addresses: Sequence[str], release: Sequence[str], hold_us: int, log: Path, ms: int = MS
) -> list[float]:
    """The time of each handover in µs. The nodes are empty but for the script of the RELEASE."""
    # With what makes it look into the queue: no mark tells it to.
    words = [*release[:3], KEY, release[4], ":wait", "0"]
    process = processes.start([*program, str(ms), str(hold_us), *addresses, "--", *words], log=log, pipes=True)
    try:
        answer, _ = process.communicate(timeout=ms / 1000 + OVERTIME_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no figures within {error.timeout:g} s") from error
    finally:
        processes.end(process)
    if process.returncode:
        raise ValueError(processes.tail(log) or f"ended with status {process.returncode}")
    handover_us: list[float] = json.loads(answer)["handover_us"]
    return handover_us
