// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>

namespace sucl::sim {
namespace {

using plan::instruction;
using plan::opcode;

constexpr std::int32_t nowhere = -1;

// The order of what is mixed counts.
std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (std::rotl(h, 23) * 0xd6e8feb86659fd93u ^ value) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}
std::uint64_t mix(std::uint64_t h, double value) {
  return mix(h, std::bit_cast<std::uint64_t>(value));
}

std::uint64_t position_bits(std::int32_t position) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(position));
}

// What an instruction does, apart from its ranks and addresses.
std::uint64_t action_key(const instruction& i) {
  return static_cast<std::uint64_t>(i.op) | static_cast<std::uint64_t>(i.level) << 8 |
         static_cast<std::uint64_t>(plan::is_remote(i.src)) << 16 |
         static_cast<std::uint64_t>(plan::is_remote(i.dst)) << 17;
}

std::size_t count_of(std::vector<std::uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

// By colour: the first that has it, and how many have it.
template <class Index, class Count>
void classify(const std::vector<std::uint64_t>& colours, std::vector<Index>& first,
              std::vector<Count>& size) {
  std::vector<Index> order(colours.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto colour = [&](Index i) { return colours[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return colour(a) < colour(b); });
  first.resize(colours.size());
  size.resize(colours.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && colour(order[end]) == colour(order[begin])) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      first[static_cast<std::size_t>(order[i])] = order[begin];
      size[static_cast<std::size_t>(order[i])] = static_cast<Count>(end - begin);
    }
  }
}

}  // namespace

symmetry::symmetry(const plan::schedule& s, const routes& all_routes, bool apart)
    : m_colours(s.ranks.size()), m_limit_colours(all_routes.limit_count()) {
  if (!apart) {
    read(s, all_routes);
    refine(all_routes);
  }
  if (apart || count_of(m_colours) == m_colours.size()) {
    std::iota(m_colours.begin(), m_colours.end(), std::uint64_t{0});
    std::iota(m_limit_colours.begin(), m_limit_colours.end(), std::uint64_t{0});
  }
  classify(m_colours, m_first, m_size);
  classify(m_limit_colours, m_first_limit, m_limit_size);
}

symmetry::symmetry(std::int32_t ranks, const routes& all_routes)
    : m_first(index(ranks)), m_size(index(ranks), ranks) {
  for (std::uint32_t l = 0; l < all_routes.limit_count(); ++l) {
    m_first_limit.push_back(l);
    m_limit_size.push_back(all_routes.limits_like(l));
  }
}

void symmetry::read(const plan::schedule& s, const routes& all_routes) {
  m_relations.resize(s.ranks.size());
  m_position.assign(s.ranks.size(), nowhere);
  m_route_slot.assign(all_routes.count(), route::none);
  std::size_t instruction = 0;
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    m_colours[r] = read_program(s.ranks[r], instruction, all_routes, m_relations[r]);
  for (relations& of : m_relations) {
    for (std::size_t i = 0; i < of.peers.size(); ++i)
      of.sorted.push_back({of.peers[i], static_cast<std::int32_t>(i)});
    std::sort(of.sorted.begin(), of.sorted.end(),
              [](const peer& a, const peer& b) { return a.rank < b.rank; });
  }
  for (std::uint32_t i = 0; i < m_limit_colours.size(); ++i)
    m_limit_colours[i] = all_routes.class_of_limit(i);
}

// The colour of a program: peers and routes count by the order in which they come up.
std::uint64_t symmetry::read_program(const plan::program& p, std::size_t& instruction,
                                     const routes& all_routes, relations& of) {
  std::uint64_t h = p.channels.size();
  for (const plan::channel& c : p.channels) {
    h = mix(h, c.size());
    for (const plan::instruction& i : c) {
      const std::uint32_t route_number = all_routes.number_of(instruction++);
      h = mix(mix(h, action_key(i)), i.bytes);
      if (i.op == opcode::fence) continue;
      if (i.peer >= 0) {
        std::int32_t& position = m_position[index(i.peer)];
        if (position == nowhere) {
          position = static_cast<std::int32_t>(of.peers.size());
          of.peers.push_back(i.peer);
        }
        h = mix(h, position_bits(position));
      }
      std::uint32_t& position = m_route_slot[route_number];
      if (position == route::none) {
        position = static_cast<std::uint32_t>(of.route_numbers.size());
        of.route_numbers.push_back(route_number);
        h = mix(mix(h, static_cast<std::uint64_t>(all_routes.at(route_number).latency)),
                static_cast<std::uint64_t>(all_routes.at(route_number).overhead) << 8 |
                    all_routes.at(route_number).level);
      }
      h = mix(h, std::uint64_t{position});
      if (i.op == opcode::signal || i.op == opcode::wait) h = mix(h, i.dst_offset);
    }
  }
  for (const std::int32_t peer : of.peers) m_position[index(peer)] = nowhere;
  for (const std::uint32_t route_number : of.route_numbers)
    m_route_slot[route_number] = route::none;
  return h;
}

std::int32_t symmetry::position_of(std::int32_t rank, std::int32_t other) const {
  const std::vector<peer>& sorted = m_relations[index(rank)].sorted;
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), other,
                                   [](const peer& a, std::int32_t b) { return a.rank < b; });
  return at != sorted.end() && at->rank == other ? at->position : nowhere;
}

// Until no class falls apart, or every rank is alone.
void symmetry::refine(const routes& all_routes) {
  std::size_t ranks = count_of(m_colours), limits = count_of(m_limit_colours);
  while (ranks < m_colours.size()) {
    refine_once(all_routes);
    const std::size_t more_ranks = count_of(m_colours), more_limits = count_of(m_limit_colours);
    if (more_ranks == ranks && more_limits == limits) return;
    ranks = more_ranks;
    limits = more_limits;
  }
}

void symmetry::refine_once(const routes& all_routes) {
  std::vector<std::uint64_t> colours = m_colours;
  std::vector<std::uint64_t> loads(m_limit_colours.size());
  for (std::size_t r = 0; r < colours.size(); ++r) {
    const relations& of = m_relations[r];
    std::uint64_t& h = colours[r];
    for (const std::int32_t other : of.peers)
      h = mix(mix(h, m_colours[index(other)]),
              position_bits(position_of(other, static_cast<std::int32_t>(r))));
    for (std::size_t w = 0; w < of.route_numbers.size(); ++w) {
      std::uint64_t load = mix(m_colours[r], w);
      for (const demand& d : all_routes.demands_of(all_routes.at(of.route_numbers[w]))) {
        h = mix(mix(h, m_limit_colours[d.limit]), d.weight);
        load = mix(load, d.weight);
        loads[d.limit] += load;  // in whatever order
      }
    }
  }
  m_colours = std::move(colours);
  for (std::size_t l = 0; l < loads.size(); ++l)
    m_limit_colours[l] = mix(m_limit_colours[l], loads[l]);
}

std::pair<std::int32_t, std::int32_t> symmetry::pair_of(std::int32_t from, std::int32_t to) const {
  const std::int32_t first = first_of(from);
  if (first == from) return {from, to};
  const std::int32_t position = position_of(from, to);
  if (position == nowhere) return {from, to};  // nothing comes from there
  return {first, m_relations[index(first)].peers[static_cast<std::size_t>(position)]};
}

}  // namespace sucl::sim
