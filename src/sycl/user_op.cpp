// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Reductions by a function of the program: ranks exchange contributions, combine them in the order
// of the ranks, and hand the results round. Large ones are combined in shares, one for each rank
// (an alltoall and an allgather, as in the reduce-scatter of R. Rabenseifner, "Optimization of
// collective reduction operations", 2004); small ones whole, by each rank that needs the result.
#include "base/elements/floating_point_mode.hpp"
#include "base/error.hpp"
#include "base/sizes.hpp"
#include "core/operation/operation.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/implementation.hpp"
#include "sycl/common/recording.hpp"

#include <sucl/user_op.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

namespace sucl {

void detail::check_room(std::size_t needed, std::size_t elements, const char* side) {
  if (elements < needed)
    base::fail(errc::invalid_count,
               std::string("the ") + side + " range has " + std::to_string(elements) +
                   " elements, and " + std::to_string(needed) + " are needed",
               "Pass a range that is long enough");
}

void detail::check_shares(const communicator& comm, const sucl::counts& counts, std::size_t sent,
                          std::size_t received) {
  std::uint64_t all = 0;
  for (const std::size_t n : counts) all = base::sum(all, n);
  check_room(all, sent, "send");
  const auto rank = static_cast<std::size_t>(comm.rank());
  if (rank < counts.size()) check_room(counts[rank], received, "receive");
}

void detail::check_blocks_of_ranks(const communicator& comm, std::size_t block,
                                   std::size_t elements, const char* side) {
  check_room(base::product(block, static_cast<std::size_t>(comm.size())), elements, side);
}

namespace {

#ifdef SYCL_IMPLEMENTATION_ACPP
using sycl_layer::flush;
#endif
using detail::erased_op;
using detail::user_reduction;
using events = std::vector<::sycl::event>;

constexpr std::size_t small_bytes = 16384;  ///< of all contributions together

/// Memory that lasts until the event of its last command.
class scratch {
 public:
  scratch(std::size_t bytes, const ::sycl::queue* device) {
    if (bytes == 0) return;
    if (!device) {
      m_host = std::make_unique<std::byte[]>(bytes);
      m_data = m_host.get();
      return;
    }
    m_queue = *device;
    m_data = static_cast<std::byte*>(::sycl::malloc_device(bytes, *m_queue));
    if (!m_data)
      base::fail(errc::out_of_memory,
                 "there is no memory of the device for " + std::to_string(bytes) +
                     " bytes of contributions",
                 "Reduce less at once, or free memory first");
  }
  ~scratch() {
    if (m_queue && m_data) ::sycl::free(m_data, *m_queue);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  std::byte* data() const { return m_data; }

 private:
  std::optional<::sycl::queue> m_queue;
  std::unique_ptr<std::byte[]> m_host;
  std::byte* m_data = nullptr;
};

bool is_complete(const ::sycl::event& e) {
  return e.get_info<::sycl::info::event::command_execution_status>() ==
         ::sycl::info::event_command_status::complete;
}

struct kept_scratch {
  struct entry {
    ::sycl::event done;
    std::shared_ptr<scratch> memory;
    const void* of;  ///< the members of its communicator
  };
  std::mutex mutex;
  std::vector<entry> all;
  static kept_scratch& of_process() {
    static auto& kept = *new kept_scratch;  // the SYCL runtime may end before this library
    return kept;
  }
};

// Keeps scratch until its event, and lets go of what earlier calls have left.
void keep_until(const ::sycl::event& done, std::shared_ptr<scratch> memory,
                const communicator& of) {
  kept_scratch& kept = kept_scratch::of_process();
  const std::lock_guard lock(kept.mutex);
  std::erase_if(kept.all, [](const auto& e) { return is_complete(e.done); });
  kept.all.push_back({done, std::move(memory), &of.members()});
}

// Runs what calls the function of the program. If that throws, this rank has no result and nothing
// to hand on.
template <class Work>
void run_or_fail(const communicator& comm, const Work& work) {
  const auto fail = [&](const std::string& thrown) {
    error_info why;
    why.code = errc::invalid_argument;
    why.rank = comm.rank();
    why.message = "the function of a user_op has thrown" + thrown;
    why.hint = "It must not throw: let it return a value that says what is wrong";
    comm.fail(why);
  };
  try {
    const sycl_layer::function_scope inside;
    work();
  } catch (const std::exception& thrown) {
    fail(std::string(": ") + thrown.what());
    throw;
  } catch (...) {
    fail("");
    throw;
  }
}

bool host_reads(const void* pointer, const ::sycl::queue& q) {
  if (!pointer || q.get_device().is_cpu()) return true;
  return ::sycl::get_pointer_type(pointer, q.get_context()) != ::sycl::usm::alloc::device;
}

/// One reduction in flight.
class reduction {
 public:
  reduction(const communicator& comm, const erased_op& o, const user_reduction& r, bool blocking)
      : m_comm(comm), m_op(o), m_r(r), m_blocking(blocking) {
    m_rank = static_cast<std::size_t>(comm.rank());
    m_ranks = static_cast<std::size_t>(comm.size());
    if (comm.has_queue()) m_queue = comm.queue();
    check();
    m_on_device = m_queue && !(host_reads(r.send, *m_queue) && host_reads(r.recv, *m_queue));
    if (m_on_device && !o.on_device)
      base::fail(errc::unsupported,
                 "the host cannot read memory of this device, and the op has no kernel",
                 "Give the user_op a kernel too, or reduce memory that the host reads");
  }

