# Runs workload (d): contests in one process and across several, with deaths, and with other
# libraries on the same resource.
from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import contest, floor_handover, release_cost, stats
from .contenders import UNSUPPORTED, Answer, Contender, ContenderError, Program
from .contest import Case, Plan
from .results import OVER, PERCENTILES, Record, Results, figures_of
from .schedule import ASYNC, FLOOR, FLOOR_HANDOVER, NODES, SAMPLES_A_MS, Step
from .servers import HOST, Fleet, Proxy
from .workloads import progress

LETTER = "d"
START_US = 30_000  # from a command to the first waiter's begin
PEER_START_US = 400_000  # the same where a leader may be slow to get the lock
OVERTIME_SECONDS = 12.0  # some cannot be cancelled, and end only once they have had the lock
# node-redlock's own keys of a failed try can keep it out until their ttl has passed.
MIXED_OVERTIME_SECONDS = 25.0
PEER_FAILURES = 2  # then it is left out
WARM_UP_MS = 250


def now_us() -> int:
    """The clock that the contenders tell the time by."""
    return time.monotonic_ns() // 1000


def sleep_until(us: int) -> None:
    time.sleep(max((us - now_us()) / 1e6, 0.0))


class Monitor:
    """Counts the requests that clients send to the nodes, without what scripts run inside of a node."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.requests = 0
        self._links = [socket.create_connection((HOST, port), 5.0) for port in ports]
        for link in self._links:
            link.sendall(b"MONITOR\r\n")
            if link.recv(5) != b"+OK\r\n":
                raise OSError("a node refuses MONITOR")
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        rests = dict.fromkeys(self._links, b"")
        with selectors.DefaultSelector() as selector:
            for link in self._links:
                selector.register(link, selectors.EVENT_READ)
            while True:
                ready = selector.select(0.05)
                if not ready and self._ends.is_set():
                    return
                for key, _ in ready:
                    *lines, rests[key.fileobj] = (rests[key.fileobj] + key.fileobj.recv(1 << 18)).split(b"\n")
                    self.requests += sum(b" lua] " not in line for line in lines)

    def close(self) -> int:
        """How many, once the nodes have told of all."""
        self._ends.set()
        self._thread.join()
        for link in self._links:
            link.close()
        return self.requests


class Contention:
    def __init__(
        self,
        fleet: Fleet,
        proxy: Proxy,
        contenders: dict[str, Contender],
        programs: dict[str, Program],
        results: Results,
        folder: Path,
        logs: Path,
        end: float,
    ) -> None:
        self._fleet, self._proxy, self._results = fleet, proxy, results
        self._programs, self._folder, self._logs, self._end = programs, folder, logs, end
        self._pools = {name: [contender] for name, contender in contenders.items()}
        self._failures: dict[str, int] = {}
        self._round = 0

    def run(self, plan: Plan, peers: Sequence[str]) -> None:
        try:
            for self._round in range(plan.rounds):
                progress(f"(d) contended: round {self._round + 1} of {plan.rounds}")
                self._own_round(plan)
            self._mixed_rounds(plan)
            self._round = plan.rounds
            self._peers(plan, peers)
        finally:
            for pool in self._pools.values():
                for contender in pool[1:]:
                    contender.close()

    def _own_round(self, plan: Plan) -> None:
        link = None
        for case in plan.cases:
            if case.link != link:
                link = case.link
                self._uncontended(link, plan.uncontended_ms)
            self._contest(ASYNC, case)
            if case == contest.FIFTY:
                self._guarded(contest.LEAST_HANDOVER, FLOOR, self._least_handover)
            if case in plan.others:
                for name in contest.OTHERS:
                    self._contest(name, case)
        self._guarded(contest.FREE_RELEASE, ASYNC, self._free_release)
        for _ in range(plan.deaths):
            self._guarded(contest.HOLDER_DEAD, ASYNC, self._holder_dies)
            self._guarded(contest.WAITER_DEAD, ASYNC, self._waiter_dies)

    def _peers(self, plan: Plan, peers: Sequence[str]) -> None:
        """Each case in turns, ours among them."""
        for case in plan.peers:
            progress(f"(d) {contest.title(case.point)}, all in turns")
            for name in (ASYNC, *peers):
                if name == ASYNC or self._failures.get(name, 0) < PEER_FAILURES:
                    self._contest(name, case)
        for name in peers:
            for contender in self._pools[name][1:]:
                contender.close()
            del self._pools[name][1:]

    def _mixed_rounds(self, plan: Plan) -> None:
        missing = [name for name in contest.MIXED_PEERS if name not in self._pools]
        if missing:
            self._fail(contest.MIXED, ASYNC, f"without {', '.join(missing)}")
            return
        first = self._round
        for number in range(plan.mixed_rounds):
            self._round = first + number
            progress(f"(d) one client each of {', '.join((ASYNC, *contest.MIXED_PEERS))} on one resource")
            self._guarded(contest.MIXED, ASYNC, lambda: self._mixed(plan.mixed_ms))

    def _fail(self, point: str, name: str, reason: str) -> None:
        self._results.add(Record(LETTER, point, name, self._round, point, error=reason))
        if reason not in (UNSUPPORTED, OVER):
            progress(f"  {name}: {point}: {reason}")
            self._failures[name] = self._failures.get(name, 0) + 1

    def _add(
        self,
        point: str,
        name: str,
        figures: dict[str, Any],
        handover_us: Sequence[float] = (),
        error: str | None = None,
    ) -> None:
        record = Record(LETTER, point, name, self._round, point, figures, error)
        self._results.add(record, {"handover_us": handover_us})

    def _guarded(self, point: str, name: str, work: Callable[[], None], seconds: float = 2.0) -> None:
        """What fails is recorded with its reason; nothing begins that would not end in time."""
        if name not in self._pools:
            return
        if time.monotonic() + seconds > self._end:
            self._fail(point, name, OVER)
            return
        try:
            self._fleet.ensure(NODES)
            work()
        except (ContenderError, ValueError) as error:
            self._fail(point, name, str(error))

    def _pool(self, name: str, count: int, link: str) -> list[Contender]:
        """So many processes of a contender, connected over such links."""
        pool = self._pools[name]
        while len(pool) < count:
            pool.append(Contender(self._programs[name], self._logs))
        round_trips_us = contest.LINKS_US[link]
        for node, round_trip_us in enumerate(round_trips_us):
            self._proxy.set_round_trip(node, round_trip_us)
        servers = self._fleet.servers[:NODES]
        addresses = self._proxy.addresses if round_trips_us else [server.address for server in servers]
        for number, contender in enumerate(pool[:count]):
            fresh = not contender.starts
            contender.connect(tuple(addresses))
            if fresh and number and name not in (ASYNC, *contest.OTHERS):
                contender.ask(f"cycles 4 {WARM_UP_MS} 0", 20.0)
        return pool[:count]

    def _uncontended(self, link: str, ms: int) -> None:
        """Acquires right after each other; acquires after a rest, in which the processors fall asleep."""
        self._acquires(contest.UNCONTENDED, link, ms, f"cycles 1 {ms} {ms * SAMPLES_A_MS}")
        self._acquires(contest.RESTED, link, ms, f"cycles 1 {ms} {ms * SAMPLES_A_MS} {contest.REST_US}")

    def _acquires(self, kind: str, link: str, ms: int, command: str) -> None:
        def work() -> None:
            contender = self._pool(ASYNC, 1, link)[0]
            answer = contender.ask(command, ms / 1000 + OVERTIME_SECONDS)
            if answer.error:
                raise ValueError(answer.error)
            step = Step(ASYNC, f"{kind}:{link}", command, ms, 0.0)
            self._add(step.point, ASYNC, figures_of(step, answer.figures, answer.cpu_seconds, 0.0))

        self._guarded(f"{kind}:{link}", ASYNC, work)

    def _caught_release(self) -> tuple[list[int], list[str]]:
        """The ports of the nodes, and the words of our RELEASE, whose script they have."""
        contender = self._pool(ASYNC, 1, contest.NEAR)[0]
        ports = [server.port for server in self._fleet.servers[:NODES]]
        return ports, release_cost.catch(ports[0], contender)

    def _free_release(self) -> None:
        """The server time of a RELEASE where nobody waits."""
        self._add(contest.FREE_RELEASE, ASYNC, release_cost.compare(*self._caught_release()))

    def _least_handover(self) -> None:
        """Handovers of the least possible program with our RELEASE."""
        _, release = self._caught_release()
        self._fleet.flush()
        program = self._programs[FLOOR_HANDOVER].command
        addresses = [server.address for server in self._fleet.servers[:NODES]]
        log = self._logs / f"{FLOOR_HANDOVER}.log"
        between = floor_handover.measure(program, addresses, release, contest.FIFTY.hold_us, log)
        figures: dict[str, Any] = {"handover_samples": len(between)}
        ordered = sorted(between)
        figures |= {f"handover_{key}_us": stats.percentile(ordered, share) for key, share in PERCENTILES.items()}
        self._add(contest.LEAST_HANDOVER, FLOOR, figures, between)

    def _contest(self, name: str, case: Case) -> None:
        self._guarded(case.point, name, lambda: self._compete(name, case), case.seconds)

    def _compete(self, name: str, case: Case) -> None:
        pool = self._pool(name, case.processes, case.link)
        start_us = START_US if name in (ASYNC, *contest.OTHERS) else PEER_START_US * min(case.processes, 3)
        self._fleet.flush()
        monitor = Monitor([server.port for server in self._fleet.servers[:NODES]]) if case.counted else None
        try:
            servers_before = self._fleet.cpu_seconds()
            begin_us = now_us() + start_us
            free_us = begin_us + case.clients * contest.SPACE_US + case.settle_us
            end_us = case.ms * 1000 + (begin_us if case.kind == contest.LOOP else free_us)
            commands = []
            for process, clients in enumerate(contest.shares(case.clients, case.processes)):
                last = "-" if case.kind == contest.LOOP else str(0 if process else free_us)
                own_us = begin_us + process * contest.SPACE_US
                space_us = case.processes * contest.SPACE_US
                commands.append(f"{case.kind} {clients} {case.hold_us} {own_us} {space_us} {end_us} {last}")
            answers = self._ask_all(pool, commands, end_us)
            servers_cpu = self._fleet.cpu_seconds() - servers_before
        finally:
            requests = monitor.close() if monitor else 0
        waits = [wait for process, answer in enumerate(answers) for wait in contest.waits_of(answer.figures, process)]
        if case.kind == contest.LOOP:
            figures, between = contest.loop_figures(case, case.clients, waits)
        else:
            leader = next(wait for wait in waits if wait.client == contest.shares(case.clients, case.processes)[0])
            figures, between = contest.line_figures(case, leader, [wait for wait in waits if wait is not leader])
        if figures["grants"]:
            cpu_us = sum(answer.cpu_seconds for answer in answers) * 1e6
            each = {"servers_cpu_us_each": servers_cpu * 1e6, "cpu_us_each": cpu_us}
            if monitor:
                each["requests_each"] = requests
            figures |= {key: value / figures["grants"] for key, value in each.items()}
        figures["wall_seconds"] = max(answer.wall_seconds for answer in answers)
        figures["failed"] = sum(answer.figures["failed"] for answer in answers)
        error = next((answer.figures["error"] for answer in answers if answer.figures.get("error")), None)
        self._add(case.point, name, figures, between, error)

    def _ask_all(
        self,
        pool: Sequence[Contender],
        commands: Sequence[str],
        end_us: int,
        overtime_seconds: float = OVERTIME_SECONDS,
    ) -> list[Answer]:
        """All at the same time. Where one fails the others are heard first: they keep their place in the protocol."""
        for contender, command in zip(pool, commands, strict=True):
            contender.send(command)
        answers, problem = [], None
        for contender in pool:
            try:
                answer = contender.receive(max((end_us - now_us()) / 1e6 + overtime_seconds, 1.0))
                failure = answer.error
                answers.append(answer)
            except ContenderError as error:
                failure = str(error)
            if failure and not problem:
                problem = failure if len({one.name for one in pool}) == 1 else f"{contender.name}: {failure}"
        if problem:
            raise ContenderError(problem)
        return answers

    @contextlib.contextmanager
    def _victim(self) -> Any:
        """One more process of ours, which dies."""
        victim = Contender(self._programs[ASYNC], self._logs)
        try:
            victim.connect(tuple(server.address for server in self._fleet.servers[:NODES]))
            yield victim
        finally:
            victim.kill()

    def _holder_dies(self) -> None:
        """Four wait; the holder is killed. The gap is from its grant to the next one, less its ttl."""
        waiter = self._pool(ASYNC, 1, contest.NEAR)[0]
        self._fleet.flush()
        with self._victim() as victim:
            taken = victim.ask(f"take {contest.DEAD_TTL_MS}", 5.0)
            if taken.error:
                raise ValueError(taken.error)
            begin_us = now_us() + START_US
            end_us = begin_us + 10 * contest.DEAD_TTL_MS * 1000
            waiter.send(f"line 4 1000 {begin_us} {contest.SPACE_US} {end_us} 0")
            sleep_until(begin_us + 100_000)
            victim.kill()
            answer = waiter.receive(15.0)
        waits = contest.waits_of(answer.figures, 0)
        first = min((wait.granted for wait in waits if wait.granted), default=0)
        if not first or first < taken.figures["granted_us"]:
            raise ValueError("nobody got the lock after the holder's death")
        gap_ms = (first - taken.figures["granted_us"]) / 1000
        self._add(contest.HOLDER_DEAD, ASYNC, {"gap_ms": gap_ms, "beyond_ttl_ms": gap_ms - contest.DEAD_TTL_MS})

    def _waiter_dies(self) -> None:
        """The first in line is killed shortly before the release. The gap is from the release to the
        second one's grant."""
        leader, second = self._pool(ASYNC, 2, contest.NEAR)
        self._fleet.flush()
        with self._victim() as victim:
            begin_us = now_us() + START_US
            free_us = begin_us + 250_000
            end_us = free_us + 5_000_000
            for contender, clients, at_us, last in ((leader, 0, 0, free_us), (victim, 1, 0, 0), (second, 1, 60_000, 0)):
                contender.send(f"line {clients} 1000 {begin_us + at_us} 0 {end_us} {last}")
            sleep_until(free_us - 20_000)
            victim.kill()
            answers = [contender.receive(15.0) for contender in (leader, second)]
        (held,), (served,) = (contest.waits_of(answer.figures, 0) for answer in answers)
        if not held.released or not served.granted or served.began > held.released:
            raise ValueError("the second one did not get the lock after the first one's death")
        self._add(contest.WAITER_DEAD, ASYNC, {"gap_ms": (served.granted - held.released) / 1000})

    def _mixed(self, ms: int) -> None:
        """One client of each library; each holder reads a counter and writes it back, so that an
        update is lost if two hold."""
        names = (ASYNC, *contest.MIXED_PEERS)
        pool = [self._pool(name, 1, contest.NEAR)[0] for name in names]
        self._fleet.flush()
        counter = self._folder / "counter"
        counter.write_text("0")
        begin_us = now_us() + START_US
        end_us = begin_us + ms * 1000
        commands = [f"loop 1 1000 {begin_us} 0 {end_us} {counter}"] * len(pool)
        answers = self._ask_all(pool, commands, end_us, MIXED_OVERTIME_SECONDS)
        waits = [contest.waits_of(answer.figures, process) for process, answer in enumerate(answers)]
        grants = [sum(1 for wait in own if wait.granted) for own in waits]
        together = [wait for own in waits for wait in own]
        lost = sum(grants) - int(counter.read_text())
        for name, own in zip(names, grants, strict=True):
            figures: dict[str, Any] = {"grants": own, "share": own / sum(grants) if sum(grants) else None}
            if name == ASYNC:
                figures |= {"lost": lost, "overlaps": stats.overlaps(together), "failed": answers[0].figures["failed"]}
            self._add(contest.MIXED, name, figures)
