# What is computed from samples: percentiles, medians with spread, ratios of rounds, fairness. Pure.
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median over rounds, with the least and the greatest round."""

    median: float
    low: float
    high: float
    rounds: int


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest sample that at least this share (0 to 1) of the ordered samples do not exceed."""
    if not ordered:
        raise ValueError("a percentile needs at least one sample")
    # The product of a share such as 0.9 may be a hair above a whole number. Keep the rank.
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def median(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("a median needs at least one value")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values: Sequence[float]) -> Spread | None:
    """None where no round was measured."""
    if not values:
        return None
    return Spread(median(values), min(values), max(values), len(values))


def ratios(above: dict[int, float], below: dict[int, float]) -> list[float]:
    """One ratio for each round that has both figures: what stood next to each other in time is compared."""
    return [above[number] / below[number] for number in sorted(above) if number in below and below[number] > 0]


def jain(grants: Sequence[float]) -> float | None:
    """Jain's index: 1 if all got the same, 1/n if one got everything. None if nobody got anything."""
    squares = sum(grant * grant for grant in grants)
    return sum(grants) ** 2 / (len(grants) * squares) if squares > 0 else None


@dataclass(frozen=True)
class Wait:
    """One client's wish for the lock, in µs of one clock; 0 for what never came."""

    client: int
    began: int
    granted: int = 0
    released: int = 0


def handovers(waits: Sequence[Wait]) -> list[int]:
    """From the moment a holder began to release to the moment the next one held: one for each grant but the first."""
    held = sorted((wait for wait in waits if wait.granted), key=lambda wait: wait.granted)
    return [after.granted - before.released for before, after in zip(held, held[1:], strict=False) if before.released]


def overlaps(waits: Sequence[Wait]) -> int:
    """Grants while another one still held."""
    count = latest = 0
    for wait in sorted((wait for wait in waits if wait.granted), key=lambda wait: wait.granted):
        count += wait.granted < latest
        latest = max(latest, wait.released)
    return count


def bypasses(waits: Sequence[Wait], by_more_than: int = 0) -> int:
    """Grants that went to a wait while one that had begun before it, by more than so many µs, still
    waited, or was never served at all."""
    count, earliest = 0, min((wait.began for wait in waits if not wait.granted), default=math.inf)
    for wait in sorted((wait for wait in waits if wait.granted), key=lambda wait: wait.granted, reverse=True):
        count += wait.began > earliest + by_more_than
        earliest = min(earliest, wait.began)
    return count


def curve(ordered: Sequence[float], steps_a_decade: int = 12) -> list[tuple[float, float]]:
    """Points (share, value) of a percentile curve, denser towards 1, up to what the number of samples carries."""
    if not ordered:
        return []
    points: list[tuple[float, float]] = []
    step = 0
    while True:
        share = 1 - 10 ** (-step / steps_a_decade)
        # Beyond this a point would stand on fewer than ten samples.
        if (1 - share) * len(ordered) < 10 and points:
            return points
        points.append((share, percentile(ordered, share)))
        step += 1
