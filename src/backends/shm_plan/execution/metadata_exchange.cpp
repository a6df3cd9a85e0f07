// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "backends/shm_plan/execution/metadata_exchange.hpp"

#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "core/staging/blocks.hpp"

#include <algorithm>
#include <cstring>

namespace sucl::core {
namespace {

// A rank's memory, as it is sent to the others.
struct memory_descriptor {
  std::uint64_t send_memory, send_offset;  // number of the memory, 0: none
  std::uint64_t recv_memory, recv_offset;
  std::uint64_t send, recv;  // addresses in its process
  std::uint64_t in_place;
  timings times;  ///< of operations like this one
};
constexpr std::size_t descriptor_words = sizeof(memory_descriptor) / sizeof(std::uint64_t);

memory_descriptor descriptor_of(const std::vector<std::uint64_t>& all, std::size_t rank) {
  memory_descriptor theirs;
  std::memcpy(&theirs, all.data() + rank * descriptor_words, sizeof theirs);
  return theirs;
}

template <class Visit>
void each_descriptor(const std::vector<std::uint64_t>& all, const Visit& visit) {
  for (std::size_t rank = 0; rank * descriptor_words < all.size(); ++rank)
    visit(descriptor_of(all, rank));
}

// After its timings a rank has a block descriptor for each rank: how many bytes it sends, where
// they may be read (0: nowhere), and the bytes themselves where they are few. There are as many
// words as fit beside a flag of the shared memory, so that all descriptors of a rank arrive at
// once.
constexpr std::size_t tuner_words = 1, block_head = 2;
std::size_t block_words(int ranks) {
  constexpr std::size_t room = shared_memory::inline_bytes / sizeof(std::uint64_t) - tuner_words;
  return std::clamp(room / static_cast<std::size_t>(ranks), block_head, block_head + 8);
}
std::uint64_t inline_bytes(int ranks) {
  return (block_words(ranks) - block_head) * sizeof(std::uint64_t);
}

// Whether this rank has input, or output, that others may read.
bool gives(const sucl_operation& o, int rank) {
  const bool from_root = o.kind == SUCL_KIND_BROADCAST || o.kind == SUCL_KIND_SCATTER;
  return !from_root || rank == o.root;
}

}  // namespace

// What comes before an operation is decided on every rank, as it is its turn. So all know alike
// whether anything has to be exchanged before it.
void metadata_exchange::start_or_stage(execution& e, const execution* ahead) {
  copy_mode_tuner* const tuner = may_be_mapped(e.what) ? nullptr : tuner_if_open(e.what);
  if (!tuner || !tuner->converged()) return start(e, ahead);
  tuner->next();
  e.exchanging = execution::notice::none;
}

// The ranks gather their metadata by a plan like any other.
void metadata_exchange::start(execution& e, const execution* ahead) {
  const auto p = static_cast<std::size_t>(m_size);
  const bool memory = e.exchanging == execution::notice::memory;
  e.own_metadata.assign(memory ? descriptor_words : tuner_words + block_words(m_size) * p, 0);
  e.all_metadata.resize(e.own_metadata.size() * p);
  memory ? write_memory(e) : write_counts(e);
  if (ahead) e.all_metadata = ahead->all_metadata;
  sucl_operation gather{};
  gather.kind = SUCL_KIND_ALLGATHER;
  gather.element_size = sizeof(std::uint64_t);
  gather.count = e.own_metadata.size();
  e.how = &m_plans.of(gather, access_mode::staged);
  e.send = reinterpret_cast<std::byte*>(e.own_metadata.data());
  e.recv = reinterpret_cast<std::byte*>(e.all_metadata.data());
}

// The metadata of all ranks has arrived.
void metadata_exchange::decide(execution& e) {
  const bool memory = e.exchanging == execution::notice::memory;
  e.exchanging = execution::notice::none;
  e.started = e.finished = 0;
  set_memory(e, m_rank, m_size);
  if (memory)
    decide_access_mode(e);
  else
    take_counts(e, true);
}

// Straight from and to the memory of all, by reading that of others, or staged.
void metadata_exchange::decide_access_mode(execution& e) {
  const bool in_place = any_in_place(e);
  if (may_be_mapped(e.what)) {
    const plan_instance& direct = m_plans.of(e.what, access_mode::mapped, in_place);
    e.how = &direct;
    if (direct.there && all_mapped(e, direct.of(0)) && all_mapped(e, direct.of(direct.slices - 1)))
      return;
  }
  if (may_be_read(e.what)) {
    e.how = &m_plans.of(e.what, access_mode::read, in_place);
    e.reading = e.how->there && (!e.how->tuned_online || is_read(e));
    e.first_run = m_node.retired() + 1;
    if (e.reading) return take_addresses(e);
  }
  e.how = &m_plans.of(e.what, access_mode::staged);
}

// The tuner that decides whether an operation is read; null: none does.
copy_mode_tuner* metadata_exchange::tuner_if_open(const sucl_operation& o) {
  return may_be_read(o) && m_plans.of(o, access_mode::read).tuned_online ? &tuner_of(o) : nullptr;
}

copy_mode_tuner& metadata_exchange::tuner_of(const sucl_operation& o) {
  return m_tuners.of(o.kind, longest_block(o, m_size) * o.element_size);
}

// Whether reading has proved faster, or is tried. The same on every rank.
bool metadata_exchange::is_read(execution& e) {
  timings slowest{0, 0};
  each_descriptor(e.all_metadata,
                  [&](const memory_descriptor& c) { slowest = timings::slower(slowest, c.times); });
  copy_mode_tuner& c = tuner_of(e.what);
  const bool reads = c.next(slowest);
  if (!c.tries()) return reads;
  if (!reads) m_plans.of(e.what, access_mode::staged);  // made now, it takes no time later
  e.timed = &c;
  e.since = std::chrono::steady_clock::now();
  return reads;
}

bool metadata_exchange::any_in_place(const execution& e) const {
  bool any = false;
  each_descriptor(e.all_metadata, [&](const memory_descriptor& c) { any = any || c.in_place; });
  return any;
}

void metadata_exchange::take_addresses(execution& e) const {
  for (std::size_t r = 0; r < static_cast<std::size_t>(m_size); ++r) {
    const memory_descriptor theirs = descriptor_of(e.all_metadata, r);
    e.peer_send[r] = reinterpret_cast<std::byte*>(theirs.send);
    e.peer_recv[r] = reinterpret_cast<std::byte*>(theirs.recv);
  }
}

// Whether it is worth to find out if all its memory is mapped. The same on every rank.
bool metadata_exchange::may_be_mapped(const sucl_operation& o) const {
  return !m_mapped.never_any() && may_be_reached(o.kind) &&
         longest_block(o, m_size) * o.element_size >= min_mapped_bytes &&
         m_node.ranks() >= static_cast<std::size_t>(m_size) && m_mapped.any_for(o.sequence);
}

// Whether it is worth to read straight from the memory of peers. The same on every rank.
bool metadata_exchange::may_be_read(const sucl_operation& o) {
  return m_plans.reads() && has_readable_input(o.kind) &&
         longest_block(o, m_size) * o.element_size >= min_read_bytes &&
         m_plans.of(o, access_mode::read).there;
}

// Memory is mapped if all that the operation touches of it lies in this rank's part: peers compute
// no address beyond.
void metadata_exchange::write_memory(execution& e) {
  memory_descriptor mine{};
  const extents touched = extents_of(e.what, m_rank, m_size);
  const bool in_place = e.what.flags & SUCL_FLAG_IN_PLACE;
  for (const mapped_memory& m : m_mapped.all()) {
    const auto* base = static_cast<const std::byte*>(m.region.base);
    const bool holds_recv = e.recv && m.holds(e.recv, touched.recv * e.what.element_size);
    const bool holds_send =
        in_place ? holds_recv : e.send && m.holds(e.send, touched.send * e.what.element_size);
    if (holds_send) {
      mine.send_memory = m.number;
      mine.send_offset = static_cast<std::uint64_t>(e.send - base);
    }
    if (holds_recv) {
      mine.recv_memory = m.number;
      mine.recv_offset = static_cast<std::uint64_t>(e.recv - base);
    }
  }
  mine.send = reinterpret_cast<std::uint64_t>(e.send);
  mine.recv = reinterpret_cast<std::uint64_t>(e.recv);
  mine.in_place = e.what.flags & SUCL_FLAG_IN_PLACE;
  mine.times = tuner_of(e.what).mine();
  std::memcpy(e.own_metadata.data(), &mine, sizeof mine);
}

// Finds the memory of all ranks; false if some of it is out of reach. All ranks see the same.
bool metadata_exchange::all_mapped(execution& e, const program& code) const {
  for (int rank = 0; rank < m_size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const memory_descriptor theirs = descriptor_of(e.all_metadata, at);
    e.peer_send[at] = m_mapped.at(theirs.send_memory, rank, theirs.send_offset);
    e.peer_recv[at] = m_mapped.at(theirs.recv_memory, rank, theirs.recv_offset);
    if (code.maps_send && gives(e.what, rank) && !e.peer_send[at]) return false;
    if (code.maps_recv && !e.peer_recv[at]) return false;
  }
  return true;
}

void metadata_exchange::write_counts(execution& e) {
  const sucl_operation& o = e.what;
  const bool in_place = o.flags & SUCL_FLAG_IN_PLACE;
  const bool is_replaced = in_place && o.kind == SUCL_KIND_ALLTOALLV;
  if (m_last_tuner > 0)
    e.own_metadata[0] = packed_timings{m_last_tuner, m_tuners.at(m_last_tuner).mine()}.packed();
  const auto write = [&](std::size_t rank, const std::byte* block, std::uint64_t count) {
    const std::uint64_t bytes = count * o.element_size;
    std::uint64_t* entry = e.own_metadata.data() + tuner_words + rank * block_words(m_size);
    entry[0] = bytes;
    entry[1] = is_replaced ? 0 : reinterpret_cast<std::uint64_t>(block);
    if (bytes > 0 && bytes <= inline_bytes(m_size)) std::memcpy(entry + block_head, block, bytes);
  };
  if (o.kind == SUCL_KIND_GATHERV) {
    write(static_cast<std::size_t>(o.root), e.send, in_place ? o.recv_counts[m_rank] : o.count);
  } else if (o.kind == SUCL_KIND_ALLTOALLV || m_rank == o.root) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(m_size); ++r)
      write(r, e.send + e.send_displs[r] * o.element_size, e.send_counts[r]);
  }
}

