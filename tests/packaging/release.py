# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Which commits scripts/release.sh takes for ones to be released: release.py SOURCE SCRATCH.

In a clone in SCRATCH, so in a version that is none. Exit status 77: SOURCE is no clone.
"""

import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, SCRATCH = Path(sys.argv.pop(1)), Path(sys.argv.pop(1))
CLONE = SCRATCH / "clone"
VERSION = "7.8.9"
SPACK = "packaging/spack/spack_repo/sucl/packages/sucl/package.py"


def git(*words):
    name = ("-c", "user.name=test", "-c", "user.email=test@sucl.invalid")
    subprocess.run(["git", "-C", CLONE, *name, *words], check=True, capture_output=True)


def edit(file, old, new):
    path = CLONE / file
    text, count = re.subn(old, new, path.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, (file, old)
    path.write_text(text)


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        SCRATCH.mkdir(parents=True)
        subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{SOURCE}", CLONE], check=True)
        shutil.copy(SOURCE / "scripts/release.sh", CLONE / "scripts/release.sh")
        edit("include/sucl/version.hpp", r'(SUCL_VERSION_STRING) ".*"', rf'\1 "{VERSION}"')
        edit("CHANGELOG.md", r"^## .*$", f"## {VERSION}, 2031-02-03")
        edit("CITATION.cff", r"^version: .*$", f"version: {VERSION}\ndate-released: 2031-02-03")
        edit("packaging/conda/recipe.yaml", r'^  version: ".*"$', f'  version: "{VERSION}"')
        edit(SPACK, r"^( *version\(.*)$", rf'\1\n    version("{VERSION}", tag="v{VERSION}")')
        git("add", "-A")
        git("commit", "-qm", "A version to be released")
        git("branch", "released")

    def setUp(self):
        git("reset", "-q", "--hard", "released")
        git("clean", "-qfd")

    def tearDown(self):
        subprocess.run(["git", "-C", CLONE, "tag", "-d", f"v{VERSION}"], capture_output=True)

    def check(self, *wrong):
        """What it says of a commit: that it can be released, or what is wrong."""
        done = subprocess.run([CLONE / "scripts/release.sh", "--check"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1 if wrong else 0, done.stdout + done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), len(wrong), done.stderr)
        for text, line in zip(wrong, lines):
            self.assertIn(text, line)
        if not wrong:
            self.assertIn(f"{VERSION} can be released from commit", done.stdout)

    def commit(self, file, old, new):
        edit(file, old, new)
        git("commit", "-qam", "Something else")

    def test_that_can_be_released(self):
        self.check()
        git("tag", f"v{VERSION}")
        self.check()

    def test_changes(self):
        (CLONE / "new.txt").write_text("x")
        self.check("the working tree has changes")

    def test_date(self):
        self.commit("CHANGELOG.md", "2031-02-03", "unreleased")
        self.check(f"no '## {VERSION}, YYYY-MM-DD'")
        self.commit("CHANGELOG.md", "unreleased", "2031-02-04")
        self.check("no 'date-released: 2031-02-04'")

    def test_versions(self):
        self.commit("include/sucl/version.hpp", VERSION, "7.8.10")
        self.check("CHANGELOG.md", "CITATION.cff", "recipe.yaml", "Spack")

    def test_tag(self):
        git("tag", f"v{VERSION}")
        self.commit("CITATION.cff", "SuCL contributors", "contributors")
        self.check("is at another commit")


if not (SOURCE / ".git").exists():
    print("skipped: the sources are no clone, of which a commit could be released")
    sys.exit(77)
unittest.main(argv=sys.argv[:1])
