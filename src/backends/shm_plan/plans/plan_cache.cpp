// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/plans/plan_cache.hpp"

#include "backends/shm_plan/plans/between_nodes.hpp"
#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/selection.hpp"
#include "core/staging/blocks.hpp"
#include "plan/ir/builder.hpp"
#include "plan/passes/passes.hpp"
#include "plan/verify/verify.hpp"

#include <algorithm>
#include <bit>

namespace sucl::core {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
constexpr std::uint64_t any_size = base::range{}.high;

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

// What was measured to be best on processors of two cores and more, with ordinary caches.
const std::vector<tuning_row>& default_tuning() {
  constexpr sucl_kind any = SUCL_KIND_COUNT;
  constexpr base::range two{2, 2}, more{3, any_size};
  static const std::vector<tuning_row> rows = [&] {
    std::vector<tuning_row> all{
        {SUCL_KIND_ALLREDUCE, access_mode::staged, {0, 64 * kib}, "staged_one_shot", 64 * kib, {}},
        // Two ranks move as much in one step as in two. The second step waits for cache lines
        // to be transferred in both directions: where these are slow
        // (docs/design/backends/executor.md) it took three times as long.
        {SUCL_KIND_ALLREDUCE, access_mode::staged, {}, "staged_one_shot", 256 * kib, {}, two},
        {SUCL_KIND_ALLREDUCE, access_mode::staged, {}, "staged_two_shot", 256 * kib, {}},
        {SUCL_KIND_ALLREDUCE, access_mode::mapped, {0, 4 * mib}, "mapped_one_shot", 256 * kib, {}},
        {SUCL_KIND_ALLREDUCE, access_mode::mapped, {}, "mapped_two_shot", 256 * kib, {}},
        {any, access_mode::mapped, {}, "mapped_one_shot", 512 * kib, {}},
        {SUCL_KIND_BROADCAST,
         access_mode::staged,
         {0, 2 * mib},
         "staged_one_shot",
         64 * kib,
         {},
         two},
        {SUCL_KIND_BROADCAST,
         access_mode::staged,
         {0, 8 * mib},
         "staged_one_shot",
         128 * kib,
         {},
         two},
        // Half of a slice is a rank's own block, which is not staged.
        {SUCL_KIND_ALLTOALL, access_mode::staged, {}, "staged_one_shot", 512 * kib, {}, two},
        {any, access_mode::staged, {0, 64 * kib}, "staged_one_shot", 64 * kib, {}},
        {any, access_mode::staged, {}, "staged_one_shot", 256 * kib, {}},
    };
    // To one other rank a short copy through scratch is over before that one could have read.
    const auto may_read = [&](sucl_kind k, base::range bytes, base::range ranks) {
      all.push_back({k, access_mode::read, bytes, "read_one_shot", 1 * mib, {}, ranks, true});
    };
    for (const sucl_kind k : {SUCL_KIND_BROADCAST, SUCL_KIND_SCATTER, SUCL_KIND_GATHER}) {
      may_read(k, {32 * kib, any_size}, two);
      may_read(k, {8 * kib, 4 * mib}, more);
    }
    for (const sucl_kind k : {SUCL_KIND_ALLGATHER, SUCL_KIND_ALLGATHERV, SUCL_KIND_ALLTOALL})
      may_read(k, {16 * kib, any_size}, {2, any_size});
    return all;
  }();
  return rows;
}

namespace {

tuning_row row_here(const tune::table_row& r, const placement& where) {
  access_mode memory = access_mode::staged;
  if (r.how.algorithm.starts_with("read_")) memory = access_mode::read;
  if (r.memory == tune::memory_kind::symmetric) memory = access_mode::mapped;
  const bool along_nodes = r.how.algorithm == "node_shot" || r.how.algorithm == "two_level";
  plan::recipe how = r.how;
  if (along_nodes && how.nodes.empty() && where.several_nodes()) how.nodes = where.node_of;
  return {static_cast<sucl_kind>(r.what), memory,  r.bytes, plan::to_text(how),
          r.slice ? r.slice : 128 * kib,  r.origin};
}

}  // namespace

std::vector<tuning_row> tuning_of(const tune::table* tuned, const placement& where) {
  std::vector<tuning_row> rows;
  const auto nodes = static_cast<std::uint64_t>(where.nodes());
  if (tuned)
    for (const tune::table_row& r : tuned->rows)
      if (r.backend == plan_backend_name && r.memory != tune::memory_kind::device &&
          !r.how.algorithm.empty() && r.ranks.contains(static_cast<std::uint64_t>(where.size)) &&
          r.nodes.contains(nodes))
        rows.push_back(row_here(r, where));
  if (nodes > 1) return rows;
  // A reader must know that its peers have arrived, and they wait for it: where ranks share
  // processors, each of that costs a change of processes. A long scatter is worth it: staged, all
  // of its copies are the root's.
  for (const tuning_row& r : default_tuning()) {
    const bool scatters = r.kind == SUCL_KIND_SCATTER;
    if (where.oversubscribed && r.memory == access_mode::read && !scatters) continue;
    rows.push_back(r);
    if (where.oversubscribed && scatters) rows.back().bytes.low = 64 * kib;
  }
  return rows;
}

std::string plan_cache::obstacle(const tune::table_row& row, const sucl_operation& o) const {
  return obstacle(row_here(row, m_where), o, message_size_of(o, m_size).bytes);
}

// Why a row does not execute an operation of `bytes` bytes; empty: it does. What depends on the
// plan is found out on a small one of its kind.
std::string plan_cache::obstacle(const tuning_row& row, const sucl_operation& o,
                                 std::uint64_t bytes) const {
  if (row.memory == access_mode::read && !m_reads) return "ranks may not read each other's memory";
  if (row.origin.empty()) return {};
  const std::uint64_t least = row.memory == access_mode::read     ? min_read_bytes
                              : row.memory == access_mode::mapped ? min_mapped_bytes
                                                                  : 0;
  if (bytes < least) return "messages of less than " + base::print_bytes(least) + " are staged";
  if (has_hidden_counts(o.kind)) return "only some ranks know its counts";
  const bool entered = row.memory != access_mode::staged;
  const program_key key{
      row.recipe,
      o.kind,
      0,
      4,
      true,
      entered,
      std::vector<std::uint64_t>(has_counts(o.kind) ? static_cast<std::size_t>(m_size) : 1, 256),
      ordered(o)};
  std::string why = plan::refusal(problem_of(key), plan::recipe_from_text(row.recipe));
  if (!why.empty()) return why;
  try {
    const plan::schedule s = schedule_of(key);
    const program code = lower(s, m_where, blocking_of(key));
    const bool maps = code.maps_send || code.maps_recv;
    if (maps && !entered) return "it needs memory of allocate()";
    if (!maps && row.memory == access_mode::mapped) return "it stages what is within reach";
    if (rounds(o) && !plan::folds_once(s)) return "it would round results more than once";
    if (!entered && !plan::serves_in_place(s)) return "it needs separate memory";
  } catch (const error& e) {
    return e.message();
  }
  return {};
}

// The first row that fits after `after`; null: there is none. Ordinary memory is staged where a
// tuning table says so, whatever could be read.
const tuning_row* plan_cache::row_for(const sucl_operation& o, access_mode memory,
                                      std::uint64_t bytes, const tuning_row* after) const {
  // Where every rank combines everything, work grows with the ranks twice.
  const auto ranks = static_cast<std::uint64_t>(m_size);
  const bool grows = o.kind == SUCL_KIND_ALLREDUCE && bytes < any_size / 4096;
  const std::uint64_t on_two = grows ? bytes * ranks * ranks / 4 : bytes;
  const tuning_row* end = m_tuning.data() + m_tuning.size();
  for (const tuning_row* r = after ? after + 1 : m_tuning.data(); r != end; ++r) {
    const bool tuned = !r->origin.empty();
    const bool decides = r->memory == memory ||
                         (tuned && memory == access_mode::read && r->memory == access_mode::staged);
    if (!decides || (r->kind != o.kind && r->kind != SUCL_KIND_COUNT) ||
        !r->ranks.contains(ranks) || !r->bytes.contains(tuned ? bytes : on_two) ||
        !obstacle(*r, o, bytes).empty())
      continue;
    return r->memory == memory ? r : nullptr;
  }
  return nullptr;
}

std::string plan_cache::describe(const sucl_operation& o) const {
  const sucl_kind kind = o.kind;
  if (kind == SUCL_KIND_BARRIER || kind > SUCL_KIND_EXSCAN || has_counts(kind) ||
      has_hidden_counts(kind))
    return {};
  const std::uint64_t bytes = message_size_of(o, m_size).bytes;
  std::string text;
  const auto add = [&](const char* where, const std::string& recipe, std::uint64_t slice,
                       const std::string& origin) {
    text += std::string("  by     ") + where + recipe + " in slices of up to " +
            base::print_bytes(slice) + (origin.empty() ? "" : ", tuning table (" + origin + ")") +
            "\n";
  };
  const bool reached = may_be_reached(kind) && !m_several_nodes;
  const tuning_row* read =
      reached && bytes >= min_read_bytes ? row_for(o, access_mode::read, bytes) : nullptr;
  const tuning_row* staged = row_for(o, access_mode::staged, bytes);
  if (read)
    add(read->tuned_online ? "where that proves faster: " : "", read->recipe, read->slice,
        read->origin);
  if (staged && (!read || read->tuned_online))
    add("", staged->recipe, staged->slice, staged->origin);
  if (!staged) {
    const choice c = between_nodes(o, bytes);
    add("", c.algorithm, c.slice, "");
  }
  if (reached && bytes >= min_mapped_bytes) {
    const tuning_row* mapped = row_for(o, access_mode::mapped, bytes);
    add("on memory of allocate(): ", mapped->recipe, mapped->slice, mapped->origin);
  }
  for (const tuning_row& r : m_tuning) {
    if (r.origin.empty() || r.kind != kind || !r.bytes.contains(bytes)) continue;
    if (const std::string why = obstacle(r, o, bytes); !why.empty())
      text += "  not    " + r.recipe + " (" + r.origin + "): " + why + "\n";
  }
  return text;
}

bool plans_support(sucl_kind kind, bool several_nodes, bool ordered) noexcept {
  // Between nodes only these have a plan in the fixed order.
  if (several_nodes && ordered && kind != SUCL_KIND_ALLREDUCE && kind != SUCL_KIND_REDUCE_SCATTER &&
      kind != SUCL_KIND_REDUCE_SCATTER_BLOCK)
    return false;
  // Between nodes each pair would send as much as the largest one has to.
  if (several_nodes && has_hidden_counts(kind)) return false;
  return (kind >= SUCL_KIND_BARRIER && kind <= SUCL_KIND_EXSCAN) || kind == compiled_plan_kind;
}

plan_cache::choice plan_cache::between_nodes(const sucl_operation& o, std::uint64_t bytes) const {
  const std::uint64_t slice = 256 * kib;
  const auto what = static_cast<sucl::kind>(o.kind);
  const std::uint64_t part = std::min(bytes, slice);
  const auto recipe = ordered(o) ? ordered_recipe_between_nodes(what, part, m_size)
                                 : recipe_between_nodes(what, part, m_where.node_of);
  return {plan::to_text(recipe), slice};
}

void plan_cache::forget() {
  m_quick.clear();
  m_clipped.clear();
  m_plans.clear();
  m_programs.clear();
}

plan_cache::instance_map::value_type& plan_cache::look_up(const sucl_operation& o,
                                                          access_mode memory, bool in_place) {
  m_key.assign({static_cast<std::uint64_t>(o.kind),
                static_cast<std::uint64_t>(memory) * 8 + in_place * 4u + demands(o), o.element_size,
                rooted(static_cast<kind>(o.kind)) ? static_cast<std::uint64_t>(o.root) : 0,
                o.count});
  if (has_counts(o.kind)) {
    m_key.back() = 0;
    m_key.insert(m_key.end(), o.recv_counts, o.recv_counts + m_size);
  }
  const auto found = m_plans.find(m_key);
  if (found != m_plans.end()) return *found;
  auto made = std::make_unique<plan_instance>(make(o, memory, in_place));
  return *m_plans.emplace(m_key, std::move(made)).first;
}

namespace {

// An operation of no elements takes a run too, in which nothing is done: the caller that expects it
// to move something finds out.
plan_instance one_run(plan_instance s) {
  static const program nothing = [] {
    program p;
    p.channels.resize(1);
    p.in_place = true;
    return p;
  }();
  if (s.slices > 0) return s;
  s.slices = 1;
  s.code = {&nothing};
  return s;
}

}  // namespace

plan_instance plan_cache::make(const sucl_operation& o, access_mode memory, bool in_place) {
  plan_instance s;
  if (o.kind == SUCL_KIND_BARRIER && !m_several_nodes) {
    s.code.push_back(program_of({"barrier", o.kind, 0, 1, false, false, {}, false}));
    s.slices = 1;
    s.recipe = "barrier";
    return s;
  }
  const std::uint64_t bytes = longest_block(o, m_size) * o.element_size;
  // Where no other rank touches it, each rank's memory may differ.
  const bool both_ways = in_place || memory == access_mode::staged;
  for (const tuning_row* row = row_for(o, memory, bytes); row;
       row = row_for(o, memory, bytes, row)) {
    s = make_by({row->recipe, row->slice, memory != access_mode::staged, row->tuned_online}, o);
    if (s.there && (!both_ways || serves_in_place(s))) return one_run(std::move(s));
  }
  if (m_several_nodes) s = make_by(between_nodes(o, bytes), o);
  if (m_several_nodes && s.there) return one_run(std::move(s));
  if (memory == access_mode::staged)
    base::fail(errc::internal,
               "no plan for " + std::string(name(static_cast<kind>(o.kind))) + " fits into " +
                   std::to_string(m_slot_bytes) + " bytes of scratch",
               "Report this, with the sizes of the operation");
  s = {};
  s.there = false;
  return s;
}

// A plan_instance that is not there needs more scratch than a slot has, however short the slices.
plan_instance plan_cache::make_by(choice c, const sucl_operation& o) {
  plan_instance s;
  while (!(has_counts(o.kind) ? cut_counts(o, c, s) : cut_uniform(o, c, s))) {
    s = {};
    s.there = false;
    c.slice /= 2;
    if (c.slice < o.element_size) return s;
  }
  s.there = true;
  s.tuned_online = c.tuned_online;
  choose_stores(o, s);
  s.recipe = c.algorithm + ", " + std::to_string(s.slices) +
             (s.slices == 1 ? " slice of " : " slices of ") + std::to_string(s.slice_bytes) +
             " bytes";
  return s;
}

// What leaves the caches before it is read again is stored non-temporally: its old lines need not
// be fetched then. Of what is combined more is still there.
void plan_cache::choose_stores(const sucl_operation& o, plan_instance& s) const {
  const std::uint64_t bytes = bytes_touched(o, m_size);
  s.copies_nontemporal = bytes >= m_cache_bytes;
  s.folds_nontemporal = bytes / 2 >= m_cache_bytes;
}

bool plan_cache::serves_in_place(const plan_instance& s) const {
  return (!s.tail || s.tail->in_place) &&
         std::all_of(s.code.begin(), s.code.end(), [](const program* p) { return p->in_place; });
}

namespace {

// The same operation with blocks of one length.
sucl_operation uniform_of(const sucl_operation& o) {
  sucl_operation uniform{};
  uniform.kind = uniform_kind(o.kind);
  uniform.root = rooted(static_cast<kind>(o.kind)) ? o.root : 0;
  return uniform;
}

}  // namespace

const tuning_row* plan_cache::row_of_clipped_reads(const sucl_operation& o,
                                                   std::uint64_t bytes) const {
  if (!m_reads || bytes < min_read_bytes) return nullptr;
  const tuning_row* row = row_for(uniform_of(o), access_mode::read, bytes);
  return row && row->recipe == "read_one_shot" ? row : nullptr;
}

// By the plan of the uniform operation with blocks as long as the longest one. In the plans that
// are used every rank takes its blocks straight from their owners, so that steps can be clipped.
const plan_instance& plan_cache::clipped(const sucl_operation& o, std::uint64_t bytes, bool reads) {
  const sucl_operation uniform = uniform_of(o);
  // Few lengths, so that there are few programs. Nothing is gained by cutting what is read.
  const auto blocks = static_cast<std::uint64_t>(sends_blocks(uniform.kind) ? m_size : 1);
  const std::uint64_t staged =
      std::min(row_for(uniform, access_mode::staged, bytes)->slice, m_slot_bytes) / blocks;
  const std::uint64_t whole = std::bit_ceil(std::max<std::uint64_t>(bytes, 64));
  const std::uint64_t slice =
      reads ? whole : std::min(whole, std::bit_floor(std::max<std::uint64_t>(staged, 64)));
  const std::uint64_t slices = (bytes + slice - 1) / slice;
  const clipped_entry wanted{nullptr, o.kind, uniform.root, reads, slice, slices};
  clipped_entry& e = m_clipped.slot(base::key_of(o.kind, uniform.root, slice, slices));
  if (e.found && e.same(wanted)) return *e.found;
  e = wanted;
  m_key.assign({static_cast<std::uint64_t>(o.kind), reads, static_cast<std::uint64_t>(uniform.root),
                slice, slices});
  std::unique_ptr<plan_instance>& made = m_plans[m_key];
  if (!made) made = std::make_unique<plan_instance>(make_clipped(uniform, reads, slice, slices));
  e.found = made.get();
  return *made;
}

plan_instance plan_cache::make_clipped(const sucl_operation& uniform, bool reads,
                                       std::uint64_t slice, std::uint64_t slices) {
  const std::string algorithm = reads ? "read_one_shot" : "staged_one_shot";
  plan_instance s;
  s.clipped = true;
  s.slices = slices;
  s.slice_bytes = slice;
  s.recipe = algorithm + " of blocks of their own lengths";
  sucl_operation longest = uniform;
  longest.count = slices * slice;
  longest.element_size = 1;
  choose_stores(longest, s);
  if (slices > 0)
    s.code.push_back(
        program_of({algorithm, uniform.kind, uniform.root, 1, true, reads, {slice}, false}));
  return s;
}

// Slices of `count` elements of each block, of equal length but for the last one.
bool plan_cache::cut_uniform(const sucl_operation& o, const choice& c, plan_instance& s) {
  const std::uint64_t element = plan_element(o);
  // A barrier between nodes gathers a byte of each rank.
  const bool barrier = o.kind == SUCL_KIND_BARRIER;
  const sucl_kind kind = barrier ? SUCL_KIND_ALLGATHER : o.kind;
  const std::uint64_t count = barrier ? 1 : o.count * (o.element_size / element);
  if (count == 0) return true;
  const auto blocks = static_cast<std::uint64_t>(sends_blocks(kind) ? m_size : 1);
  // One rank's writing and another one's reading overlap from slice to slice. Where nothing is
  // staged only one of them works, and slices cost.
  const bool one_way = !c.entered && (o.kind == SUCL_KIND_BROADCAST || o.kind == SUCL_KIND_REDUCE);
  const std::uint64_t overlapping = std::max(16 * kib, count * element / 4);
  const std::uint64_t slice = one_way ? std::min(c.slice, overlapping) : c.slice;
  const std::uint64_t most = std::max<std::uint64_t>(1, slice / (blocks * element));
  s.slices = (count + most - 1) / most;
  // Cut on cache lines where there is more than one.
  const std::uint64_t grain = std::max<std::uint64_t>(1, 64 / element);
  std::uint64_t length = (count + s.slices - 1) / s.slices;
  if (s.slices > 1) length = (length + grain - 1) / grain * grain;
  s.slices = (count + length - 1) / length;
  s.slice_bytes = length * element;
  s.block_bytes = count * element;
  const auto root = rooted(static_cast<sucl::kind>(kind)) ? o.root : 0;
  const bool cut = s.slices > 1 && (sends_blocks(kind) || receives_blocks(kind));
  s.code.push_back(
      program_of({c.algorithm, kind, root, element, cut, c.entered, {length}, ordered(o)}));
  if (!s.code.back()) return false;
  if (const std::uint64_t rest = count - (s.slices - 1) * length; rest != length)
    s.tail = program_of({c.algorithm, kind, root, element, cut, c.entered, {rest}, ordered(o)});
  return true;
}

// The same where each block has its own length: slice k takes [a, b) of those that have it.
bool plan_cache::cut_counts(const sucl_operation& o, const choice& c, plan_instance& s) {
  const std::uint64_t element = plan_element(o);
  const std::uint64_t scale = o.element_size / element;
  std::vector<std::uint64_t> counts;
  for (int r = 0; r < m_size; ++r) counts.push_back(o.recv_counts[r] * scale);
  const std::uint64_t longest = *std::max_element(counts.begin(), counts.end());
  if (longest == 0) return true;
  const auto blocks = static_cast<std::uint64_t>(sends_blocks(o.kind) ? m_size : 1);
  const std::uint64_t most = std::max<std::uint64_t>(1, c.slice / (blocks * element));
  s.slices = (longest + most - 1) / most;
  s.slice_bytes = std::min(most, longest) * element;
  if (o.kind == SUCL_KIND_REDUCE_SCATTER) {
    std::uint64_t at = 0;
    for (const std::uint64_t n : counts) {
      s.positions.push_back(at);
      at += n * element;
    }
  } else {
    s.positions_scale = o.element_size;
  }
  for (std::uint64_t k = 0; k < s.slices; ++k) {
    std::vector<std::uint64_t> part;
    for (const std::uint64_t n : counts)
      part.push_back(std::min(most, n > k * most ? n - k * most : 0));
    s.code.push_back(program_of(
        {c.algorithm, o.kind, 0, element, true, c.entered, std::move(part), ordered(o)}));
    if (!s.code.back()) return false;
  }
  return true;
}

plan::problem plan_cache::problem_of(const program_key& key) const {
  plan::problem p;
  p.kind = static_cast<kind>(key.kind);
  p.ranks = m_size;
  p.root = key.root;
  p.element_bytes = key.element;
  p.counts = key.counts;
  if (key.ordered) p.order = plan::ordering::fixed;
  return p;
}

// Messages within nodes become copies. Where ranks do not know whose input lies in its output,
// every plan has to work in place and out of place.
plan::schedule plan_cache::schedule_of(const program_key& key) const {
  if (key.kind == SUCL_KIND_BARRIER) return make_barrier(m_size);
  plan::schedule s = plan::build(problem_of(key), plan::recipe_from_text(key.algorithm));
  s = plan::share_local_messages(std::move(s), m_where.node_of);
  const bool scatters = key.kind == SUCL_KIND_SCATTER;
  if (key.entered || scatters || plan::serves_in_place(s)) return s;
  return plan::take_input_first(std::move(s));
}

blocking plan_cache::blocking_of(const program_key& key) const {
  blocking cut;
  if (!key.cut) return cut;
  const auto ends = ends_of(key.counts, m_size, key.element);
  if (sends_blocks(key.kind)) cut.send_ends = ends;
  if (receives_blocks(key.kind)) cut.recv_ends = ends;
  return cut;
}

// The program; null where it needs more scratch than there is.
const program* plan_cache::program_of(program_key key) {
  const auto found = m_programs.find(key);
  if (found != m_programs.end()) return found->second.get();
  plan::schedule s = schedule_of(key);
  for (const plan::program& p : s.ranks)
    if (p.scratch_bytes > m_slot_bytes) return nullptr;
  const plan::entry how = key.entered ? plan::entry::together : plan::entry::apart;
  if (key.entered) s = plan::enter_together(std::move(s));
  plan::verify_or_fail(s, how);
  auto made = std::make_unique<program>(lower(s, m_where, blocking_of(key)));
  made->in_place = key.kind == SUCL_KIND_BARRIER || plan::serves_in_place(s, how);
  return m_programs.emplace(std::move(key), std::move(made)).first->second.get();
}

}  // namespace sucl::core
