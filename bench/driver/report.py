# Writes what was found: results.json with every figure of every round, results.md for people.
from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import load, tables
from .contenders import About
from .peers import Peer
from .ratios import Ratio
from .ratios import lines as ratio_lines
from .results import Results
from .schedule import TOOL

LOAD = "load of others"

SECTIONS = {
    "a": ("(a) One lock at a time: latency", tables.latency, ["latency"]),
    "b": ("(b) Many locks at a time: throughput and processor time", tables.throughput, ["throughput", "cpu"]),
    "c": ("(c) Nodes dead, hung or slow", tables.faults, ["faults"]),
    "d": ("(d) Many clients, one resource", tables.contention, ["contention"]),
    "e": ("(e) 100,000 leases held, and a million cycles", tables.leases, []),
    "f": ("(f) The number of nodes", tables.node_counts, ["nodes"]),
    "g": ("(g) The distance of the nodes", tables.links, ["links"]),
    "h": ("(h) Nodes at a round trip of 2 ms that are dead, hung or slow", tables.far_faults, []),
    "i": ("(i) Fencing tokens", tables.fencing, []),
    "j": ("(j) Those who read", tables.readers, []),
    TOOL: ("The tool, as a whole process", tables.tool, []),
}


@dataclass(frozen=True)
class Report:
    mode: str
    environment: dict[str, str]
    results: Results
    ratios: list[Ratio]
    about: dict[str, About]
    peers: list[Peer]
    plots: dict[str, str]  # name of a plot, its title
    problems: list[str]  # what broke the run off
    warnings: list[str]  # what disturbed it
    seconds: float


def as_json(report: Report) -> dict[str, Any]:
    return {
        "mode": report.mode,
        "seconds": round(report.seconds, 1),
        "problems": report.problems,
        "warnings": report.warnings,
        "environment": report.environment,
        "contenders": {name: asdict(about) for name, about in report.about.items()},
        "peers": [
            {"name": peer.name, "build_seconds": round(peer.build_seconds, 1), "skipped": peer.reason}
            for peer in report.peers
        ],
        "ratios": {ratio.name: asdict(ratio) for ratio in report.ratios},
        **report.results.as_json(),
    }


def as_markdown(report: Report) -> str:
    results = report.results
    on_what = {**report.environment, LOAD: load.summary(results.load)}
    measured = {record.letter for record in results.records}
    parts = [
        "# Results",
        f"A {report.mode} run of bench/run.sh; it measured for {report.seconds:.0f} s. Contenders took turns, round by "
        "round. A figure is the median of its rounds (least … greatest round); a ratio is the median of the ratios of "
        "rounds, in each of which both were measured one right after the other. p99.9 is that of all samples together. "
        "What the words mean is in docs/performance.md.",
        tables.table(["on what", ""], [[key, value] for key, value in on_what.items()], words=True),
    ]
    parts += [f"**{text}**" for text in (*report.problems, *report.warnings)]
    skipped = [f"{peer.name} ({peer.reason})" for peer in report.peers if peer.reason]
    if skipped:
        parts.append(f"Not measured: {'; '.join(skipped)}.")
    for letter, (title, make, plots) in SECTIONS.items():
        if letter in measured:
            parts += [f"## {title}", *make(results)]
            parts += [f"![{report.plots[name]}]({name}.svg)" for name in plots if name in report.plots]
    failures = tables.failures(results)
    if failures:
        parts += ["## What failed or was not measured", failures]
    parts += ["## Contenders", contenders_table(report), "## Ratios", ratios_table(report.ratios)]
    return "\n\n".join(map(wrapped, parts)) + "\n"


def wrapped(part: str) -> str:
    """Text wraps at 100 columns. Tables, headings and pictures stay as they are."""
    is_text = "\n" not in part and not part.startswith(("#", "!"))
    return textwrap.fill(part, 100, break_long_words=False, break_on_hyphens=False) if is_text else part


def contenders_table(report: Report) -> str:
    rows = [[tables.label(name), about.version, about.language, about.notes] for name, about in report.about.items()]
    rows += [
        [peer.name, tables.NONE, tables.NONE, f"not measured: {peer.reason}"] for peer in report.peers if peer.reason
    ]
    return tables.table(["contender", "version", "language", "what differs in its exchange"], rows, words=True)


def ratios_table(ratios: list[Ratio]) -> str:
    rows = []
    for ratio in ratios:
        if ratio.value is None:
            rows.append([f"`{ratio.name}`", "unmeasured", ratio.reason or ""])
            continue
        value = f"{ratio.value:,.3f}" if isinstance(ratio.value, float) else ratio.value
        rounds = f"{ratio.low:,.3f} … {ratio.high:,.3f}" if ratio.low is not None and ratio.low != ratio.high else ""
        rows.append([f"`{ratio.name}`", value, rounds])
    return tables.table(["name", "value", "least … greatest round"], rows)


def lines(report: Report, folder: Path) -> list[str]:
    """The last lines of the output: the load, what disturbed, the ratios, and where all the rest is."""
    made = [f"# {LOAD}: {load.summary(report.results.load)}", *(f"# {text}" for text in report.warnings)]
    return [*made, *ratio_lines(report.ratios), f"# measured for {report.seconds:.0f} s; results: {folder}/results.md"]


def write_json(report: Report, folder: Path) -> None:
    (folder / "results.json").write_text(json.dumps(as_json(report), indent=1, ensure_ascii=False) + "\n")


def write(report: Report, folder: Path) -> None:
    write_json(report, folder)
    (folder / "results.md").write_text(as_markdown(report))
