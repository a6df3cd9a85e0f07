# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Compares the variants of an application, and prints rows of a Markdown table.

Runs them in turn, several times: with the arguments that follow --, or without any in the sizes of
the papers, a row for each. The cells say how many times longer than SuCL's the others'
medians are, and in brackets the least and the most of the rounds. A run that does not pass its
checks ends the comparison.

    python3 apps/measure.py halo --ranks 2 --rounds 5 -- --size 256x256x256 --iterations 100
    python3 apps/measure.py cg --ranks 4
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

VARIANTS = ("sucl", "usm", "host-accessor")
# What the papers measured.
PAPERS = {
    "halo": [f"--size {n} --iterations 100"
             for n in ("256x256x256", "512x512x256", "1024x1024x256")],
    "transpose": [f"--size {n} --iterations 100"
                  for n in ("256x256x256", "512x512x256", "1024x1024x256")],
    "comd": [f"--cells {n} --potential eam --iterations 100"
             for n in ("32x32x32", "64x64x64", "128x128x128")],
    "cg": [f"--rows {2 ** e} --solves {max(1, 2 ** (13 - e))}" for e in range(7, 16)],
}
HEADER = ("| | ranks | rounds | over USM | over host_accessor | communication over USM | "
          "over host_accessor |\n|---|---:|---:|---|---|---|---|")


def run(sucl, app, ranks, variant, arguments):
    """One run: its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [sucl, "run", "-n", str(ranks), "--", f"apps/{app}", "--quiet",
                   "--variant", variant, "--json", str(result), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(result.read_text())


def measure(wanted, arguments):
    """Rounds of one run of each variant; they take turns at being the first."""
    rounds, until = [], time.monotonic() + wanted.seconds
    while len(rounds) < wanted.rounds and (not rounds or time.monotonic() < until):
        first = len(rounds) % len(VARIANTS)
        rounds.append({v: run(wanted.sucl, wanted.app, wanted.ranks, v, arguments)
                       for v in VARIANTS[first:] + VARIANTS[:first]})
    return rounds


def ratios(rounds, time_of):
    """A cell for each variant of MPI."""
    for variant in VARIANTS[1:]:
        median = {v: statistics.median(time_of(r[v]) for r in rounds) for v in ("sucl", variant)}
        each = [time_of(r[variant]) / time_of(r["sucl"]) for r in rounds]
        yield f"{median[variant] / median['sucl']:.2f} ({min(each):.2f} to {max(each):.2f})"


def report(wanted, arguments):
    """A row."""
    rounds = measure(wanted, arguments)
    if wanted.json:
        with open(wanted.json, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(r) + "\n" for r in rounds)
    cells = list(ratios(rounds, lambda r: r["seconds"]))
    if wanted.ranks > 1 and all("phases" in r[v] for r in rounds for v in VARIANTS):
        cells += ratios(rounds, lambda r: r["phases"]["communicate"])
    else:
        cells += ["", ""]
    print(f"| {wanted.app} `{' '.join(arguments)}` | {wanted.ranks} | {len(rounds)} | "
          f"{' | '.join(cells)} |", flush=True)


def main():
    text = __doc__.splitlines()
    parser = argparse.ArgumentParser(
        description=text[0], epilog="The application's arguments follow --; without them the sizes "
        "of the papers are measured.")
    parser.add_argument("app", choices=PAPERS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3600,
                        help="begin no round of a row after these")
    parser.add_argument("--sucl", default="./sucl", help="the program sucl")
    parser.add_argument("--no-header", action="store_true", help="print no head of the table")
    parser.add_argument("--json", help="add the results of all runs to this file, a line a round")
    own, passed = sys.argv[1:], []
    if "--" in own:
        own, passed = own[:own.index("--")], own[own.index("--") + 1:]
    wanted = parser.parse_args(own)
    if not wanted.no_header:
        print(HEADER, flush=True)
    for arguments in [passed] if passed else [row.split() for row in PAPERS[wanted.app]]:
        report(wanted, arguments)


main()
