# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The start and the end of SuCL in a process."""

import atexit
import contextlib
import os
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, List, Optional, Sequence

from . import _core
from .communicator import Communicator
from .errors import InvalidArgumentError, checked

_runtime: Optional["Runtime"] = None
_alive: "weakref.WeakSet[Runtime]" = weakref.WeakSet()


@atexit.register
def _end_all():
    failed = getattr(sys, "last_value", None) is not None  # what the interpreter has printed
    for one in list(_alive):
        if failed:
            one._core.abandon()
        else:
            one.shut_down()


class _StoreOfTorch:
    """A store of torch.distributed with the functions that SuCL calls."""

    def __init__(self, store):
        self._store = store

    def put(self, key, value):
        self._store.set(key, value)

    def get(self, key):
        return self._store.get(key)

    def wait(self, key, seconds):
        # Its own wait() writes a warning when the time is over.
        end, pause = time.monotonic() + seconds, 0.0005
        while not self._store.check([key]):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True


def _as_store(store):
    if all(hasattr(store, name) for name in ("put", "get", "wait")):
        return store
    if all(hasattr(store, name) for name in ("set", "get", "wait", "check")):
        return _StoreOfTorch(store)
    raise InvalidArgumentError.of(
        f"a {type(store).__name__} is no store",
        "Pass a store of torch.distributed, or an object with put(key, value), get(key) and "
        "wait(key, seconds)")


def unique_id(network: str = "", port: int = 0) -> str:
    """The id of a new job, for `Runtime.join`: one line, with a random secret. One process makes
    it and hands it to the others; it serves the job's start, and has to live until all have joined.

    Args:
        network: an interface, a subnet as 10.1.0.0/16, or "loopback" for this machine alone.
        port: 0 for any.
    """
    return checked(_core.make_id, network, port)


