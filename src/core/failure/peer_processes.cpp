// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/peer_processes.hpp"

#include "base/system/process_stat.hpp"
#include "core/exchange/topology.hpp"
#include "core/support/host_identity.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t text_limit = 700;
constexpr std::size_t label_limit = 120;
constexpr std::size_t max_steps = 8;
constexpr std::size_t max_diagnoses = 8;
constexpr std::size_t max_ends = 128;
constexpr std::uint32_t begun = 1;
constexpr std::uint32_t finalized = 2;

/// A text that one process writes once and others read when it is there.
template <std::size_t Limit>
struct line {
  std::atomic<std::uint32_t> there{0};
  char text[Limit]{};

  void write(const std::string& what) {
    there.store(0, std::memory_order_release);
    std::strncpy(text, what.c_str(), Limit - 1);
    text[Limit - 1] = '\0';
    there.store(1, std::memory_order_release);
  }
  std::optional<std::string> read() const {
    if (!there.load(std::memory_order_acquire)) return std::nullopt;
    return std::string(text, strnlen(text, Limit));
  }
};

/// One step of set-up; written by one thread.
struct step_line {
  std::atomic<std::uint32_t> taken{0};
  line<label_limit> label;
};

struct diagnosis_line {
  std::uint64_t communicator = 0;
  std::int32_t code = 0;
  line<text_limit> text;
};

/// The communicator is 0 while the rest is being written.
struct end_line {
  std::atomic<std::uint64_t> communicator{0};
  std::atomic<std::uint64_t> calls{0}, replays{0};
  std::atomic<communicator_end::manner> how{communicator_end::manner::regular};
};

}  // namespace

struct board_slot {
  std::atomic<std::uint32_t> leaving;  ///< 0, begun or finalized
  std::atomic<std::uint32_t> failing;  ///< taken by the process that writes the failure
  std::atomic<std::uint32_t> reported;
  std::int32_t code;
  line<text_limit> failure;
  std::array<step_line, max_steps> steps;
  line<label_limit> failed_step;
  std::int32_t step_code;
  line<text_limit> step_failure;
  std::atomic<std::uint64_t> diagnoses;  ///< so far; the last ones are kept
  std::array<diagnosis_line, max_diagnoses> last;
  std::atomic<std::uint64_t> ends;  ///< of communicators so far; the last ones are kept
  std::array<end_line, max_ends> last_ends;
  std::atomic<std::uint32_t> calls_shown;
  call_checksum calls;
};

struct job_board_header {
  std::atomic<std::uint64_t> published;
  std::atomic<std::uint64_t> ends;
};

namespace {

constexpr std::size_t header_bytes = 4096;
constexpr std::size_t slot_bytes = (sizeof(board_slot) + 63) / 64 * 64;

std::size_t bytes_for(int ranks) {
  return header_bytes + slot_bytes * static_cast<std::size_t>(ranks);
}

int make_memory(std::size_t bytes) {
  const int made = memfd_create("sucl-job", MFD_CLOEXEC);
  if (made >= 0 && ftruncate(made, static_cast<off_t>(bytes)) == 0) return made;
  if (made >= 0) close(made);
  return -1;
}

// State letter of a process of this host; 0: unknown or gone.
char process_state(std::int64_t pid) {
  const auto known = base::stat_of(static_cast<pid_t>(pid));
  return known ? known->state : '\0';
}

}  // namespace

error_info info_of(const diagnosis& v) {
  error_info info;
  info.code = v.code;
  info.message = v.text;
  switch (v.code) {
    case errc::timeout:
      info.hint = "Check what the named ranks do; a larger SUCL_TIMEOUT waits longer";
      // That is found without a timeout, and the text has the cure.
      if (v.text.find("waits for itself in") != std::string::npos) info.hint.clear();
      break;
    case errc::shut_down: info.hint = "Make a new communicator, or process group"; break;
    default: info.hint = "Look for the reason in the output of the named ranks";
  }
  return info;
}

