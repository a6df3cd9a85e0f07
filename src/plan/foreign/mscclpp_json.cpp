// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/mscclpp_json.hpp"

#include "base/error.hpp"
#include "plan/foreign/mscclpp_parse.hpp"
#include "plan/ir/builder.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace sucl::plan {
namespace mscclpp {
namespace {

constexpr std::uint64_t element = 4;  // bytes
constexpr std::uint64_t max_divisions = 256, max_scratch = 1 << 20;

[[noreturn]] void refuse(const std::string& what, const std::string& cure) {
  base::fail(errc::invalid_argument, what, cure);
}

// Which operand of an operation is packets, that arrive with their own flags.
struct packet_use {
  std::size_t from = none, to = none;  ///< the first operand that is; those behind it are too
  static constexpr std::size_t none = ~std::size_t{0};
};
packet_use packets_of(const operation& o) {
  static const std::map<std::string, packet_use> uses{{"ppkt", {packet_use::none, 0}},
                                                      {"cpkt", {packet_use::none, 0}},
                                                      {"rppkt", {0, 0}},
                                                      {"gstorepkt", {0, 0}},
                                                      {"upkt", {0, packet_use::none}},
                                                      {"repkt", {1, packet_use::none}},
                                                      {"respkt", {1, 1}},
                                                      {"recpkt", {1, 1}},
                                                      {"recspkt", {1, 1}}};
  const auto use = uses.find(o.name);
  return use == uses.end() ? packet_use{} : use->second;
}

// Elements of a chunk, so that all parts of it are whole.
std::uint64_t divisions_of(const plan_text& p) {
  std::uint64_t parts = 1;
  for (const gpu& g : p.gpus)
    for (const auto& block : g.blocks)
      for (const operation& o : block)
        parts = std::min(max_divisions + 1,
                         std::lcm(parts, static_cast<std::uint64_t>(o.slices * o.iterations)));
  if (parts > max_divisions)
    refuse("a chunk is divided into more than " + std::to_string(max_divisions) + " parts",
           "Give a plan with smaller groups of thread blocks.");
  return parts;
}

problem problem_of(const plan_text& plan, std::uint64_t divisions) {
  static const std::map<std::string, kind> kinds{{"allreduce", kind::allreduce},
                                                 {"allgather", kind::allgather},
                                                 {"alltoall", kind::alltoall},
                                                 {"reducescatter", kind::reduce_scatter_block}};
  const auto known = kinds.find(plan.collective);
  if (known == kinds.end())
    refuse("'" + plan.collective + "' is no collective that is proved",
           "These are: allreduce, allgather, alltoall, reducescatter.");
  problem p;
  p.kind = known->second;
  p.ranks = static_cast<std::int32_t>(plan.gpus.size());
  p.element_bytes = element;
  p.in_place = plan.in_place;
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  std::uint64_t chunks = plan.gpus[0].inputs;
  for (const gpu& g : plan.gpus)
    if (g.inputs != chunks || chunks == 0)
      refuse("the GPUs have no input chunks, or unlike numbers of them", "Correct input_chunks.");
  if (p.kind == kind::alltoall || p.kind == kind::reduce_scatter_block) {
    if (chunks % ranks != 0)
      refuse(std::to_string(chunks) + " chunks are no whole number of blocks for " +
                 std::to_string(ranks) + " GPUs",
             "Correct input_chunks.");
    chunks /= ranks;
  }
  p.counts = {chunks * divisions};
  if (p.kind != kind::reduce_scatter_block || !p.in_place) return p;
  // The block of a rank stays where it is in the vector.
  p.kind = kind::group;
  const std::uint64_t block = chunks * divisions;
  p.counts = {block * ranks, block * ranks};
  for (std::uint64_t r = 0; r < ranks; ++r)
    p.outcome.push_back(
        {{r * block * element, block * element, {{0, p.ranks, r * block * element}}}});
  return p;
}

/// An operation of a thread block.
struct operation_id {
  int rank = 0, block = 0;
  std::size_t number = 0;
  auto operator<=>(const operation_id&) const = default;
};

class translator {
 public:
  explicit translator(const plan_text& p)
      : m_plan(p), m_divisions(divisions_of(p)), m_builder(problem_of(p, m_divisions)) {}

