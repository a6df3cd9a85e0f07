// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the Python module uses of SuCL, without SYCL's headers, which take long to compile, and
/// without Python's. Types are those of the operation record: Python knows them at run time only.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/composition.hpp>
#include <sucl/error.hpp>
#include <sucl/member.hpp>
#include <sucl/rendezvous.hpp>
#include <sucl/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl {
class communicator;
class compiled_plan;
class executable;
class group;
class neighborhood;
class persistent;
class runtime;
}  // namespace sucl

namespace sucl::core {
class communicator;
class process;
}  // namespace sucl::core

namespace sucl::python {

/// A sycl::queue.
class queue_handle {
 public:
  /// Of a device: "cpu", "gpu" or "default".
  static queue_handle of_device(const std::string& device);
  /// An in-order one of the GPU with that number in the API of its vendor, as other libraries
  /// count.
  static queue_handle of_gpu(int number);
  /// A copy of the sycl::queue there.
  explicit queue_handle(const void* sycl_queue);

  [[nodiscard]] const void* get() const { return m_queue.get(); }
  [[nodiscard]] std::string device() const;
  /// Of an in-order queue of a GPU: its stream, in the vendor's API.
  [[nodiscard]] void* native_stream() const;
  /// A copy, for a capsule; and the end of one.
  [[nodiscard]] void* copy() const;
  static void destroy(void* copied);

 private:
  explicit queue_handle(std::shared_ptr<void> queue) : m_queue(std::move(queue)) {}
  std::shared_ptr<void> m_queue;
};

/// A sycl::event.
class event_handle {
 public:
  event_handle() = default;
  /// A copy of the sycl::event there.
  explicit event_handle(const void* sycl_event);

  void wait() const;
  [[nodiscard]] bool done() const;
  [[nodiscard]] const void* get() const { return m_event.get(); }
  [[nodiscard]] void* copy() const;
  static void destroy(void* copied);

 private:
  std::shared_ptr<void> m_event;
};

using dependencies = std::vector<event_handle>;

/// Memory of a call.
struct operand {
  void* pointer = nullptr;
  std::size_t elements = 0;
  bool given = false;
};

/// One call.
struct call {
  sucl_operation record{};
  /// Counts and displacements to send and to receive.
  std::array<std::optional<counts>, 4> arrays;
  operand send, recv;
  const void* queue = nullptr;  ///< the sycl::queue of the arrays; null: the communicator's
};

/// A persistent operation.
class persistent_handle {
 public:
  explicit persistent_handle(persistent p);
  event_handle start(const dependencies& deps) const;
  void run(const dependencies& deps) const;

 private:
  std::shared_ptr<persistent> m_operation;
};

/// A compiled composition.
class plan_handle {
 public:
  plan_handle(compiled_plan plan, type element, std::size_t element_size);
  event_handle start(const void* send, void* recv, const dependencies& deps) const;
  void run(const void* send, void* recv, const dependencies& deps) const;
  [[nodiscard]] std::size_t send_size() const;
  [[nodiscard]] std::size_t recv_size() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] type element() const { return m_element; }
  [[nodiscard]] std::size_t element_size() const { return m_element_size; }

 private:
  std::shared_ptr<compiled_plan> m_plan;
  type m_element;
  std::size_t m_element_size;
};

/// Operations that are replayed.
class executable_handle {
 public:
  explicit executable_handle(executable e);
  event_handle replay(const dependencies& deps) const;
  void update(std::function<void()> calls) const;
  [[nodiscard]] bool is_graph() const;

 private:
  std::shared_ptr<executable> m_executable;
};

/// A communicator.
class communicator_handle {
 public:
  explicit communicator_handle(communicator c);
  /// Of those ranks of a process that was started without SYCL; `core` is the one below.
  communicator_handle(const std::shared_ptr<core::process>& owner, const void* members,
                      std::size_t bytes, const queue_handle& queue,
                      std::shared_ptr<core::communicator>& core);

