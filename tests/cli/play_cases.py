# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of `sucl plan play` from outside."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case  # noqa: E402

PLANS = {
    "ring": ("--collective", "allreduce", "--ranks", "8", "--bytes", "1Mi", "--recipe", "ring"),
    "nodes": ("--collective", "broadcast", "--ranks", "16", "--bytes", "1Mi", "--recipe",
              "composed(hierarchy=2,4,2;stripe=4;pipeline=2)"),
}


def messages_of(plan):
    """(from, to, bytes) of each message, from a plan's JSON as docs/reference/plan-ir.md has it."""
    for rank, program in enumerate(plan["ranks"]):
        for channel in program["channels"]:
            for op, peer, dst, _, src, _, size, _ in channel:
                if op == "send" or dst.startswith("peer."):
                    yield rank, peer, size
                elif op != "receive" and src.startswith("peer."):
                    yield peer, rank, size


class Pages(Case):
    def play(self, name, machine):
        """The plan, its page, and what the page has."""
        self.sucl("plan", "build", *PLANS[name], "--output", "plan.json")
        plan = json.loads(self.path("plan.json").read_text())
        said = self.sucl("plan", "play", "plan.json", "--machine", machine, "-o",
                         "page.html").stdout
        self.assertIn(f"page.html: {plan['collective']['kind']} of ", said)
        page = self.path("page.html").read_text()
        self.assertNotRegex(page, r'(?:src|href)\s*=|https?://|@import|url\(')
        found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        return plan, json.loads(found[0])


class Play(Pages):
    def test_every_message(self):
        for name, machine in (("ring", "dgx-h100"), ("nodes", "frontier")):
            with self.subTest(plan=name):
                plan, data = self.play(name, machine)
                expected = sorted(messages_of(plan))
                self.assertGreater(len(expected), 10)
                self.assertEqual(sorted(tuple(m[:3]) for m in data["messages"]), expected)

    def test_times(self):
        """Of the simulator; those of a message are of its instruction, which names the peer."""
        _, data = self.play("nodes", "frontier")
        simulated = json.loads(self.sucl("plan", "simulate", "plan.json", "--machine", "frontier",
                                         "--json", "-").stdout)
        self.assertEqual(data["seconds"], simulated["seconds"])
        for source, target, size, rank, channel, index in data["messages"]:
            text, start, end = data["ranks"][rank][channel][index]
            peer = source if rank == target else target
            self.assertRegex(text, rf"^\w+ {peer} .*\b{size}( @\d)?$")
            self.assertTrue(0 <= start < end <= data["seconds"], text)
        self.assertEqual([u["what"] for u in simulated["busiest"]],
                         [one[0] for one in data["limits"]][:len(simulated["busiest"])])

    def test_machine(self):
        _, data = self.play("nodes", "frontier")
        self.assertEqual([one["members"] for one in data["machine"]["levels"]], [8, 2, 1])

    def test_wrong_plans(self):
        self.sucl("plan", "build", *PLANS["ring"], "--output", "ring.plan")
        text = self.path("ring.plan").read_text()
        self.path("wrong.plan", text.replace("  reduce ", "  copy ", 1))
        self.assertIn("the plan is wrong: ", self.sucl("plan", "play", "wrong.plan", "--machine",
                                                      "dgx-h100", code=1).stderr)
        self.assertFalse(self.path("plan.html").exists())
        large = ("--collective", "alltoall", "--ranks", 512, "--bytes", 4, "--recipe", "pairwise")
        said = self.sucl("plan", "play", *large, "--machine", "frontier", code=1).stderr
        self.assertIn("more than the 200000", said)
