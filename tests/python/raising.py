# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Functions of reductions that raise on the last rank: that ends the communicator on all ranks.
The job ends with an error, since operations are given up."""

import sys

import numpy as np
import sucl

comm = sucl.world()
with_queue = sucl.runtime().world("cpu")
LAST = comm.rank == comm.size - 1


def raises(lower, upper):
    if LAST:
        raise ZeroDivisionError("by the program")
    return np.maximum(lower, upper)


def returns_none(lower, upper):
    return None if LAST else np.maximum(lower, upper)


def returns_floats(lower, upper):
    return upper / 2.0 if LAST else np.maximum(lower, upper)


kept = []


def keeps(lower, upper):
    kept.append(upper[1:] if LAST else None)
    return np.maximum(lower, upper)


def error_of(function, on, size):
    """What the last rank, and what the others get."""
    try:
        event = sucl.UserOp(function).allreduce(on, np.arange(size))
        if event is not None:
            event.wait()
    except Exception as error:
        return error
    return None


wrong = []
for function, kind, text in ((raises, ZeroDivisionError, "by the program"),
                             (returns_none, sucl.InvalidArgumentError, "has returned None"),
                             (returns_floats, TypeError, "Cannot cast"),
                             (keeps, sucl.InvalidMemoryError, "has kept an array")):
    # Each rank folds few elements itself, so that others have a result; many are folded in shares.
    for on, size in ((comm.dup(), 3), (comm.dup().blocking, 3), (comm.dup(), 9999),
                     (comm.dup().blocking, 9999), (with_queue.dup(), 9999)):
        error = error_of(function, on, size)
        wanted = kind if LAST else sucl.Error
        if not LAST and size == 3 and error is None:
            continue
        if not isinstance(error, wanted) or text not in str(error):
            wrong.append(f"{function.__name__} of {size}: {error!r}")
sys.stdout.write(f"rank {comm.rank}: {wrong or 'all was told'}\n")
sys.stdout.flush()
