# Which contender does what, on which nodes, in which order, how often: the whole schedule, made
# before anything runs. Pure.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

FLOOR = "floor"
FLOOR_THREADS = "floor_threads"  # the floor for threads that block; only in (b)
FLOOR_HANDOVER = "floor_handover"  # no contender; only in (d)
HIREDIS = "hiredis_libev"
ASYNC = "redlock_async"
BLOCKING = "redlock_blocking"
POLLING = "redlock_polling"  # redlock_async whose clients do not queue; only in (d)
TLS = "redlock_tls"  # redlock_async over TLS; only in (a) and (b)
FLOOR_TLS = "floor_tls"  # the floor over TLS; only in (a)
FLOOR_SEALED = "floor_sealed"  # the same, encrypted beforehand; only in (a)
SECURED = (TLS, FLOOR_TLS, FLOOR_SEALED)
OURS = (ASYNC, BLOCKING)
FAULTY = (FLOOR, *OURS)  # who meet every fault, each time right after healthy nodes
CORE = (FLOOR, HIREDIS, ASYNC, BLOCKING)
# Who take turns in (a): TLS right beside what it is compared with.
ALONE = (FLOOR_SEALED, FLOOR_TLS, FLOOR, HIREDIS, ASYNC, TLS, BLOCKING)
HANDOVER = "redlock_handover"
OWN = (*CORE, FLOOR_THREADS, HANDOVER, POLLING, *SECURED)  # all that are no peers

NODES = 5
CONCURRENCIES = (16, 64, 256, 1024, 4096)
THREADS = (1, 2, 4, 8, 16)
NODE_COUNTS = (1, 3, 5, 7, 9)
NODE_COUNT_WORKERS = 256
ROUND_TRIPS_MS = (1, 5, 50)
SLOW_US = 20_000
FAULTS_LINK_US = 2000
TTL_HOLD = 100_000  # leases
FAULTS = ("dead1", "dead2", "hung1", "hung2", "slow1", "slow2")
HEALTHY = "healthy"

WARM_UP = "warm-up"
TOOL = "tool"
LETTERS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", TOOL)
ALIASES = {"fencing": "i", "shared": "j"}

FENCED_WORKERS = 256
ALTERNATE = "alternate"  # plain and of another kind in turn, in one process
FAR = "alternate:far"  # the same over links of FENCED_LINK_US
FENCED_LINK_US = 1000
WITHOUT_TOKENS = "without"
WITH_TOKENS = "with"
READERS = 64
READS_PERCENT = 95
READERS_HOLD_US = 1000
READERS_RESOURCES = (1, 16, 256)
READERS_NODES = (1, NODES)  # beside peers
SHARED, EXCLUSIVE = "shared", "exclusive"
# Pattern, clients, µs of holding, µs from the first client's clock to the last one's.
HANDOVERS = {
    "wait": ("wait", 4, 1000, 1000),
    "brief": ("wait", 4, 100, 1000),
    "next": ("next", 2, 0, 1000),
    "level": ("next", 2, 0, 0),
}

# More than any contender does: 25 µs a cycle over five nodes is beyond the floor.
SAMPLES_A_MS = 40
SAMPLES_MAX = 200_000

# What a step takes beside its slice: the driver's own work, cycles that end late, and for a peer
# more of both.
STEP_SECONDS = 0.03
PEER_STEP_SECONDS = 0.15
CONNECT_SECONDS = 0.02
FAULT_SECONDS = 0.15
# Most peers wait for a node that is down; some must be killed and started again.
PEER_FAULT_SECONDS = 1.6


@dataclass(frozen=True)
class Step:
    """One command to one contender."""

    contender: str
    point: str  # on the workload's axis: "256", "dead1"
    command: str
    ms: int
    bound_seconds: float  # then it counts as hung, and is killed
    recorded: bool = True


@dataclass(frozen=True)
class Stage:
    """Nodes in one state, and the steps that meet it. Faults come after everybody is connected."""

    steps: tuple[Step, ...]
    nodes: int = NODES
    dead: tuple[int, ...] = ()
    hung: tuple[int, ...] = ()
    # Node and round trip in microseconds, for those behind the delaying proxy.
    delayed: tuple[tuple[int, int], ...] = ()

    @property
    def disturbs(self) -> bool:
        return bool(self.dead or self.hung or self.delayed)


@dataclass(frozen=True)
class Workload:
    letter: str
    title: str
    rounds: tuple[tuple[Stage, ...], ...]

    @property
    def seconds(self) -> float:
        return sum(stage_seconds(stage) for stages in self.rounds for stage in stages)


@dataclass(frozen=True)
class Size:
    """Of one workload: how many rounds, and how long a slice of one contender is."""

    rounds: int
    ms: int
    peer_rounds: int
    peer_ms: int


