#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Measures SuCL on one machine against each MPI and oneCCL, and writes tables and plots.

    python3 scripts/results/host_results.py --sucl build/default/bin/sucl --output docs/results/host

Every comparison is of two implementations in one run, on the same memory, in turns. oneCCL, which
has a SYCL runtime and an MPI of its own, runs apart on ordinary memory: --oneccl names a virtual
environment with the wheel oneccl-devel. Its times are compared with SuCL's median over the runs
with the same number of ranks. The collectives that are needed less often are measured at fewer
sizes. Plots need matplotlib 3 (requirements/tools.txt).
"""

import argparse
import collections
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import draw_results

FREQUENT = ("allreduce", "reduce", "broadcast", "allgather", "reduce_scatter_block", "alltoall",
            "gather", "scatter")
RARE = ("reduce_scatter", "allgatherv", "alltoallv", "gatherv", "scatterv", "scan", "barrier")
COLLECTIVES = FREQUENT + RARE
MEMORIES = {"device": "Ordinary memory", "symmetric": "Memory of `communicator.allocate()`",
            "shared": "Shared USM", "system": "System memory"}
ROOT = Path(__file__).resolve().parents[2]


def size_text(size):
    for unit, name in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def time_text(us):
    if us is None:
        return "-"
    return f"{us:.0f}" if us >= 1000 else f"{us:.4g}"


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


@contextlib.contextmanager
def measurement(kept, name):
    """Where the results of one measurement go: into the folder `kept`, or, without one, nowhere for
    long."""
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept) / name
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / name


class Results:
    """Medians by (ranks, memory, collective, bytes): {implementation: us}, and what was said."""

    def __init__(self):
        self.times = collections.defaultdict(dict)
        self.own = collections.defaultdict(list)  # SuCL's, of each run
        self.ratios = collections.defaultdict(dict)  # the same keys: {MPI: SuCL's time by its}
        self.fastest = collections.defaultdict(dict)  # as ratios, of the fastest iterations
        self.headers = []
        self.commands = []
        self.wrong = 0
        self.checked = 0

    def bench(self, program, flavour, ranks, memory, options):
        for what, collectives, sizes in (("", FREQUENT, options.sizes),
                                         ("-rare", RARE, options.rare_sizes)):
            arguments = ["bench", *collectives, "-n", str(ranks), "--mpi", flavour, "--memory",
                         memory, "--form", "blocking", "--against", "mpi", "--sizes", sizes,
                         "--seconds", str(options.seconds)]
            self.run(program, arguments, f"{flavour}-{ranks}-{memory}{what}.json",
                     (ranks, memory, flavour), options)

    def run(self, program, arguments, name, subject, options):
        ranks, memory, flavour = subject
        with measurement(options.keep, name) as file:
            if not file.exists():
                subprocess.run([*options.wrap, program, *arguments, "--json", file], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            data = json.loads(file.read_text())
        said = data["header"]["command"].split(" bench ", 1)[1].split(" --json")[0]
        self.commands.append(f"sucl bench {said}")
        self.headers.append(data["header"])
        for row in data["rows"]:
            key = (ranks, memory, row["collective"], row["bytes"])
            name = row["impl"] if row["impl"] == "sucl" else flavour
            self.checked += 1
            self.wrong += not row["valid"]
            if name == "sucl":
                self.ratios[key][flavour] = row["median_us"]
                self.fastest[key][flavour] = row["min_us"]
                self.own[key].append(row["median_us"])
                self.times[key][name] = statistics.median(self.own[key])
            else:
                self.times[key][name] = row["median_us"]
                self.ratios[key][flavour] /= row["median_us"]
                self.fastest[key][flavour] /= row["min_us"]

    def oneccl(self, environment, mpi, ranks, options):
        """Builds bench/baselines/oneccl.cpp against the wheel and the MPI at `mpi`, and runs it."""
        environment, mpi = Path(environment), Path(mpi)
        sizes = sorted({size for _, _, name, size in self.times if name in FREQUENT})
        with measurement(options.keep, f"oneccl-{ranks}.json") as file:
            if not file.exists():
                file.write_text(self.run_oneccl(environment, mpi, ranks, sizes, options))
            said = file.read_text()
        for line in said.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            self.checked += 1
            self.wrong += not row["valid"]
            key = ranks, "device", row["collective"], row["bytes"]
            self.times[key]["oneccl"] = row["median_us"]

    @staticmethod
    def run_oneccl(environment, mpi, ranks, sizes, options):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "oneccl"
            subprocess.run(["g++", "-std=c++17", "-O2", ROOT / "bench/baselines/oneccl.cpp",
                            "-o", program, f"-I{environment}/include", f"-I{mpi}/include",
                            f"-L{environment}/lib", "-lccl", f"-L{mpi}/lib", "-lmpi",
                            "-Wl,--allow-shlib-undefined"],
                           check=True)
            variables = dict(os.environ, I_MPI_ROOT=str(mpi), CCL_ROOT=str(environment),
                             CCL_LOG_LEVEL="error",
                             LD_LIBRARY_PATH=f"{mpi}/lib:{mpi}/lib/libfabric:{environment}/lib")
            done = subprocess.run([*options.wrap, mpi / "bin/mpiexec", "-n", str(ranks), program,
                                   str(options.seconds), *map(str, sizes)], env=variables,
                                  check=True, capture_output=True, text=True)
        return done.stdout

    def keys(self, ranks, memory, name):
        return sorted(key for key in self.ratios if key[:3] == (ranks, memory, name))

    def worst(self, key):
        """SuCL's time by that of the best MPI: the largest of the ratios of the runs."""
        return max(self.ratios[key].values())

    def summary(self, ranks, memory):
        lines = ["| collective | times faster than the best MPI, mean | slowest point: ratio | "
                 "points above 1.05 | fastest iterations: times faster | above 1.05 |",
                 "|---|---|---|---|---|---|"]
        for name in COLLECTIVES:
            keys = self.keys(ranks, memory, name)
            if not keys:
                continue
            worst = max(keys, key=self.worst)
            above = [size_text(key[3]) for key in keys if self.worst(key) > 1.05]
            least = {key: max(self.fastest[key].values()) for key in keys}
            slow = [size_text(key[3]) for key in keys if least[key] > 1.05]
            lines.append(f"| {name} | {1 / mean([self.worst(key) for key in keys]):.2f} | "
                         f"{self.worst(worst):.2f} at {size_text(worst[3])} | "
                         f"{', '.join(above) or 'none'} | {1 / mean(list(least.values())):.2f} | "
                         f"{', '.join(slow) or 'none'} |")
        return lines

    def others(self, ranks, memory, name):
        """The MPIs that there are figures of on this memory, and oneCCL if it is there."""
        keys = self.keys(ranks, memory, name)
        mpis = sorted({flavour for key in keys for flavour in self.ratios[key]})
        return mpis + ["oneccl"] * any("oneccl" in self.times[key] for key in keys)

    def ratio(self, key, other):
        """SuCL's time by that of another library on the same memory; oneCCL's is of another run."""
        if other != "oneccl":
            return self.ratios[key].get(other)
        theirs = self.times[key].get("oneccl")
        return self.times[key]["sucl"] / theirs if theirs else None

    def table(self, ranks, name, memories):
        columns = [(memory, other) for memory in memories
                   for other in self.others(ranks, memory, name)]
        titles = ["bytes", *(other if memory == memories[0] else f"{other}, {memory}"
                             for memory, other in columns)]
        lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
        for size in sorted({key[3] for memory in memories
                            for key in self.keys(ranks, memory, name)}):
            ratios = [self.ratio((ranks, memory, name, size), other) for memory, other in columns]
            cells = [size_text(size), *("-" if r is None else f"{r:.2f}" for r in ratios)]
            lines.append("| " + " | ".join(cells) + " |")
        return lines

    def times_table(self, ranks, memory, name):
        """Microseconds of SuCL, the median of its runs beside each MPI, and of the others."""
        others = self.others(ranks, memory, name)
        lines = ["| " + " | ".join(["bytes", "sucl", *others]) + " |",
                 "|" + "---|" * (2 + len(others))]
        for key in self.keys(ranks, memory, name):
            times = [self.times[key].get(library) for library in ("sucl", *others)]
            cells = [size_text(key[3]), *(time_text(t) for t in times)]
            lines.append("| " + " | ".join(cells) + " |")
        return lines

    def bandwidth(self):
        """Every rank must read its input and write its output once: which part of the memory's rate
        that is."""
        lines = ["| | ranks | memory | least bytes moved | GB/s | of all ranks copying |",
                 "|---|---|---|---|---|---|"]
        pieces = {"allreduce": lambda p: 2 * p, "broadcast": lambda p: p,
                  "allgather": lambda p: p + p * p, "alltoall": lambda p: 2 * p * p}
        for (ranks, memory, name, size), times in sorted(self.times.items()):
            largest = max(key[3] for key in self.times if key[:2] == (ranks, memory))
            if size != largest or name not in pieces or "sucl" not in times:
                continue
            rate = max(h["memory_gbs"] for h in self.headers if h["ranks"] == ranks)
            moved = pieces[name](ranks) * size
            own = moved / times["sucl"] / 1e3
            lines.append(f"| {name} of {size_text(size)} | {ranks} | {memory} | "
                         f"{size_text(moved)} | {own:.1f} | {own / rate:.0%} of {rate:.1f} |")
        return lines


