# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Collectives of one's own, composed of multicasts, reductions and fences."""

from typing import Iterable, NamedTuple, Optional

from .types import KINDS, op_number


class Slice(NamedTuple):
    """A part of a rank's memory: `count` elements from `offset` on."""

    memory: int
    offset: int
    count: int


class Composition:
    """A collective composed of primitives. Each rank has three memories: `send`, which is only
    read, `recv`, which the result goes to, and `scratch`, which the plan brings along. Primitives
    between two fences run at once, so they must not touch the same elements where one writes.

    It only notes what it is given; `Communicator.compile` finds what is wrong. Every rank composes
    the same. A reduction to all in two steps, of vectors of p * n elements:

    >>> p, n = 2, 4
    >>> c = Composition(p)
    >>> for r in range(p):
    ...     c.reduction(c.send(r * n, n), c.recv(r * n, n), root=r)
    >>> c.fence()
    >>> for r in range(p):
    ...     c.multicast(c.recv(r * n, n), c.recv(r * n, n), root=r)
    >>> len(c.primitives)
    5
    """

    def __init__(self, ranks: int):
        self.ranks = ranks
        self.primitives: list = []

    def send(self, offset: int, count: int) -> Slice:
        """A part of each rank's memory to send."""
        return Slice(0, offset, count)

    def recv(self, offset: int, count: int) -> Slice:
        """A part of each rank's memory to receive."""
        return Slice(1, offset, count)

    def scratch(self, offset: int, count: int) -> Slice:
        """A part of each rank's scratch."""
        return Slice(2, offset, count)

    def _add(self, kind, source, to, root, ranks, op):
        every = list(range(self.ranks)) if ranks is None else list(ranks)
        self.primitives.append((KINDS[kind], tuple(source), tuple(to), root, every, op))

    def multicast(self, source: Slice, to: Slice, root: int,
                  ranks: Optional[Iterable[int]] = None) -> None:
        """`source` of rank `root` goes to `to` of each of `ranks`; None: of all."""
        self._add("broadcast", source, to, root, ranks, 0)

    def reduction(self, source: Slice, to: Slice, root: int, op: str = "sum",
                  ranks: Optional[Iterable[int]] = None) -> None:
        """`source` of each of `ranks`, combined by `op`, goes to `to` of rank `root`."""
        self._add("reduce", source, to, root, ranks, op_number(op))

    def fence(self) -> None:
        """What comes later sees what came before. No barrier: it orders accesses to elements."""
        self._add("barrier", Slice(0, 0, 0), Slice(0, 0, 0), 0, (), 0)
