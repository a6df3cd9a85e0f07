# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The traces of processes with several ranks: one for each rank, of what that rank has called.

    queues_trace_test.py SUCL PROGRAM      PROGRAM: ranks_queues
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

SUCL, PROGRAM = sys.argv[1:3]
LIMIT = 120  # seconds; only a job that hangs takes so long


class Traces(unittest.TestCase):
    def traces(self, processes, queues, tests):
        folder = tempfile.TemporaryDirectory(prefix="sucl_traces_")
        self.addCleanup(folder.cleanup)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SUCL_")}
        environment["SUCL_TRACE"] = os.path.join(folder.name, "%r.json")
        done = subprocess.run(
            [SUCL, "run", "--launcher", "local", "-n", str(processes), "--", PROGRAM, "--queues",
             str(queues), "--gtest_filter=" + tests],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = {}
        for name in glob.glob(os.path.join(folder.name, "*.json")):
            with open(name, encoding="utf-8") as file:
                found[os.path.basename(name)[:-len(".json")]] = json.load(file)
        return found

    def operations(self, events):
        """Collectives of the whole job, by their numbers."""
        return sorted((e["args"]["sequence"], e["name"], e["args"]["count"]) for e in events
                      if e["ph"] == "X" and e.get("cat") == "collective"
                      and e["args"]["communicator"] == 1)

    def check(self, processes, queues):
        found = self.traces(processes, queues, "*run_collectives_on_system_memory*")
        self.assertEqual(sorted(found), ["0", "1", "2", "3"])
        for rank, events in found.items():
            self.assertEqual({e["pid"] for e in events}, {int(rank)})
            names = {name for _, name, _ in self.operations(events)}
            self.assertLessEqual({"allreduce", "broadcast", "alltoall", "scan", "gather"}, names)
            self.assertEqual(self.operations(events), self.operations(found["0"]))

    def test_one_process(self):
        self.check(1, 4)

    def test_two_processes(self):
        self.check(2, 2)

    def test_communicators_of_ranks_and_of_processes(self):
        found = self.traces(2, 2, "*start_more_than_once*")
        beside = [name for name in found if name.startswith("1.process-")]
        self.assertEqual(sorted(found), ["0", "1", *beside, "2", "3"])
        self.assertEqual(len(beside), 1)
        for name, events in found.items():
            self.assertTrue(any(e["ph"] == "X" and e["name"] == "allreduce" for e in events), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
