// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/memory/peer_buffers.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sizes.hpp"
#include "core/selection/call_board.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t max_pieces = 256;
constexpr std::uint64_t page = 4096;
// For ranks that have not left yet. Where an exception ends the communicator, others may wait for
// this rank to say so.
constexpr auto longest_wait = std::chrono::milliseconds(1000);
constexpr auto wait_of_failing = std::chrono::milliseconds(50);

// What ranks exchange of a piece of memory.
struct memory_descriptor {
  sucl_memory_key key{};
  std::int32_t exported = 0;
  std::int32_t status = SUCL_SUCCESS;
};

std::atomic_ref<std::uint64_t> left_flag(void* part) {
  return std::atomic_ref(*static_cast<std::uint64_t*>(part));
}

using memories = std::vector<std::shared_ptr<void>>;

// Memory of a communicator's ranks of this process that have left it while others of them have not:
// one thread may end all of them, one after the other, so none waits for the next.
struct left_behind {
  int ranks = 0;
  memories all;
};
struct all_left_behind {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, left_behind> by_communicator;
};
all_left_behind& left() {
  static auto& all = *new all_left_behind;  // communicators may outlive the end of this library
  return all;
}

// Never frees the memory: ranks that have not left may still use it.
void keep(memories all, void* host) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::pair<memories, void*>>;
  const std::lock_guard lock(mutex);
  kept.emplace_back(std::move(all), host);
}

}  // namespace

template <class T>
std::vector<T> peer_buffers::gather(const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(m_size));
  if (const auto status = services().oob_allgather(&m_oob, &mine, all.data(), sizeof mine))
    throw_last(status, "kernels", "set-up", m_rank);
  return all;
}

peer_buffers::peer_buffers(const backend_comm& memory_provider, const sucl_oob& oob,
                           kernel_device& device, int rank, int size,
                           const kernels::buffer_layout& layout, std::int32_t status)
    : m_memory_provider(memory_provider),
      m_oob(oob),
      m_device(device),
      m_rank(rank),
      m_size(size),
      m_layout(layout) {
  identify_communicator();
  m_own = map(m_device.on_host ? 0 : buffer_of(rank, size), make_tables(status));
  make_host_buffers();
  const auto n = static_cast<std::size_t>(size);
  kernels::peer_buffer_table all{};
  // A pair uses one kind of memory for each direction, which both know.
  std::vector<char> reached(n);
  for (std::size_t r = 0; r < n; ++r) reached[r] = m_own.peers[r] != nullptr;
  std::vector<char> everywhere(n * n);
  if (const auto status = services().oob_allgather(&m_oob, reached.data(), everywhere.data(), n))
    throw_last(status, "kernels", "set-up", rank);
  m_unmapped = static_cast<int>(std::count(everywhere.begin(), everywhere.end(), 0));
  auto* own_host = static_cast<std::byte*>(m_pinned[static_cast<std::size_t>(rank)]);
  own_host = own_host ? own_host + page : nullptr;
  const auto self = static_cast<std::size_t>(rank);
  for (std::size_t r = 0; r < n; ++r) {
    auto* theirs = static_cast<std::byte*>(reached[r] ? m_own.peers[r] : m_pinned[r]);
    all.out[r] = theirs + (reached[r] ? 0 : page) + buffer_of(static_cast<int>(r), rank);
    all.in[r] = (everywhere[r * n + self] ? static_cast<std::byte*>(m_own.own.get()) : own_host) +
                buffer_of(rank, static_cast<int>(r));
  }
  m_spare = const_cast<std::byte*>(all.in[self]) + kernels::flags_bytes;
  for (std::size_t k = 1; k < n && n <= kernels::max_near_ranks; ++k) {
    m_near_out[static_cast<int>(k)] = all.out[(self + k) % n];
    m_near_in[static_cast<int>(k)] = all.in[(self + k) % n];
  }
  device.write(m_buffers.get(), &all, sizeof all);
  gather(0);  // no rank writes before all is zeroed
}

