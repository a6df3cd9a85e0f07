// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sequences of commands that are recorded once and replayed many times.
#pragma once

#include <sucl/export.hpp>
#include <sucl/operations.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sucl {

namespace sycl_layer {
class communicator_state;
struct replayed_sequence;
}  // namespace sycl_layer

/// Commands of the program and operations that communicator::record() has recorded. A handle:
/// copies refer to the same sequence, which may be replayed when its communicators live, by one
/// thread at a time, and by every rank in the same order and equally often.
///
/// Replays of the sequences of a communicator follow one another. Other operations of it are
/// ordered with them by the program: by an in-order queue, by events, or by waiting.
class [[nodiscard]] SUCL_API executable {
 public:
  /// Refers to nothing: every call is errc::shut_down.
  executable() = default;

  /// Executes all of it once more, after `deps`; the event means done. Throws the errors of earlier
  /// replays, as any call on the communicator does, and errc::shut_down after its end.
  ::sycl::event replay(const std::vector<::sycl::event>& deps = {});

  /// Replaces the sequence, for this handle and its copies, by what `calls` submits, as
  /// communicator::record() does: called by every rank, in the order of recordings and calls. For
  /// other pointers, counts or commands. Waits for the replays of the communicator that are in
  /// flight. If `calls` throws, the sequence stays what it was.
  void update(std::function<void()> calls);

  /// Whether replays launch a graph, of SYCL or, from the second one on, of the device's driver,
  /// without calling the program's function.
  [[nodiscard]] bool is_graph() const;

  explicit operator bool() const noexcept { return m_sequence != nullptr; }

  /// @cond internal
  explicit executable(std::shared_ptr<sycl_layer::replayed_sequence> sequence)
      : m_sequence(std::move(sequence)) {}
  /// @endcond

 private:
  sycl_layer::replayed_sequence& sequence() const;
  std::shared_ptr<sycl_layer::replayed_sequence> m_sequence;
};

#ifdef SYCL_EXT_ONEAPI_GRAPH

/// A command graph to which nodes are added.
using modifiable_graph = ::sycl::ext::oneapi::experimental::command_graph<
    ::sycl::ext::oneapi::experimental::graph_state::modifiable>;
using graph_node = ::sycl::ext::oneapi::experimental::node;

/// The form of a communicator's calls that adds each operation to a command graph and returns its
/// node. Made by communicator::in_graph(); valid as long as communicator and graph. Events that are
/// passed are those of commands which queues have recorded into the graph.
class [[nodiscard]] SUCL_API graph_communicator
    : public detail::operations<graph_communicator, graph_node> {
 public:
  /// @cond internal
  graph_node submit(detail::request& request, const events& deps);
  std::size_t share(kind k, std::size_t elements);
  /// @endcond

 private:
  friend class communicator;
  graph_communicator(std::shared_ptr<sycl_layer::communicator_state> state, modifiable_graph graph,
                     std::vector<graph_node> after)
      : m_state(std::move(state)), m_graph(std::move(graph)), m_after(std::move(after)) {}
  std::shared_ptr<sycl_layer::communicator_state> m_state;
  modifiable_graph m_graph;
  std::vector<graph_node> m_after;
};

#endif

}  // namespace sucl
