# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The group of all processes without some of them, by torch.distributed, and groups that it makes
afterwards."""

import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)
import sucl_torch_backend

RANKS, GONE = 4, 1
if not hasattr(dist, "shrink_group"):
    print("skipped: this torch shrinks no groups")
    sys.exit(77)


def start_ranks():
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, "RANK": str(r), "STORE": f"{folder}/s"})
            for r in range(RANKS)]
        for r, rank in enumerate(ranks):
            assert rank.wait() == 0, f"rank {r} has ended with {rank.returncode}"


def check_sum(group, numbers):
    x = torch.full((5,), float(os.environ["RANK"]))
    dist.all_reduce(x, group=group)
    assert (x == sum(numbers)).all(), (x, numbers)


if "RANK" not in os.environ:
    start_ranks()
    sys.exit(0)
import sucl.torch  # noqa: E402

sucl_torch_backend.register()  # as torch itself does where the package is installed
rank = int(os.environ["RANK"])
dist.init_process_group("sucl", store=dist.FileStore(os.environ["STORE"], RANKS), rank=rank,
                        world_size=RANKS)
part = dist.new_group([0, 2])
if rank in (0, 2):
    check_sum(part, (0, 2))
check_sum(None, range(RANKS))
split = dist.group.WORLD.split_group([0, GONE])  # it ends with the program's last reference
assert (split is None) == (rank not in (0, GONE))
del split
if rank != GONE:
    left = [r for r in range(RANKS) if r != GONE]
    dist.shrink_group([GONE])
    assert dist.get_world_size() == RANKS - 1, dist.get_world_size()
    assert dist.get_rank() == left.index(rank), dist.get_rank()
    check_sum(None, left)
    pair = dist.new_group([0, 2])  # of the ranks as they are now
    if dist.get_rank() != 1:
        check_sum(pair, (left[0], left[2]))
dist.destroy_process_group()
assert sucl.torch._job is None  # it ends with its last group