  schedule run() {
    for (int r = 0; r < ranks(); ++r) {
      const std::uint64_t elements = gpu_of(r).scratch * m_divisions;
      if (elements > max_scratch)
        refuse("GPU " + std::to_string(r) + " has too much scratch", "Give a smaller plan.");
      m_scratch.push_back(elements ? m_builder.scratch(r, elements * element) : address{});
      m_writers.emplace_back(elements);
    }
    each([&](const operation_id& at, const operation& o) { note(at, o); });
    each([&](const operation_id& at, const operation& o) { match_packets(at, o); });
    each([&](const operation_id& at, const operation& o) {
      m_builder.set_channel(at.block);
      wait_for_packets(at);
      write(at, o);
      signal_readers(at);
    });
    return m_builder.finish("MSCCL++'s " + m_plan.name);
  }

 private:
  int ranks() const { return static_cast<int>(m_plan.gpus.size()); }
  const gpu& gpu_of(int rank) const { return m_plan.gpus[static_cast<std::size_t>(rank)]; }
  template <class Work>
  void each(Work work) const {
    for (int r = 0; r < ranks(); ++r)
      for (std::size_t b = 0; b < gpu_of(r).blocks.size(); ++b)
        for (std::size_t n = 0; n < gpu_of(r).blocks[b].size(); ++n)
          work(operation_id{r, static_cast<int>(b), n}, gpu_of(r).blocks[b][n]);
  }

  // ---- memory

  /// The part of a buffer that an operation works on, in elements from the buffer's start.
  struct part {
    std::uint64_t first = 0, count = 0;
  };
  part part_of(const buffer_range& b, const operation& o) const {
    const auto slices = static_cast<std::uint64_t>(o.slices);
    const auto iterations = static_cast<std::uint64_t>(o.iterations);
    const std::uint64_t slice = b.chunks * m_divisions / slices, count = slice / iterations;
    return {b.chunk * m_divisions + slice * static_cast<std::uint64_t>(o.slice) +
                count * static_cast<std::uint64_t>(o.iteration),
            count};
  }
  address at(int owner, const buffer_range& b, const operation& o) const {
    const part p = part_of(b, o);
    const std::uint64_t offset = p.first * element;
    const problem& what = m_builder.what();
    if (b.type == 's') {
      if (p.first + p.count > gpu_of(owner).scratch * m_divisions)
        refuse(o.where + ": the scratch buffer ends before that", "Correct scratch_chunks.");
      return m_scratch[static_cast<std::size_t>(owner)] + offset;
    }
    if (!what.in_place) return {b.type == 'i' ? space::send : space::recv, offset};
    if (what.kind == kind::group)  // a reducescatter
      return {space::recv,
              offset + (b.type == 'o' ? what.outcome[static_cast<std::size_t>(owner)].front().offset
                                      : 0)};
    return {space::recv, offset + (b.type == 'i' ? input_extent(what, owner).offset : 0)};
  }
  std::uint64_t bytes_of(const buffer_range& b, const operation& o) const {
    return part_of(b, o).count * element;
  }

  // ---- what has to be known before the first instruction

  void note(const operation_id& here, const operation& o) {
    if (o.name == "barrier") {
      const std::size_t turn = m_turns[{here.rank, here.block, o.barrier}]++;
      m_barriers[{here.rank, o.barrier, turn}].push_back(here);
      m_turn_of[here] = turn;
    }
    for (const int s : o.semaphores)
      if (static_cast<std::size_t>(s) >= gpu_of(here.rank).semaphores.size())
        refuse(o.where + ": its GPU has no semaphore " + std::to_string(s), "Correct the number.");
    for (const int s : o.semaphores)
      if (o.name == "sem_acquire") ++m_acquired[{here.rank, s}];
    const packet_use use = packets_of(o);
    for (std::size_t i = use.to; i < o.to.size(); ++i)
      for (const int owner : o.to[i].ranks)
        for_packets(owner, o.to[i], o, [&](std::vector<operation_id>& writers) {
          if (!writers.empty() && writers.back() != here)
            refuse(o.where + ": packets go to memory that has received packets before",
                   "Give each packet memory of its own.");
          if (writers.empty()) writers.push_back(here);
        });
  }
  template <class Work>
  void for_packets(int owner, const buffer_range& b, const operation& o, Work work) {
    if (b.type != 's')
      refuse(o.where + ": packets are in no scratch buffer", "Correct the buffer.");
    (void)at(owner, b, o);
    const part p = part_of(b, o);
    auto& all = m_writers[static_cast<std::size_t>(owner)];
    for (std::uint64_t e = p.first; e < p.first + p.count; ++e) work(all[e]);
  }
  void match_packets(const operation_id& here, const operation& o) {
    const packet_use use = packets_of(o);
    for (std::size_t i = use.from; i < o.from.size(); ++i)
      for_packets(here.rank, o.from[i], o, [&](const std::vector<operation_id>& writers) {
        // No packet is written here, so the operation waits for ever.
        const operation_id writer = writers.empty() ? operation_id{here.rank, -1, 0} : writers[0];
        if (!m_packets.try_emplace({writer, here}, 0).second) return;
        m_packets[{writer, here}] = ++m_flags;
        m_readers[writer].push_back(here);
        m_awaited[here].push_back(writer);
      });
  }
  void wait_for_packets(const operation_id& here) {
    const auto awaited = m_awaited.find(here);
    if (awaited == m_awaited.end()) return;
    for (const operation_id& w : awaited->second)
      m_builder.wait(here.rank, w.rank, m_packets.at({w, here}));
  }
  void signal_readers(const operation_id& here) {
    const auto readers = m_readers.find(here);
    if (readers == m_readers.end()) return;
    for (const operation_id& r : readers->second)
      m_builder.signal(here.rank, r.rank, m_packets.at({here, r}));
  }

