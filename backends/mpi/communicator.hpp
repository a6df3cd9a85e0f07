// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// State of the MPI backend: process, communicator, request, and the operation being posted.
#pragma once

#include "native.hpp"
#include "ops.hpp"
#include "types.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

/// Process-wide state, read-only after open.
struct sucl_state {
  const sucl_core* core;
  std::vector<std::string_view> direct;  ///< platforms whose memory MPI takes; "*": any
  std::uint64_t limit;  ///< most elements one MPI call may get; native_limit at most
  bool limited;         ///< whether `limit` can be met: 32-bit counts, or lowered by a setting
};

/// One operation in flight. Pooled by its communicator, so that its arrays keep their storage.
struct sucl_request {
  /// What a receive has to bring. Collectives and sends expect nothing.
  struct expectation {
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};
    std::uint64_t count = nothing;
    std::int32_t source = 0;
    std::int32_t tag = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    void* recv = nullptr;  ///< set while the receive waits for its message (see match_receives)
  };

  /// The first error of a part; it is reported once all parts are done.
  struct failure {
    sucl_status status = SUCL_SUCCESS;
    std::int64_t native_code = 0;
    std::string message;
    const char* hint = nullptr;
  };

  std::vector<MPI_Request> handles;
  std::vector<expectation> expected;  ///< one for each handle
  int done = 0;                       ///< of the handles
  int unmatched = 0;                  ///< receives that wait for their message
  std::vector<int> indices;           ///< for MPI_Testsome
  std::vector<MPI_Status> statuses;
  std::vector<sucl::mpi_module::count_type> counts[2];  ///< of what is sent and received
  std::vector<sucl::mpi_module::displ_type> displs[2];
  std::unique_ptr<std::byte[]> scratch;
  std::size_t scratch_bytes = 0;
  std::vector<std::unique_ptr<std::byte[]>> discarded;  ///< messages of a wrong length
  failure error;
  /// What is left to do when all handles are done, with a copy of the operation; or null.
  int (*finish)(sucl_backend_comm&, sucl_request&) = nullptr;
  sucl_operation operation{};
  /// What makes the NaNs of the result one, of a reduction in memory that the host reaches.
  void (*unify_nans)(void* results, std::uint64_t count) = nullptr;
  std::uint64_t results = 0;  ///< elements in `recv` of `operation`

  /// Room for one more handle; valid until the next call.
  MPI_Request* add();
  MPI_Request* add_receive(const expectation& what);
  std::byte* reserve_scratch(std::uint64_t bytes);
};

/// A receive that waits for its message.
struct unmatched_receive {
  sucl_request* request;
  std::size_t part;
};

namespace sucl::mpi_module {

/// Backends on one communicator of MPI: so many have parts of its tags, each one for the user's
/// messages and one for those that collectives are made of.
inline constexpr unsigned max_users = 4;
inline constexpr int tag_parts = 2 * max_users;

}  // namespace sucl::mpi_module

struct sucl_backend_comm {
  const sucl_core* core = nullptr;
  std::uint64_t limit = 0;
  bool limited = false;
  bool broken = false;  ///< after abort, or when parts of a failed operation may still be in flight
  int rank = 0;
  int size = 0;
  int tag_limit = 0;
  sucl::mpi_module::native_comm* shared = nullptr;
  unsigned part = 0;                    ///< of the shared one's tags
  MPI_Comm messages = MPI_COMM_NULL;    ///< the shared one, for point-to-point
  MPI_Comm collective = MPI_COMM_NULL;  ///< the same, or one of its own if another has part 0

  /// How a tag of the user's, or of messages that collectives are made of, is known to MPI.
  int user_tag(std::int32_t tag) const {
    return tag * sucl::mpi_module::tag_parts + static_cast<int>(part);
  }
  int own_tag(int tag) const {
    return tag * sucl::mpi_module::tag_parts + static_cast<int>(part + sucl::mpi_module::max_users);
  }
  sucl::mpi_module::block_types blocks;
  sucl::mpi_module::own_ops ops;
  std::vector<std::unique_ptr<sucl_request>> requests;  ///< all there are
  std::vector<sucl_request*> idle;                      ///< those not in flight
  std::vector<unmatched_receive> unmatched;             ///< in the order they were posted
};

namespace sucl::mpi_module {

/// One operation on its way into MPI.
struct call {
  sucl_backend_comm& comm;
  const sucl_operation& operation;
  sucl_request& request;
  bool blocking;
  MPI_Datatype type;
  MPI_Op op;

  bool in_place() const { return (operation.flags & SUCL_FLAG_IN_PLACE) != 0; }
  bool at_root() const { return comm.rank == operation.root; }
  /// The input, where every rank may say MPI_IN_PLACE.
  const void* input() const { return in_place() ? MPI_IN_PLACE : operation.send; }
  /// The input in recv, `elements` from its start.
  std::byte* received(std::uint64_t elements = 0) const {
    return static_cast<std::byte*>(operation.recv) + elements * operation.element_size;
  }
  /// Whether one MPI call can take that many elements.
  bool fits(std::uint64_t elements) const { return elements <= comm.limit; }
  count_type count() const { return static_cast<count_type>(operation.count); }

