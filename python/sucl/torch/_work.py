# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tensors as memory of SuCL's operations, and operations as Work of torch.distributed."""

import queue
import threading

import torch
from torch._C._distributed_c10d import Work as _Work

from ..errors import InvalidMemoryError, LateError


def listed(tensors):
    """A list of tensors, or of the one."""
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def options(opts):
    """The options of a call, None where only a timeout was given."""
    return opts if hasattr(opts, "reduceOp") else None


# Types that numpy has too: its arrays are looked into in a third of the time that DLPack takes.
_OF_NUMPY = {torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int16,
             torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128}


def memory(tensor):
    """A dense tensor as SuCL is given it."""
    return tensor.numpy() if tensor.dtype in _OF_NUMPY else tensor


def _is_plain(tensor):
    return (tensor.is_cpu and tensor.layout is torch.strided and not tensor.requires_grad
            and not tensor.is_conj() and not tensor.is_neg() and tensor.is_contiguous())


def dense(tensor):
    """What an operation reads: the tensor, or a contiguous copy."""
    if _is_plain(tensor):
        return tensor
    if tensor.device.type != "cpu":
        raise InvalidMemoryError.of(
            f"a tensor is on {tensor.device}, and the backend sucl is for memory of the host",
            "Copy it to the host first, or use a group of another backend for it")
    if tensor.layout != torch.strided:
        raise InvalidMemoryError.of(f"a tensor has the layout {tensor.layout}",
                                    "Pass dense tensors: tensor.to_dense()")
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def writable(tensor, finish):
    """What an operation writes: the tensor, or a copy that `finish` copies back."""
    data = dense(tensor)
    if data is not tensor and data.data_ptr() != tensor.data_ptr():
        finish.append((tensor.detach(), data))
    return data


class OnTensors:
    """The operations of a communicator, on dense tensors."""

    def __init__(self, comm):
        self._comm = comm

    def __getattr__(self, name):
        call = getattr(self._comm, name)

        def on_tensors(*given, **named):
            return call(*[memory(x) if isinstance(x, torch.Tensor) else x for x in given], **named)

        setattr(self, name, on_tensors)  # the next time it is found at once
        return on_tensors


def joined(tensors):
    """The elements of tensors, one after the other."""
    return torch.cat([dense(t).reshape(-1) for t in tensors])


def room_for(tensors, finish):
    """Memory for the elements of tensors, one after the other, which `finish` copies to them."""
    data = torch.empty(sum(t.numel() for t in tensors), dtype=tensors[0].dtype)
    start = 0
    for t in tensors:
        finish.append((t.detach(), data[start:start + t.numel()].reshape(t.shape)))
        start += t.numel()
    return data


def counts(tensor, splits, ranks):
    """Elements of parts of the first dimension."""
    row = tensor[0].numel() if tensor.dim() and tensor.shape[0] else 0
    rows = splits or [tensor.shape[0] // ranks] * ranks
    return [n * row for n in rows]


class Completer:
    """Completes the futures of a group, in the order of the calls, in a thread of its own."""

    def __init__(self):
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = None

    def add(self, work, future):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sucl-futures", daemon=True)
            self._thread.start()
        self._queue.put((work, future))

    def _run(self):
        while True:
            entry = self._queue.get()
            if entry is None:
                return
            work, future = entry
            try:
                work.wait()
                future.set_result(work.result())
            except Exception as error:
                future.set_exception(error)

    def end(self):
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None


class Work(_Work):
    """An operation of torch.distributed in flight."""

    def __init__(self, events, result, finish, futures):
        super().__init__()
        self._events, self._result = events, result
        self._finish, self._futures = list(finish), futures
        self._future = None
        self._failure = None
        self._lock = threading.Lock()

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else 0
        try:
            for event in self._events:
                if not event.wait(seconds if seconds > 0 else None):
                    raise LateError.of(f"the operation is not done after {seconds} s",
                                       "Look at what the other ranks do, or wait longer")
        except Exception as error:
            self._failure = error
            raise
        with self._lock:  # a waiting thread and the one of the futures
            finish, self._finish = self._finish, []
            for to, data in finish:
                to.copy_(data)
        return True

    def is_completed(self):
        """Whether results are in the tensors; nothing else need be called for that."""
        if not all(event.done() for event in self._events):
            return False
        try:
            self.wait()
        except Exception:  # wait() raises it again, and exception() has it
            pass
        return True

    def is_success(self):
        return self._failure is None

    def exception(self):
        return self._failure

    def synchronize(self):
        self.wait()

    def result(self):
        return self._result

    def get_future(self):
        if self._future is None:
            self._future = torch.futures.Future()
            if self.is_completed() and self._failure is None:
                self._future.set_result(self._result)
            else:
                self._futures.add(self, self._future)
        return self._future

    getFuture = get_future