  // After an error what was issued before may still write to it.
  void leave_memory() {
    if (m_memory) new std::shared_ptr<scratch>(std::move(m_memory));
  }

  ::sycl::event start(const events& deps) {
    if (m_r.of == kind::reduce_scatter) return in_shares(deps);
    const bool scans = m_r.of == kind::scan || m_r.of == kind::exscan;
    const std::size_t all = base::bytes_of(base::product(m_r.counts[0], m_ranks), m_r.element_size);
    return scans || all <= small_bytes ? whole(deps) : in_shares(deps);
  }

  // What `m_op` makes of this rank's contribution, summed by the library's own op.
  ::sycl::event sum(const events& deps) {
    const std::size_t n = m_r.counts[0];
    const std::size_t in = m_r.of == kind::reduce_scatter_block ? base::product(n, m_ranks) : n;
    const bool fits = m_r.of == kind::allreduce;  // the results overwrite it
    const auto memory = take(fits ? 0 : in);
    void* const scaled = fits ? m_r.recv : memory->data();
    auto last = transform(m_r.send, scaled, in, deps);
    auto r = request(m_r.of, n);
    r.record.type = static_cast<sucl_type>(m_r.element);
    r.record.op = static_cast<sucl_op>(op::sum);
    r.recv.pointer = m_r.recv;
    if (fits)
      r.record.flags |= SUCL_FLAG_IN_PLACE;
    else
      r.send.pointer = scaled;
    last = issue(r, {last});
    return keep(last, memory);
  }

 private:
  // Throws what is wrong with the call before anything is issued.
  void check() {
    const int rank = static_cast<int>(m_rank), ranks = static_cast<int>(m_ranks);
    std::vector<std::uint64_t> counts(m_r.counts.begin(), m_r.counts.end());
    sucl_operation o{};
    o.kind = SUCL_KIND_GATHER;  // which has a root, blocks, and no op
    o.element_size = m_r.element_size;
    o.root = m_r.root;
    try {
      if (m_r.of == kind::reduce_scatter && counts.size() != m_ranks)
        base::fail(errc::invalid_count,
                   "counts has " + std::to_string(counts.size()) +
                       " entries, but the communicator has " + std::to_string(m_ranks) + " ranks",
                   "Pass one entry a rank");
      for (const std::uint64_t n : counts) o.count = std::max(o.count, n);
      core::normalise(o, rank, ranks);
      o.kind = static_cast<sucl_kind>(m_r.of);
      o.recv_counts = counts.data();
      o.send = m_r.send;
      o.recv = m_r.recv;
      if (m_r.send == m_r.recv) {
        o.flags = SUCL_FLAG_IN_PLACE;
        o.send = nullptr;
      }
      core::check_memory(o, rank, ranks);
    } catch (const error& e) {
      error_info info = e.info();
      info.operation = name(m_r.of);
      info.rank = rank;
      o.kind = static_cast<sucl_kind>(m_r.of);
      m_comm.refuse(o, info);
      throw error(std::move(info));
    }
  }

