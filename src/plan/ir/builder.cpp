// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/builder.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sucl::plan {
builder::builder(problem what, std::vector<level> levels) {
  check(what);
  const auto ranks = static_cast<std::size_t>(what.ranks);
  m_schedule.what = std::move(what);
  m_schedule.levels = std::move(levels);
  if (m_schedule.levels.empty()) m_schedule.levels.push_back({"all", "any"});
  m_schedule.ranks.resize(ranks);
  m_top.resize(ranks);
  m_progress.resize(ranks);
}

void builder::set_channel(int c) {
  if (m_channel == static_cast<std::size_t>(c)) return;
  m_channel = static_cast<std::size_t>(c);
  for (std::size_t r = 0; r < m_top.size(); ++r) m_top[r] = m_schedule.ranks[r].scratch_bytes;
}

channel& builder::code(int rank) {
  auto& channels = m_schedule.ranks[static_cast<std::size_t>(rank)].channels;
  if (channels.size() <= m_channel) channels.resize(m_channel + 1);
  return channels[m_channel];
}

void builder::append(int rank, const instruction& i) {
  if (++m_count > max_instructions)
    base::fail(errc::out_of_memory,
               "the plan has more than " + std::to_string(max_instructions / 1'000'000) +
                   " million instructions",
               "Take an algorithm with fewer messages, such as exchange, cyclic or tree, or fewer "
               "ranks or channels.");
  code(rank).push_back(i);
}

builder::progress& builder::progress_of(int rank) {
  auto& all = m_progress[static_cast<std::size_t>(rank)];
  if (all.size() <= m_channel) all.resize(m_channel + 1);
  return all[m_channel];
}

void builder::copy(int rank, address dst, address src, std::uint64_t bytes, int peer) {
  if (bytes == 0 || dst == src) return;
  append(rank, {opcode::copy, dst.where, src.where, m_level, peer, dst.offset, src.offset, bytes});
}

void builder::reduce(int rank, address dst, address src, std::uint64_t bytes, int peer) {
  if (bytes == 0) return;
  append(rank,
         {opcode::reduce, dst.where, src.where, m_level, peer, dst.offset, src.offset, bytes});
}

void builder::post(int rank, instruction i) {
  if (i.bytes == 0) return;
  append(rank, i);
  ++progress_of(rank).posted;
}

void builder::send(int rank, int peer, address src, std::uint64_t bytes) {
  post(rank, {opcode::send, space::none, src.where, m_level, peer, 0, src.offset, bytes});
}

void builder::receive(int rank, int peer, address dst, std::uint64_t bytes) {
  post(rank, {opcode::receive, dst.where, space::none, m_level, peer, dst.offset, 0, bytes});
}

void builder::put(int rank, int peer, address dst, address src, std::uint64_t bytes) {
  post(rank, {opcode::put, dst.where, src.where, m_level, peer, dst.offset, src.offset, bytes});
}

void builder::get(int rank, int peer, address dst, address src, std::uint64_t bytes) {
  post(rank, {opcode::get, dst.where, src.where, m_level, peer, dst.offset, src.offset, bytes});
}

void builder::signal(int rank, int peer, std::uint64_t flag) {
  append(rank, {opcode::signal, space::none, space::none, m_level, peer, flag, 0, 0});
}

void builder::wait(int rank, int peer, std::uint64_t flag) {
  append(rank, {opcode::wait, space::none, space::none, m_level, peer, flag, 0, 0});
}

void builder::fence(int rank, std::uint64_t keep) {
  progress& p = progress_of(rank);
  if (p.posted <= p.finished + keep) return;
  p.finished = p.posted - keep;
  append(rank, {opcode::fence, space::none, space::none, 0, -1, 0, 0, keep});
}

address builder::scratch(int rank, std::uint64_t bytes) {
  const std::uint64_t step = std::lcm(element(), std::uint64_t{16});
  std::uint64_t& top = m_top[static_cast<std::size_t>(rank)];
  const address p{space::scratch, top};
  top += (bytes + step - 1) / step * step;
  std::uint64_t& size = m_schedule.ranks[static_cast<std::size_t>(rank)].scratch_bytes;
  size = std::max(size, top);
  return p;
}

std::uint64_t builder::scratch_mark(int rank) const {
  return m_top[static_cast<std::size_t>(rank)];
}

void builder::scratch_release(int rank, std::uint64_t mark) {
  m_top[static_cast<std::size_t>(rank)] = mark;
}

schedule builder::finish(std::string algorithm) {
  m_schedule.algorithm = std::move(algorithm);
  return std::exchange(m_schedule, {});
}

std::vector<std::uint64_t> cut_evenly(std::uint64_t bytes, std::uint64_t element, int parts) {
  const std::uint64_t elements = bytes / element, n = static_cast<std::uint64_t>(parts);
  std::vector<std::uint64_t> ends{0};
  for (std::uint64_t i = 0; i < n; ++i)
    ends.push_back(ends.back() + (elements / n + (i < elements % n ? 1 : 0)) * element);
  return ends;
}

}  // namespace sucl::plan
