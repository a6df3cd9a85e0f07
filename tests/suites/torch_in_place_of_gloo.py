# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Has torch make groups of sucl wherever a program asks for gloo. In every process of a test that
run_torch.py runs, torch loads it as an extension of backends."""

import datetime
import itertools
from types import SimpleNamespace

import sucl_torch_backend
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import Backend as Group

GLOO = c10d.ProcessGroupGloo
_groups = itertools.count()


class _InPlace(type):
    """Of groups that a test makes by itself."""

    def __call__(cls, store, rank, size, *options, timeout=None):
        from sucl import torch

        if options:
            timeout = getattr(options[0], "_timeout", options[0])
        if isinstance(timeout, (int, float)):
            timeout = datetime.timedelta(seconds=timeout)
        return torch._create(SimpleNamespace(
            store=store, group_rank=rank, group_size=size, group_id=f"alone{next(_groups)}",
            timeout=timeout or c10d.default_pg_timeout, global_ranks_in_group=[]))

    def __getattr__(cls, name):
        return getattr(GLOO, name)

    def __instancecheck__(cls, group):
        return isinstance(group, GLOO) or getattr(group, "name", str)() == "sucl"


class InPlace(metaclass=_InPlace):
    pass


def install():
    sucl_torch_backend.register()
    helper = c10d._new_process_group_helper

    def with_sucl(size, rank, ranks, backend, *others, **named):
        name = str(backend).replace("gloo", "sucl").replace("undefined", "sucl")
        return helper(size, rank, ranks, c10d.Backend(name), *others, **named)

    c10d._new_process_group_helper = with_sucl
    c10d.ProcessGroupGloo = dist.ProcessGroupGloo = InPlace
    Group.create_device = GLOO.create_device  # of which sucl has none
