"""Each program of the README and of the page about kinds of locks runs."""
import importlib.util
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from servers import PATIENT_S, Servers


class Readme(unittest.TestCase):
    def test_its_programs_run(self):
        package = Path(__file__).resolve().parent.parent
        # The package may be a copy of that of the source tree.
        pages = [package / "README.md", Path(os.environ.get("REDLOCK_SOURCE", package.parents[1]), "docs/locks.md")]
        programs = [program for page in pages
                    for program in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"),
                                              re.DOTALL | re.MULTILINE)]
        self.assertGreaterEqual(len(programs), 4)
        servers = Servers(3)
        self.addCleanup(servers.stop)
        for program in programs:
            if "import gevent" in program and not importlib.util.find_spec("gevent"):
                continue  # test_greenlets says so
            with self.subTest(program=program):
                for port, node in zip((7001, 7002, 7003), servers.nodes):
                    self.assertIn(f"127.0.0.1:{port}", program)
                    program = program.replace(f"127.0.0.1:{port}", node)
                done = subprocess.run([sys.executable, "-X", "dev", "-c", program], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=PATIENT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("Error", done.stdout)


if __name__ == "__main__":
    unittest.main()