  [[nodiscard]] bool empty() const;
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] const std::vector<member>& members() const;
  [[nodiscard]] bool has_queue() const;
  [[nodiscard]] queue_handle queue() const;
  [[nodiscard]] communicator_handle split(int colour, int key) const;
  [[nodiscard]] communicator_handle dup() const;
  [[nodiscard]] communicator_handle shrink() const;
  [[nodiscard]] std::string explain(kind k, std::size_t bytes, type t, op o) const;
  [[nodiscard]] std::string selected_backend(kind k, std::size_t bytes, type t, op o) const;
  void use_tuning(const std::string& toml) const;
  void wait() const;
  void check() const;
  /// As check(), for what was issued: also after an end in good order, which is no failure of it.
  void check_issued() const;

  /// Reports to the other ranks what is wrong with a call of this one.
  void refuse(const call& c, const error_info& wrong) const;
  /// Ends it on all ranks.
  void fail(const error_info& why) const;
  event_handle submit(const call& c, const dependencies& deps) const;
  /// What the queue's stream was given by others, for operations to depend on: SYCL has not seen
  /// it.
  [[nodiscard]] event_handle mark() const;
  void run(const call& c, const dependencies& deps) const;
  [[nodiscard]] persistent_handle prepare(const call& c, const dependencies& deps) const;
  [[nodiscard]] plan_handle compile(const composition& c, const compile_options& o, type element,
                                    std::size_t element_size) const;

  /// A reduction by a function of the program, which folds elements of lower ranks into those of
  /// higher ones.
  struct reduction {
    kind what;
    const void* send;
    void* recv;
    sucl::counts counts;  ///< of reduce_scatter one for each rank; of others one
    int root;
    type element;
    std::size_t element_size;
    std::function<void(const void* lower, void* upper, std::size_t count)> fold;
  };
  event_handle reduce_by(const reduction& r, const dependencies& deps, bool blocking) const;
  /// The sum of what `fold` makes of the contributions: it writes to `upper` what is in `lower`,
  /// scaled. Of reduce_scatter_block `counts` has the block's.
  event_handle sum_scaled(const reduction& r, const dependencies& deps) const;

  /// On the queue, or where that is null on the communicator's own.
  [[nodiscard]] executable_handle record(const void* sycl_queue, std::function<void()> calls) const;

  [[nodiscard]] void* allocate(std::size_t bytes) const;
  void deallocate(void* memory) const;
  [[nodiscard]] bool register_memory(void* memory, std::size_t bytes) const;
  void deregister_memory(void* memory) const;
  /// Whether both are handles of one communicator.
  [[nodiscard]] bool is_same(const communicator_handle& other) const {
    return m_communicator == other.m_communicator;
  }

  /// Throws unless what is in that memory can be reached: the host reads no memory of a device.
  void check_reach(const void* pointer, const void* sycl_queue) const;

 private:
  friend class group_handle;
  friend class neighborhood_handle;
  friend class runtime_handle;
  std::shared_ptr<communicator> m_communicator;
};

/// Operations that are issued together, of any communicators.
class group_handle {
 public:
  group_handle();
  /// Of messages of one communicator: it is an operation also where it has none.
  explicit group_handle(const communicator_handle& of);
  void add(const call& c);
  void add(const communicator_handle& on, const call& c);
  event_handle submit(const dependencies& deps);
  std::vector<event_handle> submit_each(const dependencies& deps);
  void run(const dependencies& deps);

 private:
  std::shared_ptr<group> m_group;
};

/// The ranks that this rank exchanges blocks with.
class neighborhood_handle {
 public:
  /// A rank, and the tag that tells apart several messages between the same two.
  using neighbors = std::vector<std::pair<int, int>>;

  neighborhood_handle(const communicator_handle& of, const std::vector<int>& sources,
                      const std::vector<int>& destinations);
  static neighborhood_handle grid(const communicator_handle& of, const std::vector<int>& extents,
                                  const std::vector<bool>& periodic);

  [[nodiscard]] neighbors from() const;
  [[nodiscard]] neighbors to() const;
  [[nodiscard]] std::vector<int> coordinates() const;
  /// What its messages are on.
  [[nodiscard]] communicator_handle comm() const;

 private:
  explicit neighborhood_handle(neighborhood n);
  std::shared_ptr<neighborhood> m_neighborhood;
};

/// Keeps the calling thread's device as it is: SYCL's runtime sets its own, which other libraries
/// of the vendor's API in the process find then.
class kept_device {
 public:
  kept_device();
  ~kept_device();
  kept_device(const kept_device&) = delete;
  kept_device& operator=(const kept_device&) = delete;

 private:
  void* m_context = nullptr;
};

/// SuCL in this process, or on the processes of an MPI communicator.
class runtime_handle {
 public:
  static runtime_handle start(std::vector<std::string>& arguments);
  static runtime_handle join(const unique_id& id, int rank, int size);
  static runtime_handle join(const rendezvous_store& store, int rank, int size);
  /// The MPI_Comm there, of 4 or 8 bytes.
  static runtime_handle from_mpi(const void* comm, std::size_t bytes);

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] std::string control_plane() const;
  [[nodiscard]] communicator_handle world(const void* sycl_queue) const;
  /// A rank for each queue.
  [[nodiscard]] std::vector<communicator_handle> worlds(
      const std::vector<std::shared_ptr<queue_handle>>& queues) const;
  [[nodiscard]] communicator_handle adopt(const void* comm, std::size_t bytes,
                                          const void* sycl_queue) const;
  [[nodiscard]] std::vector<communicator_handle> adopt(
      const void* comm, std::size_t bytes,
      const std::vector<std::shared_ptr<queue_handle>>& queues) const;
  void grow(const communicator_handle& members, const unique_id& id, int joiners) const;
  void shut_down() const;
  /// Ends it without waiting for anything, as where an exception ends the program. Others get
  /// errors.
  void abandon();

 private:
  explicit runtime_handle(std::shared_ptr<runtime> r) : m_runtime(std::move(r)) {}
  std::shared_ptr<runtime> m_runtime;
};

}  // namespace sucl::python
