// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Communicators: an ordered set of ranks, each with a SYCL queue or without.
#pragma once

#include <sucl/composition.hpp>
#include <sucl/detail/concurrently.hpp>
#include <sucl/error.hpp>
#include <sucl/export.hpp>
#include <sucl/graph.hpp>
#include <sucl/member.hpp>
#include <sucl/operations.hpp>
#include <sucl/persistent.hpp>
#include <sucl/single_values.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sucl {

namespace sycl_layer {
class communicator_state;
/// Entry points of libsucl; not part of the API.
SUCL_API ::sycl::event submit(communicator_state& state, detail::request& request,
                              const std::vector<::sycl::event>& deps);
SUCL_API void run(communicator_state& state, detail::request& request,
                  const std::vector<::sycl::event>& deps);
SUCL_API std::size_t share(communicator_state& state, kind k, std::size_t elements);
SUCL_API int rank(const communicator_state& state);
SUCL_API int size(const communicator_state& state);
#ifdef SYCL_IMPLEMENTATION_ACPP
/// Records for each source file of the program whether AdaptiveCpp submits commands instantly.
SUCL_API bool note_submission(bool instant);
static const bool submission_is_noted [[gnu::unused]] =
    note_submission(ACPP_ALLOW_INSTANT_SUBMISSION != 0);
#endif
}  // namespace sycl_layer

class communicator;
class group;

/// Calls `call(communicator, index)` or `call(communicator)` of each of these ranks at once, in a
/// thread each, and returns what they return, in order. For one thread that has several ranks of
/// its process, from runtime::world(queues), and makes what is collective and blocks: dup, split,
/// allocate, compile, use_tuning, blocking operations. Throws what the first of them has thrown,
/// when all have ended, and errc::invalid_argument at once where one is passed twice.
template <class Call>
auto each_rank(const std::vector<communicator>& ranks, Call&& call);

/// The blocking form of a communicator's calls: each returns when its operation is done. It submits
/// no SYCL command where none is needed. Made by communicator::blocking(); valid as long as that
/// is.
class [[nodiscard]] SUCL_API blocking_communicator
    : public detail::operations<blocking_communicator, void>,
      public detail::single_values<blocking_communicator> {
  using of_memory = detail::operations<blocking_communicator, void>;
  using of_values = detail::single_values<blocking_communicator>;

 public:
  using of_memory::allgather, of_values::allgather;
  using of_memory::allreduce, of_values::allreduce;
  using of_memory::broadcast, of_values::broadcast;
  using of_memory::exscan, of_values::exscan;
  using of_memory::gather, of_values::gather;
  using of_memory::reduce, of_values::reduce;
  using of_memory::scan, of_values::scan;

  [[nodiscard]] int rank() const { return sycl_layer::rank(*m_state); }  ///< of this process
  [[nodiscard]] int size() const { return sycl_layer::size(*m_state); }  ///< number of ranks

  /// @cond internal
  void submit(detail::request& request, const events& deps) {
    sycl_layer::run(*m_state, request, deps);
  }
  std::size_t share(kind k, std::size_t elements) {
    return sycl_layer::share(*m_state, k, elements);
  }
  /// @endcond

 private:
  friend class communicator;
  explicit blocking_communicator(std::shared_ptr<sycl_layer::communicator_state> state)
      : m_state(std::move(state)) {}
  std::shared_ptr<sycl_layer::communicator_state> m_state;
};

/// An ordered set of ranks that communicate, each through its own SYCL queue or, for host memory
/// only, without one. Every method of detail::operations is a call on it; see there for the rules.
///
/// A handle: copies refer to the same communicator, which ends with the last copy or with the
/// runtime, whichever is first; afterwards every call is errc::shut_down. May be used from several
/// threads, which then must agree on an order themselves; threads that communicate independently
/// want a communicator each (dup).
class [[nodiscard]] SUCL_API communicator : public detail::operations<communicator, ::sycl::event> {
 public:
  /// Refers to nothing: every call is errc::shut_down.
  communicator() = default;

  [[nodiscard]] int rank() const;  ///< of this process, from 0
  [[nodiscard]] int size() const;  ///< number of ranks

  /// Every rank, with its node, device and what its backends reach: the same on every rank.
  [[nodiscard]] const std::vector<member>& members() const;

  /// Whether this rank has a queue.
  [[nodiscard]] bool has_queue() const;
  /// The queue; errc::invalid_argument without one.
  [[nodiscard]] ::sycl::queue queue() const;

