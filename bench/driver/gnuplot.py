# Draws figures with gnuplot, as SVG and PNG; the script of each one stays beside it.
from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .schedule import ASYNC, BLOCKING, FLOOR, FLOOR_SEALED, FLOOR_TLS, HIREDIS, OURS, POLLING, TLS

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
    TLS: "lc rgb '#0f8f5f' lw 2.5 pt 13 ps 1.0",
    POLLING: "lc rgb '#7a7ad0' lw 2 dt 3 pt 3 ps 0.9",
    FLOOR: "lc rgb '#000000' lw 2 dt 2 pt 2 ps 0.9",
    FLOOR_TLS: "lc rgb '#000000' lw 2 dt 3 pt 12 ps 0.9",
    FLOOR_SEALED: "lc rgb '#000000' lw 1.5 dt 4 pt 8 ps 0.9",
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
    steps = (1, 2, 5) if high / low < 2000 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return low, high, [(f"{tick:,.0f}" if tick >= 1 else f"{tick:g}", tick) for tick in ticks if low <= tick <= high]


def written(ticks: Sequence[tuple[str, float]]) -> str:
    return "(" + ", ".join(f"{quoted(text)} {value:g}" for text, value in ticks) + ")"


def axes(panel: Panel, compared: Sequence[Panel], *, label_beside: bool) -> list[str]:
    """Titles, ranges and ticks; the range of y is that of all panels that are compared."""
    # Beside each other, panels have no room for a label on their side.
    title = panel.title if label_beside else ": ".join(filter(None, (panel.title, panel.y)))
    lines = [
        f"set title {quoted(title)} noenhanced",
        f"set xlabel {quoted(panel.x)} noenhanced",
        f"set ylabel {quoted(panel.y if label_beside else '')} noenhanced",
        "unset logscale",
        "set autoscale",
        "set xtics autofreq",
        "set ytics autofreq",
    ]
    if panel.log_x:
        lines.append("set logscale x")
    if panel.ticks:
        low, high = min(x for _, x in panel.ticks), max(x for _, x in panel.ticks)
        edges = (low / 1.25, high * 1.25) if panel.log_x else (low - 0.5, high + 0.5)
        lines += [f"set xtics {written(panel.ticks)}", f"set xrange [{edges[0]:g}:{edges[1]:g}]"]
    heights = [value for one in compared for series in one.series for point in series.points for value in point[1:]]
    if not panel.log_y:
        lines.append(f"set yrange {panel.range_y or '[0:*]'}")
    elif heights:
        low, high, ticks = log_axis(heights)
        lines += ["set logscale y", f"set yrange [{low:g}:{high:g}]", f"set ytics {written(ticks)}"]
    return lines


def script(figure: Figure, peers: Sequence[str]) -> str:
    """Panels side by side; one legend at the right of them."""
    count = len(figure.panels)
    # A single panel has a label at its left side.
    left, right, gap = (0.115 if count == 1 else 0.085), 0.79, 0.08
    width = (right - left - gap * (count - 1)) / count
    order = [FLOOR, FLOOR_TLS, FLOOR_SEALED, HIREDIS, ASYNC, TLS, BLOCKING, POLLING, *peers]
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
        compared = figure.panels if figure.same_y else [panel]
        lines += [
            f"set lmargin screen {begin:.4f}",
            f"set rmargin screen {begin + width:.4f}",
            "set key at screen 0.80,0.85 left top Left reverse noenhanced spacing 1.35 samplen 3"
            if last
            else "unset key",
            *axes(panel, compared, label_beside=count == 1),
        ]
        drawn = []
        # Ours lie on top.
        for series in sorted(panel.series, key=lambda series: series.name in OURS):
            block = f"$data_{number}_{shown.index(series.name)}"
            lines += [
                f"{block} << END", *(" ".join(f"{value:.9g}" for value in point) for point in series.points), "END"
            ]
            # A line of many points has few marks.
            sparse = f" pi {max(len(series.points) // 5, 1)}" if len(series.points) > FEW_POINTS else ""
            how, columns = ("yerrorbars", "1:2:3:4") if panel.bars else ("linespoints", "1:2")
            drawn.append(f"{block} using {columns} with {how} {style(series.name, peers)}{sparse} notitle")
        if last:
            drawn += [f"keyentry with linespoints {style(name, peers)} title {quoted(name)}" for name in shown]
        lines.append("plot " + ", \\\n  ".join(drawn))
    return "\n".join([*lines, "unset multiplot", ""])


def draw(figure: Figure, peers: Sequence[str], folder: Path) -> list[str]:
    """What went wrong."""
    problems = []
    source = folder / f"{figure.name}.gp"
    for ending, terminal in TERMINALS.items():
        output = f"{figure.name}.{ending}"
        head = f"# Draws {output}: gnuplot {source.name}\n{terminal}\nset output '{output}'\n"
        source.write_text(head + script(figure, peers))
        command = ["gnuplot", source.name]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=GNUPLOT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            problems.append(f"gnuplot did not end at {output}")
            continue
        if done.returncode:
            problems.append(f"gnuplot could not draw {output}: {' '.join(done.stderr.split())[:300]}")
    return problems
