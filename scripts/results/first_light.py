#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/results/first-light.md from what `sucl bench --json FILE` wrote.

    python3 scripts/results/first_light.py FILE
"""

import json
import sys

BASELINES = {"device": "mpi", "buffer": "host-accessor"}
NAMES = {"device": "USM", "buffer": "buffer"}


def size_text(size):
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def table(title, columns, sizes, cell):
    print(f"\n{title}\n")
    print("| bytes | " + " | ".join(", ".join((c, NAMES[m], f)) for c, m, f in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for size in sizes:
        print(f"| {size_text(size)} | " + " | ".join(cell(*c, size) for c in columns) + " |")


def main(path):
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    rows = results["rows"]
    times = {
        (r["collective"], r["memory"], r["form"], r["bytes"], r["impl"]): r["median_us"]
        for r in rows
    }
    columns = list(
        dict.fromkeys(
            (r["collective"], r["memory"], r["form"]) for r in rows if r["impl"] == "sucl"
        )
    )
    sizes = sorted({r["bytes"] for r in rows})

    def pair(collective, memory, form, size):
        """SuCL's time and that of the baseline, which always blocks."""
        return (
            times.get((collective, memory, form, size, "sucl")),
            times.get((collective, memory, "blocking", size, BASELINES[memory])),
        )

    def ratio(*key):
        ours, theirs = pair(*key)
        return f"{ours / theirs:.2f}" if ours and theirs else "-"

    def both(*key):
        ours, theirs = pair(*key)
        return f"{ours:.4g} / {theirs:.4g}" if ours and theirs else "-"

    print(f"{sum(r['valid'] for r in rows)} of {len(rows)} valid")
    for key in ("cpu", "mpi", "empty_host_task", "communicator_creation"):
        if key in results["header"]:
            print(f"{key}: {results['header'][key]}")
    table("SuCL's time by the baseline's:", columns, sizes, ratio)
    table("Microseconds, SuCL's / the baseline's:", columns, sizes, both)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
