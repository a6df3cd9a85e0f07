#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Measures SuCL on the GPUs of one machine against bare NCCL, and writes tables and plots.

    python3 scripts/results/gpu_results.py --launch 'mpiexec -n {ranks} sucl' --ranks 2 \\
        --keep measured
    python3 scripts/results/gpu_results.py --only --keep measured --output docs/results/gpu

The first measures, each set of runs into a file of its own; the second, on any machine, writes what
the files say. Every comparison is of two implementations in one run, on the same memory, in turns.
The launcher has to show each rank a GPU of its own. Plots need matplotlib 3
(requirements/tools.txt).
"""

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import draw_results
from host_results import mean, size_text

ALL = "128,1Ki,8Ki,64Ki,256Ki,512Ki,1Mi,2Mi,4Mi,8Mi,16Mi,32Mi,64Mi,256Mi,1Gi"
SOME = "128,8Ki,64Ki,256Ki,512Ki,1Mi,2Mi,4Mi,16Mi,64Mi,256Mi"
FEW = "128,64Ki,1Mi,16Mi,256Mi"
REPLAYED = "128,8Ki,64Ki,256Ki,1Mi,16Mi,256Mi"
OTHERS = "broadcast reduce allgather reduce_scatter_block alltoall gather scatter"
WITH_COUNTS = "reduce_scatter allgatherv alltoallv gatherv scatterv"
PAPER = "128,1Ki,8Ki,64Ki,256Ki,1Mi,4Mi,16Mi,64Mi"
KERNELS = '[{ backend = "kernels" }]'
THRESHOLD = '[{ backend = "kernels", bytes = "..64Ki" }, { backend = "nccl" }]'
MPI_THRESHOLD = '[{ backend = "mpi", bytes = "..64Ki" }, { backend = "nccl" }]'
NCCL = "--memory device --against nccl"

# Name: title, environment, collectives, options, seconds for each point.
SETS = {
    "auto": ("SuCL", {}, "allreduce", f"{NCCL} --timing device,stream,call --sizes {ALL}", 0.05),
    "auto-others": ("SuCL", {}, OTHERS, f"{NCCL} --timing device,stream --sizes {SOME}", 0.03),
    "auto-counts": ("SuCL", {}, WITH_COUNTS, f"{NCCL} --timing device,stream --sizes {FEW}", 0.03),
    "replay": ("SuCL's recorded sequence, and NCCL's calls in a CUDA graph", {},
               f"allreduce {OTHERS} {WITH_COUNTS}", f"{NCCL} --timing replay --sizes {REPLAYED}",
               0.03),
    "issue": ("what a call costs the host", {}, f"allreduce {OTHERS} {WITH_COUNTS}",
              f"{NCCL} --timing issue --sizes 128,8Ki,64Ki", 0.03),
    "kernels": ("SuCL's kernels", {"SUCL_RULES": KERNELS}, "allreduce " + OTHERS,
                f"{NCCL} --timing device --sizes {SOME}", 0.03),
    "through-nccl": ("SuCL through NCCL", {"SUCL_BACKEND_KERNELS_ENABLED": "0"},
                     "allreduce " + OTHERS, f"{NCCL} --timing stream,device --sizes {FEW}", 0.04),
    "threshold": ("kernels to 64 KiB, then NCCL", {"SUCL_RULES": THRESHOLD}, "allreduce",
                  f"{NCCL} --timing device --sizes {SOME}", 0.03),
    "window": ("SuCL and NCCL on NCCL's symmetric windows", {},
               "allreduce allgather reduce_scatter_block",
               f"--memory window --against nccl --timing device --sizes {SOME}", 0.03),
    "symmetric": ("SuCL and NCCL on memory of allocate()", {}, "allreduce allgather alltoall",
                  f"--memory symmetric --against nccl --timing device --sizes {FEW}", 0.03),
    "buffer": ("SuCL on buffers", {}, "broadcast allreduce reduce",
               f"--memory buffer --against host-accessor --timing call --sizes {PAPER}", 0.03),
    # What the SuCL paper's Figure 6 compares; MPI itself is in the set "buffer".
    "figure6": ("SuCL", {}, "broadcast allreduce reduce",
                f"{NCCL} --timing call --sizes {PAPER}", 0.03),
    "t0": ("threshold 0: NCCL for all", {"SUCL_RULES": '[{ backend = "nccl" }]'},
           "broadcast allreduce reduce", f"{NCCL} --timing call --sizes {PAPER}", 0.03),
    "t64K": ("threshold 64 KiB: MPI, then NCCL", {"SUCL_RULES": MPI_THRESHOLD},
             "broadcast allreduce reduce", f"{NCCL} --timing call --sizes {PAPER}", 0.03),
    # With --launch of an MPI that takes device memory; Intel MPI does so when it is told to, and
    # ended with an error of its own above 64 KiB.
    "mpi": ("SuCL and MPI on memory of the device", {"I_MPI_OFFLOAD": "1", "I_MPI_FABRICS": "shm"},
            "allreduce " + OTHERS,
            "--memory device --against mpi --timing call --sizes 128,1Ki,8Ki,64Ki", 0.03),
}
AGAINST_MPI = {"buffer": "host_accessor + MPI", "mpi": "MPI on memory of the device"}
TIMINGS = ("device", "stream", "call", "replay", "issue", "starts")
RANGES = (("to 1 Mi", 0, 1 << 20), ("2 to 32 Mi", 2 << 20, 32 << 20),
          ("from 64 Mi", 64 << 20, 1 << 60))


def file_of(folder, name, ranks):
    return Path(folder) / f"{name}-{ranks}.json"


def measure(options, name, ranks):
    _, variables, collectives, arguments, seconds = SETS[name]
    command = [*shlex.split(options.launch.format(ranks=ranks)), "bench", *collectives.split(),
               "--device", "gpu", "--form", "event", *arguments.split(), "--seconds", str(seconds)]
    print(f"{name}, {ranks} ranks", file=sys.stderr, flush=True)
    with open(file_of(options.keep, name, ranks).with_suffix(".log"), "w") as log:
        try:
            return subprocess.run(
                [*command, "--json", file_of(options.keep, name, ranks)], stdout=log, stderr=log,
                env=dict(os.environ, **variables), timeout=options.timeout).returncode
        except subprocess.TimeoutExpired:
            print(f"{name} took too long", file=sys.stderr)
            return 1


class Results:
    """Rows by (set, ranks, collective, timing, bytes): {implementation: row}."""

    def __init__(self, folder, all_ranks):
        self.rows, self.headers, self.commands = {}, [], []
        self.checked = self.wrong = 0
        for ranks in all_ranks:
            for name in SETS:
                file = file_of(folder, name, ranks)
                if file.exists():
                    self.add(name, ranks, json.loads(file.read_text()))

    def add(self, name, ranks, data):
        self.headers.append(data["header"])
        said = data["header"]["command"].split(" bench ", 1)[1].split(" --json")[0]
        variables = "".join(f"{k}={shlex.quote(v)} " for k, v in SETS[name][1].items())
        self.commands.append(f"{variables}mpiexec -n {ranks} sucl bench {said}")
        for row in data["rows"]:
            self.checked += 1
            self.wrong += not row["valid"]
            timing = row["form"] if row["form"] in TIMINGS else "call"
            key = (name.split("-")[0], ranks, row["collective"], timing, row["bytes"])
            self.rows.setdefault(key, {})[row["impl"]] = row

    def sizes(self, *subject):
        return sorted(key[4] for key in self.rows if key[:4] == subject)

    def pair(self, *key):
        """SuCL's row and that of what it is compared with."""
        rows = self.rows.get(key, {})
        other = [row for impl, row in rows.items() if impl != "sucl"]
        return (rows["sucl"], other[0]) if "sucl" in rows and other else (None, None)

    def faster(self, *key):
        own, other = self.pair(*key)
        return other["median_us"] / own["median_us"] if own else None

    def collectives(self, ranks):
        names = ["allreduce", *OTHERS.split(), *WITH_COUNTS.split()]
        return [n for n in names if any(key[1:3] == (ranks, n) for key in self.rows)]

    def columns(self, ranks, collective):
        found = {(key[0], key[3]) for key in self.rows if key[1:3] == (ranks, collective)}
        names = [name.split("-")[0] for name in SETS]
        return sorted(found, key=lambda c: (names.index(c[0]), TIMINGS.index(c[1])))

    def table(self, ranks, collective):
        """Times of SuCL's own choice, and by how much each set was faster than what it is compared
        with."""
        columns = [c for c in self.columns(ranks, collective) if c[0] not in AGAINST_MPI]
        first = [c for c in columns if c[0] == "auto"]
        titles = ["bytes"]
        for _, timing in first:
            titles += [f"SuCL, {timing}", f"NCCL, {timing}"]
        titles += [f"{name}, {timing}" for name, timing in columns]
        lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
        sizes = sorted({s for name, timing in columns
                        for s in self.sizes(name, ranks, collective, timing)})
        for size in sizes:
            cells = [size_text(size)]
            for name, timing in first:
                own, other = self.pair(name, ranks, collective, timing, size)
                cells += [f"{r['median_us']:.4g}" if r else "" for r in (own, other)]
            ratios = [self.faster(name, ranks, collective, timing, size)
                      for name, timing in columns]
            cells += ["" if r is None else f"{r:.2f}" for r in ratios]
            lines.append("| " + " | ".join(cells) + " |")
        return lines

    def summary(self, ranks, name, timing):
        lines = ["| | " + " | ".join(title for title, _, _ in RANGES) + " | all | least |",
                 "|---|" + "---|" * (len(RANGES) + 2)]
        for collective in self.collectives(ranks):
            ratios = {size: self.faster(name, ranks, collective, timing, size)
                      for size in self.sizes(name, ranks, collective, timing)}
            ratios = {size: r for size, r in ratios.items() if r}
            if not ratios:
                continue
            means = [mean([r for size, r in ratios.items() if low <= size <= high])
                     for _, low, high in RANGES]
            least = min(ratios, key=ratios.get)
            lines.append(f"| {collective} | "
                         + " | ".join("" if math.isnan(m) else f"{m:.2f}" for m in means)
                         + f" | {mean(list(ratios.values())):.2f} | "
                           f"{ratios[least]:.2f} at {size_text(least)} |")
        return lines

    def against_mpi(self, name, ranks):
        lines = [f"| | bytes | SuCL | {AGAINST_MPI[name]} | times faster |",
                 "|---|---|---|---|---|"]
        for collective in self.collectives(ranks):
            for size in self.sizes(name, ranks, collective, "call"):
                own, other = self.pair(name, ranks, collective, "call", size)
                if own:
                    lines.append(f"| {collective} | {size_text(size)} | {own['median_us']:.4g} | "
                                 f"{other['median_us']:.4g} | "
                                 f"{other['median_us'] / own['median_us']:.1f} |")
        return lines if len(lines) > 2 else []