  /// The blocking form of all operations.
  blocking_communicator blocking() const;

  /// The persistent form of all operations: made once, started many times.
  persistent_communicator persistent() const;

  /// Records what `calls` submits to `queue`: kernels and other commands of the program, and
  /// operations by forms that return events, of this and of other communicators. Nothing of it
  /// runs; executable::replay() runs all of it. Every rank records the same operations, in the same
  /// order as it calls others; what differs is errc::mismatch on all ranks.
  ///
  /// Where the SYCL implementation has command graphs and the device is a CPU the sequence is one.
  /// With AdaptiveCpp on an in-order queue of a GPU the second replay has the driver capture a
  /// graph of it, if that can be. Elsewhere each replay calls `calls` again. So that a program is
  /// right with either, `calls` does nothing but submit commands, the same ones each time, and what
  /// it refers to stays until the last replay is done; so do buffers, USM and compiled plans.
  /// Throws what `calls` throws.
  executable record(const ::sycl::queue& queue, std::function<void()> calls) const;

#ifdef SYCL_EXT_ONEAPI_GRAPH
  /// The form that adds operations to a command graph, behind the nodes `after` and behind the
  /// operations of this communicator that the graph has already.
  graph_communicator in_graph(const modifiable_graph& graph,
                              const std::vector<graph_node>& after = {}) const;
#endif

  /// Makes a plan of a composition for elements of type `T`: lowers it along the machine as the
  /// options say, proves that it computes what the composition says, and sets up its scratch, so
  /// that starting it costs as little as can be. Every rank calls it, with the same composition and
  /// options, in the same order as collectives; blocks. What is wrong on any rank is thrown on all,
  /// and nothing is made: errc::invalid_rank, invalid_count and invalid_type for a composition that
  /// makes no sense, invalid_argument for races, which names both primitives, and for options that
  /// do not fit, mismatch where ranks differ, unavailable where there are no plans (explain() says
  /// why).
  template <class T>
  compiled_plan compile(const composition& c, const compile_options& o = {}) const {
    return compile(c, o, type_of_v<T>, sizeof(T));
  }
  /// compile() of several ranks that one thread has: see each_rank().
  template <class T>
  static std::vector<compiled_plan> compile(const std::vector<communicator>& ranks,
                                            const composition& c, const compile_options& o = {});

  /// Splits: ranks with the same `colour` form a communicator, ordered by `key`, then rank.
  /// Collective. A negative colour gets an empty communicator. The queue stays the same.
  communicator split(int colour, int key = 0) const;

  /// The same ranks, with an order of operations of its own. Collective.
  communicator dup() const;

  /// Makes a communicator of the ranks that are left when others have died, or have ended their
  /// runtime, in the old order. For after errc::peer_lost or errc::timeout. Every rank that lives
  /// calls it; blocks. Ranks may die during the call: all that return have the same members.
  ///
  /// This communicator is given up: what is in flight on any rank ends with errc::peer_lost, and so
  /// does every later call but shrink(). Memory of its allocate() stays until it ends. The new one
  /// shares nothing with it, so that no late write reaches its memory; the queue stays the same.
  ///
  /// A rank that is stopped, or does something else, is waited for: with SUCL_TIMEOUT set,
  /// errc::timeout names it, and shrink() may be called again. Jobs without MPI only:
  /// errc::unsupported where MPI is the control plane, which ends the job when a rank dies, or a
  /// process has several ranks. errc::peer_lost on a rank that the others have lost.
  communicator shrink() const;

  /// @name dup(), split() and the like of several ranks that one thread has, one entry for each.
  /// Communicators that refer to nothing, as from a negative colour, stay so.
  /// @{
  static std::vector<communicator> dup(const std::vector<communicator>& ranks);
  static std::vector<communicator> split(const std::vector<communicator>& ranks,
                                         const std::vector<int>& colours,
                                         const std::vector<int>& keys = {});
  /// @}

