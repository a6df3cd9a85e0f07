// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/runner.hpp"

#include "base/error.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace sucl::core {
namespace {

using action = step::action;

// Below this, data beside the flag is as fast as can be.
constexpr std::uint64_t least_mapped_bytes = 2048;

// Looks at what is not there before the processor is given away, some ten nanoseconds each: some
// microseconds where there is a processor for each rank, none to speak of where the peer needs it.
int patience(int ranks) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return processors >= ranks ? 500 : 10;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Short copies, which are most, without a call.
inline void move_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace

runner::runner(const channel& memory, int rank, int size, const sharing& how,
               std::span<const tuning_row> tuning)
    : m_rank(rank),
      m_size(size),
      m_lender(memory),
      m_memory(memory, rank, size, how),
      m_shapes(rank, size, how.slot_bytes, tuning),
      m_looks(patience(size)),
      m_known(static_cast<std::size_t>(size), 0) {
  m_sure = m_memory.slots();
}

runner::~runner() {
  for (mapped_memory& m : m_memories) m_lender.table->memory_destroy(m_lender.comm, &m.region);
}

execution* runner::start(const sucl_operation& o) {
  if (m_shapes.crowded() && m_head == m_queue.size() && m_begun == m_retired) m_shapes.forget();
  if (m_free.empty()) {
    m_requests.push_back(std::make_unique<execution>());
    m_requests.back()->peer_send.resize(static_cast<std::size_t>(m_size));
    m_requests.back()->peer_recv.resize(static_cast<std::size_t>(m_size));
    m_free.push_back(m_requests.back().get());
  }
  execution* r = m_free.back();
  r->announcing = may_be_mapped(o);
  if (r->announcing) {
    sucl_operation nothing{};
    nothing.kind = SUCL_KIND_BARRIER;
    r->how = &m_shapes.of(nothing, reach::staged);
    // What is wrong with its plans is found now.
    m_shapes.of(o, reach::mapped);
    m_shapes.of(o, reach::staged);
  } else {
    r->how = &m_shapes.of(o, reach::staged);
  }
  m_free.pop_back();
  r->what = o;
  r->fold = reduces(static_cast<kind>(o.kind)) ? find_fold(o.type, o.op) : nullptr;
  r->element_size = o.element_size;
  r->started = r->finished = 0;
  r->send = static_cast<std::byte*>(const_cast<void*>(o.send));
  r->recv = static_cast<std::byte*>(o.recv);
  if (o.flags & SUCL_FLAG_IN_PLACE) {
    r->send = r->recv;
    const auto self = static_cast<std::uint64_t>(m_rank);
    if (o.kind == SUCL_KIND_ALLGATHER || o.kind == SUCL_KIND_GATHER)
      r->send += self * o.count * o.element_size;
    if (o.kind == SUCL_KIND_ALLGATHERV) r->send += o.recv_displs[self] * o.element_size;
  }
  if (!r->done()) m_queue.push_back(r);
  return r;
}

// ---- memory that is mapped

namespace {

// What a rank tells of its memory beside the word of its barrier.
struct card {
  std::uint64_t send_memory, send_offset;  // number of the memory, 0: none
  std::uint64_t recv_memory, recv_offset;
  std::uint64_t in_place;
};
static_assert(sizeof(card) <= shared_memory::inline_bytes);

// Whether this rank has input, or output, that others may look at.
bool gives(const sucl_operation& o, int rank) {
  const bool from_root = o.kind == SUCL_KIND_BROADCAST || o.kind == SUCL_KIND_SCATTER;
  return !from_root || rank == o.root;
}

}  // namespace

void runner::add(const mapped_memory& m, std::uint64_t sequence) {
  m_memories.push_back(m);
  m_mapped_since = std::min(m_mapped_since, sequence);
}

bool runner::remove(const void* base, mapped_memory& m) {
  const auto found = std::find_if(m_memories.begin(), m_memories.end(),
                                  [&](const auto& known) { return known.region.base == base; });
  if (found == m_memories.end()) return false;
  m = *found;
  m_memories.erase(found);
  return true;
}

// Whether it is worth to find out if all its memory is mapped. The same on every rank.
bool runner::may_be_mapped(const sucl_operation& o) const {
  if (o.sequence <= m_mapped_since) return false;
  if (o.kind == SUCL_KIND_BARRIER || o.kind == SUCL_KIND_SCAN || o.kind == SUCL_KIND_EXSCAN ||
      o.kind == SUCL_KIND_ALLGATHERV || o.kind == SUCL_KIND_REDUCE_SCATTER)
    return false;
  return o.count * o.element_size >= least_mapped_bytes;
}

void runner::announce(const run& r) const {
  const execution& e = *r.owner;
  card mine{};
  for (const mapped_memory& m : m_memories) {
    const auto* base = static_cast<const std::byte*>(m.region.base);
    if (e.send && m.holds(e.send)) {
      mine.send_memory = m.number;
      mine.send_offset = static_cast<std::uint64_t>(e.send - base);
    }
    if (e.recv && m.holds(e.recv)) {
      mine.recv_memory = m.number;
      mine.recv_offset = static_cast<std::uint64_t>(e.recv - base);
    }
  }
  mine.in_place = e.what.flags & SUCL_FLAG_IN_PLACE;
  std::memcpy(r.scratch[m_rank], &mine, sizeof mine);
}

// Finds the memory of all ranks; false if some of it is out of reach. All ranks see the same.
bool runner::all_mapped(execution& e, const run& r, const program& code) const {
  const auto find = [&](std::uint64_t number, int rank, std::uint64_t offset) -> std::byte* {
    for (const mapped_memory& m : m_memories)
      if (number && m.number == number)
        return static_cast<std::byte*>(m.region.peers[rank]) + offset;
    return nullptr;
  };
  for (int rank = 0; rank < m_size; ++rank) {
    card theirs;
    std::memcpy(&theirs, r.scratch[rank], sizeof theirs);
    const auto at = static_cast<std::size_t>(rank);
    e.peer_send[at] = find(theirs.send_memory, rank, theirs.send_offset);
    e.peer_recv[at] = find(theirs.recv_memory, rank, theirs.recv_offset);
    if (code.maps_send && gives(e.what, rank) && !e.peer_send[at]) return false;
    if (code.maps_recv && !e.peer_recv[at]) return false;
    if (theirs.in_place && !code.in_place) return false;
  }
  return true;
}

// Everybody has announced: the operation goes on straight from and to the memory of all, or staged.
void runner::decide(const run& r) {
  execution& e = *r.owner;
  e.announcing = false;
  e.started = 0;
  const shape& direct = m_shapes.of(e.what, reach::mapped);
  e.how = all_mapped(e, r, direct.of(0)) && all_mapped(e, r, direct.of(direct.slices - 1))
              ? &direct
              : &m_shapes.of(e.what, reach::staged);
}

// ---- runs

// Whether every rank has finished the run that used the slot of run `number` before.
bool runner::may_begin(std::uint64_t number) {
  if (number <= m_sure) return true;
  const std::uint64_t before = number - m_memory.slots();
  for (int r = 0; r < m_size; ++r) {
    auto& known = m_known[static_cast<std::size_t>(r)];
    if (r == m_rank) {
      known = m_retired;
    } else if (known < before) {
      known = std::max(known, m_memory.finished(r).load(std::memory_order_acquire));
    }
    if (known < before) return false;
  }
  m_sure = *std::min_element(m_known.begin(), m_known.end()) + m_memory.slots();
  return true;
}

bool runner::begin_next() {
  if (m_head == m_queue.size() || m_begun - m_retired == window) return false;
  const std::uint64_t number = m_begun + 1;
  if (!may_begin(number)) return false;
  execution* owner = m_queue[m_head];
  if (owner->started == owner->how->slices) return false;  // its announcement is under way
  run& r = m_runs[number % window];
  r.owner = owner;
  r.code = &owner->how->of(owner->started);
  r.number = number;
  r.shift = owner->started * owner->how->slice_bytes;
  r.slot = static_cast<std::uint32_t>(number % m_memory.slots());
  r.scratch = m_memory.scratch(r.slot, r.code->scratch_bytes <= shared_memory::inline_bytes);
  r.ended = 0;
  for (std::size_t c = 0; c < r.code->channels.size(); ++c) r.at[c] = 0;
  m_begun = number;
  if (owner->announcing) {
    ++owner->started;
    announce(r);
    return true;
  }
  if (++owner->started < owner->how->slices) return true;
  if (++m_head == m_queue.size()) {
    m_queue.clear();
    m_head = 0;
  }
  return true;
}

inline std::byte* runner::address(const run& r, const operand& o) const {
  if (o.where == plan::space::scratch) return r.scratch[o.rank] + o.offset;
  const execution& q = *r.owner;
  const bool sends = o.where == plan::space::send;
  std::byte* begin = sends ? q.send : q.recv;
  if (o.rank != m_rank)
    begin = (sends ? q.peer_send : q.peer_recv)[static_cast<std::size_t>(o.rank)];
  std::byte* base = begin + r.shift + o.offset;
  if (o.block < 0) return base;
  const shape& s = *q.how;
  const auto block = static_cast<std::size_t>(o.block);
  if (sends && !s.positions.empty()) return base + s.positions[block];
  if (!sends && s.positions_scale) return base + q.what.recv_displs[block] * s.positions_scale;
  return base + block * s.block_bytes;
}

inline void runner::copy(const run& r, const step& s) const {
  const execution& q = *r.owner;
  // The root of a scatter in place keeps its block where it lies.
  if (s.own_block && (q.what.flags & SUCL_FLAG_IN_PLACE) && q.what.kind == SUCL_KIND_SCATTER)
    return;
  std::byte* to = address(r, s.to);
  const std::byte* from = address(r, r.code->sources[s.first]);
  if (to != from) move_bytes(to, from, s.bytes);
}

inline void runner::fold(const run& r, const step& s) const {
  constexpr std::size_t most = 64;
  const void* from[most];
  const operand* o = &r.code->sources[s.first];
  std::byte* to = address(r, s.to);
  const std::uint64_t count = s.bytes / r.owner->element_size;
  for (std::uint32_t i = 0; i < s.sources; ++i) from[i] = address(r, o[i]);
  r.owner->fold(to, from, s.sources, count, m_size);
}

inline bool runner::wait(run& r, const step& s, int looks) {
  const auto word = m_memory.at(r.slot, s.peer, s.channel);
  const std::uint64_t wanted = value_of(r, s.value);
  while (word.load(std::memory_order_acquire) < wanted) {
    if (looks-- <= 0) return false;
    relax();
  }
  // Whoever is in this run has finished those that are out of its window.
  auto& known = m_known[static_cast<std::size_t>(s.peer)];
  if (r.number > window) known = std::max(known, r.number - window);
  return true;
}

// Goes on with one channel; true once it is at its end.
bool runner::advance_channel(run& r, std::uint32_t channel, int looks) {
  const auto& code = r.code->channels[channel];
  for (std::uint32_t& at = r.at[channel]; at < code.size(); ++at, ++m_steps) {
    const step& s = code[at];
    switch (s.what) {
      case action::copy: copy(r, s); break;
      case action::fold: fold(r, s); break;
      case action::signal:
        m_memory.at(r.slot, m_rank, channel).store(value_of(r, s.value), std::memory_order_release);
        break;
      case action::wait:
        if (!wait(r, s, looks)) return false;
        break;
      default: break;  // programs that post are refused where they are made
    }
  }
  return true;
}

// True once the run is over.
bool runner::advance(run& r, int looks) {
  const auto channels = static_cast<std::uint32_t>(r.code->channels.size());
  if (channels == 1) return advance_channel(r, 0, looks);
  for (std::uint32_t c = 0; c < channels; ++c)
    if ((r.ended >> c & 1u) == 0 && advance_channel(r, c, looks)) r.ended |= 1u << c;
  return r.ended == (1u << channels) - 1;
}

void runner::retire() {
  ++m_retired;
  execution* owner = m_runs[m_retired % window].owner;
  if (owner->announcing) {
    decide(m_runs[m_retired % window]);
    m_memory.finished(m_rank).store(m_retired, std::memory_order_release);
    return;
  }
  m_memory.finished(m_rank).store(m_retired, std::memory_order_release);
  ++owner->finished;
}

void runner::progress(int looks) {
  std::uint32_t over = 0;  // runs that are, by their place in the window
  for (;;) {
    while (begin_next()) {
    }
    const std::uint64_t first = m_retired + 1;
    bool moved = false;
    for (std::uint64_t n = first; n <= m_begun; ++n) {
      run& r = m_runs[n % window];
      if (over >> n % window & 1u) continue;
      // Only where nothing else is to be done is it worth to look again and again.
      if (!advance(r, m_begun == first && m_head == m_queue.size() ? looks : 0)) continue;
      over |= 1u << n % window;
      moved = true;
    }
    while (m_retired < m_begun && (over >> (m_retired + 1) % window & 1u)) {
      over &= ~(1u << (m_retired + 1) % window);
      retire();
    }
    if (!moved) return;
  }
}

void runner::finish(execution* r) {
  progress(m_looks);
  std::uint64_t before = m_steps;
  for (int idle = 0; !r->done() && idle <= m_looks / 8; ++idle) {
    if (m_steps != before) idle = 0;
    before = m_steps;
    relax();
    progress(0);
  }
}

}  // namespace sucl::core
