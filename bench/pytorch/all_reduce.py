# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Times torch.distributed's all_reduce with several backends in one job, from call to completion.

    torchrun --standalone --nproc-per-node 2 bench/pytorch/all_reduce.py --against gloo
    torchrun ... bench/pytorch/all_reduce.py --device cuda --against nccl

A round of a size is so many calls with each backend, and the backends take turns at being the
first. Of a round the median counts, of the ranks the slowest, and of the rounds the median. On
CUDA a call is complete once the device is. What each backend has summed up is compared with what
the sum must be, in each round.
"""

import argparse
import json
import math
import os
import platform
import statistics
import time

import torch
import torch.distributed as dist

SIZES = tuple(4 << 2 * n for n in range(12))  # 4 B to 16 MiB


def options():
    """The command line's."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--against", nargs="+", default=["gloo"], help="backends beside sucl")
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"],
                   help="cuda: each rank takes a GPU")
    p.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes, a multiple of 4")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--seconds", type=float, default=0.05, help="of calls of a backend in a round")
    p.add_argument("--json", metavar="FILE", help="write the medians and all rounds to it")
    asked = p.parse_args()
    if any(size < 4 or size % 4 for size in asked.sizes):
        p.error("--sizes are of float32: multiples of 4")
    return asked


class Case:
    """A size with a backend. Every rank adds its number plus 1, and the index modulo 5."""

    def __init__(self, group, elements, device):
        self.group, self.device = group, device
        self.data = torch.empty(elements, device=device)
        self.index = torch.arange(elements, device=device).remainder(5).float()
        ranks = dist.get_world_size()
        self.wanted = self.index * ranks + ranks * (ranks + 1) / 2

    def call(self):
        dist.all_reduce(self.data, group=self.group)
        if self.device == "cuda":
            torch.cuda.synchronize()

    def check(self, name):
        self.data.copy_(self.index + dist.get_rank() + 1)
        self.call()
        if not torch.equal(self.data, self.wanted):
            raise SystemExit(f"{name}: a sum of {self.data.numel()} elements is wrong")
        self.data.zero_()  # stays 0, however often it is summed up

    def round(self, calls):
        """The median of the calls' seconds on this rank."""
        times = []
        for _ in range(calls):
            begin = time.perf_counter()
            self.call()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)


def slowest(value, group, device):
    """Of all ranks' values, so that they also start the next thing together."""
    whole = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(whole, dist.ReduceOp.MAX, group)
    return whole.item()


def measure(asked, groups, size):
    """The seconds of each round, by backend."""
    cases = {name: Case(group, size // 4, asked.device) for name, group in groups.items()}
    names, calls = list(groups), {}
    for name in names:
        cases[name].check(name)
        one = slowest(cases[name].round(5), groups[name], asked.device)
        calls[name] = max(3, min(1000, math.ceil(asked.seconds / one)))
    rounds = {name: [] for name in names}
    for number in range(asked.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            cases[name].check(name)
            seconds = cases[name].round(calls[name])
            rounds[name].append(slowest(seconds, groups[name], asked.device))
    return rounds


def text(size):
    units = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
    return next(f"{size // by} {unit}" for by, unit in units if size % by == 0)


def table(found):
    """The medians in microseconds, and how many times longer each takes than sucl."""
    names = list(next(iter(found.values())))
    others = names[1:]
    lines = ["| size | " + " | ".join(names + [f"{n} / sucl" for n in others]) + " |",
             "|---|" + "---|" * (len(names) + len(others))]
    ratios = {name: [] for name in others}
    for size, rounds in found.items():
        us = {name: statistics.median(rounds[name]) * 1e6 for name in names}
        for name in others:
            ratios[name].append(statistics.median(
                a / b for a, b in zip(rounds[name], rounds["sucl"])))
        lines.append(f"| {text(size)} | " + " | ".join(
            [f"{us[n]:.1f}" for n in names] + [f"{ratios[n][-1]:.2f}" for n in others]) + " |")
    lines.append("| geometric mean |" + "  |" * len(names) + "".join(
        f" {statistics.geometric_mean(ratios[n]):.2f} |" for n in others))
    return "\n".join(lines)


def main():
    asked = options()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    if asked.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    import sucl.torch  # noqa: F401, registers the backend; not needed where sucl is installed

    dist.init_process_group("sucl")
    groups = {"sucl": dist.group.WORLD}
    groups.update((name, dist.new_group(backend=name)) for name in asked.against)
    found = {size: measure(asked, groups, size) for size in asked.sizes}
    if dist.get_rank() == 0:
        print(f"all_reduce of float32, {dist.get_world_size()} ranks, torch {torch.__version__}, "
              f"{os.cpu_count()} processors, load before {load:.1f}; microseconds\n")
        print(table(found), flush=True)
        if asked.json:
            with open(asked.json, "w") as file:
                json.dump({"ranks": dist.get_world_size(), "torch": torch.__version__,
                           "machine": f"{platform.machine()}, {os.cpu_count()} processors",
                           "load_before": load, "device": asked.device,
                           "seconds": {str(size): rounds for size, rounds in found.items()}},
                          file, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
