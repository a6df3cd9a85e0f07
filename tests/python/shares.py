# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Work shared among ranks of unlike speed, as several ranks."""

import unittest

import numpy as np
import sucl
import support

comm = sucl.world()
RANK, SIZE = comm.rank, comm.size


class Partitions(unittest.TestCase):
    def test_parts_are_those_that_collectives_take(self):
        rows = sucl.Partition(10 * SIZE + 1, SIZE)
        self.assertEqual((rows.size, rows.ranks), (10 * SIZE + 1, SIZE))
        self.assertEqual(rows.count(0), 11)
        whole = np.zeros(rows.size)
        comm.blocking.allgatherv(np.full(rows.count(RANK), float(RANK)), whole, rows.counts,
                                 rows.displacements)
        for r in range(SIZE):
            self.assertTrue((whole[rows.slice(r)] == r).all())
            self.assertEqual(rows.owner(rows.begin(r)), r)
            self.assertEqual(rows.owner(rows.end(r) - 1), r)
        self.assertEqual(eval(repr(rows), {"Partition": sucl.Partition}), rows)
        self.assertEqual(len({rows, sucl.Partition(10 * SIZE + 1, SIZE)}), 1)
        self.assertNotEqual(rows, sucl.Partition(10 * SIZE, SIZE))
        self.assertNotEqual(rows, 3)

    def test_shares_by_speed(self):
        self.assertEqual(sucl.Partition.by_speed(100, np.array([3.0, 1.0])).counts, [75, 25])
        self.assertEqual(sucl.Partition.by_speed(100, (1, 0), unit=4, least=8).counts[1], 8)
        box = sucl.BoxPartition.by_speed((8, 9, 12), (1, 3, 2), [1.0] * 6)
        self.assertEqual([p.counts for p in box.along], [[8], [3, 3, 3], [6, 6]])
        self.assertEqual(box, sucl.BoxPartition(box.along))
        self.assertNotEqual(box, sucl.BoxPartition.by_speed((8, 9, 12), (1, 2, 3), [1.0] * 6))

    def test_what_is_wrong(self):
        nan, some = float("nan"), sucl.Partition(6, 2)
        for error, call in [
                (sucl.InvalidCountError, lambda: sucl.Partition(3, 0)),
                (sucl.InvalidArgumentError, lambda: sucl.Partition(-3, 1)),
                (sucl.InvalidArgumentError, lambda: sucl.Partition("3", 1)),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.of_counts([1, -1])),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.of_counts(5)),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.by_speed(3, [nan])),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.by_speed(3, [0, 0])),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.by_speed(3, ["1"])),
                (sucl.InvalidArgumentError, lambda: sucl.Partition.by_speed(3, [1], unit=0)),
                (sucl.InvalidRankError, lambda: some.count(2)),
                (sucl.InvalidRankError, lambda: some.slice(-1)),
                (sucl.InvalidArgumentError, lambda: some.begin("a")),
                (sucl.InvalidCountError, lambda: some.owner(6)),
                (sucl.InvalidArgumentError, lambda: some.owner(-1)),
                (sucl.MismatchError, lambda: sucl.Migration(some, sucl.Partition(7, 2), 0)),
                (sucl.InvalidRankError, lambda: sucl.Migration(some, some, 2)),
                (sucl.InvalidArgumentError, lambda: sucl.Migration(some, [3, 3], 0)),
                (sucl.InvalidArgumentError, lambda: sucl.BoxPartition([some])),
                (sucl.InvalidArgumentError,
                 lambda: sucl.BoxPartition.by_speed((1, 2), (1, 1, 1), [1])),
                (sucl.InvalidCountError,
                 lambda: sucl.BoxPartition.by_speed((4, 4, 4), (1, 1, 2), [1])),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer(some, smoothing=2)),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer(some, confirmations=None)),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer([1, 2])),
                (sucl.InvalidCountError, lambda: sucl.Balancer(some).update([1.0])),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer(some).update([1.0, nan])),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer(some).update([1, 1], 0)),
                (sucl.InvalidArgumentError, lambda: sucl.Balancer(some).update(1.0)),
                (sucl.InvalidArgumentError,
                 lambda: sucl.Balancer(some).update("x", comm=comm)),
                (sucl.InvalidCountError, lambda: sucl.Balancer(some).note_move([1.0]))]:
            with self.assertRaises(error) as caught:
                call()
            self.assertTrue(caught.exception.fact and caught.exception.cure)


class Balancing(unittest.TestCase):
    def test_work_moves_away_from_the_slowest(self):
        balance = sucl.Balancer(sucl.Partition(60 * SIZE, SIZE))
        before = balance.current
        whole = np.arange(60.0 * SIZE)
        mine = whole[before.slice(RANK)].copy()
        slowness = 4.0 if RANK == 0 else 1.0
        moves = 0
        for _ in range(8):
            if not balance.update(slowness * mine.size, comm=comm):
                continue
            moves += 1
            after = balance.current
            path = sucl.Migration(before, after, RANK)
            event = comm if moves == 1 else comm.blocking
            moved = np.zeros(after.count(RANK))
            done = path.move(event, mine, moved)
            if done:
                done.wait()
            balance.note_move(0.001, comm=comm)
            mine, before = moved, after
            np.testing.assert_array_equal(mine, whole[before.slice(RANK)])
        self.assertTrue(all(speed > 0 for speed in balance.speeds))
        self.assertEqual(moves > 0, SIZE > 1)
        if SIZE > 1:
            self.assertLess(balance.current.count(0), balance.current.count(1) / 3)
        self.assertIsInstance(balance.awaits_confirmation, bool)

    def test_ranks_agree_on_what_they_call(self):
        balance = sucl.Balancer(sucl.Partition(10, comm.size))
        for seconds in ("x", None, -1.0):  # on one rank
            with self.assertRaises(sucl.InvalidArgumentError):
                balance.update(seconds if comm.rank == 0 else 1.0, comm=comm)
        if comm.size == 1:
            return
        with self.assertRaises(sucl.MismatchError):
            balance.update(1.0, 1 if comm.rank == 0 else 2, comm=comm)
        with self.assertRaises(sucl.MismatchError):
            if comm.rank == 0:
                balance.update(1.0, comm=comm)
            else:
                balance.note_move(1.0, comm=comm)

    def test_a_box(self):
        balance = sucl.BoxBalancer((12, 2, 2), (2, 1, 1), [1, 1], confirmations=1)
        self.assertEqual(balance.current.along[0].counts, [6, 6])
        self.assertTrue(balance.update([3.0, 1.0]))
        self.assertEqual(balance.current.along[0].counts, [3, 9])
        balance.note_move([0.1, 0.2])
        self.assertEqual(len(balance.speeds), 2)


if __name__ == "__main__":
    support.main(comm)
