# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Every collective on arrays of dpnp, as several ranks. Skipped where there is no dpnp."""

import sys
import unittest

import numpy as np
import sucl
import support

try:
    import dpctl
    import dpnp
except ImportError as error:
    print(f"skipped: dpnp cannot be imported: {error}")
    sys.exit(77)

QUEUE = dpctl.SyclQueue("cpu")
HOST, WITH_QUEUE = sucl.world(), sucl.runtime().world(QUEUE)
RANK, SIZE = HOST.rank, HOST.size
TYPES = ("int32", "int64", "float32", "float64", "complex64", "bool")


def array(values):
    return dpnp.asarray(values, sycl_queue=QUEUE)


class DpnpArrays(unittest.TestCase):
    def check(self, got, expected):
        np.testing.assert_array_equal(dpnp.asnumpy(got), expected)

    def result(self, call, count, dtype, expected, there=True):
        got = array(np.zeros(count, dtype))
        call(got).wait()
        if there:
            self.check(got, expected)

    def test_collectives(self):
        for comm in (HOST, WITH_QUEUE):
            for dtype in TYPES:
                self.check_reductions(comm, dtype)
                self.check_moves(comm, dtype)

    def check_reductions(self, comm, dtype):
        op = "max" if dtype == "bool" else "sum"
        parts = [support.contribution(dtype, r, 3) for r in range(SIZE)]
        own, blocks = array(parts[RANK]), array(np.tile(parts[RANK], SIZE))

        def until(rank):
            return support.reduced(dtype, op, parts[:rank])

        for call, expected, there in (
                (lambda x: comm.allreduce(own, x, op), until(SIZE), True),
                (lambda x: comm.reduce(own, x, op, 0), until(SIZE), RANK == 0),
                (lambda x: comm.scan(own, x, op), until(RANK + 1), True),
                (lambda x: comm.exscan(own, x, op), until(max(1, RANK)), RANK > 0),
                (lambda x: comm.reduce_scatter_block(blocks, x, op), until(SIZE), True),
                (lambda x: comm.reduce_scatter(blocks, x, [3] * SIZE, op), until(SIZE), True)):
            self.result(call, 3, dtype, expected, there)

    def check_moves(self, comm, dtype):
        counts = [3] * SIZE
        parts = [support.contribution(dtype, r, 3) for r in range(SIZE)]
        every, mine = np.concatenate(parts), np.tile(parts[RANK], SIZE)
        own, whole = array(parts[RANK]), array(every)
        to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        last = array(parts[RANK])
        comm.broadcast(last, SIZE - 1).wait()
        self.check(last, parts[-1])
        for call, expected, there in (
                (lambda x: comm.allgather(own, x), every, True),
                (lambda x: comm.allgatherv(own, x, counts), every, True),
                (lambda x: comm.gather(own, x, 0), every, RANK == 0),
                (lambda x: comm.gatherv(own, x, counts, root=0), every, RANK == 0),
                (lambda x: comm.scatter(whole, x, 0), parts[RANK], True),
                (lambda x: comm.scatterv(whole, x, counts, root=0), parts[RANK], True),
                (lambda x: comm.alltoall(whole, x), mine, True),
                (lambda x: comm.alltoallv(whole, x, counts, counts), mine, True),
                (lambda x: comm.sendrecv(own, to, x, source), parts[source], True)):
            self.result(call, expected.size, dtype, expected, there)

    def test_kernels_come_before(self):
        x = array(np.zeros(100000, "float32"))
        x += RANK + 1
        WITH_QUEUE.allreduce(x).wait()
        self.check(x, np.full(100000, SIZE * (SIZE + 1) / 2, "float32"))

    def test_forms_of_arrays(self):
        for wrong in (array(np.zeros((3, 4))).T, array(np.zeros(5))[::-1]):
            self.assertRaises(sucl.InvalidMemoryError, HOST.allreduce, wrong)
        HOST.allreduce(array(np.zeros(0))).wait()
        number = array(np.array(2.0))
        HOST.allreduce(number).wait()
        self.assertEqual(float(number), 2 * SIZE)


if __name__ == "__main__":
    support.main(HOST)
