# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Collectives between neighbors: halo exchanges on grids, and on any other graph."""

from itertools import accumulate
from typing import Any, Generic, List, Optional, Sequence

from . import _core
from ._operations import Array, Events, Result
from .communicator import Communicator, Event, _events
from .errors import InvalidCountError, checked


def _of_all(given: Sequence, neighbors: Sequence, what: str) -> Sequence:
    if len(given) != len(neighbors):
        raise InvalidCountError.of(
            f"{len(given)} {what} are for {len(neighbors)} neighbors", "Pass one for each")
    return given


def _size(array: Any) -> int:
    return _core.describe_array(array)[2]


class _Exchanges(Generic[Result]):
    """What neighbors exchange. Each sends one block to every destination and receives one from
    every source, in the order of the lists; what a missing neighbor would send stays as it is.
    Every rank of the communicator calls it, in the same order; both sides of a block have the same
    count."""

    _sources: List[Any]
    _destinations: List[Any]
    _on: Any

    def _go(self, messages: Any, deps: Events) -> Result:
        raise NotImplementedError

    def _start(self, send, starts, counts, recv, recv_starts, recv_counts, deps):
        messages = _core.Group(self._on)
        for (rank, tag), start, count in zip(self._sources, recv_starts, recv_counts):
            checked(messages.add_part, False, recv, rank, tag, start, count)
        for (rank, tag), start, count in zip(self._destinations, starts, counts):
            checked(messages.add_part, True, send, rank, tag, start, count)
        return self._go(messages, _events(deps))

    def _count(self, array, blocks, what):
        size = _size(array)
        if blocks and size % blocks:
            raise InvalidCountError.of(
                f"{size} elements of the {what} array cannot be divided into {blocks} blocks",
                "Pass an array whose size is a multiple of the number of neighbors")
        return size // blocks if blocks else 0

    def allgather(self, send: Array, recv: Array, *, deps: Events = None) -> Result:
        """The same elements to every destination; block j of `recv` is from source j."""
        count, sources, to = _size(send), len(self._sources), len(self._destinations)
        return self._start(send, [0] * to, [count] * to, recv, range(0, sources * count, count or 1)
                           if count else [0] * sources, [count] * sources, deps)

    def alltoall(self, send: Array, recv: Array, *, deps: Events = None) -> Result:
        """Block i of `send` to destination i; block j of `recv` is from source j."""
        sources, to = len(self._sources), len(self._destinations)
        count, got = self._count(send, to, "send"), self._count(recv, sources, "receive")
        return self._start(send, [i * count for i in range(to)], [count] * to,
                           recv, [j * got for j in range(sources)], [got] * sources, deps)

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array,
                  recv_counts: Sequence[int], send_displs: Optional[Sequence[int]] = None,
                  recv_displs: Optional[Sequence[int]] = None, *, deps: Events = None) -> Result:
        """Blocks of different sizes; without displacements they follow one another."""
        to, sources = self._destinations, self._sources
        starts = [0, *accumulate(send_counts)][:-1] if send_displs is None else send_displs
        displs = [0, *accumulate(recv_counts)][:-1] if recv_displs is None else recv_displs
        return self._start(send, _of_all(starts, to, "displacements to send"),
                           _of_all(send_counts, to, "counts to send"), recv,
                           _of_all(displs, sources, "displacements to receive"),
                           _of_all(recv_counts, sources, "counts to receive"), deps)

    def exchange(self, sends: Sequence[Array], recvs: Sequence[Array], *,
                 deps: Events = None) -> Result:
        """An array for each neighbor: `sends[i]` to destination i, `recvs[j]` from source j."""
        messages = _core.Group(self._on)
        for (rank, tag), array in zip(self._sources, _of_all(recvs, self._sources, "arrays")):
            messages.add_part(False, array, rank, tag, 0, _size(array))
        for (rank, tag), array in zip(self._destinations,
                                      _of_all(sends, self._destinations, "arrays")):
            messages.add_part(True, array, rank, tag, 0, _size(array))
        return self._go(messages, _events(deps))


class BlockingNeighborhood(_Exchanges[None]):
    """The exchanges in the form that returns when they are done."""

    def __init__(self, of: "Neighborhood"):
        self._sources, self._destinations, self._on = of._sources, of._destinations, of._on

    def _go(self, messages, deps):
        messages.run(deps)


class Neighborhood(_Exchanges[Event]):
    """The ranks that this rank exchanges blocks with. It has a communicator of its own, so that its
    messages match none of the program's. Its operations return an `Event`; `blocking` has the form
    that waits.

    Any graph: this rank receives from `sources` and sends to `destinations`. Both may name a rank
    several times, this one too, and `NO_RANK`; the k-th message from a rank a to a rank b is for
    the k-th time that b names a. Collective over the communicator; raises on every rank
    `InvalidRankError`, and `MismatchError` where one rank sends what the other does not expect.
    """

    def __init__(self, comm: Communicator, sources: Sequence[int], destinations: Sequence[int]):
        self._take(comm, checked(_core.Neighborhood, comm._core, list(sources), list(destinations)))

    @classmethod
    def grid(cls, comm: Communicator, extents: Sequence[int],
             periodic: Sequence[bool] = ()) -> "Neighborhood":
        """A grid, whose extents' product is the size of the communicator; the last dimension varies
        fastest with the rank. Neighbors 2d and 2d + 1 are those at the coordinate one less and one
        more in dimension d; at the ends `NO_RANK`, or, where it is periodic, the other end.
        Collective, with the same arguments."""
        made = cls.__new__(cls)
        made._take(comm, checked(_core.Neighborhood.grid, comm._core, list(extents),
                                 list(periodic)))
        return made

    def _take(self, comm, core):
        self._core, self._comm, self._on = core, comm, core.comm()
        self._sources, self._destinations = core.sources(), core.destinations()

    @property
    def sources(self) -> List[int]:
        """The rank of each neighbor that this one receives from, or `NO_RANK`."""
        return [rank for rank, _ in self._sources]

    @property
    def destinations(self) -> List[int]:
        """The rank of each neighbor that this one sends to, or `NO_RANK`."""
        return [rank for rank, _ in self._destinations]

    @property
    def coordinates(self) -> List[int]:
        """This rank's coordinates in the grid; empty for another graph."""
        return self._core.coordinates()

    @property
    def blocking(self) -> BlockingNeighborhood:
        """The exchanges in the form that returns when they are done."""
        return BlockingNeighborhood(self)

    def _go(self, messages, deps):
        return Event(messages.submit(deps))
