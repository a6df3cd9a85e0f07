# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The backend "sucl" of torch.distributed against gloo's results, in processes that it starts, or
those of torchrun."""

import copy
import datetime
import os
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)
import sucl
import sucl_torch_backend

RANKS = 3  # two receives from any rank at once
NATIVE = os.environ.get("TORCH_SUCL") != "python"
WHO_IS_LATE = "ms for .*: ranks 1,2 have not arrived" if NATIVE else "ms"


def start_ranks():
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, "RANK": str(r), "STORE": f"{folder}/s"})
            for r in range(RANKS)]
        return max(abs(rank.wait()) for rank in ranks)


if "RANK" not in os.environ:
    sys.exit(start_ranks())
warnings.simplefilter("ignore", FutureWarning)  # of names that newer torch has another for
sucl_torch_backend.register()  # as torch itself does where the package is installed
if "STORE" in os.environ:
    dist.init_process_group("sucl", store=dist.FileStore(os.environ["STORE"], RANKS),
                            rank=int(os.environ["RANK"]), world_size=RANKS)
else:
    dist.init_process_group("sucl")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64]


def mine(dtype=torch.float32, n=6, seed=0):
    return torch.arange(n).add(RANK + seed).remainder(3).add(1).to(dtype).reshape(2, -1)


def b_of(mesh, b):
    from torch.distributed.tensor import Shard, distribute_tensor

    return distribute_tensor(b, mesh, [Shard(0)])


class AgainstGloo(unittest.TestCase):
    def both(self, call):
        """What call(group) returns with sucl is what it returns with gloo."""
        found, wanted = call(None), call(GLOO)
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            self.assertTrue(torch.equal(a, b), f"{a}, not {b}")

    def test_reductions(self):
        ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
        for dtype in TYPES:
            bits = [] if dtype.is_floating_point else [dist.ReduceOp.BAND, dist.ReduceOp.BOR,
                                                       dist.ReduceOp.BXOR]
            for op in ops + bits:
                def allreduce(group, dtype=dtype, op=op):
                    x = mine(dtype)
                    dist.all_reduce(x, op, group=group)
                    return [x]

                self.both(allreduce)

                def reduce(group, dtype=dtype, op=op):
                    x = mine(dtype)
                    dist.reduce(x, SIZE - 1, op, group=group)
                    return [x] if RANK == SIZE - 1 else []

                self.both(reduce)

    def test_what_gloo_does_not_have(self):
        x = torch.full((4,), float(RANK))
        dist.all_reduce(x, dist.ReduceOp.AVG)
        self.assertTrue((x == (SIZE - 1) / 2).all())
        b = torch.tensor([RANK == 0, False, True])
        dist.all_reduce(b)
        self.assertEqual(b.tolist(), [True, False, True])
        f = torch.ones(3).to(torch.float8_e4m3fn)
        dist.all_reduce(f)
        self.assertTrue((f.float() == SIZE).all())
        out = torch.zeros(3)
        dist.reduce_scatter_tensor(out, torch.arange(3.0 * SIZE))
        self.assertTrue(torch.equal(out, SIZE * torch.arange(3.0 * RANK, 3.0 * RANK + 3)))
        parts = [torch.full((r + 1,), 1.0) for r in range(SIZE)]
        out = torch.zeros(RANK + 1)
        dist.reduce_scatter(out, parts)
        self.assertTrue((out == SIZE).all())

    def test_tensors_of_any_strides(self):
        def transposed(group):
            x = mine().t()
            dist.all_reduce(x, group=group)
            y = torch.zeros(4, 6)[:, ::2]
            if RANK == 0:
                y += 3
            dist.broadcast(y.contiguous() if group else y, 0, group=group)
            return [x]

        self.both(transposed)
        y = torch.zeros(4, 6)[:, ::2]
        y += RANK == 0
        dist.broadcast(y, 0)
        self.assertTrue((y == 1).all())

    def test_gathers_and_scatters(self):
        def gathers(group):
            x = mine()
            all_of_them = [torch.zeros_like(x) for _ in range(SIZE)]
            dist.all_gather(all_of_them, x, group=group)
            flat = torch.zeros(2 * SIZE, 3)
            dist.all_gather_into_tensor(flat, x, group=group)
            at_root = [torch.zeros_like(x) for _ in range(SIZE)] if RANK == 0 else None
            dist.gather(x, at_root, 0, group=group)
            y = torch.zeros_like(x)
            dist.scatter(y, all_of_them if RANK == 1 else None, 1, group=group)
            z = mine(seed=4)
            dist.broadcast(z, SIZE - 1, group=group)
            return [*all_of_them, flat, *(at_root or []), y, z]

        self.both(gathers)

    def test_alltoalls(self):
        def alltoalls(group):
            x = torch.arange(2.0 * SIZE) + 10 * RANK
            out = torch.zeros(2 * SIZE)
            dist.all_to_all_single(out, x, group=group)
            splits = [(RANK + r) % 3 for r in range(SIZE)]
            uneven = torch.zeros(sum(splits), 2)
            dist.all_to_all_single(uneven, torch.ones(sum(splits), 2) * RANK, splits, splits,
                                   group=group)
            return [out, uneven]

        self.both(alltoalls)
        got = [torch.zeros(r + RANK + 1) for r in range(SIZE)]
        dist.all_to_all(got, [torch.full((r + RANK + 1,), float(RANK)) for r in range(SIZE)])
        self.assertTrue(all((g == r).all() for r, g in enumerate(got)))

    def test_messages_and_objects(self):
        def messages(group):
            x, y = mine(), torch.zeros(2, 3)
            right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
            works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right, group),
                                            dist.P2POp(dist.irecv, y, left, group)])
            for work in works:
                work.wait()
            return [y]

        self.both(messages)
        everyone = [None] * SIZE
        dist.all_gather_object(everyone, {"rank": RANK})
        self.assertEqual([one["rank"] for one in everyone], list(range(SIZE)))
        told = [("from", 0)] if RANK == 0 else [None]
        dist.broadcast_object_list(told, 0)
        self.assertEqual(told, [("from", 0)])
        dist.barrier()

    def test_work_and_futures(self):
        x = torch.ones(1 << 16)
        work = dist.all_reduce(x, async_op=True)
        seen = work.get_future().then(lambda f: float(f.value()[0][0]))
        self.assertEqual(seen.wait(), SIZE)
        self.assertTrue(work.wait() and work.is_completed() and work.is_success())

    def test_work_that_says_it_is_over_has_delivered(self):
        x = torch.full((300, 4), 1.0 + RANK).t()[:, ::2]
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            time.sleep(0.001)
        self.assertTrue((x == SIZE * (SIZE + 1) / 2).all())
        x.fill_(-1)  # is not written again
        work.wait()
        self.assertTrue((x == -1).all())

    def test_subgroups(self):
        evens = dist.new_group(list(range(0, SIZE, 2)))
        whole = dist.new_group()
        if RANK % 2 == 0:
            x = torch.ones(3)
            dist.all_reduce(x, group=evens)
            self.assertTrue((x == (SIZE + 1) // 2).all())
        x = torch.ones(3)
        dist.all_reduce(x, group=whole)
        self.assertTrue((x == SIZE).all())

    def test_training_gives_the_weights_that_gloo_gives(self):
        def train(group):
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(),
                                        torch.nn.Linear(50, 3))
            model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
            best = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(RANK)
            for _ in range(4):
                best.zero_grad()
                model(torch.randn(8, 20)).square().mean().backward()
                best.step()
            return [p.detach().clone() for p in model.parameters()]

        for a, b in zip(train(None), train(GLOO)):
            torch.testing.assert_close(a, b)

    def test_what_is_not_there_says_so(self):
        if NATIVE:
            with self.assertRaisesRegex(sucl.InvalidRankError, "none"):
                dist.recv(torch.zeros(1), RANK)
            self.assertRaises(sucl.InvalidCountError, dist.all_gather_into_tensor,
                              torch.zeros(2 * SIZE + 1), torch.zeros(2))
            return
        with self.assertRaises(sucl.InvalidMemoryError):
            dist.all_reduce(torch.zeros(2, device="meta"))
        with self.assertRaises(sucl.UnsupportedError):
            dist.recv(torch.zeros(1))
        with self.assertRaisesRegex(sucl.UnsupportedError, "sucl and cuda:gloo"):
            dist.new_group(backend="cpu:sucl,cuda:gloo")
        if RANK == 0:  # the others do not call it
            with self.assertRaisesRegex(sucl.UnsupportedError, "with all ranks"):
                dist.new_group([0], use_local_synchronization=True)


@unittest.skipIf(not NATIVE, "the process group in Python does without")
class OfTheExtension(unittest.TestCase):
    def test_receives_from_any_rank_in_the_order_of_arrival(self):
        if RANK != 0:
            for n in range(3):
                dist.send(torch.full((4,), 10.0 * RANK + n), 0, tag=7)
            dist.send(torch.full((70000,), 1.0 * RANK), 0, tag=8)
            return
        seen = {r: [] for r in range(1, SIZE)}
        x = torch.zeros(4)
        for _ in range(3 * (SIZE - 1)):
            source = dist.recv(x, tag=7)
            seen[source].append(float(x[0]))
        self.assertEqual(seen, {r: [10.0 * r, 10.0 * r + 1, 10.0 * r + 2] for r in seen})
        long = [torch.zeros(70000) for _ in range(SIZE - 1)]
        works = [dist.irecv(t, tag=8) for t in long]  # from any, and waited for backwards
        for work in reversed(works):
            work.wait()
        self.assertEqual({float(t[9]) for t in long}, {float(r) for r in seen})

    def test_groups_of_which_others_do_not_know(self):
        ranks = [RANK]
        alone = dist.new_group(ranks, use_local_synchronization=True)
        x = torch.full((3,), RANK + 1.0)
        dist.all_reduce(x, group=alone)
        self.assertTrue((x == RANK + 1).all())

    def test_sums_of_products_with_a_factor(self):
        for by in (0.5, torch.tensor([4.0])):
            op, x = dist._make_nccl_premul_sum(by), torch.arange(6.0).reshape(2, 3) + RANK
            factor = float(by)
            wanted = factor * (SIZE * torch.arange(6.0).reshape(2, 3) + sum(range(SIZE)))
            whole, of_root = x.clone(), x.clone()
            dist.all_reduce(whole, op)
            dist.reduce(of_root, SIZE - 1, op)
            self.assertTrue(torch.equal(whole, wanted))
            self.assertTrue(torch.equal(of_root, wanted if RANK == SIZE - 1 else x))
            share = torch.empty(2)
            dist.reduce_scatter(share, [x.reshape(-1)[2 * r % 4:2 * r % 4 + 2].contiguous()
                                        for r in range(SIZE)], op)
            start = 2 * RANK % 4
            self.assertTrue(torch.equal(share, wanted.reshape(-1)[start:start + 2]))
        with self.assertRaises(sucl.InvalidArgumentError):
            dist.all_reduce(torch.ones(2, dtype=torch.int32), dist._make_nccl_premul_sum(2.0))

    def test_shares_that_are_a_part_of_the_whole(self):
        whole = torch.zeros(3 * SIZE)
        share = whole[3 * RANK:3 * RANK + 3]
        share += RANK + 1
        dist.all_gather_into_tensor(whole, share)
        wanted = torch.arange(1.0, SIZE + 1).repeat_interleave(3)
        self.assertTrue(torch.equal(whole, wanted))
        dist.reduce_scatter_tensor(share, whole)
        self.assertTrue(torch.equal(share, torch.full((3,), SIZE * (RANK + 1.0))))
        x = torch.full((4,), RANK + 1.0)
        dist.all_reduce_coalesced([x, x])  # the same tensor twice is summed once
        self.assertTrue((x == SIZE * (SIZE + 1) / 2).all())
        parts = [x + r for r in range(SIZE)]
        dist.reduce_scatter(parts[RANK], parts)
        self.assertTrue((parts[RANK] == SIZE * (x + RANK)).all())

    def test_messages_of_one_batch(self):
        right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        x, y = torch.full((70000,), 1.0 + RANK), torch.zeros(2, 35000).t()
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right),
                                            dist.P2POp(dist.irecv, y, left)]):
            work.wait()
        self.assertTrue((y == 1 + left).all())

    def test_one_backend_among_several(self):
        both = dist.new_group(backend="cpu:sucl,cuda:gloo")
        x = torch.ones(5)
        dist.all_reduce(x, group=both)
        self.assertTrue((x == SIZE).all())

    def test_sparse_sums(self):
        x = torch.sparse_coo_tensor([[RANK, 5]], [[1.0, 2.0], [3.0, 4.0]], (9, 2))
        dist.all_reduce(x)
        wanted = torch.zeros(9, 2)
        wanted[:SIZE] = torch.tensor([1.0, 2.0])
        wanted[5] += SIZE * torch.tensor([3.0, 4.0])
        self.assertTrue(torch.equal(x.to_dense(), wanted))

    def test_several_tensors_of_a_rank(self):
        mine = [torch.tensor([2.0 * RANK, 1.0]), torch.tensor([2.0 * RANK + 1, 5.0])]
        group = dist.group.WORLD
        numbers = torch.arange(2.0 * SIZE)

        x = [t.clone() for t in mine]
        group.allreduce(x, dist.AllreduceOptions()).wait()
        for t in x:  # as if each was a rank's
            self.assertEqual(t.tolist(), [float(numbers.sum()), 6.0 * SIZE])
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = SIZE - 1, 1
        x = [t.clone() for t in mine]
        group.broadcast(x, options).wait()
        for t in x:
            self.assertEqual(t.tolist(), [2.0 * SIZE - 1, 5])
        lists = [[torch.zeros(2) for _ in range(2 * SIZE)] for _ in mine]
        group.allgather(lists, mine).wait()
        for got in lists:
            self.assertTrue(torch.equal(torch.stack(got)[:, 0], numbers))
        x = [torch.sparse_coo_tensor([[RANK + n]], [1.0], (SIZE + 1,)) for n in range(2)]
        group.allreduce(x, dist.AllreduceOptions()).wait()
        for t in x:
            self.assertEqual(t.to_dense().tolist(), [1.0] + [2.0] * (SIZE - 1) + [1.0])

    def test_wrong_tensors_are_refused_in_the_words_of_torch(self):
        group = dist.group.WORLD._get_backend(torch.device("cpu"))
        a, b, c = torch.zeros(1), torch.zeros(1, dtype=torch.float64), torch.zeros(2)
        sparse = torch.sparse_coo_tensor([[0]], [1], (2,))
        wrong_root = dist.ReduceOptions()
        wrong_root.rootTensor = 1
        at_me, elsewhere = dist.GatherOptions(), dist.GatherOptions()
        at_me.rootRank, elsewhere.rootRank = RANK, (RANK + 1) % SIZE
        from_me = dist.ScatterOptions()
        from_me.rootRank = RANK
        for said, call in (
                ("invalid tensor type at index 1", lambda: group.allreduce([a, b])),
                ("invalid tensor size at index 1", lambda: group.allreduce([a, c])),
                ("invalid tensor layout at index 1", lambda: group.allreduce([a, sparse])),
                ("must all have the same type", lambda: group.allreduce_coalesced([a, b])),
                ("unsupported layout", lambda: group.allreduce_coalesced([sparse, sparse])),
                ("invalid root tensor: 1", lambda: group.reduce([a], wrong_root)),
                ("invalid root tensor: 0 of 0", lambda: group.broadcast([])),
                ("a single-element tensor list", lambda: group.reduce([a, a])),
                ("lists to have the same length", lambda: group.allgather([], [a])),
                ("invalid output tensor list at index 0",
                 lambda: group.allgather([[a] * (SIZE + 1)], [a])),
                (f"Output list size should be {SIZE}",
                 lambda: group.gather([[a]], [a], at_me)),
                ("invalid tensor size", lambda: group.gather([[c] * SIZE], [a], at_me)),
                ("requires empty output on non-root",
                 lambda: group.gather([[a] * SIZE], [a], elsewhere)),
                ("requires a single-element input list", lambda: group.scatter([a], [], from_me))):
            with self.subTest(said), self.assertRaisesRegex(RuntimeError, said):
                call()
        dist.barrier()

    def test_tensors_of_inference_outside_of_the_mode(self):
        with torch.inference_mode():
            apart = [torch.zeros(2) for _ in range(SIZE)]
            mine = torch.full((2,), float(RANK))
        dist.all_gather(apart, mine)
        self.assertEqual([float(x[1]) for x in apart], [float(r) for r in range(SIZE)])

    def test_tensors_that_give_up_their_memory_under_way(self):
        late = dist.new_group()
        x, y = torch.full((1 << 18,), 1.0), torch.full((1 << 18,), 2.0)
        if RANK == 0:
            dist.barrier()  # others are in the operation by then
        work = dist.all_reduce(x, group=late, async_op=True)
        x.set_(y)
        if RANK != 0:
            dist.barrier()
        work.wait()
        self.assertTrue((x == 2).all())

    def test_many_tensors_in_one_call(self):
        lists = [torch.arange(n + 1.0) + RANK for n in range(4)]
        with dist._coalescing_manager():
            for x in lists:
                dist.all_reduce(x)
        for n, x in enumerate(lists):
            self.assertTrue(torch.equal(
                x, SIZE * torch.arange(n + 1.0) + sum(range(SIZE))))
        z = torch.tensor([1 + 2j, RANK * 1j])
        dist.all_reduce(z)
        self.assertTrue(torch.equal(z, torch.tensor([SIZE * (1 + 2j), 1j * sum(range(SIZE))])))

    def test_a_wait_has_an_end(self):
        short = dist.new_group(timeout=datetime.timedelta(milliseconds=200))
        if RANK == 0:
            work = dist.barrier(group=short, async_op=True)
            with self.assertRaisesRegex(sucl.LateError, "Timed out waiting 200" + WHO_IS_LATE):
                work.wait()
            self.assertFalse(work.is_success())
            self.assertIsInstance(work.exception(), RuntimeError)
        dist.barrier()
        if RANK != 0:
            dist.barrier(group=short)  # what was late is still in flight
        dist.barrier()

    def test_the_timeout_of_a_group_can_be_changed(self):
        from torch.distributed.distributed_c10d import _set_pg_timeout

        group = dist.new_group()
        _set_pg_timeout(datetime.timedelta(milliseconds=150), group)
        if RANK == 0:
            with self.assertRaisesRegex(sucl.LateError, "Timed out waiting 150ms"):
                dist.barrier(group=group)
        dist.barrier()
        if RANK != 0:
            dist.barrier(group=group)
        dist.barrier()

    def test_options_of_a_group(self):
        group = dist.new_group(list(range(SIZE)), timeout=datetime.timedelta(seconds=77))
        own = group._get_backend(torch.device("cpu"))
        own.eager_connect_single_device(torch.device("cpu"))
        own.perform_nocolor_split(torch.device("cpu"))
        options = own.options
        self.assertEqual(options.backend, "sucl")
        self.assertEqual(options._timeout, datetime.timedelta(seconds=77))
        if hasattr(options, "global_ranks_in_group"):
            self.assertEqual(list(options.global_ranks_in_group), list(range(SIZE)))
            self.assertTrue(options.group_name.endswith(group.group_name))
        options._timeout = datetime.timedelta(seconds=1)  # a copy
        own._set_default_timeout(datetime.timedelta(seconds=33))
        again = copy.deepcopy(own.options)
        self.assertEqual(again._timeout, datetime.timedelta(seconds=33))
        self.assertEqual(copy.copy(again).backend, "sucl")

    @unittest.skipUnless(hasattr(torch._C._distributed_c10d, "ErrorType"),
                         "this torch asks no group for its error")
    def test_errors_of_a_group(self):
        from torch._C._distributed_c10d import ErrorType

        sound, late, aborted = dist.new_group(), dist.new_group(), dist.new_group()
        backends = [g._get_backend(torch.device("cpu")) for g in (sound, late, aborted)]
        dist.all_reduce(torch.ones(3), group=sound)
        for backend in backends:
            self.assertEqual(backend.get_error(), ErrorType.SUCCESS)
        if RANK == 0:
            backends[1]._set_default_timeout(datetime.timedelta(milliseconds=50))
            self.assertRaises(sucl.LateError, dist.barrier, group=late)
            self.assertEqual(backends[1].get_error(), ErrorType.TIMEOUT)
            backends[2].abort()
        dist.barrier()
        while backends[2].get_error() == ErrorType.SUCCESS:  # it comes by a message
            time.sleep(0.001)
        self.assertEqual(backends[2].get_error(), ErrorType.COMM_ERROR)
        self.assertEqual(backends[0].get_error(), ErrorType.SUCCESS)
        if RANK != 0:
            dist.barrier(group=late)
        dist.barrier()

    def sum_in(self, group, ranks):
        x = torch.full((3,), 1.0 + RANK)
        group.allreduce([x]).wait()
        self.assertTrue((x == sum(1.0 + r for r in ranks)).all())

    @unittest.skipUnless(hasattr(dist.ProcessGroup, "split_group"), "this torch splits no groups")
    def test_groups_that_are_split(self):
        world = dist.group.WORLD
        self.assertTrue(world._get_backend(torch.device("cpu")).supports_splitting)
        first = world.split_group([0, SIZE - 1], timeout=datetime.timedelta(seconds=44))
        second = world.split_group([0, SIZE - 1])  # the same ranks once more
        self.assertEqual(first is None, 0 < RANK < SIZE - 1)
        if first is not None:
            for part in (first, second):
                self.assertEqual((part.rank(), part.size()), (int(RANK > 0), 2))
                self.sum_in(part, (0, SIZE - 1))
            own = first._get_backend(torch.device("cpu"))
            self.assertEqual(own.comm_split_count(), 0)
            self.assertEqual(own.options._timeout, datetime.timedelta(seconds=44))
            one = first.split_group([1])  # ranks are those of the group
            if RANK > 0:
                self.sum_in(one, [RANK])
        with self.assertRaisesRegex(RuntimeError, "invalid root rank|rank"):
            world.split_group([0, SIZE])
        dist.barrier()

    @unittest.skipUnless(hasattr(dist, "shrink_group"), "this torch shrinks no groups")
    def test_groups_that_are_shrunk(self):
        group = dist.new_group()
        if RANK != 1:
            left = dist.shrink_group([1], group=group)
            self.sum_in(left, [r for r in range(SIZE) if r != 1])
            self.assertEqual(dist.get_world_size(left), SIZE - 1)
        dist.barrier()

    def test_a_monitored_barrier_says_who_is_missing(self):
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
        group = dist.new_group()
        late = datetime.timedelta(milliseconds=300)
        if RANK == 0:
            with self.assertRaisesRegex(sucl.LateError, f"Ranks 1.* {SIZE - 1} failed to pass"):
                dist.monitored_barrier(group, late, wait_all_ranks=True)
        dist.barrier()

    def test_sharded_training_gives_the_weights_that_gloo_gives(self):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        def train(group):
            mesh = DeviceMesh.from_group(group, "cpu")
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(21, 50), torch.nn.ReLU(),
                                        torch.nn.Linear(50, 3))
            fully_shard(model, mesh=mesh)
            best = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(RANK)
            for _ in range(3):
                best.zero_grad()
                model(torch.randn(8, 21)).square().mean().backward()
                best.step()
            return [p.full_tensor() for p in model.parameters()]

        for a, b in zip(train(dist.group.WORLD), train(GLOO)):
            torch.testing.assert_close(a, b)

    def test_distributed_tensors(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        mesh = init_device_mesh("cpu", (SIZE,))
        torch.manual_seed(5)
        a, b = torch.randn(10, 7), torch.randn(7, 9)
        rows, columns = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(b, mesh,
                                                                                  [Shard(1)])
        inner = distribute_tensor(a, mesh, [Shard(1)]) @ distribute_tensor(b, mesh, [Shard(0)])
        for product in (rows @ columns, rows.redistribute(mesh, [Shard(1)]) @ b_of(mesh, b), inner):
            torch.testing.assert_close(product.redistribute(mesh, [Replicate()]).to_local(), a @ b)

    def test_functional_collectives(self):
        import torch.distributed._functional_collectives as functional

        x = torch.arange(4.0) + RANK
        everything = functional.all_gather_tensor(x, 0, dist.group.WORLD)
        self.assertTrue(torch.equal(functional.wait_tensor(everything),
                                    torch.cat([torch.arange(4.0) + r for r in range(SIZE)])))
        whole = functional.all_reduce(x, "sum", dist.group.WORLD)
        self.assertTrue(torch.equal(whole + 0, SIZE * torch.arange(4.0) + sum(range(SIZE))))

    def test_futures_of_callbacks_that_wait_for_futures(self):
        def add_up(future):
            x = future.value()[0]
            dist.all_reduce(x, async_op=True).get_future().wait()
            return float(x[0])

        x = torch.ones(1 << 18)
        seen = dist.all_reduce(x, async_op=True).get_future().then(add_up)
        self.assertEqual(seen.wait(), SIZE * SIZE)

    def test_work_without_a_waiter_ends(self):
        x = torch.ones(1 << 19)[::2]  # a copy, which is copied back
        dist.all_reduce(x, async_op=True)
        unfinished = torch.ones(1)
        while unfinished[0] > 0:  # a later call copies it back
            unfinished[0] = float(x[0] != SIZE)
            dist.all_reduce(unfinished)
        self.assertTrue((x == SIZE).all())


if __name__ == "__main__":
    done = unittest.main(exit=False, verbosity=int(RANK == 0), failfast=True)
    if not done.result.wasSuccessful():
        os._exit(1)  # the others are told, and do not wait
    dist.destroy_process_group()
