# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Ranks that differ in calls for which none of them waits: each gets the error at the end.

    last_test.py SUCL PROGRAM FLAVOUR all|most|few       FLAVOUR: of an MPI, or `local`: without any
"""

import os
import re
import subprocess
import sys
import unittest

SUCL, PROGRAM, FLAVOUR, SCOPE = sys.argv[1:5]
LAUNCHER = ["--launcher", "local"] if FLAVOUR == "local" else ["--mpi", FLAVOUR]
SENDING = ("broadcast", "scatter")  # of these the root sends, and waits for no rank
RECEIVING = ("reduce", "gather")  # of these it receives
LATEST = 8  # further calls that may give no error where no rank waits
REPORTED_BY_WAITING = ("scatterv", "gatherv")  # ranks exchange counts first
OPERATIONS = SENDING + RECEIVING + REPORTED_BY_WAITING
HOWS = ("roots", "none", "more", "before")
FORMS = ("blocking", "event", "persistent", "dup", "ranks")
LIMIT = 300  # seconds; only a job that hangs takes so long

# A sender of Intel MPI's gatherv waits inside the library for a receiver that takes nothing: only
# SUCL_TIMEOUT ends that.
STUCK = ("impi", "gatherv", "none")

CASES = {
    "all": [(o, h, f, n, s) for o in OPERATIONS for h in HOWS for f in FORMS for n in (2, 3)
            for s in ({}, {"SUCL_NODE_SIZE": "1"})
            if not s or (f != "ranks" and (FLAVOUR, o, h) != STUCK)],
    "most": [(o, h, "blocking", 2, {}) for o in OPERATIONS for h in HOWS[:3]] +
            [("broadcast", "before", f, 3, {}) for f in FORMS] +
            [(o, "roots", "event", 2, {"SUCL_NODE_SIZE": "1"}) for o in ("broadcast", "reduce")] +
            [("reduce", "roots", "persistent", 3, {"SUCL_NODE_SIZE": "1"})],
    "few": [("broadcast", "before", "event", 2, {}), ("reduce", "more", "blocking", 3, {})],
}[SCOPE]


def called(operation, rank, root, count=10):
    """What the error says of one rank."""
    op = " with op sum" if operation == "reduce" else ""
    of = "from" if operation in SENDING else "to"
    return f"rank {rank} called {operation} of {count} fp32{op} {of} rank {root}"


def sentence(operation, how, ranks):
    """What the error says of the first two ranks that differ."""
    last, sends = ranks - 1, operation in SENDING
    roots = (0, 1) if sends else (1, 2 % ranks)
    number = 2 if how == "before" else 3
    if how in ("roots", "before"):
        both = ", ".join(called(operation, rank, roots[rank]) for rank in (0, 1))
        return f"operation {number}: {both}"
    if how == "none":
        root = 0 if sends else last
        who = called(operation, 0, root)
        if ranks > 2:
            who = who.replace("rank 0", f"ranks 0{',' if ranks == 3 else '-'}{last - 1}", 1)
        return f"operation 3: {who}, {called(operation, last, root, count=0)}"
    caller = 0 if sends else last
    shorter = [r for r in range(ranks) if r != caller]
    ended = (f"rank {shorter[0]} has" if ranks == 2 else
             f"ranks {shorter[0]},{shorter[1]} have") + " ended it after 2 operations, and "
    return ended + called(operation, caller, 0).replace("called ", "called operation 3: ", 1)


class Last(unittest.TestCase):
    def run_ranks(self, operation, how, form, ranks, settings):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SUCL_")}
        done = subprocess.run(
            [SUCL, "run", *LAUNCHER, "-n", str(ranks), "--", PROGRAM, operation, how, form],
            env={**environment, **settings}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LIMIT)
        self.text = done.stdout + done.stderr
        return done.returncode

    def test_each_rank_gets_the_error(self):
        for operation, how, form, ranks, settings in CASES:
            with self.subTest(operation=operation, how=how, form=form, ranks=ranks, **settings):
                status = self.run_ranks(operation, how, form, ranks, settings)
                self.assertNotEqual(status, 0, self.text)
                # Between nodes MPI may find first that more arrives than a rank takes.
                codes = "mismatch|invalid_count" if settings and how == "none" else "mismatch"
                self.assertRegex(self.text, rf"\[({codes})")
                if operation in REPORTED_BY_WAITING or settings:
                    continue  # on some ranks at once
                told = re.findall(r"^sucl\[(\d)\] error runtime: .*not called the same: (.*)$",
                                  self.text, re.MULTILINE)
                self.assertEqual(sorted(int(r) for r, _ in told), list(range(ranks)), self.text)
                members = 2 * ranks if form == "ranks" else ranks
                if form != "ranks":
                    for _, text in told:
                        self.assertIn(sentence(operation, how, members), text)

    def test_each_rank_is_told_soon_where_each_takes_itself_for_the_root(self):
        for operation in SENDING + RECEIVING:
            for form in FORMS if SCOPE != "few" else ("blocking", "event"):
                for ranks in (2, 3) if SCOPE == "all" else (2,):
                    with self.subTest(operation=operation, form=form, ranks=ranks):
                        self.run_ranks(operation, "each", form, ranks, {})
                        members = 2 * ranks if form == "ranks" else ranks
                        told = re.findall(r"call (\d+) told rank (\d+): (.*)", self.text)
                        self.assertEqual(sorted(int(r) for _, r, _ in told), list(range(members)),
                                         self.text)
                        for call, _, text in told:
                            self.assertLessEqual(int(call), 3 + LATEST, self.text)
                            self.assertIn("[mismatch", text)
                            self.assertIn("rank 0 called " + operation, text)
                        self.assertNotIn("has not asked", self.text)  # each call has thrown it

    def test_late_ranks_get_the_error_after_the_others_have_ended(self):
        for settings in {}, {"SUCL_NODE_SIZE": "1"}:
            with self.subTest(**settings):
                status = self.run_ranks("reduce", "late", "blocking", 3, settings)
                self.assertNotEqual(status, 0, self.text)
                self.assertRegex(self.text, r"all other ranks have ended communicator 1, and "
                                 r"rank 1 waits for them in operation 3: reduce|"
                                 r"ranks 0,2 called broadcast .*, rank 1 called reduce")

    def test_a_rank_that_waits_for_none_gets_the_error_after_the_others_have_ended(self):
        for operation in SENDING + RECEIVING if SCOPE == "all" else ("broadcast",):
            for ranks in (2,) if SCOPE == "few" else (2, 3):
                with self.subTest(operation=operation, ranks=ranks):
                    status = self.run_ranks(operation, "behind", "blocking", ranks, {})
                    self.assertNotEqual(status, 0, self.text)
                    self.assertRegex(
                        self.text, rf"sucl\[{ranks - 1}\] error runtime: .*(not called the same: |"
                        r"the others have ended before).*\[mismatch")

    def test_right_programs_end_well(self):
        for form in FORMS if SCOPE != "few" else ("event",):
            with self.subTest(form=form):
                self.assertEqual(self.run_ranks("broadcast", "same", form, 2, {}), 0, self.text)
                self.assertNotIn("mismatch", self.text)

    def test_slow_ranks_get_what_the_others_have_left(self):
        for form in "blocking", "event":
            for settings in {}, {"SUCL_NODE_SIZE": "1"}:
                with self.subTest(form=form, **settings):
                    status = self.run_ranks("broadcast", "slow", form, 3, settings)
                    self.assertEqual(status, 0, self.text)
                    self.assertNotIn("mismatch", self.text)

    def test_who_leaves_by_an_exception_has_a_reason_of_its_own(self):
        self.assertNotEqual(self.run_ranks("broadcast", "caught", "event", 2, {}), 0)
        self.assertIn("the last rank's own", self.text)
        self.assertNotIn("mismatch", self.text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
