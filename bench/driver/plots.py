# The pictures, drawn by gnuplot as SVG and PNG; the script of each one stays beside it.
from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import tables
from .results import Results
from .schedule import ASYNC, BLOCKING, CONCURRENCIES, CORE, FLOOR, HIREDIS, NODE_COUNT_WORKERS, TOOL

WIDTH, HEIGHT = 1100, 500
GNUPLOT_SECONDS = 60
COMMON = "enhanced background '#ffffff' font 'DejaVu Sans,12'"
TERMINALS = {
    "png": f"set terminal pngcairo size {WIDTH * 2},{HEIGHT * 2} fontscale 2 linewidth 2 pointscale 2 {COMMON}",
    "svg": f"set terminal svg size {WIDTH},{HEIGHT} dynamic {COMMON}",
}
FEW_POINTS = 12

# Ours is strong and blue, the floor black, others thin and of a colour and a mark of their own.
CORE_STYLES = {
    ASYNC: "lc rgb '#0050d0' lw 3.5 pt 7 ps 1.1",
    BLOCKING: "lc rgb '#4da3ff' lw 3 pt 5 ps 1.0",
    FLOOR: "lc rgb '#000000' lw 2 dt 2 pt 2 ps 0.9",
    HIREDIS: "lc rgb '#8a8a8a' lw 1.5 dt 4 pt 1 ps 0.9",
}
PEER_COLOURS = ("#e66100", "#009e73", "#aa3377", "#b8860b", "#c00000", "#5d3a9b", "#00a5b5", "#7a5230", "#6b8e23")
PEER_MARKS = (9, 11, 13, 4, 6, 8, 10, 12, 3)


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, ...]]  # x, y; or x, y, lowest, highest


@dataclass(frozen=True)
class Panel:
    title: str
    x: str
    y: str
    series: list[Series]
    log_x: bool = False
    log_y: bool = True
    ticks: list[tuple[str, float]] = field(default_factory=list)
    bars: bool = False  # marks with a whisker, beside each other, instead of lines
    range_y: str = ""


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    panels: list[Panel]
    same_y: bool = False  # for all panels


def style(name: str, peers: Sequence[str]) -> str:
    if name in CORE_STYLES:
        return CORE_STYLES[name]
    index = peers.index(name)
    return f"lc rgb '{PEER_COLOURS[index % len(PEER_COLOURS)]}' lw 1.6 pt {PEER_MARKS[index % len(PEER_MARKS)]} ps 0.9"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def log_axis(values: Sequence[float]) -> tuple[float, float, list[tuple[str, float]]]:
    """From, to, and ticks at 1, 2 and 5 times the powers of ten, or at these powers alone where there are many."""
    low, high = min(values) / 1.3, max(values) * 1.3
    steps = (1, 2, 5) if high / low < 300 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return low, high, [(f"{tick:,.0f}" if tick >= 1 else f"{tick:g}", tick) for tick in ticks if low <= tick <= high]


def written(ticks: Sequence[tuple[str, float]]) -> str:
    return "(" + ", ".join(f"{quoted(text)} {value:g}" for text, value in ticks) + ")"


