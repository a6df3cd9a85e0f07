# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Communicators, events and persistent operations."""

import asyncio
import ctypes
import gc
import operator
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional

from . import _core
from ._awaiting import future_of
from ._operations import Array, Events, Operations
from .errors import (
    InvalidArgumentError,
    InvalidMemoryError,
    InvalidTypeError,
    ShutDownError,
    checked,
)
from .types import dtype_name, kind_number, op_number, type_number

if TYPE_CHECKING:
    from .groups import Group
    from .recordings import Executable
    from .values import Values

_EVENT, _BLOCKING, _PERSISTENT = 0, 1, 2


class Member(NamedTuple):
    """One rank of a communicator, as every rank sees it."""

    rank: int
    node: int
    local_rank: int
    host: str
    process: int
    platform: str
    implementation: str
    sycl_backend: str
    device: str
    device_memory_on_host: bool
    native_memory: str
    island: int


class Event:
    """An operation in flight. It keeps the arrays of the operation alive until that is done.

    ``await event`` waits in asyncio without holding up the loop. As `deps` of other operations it
    orders them after this one. ``dpctl.SyclEvent(event._get_capsule())`` makes it one of dpctl.
    """

    __slots__ = ("_core",)

    def __init__(self, core: Any):
        self._core = core

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Returns True when the operation is done, or False after `timeout` seconds.

        Other threads run meanwhile, and in the main thread what handles signals: where that raises,
        as Ctrl-C does, the wait is given up, and the operation goes on. Raises what has failed on
        the communicator. May be called after `Runtime.shut_down`, before which all operations were
        done.
        """
        if timeout is None:
            return self._core.wait(-1.0)
        try:
            seconds = float(max(0.0, timeout))
        except TypeError:
            raise InvalidArgumentError.of(f"the timeout is {timeout!r}",
                                          "Pass a number of seconds, or None") from None
        return self._core.wait(seconds)

    def done(self) -> bool:
        """Whether the operation is done. Does not wait."""
        return self._core.done()

    def __await__(self):
        if not self._core.done():
            yield from future_of(self._core, asyncio.get_running_loop())
        self._core.wait(-1.0)
        return None

    def _get_capsule(self):
        return self._core._get_capsule()

    def __repr__(self) -> str:
        try:
            state = "done" if self.done() else "in flight"
        except ShutDownError:  # in a forked child
            state = "of another process"
        return f"<sucl.Event, {state}>"


def _events(deps):
    if deps is None:
        return None
    try:
        return [d._core if isinstance(d, Event) else d for d in deps]
    except TypeError:
        raise InvalidArgumentError.of(
            f"deps is {deps!r}, which is no list", "Pass a list of events: deps=[event]") from None


def _number(value, what, least=-2**31, most=2**31 - 1):
    try:
        if least <= operator.index(value) <= most:
            return operator.index(value)
    except TypeError:
        pass
    raise InvalidArgumentError.of(f"{what} is {value!r}",
                                  f"Pass an integer from {least} to {most}")


class Persistent:
    """One operation on fixed arrays, checked when it was made, and started many times.

    Every rank makes it and starts it in the same order as other operations of the communicator. It
    may be started again when it is done.
    """

    def __init__(self, core: Any):
        self._core = core

    def start(self, *, deps: Events = None) -> Event:
        """Starts it."""
        return Event(self._core.start(_events(deps)))

    def run(self, *, deps: Events = None) -> None:
        """Runs it, and returns when it is done."""
        self._core.run(_events(deps))


class BlockingOperations(Operations[None]):
    """The operations in the form that returns when they are done. Costs least.

    Other threads of Python run meanwhile. All ranks call this form of a collective.
    """

    def __init__(self, core: Any):
        self._core, self._post_core = core, core.post

    @property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return self._core.rank()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._core.size()

    def _post(self, kind, send, recv, op=0, root=0, deps=None, arrays=None, source=0, tag=0):
        self._post_core(_BLOCKING, kind, send, recv, arrays, op, root, source, tag, _events(deps))


class PersistentOperations(Operations[Persistent]):
    """The operations in the form that makes a `Persistent` and starts nothing."""

    def __init__(self, core: Any):
        self._post_core = core.post

    def _post(self, kind, send, recv, op=0, root=0, deps=None, arrays=None, source=0, tag=0):
        return Persistent(self._post_core(_PERSISTENT, kind, send, recv, arrays, op, root, source,
                                          tag, _events(deps)))


class _Block(ctypes.Array):
    """What arrays of a Memory keep alive, so that it is known whether there are any."""

    _type_, _length_ = ctypes.c_char, 0


class Memory:
    """Memory of `Communicator.allocate`. ``numpy.asarray(memory)`` is an array of it."""

    def __init__(self, communicator: "Communicator", count: int, dtype: Any):
        import numpy

        self.dtype = numpy.dtype(dtype)
        self.size = _number(count, "the number of elements", 0,
                            (2**63 - 1) // max(1, self.dtype.itemsize))
        if self.dtype.hasobject:
            raise InvalidTypeError.of(
                "elements that are objects of Python are known to their own process alone",
                "Allocate numbers")
        self._communicator = communicator
        self._block: Any = lambda: None  # a weak reference
        self._address = _core.allocate(communicator._core, self.size * self.dtype.itemsize)

    @property
    def __array_interface__(self):
        if self._address is None:
            raise InvalidMemoryError.of("the memory has been freed", "Allocate other memory")
        block = self._block()
        if block is None:
            block = type("_Block", (_Block,), {
                "_length_": self.size * self.dtype.itemsize}).from_address(self._address)
            self._block = weakref.ref(block)
        return {"version": 3, "data": block, "shape": (self.size,), "typestr": self.dtype.str}

    def free(self) -> None:
        """Ends it. Every rank calls it. Raises `InvalidMemoryError`, and frees nothing, while there
        are arrays of it or operations on it."""
        if self._address is None:
            return
        if self._block() is not None:
            gc.collect()  # what only cycles keep
        if self._block() is not None:
            raise InvalidMemoryError.of(
                "the memory is in use by arrays of it, or by an operation",
                "Wait for operations and delete the arrays first, views of them too")
        address, self._address = self._address, None
        _core.deallocate(self._communicator._core, address)


class Registration:
    """An array that is mapped into other ranks, of `Communicator.register_memory`. It keeps the
    array until `deregister`, which the end of a block calls; one that is never deregistered, as a
    block that ends with an exception leaves it, is kept for good."""

    __slots__ = ("_core",)

    def __init__(self, core: Any):
        self._core = core

    @property
    def active(self) -> bool:
        """Whether it is mapped: the same on every rank."""
        return self._core.active()

    def deregister(self) -> None:
        """Unmaps it, when no operation issued before uses it. Every rank calls it, in the same
        order as collectives. More calls do nothing."""
        self._core.deregister()

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:  # other ranks may not come after an error
            self.deregister()


class Communicator(Operations[Event]):
    """An ordered set of ranks that communicate, each with a SYCL queue or, for memory of the host
    only, without one.

    Its operations return an `Event` at once, start in the order of the calls, and may overlap.
    `blocking` has the same in the form that waits, `persistent` in the form that is started many
    times. It keeps its runtime alive; after `Runtime.shut_down` every call raises
    `ShutDownError`. Threads that communicate independently want a
    communicator each: `dup`.
    """

    def __init__(self, core: Any, runtime: Any = None):
        self._core = core
        self._post_core = core.post
        self._runtime = runtime  # which lives as long as this

    def _post(self, kind, send, recv, op=0, root=0, deps=None, arrays=None, source=0, tag=0):
        return Event(self._post_core(_EVENT, kind, send, recv, arrays, op, root, source, tag,
                                     _events(deps)))

    @cached_property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return self._core.rank()

    @cached_property
    def size(self) -> int:
        """The number of ranks."""
        return self._core.size()

    @cached_property
    def blocking(self) -> BlockingOperations:
        """All operations in the form that returns when they are done."""
        return BlockingOperations(self._core)

    @cached_property
    def persistent(self) -> PersistentOperations:
        """All operations in the persistent form."""
        return PersistentOperations(self._core)

    @cached_property
    def values(self) -> "Values":
        """Collectives on one number of each rank, which return the result."""
        from .values import Values

        return Values(self)

    @property
    def members(self) -> List[Member]:
        """Every rank, with its node and device: the same on every rank."""
        return [Member(*m) for m in self._core.members()]

    @property
    def queue(self) -> Optional[Any]:
        """The queue, which ``dpctl.SyclQueue(queue._get_capsule())`` makes one of dpctl; or
        None."""
        return self._core.queue() if self._core.has_queue() else None

    def group(self) -> "Group":
        """A new group of messages."""
        from .groups import Group

        return Group(self)

    def record(self, calls: Callable[[], Any], queue: Any = None) -> "Executable":
        """Records what `calls` starts: operations of this and of other communicators, in forms that
        return events, and commands that others give the queue. Nothing of it runs;
        `Executable.replay` runs all of it, for less than as many calls.

            step = comm.record(lambda: [comm.allreduce(x), comm.broadcast(y)])
            for _ in range(100):
                step.replay()
            step.replay().wait()

        Every rank records the same operations, in the same order as it calls others; what differs
        raises `MismatchError` on all. Where SYCL has command graphs the sequence is one; elsewhere
        each replay calls `calls` again. So that a program is right with either, `calls` does
        nothing but start operations, the same ones each time: it waits for nothing, and computes
        nothing on the host.

        Args:
            calls: a function without arguments. What it raises is raised.
            queue: as of `Runtime.world`; None: the communicator's own. More than one after the
                other wants an in-order queue, as ``dpctl.SyclQueue("cpu", property="in_order")``.

        Raises:
            InvalidArgumentError: the communicator has no queue.
            UnsupportedError: an order that graphs do not keep; a call that waits.
        """
        from .recordings import Executable

        return Executable(_core.record(self._core, queue, calls), self)

    def split(self, colour: int, key: int = 0) -> Optional["Communicator"]:
        """Ranks with the same `colour` form a communicator, ordered by `key`, then by rank.

        Collective. A negative colour gives None.
        """
        made = self._core.split(_number(colour, "the colour"), _number(key, "the key"))
        return None if made.empty() else Communicator(made, self._runtime)

    def dup(self) -> "Communicator":
        """The same ranks, with an order of operations of its own. Collective."""
        return Communicator(self._core.dup(), self._runtime)

    def shrink(self) -> "Communicator":
        """A communicator of the ranks that are left when others have died, in the old order.

        Every rank that lives calls it, after `sucl.PeerLostError` or `sucl.LateError`; this
        communicator is given up. `sucl.UnsupportedError` where MPI is the control plane, which ends
        the job.
        """
        return Communicator(self._core.shrink(), self._runtime)

    def allocate(self, count: int, dtype: Any = "float64") -> Memory:
        """Zeroed memory that the other ranks of the node reach, so that collectives on it need no
        copies. Every rank calls it, each with a count of its own. It ends with `Memory.free` or
        with the communicator."""
        return Memory(self, count, dtype)

    def register_memory(self, array: Optional[Array]) -> "Registration":
        """Maps an array in memory of this rank's device into the other ranks, so that collectives
        on it write into the peers' memory: pays off for large messages on memory that is used
        repeatedly, of which SuCL's own kernels run collectives. Elsewhere all works as before.

        Every rank calls it, in the same order as collectives, each with an array of its own of any
        size, or None.

            with comm.register_memory(x) as registered:
                for _ in range(100):
                    comm.allreduce(x)

        Raises:
            InvalidMemoryError: on every rank, if any passes what is no array.
        """
        return Registration(_core.register_memory(self._core, array))

    def compile(self, composition: Any, dtype: Any, *, hierarchy=(), via=(), stripe: int = 1,
                ring: int = 1, pipeline: int = 1) -> "Plan":
        """Makes a plan of a `Composition` for elements of a type, and proves that it computes what
        the composition says.

        Every rank calls it with the same arguments. What is wrong on any rank raises on all, and
        nothing is made.

        Args:
            hierarchy: factors of the ranks, outermost first, as (2, 4) for 2 nodes of 4.
            via: the transport of each level: "ipc", "mpi" or "any".
            stripe: parts of what leaves a node, which go through that many of its ranks.
            ring: the first factor of the hierarchy, whose groups then pass data around a ring.
            pipeline: parts of the data that follow each other through the levels.
        """
        core = checked(_core.compile, self._core, composition.ranks, composition.primitives,
                       list(hierarchy), list(via), (stripe, ring, pipeline),
                       _core.element_type(dtype_name(dtype)))
        return Plan(core)

    def use_tuning(self, toml: str) -> None:
        """Goes by the text of a tuning table, as `sucl tune` writes them, from now on. Every rank
        calls it with the same text."""
        checked(self._core.use_tuning, toml)

    def explain(self, kind: str, nbytes: int, dtype: Any = "float32", op: str = "sum") -> str:
        """Which backend would execute an operation of so many bytes, and why. Local.

        Args:
            kind: as in "allreduce".
            nbytes: of one block, for gathers and alltoall.
        """
        nbytes = _number(nbytes, "nbytes", 0, 2**63)
        return self._core.explain(kind_number(kind), nbytes, type_number(dtype), op_number(op))

    def selected_backend(self, kind: str, nbytes: int, dtype: Any = "float32",
                         op: str = "sum") -> str:
        """The name of that backend, for the form that returns an event. Local."""
        nbytes = _number(nbytes, "nbytes", 0, 2**63)
        return self._core.selected_backend(kind_number(kind), nbytes, type_number(dtype),
                                           op_number(op))

    def wait(self) -> None:
        """Returns when every operation issued so far is done, and raises what failed. Local."""
        self._core.wait()

    def check(self) -> None:
        """Raises the first error of an operation that has not been raised yet. Local."""
        self._core.check()

    def __repr__(self) -> str:
        return f"<sucl.Communicator, rank {self.rank} of {self.size}>"


class Plan:
    """A composition as a plan, of `Communicator.compile`. Every rank starts it in the same order as
    other operations; every start may be on other arrays, which must not overlap, and which are None
    where a rank does not use them."""

    def __init__(self, core: Any):
        self._core = core

    @property
    def send_size(self) -> int:
        """Elements that this rank's `send` has at least."""
        return self._core.send_size()

    @property
    def recv_size(self) -> int:
        """Elements that this rank's `recv` has at least."""
        return self._core.recv_size()

    def start(self, send: Optional[Array], recv: Optional[Array], *, deps: Events = None) -> Event:
        """Starts it."""
        return Event(self._core.start(send, recv, _events(deps)))

    def run(self, send: Optional[Array], recv: Optional[Array], *, deps: Events = None) -> None:
        """Runs it, and returns when it is done."""
        self._core.run(send, recv, _events(deps))

    def explain(self) -> str:
        """How it was lowered, in a line."""
        return self._core.explain()
