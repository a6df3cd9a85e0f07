// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "unit/device_kernels/thread_device.hpp"

#include "base/error.hpp"
#include "kernels/collective/two_shot.hpp"
#include "kernels/message/move.hpp"
#include "kernels/plan/run.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <semaphore>
#include <thread>

namespace sucl::testing {
namespace {

using core::kernel_launch;
using core::message_launch;
using core::plan_launch;

/// A work group of threads.
struct thread_group {
  explicit thread_group(int threads) : meeting(threads), votes(static_cast<std::size_t>(threads)) {}
  std::barrier<> meeting;
  std::vector<char> votes;
  kernels::message_board board;
};

/// A work item.
struct thread_item {
  thread_group* in;
  static constexpr int warp = 1;
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

/// Runs the work items of a kernel, of at most `resident` groups at once, which start in order.
template <class Body>
void run_items(int group_count, int items, int resident, const Body& body) {
  std::vector<std::unique_ptr<thread_group>> groups;
  std::vector<std::thread> threads;
  std::counting_semaphore<> room(resident);
  for (int g = 0; g < group_count; ++g) {
    room.acquire();
    groups.push_back(std::make_unique<thread_group>(items));
    for (int t = 0; t < items; ++t)
      threads.emplace_back([&, group = groups.back().get(), g, t] {
        body(thread_item{group, t, items, g, group_count}, *group);
        group->meeting.arrive_and_wait();
        if (t == 0) room.release();
      });
  }
  for (auto& t : threads) t.join();
}

template <class Amounts, class Folder>
void run_kernel(const kernel_launch& k, const kernels::exchange_args<Amounts>& j,
                const thread_device& on, const Folder& folder) {
  const auto* from = static_cast<const std::byte*>(k.in_place ? k.to : k.from);
  const kernels::memory_pair m{from, static_cast<std::byte*>(k.to)};
  run_items(k.groups, on.items, on.resident, [&](const thread_item& at, thread_group&) {
    kernels::with_protocol<Folder>(j, [&](auto how, auto may_be_direct) {
      kernels::run_protocol<how(), may_be_direct()>(at, j, m, folder);
    });
  });
}

template <class Folder>
void run_kernel(const kernel_launch& k, const thread_device& on, const Folder& folder) {
  if (k.lists)
    core::with_lists(k, [&](const auto& j) { run_kernel(k, j, on, folder); });
  else
    run_kernel(k, kernels::exchange_args<kernels::alike>{k.what, k.send, k.recv}, on, folder);
}

void run_kernel(const kernel_launch& k, const thread_device& on) {
  using namespace kernels;
  if (!k.reduces) return run_kernel(k, on, fold_nothing{});
  if (k.op == SUCL_OP_SUM && k.type == SUCL_TYPE_FP32)
    return run_kernel(k, on, fold_of<elements::plain<float>, elements::add>{});
  run_kernel(k, on, fold_any{k.type, k.op});
}

void run_kernel(const message_launch& k, const thread_device& on) {
  run_items(k.groups, on.items, on.resident, [&](const thread_item& at, thread_group& group) {
    kernels::move_messages(at, k.what, group.board);
  });
}

template <class Folder>
void run_kernel(const plan_launch& k, const thread_device& on, const Folder& folder) {
  const kernels::memory_pair m{static_cast<const std::byte*>(k.from),
                               static_cast<std::byte*>(k.to)};
  run_items(k.groups, on.items, on.resident, [&](const thread_item& at, thread_group&) {
    kernels::run_plan(at, k.what, m, folder);
  });
}

void run_kernel(const plan_launch& k, const thread_device& on) {
  using namespace kernels;
  if (!k.reduces) return run_kernel(k, on, fold_nothing{});
  if (k.op == SUCL_OP_SUM && k.type == SUCL_TYPE_FP32)
    return run_kernel(k, on, fold_of<elements::plain<float>, elements::add>{});
  run_kernel(k, on, fold_any{k.type, k.op});
}

kernel_launch copy_of(const kernel_launch& k) {
  kernel_launch copy;
  copy.what = k.what;
  copy.send = k.send;
  copy.recv = k.recv;
  if (k.lists) {
    copy.lists = std::make_unique<kernels::listed[]>(2);
    std::copy_n(k.lists.get(), 2, copy.lists.get());
  }
  copy.type = k.type;
  copy.op = k.op;
  copy.reduces = k.reduces;
  copy.from = k.from;
  copy.to = k.to;
  copy.in_place = k.in_place;
  copy.groups = k.groups;
  return copy;
}

/// Provides memory as the backend ipc does, and device memory of this process.
core::backend_comm memory_provider_of(const core::backend_comm& ipc, peer_access how) {
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
  if (how == peer_access::some)  // no rank reaches rank 0's
    t.memory_open = [](sucl_backend_comm*, std::int32_t rank, const sucl_memory_key* key,
                       void** address) -> sucl_status {
      std::memcpy(address, key->bytes, sizeof *address);
      return rank == 0 ? SUCL_ERROR_UNSUPPORTED : SUCL_SUCCESS;
    };
  return {&t, ipc.state, ipc.comm};
}

}  // namespace

thread_device::thread_device(bool with_memory) {
  items = 2;
  groups = 2;
  on_host = !with_memory;
}

std::shared_ptr<void> thread_device::allocate(std::uint64_t bytes) {
  if (allocations_left-- <= 0) base::fail(errc::out_of_memory, "the test has no memory");
  const std::uint64_t whole = std::max<std::uint64_t>(bytes + 4095, 4096) / 4096 * 4096;
  allocated += whole;
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  in_use += whole;
  // Memory may live longer than the device object.
  return {memory, [whole, count = count_in_use](void* m) {
            munmap(m, whole);
            *count -= whole;
          }};
}

void thread_device::write(void* to, const void* from, std::uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

// One kernel after the other.
void* thread_device::start(std::function<void()> kernel) {
  m_last = std::async(std::launch::async, [kernel = std::move(kernel), before = m_last] {
             if (before.valid()) before.wait();
             kernel();
           }).share();
  return new std::shared_future<void>(m_last);
}

void* thread_device::launch(const kernel_launch& kernel, void*) {
  ++used[static_cast<std::size_t>(kernel.what.how)];
  const auto k = std::make_shared<kernel_launch>(copy_of(kernel));
  if (captures) captures->push_back(k);
  if (captures) return nullptr;
  return start([k, this] { run_kernel(*k, *this); });
}

void* thread_device::launch(const message_launch& kernel, void*) {
  return start([kernel, this] { run_kernel(kernel, *this); });
}

void* thread_device::launch(const plan_launch& kernel, void*) {
  return start([kernel, this] { run_kernel(kernel, *this); });
}

void thread_device::replay(const graph& kernels) {
  for (const auto& k : kernels)
    delete static_cast<std::shared_future<void>*>(start([k, this] { run_kernel(*k, *this); }));
}

bool thread_device::test(void* token) {
  if (!token) return true;
  auto* done = static_cast<std::shared_future<void>*>(token);
  if (done->wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  delete done;
  return true;
}

// Small buffers, so that small messages use all protocols.
core::kernel_settings small_buffers() {
  core::kernel_settings s(2);
  s.ll_max_bytes = 512;
  s.staging = 16 << 10;
  s.ll128_min_bytes = 700;
  s.ll128_max_bytes = 3 << 10;
  s.ll128_exchange_max_bytes = 2 << 10;
  s.ll128_two_shot_max_bytes = 6 << 10;
  s.ll_two_shot_max_bytes = 3 << 10;
  s.two_shot_min_bytes = 4 << 10;
  s.direct_min_bytes = 2 << 10;
  s.groups = 2;
  return s;
}

void for_providers(int size, const std::function<void(const provider_rank&)>& body) {
  core::registry registry;
  const auto& ipc = registry.open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", {}});
  run_ranks(size, [&](const sucl_comm_info& info) {
    const auto real = create_comm(ipc, info);
    sucl_oob own = core::oob_split(*info.oob, info.rank);
    body({memory_provider_of(real, peer_access::all), own, info.rank, info.size});
    destroy(real);
    core::oob_free(own);
  });
}

void for_devices(int size, peer_access how, const std::function<void(const kernel_rank&)>& body,
                 const core::kernel_settings& settings) {
  core::registry registry;
  const auto& ipc = registry.open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", {}});
  const auto& model = registry.open({"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", {}});
  run_ranks(size, [&](const sucl_comm_info& info) {
    const auto real = create_comm(ipc, info);
    sucl_oob for_mock = core::oob_split(*info.oob, info.rank);
    sucl_oob for_kernels = core::oob_split(*info.oob, info.rank);
    sucl_comm_info other = info;
    other.oob = &for_mock;
    const auto mock = create_comm(model, other);
    thread_device device(how != peer_access::none);
    device.groups = static_cast<int>(settings.groups);
    const auto kernels = core::make_kernel_comm(std::make_unique<core::kernel_comm>(
        memory_provider_of(real, how), for_kernels, device, info.rank, info.size, settings));
    body({kernels, mock, device, info});
    destroy(kernels);
    destroy(mock);
    destroy(real);
    core::oob_free(for_mock);
    core::oob_free(for_kernels);
  });
}

}  // namespace sucl::testing
