# The last lines: one name=value each, by which runs are compared and claims are checked.
from __future__ import annotations

from dataclasses import dataclass

from . import contest, stats
from .contest import (
    FAR_FIFTY,
    FIFTY,
    FREE_RELEASE,
    HOLDER_DEAD,
    LEAST_HANDOVER,
    MIXED,
    RESTED,
    SPREAD_OUT,
    TEN,
    THOUSAND,
    TWO_HUNDRED,
    UNCONTENDED,
    WAITER_DEAD,
)
from .results import OVER, Results
from .schedule import (
    ALTERNATE,
    ASYNC,
    BLOCKING,
    CONCURRENCIES,
    EXCLUSIVE,
    FAR,
    FAULTS,
    FENCED_WORKERS,
    FLOOR,
    FLOOR_SEALED,
    FLOOR_THREADS,
    FLOOR_TLS,
    HANDOVER,
    HANDOVERS,
    OWN,
    READERS_RESOURCES,
    ROUND_TRIPS_MS,
    SHARED,
    THREADS,
    TLS,
    WITHOUT_TOKENS,
    WITH_TOKENS,
    healthy_point,
    readers_point,
)

# These are printed in every run; the others where they were measured.
PROMISED = frozenset(
    {
        "acquire_p50_ratio",
        "acquire_p99_ratio",
        "release_p50_ratio",
        "cycles_ratio_256",
        "cycles_ratio_1024",
        "cpu_ratio_1024",
        "servers_cpu_ratio_256",
        "servers_cpu_ratio_1024",
        "servers_cpu_us_256",
        "servers_cpu_us_1024",
        "peer_best_cpu_ratio",
        "peer_best_cycles_ratio",
        "peer_best_name",
        "dead1_p50_ratio",
        "dead2_p50_ratio",
        "hung1_p50_ratio",
        "hung1_p99_ratio",
        "slow1_p50_ratio",
        "contended_handover_ratio_link1",
        "contended_handover_ratio",
        "contended_handover_ratio_rested",
        "contended_handover_ratio_1000_10",
        "contended_handover_to_floor",
        "floor_handover_ratio",
        "contended_jain_64",
        "contended_jain_256",
        "contended_requests_64",
        "contended_total_ratio_200",
        "contended_total_ratio_1000",
        "contended_free_release_server_ratio",
        "contended_holder_dead_ms",
        "contended_waiter_dead_ms",
        "contended_peer_total_ratio_200",
        "contended_peer_name",
        "contended_mixed_share",
        "contended_mixed_lost",
        "contended_overlaps",
        "contended_bypass_share",
        "contended_bypass_5ms_share",
        "lease_bytes",
        "late_extensions",
        "blocking_p50_ratio",
        "blocking_cycles_ratio_16",
        "blocking_cycles_to_threads_16",
        "fenced_p50_ratio",
        "fenced_fast_share",
        "tls_acquire_ratio",
        "tls_acquire_to_floor",
        "tls_cpu_256_ratio",
        "tls_floor_acquire_ratio",
        "tls_sealed_acquire_ratio",
    }
)


@dataclass(frozen=True)
class Ratio:
    name: str
    value: float | str | None
    reason: str | None = None  # why there is no value
    low: float | None = None
    high: float | None = None


def _spread(name: str, spread: stats.Spread | None, reason: str | None) -> Ratio:
    if spread is None:
        return Ratio(name, None, reason or "no round has both figures")
    return Ratio(name, spread.median, None, spread.low, spread.high)


def _why(results: Results, letter: str, point: str, *contenders: str) -> str:
    if letter not in {record.letter for record in results.records}:
        return f"workload ({letter}) did not run"
    for name in contenders:
        reason = results.absent.get(name) or results.reason(letter, point, name)
        if reason:
            return f"{name} at {point}: {reason}"
    return f"no round of ({letter}) at {point} has figures of {' and '.join(contenders)}"


