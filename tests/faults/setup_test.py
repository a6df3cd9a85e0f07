# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Ranks that die, stop, throw or cannot start while the others wait for them in set-up.

    setup_test.py SUCL PROGRAM FLAVOUR all|most|few      FLAVOUR: of an MPI, or `local`: without any

most: every step and setting, but a stopped rank, for which all wait until the timeout, only in the
first step and at the end. few: one of each sort that differs by MPI.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

SUCL, PROGRAM, FLAVOUR, SCOPE = sys.argv[1:5]
LAUNCHER = ["--launcher", "local"] if FLAVOUR == "local" else ["--mpi", FLAVOUR]
STEPS = ("world", "allocate", "dup", "split", "compile", "operation")
WRONG = (("SUCL_TUNING_TABLE", "/nonexist"), ("SUCL_STAGING_DEPTH", "STAGING"),
         ("SUCL_CONFIG", "/nonexist"), ("SUCL_MPI_MODULE", "/nonexist"))
KILLED, STOPPED, START, END, KEYS, UNWATCHED = {
    "all": (STEPS, STEPS, ("kill", "stop"), ("kill", "stop"), WRONG, WRONG),
    "most": (STEPS, ("world",), ("kill",), ("kill", "stop"), WRONG, WRONG[2:]),
    "few": (("world",), ("world",), (), ("kill",), WRONG[3:], ()),
}[SCOPE]
RANKS = 3
VICTIM = RANKS - 1
LIMIT = 300  # seconds; only a job that hangs takes so long
# Of the watchdog, in seconds: a death is seen without it. It alone ends the wait for a rank that is
# stopped or has not arrived, so it is longer than ranks come apart on a busy machine.
TIMEOUT = {"kill": "30", "stop": "5"}


class Setup(unittest.TestCase):
    def run_ranks(self, step, how, *options, waiting=True):
        """The launcher ends all ranks with the first that fails. `waiting`: none does before all
        have printed what they have been told."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SUCL_")}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [SUCL, "run", *LAUNCHER, "-n", str(RANKS), *options, "--", PROGRAM, step, how,
                 *([folder] if waiting else [])],
                env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=LIMIT)
        self.text = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0, self.text)

    def check_reported(self, pattern, by_exception=True):
        """Every survivor has an error that names the victim, and no other rank."""
        if by_exception:
            told = re.findall(r"^rank (\d) told: (.*)$", self.text, re.MULTILINE)
        else:
            told = re.findall(r"^sucl\[([\d-])\] error (?:setup|runtime): (.*)$", self.text,
                              re.MULTILINE)
        ranks = {rank for rank, _ in told} - {str(VICTIM)}
        if by_exception:
            self.assertEqual(ranks, {str(r) for r in range(VICTIM)}, self.text)
        self.assertTrue(told, self.text)
        for rank, text in told:
            if rank == str(VICTIM):
                continue
            self.assertRegex(text, pattern)
            named = re.sub(r"\[\w+, rank \d[^]]*\]", "", text)
            self.assertEqual(set(re.findall(r"rank (\d)", named)), {str(VICTIM)}, self.text)

    def test_killed_and_stopped(self):
        for how, words, steps in (("kill", "died", KILLED), ("stop", "stopped", STOPPED)):
            for step in steps:
                with self.subTest(step=step, how=how):
                    self.run_ranks(step, how, "--timeout", TIMEOUT[how])
                    self.check_reported(f"rank {VICTIM} .*{words}")

    def test_at_the_start(self):
        for how in START:
            with self.subTest(how=how):
                self.run_ranks("start", how, "--timeout", TIMEOUT["stop"])
                # Without MPI there is no library below that cannot be called back, and `sucl run`
                # sees the end of a rank.
                late = f"rank {VICTIM} has not arrived"
                if FLAVOUR == "local" and how == "kill":
                    late = rf"rank {VICTIM} was ended by signal 9.*\[peer_lost"
                self.check_reported(late, by_exception=FLAVOUR == "local")

    def test_at_the_end(self):
        for how in END:
            with self.subTest(how=how):
                self.run_ranks("end", how, "--timeout", TIMEOUT[how])
                words = {"kill": "died", "stop": "stopped"}[how]
                self.check_reported(f"rank {VICTIM} .*{words}", by_exception=False)

    def test_one_rank_cannot_start(self):
        for key, words in KEYS:
            if FLAVOUR == "local" and key == "SUCL_MPI_MODULE":
                continue  # it is not loaded
            for options in ((), ("--timeout", "20")):
                if not options and (key, words) not in UNWATCHED:
                    continue
                with self.subTest(key=key, options=options):
                    self.run_ranks(key, "wrong", *options, waiting=bool(options))
                    if options:
                        self.check_reported(f"rank {VICTIM} cannot start: .*{words}")
                        self.assertRegex(self.text, f"rank {VICTIM} told: .*{words}")
                    else:  # the others may wait in MPI_Init until the launcher ends them
                        self.assertRegex(self.text, rf"rank \d told: .*{words}")

    def test_an_exception_is_no_operation_that_was_given_up(self):
        self.run_ranks("operation", "throw", "--timeout", "20")
        self.check_reported(f"rank {VICTIM} has ended its runtime: destroyed during")
        self.assertNotIn("an operation was given up", self.text.split("told")[0])
        self.assertIn("the victim: the victim's own", self.text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
