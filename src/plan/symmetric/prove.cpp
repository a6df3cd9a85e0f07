// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/fold_rules.hpp"
#include "plan/serialization/text.hpp"
#include "plan/symmetric/prove_values.hpp"
#include "plan/symmetric/symmetric.hpp"
#include "plan/verify/check_form.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace sucl::plan {
namespace {

using value = translated_value;

// Ends the proof.
struct refused {
  verdict why;
};

constexpr std::int32_t no_channel = -1;

// What is known of a cell of rank 0.
struct cell {
  value holds;
  std::int32_t channel = no_channel;  // that touched it
  std::uint32_t reads = 0;            // sends from it that are not fenced
  bool arrives = false;               // a receive into it is not fenced
  bool written = false;
};

// A transfer that a channel has started.
struct transfer {
  const instruction* what = nullptr;
  cells_at at;
  std::size_t turn = 0;  // among those like it, see traffic
};

// What rank 0 sends to one peer by one channel and level, and what it receives, by translation,
// from the rank to which it is that peer.
struct traffic {
  std::vector<std::vector<value>> sent;
  std::vector<cells_at> from;
  std::vector<std::uint64_t> sizes;
  std::size_t receives = 0;
};

// A flag of the peer that rank 0 raises, and, by translation, that of rank 0 which it waits for.
struct flag {
  std::uint64_t raised = 0, taken = 0;
  std::int32_t raised_by = no_channel, awaited_by = no_channel;  // channels
};

struct thread {
  const channel* code = nullptr;
  std::size_t pc = 0;
  std::vector<transfer> posted;
  std::size_t finished = 0;
};

// Executes rank 0, and with it all ranks in step.
class symmetric_checker {
 public:
  explicit symmetric_checker(const symmetric_schedule& s)
      : m_schedule(s), m_ranks(s.ranks), m_values(m_ranks) {}

  verdict run() {
    check_regions();
    check_problem();
    prepare();
    for (bool moved = true; moved;) {
      moved = false;
      for (m_channel = 0; m_channel < m_threads.size(); ++m_channel) moved |= advance();
    }
    check_ends();
    check_outcome();
    verdict v;
    v.identical = true;
    v.peak_values = m_values.count();
    v.steps = m_steps;
    return v;
  }

 private:
  // ---- faults

  [[noreturn]] void stop(fault f, const std::string& why) const {
    verdict v;
    v.what = f;
    v.rank = 0;
    v.message = std::string(name(f)) + ": rank 0";
    if (m_channel < m_threads.size()) {
      const thread& t = m_threads[m_channel];
      v.channel = static_cast<int>(m_channel);
      v.message += ", channel " + std::to_string(m_channel);
      if (t.pc < t.code->size()) {
        v.instruction = static_cast<std::int64_t>(t.pc);
        v.message +=
            ", instruction " + std::to_string(t.pc) + " (" + to_text((*t.code)[t.pc]) + ")";
      }
    }
    v.message += ": " + why;
    throw refused{std::move(v)};
  }

  // ---- before the first instruction

  // Regions lie in order, apart from each other and in their spaces, and have each dimension once.
  void check_regions() {
    const region* before = nullptr;
    for (const region& r : m_schedule.regions) {
      if (r.where < space::send || r.where > space::scratch || r.cell == 0)
        stop(fault::malformed, "a region has no space or no bytes");
      std::uint64_t cells = 1;
      std::set<int> known;
      for (const int d : r.dimensions) {
        if (d < 0 || d >= m_ranks.count() || !known.insert(d).second)
          stop(fault::malformed, "a region has a dimension that is no digit, or has it twice");
        cells *= static_cast<std::uint64_t>(m_ranks.radix(d));
      }
      if (cells != r.cells || (r.folded && (r.dimensions.size() != 1 || r.where != space::scratch)))
        stop(fault::malformed, "a region has not the cells that its dimensions say");
      if (before && before->where == r.where && before->end() > r.offset)
        stop(fault::malformed, "two regions overlap");
      if (before && before->where > r.where) stop(fault::malformed, "regions are out of order");
      if (r.offset > max_bytes || r.cell > max_bytes / r.cells || r.end() > bytes_of(r.where))
        stop(fault::out_of_bounds, "a region ends beyond its space");
      before = &r;
    }
  }