  // Every rank that needs the result gets all contributions.
  ::sycl::event whole(const events& deps) {
    const std::size_t n = m_r.counts[0];
    const bool rooted = m_r.of == kind::reduce;
    const bool takes = !rooted || m_comm.rank() == m_r.root;
    const auto memory = take(takes ? base::product(n, m_ranks) : 0);
    auto gather = request(rooted ? kind::gather : kind::allgather, n);
    gather.send.pointer = const_cast<void*>(m_r.send);
    gather.recv.pointer = memory->data();
    auto last = issue(gather, deps);
    std::size_t used = m_ranks;  // contributions that are combined
    if (m_r.of == kind::scan) used = m_rank + 1;
    if (m_r.of == kind::exscan) used = m_rank;
    if (takes && used > 0) {
      last = combine(memory->data(), n, used, last);
      last = copy(m_r.recv, memory->data() + (used - 1) * bytes(n), bytes(n), last);
    }
    return keep(last, memory);
  }

  // Each rank combines its share, and hands it to those that need it.
  ::sycl::event in_shares(const events& deps) {
    const bool scatters = m_r.of == kind::reduce_scatter;
    const counts shares = scatters ? m_r.counts : equal_shares(m_r.counts[0]);
    const counts starts = sums_before(shares);
    const std::size_t mine = shares[m_rank];
    const auto memory = take(base::product(mine, m_ranks));
    const counts my_counts(m_ranks, mine), my_starts = sums_before(my_counts);
    auto scatter = request(kind::alltoallv, 0);
    scatter.send_counts = &shares;
    scatter.send_displs = &starts;
    scatter.recv_counts = &my_counts;
    scatter.recv_displs = &my_starts;
    scatter.send.pointer = const_cast<void*>(m_r.send);
    scatter.recv.pointer = memory->data();
    auto last = combine(memory->data(), mine, m_ranks, issue(scatter, deps));
    std::byte* const result = memory->data() + (m_ranks - 1) * bytes(mine);
    if (scatters) {
      last = copy(m_r.recv, result, bytes(mine), last);
    } else {
      auto gather = request(m_r.of == kind::reduce ? kind::gatherv : kind::allgatherv, mine);
      gather.record.root = m_r.root;
      gather.recv_counts = &shares;
      gather.recv_displs = &starts;
      gather.send.pointer = result;
      gather.recv.pointer = m_r.recv;
      last = issue(gather, {last});
    }
    return keep(last, memory);
  }

  // Until the last command on it is done, or, where a graph is recorded, as long as the graph.
  ::sycl::event keep(const ::sycl::event& last, const std::shared_ptr<scratch>& memory) {
#ifndef SYCL_IMPLEMENTATION_ACPP
    if (m_queue && sycl_layer::is_recording(*m_queue, {}))
      return m_queue->submit([&](::sycl::handler& h) {
        h.depends_on(last);
        h.host_task([memory] {});
      });
#endif
    keep_until(last, memory, m_comm);
    return last;
  }

  std::size_t bytes(std::size_t elements) const { return elements * m_r.element_size; }

  std::shared_ptr<scratch> take(std::size_t elements) {
    m_memory = std::make_shared<scratch>(base::bytes_of(elements, m_r.element_size),
                                         m_on_device ? &*m_queue : nullptr);
    return m_memory;
  }

  counts equal_shares(std::size_t n) const {
    counts shares(m_ranks, n / m_ranks);
    for (std::size_t r = 0; r < n % m_ranks; ++r) ++shares[r];
    return shares;
  }

  static counts sums_before(const counts& of) {
    counts sums(of.size());
    std::exclusive_scan(of.begin(), of.end(), sums.begin(), std::size_t{0});
    return sums;
  }

  // Elements are moved, so their type does not matter.
  detail::request request(kind k, std::size_t count) const {
    auto r = detail::make_request<std::byte>(k, count, op::none, m_r.root);
    r.record.element_size = m_r.element_size;
    return r;
  }

  ::sycl::event issue(detail::request& r, const events& deps) {
    if (!m_blocking) return m_comm.submit(r, deps);
    m_comm.blocking().submit(r, deps);
    return {};
  }

