# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The processes of a training, and how a network is shared out among them."""

import os
import socket

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def _mpi():
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise SystemExit(f"mpi4py cannot be imported ({error}): install it, with an MPI library "
                         "that it finds, or use another --backend and torchrun") from None
    return MPI


def find_others():
    """Where neither torchrun nor the user has said who the processes are, MPI does."""
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return
    mpi = _mpi()
    world = mpi.COMM_WORLD
    with socket.create_server(("", 0)) as found:
        port = world.bcast(found.getsockname()[1])
    os.environ.update(RANK=str(world.rank), WORLD_SIZE=str(world.size), MASTER_PORT=str(port),
                      MASTER_ADDR=world.bcast(socket.gethostname()))
    here = world.Split_type(mpi.COMM_TYPE_SHARED)
    os.environ["LOCAL_RANK"] = str(here.rank)
    here.Free()


def uses_hook(asked):
    """Whether gradients go through mpi4py, since torch has been built without MPI."""
    return asked.backend == "mpi" and not dist.is_mpi_available()


def begin(asked):
    """The process group, and this process's device."""
    find_others()
    torch.set_num_threads(asked.threads)
    if asked.strict:
        os.environ["SUCL_DETERMINISM"] = "strict"
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else CUDA's sums vary
        torch.use_deterministic_algorithms(True)
    if asked.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if asked.backend == "sucl":
        import sucl.torch  # noqa: F401, registers the backend; not needed where sucl is installed
    dist.init_process_group("gloo" if uses_hook(asked) else asked.backend)


def staged_sum(world, bucket):
    """Gradients are summed up by MPI in memory of the host, and this thread waits for that."""
    mpi = _mpi()
    gradients = bucket.buffer()
    in_host = gradients.cpu()  # the same memory where it is the host's
    world.Allreduce(mpi.IN_PLACE, in_host.numpy(), mpi.SUM)
    gradients.copy_(in_host).div_(world.size)
    done = torch.futures.Future()
    done.set_result(gradients)
    return done


def sharded(model, asked):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(asked.device, (dist.get_world_size(),))
    for child in getattr(model, "layers", model.children()):
        if any(True for _ in child.parameters()):
            fully_shard(child, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def shared_out(model, asked):
    """The network as all processes train it together."""
    model = model.to(asked.device)
    if asked.parallel == "fsdp2":
        if uses_hook(asked):
            raise SystemExit("--backend mpi is for --parallel ddp: this torch has no MPI of its "
                             "own, and FSDP2 calls more than a hook for gradients can do")
        return sharded(model, asked)
    model = DistributedDataParallel(model)
    if uses_hook(asked):
        world = _mpi().COMM_WORLD
        if world.size != dist.get_world_size():
            raise SystemExit("--backend mpi: start the processes with MPI's mpiexec")
        model.register_comm_hook(world, staged_sum)
    return model
