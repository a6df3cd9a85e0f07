# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Several ranks for each process: one for each queue."""

import unittest

import numpy as np
import sucl
import support

runtime = sucl.runtime()
QUEUES = runtime.rank + 2  # processes have different numbers
worlds = runtime.worlds(["cpu"] * QUEUES)
RANKS = [w.rank for w in worlds]
SIZE = worlds[0].size


class Queues(unittest.TestCase):
    def test_ranks(self):
        self.assertEqual(SIZE, sum(range(2, runtime.size + 2)))
        self.assertEqual(RANKS, list(range(RANKS[0], RANKS[0] + QUEUES)))
        self.assertTrue(all(w.queue is not None for w in worlds))

    def test_blocking_calls_in_a_thread_each(self):
        arrays = [np.full(1000, r + 1.0) for r in RANKS]
        sucl.each_rank(worlds, lambda w, x: w.blocking.allreduce(x), arrays)
        for x in arrays:
            self.assertTrue((x == SIZE * (SIZE + 1) / 2).all())

    def test_events_from_one_thread(self):
        arrays = [np.full(100, float(r)) for r in RANKS]
        for event in [w.broadcast(x, SIZE - 1) for w, x in zip(worlds, arrays)]:
            event.wait()
        for x in arrays:
            self.assertTrue((x == SIZE - 1).all())

    def test_a_group_of_all_from_one_thread(self):
        arrays = [np.full(100, r + 1.0) for r in RANKS]
        with sucl.Group() as g:
            for w, x in zip(worlds, arrays):
                g.on(w).allreduce(x)
        for x in arrays:
            self.assertTrue((x == SIZE * (SIZE + 1) / 2).all())

    def test_parts(self):
        parts = sucl.each_rank(worlds, lambda w: w.split(w.rank % 2))
        got = sucl.each_rank(parts, lambda part: part.size)
        self.assertEqual(got, [(SIZE + 1 - r % 2) // 2 for r in RANKS])

    def test_what_is_raised_comes_out(self):
        def call(w):
            if w is worlds[-1]:
                raise KeyError("mine")

        self.assertRaises(KeyError, sucl.each_rank, worlds, call)

    def test_ranks_that_are_passed_wrongly(self):
        twice, arrays = worlds + worlds[:1], [np.ones(3)] * (len(worlds) - 1)
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "passed twice"):
            sucl.each_rank(twice, lambda w: w.blocking.barrier())
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "a sequence of"):
            sucl.each_rank(worlds, lambda w, x: w.blocking.allreduce(x), arrays)
        self.assertRaises(sucl.InvalidArgumentError, runtime.worlds, [None])


support.main(worlds[0])