  std::uint64_t bytes_of(space where) const {
    if (where == space::scratch) return m_schedule.scratch_bytes;
    return where == space::send ? send_bytes(m_schedule.what, 0) : recv_bytes(m_schedule.what, 0);
  }

  // Translating ranks and cells must take the collective to itself: blocks of ranks move as ranks
  // do; the elements of an allreduce may move in any way that is the same for inputs and outputs.
  void check_problem() const {
    const problem& p = m_schedule.what;
    if (p.in_place || p.ranks != m_ranks.ranks() ||
        (p.order != ordering::any && p.order != ordering::free))
      stop(fault::malformed, "the plan is in place, in an order of ranks, or of other ranks");
    std::vector<int> all;
    for (int d = 0; d < m_ranks.count(); ++d) all.push_back(d);
    const auto blocks = [&](space where, bool many) {
      const auto ranks = many ? static_cast<std::uint64_t>(p.ranks) : 1;
      const region whole{where, 0,    bytes_of(where) / ranks, many ? all : std::vector<int>{},
                         ranks, false};
      return regions_of(where) == std::vector<region>{whole};
    };
    bool right = false;
    switch (p.kind) {
      case kind::allgather: right = blocks(space::send, false) && blocks(space::recv, true); break;
      case kind::alltoall: right = blocks(space::send, true) && blocks(space::recv, true); break;
      case kind::reduce_scatter_block:
        right = blocks(space::send, true) && blocks(space::recv, false);
        break;
      case kind::allreduce: right = covers_alike(); break;
      default: break;
    }
    if (!right)
      stop(fault::malformed,
           "translations of ranks and cells do not take the collective to itself");
  }

  std::vector<region> regions_of(space where) const {
    std::vector<region> list;
    for (const region& r : m_schedule.regions)
      if (r.where == where) list.push_back(r);
    return list;
  }

  bool covers_alike() const {
    std::vector<region> in = regions_of(space::send);
    std::uint64_t end = 0;
    for (region& r : in) {
      if (r.offset != end || r.cell % m_schedule.what.element_bytes != 0) return false;
      end = r.end();
      r.where = space::recv;
    }
    return end == bytes_of(space::recv) && in == regions_of(space::recv);
  }

  void prepare() {
    for (const region& r : m_schedule.regions) {
      m_first.push_back(m_cells.size());
      m_cells.resize(m_cells.size() + r.cells);
      if (r.where != space::send) continue;
      for (std::uint64_t c = 0; c < r.cells; ++c)
        m_cells[m_first.back() + c].holds = m_values.input(r.offset + c * r.cell);
    }
    for (const channel& c : m_schedule.channels) {
      thread t;
      t.code = &c;
      m_threads.push_back(std::move(t));
    }
    m_channel = m_threads.size();
  }

  // ---- cells

  cells_at whole_cells(space where, std::uint64_t offset, std::uint64_t bytes) const {
    const cells_at at = cells_of(m_schedule, where, offset, bytes);
    if (!at.in)
      stop(fault::malformed, std::string(name(where)) + "+" + std::to_string(offset) +
                                 " are no whole cells that stay together on other ranks");
    return at;
  }
  cell& cell_at(const cells_at& at, std::uint64_t i) {
    return m_cells[m_first[static_cast<std::size_t>(at.in - m_schedule.regions.data())] + at.first +
                   i];
  }