def _to_floor(results: Results) -> list[Ratio]:
    made = []
    for what, percentile in (("acquire", "p50"), ("acquire", "p99"), ("release", "p50"), ("release", "p99")):
        ratio = results.ratio("a", "1", ASYNC, f"{what}_{percentile}_us", ("1", FLOOR))
        made.append(_spread(f"{what}_{percentile}_ratio", ratio, _why(results, "a", "1", FLOOR, ASYNC)))
    for key, name in (
        ("cycles_per_s", "cycles_ratio"), ("cpu_us_each", "cpu_ratio"), ("servers_cpu_us_each", "servers_cpu_ratio")
    ):
        for workers in CONCURRENCIES:
            point = str(workers)
            ratio = results.ratio("b", point, ASYNC, key, (point, FLOOR))
            made.append(_spread(f"{name}_{workers}", ratio, _why(results, "b", point, FLOOR, ASYNC)))
    for workers in CONCURRENCIES:
        servers = results.spread("b", str(workers), ASYNC, "servers_cpu_us_each")
        made.append(_spread(f"servers_cpu_us_{workers}", servers, _why(results, "b", str(workers), ASYNC)))
    return made


def best_peer(results: Results, key: str, *, more_is_better: bool) -> tuple[stats.Spread, str, str] | None:
    """How far we are ahead of the peer that comes nearest, at the concurrency where it does; its
    name and that concurrency."""
    nearest: tuple[stats.Spread, str, str] | None = None
    for peer in (name for name in results.contenders("b") if name not in OWN):
        for point in map(str, CONCURRENCIES):
            ours, theirs = results.by_round("b", point, ASYNC, key), results.by_round("b", point, peer, key)
            ahead = stats.spread(stats.ratios(ours, theirs) if more_is_better else stats.ratios(theirs, ours))
            if ahead and (nearest is None or ahead.median < nearest[0].median):
                nearest = (ahead, peer, point)
    return nearest


def _to_peers(results: Results) -> list[Ratio]:
    made = []
    measured = [name for name in results.contenders("b") if name not in OWN]
    why = "no peer was measured in (b)" if measured else "no peer took part in (b)"
    for name, key, more_is_better in (("cycles", "cycles_per_s", True), ("cpu", "cpu_us_each", False)):
        best = best_peer(results, key, more_is_better=more_is_better)
        made.append(_spread(f"peer_best_{name}_ratio", best[0] if best else None, why))
        label = "peer_best_name" if name == "cycles" else "peer_best_cpu_name"
        made.append(Ratio(label, best[1] if best else None, why))
    return made


def _faults(results: Results) -> list[Ratio]:
    made = []
    for fault in FAULTS:
        for percentile in ("p50", "p99"):
            ratio = results.ratio("c", fault, ASYNC, f"acquire_{percentile}_us", (healthy_point(fault), ASYNC))
            made.append(_spread(f"{fault}_{percentile}_ratio", ratio, _why(results, "c", fault, ASYNC)))
        floor = results.ratio("c", fault, FLOOR, "acquire_p50_us", (healthy_point(fault), FLOOR))
        made.append(_spread(f"{fault}_p50_ratio_of_floor", floor, _why(results, "c", fault, FLOOR)))
        for percentile in ("p50", "p99"):
            far = results.ratio("h", fault, ASYNC, f"acquire_{percentile}_us", (healthy_point(fault), ASYNC))
            made.append(_spread(f"link2_{fault}_{percentile}_ratio", far, _why(results, "h", fault, ASYNC)))
    failed = [results.total(letter, fault, ASYNC, "failed") for letter in ("c", "h") for fault in FAULTS]
    known = [count for count in failed if count is not None]
    made.append(Ratio("faults_failed", sum(known) if known else None, _why(results, "c", FAULTS[0], ASYNC)))
    return made


LOOP_64, LOOP_256, LOOP_COUNTED = (case.point for case in contest.loops(0))


