# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of `sucl tune` and `sucl bench` from outside."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import FLAVOUR, HERE, PROGRAM, Case  # noqa: E402
from schema import violations  # noqa: E402


class Tune(Case):
    """What is measured is written, read by the runtime, and kept when more is measured."""

    def tune(self, *arguments, code=0, **variables):
        return self.sucl("tune", *arguments, "--mpi", FLAVOUR, "--seconds", "0.5", "--output",
                         "t.toml", code=code, XDG_CACHE_HOME=self.folder.name, **variables)

    def test_table(self):
        done = self.tune("allreduce", "-n", 2, "--sizes", "4,16Ki", "--json", "t.json")
        self.assertIn("the threshold 64Ki", done.stdout)
        self.assertIn("SUCL_TUNING_TABLE=", done.stdout)
        measured = json.loads((Path(self.folder.name) / "t.json").read_text())
        self.assertEqual(measured["ranks"], 2)
        for point in measured["points"]:
            times = [one["us"] for one in point["tried"]]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[0], 0)
            backends = {one["backend"] for one in point["tried"]}
            self.assertEqual(backends, {"plan"} if point["memory"] == "symmetric"
                             else {"plan", "mpi"})
        subjects = {(point["memory"], point["form"], point["bytes"])
                    for point in measured["points"]}
        self.assertEqual(len(subjects), 5, "on memory of allocate() short messages are staged")
        table = (Path(self.folder.name) / "t.toml").read_text()
        rows = table.count("[[choice]]")
        self.assertIn('collective = "allreduce"', table)
        info = json.loads(self.sucl("info", "--json", SUCL_TUNING_TABLE="t.toml").stdout)
        self.assertEqual(info["tuning"]["rows"], rows)
        self.assertIn("Tuning table: t.toml",
                      self.sucl("info", SUCL_TUNING_TABLE="t.toml").stdout)
        # Measured again for something else, with the table in force.
        self.tune("broadcast", "-n", 2, "--sizes", "64", "--no-symmetric",
                  SUCL_TUNING_TABLE="t.toml")
        both = (Path(self.folder.name) / "t.toml").read_text()
        self.assertIn('collective = "allreduce"', both)
        self.assertIn('collective = "broadcast"', both)
        self.assertGreater(both.count("[[choice]]"), rows)

    def test_nodes(self):
        """Between nodes the plans are others, and each is tried under its own name."""
        self.tune("allreduce", "broadcast", "-n", 4, "--sizes", "4Ki", "--json", "t.json",
                  SUCL_NODE_SIZE="2")
        measured = json.loads((Path(self.folder.name) / "t.json").read_text())
        self.assertEqual(measured["nodes"], 2)
        self.assertEqual({point["memory"] for point in measured["points"]}, {"system"})
        for point in measured["points"]:
            plans = [one["recipe"] for one in point["tried"] if one["backend"] == "plan"]
            self.assertTrue(all(recipe.startswith(("node_shot", "two_level")) for recipe in plans))
            if point["form"] == "blocking":
                self.assertGreater(len(set(plans)), 3, plans)
        table = (Path(self.folder.name) / "t.toml").read_text()
        self.assertEqual(table.count('nodes = "2"'), table.count("[[choice]]"))

    def test_wrong_tables(self):
        good = self.path("t.toml",
                         'format = 2\n[[choice]]\ncollective = "reduce"\nbakend = "mpi"\n')
        for command in (("bench", "reduce", "-n", 2, "--sizes", 4, "--mpi", FLAVOUR), ("info",)):
            done = self.sucl(*command, code=1, SUCL_TUNING_TABLE=good)
            self.assertRegex(done.stdout + done.stderr, r"t\.toml:4:1: unknown key 'bakend'")
            self.assertIn("backend", done.stdout + done.stderr)
        self.assertIn("t.toml:4:1", self.tune("reduce", code=1).stderr)
        done = self.sucl("bench", "reduce", "-n", 2, "--sizes", 4, "--mpi", FLAVOUR, code=1,
                         SUCL_TUNING_TABLE="none.toml")
        self.assertIn("cannot read the tuning table 'none.toml'", done.stderr)

    def test_a_foreign_table_is_a_warning(self):
        self.path("t.toml", 'format = 2\n[machine]\nprocessor = "Other"\ncores = 9\n[[choice]]\n'
                            'collective = "reduce"\nbackend = "mpi"\n')
        done = self.sucl("bench", "reduce", "-n", 2, "--sizes", 4, "--iterations", 2, "--mpi",
                         FLAVOUR, SUCL_TUNING_TABLE="t.toml")
        self.assertIn("9 cores of Other", done.stderr)
        self.assertIn("9 cores of Other",
                      self.tune("reduce", code=2).stderr)

    def test_search_writes_the_same_format(self):
        self.sucl("plan", "search", "--machine", "delta", "--collective", "allreduce", "--ranks", 4,
                  "--sizes", "8,1Ki", "--toml", "s.toml")
        info = json.loads(self.sucl("info", "--json", SUCL_TUNING_TABLE="s.toml").stdout)
        self.assertEqual(info["tuning"]["rows"], 2)
        self.assertEqual(info["tuning"]["times"], "predicted")

    def test_wrong_usage(self):
        self.assertIn("allgatherv", self.tune("allgatherv", code=2).stderr)
        self.assertIn("4 bytes", self.tune("allreduce", "--sizes", "2", code=2).stderr)


