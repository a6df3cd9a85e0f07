# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Work shared among ranks of unlike speed: which rank has which part of a range or of a box, what
moves from one partition to another, and when that pays off.

Everything is a function of its arguments: ranks that pass the same numbers get the same shares.
Only `comm` as an argument of a balancer has ranks communicate.
"""

from array import array
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _core
from ._operations import Array, Events
from .communicator import BlockingOperations, Communicator, Event
from .errors import InvalidArgumentError, checked


class Partition:
    """Which rank has which part of [0, size): one run each, in order of rank. Some may be empty.

    Shares are as equal as they can be: the first ones have one more.

    >>> rows = Partition(10, 4)
    >>> rows.counts, rows.displacements
    ([3, 3, 2, 2], [0, 3, 6, 8])
    >>> rows.slice(1), rows.owner(7)
    (slice(3, 6, None), 2)

    Raises:
        InvalidCountError: for less than one rank.
    """

    __slots__ = ("_core",)

    def __init__(self, size: int, ranks: int):
        self._core = checked(_core.Partition, size, ranks)

    @classmethod
    def _of(cls, core: Any) -> "Partition":
        made = cls.__new__(cls)
        made._core = core
        return made

    @classmethod
    def of_counts(cls, counts: Sequence[int]) -> "Partition":
        """The partition with these counts of all ranks.

        >>> Partition.of_counts([5, 0, 2]).owner(5)
        2
        """
        return cls._of(checked(_core.Partition, _list(counts, "counts")))

    @classmethod
    def by_speed(cls, size: int, speeds: Sequence[float], unit: int = 1,
                 least: int = 0) -> "Partition":
        """Shares by speed: the largest of count / speed is minimal.

        Args:
            speeds: units of work that each rank does in a second, of any scale. A rank with speed 0
                gets no more than `least`.
            unit: shares are multiples of it, but for the last that is not empty.
            least: no share is smaller, as long as there is enough.

        Raises:
            InvalidArgumentError: for a speed that is negative or not finite, where all are 0, and
                for unit 0.

        >>> Partition.by_speed(1000, [3, 1]).counts
        [750, 250]
        """
        return cls._of(checked(_core.Partition.by_speed, size, _list(speeds, "speeds"), unit,
                               least))

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self._core.ranks()

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._core.size()

    @property
    def counts(self) -> List[int]:
        """The number of elements of each rank, as gatherv and others take them."""
        return self._core.counts()

    @property
    def displacements(self) -> List[int]:
        """The first element of each rank, as gatherv and others take them."""
        return self._core.displacements()

    def count(self, rank: int) -> int:
        """The number of elements of a rank. Raises InvalidRankError, as those that follow."""
        return checked(self._core.count, rank)

    def begin(self, rank: int) -> int:
        """The first element of a rank."""
        return checked(self._core.begin, rank)

    def end(self, rank: int) -> int:
        """The element behind the last one of a rank."""
        return self.begin(rank) + self.count(rank)

    def slice(self, rank: int) -> slice:
        """The elements of a rank, as in ``x[rows.slice(comm.rank)]``."""
        return slice(self.begin(rank), self.end(rank))

    def owner(self, element: int) -> int:
        """The rank that has an element. Raises InvalidCountError if there is no such element."""
        return checked(self._core.owner, element)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and self._core.is_equal(other._core)

    def __hash__(self) -> int:
        return hash(tuple(self.counts))

    def __repr__(self) -> str:
        return f"Partition.of_counts({self.counts})"


class Migration:
    """What one rank sends and receives, so that memory that lies by one partition lies by another.
    What stays with the rank is a block to itself.

    >>> path = Migration(Partition(10, 2), Partition.of_counts([2, 8]), 0)
    >>> path.send_counts, path.recv_counts, path.moved
    ([2, 3], [2, 0], 3)

    Attributes:
        send_counts, send_displs, recv_counts, recv_displs: as alltoallv takes them.
        moved: elements that change their owner, over all ranks.

    Raises:
        MismatchError: partitions of different sizes or numbers of ranks.
        InvalidRankError.
    """

    __slots__ = ("moved", "recv_counts", "recv_displs", "send_counts", "send_displs")

    def __init__(self, before: Partition, after: Partition, rank: int):
        core = checked(_core.Migration, _partition(before), _partition(after), rank)
        self.send_counts: List[int] = core.send_counts
        self.send_displs: List[int] = core.send_displs
        self.recv_counts: List[int] = core.recv_counts
        self.recv_displs: List[int] = core.recv_displs
        self.moved: int = core.moved

    def move(self, on: Union[Communicator, BlockingOperations], send: Array, recv: Array, *,
             deps: Events = None) -> Optional[Event]:
        """Moves elements, by alltoallv: `send` has this rank's part by the partition before, `recv`
        gets that by the one after. Collective. Returns an event; None of the blocking form."""
        return on.alltoallv(send, recv, self.send_counts, self.recv_counts,
                            send_displs=self.send_displs, recv_displs=self.recv_displs, deps=deps)


class BoxPartition:
    """A box of cells shared by a grid of ranks, the last dimension varying fastest: each dimension
    is cut by planes that go through all of it, so that neighbors are those of the grid.

    Made by `by_speed` and `BoxBalancer.current`.

    Attributes:
        along: the `Partition` of each of the three dimensions.
    """

    __slots__ = ("along",)

    def __init__(self, along: Sequence[Partition]):
        self.along: Tuple[Partition, ...] = tuple(along)
        if len(self.along) != 3 or not all(isinstance(one, Partition) for one in self.along):
            raise InvalidArgumentError.of("a box has a partition for each of three dimensions",
                                          "Pass three of class Partition")

    @classmethod
    def by_speed(cls, cells: Sequence[int], grid: Sequence[int], speeds: Sequence[float],
                 least: int = 1) -> "BoxPartition":
        """Shares by speed.

        Args:
            cells: of the box, in each of three dimensions.
            grid: ranks along each of them.
            speeds: of the ranks, as of `Partition.by_speed`.
            least: cells that a rank has at least in each dimension.

        Raises:
            InvalidCountError: the grid is not for as many ranks as there are speeds.
            InvalidArgumentError: as `Partition.by_speed`.

        >>> box = BoxPartition.by_speed((4, 4, 12), (1, 1, 2), [2, 1])
        >>> box.along[2].counts
        [8, 4]
        """
        return cls._of(checked(_core.BoxPartition.by_speed, _three(cells, "cells"),
                               _three(grid, "grid"), _list(speeds, "speeds"), least))

    @classmethod
    def _of(cls, core: Any) -> "BoxPartition":
        return cls([Partition._of(one) for one in core.along()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoxPartition) and self.along == other.along

    def __hash__(self) -> int:
        return hash(self.along)

    def __repr__(self) -> str:
        return f"BoxPartition({list(self.along)})"


class _Balancer:
    """What balancers share."""

    _core: Any

    @property
    def speeds(self) -> List[float]:
        """Units of work a second of each rank, as far as is known; 0: it has had none yet."""
        return self._core.speeds()

    @property
    def awaits_confirmation(self) -> bool:
        """Whether the last update was unlike those before, or would have moved work had one before
        it said the same: then measure again at once."""
        return self._core.awaits_confirmation()

    def update(self, seconds: Union[float, Sequence[float]], steps: int = 1, *,
               comm: Optional[Communicator] = None) -> bool:
        """Takes in how long ranks have taken. Returns whether `current` has changed: then migrate
        before the next step.

        Args:
            seconds: each rank's time for its own work in a step, without what it has waited for
                others. With `comm` it is this rank's time alone.
            steps: how many there have been since the last update.
            comm: of as many ranks, which then all call it.

        Raises:
            InvalidCountError: the wrong number of times.
            InvalidArgumentError: a time that is negative or not finite; less than one step.
            MismatchError: with `comm`, where ranks pass other steps, or one calls `note_move`.
        """
        return checked(self._core.update, _times(seconds, comm, steps), steps)

    def note_move(self, seconds: Union[float, Sequence[float]], *,
                  comm: Optional[Communicator] = None) -> None:
        """How long the move that an update has asked for has taken on each rank, of which the
        longest counts; with `comm` on this rank. Until it is known, or for 0, moves count as
        free. Raises as `update`."""
        checked(self._core.note_move, _times(seconds, comm, 0))


class Balancer(_Balancer):
    """Decides from measured times when to partition anew. Every rank has one, and passes the same
    numbers to it.

        balance = sucl.Balancer(sucl.Partition(points, comm.size))
        ...
        if balance.update(seconds, comm=comm):
            sucl.Migration(before, balance.current, comm.rank).move(comm.blocking, mine, moved)

    Where it knows what a move takes it moves work once the present shares have lost as much time.

    >>> balance = Balancer(Partition(100, 2), confirmations=1)
    >>> balance.update([3.0, 1.0])
    True
    >>> balance.current.counts
    [25, 75]

    Args:
        start: the shares to begin with.
        smoothing: how much the newest measurement counts in a rank's speed, more than 0, up to 1.
        threshold: work moves if the slowest rank's time falls by this share at least,
        confirmations: as many updates in a row say.
        unit: shares are multiples of it.
        least: no rank has less, so that its speed can be measured again.

    Raises:
        InvalidArgumentError: a number out of range.
    """

    def __init__(self, start: Partition, *, smoothing: float = 0.5, threshold: float = 0.05,
                 confirmations: int = 2, unit: int = 1, least: int = 1):
        how = checked(_core.BalanceOptions, smoothing, threshold, confirmations, unit, least)
        self._core = checked(_core.Balancer, _partition(start), how)

    @property
    def current(self) -> Partition:
        """The shares now."""
        return Partition._of(self._core.current())


class BoxBalancer(_Balancer):
    """The same for a box.

    Args:
        cells, grid, speeds: as of `BoxPartition.by_speed`; speeds to begin with.
        smoothing, threshold, confirmations: as of `Balancer`.
        least: in each dimension.

    Raises:
        InvalidArgumentError, InvalidCountError.
    """

    def __init__(self, cells: Sequence[int], grid: Sequence[int], speeds: Sequence[float], *,
                 smoothing: float = 0.5, threshold: float = 0.05, confirmations: int = 2,
                 least: int = 1):
        how = checked(_core.BalanceOptions, smoothing, threshold, confirmations, 1, least)
        self._core = checked(_core.BoxBalancer, _three(cells, "cells"), _three(grid, "grid"),
                             _list(speeds, "speeds"), how)

    @property
    def current(self) -> BoxPartition:
        """The shares now."""
        return BoxPartition._of(self._core.current())


def _list(given, what):
    try:
        return [one.item() if hasattr(one, "item") else one for one in given]
    except TypeError:
        raise InvalidArgumentError.of(f"{what} are {given!r}", "Pass a list of numbers") from None


def _three(given, what):
    numbers = _list(given, what)
    if len(numbers) != 3:
        raise InvalidArgumentError.of(f"{what} are {given!r}",
                                      "Pass a number for each of three dimensions")
    return numbers


def _partition(given):
    if not isinstance(given, Partition):
        raise InvalidArgumentError.of(f"a {type(given).__name__} is no partition",
                                      "Pass one of class Partition")
    return given._core


def _times(seconds, comm, steps):
    """The times of all ranks; `steps` is 0 of a move. What is wrong with this rank's the others get
    to know as a time that is no number, as they wait in the call."""
    if comm is None:
        return _list(seconds, "seconds")
    mine = array("d", [float("nan"), steps if isinstance(steps, int) else 0])
    wrong = None
    try:
        mine = array("d", [seconds, steps])
    except (OverflowError, TypeError):
        wrong = InvalidArgumentError.of(
            f"this rank's time is {seconds!r}, after {steps!r} steps",
            "Pass a number of seconds, or a list without comm, and a number of steps")
    times = array("d", bytes(8 * len(mine) * comm.size))
    comm.blocking.allgather(mine, times)
    if wrong is not None:
        raise wrong
    return checked(_core.agreed_times, list(times))
