# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The backend "sucl" of torch.distributed on CUDA tensors against nccl's results. Each rank has a
GPU of its own: starts as many processes as there are GPUs, or as its argument says."""

import os
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)


def start_ranks(ranks):
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen(
            [sys.executable, __file__, *sys.argv[2:]],
            env={**os.environ, "RANK": str(r), "RANKS": str(ranks), "STORE": f"{folder}/s"})
            for r in range(ranks)]
        return max(abs(rank.wait()) for rank in started)


if "RANK" not in os.environ:
    GPUS = torch.cuda.device_count()
    if GPUS < 2:
        print(f"skipped: there are {GPUS} CUDA devices, and two ranks need two")
        sys.exit(77)
    sys.exit(start_ranks(int(sys.argv[1]) if len(sys.argv) > 1 else GPUS))
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["RANKS"])
torch.cuda.set_device(RANK % torch.cuda.device_count())
DEVICE = torch.device("cuda", torch.cuda.current_device())
import sucl  # noqa: E402
import sucl_torch_backend  # noqa: E402

warnings.simplefilter("ignore", FutureWarning)  # of names that newer torch has another for
sucl_torch_backend.register()
dist.init_process_group(os.environ.get("GROUP", "sucl"),
                        store=dist.FileStore(os.environ["STORE"], SIZE), rank=RANK,
                        world_size=SIZE)
NCCL = dist.new_group(backend="nccl")
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
SIZES = [1, 7, 4096, 300001, 1 << 22]


def mine(n, dtype=torch.float32):
    return torch.arange(n, device=DEVICE).add(RANK).remainder(3).add(1).to(dtype)


class AgainstNccl(unittest.TestCase):
    def both(self, call):
        """What a call of a group gives, which is alike with both."""
        found, wanted = call(None), call(NCCL)
        for a, b in zip(found, wanted):
            self.assertTrue(torch.equal(a, b), f"{a} and of nccl {b}")

    def test_reductions_of_every_type_and_op(self):
        ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
        for dtype in FLOATS + INTEGERS:
            for op in ops + [dist.ReduceOp.AVG] * (dtype in FLOATS):
                def call(group, dtype=dtype, op=op):
                    x = mine(1000, dtype)
                    dist.all_reduce(x, op, group=group)
                    return [x]

                self.both(call)

    def test_sizes(self):
        for n in SIZES:
            def call(group, n=n):
                summed, sent = mine(n), mine(n) if RANK == 0 else torch.zeros(n, device=DEVICE)
                at_root = mine(n)
                dist.all_reduce(summed, group=group)
                dist.broadcast(sent, 0, group=group)
                dist.reduce(at_root, SIZE - 1, group=group)
                return [summed, sent] + ([at_root] if RANK == SIZE - 1 else [])

            self.both(call)

    def test_shares_and_wholes(self):
        for n in SIZES[:4]:
            def call(group, n=n):
                whole, share = torch.zeros(n * SIZE, device=DEVICE), torch.zeros(n, device=DEVICE)
                parts = [torch.zeros(n, device=DEVICE) for _ in range(SIZE)]
                moved = torch.zeros(n * SIZE, device=DEVICE)
                dist.all_gather_into_tensor(whole, mine(n), group=group)
                dist.all_gather(parts, mine(n), group=group)
                dist.reduce_scatter_tensor(share, mine(n * SIZE), group=group)
                dist.all_to_all_single(moved, mine(n * SIZE), group=group)
                return [whole, share, moved, *parts]

            self.both(call)

    def test_blocks_of_several_sizes(self):
        def call(group):
            send = [r + RANK + 1 for r in range(SIZE)]
            out = torch.zeros(sum(send), device=DEVICE)
            dist.all_to_all_single(out, mine(sum(send)), send, send, group=group)
            lists = [torch.zeros(5 * (r + RANK + 1), device=DEVICE) for r in range(SIZE)]
            dist.all_to_all(lists, [mine(5 * (r + RANK + 1)) for r in range(SIZE)], group=group)
            return [out, *lists]

        self.both(call)

    def test_gather_and_scatter(self):
        def call(group):
            parts = [torch.zeros(700, device=DEVICE) for _ in range(SIZE)]
            dist.gather(mine(700), parts if RANK == 0 else None, 0, group=group)
            mine_of_it = torch.zeros(90, device=DEVICE)
            dist.scatter(mine_of_it, [mine(90) + r for r in range(SIZE)] if RANK == 1 else None, 1,
                         group=group)
            return [mine_of_it] + (parts if RANK == 0 else [])

        self.both(call)

    def test_messages(self):
        for n in SIZES:
            def call(group, n=n):
                x = torch.zeros(n, device=DEVICE)
                if RANK == 0:
                    dist.send(mine(n), SIZE - 1, group=group)
                    dist.recv(x, SIZE - 1, group=group)
                elif RANK == SIZE - 1:
                    dist.recv(x, 0, group=group)
                    dist.send(mine(n) + x, 0, group=group)
                return [x]

            self.both(call)

    def test_messages_round_a_ring(self):
        for n in SIZES:
            def call(group, n=n):
                x = torch.zeros(n, device=DEVICE)
                for work in dist.batch_isend_irecv(
                        [dist.P2POp(dist.isend, mine(n), (RANK + 1) % SIZE, group),
                         dist.P2POp(dist.irecv, x, (RANK - 1) % SIZE, group)]):
                    work.wait()
                return [x]

            self.both(call)

    def test_tensors_that_are_not_contiguous(self):
        def call(group):
            # nccl takes contiguous ones alone
            laid = torch.Tensor.contiguous if group is NCCL else (lambda tensor: tensor)
            x = laid(mine(600).reshape(20, 30).t())
            dist.all_reduce(x, group=group)
            y = laid(mine(600).reshape(20, 30).t())
            dist.broadcast(y, 0, group=group)
            return [x, y]

        self.both(call)

    def test_objects_and_tensors_of_the_host(self):
        all_of_them = [None] * SIZE
        dist.all_gather_object(all_of_them, {"rank": RANK})
        self.assertEqual(all_of_them, [{"rank": r} for r in range(SIZE)])
        x = torch.ones(100)
        dist.all_reduce(x)
        self.assertTrue((x == SIZE).all())

    def test_parts_of_the_ranks(self):
        pairs = [dist.new_group([r, r + 1]) for r in range(0, SIZE - 1, 2)]
        x = torch.ones(5000, device=DEVICE)
        if RANK < SIZE // 2 * 2:
            dist.all_reduce(x, group=pairs[RANK // 2])
            self.assertTrue((x == 2).all())

    def test_refuses_what_it_cannot(self):
        with self.assertRaises(sucl.UnsupportedError):
            dist.recv(torch.zeros(1, device=DEVICE))
        with self.assertRaises(sucl.InvalidMemoryError):
            dist.reduce_scatter(torch.zeros(1), [torch.zeros(1, device=DEVICE)] * SIZE)


class Order(unittest.TestCase):
    """Operations come after what the current stream has been given, and wait() holds up that."""

    def busy(self):
        torch.cuda._sleep(100_000_000)  # cycles

    def test_after_the_stream_and_before_what_follows_a_wait(self):
        x = torch.zeros(1 << 20, device=DEVICE)
        dist.all_reduce(x)
        for _ in range(3):
            self.busy()
            x.fill_(RANK + 1)
            work = dist.all_reduce(x, async_op=True)
            self.assertFalse(work.is_completed())  # nor has the call waited for it
            work.wait()
            y = x * 2  # the thread is far ahead of the device here
            self.assertTrue((y == SIZE * (SIZE + 1)).all())
            self.assertTrue(work.is_completed())

    def test_on_a_stream_of_the_program(self):
        side = torch.cuda.Stream()
        x = torch.ones(1 << 20, device=DEVICE)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.busy()
            x.mul_(3)
            dist.all_reduce(x)
            x.add_(1)
        torch.cuda.current_stream().wait_stream(side)
        self.assertTrue((x == 3 * SIZE + 1).all())

    def test_memory_lives_until_the_operation_is_done(self):
        kept = torch.zeros(1 << 22, device=DEVICE)
        dist.all_reduce(kept)
        self.busy()
        works = []
        for n in range(8):
            works.append(dist.all_gather_into_tensor(
                torch.empty((1 << 20) * SIZE, device=DEVICE),
                torch.full((1 << 20,), float(n), device=DEVICE), async_op=True))
        overwriting = [torch.full((1 << 20,), -1.0, device=DEVICE) for _ in range(16)]
        for n, work in enumerate(works):
            work.wait()
            self.assertTrue((work.result()[0] == n).all(), n)
        self.assertEqual(len(overwriting), 16)

    def test_futures(self):
        x = torch.ones(1 << 20, device=DEVICE)
        self.busy()
        future = dist.all_reduce(x, async_op=True).get_future()
        doubled = future.then(lambda f: f.value()[0] * 2).wait()
        self.assertTrue((doubled == 2 * SIZE).all())

    @unittest.skipUnless(hasattr(torch.Stream, "is_capturing"), "this torch cannot say it")
    def test_refuses_a_capture(self):
        x = torch.ones(1 << 10, device=DEVICE)
        dist.all_reduce(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(RuntimeError, "cannot capture an operation of the backend"):
            with torch.cuda.graph(graph):
                dist.all_reduce(x)
        self.assertTrue((x == SIZE).all())
        dist.all_reduce(x)  # it goes on
        self.assertTrue((x == SIZE * SIZE).all())

    def test_a_barrier_waits_for_the_device(self):
        x = torch.ones(1 << 20, device=DEVICE)
        dist.all_reduce(x)
        self.busy()
        done = torch.cuda.Event()
        done.record()
        dist.barrier()
        self.assertTrue(done.query())


class Training(unittest.TestCase):
    def train(self, group, steps=6):
        torch.manual_seed(3)
        layers = [torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512),
                  torch.nn.ReLU(), torch.nn.Linear(512, 10)]
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Sequential(*layers).to(DEVICE), process_group=group, bucket_cap_mb=0.5)
        best = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(RANK)
        for _ in range(steps):
            best.zero_grad()
            model(torch.randn(32, 256, device=DEVICE)).square().mean().backward()
            best.step()
        return [p.detach().clone() for p in model.parameters()]

    def test_gives_the_weights_that_nccl_gives(self):
        for a, b in zip(self.train(None), self.train(NCCL)):
            torch.testing.assert_close(a, b)

    def test_sharded_gives_them_too(self):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        def train(group):
            mesh = DeviceMesh.from_group(group, "cuda")
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                        torch.nn.Linear(512, 10)).to(DEVICE)
            fully_shard(model, mesh=mesh)
            best = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(RANK)
            for _ in range(3):
                best.zero_grad()
                model(torch.randn(16, 256, device=DEVICE)).square().mean().backward()
                best.step()
            return [p.full_tensor() for p in model.parameters()]

        for a, b in zip(train(dist.group.WORLD), train(NCCL)):
            torch.testing.assert_close(a, b)


if __name__ == "__main__":
    done = unittest.main(argv=sys.argv[:1] + sys.argv[1:], exit=False, verbosity=2 * int(RANK == 0))
    sys.stdout.flush()
    if not done.result.wasSuccessful():
        os._exit(1)  # the others are told, and do not wait
    dist.destroy_process_group()