  sucl_status check(int code, const char* function) const {
    return code == MPI_SUCCESS ? SUCL_SUCCESS : fail_native(comm.core, code, function);
  }
};

/// Issues the blocking function or its non-blocking twin, with the same arguments.
template <class Blocking, class Starting, class... Args>
sucl_status issue(call& c, const char* function, Blocking blocking, Starting starting,
                  Args... args) {
  return c.check(c.blocking ? blocking(args...) : starting(args..., c.request.add()), function);
}
#define SUCL_MPI_ISSUE(call, name, starting_name, ...)                                             \
  ::sucl::mpi_module::issue(call, "MPI_" #name, SUCL_MPI_CALL(name), SUCL_MPI_CALL(starting_name), \
                            __VA_ARGS__)

using issuer = sucl_status (*)(call&);

// Open MPI writes past the end of a receive whose message is longer and sent by rendezvous, before
// it reports the truncation; Intel MPI sometimes reports success, with more ranks than processors.
// With them a user's receive is given to MPI only when its message is there and has the right
// length; a message of another length goes into memory of our own.
inline bool match_first() {
  return this_library() == library::openmpi || this_library() == library::impi;
}

// collectives.cpp, one function a kind
sucl_status issue_barrier(call& c);
sucl_status issue_broadcast(call& c);
sucl_status issue_reduce(call& c);
sucl_status issue_allreduce(call& c);
sucl_status issue_reduce_scatter(call& c);
sucl_status issue_reduce_scatter_block(call& c);
sucl_status issue_allgather(call& c);
sucl_status issue_allgatherv(call& c);
sucl_status issue_alltoall(call& c);
sucl_status issue_alltoallv(call& c);
sucl_status issue_gather(call& c);
sucl_status issue_gatherv(call& c);
sucl_status issue_scatter(call& c);
sucl_status issue_scatterv(call& c);
sucl_status issue_scan(call& c);
sucl_status issue_exscan(call& c);

// messages.cpp
sucl_status issue_send(call& c);
sucl_status issue_recv(call& c);
sucl_status issue_sendrecv(call& c);
sucl_status issue_group(call& c);

/// Tags of the messages on the collective communicator.
inline constexpr int copy_tag = 0;
inline constexpr int exchange_tag = 1;

/// Where the blocks of an exchange lie: block of rank r is counts[r] elements at displs[r], or
/// `uniform` elements at r * stride where there are no arrays.
struct layout {
  std::byte* base = nullptr;
  const std::uint64_t* counts = nullptr;
  const std::uint64_t* displs = nullptr;
  std::uint64_t uniform = 0;
  std::uint64_t stride = 0;
  int only = -1;  ///< if not -1, the only rank that has a block
  sucl_memory memory = SUCL_MEMORY_SYSTEM;

  std::uint64_t count(int r) const {
    if (only >= 0 && r != only) return 0;
    return counts ? counts[r] : uniform;
  }
  std::uint64_t at(int r) const {
    return displs ? displs[r] : static_cast<std::uint64_t>(r) * stride;
  }
};

// exchange.cpp: collectives made of messages, where counts or displacements do not fit

/// Sends block r of `from` to each rank r and receives block r of `to` from it. `to` may be the
/// memory of `from` if `in_place`.
sucl_status exchange(call& c, const layout& from, const layout& to, bool in_place);

/// A reduce-scatter as one reduction for each rank.
sucl_status reduce_each(call& c, const layout& blocks);

/// An allgatherv whose counts fit and whose displacements on this rank do not: MPI gathers it
/// densely, and it is spread when it is there.
sucl_status gather_densely(call& c);

/// Copies within this rank, by MPI where the host cannot; the ranges may overlap on the host.
int copy_block(sucl_backend_comm& comm, void* to, const void* from, std::uint64_t bytes,
               bool through_mpi);

// request.cpp

/// Compares what came with what was expected and notes an error.
bool check_received(sucl_request& request, const sucl_request::expectation& what,
                    const MPI_Status& status);  // false if they differ

/// Notes the error of an MPI call on one part, unless there is one already.
void note(sucl_request& request, int code, const char* function,
          const sucl_request::expectation& what);

/// Where match_first(): gives MPI those receives whose message is there.
void match_receives(sucl_backend_comm& comm);

/// Gives MPI all receives that still wait for their message, before a call that blocks: no thread
/// could match them meanwhile, and their senders may have to end before the others join the call.
void post_receives(sucl_backend_comm& comm);

/// Tests all handles; true once none is left. Errors are noted, not reported.
bool progress(sucl_backend_comm& comm, sucl_request& request);

/// Finishes what is left, reports the noted error and gives the request back to the pool.
sucl_status complete(sucl_backend_comm& comm, sucl_request& request);

/// A request from the pool, empty.
sucl_request& acquire(sucl_backend_comm& comm);

}  // namespace sucl::mpi_module
