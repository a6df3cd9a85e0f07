# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The operations, written once for the forms that return events, wait, or are persistent."""

from itertools import accumulate
from typing import Any, Generic, Iterable, Optional, Sequence, TypeVar

from .types import KINDS, OPS, op_number

Result = TypeVar("Result")
Array = Any
Events = Optional[Iterable[Any]]

_BARRIER, _BROADCAST, _REDUCE, _ALLREDUCE = (
    KINDS[k] for k in ("barrier", "broadcast", "reduce", "allreduce"))
_REDUCE_SCATTER, _REDUCE_SCATTER_BLOCK = KINDS["reduce_scatter"], KINDS["reduce_scatter_block"]
_ALLGATHER, _ALLGATHERV = KINDS["allgather"], KINDS["allgatherv"]
_ALLTOALL, _ALLTOALLV = KINDS["alltoall"], KINDS["alltoallv"]
_GATHER, _GATHERV, _SCATTER, _SCATTERV = (
    KINDS[k] for k in ("gather", "gatherv", "scatter", "scatterv"))
_SCAN, _EXSCAN, _SEND, _RECV, _SENDRECV = (
    KINDS[k] for k in ("scan", "exscan", "send", "recv", "sendrecv"))


def _displacements(counts, displs):
    if displs is not None or counts is None:
        return displs
    try:
        return [0, *accumulate(counts)][:-1]
    except TypeError:
        return None  # what is wrong is said where the counts are read


