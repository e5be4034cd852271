# Which pictures there are, and which figures each one shows.
from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from . import contest, gnuplot, tables
from .gnuplot import Figure, Panel, Series
from .results import Results
from .schedule import BLOCKING, CONCURRENCIES, FLOOR, FLOOR_THREADS, NODE_COUNT_WORKERS, OWN, TOOL


def _curves(results: Results, what: str) -> Panel:
    """A share p lies at 1 / (1 - p), logarithmic: each nine has the same width."""
    series = []
    for name in results.contenders("a"):
        points = [(1 / (1 - share), value) for share, value in results.curve("a", "1", name, what) if share >= 0.1]
        if points:
            series.append(Series(name, points))
    reach = max((point[0] for one in series for point in one.points), default=1000)
    nines = [("50", 2.0), ("90", 10.0), ("99", 100.0), ("99.9", 1e3), ("99.99", 1e4)]
    ticks = [tick for tick in nines if tick[1] <= reach * 1.3]
    return Panel(what, "percentile", "latency, µs", series, log_x=True, ticks=ticks)


def _line(
    results: Results,
    letter: str,
    xs: Sequence[tuple[float, str]],
    key: str,
    names: Sequence[str] | None = None,
    change: Callable[[float, float], float] = lambda _, y: y,
) -> list[Series]:
    series = []
    for name in names if names is not None else results.contenders(letter):
        points = []
        for x, point in xs:
            value = tables.median(results, letter, point, name, key)
            if value is not None and change(x, value) > 0:
                points.append((x, change(x, value)))
        if points:
            series.append(Series(name, list(points)))
    return series


def _concurrency(results: Results, key: str, y: str) -> Panel:
    xs = [(float(count), str(count)) for count in CONCURRENCIES]
    threads = [(float(point.split(":")[1]), point) for point in results.points("b") if point.startswith("threads:")]
    flat = [name for name in results.contenders("b") if name not in (FLOOR, BLOCKING, FLOOR_THREADS)]
    # The floor was also measured beside the threads. The figure of the longer line stands.
    low = [one for one in threads if one[0] < min(CONCURRENCIES)]
    series = (
        _line(results, "b", low + xs, key, [FLOOR])
        + _line(results, "b", xs, key, flat)
        + _line(results, "b", threads, key, [BLOCKING])
    )
    ticks = [(f"{x:g}", x) for x, _ in low + xs]
    return Panel("", "cycles outstanding (of the blocking API: threads)", y, series, log_x=True, ticks=ticks)


def _faults(results: Results, kind: str, y: str) -> Panel:
    names = results.contenders("c")
    series = []
    for position, name in enumerate(names):
        points: list[tuple[float, ...]] = []
        for down in (0, 1, 2):
            if down:
                middle, tail = (
                    tables.median(results, "c", f"{kind}{down}", name, f"acquire_{key}_us") for key in ("p50", "p99")
                )
            else:
                slices = [tables.healthy(results, "c", name, f"acquire_{key}_us") for key in ("p50", "p99")]
                middle, tail = (one.median if one else None for one in slices)
            if middle is not None and tail is not None:
                aside = (position - (len(names) - 1) / 2) * 0.7 / max(len(names), 1)
                points.append((down + aside, middle, middle, tail))
        if points:
            series.append(Series(name, points))
    title = f"{kind}" + (" by 20 ms" if kind == "slow" else "")
    return Panel(title, "nodes of five", y, series, ticks=[(str(down), float(down)) for down in (0, 1, 2)], bars=True)


def _latency(results: Results) -> list[Figure]:
    panels = [_curves(results, "acquire"), _curves(results, "release")]
    return [Figure("latency", "One lock at a time on five nodes: latency", panels, same_y=True)]


def _many(results: Results) -> list[Figure]:
    throughput = _concurrency(results, "cycles_per_s", "cycles (acquire and release) a second")
    cpu = _concurrency(results, "cpu_us_each", "client's processor time a cycle, µs")
    return [
        Figure("throughput", "Cycles a second against cycles outstanding, five nodes", [throughput]),
        Figure("cpu", "Client's processor time a cycle against cycles outstanding, five nodes", [cpu]),
    ]


