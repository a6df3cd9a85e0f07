# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Reductions by a function of the program, and sums with factors."""

import gc
import numbers
import sys
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _core
from ._operations import Array, Events
from .communicator import BlockingOperations, Communicator, Event, _events
from .errors import InvalidArgumentError, InvalidMemoryError, checked
from .types import KINDS, dtype_name

Where = Union[Communicator, BlockingOperations]


def _numpy_dtype(array: Any, named: Any) -> Any:
    import numpy

    wanted = named if named is not None else getattr(array, "dtype", None)
    if wanted is None:
        wanted = memoryview(array).format
    try:
        return numpy.dtype(wanted)
    except TypeError:
        pass
    name = dtype_name(wanted)
    try:
        return numpy.dtype(name)
    except TypeError:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))


def _check_not_kept(bases):
    """Raises where arrays of the memory that these are of exist, apart from the list."""
    def kept():
        return any(sys.getrefcount(bases[i]) > _UNSHARED for i in range(len(bases)))

    if not kept():
        return
    gc.collect()  # what only refers to itself is not kept
    if kept():
        raise InvalidMemoryError.of(
            "the function of the reduction has kept an array that it was given, whose memory ends "
            "with the call", "Keep a copy of it")


_alone = [object()]
_UNSHARED = sys.getrefcount(_alone[0])  # of what a list alone refers to


class _Fold:
    """The function on the memory of one call, and what it has raised."""

    def __init__(self, function, dtype):
        self.function, self.dtype = function, dtype
        self.raised: List[BaseException] = []

    def __call__(self, lower, upper):
        import numpy

        try:
            into, other = (numpy.frombuffer(memory, self.dtype) for memory in (upper, lower))
            bases = [into.base, other.base]
            folded = self.function(other, into)
            if folded is None:
                raise InvalidArgumentError.of("the function of the reduction has returned None",
                                              "Return the combinations of the elements")
            numpy.copyto(into, folded, casting="same_kind")
            del into, other, folded
            _check_not_kept(bases)
        except BaseException as error:
            self.raised.append(error)
            raise

    def cause_of(self, error: Exception) -> BaseException:
        """What the function has raised, before SuCL's error of it."""
        return self.raised[0] if self.raised else error


class _Reduction(Event):
    """The event of a reduction by a function, whose exceptions it raises."""

    __slots__ = ("_fold",)

    def __init__(self, core, fold):
        super().__init__(core)
        self._fold = fold

    def wait(self, timeout: Optional[float] = None) -> bool:
        try:
            return super().wait(timeout)
        except Exception as error:
            raise self._fold.cause_of(error) from None

    def __await__(self):
        try:
            return (yield from super().__await__())
        except Exception as error:
            raise self._fold.cause_of(error) from None


class UserOp:
    """A reduction of the program's own: any associative function of elements of any type. It need
    not be commutative: contributions are combined in the order of the ranks, so that the result is
    the same in every bit on all ranks.

        longest = sucl.UserOp(lambda lower, upper: numpy.where(lower > upper, lower, upper))
        longest.allreduce(comm, x, result).wait()
        longest.allreduce(comm.blocking, x, result)

    The function is given two arrays of numpy, of one dimension and any equal size: elements of
    lower ranks, and those of higher ranks at the same indices. It writes to neither and keeps
    neither. It returns their combinations, of the same type or one that numpy casts to it by
    ``same_kind``: not floats for integers. It may be called by any thread. What it raises is raised
    by this rank's call or event, and ends the communicator on all ranks.

    Arrays are in memory that the host reads. The first argument of each reduction is a communicator
    or its blocking form. Where `recv` is not given the operation works in place.

    Args:
        dtype: numpy's type of the elements, where the array's own is not meant.
    """

    def __init__(self, function: Callable[[Any, Any], Any], dtype: Any = None):
        if not callable(function):
            raise InvalidArgumentError.of(f"{function!r} is no function",
                                          "Pass a function of two arrays of numpy")
        self._function, self._dtype = function, dtype

    def _go(self, on, kind, send, recv, counts=(), root=0, deps=None):
        fold = _Fold(self._function, _numpy_dtype(send, self._dtype))
        blocking = isinstance(on, BlockingOperations)
        try:
            core = checked(_core.reduce_by, on._core, KINDS[kind], send, recv, list(counts), root,
                           fold, _events(deps), blocking)
        except Exception as error:
            raise fold.cause_of(error) from None
        event = _Reduction(core, fold)
        if not blocking:
            return event
        event.wait()
        return None

    def allreduce(self, on: Where, send: Array, recv: Optional[Array] = None, *,
                  deps: Events = None) -> Optional[Event]:
        """To `recv` of every rank, or in place."""
        return self._go(on, "allreduce", send, send if recv is None else recv, deps=deps)

    def reduce(self, on: Where, send: Array, recv: Optional[Array] = None, root: int = 0, *,
               deps: Events = None) -> Optional[Event]:
        """To `recv` of rank `root`, or in place there. Others may leave it out."""
        is_root = on._core.rank() == root
        return self._go(on, "reduce", send, send if recv is None and is_root else recv, root=root,
                        deps=deps)

    def reduce_scatter(self, on: Where, send: Array, recv: Array, counts: Sequence[int], *,
                       deps: Events = None) -> Optional[Event]:
        """Rank r gets `counts[r]` elements of the reduction."""
        return self._go(on, "reduce_scatter", send, recv, counts, deps=deps)

    def scan(self, on: Where, send: Array, recv: Optional[Array] = None, *,
             deps: Events = None) -> Optional[Event]:
        """Rank r gets the reduction over ranks 0 to r."""
        return self._go(on, "scan", send, send if recv is None else recv, deps=deps)

    def exscan(self, on: Where, send: Array, recv: Optional[Array] = None, *,
               deps: Events = None) -> Optional[Event]:
        """Rank r gets the reduction over ranks 0 to r - 1; what rank 0 has stays as it is."""
        return self._go(on, "exscan", send, send if recv is None else recv, deps=deps)


