// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/flight_recorder.hpp"

#include "base/log.hpp"
#include "base/system/file.hpp"
#include "core/operation/call_signature.hpp"
#include "core/operation/operation.hpp"
#include "core/record/record_signals.hpp"
#include "core/support/host_identity.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

namespace sucl::core {
namespace {

namespace fs = std::filesystem;

constexpr int max_writes = 8;

template <std::size_t N>
void copy(std::array<char, N>& to, const std::string& text) noexcept {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(to.data(), text.data(), n);
  to[n] = '\0';
}

// The file beside it whose name begins with a dot. In a signal handler too.
std::array<char, 1025> hidden(const std::array<char, 1024>& path) noexcept {
  std::array<char, 1025> other{};
  const std::size_t name =
      static_cast<std::size_t>(std::strrchr(path.data(), '/') - path.data()) + 1;
  std::memcpy(other.data(), path.data(), name);
  other[name] = '.';
  std::memcpy(other.data() + name + 1, path.data() + name, std::strlen(path.data() + name) + 1);
  return other;
}

// Removes records that are older than a week.
void remove_old(const fs::path& folder) {
  constexpr auto kept = std::chrono::hours(24 * 7);
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored)) {
    const auto written = file.last_write_time(ignored);
    const std::string name = file.path().filename().string();
    if (!ignored && (name.rfind("job-", 0) == 0 || name.rfind(".job-", 0) == 0) &&
        fs::file_time_type::clock::now() - written > kept)
      fs::remove(file.path(), ignored);
  }
}

}  // namespace

std::string record_folder() {
  const std::string cache = base::cache_folder();
  return cache.empty() ? cache : cache + "/records";
}

std::string record_name(std::uint64_t job, int rank) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "job-%016" PRIx64 ".rank-%d", job, rank);
  return name.data();
}

void flight_recorder::begin(std::uint64_t job, int rank, int size, const std::string& folder,
                            bool visible) {
  if (m_memory) return;
  if (visible) {
    m_descriptor = memfd_create(memory_name, MFD_CLOEXEC);
    if (m_descriptor >= 0 && ftruncate(m_descriptor, sizeof(flight_record)) != 0) {
      close(m_descriptor);
      m_descriptor = -1;
    }
  }
  const int flags = m_descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory =
      mmap(nullptr, sizeof(flight_record), PROT_READ | PROT_WRITE, flags, m_descriptor, 0);
  if (memory == MAP_FAILED) return;
  auto* record = static_cast<flight_record*>(memory);  // zeros are entries of nothing
  auto* head = new (&record->head) record_header;
  head->job = job;
  head->rank = rank;
  head->size = size;
  head->process = getpid();
  copy(head->host, host_name());
  m_is_default = folder.empty();
  const std::string in = folder.empty() ? record_folder() : folder == "none" ? "" : folder;
  const std::string file = in.empty() ? in : in + "/" + record_name(job, rank);
  if (file.size() < m_path.size()) copy(m_path, file);
  m_memory = record;
  if (visible && m_path[0]) write_on_signals(*this);
}

flight_recorder::~flight_recorder() {
  forget_on_signals(*this);
  if (m_memory) munmap(m_memory, sizeof(flight_record));
  if (m_descriptor >= 0) close(m_descriptor);
}

// May run in a signal handler.
void flight_recorder::make_folder() const noexcept {
  std::array<char, 1024> path = m_path;
  for (std::size_t i = 1; i < path.size() && path[i]; ++i)
    if (path[i] == '/') {
      path[i] = '\0';
      mkdir(path.data(), 0700);
      path[i] = '/';
    }
}

void flight_recorder::fail(const std::string& what) noexcept try {
  if (!m_memory) return;
  const std::lock_guard lock(m_mutex);
  if (!m_memory->head.failure[0]) copy(m_memory->head.failure, what);
  if (!m_path[0] || m_written++ >= max_writes) return;
  const fs::path folder = fs::path(m_path.data()).parent_path();
  if (m_written == 1 && m_is_default) remove_old(folder);
  if (write() && m_written == 1)
    base::log(base::log_level::warn, "record", "the last operations of this rank are in ",
              m_path.data(), "; `sucl diagnose ", folder.string(),
              "` says which rank is late or wrong");
} catch (const std::exception&) {  // the failure is what matters
}