bool is_stopped_process(std::int64_t process) {
  const char state = process_state(process);
  return state == 'T' || state == 't';
}

/// The record of a process when the job starts.
struct peer_processes::process_record {
  std::string host;
  std::int64_t process = 0;
  int memory = -1;  ///< descriptor of a board that it has made

  std::string packed() const {
    return std::to_string(process) + " " + std::to_string(memory) + " " + host;
  }
  static process_record of(const std::string& text) {
    process_record c;
    std::istringstream in(text);
    in >> c.process >> c.memory;
    in.ignore(1);
    std::getline(in, c.host);
    return c;
  }
};

std::vector<peer_processes::process_record> peer_processes::exchange_records(const sucl_oob& oob,
                                                                             int size, int memory) {
  const process_record mine{host_identity(), getpid(), memory};
  std::vector<process_record> records;
  for (const auto& text : exchange(oob, size, mine.packed()))
    records.push_back(process_record::of(text));
  return records;
}

peer_processes::peer_processes(const sucl_oob& oob, int rank, int size)
    : peer_processes(exchange_records(oob, size, make_memory(bytes_for(size))), rank, true) {}

std::vector<std::shared_ptr<peer_processes>> peer_processes::of_ranks(
    const sucl_oob& oob, int process, const std::vector<int>& counts) {
  int size = 0, first = 0;
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (static_cast<int>(p) == process) first = size;
    size += counts[p];
  }
  const auto of_processes =
      exchange_records(oob, static_cast<int>(counts.size()), make_memory(bytes_for(size)));
  std::vector<process_record> records;
  for (std::size_t p = 0; p < counts.size(); ++p)
    records.insert(records.end(), static_cast<std::size_t>(counts[p]), of_processes[p]);
  std::vector<std::shared_ptr<peer_processes>> made;
  for (int i = counts[static_cast<std::size_t>(process)] - 1; i >= 0; --i)  // the first one owns it
    made.insert(made.begin(),
                std::shared_ptr<peer_processes>(new peer_processes(records, first + i, i == 0)));
  return made;
}

// `owns`: the memory of this process's record is this object's to keep or to close.
peer_processes::peer_processes(const std::vector<process_record>& records, int rank, bool owns)
    : m_rank(rank), m_peers(records.size()), m_bytes(bytes_for(static_cast<int>(records.size()))) {
  const process_record& mine = records[static_cast<std::size_t>(rank)];
  const auto near = [&](const process_record& c) { return c.host == mine.host; };
  std::set<std::pair<std::string, std::int64_t>> processes;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const process_record& c = records[r];
    m_peers[r].process = c.process;
    m_shares_process = !processes.emplace(c.host, c.process).second || m_shares_process;
    if (!near(c) || c.process == mine.process) continue;
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(c.process), 0));
    // Old kernels lack the call; then only a process that answers no control message is noticed.
    if (fd >= 0 || errno == ESRCH) m_peers[r].descriptor = fd >= 0 ? fd : -1;
  }
  const auto maker = std::find_if(records.begin(), records.end(), near);
  const bool own = maker->process == mine.process;
  map_board(maker->process, maker->memory, own);
  if (owns && maker->memory == mine.memory && own)
    m_descriptor = mine.memory;
  else if (owns && mine.memory >= 0)
    close(mine.memory);
  if (!m_memory) return;
  for (std::size_t r = 0; r < records.size(); ++r)
    if (near(records[r]))
      m_peers[r].slot = reinterpret_cast<board_slot*>(static_cast<std::byte*>(m_memory) +
                                                      header_bytes + slot_bytes * r);
}