  // Nothing orders the channels of a rank here, so each cell that is written has one.
  void touch(cell& c, bool writes, const region& in) {
    ++m_steps;
    const auto own = static_cast<std::int32_t>(m_channel);
    if (writes && in.where == space::send) stop(fault::read_only, "it writes to the input");
    if (c.channel == no_channel) c.channel = own;
    if (c.channel != own && (writes || c.written))
      stop(fault::race, "another channel accesses the same cell");
    if (c.arrives) stop(fault::race, "a receive into the same cell is not fenced");
    if (writes && c.reads > 0) stop(fault::race, "a send from the same cell is not fenced");
    c.written |= writes;
  }
  value read(const cells_at& at, std::uint64_t i) {
    cell& c = cell_at(at, i);
    touch(c, false, *at.in);
    if (c.holds.node == 0) stop(fault::unset_read, "nothing was written there before it is read");
    return c.holds;
  }
  void write(const cells_at& at, std::uint64_t i, value v) {
    cell& c = cell_at(at, i);
    touch(c, true, *at.in);
    c.holds = v;
  }

  // The cells of two accesses must stay in the same order when they are translated.
  void check_alike(const cells_at& a, const cells_at& b) const {
    const auto inner = [](const cells_at& at) {
      return std::vector<int>(at.in->dimensions.end() - at.inner, at.in->dimensions.end());
    };
    if (a.count != b.count || inner(a) != inner(b))
      stop(fault::malformed, "source and destination are translated in different ways");
  }

  // ---- execution

  // Goes on until the channel waits; whether it did anything.
  bool advance() {
    thread& t = m_threads[m_channel];
    bool moved = false;
    while (t.pc < t.code->size()) {
      const std::size_t done = step(t, (*t.code)[t.pc]);
      if (done == 0) return moved;
      t.pc += done;
      moved = true;
    }
    return moved;
  }

  // How many instructions were executed; 0 if it has to wait.
  std::size_t step(thread& t, const instruction& i) {
    ++m_steps;
    if (i.op != opcode::fence && i.level >= m_schedule.levels.size())
      stop(fault::malformed, "there is no such level");
    if (is_remote(i.src) || is_remote(i.dst))
      stop(fault::malformed, "symmetric plans do not access peers' memory");
    switch (i.op) {
      case opcode::copy: return copy(t, i);
      case opcode::reduce: return reduce(t, i);
      case opcode::send: return post(t, i, true);
      case opcode::receive: return post(t, i, false);
      case opcode::fence: return fence(t, i.bytes);
      case opcode::signal: {
        flag& f = m_flags[{i.dst_offset, peer_of(i)}];
        claim(f.raised_by);
        ++f.raised;
        return 1;
      }
      case opcode::wait: {
        flag& f = m_flags[{i.dst_offset, m_ranks.negate(peer_of(i))}];
        claim(f.awaited_by);
        if (f.taken == f.raised) return 0;
        ++f.taken;
        return 1;
      }
      default: stop(fault::malformed, "symmetric plans do not access peers' memory");
    }
  }

  int peer_of(const instruction& i) const {
    if (i.peer < 0 || i.peer >= m_ranks.ranks()) stop(fault::malformed, "there is no such peer");
    return i.peer;
  }

  // All signals of a flag come from one channel, all waits too: else timing would pair them.
  void claim(std::int32_t& channel) const {
    const auto own = static_cast<std::int32_t>(m_channel);
    if (channel == no_channel) channel = own;
    if (channel != own) stop(fault::race, "another channel uses the same flag");
  }

  std::size_t copy(thread& t, const instruction& i) {
    const cells_at from = whole_cells(i.src, i.src_offset, i.bytes);
    if (from.in->folded) return fold_along(t, i, from);
    const cells_at to = whole_cells(i.dst, i.dst_offset, i.bytes);
    check_alike(from, to);
    if (to.in->folded && to.count != 1) stop(fault::malformed, "it fills parts of a fold");
    for (std::uint64_t k = 0; k < from.count; ++k) write(to, k, read(from, k));
    return 1;
  }

