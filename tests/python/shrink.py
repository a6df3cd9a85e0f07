# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""A rank is killed, and the others go on: for `sucl run --launcher local --enable-recovery`."""

import os
import signal

import numpy as np
import sucl

comm = sucl.world()
rank, size = comm.rank, comm.size
x = np.array([rank], "float64")
comm.blocking.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.blocking.allreduce(x)
    raise SystemExit("an allreduce without rank 1")
except sucl.PeerLostError:
    comm = comm.shrink()
assert comm.size == size - 1 and comm.rank == (rank if rank < 1 else rank - 1)
x = np.array([rank], "float64")
comm.blocking.allreduce(x)
assert x[0] == sum(range(size)) - 1, x
print(f"rank {rank} goes on with {comm.size}")