// The memory of the rank that has made it is reached by its descriptor there.
void peer_processes::map_board(std::int64_t owner, int descriptor, bool own) {
  if (descriptor < 0) return;
  int fd = descriptor;
  if (!own) {
    const auto path = "/proc/" + std::to_string(owner) + "/fd/" + std::to_string(descriptor);
    fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  if (fd < 0) return;
  struct stat about{};
  void* at = MAP_FAILED;
  if (fstat(fd, &about) == 0 && about.st_size == static_cast<off_t>(m_bytes))
    at = mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (!own) close(fd);
  if (at != MAP_FAILED) m_memory = at;
}

peer_processes::~peer_processes() {
  for (const auto& p : m_peers)
    if (p.descriptor >= 0) close(p.descriptor);
  if (m_memory) munmap(m_memory, m_bytes);
  if (m_descriptor >= 0) close(m_descriptor);
}

bool peer_processes::has_ended(int rank) const {
  const peer& p = at(rank);
  if (m_shares_process && has_finalized(rank)) return true;
  if (p.descriptor == none) return false;
  pollfd query{p.descriptor, POLLIN, 0};
  return p.descriptor < 0 || ::poll(&query, 1, 0) > 0;
}

bool peer_processes::is_stopped(int rank) const {
  const peer& p = at(rank);
  if (p.descriptor == none) return false;
  return is_stopped_process(p.process);
}

bool peer_processes::is_reporting(int rank) const {
  const board_slot* s = at(rank).slot;
  return s && is_near(rank) && s->failing.load(std::memory_order_acquire) != 0 &&
         s->reported.load(std::memory_order_acquire) == 0 && !has_ended(rank);
}

bool peer_processes::is_leaving(int rank) const {
  const board_slot* s = at(rank).slot;
  return s && s->leaving.load(std::memory_order_acquire) != 0;
}

bool peer_processes::has_finalized(int rank) const {
  const board_slot* s = at(rank).slot;
  return s && s->leaving.load(std::memory_order_acquire) == finalized;
}

std::vector<call_checksum> peer_processes::checksums() const {
  std::vector<call_checksum> all;
  for (const peer& p : m_peers) {
    if (!p.slot || p.slot->calls_shown.load(std::memory_order_acquire) == 0) return {};
    all.push_back(p.slot->calls);
  }
  return all;
}

std::optional<diagnosis> peer_processes::failure(int rank) const {
  const board_slot* s = at(rank).slot;
  const auto text = s ? s->failure.read() : std::nullopt;
  if (!text) return std::nullopt;
  return diagnosis{static_cast<errc>(s->code), *text};
}

std::optional<diagnosis> peer_processes::failure_in(int rank, const std::string& label) const {
  const board_slot* s = at(rank).slot;
  if (!s || s->failed_step.read() != label.substr(0, label_limit - 1)) return std::nullopt;
  const auto text = s->step_failure.read();
  if (!text) return std::nullopt;
  return diagnosis{static_cast<errc>(s->step_code), *text};
}

std::optional<bool> peer_processes::is_in(int rank, const std::string& label) const {
  const board_slot* s = at(rank).slot;
  if (!s) return std::nullopt;
  const auto short_label = label.substr(0, label_limit - 1);
  return std::any_of(s->steps.begin(), s->steps.end(),
                     [&](const step_line& step) { return step.label.read() == short_label; });
}

std::optional<diagnosis> peer_processes::published(std::uint64_t communicator) const {
  for (const peer& p : m_peers) {
    if (!p.slot) continue;
    for (const diagnosis_line& v : p.slot->last) {
      const auto text = v.text.read();
      if (text && v.communicator == communicator)
        return diagnosis{static_cast<errc>(v.code), *text};
    }
  }
  return std::nullopt;
}

std::uint64_t peer_processes::published_so_far() const {
  if (!m_memory) return 0;
  return static_cast<const job_board_header*>(m_memory)->published.load(std::memory_order_acquire);
}

std::optional<communicator_end> peer_processes::end_of(int rank, std::uint64_t communicator) const {
  const board_slot* s = at(rank).slot;
  if (!s) return std::nullopt;
  const auto kept = std::min<std::uint64_t>(s->ends.load(std::memory_order_acquire), max_ends);
  for (std::size_t i = 0; i < kept; ++i) {
    const end_line& line = s->last_ends[i];
    if (line.communicator.load(std::memory_order_acquire) != communicator) continue;
    communicator_end e;
    e.how = line.how.load(std::memory_order_acquire);
    e.calls = line.calls.load(std::memory_order_acquire);
    e.replays = line.replays.load(std::memory_order_acquire);
    if (line.communicator.load(std::memory_order_relaxed) == communicator) return e;
  }
  return std::nullopt;
}

std::uint64_t peer_processes::ends_so_far() const {
  if (!m_memory) return 0;
  return static_cast<const job_board_header*>(m_memory)->ends.load(std::memory_order_acquire);
}

void peer_processes::leave() {
  if (own()) own()->leaving.store(begun, std::memory_order_release);
}

void peer_processes::mark_finalized() {
  if (own()) own()->leaving.store(finalized, std::memory_order_release);
}

void peer_processes::show(const call_checksum& calls) {
  if (!own()) return;
  own()->calls = calls;
  own()->calls_shown.store(1, std::memory_order_release);
}

peer_processes::departures peer_processes::gone(const std::vector<int>& ranks) const {
  departures d;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int r = ranks[i];
    if (r == m_rank) continue;
    const bool ended = has_ended(r);
    if (!ended && !is_leaving(r)) continue;
    if (const auto why = failure(r))
      d.failure = why;
    else if (ended)
      (is_leaving(r) ? d.left : d.died).push_back(static_cast<int>(i));
  }
  return d;
}

