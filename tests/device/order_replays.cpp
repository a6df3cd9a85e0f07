// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Recorded steps of kernels and operations on an in-order queue, replayed among other calls. Where
// the program submits instantly the device's driver replays them as graphs.
#include "order.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sucl::order {
namespace {

#if defined(SYCL_IMPLEMENTATION_ACPP) && ACPP_ALLOW_INSTANT_SUBMISSION
constexpr bool has_native_graphs = true;
#else
constexpr bool has_native_graphs = false;
#endif

/// What every rank has in its memory, worked out on the host.
using model = std::vector<std::vector<unsigned>>;

/// A step of a program: kernels and operations on two arrays.
class step_on {
 public:
  step_on(device& d, communicator comm, size_t count)
      : m_ranks(d.size),
        m_rank(d.rank),
        m_count(count),
        m_comm(std::move(comm)),
        m_queue(m_comm.queue()) {
    for (auto& x : m_data) {
      x = sycl::malloc_device<unsigned>(count * ranks(), m_queue);
      m_queue.memset(x, 0, count * ranks() * sizeof(unsigned)).wait();
    }
    for (auto& m : m_wanted) m.assign(ranks(), std::vector<unsigned>(count * ranks()));
  }
  ~step_on() {
    m_queue.wait();
    for (auto* x : m_data) sycl::free(x, m_queue);
  }
  step_on(const step_on&) = delete;
  step_on& operator=(const step_on&) = delete;

  communicator& comm() { return m_comm; }
  unsigned* x() const { return m_data[0]; }
  size_t count() const { return m_count; }

  void submit() {
    unsigned *x = m_data[0], *y = m_data[1];
    const auto mine = static_cast<unsigned>(m_rank);
    const size_t all = m_count * ranks();
    m_queue.parallel_for(sycl::range<1>(all), [=](sycl::id<1> i) {
      x[i] = next(x[i], mine, static_cast<unsigned>(i[0]));
    });
    auto summed = m_comm.allreduce(x, y, m_count, op::sum);
    m_comm.broadcast(x, m_count, m_ranks - 1, {summed});
    m_comm.reduce_scatter_block(x, y, m_count, op::sum);
    m_queue.parallel_for(sycl::range<1>(m_count), [=](sycl::id<1> i) { y[i] += x[i]; });
    m_comm.allgather(y, x, m_count);
    m_comm.reduce(y, m_count, op::max, 0);
  }

  // The same on the host.
  void expect() {
    model &x = m_wanted[0], &y = m_wanted[1];
    for (size_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < x[r].size(); ++i)
        x[r][i] = next(x[r][i], static_cast<unsigned>(r), static_cast<unsigned>(i));
    for (size_t r = 0; r + 1 < ranks(); ++r)
      std::copy_n(x[ranks() - 1].begin(), m_count, x[r].begin());
    for (size_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < m_count; ++i) {
        y[r][i] = x[r][i];
        for (size_t other = 0; other < ranks(); ++other) y[r][i] += x[other][r * m_count + i];
      }
    for (auto& to : x)
      for (size_t r = 0; r < ranks(); ++r)
        std::copy_n(y[r].begin(), m_count, to.begin() + static_cast<std::ptrdiff_t>(r * m_count));
    for (size_t i = 0; i < m_count; ++i)
      for (size_t r = 1; r < ranks(); ++r) y[0][i] = std::max(y[0][i], y[r][i]);
  }

  void check(int number) {
    for (size_t a = 0; a < m_data.size(); ++a) {
      const size_t used = a == 0 ? m_count * ranks() : m_count;
      std::vector<unsigned> got(used);
      m_queue.memcpy(got.data(), m_data[a], used * sizeof(unsigned)).wait();
      const auto& wanted = m_wanted[a][static_cast<size_t>(m_rank)];
      for (size_t i = 0; i < used; ++i)
        ASSERT_EQ(got[i], wanted[i]) << "step " << number << ", array " << a << ", element " << i;
    }
  }

 private:
  size_t ranks() const { return static_cast<size_t>(m_ranks); }
  static unsigned next(unsigned old, unsigned rank, unsigned i) {
    return old * 5 + 3 * i + 1000 * rank + 1;
  }

  int m_ranks, m_rank;
  size_t m_count;
  communicator m_comm;
  sycl::queue m_queue;
  std::vector<unsigned*> m_data{2};
  std::vector<model> m_wanted{2};
};

// What the host executes is in no graph.
bool are_replayed_as_graphs(const communicator& comm) {
  return has_native_graphs && are_on_stream(comm, kind::allreduce, 4);
}

struct replays : device {
  // One of each protocol, aligned and not.
  const std::vector<size_t> counts{1, 33, 5000, 300001, 5000000};