  static bool same_target(const instruction& a, const instruction& b) {
    return (b.op == opcode::copy || b.op == opcode::reduce) && a.dst == b.dst &&
           a.dst_offset == b.dst_offset && a.bytes == b.bytes;
  }

  std::size_t reduce(thread& t, const instruction& i) {
    const cells_at from = whole_cells(i.src, i.src_offset, i.bytes);
    if (from.in->folded) stop(fault::malformed, "it takes up a fold in its middle");
    const cells_at to = whole_cells(i.dst, i.dst_offset, i.bytes);
    check_alike(from, to);
    if (from.in->cell % m_schedule.what.element_bytes != 0)
      stop(fault::malformed, "what is combined are no whole elements");
    const bool goes_on = t.pc > 0 && same_target(i, (*t.code)[t.pc - 1]);
    const bool open = goes_on || (t.pc + 1 < t.code->size() && same_target(i, (*t.code)[t.pc + 1]));
    const bool commutes = fold_rules::of(m_schedule.what.element_bytes).commutative && !open;
    for (std::uint64_t k = 0; k < from.count; ++k) {
      const value other = read(from, k);
      write(to, k, m_values.combine(read(to, k), other, commutes, open));
    }
    return 1;
  }

  // All parts of a fold, in the order of their cells.
  std::size_t fold_along(thread& t, const instruction& first, const cells_at& from) {
    const region& in = *from.in;
    if (from.first != 0 || from.count != 1)
      stop(fault::malformed, "a fold begins at its first part");
    const cells_at to = whole_cells(first.dst, first.dst_offset, first.bytes);
    if (to.count != 1 || in.cell % m_schedule.what.element_bytes != 0)
      stop(fault::malformed, "a fold is of one cell of whole elements");
    std::vector<value> parts;
    for (std::uint64_t c = 0; c < in.cells; ++c) {
      const std::size_t pc = t.pc + c;
      if (pc >= t.code->size()) stop(fault::malformed, "the fold ends before its last part");
      const instruction& i = (*t.code)[pc];
      const bool right = i.op == (c == 0 ? opcode::copy : opcode::reduce) && i.dst == first.dst &&
                         i.dst_offset == first.dst_offset && i.bytes == first.bytes &&
                         i.src == in.where && i.src_offset == in.offset + c * in.cell;
      if (!right) stop(fault::malformed, "the fold leaves out a part, or goes on elsewhere");
      parts.push_back(read({&in, c, 1, 0}, 0));
    }
    const auto folded = m_values.fold_along(in.dimensions[0], parts);
    if (!folded) stop(fault::differs, "the parts of the fold are not alike");
    write(to, 0, *folded);
    return in.cells;
  }

  // ---- messages

  traffic& traffic_to(int peer, const instruction& i) {
    return m_traffic[{m_channel, i.level, peer}];
  }

  std::size_t post(thread& t, const instruction& i, bool sends) {
    const int peer = peer_of(i);
    const cells_at at = sends ? whole_cells(i.src, i.src_offset, i.bytes)
                              : whole_cells(i.dst, i.dst_offset, i.bytes);
    traffic& with = traffic_to(sends ? peer : m_ranks.negate(peer), i);
    t.posted.push_back({&i, at, sends ? with.sent.size() : with.receives++});
    std::vector<value> message;
    for (std::uint64_t k = 0; k < at.count; ++k) {
      cell& c = cell_at(at, k);
      if (sends) {
        message.push_back(read(at, k));
        ++c.reads;
      } else {
        touch(c, true, *at.in);
        c.arrives = true;
      }
    }
    if (!sends) return 1;
    with.sent.push_back(std::move(message));
    with.from.push_back(at);
    with.sizes.push_back(i.bytes);
    return 1;
  }

