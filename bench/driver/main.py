# The benchmark from its arguments to its last line. run.sh calls it, after building.
from __future__ import annotations

import argparse
import contextlib
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from . import contest, environment, load, peers, plots, ratios, report, tool
from .contenders import Contender, ContenderError, Program
from .contention import Contention
from .results import Results
from .schedule import (
    ALIASES,
    ASYNC,
    CORE,
    FLOOR,
    FLOOR_HANDOVER,
    FLOOR_SEALED,
    FLOOR_THREADS,
    FLOOR_TLS,
    FULL,
    HANDOVER,
    LETTERS,
    NODE_COUNTS,
    NODES,
    OWN,
    POLLING,
    QUICK,
    TLS,
    TOOL,
    Mode,
    Planner,
)
from .servers import Fleet, Proxy, ServerError, Tls, free_ports, make_certificate
from .workloads import Runner, progress

ROOT = Path(__file__).resolve().parents[2]
USAGE_STATUS = 64
FILES = 65_536  # open at a time, sockets included


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="driver", description="Called by bench/run.sh, whose --help tells what these mean."
    )
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--load-average", type=float, required=True, help="before anything was built")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-tls", dest="tls", action="store_false")
    parser.add_argument("--peers", default="all")
    parser.add_argument("--only", default=",".join(LETTERS))
    return parser.parse_args()


def usage(text: str) -> int:
    print(f"run.sh: {text}", file=sys.stderr)
    return USAGE_STATUS


def build_peers(names: list[str], build: Path, logs: Path) -> list[peers.Peer]:
    made = []
    for name in names:
        progress(f"building {name} …")
        peer = peers.build(ROOT / "bench" / "peers", name, build / "peers" / name, logs)
        made.append(peer)
        progress(f"  {name}: {peer.reason or 'built'}, {peer.build_seconds:.1f} s")
    return made


def introduce(programs: list[Program], logs: Path) -> tuple[dict[str, Contender], dict[str, str]]:
    """Those that start, and why the others do not."""
    ready, reasons = {}, {}
    for program in programs:
        contender = Contender(program, logs)
        try:
            contender.start()
            ready[program.name] = contender
        except (ContenderError, OSError) as error:
            reasons[program.name] = f"does not start: {error}"
            progress(f"{program.name} does not start: {error}")
    return ready, reasons


@contextlib.contextmanager
def signals_as_exits() -> Iterator[None]:
    """Whatever ends this run, what it started is ended too."""

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def leave(number: int, _: object) -> None:
        # A second one may not interrupt the cleaning up, which is short.
        for each in ends:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in ends:
        signal.signal(number, leave)
    yield


def raise_file_limit() -> None:
    """Some contenders have a connection for each worker and node."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = FILES if hard == resource.RLIM_INFINITY else min(hard, FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def own_programs(build: Path, letters: list[str], tls: bool) -> list[Program]:
    made = [Program(name, (str(build / "bench" / name),)) for name in CORE]
    if "b" in letters:
        made.append(Program(FLOOR_THREADS, (str(build / "bench" / FLOOR_THREADS),)))
    if "i" in letters:
        made.append(Program(HANDOVER, (str(build / "bench" / HANDOVER),)))
    if "d" in letters:
        made.append(Program(POLLING, (str(build / "bench" / ASYNC), "polling")))
    if tls and {"a", "b"} & set(letters):
        made.append(Program(TLS, (str(build / "bench" / ASYNC), "tls", str(certificate(build)))))
    if tls and "a" in letters:
        for name, word in ((FLOOR_TLS, "tls"), (FLOOR_SEALED, "sealed")):
            made.append(Program(name, (str(build / "bench" / FLOOR), word, str(certificate(build)))))
    return made


def certificate(build: Path) -> Path:
    return build / "bench" / "tls.pem"


def measure(
    mode: Mode,
    build: Path,
    contenders: dict[str, Contender],
    programs: dict[str, Program],
    letters: list[str],
    logs: Path,
    results: Results,
) -> None:
    """All workloads, on nodes that are started for them and end with them."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redlock-bench-")))
        without = [name for name in OWN if name not in contenders]
        workloads = Planner(mode, [name for name in contenders if name not in OWN], without).workloads(letters)
        others = [name for name in contenders if name not in OWN]
        plan = contest.PLANS[mode.name]
        contests = plan.seconds + len(others) * plan.peer_seconds() if "d" in letters else 0.0
        planned = sum(workload.seconds for workload in workloads) + contests
        progress(f"planned: {planned:.0f} s, of {mode.bound_seconds:.0f} s at most")
        nodes = max(NODE_COUNTS) if "f" in letters else NODES
        ports = free_ports(nodes + 2 * NODES)
        secured = ports[-NODES:] if TLS in contenders else []
        fleet = Fleet(ports[:nodes], folder, [Tls(port, certificate(build)) for port in secured])
        stack.callback(fleet.close)
        fleet.ensure(NODES)
        proxy = None
        if {"c", "d", "g", "h", "i", "j"} & set(letters):
            program = build / "tools" / "proxy" / "redlock-proxy"
            proxy = Proxy(program, ports[nodes:-NODES], ports[:NODES], logs / "proxy.log")
            stack.callback(proxy.close)
        end = began + mode.bound_seconds
        Runner(fleet, proxy, contenders, results, end - contests - time.monotonic()).run(workloads)
        if proxy and "d" in letters:
            for contender in contenders.values():
                contender.forget_connections()
            contests_end = min(end, time.monotonic() + plan.bound_seconds)
            least = Program(FLOOR_HANDOVER, (str(build / "bench" / FLOOR_HANDOVER),))
            every = {**programs, FLOOR_HANDOVER: least}
            contention = Contention(fleet, proxy, contenders, every, results, folder, logs, contests_end)
            with load.during("d", results.load):
                contention.run(plan, others)
        if TOOL in letters:
            progress("the tool, flock and redis-cli")
            fleet.ensure(NODES)
            addresses = tuple(server.address for server in fleet.servers[:NODES])
            with load.during(TOOL, results.load):
                tool.measure(
                    results, tool_program(build), addresses, folder, mode.tool_rounds, lambda: time.monotonic() < end
                )