  // Contribution r becomes that of ranks 0 to r.
  ::sycl::event combine(std::byte* all, std::size_t n, std::size_t contributions,
                        const ::sycl::event& after) {
    if (n == 0 || contributions < 2) return after;
    if (m_on_device) {
      ::sycl::event last = after;
      for (std::size_t r = 1; r < contributions; ++r)
        last = m_op.on_device(*m_queue, all + (r - 1) * bytes(n), all + r * bytes(n), n, {last});
      if (m_blocking) sycl_layer::await_event(last);
      return last;
    }
    const auto fold_all = [fold = m_op.on_host, all, n, contributions, step = bytes(n)] {
      const base::default_floating_point_mode mode;
      for (std::size_t r = 1; r < contributions; ++r) fold(all + (r - 1) * step, all + r * step, n);
    };
    return on_host({after}, [fold_all, comm = m_comm] { run_or_fail(comm, fold_all); });
  }

  ::sycl::event transform(const void* from, void* to, std::size_t n, const events& deps) {
    if (m_on_device) return m_op.on_device(*m_queue, from, to, n, deps);
    return on_host(deps, [f = m_op.on_host, from, to, n] {
      const base::default_floating_point_mode mode;
      f(from, to, n);
    });
  }

  ::sycl::event copy(void* to, const void* from, std::size_t n, const ::sycl::event& after) {
    if (n == 0) return after;
    if (m_on_device) {
      auto done = m_queue->memcpy(to, from, n, after);
      if (m_blocking) sycl_layer::await_event(done);
      return done;
    }
    return on_host({after}, [to, from, n] { std::memcpy(to, from, n); });
  }

  // Without a queue, and on GPUs of AdaptiveCpp, where a command of the host runs when it is
  // enqueued, what comes before is awaited here.
  template <class Work>
  ::sycl::event on_host(const events& after, Work work) {
#ifdef SYCL_IMPLEMENTATION_ACPP
    const bool has_commands = m_queue && m_queue->get_device().is_cpu();
#else
    const bool has_commands = m_queue.has_value();
#endif
    if (m_blocking || !has_commands) {
      for (const auto& e : after) sycl_layer::await_event(e);
      m_comm.check();
      work();
      return {};
    }
    auto done = m_queue->submit([&](::sycl::handler& h) {
      h.depends_on(after);
#ifdef SYCL_IMPLEMENTATION_ACPP
      h.AdaptiveCpp_enqueue_custom_operation(
          [work = std::move(work)](::sycl::interop_handle&) { work(); });
#else
      h.host_task(std::move(work));
#endif
    });
#ifdef SYCL_IMPLEMENTATION_ACPP
    flush();
#endif
    return done;
  }

  communicator m_comm;
  const erased_op& m_op;
  const user_reduction& m_r;
  bool m_blocking;
  bool m_on_device = false;
  std::optional<::sycl::queue> m_queue;
  std::size_t m_rank = 0, m_ranks = 1;
  std::shared_ptr<scratch> m_memory;
};

}  // namespace

namespace {
thread_local int functions = 0;  // of the program that this thread is inside of
}

sycl_layer::function_scope::function_scope() noexcept { ++functions; }
sycl_layer::function_scope::~function_scope() { --functions; }

void sycl_layer::throw_if_in_function() {
  if (functions > 0)
    base::fail(errc::invalid_argument,
               "SuCL was called inside the function of a reduction, which would wait for itself",
               "Combine elements only; communicate before or after the reduction");
}

// Other ranks may call those of other communicators after this.
void sycl_layer::await_user_ops(const communicator& of) {
  kept_scratch& kept = kept_scratch::of_process();
  std::vector<kept_scratch::entry> all;
  {
    const std::lock_guard lock(kept.mutex);
    std::copy_if(kept.all.begin(), kept.all.end(), std::back_inserter(all),
                 [&](const auto& e) { return e.of == &of.members(); });
  }
  for (auto& e : all) e.done.wait();
}

::sycl::event detail::reduce_by(const communicator& comm, const erased_op& o,
                                const user_reduction& r, const std::vector<::sycl::event>& deps,
                                bool blocking) {
  sycl_layer::throw_if_in_function();
  if (blocking)
    for (const auto& e : deps) sycl_layer::await_event(e);
  reduction all(comm, o, r, blocking);
  try {
    return all.start(deps);
  } catch (...) {
    all.leave_memory();
    throw;
  }
}

::sycl::event detail::sum_scaled(const communicator& comm, const erased_op& scale,
                                 const user_reduction& r, const std::vector<::sycl::event>& deps) {
  sycl_layer::throw_if_in_function();
  reduction all(comm, scale, r, false);
  try {
    return all.sum(deps);
  } catch (...) {
    all.leave_memory();
    throw;
  }
}

}  // namespace sucl
