# What was measured: one record for each command, and the figures that every table, ratio and plot
# takes from it.
from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field
from typing import Any

from . import stats
from .schedule import Step

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}

LATENCIES = ("acquire", "release", "handover", "fenced", "shared", "read", "write")

OVER = "not measured: the time was over"

Cell = tuple[str, str, str]  # letter, point, contender


@dataclass(frozen=True)
class Record:
    letter: str
    point: str
    contender: str
    round: int
    command: str
    figures: dict[str, Any] = field(default_factory=dict)
    error: str | None = None  # why there are no figures, or what the first failure was


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def figures_of(step: Step, answer: dict[str, Any], cpu_seconds: float, servers_cpu_seconds: float) -> dict[str, Any]:
    """One answer, without its samples; per cycle and per second where that makes sense."""
    figures: dict[str, Any] = {key: value for key, value in answer.items() if number(value) is not None}
    for name in LATENCIES:
        samples = sorted(answer.get(f"{name}_us") or [])
        if samples:
            figures[f"{name}_samples"] = len(samples)
            for key, share in PERCENTILES.items():
                figures[f"{name}_{key}_us"] = stats.percentile(samples, share)
    ends = number(answer.get("cycles"))
    if "grants" in answer:
        ends = sum(float(count) for count in answer["grants"])
        figures["grants"] = ends
    elif ends and (number(answer.get("seconds")) or 0) > 0:
        figures["cycles_per_s"] = ends / float(answer["seconds"])
    figures["cpu_us"] = cpu_seconds * 1e6
    figures["servers_cpu_us"] = servers_cpu_seconds * 1e6
    if ends:
        figures["cpu_us_each"] = cpu_seconds * 1e6 / ends
        figures["servers_cpu_us_each"] = servers_cpu_seconds * 1e6 / ends
    return figures


class Results:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.pooled: dict[Cell, dict[str, array[float]]] = {}
        self.absent: dict[str, str] = {}  # contenders that do not start, and why
        self.load: dict[str, float] = {}  # of others: before, by workload, after

    def add(self, record: Record, answer: dict[str, Any] | None = None) -> None:
        self.records.append(record)
        if answer:
            cell = self.pooled.setdefault((record.letter, record.point, record.contender), {})
            for name in LATENCIES:
                if answer.get(f"{name}_us"):
                    cell.setdefault(name, array("d")).extend(answer[f"{name}_us"])

    def rounds_of(self, letter: str, point: str, contender: str, key: str) -> list[float]:
        """Of all records, also where a round has several."""
        found = [
            number(record.figures.get(key))
            for record in self.records
            if (record.letter, record.point, record.contender) == (letter, point, contender)
        ]
        return [value for value in found if value is not None]

    def by_round(self, letter: str, point: str, contender: str, key: str) -> dict[int, float]:
        found: dict[int, float] = {}
        for record in self.records:
            if (record.letter, record.point, record.contender) == (letter, point, contender):
                value = number(record.figures.get(key))
                if value is not None:
                    found[record.round] = value
        return found

    def spread(self, letter: str, point: str, contender: str, key: str) -> stats.Spread | None:
        return stats.spread(list(self.by_round(letter, point, contender, key).values()))

    def total(self, letter: str, point: str, contender: str, key: str) -> float | None:
        values = self.by_round(letter, point, contender, key)
        return sum(values.values()) if values else None

    def ratio(self, letter: str, point: str, contender: str, key: str, to: tuple[str, str]) -> stats.Spread | None:
        """To the same figure of another (point, contender), round by round."""
        return stats.spread(
            stats.ratios(self.by_round(letter, point, contender, key), self.by_round(letter, to[0], to[1], key))
        )

    def reason(self, letter: str, point: str, contender: str) -> str | None:
        """Why a cell has no figures, or the first failure in it; None where all went well or nothing was tried."""
        for record in self.records:
            if record.error and (record.letter, record.point, record.contender) == (letter, point, contender):
                return record.error
        return None

    def contenders(self, letter: str) -> list[str]:
        """Those that were tried, in the order of the schedule."""
        return list(dict.fromkeys(record.contender for record in self.records if record.letter == letter))

    def points(self, letter: str) -> list[str]:
        return list(dict.fromkeys(record.point for record in self.records if record.letter == letter))

    def pooled_percentile(self, letter: str, point: str, contender: str, name: str, share: float) -> float | None:
        samples = self.pooled.get((letter, point, contender), {}).get(name)
        return stats.percentile(sorted(samples), share) if samples else None

    def pooled_count(self, letter: str, point: str, contender: str, name: str) -> int:
        return len(self.pooled.get((letter, point, contender), {}).get(name, ()))

    def curve(self, letter: str, point: str, contender: str, name: str) -> list[tuple[float, float]]:
        return stats.curve(sorted(self.pooled.get((letter, point, contender), {}).get(name, ())))

    def as_json(self) -> dict[str, Any]:
        pooled = [
            {
                "letter": letter,
                "point": point,
                "contender": contender,
                "what": name,
                "samples": len(samples),
                "percentiles": {key: stats.percentile(ordered, share) for key, share in PERCENTILES.items()},
                "curve": stats.curve(ordered),
            }
            for (letter, point, contender), named in self.pooled.items()
            for name, samples in named.items()
            for ordered in [sorted(samples)]
        ]
        return {"load": self.load, "records": [asdict(record) for record in self.records], "pooled": pooled}