def best_peer_in_line(results: Results) -> tuple[stats.Spread, str] | None:
    """Our time to serve 200 waiters ÷ that of the peer that is nearest, in the same round; and its name."""
    point = TWO_HUNDRED.point
    nearest: tuple[stats.Spread, str] | None = None
    peers = [name for name in results.contenders("d") if name not in OWN]
    # The best one may be among those that had no time.
    if any(results.reason("d", point, peer) == OVER for peer in peers):
        return None
    for peer in peers:
        ratio = results.ratio("d", point, ASYNC, "total_ms", (point, peer))
        if ratio and (nearest is None or ratio.median > nearest[0].median):
            nearest = ratio, peer
    return nearest


def _contended(results: Results) -> list[Ratio]:
    def why(point: str) -> str:
        return _why(results, "d", point, ASYNC)

    def spread(name: str, point: str, key: str) -> Ratio:
        return _spread(name, results.spread("d", point, ASYNC, key), why(point))

    def handover_to(name: str, point: str, to: str, key: str) -> Ratio:
        above, below = results.by_round("d", point, ASYNC, "handover_p50_us"), results.by_round("d", to, ASYNC, key)
        return _spread(name, stats.spread(stats.ratios(above, below)), why(point))

    acquire, handover = "acquire_p50_us", "handover_p50_us"
    near = f"{UNCONTENDED}:{contest.NEAR}"
    to_floor = results.ratio("d", FIFTY.point, ASYNC, handover, (LEAST_HANDOVER, FLOOR))
    least = results.by_round("d", LEAST_HANDOVER, FLOOR, handover)
    of_floor = stats.spread(stats.ratios(least, results.by_round("d", near, ASYNC, acquire)))
    why_floor = None if least else _why(results, "d", LEAST_HANDOVER, FLOOR)
    made = [
        handover_to("contended_handover_ratio_link1", FAR_FIFTY.point, f"{UNCONTENDED}:{contest.FAR}", acquire),
        handover_to("contended_handover_ratio", FIFTY.point, near, acquire),
        handover_to("contended_handover_ratio_rested", FIFTY.point, f"{RESTED}:{contest.NEAR}", acquire),
        handover_to("contended_handover_ratio_1000_10", THOUSAND.point, TEN.point, handover),
        _spread("contended_handover_to_floor", to_floor, why_floor or why(FIFTY.point)),
        _spread("floor_handover_ratio", of_floor, why_floor or why(near)),
        spread("contended_jain_64", LOOP_64, "jain"),
        spread("contended_jain_256", LOOP_256, "jain"),
        spread("contended_requests_64", LOOP_COUNTED, "requests_each"),
        spread("contended_servers_cpu_us_64", LOOP_64, "servers_cpu_us_each"),
        spread("contended_grants_64", LOOP_64, "grants_per_s"),
        spread("contended_total_ratio_200", SPREAD_OUT.point, "total_ratio"),
        spread("contended_total_ratio_1000", THOUSAND.point, "total_ratio"),
        spread("contended_free_release_server_ratio", FREE_RELEASE, "server_ratio"),
    ]
    for name, point, key in (("holder", HOLDER_DEAD, "beyond_ttl_ms"), ("waiter", WAITER_DEAD, "gap_ms")):
        deaths = stats.spread(results.rounds_of("d", point, ASYNC, key))
        made.append(_spread(f"contended_{name}_dead_ms", deaths, why(point)))
        made.append(Ratio(f"contended_{name}_dead_worst_ms", deaths.high if deaths else None, why(point)))
    best = best_peer_in_line(results)
    no_peer = "no peer served 200 waiters, or we did not, or some peer had no time"
    made.append(_spread("contended_peer_total_ratio_200", best[0] if best else None, no_peer))
    made.append(Ratio("contended_peer_name", best[1] if best else None, no_peer))
    made.append(spread("contended_mixed_share", MIXED, "share"))
    made.append(Ratio("contended_mixed_lost", results.total("d", MIXED, ASYNC, "lost"), why(MIXED)))
    points = results.points("d")
    for name, key in (
        ("contended_overlaps", "overlaps"), ("contended_bypasses", "bypasses"), ("contended_served", "served")
    ):
        known = [count for count in (results.total("d", point, ASYNC, key) for point in points) if count is not None]
        made.append(Ratio(name, sum(known) if known else None, why(TEN.point)))
    lines = [point for point in points if point.startswith(contest.LINE)]
    bypassed, clearly, served = (
        sum(results.total("d", point, ASYNC, key) or 0 for point in lines)
        for key in ("bypasses", "bypasses_clear", "served")
    )
    for name, count in (("contended_bypass_share", bypassed), ("contended_bypass_5ms_share", clearly)):
        made.append(Ratio(name, count / served if served else None, why(TEN.point)))
    return made


