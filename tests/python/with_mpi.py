# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Communicators of mpi4py: adopted by the runtime, and as the processes of one of their own."""

import unittest

import numpy as np
import sucl
import support
from mpi4py import MPI

RANK, SIZE = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size


class WithMpi(unittest.TestCase):
    def check(self, comm):
        x = np.full(3, RANK + 1)
        comm.allreduce(x).wait()
        self.assertTrue((x == SIZE * (SIZE + 1) // 2).all())
        return comm

    def test_a_runtime_on_a_communicator(self):
        turned = MPI.COMM_WORLD.Split(0, -RANK)
        with sucl.Runtime.from_mpi(turned) as runtime:
            self.assertEqual(self.check(runtime.world()).rank, SIZE - 1 - RANK)
        with self.assertRaises(sucl.ShutDownError):
            runtime.world()

    def test_adopted_communicators(self):
        turned = MPI.COMM_WORLD.Split(0, -RANK)
        comm = self.check(sucl.runtime().adopt(turned))
        self.assertEqual(comm.rank, SIZE - 1 - RANK)
        self.assertEqual(self.check(sucl.runtime().adopt(turned, "cpu")).rank, SIZE - 1 - RANK)
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "no communicator of mpi4py"):
            sucl.runtime().adopt(3)

    def check_queues(self, ranks, first):
        everyone = SIZE * (SIZE + 1) // 2
        self.assertEqual([one.rank for one in ranks], list(range(first, first + len(ranks))))
        arrays = [np.full(3, one.rank) for one in ranks]
        with sucl.Group() as g:
            for one, x in zip(ranks, arrays):
                g.on(one).allreduce(x)
        for x in arrays:
            self.assertTrue((x == everyone * (everyone - 1) // 2).all())

    def test_a_rank_for_each_queue(self):
        turned = MPI.COMM_WORLD.Split(0, -RANK)
        queues = ["cpu"] * (turned.rank + 1)  # processes have different numbers
        first = turned.rank * (turned.rank + 1) // 2
        self.check_queues(sucl.runtime().adopt_queues(turned, queues), first)
        with sucl.Runtime.from_mpi(turned) as runtime:
            self.check_queues(runtime.worlds(queues), first)
        self.assertRaises(sucl.InvalidArgumentError, sucl.runtime().adopt_queues, turned, [None])
        self.assertRaises(sucl.InvalidArgumentError, sucl.runtime().adopt_queues, 3, ["cpu"])


if __name__ == "__main__":
    support.main()
