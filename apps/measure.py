# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Measures the applications: how many times longer MPI's variants take than SuCL's.

A row is an application with its arguments on a number of ranks; a round of it is one run of each
variant, and the variants take turns at being the first. The next round is that of the row on which
the least time was spent, until all have their rounds or the time is up. Every run checks itself;
one that fails ends the measurement. What has been measured is in a file, from which the next call
goes on.

    python3 apps/measure.py --matrix bcsstk16.mtx      all of the papers' sizes, 2 and 4 ranks
    python3 apps/measure.py --only halo cg --ranks 2   some of them
    python3 apps/measure.py --only halo -- --size 64x64x64 --iterations 100
    python3 apps/measure.py --minutes 0                the tables of what has been measured
"""

import argparse
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

VARIANTS = ("sucl", "usm", "host-accessor")
GRIDS = {"256x256x256": 10, "512x512x256": 4, "1024x1024x256": 1}  # and iterations
# What the papers measured, with so many iterations that a run takes seconds.
PAPERS = {
    "halo": [f"--size {n} --iterations {2 * i} --breakdown 2" for n, i in GRIDS.items()],
    "transpose": [f"--size {n} --iterations {i} --breakdown 2" for n, i in GRIDS.items()],
    "comd": [f"--cells {n} --potential eam --iterations {i} --breakdown 2"
             for n, i in (("32x32x32", 10), ("64x64x64", 2))],
    "cg": [f"--rows {2 ** e} --solves {max(4, 2 ** (15 - e))} --breakdown 50"
           for e in range(7, 16, 2)],
}
MATRIX = "--matrix {} --tolerance 1e-6 --breakdown 50"


def wanted_rows(wanted, passed):
    """(application, ranks, arguments) of each row."""
    for app in wanted.only:
        lines = [" ".join(passed)] if passed else list(PAPERS[app])
        if app == "cg" and wanted.matrix and not passed:
            lines.append(MATRIX.format(wanted.matrix))
        for ranks in wanted.ranks:
            for line in lines:
                yield app, ranks, line


def run(sucl, app, ranks, variant, arguments, seconds):
    """One run, of so many seconds at most: its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [sucl, "run", "-n", str(ranks), "--", f"apps/{app}", "--quiet",
                   "--variant", variant, "--json", str(result), *arguments.split()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as job:
            try:
                text, _ = job.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGTERM)  # the launcher ends the ranks
                raise
        if job.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{text}")
        return json.loads(result.read_text())


