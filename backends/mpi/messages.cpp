// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

namespace sucl::mpi_module {
namespace {

// One message, described apart from the operation that it is a part of.
struct message {
  const sucl_operation* operation;
  MPI_Datatype type;
};

sucl_status start_receive(call& c, const message& m, std::uint64_t count) {
  const sucl_operation& o = *m.operation;
  MPI_Request* handle = c.request.add_receive({count, o.source, o.tag, m.type, o.recv});
  if (match_first()) {
    c.comm.unmatched.push_back({&c.request, c.request.handles.size() - 1});
    ++c.request.unmatched;
    return SUCL_SUCCESS;
  }
  return c.check(SUCL_MPI_CALL(Irecv)(o.recv, static_cast<count_type>(count), m.type, o.source,
                                      c.comm.user_tag(o.tag), c.comm.messages, handle),
                 "MPI_Irecv");
}

sucl_status start_send(call& c, const message& m, const void* data) {
  const sucl_operation& o = *m.operation;
  return c.check(SUCL_MPI_CALL(Isend)(data, static_cast<count_type>(o.count), m.type, o.root,
                                      c.comm.user_tag(o.tag), c.comm.messages, c.request.add()),
                 "MPI_Isend");
}

sucl_status invalid_peer(const call& c, const char* what, int peer) {
  return fail(c.comm.core, SUCL_ERROR_INVALID_RANK,
              std::string(what) + " rank " + std::to_string(peer) +
                  " is not in the communicator of " + std::to_string(c.comm.size) + " ranks",
              "Ranks count from 0.");
}

bool sends(sucl_kind kind) { return kind == SUCL_KIND_SEND || kind == SUCL_KIND_SENDRECV; }
bool receives(sucl_kind kind) { return kind == SUCL_KIND_RECV || kind == SUCL_KIND_SENDRECV; }

std::uint64_t expected_count(const sucl_operation& o) {
  return o.kind == SUCL_KIND_SENDRECV ? o.recv_count : o.count;
}

// Everything that MPI could refuse is refused here, before the first part is in flight.
sucl_status check_message(const call& c, const sucl_operation& o) {
  if (sends(o.kind) && (o.root < 0 || o.root >= c.comm.size))
    return invalid_peer(c, "destination", o.root);
  if (receives(o.kind) && (o.source < 0 || o.source >= c.comm.size))
    return invalid_peer(c, "source", o.source);
  if (o.tag < 0 || o.tag > c.comm.tag_limit)
    return fail(
        c.comm.core, SUCL_ERROR_INVALID_ARGUMENT,
        "tag " + std::to_string(o.tag) + " is outside 0 to " + std::to_string(c.comm.tag_limit),
        "Choose a tag that this MPI library supports.");
  if (o.element_size == 0)
    return fail(c.comm.core, SUCL_ERROR_INVALID_TYPE, "elements of 0 bytes", nullptr);
  if (!c.fits(o.count) || !c.fits(expected_count(o)))
    return fail(c.comm.core, SUCL_ERROR_INVALID_COUNT,
                "a message has more elements than the " + std::to_string(c.comm.limit) +
                    " that one call can say",
                "Send it in pieces.");
  return SUCL_SUCCESS;
}

// A blocking call that names the own rank could never be answered by this thread.
bool may_block(const call& c, int peer) { return c.blocking && peer != c.comm.rank; }

bool may_block_in_receive(const call& c) {
  return !match_first() && may_block(c, c.operation.source);
}

}  // namespace

sucl_status issue_send(call& c) {
  const sucl_operation& o = c.operation;
  const sucl_status status = check_message(c, o);
  if (status != SUCL_SUCCESS) return status;
  if (!may_block(c, o.root)) return start_send(c, {&o, c.type}, o.send);
  return c.check(SUCL_MPI_CALL(Send)(o.send, c.count(), c.type, o.root, c.comm.user_tag(o.tag),
                                     c.comm.messages),
                 "MPI_Send");
}

sucl_status issue_recv(call& c) {
  const sucl_operation& o = c.operation;
  sucl_status status = check_message(c, o);
  if (status != SUCL_SUCCESS) return status;
  if (!may_block_in_receive(c)) return start_receive(c, {&o, c.type}, o.count);
  const sucl_request::expectation what{o.count, o.source, o.tag, c.type, o.recv};
  MPI_Status received;
  const int code = SUCL_MPI_CALL(Recv)(o.recv, c.count(), c.type, o.source, c.comm.user_tag(o.tag),
                                       c.comm.messages, &received);
  if (code != MPI_SUCCESS)
    note(c.request, code, "MPI_Recv", what);
  else
    check_received(c.request, what, received);
  return SUCL_SUCCESS;
}

sucl_status issue_sendrecv(call& c) {
  const sucl_operation& o = c.operation;
  sucl_status status = check_message(c, o);
  if (status != SUCL_SUCCESS) return status;
  const void* data = o.send;
  if (c.in_place()) {
    const std::uint64_t bytes = o.count * o.element_size;
    data = c.request.reserve_scratch(bytes);
    const int code = copy_block(c.comm, c.request.scratch.get(), o.recv, bytes,
                                o.recv_memory == SUCL_MEMORY_DEVICE);
    if (code != MPI_SUCCESS) return c.check(code, "MPI_Sendrecv");
  }
  const message m{&o, c.type};
  if (!may_block(c, o.root) || !may_block_in_receive(c)) {
    status = start_receive(c, m, o.recv_count);
    return status == SUCL_SUCCESS ? start_send(c, m, data) : status;
  }
  const sucl_request::expectation what{o.recv_count, o.source, o.tag, c.type, o.recv};
  MPI_Status received;
  const int tag = c.comm.user_tag(o.tag);
  const int code = SUCL_MPI_CALL(Sendrecv)(data, c.count(), c.type, o.root, tag, o.recv,
                                           static_cast<count_type>(o.recv_count), c.type, o.source,
                                           tag, c.comm.messages, &received);
  if (code != MPI_SUCCESS)
    note(c.request, code, "MPI_Sendrecv", what);
  else
    check_received(c.request, what, received);
  return SUCL_SUCCESS;
}

// The parts progress together, so no part may block. Receives come first, so that every
// message finds its memory.
sucl_status issue_group(call& c) {
  const sucl_operation* parts = c.operation.parts;
  const auto part_count = c.operation.part_count;
  for (std::uint64_t i = 0; i < part_count; ++i) {
    if (!sends(parts[i].kind) && !receives(parts[i].kind))
      return fail(c.comm.core, SUCL_ERROR_INVALID_ARGUMENT,
                  "part " + std::to_string(i) + " of the group is neither a send nor a receive",
                  "Put only send, recv and sendrecv into a group.");
    if ((parts[i].flags & SUCL_FLAG_IN_PLACE) != 0)
      return fail(c.comm.core, SUCL_ERROR_INVALID_ARGUMENT,
                  "part " + std::to_string(i) + " of the group is in place",
                  "Give the parts of a group separate memory.");
    const sucl_status status = check_message(c, parts[i]);
    if (status != SUCL_SUCCESS) return status;
  }
  for (const bool receiving : {true, false}) {
    for (std::uint64_t i = 0; i < part_count; ++i) {
      const sucl_operation& part = parts[i];
      if (!(receiving ? receives(part.kind) : sends(part.kind))) continue;
      message m{&part, MPI_DATATYPE_NULL};
      sucl_status status =
          c.check(c.comm.blocks.find(part.element_size, &m.type), "MPI_Type_commit");
      if (status == SUCL_SUCCESS)
        status =
            receiving ? start_receive(c, m, expected_count(part)) : start_send(c, m, part.send);
      if (status != SUCL_SUCCESS) return status;
    }
  }
  return SUCL_SUCCESS;
}

}  // namespace sucl::mpi_module
