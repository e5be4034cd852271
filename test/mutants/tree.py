"""A private copy of the tree with a build directory of its own, and the tests of it in stages."""

import dataclasses
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

MEMORY_MAX = 4 << 30  # a mutant may ask for memory without end
# Without -g lines move no code.
CONFIGURE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O2 -g0 -w", "-DREDLOCK_WERROR=OFF",
             "-DREDLOCK_CHAOS=OFF", "-DREDLOCK_BENCH=OFF", "-DREDLOCK_LTO=OFF",
             "-DREDLOCK_PLANTED_MISFIT=WARNING"]


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: dict
    folder: str
    skip_code: int
    targets: list
    took_s: float = 0.0
    digests: tuple = ()


class Failure(Exception):
    pass


def run(command, timeout_s=None, memory_max=MEMORY_MAX, **more):
    """Returns the exit status, or None where the time was over: all of its process group is ended then."""
    def limit():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (memory_max, memory_max))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=limit, **more)
    try:
        return process.wait(timeout_s)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def digest(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


class Tree:
    def __init__(self, source, work, sanitize=""):
        self.source = pathlib.Path(source).resolve()
        self.copy = pathlib.Path(work).resolve() / "tree"
        self.build = pathlib.Path(work).resolve() / ("build-sanitize" if sanitize else "build")
        self.sanitize = sanitize
        self.log = pathlib.Path(work).resolve() / "log"
        self.objects = {}

    def _files(self):
        """What git knows or would add; in a release tarball every file that was not built."""
        git = ["git", "-C", self.source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, capture_output=True, check=False)
        if listed.returncode == 0 and listed.stdout:
            names = listed.stdout.decode().split("\0")[:-1]
        else:
            names = [str(p.relative_to(self.source)) for p in self.source.rglob("*")
                     if not p.relative_to(self.source).parts[0].startswith("build")]
        return [n for n in names if (self.source / n).is_file()]

    def refresh(self):
        """Makes the copy equal to the tree. What is equal keeps its time: little is built again."""
        names = self._files()
        for name in names:
            old, new = self.copy / name, self.source / name
            if not old.is_file() or old.read_bytes() != new.read_bytes():
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(new, old)
            shutil.copymode(new, old)
        kept = {self.copy / name for name in names}
        for path in list(self.copy.rglob("*")):
            if path.is_file() and path not in kept:
                path.unlink()

    def read(self, file):
        return (self.copy / file).read_text(encoding="utf-8")

    def write(self, file, text):
        (self.copy / file).write_text(text, encoding="utf-8")

    def _logged(self, command, timeout_s=None):
        with open(self.log, "w", encoding="utf-8") as log:
            return run(command, timeout_s, stdout=log, stderr=subprocess.STDOUT)

    def _must(self, what, command):
        if self._logged(command) != 0:
            raise Failure(f"{what} failed:\n{self.log.read_text(encoding='utf-8', errors='replace')[-4000:]}")

    def prepare(self):
        self._must("configuring the copy", ["cmake", "-S", str(self.copy), "-B", str(self.build), *CONFIGURE,
                                            f"-DREDLOCK_SANITIZE={self.sanitize}"])
        self._must("building the copy", ["cmake", "--build", str(self.build)])
        self.objects = {path: digest(path) for path in self.build.rglob("*.o")}

    def tests(self):
        listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, capture_output=True, text=True,
                                check=False)
        if listed.returncode != 0:
            raise Failure(f"ctest lists no tests: {listed.stderr}")
        for test in json.loads(listed.stdout)["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
            command = test.get("command", [])
            if command:
                yield properties.get("LABELS", []), Test(
                    test["name"], command, environment, properties.get("WORKING_DIRECTORY", str(self.build)),
                    properties.get("SKIP_RETURN_CODE", -1), self._targets([*command, *environment.values()]))

    def _targets(self, words):
        built = [pathlib.Path(w) for w in words if w.startswith(f"{self.build}/")]
        return [str(p.relative_to(self.build)) for p in built if p.is_file()]

    def measure(self, test):
        """Runs a test of the tree as it is, which must pass. Returns whether it can run here."""
        status = None
        for _ in range(2):
            begun = time.monotonic()
            status = self._run(test, 600)
            if status in (0, test.skip_code):
                break
        test.took_s = time.monotonic() - begun
        test.digests = tuple(digest(self.build / t) for t in test.targets)
        if status == test.skip_code:
            return False
        if status != 0:
            raise Failure(f"{test.name} fails without a mutant (see {self.log})")
        return True

    def _run(self, test, timeout_s):
        # A sanitizer takes terabytes of addresses, and has limits of its own.
        memory_max = resource.RLIM_INFINITY if self.sanitize else MEMORY_MAX
        with open(self.log, "w", encoding="utf-8") as log:
            return run(test.command, timeout_s, memory_max, cwd=test.folder, env={**os.environ, **test.environment},
                       stdout=log, stderr=subprocess.STDOUT)

    def build_for(self, tests):
        """Whether it compiles."""
        targets = sorted({t for test in tests for t in test.targets})
        return not targets or self._logged(["cmake", "--build", str(self.build), "--target", *targets]) == 0

    def fails(self, test):
        """Whether the tree as it is now fails the test, twice: a busy machine is no reason. None: the
        test cannot notice, for its programs are the same, byte for byte."""
        if test.targets and test.digests == tuple(digest(self.build / t) for t in test.targets):
            return None
        for _ in range(2):
            status = self._run(test, 10 + 20 * test.took_s)
            if status in (0, test.skip_code):
                return False
            if status is None:
                return True
        return True

    def is_same_code(self, file):
        """Whether the compiler makes the same of it as of the original."""
        name = pathlib.Path(file).name + ".o"
        return all(digest(path) == known for path, known in self.objects.items() if path.name == name)