def _leases(results: Results) -> list[Ratio]:
    made = []
    for name, point, key in (("lease_bytes", "hold", "bytes_per_lease"), ("late_extensions", "hold", "late")):
        made.append(_spread(name, results.spread("e", point, ASYNC, key), _why(results, "e", point, ASYNC)))
    before = results.by_round("e", "churn", ASYNC, "heap_before")
    after = results.by_round("e", "churn", ASYNC, "heap_after")
    growth = stats.spread([after[number] - before[number] for number in before if number in after])
    return made + [_spread("churn_heap_growth", growth, _why(results, "e", "churn", ASYNC))]


def _links(results: Results) -> list[Ratio]:
    made = []
    for round_trip in map(str, ROUND_TRIPS_MS):
        ours = results.by_round("g", round_trip, ASYNC, "acquire_p50_us")
        floor = results.by_round("g", round_trip, FLOOR, "acquire_p50_us")
        extra = stats.spread([ours[number] - floor[number] for number in ours if number in floor])
        made.append(_spread(f"link{round_trip}_p50_extra_us", extra, _why(results, "g", round_trip, FLOOR, ASYNC)))
    return made


def _blocking(results: Results) -> list[Ratio]:
    ratio = results.ratio("a", "1", BLOCKING, "acquire_p50_us", ("1", FLOOR))
    made = [_spread("blocking_p50_ratio", ratio, _why(results, "a", "1", FLOOR, BLOCKING))]
    for threads in THREADS:
        point = f"threads:{threads}"
        ratio = results.ratio("b", point, BLOCKING, "cycles_per_s", (point, FLOOR))
        made.append(_spread(f"blocking_cycles_ratio_{threads}", ratio, _why(results, "b", point, FLOOR, BLOCKING)))
    least = results.ratio("b", point, BLOCKING, "cycles_per_s", (point, FLOOR_THREADS))
    reason = _why(results, "b", point, FLOOR_THREADS, BLOCKING)
    made.append(_spread(f"blocking_cycles_to_threads_{threads}", least, reason))
    return made


def fast_share(results: Results, points: list[tuple[str, str]]) -> float | None:
    """Of all fencing tokens that were had at these (point, contender): how many took one round trip."""
    fast, slow = (
        sum(results.total("i", point, name, f"fenced_{kind}") or 0 for point, name in points)
        for kind in ("fast", "slow")
    )
    return fast / (fast + slow) if fast + slow else None


def _alternation(results: Results, letter: str, kind: str) -> list[Ratio]:
    """Acquires of the kind ÷ plain ones, near and over links."""
    made = []
    why = _why(results, letter, ALTERNATE, ASYNC)
    for name, point in ((kind, ALTERNATE), (f"link1_{kind}", FAR)):
        for percentile in ("p50", "p99"):
            above = results.by_round(letter, point, ASYNC, f"{kind}_{percentile}_us")
            below = results.by_round(letter, point, ASYNC, f"acquire_{percentile}_us")
            made.append(_spread(f"{name}_{percentile}_ratio", stats.spread(stats.ratios(above, below)), why))
    return made