@dataclass(frozen=True)
class Mode:
    name: str
    bound_seconds: float  # of the whole run
    patience_seconds: float  # how long an answer may be overdue
    fault_patience_seconds: float  # the same while nodes are down
    warm_up_ms: int
    sizes: dict[str, Size]
    peer_concurrencies: tuple[int, ...]
    threads: tuple[int, ...]
    peer_faults: tuple[str, ...]
    hold_ms: int
    hold_ttl_ms: int
    churn_cycles: int
    tool_rounds: int
    lease_patience_seconds: float = field(default=120.0)


QUICK = Mode(
    name="quick",
    bound_seconds=175.0,
    patience_seconds=5.0,
    fault_patience_seconds=2.0,
    warm_up_ms=300,
    sizes={
        "a": Size(rounds=5, ms=200, peer_rounds=1, peer_ms=250),
        "b": Size(rounds=3, ms=200, peer_rounds=1, peer_ms=200),
        "c": Size(rounds=2, ms=120, peer_rounds=1, peer_ms=120),
        "e": Size(rounds=1, ms=0, peer_rounds=0, peer_ms=0),
        "f": Size(rounds=2, ms=150, peer_rounds=0, peer_ms=0),
        "g": Size(rounds=1, ms=200, peer_rounds=0, peer_ms=0),
        "h": Size(rounds=1, ms=100, peer_rounds=0, peer_ms=0),
        "i": Size(rounds=3, ms=250, peer_rounds=1, peer_ms=600),  # of peers: handovers and links
        "j": Size(rounds=2, ms=300, peer_rounds=0, peer_ms=0),
    },
    peer_concurrencies=(256, 1024),
    threads=(1, 4, 16),
    peer_faults=("dead1", "hung1"),
    hold_ms=6000,
    hold_ttl_ms=15_000,
    churn_cycles=100_000,
    tool_rounds=30,
    lease_patience_seconds=40.0,
)

FULL = Mode(
    name="full",
    bound_seconds=1650.0,
    patience_seconds=30.0,
    fault_patience_seconds=6.0,
    warm_up_ms=3000,
    sizes={
        "a": Size(rounds=24, ms=700, peer_rounds=4, peer_ms=1000),
        "b": Size(rounds=5, ms=1000, peer_rounds=3, peer_ms=800),
        "c": Size(rounds=15, ms=300, peer_rounds=1, peer_ms=500),
        "e": Size(rounds=1, ms=0, peer_rounds=0, peer_ms=0),
        "f": Size(rounds=4, ms=500, peer_rounds=1, peer_ms=500),
        "g": Size(rounds=3, ms=1200, peer_rounds=1, peer_ms=1200),
        "h": Size(rounds=5, ms=500, peer_rounds=0, peer_ms=0),
        "i": Size(rounds=11, ms=1000, peer_rounds=3, peer_ms=2000),
        "j": Size(rounds=5, ms=600, peer_rounds=1, peer_ms=800),
    },
    peer_concurrencies=CONCURRENCIES,
    threads=THREADS,
    peer_faults=FAULTS,
    hold_ms=45_000,
    hold_ttl_ms=30_000,
    churn_cycles=1_000_000,
    tool_rounds=200,
    lease_patience_seconds=150.0,
)


def healthy_point(fault: str) -> str:
    """The slice with five healthy nodes that comes right before a fault, which that fault is compared with."""
    return f"{HEALTHY}:{fault}"


def readers_point(mode: str, resources: int) -> str:
    return f"{mode}:{resources}"


def peers_point(nodes: int) -> str:
    return f"peers:{nodes}"


def stage_seconds(stage: Stage, *, peers: bool = True) -> float:
    """An estimate, for the plan; with peers or without."""
    steps = [step for step in stage.steps if peers or step.contender in OWN]
    seconds = len({step.contender for step in steps}) * CONNECT_SECONDS + (FAULT_SECONDS if stage.disturbs else 0.0)
    for step in steps:
        seconds += step.ms / 1000
        if step.contender in OWN:
            seconds += STEP_SECONDS
        else:
            seconds += PEER_STEP_SECONDS + (PEER_FAULT_SECONDS if stage.dead or stage.hung else 0.0)
    return seconds


