# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The Python package as several ranks: every rank runs the same tests in the same order."""

import asyncio
import contextlib
import gc
import signal
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import sucl
import support
from sycl_arrays import SyclArrays  # noqa: F401

comm = sucl.world()
RANK, SIZE = comm.rank, comm.size
LEFT, RIGHT = (RANK - 1) % SIZE, (RANK + 1) % SIZE


def run(form, name, *arguments, **options):
    """A call in one of the three forms."""
    if form == "event":
        getattr(comm, name)(*arguments, **options).wait()
    elif form == "blocking":
        getattr(comm.blocking, name)(*arguments, **options)
    else:
        operation = getattr(comm.persistent, name)(*arguments, **options)
        operation.start().wait()


FORMS = ("event", "blocking", "persistent")


class Collectives(unittest.TestCase):
    def setUp(self):
        self.blocks = [np.arange(3.0) + 10 * r for r in range(SIZE)]
        self.mine = self.blocks[RANK].copy()
        self.whole = np.concatenate(self.blocks)
        self.total = sum(self.blocks)
        self.root = SIZE - 1

    def check(self, got, expected):
        np.testing.assert_array_equal(got, expected)

    def test_every_op_on_every_type(self):
        for dtype in [*support.INTEGERS, *support.FLOATS, *support.COMPLEX, "bool"]:
            everyone = [support.contribution(dtype, r) for r in range(SIZE)]
            for op in support.ops_of(dtype):
                got = np.zeros_like(everyone[0])
                comm.blocking.allreduce(everyone[RANK], got, op)
                expected = support.reduced(dtype, op, everyone)
                self.assertEqual(got.tobytes(), expected.tobytes(),
                                 f"{op} of {dtype}: {got}, not {expected}")

    def test_values_with_an_index(self):
        for value in support.LOCS:
            x = np.zeros(2, sucl.loc_dtype(value))
            x["value"], x["index"] = [RANK, -RANK], RANK
            low, high = x.copy(), x.copy()
            comm.blocking.allreduce(low, op="minloc")
            comm.blocking.allreduce(high, op="maxloc")
            self.assertEqual(low.tolist(), [(0, 0), (1 - SIZE, SIZE - 1)])
            self.assertEqual(high.tolist(), [(SIZE - 1, SIZE - 1), (0, 0)])

    def test_reductions(self):
        for form in FORMS:
            got = np.zeros(3)
            run(form, "allreduce", self.mine, got)
            self.check(got, self.total)
            run(form, "reduce", self.mine, got if RANK == self.root else None, root=self.root)
            self.check(got, self.total)
            run(form, "scan", self.mine, got)
            self.check(got, sum(self.blocks[:RANK + 1]))
            before = got.copy()
            run(form, "exscan", self.mine, got, "max")
            self.check(got, self.blocks[RANK - 1] if RANK else before)

    def test_reductions_in_place(self):
        for form in FORMS:
            for again in (lambda x: (x,), lambda x: (x, x), lambda x: (x, x[:])):
                x = self.mine.copy()
                run(form, "allreduce", *again(x))
                self.check(x, self.total)
            x = self.mine.copy()
            run(form, "reduce", x, root=self.root)
            self.check(x, self.total if RANK == self.root else self.mine)

    def test_scattered_reductions(self):
        counts = [r + 1 for r in range(SIZE)]
        start, n = sum(counts[:RANK]), sum(counts)
        for form in FORMS:
            x = np.arange(2.0 * SIZE)
            got = np.zeros(2)
            run(form, "reduce_scatter_block", x, got)
            self.check(got, SIZE * x[2 * RANK:2 * RANK + 2])
            run(form, "reduce_scatter_block", x)
            self.check(x[:2], got)
            x, got = np.arange(float(n)), np.zeros(counts[RANK])
            run(form, "reduce_scatter", x, got, counts)
            self.check(got, SIZE * np.arange(start, start + counts[RANK]))
            run(form, "reduce_scatter", x, None, counts)
            self.check(x[:counts[RANK]], got)

    def test_gathers(self):
        for form in FORMS:
            got = np.zeros_like(self.whole)
            run(form, "allgather", self.mine, got)
            self.check(got, self.whole)
            got = np.zeros_like(self.whole)
            got[3 * RANK:3 * RANK + 3] = self.mine
            run(form, "allgather", got)
            self.check(got, self.whole)
            got = np.zeros_like(self.whole)
            run(form, "gather", self.mine, got if RANK == self.root else None, self.root)
            self.check(got, self.whole if RANK == self.root else 0)
            data = self.whole.copy() if RANK == self.root else self.mine
            run(form, "gather", data, root=self.root)
            self.check(data, self.whole if RANK == self.root else self.mine)

    def test_gathers_of_different_sizes(self):
        counts = [r + 1 for r in range(SIZE)]
        mine = np.full(RANK + 1, RANK, "int16")
        expected = np.repeat(np.arange(SIZE), counts)
        for form in FORMS:
            got = np.zeros(sum(counts), "int16")
            run(form, "allgatherv", mine, got, counts)
            self.check(got, expected)
            got = np.zeros(sum(counts) + SIZE, "int16")
            gaps = [sum(counts[:r]) + r for r in range(SIZE)]
            run(form, "allgatherv", mine, got, counts, gaps)
            self.check(got[[i for i in range(len(got)) if i + 1 not in [*gaps[1:], len(got)]]],
                       expected)
            got = np.zeros(sum(counts), "int16")
            if RANK == 0:
                run(form, "gatherv", mine, got, counts)
                self.check(got, expected)
            else:
                run(form, "gatherv", mine)

    def test_scatters(self):
        for form in FORMS:
            got = np.zeros(3)
            run(form, "scatter", self.whole if RANK == self.root else None, got, self.root)
            self.check(got, self.mine)
            data = self.whole.copy() if RANK == self.root else np.zeros(3)
            run(form, "scatter", *((data,) if RANK == self.root else (None, data)),
                root=self.root)
            self.check(data, self.whole if RANK == self.root else self.mine)
            counts = [r + 1 for r in range(SIZE)]
            got = np.zeros(RANK + 1)
            sent = np.repeat(np.arange(float(SIZE)), counts)
            run(form, "scatterv", *((sent, got, counts) if RANK == 0 else (None, got)))
            self.check(got, RANK)

    def test_broadcast_of_anything(self):
        for form in FORMS:
            for dtype in ("float32", "M8[s]", "V24", "S5", ml_dtypes.bfloat16):
                source = np.arange(48, dtype="uint8").tobytes()[:5 * np.dtype(dtype).itemsize]
                source = source.ljust(5 * np.dtype(dtype).itemsize, b"\1")
                x = np.frombuffer(source, dtype)
                x = x if RANK == self.root else np.zeros(5, dtype)  # that of the root is read-only
                run(form, "broadcast", x, self.root)
                self.assertEqual(x.tobytes(), source)
        bare = bytearray(b"abc" if RANK == 0 else 3)
        comm.blocking.broadcast(bare)
        self.assertEqual(bare, b"abc")
        self.assertIsNone(comm.blocking.barrier())
        self.assertTrue(comm.barrier().wait())

    def test_alltoalls(self):
        x = np.array([[RANK, s] for s in range(SIZE)])
        expected = np.array([[r, RANK] for r in range(SIZE)])
        counts = [min(RANK, s) + 1 for s in range(SIZE)]
        for form in FORMS:
            got = np.zeros_like(x)
            run(form, "alltoall", x, got)
            self.check(got, expected)
            y = x.copy()
            run(form, "alltoall", y)
            self.check(y, expected)
            sent, got = np.repeat(np.arange(SIZE), counts), np.zeros(sum(counts), int)
            run(form, "alltoallv", sent, got, counts, counts)
            self.check(got, RANK)
            run(form, "alltoallv", sent, None, counts)
            self.check(sent, RANK)


