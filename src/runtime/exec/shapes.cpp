// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/shapes.hpp"

#include "base/error.hpp"
#include "plan/builder.hpp"
#include "plan/passes.hpp"
#include "plan/verify.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t any_size = ~std::uint64_t{0};

// What was measured to be best on processors of two cores and more, with ordinary caches.
constexpr tuning_row tuning[] = {
    {SUCL_KIND_ALLREDUCE, reach::staged, 64 * KiB, "staged_one_shot", 64 * KiB},
    {SUCL_KIND_ALLREDUCE, reach::staged, any_size, "staged_two_shot", 128 * KiB},
    {SUCL_KIND_ALLREDUCE, reach::mapped, any_size, "mapped_two_shot", 256 * KiB},
    {SUCL_KIND_COUNT, reach::mapped, any_size, "mapped_one_shot", 512 * KiB},
    {SUCL_KIND_COUNT, reach::staged, 256 * KiB, "staged_one_shot", 64 * KiB},
    {SUCL_KIND_COUNT, reach::staged, any_size, "staged_one_shot", 128 * KiB},
};

bool sends_blocks(sucl_kind k) {
  return k == SUCL_KIND_SCATTER || k == SUCL_KIND_ALLTOALL || k == SUCL_KIND_REDUCE_SCATTER_BLOCK ||
         k == SUCL_KIND_REDUCE_SCATTER;
}
bool receives_blocks(sucl_kind k) {
  return k == SUCL_KIND_ALLGATHER || k == SUCL_KIND_GATHER || k == SUCL_KIND_ALLTOALL ||
         k == SUCL_KIND_ALLGATHERV;
}

// Data that is only moved is moved as bytes, whatever its elements are.
std::uint64_t plan_element(const sucl_operation& o) {
  return reduces(static_cast<kind>(o.kind)) ? o.element_size : 1;
}

// A barrier is a collective of nothing, so its plan is not among the algorithms.
plan::schedule make_barrier(int ranks) {
  plan::problem p;
  p.kind = kind::group;
  p.ranks = ranks;
  p.counts = {0, 0};
  p.outcome.resize(static_cast<std::size_t>(ranks));
  plan::builder b(p);
  for (int r = 0; r < ranks; ++r) {
    for (int k = 1; k < ranks; ++k) b.signal(r, (r + k) % ranks, 0);
    for (int k = 1; k < ranks; ++k) b.wait(r, (r + k) % ranks, 0);
  }
  return b.finish("barrier");
}

std::vector<std::uint64_t> ends_of(const std::vector<std::uint64_t>& counts, int ranks,
                                   std::uint64_t element) {
  std::vector<std::uint64_t> ends;
  std::uint64_t at = 0;
  for (int r = 0; r < ranks; ++r)
    ends.push_back(at += element * counts[counts.size() == 1 ? 0 : static_cast<std::size_t>(r)]);
  return ends;
}

}  // namespace

std::span<const tuning_row> default_tuning() noexcept { return tuning; }

const tuning_row& shape_table::row_for(sucl_kind kind, reach memory, std::uint64_t bytes) const {
  // Where everybody combines everything, work grows with the ranks twice.
  const auto ranks = static_cast<std::uint64_t>(m_size);
  if (kind == SUCL_KIND_ALLREDUCE && bytes < any_size / 4096) bytes = bytes * ranks * ranks / 4;
  for (const tuning_row& r : m_tuning)
    if ((r.kind == kind || r.kind == SUCL_KIND_COUNT) && r.memory == memory && bytes <= r.up_to)
      return r;
  return m_tuning.back();
}

bool plans_carry(sucl_kind kind) noexcept {
  switch (kind) {
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_GATHERV:
    case SUCL_KIND_SCATTERV: return false;  // no rank knows all counts
    default: return kind >= SUCL_KIND_BARRIER && kind <= SUCL_KIND_EXSCAN;
  }
}

void shape_table::forget() {
  m_quick.fill({});
  m_shapes.clear();
  m_programs.clear();
}

const shape& shape_table::look_up(const sucl_operation& o, reach memory) {
  std::vector<std::uint64_t> key{
      static_cast<std::uint64_t>(o.kind), static_cast<std::uint64_t>(memory), o.element_size,
      rooted(static_cast<kind>(o.kind)) ? static_cast<std::uint64_t>(o.root) : 0, o.count};
  if (has_counts(o.kind)) {
    key.back() = 0;
    key.insert(key.end(), o.recv_counts, o.recv_counts + m_size);
  }
  const auto found = m_shapes.find(key);
  if (found != m_shapes.end()) return *found->second;
  auto made = std::make_unique<shape>(make(o, memory));
  return *m_shapes.emplace(std::move(key), std::move(made)).first->second;
}

