// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Sequences of commands as graphs of CUDA or HIP, where SYCL has none: what a function submits to
/// an in-order queue is captured from its native stream.
#pragma once

#include "core/operation/captured.hpp"
#include "sycl/common/recording.hpp"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::sycl_layer {

#ifdef SYCL_IMPLEMENTATION_ACPP

struct native_graphs;

/// One capture of the commands of a queue, and then the graph that it has given. While it captures,
/// operations of the thread are taken into it.
class capture final : public operation_capture {
 public:
  explicit capture(const ::sycl::queue& queue);
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;

  /// Captures what `calls` submits, and runs none of it. False where something of it cannot be in
  /// a graph. Throws what `calls` throws.
  bool run(const std::function<void()>& calls);
  ::sycl::event take(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                     const core::layouts& layout, const std::vector<buffer_use>& buffers,
                     const std::vector<::sycl::event>& deps) override;

  /// Whether its operations would be executed now as they were then.
  bool is_current() const;
  /// Launches the graph, unless something has to come first that the host does.
  std::optional<::sycl::event> launch();

 private:
  struct member {
    std::weak_ptr<communicator_state> state;
    core::captured_operations operations;
  };
  member& member_of(communicator_state& state);
  bool is_own(const ::sycl::event& e) const;
  bool begin();
  bool end();

  const native_graphs& m_native;
  ::sycl::queue m_queue;
  void* m_stream = nullptr;
  std::list<member> m_members;
  std::vector<::sycl::event> m_events;  ///< of operations, while it captures
  std::shared_ptr<void> m_graph;        ///< what can be launched
};

/// The replays of one function on a queue: the first ones call it, and later ones launch a graph,
/// if one can be had.
class native_replays {
 public:
  native_replays() = default;
  native_replays(communicator_state& state, const ::sycl::queue& queue);
  /// Nothing: `calls` was called, and its commands are the queue's last ones.
  std::optional<::sycl::event> replay(const std::function<void()>& calls);
  /// Whether replays launch a graph.
  bool has_graph() const { return m_capture != nullptr; }

 private:
  void call(const std::function<void()>& calls);

  std::optional<::sycl::queue> m_queue;  ///< nothing: there are no graphs
  bool m_called = false;
  std::unique_ptr<capture> m_capture;
};

#else

class native_replays {
 public:
  native_replays() = default;
  native_replays(communicator_state&, const ::sycl::queue&) {}
  std::optional<::sycl::event> replay(const std::function<void()>& calls) {
    calls();
    return std::nullopt;
  }
  bool has_graph() const { return false; }
};

#endif

}  // namespace sucl::sycl_layer
