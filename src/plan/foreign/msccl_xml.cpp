// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/msccl_xml.hpp"

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "plan/foreign/xml.hpp"
#include "plan/ir/builder.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace sucl::plan {
namespace msccl {
namespace {

constexpr std::uint64_t element = 4;  // bytes of a chunk
using range = base::bounds<std::int64_t>;
constexpr range ranks_allowed{1, 1024}, chunks_allowed{0, 1 << 20}, peers_allowed{-1, 1023},
    numbers_allowed{-1, 1 << 20};
constexpr std::size_t max_steps = 1 << 20;

struct step {
  std::string what;
  char src_buffer = 'i', dst_buffer = 'o';
  std::int64_t src = 0, dst = 0, count = 0;
  std::int64_t wait_for = -1, wait_step = -1;  // thread block and its step
  std::size_t line = 0;
};
struct thread_block {
  std::int64_t id = 0, send = -1, receive = -1, channel = 0;
  std::vector<step> steps;
  std::size_t line = 0;
};
struct gpu {
  std::int64_t inputs = 0, outputs = 0, scratch = 0;
  std::vector<thread_block> blocks;
};
struct algorithm {
  std::string name, collective;
  std::int64_t chunks = 0;
  bool in_place = false;
  std::vector<gpu> gpus;
};

[[noreturn]] void refuse(std::size_t line, const std::string& what, const std::string& cure) {
  base::fail(errc::invalid_argument, "line " + std::to_string(line) + ": " + what, cure);
}

std::string text_of(const xml_tag& tag, const char* name) {
  for (const auto& [key, value] : tag.attributes)
    if (key == name) return value;
  refuse(tag.line, "<" + tag.name + "> has no '" + name + "'",
         "Add it, as MSCCL's tools write it.");
}

std::int64_t number_of(const xml_tag& tag, const char* name, range allowed) {
  const std::string text = text_of(tag, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    refuse(tag.line, std::string(name) + " = \"" + text.substr(0, 20) + "\" is no number",
           "Write a whole number.");
  base::check_bounds("line " + std::to_string(tag.line), name, value, allowed,
                     errc::invalid_argument);
  return value;
}

char buffer_of(const xml_tag& tag, const char* name) {
  const std::string text = text_of(tag, name);
  if (text != "i" && text != "o" && text != "s")
    refuse(tag.line, std::string(name) + " names no buffer", "Buffers are \"i\", \"o\" and \"s\".");
  return text[0];
}

step step_of(const xml_tag& tag) {
  step s;
  s.what = text_of(tag, "type");
  s.line = tag.line;
  s.wait_for = number_of(tag, "depid", numbers_allowed);
  s.wait_step = number_of(tag, "deps", numbers_allowed);
  if (s.what == "nop") return s;
  s.src_buffer = buffer_of(tag, "srcbuf");
  s.dst_buffer = buffer_of(tag, "dstbuf");
  s.src = number_of(tag, "srcoff", numbers_allowed);
  s.dst = number_of(tag, "dstoff", numbers_allowed);
  s.count = number_of(tag, "cnt", {1, chunks_allowed.high});
  return s;
}

algorithm parse(std::string_view text) {
  xml_reader reader(text);
  algorithm a;
  std::vector<std::string> open;
  std::size_t steps = 0;
  for (xml_tag tag = reader.next(); !tag.name.empty(); tag = reader.next()) {
    if (!tag.begins) {
      if (open.empty() || open.back() != tag.name)
        refuse(tag.line, "</" + tag.name + "> ends nothing", "Close elements in their order.");
      open.pop_back();
      continue;
    }
    const std::string outer = open.empty() ? "" : open.back();
    if (tag.name == "algo" && outer.empty() && a.name.empty()) {
      a.name = text_of(tag, "name");
      a.collective = text_of(tag, "coll");
      a.chunks = number_of(tag, "nchunksperloop", {1, chunks_allowed.high});
      a.in_place = number_of(tag, "inplace", {0, 1}) == 1;
      number_of(tag, "ngpus", ranks_allowed);
    } else if (tag.name == "gpu" && outer == "algo") {
      const auto id = number_of(tag, "id", {0, ranks_allowed.high - 1});
      if (id != static_cast<std::int64_t>(a.gpus.size()))
        refuse(tag.line, "gpu " + std::to_string(id) + " is not the next one",
               "List the GPUs in their order from 0.");
      a.gpus.push_back({number_of(tag, "i_chunks", chunks_allowed),
                        number_of(tag, "o_chunks", chunks_allowed),
                        number_of(tag, "s_chunks", chunks_allowed),
                        {}});
    } else if (tag.name == "tb" && outer == "gpu") {
      thread_block b;
      b.id = number_of(tag, "id", {0, numbers_allowed.high});
      b.send = number_of(tag, "send", peers_allowed);
      b.receive = number_of(tag, "recv", peers_allowed);
      b.channel = number_of(tag, "chan", numbers_allowed);
      b.line = tag.line;
      a.gpus.back().blocks.push_back(std::move(b));
    } else if (tag.name == "step" && outer == "tb") {
      if (++steps > max_steps)
        refuse(tag.line, "there are more than " + std::to_string(max_steps) + " steps",
               "Give a smaller plan.");
      a.gpus.back().blocks.back().steps.push_back(step_of(tag));
    } else {
      refuse(tag.line, "<" + tag.name + "> does not belong here",
             "A plan is <algo>, with <gpu>, with <tb>, with <step>.");
    }
    if (!tag.ends) open.push_back(tag.name);
  }
  if (a.gpus.empty() || !open.empty())
    base::fail(errc::invalid_argument, "the text has no whole <algo> with GPUs",
               "Give a plan of MSCCL.");
  return a;
}

problem problem_of(const algorithm& a) {
  static const std::map<std::string, std::pair<kind, bool>> kinds{
      {"allreduce", {kind::allreduce, false}},
      {"allgather", {kind::allgather, true}},
      {"alltoall", {kind::alltoall, true}},
      {"reduce_scatter", {kind::reduce_scatter_block, true}},
      {"broadcast", {kind::broadcast, false}},
      {"reduce", {kind::reduce, false}}};
  const auto known = kinds.find(a.collective);
  if (known == kinds.end())
    base::fail(errc::invalid_argument,
               "'" + a.collective.substr(0, 40) + "' is no collective that is proved",
               "These are: allreduce, allgather, alltoall, reduce_scatter, broadcast, reduce.");
  problem p;
  p.kind = known->second.first;
  p.ranks = static_cast<std::int32_t>(a.gpus.size());
  p.element_bytes = element;
  p.in_place = a.in_place;
  const bool blocks = known->second.second;
  if (blocks && a.chunks % p.ranks != 0)
    base::fail(errc::invalid_argument,
               std::to_string(a.chunks) + " chunks are no whole number of blocks for " +
                   std::to_string(p.ranks) + " GPUs",
               "Correct nchunksperloop.");
  p.counts = {static_cast<std::uint64_t>(blocks ? a.chunks / p.ranks : a.chunks)};
  return p;
}

class translator {
 public:
  explicit translator(const algorithm& a) : m_algorithm(a), m_builder(problem_of(a)) {}

  schedule run() {
    number_channels();
    note_waits();
    for (int r = 0; r < ranks(); ++r) {
      const auto& g = m_algorithm.gpus[index(r)];
      m_scratch = m_builder.scratch(r, static_cast<std::uint64_t>(g.scratch) * element);
      for (const thread_block& b : g.blocks) write(r, b);
    }
    return m_builder.finish("MSCCL's " + m_algorithm.name);
  }

 private:
  // A thread block of a rank.
  using block = std::pair<int, std::int64_t>;
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  int ranks() const { return static_cast<int>(m_algorithm.gpus.size()); }

  // Thread blocks run in channels; what they send leaves by channels of its own, which have the
  // number of the channel that receives it.
  void number_channels() {
    std::vector<int> next(index(ranks()));
    std::map<std::tuple<int, std::int64_t, std::int64_t>, const thread_block*> senders;
    for (int r = 0; r < ranks(); ++r)
      for (const thread_block& b : m_algorithm.gpus[index(r)].blocks)
        if (b.send >= 0 && (b.send >= ranks() || b.send == r ||
                            !senders.emplace(std::tuple(r, b.send, b.channel), &b).second))
          refuse(b.line, "no thread block of its own sends to GPU " + std::to_string(b.send),
                 "Each peer and channel has one thread block that sends.");
    for (int r = 0; r < ranks(); ++r)
      for (const thread_block& b : m_algorithm.gpus[index(r)].blocks) {
        if (b.receive < 0) continue;
        if (b.receive >= ranks() || b.receive == r)
          refuse(b.line, "GPU " + std::to_string(b.receive) + " is no peer", "Correct recv.");
        const int from = static_cast<int>(b.receive);
        const int number = std::max(next[index(r)], next[index(from)]);
        next[index(r)] = next[index(from)] = number + 1;
        m_channels[{r, b.id}] = number;
        const auto sender = senders.find({from, r, b.channel});
        if (sender == senders.end()) continue;
        m_out[{from, sender->second->id}] = number;
        senders.erase(sender);
      }
    for (const auto& [key, b] : senders)
      m_out[{std::get<0>(key), b->id}] = next[index(std::get<0>(key))]++;
    for (int r = 0; r < ranks(); ++r)
      for (const thread_block& b : m_algorithm.gpus[index(r)].blocks) {
        const bool fresh = m_blocks.emplace(block{r, b.id}, &b).second;
        if (!fresh)
          refuse(b.line, "there are two thread blocks " + std::to_string(b.id), "Number them.");
        if (b.receive < 0) m_channels[{r, b.id}] = next[index(r)]++;
      }
  }

  // The steps that other steps of the same rank wait for.
  void note_waits() {
    for (const auto& [self, b] : m_blocks)
      for (const step& s : b->steps) {
        if (s.wait_for < 0) continue;
        const auto other = m_blocks.find({self.first, s.wait_for});
        if (other == m_blocks.end() || s.wait_step < 0 ||
            s.wait_step >= static_cast<std::int64_t>(other->second->steps.size()))
          refuse(s.line,
                 "it waits for step " + std::to_string(s.wait_step) + " of thread block " +
                     std::to_string(s.wait_for) + ", which is not there",
                 "Correct depid and deps.");
        m_waiters[other->first][s.wait_step].emplace(self.second, 0);
      }
    for (auto& [self, steps] : m_waiters) {
      std::map<std::int64_t, std::uint64_t> counts;
      for (auto& [number, others] : steps)
        for (auto& [other, count] : others) count = ++counts[other];
    }
  }

  std::uint64_t flag(int rank, std::int64_t from, std::int64_t to) {
    return m_flags.try_emplace({rank, from, to}, m_flags.size()).first->second;
  }

  address at(int rank, char buffer, std::int64_t chunk, const step& s) const {
    if (chunk < 0) refuse(s.line, "an offset is negative", "Correct srcoff and dstoff.");
    const std::uint64_t offset = static_cast<std::uint64_t>(chunk) * element;
    const problem& p = m_builder.what();
    if (buffer == 's') {
      const std::int64_t size = m_algorithm.gpus[index(rank)].scratch;
      if (s.count > size || chunk > size - s.count)
        refuse(s.line, "the scratch buffer ends before that", "Correct s_chunks.");
      return m_scratch + offset;
    }
    if (!p.in_place) return {buffer == 'i' ? space::send : space::recv, offset};
    return {space::recv, offset + (buffer == 'i' ? input_extent(p, rank).offset : 0)};
  }

  void write(int rank, const thread_block& b) {
    const int channel = m_channels.at({rank, b.id});
    std::uint64_t sent = 0;
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(b.steps.size()); ++n) {
      const step& s = b.steps[index(n)];
      m_builder.set_channel(channel);
      if (s.wait_for >= 0) {
        std::uint64_t& taken = m_taken[{rank, s.wait_for, b.id}];
        for (const std::uint64_t until = m_waiters[{rank, s.wait_for}][s.wait_step][b.id];
             taken < until; ++taken)
          m_builder.wait(rank, rank, flag(rank, s.wait_for, b.id));
      }
      if (s.what != "nop") act(rank, b, s, channel, sent);
      m_builder.set_channel(channel);
      if (const auto steps = m_waiters.find({rank, b.id}); steps != m_waiters.end())
        if (const auto others = steps->second.find(n); others != steps->second.end())
          for (const auto& [other, count] : others->second)
            m_builder.signal(rank, rank, flag(rank, b.id, other));
    }
    if (sent == 0) return;
    m_builder.set_channel(m_out.at({rank, b.id}));
    m_builder.fence(rank);
  }

  void act(int rank, const thread_block& b, const step& s, int channel, std::uint64_t& sent) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(s.count) * element;
    const auto src = [&] { return at(rank, s.src_buffer, s.src, s); };
    const auto dst = [&] { return at(rank, s.dst_buffer, s.dst, s); };
    if (s.what == "cpy") return m_builder.copy(rank, dst(), src(), bytes);
    if (s.what == "re") return m_builder.reduce(rank, dst(), src(), bytes);
    if (s.what == "s") return send(rank, b, s, src(), bytes, channel, sent);
    const bool receives =
        s.what == "r" || s.what == "rcs" || s.what == "rrc" || s.what == "rrs" || s.what == "rrcs";
    if (!receives || b.receive < 0)
      refuse(s.line,
             receives ? "its thread block receives from no GPU"
                      : "'" + s.what.substr(0, 20) + "' is no step that is known",
             "Steps are s, r, rcs, rrc, rrs, rrcs, cpy, re and nop.");
    const bool reduces = s.what[1] == 'r';
    const address into = reduces ? m_builder.scratch(rank, bytes) : dst();
    m_builder.receive(rank, static_cast<int>(b.receive), into, bytes);
    m_builder.fence(rank);
    if (reduces) m_builder.reduce(rank, into, src(), bytes);
    if (reduces && s.what != "rrs") m_builder.copy(rank, dst(), into, bytes);
    if (s.what.back() == 's') send(rank, b, s, into, bytes, channel, sent);
  }