// What this rank has for itself, before ranks exchange descriptors of their memory.
std::int32_t peer_buffers::make_tables(std::int32_t status) try {
  if (status != SUCL_SUCCESS) return status;
  m_buffers = m_device.allocate(sizeof(kernels::peer_buffer_table));
  m_table = m_device.allocate(max_pieces * kernels::max_ranks * sizeof(void*));
  return SUCL_SUCCESS;
} catch (const error& e) {
  return static_cast<std::int32_t>(e.code());
}

// Where the buffer from a rank begins in the memory of its reader; of all ranks, the end of the
// memory. Only messages have a rank write to itself: the flags are enough for collectives.
std::uint64_t peer_buffers::buffer_of(int reader, int writer) const {
  const auto before = static_cast<std::uint64_t>(writer);
  if (writer <= reader || m_layout.messages.channels > 0) return before * m_layout.bytes();
  return (before - 1) * m_layout.bytes() + kernels::flags_bytes + page;
}

// Which ranks are of this process, and what it calls the communicator.
void peer_buffers::identify_communicator() {
  struct identity {
    std::uint64_t process, number;
  };
  // Numbers of the system are the same for processes of several containers.
  static const std::uint64_t this_process = [] {
    std::random_device any;
    return std::uint64_t{any()} << 32 | any();
  }();
  static std::atomic<std::uint64_t> made{0};
  const auto all = gather(identity{this_process, ++made});
  m_communicator = {all[0].process, all[0].number};
  for (const identity& i : all) m_of_process += i.process == this_process;
}

// Memory of this rank's device that peers may be at work on until they have left too; of all ranks
// of this process, if this is the last of them.
std::optional<std::vector<std::shared_ptr<void>>> peer_buffers::hand_over_memory() {
  memories mine{m_own.own};
  for (auto& piece : m_pieces)
    if (piece.own) mine.push_back(piece.own);
  for (auto& piece : m_shared)
    if (piece->device.own) mine.push_back(piece->device.own);
  const std::lock_guard lock(left().mutex);
  left_behind& before = left().by_communicator[m_communicator];
  before.all.insert(before.all.end(), mine.begin(), mine.end());
  if (++before.ranks < m_of_process) return std::nullopt;
  auto all = std::move(before.all);
  left().by_communicator.erase(m_communicator);
  return all;
}

// Waits until all ranks have left; false where some do not in time.
bool peer_buffers::all_leave() const {
  const bool fails = std::uncaught_exceptions() > 0;
  const auto until = std::chrono::steady_clock::now() + (fails ? wait_of_failing : longest_wait);
  for (int r = 0; r < m_size; ++r)
    while (!left_flag(m_host.peers[r]).load(std::memory_order_acquire)) {
      sched_yield();
      if (std::chrono::steady_clock::now() > until) return false;
    }
  return true;
}

peer_buffers::~peer_buffers() {
  if (!m_host.handle) return;
  if (!m_abandoned) {
    for (auto& piece : m_pieces)
      if (piece.own) unmap(piece);
    for (auto& piece : m_shared) unmap(piece->device);
    unmap(m_own);
    left_flag(m_host.base).store(1, std::memory_order_release);
  }
  auto memory = hand_over_memory();
  if (memory && !m_abandoned) m_abandoned = !all_leave();
  if (m_abandoned) {
    base::log(base::log_level::info, "kernels", "other ranks have not left a communicator: its ",
              "memory is kept");
    keep(memory ? std::move(*memory) : memories{m_own.own}, m_host.handle);
    for (auto& piece : m_shared) keep({piece->device.own}, piece->host.handle);
    return;
  }
  for (auto& piece : m_shared) give_back(*piece);
  free_host();
}

void peer_buffers::free_host() {
  for (void* memory : m_pinned)
    if (memory) m_device.release(memory);
  m_memory_provider.table->memory_destroy(m_memory_provider.comm, &m_host);
}

