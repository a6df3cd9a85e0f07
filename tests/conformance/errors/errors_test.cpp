// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Wrong arguments are errors at the call, on the rank that passes them, with fact, cause and cure;
// nothing is started, and the communicator goes on.
#include "conformance/errors/errors.hpp"

#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

namespace sucl::testing {
namespace {

TEST_F(errors, of_roots) {
  for (const int root : {-1, size, 1 << 20}) {
    const std::string words = "root " + std::to_string(root);
    refused(errc::invalid_rank, "broadcast", words,
            [&](auto& c) { c.broadcast(x.get(), n, root); });
    refused(errc::invalid_rank, "reduce", words,
            [&](auto& c) { c.reduce(x.get(), y.get(), n, op::sum, root); });
    refused(errc::invalid_rank, "gather", words,
            [&](auto& c) { c.gather(x.get(), y.get(), n, root); });
    refused(errc::invalid_rank, "gather", words, [&](auto& c) { c.gather(x.get(), n, root); });
    refused(errc::invalid_rank, "scatter", words,
            [&](auto& c) { c.scatter(x.get(), y.get(), n, root); });
    refused(errc::invalid_rank, "gatherv", words,
            [&](auto& c) { c.gatherv(x.get(), 2, y.get(), counts, displs, root); });
    refused(errc::invalid_rank, "scatterv", words,
            [&](auto& c) { c.scatterv(x.get(), counts, displs, y.get(), 2, root); });
    sycl::buffer<int, 1> b{sycl::range<1>(8)};
    refused(errc::invalid_rank, "broadcast", words, [&](auto& c) { c.broadcast(b, root); });
  }
}

TEST_F(errors, of_peers_and_tags) {
  for (const int peer : {-2, size}) {
    const std::string words = "peer " + std::to_string(peer);
    refused(errc::invalid_rank, "send", words, [&](auto& c) { c.send(x.get(), n, peer); });
    refused(errc::invalid_rank, "recv", words, [&](auto& c) { c.recv(x.get(), n, peer); });
    refused(errc::invalid_rank, "sendrecv", words,
            [&](auto& c) { c.sendrecv(x.get(), n, peer, y.get(), n, 0); });
    refused(errc::invalid_rank, "sendrecv", words,
            [&](auto& c) { c.sendrecv(x.get(), n, 0, y.get(), n, peer); });
  }
  for (const int tag : {-1, 32767, std::numeric_limits<int>::max()}) {
    const std::string words = "tag " + std::to_string(tag);
    refused(errc::invalid_argument, "send", words, [&](auto& c) { c.send(x.get(), n, 0, tag); });
    refused(errc::invalid_argument, "recv", words, [&](auto& c) { c.recv(x.get(), n, 0, tag); });
  }
}

TEST_F(errors, in_groups) {
  group g(world);
  const auto works = [&] {
    // What was collected is given up: the group can be used again.
    const int next = (world.rank() + 1) % size, last = (world.rank() + size - 1) % size;
    for (const bool blocking : {false, true}) {
      x[0] = world.rank();
      y[0] = -1;
      g.recv(y.get(), 1, last);
      g.send(x.get(), 1, next);
      blocking ? g.run() : g.submit().wait();
      EXPECT_EQ(y[0], last);
    }
  };
  g.recv(y.get(), n, 0);
  g.send(x.get(), n, size);
  refused_once(errc::invalid_rank, "group", "peer " + std::to_string(size), [&] { g.submit(); });
  works();
  g.recv(static_cast<int*>(nullptr), n, 0);
  refused_once(errc::invalid_memory, "group", "null", [&] { g.run(); });
  works();
}

TEST_F(errors, of_counts) {
  const auto huge = std::numeric_limits<std::size_t>::max();
  refused(errc::invalid_count, "allreduce", std::to_string(huge),
          [&](auto& c) { c.allreduce(x.get(), huge, op::sum); });
  refused(errc::invalid_count, "alltoall", std::to_string(huge / 4),
          [&](auto& c) { c.alltoall(x.get(), y.get(), huge / 4); });
  refused(errc::invalid_count, "send", std::to_string(huge),
          [&](auto& c) { c.send(x.get(), huge, 0); });
  auto wrong = counts;
  wrong.back() = huge;
  refused(errc::invalid_count, "reduce_scatter", std::to_string(huge),
          [&](auto& c) { c.reduce_scatter(x.get(), y.get(), wrong, op::sum); });
  refused(errc::invalid_count, "allgatherv", "counts[" + std::to_string(world.rank()) + "] is 2",
          [&](auto& c) { c.allgatherv(x.get(), 1, y.get(), counts, displs); });
}

TEST_F(errors, of_arrays) {
  auto longer = counts;
  longer.push_back(1);
  const std::string words = std::to_string(p + 1) + " entries";
  refused(errc::invalid_count, "reduce_scatter", words,
          [&](auto& c) { c.reduce_scatter(x.get(), y.get(), longer, op::sum); });
  refused(errc::invalid_count, "allgatherv", words,
          [&](auto& c) { c.allgatherv(x.get(), 2, y.get(), counts, longer); });
  refused(errc::invalid_count, "alltoallv", words,
          [&](auto& c) { c.alltoallv(x.get(), longer, displs, y.get(), counts, displs); });
  refused(errc::invalid_count, "gatherv", words,
          [&](auto& c) { c.gatherv(x.get(), 2, y.get(), longer, displs, 0); });
  refused(errc::invalid_count, "scatterv", words,
          [&](auto& c) { c.scatterv(x.get(), counts, longer, y.get(), 2, 0); });
  refused(errc::invalid_argument, "allgatherv", "needs displacements",
          [&](auto& c) { c.allgatherv(x.get(), 2, y.get(), counts, {}); });
  refused(errc::invalid_argument, "alltoallv", "needs send counts",
          [&](auto& c) { c.alltoallv(x.get(), {}, displs, y.get(), counts, displs); });
  if (world.rank() == 0)
    refused(errc::invalid_argument, "gatherv", "needs counts",
            [&](auto& c) { c.gatherv(x.get(), 2, y.get(), {}, displs, 0); });
}

TEST_F(errors, of_ops_and_types) {
  shared<float> f{n, q};
  shared<std::complex<float>> z{n, q};
  shared<loc<int>> l{n, q};
  shared<std::byte> b{n, q};
  const auto check = [&](auto* data, op o, const std::string& words) {
    refused(errc::invalid_type, "allreduce", words, [&](auto& c) { c.allreduce(data, n, o); });
    refused(errc::invalid_type, "reduce", words, [&](auto& c) { c.reduce(data, n, o, 0); });
    refused(errc::invalid_type, "scan", words, [&](auto& c) { c.scan(data, n, o); });
  };
  check(f.get(), op::bit_and, "op bit_and is not defined for elements of type fp32");
  check(f.get(), op::logical_or, "op logical_or is not defined for elements of type fp32");
  check(x.get(), op::minloc, "op minloc is not defined for elements of type int32");
  check(z.get(), op::max, "op max is not defined for elements of type complex_fp32");
  check(l.get(), op::sum, "op sum is not defined for elements of type int32_loc");
  check(b.get(), op::sum, "op sum is not defined for elements of type bytes");
  check(x.get(), op::none, "op none is not defined");
  check(x.get(), static_cast<op>(99), "is not defined");
  refused(errc::invalid_type, "scan", "op avg is not defined for scan",
          [&](auto& c) { c.scan(x.get(), n, op::avg); });
  refused(errc::invalid_type, "exscan", "op avg is not defined for exscan",
          [&](auto& c) { c.exscan(f.get(), n, op::avg); });
}

TEST_F(errors, of_overlapping_memory) {
  const std::string words = "overlap";
  refused(errc::invalid_memory, "allreduce", words,
          [&](auto& c) { c.allreduce(x.get(), x.get() + n - 1, n, op::sum); });
  refused(errc::invalid_memory, "alltoall", words,
          [&](auto& c) { c.alltoall(x.get(), x.get() + 1, n); });
  refused(errc::invalid_memory, "sendrecv", words,
          [&](auto& c) { c.sendrecv(x.get(), n, 0, x.get() + 4, n, 0); });
  sycl::buffer<int, 1> b{sycl::range<1>(16)};
  refused(errc::invalid_memory, "allreduce", words,
          [&](auto& c) { c.allreduce(block<int, 1>(b, 0, 8), block<int, 1>(b, 7, 8), op::sum); });
  sycl::buffer<int, 2> b2{sycl::range<2>(8, 8)};
  refused(errc::invalid_memory, "allreduce", words, [&](auto& c) {
    c.allreduce(block<int, 2>(b2, {0, 0}, {4, 4}), block<int, 2>(b2, {3, 3}, {4, 4}), op::sum);
  });
}

// What each rank received would depend on which block came last.
TEST_F(errors, of_blocks_that_overlap_where_they_are_received) {
  const auto p = static_cast<std::size_t>(world.size());
  if (p < 2) return;
  const std::string words = "overlap where they are received";
  sucl::counts counts(p, 4), apart(p), displs(p);
  for (std::size_t r = 0; r < p; ++r) apart[r] = displs[r] = 4 * (p - 1 - r);
  displs[0] = displs[1] + 3;
  refused(errc::invalid_memory, "allgatherv", words,
          [&](auto& c) { c.allgatherv(x.get(), 4, y.get(), counts, displs); });
  refused(errc::invalid_memory, "alltoallv", words,
          [&](auto& c) { c.alltoallv(x.get(), counts, apart, y.get(), counts, displs); });
  refused(errc::invalid_memory, "alltoallv", words,
          [&](auto& c) { c.alltoallv(y.get(), counts, displs); });
  if (world.rank() == 0)
    refused(errc::invalid_memory, "gatherv", words,
            [&](auto& c) { c.gatherv(x.get(), 4, y.get(), counts, displs, 0); });
  // What is sent may overlap, blocks may come in any order, and empty ones lie anywhere.
  EXPECT_NO_THROW(world.blocking().alltoallv(x.get(), counts, displs, y.get(), counts, apart));
  counts[0] = 0;
  const std::size_t own = counts[static_cast<std::size_t>(world.rank())];
  EXPECT_NO_THROW(world.blocking().allgatherv(x.get(), own, y.get(), counts, displs));
}

TEST_F(errors, of_groups_whose_memory_overlaps) {
  const auto refused_group = [&](const std::string& words, auto&& collect) {
    refused_once(errc::invalid_memory, "group", words, [&] {
      group g(world);
      collect(g);
      g.run();
    });
    refused_once(errc::invalid_memory, "group", words, [&] {
      group g(world);
      collect(g);
      g.submit();
    });
  };
  const std::string received = "received into overlaps", mixed = "send and receive overlaps";
  const int self = world.rank();
  refused_group(received, [&](group& g) {
    g.recv(x.get(), n, self);
    g.recv(x.get() + n - 1, n, self);
  });
  refused_group(mixed, [&](group& g) {
    g.send(x.get(), 4, self);
    g.recv(x.get() + 3, 4, self);
  });
  refused_group(mixed, [&](group& g) {
    g.sendrecv(x.get(), 4, self, y.get(), 4, self);
    g.sendrecv(y.get() + 3, 4, self, x.get() + 8, 4, self);
  });
  sycl::buffer<int, 1> b{sycl::range<1>(16)};
  refused_group(received, [&](group& g) {
    g.recv(block<int, 1>(b, 0, 8), self);
    g.recv(block<int, 1>(b, 7, 8), self);
  });
  // Columns beside each other, and what is only sent.
  sycl::buffer<int, 2> b2{sycl::range<2>(8, 8)};
  refused_group(mixed, [&](group& g) {
    g.send(block<int, 2>(b2, {0, 0}, {8, 4}), self);
    g.recv(block<int, 2>(b2, {0, 3}, {8, 4}), self);
  });
  EXPECT_NO_THROW({
    group g(world);
    g.send(block<int, 2>(b2, {0, 0}, {8, 4}), self);
    g.recv(block<int, 2>(b2, {0, 4}, {8, 4}), self);
    g.send(x.get(), 4, self, 1);
    g.send(x.get() + 2, 4, self, 2);
    g.recv(y.get(), 4, self, 1);
    g.recv(y.get() + 4, 4, self, 2);
    g.run();
  });
}

#ifndef SYCL_IMPLEMENTATION_ACPP  // which has no sub-buffers
TEST_F(errors, of_overlapping_sub_buffers) {
  sycl::buffer<int, 1> b{sycl::range<1>(96)};
  sycl::buffer<int, 1> one(b, 0, 64), two(b, 32, 64);
  for (int i = 0; i < 2; ++i) {
    refused_once(errc::invalid_memory, "allreduce", "overlap",
                 [&] { world.blocking().allreduce(one, two, op::sum); });
    // Where they lie is known when the operation may start.
    refused_once(errc::invalid_memory, "allreduce", "overlap", [&] {
      world.allreduce(one, two, op::sum);
      world.wait();
    });
  }
}
#endif

TEST_F(errors, of_null_memory) {
  int* null = nullptr;
  refused(errc::invalid_memory, "allreduce", "null",
          [&](auto& c) { c.allreduce(null, n, op::sum); });
  refused(errc::invalid_memory, "allreduce", "send memory",
          [&](auto& c) { c.allreduce(null, y.get(), n, op::sum); });
  refused(errc::invalid_memory, "allgather", "receive memory",
          [&](auto& c) { c.allgather(x.get(), null, n); });
  refused(errc::invalid_memory, "send", "null", [&](auto& c) { c.send(null, n, 0); });
  refused(errc::invalid_memory, "recv", "null", [&](auto& c) { c.recv(null, n, 0); });
  // Where nothing is read or written, there may be nothing.
  EXPECT_NO_THROW(world.blocking().allreduce(null, 0, op::sum));
  EXPECT_NO_THROW(world.blocking().gather(null, null, 0, 0));
}

TEST_F(errors, of_blocks) {
  sycl::buffer<int, 1> b{sycl::range<1>(100)};
  sycl::buffer<int, 2> b2{sycl::range<2>(10, 10)};
  const std::string words = "outside a buffer";
  const auto most = std::numeric_limits<std::size_t>::max();
  refused(errc::invalid_count, "broadcast", words,
          [&](auto& c) { c.broadcast(b, sycl::id<1>(90), sycl::range<1>(11), 0); });
  refused(errc::invalid_count, "broadcast", words,
          [&](auto& c) { c.broadcast(b, sycl::id<1>(101), sycl::range<1>(0), 0); });
  refused(errc::invalid_count, "broadcast", words,
          [&](auto& c) { c.broadcast(b, sycl::id<1>(most), sycl::range<1>(1), 0); });
  refused(errc::invalid_count, "allreduce", words,
          [&](auto& c) { c.allreduce(block<int, 2>(b2, {0, 5}, {2, 6}), op::sum); });
  refused(errc::invalid_count, "send", words,
          [&](auto& c) { c.send(block<int, 2>(b2, {10, 0}, {1, 1}), 0); });
}

TEST_F(errors, of_buffers_too_small) {
  sycl::buffer<int, 1> small{sycl::range<1>(10)}, large{sycl::range<1>(11)};
  refused(errc::invalid_count, "allreduce", "receive memory",
          [&](auto& c) { c.allreduce(large, small, op::sum); });
  if (size > 1) {
    refused(errc::invalid_count, "allgather", "needs " + std::to_string(10 * p),
            [&](auto& c) { c.allgather(small, large); });
    sycl::buffer<int, 1> odd{sycl::range<1>(10 * p + 1)};
    refused(errc::invalid_count, "allgather", "cannot be divided",
            [&](auto& c) { c.allgather(odd); });
    refused(errc::invalid_count, "alltoall", "cannot be divided",
            [&](auto& c) { c.alltoall(odd, small); });
  }
}

TEST_F(errors, of_memory_of_another_context) {
  int checked = 0;
  const auto check = [&](communicator comm, const sycl::queue& other) {
#ifdef SYCL_IMPLEMENTATION_ACPP
    if (other.get_device().is_cpu()) return;  // it does not tell of which kind memory is there
#endif
    // Other memory of a GPU is no error on the host there, which reads it.
    int* const foreign = sycl::malloc_device<int>(n, other);
    const auto words = other.get_device().get_platform().get_info<sycl::info::platform::name>();
    const auto refused_by = [&](const std::string& operation, auto&& call) {
      auto blocking = comm.blocking();
      refused_once(errc::invalid_memory, operation, words, [&] { call(comm); });
      refused_once(errc::invalid_memory, operation, words, [&] { call(blocking); });
    };
    refused_by("allreduce", [&](auto& c) { c.allreduce(foreign, n, op::sum); });
    refused_by("send", [&](auto& c) { c.send(foreign, n, 0); });
    sycl::free(foreign, other);
    ++checked;
  };
#ifndef SYCL_IMPLEMENTATION_ACPP
  // The device is the same; its default context is not the communicator's.
  sycl::queue own{sycl::context(q.get_device()), q.get_device()};
  check(fixture().world_with(own), q);
#endif
  for (const auto& platform : sycl::platform::get_platforms())
    if (platform != q.get_device().get_platform() && !platform.get_devices().empty())
      check(world, sycl::queue{platform.get_devices()[0]});
  if (checked == 0) GTEST_SKIP() << "there is no memory of which the implementation tells";
}

TEST_F(errors, of_empty_communicators) {
  const auto check = [&](communicator& none) {
    EXPECT_FALSE(none);
    group g(none);
    g.send(x.get(), 1, 0);
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { (void)none.rank(); }, [&] { (void)none.size(); }, [&] { (void)none.members(); },
             [&] { (void)none.queue(); }, [&] { (void)none.blocking(); },
             [&] { (void)none.split(0); }, [&] { none.wait(); }, [&] { none.barrier(); },
             [&] { none.allreduce(x.get(), n, op::sum); }, [&] { g.submit(); }, [&] { g.run(); }})
      EXPECT_NE(expect_error(errc::shut_down, call).find("empty"), std::string::npos);
  };
  communicator nothing;
  check(nothing);
  auto left_out = world.split(-1);
  check(left_out);
}