  // Into a buffer, from where another channel sends it.
  void send(int rank, const thread_block& b, const step& s, address src, std::uint64_t bytes,
            int channel, std::uint64_t& sent) {
    if (b.send < 0) refuse(s.line, "its thread block sends to no GPU", "Correct send.");
    const address buffer = m_builder.scratch(rank, bytes);
    m_builder.copy(rank, buffer, src, bytes);
    const std::uint64_t filled = flag(rank, b.id, -1);
    m_builder.signal(rank, rank, filled);
    m_builder.set_channel(m_out.at({rank, b.id}));
    m_builder.wait(rank, rank, filled);
    m_builder.send(rank, static_cast<int>(b.send), buffer, bytes);
    m_builder.set_channel(channel);
    ++sent;
  }

  const algorithm& m_algorithm;
  builder m_builder;
  address m_scratch;
  std::map<block, const thread_block*> m_blocks;
  std::map<block, int> m_channels, m_out;
  // By thread block and step: the blocks that wait for it, and the signal of theirs.
  std::map<block, std::map<std::int64_t, std::map<std::int64_t, std::uint64_t>>> m_waiters;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::uint64_t> m_flags, m_taken;
};

}  // namespace
}  // namespace msccl

schedule from_msccl_xml(std::string_view text) {
  const msccl::algorithm a = msccl::parse(text);
  return msccl::translator(a).run();
}

}  // namespace sucl::plan
