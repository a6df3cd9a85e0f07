# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Compares backends: runs train.py with each in turn, round after round, and prints medians.

    python3 apps/training/compare.py --rounds 5 -- --model gpt --steps 30 --warm 5
    python3 apps/training/compare.py --backends sucl nccl --ranks 2 -- --device cuda

All are started in the same way: by mpiexec where the backend mpi is one of them, else by torchrun.
Rates are compared within a round, and each backend is at times the first: what else the machine
does meanwhile falls on all of them.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TRAIN = str(pathlib.Path(__file__).with_name("train.py"))


def command(asked):
    if "mpi" in asked.backends:
        return [*asked.mpiexec.split(), "-n", str(asked.ranks), sys.executable]
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(asked.ranks)]


def run(asked, backend, file):
    subprocess.run([*command(asked), TRAIN, *asked.options, "--backend", backend, "--json", file],
                   check=True, stdout=subprocess.DEVNULL)
    with open(file) as written:
        return json.load(written)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--backends", nargs="+", default=["sucl", "gloo"], help="the first against all")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--mpiexec", default="mpiexec", help="with its options")
    p.add_argument("--json", metavar="FILE", help="write all rounds to it")
    p.add_argument("options", nargs="*", help="of train.py, after --")
    asked = p.parse_args()
    rounds, loads = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.rounds):
            loads.append(os.getloadavg()[0])
            first = number % len(asked.backends)
            order = asked.backends[first:] + asked.backends[:first]
            rounds.append({b: run(asked, b, os.path.join(folder, "run.json")) for b in order})
    own = asked.backends[0]
    print(f"| backend | {rounds[0][own]['unit']}/s | ms a step | {own} is faster by |")
    print("|---|---|---|---|")
    for backend in asked.backends:
        rate = statistics.median(r[backend]["per_second"] for r in rounds)
        step = statistics.median(r[backend]["seconds_per_step"] for r in rounds)
        ratio = statistics.median(r[own]["per_second"] / r[backend]["per_second"] for r in rounds)
        print(f"| {backend} | {rate:.1f} | {step * 1e3:.2f} | {ratio:.2f} |")
    print(f"load before the rounds: {min(loads):.1f} to {max(loads):.1f}")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({"rounds": rounds, "loads": loads}, file, indent=1)


if __name__ == "__main__":
    main()
