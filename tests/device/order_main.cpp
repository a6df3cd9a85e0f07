// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations among kernels on GPUs: nothing waits on the host, and everything comes in order.
#include "order.hpp"

#include "support/own_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

namespace sucl::order {

rank_fixture* g_fixture = nullptr;

namespace {

/// Keeps a buffer for good. AdaptiveCpp frees the memory of a buffer some time after its end, and
/// freeing waits for all kernels of the device, of which tests hold some up.
template <class Buffer>
void keep(const Buffer& b) {
  static auto& all = *new std::vector<Buffer>;
  all.push_back(b);
}

/// What only holds for operations on streams: a call of one that the host executes waits for the
/// GPU, and for the other ranks.
struct streams : device {
  void SetUp() override {
    device::SetUp();
    if (IsSkipped()) return;
    if (!are_on_stream(j.world, kind::allreduce, n))
      GTEST_SKIP() << "the host executes operations, as where ranks share a GPU and no rule names "
                      "kernels";
  }
};

TEST_F(streams, returns_while_a_long_kernel_runs_in_order) {
  auto& q = j.in_order;
  numbers x(q), y(q);
  int *from = x.get(), *to = y.get();
  const int mine = rank + 1;
  j.in_order_world.allreduce(from, n, op::sum).wait();  // set-up is not what is tested
  long_kernel k(q);
  each(q, n, {}, [=](size_t i) { from[i] = mine + static_cast<int>(i); });
  auto done = j.in_order_world.allreduce(from, to, n, op::sum);
  auto last = each(q, n, {}, [=](size_t i) { to[i] *= 2; });
  EXPECT_FALSE(is_complete(k.event()));
  EXPECT_FALSE(is_complete(done));
  k.end();
  last.wait();
  EXPECT_FALSE(k.gave_up());
  const auto got = y.read();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], 2 * (sum() + size * static_cast<int>(i))) << i;
}

TEST_F(streams, returns_while_a_long_kernel_runs_with_events) {
  auto& q = j.queue;
  numbers x(q), y(q);
  int *from = x.get(), *to = y.get();
  const int mine = rank + 1;
  long_kernel k(q);
  auto filled = each(q, n, {k.event()}, [=](size_t i) { from[i] = mine; });
  auto done = j.world.allreduce(from, to, n, op::sum, {filled});
  auto moved = j.world.broadcast(to, n, size - 1, {done});
  auto last = each(q, n, {moved}, [=](size_t i) { to[i] += 1; });
  long_kernel::flush(q);
  EXPECT_FALSE(is_complete(k.event()));
  k.end();
  last.wait();
  EXPECT_FALSE(k.gave_up());
  for (const int got : y.read()) ASSERT_EQ(got, sum() + 1);
}

TEST_F(streams, returns_while_a_long_kernel_runs_on_buffers) {
  for (auto* queue : {&j.queue, &j.in_order}) {
    auto& q = *queue;
    auto& comm = queue == &j.queue ? j.world : j.in_order_world;
    sycl::buffer<int, 1> x{sycl::range<1>(n)}, y{sycl::range<1>(n)};
    keep(x), keep(y);
    const int mine = rank + 1;
    // Memory of buffers and kernels come with their first use, which may wait for what runs there.
    for (int i = 0; i < 2; ++i) {
      comm.allreduce(x, y, op::sum);
      comm.allreduce(y, op::max).wait();
    }
    long_kernel k(q);
    q.submit([&](sycl::handler& h) {
      h.depends_on(k.event());
      sycl::accessor a(x, h, sycl::write_only, sycl::no_init);
      h.parallel_for(sycl::range<1>(n), [=](sycl::id<1> i) { a[i] = mine; });
    });
    comm.allreduce(x, y, op::sum);
    auto done = comm.allreduce(y, op::max);  // both are on the device now
    q.submit([&](sycl::handler& h) {
      sycl::accessor a(y, h, sycl::read_write);
      h.parallel_for(sycl::range<1>(n), [=](sycl::id<1> i) { a[i] += static_cast<int>(i[0]); });
    });
    EXPECT_FALSE(is_complete(done));
    k.end();
    {
      sycl::host_accessor got(y, sycl::read_only);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], sum() + static_cast<int>(i));
    }
    EXPECT_FALSE(k.gave_up());
  }
}

