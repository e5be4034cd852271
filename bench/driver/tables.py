# The tables of the report, as Markdown, each from the records alone. Pure.
from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import contest, stats
from .contenders import UNSUPPORTED
from .results import Results
from .schedule import (
    ALTERNATE,
    ASYNC,
    BLOCKING,
    CONCURRENCIES,
    EXCLUSIVE,
    FAR,
    FAULTS,
    FAULTY,
    FENCED_LINK_US,
    FENCED_WORKERS,
    FLOOR,
    FLOOR_THREADS,
    HANDOVER,
    HANDOVERS,
    HEALTHY,
    NODE_COUNT_WORKERS,
    OURS,
    READERS,
    READERS_HOLD_US,
    READERS_NODES,
    READERS_RESOURCES,
    READS_PERCENT,
    SHARED,
    TLS,
    TOOL,
    WITHOUT_TOKENS,
    WITH_TOKENS,
    healthy_point,
    peers_point,
    readers_point,
)
from .tool import POINT

NONE = "–"
FEW = 100  # below this a p99 says little


def amount(value: float | None) -> str:
    """Three digits are enough; thousands are set apart."""
    if value is None:
        return NONE
    if value != 0 and abs(value) < 100:
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:,.0f}"


def spread(value: stats.Spread | None, *, factor: bool = False) -> str:
    """The median, and the least and the greatest round behind it."""
    if value is None:
        return NONE
    write = (lambda number: f"{number:.2f}") if factor else amount
    if value.rounds == 1:
        return write(value.median)
    return f"{write(value.median)} ({write(value.low)} … {write(value.high)})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    """Figures stand at the right of their column, words at the left."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + (" --- |" if words else " ---: |") * (len(head) - 1)]
    for row in rows:
        lines.append("| " + " | ".join(" ".join(cell.replace("|", "/").split()) for cell in row) + " |")
    return "\n".join(lines)


def label(name: str) -> str:
    """Ours stand out."""
    return f"**{name}**" if name in (*OURS, TLS) else name


def gap(results: Results, letter: str, point: str, name: str) -> str:
    """What stands in a cell without figures."""
    reason = results.reason(letter, point, name)
    if reason is None:
        return NONE
    short = reason.split(":")[0]
    return short if short.startswith(("no answer", "not measured", UNSUPPORTED)) else "failed, see below"


def median(results: Results, letter: str, point: str, name: str, key: str) -> float | None:
    found = results.spread(letter, point, name, key)
    return found.median if found else None


def grid(
    results: Results,
    letter: str,
    points: Sequence[tuple[str, str]],
    key: str,
    *,
    names: Sequence[str] | None = None,
    failures: bool = False,
    least: int = 0,
) -> str:
    """Contenders down, points across, one figure with its spread, from at least so many acquires a round."""
    rows = []
    for name in names if names is not None else results.contenders(letter):
        cells = []
        for _, point in points:
            found = results.spread(letter, point, name, key)
            failed = results.total(letter, point, name, "failed")
            if found is None:
                cells.append(gap(results, letter, point, name))
            elif least and (median(results, letter, point, name, "acquire_samples") or 0) < least:
                cells.append("too few")
            else:
                cells.append(spread(found) + (f", {failed:,.0f} failed" if failures and failed else ""))
        if any(cell != NONE for cell in cells):
            rows.append([label(name), *cells])
    return table(["contender", *(title for title, _ in points)], rows)


def ratio_row(
    results: Results, letter: str, name: str, key: str, pairs: Sequence[tuple[str, tuple[str, str]]]
) -> list[str]:
    return [spread(results.ratio(letter, point, name, key, to), factor=True) for point, to in pairs]