  // All transfers but the latest `keep` must be done.
  std::size_t fence(thread& t, std::uint64_t keep) {
    const std::size_t until =
        t.posted.size() - static_cast<std::size_t>(std::min<std::uint64_t>(keep, t.posted.size()));
    for (std::size_t k = t.finished; k < until; ++k) {
      const transfer& x = t.posted[k];
      const bool sends = x.what->op == opcode::send;
      const traffic& with =
          traffic_to(sends ? x.what->peer : m_ranks.negate(x.what->peer), *x.what);
      if (x.turn >= (sends ? with.receives : with.sent.size())) return 0;
    }
    for (; t.finished < until; ++t.finished) {
      const transfer& x = t.posted[t.finished];
      if (x.what->op == opcode::send)
        for (std::uint64_t k = 0; k < x.at.count; ++k) --cell_at(x.at, k).reads;
      else
        take_in(x);
    }
    return 1;
  }

  // What the peer sends is what rank 0 sends, translated by the peer's number.
  void take_in(const transfer& x) {
    const int peer = x.what->peer;
    traffic& with = traffic_to(m_ranks.negate(peer), *x.what);
    if (with.sizes[x.turn] != x.what->bytes)
      stop(fault::length, "the message has " + std::to_string(with.sizes[x.turn]) + " bytes");
    const cells_at& from = with.from[x.turn];
    check_alike(from, x.at);
    std::vector<value> message = std::exchange(with.sent[x.turn], {});
    for (std::uint64_t k = 0; k < x.at.count; ++k) {
      const std::uint64_t index = translated(m_ranks, *from.in, from.first + k, peer) % from.count;
      cell& c = cell_at(x.at, index);
      c.arrives = false;
      c.holds = m_values.translate(message[k], peer);
      ++m_steps;
    }
  }

  // ---- the end

  void check_ends() {
    for (m_channel = 0; m_channel < m_threads.size(); ++m_channel) {
      const thread& t = m_threads[m_channel];
      if (t.pc < t.code->size()) stop(fault::deadlock, "it waits for ever, as all ranks do");
      if (t.finished < t.posted.size())
        stop(fault::unfinished, "no fence finishes the last transfers");
    }
    for (const auto& [key, with] : m_traffic)
      if (with.sent.size() != with.receives)
        stop(fault::unmatched, "it sends " + std::to_string(with.sent.size()) +
                                   " messages to rank " + std::to_string(std::get<2>(key)) +
                                   ", which receives " + std::to_string(with.receives));
    for (const auto& [key, f] : m_flags)
      if (f.raised != f.taken) stop(fault::unmatched, "no wait takes a signal");
  }

  void check_outcome() {
    std::uint64_t end = 0;
    for (const region& r : m_schedule.regions) {
      if (r.where != space::recv) continue;
      if (r.offset != end) stop(fault::result, "a part of the result is in no region");
      end = r.end();
      for (std::uint64_t c = 0; c < r.cells; ++c) check_cell(r, c);
      if (m_schedule.what.kind == kind::allreduce) check_same(r);
    }
    if (end != bytes_of(space::recv)) stop(fault::result, "a part of the result is in no region");
  }

  value result_at(const region& r, std::uint64_t c) { return cell_at({&r, c, 1, 0}, 0).holds; }

