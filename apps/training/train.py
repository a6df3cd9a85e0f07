# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Trains a network on data that it makes up, the same with every backend of torch.distributed.

    torchrun --standalone --nproc-per-node 2 apps/training/train.py --backend sucl
    mpiexec -n 2 python3 apps/training/train.py --backend mpi

Every rank has its own part of the data; the ranks sum up the gradients, or with --parallel fsdp2
also share out the weights. Prints the loss of each step, in all its digits, and the median of the
images, or of a GPT the tokens, in a second: of the time of the slowest rank in a step.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import time

import models
import parallel
import torch
import torch.distributed as dist


def options():
    """The command line's."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--backend", default="sucl", choices=["sucl", "gloo", "mpi", "nccl"],
                   help="mpi: torch's own, or where torch has been built without it, mpi4py's "
                   "all-reduce of a copy in memory of the host, as a communication hook of "
                   "DistributedDataParallel; start that with mpiexec")
    p.add_argument("--parallel", default="ddp", choices=["ddp", "fsdp2"],
                   help="DistributedDataParallel, or fully_shard")
    p.add_argument("--model", default="resnet", choices=models.MODELS,
                   help="resnet50 is torchvision's, the others are of this program")
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"],
                   help="cuda: each rank takes a GPU")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--warm", type=int, default=0, help="first steps that are not timed")
    p.add_argument("--batch", type=int, default=32, help="images, or sentences, a rank in a step")
    p.add_argument("--rate", type=float, default=0.05, help="of learning")
    p.add_argument("--threads", type=int, default=1, help="of a rank")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--strict", action="store_true",
                   help="every run has the same bits: SUCL_DETERMINISM=strict, and torch's own "
                   "deterministic algorithms")
    p.add_argument("--json", metavar="FILE", help="write the losses and times of all steps to it")
    of_images = p.add_argument_group("images")
    of_images.add_argument("--classes", type=int, default=10)
    of_images.add_argument("--edge", type=int, help="pixels (224 for resnet50, else 32)")
    gpt = p.add_argument_group("--model gpt")
    gpt.add_argument("--layers", type=int, default=2)
    gpt.add_argument("--heads", type=int, default=4)
    gpt.add_argument("--width", type=int, default=64)
    gpt.add_argument("--context", type=int, default=64, help="tokens of a sentence")
    gpt.add_argument("--vocabulary", type=int, default=128)
    asked = p.parse_args()
    if not 0 <= asked.warm < asked.steps:
        p.error(f"--warm {asked.warm} leaves none of {asked.steps} steps to time")
    asked.edge = asked.edge or (224 if asked.model == "resnet50" else 32)
    return asked


def of_all(value, op, device):
    whole = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(whole, op)
    return whole.item()


def train(asked):
    """The mean loss of all ranks, and the slowest rank's seconds, of each step."""
    ranks = dist.get_world_size()
    data = models.batches(asked, dist.get_rank())
    model = parallel.shared_out(models.network(asked), asked)
    steps = torch.optim.SGD(model.parameters(), lr=asked.rate, momentum=0.9)
    losses, seconds = [], []
    for number, (x, wanted) in enumerate(data):
        begin = time.perf_counter()
        steps.zero_grad()
        loss = models.loss_of(model(x), wanted)
        loss.backward()
        steps.step()
        if asked.device == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - begin
        losses.append(of_all(loss.item(), dist.ReduceOp.SUM, asked.device) / ranks)
        seconds.append(of_all(took, dist.ReduceOp.MAX, asked.device))
        if dist.get_rank() == 0:
            print(f"step {number} loss {losses[-1]!r}", flush=True)
    return losses, seconds


def report(asked, losses, seconds):
    """What rank 0 says, and writes."""
    ranks = dist.get_world_size()
    unit = "tokens" if asked.model == "gpt" else "images"
    step = statistics.median(seconds[asked.warm:])
    rate = models.items(asked) * ranks / step
    print(f"{asked.backend}: {rate:.1f} {unit}/s on {ranks} ranks, {step * 1e3:.2f} ms a step")
    if not asked.json:
        return
    with open(asked.json, "w") as file:
        json.dump({"options": vars(asked), "ranks": ranks, "torch": torch.__version__,
                   "machine": f"{platform.machine()}, {os.cpu_count()} processors",
                   "unit": unit, "per_second": rate, "seconds_per_step": step,
                   "losses": losses, "seconds": seconds}, file, indent=1)


def main():
    asked = options()
    parallel.begin(asked)
    losses, seconds = train(asked)
    if dist.get_rank() == 0:
        report(asked, losses, seconds)
    gc.collect()  # gloo may abort at exit while cycles of DDP still hold its group
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