def latency(results: Results) -> list[str]:
    rows, against = [], []
    for name in results.contenders("a"):
        if results.spread("a", "1", name, "acquire_p50_us") is None:
            continue
        cells = [label(name)]
        for what in ("acquire", "release"):
            count = median(results, "a", "1", name, f"{what}_samples") or 0
            for key, needed in (("p50", 1), ("p90", 10), ("p99", 100)):
                cells.append(amount(median(results, "a", "1", name, f"{what}_{key}_us")) if count >= needed else NONE)
            pooled = results.pooled_count("a", "1", name, what)
            cells.append(amount(results.pooled_percentile("a", "1", name, what, 0.999)) if pooled >= 1000 else NONE)
        cells += [amount(results.total("a", "1", name, key)) for key in ("cycles", "failed")]
        rows.append(cells)
        if name != FLOOR:
            keys = ("acquire_p50_us", "acquire_p99_us", "release_p50_us", "release_p99_us")
            against.append(
                [label(name)] + [ratio_row(results, "a", name, key, [("1", ("1", FLOOR))])[0] for key in keys]
            )
    head = ["µs", *(f"{what} {key}" for what in ("acquire", "release") for key in ("p50", "p90", "p99", "p99.9"))]
    parts = [table([*head, "cycles", "failed"], rows)]
    ratios = ["contender", "acquire p50", "acquire p99", "release p50", "release p99"]
    return [*parts, "As a multiple of the floor's, round by round:", table(ratios, against)]


def throughput(results: Results) -> list[str]:
    points = [(f"{count:,}", str(count)) for count in CONCURRENCIES]
    threads = [point for point in results.points("b") if point.startswith("threads:")]
    counted = [(point.split(":")[1], point) for point in threads]
    flat = [name for name in results.contenders("b") if name not in (BLOCKING, FLOOR_THREADS)]
    to_floor = [(point, (point, FLOOR)) for _, point in points]
    rows = [
        [f"{what}, ours to the floor", *ratio_row(results, "b", ASYNC, key, to_floor)]
        for what, key in (
            ("cycles a second", "cycles_per_s"),
            ("processor time a cycle", "cpu_us_each"),
            ("servers' processor time a cycle", "servers_cpu_us_each"),
        )
    ]
    to_plain = [(point, (point, ASYNC)) for _, point in points]
    rows += [
        [f"{what}, TLS to plain", *ratio_row(results, "b", TLS, key, to_plain)]
        for what, key in (("cycles a second", "cycles_per_s"), ("processor time a cycle", "cpu_us_each"))
        if TLS in results.contenders("b")
    ]
    return [
        "Cycles (acquire and release) a second, by cycles outstanding:",
        grid(results, "b", points, "cycles_per_s", names=flat, failures=True),
        "Processor time of the contender a cycle, in µs:",
        grid(results, "b", points, "cpu_us_each", names=flat),
        "Processor time of all redis-servers a cycle, in µs:",
        grid(results, "b", points, "servers_cpu_us_each", names=flat),
        table(["ratio", *(title for title, _ in points)], rows),
        "The blocking API, by threads, beside the floor with as many outstanding and the floor for threads that "
        "block; cycles a second:",
        grid(results, "b", counted, "cycles_per_s", names=[FLOOR, FLOOR_THREADS, BLOCKING], failures=True),
        "and processor time a cycle, in µs:",
        grid(results, "b", counted, "cpu_us_each", names=[FLOOR, FLOOR_THREADS, BLOCKING]),
    ]


def healthy(results: Results, letter: str, name: str, key: str) -> stats.Spread | None:
    """All slices with five healthy nodes, whatever fault came after them."""
    values = [value for fault in FAULTS for value in results.by_round(letter, healthy_point(fault), name, key).values()]
    return stats.spread(values)


def faults(results: Results, letter: str = "c") -> list[str]:
    rows, against = [], []
    for name in results.contenders(letter):
        cells = []
        for fault in (HEALTHY, *FAULTS):
            if fault == HEALTHY:
                middle, tail = (healthy(results, letter, name, f"acquire_{key}_us") for key in ("p50", "p99"))
                counts = [results.total(letter, healthy_point(each), name, "failed") for each in FAULTS]
                failed = sum(count for count in counts if count)
            else:
                middle, tail = (results.spread(letter, fault, name, f"acquire_{key}_us") for key in ("p50", "p99"))
                failed = results.total(letter, fault, name, "failed") or 0
            if middle is None or tail is None:
                cells.append(f"none of {failed:,.0f} succeeded" if failed else gap(results, letter, fault, name))
                continue
            count = results.total(letter, fault, name, "cycles")
            few = f", only {count:,.0f} ended" if count is not None and count < FEW else ""
            cells.append(
                f"{amount(middle.median)} / {amount(tail.median)}{few}" + (f", {failed:,.0f} failed" if failed else "")
            )
        rows.append([label(name), *cells])
    for name in (name for name in FAULTY if name in results.contenders(letter)):
        for key in ("p50", "p99"):
            pairs = [(fault, (healthy_point(fault), name)) for fault in FAULTS]
            against.append([f"{label(name)} {key}", *ratio_row(results, letter, name, f"acquire_{key}_us", pairs)])
    names = [fault_title(fault) for fault in FAULTS]
    return [
        "Acquire, p50 / p99 in µs:",
        table(["contender", "five healthy", *names], rows),
        "As a multiple of the slice with five healthy nodes right before; before a slow one, with the same proxy "
        "without the delay:",
        table(["contender", *names], against),
    ]


