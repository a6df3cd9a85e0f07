# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of `sucl trace` from outside."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import FLAVOUR, Case  # noqa: E402

NAMES = ("rank", "thread", "name", "issued", "posted", "all_posted", "done", "last", "communicator",
         "sequence", "bytes", "type", "op", "backend", "status")


def event(rank, name, sequence, posted, done, **more):
    """What the trace layer writes of an operation."""
    args = {"sequence": sequence, "kind": name, "type": "fp32", "op": "sum", "count": 2, "bytes": 8,
            "root": 0, "in_place": False, "backend": "plan", "communicator": 1,
            "status": "success", "issued_us": posted, "posted_us": posted, "done_us": done}
    return {"name": name, "cat": "collective", "ph": "X", "pid": rank, "tid": 1, "ts": posted,
            "dur": done - posted, "args": args | more}


class Pages(Case):
    def trace(self, rank, *events):
        meta = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
        return self.path(f"t.{rank}.json", json.dumps([meta, *events]))

    def view(self, *files):
        """The line that is printed, and what the page has."""
        said = self.sucl("trace", "view", *files, "-o", "page.html").stdout
        page = self.path("page.html").read_text()
        self.assertNotRegex(page, r'(?:src|href)\s*=|https?://|@import|url\(')
        found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        return said, json.loads(found[0])


class Trace(Pages):
    def test_waiting_and_path(self):
        """Rank 1 is late to the first call, rank 0 to the second one."""
        said, data = self.view(
            self.trace(0, event(0, "allreduce", 1, 1000, 1500), event(0, "barrier", 2, 2000, 2050)),
            self.trace(1, event(1, "allreduce", 1, 1400, 1500), event(1, "barrier", 2, 1600, 2050)))
        operations = [dict(zip(NAMES, o)) for o in data["operations"]]
        waits = {(o["rank"], o["name"]): (o["all_posted"] - o["posted"], o["last"])
                 for o in operations}
        self.assertEqual(waits, {(0, "allreduce"): (400, 1), (0, "barrier"): (0, 0),
                                 (1, "allreduce"): (0, 1), (1, "barrier"): (400, 0)})
        path = [(rank, start, end, operations[o]["name"] if o >= 0 else None)
                for rank, start, end, o in data["path"]]
        self.assertEqual(path, [(1, 0, 400, None), (0, 400, 500, "allreduce"),
                                (0, 500, 1000, None), (0, 1000, 1050, "barrier")])
        self.assertEqual(data["duration"], 1050)
        self.assertEqual(said, "page.html: critical path: of 1.05 ms 48 % are the program of rank "
                         "0, 38 % are the program of rank 1, 10 % are allreduce\n")

    def test_operations_that_overlap(self):
        """What is begun later and ends earlier does not stop the path."""
        _, data = self.view(
            self.trace(0, event(0, "allreduce", 1, 0, 900, issued_us=0),
                       event(0, "barrier", 2, 100, 300), event(0, "barrier", 3, 950, 951)))
        self.assertEqual([p[3] for p in data["path"]], [-1, 1, -1, 2])

    def test_replays_have_one_number(self):
        _, data = self.view(
            self.trace(0, event(0, "barrier", 1, 0, 20), event(0, "barrier", 1, 100, 130)),
            self.trace(1, event(1, "barrier", 1, 10, 20), event(1, "barrier", 1, 120, 130)))
        self.assertEqual([o[5] - o[4] for o in data["operations"]], [10, 20, 0, 0])

    def test_names_end_no_script(self):
        _, data = self.view(self.trace(0, event(0, "barrier", 1, 0, 2, backend="</script><b>")))
        self.assertEqual(dict(zip(NAMES, data["operations"][0]))["backend"], "</script><b>")

    def test_wrong_files(self):
        one = self.trace(0, event(0, "barrier", 1, 0, 2))
        for text, said in (("words", "'x' is no trace of a rank: "), ("[{}]", "is no trace"),
                           ("[]", "there is no operation")):
            self.path("x", text)
            self.assertIn(said, self.sucl("trace", "view", "x", code=1).stderr)
        self.assertIn("are both of rank 0", self.sucl("trace", "view", one, one, code=1).stderr)
        self.assertIn("Did you mean 'view'", self.sucl("trace", "viw", code=2).stderr)

    def test_of_a_job(self):
        self.sucl("bench", "allreduce", "-n", 2, "--mpi", FLAVOUR, "--sizes", "64", "--memory",
                  "device", SUCL_TRACE="t.%r.json")
        _, data = self.view("t.0.json", "t.1.json")
        self.assertEqual({o[0] for o in data["operations"]}, {0, 1})
        self.assertAlmostEqual(data["path"][-1][2], data["duration"], delta=0.01)
