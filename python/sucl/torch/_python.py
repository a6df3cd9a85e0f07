# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The process group "sucl" in Python, where its C++ extension cannot be compiled.

Beside what that has not, there is no receive from any rank; subgroups are made by all ranks, as
torch.distributed does by default, not with use_local_synchronization, and a group is of this
backend alone.
"""

import functools
import inspect
import os
from typing import Any, List, Optional

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.distributed import ProcessGroup, ReduceOp

from ..errors import UnsupportedError
from ..runtime import Runtime, _environment
from . import _work as _w

_OPS = {ReduceOp.SUM: "sum", ReduceOp.AVG: "avg", ReduceOp.PRODUCT: "prod", ReduceOp.MIN: "min",
        ReduceOp.MAX: "max", ReduceOp.BAND: "bit_and", ReduceOp.BOR: "bit_or",
        ReduceOp.BXOR: "bit_xor"}
# On bool, of which a sum that is not 0 is true.
_OPS_OF_BOOL = {**_OPS, ReduceOp.SUM: "logical_or", ReduceOp.PRODUCT: "logical_and",
                ReduceOp.BAND: "logical_and", ReduceOp.BOR: "logical_or",
                ReduceOp.BXOR: "logical_xor"}

_job: Optional[Runtime] = None
_world: Any = None  # the communicator of the default group, of which others are parts


def _op(opts, tensor, default=ReduceOp.SUM):
    op = default if opts is None else opts.reduceOp
    try:
        return (_OPS_OF_BOOL if tensor.dtype == torch.bool else _OPS)[op.op if isinstance(
            op, ReduceOp) else op]
    except (KeyError, TypeError):
        raise UnsupportedError.of(f"the backend sucl has no reduction {op}",
                                  "Use SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR") from None


class SuclProcessGroup(ProcessGroup):
    """A process group on a communicator of SuCL."""

    def __init__(self, comm: Any, owns_job: bool):
        super().__init__(comm.rank, comm.size)
        self._comm, self._owns_job = comm, owns_job
        self._on = _w.OnTensors(comm)
        self._futures = _w.Completer()

    # What torch.distributed asks a group.

    def getBackendName(self) -> str:
        return "sucl"

    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False

    @property
    def _device_types(self):
        return [torch.device("cpu")]

    def _get_backend(self, device):
        return self

    def shutdown(self):
        global _job, _world
        self._futures.end()
        if self._owns_job and _job is not None:
            self._comm = self._on = _world = None
            _job.shut_down()
            _job = None

    abort = shutdown

    def _work(self, events, result, finish=()):
        return _w.Work(events, result, finish, self._futures)

    # Reductions.

    def allreduce(self, tensors: List[torch.Tensor], opts=None, timeout=None):
        tensors, opts = _w.listed(tensors), _w.options(opts)
        events, finish = [], []
        for tensor in tensors:
            data = _w.writable(tensor, finish)
            events.append(self._on.allreduce(data, op=_op(opts, tensor)))
        return self._work(events, tensors, finish)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, opts, op=None, timeout=None):
        finish: list = []
        root = opts.rootRank
        data = _w.writable(tensors[0], finish) if self.rank() == root else _w.dense(tensors[0])
        event = self._on.reduce(data, op=_op(opts, tensors[0]), root=root)
        return self._work([event], tensors, finish)

    def reduce_scatter(self, output_tensors, input_tensors, opts=None, timeout=None):
        events, finish = [], []
        for out, parts in zip(output_tensors, input_tensors):
            events.append(self._on.reduce_scatter(
                _w.joined(parts), _w.writable(out, finish), [p.numel() for p in parts],
                _op(opts, out)))
        return self._work(events, output_tensors, finish)

    def _reduce_scatter_base(self, output, given, opts=None):
        return self.reduce_scatter_tensor_coalesced([output], [given], opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        events, finish = [], []
        for out, given in zip(outputs, inputs):
            events.append(self._on.reduce_scatter_block(
                _w.dense(given), _w.writable(out, finish), _op(opts, out)))
        return self._work(events, outputs, finish)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    # What moves data.

    def broadcast(self, tensors, opts=None, timeout=None):
        finish: list = []
        root = opts.rootRank
        data = _w.dense(tensors[0]) if self.rank() == root else _w.writable(tensors[0], finish)
        return self._work([self._on.broadcast(data, root)], tensors, finish)

    def allgather(self, output_tensors, input_tensors, opts=None, timeout=None):
        events, finish = [], []
        for outs, given in zip(output_tensors, input_tensors):
            data = _w.room_for(outs, finish)
            events.append(self._on.allgatherv(_w.dense(given), data, [o.numel() for o in outs]))
        return self._work(events, output_tensors, finish)

    def allgather_coalesced(self, output_lists, input_list, opts=None):
        return self.allgather(list(zip(*output_lists)), input_list)

    def _allgather_base(self, output, given, opts=None):
        return self.allgather_into_tensor_coalesced([output], [given])

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        events, finish = [], []
        for out, given in zip(outputs, inputs):
            events.append(self._on.allgather(_w.dense(given), _w.writable(out, finish)))
        return self._work(events, outputs, finish)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(self, output_tensors, input_tensors, opts=None, timeout=None):
        finish: list = []
        root, given = opts.rootRank, _w.dense(input_tensors[0])
        if self.rank() != root:
            return self._work([self._on.gatherv(given, root=root)], output_tensors)
        outs = output_tensors[0]
        event = self._on.gatherv(given, _w.room_for(outs, finish), [o.numel() for o in outs],
                                   root=root)
        return self._work([event], output_tensors, finish)

    def scatter(self, output_tensors, input_tensors, opts=None, timeout=None):
        finish: list = []
        root, out = opts.rootRank, _w.writable(output_tensors[0], finish)
        if self.rank() != root:
            event = self._on.scatterv(None, out, root=root)
        else:
            parts = input_tensors[0]
            event = self._on.scatterv(_w.joined(parts), out, [p.numel() for p in parts],
                                        root=root)
        return self._work([event], output_tensors, finish)

    def alltoall_base(self, output, given, output_splits, input_splits, opts=None, timeout=None):
        finish: list = []
        data = _w.writable(output, finish)
        if not output_splits and not input_splits:
            event = self._on.alltoall(_w.dense(given), data)
        else:
            event = self._on.alltoallv(
                _w.dense(given), data, _w.counts(given, input_splits, self.size()),
                _w.counts(output, output_splits, self.size()))
        return self._work([event], [output], finish)

    all_to_all_single = alltoall_base

    def alltoall(self, outputs, inputs, opts=None, timeout=None):
        finish: list = []
        event = self._on.alltoallv(
            _w.joined(inputs), _w.room_for(outputs, finish), [t.numel() for t in inputs],
            [t.numel() for t in outputs])
        return self._work([event], outputs, finish)

    def send(self, tensors, dst, tag=0):
        return self._work([self._on.send(_w.dense(tensors[0]), dst, tag)], tensors)

    def recv(self, tensors, src, tag=0):
        finish: list = []
        event = self._on.recv(_w.writable(tensors[0], finish), src, tag)
        return self._work([event], tensors, finish)

    def recv_anysource(self, tensors, tag=0):
        raise UnsupportedError.of("the backend sucl cannot receive from any rank",
                                  "Name the rank that sends: src=")

    def barrier(self, opts=None, timeout=None):
        return self._work([self._on.barrier()], [])


def is_in_use() -> bool:
    """Whether groups are of this kind."""
    return _world is not None


def create(options) -> SuclProcessGroup:
    """Makes the process group that torch.distributed asks for."""
    global _job, _world
    _hook_into_torch()
    if _world is not None:
        return SuclProcessGroup(_world.split(0, options.group_rank), False)
    limit = None if "SUCL_TIMEOUT" in os.environ else str(int(options.timeout.total_seconds()))
    with _environment(SUCL_TIMEOUT=limit):
        _job = Runtime.join(options.store, options.group_rank, options.group_size)
    _world = _job.world()
    return SuclProcessGroup(_world, True)


def _refuse_mixture(backend) -> None:
    """A process group in Python stands for the whole group: torch would drop the other backends."""
    of_device = c10d.BackendConfig(dist.Backend(backend)).get_device_backend_map()
    others = sorted(f"{device}:{name}" for device, name in of_device.items() if name != "sucl")
    if others and len(others) < len(of_device):
        raise UnsupportedError.of(
            f"a group has the backend sucl and {', '.join(others)}",
            "Make a group of each: new_group(backend=...) of all ranks for the other backend")


def _refuse_local_synchronization() -> None:
    """Ranks outside of a new group would have to take part, and torch does not call them."""
    make = getattr(c10d, "_new_group_with_tag", None)
    if make is None:
        return
    takes = inspect.signature(make)

    @functools.wraps(make)
    def checked(*given, **named):
        asked = takes.bind(*given, **named).arguments
        backend = asked.get("backend") or c10d._world.pg_map[c10d._get_default_group()][0]
        if asked.get("use_local_synchronization") and "sucl" in str(backend):
            raise UnsupportedError.of("the backend sucl makes a group with all ranks",
                                      "Call new_group() on every rank of the job, without "
                                      "use_local_synchronization")
        return make(*given, **named)

    c10d._new_group_with_tag = checked


def _tell_ranks_outside() -> None:
    """Has ranks that are not in a new group take part in its making, which is collective: torch
    calls backends on the others only."""
    make = c10d._new_process_group_helper

    @functools.wraps(make)
    def helper(group_size, group_rank, ranks, backend, *rest, **options):
        _refuse_mixture(backend)
        made = make(group_size, group_rank, ranks, backend, *rest, **options)
        outside = made[0] is dist.GroupMember.NON_GROUP_MEMBER
        if outside and "sucl" in str(backend) and _world is not None:
            _world.split(-1)
        return made

    c10d._new_process_group_helper = helper


def _hook_into_torch() -> None:
    if not hasattr(c10d._new_process_group_helper, "__wrapped__"):
        _tell_ranks_outside()
        _refuse_local_synchronization()
