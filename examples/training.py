# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Trains a small network on data that it makes up, the same with every backend:

    torchrun --standalone --nproc-per-node 2 examples/training.py --backend sucl

On GPUs, of which each rank takes one: --device cuda, and --backend sucl or nccl.

Every rank has its own part of the data; DistributedDataParallel sums up the gradients. Prints the
loss of each step, in all its digits, and the steps in a second.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    """Two convolutions beside a way around them, as in ResNet."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(out),
            nn.ReLU(), nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out))
        self.around = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


def network(name, classes):
    if name == "resnet50":
        from torchvision.models import resnet50

        return resnet50(num_classes=classes)
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 256), nn.ReLU(),
                             nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, classes))
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Block(16, 16, 1), Block(16, 32, 2),
                         Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, classes))


def batches(rank, asked):
    """Of this rank: pictures whose brightness says their class, and that class."""
    numbers = torch.Generator().manual_seed(100 + rank)
    edge = 224 if asked.model == "resnet50" else 32
    for _ in range(asked.steps):
        wanted = torch.randint(asked.classes, (asked.batch,), generator=numbers)
        noise = torch.randn(asked.batch, 3, edge, edge, generator=numbers)
        pictures = noise + wanted.reshape(-1, 1, 1, 1) / asked.classes
        yield pictures.to(asked.device), wanted.to(asked.device)


def train(asked):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(asked.seed)  # the same network on every rank
    model = DistributedDataParallel(network(asked.model, asked.classes).to(asked.device))
    steps = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = list(batches(rank, asked))
    begin = time.perf_counter()
    for number, (x, wanted) in enumerate(data):
        if number == asked.warm:
            begin = time.perf_counter()
        steps.zero_grad()
        loss = nn.functional.cross_entropy(model(x), wanted)
        loss.backward()
        steps.step()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {number} loss {mean.item() / ranks!r}", flush=True)
    seconds = time.perf_counter() - begin
    if rank == 0:
        timed = asked.steps - asked.warm
        print(f"{asked.backend}: {timed / seconds:.2f} steps/s, "
              f"{timed * asked.batch * ranks / seconds:.1f} pictures/s on {ranks} ranks")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--backend", default="sucl", help="sucl, gloo, or another of torch")
    options.add_argument("--model", default="resnet", choices=["resnet", "mlp", "resnet50"],
                         help="resnet50 is torchvision's")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--warm", type=int, default=0, help="first steps that are not timed")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--batch", type=int, default=32, help="pictures a rank in a step")
    options.add_argument("--classes", type=int, default=10)
    options.add_argument("--threads", type=int, default=1, help="of a rank")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if asked.backend == "sucl":
        import sucl.torch  # noqa: F401, registers the backend; not needed where sucl is installed
    dist.init_process_group(asked.backend)
    train(asked)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
