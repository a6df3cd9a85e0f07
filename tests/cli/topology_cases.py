# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of `sucl info --topology` from outside."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import FLAVOUR, Case  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


class Pictures(Case):
    def topology(self, ranks, *arguments, launcher="local", code=0, **variables):
        start = ["--launcher", "local"] if launcher == "local" else ["--mpi", launcher]
        return self.sucl("run", "-n", ranks, *start, "--", "sucl", "info", "--topology",
                         *arguments, code=code, **variables)

    def words(self, name):
        """All text of a picture, and of what is shown when one points at a part of it."""
        root = ElementTree.parse(self.path(name)).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        for size in ("width", "height"):
            self.assertGreater(float(root.get(size)), 100)
        return [e.text for e in root.iter() if e.tag in (SVG + "text", SVG + "title")]


class Topology(Pictures):
    """Who the ranks are, what is between them and who executes operations; not how fast."""

    def test_ranks_of_one_island(self):
        done = self.topology(3, "--svg", "t.svg")
        self.assertEqual(done.stdout.count("3 ranks on 1 node, 1 island"), 1, "one rank prints")
        self.assertIn("island 0: memory that the host reads, collectives by plan", done.stdout)
        self.assertRegex(done.stdout, r"within island 0 +0-1 0-2 1-2 +shared memory +messages")
        self.assertIn("allreduce of 4 MiB: executed by plan", done.stdout)
        words = self.words("t.svg")
        for rank in range(3):
            self.assertTrue(any(w.startswith(f"rank {rank}  ") for w in words), words)
        self.assertIn("1-2: shared memory", words)

    def test_interleaved_islands(self):
        done = self.topology(5, "--json", "--measure", "--svg", "t.svg", SUCL_ISLANDS="a,b,a,b,c")
        found = json.loads(done.stdout)
        self.assertEqual([r["island"] for r in found["ranks"]], [0, 1, 0, 1, 2])
        self.assertEqual(len({r["process"] for r in found["ranks"]}), 5)
        self.assertEqual(found["within_islands"], ["plan", "plan", ""], "the last has one rank")
        self.assertEqual([tuple(link["ranks"]) for link in found["links"]],
                         [(a, b) for a in range(5) for b in range(a + 1, 5)])
        for link in found["links"]:
            self.assertGreater(link["short_us"], 0)
            self.assertGreater(link["long_gbs"], 0)
        by = {o["operation"]: o for o in found["operations"]}
        self.assertEqual(by["allreduce of 4 MiB"]["backend"], "hierarchical")
        self.assertIn("on this rank: ", by["allreduce of 4 MiB"]["explanation"])
        self.assertEqual(by["send of 4 MiB"]["backend"], "messages")
        words = " ".join(self.words("t.svg"))
        for text in ("island 0 - island 2", "island 1: memory that the host reads", "GB/s"):
            self.assertIn(text, words)

    def test_nodes(self):
        done = self.topology(3, "--svg", "t.svg", SUCL_NODE_SIZE="2,1")
        self.assertIn("3 ranks on 2 nodes, 2 islands", done.stdout)
        self.assertRegex(done.stdout, r"island 0 - island 1 +0-2 1-2 +the network, by fabric")
        self.assertIn("the network, by fabric", self.words("t.svg"))

    def test_mpi_between_nodes(self):
        done = self.topology(2, launcher=FLAVOUR, SUCL_NODE_SIZE="1")
        self.assertRegex(done.stdout, r"0-1 +(MPI between nodes|the network, by mpi)")

    def test_alone(self):
        done = self.sucl("info", "--topology", "--measure", "--json")
        found = json.loads(done.stdout)
        devices = sum(len(p["devices"]) for p in
                      json.loads(self.sucl("info", "--json").stdout)["sycl"]["platforms"])
        self.assertEqual(len(found["ranks"]), devices, "a rank for each device")
        text = self.sucl("info", "--topology", "--device", "cpu,gpu").stdout
        self.assertIn("One rank: there are no links", text)

    def test_many_ranks_have_links_of_some(self):
        found = json.loads(self.topology(9, "--json", SUCL_ISLANDS="a,b,c").stdout)
        self.assertFalse(found["every_pair"])
        self.assertEqual([tuple(link["ranks"]) for link in found["links"]],
                         [(0, 3), (1, 4), (2, 5), (0, 1), (0, 2), (1, 2)])

    def test_wrong_usage(self):
        for words, text in ((["--measure"], "go with --topology"),
                            (["--topology", "--device", "gpo"], "Did you mean 'gpu'"),
                            (["--topology", "--device", "cpu,gpo"], "Did you mean 'gpu'"),
                            (["--topology", "--svg", "/nowhere/t.svg"], "/nowhere")):
            self.assertIn(text, self.sucl("info", *words, code=2).stderr)
