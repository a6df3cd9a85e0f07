// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The device functions of collectives with threads as work items, launched by the backend kernels:
// every operation that it carries, drawn at random, against the backend mock. What devices do is
// another matter: tests/device.
#include "kernels/collective/two_shot.hpp"
#include "runtime/kernels/kernel_backend.hpp"
#include "unit/exec_draw.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace sucl;
using namespace sucl::testing;
using core::kernel_comm;
using core::kernel_launch;

/// A work group of threads.
struct thread_group {
  explicit thread_group(int threads) : meeting(threads), votes(static_cast<std::size_t>(threads)) {}
  std::barrier<> meeting;
  std::vector<char> votes;
};

/// A work item.
struct thread_place {
  thread_group* in;
  int m_thread, m_threads, m_group, m_groups;
  int thread() const { return m_thread; }
  int threads() const { return m_threads; }
  int group() const { return m_group; }
  int groups() const { return m_groups; }
  void barrier() const { in->meeting.arrive_and_wait(); }
  bool together(bool ok) const {
    in->votes[static_cast<std::size_t>(m_thread)] = ok;
    barrier();
    const bool all = std::all_of(in->votes.begin(), in->votes.end(), [](char v) { return v; });
    barrier();
    return all;
  }
};

template <class Amounts, class Folder>
void run_kernel(const kernel_launch& k, const kernels::exchange_job<Amounts>& j, int items,
                const Folder& folder) {
  const auto* from = static_cast<const std::byte*>(k.in_place ? k.to : k.from);
  const kernels::memory_pair m{from, static_cast<std::byte*>(k.to)};
  std::vector<std::unique_ptr<thread_group>> groups;
  std::vector<std::thread> threads;
  for (int g = 0; g < k.groups; ++g) {
    groups.push_back(std::make_unique<thread_group>(items));
    for (int t = 0; t < items; ++t)
      threads.emplace_back([&, g, t] {
        const thread_place at{groups[static_cast<std::size_t>(g)].get(), t, items, g, k.groups};
        kernels::with_way<Folder>(j, [&](auto how, auto may_be_direct) {
          kernels::carry_out<how(), may_be_direct()>(at, j, m, folder);
        });
      });
  }
  for (auto& t : threads) t.join();
}

template <class Folder>
void run_kernel(const kernel_launch& k, int items, const Folder& folder) {
  if (k.lists)
    run_kernel(k, kernels::exchange_job<kernels::listed>{k.what, k.lists[0], k.lists[1]}, items,
               folder);
  else
    run_kernel(k, kernels::exchange_job<kernels::alike>{k.what, k.send, k.recv}, items, folder);
}

