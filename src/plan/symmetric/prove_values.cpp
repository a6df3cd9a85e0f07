// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symmetric/prove_values.hpp"

namespace sucl::plan {

translated_value translated_values::keep(const node& n, int by) {
  const key k{static_cast<std::uint64_t>(n.what), n.where, std::uint64_t{n.a} << 32 | n.b,
              static_cast<std::uint64_t>(n.apart)};
  const auto [at, fresh] = m_known.try_emplace(k, static_cast<std::uint32_t>(m_nodes.size()));
  if (fresh) m_nodes.push_back(n);
  return {at->second, m_ranks.without(by, m_nodes[at->second].unmoved_by)};
}

translated_value translated_values::input(std::uint64_t offset) {
  node n;
  n.where = offset;
  return keep(n, 0);
}

translated_value translated_values::translate(translated_value v, int by) const {
  return {v.node, m_ranks.without(m_ranks.add(v.by, by), m_nodes[v.node].unmoved_by)};
}

std::pair<int, int> translated_values::common(translated_value a, translated_value b) const {
  // Where only one of the two moves, that one says how far.
  const std::uint64_t only_b = m_nodes[a.node].unmoved_by & ~m_nodes[b.node].unmoved_by;
  const int by = m_ranks.add(a.by, m_ranks.subtract(b.by, m_ranks.without(b.by, only_b)));
  const std::uint64_t either = m_nodes[a.node].unmoved_by | m_nodes[b.node].unmoved_by;
  return {by, m_ranks.without(m_ranks.subtract(b.by, a.by), either)};
}

translated_value translated_values::combine(translated_value a, translated_value b, bool commutes,
                                            bool open) {
  auto [by, apart] = common(a, b);
  if (commutes) {
    const auto [by_b, apart_b] = common(b, a);
    if (std::pair(b.node, apart_b) < std::pair(a.node, apart)) {
      std::swap(a, b);
      by = by_b;
      apart = apart_b;
    }
  }
  node n;
  n.what = open ? form::open_pair : form::pair;
  n.a = a.node;
  n.b = b.node;
  n.apart = apart;
  n.unmoved_by = m_nodes[a.node].unmoved_by & m_nodes[b.node].unmoved_by;
  // Two that only change sides.
  for (int d = 0; commutes && a.node == b.node && d < m_ranks.count(); ++d)
    if (m_ranks.radix(d) == 2 && apart == m_ranks.stride(d)) n.unmoved_by |= std::uint64_t{1} << d;
  return keep(n, by);
}

std::optional<translated_value> translated_values::fold_along(
    int digit, const std::vector<translated_value>& parts) {
  const int stride = m_ranks.stride(digit);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != translate(parts[0], static_cast<int>(i) * stride)) return {};
  const std::uint64_t bit = std::uint64_t{1} << digit;
  node n;
  n.what = form::along;
  n.a = parts[0].node;
  n.where = static_cast<std::uint64_t>(digit) << 32 |
            static_cast<std::uint64_t>(m_ranks.digit(parts[0].by, digit));
  n.unmoved_by = m_nodes[n.a].unmoved_by | bit;
  return keep(n, parts[0].by);
}

bool translated_values::for_each_input(translated_value v,
                                       const std::function<bool(int, std::uint64_t)>& visit) {
  const node n = m_nodes[v.node];
  if (n.what == form::input) return visit(v.by, n.where);
  if (n.what != form::along)
    return for_each_input({n.a, v.by}, visit) &&
           for_each_input({n.b, m_ranks.add(v.by, n.apart)}, visit);
  const int digit = static_cast<int>(n.where >> 32);
  const int first = static_cast<int>(n.where & 0xffffffffu);
  const int base = m_ranks.without(v.by, std::uint64_t{1} << digit);
  for (int i = 0; i < m_ranks.radix(digit); ++i) {
    const int part = (first + i) % m_ranks.radix(digit) * m_ranks.stride(digit);
    if (!for_each_input({n.a, base + part}, visit)) return false;
  }
  return true;
}

}  // namespace sucl::plan
