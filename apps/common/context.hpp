// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A run of an application: the queue, the ranks, the device's memory, and the clock. What the
/// variants differ in is here and in messages.hpp; the applications are written once.
#pragma once

#include "common/mpi.hpp"
#include "common/program/options.hpp"

#include <sucl/kernels.hpp>
#include <sucl/sucl.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace apps {

using events = std::vector<sycl::event>;

/// What a rank does with its time.
enum class phase { compute, pack, communicate, wait };
inline constexpr std::array<const char*, 4> phase_names{"compute", "pack", "communicate", "wait"};
using phase_times = std::array<double, 4>;

class context;

/// What can access an array.
enum class reachable_by {
  device,  ///< kernels
  shared,  ///< the host too: pages move
  host     ///< kernels and the host, in memory of the host
};

/// Memory of the device for elements of type T: USM, or a buffer where the variant wants one.
/// Zeroed. Ends before its context.
template <class T>
class array {
 public:
  array() = default;
  array(context& c, std::size_t size, reachable_by by = reachable_by::device);
  array(context& c, const std::vector<T>& values) : array(c, values.size()) { put(values); }
  /// Memory of another owner.
  array(context& c, std::shared_ptr<T> memory, std::size_t size);

  std::size_t size() const { return m_size; }
  T* pointer() const { return m_pointer.get(); }           ///< null where it is a buffer
  sycl::buffer<T, 1> buffer() const { return *m_buffer; }  ///< only where it is one

  /// Copies from or to the host; waits.
  void put(const std::vector<T>& values);
  std::vector<T> get() const;

  friend void swap(array& a, array& b) noexcept {
    std::swap(a.m_queue, b.m_queue);
    std::swap(a.m_size, b.m_size);
    std::swap(a.m_pointer, b.m_pointer);
    std::swap(a.m_buffer, b.m_buffer);
  }

 private:
  sycl::queue m_queue;
  std::size_t m_size = 0;
  std::shared_ptr<T> m_pointer;
  std::optional<sycl::buffer<T, 1>> m_buffer;
};

/// What a kernel does with an array.
template <class T, sycl::access_mode Mode>
struct array_use {
  const array<T>* of;
  auto as_buffer() const { return sucl::kernels::buffer_use<T, Mode>{of->buffer()}; }
  auto as_pointer() const {
    if constexpr (Mode == sycl::access_mode::read)
      return static_cast<const T*>(of->pointer());
    else
      return of->pointer();
  }
};
/// The kernel reads it.
template <class T>
array_use<T, sycl::access_mode::read> in(const array<T>& a) {
  return {&a};
}
/// The kernel overwrites all of it.
template <class T>
array_use<T, sycl::access_mode::write> out(const array<T>& a) {
  return {&a};
}
/// The kernel reads and writes, or writes a part.
template <class T>
array_use<T, sycl::access_mode::read_write> inout(const array<T>& a) {
  return {&a};
}

class context {
 public:
  /// Collective over the job. Throws usage_error, on every rank, where one has no such device.
  context(sucl::runtime& runtime, options o);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  const options& wanted() const { return m_options; }
  int rank() const { return m_comm.rank(); }
  int size() const { return m_comm.size(); }
  sycl::queue& queue() { return m_queue; }
  sucl::communicator& world() { return m_comm; }
  bool uses_buffers() const { return m_options.kind == variant::host_accessor; }
  bool uses_mpi() const { return m_options.kind != variant::sucl; }
  /// Whether SuCL's calls return when they are done; the same on every rank.
  bool is_blocking() const { return m_is_blocking; }
  std::string device_name() const;
  const std::string& mpi_name() const { return m_mpi_name; }

  /// Refuses what some rank found wrong ("" is nothing), on every rank. Collective.
  void agree(const std::string& problem);
  /// Refuses what needs more memory than the device has: at least `bytes` for this rank, and as
  /// much as they say for those that share the memory. Collective.
  void require_memory(double bytes);
  /// Makes the kernels ready. Rank 0 first: then the others find its result where the SYCL runtime
  /// keeps what it has compiled. Collective.
  void prepare_kernels();

  /// The largest, or the sum, over the ranks. Collective.
  double max(double mine);
  double sum(double mine);

  /// Sends each rank its block of an array, and receives one from each; with buffers by way of the
  /// host. What is sent is there, and the call waits. Collective.
  template <class T>
  void exchange_all(const array<T>& send, const sucl::counts& send_counts,
                    const sucl::counts& send_displs, const array<T>& recv,
                    const sucl::counts& recv_counts, const sucl::counts& recv_displs);

  /// Launches a kernel after `deps`; with buffers SYCL keeps the order itself.
  template <class Kernel, class... Uses>
  sycl::event launch(const sycl::nd_range<1>& range, const events& deps, const Kernel& kernel,
                     const Uses&... uses) {
    if (uses_buffers())
      return sucl::kernels::launch(m_queue, range, {}, kernel, uses.as_buffer()...);
    // Where one command follows the other anyway no event may say so: see make_queue().
    const events none;
    return sucl::kernels::launch(m_queue, range, m_queue.is_in_order() ? none : deps, kernel,
                                 uses.as_pointer()...);
  }

