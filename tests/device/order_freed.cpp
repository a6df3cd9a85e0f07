// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Memory of allocate() that is freed: not before what uses it is done, and persistent operations on
// it are errors afterwards.
#include "order.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace sucl::order {
namespace {

struct freed : device {
  communicator& on(const sycl::queue& q) { return &q == &j.queue ? j.world : j.in_order_world; }
};

/// Ends a kernel after a while, and notes that before.
class ender {
 public:
  explicit ender(long_kernel& k)
      : m_thread([this, &k] {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          m_ended = true;
          k.end();
        }) {}
  ~ender() { m_thread.join(); }
  ender(const ender&) = delete;
  ender& operator=(const ender&) = delete;
  bool has_ended() const { return m_ended; }

 private:
  std::atomic<bool> m_ended{false};
  std::thread m_thread;
};

// On this rank `rank + 1` and more; by the host where that is what the memory is.
int* allocate_filled(communicator& comm) {
  int* const memory = comm.allocate<int>(n);
  const int first = comm.rank() + 1;
  const auto fill = [=](size_t i) { memory[i] = first + static_cast<int>(i); };
  auto q = comm.queue();
  if (sycl::get_pointer_type(memory, q.get_context()) == sycl::usm::alloc::device)
    each(q, n, {}, fill).wait();
  else
    for (size_t i = 0; i < n; ++i) fill(i);
  return memory;
}

void expect_sum(const device& t, numbers& of, const sycl::event& done) {
  const auto got = of.read({done});
  for (size_t i = 0; i < n; ++i)
    ASSERT_EQ(got[i], t.sum() + t.size * static_cast<int>(i)) << "element " << i;
}

TEST_F(freed, memory_waits_for_what_is_in_flight) {
  for (auto* q : {&j.queue, &j.in_order}) {
    auto& comm = on(*q);
    numbers to(*q);
    int* const memory = allocate_filled(comm);
    comm.allreduce(memory, to.get(), n, op::max).wait();
    long_kernel k(*q);
    const ender end(k);
    const auto done = comm.allreduce(memory, to.get(), n, op::sum, {k.event()});
    comm.deallocate(memory);
    EXPECT_TRUE(end.has_ended());
    expect_sum(*this, to, done);
    EXPECT_FALSE(k.gave_up());
  }
}

TEST_F(freed, memory_lasts_until_the_operations_of_its_communicator_are_done) {
  for (auto* q : {&j.queue, &j.in_order}) {
    numbers to(*q);
    sycl::event done;
    auto made = on(*q).dup();
    int* const memory = allocate_filled(made);
    made.allreduce(memory, to.get(), n, op::max).wait();
    long_kernel k(*q);
    const ender end(k);
    done = made.allreduce(memory, to.get(), n, op::sum, {k.event()});
    made = {};
    expect_sum(*this, to, done);
    EXPECT_FALSE(k.gave_up());
  }
}

TEST_F(freed, memory_is_an_error_of_persistent_operations) {
  auto comm = j.in_order_world.dup();
  int* const memory = allocate_filled(comm);
  auto kept = comm.persistent().allreduce(memory, n, op::max);
  kept.start().wait();
  kept.start();
  comm.deallocate(memory);
  EXPECT_THROW(kept.run(), error);
  EXPECT_THROW(kept.start().wait(), error);
  comm.check();
}

TEST_F(freed, memory_waits_for_replays) {
  auto comm = j.in_order_world.dup();
  numbers to(j.in_order);
  int* const memory = allocate_filled(comm);
  auto recorded = comm.record(j.in_order, [&] { comm.allreduce(memory, to.get(), n, op::sum); });
  recorded.replay().wait();
  long_kernel k(j.in_order);
  const ender end(k);
  const auto done = recorded.replay();
  comm.deallocate(memory);
  EXPECT_TRUE(end.has_ended());
  expect_sum(*this, to, done);
  EXPECT_FALSE(k.gave_up());
}

}  // namespace
}  // namespace sucl::order