void peer_processes::fail(const diagnosis& why) {
  board_slot* s = own();
  if (!s || s->failing.exchange(1)) return;
  s->code = static_cast<std::int32_t>(why.code);
  s->failure.write(why.text);
}

void peer_processes::recover() {
  board_slot* s = own();
  if (!s) return;
  s->failure.there.store(0, std::memory_order_release);
  s->failing.store(0);
}

void peer_processes::end_report() {
  if (own()) own()->reported.store(1, std::memory_order_release);
}

void peer_processes::fail_in(const std::string& label, const diagnosis& why) {
  board_slot* s = own();
  if (!s) return;
  s->failed_step.write("");
  s->step_code = static_cast<std::int32_t>(why.code);
  s->step_failure.write(why.text);
  s->failed_step.write(label);
}

int peer_processes::enter(const std::string& label) {
  board_slot* s = own();
  if (!s) return -1;
  s->failed_step.write("");
  for (std::size_t i = 0; i < max_steps; ++i) {
    if (s->steps[i].taken.exchange(1)) continue;
    s->steps[i].label.write(label);
    return static_cast<int>(i);
  }
  return -1;
}

void peer_processes::exit(int line) {
  if (line < 0 || !own()) return;
  step_line& step = own()->steps[static_cast<std::size_t>(line)];
  step.label.write("");
  step.taken.store(0);
}

void peer_processes::publish(std::uint64_t communicator, const diagnosis& v) {
  board_slot* s = own();
  if (!s) return;
  diagnosis_line& line = s->last[s->diagnoses.fetch_add(1) % max_diagnoses];
  line.text.there.store(0, std::memory_order_release);
  line.communicator = communicator;
  line.code = static_cast<std::int32_t>(v.code);
  line.text.write(v.text);
  static_cast<job_board_header*>(m_memory)->published.fetch_add(1, std::memory_order_release);
}

void peer_processes::end(std::uint64_t communicator, const communicator_end& e) {
  board_slot* s = own();
  if (!s) return;
  end_line& line = s->last_ends[s->ends.fetch_add(1) % max_ends];
  line.communicator.store(0, std::memory_order_relaxed);
  // A reader that sees one of these knows that the line is being written.
  line.how.store(e.how, std::memory_order_release);
  line.calls.store(e.calls, std::memory_order_release);
  line.replays.store(e.replays, std::memory_order_release);
  line.communicator.store(communicator, std::memory_order_release);
  static_cast<job_board_header*>(m_memory)->ends.fetch_add(1, std::memory_order_release);
}

}  // namespace sucl::core