  /// Memory for `count` elements that the other ranks of the node reach, so that collectives on it
  /// need no copies: several times faster for large messages. It is memory of the host, which
  /// kernels may use where the device reads system memory (aspect usm_system_allocations), as CPU
  /// devices do; for GPUs where SuCL's own kernels run (docs/reference/gpus.md) it is memory of the
  /// device, which the host cannot read. Where memory cannot be shared it is ordinary memory of
  /// that kind. Zeroed. Ends with deallocate() or with the communicator. Every rank calls it, in
  /// the same order as collectives, each with a count of its own, of elements of one size; blocks.
  /// Throws, on every rank, errc::mismatch if ranks differ in that, and errc::out_of_memory if any
  /// rank has no memory for its count, or a node not for those of its ranks, beside what was
  /// allocated and not written to yet.
  template <class T>
  [[nodiscard]] T* allocate(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "elements are moved byte by byte");
    return static_cast<T*>(allocate_elements(count, sizeof(T)));
  }
  /// Frees memory of allocate() once no operation issued before uses it. Every rank calls it for
  /// the same block, as a collective; blocks. Throws errc::invalid_memory, on all, if one errs.
  void deallocate(void* memory);

  /// allocate() and deallocate() of several ranks that one thread has: see each_rank().
  template <class T>
  [[nodiscard]] static std::vector<T*> allocate(const std::vector<communicator>& ranks,
                                                std::size_t count);
  template <class T>
  static void deallocate(const std::vector<communicator>& ranks, const std::vector<T*>& memory);

  /// Maps `count` elements of this rank's own device memory into the other ranks, so that
  /// collectives on it write directly into the peers' memory, as on memory of allocate(): pays off
  /// for large messages on memory that is used repeatedly. For device allocations of USM of which
  /// SuCL's own kernels run collectives (docs/reference/gpus.md); true if they do from now on, on
  /// every rank, else false, and all works as before. Each rank names memory of its own, of any
  /// size; one that has none passes nullptr and 0, and then it is false. Every rank calls it, in
  /// the same order as collectives; blocks. Throws errc::invalid_memory, on every rank, if any
  /// passes nullptr and another count.
  template <class T>
  bool register_memory(T* memory, std::size_t count) {
    return register_elements(memory, count, sizeof(T));
  }
  /// Unmaps memory of register_memory(), before that is freed, once no operation issued before uses
  /// it. Every rank calls it for the same block, in the same order as collectives; blocks. Throws
  /// errc::invalid_memory, on all, if one passes what this communicator has not registered.
  void deregister_memory(void* memory);

  /// Uses the tuning table with this text, as `sucl tune` writes them, from now on, instead of the
  /// one that the configuration names; empty: SuCL's own choices. Rules and the threshold of the
  /// configuration take precedence. Every rank calls it with the same text, in the same order
  /// as collectives; waits for what was issued before. Throws errc::configuration where the text is
  /// wrong, with line and column, and errc::mismatch on the other ranks; then nothing changes.
  void use_tuning(const std::string& toml);

  /// Which backend would execute an operation of `bytes` bytes (for gathers and alltoall: of one
  /// block), and why: on memory of the device, where that is not the host's. Local.
  [[nodiscard]] std::string explain(kind k, std::size_t bytes, type t = type::fp32,
                                    op o = op::sum) const;
  /// The name of that backend, as in the configuration, for the form that returns an event. Local.
  /// Throws errc::unsupported if there is none.
  [[nodiscard]] std::string selected_backend(kind k, std::size_t bytes, type t = type::fp32,
                                             op o = op::sum) const;

  /// Returns when every operation issued so far is done, and throws what failed. Local.
  void wait() const;

  /// Throws the first error of an asynchronous operation that has not been thrown yet. Local.
  void check() const;

  explicit operator bool() const noexcept { return m_state != nullptr; }

  /// @cond internal
  ::sycl::event submit(detail::request& request, const events& deps) {
    return sycl_layer::submit(state(), request, deps);
  }
  std::size_t share(kind k, std::size_t elements) {
    return sycl_layer::share(state(), k, elements);
  }
  /// For interfaces of other languages: what they find wrong with a call is reported to the other
  /// ranks as what the library finds is.
  void refuse(const sucl_operation& record, const error_info& wrong) const;
  /// For objects that outlive it: as check(), but where it has ended in good order, after all that
  /// was issued was done, throws nothing.
  void check_issued() const;
  /// Ends it on all ranks, for what this one has found.
  void fail(const error_info& why) const;
  /// Throws errc::invalid_argument unless these are different ones.
  static void check_different(const std::vector<communicator>& ranks);
  explicit communicator(std::shared_ptr<sycl_layer::communicator_state> state)
      : m_state(std::move(state)) {}
  /// @endcond

 private:
  friend class group;
  friend class runtime;
  sycl_layer::communicator_state& state() const;
  void* allocate_elements(std::size_t count, std::size_t element_size);
  bool register_elements(void* memory, std::size_t count, std::size_t element_size);
  compiled_plan compile(const composition& c, const compile_options& o, type element,
                        std::size_t element_size) const;
  std::shared_ptr<sycl_layer::communicator_state> m_state;
};

