// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that are set up once and started many times.
#pragma once

#include <sucl/export.hpp>
#include <sucl/graph.hpp>
#include <sucl/operations.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sucl {

namespace sycl_layer {
class communicator_state;
struct prepared;
struct compiled;
}  // namespace sycl_layer

/// One operation on fixed memory, checked when it was made. A handle: copies refer to the same
/// operation. It keeps buffers alive and copies counts; USM and system memory must stay valid.
///
/// Every rank makes it and starts it in the same order as other operations of the communicator. It
/// may be started again when it is done, from one thread at a time.
class [[nodiscard]] SUCL_API persistent {
 public:
  /// Refers to nothing: every call is errc::shut_down.
  persistent() = default;

  /// Starts it, after `deps`. The event means done, as that of the operation itself does.
  ::sycl::event start(const std::vector<::sycl::event>& deps = {});
  /// Runs it: the blocking form.
  void run(const std::vector<::sycl::event>& deps = {});
#ifdef SYCL_EXT_ONEAPI_GRAPH
  /// Adds it to a command graph: see communicator::in_graph().
  graph_node add_to(const modifiable_graph& graph, const std::vector<graph_node>& after = {});
#endif

  explicit operator bool() const noexcept { return m_operation != nullptr; }

  /// @cond internal
  explicit persistent(std::shared_ptr<sycl_layer::prepared> operation)
      : m_operation(std::move(operation)) {}
  /// @endcond

 private:
  sycl_layer::prepared& operation() const;
  std::shared_ptr<sycl_layer::prepared> m_operation;
};

/// A composition as a plan: lowered, verified and given its scratch once, by
/// communicator::compile(). A handle: copies refer to the same plan, which ends with the last copy,
/// once what it has started is done, or with its communicator.
///
/// Every rank starts it in the same order as other operations of the communicator. Memory and
/// events are as those of any operation; every start may be on other memory. `send` and `recv` must
/// not overlap, and each may be null on ranks that do not use it. Memory that the plan's backend
/// cannot read is errc::unsupported, another element type than that of compile() invalid_type.
class [[nodiscard]] SUCL_API compiled_plan {
 public:
  /// Refers to nothing: every call is errc::shut_down.
  compiled_plan() = default;

  /// Starts it on memory of at least send_size() and recv_size() elements. The event means done.
  template <class T>
  ::sycl::event start(const T* send, T* recv, const std::vector<::sycl::event>& deps = {}) {
    auto r = request_for<T>(detail::erase_pointer(send), detail::erase_pointer(recv));
    return submit(r, deps);
  }
  template <class T, int D>
  ::sycl::event start(const ::sycl::buffer<T, D>& send, const ::sycl::buffer<T, D>& recv,
                      const std::vector<::sycl::event>& deps = {}) {
    auto r = request_for<T>(detail::erase(send), detail::erase(recv));
    return submit(r, deps);
  }

  /// The same, done when it returns.
  template <class T>
  void run(const T* send, T* recv, const std::vector<::sycl::event>& deps = {}) {
    auto r = request_for<T>(detail::erase_pointer(send), detail::erase_pointer(recv));
    run_now(r, deps);
  }
  template <class T, int D>
  void run(const ::sycl::buffer<T, D>& send, const ::sycl::buffer<T, D>& recv,
           const std::vector<::sycl::event>& deps = {}) {
    auto r = request_for<T>(detail::erase(send), detail::erase(recv));
    run_now(r, deps);
  }

#ifdef SYCL_EXT_ONEAPI_GRAPH
  /// Adds it to a command graph: see communicator::in_graph().
  template <class T>
  graph_node add_to(const modifiable_graph& graph, const T* send, T* recv,
                    const std::vector<graph_node>& after = {}) {
    auto r = request_for<T>(detail::erase_pointer(send), detail::erase_pointer(recv));
    return add(r, graph, after);
  }
#endif

  [[nodiscard]] std::size_t send_size() const;  ///< elements that this rank's `send` has at least
  [[nodiscard]] std::size_t recv_size() const;  ///< the same for `recv`

  /// How it was lowered, in a line.
  [[nodiscard]] std::string explain() const;

  explicit operator bool() const noexcept { return m_plan != nullptr; }

  /// @cond internal
  explicit compiled_plan(std::shared_ptr<sycl_layer::compiled> plan) : m_plan(std::move(plan)) {}
  /// @endcond

 private:
  template <class T>
  detail::request request_for(detail::operand&& send, detail::operand&& recv) const {
    auto r = detail::make_request<T>(kind::barrier, 0);
    r.send = std::move(send);
    r.recv = std::move(recv);
    return r;
  }
  sycl_layer::compiled& plan() const;
  ::sycl::event submit(detail::request& r, const std::vector<::sycl::event>& deps);
  void run_now(detail::request& r, const std::vector<::sycl::event>& deps);
#ifdef SYCL_EXT_ONEAPI_GRAPH
  graph_node add(detail::request& r, const modifiable_graph& graph,
                 const std::vector<graph_node>& after);
#endif
  std::shared_ptr<sycl_layer::compiled> m_plan;
};

/// The persistent form of a communicator's calls: each makes an operation and starts nothing.
/// Errors that a rank can see by itself are thrown here. Events that are passed are waited for by
/// every start.
class [[nodiscard]] SUCL_API persistent_communicator
    : public detail::operations<persistent_communicator, persistent> {
 public:
  /// @cond internal
  persistent submit(detail::request& request, const events& deps);
  std::size_t share(kind k, std::size_t elements);
  /// @endcond

 private:
  friend class communicator;
  explicit persistent_communicator(std::shared_ptr<sycl_layer::communicator_state> state)
      : m_state(std::move(state)) {}
  std::shared_ptr<sycl_layer::communicator_state> m_state;
};

}  // namespace sucl