class BenchCase(Case):
    QUICK = ("--iterations", 3, "--warmup", 1)

    def bench(self, *arguments, code=0, **variables):
        """Runs a benchmark; returns its output and its results, which must fit the schema."""
        results = self.path("results.json")
        done = self.sucl("bench", *arguments, "--mpi", FLAVOUR, *self.QUICK, "--json", results,
                         code=code, **variables)
        results = json.loads(results.read_text())
        schema = json.loads((HERE / "bench.schema.json").read_text())
        self.assertEqual(violations(results, schema), [])
        return done, results


class Bench(BenchCase):
    """What each MPI has to show."""

    def test_rows(self):
        done, results = self.bench("allreduce", "barrier", "-n", 2, "--sizes", "4,6,1Ki",
                                   "--types", "float32,int32")
        rows = results["rows"]
        keys = ("collective", "impl", "form", "memory", "type", "bytes")
        found = {tuple(row[key] for key in keys) for row in rows}
        wanted = {("allreduce", impl, form, memory, kind, size)
                  for kind in ("fp32", "int32") for size in (4, 1024)
                  for memory, impl, form in (
                      ("device", "sucl", "blocking"), ("device", "sucl", "event"),
                      ("device", "mpi", "blocking"), ("buffer", "sucl", "blocking"),
                      ("buffer", "sucl", "event"), ("buffer", "host-accessor", "blocking"))}
        wanted |= {("barrier", impl, form, "none", "bytes", 0) for impl, form in (
            ("sucl", "blocking"), ("sucl", "event"), ("mpi", "blocking"))}
        self.assertEqual(found, wanted)
        self.assertEqual(len(rows), len(wanted))
        for row in rows:
            self.assertTrue(row["valid"])
            self.assertEqual(row["ranks"], 2)
            self.assertEqual(row["iterations"], 3)
            self.assertLessEqual(row["min_us"], row["median_us"])
            self.assertLessEqual(row["median_us"], row["p95_us"])
        self.assertTrue(done.stdout.endswith(f"all {len(rows)} results valid\n"), done.stdout)
        self.assertIn("allreduce, device, fp32, sum, 2 ranks", done.stdout)
        self.assertIn("blocking/mpi", done.stdout)

    def test_every_collective(self):
        done, results = self.bench("all", "sendrecv", "-n", 3, "--sizes", "0,24", "--types",
                                   "fp64,bf16", "--memory", "system,buffer")
        self.assertTrue(all(row["valid"] for row in results["rows"]), done.stderr)
        self.assertEqual(len({row["collective"] for row in results["rows"]}), 17)

    def test_ranks_it_is_run_in(self):
        results = self.path("inside.json")
        done = self.sucl("run", "-n", 3, "--mpi", FLAVOUR, "--", PROGRAM, "bench", "reduce",
                         "--sizes", 16, *self.QUICK, "--json", results)
        self.assertEqual(done.stdout.count("results valid"), 1, "only one rank prints")
        self.assertEqual({row["ranks"] for row in json.loads(results.read_text())["rows"]}, {3})