shape shape_table::make(const sucl_operation& o, reach memory) {
  shape s;
  if (o.kind == SUCL_KIND_BARRIER) {
    s.code.push_back(program_of({"barrier", o.kind, 0, 1, false, {}}));
    s.slices = 1;
    s.recipe = "barrier";
    return s;
  }
  std::uint64_t bytes = o.count * o.element_size;
  if (has_counts(o.kind))
    bytes = *std::max_element(o.recv_counts, o.recv_counts + m_size) * o.element_size;
  const tuning_row& row = row_for(o.kind, memory, bytes);
  if (has_counts(o.kind))
    cut_counts(o, row, s);
  else
    cut_uniform(o, row, s);
  s.recipe = std::string(row.algorithm) + ", " + std::to_string(s.slices) + " slices of " +
             std::to_string(s.slice_bytes) + " bytes";
  return s;
}

// Slices of `count` elements of each block, of equal length but for the last one.
void shape_table::cut_uniform(const sucl_operation& o, const tuning_row& row, shape& s) {
  const std::uint64_t element = plan_element(o);
  const std::uint64_t count = o.count * (o.element_size / element);
  if (count == 0) return;
  const auto blocks = static_cast<std::uint64_t>(sends_blocks(o.kind) ? m_size : 1);
  // One rank's writing and another one's reading overlap from slice to slice.
  const bool one_way = o.kind == SUCL_KIND_BROADCAST || o.kind == SUCL_KIND_REDUCE;
  const std::uint64_t overlapping = std::max(16 * KiB, count * element / 4);
  const std::uint64_t slice = one_way ? std::min(row.slice, overlapping) : row.slice;
  const std::uint64_t most = std::max<std::uint64_t>(1, slice / (blocks * element));
  s.slices = (count + most - 1) / most;
  // Cut on cache lines where there is more than one.
  const std::uint64_t grain = std::max<std::uint64_t>(1, 64 / element);
  std::uint64_t length = (count + s.slices - 1) / s.slices;
  if (s.slices > 1) length = (length + grain - 1) / grain * grain;
  s.slices = (count + length - 1) / length;
  s.slice_bytes = length * element;
  s.block_bytes = count * element;
  const auto root = rooted(static_cast<kind>(o.kind)) ? o.root : 0;
  const bool cut = s.slices > 1 && (sends_blocks(o.kind) || receives_blocks(o.kind));
  s.code.push_back(program_of({row.algorithm, o.kind, root, element, cut, {length}}));
  if (const std::uint64_t rest = count - (s.slices - 1) * length; rest != length)
    s.tail = program_of({row.algorithm, o.kind, root, element, cut, {rest}});
}

// The same where each block has its own length: slice k takes [a, b) of those that have it.
void shape_table::cut_counts(const sucl_operation& o, const tuning_row& row, shape& s) {
  const std::uint64_t element = plan_element(o);
  const std::uint64_t scale = o.element_size / element;
  std::vector<std::uint64_t> counts;
  for (int r = 0; r < m_size; ++r) counts.push_back(o.recv_counts[r] * scale);
  const std::uint64_t longest = *std::max_element(counts.begin(), counts.end());
  if (longest == 0) return;
  const auto blocks = static_cast<std::uint64_t>(sends_blocks(o.kind) ? m_size : 1);
  const std::uint64_t most = std::max<std::uint64_t>(1, row.slice / (blocks * element));
  s.slices = (longest + most - 1) / most;
  s.slice_bytes = std::min(most, longest) * element;
  if (o.kind == SUCL_KIND_REDUCE_SCATTER) {
    std::uint64_t at = 0;
    for (const std::uint64_t c : counts) {
      s.positions.push_back(at);
      at += c * element;
    }
  } else {
    s.positions_scale = o.element_size;
  }
  for (std::uint64_t k = 0; k < s.slices; ++k) {
    std::vector<std::uint64_t> part;
    for (const std::uint64_t c : counts)
      part.push_back(std::min(most, c > k * most ? c - k * most : 0));
    s.code.push_back(program_of({row.algorithm, o.kind, 0, element, true, std::move(part)}));
  }
}

const program* shape_table::program_of(program_key key) {
  const auto found = m_programs.find(key);
  if (found != m_programs.end()) return found->second.get();
  plan::schedule s;
  blocking cut;
  if (key.kind == SUCL_KIND_BARRIER) {
    s = make_barrier(m_size);
  } else {
    plan::problem p;
    p.kind = static_cast<kind>(key.kind);
    p.ranks = m_size;
    p.root = key.root;
    p.element_bytes = key.element;
    p.counts = key.counts;
    s = plan::build(p, plan::recipe_from_text(key.algorithm));
    const auto ends = ends_of(key.counts, m_size, key.element);
    if (key.cut && sends_blocks(key.kind)) cut.send_ends = ends;
    if (key.cut && receives_blocks(key.kind)) cut.recv_ends = ends;
  }
  plan::verify_or_fail(s);
  auto made = std::make_unique<program>(lower(s, m_rank, cut));
  made->in_place = key.kind == SUCL_KIND_BARRIER || plan::serves_in_place(s);
  if (made->scratch_bytes > m_slot_bytes)
    base::fail(errc::internal,
               "a plan needs " + std::to_string(made->scratch_bytes) + " bytes of scratch, and " +
                   std::to_string(m_slot_bytes) + " are there",
               "Report this, with the sizes of the operation");
  return m_programs.emplace(std::move(key), std::move(made)).first->second.get();
}

}  // namespace sucl::core
