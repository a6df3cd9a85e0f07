# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Collectives on one number of each rank."""

from typing import Any, List, Optional

from .errors import InvalidTypeError


class Values:
    """Collectives on one value of each rank, which return the result when it is there:

        loss = comm.values.allreduce(loss, "avg")

    A value is an int (of 64 bits), float, complex or bool, or a number of numpy, which keeps its
    type. The rules are those of `BlockingOperations`, with one element: all ranks pass values of
    one type. For more than a few numbers use arrays.

    >>> import sucl
    >>> sucl.world().values.allreduce(2.5)
    2.5
    """

    def __init__(self, communicator: Any):
        self._comm = communicator

    def allreduce(self, value: Any, op: str = "sum") -> Any:
        """The reduction, on every rank."""
        x, back = _element(value)
        self._comm.blocking.allreduce(x, op=op)
        return back(x)

    def reduce(self, value: Any, op: str = "sum", root: int = 0) -> Any:
        """The reduction on rank `root`; None elsewhere."""
        x, back = _element(value)
        self._comm.blocking.reduce(x, op=op, root=root)
        return back(x) if self._comm.rank == root else None

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """The value of rank `root`, on every rank. Elsewhere `value` says the type."""
        x, back = _element(value)
        self._comm.blocking.broadcast(x, root)
        return back(x)

    def scan(self, value: Any, op: str = "sum") -> Any:
        """The reduction over ranks 0 to this one."""
        x, back = _element(value)
        self._comm.blocking.scan(x, op=op)
        return back(x)

    def exscan(self, value: Any, op: str = "sum") -> Any:
        """The reduction over the ranks before this one; None on rank 0."""
        x, back = _element(value)
        self._comm.blocking.exscan(x, op=op)
        return back(x) if self._comm.rank > 0 else None

    def allgather(self, value: Any) -> List[Any]:
        """Those of all ranks, in their order, on every rank."""
        x, back = _element(value)
        everyone = _room(x, self._comm.size)
        self._comm.blocking.allgather(x, everyone)
        return [back(everyone[r:r + 1]) for r in range(self._comm.size)]

    def gather(self, value: Any, root: int = 0) -> Optional[List[Any]]:
        """Those of all ranks, in their order, on rank `root`; None elsewhere."""
        x, back = _element(value)
        is_root = self._comm.rank == root
        everyone = _room(x, self._comm.size) if is_root else None
        self._comm.blocking.gather(x, everyone, root)
        return [back(everyone[r:r + 1]) for r in range(self._comm.size)] if is_root else None


_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def _element(value):
    """An array of the value, and what makes a value of one."""
    import numpy

    if isinstance(value, numpy.generic) and not value.dtype.hasobject:
        return numpy.array([value]), lambda x: x[0]
    try:
        return numpy.array([value], _TYPES[type(value)]), lambda x: x[0].item()
    except KeyError:
        what = f"a {type(value).__name__} is no number"
    except OverflowError:
        what = f"{value} has more than 64 bits"
    raise InvalidTypeError.of(what, "Pass an int of 64 bits, a float, complex or bool, or a number "
                              "of numpy; arrays to the communicator's own operations")


def _room(like, count):
    import numpy

    return numpy.zeros(count, like.dtype)