// Memory of the device, as far as peers can map it; that of each rank where there is none.
mapped_piece peer_buffers::map(std::uint64_t bytes, std::int32_t status) {
  mapped_piece piece;
  piece.bytes = bytes;
  if (bytes > base::max_bytes) {
    status = SUCL_ERROR_OUT_OF_MEMORY;
  } else if (bytes > 0 && status == SUCL_SUCCESS) {
    try {
      piece.own = m_device.allocate(bytes);
    } catch (const error& e) {
      status = static_cast<std::int32_t>(e.code());
    }
  }
  share(piece, status);
  return piece;
}

// Ranks exchange descriptors of their memory, or why they have none, and map it.
void peer_buffers::share(mapped_piece& piece, std::int32_t status) {
  memory_descriptor mine;
  mine.status = status;
  const auto* table = m_memory_provider.table;
  if (piece.own && SUCL_HAS_FIELD(table, sucl_backend, memory_close) && table->memory_export)
    mine.exported = table->memory_export(m_memory_provider.comm, piece.own.get(), piece.bytes,
                                         SUCL_MEMORY_DEVICE, &mine.key) == SUCL_SUCCESS;
  const auto descriptors = gather(mine);
  for (std::size_t r = 0; r < descriptors.size(); ++r)
    if (descriptors[r].status)
      base::fail(static_cast<errc>(descriptors[r].status),
                 "rank " + std::to_string(r) + " has no device memory for " +
                     std::to_string(piece.bytes) + " bytes that peers reach",
                 "Free memory of the device first, or lower staging in [backends.kernels]");
  piece.peers.assign(descriptors.size(), nullptr);
  for (std::size_t r = 0; r < descriptors.size(); ++r) {
    if (r == static_cast<std::size_t>(m_rank))
      piece.peers[r] = piece.own.get();
    else if (descriptors[r].exported && piece.own &&
             table->memory_open(m_memory_provider.comm, static_cast<int>(r), &descriptors[r].key,
                                &piece.peers[r]) != SUCL_SUCCESS)
      piece.peers[r] = nullptr;
  }
}

void peer_buffers::unmap(mapped_piece& piece) {
  for (int r = 0; r < static_cast<int>(piece.peers.size()); ++r)
    if (r != m_rank && piece.peers[static_cast<std::size_t>(r)])
      m_memory_provider.table->memory_close(m_memory_provider.comm, r,
                                            piece.peers[static_cast<std::size_t>(r)]);
  piece.peers.assign(static_cast<std::size_t>(m_size), nullptr);
}

// Host memory for ranks that cannot map a peer's, and a page before it in which a rank signals that
// it has left.
void peer_buffers::make_host_buffers() {
  char complete = 1;
  for (const void* peer : m_own.peers) complete = complete && peer;
  const auto all = gather(complete);
  const bool needed = std::find(all.begin(), all.end(), 0) != all.end();
  const std::uint64_t bytes =
      page + (needed ? m_layout.bytes() * static_cast<unsigned>(m_size) : 0);
  m_host.struct_size = sizeof m_host;
  if (const auto status =
          m_memory_provider.table->memory_create(m_memory_provider.comm, bytes, &m_host))
    throw_last(status, "kernels", "set-up", m_rank);
  m_pinned.assign(static_cast<std::size_t>(m_size), nullptr);
  char problem = 0;
  for (int r = 0; r < m_size; ++r) {
    if (!m_host.peers[r]) problem = 1;
    if (problem || !needed) continue;
    try {
      m_pinned[static_cast<std::size_t>(r)] = m_device.pin(m_host.peers[r], bytes);
    } catch (const error& e) {
      base::log(base::log_level::info, "kernels", e.what());
      problem = 2;
    }
  }
  const auto problems = gather(problem);
  const char worst = *std::max_element(problems.begin(), problems.end());
  if (worst == 0) return;
  unmap(m_own);
  free_host();
  if (worst == 1)
    base::fail(errc::unavailable, "some ranks share no memory: they are on several nodes");
  base::fail(errc::unavailable,
             "some ranks reach neither each other's device memory nor, from the device, memory "
             "of the host");
}

