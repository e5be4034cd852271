"""Each public header alone, as cffi reads it: with REDLOCK_API defined empty."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

from cffi import FFI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import redlock_build  # noqa: E402


class Headers(unittest.TestCase):
    def test_cffi_reads_each_header(self):
        folder = subprocess.check_output(["pkg-config", "--variable=includedir", "redlock"], text=True).strip()
        headers = sorted(Path(folder, "redlock").glob("*.h"))
        self.assertGreaterEqual(len(headers), 6)
        for header in [*headers, Path(folder, "redlock/adapters/poll.h")]:
            with self.subTest(header=header.name):
                text = redlock_build.preprocess("-P", source=f"#include <{header.relative_to(folder)}>\n")
                self.assertNotIn("__attribute__", text)
                FFI().cdef(text)

    def test_the_binding_has_each_function_and_number(self):
        from redlock_client import _redlock
        self.assertTrue(hasattr(_redlock.lib, "redlock_client_acquire"))
        self.assertEqual(_redlock.lib.REDLOCK_NODES_MAX, 31)
        self.assertEqual(_redlock.lib.REDLOCK_TTL_MS_MAX, 2147483647)

    def test_the_binding_has_each_name_that_the_package_uses(self):
        from redlock_client import _redlock
        package = Path(_redlock.__file__).parent
        used = {name for source in package.glob("*.py")
                for name in re.findall(r"\blib\.(\w+)", source.read_text(encoding="utf-8"))}
        self.assertGreater(len(used), 100)
        self.assertEqual([name for name in sorted(used) if not hasattr(_redlock.lib, name)], [])


if __name__ == "__main__":
    unittest.main()
