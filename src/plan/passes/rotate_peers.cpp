// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sucl::plan {
namespace {

// How far `peer` is from `own`, digit by digit: ranks that do the same in
// different groups have the same distances.
std::uint64_t distance(int own, int peer, const std::vector<int>& factors) {
  std::uint64_t far = 0, scale = 1;
  for (std::size_t l = factors.size(); l-- > 0;) {
    const int f = factors[l];
    far += static_cast<std::uint64_t>((peer % f - own % f + f) % f) * scale;
    scale *= static_cast<std::uint64_t>(f);
    own /= f;
    peer /= f;
  }
  return far;
}

// By the number of a transfer: whether a fence finishes those before it and not this one.
std::vector<bool> cuts_of(const channel& code) {
  std::vector<bool> cut(1);
  for (const instruction& i : code) {
    if (is_posted(i.op)) cut.push_back(false);
    const std::size_t posted = cut.size() - 1;
    if (i.op == opcode::fence && i.bytes <= posted) cut[posted - i.bytes] = true;
  }
  return cut;
}

class peer_rotation {
 public:
  peer_rotation(std::size_t ranks, const std::vector<int>& factors)
      : m_factors(factors), m_far(ranks) {}

  void turn(int rank, channel& code) {
    if (rank != m_rank) std::fill(m_far.begin(), m_far.end(), unknown);
    m_rank = rank;
    const std::vector<bool> cut = cuts_of(code);
    std::size_t ticket = 0;
    for (std::size_t begin = 0; begin < code.size();) {
      std::size_t end = begin;
      while (end < code.size() && is_posted(code[end].op) && (end == begin || !cut[ticket])) {
        ++end;
        ++ticket;
      }
      if (end - begin > 1) sort(code, begin, end);
      begin = std::max(end, begin + 1);
    }
  }

 private:
  struct keyed {
    std::uint64_t key;
    instruction what;
    bool operator<(const keyed& other) const { return key < other.key; }
  };
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::uint64_t key_of(const instruction& i) {
    const std::uint64_t sends = i.op != opcode::receive;
    std::uint64_t& far = m_far[static_cast<std::size_t>(i.peer)];
    if (far == unknown) far = distance(m_rank, i.peer, m_factors);
    return sends << 63 | far;
  }

  void sort(channel& code, std::size_t begin, std::size_t end) {
    m_run.clear();
    for (std::size_t i = begin; i < end; ++i) m_run.push_back({key_of(code[i]), code[i]});
    if (std::is_sorted(m_run.begin(), m_run.end())) return;
    std::stable_sort(m_run.begin(), m_run.end());
    for (std::size_t i = begin; i < end; ++i) code[i] = m_run[i - begin].what;
  }

  const std::vector<int>& m_factors;
  int m_rank = -1;
  std::vector<std::uint64_t> m_far;  // of each peer from this rank, if known
  std::vector<keyed> m_run;
};

}  // namespace

schedule rotate_peers(schedule s, const std::vector<int>& factors) {
  peer_rotation t(s.ranks.size(), factors);
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (channel& c : s.ranks[r].channels) t.turn(static_cast<int>(r), c);
  return s;
}

}  // namespace sucl::plan
