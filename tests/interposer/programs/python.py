# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Collectives of mpi4py, an MPI program of others, on buffers and on Python objects, blocking and
not. Each rank says how many were wrong. To be run interposed."""

import array
import sys

try:
    import mpi4py
except ImportError:
    print("skipped: there is no mpi4py for this Python; requirements/tools.txt names it")
    sys.exit()
from mpi4py import MPI

world = MPI.COMM_WORLD
failures = 0


def expect(what, found, wanted):
    global failures
    if list(found) != list(wanted):
        failures += 1
        print(f"rank {world.rank}: {what} is wrong", file=sys.stderr, flush=True)


def doubles(n, value=-1.0):
    return array.array("d", [value] * n)


def collectives(comm, n):
    rank, size = comm.rank, comm.size
    last = size - 1
    ranks = [float(r) for r in range(size) for _ in range(n)]
    total = float(sum(range(size)))
    mine, out, all_ranks = doubles(n, rank), doubles(n), doubles(n * size)
    comm.Allreduce(mine, out)
    expect("Allreduce", out, [total] * n)
    comm.Reduce(mine, out if rank == last else None, MPI.MAX, last)
    expect("Reduce", out[:1], [float(last) if rank == last else total])
    out = doubles(n, rank)
    comm.Allreduce(MPI.IN_PLACE, out, MPI.MIN)
    expect("Allreduce in place", out, [0.0] * n)
    out = doubles(n, rank)
    comm.Bcast(out, last)
    expect("Bcast", out, [float(last)] * n)
    comm.Allgather(mine, all_ranks)
    expect("Allgather", all_ranks, ranks)
    exchanged = doubles(n * size)
    comm.Alltoall(all_ranks, exchanged)
    expect("Alltoall", exchanged, [float(rank)] * (n * size))
    gathered = doubles(n * size)
    comm.Gather(mine, gathered if rank == 0 else None, 0)
    expect("Gather", gathered, ranks if rank == 0 else [-1.0] * (n * size))
    comm.Scatter(all_ranks if rank == 0 else None, out, 0)
    expect("Scatter", out, mine)
    comm.Scan(mine, out)
    expect("Scan", out, [float(sum(range(rank + 1)))] * n)
    comm.Exscan(mine, out)
    expect("Exscan", out[:n if rank else 0], [float(sum(range(rank)))] * (n if rank else 0))
    comm.Reduce_scatter_block(all_ranks, out)
    expect("Reduce_scatter_block", out, [float(rank * size)] * n)
    comm.Barrier()
    out = doubles(n)
    request = comm.Iallreduce(mine, out)
    request.Wait()
    expect("Iallreduce", out, [total] * n)


def objects(comm):
    expect("allreduce", [comm.allreduce(comm.rank + 1)], [comm.size * (comm.size + 1) // 2])
    expect("bcast", comm.bcast({"rank": comm.rank}, 0).items(), [("rank", 0)])
    expect("allgather", comm.allgather(str(comm.rank)), [str(r) for r in range(comm.size)])


for _turn in range(30):
    for length in (1, 100, 3000):
        collectives(world, length)
    objects(world)
    halves = world.Split(world.rank % 2, -world.rank)
    collectives(halves, 10)
    halves.Free()
print(f"rank {world.rank}: {failures} failures with mpi4py {mpi4py.__version__}", flush=True)
sys.exit(1 if failures else 0)
