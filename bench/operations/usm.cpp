// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "testbed.hpp"

#include "bench/device/device_graph.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace sucl::bench {
namespace {

constexpr std::size_t alignment = 4096;  // of all memory, so that no implementation is lucky

std::string name_of(memory where) {
  switch (where) {
    case memory::host: return "host";
    case memory::shared: return "shared";
    case memory::device: return "device";
    case memory::symmetric: return "symmetric";
    case memory::registered: return "registered";
    case memory::window: return "window";
    default: return "system";
  }
}

void* allocate(memory where, std::size_t bytes, const bench_context& at) {
  const std::size_t size =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  const sycl::queue queue = at.comm.queue();
  communicator own = at.comm;
  if (where == memory::registered) {
    auto* data = sycl::aligned_alloc_device<std::byte>(alignment, size, queue);
    own.register_memory(data, data ? size : 0);
    return data;
  }
  switch (where) {
    case memory::symmetric: return own.allocate<std::byte>(size);
    case memory::window: return at.bare->allocate_window(size);
    case memory::host: return sycl::aligned_alloc_host(alignment, size, queue);
    case memory::shared: return sycl::aligned_alloc_shared(alignment, size, queue);
    case memory::device: return sycl::aligned_alloc_device(alignment, size, queue);
    default: return std::aligned_alloc(alignment, size);
  }
}

// Memory of one kind, and copies from and to it.
class region {
 public:
  // `shared`: bytes of the largest region of any rank, which symmetric memory has on all.
  region(memory where, std::size_t bytes, std::size_t shared, const bench_context& at)
      : m_where(where),
        m_bytes(bytes),
        m_comm(at.comm),
        m_bare(at.bare),
        m_data(allocate(where, is_symmetric() ? shared : bytes, at)) {
    if (!m_data)
      base::fail(
          errc::out_of_memory,
          "there are no " + std::to_string(bytes) + " bytes of " + name_of(where) + " memory",
          "Measure smaller --sizes, or another --memory");
  }
  ~region() {
    if (m_where == memory::registered) m_comm.deregister_memory(m_data);
    if (m_where == memory::system)
      std::free(m_data);
    else if (m_where == memory::symmetric)
      m_comm.deallocate(m_data);
    else if (m_where == memory::window)
      m_bare->free_window(m_data);
    else
      sycl::free(m_data, m_comm.queue());
  }
  region(const region&) = delete;
  region& operator=(const region&) = delete;

  void* data() const { return m_data; }
  std::size_t bytes() const { return m_bytes; }
  void write(const std::vector<std::byte>& from) const {
    if (!from.empty()) copy(m_data, from.data(), from.size());
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> to(m_bytes);
    if (!to.empty()) copy(to.data(), m_data, to.size());
    return to;
  }

 private:
  bool is_symmetric() const { return m_where == memory::symmetric || m_where == memory::window; }
  void copy(void* to, const void* from, std::size_t bytes) const {
    sycl::queue queue = m_comm.queue();
    // Where GPUs have kernels of SuCL's, memory of the communicator is theirs.
    const bool on_host = m_where == memory::symmetric && queue.get_device().is_cpu();
    if (m_where == memory::system || on_host) {
      std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
    } else {
      queue.memcpy(to, from, bytes).wait();
    }
  }

