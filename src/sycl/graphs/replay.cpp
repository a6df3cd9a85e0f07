// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/graphs/replay.hpp"

#include "base/error.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <optional>
#include <utility>

namespace sucl::sycl_layer {
namespace {

error_info failure_of(const recorded_operation& o, errc code, const char* message,
                      const char* hint) {
  error_info info;
  info.code = code;
  info.operation = core::describe(o.record);
  info.message = message;
  info.hint = hint;
  return info;
}

bool is_alive(const std::shared_ptr<communicator_state>& state) {
  return state && state->has_core() && state->process()->alive() && state->core().alive();
}

// A rank whose order is broken executes other operations than the rest, which must not wait for it.
void fail_overlap(const recorded_operation& o, communicator_state& state) {
  error_info info = failure_of(
      o, errc::mismatch,
      "a graph was replayed again before its earlier replay had ended, so that the order of its "
      "operations is not that of the other ranks",
      "Order replays by an in-order queue, by events, or by waiting for the one before");
  info.rank = state.core().rank();
  state.core().fail_everywhere(info);
  throw error(std::move(info));
}

// So that ranks whose memory is still there do not wait for it.
void check_memory_is_there(recorded_operation& o, communicator_state& state) {
  const std::uint64_t changes = state.core().changes();
  if (changes == o.changes) return;
  try {
    state.core().check_not_freed(o.record, o.changes);
  } catch (const error& e) {
    error_info info = e.info();
    info.rank = state.core().rank();
    state.core().fail_everywhere(info);
    throw error(std::move(info));
  }
  o.changes = changes;
}

void issue_by(communicator_state& state, recorded_operation& o, const host_buffers& memory) {
  check_memory_is_there(o, state);
  if (!o.order->begin(o.position)) fail_overlap(o, state);
  try {
    set(o, memory);
    if (auto wrong = overlap(o, memory, state)) throw error(*std::move(wrong));
    core::observer watch;
    watch.assisted = watch.thrown = true;
    o.pending = state.core().replay(o.record, o.layout, watch).operation;
  } catch (...) {
    o.order->end(o.position);
    throw;
  }
  o.order->end(o.position);
}

std::optional<error_info> start(recorded_operation& o, const host_buffers& memory) {
  const auto state = o.state.lock();
  if (!is_alive(state))
    return failure_of(o, errc::shut_down,
                      "the graph is replayed after the end of the operation's communicator",
                      "Keep the communicator, and sucl::runtime, while its graphs are used");
  try {
    if (!o.is_recorded)
      base::fail(errc::shut_down, "the operation could not be recorded", "Record the graph again");
    issue_by(*state, o, memory);
    return std::nullopt;
  } catch (const error& e) {
    return e.info();
  }
}

std::optional<error_info> finish(recorded_operation& o) {
  const auto state = o.state.lock();
  const core::ticket t = std::exchange(o.pending, {});
  if (!t.get()) return std::nullopt;
  if (state) state->core().assist(t);
  return t.failure();
}

void end(const recorded_operation& o, const std::optional<error_info>& failure) {
  if (failure) fail_command(o.queue, *failure);
  end_command();
}

}  // namespace

recorded_operation::recorded_operation(communicator_state& of, const resolved& call,
                                       const ::sycl::queue& on)
    : state(of.weak_from_this()),
      queue(on),
      record(call.record),
      parts(call.parts),
      layout(call.layout),
      changes(of.core().changes()) {
  record.parts = parts.data();
  core::keep_arrays(record, of.core().size(), arrays);
}

void run(const steps& all, const host_buffers& memory) {
  begin_command();
  std::optional<error_info> first;
  for (const auto& o : all) {
    auto failure = start(*o, memory);
    if (!failure) failure = finish(*o);
    if (!first) first = std::move(failure);
  }
  end(*all.front(), first);
}

void issue(recorded_operation& o, const host_buffers& memory) {
  begin_command();
  end(o, start(o, memory));
}

void await(recorded_operation& o) {
  begin_command();
  end(o, finish(o));
}

}  // namespace sucl::sycl_layer
#endif