  void run(communicator comm, size_t count, int times) {
    step_on s(*this, comm, count);
    int calls = 0;
    auto step = comm.record(comm.queue(), [&] {
      ++calls;
      s.submit();
    });
    for (int i = 0; i < times; ++i) {
      step.replay();
      s.expect();
      if (i % 5 == 4) {  // a call like any other
        s.submit();
        s.expect();
      }
      if (i % 4 == 3) s.check(i);
      if (HasFatalFailure()) return;
    }
    s.check(times);
    EXPECT_EQ(step.is_graph(), are_replayed_as_graphs(comm));
    EXPECT_TRUE(!step.is_graph() || calls == 2) << calls;
  }
};

TEST_F(replays, of_kernels_and_operations) {
  for (const size_t count : counts) run(j.in_order_world, count, count > 1000000 ? 6 : 50);
}

TEST_F(replays, on_a_queue_with_coarse_events) {
#ifdef ACPP_EXT_COARSE_GRAINED_EVENTS
  for (const size_t count : counts) run(j.coarse_world, count, count > 1000000 ? 6 : 50);
#endif
}

TEST_F(replays, of_two_sequences_in_turns_and_updated) {
  step_on a(*this, j.in_order_world, 100), b(*this, j.in_order_world, 7000);
  auto one = j.in_order_world.record(j.in_order, [&] { a.submit(); });
  auto two = j.in_order_world.record(j.in_order, [&] { b.submit(); });
  for (int i = 0; i < 20; ++i) {
    one.replay();
    a.expect();
    two.replay();
    b.expect();
  }
  a.check(20);
  b.check(20);
  one.update([&] {
    b.submit();
    a.submit();
  });
  for (int i = 0; i < 5; ++i) {
    one.replay();
    a.expect();
    b.expect();
  }
  a.check(25);
  b.check(25);
  EXPECT_EQ(one.is_graph(), are_replayed_as_graphs(j.in_order_world));
}

TEST_F(replays, of_two_communicators) {
  auto other = j.in_order_world.dup();
  step_on a(*this, j.in_order_world, 100), b(*this, other, 5000);
  auto both = other.record(j.in_order, [&] {
    a.submit();
    b.submit();
  });
  for (int i = 0; i < 20; ++i) {
    both.replay();
    a.expect();
    b.expect();
    if (i % 3 != 0) continue;
    b.submit();
    b.expect();
  }
  a.check(20);
  b.check(20);
  EXPECT_EQ(both.is_graph(), are_replayed_as_graphs(j.in_order_world));
}

// Memory that all ranks map changes what kernels do with the same operation.
TEST_F(replays, after_memory_was_allocated) {
  auto comm = j.in_order_world.dup();
  step_on s(*this, comm, 5000000);
  auto step = comm.record(j.in_order, [&] { s.submit(); });
  unsigned* mapped = nullptr;
  for (int i = 0; i < 12; ++i) {
    step.replay();
    s.expect();
    if (i == 4) mapped = comm.allocate<unsigned>(1 << 20);
    if (i == 8) comm.deallocate(mapped);
  }
  s.check(12);
  EXPECT_EQ(step.is_graph(), are_replayed_as_graphs(j.in_order_world));
}

// What cannot be in a graph is called at every replay.
TEST_F(replays, of_what_is_no_graph) {
  step_on s(*this, j.in_order_world, 1000);
  sycl::buffer<unsigned, 1> sums{sycl::range<1>(8)};
  std::vector<unsigned> ones(8, 1);
  const std::vector<std::function<void()>> others = {
      [&] { j.in_order_world.blocking().allreduce(ones.data(), ones.size(), op::max); },
      [&] { j.in_order.wait(); },
      [&] {
        j.in_order.submit([&](sycl::handler& h) {
          sycl::accessor to(sums, h, sycl::write_only, sycl::no_init);
          h.parallel_for(sycl::range<1>(8), [=](sycl::id<1> i) { to[i] = 1; });
        });
      },
      [&] { j.in_order_world.allreduce(sums, op::sum); }};
  for (const auto& other : others) {
    auto step = j.in_order_world.record(j.in_order, [&] {
      s.submit();
      other();
    });
    for (int i = 0; i < 5; ++i) {
      step.replay();
      s.expect();
    }
    s.check(5);
    EXPECT_FALSE(step.is_graph());
  }
}

}  // namespace
}  // namespace sucl::order