class ScaledSum:
    """Sums of contributions that each rank multiplies by a factor of its own first: averages by
    weight, and gradients of batches of different sizes.

        sucl.ScaledSum(mine / everyone).allreduce(comm, gradient).wait()

    The product is rounded to the type of the elements, which is one of numbers. Arrays are in
    memory that the host reads. The first argument of each reduction is a communicator or its
    blocking form. Where `recv` is not given the operation works in place.

    Args:
        factor: this rank's, which the type of the elements can have: no float for integers.
    """

    def __init__(self, factor: Any):
        self._factor = factor

    def _factor_of(self, dtype):
        import numpy

        wanted = {"i": numbers.Integral, "u": numbers.Integral, "c": numbers.Complex}
        try:
            factor = self._factor.item() if hasattr(self._factor, "item") else self._factor
            if isinstance(factor, wanted.get(dtype.kind, numbers.Real)):
                if dtype.kind not in "iu" or \
                        numpy.iinfo(dtype).min <= factor <= numpy.iinfo(dtype).max:
                    return dtype.type(factor)
        except (OverflowError, TypeError, ValueError):
            pass  # no type of numbers, or an array of several
        raise InvalidArgumentError.of(f"the factor is {self._factor!r}, for elements of {dtype}",
                                      "Pass one number that the type can have")

    def _go(self, on, kind, send, recv, root=0, deps=None):
        try:
            dtype = _numpy_dtype(send, None)
            factor = self._factor_of(dtype)
        except InvalidArgumentError as wrong:
            # Where calls are validated the others get to know.
            _core.refuse(on._core, KINDS[kind], str(wrong))
            raise
        fold = _Fold(lambda elements, _: elements * factor, dtype)
        core = checked(_core.sum_scaled, on._core, KINDS[kind], send, recv, root, fold,
                       _events(deps))
        event = _Reduction(core, fold)
        if not isinstance(on, BlockingOperations):
            return event
        event.wait()
        return None

    def allreduce(self, on: Where, send: Array, recv: Optional[Array] = None, *,
                  deps: Events = None) -> Optional[Event]:
        """To `recv` of every rank, or in place."""
        return self._go(on, "allreduce", send, send if recv is None else recv, deps=deps)

    def reduce(self, on: Where, send: Array, recv: Optional[Array] = None, root: int = 0, *,
               deps: Events = None) -> Optional[Event]:
        """To `recv` of rank `root`, or in place there. Others may leave it out."""
        is_root = on._core.rank() == root
        return self._go(on, "reduce", send, send if recv is None and is_root else recv, root, deps)

    def reduce_scatter_block(self, on: Where, send: Array, recv: Array, *,
                             deps: Events = None) -> Optional[Event]:
        """Rank r gets block r of the sum; the block is what `recv` holds."""
        return self._go(on, "reduce_scatter_block", send, recv, deps=deps)
