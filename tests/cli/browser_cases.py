# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of the pages and pictures that `sucl` writes, opened in Chromium without a window.

SUCL_TEST_BROWSER is the browser.
"""

import collections
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import LIMIT  # noqa: E402
from play_cases import Pages as PlanPages  # noqa: E402
from topology_cases import Pictures  # noqa: E402
from trace_cases import Pages as TracePages  # noqa: E402
from trace_cases import event  # noqa: E402

# What a page draws on its canvases, and what its scripts throw.
COUNT = """<script>
const sucl_test = {errors: [], calls: {}, texts: []};
window.addEventListener("error", e => sucl_test.errors.push(e.message));
for (const name of ["fillRect", "arc", "quadraticCurveTo", "fillText"]) {
  const draws = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    sucl_test.calls[name] = (sucl_test.calls[name] || 0) + 1;
    if (name === "fillText") sucl_test.texts.push(String(given[0]));
    return draws.apply(this, given);
  };
}
</script>
"""
SAY = """<script>
document.body.setAttribute("data-drawn", JSON.stringify(sucl_test));
</script>
"""


class Browsing:
    """Of a case that has written a file."""

    def open(self, name, fragment=""):
        """The document after its scripts have run; nothing may be said on the console."""
        page = self.path(name).resolve().as_uri()
        profile = self.path("browser")
        done = subprocess.run(
            [os.environ["SUCL_TEST_BROWSER"], "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--enable-logging=stderr",
             "--window-size=1200,900", "--virtual-time-budget=5000", "--dump-dom", page + fragment],
            cwd=self.folder.name, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stderr, r"CONSOLE[:(]")
        return done.stdout

    def drawn(self, name, fragment=""):
        """The document, and how often which function of its canvases was called, with all texts."""
        page = self.path(name).read_text()
        counted = page.replace("<head>", "<head>" + COUNT, 1).replace("</body>", SAY + "</body>", 1)
        self.assertGreater(len(counted), len(page) + len(COUNT))
        document = self.open(self.path("counted.html", counted).name, fragment)
        found = json.loads(html.unescape(re.search(r'data-drawn="([^"]*)"', document)[1]))
        self.assertEqual(found["errors"], [])
        return document, collections.Counter(found["calls"]), found["texts"]

    def must_fail(self, name, line, instead, check):
        """A page with a fault in its script does not pass."""
        page = self.path(name).read_text()
        self.assertEqual(page.count(line), 1, line)
        self.path(name, page.replace(line, instead))
        with self.assertRaises(AssertionError):
            check()
        self.path(name, page)


class Timelines(Browsing, TracePages):
    """`sucl trace view`."""

    def check(self, ranks, operations):
        """A band for each rank, a bar for each operation and for its waiting, and the table."""
        document, calls, texts = self.drawn("page.html")
        self.assertEqual(calls["fillRect"], ranks + 2 * operations)
        self.assertEqual([t for t in texts if t.startswith("rank ")],
                         [f"rank {r}" for r in range(ranks)])
        rows = re.findall(r"<tr><td>rank (\d+)</td><td>(\d+)</td>", document)
        self.assertEqual([int(rank) for rank, _ in rows], list(range(ranks)))
        self.assertEqual(sum(int(own) for _, own in rows), operations)
        self.assertIn("Critical path: ", document)

    def test_ranks_and_bars(self):
        self.view(*(self.trace(r, event(r, "allreduce", 1, 100 * r, 500),
                               event(r, "barrier", 2, 700, 800 + r)) for r in range(3)))
        self.check(3, 6)
        self.must_fail("page.html", "fillTable();\ndraw();", "fillTable();",
                       lambda: self.check(3, 6))
        self.must_fail("page.html", "fillLegend();\nfillTable();", "fillLegend(;\nfillTable();",
                       lambda: self.check(3, 6))

    def test_names_that_end_scripts(self):
        self.view(self.trace(0, event(0, "barrier", 1, 0, 2, backend="</script><b>")))
        self.check(1, 1)


class Plans(Browsing, PlanPages):
    """`sucl plan play`."""

    def check(self, data, part, rank):
        """At a part of the time it says and draws what the plan and the simulator say."""
        document, calls, texts = self.drawn("page.html", f"#t={part}&rank={rank}")
        now = data["seconds"] * part
        times = [data["ranks"][m[3]][m[4]][m[5]][1:] for m in data["messages"]]
        under = sum(start <= now < end for start, end in times)
        over = sum(end <= now for _, end in times)
        self.assertGreater(under, 0)
        self.assertIn(f": {under} messages of ", document)
        self.assertIn(f", {over} of {len(times)} have arrived", document)
        self.assertEqual(calls["quadraticCurveTo"], under)
        ranks, receivers = len(data["ranks"]), len({m[1] for m in data["messages"]})
        self.assertEqual(calls["arc"], ranks + receivers + under)
        self.assertEqual({int(t) for t in texts if t.isdigit()}, set(range(ranks)))
        self.assertEqual(len(re.findall(r'<option value="\d+">rank ', document)), ranks)
        for number, channel in enumerate(data["ranks"][rank]):
            self.assertIn(f"channel {number}, {len(channel)} instructions", document)

    def test_ranks_and_messages(self):
        _, data = self.play("nodes", "frontier")
        self.check(data, 0.5, 3)
        self.must_fail("page.html", "    g.quadraticCurveTo(", "    g.noSuchFunction(",
                       lambda: self.check(data, 0.5, 3))
        self.must_fail("page.html", "const largest = ", "const largest == ",
                       lambda: self.check(data, 0.5, 3))


class Topologies(Browsing, Pictures):
    """`sucl info --topology --svg`."""

    def test_ranks_and_links(self):
        self.topology(3, "--svg", "t.svg")
        document = self.open("t.svg")
        self.assertNotIn("parsererror", document)
        for rank in range(3):
            self.assertRegex(document, rf">rank {rank}  ")
        self.assertIn("1-2: shared memory", document)
        picture = self.path("t.svg").read_text()
        self.path("t.svg", picture.replace("</svg>", ""))
        self.assertIn("parsererror", self.open("t.svg"))