template <class Call>
auto each_rank(const std::vector<communicator>& ranks, Call&& call) {
  communicator::check_different(ranks);
  return detail::gather_concurrently(ranks.size(), [&](std::size_t i) {
    communicator mine = ranks[i];
    if constexpr (std::is_invocable_v<Call&, communicator&, std::size_t>)
      return call(mine, i);
    else
      return call(mine);
  });
}

template <class T>
std::vector<T*> communicator::allocate(const std::vector<communicator>& ranks, std::size_t count) {
  return each_rank(ranks, [&](communicator& c) { return c ? c.allocate<T>(count) : nullptr; });
}

template <class T>
void communicator::deallocate(const std::vector<communicator>& ranks,
                              const std::vector<T*>& memory) {
  detail::check_one_each(ranks.size(), memory.size(), "pointers");
  each_rank(ranks, [&](communicator& c, std::size_t i) {
    if (c) c.deallocate(memory.at(i));
  });
}

template <class T>
std::vector<compiled_plan> communicator::compile(const std::vector<communicator>& ranks,
                                                 const composition& c, const compile_options& o) {
  return each_rank(ranks,
                   [&](communicator& r) { return r ? r.compile<T>(c, o) : compiled_plan{}; });
}

/// What one communicator puts into a group: operations of any kind. Made by group::on(); valid as
/// long as the group.
class [[nodiscard]] SUCL_API group_member : public detail::operations<group_member, void> {
 public:
  /// @cond internal
  void submit(detail::request& request, const events& deps);
  std::size_t share(kind k, std::size_t elements) { return m_communicator.share(k, elements); }
  /// @endcond

 private:
  friend class group;
  group_member(group& owner, communicator c) : m_group(owner), m_communicator(std::move(c)) {}
  group& m_group;
  communicator m_communicator;
};

/// Operations that are issued together, so that none waits for another: like MPI's MPI_Waitall over
/// non-blocking calls, or ncclGroupStart and ncclGroupEnd. Collect, then submit() or run() once.
/// Arguments are checked then. The group is empty again afterwards, also where the call throws.
///
/// A group of one communicator takes sends and receives, by its own send(), recv() and sendrecv().
/// They are one operation, and where the call throws nothing was started. What one of them receives
/// must not overlap what another sends or receives.
///
/// A group of several ranks that one thread has, from runtime::world(queues), takes operations of
/// any kind, by on(). All are started before any is waited for. Sends and receives of a
/// communicator are one operation, at the position of the first of them. Where the call throws,
/// those before were started.
class SUCL_API group : public detail::point_to_point<group, void> {
 public:
  /// A group of several communicators.
  group() = default;
  /// A group of one communicator.
  explicit group(communicator comm) : m_communicator(std::move(comm)), m_is_of_one(true) {}
  group(group&&) noexcept = default;
  group& operator=(group&&) noexcept = default;

  /// What is called on the result is collected as an operation of that communicator.
  group_member on(const communicator& c) { return {*this, c}; }

  /// Starts everything collected, as one operation. The event means that all of it is done. Throws
  /// errc::invalid_argument where it is several operations: see submit_each().
  ::sycl::event submit(const events& deps = {});
  /// Starts everything collected. The events are those of the operations, in order.
  std::vector<::sycl::event> submit_each(const events& deps = {});
  /// Runs everything collected: returns when all of it is done. One operation runs in the blocking
  /// form; several do in the form that returns events, so that other ranks call that form too.
  void run(const events& deps = {});
#ifdef SYCL_EXT_ONEAPI_GRAPH
  /// Adds everything collected, as one operation, to a command graph: see communicator::in_graph().
  graph_node add_to(const modifiable_graph& graph, const std::vector<graph_node>& after = {});
#endif

  /// @cond internal
  void submit(detail::request& request, const events& deps);
  /// @endcond

 private:
  friend class group_member;
  /// One operation, or sends and receives that are one.
  struct operation {
    communicator on;
    bool messages = false;
    std::vector<detail::request> parts;
    events deps;
  };
  void add(const communicator& c, const detail::request& request, const events& deps);
  std::vector<operation> take(const events& deps);
  operation take_one(const events& deps);
  communicator m_communicator;
  bool m_is_of_one = false;
  std::vector<operation> m_operations;
  std::deque<detail::counts> m_counts;  ///< that requests point to
};

}  // namespace sucl