// Blocks are packed and unpacked by kernels: neither does the call wait, nor is anything touched
// besides them.
TEST_F(streams, returns_while_a_long_kernel_runs_on_blocks) {
  constexpr size_t rows = 37, columns = 53, high = 20, wide = 31;
  for (auto* q : {&j.queue, &j.in_order}) {
    auto& comm = q == &j.queue ? j.world : j.in_order_world;
    sycl::buffer<int, 2> x{sycl::range<2>(rows, columns)}, y{sycl::range<2>(rows, columns)};
    keep(x), keep(y);
    const int mine = rank + 1;
    // Memory for what is packed comes with the first call.
    comm.allreduce(block<int, 2>(x, {5, 7}, {high, wide}), block<int, 2>(y, {11, 3}, {high, wide}),
                   op::sum)
        .wait();
    long_kernel k(*q);
    q->submit([&](sycl::handler& h) {
      h.depends_on(k.event());
      sycl::accessor a(x, h, sycl::write_only, sycl::no_init);
      sycl::accessor b(y, h, sycl::write_only, sycl::no_init);
      h.parallel_for(sycl::range<2>(rows, columns), [=](sycl::id<2> i) {
        a[i] = mine * static_cast<int>(i[0] * columns + i[1]);
        b[i] = -1;
      });
    });
    auto done = comm.allreduce(block<int, 2>(x, {5, 7}, {high, wide}),
                               block<int, 2>(y, {11, 3}, {high, wide}), op::sum);
    auto again = comm.allreduce(block<int, 2>(y, {11, 3}, {high, wide}), op::max);
    EXPECT_FALSE(is_complete(again));
    k.end();
    sycl::host_accessor got(y, sycl::read_only);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        const bool inside = r >= 11 && r < 11 + high && c >= 3 && c < 3 + wide;
        const int from = static_cast<int>((r - 11 + 5) * columns + c - 3 + 7);
        ASSERT_EQ((got[{r, c}]), inside ? sum() * from : -1) << r << ", " << c;
      }
    EXPECT_FALSE(k.gave_up());
  }
}

// An operation that the vendor's library lacks goes through the host: in order all the same.
TEST_F(device, what_the_host_executes_comes_in_order) {
  for (auto* q : {&j.queue, &j.in_order}) {
    auto& comm = q == &j.queue ? j.world : j.in_order_world;
    numbers x(*q), y(*q);
    int *from = x.get(), *to = y.get();
    const int mine = 3 * rank;
    auto filled = each(*q, n, {}, [=](size_t i) { from[i] = mine + static_cast<int>(i); });
    auto done = comm.scan(from, to, n, op::sum, {filled});
    auto again = comm.allreduce(to, n, op::max, {done});
    each(*q, n, {again}, [=](size_t i) { to[i] -= 1; }).wait();
    const auto got = y.read();
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i], 3 * size * (size - 1) / 2 + size * static_cast<int>(i) - 1) << i;
  }
}

// Every operation reads what a kernel wrote just before, and the next kernel what it wrote.
TEST_F(device, many_in_a_row_without_waiting) {
  auto& q = j.in_order;
  numbers x(q);
  int* data = x.get();
  each(q, n, {}, [=](size_t i) { data[i] = static_cast<int>(i % 7); });
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    j.in_order_world.allreduce(data, n, round % 2 ? op::max : op::min);
    each(q, n, {}, [=](size_t i) { data[i] = data[i] % 1000 + 1; });
  }
  const auto got = x.read();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], static_cast<int>(i % 7) + rounds);
}

// Ranks issue the operations of two communicators in different order.
void use_two_communicators(const device& t, size_t count, int rounds) {
  rank_fixture& j = t.j;
  numbers x(j.queue, count), y(j.queue, count);
  int *a = x.get(), *b = y.get();
  const int mine = t.rank + 1;
  // A library is set up by the first operation that it executes, in one order on all ranks.
  j.world.allreduce(a, count, op::sum, {}).wait();
  j.other.allreduce(b, count, op::sum, {}).wait();
  for (int round = 0; round < rounds; ++round) {
    auto fill_a = each(j.queue, count, {}, [=](size_t i) { a[i] = mine; });
    auto fill_b = each(j.queue, count, {}, [=](size_t i) { b[i] = 10 * mine; });
    sycl::event first, second;
    if (t.rank % 2 == 0) {
      first = j.world.allreduce(a, count, op::sum, {fill_a});
      second = j.other.allreduce(b, count, op::sum, {fill_b});
    } else {
      second = j.other.allreduce(b, count, op::sum, {fill_b});
      first = j.world.allreduce(a, count, op::sum, {fill_a});
    }
    for (const int got : x.read({first})) ASSERT_EQ(got, t.sum());
    for (const int got : y.read({second})) ASSERT_EQ(got, 10 * t.sum());
  }
}

