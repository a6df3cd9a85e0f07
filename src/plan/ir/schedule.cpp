// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/schedule.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace sucl::plan {
namespace {

// A 64-bit hash of a stream of words: multiply and rotate per word, mixed at the end.
class hasher {
 public:
  void word(std::uint64_t w) {
    m_state = (m_state ^ w) * 0x9fb21c651e98df25ull;
    m_state ^= m_state >> 32;
  }
  void text(std::string_view s) {
    word(s.size());
    for (const char c : s) word(static_cast<unsigned char>(c));
  }
  void words(const std::vector<std::uint64_t>& v) {
    word(v.size());
    for (const std::uint64_t w : v) word(w);
  }
  std::uint64_t value() const {
    std::uint64_t h = m_state;
    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ull;
    return h ^ (h >> 32);
  }

 private:
  std::uint64_t m_state = 0x5375434c706c616eull;
};

void add(hasher& h, const problem& p) {
  h.word(static_cast<std::uint64_t>(p.kind) << 8 | static_cast<std::uint64_t>(p.order) << 1 |
         static_cast<std::uint64_t>(p.in_place));
  h.word(static_cast<std::uint64_t>(p.ranks) << 32 | static_cast<std::uint64_t>(p.root));
  h.word(p.element_bytes);
  h.words(p.counts);
  h.words(p.send_displs);
  h.words(p.recv_displs);
  h.word(p.outcome.size());
  for (const auto& list : p.outcome) {
    h.word(list.size());
    for (const piece& part : list) {
      h.word(part.offset);
      h.word(part.bytes);
      h.word(part.terms.size());
      for (const term& t : part.terms) {
        h.word(static_cast<std::uint64_t>(t.first) << 32 | static_cast<std::uint64_t>(t.count));
        h.word(t.source);
      }
    }
  }
}

void add(hasher& h, const instruction& i) {
  h.word(static_cast<std::uint64_t>(static_cast<std::uint32_t>(i.peer)) << 32 |
         static_cast<std::uint64_t>(i.op) << 24 | static_cast<std::uint64_t>(i.dst) << 16 |
         static_cast<std::uint64_t>(i.src) << 8 | i.level);
  h.word(i.dst_offset);
  h.word(i.src_offset);
  h.word(i.bytes);
}

constexpr std::array<const char*, opcode_count> opcode_names{
    "copy", "reduce", "send", "receive", "put", "get", "signal", "wait", "fence"};
constexpr std::array<const char*, space_count> space_names{
    "none", "send", "recv", "scratch", "peer.send", "peer.recv", "peer.scratch"};

}  // namespace

std::uint64_t instruction_count(const schedule& s) {
  std::uint64_t n = 0;
  for (const program& p : s.ranks)
    for (const channel& c : p.channels) n += c.size();
  return n;
}

int channel_count(const schedule& s) {
  std::size_t n = 0;
  for (const program& p : s.ranks) n = std::max(n, p.channels.size());
  return static_cast<int>(n);
}

std::uint64_t hash(const schedule& s) {
  hasher h;
  add(h, s.what);
  h.word(s.levels.size());
  for (const level& l : s.levels) {
    h.text(l.name);
    h.text(l.via);
  }
  h.word(s.ranks.size());
  for (const program& p : s.ranks) {
    h.word(p.scratch_bytes);
    h.word(p.channels.size());
    for (const channel& c : p.channels) {
      h.word(c.size());
      for (const instruction& i : c) add(h, i);
    }
  }
  return h.value();
}

const char* name(opcode op) noexcept {
  const auto i = static_cast<std::size_t>(op);
  return i < opcode_names.size() ? opcode_names[i] : "unknown";
}

const char* name(space s) noexcept {
  const auto i = static_cast<std::size_t>(s);
  return i < space_names.size() ? space_names[i] : "unknown";
}

}  // namespace sucl::plan