// ---- memory of plans

bool peer_buffers::share_device(shared_piece& piece, std::uint64_t bytes) {
  if (m_device.on_host) return false;
  piece.device = map(bytes);
  char complete = 1;
  for (const void* peer : piece.device.peers) complete = complete && peer;
  const auto all = gather(complete);
  if (std::find(all.begin(), all.end(), 0) == all.end()) return true;
  unmap(piece.device);
  gather(0);  // no peer has it mapped when it is freed
  piece.device = {};
  return false;
}

void peer_buffers::share_host(shared_piece& piece, std::uint64_t bytes) {
  piece.host.struct_size = sizeof piece.host;
  if (const auto status =
          m_memory_provider.table->memory_create(m_memory_provider.comm, bytes, &piece.host))
    throw_last(status, "kernels", "compile", m_rank);
  char problem = 0;
  for (int r = 0; r < m_size && !problem; ++r) try {
      void* memory = piece.host.peers[r];
      problem = !memory;
      if (memory) piece.pinned.push_back(m_device.pin(memory, bytes));
    } catch (const error& e) {
      base::log(base::log_level::info, "kernels", e.what());
      problem = 1;
    }
  const auto problems = gather(problem);
  const auto bad = std::find_if(problems.begin(), problems.end(), [](char p) { return p != 0; });
  if (bad == problems.end()) return;
  give_back(piece);
  base::fail(errc::out_of_memory,
             "rank " + std::to_string(bad - problems.begin()) + " does not reach " +
                 std::to_string(bytes) + " bytes of memory of the host that all ranks share",
             "Free memory of the host first, or raise the limit on locked memory (ulimit -l)");
}

void peer_buffers::give_back(shared_piece& piece) {
  for (void* memory : piece.pinned)
    if (memory) m_device.release(memory);
  piece.pinned.clear();
  if (piece.host.handle)
    m_memory_provider.table->memory_destroy(m_memory_provider.comm, &piece.host);
  piece.host = {};
  piece.device = {};
}

// Each rank releases memory at any time; memory that all have released is freed by all together.
void peer_buffers::reclaim() {
  constexpr std::size_t most = 64;
  const std::size_t count = std::min(m_shared.size(), most);
  std::uint64_t unused = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (m_shared[i]->use.expired()) unused |= std::uint64_t{1} << i;
  for (const std::uint64_t theirs : gather(unused)) unused &= theirs;
  if (unused == 0) return;
  const auto goes = [&](std::size_t i) { return i < most && (unused >> i & 1) != 0; };
  for (std::size_t i = 0; i < count; ++i)
    if (goes(i)) unmap(m_shared[i]->device);
  gather(0);  // no peer has it mapped when it is freed
  std::vector<std::unique_ptr<shared_piece>> kept;
  for (std::size_t i = 0; i < m_shared.size(); ++i) {
    if (goes(i))
      give_back(*m_shared[i]);
    else
      kept.push_back(std::move(m_shared[i]));
  }
  m_shared = std::move(kept);
}

std::shared_ptr<const reached_memory> peer_buffers::make_reached(std::uint64_t bytes) {
  bytes = std::max(page, base::round_up(bytes, page));
  reclaim();
  auto piece = std::make_unique<shared_piece>();
  const bool on_devices = share_device(*piece, bytes);
  if (!on_devices) share_host(*piece, bytes);
  auto made = std::make_shared<reached_memory>();
  for (int r = 0; r < m_size; ++r)
    made->of_rank.push_back(
        static_cast<std::byte*>(on_devices ? piece->device.peers[static_cast<std::size_t>(r)]
                                           : piece->pinned[static_cast<std::size_t>(r)]));
  char problem = 0;
  try {
    made->table = m_device.allocate(made->of_rank.size() * sizeof(void*));
    m_device.write(made->table.get(), made->of_rank.data(), made->of_rank.size() * sizeof(void*));
  } catch (const error&) {
    problem = 1;
  }
  piece->use = made;
  m_shared.push_back(std::move(piece));
  const auto problems = gather(problem);
  if (std::find(problems.begin(), problems.end(), 1) != problems.end())
    base::fail(errc::out_of_memory, "some rank has no device memory for a list of addresses",
               "Free memory of the device first");
  return made;
}