def far_faults(results: Results) -> list[str]:
    return faults(results, "h")


def fault_title(fault: str) -> str:
    return f"{fault[-1]} {fault[:-1]}" + (" by 20 ms" if fault.startswith("slow") else "")


CONTEST_COLUMNS = (
    ("handover p50, µs", "handover_p50_us"),
    ("p99, µs", "handover_p99_us"),
    ("all served, ms", "total_ms"),
    ("÷ least", "total_ratio"),
    ("grants a second", "grants_per_s"),
    ("Jain's index", "jain"),
    ("passed over", "bypass_share"),
    ("by over 5 ms", "bypass_clear_share"),
    ("requests a grant", "requests_each"),
    ("nodes' time a grant, µs", "servers_cpu_us_each"),
    ("client's, µs", "cpu_us_each"),
    ("overlaps", "overlaps"),
    ("failed", "failed"),
)


def contest_cell(results: Results, point: str, name: str, key: str) -> str:
    found = results.spread("d", point, name, key)
    if found is None and key == "total_ms":
        served, waiters = (results.total("d", point, name, each) for each in ("served", "waiters"))
        return f"only {served:,.0f} of {waiters:,.0f}" if served is not None and waiters else NONE
    return spread(found, factor=key in ("total_ratio", "jain", "bypass_share", "bypass_clear_share"))


def contention(results: Results) -> list[str]:
    parts = [
        "In a line each client wants the lock once, and all wait when it first gets free. In a loop each "
        "begins again at once. Handover: from a holder's call to release to the next holder's callback. "
        "÷ least: until all were served ÷ (waiters × (hold + handover p50)). Passed over: the share of the "
        "grants that went to a client while one that had begun earlier "
        "waited."
    ]
    for point in results.points("d"):
        if not point.startswith((contest.LINE, contest.LOOP)):
            continue
        rows = []
        for name in results.contenders("d"):
            cells = [contest_cell(results, point, name, key) for _, key in CONTEST_COLUMNS]
            if results.spread("d", point, name, "grants") is None:
                if results.reason("d", point, name) is None:
                    continue
                cells[0] = gap(results, "d", point, name)
            rows.append([label(name), *cells])
        counted = ", while MONITOR counts the requests" if point.endswith(":counted") else ""
        head = [name for name, _ in CONTEST_COLUMNS]
        parts += [f"{contest.title(point).capitalize()}{counted}:", table(["contender", *head], rows)]
    return [*parts, "Around it:", table(["figure", "value"], around_contests(results))]


def around_contests(results: Results) -> list[list[str]]:
    rows = []
    for link, where in contest.LINK_TITLES.items():
        for kind, after in ((contest.UNCONTENDED, ""), (contest.RESTED, " after a rest of 1 ms")):
            found = results.spread("d", f"{kind}:{link}", ASYNC, "acquire_p50_us")
            rows.append([f"uncontended acquire p50{after}, {where}, µs", spread(found)])
    found = results.spread("d", contest.LEAST_HANDOVER, FLOOR, "handover_p50_us")
    rows.append(["handover p50 of the least possible program, held for 1 ms, loopback, µs", spread(found)])
    for what, point, key in DEATHS:
        rows.append([what, spread(stats.spread(results.rounds_of("d", point, ASYNC, key)))])
    for what, key in FREE_RELEASE:
        rows.append([what, spread(results.spread("d", contest.FREE_RELEASE, ASYNC, key))])
    for name in (ASYNC, *contest.MIXED_PEERS):
        found = results.spread("d", contest.MIXED, name, "share")
        rows.append(
            [f"share of the locks of {name}, one client of each library on one resource", spread(found, factor=True)]
        )
    return rows


DEATHS = (
    ("the holder dies: from its grant to the next one, less its ttl, ms", contest.HOLDER_DEAD, "beyond_ttl_ms"),
    ("the first in line dies: from the release to the second one's grant, ms", contest.WAITER_DEAD, "gap_ms"),
)

