#!/usr/bin/env python3
"""Changes one place of the sources at a time and runs the tests. A change that no test notices
shows a gap in them."""

import argparse
import collections
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import explained  # noqa: E402
import lua  # noqa: E402
import operators  # noqa: E402
import tree  # noqa: E402

# What is changed unless files are given; patterns, from the top of the tree.
FILES = ["src/core/*.c", "src/group/*.c", "src/server/traffic.c", "src/server/requests.c", "src/server/connection.[ch]",
         "src/wire/scripts/*.lua", "src/wire/scripts/parts/*.lua"]
# The quickest first: a mutant that one stage kills does not reach the next.
STAGES = ["core", "unit", "scripts", "sim", "integration"]
# Against a real server: only it runs Lua.
SCRIPTS = ["test_scripts", "test_scripts_announced", "test_scripts_left", "test_scripts_queue", "test_scripts_refused",
           "test_scripts_list", "test_scripts_dead", "test_list", "sim_conformance"]
INTEGRATION = ["test_lease", "test_lifecycle", "test_faults", "test_heal", "test_clock_guard", "test_restart_guard",
               "test_late"]
HERE = pathlib.Path(__file__).resolve().parent


def read_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""Each mutant is one small change: a comparison, a condition, a constant, a statement that is left out.
It is built in a private copy of the tree, and the tests run in stages until one fails. Then the mutant
is killed. So is one that hangs. What does not compile does not count, nor does a mutant of which the
compiler makes the same code. Assertions and planted bugs are not changed.

examples:
  mutants.py --list src/core/debt.c       every mutant of one file, and runs nothing
  mutants.py --seed 1 --count 300         a sample that is the same each time
  mutants.py --only src/core/debt.c:42    the mutants of one line

