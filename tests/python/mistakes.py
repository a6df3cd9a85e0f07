# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Mistakes of one rank, under SUCL_VALIDATE=1: every rank gets an error, none waits for ever; and
a rank that ends without a word."""

import os
import unittest

import numpy as np
import sucl
import support

comm = sucl.world()
RANK = comm.rank


class Mistakes(unittest.TestCase):
    def test_1_wrong_arrays_of_one_rank(self):
        good = np.ones(4)
        bad = [(np.ones(8)[::2], sucl.InvalidMemoryError), ("text", sucl.InvalidArgumentError),
               (np.ones(4, ">f8"), sucl.InvalidTypeError)]
        for thing, error in bad:
            for form in (comm, comm.blocking):
                expected = error if RANK == 0 else sucl.Error
                with self.assertRaises(expected) as caught:
                    event = form.allreduce(thing if RANK == 0 else good.copy())
                    event.wait()
                if RANK != 0:
                    self.assertIn("rank 0", str(caught.exception))

    def test_2_calls_that_differ(self):
        for form in (comm, comm.blocking):
            with self.assertRaises(sucl.MismatchError) as caught:
                event = form.allreduce(np.ones(4 + RANK))
                event.wait()
            self.assertTrue(caught.exception.cure)

    def test_3_a_rank_that_is_gone(self):
        comm.blocking.barrier()
        if RANK == 1:
            os._exit(0)
        with self.assertRaises((sucl.PeerLostError, ConnectionError)):
            comm.allreduce(np.ones(3)).wait()
        print("rank 0 was told", flush=True)
        os._exit(0)


if __name__ == "__main__":
    support.main(comm)