/// A device whose kernels are threads.
class thread_device final : public core::kernel_device {
 public:
  explicit thread_device(bool with_memory) {
    items = 2;
    groups = 2;
    on_host = !with_memory;
  }
  void prepare() override {}
  std::shared_ptr<void> allocate(std::uint64_t bytes) override {
    const std::uint64_t whole = (bytes + 4095) / 4096 * 4096;
    void* memory = std::aligned_alloc(4096, whole);
    std::memset(memory, 0, whole);
    return {memory, std::free};
  }
  std::shared_ptr<void> allocate_host(std::uint64_t bytes) override { return allocate(bytes); }
  void write(void* to, const void* from, std::uint64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void* pin(void* memory, std::uint64_t) override { return memory; }
  void release(void*) override {}
  void* launch(const kernel_launch& kernel, void*) override {
    auto k = std::make_shared<kernel_launch>();
    k->what = kernel.what;
    k->send = kernel.send;
    k->recv = kernel.recv;
    if (kernel.lists) {
      k->lists = std::make_unique<kernels::listed[]>(2);
      std::copy_n(kernel.lists.get(), 2, k->lists.get());
    }
    k->type = kernel.type;
    k->op = kernel.op;
    k->reduces = kernel.reduces;
    k->from = kernel.from;
    k->to = kernel.to;
    k->in_place = kernel.in_place;
    k->groups = kernel.groups;
    ++used[static_cast<std::size_t>(k->what.how)];
    m_last = std::async(std::launch::async, [k, before = m_last, n = items] {
               if (before.valid()) before.wait();
               using namespace kernels;
               const bool sum = k->op == SUCL_OP_SUM && k->type == SUCL_TYPE_FP32;
               if (!k->reduces) return run_kernel(*k, n, fold_nothing{});
               if (sum) return run_kernel(*k, n, fold_of<elements::plain<float>, elements::add>{});
               run_kernel(*k, n, fold_any{k->type, k->op});
             }).share();
    return new std::shared_future<void>(m_last);
  }
  bool test(void* token) override {
    auto* done = static_cast<std::shared_future<void>*>(token);
    if (done->wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    delete done;
    return true;
  }
  void drain() override {
    if (m_last.valid()) m_last.wait();
  }

  std::array<std::atomic<int>, 3> used{};  ///< kernels of each way

 private:
  std::shared_future<void> m_last;
};

/// How ranks reach each other's device memory.
enum class reach { all, some, none };

/// Lends memory as the backend ipc does, and device memory of this process.
core::channel lender_of(const core::channel& ipc, reach how) {
  static auto& tables = *new std::array<sucl_backend, 3>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& t = tables[static_cast<std::size_t>(how)];
  t = *ipc.table;
  t.memory_export = [](sucl_backend_comm*, const void* address, std::uint64_t, sucl_memory,
                       sucl_memory_key* key) -> sucl_status {
    std::memcpy(key->bytes, &address, sizeof address);
    return SUCL_SUCCESS;
  };
  t.memory_open = [](sucl_backend_comm*, std::int32_t, const sucl_memory_key* key,
                     void** address) -> sucl_status {
    std::memcpy(address, key->bytes, sizeof *address);
    return SUCL_SUCCESS;
  };
  t.memory_close = [](sucl_backend_comm*, std::int32_t, void*) {};
  if (how == reach::some)  // rank 0's is in nobody's reach
    t.memory_open = [](sucl_backend_comm*, std::int32_t rank, const sucl_memory_key* key,
                       void** address) -> sucl_status {
      std::memcpy(address, key->bytes, sizeof *address);
      return rank == 0 ? SUCL_ERROR_UNSUPPORTED : SUCL_SUCCESS;
    };
  return {&t, ipc.state, ipc.comm};
}

struct job {
  core::channel kernels, mock;
  thread_device& device;
  const sucl_comm_info& info;
  kernel_comm& comm() const { return core::kernels_of(kernels); }
};

// Small lanes, so that small messages take all ways.
core::kernel_settings small_lanes() {
  core::kernel_settings s(2);
  s.small = 512;
  s.staging = 16 << 10;
  s.two_shot = 4 << 10;
  s.direct = 2 << 10;
  s.groups = 2;
  return s;
}

void for_devices(int size, reach how, const std::function<void(const job&)>& body,
                 const core::kernel_settings& settings = small_lanes()) {
  core::registry registry;
  const auto& ipc = registry.open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", {}});
  const auto& model = registry.open({"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", {}});
  run_ranks(size, [&](const sucl_comm_info& info) {
    const auto real = create_channel(ipc, info);
    sucl_oob for_mock = core::oob_split(*info.oob, info.rank);
    sucl_oob for_kernels = core::oob_split(*info.oob, info.rank);
    sucl_comm_info other = info;
    other.oob = &for_mock;
    const auto mock = create_channel(model, other);
    thread_device device(how != reach::none);
    const auto kernels = core::kernel_channel(std::make_unique<kernel_comm>(
        lender_of(real, how), for_kernels, device, info.rank, info.size, settings));
    body({kernels, mock, device, info});
    destroy(kernels);
    destroy(mock);
    destroy(real);
    core::oob_free(for_mock);
    core::oob_free(for_kernels);
  });
}

void compare(const job& j, std::uint64_t seed, std::byte* mapped, std::uint64_t mapped_bytes) {
  const int rank = j.info.rank, size = j.info.size;
  const draw d = make_draw(seed, size, 3000);
  const bool in_place = (seed * 7 + static_cast<unsigned>(rank)) % 3 == 0;
  memory mine, model;
  auto o = prepare(d, rank, size, in_place, mine);
  const auto same_operation = prepare(d, rank, size, in_place, model);
  // The same in mapped memory.
  const bool moves = mapped && mine.send.size() + mine.recv.size() + 256 < mapped_bytes;
  std::byte* send = mapped;
  std::byte* recv = mapped + (mine.send.size() + 127) / 128 * 128;
  if (moves) {
    std::copy(mine.send.begin(), mine.send.end(), send);
    std::copy(mine.recv.begin(), mine.recv.end(), recv);
    o.send = o.send ? send + d.misplaced : nullptr;
    o.recv = recv + d.misplaced;
  }
  const flight done = run(j.kernels, o);
  const flight reference = run(j.mock, same_operation);
  if (moves) {
    std::copy_n(send, mine.send.size(), mine.send.begin());
    std::copy_n(recv, mine.recv.size(), mine.recv.begin());
  }
  EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
  EXPECT_EQ(reference.status, SUCL_SUCCESS) << reference.error.message;
  EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, rank, size, in_place);
  EXPECT_EQ(mine.send, model.send) << describe(d, rank, size, in_place);
}

class kernels_with : public ::testing::TestWithParam<std::tuple<int, reach>> {};
INSTANTIATE_TEST_SUITE_P(ranks, kernels_with,
                         ::testing::Values(std::tuple{1, reach::none}, std::tuple{2, reach::all},
                                           std::tuple{2, reach::none}, std::tuple{3, reach::all},
                                           std::tuple{3, reach::some}, std::tuple{4, reach::all}));

TEST_P(kernels_with, agree_with_the_definitions) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const job& j) {
    EXPECT_EQ(j.comm().memory().all_on_devices(), how == reach::all);
    for (std::uint64_t seed = 1; seed <= 80; ++seed)
      compare(j, seed + 1000u * static_cast<unsigned>(j.info.size), nullptr, 0);
    EXPECT_GT(j.device.used[0], 0);
    EXPECT_GT(j.device.used[1], 0);
    if (j.info.size > 2) {
      EXPECT_GT(j.device.used[2], 0);
    }
  });
}