def field_of(path, name):
    """The value of the first line `name: value` of a file of /proc."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return "unknown"


def machine(sucl):
    """What the figures depend on."""
    version = subprocess.run([sucl, "--version"], capture_output=True, text=True, check=False)
    memory = field_of("/proc/meminfo", "MemTotal").split()[0]
    return {
        "processor": field_of("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_GiB": round(int(memory) / 2**20) if memory.isdigit() else memory,
        "system": f"{platform.system()} {platform.release()}",
        "sucl": version.stdout.strip(),
    }


class record:
    """The file of what has been measured."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = {"commands": [], "machine": {}, "rows": []}
        if self.path.exists():
            self.data = json.loads(self.path.read_text(encoding="utf-8"))

    def rounds(self, app, ranks, arguments):
        """The rounds of a row, to which more can be added."""
        key = {"application": app, "ranks": ranks, "arguments": arguments}
        for row in self.data["rows"]:
            if all(row[k] == v for k, v in key.items()):
                return row["rounds"]
        self.data["rows"].append({**key, "rounds": []})
        return self.data["rows"][-1]["rounds"]

    def write(self):
        """Replaces the file as a whole, so that it is never half written."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        new.replace(self.path)


def measure(wanted, passed, known):
    """Rounds within the time; one that it ends is not kept."""
    rows = list(wanted_rows(wanted, passed))
    until, spent = time.monotonic() + 60 * wanted.minutes, dict.fromkeys(rows, 0)
    for row in rows:  # of an earlier call
        spent[row] = sum(r["took"] for r in known.rounds(*row))
    while True:
        waiting = [r for r in rows if len(known.rounds(*r)) < wanted.rounds]
        began = time.monotonic()
        if not waiting or began >= until:
            return
        row = min(waiting, key=spent.get)
        rounds = known.rounds(*row)
        first = len(rounds) % len(VARIANTS)
        try:
            results = {v: run(wanted.sucl, row[0], row[1], v, row[2], until - time.monotonic())
                       for v in VARIANTS[first:] + VARIANTS[:first]}
        except subprocess.TimeoutExpired:
            return
        took = time.monotonic() - began
        spent[row] += took
        rounds.append({"took": took, **results})
        known.write()
        print(f"{took:.0f} s, round {len(rounds)}: {row[0]} -n {row[1]} {row[2]}",
              file=sys.stderr, flush=True)


def cells(rounds, time_of):
    """A cell for each variant of MPI: the median over the rounds, the least and the most."""
    for variant in VARIANTS[1:]:
        ratios = [time_of(r[variant]) / time_of(r["sucl"]) for r in rounds]
        yield (f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
               if len(ratios) > 1 else f"{ratios[0]:.2f}")


def print_tables(known):
    """The head, and a table for each number of ranks."""
    data = known.data
    print("- **Commands**: " + ", ".join(f"`{c}`" for c in data["commands"]))
    print("- **Machine**: " + ", ".join(f"{k} {v}" for k, v in data["machine"].items()))
    rows = [r for r in data["rows"] if r["rounds"]]
    for key in ("device", "mpi"):
        names = {r["rounds"][0]["sucl"][key].split(",")[0] for r in rows}
        print(f"- **{key}**: " + ", ".join(sorted(names)))
    print("\n| | ranks | rounds | over USM | over host_accessor | communication over USM | "
          "over host_accessor |\n|---|---:|---:|---|---|---|---|")
    rows.sort(key=lambda r: (list(PAPERS).index(r["application"]), r["ranks"]))
    for row in rows:
        rounds = row["rounds"]
        text = list(cells(rounds, lambda r: r["seconds"]))
        text += (cells(rounds, lambda r: r["phases"]["communicate"])
                 if all(r[v].get("phases", {}).get("communicate") for r in rounds for v in VARIANTS)
                 else ["", ""])
        print(f"| {row['application']} `{row['arguments']}` | {row['ranks']} | {len(rounds)} | "
              f"{' | '.join(text)} |")
    print("\nSeconds of a whole run, medians of the rounds:\n\n"
          "| | ranks | SuCL, s | MPI over USM, s | host_accessor, s |\n|---|---:|---:|---:|---:|")
    for row in rows:
        times = [statistics.median(r[v]["seconds"] for r in row["rounds"]) for v in VARIANTS]
        print(f"| {row['application']} `{row['arguments']}` | {row['ranks']} | "
              + " | ".join(f"{t:.3g}" for t in times) + " |")


def main():
    own, passed = sys.argv[1:], []
    if "--" in own:
        own, passed = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PAPERS, default=list(PAPERS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--matrix", help="Matrix Market file for a row of CG")
    parser.add_argument("--rounds", type=int, default=3, help="of each row, at most (3)")
    parser.add_argument("--minutes", type=float, default=11, help="of all (11)")
    parser.add_argument("--output", default="build/applications.json",
                        help="the file of what has been measured (build/applications.json)")
    parser.add_argument("--sucl", default="./sucl", help="the program sucl (./sucl)")
    wanted = parser.parse_args(own)
    known = record(wanted.output)
    if wanted.minutes > 0:
        known.data["commands"].append(" ".join(["python3", "apps/measure.py", *sys.argv[1:]]))
        known.data["machine"] = machine(wanted.sucl)
        measure(wanted, passed, known)
    print_tables(known)


main()