class Messages(unittest.TestCase):
    def test_messages(self):
        for form in FORMS:
            got, mine = np.zeros(4, "complex64"), np.full(4, RANK, "complex64")
            run(form, "sendrecv", mine, RIGHT, got, LEFT, 7)
            self.assertTrue((got == LEFT).all())
        received = comm.recv(got, LEFT, tag=3)
        sent = comm.send(mine, RIGHT, tag=3)
        received.wait()
        sent.wait()
        self.assertTrue((got == LEFT).all())
        comm.blocking.sendrecv(mine, sucl.NO_RANK, got, sucl.NO_RANK)

    def test_groups(self):
        left, right = np.zeros(2), np.zeros(3)
        for _ in range(2):
            with comm.group() as g:
                g.recv(left, LEFT, 1)
                g.recv(right, RIGHT, 2)
                g.send(np.full(2, float(RANK)), RIGHT, 1)
                g.send(np.full(3, float(RANK)), LEFT, 2)
            self.assertTrue((left == LEFT).all() and (right == RIGHT).all())
            g = comm.group()
            g.sendrecv(np.full(2, -1.0 - RANK), RIGHT, left, LEFT)
            g.submit().wait()
            self.assertTrue((left == -1 - LEFT).all())

    def test_other_threads_run_while_one_waits(self):
        own = comm.dup()
        got = np.zeros(1, int)
        waiting = threading.Thread(target=lambda: own.blocking.recv(got, RANK, 5))
        waiting.start()
        own.send(np.array([42]), RANK, 5).wait()  # if the other had the interpreter, none would
        waiting.join()
        self.assertEqual(got[0], 42)