def _fencing(results: Results) -> list[Ratio]:
    why = _why(results, "i", ALTERNATE, ASYNC)
    made = _alternation(results, "i", "fenced")
    for name, key in (("cycles", "cycles_per_s"), ("cpu", "cpu_us_each"), ("servers_cpu", "servers_cpu_us_each")):
        ratio = results.ratio("i", WITH_TOKENS, ASYNC, key, (WITHOUT_TOKENS, ASYNC))
        made.append(_spread(f"fenced_{name}_ratio_{FENCED_WORKERS}", ratio, _why(results, "i", WITH_TOKENS, ASYNC)))
    made.append(Ratio("fenced_fast_share", fast_share(results, [(ALTERNATE, ASYNC), (WITH_TOKENS, ASYNC)]), why))
    for point in HANDOVERS:
        share = fast_share(results, [(point, HANDOVER)])
        made.append(Ratio(f"fenced_fast_share_{point}", share, _why(results, "i", point, HANDOVER)))
    falls = [results.total("i", point, HANDOVER, "not_rising") for point in HANDOVERS]
    known = [count for count in falls if count is not None]
    return made + [Ratio("fenced_not_rising", sum(known) if known else None, _why(results, "i", "wait", HANDOVER))]


def _readers(results: Results) -> list[Ratio]:
    """Shared ÷ exclusive."""
    why = _why(results, "j", ALTERNATE, ASYNC)
    made = _alternation(results, "j", "shared")
    for resources in READERS_RESOURCES:
        point = readers_point(SHARED, resources)
        ratio = results.ratio("j", point, ASYNC, "cycles_per_s", (readers_point(EXCLUSIVE, resources), ASYNC))
        made.append(_spread(f"readers_grants_ratio_{resources}", ratio, _why(results, "j", point, ASYNC)))
        longest = results.rounds_of("j", point, ASYNC, "write_longest_us")
        made.append(Ratio(f"readers_write_longest_us_{resources}", max(longest) if longest else None, why))
    return made


def _tls(results: Results) -> list[Ratio]:
    """TLS ÷ plain, of the same program; and ours over TLS ÷ the floor over TLS."""
    made = []
    for name, above, below, letter, point, key in (
        ("tls_acquire_ratio", TLS, ASYNC, "a", "1", "acquire_p50_us"),
        ("tls_release_ratio", TLS, ASYNC, "a", "1", "release_p50_us"),
        ("tls_cpu_256_ratio", TLS, ASYNC, "b", "256", "cpu_us_each"),
        ("tls_cycles_256_ratio", TLS, ASYNC, "b", "256", "cycles_per_s"),
        ("tls_floor_acquire_ratio", FLOOR_TLS, FLOOR, "a", "1", "acquire_p50_us"),
        ("tls_sealed_acquire_ratio", FLOOR_SEALED, FLOOR, "a", "1", "acquire_p50_us"),
        ("tls_acquire_to_floor", TLS, FLOOR_TLS, "a", "1", "acquire_p50_us"),
    ):
        ratio = results.ratio(letter, point, above, key, (point, below))
        made.append(_spread(name, ratio, _why(results, letter, point, below, above)))
    return made


def make(results: Results) -> list[Ratio]:
    parts = (_to_floor, _to_peers, _faults, _contended, _leases, _links, _blocking, _fencing, _readers, _tls)
    made = [ratio for part in parts for ratio in part(results)]
    return [ratio for ratio in made if ratio.value is not None or ratio.name in PROMISED]


def lines(ratios: list[Ratio]) -> list[str]:
    """What could not be measured says so, after a line with the reason."""
    made: list[str] = []
    for ratio in ratios:
        if ratio.value is None:
            made += [f"# {ratio.name}: {' '.join((ratio.reason or '').split())}", f"{ratio.name}=unmeasured"]
        elif isinstance(ratio.value, str):
            made.append(f"{ratio.name}={ratio.value}")
        else:
            made.append(f"{ratio.name}={ratio.value:.3f}".rstrip("0").rstrip("."))
    return made