// Neither words that nobody has written yet nor the flags of lines starting again may pass for
// data.
TEST(kernels, go_on_after_very_many_operations) {
  for (const std::uint64_t before : {(1ull << 31) - 20, (1ull << 32) - 20, (1ull << 40) - 20}) {
    auto settings = small_lanes();
    settings.operations = before;
    for_devices(
        3, reach::all,
        [&](const job& j) {
          for (std::uint64_t seed = 1; seed <= 40; ++seed) compare(j, seed + 9000, nullptr, 0);
        },
        settings);
  }
}

// Some ranks use memory that all map and some do not: whether it is used directly they find out.
TEST_P(kernels_with, agree_in_mapped_memory) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const job& j) {
    constexpr std::uint64_t bytes = 1 << 20;
    auto* memory = static_cast<std::byte*>(j.comm().memory().add(bytes, 0));
    EXPECT_EQ(j.comm().memory().used_by(1), how != reach::some);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const bool everybody = seed % 4 != 0 || j.info.rank % 2 == 0;
      compare(j, seed + 5000u * static_cast<unsigned>(j.info.size), everybody ? memory : nullptr,
              bytes);
    }
    EXPECT_TRUE(j.comm().memory().remove(memory));
    EXPECT_FALSE(j.comm().memory().remove(memory));
  });
}

// A root that runs ahead must not overwrite what slow ranks have yet to read.
TEST(kernels, a_fast_root_waits_for_slow_ranks) {
  for_devices(3, reach::all, [&](const job& j) {
    constexpr std::size_t n = 300;
    std::vector<std::vector<int>> got(40, std::vector<int>(n));
    std::vector<flight> flights;
    for (int i = 0; i < 40; ++i) {
      auto& data = got[static_cast<std::size_t>(i)];
      if (j.info.rank == 0) std::fill(data.begin(), data.end(), i);
      auto o = operation(kind::broadcast, type::int32, i % 2 ? n : 20);
      o.send = o.recv = data.data();
      if (j.info.rank == 2 && i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      flights.push_back(post(j.kernels, o));
    }
    for (auto& f : flights) EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(got[static_cast<std::size_t>(i)].front(), i);
      EXPECT_EQ(got[static_cast<std::size_t>(i)][i % 2 ? n - 1 : 19], i);
    }
  });
}

// A rank that does not come: the others' kernels end when they are told to.
TEST(kernels, end_when_they_are_given_up) {
  for (const std::size_t n : {std::size_t{10}, std::size_t{5000}})
    for_devices(2, reach::all, [&](const job& j) {
      if (j.info.rank == 1) return j.comm().memory().abandon();
      std::vector<float> data(n);
      auto o = operation(kind::allreduce, type::fp32, n, op::sum);
      o.flags = SUCL_FLAG_IN_PLACE;
      o.recv = data.data();
      flight f = post(j.kernels, o);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(sucl::testing::test(j.kernels, f));
      j.comm().abort();
      EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
    });
}

TEST(kernels, divide_sums_of_64_bits) {
  using kernels::integer128;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto sum = integer128(least) + integer128(least) + integer128(least);
  EXPECT_EQ(static_cast<std::int64_t>(sum / integer128(3)), least);
  EXPECT_EQ(static_cast<std::int64_t>((integer128(std::int64_t{-7}) + integer128(std::int64_t{2})) /
                                      integer128(2)),
            -2);
  EXPECT_EQ(static_cast<std::uint64_t>((integer128(most) + integer128(most)) / integer128(2)),
            most);
  EXPECT_EQ(
      static_cast<std::uint64_t>((integer128(most) + integer128(std::uint64_t{2})) / integer128(3)),
      (std::uint64_t{1} << 63) / 3 * 2 + 1);
}

TEST(kernels, settings_are_checked) {
  EXPECT_EQ(core::kernel_settings::read({{"low_latency", "8Ki"}, {"groups", "4"}}, 2).small, 8192u);
  EXPECT_THROW(core::kernel_settings::read({{"lanes", "4"}}, 2), error);
  EXPECT_THROW(core::kernel_settings::read({{"groups", "257"}}, 2), error);
  EXPECT_THROW(core::kernel_settings::read({{"staging", "4Ki"}}, 2), error);
}

}  // namespace