  /// Runs `work`, which returns an event or events. While phases are timed, it is waited for, and
  /// its time counts for `p`; otherwise nothing is added.
  template <class Work>
  auto timed(phase p, Work&& work) {
    const bool alone = m_times_computing && p == phase::compute;
    if (!m_is_timing && !alone) return work();
    if (alone) m_queue.wait_and_throw();  // what comes before may wait for other ranks
    if (p == phase::communicate) meet();
    const auto began = now();
    auto done = work();
    wait(done);
    add(p, began);
    return done;
  }

  /// While phases are timed all ranks meet before they communicate. For one that has nothing to
  /// exchange where others may have.
  void meet() {
    if (!m_is_timing) return;
    const auto before = now();
    m_comm.blocking().barrier();
    add(phase::wait, before);
  }

  /// Runs `step` for each iteration and returns the seconds of the slowest rank. `step` gets the
  /// number of the iteration. Collective.
  double run(int iterations, const std::function<void(int)>& step);
  /// The same with each phase by itself; returns the average time of a step's phases, those of the
  /// slowest rank.
  phase_times run_timed(int iterations, const std::function<void(int)>& step);
  /// Runs `step` and returns the seconds that this rank's device computes in it, without what it
  /// waits for others.
  double time_computing(const std::function<void()>& step);

  /// A line of progress on standard error, from rank 0, unless it is to be quiet.
  void say(const std::string& text) const;

 private:
  using clock = std::chrono::steady_clock;
  static clock::time_point now() { return clock::now(); }
  void add(phase p, clock::time_point since) {
    m_times[static_cast<std::size_t>(p)] += std::chrono::duration<double>(now() - since).count();
  }
  static void wait(sycl::event& e) { e.wait_and_throw(); }
  static void wait(events& all) {
    for (auto& e : all) e.wait_and_throw();
  }
  void finish();

  options m_options;
  std::string m_mpi_name;
  sycl::queue m_queue;
  sucl::communicator m_comm;
  bool m_is_blocking = false;
  bool m_is_timing = false;
  bool m_times_computing = false;
  phase_times m_times{};
};

template <class T>
array<T>::array(context& c, std::size_t size, reachable_by by) : m_queue(c.queue()), m_size(size) {
  const std::size_t room = size == 0 ? 1 : size;
  if (c.uses_buffers()) {
    m_buffer.emplace(sycl::range<1>(room));
    sycl::host_accessor zero{*m_buffer, sycl::write_only, sycl::no_init};
    for (std::size_t i = 0; i < room; ++i) zero[i] = T{};
    return;
  }
  const auto kind = by == reachable_by::device   ? sycl::usm::alloc::device
                    : by == reachable_by::shared ? sycl::usm::alloc::shared
                                                 : sycl::usm::alloc::host;
  T* memory = sycl::malloc<T>(room, m_queue, kind);
  if (!memory)
    throw std::runtime_error("the device has no memory for " + std::to_string(room * sizeof(T)) +
                             " bytes. Use a smaller problem or more ranks");
  m_pointer = {memory, [q = m_queue](T* p) { sycl::free(p, q); }};
  m_queue.memset(memory, 0, room * sizeof(T)).wait();
}

template <class T>
array<T>::array(context& c, std::shared_ptr<T> memory, std::size_t size)
    : m_queue(c.queue()), m_size(size), m_pointer(std::move(memory)) {}

template <class T>
void array<T>::put(const std::vector<T>& values) {
  if (values.empty()) return;
  if (m_buffer) {
    sycl::host_accessor to{*m_buffer, sycl::write_only};
    std::copy(values.begin(), values.end(), &to[0]);
  } else {
    m_queue.copy(values.data(), m_pointer.get(), values.size()).wait();
  }
}

template <class T>
std::vector<T> array<T>::get() const {
  std::vector<T> values(m_size);
  if (values.empty()) return values;
  if (m_buffer) {
    auto buffer = *m_buffer;
    sycl::host_accessor from{buffer, sycl::read_only};
    std::copy_n(&from[0], m_size, values.begin());
  } else {
    auto queue = m_queue;
    queue.copy(static_cast<const T*>(m_pointer.get()), values.data(), m_size).wait();
  }
  return values;
}

template <class T>
void context::exchange_all(const array<T>& send, const sucl::counts& send_counts,
                           const sucl::counts& send_displs, const array<T>& recv,
                           const sucl::counts& recv_counts, const sucl::counts& recv_displs) {
  const auto exchange = [&](const T* from, T* to) {
    m_comm.blocking().alltoallv(from, send_counts, send_displs, to, recv_counts, recv_displs);
  };
  if (!uses_buffers()) return exchange(send.pointer(), recv.pointer());
  const std::vector<T> out = send.get();
  auto all = recv;  // the same memory
  std::vector<T> in = all.get();
  exchange(out.data(), in.data());
  all.put(in);
}

}  // namespace apps
