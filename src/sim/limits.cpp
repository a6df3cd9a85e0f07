// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/limits.hpp"

#include "sim/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace sucl::sim {

limits::table limits::make(usage::part what, std::int64_t members, std::int64_t ports,
                           double capacity, std::size_t level, std::size_t transport) const {
  table t;
  t.what = what;
  t.level = static_cast<std::uint8_t>(level);
  t.transport = static_cast<std::uint8_t>(transport);
  t.ports = ports;
  t.capacity = capacity;
  t.all_ports = static_cast<std::uint64_t>(members * ports);
  return t;
}

std::uint32_t& limits::table::at(std::int64_t member, std::int64_t port) {
  constexpr std::uint64_t max_dense = 1 << 20;
  const auto port_index = static_cast<std::uint64_t>(member * ports + port);
  if (all_ports > max_dense) return sparse[port_index];
  if (ids.empty()) ids.resize(all_ports);
  return ids[port_index];
}

limits::limits(const machine& m, std::int32_t ranks, flows& f)
    : m_machine(m), m_ranks(ranks), m_flows(f) {
  const auto groups_of = [&](std::int64_t size) { return (ranks + size - 1) / size; };
  m_memory = make(usage::part::memory, groups_of(m.local.shared_by), 1, m.local.bandwidth);
  m_kernels =
      make(usage::part::kernels, ranks, 1, std::max(m.local.copy_rate, m.local.reduce_rate));
  m_links.resize(m.levels.size());
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const level& of = m.levels[l];
    level_tables t;
    t.member = member_ranks(m, l);
    t.group = t.member * of.groups;
    const std::int64_t members = groups_of(t.member);
    using part = usage::part;
    for (std::size_t i = 0; i < of.transports.size(); ++i) {
      const double bandwidth = of.transports[i].bandwidth;
      t.rank_out.push_back(make(part::rank_out, ranks, 1, bandwidth, l, i));
      t.rank_in.push_back(make(part::rank_in, ranks, 1, bandwidth, l, i));
    }
    t.port_out = make(part::port_out, members, of.ports, of.port_bandwidth, l);
    t.port_in = make(part::port_in, members, of.ports, of.port_bandwidth, l);
    t.port_both = make(part::port_both, members, of.ports, of.port_both, l);
    t.fabric = make(part::fabric, groups_of(t.group), 1, of.fabric_bandwidth, l);
    m_levels.push_back(std::move(t));
  }
}

std::uint32_t limits::remember(const usage& u) {
  m_uses.push_back(u);
  return m_flows.add_limit(u.capacity);
}

std::uint32_t limits::id(table& t, std::int64_t member, std::int64_t port) {
  std::uint32_t& known = t.at(member, port);
  if (known == 0) known = 1 + remember({t.what, t.level, t.transport, member, port, 0, t.capacity});
  return known - 1;
}

std::uint32_t limits::link(std::size_t level, std::int64_t from, std::int64_t to) {
  const auto key = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
  const auto [known, fresh] = m_links[level].try_emplace(key, 0);
  if (fresh)
    known->second = remember({usage::part::link, static_cast<std::uint8_t>(level), 0, from, to, 0,
                              m_machine.levels[level].link_bandwidth});
  return known->second;
}

void limits::add_memory(demands& d, std::int32_t rank, double times) {
  if (m_memory.capacity > 0) d.add(id(m_memory, rank / m_machine.local.shared_by), times);
}

void limits::add_kernel(demands& d, std::int32_t rank, double rate) {
  if (rate > 0) d.add(id(m_kernels, rank), m_kernels.capacity / rate);
}

std::int64_t limits::port_of(std::size_t level, std::int64_t rank) const {
  const sim::level& of = m_machine.levels[level];
  const std::int64_t member = m_levels[level].member;
  return of.binding.empty() ? rank % member * of.ports / member
                            : of.binding[static_cast<std::size_t>(rank % member)];
}

std::uint32_t limits::alike(std::uint32_t limit) const {
  const usage& u = m_uses[limit];
  const level_tables& t = m_levels[u.level];
  std::int64_t sharing = 1;
  switch (u.what) {
    case usage::part::memory: sharing = m_machine.local.shared_by; break;
    case usage::part::port_out:
    case usage::part::port_in:
    case usage::part::port_both:
      sharing = 0;
      for (std::int64_t r = 0; r < t.member; ++r) sharing += port_of(u.level, r) == u.port ? 1 : 0;
      break;
    case usage::part::link: sharing = t.member; break;
    case usage::part::fabric: sharing = t.group; break;
    default: break;
  }
  return static_cast<std::uint32_t>(m_ranks / std::min<std::int64_t>(sharing, m_ranks));
}

void limits::add_message(demands& d, std::int32_t from, std::int32_t to, std::size_t level,
                         std::size_t transport) {
  level_tables& t = m_levels[level];
  const sim::level& of = m_machine.levels[level];
  const std::int64_t a = from / t.member;
  const std::int64_t far = to / t.member;
  if (m_one) to = from;
  const std::int64_t b = to / t.member;
  const auto add = [&](table& limit, std::int64_t member, std::int64_t which) {
    if (limit.capacity > 0) d.add(id(limit, member, which), 1);
  };
  add(t.rank_out[transport], from, 0);
  add(t.rank_in[transport], to, 0);
  add(t.port_out, a, port_of(level, from));
  add(t.port_in, b, port_of(level, to));
  add(t.port_both, a, port_of(level, from));
  add(t.port_both, b, port_of(level, to));
  if (of.link_bandwidth > 0) d.add(link(level, a, far), 1);
  add(t.fabric, from / t.group, 0);
}

void limits::add_path(demands& d, const path& through) {
  m_wires.resize(m_machine.wires.links.size());
  for (const std::uint32_t l : through.links) {
    const sim::link& wire = m_machine.wires.links[l];
    if (m_wires[l] == 0)
      m_wires[l] = 1 + remember({usage::part::link, 0, 0, wire.from, wire.to, 0, wire.bandwidth});
    d.add(m_wires[l] - 1, 1);
  }
}

std::uint64_t limits::class_of(std::uint32_t limit) const {
  const usage& u = m_uses[limit];
  const auto what = static_cast<std::uint64_t>(u.what) << 16 |
                    static_cast<std::uint64_t>(u.level) << 8 | u.transport;
  return (std::bit_cast<std::uint64_t>(u.capacity) ^ what) * 0x9e3779b97f4a7c15u;
}

std::vector<usage> limits::uses(const symmetry& like) const {
  std::vector<usage> result = m_uses;
  for (std::uint32_t i = 0; i < result.size(); ++i)
    result[i].bytes = m_flows.taken(like.first_limit(i));
  std::sort(result.begin(), result.end(), [](const usage& a, const usage& b) {
    const auto key = [](const usage& u) {
      return std::make_tuple(u.what, u.level, u.transport, u.member, u.port);
    };
    return key(a) < key(b);
  });
  return result;
}

}  // namespace sucl::sim