// A rank that cannot write, as in a folder of another user, goes on as it would. The kernel copies
// what other threads write meanwhile, as it does for another process that reads the memory. What
// was written before stays until all is there: a launcher may kill the rank meanwhile.
bool flight_recorder::write() const noexcept {
  if (!m_memory || !m_path[0]) return false;
  make_folder();
  const auto unfinished = hidden(m_path);
  const int file =
      open(unfinished.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  const auto* bytes = reinterpret_cast<const char*>(m_memory);
  const std::uint64_t used =
      std::min(m_memory->head.next.load(std::memory_order_relaxed), flight_record::slots);
  const std::size_t size = sizeof(record_header) + used * sizeof(record_entry);
  std::size_t at = 0;
  while (at < size) {
    const long n = syscall(SYS_write, file, bytes + at, size - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  close(file);
  if (at == size && rename(unfinished.data(), m_path.data()) == 0) return true;
  unlink(unfinished.data());
  return false;
}

void flight_recorder::end_by(int signal, bool crash) noexcept {
  if (!m_memory || m_memory->head.process != getpid()) return;  // a child's is its parent's
  m_memory->head.signal = signal;
  if (!write() || !crash) return;
  const auto say = [](const char* text) {
    return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0;
  };
  if (say("sucl: the last operations of this rank are in ") && say(m_path.data())) say("\n");
}

bool flight_recorder::busy() const noexcept {
  if (!m_memory) return false;
  return std::any_of(m_memory->entries.begin(), m_memory->entries.end(),
                     [](const record_entry& e) { return is_open(e.state); });
}

void flight_recorder::join(std::uint64_t communicator, int rank, int size) noexcept {
  if (!m_memory) return;
  const std::lock_guard lock(m_mutex);
  auto& members = m_memory->head.members;
  auto at = std::find_if(members.begin(), members.end(),
                         [](const record_member& m) { return m.communicator == 0; });
  if (at == members.end())
    at = std::find_if(members.begin(), members.end(),
                      [](const record_member& m) { return m.ended != 0; });
  if (at == members.end()) return;
  *at = {communicator, rank, size, 0, 0};
}

void flight_recorder::leave(std::uint64_t communicator) noexcept {
  if (!m_memory) return;
  const std::lock_guard lock(m_mutex);
  for (record_member& m : m_memory->head.members)
    if (m.communicator == communicator) m.ended = 1;
}

void record_writer::begin(flight_recorder& to, std::uint64_t communicator, int rank, int size) {
  m_to = &to;
  m_record = to.memory();
  m_id = communicator;
  m_communicator = static_cast<std::uint32_t>(communicator);
  m_size = size;
  if (m_record) m_next = &m_record->head.next;
  to.join(communicator, rank, size);
}

void record_writer::end() noexcept {
  if (m_to) m_to->leave(m_id);
  m_to = nullptr;
  m_record = nullptr;
  m_next = &s_none;
  m_at = m_end = nullptr;
  m_last = {};
}

// Writers write without regard to each other: each has a few slots for itself. What is not over
// keeps its slot, so a record that is full of such operations has no free one.
void record_writer::take() noexcept {
  constexpr std::uint64_t slots = flight_record::slots;
  constexpr std::uint64_t chunk = flight_record::chunk;
  for (std::uint64_t tries = 0; m_record && tries < slots + chunk; ++tries) {
    auto& next = m_record->head.next;
    if (m_at == m_end || next.load(std::memory_order_relaxed) >= m_expires) {
      const std::uint64_t first = next.fetch_add(chunk, std::memory_order_relaxed);
      m_at = &m_record->entries[first % slots];
      m_end = m_at + chunk;
      m_expires = first + slots;
      m_serial = first;
    }
    if (!is_open(m_at->state.load(std::memory_order_acquire))) return;
    ++m_at;
    ++m_serial;
  }
  m_at = &m_discarded;
  m_end = m_at + 1;
  m_expires = ~std::uint64_t{0};
}

// What `e` has no room for, or what says more of a group than its own fields.
void record_writer::complete(record_entry& e, const sucl_operation& o) const noexcept {
  if (is_point_to_point(o.kind)) {
    const sucl_operation& first = o.parts[0];
    e.type = first.type;
    e.root = first.kind == SUCL_KIND_RECV ? -1 : first.root;
    e.source = first.kind == SUCL_KIND_SEND ? -1 : first.source;
    e.tag = first.tag;
    e.element_size = static_cast<std::uint32_t>(first.element_size);
    e.count = o.part_count;
    return;
  }
  const call_signature s = signature_of(o, m_size);
  e.op = s.op;
  e.root = s.root;
  e.count = s.count;
  e.source = static_cast<std::int32_t>(s.hash ^ s.hash >> 32);
}

record_entry* record_writer::note_blocking(const sucl_operation& o, std::uint64_t number,
                                           record_state state) noexcept {
  record_entry* const last = m_last.entry;
  const bool plain = !needs_more(o) && number != 0;
  if (plain && is_there(m_last) && last->kind == o.kind && last->type == o.type &&
      last->op == o.op && last->root == o.root && last->tag == o.tag && last->count == o.count &&
      last->element_size == o.element_size && repeat(m_last, number)) {
    set(last, state);
    return last;
  }
  record_entry* const e = note(o, number, state);
  m_last = plain ? mark_of(e, number) : mark{};
  return e;
}

sucl_operation recorded_operation(const record_entry& e) {
  sucl_operation o{};
  o.kind = e.kind;
  o.type = e.type;
  o.op = e.op;
  o.root = e.root;
  if (is_point_to_point(e.kind)) o.source = e.source;
  o.tag = e.tag;
  o.element_size = e.element_size;
  o.count = o.plan = e.count;
  return o;
}

}  // namespace sucl::core