@contextlib.contextmanager
def _environment(**variables):
    """Sets those that are not None, for the time of a block."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        os.environ.update({n: v for n, v in variables.items() if v is not None})
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Runtime:
    """SuCL in this process: reads the configuration, loads what connects the processes of the job
    (an MPI library, or SuCL's own over TCP), and the backends. Collective over the job.

    The processes find each other by the environment: of ``sucl run``, an MPI launcher, torchrun,
    Slurm; a process that nothing has started so is alone. As a context manager it ends with the
    block; so does every communicator of it.

    Args:
        arguments: of the command line; those of SuCL are removed from the list.
        determinism: "ranks" (all ranks get the same bits), "run" or "strict", which promise more;
            None: as the configuration has it. The same on every process.

    Raises:
        ConfigurationError, UnavailableError, LateError, PeerLostError.
    """

    def __init__(self, arguments: Optional[List[str]] = None, *,
                 determinism: Optional[str] = None, _made: Any = None):
        if _made is None:
            given = ["python"] if arguments is None else arguments
            with _environment(SUCL_DETERMINISM=determinism):
                _made, left = checked(_core.start, list(given))
            if arguments is not None:
                arguments[:] = left
        self._core = _made
        _alive.add(self)

    @classmethod
    def join(cls, id_or_store: Any, rank: int, size: int) -> "Runtime":
        """A job without MPI, whatever has started its processes. Returns once all have come.

        Args:
            id_or_store: a `unique_id`, or a store that all processes reach, one for each job: of
                torch.distributed, or any object with ``put(key, bytes)``, ``get(key)`` and
                ``wait(key, seconds)``, which returns whether the key is there.
        """
        if isinstance(id_or_store, str):
            return cls(_made=checked(_core.join_by_id, id_or_store, rank, size))
        store = _as_store(id_or_store)
        return cls(_made=checked(_core.join_by_store, store, rank, size))

    @classmethod
    def from_mpi(cls, comm: Any) -> "Runtime":
        """A runtime whose job is the processes of a communicator of mpi4py. Collective over it."""
        return cls(_made=_core.from_mpi(*_native(comm)))

    @property
    def rank(self) -> int:
        """Of this process in the job."""
        return self._core.rank()

    @property
    def size(self) -> int:
        """The number of processes of the job."""
        return self._core.size()

    @property
    def control_plane(self) -> str:
        """What connects the processes, and why it was chosen."""
        return self._core.control_plane()

    def world(self, queue: Any = None) -> Communicator:
        """All processes of the job. Collective.

        Args:
            queue: a ``dpctl.SyclQueue`` or an array of dpctl or dpnp, whose queue it then is;
                "cpu", "gpu" or "default" for a new queue; None for memory of the host only.
        """
        return Communicator(self._core.world(queue), self)

    def worlds(self, queues: Iterable[Any]) -> List[Communicator]:
        """Several ranks for this process, one for each of the queues, each with a communicator of
        its own: for processes with several devices. Collective; processes may have different
        numbers of them.

        What returns an event may be called by one thread for all of its ranks; what waits for other
        ranks, as the blocking form and `Communicator.split`, wants a thread for each: `each_rank`.

        Args:
            queues: as the argument of `world`, but not None.
        """
        return [Communicator(one, self) for one in self._core.worlds(list(queues))]

    def adopt(self, comm: Any, queue: Any = None) -> Communicator:
        """The processes of a communicator of mpi4py, which stays the caller's. Collective."""
        return Communicator(self._core.adopt(*_native(comm), queue), self)

    def adopt_queues(self, comm: Any, queues: Iterable[Any]) -> List[Communicator]:
        """The processes of a communicator of mpi4py, with a rank for each of the queues of this
        one: see `worlds`. Collective over it; processes may have different numbers of queues."""
        return [Communicator(one, self)
                for one in self._core.adopt_queues(*_native(comm), list(queues))]

    def grow(self, members: Communicator, id: str, joiners: int) -> None:
        """Takes in new processes: makes this the runtime of a larger job, of the ranks of
        `members`, which keep their numbers, and of new ones behind them.

        Every process that lives calls it, with a communicator of all of them, as from `world` or
        `Communicator.shrink`. Returns once all have come; all communicators of before have ended.

        Args:
            members: a communicator of this runtime.
            id: on rank 0 a `unique_id`; other ranks may pass "".
            joiners: how many processes call `Runtime.join(id, rank, size)`, with ranks from
                `members.size` on and a size of `members.size + joiners`.

        Raises:
            UnsupportedError: where MPI is the control plane.
            InvalidArgumentError: for a malformed id or one that a job has used; nothing has changed
                then. And as `join`.
        """
        checked(self._core.grow, members._core, id, joiners)

    def shut_down(self) -> None:
        """Waits for what is in flight and ends the runtime. More calls do nothing.

        Done at the end of the process too; but after an exception that ends it nothing is waited
        for, so that the other ranks get an error, and wait no more for this one.
        """
        self._core.shut_down()

    def __del__(self):
        if hasattr(self, "_core"):
            self._core.shut_down()

    def __enter__(self) -> "Runtime":
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.shut_down()
        else:
            self._core.abandon()


def _native(comm):
    from mpi4py import MPI

    if not isinstance(comm, MPI.Comm):
        raise InvalidArgumentError.of(f"a {type(comm).__name__} is no communicator of mpi4py",
                                      "Pass one, as MPI.COMM_WORLD")
    return MPI._addressof(comm), MPI._sizeof(comm)


def each_rank(ranks: Sequence[Communicator], call: Callable[..., Any], *more: Sequence) -> List:
    """Calls ``call(rank)`` of each of these ranks at once, in a thread each, and returns what they
    return, in order; with more sequences it passes an element of each too, as `map` does. Raises
    the first of what they raise, when all have ended, and InvalidArgumentError at once where a rank
    is passed twice or a sequence has another length.

        each_rank(ranks, lambda comm, x: comm.blocking.allreduce(x), arrays)
    """
    some = [id(rank) for rank in ranks if rank is not None]
    if len(set(some)) < len(some):
        raise InvalidArgumentError.of("a rank was passed twice",
                                      "Pass each rank of this process once")
    for sequence in more:
        if len(sequence) != len(ranks):
            raise InvalidArgumentError.of(
                f"{len(ranks)} ranks were passed with a sequence of {len(sequence)}",
                "Pass one element for each rank")
    with ThreadPoolExecutor(max(1, len(ranks))) as threads:
        running = [threads.submit(call, *one) for one in zip(ranks, *more)]
    return [one.result() for one in running]


def runtime() -> Runtime:
    """The runtime of the whole job, started with the first call. Ends with the process."""
    global _runtime
    if _runtime is None:
        _runtime = Runtime()
    return _runtime


def world(queue: Any = None) -> Communicator:
    """All processes of the job, which find each other by the environment; one that nothing has
    started with others is alone. Collective. See `Runtime` and `Runtime.world`.

    >>> world().size
    1
    """
    return runtime().world(queue)
