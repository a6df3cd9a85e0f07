# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The backend "sucl" of torch.distributed, for tensors in memory of the host and of CUDA devices.

    import sucl.torch                                  # not needed where sucl is installed by pip
    torch.distributed.init_process_group("sucl")

DistributedDataParallel, collectives on tensors, lists and objects, messages and subgroups work as
with other backends. Tensors of any shape, strides and type may be used; those that are not
contiguous are copied.

On tensors of a CUDA device operations are on a stream of SuCL's, behind what the current stream has
been given; `Work.wait()` has the current stream wait, not the thread. sucl has to be built with a
SYCL implementation that has the device.

The process group is a C++ extension, which the first group compiles against the torch at hand, in
about half a minute; it is kept in ~/.cache/sucl. Where it cannot be compiled one in Python is
used, which does the same more slowly and has less: see the reference. TORCH_SUCL=native makes
that an error, TORCH_SUCL=python asks for it.
"""

import datetime
import functools
import os
import warnings
from typing import Any, List, Optional

import sucl_torch_backend
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from .. import _core
from ..errors import _CLASSES, ConfigurationError, UnavailableError, UnsupportedError, _made
from ..runtime import _alive, _as_store, _environment
from . import _native


def _for_gpus(name: str, value: str) -> Optional[str]:
    """The value of a setting, unless there are no GPUs, or the user has one."""
    return value if torch.version.cuda and name not in os.environ else None


def _gpu_settings() -> dict:
    """Messages are on streams, as torch's programs expect. Work groups leave processors to the
    kernels of a training's backward pass, which gains more than the messages lose."""
    return {name: _for_gpus(name, value)
            for name, value in (("SUCL_BACKEND_KERNELS_MESSAGES", "1"),
                                ("SUCL_BACKEND_KERNELS_GROUPS", "64"))}


class _Job:
    """The processes of torch's job, and SuCL in this one, for the groups of it."""

    def __init__(self, store, rank, size, timeout):
        set_by_user = "SUCL_TIMEOUT" in os.environ
        self.timeout = float(os.environ["SUCL_TIMEOUT"]) if set_by_user else timeout
        with _environment(SUCL_TIMEOUT=None if set_by_user else str(max(1, int(timeout))),
                          **_gpu_settings()):
            self._core = _core.PortJob(_as_store(store), rank, size)
        self.rank, self.size = rank, size
        self.groups = 0
        _alive.add(self)

    def shut_down(self):
        self._core.shut_down()


_job: Optional[_Job] = None
_jobs = 0  # so far, in this process
_left: List[_Job] = []  # which have no group any more, and wait for the others at their end
_extension: Any = None
_why_none = ""


def _load() -> None:
    """Loads the extension, or notes why there is none."""
    global _extension, _why_none
    asked = os.environ.get("TORCH_SUCL", "")
    if asked not in ("", "native", "python"):
        raise ConfigurationError.of(f"TORCH_SUCL is '{asked}'", "Set it to native or python")
    if _extension is not None and asked != "python":
        return
    _extension, _why_none = None, "TORCH_SUCL is python"
    if asked == "python":
        return
    try:
        _extension, _why_none = _native.load(), ""
        _extension.translate(_error)
    except _native.CannotBuild as error:
        _why_none = str(error)
        if asked == "native":
            raise UnavailableError.of(f"the extension of torch cannot be built: {error}",
                                      "Mend that, or unset TORCH_SUCL") from None


def build() -> str:
    """Compiles the extension against the torch at hand, unless that is done, and returns its file.

    Raises:
        UnavailableError: it cannot be compiled, with the reason.
    """
    try:
        return str(_native.built())
    except _native.CannotBuild as error:
        raise UnavailableError.of(f"the extension of torch cannot be built: {error}",
                                  "Mend that, or do without it") from None


@functools.lru_cache(maxsize=None)
def _class_for_torch(code):
    """A class of errors that callers of either library know."""
    own = _CLASSES[code]
    return type(own.__name__, (own, getattr(dist, "DistBackendError", RuntimeError)),
                {"__doc__": own.__doc__, "__module__": own.__module__})


def _error(code, text, fact, cure, operation, backend, native_code, rank):
    plain = _made(code, "", text, fact, cure, operation, backend, native_code, rank)
    error = _class_for_torch(code)(text) if code in _CLASSES else plain
    error.__dict__.update(plain.__dict__)
    return error


def _agree(store, size, timeout) -> int:
    """How many ranks have no extension: groups of either kind do not fit together."""
    without = store.add("without-extension", 0 if _extension is not None else 1)
    if store.add("have-looked", 1) == size:
        store.set("all-have-looked", "1")
    store.wait(["all-have-looked"], datetime.timedelta(seconds=timeout))
    without = store.add("without-extension", 0)
    return without


def _ended(job, aborted):
    """A group of the job has ended: with the last one it does too. An abort waits for no other
    process, so that after one the job ends with the process, or before the next."""
    global _job
    job.groups -= 1
    if job.groups == 0:
        if aborted:
            _left.append(job)
        else:
            job.shut_down()
        if _job is job:
            _job = None


