# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Ranks go astray, and `sucl diagnose` says in one sentence who and how, from what they recorded.

    records_test.py SUCL PROGRAM FLAVOUR [TEST...]      FLAVOUR: of an MPI, or `local`: without any
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

SUCL, PROGRAM, FLAVOUR = sys.argv[1:4]
LAUNCHER = ["--launcher", "local"] if FLAVOUR == "local" else ["--mpi", FLAVOUR]
RANKS = 3
LIMIT = 200  # seconds; only a job that hangs takes so long
# Who executes collectives, by what the configuration has to say; of two nodes the last.
BACKENDS = {"plan": "", "mock": '[[rules]]\nbackend = "mock"\n', "nodes": "nodes.size = 2\n"}
if FLAVOUR != "local":
    BACKENDS = {"mpi": '[[rules]]\nbackend = "mpi"\n'}
FIRST = next(iter(BACKENDS))
without_mpi = unittest.skipIf(FLAVOUR != "local", "it is the same with every MPI")
LATE = r"^rank 1 \(process \d+ on \S+\) is late: ranks 0,2 wait in "
ALLREDUCE = r"allreduce of 100 fp32 with op sum, #4 of communicator 1"


class Records(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sucl_records_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SUCL_")}
        self.environment["XDG_CACHE_HOME"] = self.cache = os.path.join(self.folder, "cache")

    def sucl(self, *words):
        return subprocess.run([SUCL, *words], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT)

    def start(self, how, form="blocking", backend=FIRST, options=()):
        with open(os.path.join(self.folder, "sucl.toml"), "w") as file:
            file.write(BACKENDS[backend])
        words = [SUCL, "run", *LAUNCHER, "-n", str(RANKS), "--config", "sucl.toml", *options, "--",
                 PROGRAM, how, form]
        return subprocess.Popen(words, cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def records(self):
        return glob.glob(os.path.join(self.cache, "sucl", "records", "job-*.rank-*"))

    def diagnose(self):
        self.assertLessEqual(set(os.listdir(self.folder)), {"cache", "sucl.toml"})
        done = self.sucl("diagnose")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.count("\n"), 1, "one sentence")
        return done.stdout

    def check_at_the_end(self, pattern, *start, **more):
        """Of the files that ranks have written by themselves."""
        job = self.start(*start, **more)
        self.addCleanup(job.kill)
        text = job.communicate(timeout=LIMIT)[0]
        self.assertNotEqual(job.returncode, 0, text)
        self.assertTrue(self.records(), text)
        self.assertTrue(any(file in text for file in self.records()), text)
        self.assertRegex(self.diagnose(), pattern, text)

    def check_while_it_runs(self, pattern, *start, **more):
        """Ranks are not there at once: it is asked until all are where they stay."""
        job = self.start(*start, **more)
        said = ""
        try:
            while not re.search(pattern, said):
                self.assertIsNone(job.poll(), said)
                for name in self.records():
                    os.unlink(name)
                dumped = self.sucl("dump", str(job.pid))
                if dumped.returncode == 0 and len(self.records()) == RANKS:
                    said = self.diagnose()
        finally:
            for name in self.records():
                os.unlink(name)
            job.terminate()
            job.communicate(timeout=LIMIT)

    def test_stall(self):
        late = (LATE + ALLREDUCE + r", which rank 1 has not "
                r"called; its last call there was #3, allreduce of 100 fp32 with op sum\.$")
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                self.check_while_it_runs(late, "stall", backend=backend)
        if FLAVOUR == "local":
            with self.subTest(form="event"):
                self.check_while_it_runs(late, "stall", "event")

    @without_mpi
    def test_stopped(self):
        self.check_while_it_runs(LATE + ALLREDUCE, "stop")

    @without_mpi
    def test_mismatch(self):
        for backend in ("plan", "nodes"):
            with self.subTest(backend=backend):
                # A slow rank is told before it gets so far.
                self.check_at_the_end(
                    r"^call #4 of communicator 1 is not the same on all ranks: "
                    r"(?=.*\branks? (0|2|0,2) called allreduce of 100 fp32 with op sum\b)"
                    r"(?=.*\brank 1 called broadcast of 100 fp32 from rank 2\b)[^;]*\.$",
                    "mismatch", backend=backend, options=("--timeout", "100"))

    def test_kill(self):
        missing = (r"^rank 1 is missing: it has left no record, as a process that was killed, and "
                   r"ranks 0,2 wait in " + ALLREDUCE + r"\.$")
        for form in ("blocking", "event"):
            with self.subTest(form=form):
                self.check_at_the_end(missing, "kill", form, options=("--timeout", "100"))

    def test_crash(self):
        self.check_at_the_end(r"^rank 1 of the job was ended by signal 11 \(Segmentation fault\); "
                              r"ranks 0,2 wait in " + ALLREDUCE + r"\.$", "crash",
                              options=("--timeout", "100"))

    @without_mpi
    def test_timeout(self):
        self.check_at_the_end(LATE + ALLREDUCE, "late", options=("--timeout", "5"))

    @without_mpi
    def test_message(self):
        self.check_while_it_runs(
            r"^rank 1 has not issued the matching operation: rank 0 of communicator 1 waits in "
            r"recv of 7 fp32 from rank 1 with tag 3, and rank 1 waits in nothing\.$", "message")

    @without_mpi
    def test_interrupted(self):
        """A launcher that is told to end tells its ranks, which write what they were in."""
        pattern = LATE + ALLREDUCE
        self.check_while_it_runs(pattern, "stall")
        self.assertRegex(self.diagnose(), r"^rank 1 is missing: .* and ranks 0,2 wait in "
                         + ALLREDUCE)

    @without_mpi
    def test_wrong_files(self):
        with open(os.path.join(self.folder, "other"), "w") as file:
            file.write("words")
        done = self.sucl("diagnose", "other")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'other' is no record of a rank: it has 5 bytes", done.stderr)
        done = self.sucl("dump", str(os.getpid()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a rank whose memory can be read", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