// Whether blocks of their own lengths, the longest of so many bytes, are read. The ranks find out
// how long they are with the timings, which therefore are of the last such tuner; a rank may have
// written its packed_timings when others knew of a later one already, and then nothing is agreed.
bool metadata_exchange::is_clipped_read(execution& e, std::uint64_t longest) {
  const tuning_row* row = m_plans.row_of_clipped_reads(e.what, longest);
  if (!row || !row->tuned_online) return row;
  const std::uint32_t number = packed_timings::of(e.all_metadata[0]).number;
  bool all_known = copy_mode_tuners::is_number(number);
  timings slowest{0, 0};
  for (std::size_t at = 0; at < e.all_metadata.size(); at += e.own_metadata.size()) {
    const packed_timings theirs = packed_timings::of(e.all_metadata[at]);
    all_known = all_known && theirs.number == number;
    slowest = timings::slower(slowest, theirs.times);
  }
  if (all_known) m_tuners.at(number).agree(slowest);
  m_last_tuner = copy_mode_tuners::number_of(e.what.kind, longest);
  copy_mode_tuner& c = m_tuners.at(m_last_tuner);
  const bool reads = c.next();
  if (!c.tries()) return reads;
  m_plans.clipped(e.what, longest, reads);  // made now, it takes no time later
  e.timed = &c;
  e.since = std::chrono::steady_clock::now();
  return reads;
}