  // ---- operations

  template <class... Key>
  std::uint64_t flag(const std::string& what, Key... key) {
    std::string name = what;
    ((name += ' ' + std::to_string(key)), ...);
    const auto [at, added] = m_named.try_emplace(name, 0);
    if (added) at->second = ++m_flags;
    return at->second;
  }

  void write(const operation_id& here, const operation& o) {
    static const std::set<std::string> nothing{"nop", "flush", "start"},
        moves{"copy", "put",   "pws",  "pwsf",   "get",      "ppkt",
              "cpkt", "rppkt", "upkt", "gstore", "gstorepkt"},
        folds{"re", "rre", "rres", "res", "glre", "glres"},
        packet_folds{"repkt", "respkt", "recpkt", "recspkt"};
    if (nothing.count(o.name)) return;
    if (o.name == "barrier") return barrier(here, o);
    if (o.name == "sem_acquire" || o.name == "sem_release") return semaphores(here, o);
    if (o.name == "signal" || o.name == "rlxsignal") return signal(here, o);
    if (o.name == "wait" || o.name == "rlxwait") return wait(here, o);
    const bool known = moves.count(o.name) || folds.count(o.name) || packet_folds.count(o.name);
    if (!known) refuse(o.where + ": such an operation is not known", "Give MSCCL++'s.");
    if (o.from.empty() || o.to.empty())
      refuse(o.where + ": it has no source or no destination", "Add src_buff and dst_buff.");
    if (moves.count(o.name))
      move(here, o);
    else
      fold(here, o, packet_folds.count(o.name) != 0);
    if (o.name == "pws" || o.name == "pwsf") signal(here, o);
  }

  void signal(const operation_id& here, const operation& o) {
    for (const channel_end& c : o.channels)
      m_builder.signal(here.rank, c.peer, flag(c.type, here.rank, c.peer, c.number));
  }
  void wait(const operation_id& here, const operation& o) {
    for (const channel_end& c : o.channels)
      m_builder.wait(here.rank, c.peer, flag(c.type, c.peer, here.rank, c.number));
  }

  // Each of the thread blocks signals the others.
  void barrier(const operation_id& here, const operation& o) {
    const auto& participants = m_barriers.at({here.rank, o.barrier, m_turn_of.at(here)});
    if (static_cast<int>(participants.size()) != o.barrier_blocks)
      refuse(o.where + ": " + std::to_string(participants.size()) +
                 " thread blocks come to the barrier",
             "Correct num_threadblocks.");
    for (const operation_id& other : participants)
      if (other.block != here.block)
        m_builder.signal(here.rank, here.rank, flag("barrier", o.barrier, here.block, other.block));
    for (const operation_id& other : participants)
      if (other.block != here.block)
        m_builder.wait(here.rank, here.rank, flag("barrier", o.barrier, other.block, here.block));
  }