  void check_cell(const region& r, std::uint64_t c) {
    const value v = result_at(r, c);
    const std::uint64_t offset = r.offset + c * r.cell;
    const auto wrong = [&](fault f, const std::string& why) {
      stop(f, "recv byte " + std::to_string(offset) + ": " + why);
    };
    if (v.node == 0) wrong(fault::result, "nothing was written there");
    // Expressions that are translations of each other are checked once: the cell where the
    // untranslated one would lie says whether its inputs are those of this cell.
    const int back = m_ranks.negate(v.by);
    if (!m_right.insert({v.node, r.offset, translated(m_ranks, r, c, back), only_rank(offset, v)})
             .second)
      return;
    std::vector<bool> seen(static_cast<std::size_t>(m_ranks.ranks()));
    std::size_t count = 0;
    m_values.for_each_input(v, [&](int rank, std::uint64_t input) {
      ++m_steps;
      if (seen[static_cast<std::size_t>(rank)])
        wrong(fault::twice, "the contribution of rank " + std::to_string(rank) + " is in it twice");
      seen[static_cast<std::size_t>(rank)] = true;
      ++count;
      if (offset_on(rank, input) != expected_offset(rank, offset))
        wrong(fault::result, "rank " + std::to_string(rank) + " contributes other elements");
      return true;
    });
    if (reduces(m_schedule.what.kind)) {
      if (count != seen.size())
        wrong(fault::result, std::to_string(count) + " of all ranks contribute to it");
      return;
    }
    const extent block = output_block(m_schedule.what, 0, 0);
    const std::size_t owner = static_cast<std::size_t>(offset / block.bytes);
    if (count != 1 || !m_values.is_input(v) || !seen[owner])
      wrong(fault::result, "it is not what rank " + std::to_string(owner) + " contributes");
  }

  // Translations of a copy are checked one by one.
  std::int32_t only_rank(std::uint64_t offset, value v) const {
    return reduces(m_schedule.what.kind) || offset > max_bytes ? no_channel : v.by;
  }

  // Where in the input of `rank` the translation of this offset of rank 0's input lies.
  std::uint64_t offset_on(int rank, std::uint64_t offset) const {
    const region& in = *cells_of(m_schedule, space::send, offset, cell_bytes(offset)).in;
    const std::uint64_t cell = (offset - in.offset) / in.cell;
    return in.offset + translated(m_ranks, in, cell, rank) * in.cell;
  }
  std::uint64_t cell_bytes(std::uint64_t offset) const {
    for (const region& r : m_schedule.regions)
      if (r.where == space::send && r.offset <= offset && offset < r.end()) return r.cell;
    return 0;
  }
  std::uint64_t expected_offset(int rank, std::uint64_t offset) const {
    const problem& p = m_schedule.what;
    if (p.kind == kind::allreduce) return offset;
    if (p.kind == kind::reduce_scatter_block) return input_block(p, rank, 0).offset + offset;
    const std::uint64_t block = output_block(p, 0, 0).bytes;
    return input_block(p, rank, 0).offset + offset % block;
  }

  // All ranks hold the same expression of an element. A translation by one step of a digit takes
  // rank 0's to those of another rank, and such steps lead to all ranks.
  void check_same(const region& r) {
    for (int d = 0; d < m_ranks.count(); ++d)
      for (std::uint64_t c = 0; c < r.cells; ++c) {
        const int by = m_ranks.stride(d);
        const std::uint64_t there = translated(m_ranks, r, c, by);
        if (m_values.translate(result_at(r, c), by) != result_at(r, there))
          stop(fault::differs, "recv byte " + std::to_string(r.offset + there * r.cell) +
                                   " is combined in another way on rank " + std::to_string(by));
      }
  }

  const symmetric_schedule& m_schedule;
  const digits m_ranks;
  translated_values m_values;
  std::vector<std::size_t> m_first;  // by region: its first cell
  std::vector<cell> m_cells;
  std::vector<thread> m_threads;
  std::size_t m_channel = 0;
  std::map<std::tuple<std::size_t, std::uint8_t, int>, traffic> m_traffic;
  std::map<std::pair<std::uint64_t, int>, flag> m_flags;  // by number and peer
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::int32_t>> m_right;
  std::uint64_t m_steps = 0;
};

}  // namespace

verdict prove(const symmetric_schedule& s) {
  check(s.what);
  schedule first{s.what, {}, s.levels, {}};
  first.ranks.resize(static_cast<std::size_t>(s.what.ranks));
  first.ranks[0] = {s.scratch_bytes, s.channels};
  if (verdict form = check_form(first); !form) return form;
  try {
    return symmetric_checker(s).run();
  } catch (refused& r) {
    return std::move(r.why);
  }
}

}  // namespace sucl::plan