class Events(unittest.TestCase):
    def test_what_is_awaited_needs_no_thread_of_its_own(self):
        n = 1 << 17  # sends are not done at once
        into = [np.zeros(n) for _ in range(3)]

        async def wait_for(event):
            await event

        async def all_of_them():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            waiting = [asyncio.ensure_future(wait_for(comm.recv(x, RIGHT, tag=tag)))
                       for tag, x in enumerate(into)]
            await asyncio.sleep(0)  # the receives are awaited when these come
            for tag in range(len(into)):
                await comm.send(np.full(n, 10.0 * RANK + tag), LEFT, tag=tag)
            await asyncio.gather(*waiting)

        asyncio.run(all_of_them())
        for tag, x in enumerate(into):
            self.assertTrue((x == 10.0 * RIGHT + tag).all())

    def test_an_await_can_be_given_up(self):
        async def given_up():
            x = np.full(1 << 16, 1.0)
            event = comm.allreduce(x)

            async def wait_for():
                await event

            task = asyncio.ensure_future(wait_for())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await event
            return x

        self.assertTrue((asyncio.run(given_up()) == SIZE).all())

    def test_events_can_be_waited_for_awaited_and_depended_on(self):
        x, y = np.ones(1000), np.ones(1000)
        first = comm.allreduce(x)
        second = comm.allreduce(x, y, deps=[first])
        self.assertTrue(second.wait(timeout=60) and second.done() and first.done())
        self.assertTrue((y == SIZE * SIZE).all())
        self.assertTrue(second.wait())

        async def both():
            ticks = 0

            async def tick():
                nonlocal ticks
                while not ended:
                    ticks += 1
                    await asyncio.sleep(0)

            ended = False
            ticking = asyncio.ensure_future(tick())
            z = [np.full(100, i + 1.0) for i in range(8)]
            await asyncio.gather(*(wait_for(comm.allreduce(one)) for one in z))
            ended = True
            await ticking
            return z

        async def wait_for(event):
            await event

        for i, z in enumerate(asyncio.run(both())):
            self.assertTrue((z == SIZE * (i + 1)).all())

    def test_a_wait_gives_up_after_its_time(self):
        own = comm.dup()
        got = np.zeros(1)
        event = own.recv(got, LEFT, 9)
        self.assertFalse(event.wait(timeout=0))
        comm.blocking.barrier()
        own.send(np.ones(1), RIGHT, 9).wait()
        event.wait()
        self.assertEqual(got[0], 1)

    def test_a_wait_can_be_interrupted_by_a_signal(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        got = np.zeros(1)
        event = comm.recv(got, LEFT, 9)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for limit in (None, 60):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with self.assertRaises(Interrupted):
                    event.wait(limit)
        finally:
            signal.signal(signal.SIGALRM, before)
        comm.blocking.barrier()
        comm.send(np.ones(1), RIGHT, 9).wait()
        self.assertTrue(event.wait())
        self.assertEqual(got[0], 1)

    def test_arrays_live_until_the_operation_is_done(self):
        own = comm.dup()

        buffer = bytearray(8)
        tracked = np.frombuffer(buffer, "float64")
        event = own.recv(tracked, LEFT, 4)
        del tracked
        with self.assertRaises(BufferError):  # it is still in use
            buffer.append(0)
        del event
        gc.collect()
        with self.assertRaises(BufferError):
            buffer.append(0)
        own.blocking.sendrecv(np.ones(1), RIGHT, np.zeros(1), LEFT)
        own.send(np.full(1, 3.0), RIGHT, 4).wait()
        own.wait()
        self.assertEqual(bytes(buffer), np.float64(3).tobytes())
        while len(buffer) == 8:  # some next call lets go of what is done
            own.send(np.zeros(1), sucl.NO_RANK).wait()
            with contextlib.suppress(BufferError):
                buffer.append(0)


class NeighborsAndFunctions(unittest.TestCase):
    setUp, check = Collectives.setUp, Collectives.check

    def test_exchanges_between_neighbors(self):
        line = sucl.Neighborhood.grid(comm, [SIZE])
        ring = sucl.Neighborhood(comm, [LEFT, RIGHT], [LEFT, RIGHT])
        self.assertEqual(line.coordinates, [RANK])
        self.assertEqual(line.sources, [RANK - 1, RANK + 1 if RANK + 1 < SIZE else sucl.NO_RANK])
        self.assertEqual(ring.destinations, [LEFT, RIGHT])
        for form in (ring, ring.blocking):
            def done(event):
                return event and event.wait()

            got = np.zeros((2, 3))
            done(form.allgather(self.mine, got))
            self.check(got, [self.blocks[LEFT], self.blocks[RIGHT]])
            sent = np.array([[RANK, 0.0], [RANK, 1.0]])
            got = np.zeros((2, 2))
            done(form.alltoall(sent, got))
            # The k-th message from a rank is for the k-th time that it is named.
            self.check(got, [[LEFT, 1], [RIGHT, 0]] if SIZE > 2 else [[LEFT, 0], [RIGHT, 1]])
            got = np.zeros(3)
            counts = [2, 1] if SIZE > 2 else [1, 2]
            done(form.alltoallv(np.array([RANK, RANK, 7.0]), [1, 2], got, counts))
            self.check(got, [LEFT, 7, RIGHT] if SIZE > 2 else [LEFT, LEFT, 7])
            halos = [np.zeros(4, "float32"), np.zeros(2, "int64")][::1 if SIZE > 2 else -1]
            edges = [np.full(2, RANK), np.full(4, RANK, "float32")]
            done(form.exchange(edges, halos))
            self.assertEqual([h[0] for h in halos], [LEFT, RIGHT])
        ends = np.full((2, 3), -1.0)
        line.blocking.allgather(self.mine, ends)
        self.check(ends[0], self.blocks[LEFT] if RANK > 0 else [-1, -1, -1])
        self.check(ends[1], self.blocks[RIGHT] if RANK < SIZE - 1 else [-1, -1, -1])
        with self.assertRaises(sucl.InvalidCountError):
            line.exchange([self.mine], [self.mine])
        with self.assertRaises(sucl.InvalidCountError):
            ring.alltoall(np.zeros(3), np.zeros(2))

    def test_reductions_by_a_function(self):
        def times(lower, upper):  # of 2 by 2 matrices, which does not commute
            return np.matmul(lower.reshape(-1, 2, 2), upper.reshape(-1, 2, 2)).reshape(-1)

        def product(ranks):
            result = np.eye(2, dtype="int64")
            for r in ranks:
                result = result @ np.array([[1, r], [r % 2, 1]])
            return result

        mine = np.array([[1, RANK], [RANK % 2, 1]]).reshape(-1).view("int64,int64,int64,int64")

        def by_matrix(lower, upper):
            flat = times(lower.view("int64"), upper.view("int64"))
            return flat.view("int64,int64,int64,int64")

        many = np.tile(mine, 1000)
        op = sucl.UserOp(by_matrix)
        for on in (comm, comm.blocking):
            def done(event):
                return event and event.wait()

            for x in (mine.copy(), many.copy()):  # whole, and in shares
                got = np.zeros_like(x)
                done(op.allreduce(on, x, got))
                self.check(got.view("int64").reshape(-1, 2, 2)[-1], product(range(SIZE)))
                done(op.scan(on, x, got))
                self.check(got.view("int64").reshape(-1, 2, 2)[-1], product(range(RANK + 1)))
                done(op.reduce(on, x, got if RANK == self.root else None, self.root))
                self.assertEqual(x.tobytes(), (mine if x.size == 1 else many).tobytes())
                done(op.allreduce(on, x))
                self.check(x.view("int64").reshape(-1, 2, 2)[0], product(range(SIZE)))
            farthest = sucl.UserOp(lambda a, b: np.where(abs(a) > abs(b), a, b))
            share = np.zeros(2, "float32")
            done(farthest.reduce_scatter(on, np.arange(2 * SIZE, dtype="float32") * (-1) ** RANK *
                                         (1 + RANK), share, [2] * SIZE))
            self.check(share, np.arange(2 * RANK, 2 * RANK + 2) * (-1) ** (SIZE - 1) * SIZE)
        half = np.full(3, RANK + 1, ml_dtypes.bfloat16)
        sucl.UserOp(np.maximum).allreduce(comm, half).wait()
        self.assertEqual(half.tolist(), [SIZE] * 3)
        with self.assertRaises(sucl.InvalidCountError):
            op.allreduce(comm.dup(), mine, many)
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "5 is no function"):
            sucl.UserOp(5)


