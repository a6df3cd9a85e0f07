// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The start and the end of SuCL in a process.
#pragma once

#include <sucl/communicator.hpp>
#include <sucl/rendezvous.hpp>

#include <memory>
#include <type_traits>
#include <vector>

namespace sucl {

namespace sycl_layer {
class runtime_state;
}

/// Starts SuCL: reads the configuration, loads the control plane (an MPI library, or SuCL's own
/// over TCP where a launcher without MPI has started the process; none where the process is alone)
/// and the backends. One at a time in a process, besides those of from().
///
/// MPI: initialised here with MPI_THREAD_MULTIPLE, and finalised at the end, if the program has
/// not done so before; a program that did keeps it, and its thread level, with which operations may
/// be executed before their calls return: docs/reference/contracts.md. MPI_Finalize by the program
/// shuts the runtime down first.
///
/// The destructor, or shut_down(), waits for what is in flight, then ends every communicator that
/// is still there. Communicators and runtimes may be destroyed in any order.
///
/// After errc::timeout or errc::peer_lost, or when the destructor runs because of an exception,
/// nothing is waited for and MPI is not finalised, because it would wait for the ranks that are
/// gone or stuck; the process should then end with a status other than 0, so that its launcher ends
/// the job. With SUCL_TIMEOUT set the other ranks get the error, and do the same instead of waiting
/// for this one; without it the exit of the process aborts the job. Where the program initialised
/// MPI it should end by MPI_Abort or std::_Exit in these cases. Memory of operations that were
/// given up may be written to until the process ends.
///
/// What no call, handler or check() has reported by then is printed, and the process ends with a
/// status other than 0. In a child made by fork() every call is errc::shut_down, and its end leaves
/// the parent's job alone.
class [[nodiscard]] SUCL_API runtime {
 public:
  /// Collective over the job. Removes `--sucl-config FILE` from the arguments. Throws
  /// errc::configuration, errc::unavailable.
  runtime(int& argc, char**& argv);
  runtime();  ///< the same without a command line

  /// A runtime whose job is the processes of an MPI communicator, which stays the caller's.
  /// Collective over it: other processes need not know of SuCL, so that parts of a coupled program
  /// can use it by themselves. MPI is initialised, and stays the program's. Any number of these may
  /// exist in a process, also beside the one of all processes; each has its own ranks, settings,
  /// watchdog and threads. Threads may start runtimes of different communicators at the same time.
  /// `NativeComm` is MPI_Comm of the MPI library in use.
  template <class NativeComm>
  static runtime from(const NativeComm& comm) {
    static_assert(std::is_trivially_copyable_v<NativeComm>, "pass an MPI_Comm");
    return from_native(&comm, sizeof(NativeComm));
  }

  /// A job without MPI, whatever has started its processes. Collective over it: returns once all
  /// `size` ranks have come. What differs between them (a rank that comes twice, another size,
  /// another id) is an error on every rank, and so is one that does not come within tcp.timeout,
  /// which is named. Throws errc::timeout, errc::mismatch, errc::peer_lost, errc::unavailable,
  /// errc::invalid_argument, errc::invalid_rank, and as the constructors.
  static runtime join(const unique_id& id, int rank, int size);
  /// The same through a store of the program's own, which is not used after the call.
  static runtime join(const rendezvous_store& store, int rank, int size);
  ~runtime();
  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) noexcept;

  [[nodiscard]] int rank() const;  ///< of this process in the job
  [[nodiscard]] int size() const;  ///< processes of the job

  /// All processes of the job, for host memory only. Collective.
  communicator world();
  /// All processes of the job, each with its queue. Collective. Operations use the queue's context,
  /// device and order; ranks may use different devices and even different SYCL platforms.
  communicator world(const ::sycl::queue& queue);
  /// A rank for each queue: several devices in one process. Collective over all processes of the
  /// job, each with a number of queues of its own, at least one. The ranks are numbered by process
  /// and then by position, and so are the communicators that are returned. Each may be used by a
  /// thread of its own, like that of a process; or one thread issues for all of them, with forms
  /// that return events or in a sucl::group, which never wait, and makes what is collective and
  /// blocks by each_rank(). MPI knows one rank of each process, so that only SuCL's own backends
  /// and those of vendors move data where some process has several: ranks on different nodes are
  /// connected by the latter alone, else errc::unavailable.
  std::vector<communicator> world(const std::vector<::sycl::queue>& queues);

  /// The processes of an MPI communicator, which stays the caller's; all of them have this runtime.
  /// Collective over it. `NativeComm` is MPI_Comm of the MPI library in use.
  template <class NativeComm>
  communicator adopt(const NativeComm& comm, const ::sycl::queue& queue) {
    static_assert(std::is_trivially_copyable_v<NativeComm>, "pass an MPI_Comm");
    return adopt_native(&comm, sizeof(NativeComm), &queue);
  }
  /// The same with a rank for each queue, as world() with several.
  template <class NativeComm>
  std::vector<communicator> adopt(const NativeComm& comm,
                                  const std::vector<::sycl::queue>& queues) {
    static_assert(std::is_trivially_copyable_v<NativeComm>, "pass an MPI_Comm");
    return adopt_native(&comm, sizeof(NativeComm), queues);
  }
  template <class NativeComm>
  communicator adopt(const NativeComm& comm) {
    static_assert(std::is_trivially_copyable_v<NativeComm>, "pass an MPI_Comm");
    return adopt_native(&comm, sizeof(NativeComm), nullptr);
  }

  /// Takes in new processes: makes this the runtime of a larger job, of the ranks of `members`,
  /// which keep their numbers, and of `joiners` more processes, each of which calls join(id, rank,
  /// size) with a rank from members.size() on and a size of members.size() + joiners. `id` is that
  /// of rank 0, from unique_id::make(); other ranks may pass an empty one.
  ///
  /// Every process of the job that lives calls it, with a communicator of this runtime that has all
  /// of them, as from world() or, after a death, from communicator::shrink(). Every communicator of
  /// the runtime ends, after what is in flight; afterwards world() has the new ranks, too. Blocks
  /// until all have come, as join() does, and throws what that throws; then the runtime has ended.
  /// What is wrong with the call itself is thrown on every rank, and nothing has changed:
  /// errc::invalid_count, errc::mismatch where `joiners` differ, errc::unsupported where MPI is the
  /// control plane, and errc::invalid_argument for a malformed id or one that a job has used, and
  /// where `members` has several ranks of a process.
  void grow(communicator members, const unique_id& id, int joiners);

  /// Name and version of the MPI library, "SuCL over TCP", or "none"; and why it was chosen.
  [[nodiscard]] std::string control_plane() const;

  /// Ends the runtime now. Idempotent.
  void shut_down();

 private:
  explicit runtime(std::shared_ptr<sycl_layer::runtime_state> state);
  static runtime from_native(const void* comm, std::size_t bytes);
  communicator adopt_native(const void* comm, std::size_t bytes, const ::sycl::queue* queue);
  std::vector<communicator> adopt_native(const void* comm, std::size_t bytes,
                                         const std::vector<::sycl::queue>& queues);
  std::shared_ptr<sycl_layer::runtime_state> m_state;
};

}  // namespace sucl