TEST_F(streams, two_communicators_in_any_order) { use_two_communicators(*this, n, 50); }

// Kernels that fill a GPU.
TEST_F(streams, two_communicators_in_any_order_with_large_messages) {
  use_two_communicators(*this, size_t{16} << 20, 10);
}

sycl::event start_mixed(communicator& comm, int kind, int* from, int* to, size_t count,
                        const sycl::event& filled) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  switch (kind) {
    case 0: return comm.allreduce(from, to, count, op::sum, {filled});
    case 1: return comm.allgather(from, to, count, {filled});
    case 2: return comm.scan(from, to, count, op::sum, {filled});
    case 3: return comm.allreduce(from, to, count, op::bit_or, {filled});
    case 4: return comm.sendrecv(from, count, next, to, count, previous, 5, {filled});
    default: return comm.reduce(from, to, count, op::max, 0, {filled});
  }
}

// Element k of the result on `rank`, where rank r has given value(r, k).
template <class Value>
int expected_of_mixed(int kind, int rank, int size, size_t k, size_t count, const Value& value) {
  if (kind == 1) return value(static_cast<int>(k / count), k % count);
  if (kind == 4) return value((rank + size - 1) % size, k);
  if (kind == 5) return value(size - 1, k);
  int expected = 0;
  for (int r = 0; r < size; ++r) {
    if (kind == 0 || (kind == 2 && r <= rank)) expected += value(r, k);
    if (kind == 3) expected |= value(r, k);
  }
  return expected;
}

// Random kinds, sizes and queues; some executed by the library, some through the host, none awaited
// before a batch is issued. Every result is checked.
TEST_F(device, mixed_operations) {
  const char* wanted = std::getenv("SUCL_TEST_MIXED");
  const int batches = wanted ? std::atoi(wanted) : 100;
  constexpr int batch = 20;
  constexpr size_t sizes[] = {64, 1 << 12, 1 << 16, 1 << 20, 1 << 22};
  constexpr size_t most = 1 << 22;
  std::mt19937 random(7);  // the same on every rank
  std::vector<std::unique_ptr<numbers>> in, out;
  for (int i = 0; i < batch; ++i) {
    in.push_back(std::make_unique<numbers>(j.queue, most));
    out.push_back(std::make_unique<numbers>(j.queue, most * static_cast<size_t>(size)));
  }
  for (int b = 0; b < batches; ++b) {
    std::vector<sycl::event> done;
    std::vector<int> kinds;
    std::vector<size_t> counts;
    for (int i = 0; i < batch; ++i) {
      auto& comm = random() % 3 ? j.world : j.other;
      // Of ten, one is among the largest and four are among the smallest.
      const size_t drawn = random() % 10;
      const size_t count = 1 + random() % sizes[drawn < 4   ? 0
                                                : drawn < 8 ? drawn / 2 - 1
                                                            : drawn - 5];
      const int kind = static_cast<int>(random() % 6);
      int *from = in[static_cast<size_t>(i)]->get(), *to = out[static_cast<size_t>(i)]->get();
      const int mine = rank + b;
      auto filled =
          each(j.queue, count, {}, [=](size_t k) { from[k] = mine + i + static_cast<int>(k); });
      kinds.push_back(kind);
      counts.push_back(count);
      done.push_back(start_mixed(comm, kind, from, to, count, filled));
    }
    for (int i = 0; i < batch; ++i) {
      const auto at = static_cast<size_t>(i);
      const size_t count = counts[at], blocks = kinds[at] == 1 ? static_cast<size_t>(size) : 1;
      const auto got = out[at]->read({done[at]}, count * blocks);
      const auto value = [&](int r, size_t k) { return r + b + i + static_cast<int>(k); };
      for (size_t k = 0; k < count * blocks; k += 1 + count / 2000) {
        if (kinds[at] == 5 && rank != 0) continue;
        const int expected = expected_of_mixed(kinds[at], rank, size, k, count, value);
        ASSERT_EQ(got[k], expected) << "batch " << b << ", operation " << i << ", kind "
                                    << kinds[at] << ", element " << k << " of " << count;
      }
    }
  }
}

