# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Steps of programs, as several ranks: recordings that are replayed, groups of several
communicators, sums with factors, values, and memory that is registered."""

import gc
import unittest
import weakref

import ml_dtypes
import numpy as np
import sucl
import support

comm = sucl.world()
RANK, SIZE = comm.rank, comm.size
LEFT, RIGHT = (RANK - 1) % SIZE, (RANK + 1) % SIZE
on_cpu = sucl.runtime().world("cpu")


class Recordings(unittest.TestCase):
    def setUp(self):
        self.x, self.y = np.zeros(5), np.zeros(3, "int32")

    def check_replays(self, step):
        for turn in range(4):
            self.x[:] = RANK + turn
            self.y[:] = turn if RANK == 0 else -1
            step.replay().wait()
            np.testing.assert_array_equal(self.x, sum(range(SIZE)) + turn * SIZE)
            np.testing.assert_array_equal(self.y, turn)

    def test_a_list_of_operations_is_replayed(self):
        before = self.x.copy()
        step = on_cpu.record(lambda: (on_cpu.allreduce(self.x), on_cpu.broadcast(self.y)))
        np.testing.assert_array_equal(self.x, before)  # nothing has run
        self.assertIsInstance(step.is_graph, bool)
        self.check_replays(step)
        self.x[:] = 1
        last = step.replay(deps=[step.replay()])
        self.assertTrue(last.wait(60) and last.done())
        self.assertTrue((self.x == SIZE * SIZE).all())

    def test_operations_of_several_communicators_and_forms(self):
        other = on_cpu.dup()
        repeated = other.persistent.allreduce(self.x)
        factor = sucl.ScaledSum(2.0)

        def calls():
            repeated.start()
            other.broadcast(self.y)

        step = on_cpu.record(calls)
        self.check_replays(step)
        step.update(lambda: factor.allreduce(on_cpu, self.x))
        self.x[:] = 1
        step.replay().wait()
        self.assertTrue((self.x == 2 * SIZE).all())

    def test_arrays_live_as_long_as_the_recording(self):
        class Tracked(np.ndarray):
            pass

        array = np.ones(1 << 16).view(Tracked)
        seen = weakref.ref(array)
        arrays = [array]
        step = on_cpu.record(lambda: on_cpu.allreduce(arrays[0]))
        arrays[0] = np.ones(1)
        if step.is_graph:
            del array
            gc.collect()
            self.assertIsNotNone(seen())
            event = step.replay()
            del step
            gc.collect()
            self.assertIsNotNone(seen())  # a replay is in flight, or was until now
            event.wait()
            del event
            gc.collect()
            self.assertIsNone(seen())

    def test_what_a_recording_is_not_for(self):
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "no queue|without a queue"):
            comm.record(lambda: comm.allreduce(self.x))
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "cannot be called"):
            on_cpu.record(3)
        step = on_cpu.record(lambda: on_cpu.allreduce(self.x))
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "cannot be called"):
            step.update(None)
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "deps"):
            step.replay(deps=3)

        def mistaken():
            on_cpu.allreduce(self.y)
            raise KeyError("of the program")

        with self.assertRaisesRegex(KeyError, "of the program"):
            step.update(mistaken)
        self.x[:] = 1
        step.replay().wait()  # it is what it was
        self.assertTrue((self.x == SIZE).all())
        if not step.is_graph:
            return
        with self.assertRaisesRegex(sucl.UnsupportedError, "done when that is replayed"):
            on_cpu.record(lambda: on_cpu.allreduce(self.x).wait())
        with self.assertRaises(sucl.UnsupportedError):
            on_cpu.record(lambda: comm.allreduce(self.x))  # another queue, that is none


class Groups(unittest.TestCase):
    def test_operations_of_several_communicators(self):
        first, second = comm.dup(), comm.dup()
        x, y, z = np.full(3, 1.0), np.full(2, RANK), np.zeros(SIZE, "int32")
        halo = np.zeros(2)
        with sucl.Group() as g:
            g.on(first).allreduce(x)
            g.on(second).broadcast(y, root=SIZE - 1)
            g.on(first).allgather(np.full(1, RANK, "int32"), z)
            g.on(second).recv(halo[:1], LEFT)
            g.on(second).send(np.full(1, 5.0 + RANK), RIGHT)
        self.assertTrue((x == SIZE).all() and (y == SIZE - 1).all())
        self.assertEqual(z.tolist(), list(range(SIZE)))
        self.assertEqual(halo[0], 5 + LEFT)

    def test_events_of_each(self):
        first, second = comm.dup(), comm.dup()
        x, halo = np.ones(3), np.zeros(2)
        g = sucl.Group()
        g.on(first).send(np.full(2, float(RANK)), RIGHT)
        g.on(second).allreduce(x)
        g.on(first).recv(halo, LEFT)  # one operation with the send
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "2 operations"):
            g.submit()
        events = g.submit_each()
        self.assertEqual(len(events), 2)
        for event in events:
            event.wait()
        self.assertTrue((x == SIZE).all() and (halo == LEFT).all())
        self.assertEqual(g.submit_each(), [])
        g.on(first).allreduce(x)
        g.submit().wait()
        self.assertTrue((x == SIZE * SIZE).all())

    def test_groups_of_one_communicator_are_an_operation_also_where_they_are_empty(self):
        comm.group().submit().wait()
        self.assertEqual(len(comm.group().submit_each()), 1)

    def test_what_a_group_refuses(self):
        g, x = sucl.Group(), np.ones(2)
        for error, text, call in [
                (sucl.InvalidArgumentError, "none was named", lambda: g.send(x, RIGHT)),
                (sucl.InvalidArgumentError, "is no communicator", lambda: g.on(3)),
                (sucl.InvalidArgumentError, "is no communicator", lambda: sucl.Group(3)),
                (sucl.InvalidArgumentError, "deps",
                 lambda: g.on(comm).allreduce(x, deps=[])),
                (sucl.InvalidMemoryError, "not contiguous",
                 lambda: g.on(comm).allreduce(np.ones(4)[::2])),
                (sucl.InvalidArgumentError, "root",
                 lambda: g.on(comm).broadcast(x, root="0"))]:
            with self.assertRaisesRegex(error, text):
                call()
        with self.assertRaises(KeyError), sucl.Group() as h:
            h.on(comm).allreduce(x)
            raise KeyError
        self.assertTrue((x == 1).all())  # nothing was started


class ScaledSums(unittest.TestCase):
    def test_every_type_of_numbers(self):
        for dtype in ("float32", "float64", "float16", ml_dtypes.bfloat16, "int32", "complex64"):
            x = np.arange(3 * SIZE).astype(dtype)
            factor = RANK + 1
            wanted = x * np.dtype(dtype).type(SIZE * (SIZE + 1) // 2)
            for on in (comm, comm.blocking, on_cpu):
                def done(event):
                    return event and event.wait()

                scaled = sucl.ScaledSum(factor)
                got = np.zeros_like(x)
                done(scaled.allreduce(on, x, got))
                self.assertEqual(got.tolist(), wanted.tolist(), dtype)
                mine = x.copy()
                done(scaled.allreduce(on, mine))
                self.assertEqual(mine.tolist(), wanted.tolist(), dtype)
                got = np.zeros_like(x)
                done(scaled.reduce(on, x, got if RANK == SIZE - 1 else None, SIZE - 1))
                self.assertEqual(got.tolist(),
                                 (wanted if RANK == SIZE - 1 else 0 * wanted).tolist(), dtype)
                share = np.zeros(3, dtype)
                done(scaled.reduce_scatter_block(on, x, share))
                self.assertEqual(share.tolist(), wanted[3 * RANK:3 * RANK + 3].tolist(), dtype)
                self.assertEqual(x.tolist(), np.arange(3 * SIZE).astype(dtype).tolist())

    def test_what_is_wrong(self):
        x = np.ones(2, "int32")
        for factor, array in ((0.5, x), (1 << 40, x), ("2", x), (None, x), (1j, np.ones(2)),
                              ([1, 2], x), (np.ones(2), np.ones(2)), (10 ** 400, np.ones(2))):
            with self.assertRaisesRegex(sucl.InvalidArgumentError, "the factor is"):
                sucl.ScaledSum(factor).allreduce(comm, array)
        one = sucl.ScaledSum(1)
        with self.assertRaises(sucl.InvalidTypeError):
            one.allreduce(comm, np.ones(2, bool))
        with self.assertRaises(sucl.InvalidCountError):
            one.allreduce(comm, np.ones(3), np.ones(2))
        with self.assertRaises(sucl.InvalidCountError):
            one.reduce_scatter_block(comm, np.ones(3 * SIZE + 1), np.ones(3))
        with self.assertRaises(sucl.Error):
            one.reduce(comm, np.ones(3), root=SIZE)


class OneNumberOfEach(unittest.TestCase):
    def test_values(self):
        v = comm.values
        self.assertEqual(v.allreduce(RANK + 1), SIZE * (SIZE + 1) // 2)
        self.assertEqual(v.allreduce(RANK + 0.5, "max"), SIZE - 0.5)
        self.assertIs(v.allreduce(RANK == 0, "logical_or"), True)
        self.assertEqual(v.allreduce(1j), 1j * SIZE)
        got = v.allreduce(np.float32(RANK), "avg")
        self.assertIsInstance(got, np.float32)
        self.assertEqual(got, (SIZE - 1) / 2)
        self.assertEqual(v.reduce(2, root=SIZE - 1), 2 * SIZE if RANK == SIZE - 1 else None)
        self.assertEqual(v.broadcast(RANK + 7.0, SIZE - 1), SIZE + 6.0)
        self.assertEqual(v.scan(1), RANK + 1)
        self.assertEqual(v.exscan(1), RANK if RANK > 0 else None)
        self.assertEqual(v.allgather(RANK * 2), [2 * r for r in range(SIZE)])
        halves = [r + 0.5 for r in range(SIZE)]
        self.assertEqual(v.gather(RANK + 0.5), halves if RANK == 0 else None)

    def test_what_is_no_number(self):
        for wrong in ("a", None, [1], 1 << 70, np.array([1]), object()):
            with self.assertRaises(sucl.InvalidTypeError):
                comm.values.allreduce(wrong)


class Registering(unittest.TestCase):
    def test_memory_of_the_host_is_not_mapped_and_works(self):
        x = np.ones(1000)
        with comm.register_memory(x) as registered:
            self.assertIs(registered.active, False)
            comm.allreduce(x).wait()
        self.assertTrue((x == SIZE).all())
        registered.deregister()
        comm.register_memory(None if RANK == 0 else x).deregister()
        comm.register_memory(np.zeros(0)).deregister()

    def test_one_rank_passes_no_array(self):
        with self.assertRaises(sucl.InvalidArgumentError if RANK == 0 else
                               sucl.InvalidMemoryError):
            comm.register_memory("text" if RANK == 0 else np.ones(3))
        comm.blocking.barrier()


class Members(unittest.TestCase):
    def test_islands(self):
        self.assertTrue(all(isinstance(m.island, int) for m in comm.members))


if __name__ == "__main__":
    support.main(comm)