class Operations(Generic[Result]):
    """Every collective and message. What they return is up to the form: see `Communicator`.

    Common rules:

    - A collective is called by every rank of the communicator, in the same order on each, with the
      same element type, op, root and, unless said otherwise, number of elements; and in the same
      form. With ``SUCL_VALIDATE=1`` SuCL compares all that.
    - An array is anything with ``__sycl_usm_array_interface__`` (dpctl, dpnp), the buffer protocol
      (numpy), ``__cuda_array_interface__`` or ``__dlpack__`` (torch and others). It is contiguous
      in C order; its shape does not matter.
    - Arrays of SYCL are used on their own queue, after what it was given before.
    - An operation starts after the events `deps`, those of SuCL and ``dpctl.SyclEvent``.
    - SuCL keeps arrays alive until the operation is done; nothing else may use what it writes, or
      write what it reads, meanwhile.
    - Where a second array may be given and is not, the operation works in place: so it does where
      both are the same array.
    - Wrong arguments raise an error, and nothing is started: `InvalidMemoryError` for arrays that
      are not contiguous, read-only where they receive, or gone; `InvalidTypeError` for types that
      differ or that the op is not defined for; `InvalidCountError` for sizes that do not fit;
      `InvalidRankError`; `InvalidArgumentError` for what is no array.
    """

    def _post(self, kind: int, send: Array, recv: Array, op: int = 0, root: int = 0,
              deps: Events = None, arrays: Any = None, source: int = 0, tag: int = 0) -> Result:
        raise NotImplementedError

    def barrier(self, *, deps: Events = None) -> Result:
        """Done when every rank has called it. Orders nothing but itself and its `deps`."""
        return self._post(_BARRIER, None, None, deps=deps)

    def broadcast(self, data: Array, root: int = 0, *, deps: Events = None) -> Result:
        """The elements of `data` of rank `root`, to `data` of every rank."""
        return self._post(_BROADCAST, None, data, 0, root, deps)

    def reduce(self, send: Array, recv: Optional[Array] = None, op: str = "sum", root: int = 0, *,
               deps: Events = None) -> Result:
        """Element by element over the ranks, to `recv` of rank `root`, or in place.

        Elsewhere `send` is only read, and `recv` may be left out.
        """
        return self._post(_REDUCE, send, recv, OPS.get(op) or op_number(op), root, deps)

    def allreduce(self, send: Array, recv: Optional[Array] = None, op: str = "sum", *,
                  deps: Events = None) -> Result:
        """Element by element over the ranks, to `recv` of every rank, or in place."""
        return self._post(_ALLREDUCE, send, recv, OPS.get(op) or op_number(op), 0, deps)

    def scan(self, send: Array, recv: Optional[Array] = None, op: str = "sum", *,
             deps: Events = None) -> Result:
        """Rank r gets the reduction over ranks 0 to r. The op avg is not defined."""
        return self._post(_SCAN, send, recv, OPS.get(op) or op_number(op), 0, deps)

    def exscan(self, send: Array, recv: Optional[Array] = None, op: str = "sum", *,
               deps: Events = None) -> Result:
        """Rank r gets the reduction over ranks 0 to r - 1; what rank 0 has stays as it is."""
        return self._post(_EXSCAN, send, recv, OPS.get(op) or op_number(op), 0, deps)

    def reduce_scatter_block(self, send: Array, recv: Optional[Array] = None, op: str = "sum", *,
                             deps: Events = None) -> Result:
        """Rank r gets block r of the reduction; `send` has a block for each rank.

        The block is what `recv` holds. In place the result is at the start of the array.
        """
        return self._post(_REDUCE_SCATTER_BLOCK, send, recv, OPS.get(op) or op_number(op), 0, deps)

    def reduce_scatter(self, send: Array, recv: Optional[Array], counts: Sequence[int],
                       op: str = "sum", *, deps: Events = None) -> Result:
        """Rank r gets ``counts[r]`` elements of the reduction; `counts` is the same on every rank.

        With None for `recv` the result is at the start of `send`.
        """
        return self._post(_REDUCE_SCATTER, send, recv, OPS.get(op) or op_number(op), 0, deps,
                          (None, None, counts, None))

    def allgather(self, send: Array, recv: Optional[Array] = None, *,
                  deps: Events = None) -> Result:
        """The block `send` of each rank, in the order of the ranks, to `recv` of every rank.

        In place each rank contributes its own block of the array.
        """
        return self._post(_ALLGATHER, send, recv, deps=deps)

    def allgatherv(self, send: Array, recv: Optional[Array], counts: Sequence[int],
                   displs: Optional[Sequence[int]] = None, *, deps: Events = None) -> Result:
        """Blocks of different sizes: ``counts[r]`` elements of rank r to index ``displs[r]``.

        Both are the same on every rank; without `displs` the blocks follow one another. With None
        for `recv` each rank contributes its own block of `send`.
        """
        return self._post(_ALLGATHERV, send, recv, deps=deps,
                          arrays=(None, None, counts, _displacements(counts, displs)))

    def alltoall(self, send: Array, recv: Optional[Array] = None, *, deps: Events = None) -> Result:
        """Block s of rank r goes to block r of rank s; a block is one of size() equal parts."""
        return self._post(_ALLTOALL, send, recv, deps=deps)

    def alltoallv(self, send: Array, recv: Optional[Array], send_counts: Sequence[int],
                  recv_counts: Optional[Sequence[int]] = None, *,
                  send_displs: Optional[Sequence[int]] = None,
                  recv_displs: Optional[Sequence[int]] = None, deps: Events = None) -> Result:
        """Blocks with a count for each pair: what rank r sends to s is what s receives from r.

        Without displacements the blocks follow one another. With None for `recv` it works in place,
        and the counts and displacements to send are those to receive too.
        """
        sends = (send_counts, _displacements(send_counts, send_displs))
        receives = (recv_counts, _displacements(recv_counts, recv_displs))
        return self._post(_ALLTOALLV, send, recv, deps=deps,
                          arrays=(None, None, *sends) if recv is None else (*sends, *receives))

    def gather(self, send: Array, recv: Optional[Array] = None, root: int = 0, *,
               deps: Events = None) -> Result:
        """The block `send` of each rank, in the order of the ranks, to `recv` of rank `root`.

        Elsewhere `recv` may be left out. Where the root leaves it out, its `send` has all blocks,
        its own already among them.
        """
        return self._post(_GATHER, send, recv, 0, root, deps)

    def gatherv(self, send: Array, recv: Optional[Array] = None,
                counts: Optional[Sequence[int]] = None, displs: Optional[Sequence[int]] = None,
                root: int = 0, *, deps: Events = None) -> Result:
        """Blocks of different sizes; `recv`, `counts` and `displs` matter on the root only."""
        return self._post(_GATHERV, send, recv, 0, root, deps, (
            None, None, counts, _displacements(counts, displs)))

    def scatter(self, send: Optional[Array], recv: Optional[Array] = None, root: int = 0, *,
                deps: Events = None) -> Result:
        """Block r of `send` of rank `root`, to `recv` of rank r.

        Elsewhere `send` may be None. Where the root leaves `recv` out, its own block stays where it
        is.
        """
        return self._post(_SCATTER, send, recv, 0, root, deps)

    def scatterv(self, send: Optional[Array], recv: Array, counts: Optional[Sequence[int]] = None,
                 displs: Optional[Sequence[int]] = None, root: int = 0, *,
                 deps: Events = None) -> Result:
        """Blocks of different sizes; `send`, `counts` and `displs` matter on the root only."""
        return self._post(_SCATTERV, send, recv, 0, root, deps, (
            counts, _displacements(counts, displs), None, None))

    def send(self, data: Array, dest: int, tag: int = 0, *, deps: Events = None) -> Result:
        """Sends to rank `dest`. When it is done `data` may be reused; the other rank may not have
        it yet. Messages match by ranks and tag, 0 to 32766, in the order of the calls."""
        return self._post(_SEND, data, None, 0, dest, deps, None, dest, tag)

    def recv(self, data: Array, source: int, tag: int = 0, *, deps: Events = None) -> Result:
        """Receives exactly as many elements as `data` has from rank `source`."""
        return self._post(_RECV, None, data, 0, source, deps, None, source, tag)

    def sendrecv(self, send: Array, dest: int, recv: Array, source: int, tag: int = 0, *,
                 deps: Events = None) -> Result:
        """Sends to rank `dest` and receives from rank `source` at once. The arrays must not
        overlap."""
        return self._post(_SENDRECV, send, recv, 0, dest, deps, None, source, tag)
