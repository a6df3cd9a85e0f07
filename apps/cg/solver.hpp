// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The method: conjugate gradients on the rows of one rank. step() and multiply_and_reduce() are an
/// iteration.
#pragma once

#include "cg/kernels.hpp"
#include "cg/matrix.hpp"
#include "common/kernels.hpp"
#include "common/messages.hpp"

#include <sucl/graph.hpp>
#include <sucl/partition.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cg {

using apps::events;
using apps::in;
using apps::inout;
using apps::out;
using apps::phase;
using sucl::kernels::items;

class solver {
 public:
  /// Of `a` x = `b`, of which each rank has its share of the rows. Collective.
  solver(apps::context& c, const matrix& a, const std::vector<double>& b,
         const sucl::partition& rows)
      : m_context(c),
        m_rows(rows),
        m_own(distribute(a, c.rank(), rows)),
        m_team(c),
        m_inner(c, m_own.inner),
        m_outer(c, m_own.outer),
        m_list(c, m_own.send),
        m_start(c, m_own.start),
        m_column(c, m_own.column),
        m_value(c, m_own.value),
        m_sums(c, 2, apps::reachable_by::shared),
        m_reduction(c, m_sums) {
    const auto n = static_cast<std::size_t>(m_own.rows);
    m_parts_count = std::clamp<std::size_t>((n + 63) / 64 * 64, 64, 512);
    for (auto* x : {&m_x, &m_r, &m_w, &m_p, &m_s}) *x = {c, n};
    m_b = {c, std::vector<double>(b.begin() + m_own.first, b.begin() + m_own.first + m_own.rows)};
    m_send = m_team.message_memory<double>(m_own.send.size());
    m_halo = m_team.message_memory<double>(static_cast<std::size_t>(m_own.halo));
    m_parts = {c, 2 * m_parts_count};
    m_state = {c, 2};
  }

  /// From now on this rank multiplies so often, as if its device were so much slower.
  void compute_times(int turns) { m_turns = turns; }

  /// Begins a solve; afterwards residual() is that of zero.
  void begin() {
    m_ready = {m_context.timed(phase::compute, [&] {
      return m_context.launch(items(rows()), m_ready, reset{m_own.rows}, in(m_b), out(m_p),
                              out(m_s), out(m_x), out(m_r));
    })};
    m_is_first = true;
    multiply_and_reduce();
  }

  /// One iteration.
  void step() {
    m_ready = {m_context.timed(phase::compute, [&] {
      return m_context.launch(items(rows()), m_ready, update{m_own.rows}, in(m_sums), in(m_state),
                              in(m_w), inout(m_p), inout(m_s), inout(m_x), inout(m_r));
    })};
    multiply_and_reduce();
  }

  /// Records `n` iterations, unless that has been done. Between begin() and the first of them.
  void record(int n) {
    if (m_recorded) return;
    wait();
    m_recorded = m_context.world().record(m_context.queue(), [this, n] {
      m_ready = {};
      for (int i = 0; i < n; ++i) step();
    });
    m_ready = {};
    m_reduction.follow({});  // what is there has been waited for
  }
  /// Executes what is recorded.
  void replay() {
    m_ready = {m_recorded.replay(m_ready)};
    m_reduction.follow(m_ready.front());
  }

  /// Goes on with a solve that another solver has begun, with other shares.
  void go_on(solver& from) {
    from.wait();
    const sucl::migration path(from.m_rows, m_rows, m_context.rank());
    // What stays on this rank stays on its device.
    const auto self = static_cast<std::size_t>(m_context.rank());
    auto sent = path.send_counts, received = path.recv_counts;
    const std::size_t stays = m_context.uses_buffers() ? 0 : std::exchange(sent[self], 0);
    if (stays > 0) received[self] = 0;
    const auto take = [&](const apps::array<double>& theirs, const apps::array<double>& mine) {
      m_context.exchange_all(theirs, sent, path.send_displs, mine, received, path.recv_displs);
      if (stays > 0)
        m_context.queue()
            .copy(static_cast<const double*>(theirs.pointer()) + path.send_displs[self],
                  mine.pointer() + path.recv_displs[self], stays)
            .wait();
    };
    take(from.m_x, m_x);
    take(from.m_r, m_r);
    take(from.m_w, m_w);
    take(from.m_p, m_p);
    take(from.m_s, m_s);
    m_reduction.put(from.m_sums.get());
    m_state.put(from.m_state.get());
    m_is_first = from.m_is_first;
    m_ready = {};
  }

