# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What the tests of the program `sucl` have in common.

Variables: SUCL_TEST_PROGRAM, the program; SUCL_TEST_FLAVOURS, the MPIs of this build, the default
one first; SUCL_TEST_FLAVOUR, the one to test.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = os.environ.get("SUCL_TEST_PROGRAM", "sucl")
FLAVOURS = os.environ.get("SUCL_TEST_FLAVOURS", "openmpi").split(",")
FLAVOUR = os.environ.get("SUCL_TEST_FLAVOUR", FLAVOURS[0])
LIMIT = 240  # seconds for one call


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sucl_cli_")
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        """A file in the test's own folder, which is the working directory of the calls."""
        path = Path(self.folder.name) / name
        if text is not None:
            path.write_text(text)
        return path

    def sucl(self, *arguments, code=0, **variables):
        """Runs the program, checks its exit code, and returns what it wrote. A variable that is
        None is not set."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SUCL_")} | {"SUCL_RECORD_DIR": "none"} | variables
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder.name,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done
