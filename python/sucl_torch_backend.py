# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Has torch.distributed know the backend "sucl" as soon as torch is imported: the entry point of
the package for torch.backends. Outside of the package sucl, so that it is not loaded until a group
of that backend is made."""


def _create(options, backend_options=None):
    from sucl import torch

    return torch._create(options, backend_options)


def register():
    import torch.distributed as dist

    if dist.is_available() and "sucl" not in dist.Backend.backend_list:
        from torch.version import cuda

        devices = ["cpu", "cuda"] if cuda else ["cpu"]
        dist.Backend.register_backend("sucl", _create, extended_api=True, devices=devices)