def script(figure: Figure, peers: Sequence[str]) -> str:
    """Panels side by side; one legend at the right of them."""
    left, right, gap = 0.085, 0.79, 0.085
    count = len(figure.panels)
    width = (right - left - gap * (count - 1)) / count
    order = [FLOOR, HIREDIS, ASYNC, BLOCKING, *peers]
    present = {series.name for panel in figure.panels for series in panel.series}
    shown = [name for name in order if name in present]
    lines = [
        f"set multiplot title {quoted(figure.title)} font ',14' noenhanced",
        "set grid xtics ytics lc rgb '#cccccc' lw 0.7 dt 1",
        "set border 3 lc rgb '#444444'",
        "set tics nomirror font ',11' textcolor rgb '#222222'",
        "set tmargin screen 0.85",
        "set bmargin screen 0.15",
    ]
    for number, panel in enumerate(figure.panels):
        begin = left + number * (width + gap)
        last = number == count - 1
        lines += [
            f"set lmargin screen {begin:.4f}",
            f"set rmargin screen {begin + width:.4f}",
            f"set title {quoted(panel.title)} noenhanced",
            f"set xlabel {quoted(panel.x)} noenhanced",
            f"set ylabel {quoted(panel.y)} noenhanced",
            "unset logscale",
            "set autoscale",
            f"set xtics {written(panel.ticks)}" if panel.ticks else "set xtics autofreq",
            "set ytics autofreq",
        ]
        if panel.log_x:
            lines.append("set logscale x")
        compared = figure.panels if figure.same_y else [panel]
        heights = [value for one in compared for series in one.series for point in series.points for value in point[1:]]
        if panel.log_y and heights:
            low, high, ticks = log_axis(heights)
            lines += ["set logscale y", f"set yrange [{low:g}:{high:g}]", f"set ytics {written(ticks)}"]
        elif not panel.log_y:
            lines.append(f"set yrange {panel.range_y or '[0:*]'}")
        if panel.ticks:
            edges = [x for _, x in panel.ticks]
            lines.append(
                f"set xrange [{min(edges) / 1.25:g}:{max(edges) * 1.25:g}]"
                if panel.log_x
                else f"set xrange [{min(edges) - 0.5:g}:{max(edges) + 0.5:g}]"
            )
        lines.append(
            "set key at screen 0.80,0.85 left top Left reverse noenhanced spacing 1.35 samplen 3" if last else "unset key"
        )
        drawn = []
        for index, name in enumerate(shown):
            for series in panel.series:
                if series.name != name or not series.points:
                    continue
                block = f"$data_{number}_{index}"
                lines += [f"{block} << END", *(" ".join(f"{value:.9g}" for value in point) for point in series.points), "END"]
                # A line of many points has few marks, at other places than its neighbours'.
                sparse = f" pi {max(len(series.points) // 5, 1)}" if len(series.points) > FEW_POINTS else ""
                how = "yerrorbars" if panel.bars else "linespoints"
                columns = "1:2:3:4" if panel.bars else "1:2"
                drawn.append(f"{block} using {columns} with {how} {style(name, peers)}{sparse} notitle")
        if last:
            drawn += [f"keyentry with linespoints {style(name, peers)} title {quoted(name)}" for name in shown]
        lines.append("plot " + ", \\\n  ".join(drawn))
    return "\n".join([*lines, "unset multiplot", ""])


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


def _concurrency(results: Results, key: str, title: str, y: str) -> Panel:
    xs = [(float(count), str(count)) for count in CONCURRENCIES]
    threads = [(float(point.split(":")[1]), point) for point in results.points("b") if point.startswith("threads:")]
    flat = [name for name in results.contenders("b") if name not in (FLOOR, BLOCKING)]
    # The floor was measured beside the threads too; where both are, the longer line's figure stands.
    low = [one for one in threads if one[0] < min(CONCURRENCIES)]
    series = (
        _line(results, "b", low + xs, key, [FLOOR])
        + _line(results, "b", xs, key, flat)
        + _line(results, "b", threads, key, [BLOCKING])
    )
    ticks = [(f"{x:g}", x) for x, _ in low + xs]
    return Panel(title, "cycles outstanding (of the blocking API: threads)", y, series, log_x=True, ticks=ticks)


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
                slices = [tables.healthy(results, name, f"acquire_{key}_us") for key in ("p50", "p99")]
                middle, tail = (one.median if one else None for one in slices)
            if middle is not None and tail is not None:
                aside = (position - (len(names) - 1) / 2) * 0.7 / max(len(names), 1)
                points.append((down + aside, middle, middle, tail))
        if points:
            series.append(Series(name, points))
    title = f"{kind}" + (" by 20 ms" if kind == "slow" else "")
    return Panel(title, "nodes of five", y, series, ticks=[(str(down), float(down)) for down in (0, 1, 2)], bars=True)


