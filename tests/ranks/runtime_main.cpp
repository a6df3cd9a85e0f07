// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators and their ends. The runtime belongs to main: the last steps end it.
#include "fixture.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace sucl::testing {
namespace {

// The launcher's, of a job without MPI.
bool has_id() { return std::getenv("SUCL_TCP_ID") != nullptr; }

struct runtime_test : ::testing::Test {
  rank_fixture& j = fixture();
  communicator& world = j.world;
  const int rank = world.rank();
  const int size = world.size();

  void expect_works(communicator& comm) {
    int x = comm.rank() + 1;
    comm.blocking().allreduce(&x, 1, op::sum);
    EXPECT_EQ(x, sum_to(comm.size()));
    comm.allreduce(&x, 1, op::max).wait();
    EXPECT_EQ(x, sum_to(comm.size()));
  }
};

TEST_F(runtime_test, one_at_a_time) {
  const auto text = expect_error(errc::invalid_argument, [] { runtime another; });
  EXPECT_NE(text.find("running in this process already"), std::string::npos) << text;
  expect_works(world);
}

TEST_F(runtime_test, members_describe_every_rank) {
  ASSERT_EQ(static_cast<int>(world.members().size()), size);
  std::vector<std::int64_t> processes;
  for (int r = 0; r < size; ++r) {
    const member& m = world.members()[static_cast<std::size_t>(r)];
    EXPECT_EQ(m.rank, r);
    EXPECT_EQ(m.platform, cpu_platform);
    EXPECT_EQ(m.implementation, implementation_name);
    EXPECT_FALSE(m.device.empty());
    EXPECT_FALSE(m.host.empty());
    EXPECT_EQ(m.native_memory.find("mpi:") == std::string::npos, has_id()) << m.native_memory;
    processes.push_back(m.process);
  }
  std::sort(processes.begin(), processes.end());
  EXPECT_EQ(std::unique(processes.begin(), processes.end()), processes.end());
  EXPECT_EQ(j.aside.members()[0].platform, "host");
  EXPECT_EQ(j.aside.members()[0].device, "");
  EXPECT_FALSE(j.aside.has_queue());
  expect_error(errc::invalid_argument, [&] { (void)j.aside.queue(); });
  EXPECT_EQ(world.queue(), j.queue);
}

// tests/ranks/CMakeLists.txt runs this with SUCL_NODE_SIZE too.
TEST_F(runtime_test, nodes_as_declared) {
  const char* declared = std::getenv("SUCL_NODE_SIZE");
  const int per_node = declared ? std::stoi(declared) : size;
  for (const member& m : world.members()) {
    EXPECT_EQ(m.node, m.rank / per_node);
    EXPECT_EQ(m.local_rank, m.rank % per_node);
  }
  // Nodes are those of the job in every communicator, numbered by their first ranks there.
  const auto backward = world.split(0, -rank);
  for (const member& m : backward.members()) {
    const int in_world = size - 1 - m.rank;
    EXPECT_EQ(m.node, (size - 1) / per_node - in_world / per_node);
  }
}

TEST_F(runtime_test, split_orders_by_key) {
  auto part = world.split(rank % 2, -rank);
  const int members = (size + (rank % 2 == 0 ? 1 : 0)) / 2;
  ASSERT_EQ(part.size(), members);
  // The highest rank of a colour comes first.
  const int highest = size - 1 - (size - 1 - rank) % 2;
  EXPECT_EQ(part.rank(), (highest - rank) / 2);
  const member& me = part.members()[static_cast<std::size_t>(part.rank())];
  EXPECT_EQ(me.process, world.members()[static_cast<std::size_t>(rank)].process);
  expect_works(part);
  auto nested = part.split(part.rank() / 2);
  EXPECT_LE(nested.size(), 2);
  expect_works(nested);
  auto copy = nested.dup();
  EXPECT_EQ(copy.rank(), nested.rank());
  expect_works(copy);
  expect_works(world);
}

TEST_F(runtime_test, negative_colour_gets_nothing) {
  auto part = world.split(rank == 0 ? -1 : 3);
  EXPECT_EQ(static_cast<bool>(part), rank != 0);
  if (rank == 0) {
    const auto text = expect_error(errc::shut_down, [&] { part.barrier(); });
    EXPECT_NE(text.find("empty"), std::string::npos) << text;
    expect_error(errc::shut_down, [&] { (void)part.rank(); });
    expect_error(errc::shut_down, [&] { (void)part.dup(); });
  } else {
    EXPECT_EQ(part.size(), size - 1);
    expect_works(part);
  }
}

TEST_F(runtime_test, copies_are_the_same_communicator) {
  auto a = world.dup();
  auto b = a;
  a = {};
  expect_works(b);
  auto blocking = b.blocking();
  b = {};
  int x = rank;
  blocking.allreduce(&x, 1, op::max);
  EXPECT_EQ(x, size - 1);
}

TEST_F(runtime_test, destroyed_in_different_orders) {
  std::vector<communicator> comms;
  for (int i = 0; i < 6; ++i) comms.push_back(world.dup());
  std::vector<int> x(6, rank);
  std::vector<sycl::event> done;
  for (int i = 0; i < 6; ++i) done.push_back(comms[i].allreduce(&x[i], 1, op::max));
  // Odd ranks from the back, with operations in flight.
  if (rank % 2 == 1) std::reverse(comms.begin(), comms.end());
  for (auto& c : comms) c = {};
  for (auto& e : done) e.wait();
  EXPECT_EQ(x, std::vector<int>(6, size - 1));
  expect_works(world);
}

TEST_F(runtime_test, many_communicators_in_opposite_orders) {
  if (has_one_lane(j.queue)) GTEST_SKIP() << one_lane;
  constexpr std::size_t many = 16;
  std::vector<communicator> comms;
  std::vector<sycl::buffer<int, 1>> buffers;
  for (std::size_t i = 0; i < many; ++i) {
    comms.push_back(world.dup());
    buffers.emplace_back(sycl::range<1>(8));
    sycl::host_accessor{buffers.back()}[0] = rank + static_cast<int>(i);
  }
  for (std::size_t k = 0; k < many; ++k) {
    const auto i = rank % 2 == 0 ? k : many - 1 - k;
    comms[i].allreduce(buffers[i], op::max);
  }
  for (std::size_t i = 0; i < many; ++i)
    EXPECT_EQ(sycl::host_accessor{buffers[i]}[0], size - 1 + static_cast<int>(i));
}

// Even ranks have the CPU, odd ones no device at all.
TEST_F(runtime_test, ranks_with_and_without_a_device) {
  auto comm = rank % 2 == 0 ? j.world_with(j.queue) : j.world_without();
  EXPECT_EQ(comm.has_queue(), rank % 2 == 0);
  EXPECT_EQ(comm.members()[0].platform, cpu_platform);
  if (size > 1) {
    EXPECT_EQ(comm.members()[1].platform, "host");
  }
  std::vector<float> memory(1000, static_cast<float>(rank + 1));
  shared<float> usm(1000, j.queue, static_cast<float>(rank + 1));
  float* x = rank % 2 == 0 ? usm.get() : memory.data();
  comm.allreduce(x, 1000, op::sum).wait();
  EXPECT_EQ(x[999], static_cast<float>(sum_to(size)));
  comm.blocking().allreduce(x, 1000, op::max);
  EXPECT_EQ(x[0], static_cast<float>(sum_to(size)));
}

// Even ranks on the CPU, odd ones on another SYCL platform, as the FPGA emulator is one.
TEST_F(runtime_test, different_platforms_in_one_communicator) {
  std::optional<sycl::device> other;
  for (const auto& d : sycl::device::get_devices())
    if (d.get_platform() != j.queue.get_device().get_platform()) other = d;
  if (!other) GTEST_SKIP() << "there is only one SYCL platform";
  sycl::queue q = rank % 2 == 0 ? j.queue : sycl::queue(*other);
  auto comm = j.world_with(q);
  const auto& members = comm.members();
  if (size > 1) {
    EXPECT_NE(members[0].device, members[1].device);
  }
  shared<float> x(1000, q, static_cast<float>(rank + 1));
  comm.allreduce(x.get(), 1000, op::sum).wait();
  EXPECT_EQ(x[999], static_cast<float>(sum_to(size)));
  sycl::buffer<int, 1> b{sycl::range<1>(100)};
  q.submit([&](sycl::handler& h) {
    command_accessor<int, sycl::access_mode::write> to(b, h);
    host_command(h, [to, r = rank] { to[99] = r; });
  });
  comm.allreduce(b, op::max);
  EXPECT_EQ(sycl::host_accessor{b}[99], size - 1);
  if (rank % 2 == 1) {
    // Memory of the CPU's context on a communicator of the emulator's.
    shared<float> foreign(10, j.queue);
    const auto text =
        expect_error(errc::invalid_memory, [&] { comm.allreduce(foreign.get(), 10, op::sum); });
    EXPECT_NE(text.find("context"), std::string::npos) << text;
  }
  comm.wait();
}

// Each replaces the one before; `sucl bench` measures how long that takes.
TEST_F(runtime_test, communicators_come_and_go) {
  auto comm = world.dup();
  for (int i = 0; i < 10; ++i) {
    comm = world.dup();
    int sum = rank + i;
    comm.blocking().allreduce(&sum, 1, op::sum);
    EXPECT_EQ(sum, size * (size - 1) / 2 + size * i);
  }
}

// After everything else: what is left when the runtime ends before its communicators.
void end(runtime& rt, rank_fixture& j) {
  auto copy = j.world;
  auto dup = j.world.dup();
  std::vector<int> x(1000, rt.rank());
  std::vector<int> y(1000, rt.rank());
  auto done = dup.allreduce(x.data(), x.size(), op::max);
  latch held(j.queue);
  auto late = j.world.allreduce(y.data(), y.size(), op::max, {held.event()});
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    held.release();
  });
  runtime moved = std::move(rt);
  moved.shut_down();  // waits for both
  opener.join();
  done.wait();
  late.wait();
  EXPECT_EQ(x[999], copy.size() - 1);
  EXPECT_EQ(y[999], copy.size() - 1);
  for (auto* comm : {&copy, &dup, &j.in_order_world, &j.aside}) {
    int z = 0;
    expect_error(errc::shut_down, [&] { comm->blocking().allreduce(&z, 1, op::sum); });
    expect_error(errc::shut_down, [&] { comm->allreduce(&z, 1, op::sum); });
    expect_error(errc::shut_down, [&] { (void)comm->dup(); });
    expect_error(errc::shut_down, [&] { comm->wait(); });
    EXPECT_EQ(static_cast<int>(comm->members().size()), comm->size());
  }
  moved.shut_down();
  expect_error(errc::shut_down, [&] { (void)moved.world(); });
  expect_error(errc::shut_down, [&] { (void)rt.world(); });
  // MPI, which SuCL has started and ended, cannot start again, nor can a job whose id has served.
  const auto text =
      expect_error(has_id() ? errc::invalid_argument : errc::shut_down, [] { runtime again; });
  const char* const why = has_id() ? "by this id already" : "finalised";
  EXPECT_NE(text.find(why), std::string::npos) << text;
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  namespace t = sucl::testing;
  try {
    sucl::runtime rt{argc, argv};
    t::rank_fixture j;
    j.queue = sycl::queue(sycl::cpu_selector_v);
    j.in_order =
        sycl::queue(j.queue.get_context(), j.queue.get_device(), sycl::property::queue::in_order{});
    j.world = rt.world(j.queue);
    j.in_order_world = rt.world(j.in_order);
    j.aside = rt.world();
    j.world_with = [&](const sycl::queue& q) { return rt.world(q); };
    j.world_without = [&] { return rt.world(); };
    const int result = t::run_tests(argc, argv, rt, j);
    t::end(rt, j);
    return result != 0 || ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