class Planner:
    """Makes the workloads of a mode for these contenders."""

    def __init__(self, mode: Mode, peers: Sequence[str], without: Sequence[str] = ()) -> None:
        self.mode = mode
        self.peers = tuple(peers)
        self._without = frozenset(without)

    def workloads(self, letters: Sequence[str]) -> list[Workload]:
        makers = {
            "a": self._a,
            "b": self._b,
            "c": self._c,
            "e": self._e,
            "f": self._f,
            "g": self._g,
            "h": self._h,
            "i": self._i,
            "j": self._j,
        }
        made = [Workload(WARM_UP, "warm-up, not measured", (self._present(self._warm_up()),))]
        titles = {
            "a": "uncontended, one at a time",
            "b": "uncontended, many at a time",
            "c": "nodes dead, hung or slow",
            "e": "many leases held",
            "f": "number of nodes",
            "g": "distance of the nodes",
            "h": "nodes at a distance that are dead, hung or slow",
            "i": "fencing tokens",
            "j": "those who read",
        }
        for letter in letters:
            if letter in makers:
                size = self.mode.sizes[letter]
                rounds = tuple(self._present(makers[letter](number, size)) for number in range(size.rounds))
                made.append(Workload(letter, titles[letter], rounds))
        return made

    def _present(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """Without the contenders that do not start."""
        kept = [
            replace(stage, steps=tuple(step for step in stage.steps if step.contender not in self._without))
            for stage in stages
        ]
        return tuple(stage for stage in kept if stage.steps)

    def _warm_up(self) -> tuple[Stage, ...]:
        """Just-in-time compilers have done their work before they are measured."""
        ms = self.mode.warm_up_ms
        steps = [self._cycles(name, "", 16, ms, recorded=False) for name in (*CORE, *self.peers)]
        return (Stage(tuple(steps)),)

    def _a(self, number: int, size: Size) -> tuple[Stage, ...]:
        return (
            Stage(tuple(self._cycles(name, "1", 1, ms, samples=True) for name, ms in self._turn(ALONE, number, size))),
        )

    def _b(self, number: int, size: Size) -> tuple[Stage, ...]:
        steps: list[Step] = []
        for workers in CONCURRENCIES:
            for name, ms in self._turn((FLOOR, HIREDIS, ASYNC, TLS), number, size):
                if name in OWN or workers in self.mode.peer_concurrencies:
                    steps.append(self._cycles(name, str(workers), workers, ms))
        for threads in self.mode.threads:
            # The floor beside it, with as many outstanding as there are threads.
            for name in (FLOOR, BLOCKING, FLOOR_THREADS)[: 3 if threads == THREADS[-1] else 2]:
                steps.append(self._cycles(name, f"threads:{threads}", threads, size.ms))
        return (Stage(tuple(steps)),)

    def _c(self, number: int, size: Size) -> tuple[Stage, ...]:
        return self._faults(FAULTY, number, size, {})

    def _h(self, number: int, size: Size) -> tuple[Stage, ...]:
        """Nodes that are not on the client's own processors: those that are left do not get faster when one is gone."""
        return self._faults((FLOOR, ASYNC), number, size, dict.fromkeys(range(NODES), FAULTS_LINK_US))

    def _faults(self, core: tuple[str, ...], number: int, size: Size, links_us: dict[int, int]) -> tuple[Stage, ...]:
        stages: list[Stage] = []
        for position, fault in enumerate(FAULTS):
            everybody = self._turn(core, number, size)
            # Peers take long here: once in a round they meet healthy nodes.
            before = [one for one in everybody if one[0] in core or position == 0]
            kind, count = fault[:-1], int(fault[-1])
            nodes = tuple((number + position + i) % NODES for i in range(count))
            # A slow node is one behind a proxy, which takes processor time: healthy is the same
            # proxy without the delay.
            healthy_us = dict.fromkeys(nodes, 0) | links_us if kind == "slow" else links_us
            faulty_us = healthy_us | {node: links_us.get(node, 0) + SLOW_US for node in nodes if kind == "slow"}
            stages.append(
                Stage(
                    tuple(self._cycles(name, healthy_point(fault), 1, ms, samples=True) for name, ms in before),
                    delayed=tuple(healthy_us.items()),
                )
            )
            steps = tuple(
                replace(
                    self._cycles(name, fault, 1, ms, samples=True),
                    bound_seconds=ms / 1000 + self.mode.fault_patience_seconds,
                )
                for name, ms in everybody
                if name in core or fault in self.mode.peer_faults
            )
            stages.append(
                Stage(
                    steps,
                    dead=nodes if kind == "dead" else (),
                    hung=nodes if kind == "hung" else (),
                    delayed=tuple(faulty_us.items()),
                )
            )
        return tuple(stages)

    def _e(self, number: int, size: Size) -> tuple[Stage, ...]:
        mode = self.mode
        bound = mode.lease_patience_seconds
        hold = f"hold {TTL_HOLD} {mode.hold_ms} {mode.hold_ttl_ms}"
        churn = f"churn {mode.churn_cycles} 1024"
        return (
            Stage(
                (
                    # Taking the leases, giving them back, and the cycles: some 30,000 a second.
                    Step(ASYNC, "hold", hold, mode.hold_ms + 30 * TTL_HOLD // 1000, mode.hold_ms / 1000 + bound),
                    Step(ASYNC, "churn", churn, 30 * mode.churn_cycles // 1000, bound),
                )
            ),
        )

    def _f(self, number: int, size: Size) -> tuple[Stage, ...]:
        stages: list[Stage] = []
        for nodes in NODE_COUNTS:
            turn = self._turn((FLOOR, ASYNC), number, size)
            steps = [self._cycles(name, f"{nodes}:1", 1, ms, samples=True) for name, ms in turn]
            steps += [self._cycles(name, f"{nodes}:{NODE_COUNT_WORKERS}", NODE_COUNT_WORKERS, ms) for name, ms in turn]
            stages.append(Stage(tuple(steps), nodes=nodes))
        return tuple(stages)

    def _g(self, number: int, size: Size) -> tuple[Stage, ...]:
        stages: list[Stage] = []
        for round_trip_ms in ROUND_TRIPS_MS:
            turn = self._turn((FLOOR, *OURS), number, size)
            steps = tuple(self._cycles(name, str(round_trip_ms), 1, ms, samples=True) for name, ms in turn)
            stages.append(Stage(steps, delayed=tuple((node, round_trip_ms * 1000) for node in range(NODES))))
        return tuple(stages)

    def _i(self, number: int, size: Size) -> tuple[Stage, ...]:
        """What a fencing token costs, and how often it takes one round trip."""
        ms, long_ms = size.ms // 2, size.peer_ms
        steps = [
            self._alternate(ALTERNATE, "fenced", size.ms),
            self._cycles(ASYNC, WITHOUT_TOKENS, FENCED_WORKERS, ms),
            self._own(ASYNC, WITH_TOKENS, f"fenced {FENCED_WORKERS} {ms} 0", ms),
        ]
        if number < size.rounds - size.peer_rounds:
            return (Stage(tuple(steps)),)
        for point, (pattern, clients, hold_us, skew_us) in HANDOVERS.items():
            command = f"handover {pattern} {clients} {long_ms} {hold_us} {skew_us}"
            steps.append(self._own(HANDOVER, point, command, long_ms))
        links = tuple((node, FENCED_LINK_US) for node in range(NODES))
        return (Stage(tuple(steps)), Stage((self._alternate(FAR, "fenced", long_ms),), delayed=links))

    def _j(self, number: int, size: Size) -> tuple[Stage, ...]:
        """What a shared lock costs, and what it gives where many read and some write."""
        steps = [self._alternate(ALTERNATE, SHARED, size.ms)]
        for resources in READERS_RESOURCES:
            for mode in (EXCLUSIVE, SHARED):
                command = f"readers {READERS} {READS_PERCENT} {resources} {READERS_HOLD_US} {size.ms} {mode}"
                steps.append(self._own(ASYNC, readers_point(mode, resources), command, size.ms))
        links = tuple((node, FENCED_LINK_US) for node in range(NODES))
        stages = (Stage(tuple(steps)), Stage((self._alternate(FAR, SHARED, size.ms),), delayed=links))
        if number < size.rounds - size.peer_rounds:
            return stages
        return (*stages, *(self._beside_peers(nodes, size.peer_ms) for nodes in READERS_NODES))

    def _beside_peers(self, nodes: int, ms: int) -> Stage:
        """Peers that know no shared locks answer so, and are not asked again."""
        command = f"readers {READERS} {READS_PERCENT} 1 {READERS_HOLD_US} {ms} {SHARED}"
        names = (ASYNC, *self.peers)
        return Stage(tuple(self._own(name, peers_point(nodes), command, ms) for name in names), nodes=nodes)

    def _alternate(self, point: str, kind: str, ms: int) -> Step:
        return self._own(ASYNC, point, f"alternate {kind} {ms} {min(ms * SAMPLES_A_MS, SAMPLES_MAX)}", ms)

    def _own(self, name: str, point: str, command: str, ms: int) -> Step:
        return Step(name, point, command, ms, ms / 1000 + self.mode.patience_seconds)

    def _turn(self, core: Sequence[str], number: int, size: Size) -> list[tuple[str, int]]:
        """Who takes part in this round, in the order A B C, and for how long."""
        turn = [(name, size.ms) for name in core]
        # Peers come last: should they take longer than planned, our own rounds are there already.
        return turn + (
            [(name, size.peer_ms) for name in self.peers] if number >= size.rounds - size.peer_rounds else []
        )

    def _cycles(
        self, name: str, point: str, workers: int, ms: int, *, samples: bool = False, recorded: bool = True
    ) -> Step:
        count = min(ms * SAMPLES_A_MS, SAMPLES_MAX) if samples else 0
        command = f"cycles {workers} {ms} {count}"
        return Step(name, point, command, ms, ms / 1000 + self.mode.patience_seconds, recorded)