class Communicators(unittest.TestCase):
    def test_split_dup_and_members(self):
        self.assertEqual([m.rank for m in comm.members], list(range(SIZE)))
        half = comm.split(RANK % 2, -RANK)
        x = np.array([1])
        half.blocking.allreduce(x)
        self.assertEqual(x[0], half.size)
        self.assertEqual(half.rank, half.size - 1 - RANK // 2)
        self.assertIsNone(comm.split(-1))
        self.assertEqual(repr(comm.dup()), f"<sucl.Communicator, rank {RANK} of {SIZE}>")
        self.assertIsNone(comm.queue)

    def test_explain(self):
        self.assertIn("executed by", comm.explain("allreduce", 1 << 20))
        self.assertTrue(comm.selected_backend("allreduce", 8, np.dtype("float64")))

    def test_memory_that_ranks_share(self):
        memory = comm.allocate(5, "int32")
        x = np.asarray(memory)
        self.assertEqual(x.tolist(), [0] * 5)
        x += RANK
        comm.blocking.allreduce(x)
        self.assertEqual(x.tolist(), [SIZE * (SIZE - 1) // 2] * 5)
        comm.blocking.broadcast(memory)
        part = x[2:].reshape(3, 1)
        del x
        with self.assertRaisesRegex(sucl.InvalidMemoryError, "in use by arrays"):
            memory.free()
        self.assertEqual(part.ravel().tolist(), [SIZE * (SIZE - 1) // 2] * 3)
        del part
        event = comm.allreduce(memory)
        event.wait()
        del event
        comm.wait()
        memory.free()
        memory.free()
        with self.assertRaisesRegex(sucl.InvalidMemoryError, "has been freed"):
            comm.allreduce(memory)
        for bad in (-1, 1 << 60, 1 << 70, 1.5, None):
            with self.assertRaises(sucl.InvalidArgumentError):
                comm.allocate(bad)
        empty = comm.allocate(0)
        self.assertEqual(np.asarray(empty).size, 0)
        empty.free()

    def test_compositions(self):
        n = 4
        c = sucl.Composition(SIZE)
        for r in range(SIZE):
            c.reduction(c.send(r * n, n), c.recv(r * n, n), root=r)
        c.fence()
        for r in range(SIZE):
            c.multicast(c.recv(r * n, n), c.recv(r * n, n), root=r)
        plan = comm.compile(c, np.float32)
        self.assertEqual((plan.send_size, plan.recv_size), (SIZE * n, SIZE * n))
        x, y = np.arange(SIZE * n, dtype="float32"), np.zeros(SIZE * n, "float32")
        plan.start(x, y).wait()
        np.testing.assert_array_equal(y, SIZE * x)
        plan.run(2 * x, y)
        np.testing.assert_array_equal(y, 2 * SIZE * x)
        self.assertTrue(plan.explain())
        with self.assertRaises(sucl.InvalidTypeError):
            plan.run(x.astype("float64"), y)
        with self.assertRaises(sucl.InvalidCountError):
            plan.run(x[1:], y)


class Errors(unittest.TestCase):
    """Every rank makes the same mistake, and all is well afterwards."""

    def test_arguments_of_wrong_types(self):
        x = np.ones(2)
        calls = (lambda wrong: comm.broadcast(x, root=wrong),
                 lambda wrong: comm.send(x, dest=0, tag=wrong),
                 lambda wrong: comm.group().send(x, dest=wrong),
                 lambda wrong: sucl.Neighborhood(comm, [wrong], [0]),
                 lambda wrong: sucl.Neighborhood.grid(comm, [wrong]),
                 lambda wrong: sucl.UserOp(np.add).reduce(comm, x, root=wrong),
                 lambda wrong: comm.allgatherv(x, x, [wrong] * SIZE),
                 lambda wrong: sucl.Runtime.join("an id", wrong, 2))
        for wrong in (None, 1.5, "0", 1 << 40):
            for call in calls:
                with self.assertRaises(sucl.Error):
                    call(wrong)
        with self.assertRaisesRegex(sucl.InvalidArgumentError, "the timeout is"):
            comm.barrier().wait("x")
        comm.blocking.barrier()

    def test_programs_started_by_a_rank_are_no_rank(self):
        if SIZE == 2 and RANK == 0:
            self.assertIn("broadcast", sucl.plans.tune("broadcast", seconds=1, sizes="4:4"))
        comm.blocking.barrier()

    def refused(self, error, text, call):
        for owner in (comm, comm.blocking, comm.persistent):
            with self.assertRaisesRegex(error, text) as caught:
                call(owner)
            self.assertEqual(caught.exception.rank, RANK)
            self.assertTrue(caught.exception.fact and caught.exception.cure)
            self.assertTrue(caught.exception.operation)

    def test_wrong_arguments(self):
        x, fixed = np.ones(4), np.ones(4)
        fixed.flags.writeable = False
        for error, text, call in [
                (sucl.InvalidMemoryError, "not contiguous", lambda c: c.allreduce(x[::2])),
                (sucl.InvalidMemoryError, "read-only", lambda c: c.allreduce(x, fixed)),
                (sucl.InvalidMemoryError, "read-only", lambda c: c.allreduce(fixed)),
                (sucl.InvalidMemoryError, "overlap",
                 lambda c: c.sendrecv(x[:3], RIGHT, x[1:], LEFT)),
                (sucl.InvalidTypeError, "float|fp", lambda c: c.allreduce(x, x.astype("f4"))),
                (sucl.InvalidTypeError, "complex",
                 lambda c: c.allreduce(x.astype("c8"), op="max")),
                (sucl.InvalidTypeError, "bytes",
                 lambda c: c.allreduce(np.zeros(2, "S3"), np.zeros(2, "S4"))),
                (sucl.InvalidCountError, "elements", lambda c: c.allreduce(x, np.ones(3))),
                (sucl.InvalidCountError, "entries",
                 lambda c: c.allgatherv(x, np.ones(9 * SIZE), [4] * (SIZE + 1))),
                (sucl.InvalidRankError, "", lambda c: c.broadcast(x, SIZE)),
                (sucl.InvalidRankError, "", lambda c: c.send(x, SIZE)),
                (sucl.InvalidArgumentError, "is missing", lambda c: c.recv(None, LEFT)),
                (sucl.InvalidArgumentError, "is a list", lambda c: c.allreduce([1.0])),
                (sucl.InvalidArgumentError, 'op="max"', lambda c: c.allreduce(x, "max"))]:
            self.refused(error, text, call)
        comm.blocking.allreduce(x)
        self.assertTrue((x == SIZE).all())


if __name__ == "__main__":
    support.main(comm)