exit status: 0 if every survivor is explained in explained.txt, 1 if not, 2 if nothing could be run""")
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"what to change (default: {' '.join(FILES)})")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--count", type=int, help="so many mutants, drawn at random (default: all)")
    parser.add_argument("--only", metavar="FILE:LINE", action="append", default=[],
                        help="only mutants of this line; may be repeated")
    parser.add_argument("--stages", default="core,unit,scripts,sim", metavar="NAMES",
                        help=f"of {','.join(STAGES)} (default: core,unit,scripts,sim)")
    parser.add_argument("--schedules", type=int, default=3000,
                        help="of the simulation, for each mutant (default: 3000)")
    parser.add_argument("--sanitize", default="", metavar="LIST",
                        help="build with sanitizers, as in -fsanitize=: finds mutants that only spoil memory")
    parser.add_argument("--tree", default=HERE.parent.parent, type=pathlib.Path,
                        help="the top of the sources (default: these)")
    parser.add_argument("--work", type=pathlib.Path, help="where the copy goes (default: build/mutants in the tree)")
    parser.add_argument("--explained", type=pathlib.Path, default=HERE / "explained.txt", help="survivors with reasons")
    arguments = parser.parse_args()
    arguments.work = arguments.work or arguments.tree / "build" / "mutants"
    for stage in arguments.stages.split(","):
        if stage not in STAGES:
            parser.error(f"there is no stage '{stage}'; there are {', '.join(STAGES)}")
    return arguments


def find_files(top, given):
    files = []
    for pattern in given or FILES:
        found = sorted(str(p.relative_to(top)) for p in top.glob(pattern))
        if not found:
            raise tree.Failure(f"no file in {top} is named {pattern}")
        files += [f for f in found if f not in files]
    return files


def find_mutants(arguments):
    """All mutants of the files, and those of them that are asked for."""
    given = arguments.files or [only.rpartition(":")[0] for only in arguments.only]
    files = find_files(arguments.tree, given)
    found = []
    for file in files:
        language = lua if file.endswith(".lua") else operators
        found += language.mutants(file, (arguments.tree / file).read_text(encoding="utf-8"))
    chosen = found
    if arguments.only:
        chosen = [m for m in found if f"{m.file}:{m.line}" in arguments.only]
    if arguments.count is not None and arguments.count < len(chosen):
        drawn = set(random.Random(arguments.seed).sample(range(len(chosen)), arguments.count))
        chosen = [m for i, m in enumerate(chosen) if i in drawn]
    return files, found, chosen


def simulations(tests, schedules):
    """The simulation as the tests run it, and with guards in every schedule, both for less time."""
    for _, test in tests:
        if test.name.startswith("sim_safety"):
            plain = [test.command[0], "--schedules", str(schedules), "--jobs", "2"]
            yield tree.Test("sim", plain, {}, test.folder, -1, test.targets)
            yield tree.Test("sim_guarded", [*plain, "--control", "guarded"], {}, test.folder, -1, test.targets)


def find_stages(copy, arguments):
    tests = list(copy.tests())
    stages = []
    for name in STAGES:
        if name not in arguments.stages.split(","):
            continue
        if name == "sim":
            wanted = list(simulations(tests, arguments.schedules))
        elif name in ("integration", "scripts"):
            names = INTEGRATION if name == "integration" else SCRIPTS
            wanted = [test for _, test in tests if test.name in names]
        else:
            wanted = [test for labels, test in tests if name in labels and "lint" not in labels and test.targets]
        if name == "unit" and "core" in arguments.stages.split(","):
            core = {test.name for labels, test in tests if "core" in labels}
            wanted = [test for test in wanted if test.name not in core]
        stages.append((name, wanted))
    return stages


def measure(copy, stages):
    able = []
    for name, tests in stages:
        tests = [test for test in tests if copy.measure(test)]
        if tests:
            able.append((name, sorted(tests, key=lambda test: test.took_s)))
    if not able:
        raise tree.Failure("no test can run")
    return able


def judge(copy, stages, mutant):
    """Returns how it ended, and where."""
    noticed = False
    for name, tests in stages:
        if mutant.file.endswith(".lua") != (name == "scripts") and name != "integration":
            continue
        if not copy.build_for(tests):
            return "broken", ""
        for test in tests:
            failed = copy.fails(test)
            noticed = noticed or failed is not None
            if failed:
                return name, test.name
    if not noticed and copy.is_same_code(mutant.file):
        return "same", ""
    return "survived", ""


def describe(mutant):
    where = f" in {mutant.function}()" if mutant.function else ""
    return f"{mutant.file}:{mutant.line}{where}, {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}"


def run_all(copy, stages, chosen):
    """Returns the count of each end, and the survivors."""
    ends, survivors = collections.Counter(), []
    for number, mutant in enumerate(chosen, 1):
        original = copy.read(mutant.file)
        begun = time.monotonic()
        try:
            copy.write(mutant.file, mutant.apply(original))
            end, by = judge(copy, stages, mutant)
        finally:
            copy.write(mutant.file, original)
        ends[end] += 1
        words = {"broken": "does not compile", "same": "same code", "survived": "SURVIVED"}.get(end, f"killed by {by}")
        print(f"[{number}/{len(chosen)}] {mutant.file}:{mutant.line} {mutant.operator}: {words}, "
              f"{time.monotonic() - begun:.1f} s", flush=True)
        if end == "survived":
            print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)
            survivors.append(mutant)
    return ends, survivors


def report(ends, survivors, reasons, stages):
    unexplained = [m for m in survivors if m.key() not in reasons]
    print()
    for mutant in survivors:
        if mutant.key() in reasons:
            print(f"explained survivor: {describe(mutant)}\n  why: {reasons[mutant.key()]}")
    for mutant in unexplained:
        print(f"SURVIVOR: {describe(mutant)}")
    counted = sum(ends.values()) - ends["broken"] - ends["same"]
    killed = ", ".join(f"{ends[name]} by {name}" for name, _ in stages)
    print(f"{counted} mutants: {counted - ends['survived']} killed ({killed}), "
          f"{len(survivors) - len(unexplained)} survivors explained, {len(unexplained)} not; "
          f"besides, {ends['broken']} do not compile and {ends['same']} are the same code")
    return 1 if unexplained else 0


def main():
    arguments = read_arguments()
    files, found, chosen = find_mutants(arguments)
    reasons = explained.read(arguments.explained)
    keys = {m.key() for m in found}
    for key in reasons:
        if key[0] in files and key not in keys:
            print(f"explains no mutant any more: {key[0]} in {key[1] or 'no function'}\n  - {key[2]}\n  + {key[3]}")
    if arguments.list:
        for mutant in chosen:
            print(describe(mutant))
        print(f"{len(chosen)} mutants")
        return 0
    if not chosen:
        raise tree.Failure("there is no such mutant")
    copy = tree.Tree(arguments.tree, arguments.work, arguments.sanitize)
    copy.refresh()
    copy.prepare()
    stages = measure(copy, find_stages(copy, arguments))
    ends, survivors = run_all(copy, stages, chosen)
    return report(ends, survivors, reasons, stages)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tree.Failure as error:
        print(f"mutants.py: {error}", file=sys.stderr)
        sys.exit(2)
