# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""SuCL, the SYCL unified communication library: collectives and messages on arrays of any library.

    import numpy, sucl

    comm = sucl.world()                      # every process of the job
    x = numpy.full(4, comm.rank + 1.0)
    event = comm.allreduce(x, op="sum")      # returns at once
    event.wait()                             # or: await event
    comm.blocking.broadcast(x, root=0)       # or wait in the call

`Communicator` has the operations, `Runtime` other ways to start a job, `errors` what is raised.
"""

from . import _loading, errors, plans
from .errors import (
    ConfigurationError,
    Error,
    InternalError,
    InvalidArgumentError,
    InvalidCountError,
    InvalidMemoryError,
    InvalidRankError,
    InvalidTypeError,
    LateError,
    MismatchError,
    NativeError,
    OutOfMemoryError,
    PeerLostError,
    ShutDownError,
    UnavailableError,
    UnsupportedError,
)

_core = _loading.core()
_core.translate_errors(errors._made)

from .communicator import (  # noqa: E402
    BlockingOperations,
    Communicator,
    Event,
    Member,
    Memory,
    Persistent,
    PersistentOperations,
    Plan,
    Registration,
)
from .composition import Composition, Slice  # noqa: E402
from .functions import ScaledSum, UserOp  # noqa: E402
from .groups import Group, GroupMember  # noqa: E402
from .neighbors import BlockingNeighborhood, Neighborhood  # noqa: E402
from .partition import Balancer, BoxBalancer, BoxPartition, Migration, Partition  # noqa: E402
from .recordings import Executable  # noqa: E402
from .runtime import Runtime, each_rank, runtime, unique_id, world  # noqa: E402
from .types import KINDS, NO_RANK, OPS, TYPES, defined, loc_dtype  # noqa: E402
from .values import Values  # noqa: E402

__version__ = _core.version

__all__ = [
    "Balancer", "BlockingNeighborhood", "BlockingOperations", "BoxBalancer", "BoxPartition",
    "Communicator", "Composition", "ConfigurationError", "Error", "Event", "Executable", "Group",
    "GroupMember", "InternalError", "InvalidArgumentError", "InvalidCountError",
    "InvalidMemoryError", "InvalidRankError", "InvalidTypeError", "KINDS", "LateError", "Member",
    "Memory", "Migration", "MismatchError", "NO_RANK", "NativeError", "Neighborhood", "OPS",
    "OutOfMemoryError", "Partition", "PeerLostError", "Persistent", "PersistentOperations", "Plan",
    "Registration", "Runtime", "ScaledSum", "ShutDownError", "Slice", "TYPES", "UnavailableError",
    "UnsupportedError", "UserOp", "Values", "defined", "each_rank", "errors", "loc_dtype", "plans",
    "runtime", "unique_id", "world"]
