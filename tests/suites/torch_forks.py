# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for PyTorch's tests: their ranks are forks of a process that has done nothing
but import torch, which takes a fraction of the time of starting each anew."""

import multiprocessing

import torch.multiprocessing
from torch.testing._internal.common_distributed import MultiProcessTestCase

multiprocessing.set_forkserver_preload(
    ["torch.testing._internal.common_distributed", "torch.distributed.tensor", "pytest"])


def _fork(test):
    test._start_processes(torch.multiprocessing.get_context("forkserver").Process)


MultiProcessTestCase._spawn_processes = _fork