def _on_gpu(job, name, ranks, own, kind, number, peer):
    """A communicator for memory of a GPU, of all ranks or of this one and a peer, with what torch
    calls its stream."""
    if kind != "cuda":
        raise UnsupportedError.of(f"the backend sucl is for no tensors of {kind}",
                                  "Copy them to the host first")
    if peer < 0:
        label = f"{name} on GPUs"
    else:
        low, high = sorted((own, peer))
        label, ranks = f"{name} on GPUs, {low} and {high}", [ranks[low], ranks[high]]
    capsule, stream = job._core.group_on_gpu(label, ranks, number)
    return capsule, torch.cuda.ExternalStream(stream, device=number).stream_id


def _start_job(options, timeout):
    """The job, with the first group, which is one of all ranks. None: groups are Python's."""
    global _jobs
    if dist.is_initialized() and options.group_size != dist.get_world_size():
        raise UnsupportedError.of(
            "a group of a part of the ranks is made of one of all ranks, and there is none of sucl",
            'Use init_process_group("sucl"), or new_group(backend="sucl") of all ranks first')
    while _left:
        _left.pop().shut_down()
    _load()
    _jobs += 1
    store = dist.PrefixStore(f"sucl{_jobs}", options.store)
    if _agree(store, options.group_size, timeout) > 0:
        if options.group_rank == 0 and os.environ.get("TORCH_SUCL") != "python":
            why = _why_none or "another rank has none"
            warnings.warn(f"sucl.torch uses its slower process group in Python: {why}",
                          RuntimeWarning, stacklevel=2)
        return None
    return _Job(store, options.group_rank, options.group_size, timeout)


def _create(options, _backend_options=None):
    """Makes the process group that torch.distributed asks for."""
    global _job
    from . import _python

    timeout = options.timeout.total_seconds()
    if _python.is_in_use():
        return _python.create(options)
    if _job is None or not _job._core.alive():
        _job = _start_job(options, timeout)
        if _job is None:
            return _python.create(options)
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    name, ranks = _in_job(options.group_id, ranks)
    return _group(_job, name, ranks, options.group_rank, timeout)


def _in_job(name, ranks):
    """The name and ranks of a group in the job. When torch has excluded ranks from its world it
    numbers ranks, and names groups, from 0 again."""
    if not dist.is_initialized():
        return name, ranks
    world = c10d._get_default_group()
    for device in world._device_types:
        backend = world._get_backend(device)
        of_job = _extension.ranks_of(backend)
        if len(of_job) > max(ranks):
            name = f"{getattr(backend.options, 'group_name', '')}/{name}"
            return name, [of_job[r] for r in ranks]
    return name, ranks  # all are of other backends


def _group(job, name, ranks, own, timeout):
    """A group of these ranks of the job; `own` is this one's position."""
    def part(name, ranks, milliseconds):
        return _group(job, name, ranks, ranks.index(job.rank), milliseconds / 1000)

    capsule = job._core.group(name, ranks)
    job.groups += 1
    return _extension.make(capsule, own, "sucl", name, ranks, int(timeout * 1000),
                           timeout < job.timeout, functools.partial(_ended, job),
                           functools.partial(_on_gpu, job, name, ranks, own), part)


def _let_barriers_be_monitored() -> None:
    """torch has monitored_barrier() for gloo alone, by that name."""
    of_torch = c10d.monitored_barrier

    @functools.wraps(of_torch)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        if c10d._rank_not_in_group(group) or c10d.get_backend(group) != "sucl":
            return of_torch(group, timeout, wait_all_ranks)
        if timeout is None:
            timeout = c10d._get_default_timeout(c10d.get_backend(group))
        elif not isinstance(timeout, datetime.timedelta):
            timeout = datetime.timedelta(seconds=timeout)
        return (group or c10d._get_default_group()).monitored_barrier(
            timeout, wait_all_ranks=wait_all_ranks)

    c10d.monitored_barrier = dist.monitored_barrier = monitored_barrier


def _let_timeouts_be_set() -> None:
    """torch changes those of gloo and nccl alone."""
    of_torch = c10d._set_pg_timeout

    @functools.wraps(of_torch)
    def _set_pg_timeout(timeout, group=None):
        from . import _python

        if c10d._rank_not_in_group(group) or c10d.get_backend(group) != "sucl" \
                or _python.is_in_use():
            return of_torch(timeout, group)
        of_group = group or c10d._get_default_group()
        return _extension.set_timeout(of_group._get_backend(of_group._device_types[0]),
                                      int(timeout.total_seconds() * 1000))

    c10d._set_pg_timeout = _set_pg_timeout


def register() -> None:
    """Makes the name "sucl" known to torch.distributed."""
    sucl_torch_backend.register()
    if not hasattr(c10d.monitored_barrier, "__wrapped__"):
        _let_barriers_be_monitored()
        _let_timeouts_be_set()


register()
