# Runs a schedule: brings the nodes about, gives each step to its contender, keeps to the time, and
# records what came of it.
from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from . import load
from .contenders import UNSUPPORTED, Contender, ContenderError
from .results import OVER, Cell, Record, Results, figures_of
from .schedule import OWN, SECURED, Stage, Step, Workload, stage_seconds
from .servers import Fleet, Proxy

# A peer that takes this much longer than its slice is not asked the same again.
SLOW_FACTOR = 3
SLOW_SECONDS = 3.0
CONNECT_TRIES = 2


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Runner:
    def __init__(
        self,
        fleet: Fleet,
        proxy: Proxy | None,
        contenders: dict[str, Contender],
        results: Results,
        bound_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._proxy = proxy
        self._contenders = contenders
        self._results = results
        self._now = now
        self._end = now() + bound_seconds
        self._given_up: set[Cell] = set()
        self._failed_connects: Counter[str] = Counter()

    def run(self, workloads: Sequence[Workload]) -> None:
        """Each workload has a share of the time by its plan; what one leaves, the next ones have."""
        planned = sum(workload.seconds for workload in workloads)
        scale = max((self._end - self._now()) / planned, 1.0) if planned else 1.0
        began, share = self._now(), 0.0
        for workload in workloads:
            share += workload.seconds * scale
            with load.during(workload.letter, self._results.load):
                self._workload(workload, min(began + share, self._end))

    def _workload(self, workload: Workload, end: float) -> None:
        began, slowness = self._now(), 1.0
        for number, stages in enumerate(workload.rounds):
            round_began = self._now()
            planned = sum(stage_seconds(stage) for stage in stages)
            # A round begins if the core of it fits, by how much longer than planned the last one
            # took; its peers get what is left.
            if number and round_began + sum(stage_seconds(stage, peers=False) for stage in stages) * slowness > end:
                progress(f"({workload.letter}) ends after {number} of {len(workload.rounds)} rounds: its time is over")
                break
            progress(f"({workload.letter}) {workload.title}: round {number + 1} of {len(workload.rounds)}")
            for stage in stages:
                self._stage(workload.letter, number, stage, end)
            slowness = max((self._now() - round_began) / planned, 1.0)
        progress(f"({workload.letter}) took {self._now() - began:.1f} s, planned were {workload.seconds:.1f} s")

    def _stage(self, letter: str, number: int, stage: Stage, end: float) -> None:
        self._fleet.ensure(stage.nodes)
        addresses = self._addresses(stage)
        wanted = [step.contender for step in stage.steps if (letter, step.point, step.contender) not in self._given_up]
        try:
            # All connect while the nodes are well; a step tells of one that could not.
            for name in dict.fromkeys(wanted):
                self._connect(name, addresses)
            self._disturb(stage)
            for step in stage.steps:
                self._step(letter, number, step, addresses, end)
        finally:
            if stage.disturbs:
                self._heal(stage)

    def _addresses(self, stage: Stage) -> tuple[str, ...]:
        addresses = [server.address for server in self._fleet.servers[: stage.nodes]]
        for node, _ in stage.delayed:
            assert self._proxy
            self._proxy.set_round_trip(node, 0)
            addresses[node] = self._proxy.addresses[node]
        return tuple(addresses)

    def _disturb(self, stage: Stage) -> None:
        for node in stage.dead:
            self._fleet.servers[node].kill()
        for node in stage.hung:
            self._fleet.servers[node].stop()
        for node, round_trip_us in stage.delayed:
            assert self._proxy
            self._proxy.set_round_trip(node, round_trip_us)

    def _heal(self, stage: Stage) -> None:
        """Nobody goes on with connections that saw a fault."""
        for node, _ in stage.delayed:
            assert self._proxy
            self._proxy.set_round_trip(node, 0)
        self._fleet.ensure(stage.nodes)
        self._fleet.flush()
        for contender in self._contenders.values():
            contender.forget_connections()

    def _connect(self, name: str, addresses: tuple[str, ...]) -> str | None:
        """Why it could not, or None. Who cannot connect twice is left out from then on: each time
        costs many seconds."""
        if self._failed_connects[name] >= CONNECT_TRIES:
            return f"left out after it could not connect {CONNECT_TRIES} times"
        if name in SECURED:
            addresses = tuple(server.tls_address for server in self._fleet.servers[: len(addresses)])
        try:
            self._contenders[name].connect(addresses)
        except ContenderError as error:
            self._failed_connects[name] += 1
            progress(f"  {name}: {error}")
            return str(error)
        return None

    def _step(self, letter: str, number: int, step: Step, addresses: tuple[str, ...], end: float) -> None:
        cell = (letter, step.point, step.contender)
        is_peer = step.contender not in OWN
        if cell in self._given_up:
            return
        if self._now() > end if is_peer else self._now() + step.ms / 1000 > self._end:
            self._fail(number, cell, step, OVER)
            return
        # A contender that was killed in this stage comes back as one that finds the nodes as they
        # are now.
        reason = self._connect(step.contender, addresses)
        if reason is None:
            reason = self._ask(letter, number, step)
        if reason is not None:
            self._fail(number, cell, step, reason)
            if is_peer or reason == UNSUPPORTED:
                self._given_up.add(cell)

    def _ask(self, letter: str, number: int, step: Step) -> str | None:
        """One command; its figures are recorded. Why there are none, or None."""
        self._fleet.flush()
        servers_before = self._fleet.cpu_seconds()
        try:
            answer = self._contenders[step.contender].ask(step.command, step.bound_seconds)
        except ContenderError as error:
            return str(error)
        servers_cpu = self._fleet.cpu_seconds() - servers_before
        if answer.error:
            return answer.error
        if step.contender not in OWN and answer.wall_seconds > SLOW_FACTOR * step.ms / 1000 + SLOW_SECONDS:
            self._given_up.add((letter, step.point, step.contender))
        if step.recorded:
            figures = figures_of(step, answer.figures, answer.cpu_seconds, servers_cpu)
            figures["wall_seconds"] = answer.wall_seconds
            failure = answer.figures.get("error")
            record = Record(letter, step.point, step.contender, number, step.command, figures, failure)
            self._results.add(record, answer.figures)
        return None

    def _fail(self, number: int, cell: Cell, step: Step, reason: str) -> None:
        if step.recorded:
            self._results.add(Record(*cell, number, step.command, error=reason))
        if reason not in (UNSUPPORTED, OVER):
            progress(f"  {step.contender}: {step.command}: {reason}")
