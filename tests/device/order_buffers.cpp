// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Buffers that operations, kernels and the host use in turns.
#include "order.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace sucl::order {
namespace {

// Buffers that operations, kernels of two queues and the host use in turns, and what all ranks must
// have in them.
class shared_buffers {
 public:
  static constexpr int count = 3;
  shared_buffers(device& d, sycl::queue q, communicator comm)
      : m_device(d), m_queue(std::move(q)), m_comm(std::move(comm)) {
    for (int b = 0; b < count; ++b) m_each.emplace_back(sycl::range<1>(n));
    m_wanted.assign(static_cast<size_t>(d.size), model(count, std::vector<unsigned>(n)));
    for (auto& b : m_each) {
      sycl::host_accessor zeros(b, sycl::write_only, sycl::no_init);
      for (size_t i = 0; i < n; ++i) zeros[i] = 0;
    }
    for (int b = 0; b < count; ++b) calculate(m_queue, b, b, 0);
  }

  void step(unsigned random, unsigned number) {
    const int a = static_cast<int>(random / 16 % count), b = (a + 1) % count;
    const int root = static_cast<int>(random / 64) % m_device.size;
    switch (random % 9) {
      case 0: return calculate(m_queue, a, a, number);
      case 1: return calculate(m_device.j.queue, a, b, number);
      case 2: return calculate(m_queue, a, b, number);
      case 3: return write(a, number);
      case 4: m_comm.allreduce(m_each[at(a)], m_each[at(b)], op::sum); return total(a, b);
      case 5: m_comm.allreduce(m_each[at(a)], op::sum); return total(a, a);
      case 6:
        m_comm.broadcast(m_each[at(a)], root);
        for (auto& m : m_wanted) m[at(a)] = m_wanted[static_cast<size_t>(root)][at(a)];
        return;
      case 7:
        m_comm.reduce(m_each[at(a)], m_each[at(b)], op::max, root);
        return largest(a, b, root);
      default: return check(a, number);
    }
  }

  void check(int a, unsigned number) {
    sycl::host_accessor got(m_each[at(a)], sycl::read_only);
    const auto& wanted = m_wanted[static_cast<size_t>(m_device.rank)][at(a)];
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i], wanted[i]) << "step " << number << ", buffer " << a << ", element " << i;
  }

 private:
  using model = std::vector<std::vector<unsigned>>;
  static size_t at(int b) { return static_cast<size_t>(b); }
  static unsigned value(unsigned old, unsigned rank, unsigned number, unsigned i) {
    return old * 5 + 3 * i + 1000 * rank + number;
  }

  // A kernel that reads one buffer and writes another or the same.
  void calculate(sycl::queue& q, int from, int to, unsigned number) {
    const auto rank = static_cast<unsigned>(m_device.rank);
    q.submit([&](sycl::handler& h) {
      if (from == to) {
        sycl::accessor x(m_each[at(from)], h, sycl::read_write);
        h.parallel_for(sycl::range<1>(n), [=](sycl::id<1> i) {
          x[i] = value(x[i], rank, number, static_cast<unsigned>(i[0]));
        });
      } else {
        sycl::accessor x(m_each[at(from)], h, sycl::read_only);
        sycl::accessor y(m_each[at(to)], h, sycl::write_only, sycl::no_init);
        h.parallel_for(sycl::range<1>(n), [=](sycl::id<1> i) {
          y[i] = value(x[i], rank, number, static_cast<unsigned>(i[0]));
        });
      }
    });
    for (unsigned r = 0; r < m_wanted.size(); ++r)
      for (unsigned i = 0; i < n; ++i)
        m_wanted[r][at(to)][i] = value(m_wanted[r][at(from)][i], r, number, i);
  }

  void write(int b, unsigned number) {
    sycl::host_accessor x(m_each[at(b)], sycl::read_write);
    for (size_t i = number % 7; i < n; i += 7) {
      x[i] += number;
      for (auto& m : m_wanted) m[at(b)][i] += number;
    }
  }

  void total(int from, int to) {
    std::vector<unsigned> sum(n);
    for (const auto& m : m_wanted)
      for (size_t i = 0; i < n; ++i) sum[i] += m[at(from)][i];
    for (auto& m : m_wanted) m[at(to)] = sum;
  }

  void largest(int from, int to, int root) {
    std::vector<unsigned> most(n);
    for (const auto& m : m_wanted)
      for (size_t i = 0; i < n; ++i) most[i] = std::max(most[i], m[at(from)][i]);
    m_wanted[static_cast<size_t>(root)][at(to)] = most;
  }

  device& m_device;
  sycl::queue m_queue;
  communicator m_comm;
  std::vector<sycl::buffer<unsigned, 1>> m_each;
  std::vector<model> m_wanted;  // of each rank
};

TEST_F(device, buffers_are_used_in_turns) {
  std::vector<std::pair<sycl::queue, communicator>> all{{j.queue, j.world},
                                                        {j.in_order, j.in_order_world}};
#ifdef ACPP_EXT_COARSE_GRAINED_EVENTS
  all.emplace_back(j.coarse_world.queue(), j.coarse_world);
#endif
  std::mt19937 random(11);  // the same on every rank
  for (auto& [q, comm] : all)
    for (int round = 0; round < 3; ++round) {
      shared_buffers buffers(*this, q, comm);
      for (unsigned number = 1; number <= 300 && !HasFatalFailure(); ++number)
        buffers.step(static_cast<unsigned>(random()), number);
      for (int b = 0; b < shared_buffers::count; ++b) buffers.check(b, 0);
    }
}

}  // namespace
}  // namespace sucl::order