FREE_RELEASE = (
    ("server time of a RELEASE where nobody waits, µs", "release_us"),
    ("the same of a plain compare-and-delete script, µs", "plain_us"),
)


def leases(results: Results) -> list[str]:
    rows = []
    for record in results.records:
        if record.letter == "e":
            rows += [
                [f"`{record.command}`: {key}", amount(value)]
                for key, value in record.figures.items()
                if isinstance(value, (int, float)) and key != "wall_seconds"
            ]
            if record.error:
                rows.append([f"`{record.command}`", record.error])
    return [table(["figure", "value"], rows)]


def node_counts(results: Results) -> list[str]:
    counts = sorted({int(point.split(":")[0]) for point in results.points("f")})
    one = [(f"N = {count}", f"{count}:1") for count in counts]
    many = [(f"N = {count}", f"{count}:{NODE_COUNT_WORKERS}") for count in counts]
    pairs = [(point, (point, FLOOR)) for _, point in one]
    rows = [["acquire p50, ours to the floor", *ratio_row(results, "f", ASYNC, "acquire_p50_us", pairs)]]
    for what, key in (("cycles a second", "cycles_per_s"), ("processor time a cycle", "cpu_us_each")):
        rows.append(
            [f"{what}, ours to the floor", *ratio_row(results, "f", ASYNC, key, [(p, (p, FLOOR)) for _, p in many])]
        )
    return [
        "Acquire, one at a time, p50 in µs:",
        grid(results, "f", one, "acquire_p50_us", failures=True),
        f"Cycles a second, {NODE_COUNT_WORKERS} at a time:",
        grid(results, "f", many, "cycles_per_s", failures=True),
        f"Processor time of the contender a cycle, {NODE_COUNT_WORKERS} at a time, in µs:",
        grid(results, "f", many, "cpu_us_each"),
        table(["ratio", *(title for title, _ in one)], rows),
    ]


def links(results: Results) -> list[str]:
    points = [(f"{point} ms", point) for point in results.points("g")]
    return [
        "Acquire, one at a time, p50 in µs, by the round trip between client and nodes:",
        grid(results, "g", points, "acquire_p50_us", failures=True),
        f"Acquire, p99 in µs, where a round had {FEW} at least:",
        grid(results, "g", points, "acquire_p99_us", least=FEW),
    ]


def alternation(results: Results, letter: str, point: str, other: tuple[str, str], plain: str) -> str:
    """Acquires of the other kind (its title and its name) beside plain ones."""
    title, kind = other
    rows = []
    for what, name in ((plain, "acquire"), (title, kind)):
        found = [results.spread(letter, point, ASYNC, f"{name}_{key}_us") for key in ("p50", "p90", "p99")]
        rows.append([what, *(spread(one) for one in found)])
    ratios = []
    for key in ("p50", "p90", "p99"):
        above, below = (results.by_round(letter, point, ASYNC, f"{name}_{key}_us") for name in (kind, "acquire"))
        ratios.append(spread(stats.spread(stats.ratios(above, below)), factor=True))
    rows.append([f"{title} ÷ {plain}, round by round", *ratios])
    return table(["acquire", "p50", "p90", "p99"], rows)


def fencing(results: Results) -> list[str]:
    near, far = (alternation(results, "i", point, ("with", "fenced"), "without") for point in (ALTERNATE, FAR))
    keys = ("cycles_per_s", "cpu_us_each", "servers_cpu_us_each")
    many = [
        [what, *(spread(results.spread("i", point, ASYNC, key)) for key in keys)]
        for what, point in (("without", WITHOUT_TOKENS), ("with", WITH_TOKENS))
    ]
    compared = [results.ratio("i", WITH_TOKENS, ASYNC, key, (WITHOUT_TOKENS, ASYNC)) for key in keys]
    many.append(["with ÷ without, round by round", *(spread(one, factor=True) for one in compared)])
    shares = [token_row(results, f"no contention, {workers}", point, ASYNC) for point, workers in TOKEN_POINTS]
    shares += [token_row(results, handover_title(point), point, HANDOVER) for point in HANDOVERS]
    return [
        "Acquire, one at a time, in µs, with and without a fencing token in turn, cycle by cycle in one process:",
        near,
        f"The same over links of {FENCED_LINK_US / 1000:g} ms:",
        far,
        f"{FENCED_WORKERS} at a time:",
        table(["", "cycles a second", "client's processor time a cycle, µs", "servers', µs"], many),
        "How many tokens took one round trip; the others took two or more:",
        table(
            ["", "tokens", "in one round trip", "of those from another client", "release to next grant, p50, µs"],
            shares,
        ),
    ]