// A message that is shorter or longer than its receive: an error where it is received, now or
// later.
TEST_F(errors, of_messages_of_another_length) {
  if (size < 2) GTEST_SKIP() << "needs two ranks";
  for (const std::size_t sent : {n - 1, n + 1}) {
    auto pair = world.dup();
    if (pair.rank() == 0) {
      pair.blocking().send(x.get(), sent, 1);
      pair.send(x.get(), sent, 1).wait();
    } else if (pair.rank() == 1) {
      const auto text =
          expect_error(errc::invalid_count, [&] { pair.blocking().recv(y.get(), n, 0); });
      EXPECT_NE(text.find(std::to_string(n)), std::string::npos) << text;
      expect_error(errc::invalid_count, [&] {
        pair.recv(y.get(), n, 0).wait();
        pair.check();
      });
    }
    pair.blocking().barrier();
  }
}

// Of as many bytes, and of other types: not where MPI executes them. In shared memory the sender of
// a long message has the same error.
TEST_F(errors, of_messages_of_another_type) {
  if (size < 2) GTEST_SKIP() << "needs two ranks";
  const auto executed = world.explain(kind::send, 4);
  if (executed.find("executed by mpi") != std::string::npos)
    GTEST_SKIP() << "MPI executes messages";
  std::vector<float> f(40000, 1.0F);
  std::vector<int> i(40000, -1);
  std::vector<double> d(20000, -1.0);
  struct opaque {
    float value;
  };
  std::vector<opaque> o(40000);
  const auto check = [](const char* words, const std::function<void()>& call) {
    const auto text = expect_error(errc::mismatch, call);
    for (const char* part : {"from rank 0", "fp32", words})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  for (const std::size_t k : {std::size_t{10}, f.size()}) {
    auto pair = world.dup();
    if (pair.rank() == 0) {
      const bool told = k == f.size() && executed.find("executed by fabric") == std::string::npos;
      const auto send = [&](const char* received, const std::function<void()>& call) {
        told ? check(received, call) : call();
      };
      int tag = 0;
      for (const char* received : {"int32", "fp64", "int32"})
        send(received, [&] { pair.blocking().send(f.data(), k, 1, tag++); });
      send("int32", [&] {
        pair.send(f.data(), k, 1, 3).wait();
        pair.check();
      });
      pair.blocking().send(f.data(), k, 1, 4);
    } else if (pair.rank() == 1) {
      auto made = pair.persistent().recv(i.data(), k, 0, 2);
      check("int32", [&] { pair.blocking().recv(i.data(), k, 0, 0); });
      check("fp64", [&] { pair.blocking().recv(d.data(), k / 2, 0, 1); });
      check("int32", [&] { made.run(); });
      check("int32", [&] {
        pair.recv(i.data(), k, 0, 3).wait();
        pair.check();
      });
      // What SuCL does not know is of any type.
      pair.blocking().recv(o.data(), k, 0, 4);
      EXPECT_EQ(o[k - 1].value, 1.0F);
    }
    pair.blocking().barrier();
  }
}

TEST_F(errors, of_messages_of_another_type_to_oneself) {
  if (size > 1) GTEST_SKIP() << "is for one rank";
  std::vector<float> f(10);
  std::vector<int> i(10);
  group g(world);
  g.recv(i.data(), i.size(), 0);
  g.send(f.data(), f.size(), 0);
  const auto text = expect_error(errc::mismatch, [&] { g.run(); });
  for (const char* part : {"10 fp32", "10 int32"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace

// Calls on communicators that outlive their runtime; `rt` has ended.
int after_the_end(communicator world, blocking_communicator blocking, communicator aside,
                  persistent made, executable recorded, compiled_plan plan, neighborhood around) {
  std::vector<int> v(4), w(4);
  int failures = 0;
  group g(aside);
  g.send(v.data(), 1, 0);
  const user_op<int> add([](int a, int b) { return a + b; });
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { world.barrier(); },
           [&] { blocking.barrier(); },
           [&] { world.allreduce(v.data(), 4, op::sum); },
           [&] { blocking.allreduce(v.data(), 4, op::sum); },
           [&] { aside.broadcast(v.data(), 4, 0); },
           [&] { (void)world.split(0); },
           [&] { (void)aside.dup(); },
           [&] { world.wait(); },
           [&] { g.run(); },
           [&] { (void)world.explain(kind::allreduce, 8); },
           [&] { (void)world.selected_backend(kind::allreduce, 8); },
           [&] { (void)world.allocate<int>(4); },
           [&] { world.deallocate(v.data()); },
           [&] { (void)world.register_memory(v.data(), 4); },
           [&] { world.deregister_memory(v.data()); },
           [&] { world.use_tuning(""); },
           [&] { (void)world.compile<int>(composition(world.size())); },
           [&] { world.check(); },
           [&] { (void)world.record(world.queue(), [] {}); },
           [&] { made.run(); },
           [&] { (void)made.start(); },
           [&] { (void)recorded.replay(); },
           [&] { plan.run(v.data(), w.data()); },
           [&] { (void)plan.start(v.data(), w.data()); },
           [&] { around.allgather(v.data(), w.data(), 1); },
           [&] { (void)world.persistent().allreduce(v.data(), 4, op::sum); },
           [&] { add.allreduce(world, v.data(), w.data(), 4); }}) {
    try {
      call();
      std::fprintf(stderr, "no error after the end\n");
      ++failures;
    } catch (const error& e) {
      if (e.code() == errc::shut_down && !e.hint().empty()) continue;
      std::fprintf(stderr, "another error after the end: %s\n", e.what());
      ++failures;
    }
  }
  return failures;
}

}  // namespace sucl::testing

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    sucl::testing::rank_fixture j;
    // Errors are expected, and calls have thrown them all by the end.
    j.queue = sycl::queue(sycl::cpu_selector_v, [](const sycl::exception_list&) {});
    j.world = rt.world(j.queue);
    j.aside = rt.world();
    j.world_with = [&](const sycl::queue& q) { return rt.world(q); };
    const int result = sucl::testing::run_tests(argc, argv, rt, j);
    auto blocking = j.world.blocking();
    std::vector<int> v(4);
    auto made = j.world.persistent().allreduce(v.data(), 4, sucl::op::sum);
    auto recorded =
        j.world.record(j.queue, [&] { (void)j.world.allreduce(v.data(), 4, sucl::op::sum); });
    sucl::composition c(j.world.size());
    c.multicast(c.send(0, 4), c.recv(0, 4), 0, sucl::all);
    auto plan = j.world.compile<int>(c);
    sucl::neighborhood around(j.world, {j.world.rank()}, {j.world.rank()});
    rt.shut_down();
    return result +
           sucl::testing::after_the_end(j.world, blocking, j.aside, made, recorded, plan, around);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
