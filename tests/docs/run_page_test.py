# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Whether run_page.py finds what is wrong with a page: run_page_test.py SOURCE SCRATCH."""

import subprocess
import sys
import time
import unittest
from pathlib import Path

RUNNER = Path(__file__).with_name("run_page.py")
SOURCE, SCRATCH = Path(sys.argv.pop(1)), Path(sys.argv.pop(1))


def fenced(language, text):
    return f"```{language}\n{text}\n```\n\n"


class Pages(unittest.TestCase):
    def page(self, text, code=0):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        page = SCRATCH / "page.md"
        page.write_text(text)
        command = [sys.executable, "-B", RUNNER, page, SCRATCH, SOURCE, SCRATCH / "build",
                   SCRATCH / "run"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_files_and_commands(self):
        said = self.page("Write `a.py`:\n\n" + fenced("python", "print('one', 1)\nprint('end')") +
                         "<!-- page: in a.py before print('end') -->\n\n" +
                         fenced("python", "print('two')") +
                         "Run it:\n\n    export NAME=a.py\n\n    python3 \\\n      $NAME\n\n" +
                         fenced("text", "one ...\n\n  two\nend"))
        self.assertIn("page.md: 4 blocks", said)

    def test_what_is_not_printed(self):
        said = self.page("    echo one\n\n" + fenced("text", "two"), 1)
        self.assertRegex(said, r"page.md:1: it has not printed: two\n(.*\n)*one")

    def test_output_is_that_of_the_block(self):
        self.page("    echo one\n\nand\n\n    echo two\n\n" + fenced("text", "one"), 1)

    def test_a_command_that_fails(self):
        self.assertIn("'true' ended with status 1", self.page("    false\n    true\n", 1))
        self.assertIn("it ended with status 1", self.page("    false\n", 1))
        self.page("<!-- page: fails -->\n\n    false\n")
        self.assertIn("status 0", self.page("<!-- page: fails -->\n\n    true\n", 1))
        self.page("<!-- page: run false -->\n\n    true\n", 1)

    def test_until(self):
        text = "    echo x >>seen; wc -l <seen\n\n"
        self.page("<!-- page: until -->\n\n" + text + fenced("text", "3"))
        self.page(text + fenced("text", "3"), 1)

    def test_blocks_that_are_not_run(self):
        self.assertIn("neither a file nor commands", self.page(fenced("cpp", "int x;"), 1))
        self.page("<!-- page: read -->\n\n" + fenced("cpp", "int x;") + "    true\n")
        self.assertIn("no line of", self.page("    touch a\n\n<!-- page: in a after x -->\n\n" +
                                              fenced("cpp", "int x;"), 1))

    def test_commands_that_differ(self):
        self.page("<!-- page: as s/small/large/; /gpu/d -->\n\n    echo small\n    gpu --run\n\n" +
                  fenced("text", "large"))
        self.page("<!-- page: not run: no such program -->\n\n    gpu --run\n\nand\n\n    true\n")
        self.page("<!-- page: not run: -->\n\n    gpu --run\n", 1)

    def test_edits_of_several_lines(self):
        text = ("`a.py`:\n\n" + fenced("python", "print(1)\nprint(2)\nprint(3)") +
                "<!-- page: in a.py instead of (1) until {} -->\n\n" +
                fenced("python", "print(4)") +
                "Run it:\n\n    python3 a.py | xargs\n\n" + fenced("text", "4 3"))
        self.page(text.replace("{}", "(3)"))
        self.assertIn("has '(5)'", self.page(text.replace("{}", "(5)"), 1))

    def test_what_is_said_of_all_blocks(self):
        said = self.page("<!-- page: all listings read -->\n<!-- page: all in a clone -->\n\n" +
                         "# Page\n\n" + fenced("cpp", "int x;") +
                         "    test -L Makefile && test -d build\n")
        self.assertIn("1 blocks", said)
        self.assertFalse((SCRATCH / "run/home/Makefile").exists())

    def test_targets_of_make(self):
        self.page("    make help\n")
        self.page("    make no-such-target\n", 1)

    def test_jobs_end_with_the_page(self):
        self.page("    sleep 1000 &\n    echo $! >$HOME/job\n")
        job = (SCRATCH / "run/home/job").read_text().strip()
        stat = Path(f"/proc/{job}/stat")
        until = time.monotonic() + 60  # it has been told to end, and may not have come to that
        while stat.exists() and stat.read_text().split(")")[-1].split()[0] != "Z":
            self.assertLess(time.monotonic(), until, "the job goes on")
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