  memory m_where;
  std::size_t m_bytes;
  communicator m_comm;
  bare_nccl* m_bare;
  void* m_data;
};

struct regions {
  region send;
  region recv;
};

// The clock of the communicator's queue, where that is where the work goes.
device_clock* clock_of(const bench_context& at, const problem& p) {
  if (!at.queue_clock) return nullptr;
  const std::string how = at.comm.explain(p.of, p.bytes(), p.element, p.reduction);
  const bool differs = how.find("by event ") != std::string::npos;
  for (const char* backend : {"kernels", "nccl"})
    if (how.find((differs ? "by event " : "executed by ") + std::string(backend)) !=
        std::string::npos)
      return at.queue_clock;
  return nullptr;
}

// As many make a sequence that is replayed: the same on every rank.
int operations_of_sequence(const problem& p) {
  constexpr std::uint64_t max_bytes = 1 << 20, fewest = 4, most = 100;
  return static_cast<int>(
      std::clamp(max_bytes / std::max<std::uint64_t>(p.bytes(), 1), fewest, most));
}

// A sequence of calls that is replayed, and the same number of starts of a persistent operation.
template <class T>
void add_sequences(testbed& bed, const bench_context& at, const problem& p,
                   const std::shared_ptr<regions>& memory, const std::shared_ptr<blocks>& arrays) {
  const auto* send = static_cast<const T*>(memory->send.data());
  auto* recv = static_cast<T*>(memory->recv.data());
  const int operations = operations_of_sequence(p);
  const auto comm = std::make_shared<typed_asynchronous>(at.comm, p.element);
  // It may be called again by each replay, as long as it is there.
  const auto sequence =
      std::make_shared<executable>(at.comm.record(at.comm.queue(), [=, kept = memory] {
        for (int i = 0; i < operations; ++i) call(*comm, p, *arrays, send, recv);
      }));
  typed_persistent made(at.comm.persistent(), p.element);
  const auto starts = std::make_shared<persistent>(call(made, p, *arrays, send, recv));
  bed.implementations.push_back({"sucl", "replay",
                                 [memory, sequence] { sequence->replay().wait(); }, nullptr,
                                 nullptr, nullptr, nullptr, operations});
  bed.implementations.push_back({"sucl", "starts",
                                 [memory, starts, operations, library = at.comm] {
                                   for (int i = 0; i < operations; ++i) starts->start();
                                   library.wait();
                                 },
                                 nullptr, nullptr, nullptr, nullptr, operations});
}

template <class T>
void add_library(testbed& bed, const bench_context& at, const problem& p,
                 const std::shared_ptr<regions>& memory) {
  auto arrays = std::make_shared<blocks>(p);
  if (at.wanted->blocking) {
    auto comm = std::make_shared<typed_blocking>(at.comm.blocking(), p.element);
    bed.implementations.push_back({"sucl", "blocking",
                                   [=] {
                                     call(*comm, p, *arrays,
                                          static_cast<const T*>(memory->send.data()),
                                          static_cast<T*>(memory->recv.data()));
                                   },
                                   nullptr, nullptr});
  }
  if (at.wanted->persistent) {
    auto comm = std::make_shared<typed_persistent>(at.comm.persistent(), p.element);
    auto made = std::make_shared<persistent>(call(*comm, p, *arrays,
                                                  static_cast<const T*>(memory->send.data()),
                                                  static_cast<T*>(memory->recv.data())));
    bed.implementations.push_back(
        {"sucl", "persistent", [memory, made] { made->run(); }, nullptr, nullptr});
  }
  if (at.wanted->event) {
    auto comm = std::make_shared<typed_asynchronous>(at.comm, p.element);
    bed.implementations.push_back(
        {"sucl", "event",
         [=] {
           call(*comm, p, *arrays, static_cast<const T*>(memory->send.data()),
                static_cast<T*>(memory->recv.data()))
               .wait();
         },
         [=] {
           call(*comm, p, *arrays, static_cast<const T*>(memory->send.data()),
                static_cast<T*>(memory->recv.data()));
         },
         [library = at.comm] { library.wait(); }, clock_of(at, p)});
  }
  if (at.wanted->replayed) add_sequences<T>(bed, at, p, memory, arrays);
}

// MPI must not be given memory that the host cannot read unless it says it takes it: it would
// crash.
bool mpi_reads(const bench_context& at, memory where) {
  if (where != memory::device && where != memory::registered) return true;
  const auto& members = at.comm.members();
  return std::all_of(members.begin(), members.end(), [](const member& m) {
    const auto mpi = m.native_memory.find("mpi:");
    const auto end = m.native_memory.find(';', mpi);
    return m.device_memory_on_host ||
           (mpi != std::string::npos &&
            m.native_memory.substr(mpi, end - mpi).find("device") != std::string::npos);
  });
}

// NCCL as a program calls it, and a graph of as many of its calls as a sequence of ours has.
void add_bare_nccl(testbed& bed, const bench_context& at, const problem& p,
                   const std::shared_ptr<regions>& memory) {
  const void* send = in_place(p) ? nullptr : memory->send.data();
  const auto bare = at.bare->prepare(p, send, memory->recv.data());
  if (!bare) return;
  auto* nccl = at.bare;
  const auto start = [nccl, memory, bare] { nccl->start(*bare); };
  const auto finish = [nccl] { nccl->finish(); };
  const auto run = [start, finish] { start(), finish(); };
  bed.implementations.push_back({"nccl", "blocking", run, start, finish, at.bare_clock});
  if (!at.wanted->replayed) return;
  run();  // what NCCL sets up at a first call must not be captured
  const int operations = operations_of_sequence(p);
  const auto graph = std::make_shared<device_graph>(nccl->device(), nccl->stream(), [=] {
    for (int i = 0; i < operations; ++i) start();
  });
  bed.implementations.push_back({"nccl", "replay", [graph, finish] { graph->launch(), finish(); },
                                 nullptr, nullptr, nullptr, nullptr, operations});
}

}  // namespace

testbed make_usm_testbed(const bench_context& at, const problem& p, bench::memory where) {
  const std::size_t size = p.element_size();
  std::uint64_t max_sent = 0, max_received = 0;
  problem other = p;
  for (other.rank = 0; other.rank < p.ranks; ++other.rank) {
    max_sent = std::max(max_sent, send_elements(other));
    max_received = std::max(max_received, recv_elements(other));
  }
  auto memory = std::shared_ptr<regions>(
      new regions{{where, send_elements(p) * size, max_sent * size, at},
                  {where, recv_elements(p) * size, max_received * size, at}});
  testbed bed;
  bed.write_send = [memory](const std::vector<std::byte>& bytes) { memory->send.write(bytes); };
  bed.write_recv = [memory](const std::vector<std::byte>& bytes) { memory->recv.write(bytes); };
  bed.read_recv = [memory] { return memory->recv.read(); };
  with_element_type(size, [&](auto sample) { add_library<decltype(sample)>(bed, at, p, memory); });
  if (at.raw && at.wanted->against_mpi && mpi_reads(at, where)) {
    const void* send = in_place(p) ? nullptr : memory->send.data();
    if (auto raw = at.raw->prepare(p, send, memory->recv.data())) {
      auto shared = std::make_shared<raw_call>(std::move(*raw));
      bed.implementations.push_back(
          {"mpi", "blocking", [memory, shared] { baseline::run(*shared); }, nullptr, nullptr});
    }
  }
  const bool on_device = where == memory::device || where == memory::symmetric ||
                         where == memory::registered || where == memory::window;
  if (at.bare && on_device) add_bare_nccl(bed, at, p, memory);
  return bed;
}

}  // namespace sucl::bench
