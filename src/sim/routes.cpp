// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/routes.hpp"

#include "base/error.hpp"
#include "sim/symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

namespace sucl::sim {
namespace {

using plan::instruction;
using plan::opcode;

constexpr std::uint8_t no_transport = 255;

bool is_kernel(opcode op) { return op == opcode::copy || op == opcode::reduce; }

// The kind of a transfer, which decides the limits on its route.
std::uint64_t route_key(const instruction& i, bool first_of_kernel) {
  std::uint64_t m = i.level;
  if (i.op == opcode::signal || i.op == opcode::wait) return m | 1 << 8;
  if (!is_kernel(i.op)) return m;
  m |= 1 << 9 | static_cast<std::uint64_t>(i.op == opcode::reduce) << 10;
  m |= static_cast<std::uint64_t>(first_of_kernel) << 11;
  return m | static_cast<std::uint64_t>(plan::is_remote(i.src)) << 12 |
         static_cast<std::uint64_t>(plan::is_remote(i.dst)) << 13;
}

// The rank whose memory an instruction reads, or which raises the flag, and the one whose memory it
// writes.
std::pair<std::int32_t, std::int32_t> ends_of(std::int32_t own, const instruction& i) {
  if (is_kernel(i.op))
    return {plan::is_remote(i.src) ? i.peer : own, plan::is_remote(i.dst) ? i.peer : own};
  const bool in = i.op == opcode::receive || i.op == opcode::get || i.op == opcode::wait;
  return {in ? i.peer : own, in ? own : i.peer};
}

}  // namespace

ticks to_ticks(double seconds) {
  return std::llround(std::clamp(seconds * ticks_per_second, 0.0, static_cast<double>(latest)));
}

std::uint32_t kernel_length(const plan::channel& code, std::uint32_t pc) {
  const instruction& first = code[pc];
  std::uint32_t n = 1;
  if (first.op != opcode::reduce || plan::is_remote(first.dst)) return 1;
  for (; pc + n < code.size(); ++n) {
    const instruction& i = code[pc + n];
    if (i.op != opcode::reduce || i.dst != first.dst || i.dst_offset != first.dst_offset ||
        i.bytes != first.bytes || i.level != first.level)
      break;
  }
  return n;
}

routes::routes(const plan::schedule& s, const machine& m, flows& f, const plan::digits* by)
    : m_schedule(s),
      m_by(by),
      m_machine(m),
      m_flows(f),
      m_limits(m, s.what.ranks, f),
      m_paths(m),
      m_slots(256) {
  join_transports();
  if (by) m_limits.merge_alike();
  m_of.reserve(plan::instruction_count(s));
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (const plan::channel& c : s.ranks[r].channels) add_channel(static_cast<std::int32_t>(r), c);
}

// Which transport of each level of the machine serves each level of the plan.
void routes::join_transports() {
  for (const plan::level& p : m_schedule.levels) {
    std::vector<std::uint8_t>& row = m_transports.emplace_back();
    for (const level& l : m_machine.levels) {
      std::uint8_t found = p.via == "any" ? 0 : no_transport;
      for (std::size_t t = 0; t < l.transports.size(); ++t)
        if (l.transports[t].name == p.via) found = static_cast<std::uint8_t>(t);
      row.push_back(found);
    }
  }
}

void routes::add_channel(std::int32_t rank, const plan::channel& code) {
  std::uint32_t kernel_end = 0;
  for (std::uint32_t pc = 0; pc < code.size(); ++pc) {
    const bool first = pc >= kernel_end;
    if (first && is_kernel(code[pc].op)) kernel_end = pc + kernel_length(code, pc);
    add(rank, code[pc], first);
  }
}

void routes::add(std::int32_t rank, const instruction& i, bool first_of_kernel) {
  if (i.op == opcode::fence) return m_of.push_back(0);
  auto [from, to] = ends_of(rank, i);
  if (m_by) {
    to = m_by->subtract(to, from);
    from = 0;
  }
  const bool kernel = is_kernel(i.op);
  // A kernel belongs to the rank that runs it, whichever rank's memory it reads and writes.
  const auto a = static_cast<std::uint32_t>(kernel ? rank : from);
  const auto b = static_cast<std::uint32_t>(kernel ? i.peer : to);
  const key k{std::uint64_t{a} << 32 | b, route_key(i, first_of_kernel)};
  m_of.push_back(find(k, from, to, i.level));
  if (i.op == opcode::signal || i.op == opcode::wait || i.op == opcode::receive) return;
  route& r = m_routes[m_of.back()];
  r.bytes += static_cast<double>(i.bytes);
  ++r.messages;
  r.back = i.op == opcode::reduce && r.to != rank;
  if (!r.limited)
    limit(r, kernel ? of_kernel(r, rank, i, first_of_kernel) : of_transfer(r, i.level));
}

std::uint32_t routes::find(const key& k, std::int32_t from, std::int32_t to, std::uint8_t level) {
  if (slot& known = slot_of(k); known.route != route::none) return known.route;
  if ((m_routes.size() + 1) * 2 > m_slots.size()) grow();
  route r;
  r.from = from;
  r.to = to;
  set_way(r, level);
  const auto index = static_cast<std::uint32_t>(m_routes.size());
  m_routes.push_back(r);
  slot_of(k) = {k, index};
  return index;
}

routes::slot& routes::slot_of(const key& k) {
  std::uint64_t h = (k.pair + k.manner * 0xbf58476d1ce4e5b9ull) * 0x9fb21c651e98df25ull;
  h ^= h >> 32;
  const std::size_t mask = m_slots.size() - 1;
  std::size_t i = h & mask;
  while (m_slots[i].route != route::none && m_slots[i].of != k) i = (i + 1) & mask;
  return m_slots[i];
}

void routes::grow() {
  std::vector<slot> old(m_slots.size() * 2);
  old.swap(m_slots);
  for (const slot& p : old)
    if (p.route != route::none) slot_of(p.of) = p;
}

std::size_t routes::transport(std::uint8_t plan_level, std::size_t level) const {
  const std::uint8_t t = m_transports[plan_level][level];
  if (t == no_transport) refuse_transport(plan_level, level);
  return t;
}

void routes::set_way(route& r, std::uint8_t plan_level) {
  if (!r.crosses()) return;
  const std::size_t level = common_level(m_machine, r.from, r.to);
  const sim::transport& of = m_machine.levels[level].transports[transport(plan_level, level)];
  r.level = static_cast<std::uint32_t>(level);
  r.latency = to_ticks(of.latency);
  r.overhead = to_ticks(of.overhead);
  if (!m_machine.wires.empty()) r.latency = to_ticks(path_between(r.from, r.to).latency);
}

const path& routes::path_between(std::int32_t from, std::int32_t to) {
  const path* found = m_paths.between(from, to);
  if (!found)
    base::fail(errc::invalid_argument,
               "the plan sends from rank " + std::to_string(from) + " to rank " +
                   std::to_string(to) + ", and no links and switches of " + m_machine.name +
                   " lead there",
               "Let the plan pass data on along links, as those do that 'sucl plan search' makes "
               "for a machine that is a graph.");
  return *found;
}

void routes::refuse_transport(std::uint8_t plan_level, std::size_t level) const {
  std::vector<std::string> names;
  for (const sim::transport& t : m_machine.levels[level].transports) names.push_back(t.name);
  const std::string& via = m_schedule.levels[plan_level].via;
  base::fail(errc::invalid_argument,
             "the plan sends via '" + via + "' between ranks that meet at level '" +
                 m_machine.levels[level].name + "' of " + m_machine.name +
                 ", which has no such transport",
             base::did_you_mean(via, names) + " Or let the plan use via any.");
}

void routes::add_message(demands& d, std::int32_t from, std::int32_t to, std::uint8_t plan_level) {
  if (!m_machine.wires.empty()) return m_limits.add_path(d, path_between(from, to));
  const std::size_t level = common_level(m_machine, from, to);
  m_limits.add_message(d, from, to, level, transport(plan_level, level));
}

demands routes::of_transfer(const route& r, std::uint8_t plan_level) {
  demands through;
  m_limits.add_memory(through, r.from, 1);
  m_limits.add_memory(through, m_by ? r.from : r.to, 1);
  add_message(through, r.from, r.to, plan_level);
  return through;
}

demands routes::of_kernel(const route& r, std::int32_t own, const instruction& i, bool first) {
  const bool reduces = i.op == opcode::reduce;
  demands through;
  m_limits.add_kernel(through, own,
                      reduces ? m_machine.local.reduce_rate : m_machine.local.copy_rate);
  m_limits.add_memory(through, r.from, 1);
  // What is reduced into is read and written once a kernel.
  if (first) m_limits.add_memory(through, r.to, reduces ? 2 : 1);
  if (!r.crosses()) return through;
  add_message(through, r.from, r.to, i.level);
  if (r.to != own && reduces) add_message(through, r.to, r.from, i.level);
  return through;
}

void routes::limit(route& r, const demands& through) {
  r.limited = true;
  r.first = static_cast<std::uint32_t>(m_demands.size());
  m_demands.insert(m_demands.end(), through.begin(), through.end());
  r.last = static_cast<std::uint32_t>(m_demands.size());
}

// Of flows that are alike one stands for all: it takes as much of a limit as they take together.
std::uint32_t routes::bundle(route& r, std::int32_t rank, const symmetry& like) {
  if (r.bundle != route::none) return r.bundle;
  demands through;
  for (const demand& d : demands_of(r))
    through.add(like.first_limit(d.limit), d.weight * like.times(rank, d.limit));
  return r.bundle = m_flows.bundle_of(through);
}

std::vector<double> routes::totals(const symmetry& like) const {
  std::vector<double> all(limit_count());
  for (const route& r : m_routes)
    for (const demand& d : demands_of(r))
      if (like.first_limit(d.limit) == d.limit)
        all[d.limit] += d.weight * r.bytes * (m_by ? like.times(r.from, d.limit) : 1);
  return all;
}

std::vector<level_traffic> routes::traffic() const {
  std::vector<level_traffic> all(m_machine.levels.size());
  for (const route& r : m_routes) {
    if (!r.crosses()) continue;
    std::uint64_t times = r.back ? 2 : 1;
    if (m_by) times *= static_cast<std::uint64_t>(m_by->ranks());
    all[r.level].messages += times * r.messages;
    all[r.level].bytes += times * static_cast<std::uint64_t>(r.bytes);
  }
  return all;
}

std::vector<pair_traffic> routes::matrix() const {
  std::unordered_map<std::uint64_t, pair_traffic> pairs;
  const auto count = [&](const route& r, std::int32_t from, std::int32_t to) {
    const auto key = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
    pair_traffic& p = pairs[key];
    p = {from, to, static_cast<std::uint8_t>(r.level), p.messages + r.messages,
         p.bytes + static_cast<std::uint64_t>(r.bytes)};
  };
  for (const route& r : m_routes) {
    if (!r.crosses() || r.messages == 0) continue;
    count(r, r.from, r.to);
    if (r.back) count(r, r.to, r.from);
  }
  std::vector<pair_traffic> all;
  for (const auto& [key, pair] : pairs) all.push_back(pair);
  std::sort(all.begin(), all.end(), [](const pair_traffic& a, const pair_traffic& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  return all;
}

}  // namespace sucl::sim
