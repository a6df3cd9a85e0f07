# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""A rank is killed, the others go on, and two processes join them: for
`sucl run --launcher local --enable-recovery`."""

import os
import signal
import subprocess
import sys

import numpy as np
import sucl


def check(comm, size):
    assert comm.size == size, comm.size
    x = np.array([comm.rank], "float64")
    comm.blocking.allreduce(x)
    assert x[0] == sum(range(size)), x


def join(id, rank, size):
    with sucl.Runtime.join(id, rank, size) as runtime:
        check(runtime.world(), size)


def survive():
    runtime = sucl.Runtime()
    comm = runtime.world()
    rank, size = comm.rank, comm.size
    comm.blocking.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.blocking.allreduce(np.array([rank], "float64"))
        raise SystemExit("an allreduce without rank 1")
    except sucl.PeerLostError:
        comm = comm.shrink()
    assert comm.rank == (rank if rank < 1 else rank - 1)
    check(comm, size - 1)
    own = comm.rank
    try:
        runtime.grow(comm, "", 0)
        raise SystemExit("it has grown by no process")
    except sucl.InvalidCountError as e:
        assert "0 processes cannot join" in str(e), e
    id, joiners = "", []
    if own == 0:
        id = sucl.unique_id("loopback")
        joiners = [subprocess.Popen([sys.executable, "-B", __file__, id, str(size - 1 + i),
                                     str(size + 1)]) for i in range(2)]
    runtime.grow(comm, id, 2)
    assert (runtime.rank, runtime.size) == (own, size + 1)
    check(runtime.world(), size + 1)
    runtime.shut_down()
    assert all(one.wait(60) == 0 for one in joiners)
    print(f"rank {rank} goes on with {size + 1}")


if len(sys.argv) > 1:
    join(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
else:
    survive()