def figures(results: Results) -> list[Figure]:
    letters = {record.letter for record in results.records}
    made = []
    if "a" in letters:
        made.append(
            Figure(
                "latency",
                "One lock at a time on five nodes: latency",
                [_curves(results, "acquire"), _curves(results, "release")],
            )
        )
    if "b" in letters:
        throughput = _concurrency(results, "cycles_per_s", "", "cycles (acquire and release) a second")
        cpu = _concurrency(results, "cpu_us_each", "", "client's processor time a cycle, µs")
        made += [
            Figure("throughput", "Cycles a second against cycles outstanding, five nodes", [throughput]),
            Figure("cpu", "Client's processor time a cycle against cycles outstanding, five nodes", [cpu]),
        ]
    if "c" in letters:
        panels = [
            _faults(results, kind, "acquire, µs" if not number else "") for number, kind in enumerate(("dead", "hung", "slow"))
        ]
        made.append(
            Figure(
                "faults",
                "Acquire with nodes down: p50 (mark) up to p99 (whisker); without a mark: no success, or not measured",
                panels,
                same_y=True,
            )
        )
    if "d" in letters:
        xs = [(float(point), point) for point in results.points("d")]
        ticks = [(point, x) for x, point in xs]
        made.append(
            Figure(
                "contention",
                "Many clients, one resource, held for 1 ms",
                [
                    Panel(
                        "",
                        y="useful grants a second",
                        series=_line(results, "d", xs, "grants_per_s"),
                        x="clients",
                        log_x=True,
                        ticks=ticks,
                    ),
                    Panel(
                        "",
                        y="release to next grant, p50, µs",
                        series=_line(results, "d", xs, "handover_p50_us"),
                        x="clients",
                        log_x=True,
                        ticks=ticks,
                    ),
                    Panel(
                        "",
                        y="Jain's index",
                        series=_line(results, "d", xs, "jain"),
                        x="clients",
                        log_x=True,
                        log_y=False,
                        range_y="[0:1.05]",
                        ticks=ticks,
                    ),
                ],
            )
        )
    if "f" in letters:
        counts = sorted({int(point.split(":")[0]) for point in results.points("f")})
        ticks = [(str(count), float(count)) for count in counts]
        one = _line(results, "f", [(float(count), f"{count}:1") for count in counts], "acquire_p50_us")
        many = _line(results, "f", [(float(count), f"{count}:{NODE_COUNT_WORKERS}") for count in counts], "cycles_per_s")
        made.append(
            Figure(
                "nodes",
                "The number of nodes",
                [
                    Panel("one at a time", "nodes", "acquire, p50, µs", one, ticks=ticks),
                    Panel(f"{NODE_COUNT_WORKERS} at a time", "nodes", "cycles a second", many, ticks=ticks),
                ],
            )
        )
    if "g" in letters:
        xs = [(float(point), point) for point in results.points("g")]
        ticks = [(point, x) for x, point in xs]
        whole = _line(results, "g", xs, "acquire_p50_us", change=lambda _, y: y / 1000)
        extra = _line(results, "g", xs, "acquire_p50_us", change=lambda x, y: y - x * 1000)
        made.append(
            Figure(
                "links",
                "The distance of the nodes: acquire, one at a time, p50",
                [
                    Panel("whole", "round trip, ms", "acquire, ms", whole, log_x=True, ticks=ticks),
                    Panel(
                        "beyond one round trip",
                        "round trip, ms",
                        "acquire less one round trip, µs",
                        extra,
                        log_x=True,
                        ticks=ticks,
                    ),
                ],
            )
        )
    return [figure for figure in made if any(series.points for panel in figure.panels for series in panel.series)]


def draw(results: Results, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Those that were drawn, with their titles; and what went wrong."""
    if not shutil.which("gnuplot"):
        return {}, ["no plots: gnuplot is not here (Debian's package gnuplot-nox)"]
    peers = [
        name
        for name in dict.fromkeys(record.contender for record in results.records if record.letter != TOOL)
        if name not in CORE
    ]
    drawn, problems = {}, []
    for figure in figures(results):
        body = script(figure, peers)
        for ending, terminal in TERMINALS.items():
            source = folder / f"{figure.name}.gp"
            output = f"{figure.name}.{ending}"
            text = f"# Draws {output}: gnuplot {source.name}\n{terminal}\nset output '{output}'\n{body}"
            source.write_text(text)
            try:
                done = subprocess.run(
                    ["gnuplot", source.name], cwd=folder, capture_output=True, text=True, timeout=GNUPLOT_SECONDS
                )
            except subprocess.TimeoutExpired:
                problems.append(f"gnuplot did not end at {figure.name}.{ending}")
                continue
            if done.returncode:
                problems.append(f"gnuplot could not draw {figure.name}.{ending}: {' '.join(done.stderr.split())[:300]}")
            else:
                drawn[figure.name] = figure.title
    return drawn, problems