// What a group of messages executes, of which there are two to every rank.
constexpr size_t longest_message = 4096;
constexpr size_t offset_of(int peer, int m) {
  return static_cast<size_t>(2 * peer + m) * longest_message;
}
constexpr size_t length_of(int from, int to, int m, int round) {
  return static_cast<size_t>(from * 7 + to * 3 + m * 2003 + round * 1001) % longest_message;
}
constexpr int content_of(int from, int to, int m, int round) {
  return 1000 * from + 100 * to + 10 * m + round;
}

// Messages on the stream wait for nothing on the host; others come in order all the same.
TEST_F(device, groups_come_in_order) {
  auto& q = j.in_order;
  const bool on_stream = are_on_stream(j.in_order_world, kind::group, 4);
  numbers x(q, offset_of(size, 0)), y(q, offset_of(size, 0)), z(q, 1);
  int *out = x.get(), *in = y.get(), *wrong = z.get();
  const int me = rank, ranks = size;
  each(q, 1, {}, [=](size_t) { *wrong = 0; }).wait();
  std::optional<long_kernel> k;
  if (on_stream) k.emplace(q);
  for (int round = 0; round < 30; ++round) {
    each(q, longest_message, {}, [=](size_t i) {
      for (int p = 0; p < ranks; ++p)
        for (int m = 0; m < 2; ++m)
          out[offset_of(p, m) + i] = content_of(me, p, m, round) + static_cast<int>(i);
    });
    group g(j.in_order_world);
    for (int p = 0; p < size; ++p)
      for (int m = 0; m < 2; ++m) {
        g.recv(in + offset_of(p, m), length_of(p, rank, m, round), p, m);
        g.send(out + offset_of(p, m), length_of(rank, p, m, round), p, m);
      }
    g.submit();
    each(q, longest_message, {}, [=](size_t i) {
      for (int p = 0; p < ranks; ++p)
        for (int m = 0; m < 2; ++m)
          if (i < length_of(p, me, m, round) &&
              in[offset_of(p, m) + i] != content_of(p, me, m, round) + static_cast<int>(i))
            *wrong = 1;
    });
  }
  if (k) {
    EXPECT_FALSE(is_complete(k->event()));
    k->end();
  }
  EXPECT_EQ(z.read()[0], 0);
}

// More messages in flight than the host has queues for, every receive before every send. On
// streams they would come in this order on the device, and wait for each other.
TEST_F(device, receives_may_come_before_all_sends_through_the_host) {
  if (are_on_stream(j.world, kind::recv, n * sizeof(int)))
    GTEST_SKIP() << "the device executes messages";
  constexpr int messages = 26;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  numbers x(j.queue, messages * n), y(j.queue, messages * n);
  int *from = x.get(), *to = y.get();
  const auto fill = [&](int first) {
    return each(j.queue, messages * n, {},
                [=](size_t i) { from[i] = first + static_cast<int>(i); });
  };
  fill(0).wait();  // loading a kernel waits for all streams, so also for messages
  for (int round = 0; round < 3; ++round) {
    const int mine = 1000 * rank + round;
    auto cleared = each(j.queue, messages * n, {}, [=](size_t i) { to[i] = -1; });
    cleared.wait();
    std::vector<sycl::event> done;
    const auto part = [](int* of, int m) { return of + static_cast<size_t>(m) * n; };
    for (int m = 0; m < messages; ++m) done.push_back(j.world.recv(part(to, m), n, previous, m));
    auto filled = fill(mine);
    for (int m = 0; m < messages; ++m)
      done.push_back(j.world.send(part(from, m), n, next, m, {filled}));
    sycl::event::wait(done);
    const auto got = y.read();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], 1000 * previous + round + static_cast<int>(i)) << i;
  }
}

// Copies within the host's memory, which AdaptiveCpp executes beside a GPU's in-order queue.
TEST_F(device, copies_within_the_host_come_before_an_operation) {
  constexpr size_t count = size_t{1} << 20;
  auto& q = j.in_order;
  int* from = sycl::malloc_host<int>(count, q);
  int* to = sycl::malloc_host<int>(count, q);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < count; ++i) from[i] = rank + round + static_cast<int>(i % 61);
    std::fill_n(to, count, -1);
    q.memcpy(to, from, count * sizeof(int));
    j.in_order_world.allreduce(to, count, op::sum).wait();
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(to[i], sum() - size + size * (round + static_cast<int>(i % 61)))
          << i << " in round " << round;
  }
  sycl::free(from, q);
  sycl::free(to, q);
}