def run(options: argparse.Namespace, letters: list[str], wanted: list[str]) -> int:
    build, output = options.build.resolve(), options.output.resolve()
    mode = QUICK if options.quick else FULL
    logs = output / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    machine = environment.gather(ROOT, options.load_average)
    for text in load.warnings({}, options.load_average):
        progress(text)
    made = build_peers(wanted, build, logs)
    programs = own_programs(build, letters, options.tls)
    programs += [peer.program for peer in made if peer.program]
    results, problems = Results(), []
    contenders, results.absent = introduce(programs, logs)
    load.rest("before", results.load)
    began = time.monotonic()
    try:
        if TLS in contenders:
            make_certificate(certificate(build))
        if ASYNC not in contenders:
            raise ServerError(f"{ASYNC} {results.absent[ASYNC]}")
        measure(mode, build, contenders, {program.name: program for program in programs}, letters, logs, results)
    except (ServerError, OSError) as error:
        # What was measured until then is worth a report.
        problems.append(f"the run broke off: {error}")
    finally:
        for contender in contenders.values():
            contender.close()
    seconds = time.monotonic() - began
    load.rest("after", results.load)
    about = {name: contender.about for name, contender in contenders.items() if contender.about}
    made = [
        peers.Peer(peer.name, None, peer.build_seconds, peer.reason or results.absent.get(peer.name)) for peer in made
    ]
    for log in logs.iterdir():
        if log.stat().st_size == 0:
            log.unlink()
    measured = report.Report(
        mode=mode.name,
        environment=machine,
        results=results,
        ratios=[],
        about=about,
        peers=made,
        plots={},
        problems=problems,
        warnings=load.warnings(results.load, options.load_average),
        seconds=seconds,
    )
    # First what cannot be had again, whatever the tables and plots make of it.
    report.write_json(measured, output)
    all_ratios = ratios.make(results)
    drawn, failed = plots.draw(results, output)
    measured = replace(measured, ratios=all_ratios, plots=drawn)
    report.write(measured, output)
    for problem in problems + failed:
        progress(f"run.sh: {problem}")
    print("\n".join(report.lines(measured, output)))
    return 1 if problems else 0


def tool_program(build: Path) -> Path:
    for place in ("tools/redlock/redlock", "redlock"):
        if (build / place).is_file():
            return build / place
    raise ServerError(f"the tool redlock was not built in {build}")


def main() -> int:
    options = arguments()
    letters = [ALIASES.get(letter, letter) for letter in options.only.split(",") if letter]
    unknown = [letter for letter in letters if letter not in LETTERS]
    if unknown or not letters:
        return usage(f"--only knows {','.join(LETTERS)}, not {','.join(unknown) or 'nothing'}")
    try:
        wanted = list(peers.chosen(options.peers, ROOT / "bench" / "peers"))
    except ValueError as error:
        return usage(str(error))
    if not shutil.which("redis-server"):
        return usage("redis-server is not here")
    raise_file_limit()
    with signals_as_exits():
        try:
            return run(options, letters, wanted)
        except (ServerError, OSError) as error:
            print(f"run.sh: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