def write(results, options, all_ranks):
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    header = results.headers[0]
    lines = ["# Tables of the results on GPUs", "",
             f"- {', '.join(header['devices'])}; {header['cpu']}; SuCL {header['sucl']}; "
             f"{header['date'][:10]}",
             f"- NCCL {header['nccl'].split(',')[0]}; {header['sycl']}; "
             f"{header['mpi'].split(',')[0]}",
             f"- {results.checked} results checked, {results.wrong} wrong",
             "- Times are medians in microseconds of the slowest rank; ratios say how many times",
             "  faster than bare NCCL in the same run",
             "- `device`: back to back by the GPU's clock; `stream`: back to back by the host's;",
             "  `call`: until the result is there; `replay`: each call of a recorded sequence;",
             "  `issue`: until a call has returned that is not waited for; `starts`: a replay's",
             "  calls by starts of a persistent operation", ""]
    for name, (title, *_) in SETS.items():
        if "-" not in name and name not in AGAINST_MPI:
            lines.append(f"* `{name}`: {title}")
    lines.append("")
    for ranks in all_ranks:
        if not results.collectives(ranks):
            continue
        lines += [f"## {ranks} GPUs", "", f"![{ranks} GPUs]({ranks}-gpus.svg)", ""]
        for timing in TIMINGS[:5]:
            name = timing if timing in SETS else "auto"
            summary = results.summary(ranks, name, timing)
            if len(summary) > 2:
                lines += [f"SuCL's choice, times faster, {timing}, geometric means:", "", *summary,
                          ""]
        for collective in results.collectives(ranks):
            lines += [f"### {collective}, {ranks} GPUs", "", *results.table(ranks, collective), ""]
        for name in AGAINST_MPI:
            if table := results.against_mpi(name, ranks):
                lines += [f"### {SETS[name][0]}, {ranks} GPUs", "", *table, ""]
    lines += ["## Commands", "", "```sh", *results.commands, "```", ""]
    (folder / "tables.md").write_text("\n".join(lines))
    for ranks in all_ranks:
        if results.collectives(ranks):
            draw_results.draw_gpu(folder, ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launch", default="mpiexec -n {ranks} sucl",
                        help="how a program of so many ranks is started")
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--sets", default=",".join(n for n in SETS if n != "mpi"),
                        help="which of " + ", ".join(SETS))
    parser.add_argument("--keep", required=True, help="folder of the measurements")
    parser.add_argument("--output", help="folder for tables and plots")
    parser.add_argument("--only", action="store_true", help="measure nothing, only write")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each set")
    options = parser.parse_args()
    all_ranks = [int(n) for n in options.ranks.split(",")]
    Path(options.keep).mkdir(parents=True, exist_ok=True)
    failed = []
    if not options.only:
        for ranks in all_ranks:
            failed += [n for n in options.sets.split(",") if measure(options, n, ranks)]
        if failed:
            print(f"failed: {', '.join(failed)}; see the logs in {options.keep}", file=sys.stderr)
    results = Results(options.keep, all_ranks)
    if options.output:
        write(results, options, all_ranks)
    return 1 if results.wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
