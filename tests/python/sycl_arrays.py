# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests on arrays of dpctl, for ranks.py. Left out where there is no dpctl."""

import unittest

import numpy as np
import sucl

try:
    import dpctl
    import dpctl.memory
    WHY_NOT = None
except ImportError as error:
    dpctl, WHY_NOT = None, f"dpctl cannot be imported: {error}"


class UsmArray:
    """Elements in memory of dpctl, as dpnp and dpctl.tensor present theirs."""

    def __init__(self, values, kind="device", queue=None):
        values = np.ascontiguousarray(values)
        make = {"device": dpctl.memory.MemoryUSMDevice, "shared": dpctl.memory.MemoryUSMShared,
                "host": dpctl.memory.MemoryUSMHost}[kind]
        self.memory = make(values.nbytes, queue=queue)
        self.memory.copy_from_host(values.view("u1").reshape(-1))
        self.dtype, self.shape = values.dtype, values.shape
        self.__sycl_usm_array_interface__ = {
            **self.memory.__sycl_usm_array_interface__, "shape": values.shape, "strides": None,
            "typestr": values.dtype.str, "offset": 0, "data": (self.memory._pointer, False)}

    def numpy(self):
        return self.memory.copy_to_host().view(self.dtype).reshape(self.shape)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SyclArrays(unittest.TestCase):
    def setUp(self):
        self.world = sucl.world()
        self.queues = [dpctl.SyclQueue("cpu"), dpctl.SyclQueue("cpu", property="in_order")]

    def check_on(self, comm, queue, kind):
        size = comm.size
        x, y = UsmArray(np.arange(6.0), kind, queue), UsmArray(np.zeros(6), kind, queue)
        event = comm.allreduce(x, y)
        comm.allreduce(y, deps=[event, dpctl.SyclEvent(event._get_capsule())]).wait()
        np.testing.assert_array_equal(y.numpy(), size * size * np.arange(6.0))
        comm.blocking.broadcast(x, 0)
        np.testing.assert_array_equal(x.numpy(), np.arange(6.0))

    def test_arrays_on_their_own_queue(self):
        for queue in self.queues:
            comm = sucl.runtime().world(queue)
            self.assertEqual(dpctl.SyclQueue(comm.queue._get_capsule()).sycl_device,
                             queue.sycl_device)
            for kind in ("device", "shared", "host"):
                self.check_on(comm, queue, kind)

    def test_arrays_on_a_communicator_without_a_queue(self):
        for queue in self.queues:
            self.check_on(self.world, queue, "shared")

    def test_operations_come_after_what_the_queue_was_given(self):
        for queue in self.queues:
            comm = sucl.runtime().world(queue)
            n = 1 << 20
            source = UsmArray(np.ones(n), "device", queue)
            x = UsmArray(np.zeros(n), "device", queue)
            copied = queue.memcpy_async(x.memory, source.memory, n * 8)
            comm.allreduce(x).wait()
            copied.wait()
            self.assertTrue((x.numpy() == comm.size).all())

    def test_bare_memory_is_bytes(self):
        memory = dpctl.memory.MemoryUSMShared(8, queue=self.queues[0])
        memory.copy_from_host(bytearray(range(8)))
        self.world.allreduce(memory, op="max").wait()
        self.assertEqual(bytes(memory.copy_to_host()), bytes(range(8)))

    def test_a_queue_of_a_device_by_name_and_mixed_arrays(self):
        comm = sucl.runtime().world("cpu")
        x = UsmArray(np.full(4, 2.0), "shared", self.queues[0])
        with self.assertRaises(sucl.InvalidTypeError):
            comm.allreduce(x, np.zeros(4, "f4"))
        y = np.zeros(4)
        comm.allreduce(y).wait()
        wrong = UsmArray(np.zeros((4, 4)), "shared", self.queues[0])
        wrong.__sycl_usm_array_interface__.update(shape=(4, 2), strides=(4, 2))
        with self.assertRaisesRegex(sucl.InvalidMemoryError, "not contiguous"):
            comm.allreduce(wrong)