  /// The seconds that this rank's device takes to multiply its rows, which changes nothing. With
  /// the halo of the last iteration.
  double measure() {
    wait();
    const auto began = std::chrono::steady_clock::now();
    for (auto& e : multiply_inner_rows(m_ready)) e.wait();
    for (auto& e : multiply_outer_rows(m_ready)) e.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  const sucl::partition& shares() const { return m_rows; }

  /// (r, r) over all ranks.
  double residual() { return m_reduction.value(0); }
  /// (r, Ar), which is positive as long as r is not zero.
  double curvature() { return m_reduction.value(1); }

  std::vector<double> solution() {
    m_context.queue().wait_and_throw();
    const auto mine = m_x.get();
    std::vector<double> all(m_rows.size());
    m_context.world().blocking().allgatherv(mine.data(), mine.size(), all.data(),
                                            m_rows.counts_of_ranks(), m_rows.displacements());
    return all;
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(m_own.rows); }

  void wait() {
    for (auto& e : m_ready) e.wait();
    m_context.queue().wait_and_throw();
  }

  events multiply_inner_rows(const events& deps) {
    events done;
    for (int n = 0; n < m_turns && m_inner.size() > 0; ++n)
      done = {m_context.launch(items(m_inner.size(), 64), done.empty() ? deps : done,
                               multiply_inner{static_cast<std::int64_t>(m_inner.size())},
                               in(m_inner), in(m_start), in(m_column), in(m_value), in(m_r),
                               inout(m_w))};
    return done;
  }

  events multiply_outer_rows(const events& deps) {
    events done;
    for (int n = 0; n < m_turns && m_outer.size() > 0; ++n)
      done = {m_context.launch(items(m_outer.size(), 64), done.empty() ? deps : done,
                               multiply_rows{static_cast<std::int64_t>(m_outer.size()),
                                             static_cast<std::int32_t>(m_own.rows)},
                               in(m_outer), in(m_start), in(m_column), in(m_value), in(m_r),
                               in(m_halo), inout(m_w))};
    return done;
  }

  // w = A r, (r, r) and (r, w).
  void multiply_and_reduce() {
    auto& c = m_context;
    sycl::event packed, arrived;
    if (!m_own.messages.out.empty())
      packed = c.timed(phase::pack, [&] {
        return c.launch(items(m_send.size()), m_ready,
                        apps::gather<double>{static_cast<std::int64_t>(m_send.size())}, in(m_r),
                        in(m_list), out(m_send));
      });
    events multiplied = c.timed(phase::compute, [&] { return multiply_inner_rows(m_ready); });
    if (!m_own.messages.empty()) {
      arrived = c.timed(phase::communicate,
                        [&] { return m_team.exchange(m_send, m_halo, m_own.messages, {packed}); });
      events deps = m_ready;
      deps.push_back(arrived);
      for (auto& e : c.timed(phase::compute, [&] { return multiply_outer_rows(deps); }))
        multiplied.push_back(std::move(e));
    } else {
      c.meet();
    }
    const auto parts = static_cast<std::int64_t>(m_parts_count);
    const auto finished = c.timed(phase::compute, [&] {
      const auto summed = c.launch(items(m_parts_count, 64), multiplied, partial_sums{m_own.rows},
                                   in(m_r), in(m_w), out(m_parts));
      return c.launch(items(1, 1), {summed}, finish_sums{parts, m_is_first}, in(m_parts),
                      inout(m_sums), inout(m_state));
    });
    m_is_first = false;
    m_ready = {finished,
               c.timed(phase::communicate, [&] { return m_reduction.start({finished}); })};
  }

  apps::context& m_context;
  sucl::partition m_rows;
  int m_turns = 1;
  local_matrix m_own;
  apps::team m_team;
  apps::array<std::int32_t> m_inner, m_outer, m_list;
  apps::array<std::int64_t> m_start;
  apps::array<std::int32_t> m_column;
  apps::array<double> m_value, m_sums;
  apps::reduction m_reduction;
  apps::array<double> m_x, m_r, m_w, m_p, m_s, m_b, m_send, m_halo, m_parts, m_state;
  std::size_t m_parts_count = 0;
  bool m_is_first = true;
  events m_ready;
  sucl::executable m_recorded;
};

}  // namespace cg