  // The first acquisitions find what a semaphore has from the start, and none the last releases.
  void semaphores(const operation_id& here, const operation& o) {
    for (const int s : o.semaphores) {
      const std::uint64_t number = flag("semaphore", s);
      const int first = gpu_of(here.rank).semaphores[static_cast<std::size_t>(s)];
      auto& [acquired, released] = m_semaphores[{here.rank, s}];
      if (o.name == "sem_acquire" && acquired++ >= first)
        m_builder.wait(here.rank, here.rank, number);
      if (o.name == "sem_release" && released++ < m_acquired[{here.rank, s}] - first)
        m_builder.signal(here.rank, here.rank, number);
    }
  }

  // To every rank that the destination names.
  void deliver(int rank, const operation& o, const buffer_range& to, address src,
               std::uint64_t bytes) {
    for (const int owner : to.ranks) {
      const address dst = at(owner, to, o);
      if (owner == rank)
        m_builder.copy(rank, dst, src, bytes);
      else
        m_builder.put(rank, owner, remote(dst), src, bytes);
    }
    m_builder.fence(rank);
  }
  // One after the other from every rank that the source names.
  void collect(int rank, const operation& o, const buffer_range& from, address acc, bool& first,
               std::uint64_t bytes) {
    for (const int owner : from.ranks) {
      const address own = at(owner, from, o);
      const address src = owner == rank ? own : remote(own);
      const int peer = owner == rank ? -1 : owner;
      if (std::exchange(first, false))
        m_builder.copy(rank, acc, src, bytes, peer);
      else
        m_builder.reduce(rank, acc, src, bytes, peer);
    }
  }

  void move(const operation_id& here, const operation& o) {
    for (std::size_t i = 0; i < o.to.size(); ++i) {
      const buffer_range& from = o.from[std::min(i, o.from.size() - 1)];
      const std::uint64_t bytes = bytes_of(from, o);
      if (bytes != bytes_of(o.to[i], o))
        refuse(o.where + ": source and destination differ in size", "Correct their sizes.");
      if (from.ranks.size() != 1)
        refuse(o.where + ": it reads from several GPUs and does not reduce", "Correct the source.");
      const int owner = from.ranks.front();
      address src = at(owner, from, o);
      if (owner != here.rank) {
        const address local = m_builder.scratch(here.rank, bytes);
        m_builder.copy(here.rank, local, remote(src), bytes, owner);
        src = local;
      }
      deliver(here.rank, o, o.to[i], src, bytes);
    }
  }

  // Packets are folded before values in plain memory.
  void fold(const operation_id& here, const operation& o, bool packets) {
    const std::uint64_t bytes = bytes_of(o.from[0], o);
    const address acc = m_builder.scratch(here.rank, bytes);
    bool first = true;
    for (std::size_t i = packets ? 1 : 0; i < o.from.size(); ++i)
      collect(here.rank, o, o.from[i], acc, first, bytes);
    if (packets) collect(here.rank, o, o.from[0], acc, first, bytes);
    for (const buffer_range& to : o.to) {
      if (bytes_of(to, o) != bytes)
        refuse(o.where + ": source and destination differ in size", "Correct their sizes.");
      deliver(here.rank, o, to, acc, bytes);
    }
  }

  const plan_text& m_plan;
  std::uint64_t m_divisions;
  builder m_builder;
  std::vector<address> m_scratch;
  /// By rank and element of scratch: the operations that write packets there.
  std::vector<std::vector<std::vector<operation_id>>> m_writers;
  std::map<std::pair<operation_id, operation_id>, std::uint64_t> m_packets;  ///< their flags
  std::map<operation_id, std::vector<operation_id>> m_readers, m_awaited;
  std::map<std::tuple<int, int, int>, std::size_t> m_turns;
  std::map<std::tuple<int, int, std::size_t>, std::vector<operation_id>> m_barriers;
  std::map<operation_id, std::size_t> m_turn_of;
  std::map<std::pair<int, int>, int> m_acquired;                    ///< how often, in all
  std::map<std::pair<int, int>, std::pair<int, int>> m_semaphores;  ///< how often so far
  std::map<std::string, std::uint64_t> m_named;
  std::uint64_t m_flags = 0;
};

}  // namespace
}  // namespace mscclpp

bool is_mscclpp_json(std::string_view text) {
  return text.find("\"gpus\"") != text.npos && text.find("\"threadblocks\"") != text.npos;
}

schedule from_mscclpp_json(std::string_view text) {
  const mscclpp::plan_text plan = mscclpp::parse(text);
  return mscclpp::translator(plan).run();
}

}  // namespace sucl::plan
