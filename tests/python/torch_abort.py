# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Process groups of torch that a program aborts: that is no failure of the job, whatever was in
flight, on whichever rank, and where a rank has not looked since."""

import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)
import sucl_torch_backend

RANKS = 2


def start_ranks():
    """All have to end well, and to say nothing else than what they print."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, __file__], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "RANK": str(r), "STORE": folder})
            for r in range(RANKS)]
        said = [rank.communicate()[0] for rank in ranks]
    for rank, process in enumerate(ranks):
        print(said[rank], end="")
        assert process.returncode == 0, f"rank {rank} has ended with {process.returncode}"
        complaints = [line for line in said[rank].splitlines()
                      if line.startswith("sucl[") or "not finalised" in line]
        assert not complaints, complaints
        assert f"rank {rank}: all was as wanted" in said[rank]


def begin(number):
    dist.init_process_group("sucl", store=dist.FileStore(f"{os.environ['STORE']}/{number}", RANKS),
                            rank=int(os.environ["RANK"]), world_size=RANKS)


def in_use(group=None):
    x = torch.ones(3)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [RANKS] * 3, x


def abort_on_one_rank():
    """The other one never calls anything on the group again, nor looks at it."""
    group = dist.new_group()
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        group._get_backend(torch.device("cpu")).abort()
        try:
            work.wait()
        except dist.DistBackendError as error:
            assert "aborted" in str(error), error
        else:
            raise AssertionError("an operation is done that one rank alone has called")
    dist.barrier()
    return group


def abort_where_the_other_calls():
    """Who calls something on it later is told."""
    group = dist.new_group()
    if dist.get_rank() == 0:
        group._get_backend(torch.device("cpu")).abort()
    dist.barrier()
    if dist.get_rank() == 1:
        try:
            dist.all_reduce(torch.ones(3), group=group)
        except dist.DistBackendError as error:
            assert "was ended on rank 0: the process group was aborted" in str(error), error
        else:
            raise AssertionError("a group works that was aborted")
    dist.barrier()
    return group


def abort_on_all(elements):
    group = dist.new_group()
    in_use(group)
    if elements:  # in flight, and no rank waits for it
        try:
            work = dist.all_reduce(torch.ones(elements), group=group, async_op=True)
        except dist.DistBackendError as error:  # the other one was that fast
            assert "aborted" in str(error), error
            work = None
        c10d._abort_process_group(group)
        del work
    else:
        c10d._abort_process_group(group)
    dist.barrier()


if "RANK" not in os.environ:
    start_ranks()
    sys.exit(0)
sucl_torch_backend.register()  # as torch itself does where the package is installed
begin(1)
kept = [abort_on_one_rank(), abort_where_the_other_calls()]
abort_on_all(0)
abort_on_all(1 << 22)
groups = [dist.new_group() for _ in range(20)]
for one in groups:
    in_use(one)
for one in groups:
    dist.destroy_process_group(one)
in_use()
dist.destroy_process_group()
begin(2)  # a job of its own
in_use()
c10d._abort_process_group()
begin(3)
in_use()
c10d._abort_process_group()
print(f"rank {os.environ['RANK']}: all was as wanted", flush=True)