def readers(results: Results) -> list[str]:
    near, far = (alternation(results, "j", point, ("shared", "shared"), "exclusive") for point in (ALTERNATE, FAR))
    rows = []
    keys = ("cycles_per_s", "read_p50_us", "read_p99_us", "write_p50_us", "write_p99_us", "write_longest_us")
    for resources in READERS_RESOURCES:
        for mode in (EXCLUSIVE, SHARED):
            point = readers_point(mode, resources)
            rows.append([f"{resources}, {mode}", *(spread(results.spread("j", point, ASYNC, key)) for key in keys)])
    beside = [
        [f"{nodes}, {label(name)}", *(spread(results.spread("j", peers_point(nodes), name, key)) for key in keys)]
        for nodes in READERS_NODES
        for name in results.contenders("j")
        if results.spread("j", peers_point(nodes), name, "cycles_per_s")
    ]
    waits = ["grants a second", "read, p50", "read, p99", "write, p50", "write, p99", "longest"]
    return [
        "Acquire, one at a time, in µs, exclusive and shared in turn, cycle by cycle in one process:",
        near,
        f"The same over links of {FENCED_LINK_US / 1000:g} ms:",
        far,
        f"{READERS} clients of one process, {READS_PERCENT} % of acquires only read, held for "
        f"{READERS_HOLD_US / 1000:g} ms. Waits in µs:",
        table(["resources, readers", *waits], rows),
        "The same beside peers that know shared locks, one resource, on one node and on five:",
        table(["nodes, contender", *waits], beside),
    ]


TOKEN_POINTS = ((ALTERNATE, "one at a time"), (WITH_TOKENS, f"{FENCED_WORKERS} at a time"))


def handover_title(point: str) -> str:
    pattern, clients, hold_us, skew_us = HANDOVERS[point]
    how = f"{clients} clients that wait" if pattern == "wait" else f"{clients} clients, each told to begin by the other"
    return f"{how}, held for {hold_us / 1000:g} ms, clocks within {skew_us / 1000:g} ms"


def token_row(results: Results, title: str, point: str, name: str) -> list[str]:
    fast, slow, from_another, from_another_slow = (
        results.total("i", point, name, key) for key in ("fenced_fast", "fenced_slow", "handovers", "handovers_slow")
    )
    if fast is None or slow is None:
        return [title, gap(results, "i", point, name), NONE, NONE, NONE]
    handed = share_text(from_another - (from_another_slow or 0), from_another) if from_another else NONE
    next_grant = amount(median(results, "i", point, name, "handover_p50_us"))
    return [title, amount(fast + slow), share_text(fast, fast + slow), handed, next_grant]


def share_text(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else NONE


def tool(results: Results) -> list[str]:
    rows = []
    for name in results.contenders(TOOL):
        wall = sorted(results.by_round(TOOL, POINT, name, "wall_us").values())
        cpu = list(results.by_round(TOOL, POINT, name, "cpu_us").values())
        if wall:
            figures = [stats.median(wall) / 1000, stats.percentile(wall, 0.9) / 1000, stats.median(cpu) / 1000]
            rows.append([f"`{name}`", *(f"{figure:.2f}" for figure in figures), str(len(wall))])
        else:
            rows.append([f"`{name}`", results.reason(TOOL, POINT, name) or NONE, NONE, NONE, "0"])
    return [table(["ms", "wall, median", "wall, p90", "processor, median", "runs"], rows)]


def failures(results: Results) -> str | None:
    """What has no figure, or had failures, and why: each reason once for each contender."""
    points: dict[tuple[str, str, str], list[str]] = {}
    for record in results.records:
        if record.error:
            places = points.setdefault((record.letter, record.contender, record.error), [])
            if record.point not in places:
                places.append(record.point)
    rows = [
        [label(name), letter, ", ".join(places), reason] for (letter, name, reason), places in sorted(points.items())
    ]
    return table(["contender", "workload", "at", "why"], rows, words=True) if rows else None