// Everything is there if all blocks are short; else it is moved in slices that fit the longest one.
// Returns whether nothing is left to do. An operation decides once how the rest is moved, on every
// rank; one may have read it before.
bool metadata_exchange::take_counts(execution& e, bool decides) {
  const sucl_operation& o = e.what;
  const std::size_t words = block_words(m_size);
  std::uint64_t longest = 0;
  bool readable = true;
  for (std::size_t rank = 0; rank < e.all_metadata.size(); rank += e.own_metadata.size())
    for (std::size_t at = rank + tuner_words; at < rank + e.own_metadata.size(); at += words) {
      longest = std::max(longest, e.all_metadata[at]);
      readable = readable && (e.all_metadata[at] == 0 || e.all_metadata[at + 1] != 0);
    }
  static const plan_instance nothing;
  const bool all_there = longest <= inline_bytes(m_size);
  if (!all_there && !decides) return false;
  e.how =
      all_there ? &nothing : &m_plans.clipped(o, longest, readable && is_clipped_read(e, longest));
  e.reading = e.how->slices > 0 && e.how->of(0).maps_send;
  e.first_run = m_node.retired() + 1;
  const bool scatters = o.kind == SUCL_KIND_SCATTERV;
  if (o.kind == SUCL_KIND_GATHERV && m_rank != o.root) return all_there;
  for (int r = 0; r < m_size; ++r) {
    if (scatters && (r != o.root || (m_rank == r && (o.flags & SUCL_FLAG_IN_PLACE)))) continue;
    const auto from = static_cast<std::size_t>(r) * e.own_metadata.size();
    const std::uint64_t* entry =
        e.all_metadata.data() + from + tuner_words + static_cast<std::size_t>(m_rank) * words;
    const std::uint64_t sent = entry[0];
    const std::uint64_t wanted = (scatters ? o.count : o.recv_counts[r]) * o.element_size;
    e.peer_send[static_cast<std::size_t>(r)] = reinterpret_cast<std::byte*>(entry[1]);
    if (all_there && sent > 0 && wanted > 0)
      std::memcpy(e.recv + (scatters ? 0 : o.recv_displs[r] * o.element_size), entry + block_head,
                  std::min(sent, wanted));
    if (sent == wanted || e.failure) continue;
    const auto elements = [&](std::uint64_t bytes) {
      return std::to_string(bytes / o.element_size) + " " + name(static_cast<type>(o.type));
    };
    e.failure.emplace();
    e.failure->code = errc::mismatch;
    e.failure->message = "rank " + std::to_string(r) + " called " +
                         name(static_cast<kind>(o.kind)) + " with " + elements(sent) +
                         " for rank " + std::to_string(m_rank) + ", rank " +
                         std::to_string(m_rank) + " called it with " + elements(wanted) +
                         " from rank " + std::to_string(r);
  }
  if (e.failure && decides)
    throw error(m_memory.board().report_mismatch(e.failure->message, m_node.retired()));
  return all_there;
}

// Whether nothing is left to do once the ranks have exchanged their counts.
bool metadata_exchange::has_all_counts(execution& e) {
  e.failure.reset();
  return take_counts(e, false) && !e.failure;
}

}  // namespace sucl::core