def tables_page(results, all_ranks, memories):
    """Lines of the page of ratios."""
    header = results.headers[0]
    lines = ["# Tables of the results on one machine", "",
             f"- {header['cores']} cores of {header['cpu']}; SuCL {header['sucl']}; "
             f"{header['date'][:10]}",
             *(f"- {mpi}" for mpi in sorted({h["mpi"].split(",")[0] for h in results.headers})),
             f"- {results.checked} results checked, {results.wrong} wrong",
             "- Ratios are SuCL's time by that of the other library, medians of the slowest rank; "
             "below 1", "  SuCL is faster. The plots have the inverse: times faster.", ""]
    for ranks in all_ranks:
        flags = sorted(h["flag_exchange"]["median_us"] for h in results.headers
                       if h["ranks"] == ranks and h["flag_exchange"])
        lines += [f"## {ranks} ranks", ""]
        for memory in memories:
            suffix = "" if memory == "device" else f"-{memory}"
            lines += [f"![{ranks} ranks, {memory}]({ranks}-ranks{suffix}.svg)", ""]
        if flags:
            lines += [f"A bare exchange of flags: {flags[0]:.2f} to {flags[-1]:.2f} us.", ""]
        for memory in memories:
            lines += [f"{MEMORIES[memory]}:", "", *results.summary(ranks, memory), ""]
        for name in COLLECTIVES:
            lines += [f"### {name}, {ranks} ranks", "", *results.table(ranks, name, memories), ""]
    lines += ["## Share of the memory's rate", "", *results.bandwidth(), "",
              "## Commands", "", "```sh", *results.commands, "```", ""]
    return lines