def _down(results: Results) -> list[Figure]:
    panels = [_faults(results, kind, "acquire, µs") for kind in ("dead", "hung", "slow")]
    title = "Acquire with nodes down: p50 (mark) up to p99 (whisker); without a mark: no success, or not measured"
    return [Figure("faults", title, panels, same_y=True)]


def _best_line(results: Results, clients: int, name: str, key: str) -> float | None:
    """Over loopback and with holds of 1 ms, in as many processes as is best for this contender."""
    values = [
        tables.median(results, "d", point, name, key)
        for point in results.points("d")
        if point.startswith(f"{contest.LINE}:{clients}:") and point.endswith(f":1:{contest.NEAR}")
    ]
    return min((value for value in values if value is not None), default=None)


def _contention(results: Results) -> list[Figure]:
    lines = [point.split(":") for point in results.points("d") if point.startswith(contest.LINE)]
    counts = sorted({int(words[1]) for words in lines if words[3:] == ["1", contest.NEAR]})
    ticks = [(f"{count:,}", float(count)) for count in counts]
    panels = []
    for key, y in (("handover_p50_us", "release to next grant, p50, µs"), ("total_ms", "until all were served, ms")):
        series = []
        for name in results.contenders("d"):
            found = [(float(count), _best_line(results, count, name, key)) for count in counts]
            points = [(x, value) for x, value in found if value]
            if points:
                series.append(Series(name, points))
        panels.append(Panel("", "waiters", y, series, log_x=True, ticks=ticks))
    title = (
        "Waiters that each want one lock once, held for 1 ms, loopback, "
        "in the number of processes that suits each best"
    )
    return [Figure("contention", title, panels)]


def _node_counts(results: Results) -> list[Figure]:
    counts = sorted({int(point.split(":")[0]) for point in results.points("f")})
    ticks = [(str(count), float(count)) for count in counts]
    one = _line(results, "f", [(float(count), f"{count}:1") for count in counts], "acquire_p50_us")
    many = _line(results, "f", [(float(count), f"{count}:{NODE_COUNT_WORKERS}") for count in counts], "cycles_per_s")
    panels = [
        Panel("one at a time", "nodes", "acquire, p50, µs", one, ticks=ticks),
        Panel(f"{NODE_COUNT_WORKERS} at a time", "nodes", "cycles a second", many, ticks=ticks),
    ]
    return [Figure("nodes", "The number of nodes", panels)]


def _links(results: Results) -> list[Figure]:
    xs = [(float(point), point) for point in results.points("g")]
    ticks = [(point, x) for x, point in xs]
    whole = _line(results, "g", xs, "acquire_p50_us", change=lambda _, y: y / 1000)
    extra = _line(results, "g", xs, "acquire_p50_us", change=lambda x, y: y - x * 1000)
    panels = [
        Panel("", "round trip, ms", "acquire, ms", whole, log_x=True, ticks=ticks),
        Panel("", "round trip, ms", "acquire less one round trip, µs", extra, log_x=True, ticks=ticks),
    ]
    return [Figure("links", "The distance of the nodes: acquire, one at a time, p50", panels)]


MAKERS = {"a": _latency, "b": _many, "c": _down, "d": _contention, "f": _node_counts, "g": _links}


def figures(results: Results) -> list[Figure]:
    letters = {record.letter for record in results.records}
    made = [figure for letter, make in MAKERS.items() if letter in letters for figure in make(results)]
    return [figure for figure in made if any(series.points for panel in figure.panels for series in panel.series)]


def draw(results: Results, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Those that were drawn, with their titles; and what went wrong."""
    if not shutil.which("gnuplot"):
        return {}, ["no plots: gnuplot is not here (Debian's package gnuplot-nox)"]
    names = dict.fromkeys(record.contender for record in results.records if record.letter != TOOL)
    peers = [name for name in names if name not in OWN]
    drawn, problems = {}, []
    for figure in figures(results):
        failed = gnuplot.draw(figure, peers, folder)
        problems += failed
        if not failed:
            drawn[figure.name] = figure.title
    return drawn, problems