class BenchChoices(BenchCase):
    def test_memory_of_allocate_and_persistent_operations(self):
        done, results = self.bench("allreduce", "broadcast", "reduce", "-n", 2, "--sizes", "8,64Ki",
                                   "--memory", "symmetric", "--form", "persistent,blocking",
                                   "--against", "none")
        self.assertEqual({row["form"] for row in results["rows"]}, {"persistent", "blocking"})
        self.assertEqual({row["memory"] for row in results["rows"]}, {"symmetric"})
        self.assertGreater(results["header"]["memory_gbs"], 0)
        self.assertGreater(results["header"]["flag_exchange"]["median_us"], 0)

    def test_choices(self):
        _, results = self.bench("broadcast", "-n", 2, "--memory", "shared", "--form", "event",
                                "--against", "none", "--sizes", "64", "--root", 1,
                                "--device", "cpu,cpu")
        self.assertEqual([(row["impl"], row["form"], row["memory"]) for row in results["rows"]],
                         [("sucl", "event", "shared")])

    def test_sequences_that_are_replayed(self):
        for queue, what in (("in-order", ("all", "sendrecv")),
                            ("out-of-order", ("reduce", "scan"))):
            done, results = self.bench(*what, "-n", 2, "--sizes", "256Ki", "--timing", "replay",
                                       "--queue", queue, "--against", "none")
            rows = results["rows"]
            self.assertTrue(all(row["valid"] for row in rows), done.stderr)
            found = {(row["collective"], row["form"]) for row in rows}
            self.assertEqual(len(found), 2 * (17 if "all" in what else 2))
            self.assertEqual(len(rows), len(found))
            self.assertEqual({form for _, form in found}, {"replay", "starts"})
        self.sucl("bench", "allreduce", "--timing", "replay", "--memory", "buffer", code=2)

    def test_what_issuing_costs(self):
        done, results = self.bench("allreduce", "broadcast", "-n", 2, "--sizes", "8,1Mi",
                                   "--memory", "device", "--timing", "issue,stream", "--form",
                                   "event", "--against", "none")
        found = {(row["collective"], row["bytes"], row["form"]) for row in results["rows"]}
        self.assertTrue(all(row["valid"] for row in results["rows"]), done.stderr)
        self.assertEqual({form for _, _, form in found}, {"stream", "issue"})
        self.assertEqual(len(found), 2 * 2 * 2)
        self.assertIn("sucl issue", done.stdout)

    def test_wrong_results_are_noticed(self):
        config = self.path("wrong.toml", 'default_backend = "mock"\n'
                           '[backends.mock]\nenabled = true\nplatforms = "*"\nwrong = "allreduce"\n'
                           '[[rules]]\nbackend = "mock"\n')
        done, results = self.bench("allreduce", "allgather", "-n", 2, "--sizes", "8", code=1,
                                   SUCL_CONFIG=str(config))
        for row in results["rows"]:
            wrong = row["collective"] == "allreduce" and row["impl"] == "sucl"
            self.assertEqual(row["valid"], not wrong, row)
        self.assertTrue(done.stdout.endswith("FAILED: 4 of 12 results are wrong\n"), done.stdout)
        self.assertIn("should be", done.stderr)

    def test_plot(self):
        plot = self.path("plot.svg")
        done, _ = self.bench("allreduce", "-n", 2, "--sizes", "4,4Ki", "--plot", plot)
        self.assertIn(f"plot: {plot}", done.stdout)
        self.assertIn("<svg", plot.read_text()[:1000])

    def test_missing_matplotlib_loses_nothing(self):
        python = self.path(
            "python", "#!/bin/sh\necho 'python lacks matplotlib: do this' >&2\nexit 1\n")
        python.chmod(0o755)
        done, results = self.bench("allreduce", "-n", 2, "--sizes", "4", "--plot",
                                   self.path("plot.svg"), code=1, SUCL_PYTHON=str(python))
        self.assertIn("no plot: python lacks matplotlib: do this", done.stdout)
        self.assertTrue(done.stdout.endswith("results valid\n"))
        self.assertTrue(results["rows"])
