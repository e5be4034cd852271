"""Makes redlock_client._redlock from the installed headers, which pkg-config finds.

cffi gets the declarations from the headers themselves: the preprocessor leaves out what cffi cannot
read (REDLOCK_API is defined empty, the C library's headers are empty). The compiler checks them.
"""
import os
import re
import shlex
import subprocess
import sysconfig
import tempfile

from cffi import FFI

SOURCE = """
#include <redlock/blocking.h>
#include <redlock/list.h>
#include <redlock/adapters/poll.h>
"""

CALLBACKS = """
extern "Python" {
    void redlock_py_log(redlock_log_level level, const char *line, void *data);
    void redlock_py_lost(redlock_lease *lease, const char *reason, void *data);
    void redlock_py_expiring(redlock_lease *lease, int64_t remaining_ms, void *data);
    void redlock_py_result(const redlock_result *result, void *data);
    void redlock_py_closed(void *data);
    void redlock_py_event(const redlock_election_event *event, void *data);
    void redlock_py_step(const redlock_telemetry_event *event, void *data);
    bool redlock_py_listed(const redlock_listed *lock, void *data);
    void redlock_py_list_done(const redlock_result *result, void *data);
    void redlock_py_leader(const redlock_leader *leader, void *data);
}
"""


def preprocess(*options: str, source: str = SOURCE) -> str:
    """The headers that `source` includes, preprocessed."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    flags = shlex.split(subprocess.check_output(["pkg-config", "--cflags-only-I", "redlock"], text=True))
    # pkg-config leaves out the compiler's own folders, which -nostdinc leaves out, too.
    include = subprocess.check_output(["pkg-config", "--variable=includedir", "redlock"], text=True).strip()
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool.h", "stddef.h", "stdint.h"):
            with open(os.path.join(empty, name), "w", encoding="ascii"):
                pass
        return subprocess.run(
            [*compiler, "-E", *options, "-nostdinc", "-DREDLOCK_API=", "-I", empty, *flags, "-I", include, "-"],
            input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


def constants() -> str:
    """Each macro that is a number."""
    number = re.compile(r"#define (REDLOCK_[A-Z0-9_]+) (-?\d+|INT64_C\(-?\d+\)|SIZE_MAX)")
    lines = preprocess("-dM").splitlines()
    return "".join(f"#define {match[1]} ...\n" for match in map(number.fullmatch, lines) if match)


builder = FFI()
builder.cdef(preprocess("-P") + constants() + CALLBACKS)
builder.set_source_pkgconfig("redlock_client._redlock", ["redlock"], SOURCE)

if __name__ == "__main__":
    builder.compile(verbose=True)
