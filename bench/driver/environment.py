# On what was measured: machine, kernel, versions, and which state of the tree.
from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def _said(*command: str, cwd: Path | None = None) -> str:
    """The first line, or nothing where the program is not here or does not like the question."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().split("\n")[0]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


def gather(root: Path, load_average: float) -> dict[str, str]:
    commit = _said("git", "rev-parse", "--short=12", "HEAD", cwd=root)
    changed = _said("git", "status", "--porcelain", "--untracked-files=no", cwd=root)
    return {
        "processor": _processor(),
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": f"{_memory_mib()} MiB",
        "system": _system(),
        "kernel": platform.release(),
        "redis": _said("redis-server", "--version"),
        "hiredis": _said("pkg-config", "--modversion", "hiredis"),
        "libev": _said("dpkg-query", "-W", "-f=${Version}", "libev-dev"),
        "compiler": _said("cc", "--version"),
        "python": platform.python_version(),
        "commit": (commit + (", with changes" if changed else "")) if commit else "unknown",
        "load average before the build": f"{load_average:.2f}",
    }
