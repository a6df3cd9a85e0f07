// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Several ranks in one thread: what all of them do at once, and groups of their operations.
#include "base/error.hpp"
#include "base/threads/concurrently.hpp"
#include "core/operation/operation.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/recording.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/common/state.hpp"

#include <sucl/communicator.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace sucl {

void detail::run_concurrently(std::size_t count, const std::function<void(std::size_t)>& work) {
  base::run_concurrently(count, work);
}

void detail::check_one_each(std::size_t ranks, std::size_t given, const char* what) {
  if (ranks == given) return;
  base::fail(
      errc::invalid_argument,
      std::to_string(ranks) + " ranks were passed with " + std::to_string(given) + " " + what,
      "Pass one for each rank");
}

// Two threads of one rank would wait for each other.
void communicator::check_different(const std::vector<communicator>& ranks) {
  for (auto one = ranks.begin(); one != ranks.end(); ++one) {
    const auto same = std::find_if(one + 1, ranks.end(), [&](const communicator& other) {
      return other && other.m_state == one->m_state;
    });
    if (same == ranks.end()) continue;
    base::fail(errc::invalid_argument,
               "rank " + std::to_string(one->rank()) + " was passed twice, as entries " +
                   std::to_string(one - ranks.begin()) + " and " +
                   std::to_string(same - ranks.begin()),
               "Pass each rank of this process once, as world(queues) has returned them");
  }
}

std::vector<communicator> communicator::dup(const std::vector<communicator>& ranks) {
  return each_rank(ranks, [](communicator& c) { return c ? c.dup() : communicator{}; });
}

std::vector<communicator> communicator::split(const std::vector<communicator>& ranks,
                                              const std::vector<int>& colours,
                                              const std::vector<int>& keys) {
  if (colours.size() != ranks.size() || (!keys.empty() && keys.size() != ranks.size()))
    base::fail(errc::invalid_argument,
               std::to_string(ranks.size()) + " ranks were passed with " +
                   std::to_string(colours.size()) + " colours and " + std::to_string(keys.size()) +
                   " keys",
               "Pass a colour for each rank, and a key for each or none");
  return each_rank(ranks, [&](communicator& c, std::size_t i) {
    return c ? c.split(colours[i], keys.empty() ? 0 : keys[i]) : communicator{};
  });
}

void group_member::submit(detail::request& request, const events& deps) {
  m_group.add(m_communicator, request, deps);
}

void group::submit(detail::request& request, const events& deps) {
  add(m_communicator, request, deps);
}

// The caller's counts need not outlive the call.
void group::add(const communicator& c, const detail::request& request, const events& deps) {
  const bool message = core::is_point_to_point(request.record.kind);
  auto at = m_operations.end();
  if (message)
    at = std::find_if(m_operations.begin(), m_operations.end(),
                      [&](const operation& o) { return o.messages && o.on.m_state == c.m_state; });
  if (at == m_operations.end()) at = m_operations.insert(at, operation{c, message, {}, {}});
  at->parts.push_back(request);
  at->deps.insert(at->deps.end(), deps.begin(), deps.end());
  detail::request& r = at->parts.back();
  for (const detail::counts** list :
       {&r.send_counts, &r.send_displs, &r.recv_counts, &r.recv_displs})
    if (*list) *list = &m_counts.emplace_back(**list);
}

std::vector<group::operation> group::take(const events& deps) {
  // A group of nothing is an operation too.
  if (m_operations.empty() && m_is_of_one) m_operations.push_back({m_communicator, true, {}, {}});
  for (operation& o : m_operations) o.deps.insert(o.deps.end(), deps.begin(), deps.end());
  return std::exchange(m_operations, {});
}

namespace {

// The request that several operations are, or the one.
template <class Operation>
detail::request whole(Operation& o) {
  if (!o.messages) return o.parts.front();
  auto r = detail::make_request<std::byte>(kind::group, 0);
  r.parts = &o.parts;
  return r;
}

}  // namespace

group::operation group::take_one(const events& deps) {
  auto all = take(deps);
  if (all.size() != 1)
    base::fail(errc::invalid_argument,
               "the group has " + std::to_string(all.size()) +
                   " operations, which are no single one: collectives, or several communicators",
               "Call submit_each(), which returns an event of each, or run()");
  return std::move(all.front());
}

::sycl::event group::submit(const events& deps) {
  const std::deque<detail::counts> kept = std::exchange(m_counts, {});
  operation one = take_one(deps);
  auto r = whole(one);
  return sycl_layer::submit(one.on.state(), r, one.deps);
}

#ifdef SYCL_EXT_ONEAPI_GRAPH
graph_node group::add_to(const modifiable_graph& graph, const std::vector<graph_node>& after) {
  const std::deque<detail::counts> kept = std::exchange(m_counts, {});
  operation one = take_one({});
  auto r = whole(one);
  sycl_layer::resolved call;
  sycl_layer::resolve_call(one.on.state(), r, call);
  return sycl_layer::add(one.on.state(), graph, call, after, one.deps);
}
#endif

namespace {

// What starts an operation of a group.
struct group_start {
  sycl_layer::communicator_state* state;
  detail::request request;
  const std::vector<::sycl::event>* deps;
};

#ifdef SYCL_IMPLEMENTATION_ACPP

// Whether nothing but what the program has had collected before may come before these operations:
// they are on devices, each on the queue of its communicator.
bool follow_the_program(const std::vector<group_start>& all) {
  if (all.size() < 2 || sycl_layer::current_capture() || sycl_layer::in_recording_scope())
    return false;
  return std::all_of(all.begin(), all.end(), [](const group_start& s) {
    return !s.request.queue && s.state->queue() && s.state->on_device() &&
           s.state->on_device()->streams();
  });
}

#endif

std::vector<::sycl::event> start_all(std::vector<group_start>& all) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  // Once for all of them, where each would have it enqueued again.
  std::optional<sycl_layer::collected_is_enqueued> scope;
  if (!sycl_layer::program_submits_instantly() && follow_the_program(all)) {
    sycl_layer::flush_and_enqueue();
    scope.emplace();
  }
#endif
  std::vector<::sycl::event> done;
  for (auto& s : all) done.push_back(sycl_layer::submit(*s.state, s.request, *s.deps));
  return done;
}

}  // namespace

std::vector<::sycl::event> group::submit_each(const events& deps) {
  const std::deque<detail::counts> kept = std::exchange(m_counts, {});
  auto all = take(deps);
  std::vector<group_start> starts;
  for (auto& o : all) starts.push_back({&o.on.state(), whole(o), &o.deps});
  return start_all(starts);
}

void group::run(const events& deps) {
  const std::deque<detail::counts> kept = std::exchange(m_counts, {});
  auto all = take(deps);
  if (all.size() == 1) {
    auto r = whole(all.front());
    return sycl_layer::run(all.front().on.state(), r, all.front().deps);
  }
  std::vector<group_start> starts;
  for (auto& o : all) starts.push_back({&o.on.state(), whole(o), &o.deps});
  for (const auto& e : start_all(starts)) sycl_layer::await_event(e);
  for (const auto& o : all) o.on.check();
}

}  // namespace sucl