// wait() is enough to read what has been received, without the event.
TEST_F(device, what_is_received_is_there_after_wait) {
  const int peer = rank ^ 1;
  if (peer >= size) GTEST_SKIP() << "there is no peer";
  constexpr size_t count = size_t{1} << 20;  // copied to the device for longer than a call takes
  numbers x(j.queue, count), y(j.queue, count);
  int *from = x.get(), *to = y.get(), *seen = sycl::malloc_host<int>(count, j.queue);
  for (int round = 0; round < 100; ++round) {
    const int mine = 1000 * rank + round;
    each(j.queue, count, {}, [=](size_t i) {
      from[i] = mine + static_cast<int>(i);
      to[i] = -1;
    }).wait();
    if (rank % 2 == 0) {
      j.world.send(from, count, peer, 3);
      j.world.recv(to, count, peer, 4);
    } else {
      j.world.recv(to, count, peer, 3);
      j.world.send(from, count, peer, 4);
    }
    j.world.wait();
    j.in_order.memcpy(seen, to, count * sizeof(int)).wait();
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(seen[i], 1000 * peer + round + static_cast<int>(i)) << i << " in round " << round;
  }
  sycl::free(seen, j.queue);
}

TEST_F(device, communicators_come_and_go) {
  for (int round = 0; round < 3; ++round) {
    numbers x(j.queue);
    int* data = x.get();
    const int mine = rank + 1;
    auto filled = each(j.queue, n, {}, [=](size_t i) { data[i] = mine; });
    sycl::event done;
    {
      auto made = round == 1 ? j.world.split(0, -rank) : j.world.dup();
      done = made.allreduce(data, n, op::sum, {filled});
    }
    for (const int got : x.read({done})) ASSERT_EQ(got, sum());
  }
}

// What a rank sees when another one dies in the middle: an error, and a GPU that works.
int lost_peer(rank_fixture& j, size_t count) {
  if (!j.gpu) {
    std::puts("skipped: there is no GPU");
    return 0;
  }
  auto& q = j.in_order;
  numbers x(q, count);
  j.in_order_world.allreduce(x.get(), count, op::max).wait();
  if (j.world.rank() == j.world.size() - 1) _exit(0);  // not an error for the launcher
  try {
    j.in_order_world.allreduce(x.get(), count, op::max).wait();
    j.in_order_world.check();
    std::puts("lost peer: no error");
  } catch (const error& e) {
    int* data = x.get();
    each(q, count, {}, [=](size_t i) { data[i] = 42; }).wait();
    const bool works = x.read()[count - 1] == 42;
    std::printf("%s\nlost peer: an error, the GPU %s\n", e.what(),
                works ? "works" : "does not work");
  }
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace
}  // namespace sucl::order

int main(int argc, char** argv) {
  using namespace sucl;
  using namespace sucl::order;
  ::testing::InitGoogleTest(&argc, argv);
  runtime rt(argc, argv);
  rank_fixture j;
  const auto device = sucl::testing::own_device(rt.rank());
  const sycl::context context(device);
  j.gpu = device.is_gpu();
  j.queue = sycl::queue(context, device);
  j.in_order = sycl::queue(context, device, sycl::property::queue::in_order());
  j.world = rt.world(j.queue);
  j.in_order_world = rt.world(j.in_order);
  j.other = rt.world(j.queue);
#ifdef ACPP_EXT_COARSE_GRAINED_EVENTS
  j.coarse_world =
      rt.world(sycl::queue(context, device,
                           {sycl::property::queue::in_order(),
                            sycl::property::queue::AdaptiveCpp_coarse_grained_events()}));
#endif
  if (argc > 1 && std::string(argv[1]) == "--lost-peer")
    return lost_peer(j, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : n);
  if (argc > 1 && rt.rank() == 0) std::puts(j.world.explain(kind::allreduce, 1 << 20).c_str());
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rt.rank() != 0 && argc < 3) delete listeners.Release(listeners.default_result_printer());
  g_fixture = &j;
  return RUN_ALL_TESTS();
}