// The call boards lie behind the flags that say that a rank has left.
std::vector<std::byte*> peer_buffers::boards() const {
  constexpr std::uint64_t board_at = 128;
  static_assert(board_at + call_board::part_bytes <= page);
  std::vector<std::byte*> parts;
  for (int r = 0; r < m_size; ++r)
    parts.push_back(static_cast<std::byte*>(m_host.peers[r]) + board_at);
  return parts;
}

std::string peer_buffers::description() const {
  if (m_unmapped == 0) return "through memory of the devices";
  const int pairs = m_size * m_size;
  if (m_unmapped == pairs) return "through the host's memory";
  return "through memory of the devices, for " + std::to_string(m_unmapped) + " of " +
         std::to_string(pairs) + " pairs of ranks through the host's memory";
}

void* peer_buffers::add(std::uint64_t bytes, std::uint64_t sequence) {
  auto piece = map(std::max(page, base::round_up(bytes, page)));
  void* memory = piece.own.get();
  add(std::move(piece), sequence, true);
  return memory;
}

bool peer_buffers::attach(void* memory, std::uint64_t bytes, std::uint64_t sequence) {
  mapped_piece piece;
  piece.bytes = bytes;
  if (bytes > 0) piece.own = {memory, [](void*) {}};
  share(piece, SUCL_SUCCESS);
  return add(std::move(piece), sequence, false);
}

// Keeps it, on every rank, if all are reached, or in any case: pieces have the same numbers
// everywhere.
bool peer_buffers::add(mapped_piece piece, std::uint64_t sequence, bool keeps) {
  char complete = 1;
  for (const void* peer : piece.peers) complete = complete && peer;
  const auto all = gather(complete);
  std::size_t number = 0;
  while (number < m_pieces.size() && m_pieces[number].own) ++number;
  // What some rank does not reach is used through staging memory, as any other.
  const bool whole_team = std::find(all.begin(), all.end(), 0) == all.end() && number < max_pieces;
  if (!whole_team) {
    unmap(piece);
  } else {
    auto* row =
        static_cast<std::byte*>(m_table.get()) + number * kernels::max_ranks * sizeof(void*);
    m_device.write(row, piece.peers.data(), piece.peers.size() * sizeof(void*));
  }
  gather(0);  // the tables of all ranks are written
  if (!whole_team && !keeps) return false;
  const std::lock_guard lock(m_mutex);
  if (number == m_pieces.size()) m_pieces.emplace_back();
  m_pieces[number] = std::move(piece);
  if (whole_team && !m_first_use) m_first_use = sequence;
  return whole_team;
}

bool peer_buffers::remove(void* memory) {
  const auto it = std::find_if(m_pieces.begin(), m_pieces.end(), [&](const mapped_piece& p) {
    return p.own && p.own.get() == memory;
  });
  if (it == m_pieces.end()) return false;
  unmap(*it);
  gather(0);  // no peer has it mapped when it is freed
  const std::lock_guard lock(m_mutex);
  *it = {};
  return true;
}

bool peer_buffers::used_by(std::uint64_t sequence) const {
  const std::lock_guard lock(m_mutex);
  return m_first_use && sequence > *m_first_use;
}

std::uint64_t peer_buffers::key_of(const void* memory, std::uint64_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % 16 != 0) return 0;
  const std::lock_guard lock(m_mutex);
  for (std::size_t i = 0; i < m_pieces.size(); ++i) {
    const auto& p = m_pieces[i];
    const auto start = reinterpret_cast<std::uintptr_t>(p.own.get());
    if (!p.own || !p.peers[0] || !base::lies_within(address, bytes, start, p.bytes)) continue;
    return kernels::key_of(i, address - start);
  }
  return 0;
}

}  // namespace sucl::core