def times_page(results, all_ranks, memories):
    """Lines of the page of times."""
    lines = ["# Times of every size", "",
             "Microseconds of a blocking call, medians of the slowest rank: those that the",
             "[ratios](tables.md) are of. SuCL's are the median of its runs beside each MPI.", ""]
    for ranks in all_ranks:
        for memory in memories:
            lines += [f"## {ranks} ranks, {MEMORIES[memory]}", ""]
            for name in COLLECTIVES:
                lines += [f"### {name}, {ranks} ranks, {memory}", "",
                          *results.times_table(ranks, memory, name), ""]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sucl", default="sucl", help="the program")
    parser.add_argument("--output", default="results", help="folder for tables, plots and JSON")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--memory", default="device,symmetric",
                        help=f"what to measure on, of {', '.join(MEMORIES)} (device,symmetric)")
    parser.add_argument("--sizes", default="4:64Mi:4")
    parser.add_argument("--rare-sizes", default="4:4Mi:16",
                        help="of " + ", ".join(RARE) + " (4:4Mi:16)")
    parser.add_argument("--seconds", default=0.05, type=float, help="for each point")
    parser.add_argument("--oneccl", help="virtual environment with oneccl-devel")
    parser.add_argument("--impi", help="root of the Intel MPI that oneCCL is started with")
    parser.add_argument("--keep", help="folder that keeps what each measurement found; what is "
                                       "there is not measured again")
    parser.add_argument("--wrap", default="", help="a command to run each measurement by")
    options = parser.parse_args()
    options.wrap = options.wrap.split()
    memories = options.memory.split(",")
    for memory in memories:
        if memory not in MEMORIES:
            parser.error(f"--memory: no memory '{memory}'")
    if options.oneccl and "device" not in memories:
        parser.error("--oneccl is measured on device: add it to --memory")
    info = json.loads(subprocess.run([options.sucl, "info", "--json"], check=True,
                                     capture_output=True, text=True).stdout)
    results = Results()
    all_ranks = [int(n) for n in options.ranks.split(",")]
    for ranks in all_ranks:
        for memory in memories:
            for mpi in info["mpi"]:
                print(f"{ranks} ranks, {memory}, {mpi['name']}", file=sys.stderr)
                results.bench(options.sucl, mpi["name"], ranks, memory, options)
        if options.oneccl:
            print(f"{ranks} ranks, oneCCL", file=sys.stderr)
            results.oneccl(options.oneccl, options.impi, ranks, options)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text("\n".join(tables_page(results, all_ranks, memories)))
    (folder / "times.md").write_text("\n".join(times_page(results, all_ranks, memories)))
    for ranks in all_ranks:
        for memory in memories:
            draw_results.draw_host(folder, ranks, memory)
            draw_results.draw_host_times(folder, ranks, memory)
    return 1 if results.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
