// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

namespace sucl::fabric {
namespace {

bool sends(sucl_kind kind) { return kind == SUCL_KIND_SEND || kind == SUCL_KIND_SENDRECV; }
bool receives(sucl_kind kind) { return kind == SUCL_KIND_RECV || kind == SUCL_KIND_SENDRECV; }

std::uint64_t expected_count(const sucl_operation& o) {
  return o.kind == SUCL_KIND_SENDRECV ? o.recv_count : o.count;
}

void check_peer(const schedule& s, const char* what, int peer) {
  if (peer >= 0 && peer < s.size()) return;
  throw problem{SUCL_ERROR_INVALID_RANK,
                std::string(what) + " rank " + std::to_string(peer) +
                    " is not in the communicator of " + std::to_string(s.size()) + " ranks",
                "Ranks count from 0."};
}

// Everything is refused here, before the first part is in flight.
void check_message(const schedule& s, const sucl_operation& o) {
  if (sends(o.kind)) check_peer(s, "destination", o.root);
  if (receives(o.kind)) check_peer(s, "source", o.source);
  if (o.tag < 0 || o.tag > max_user_tag)
    throw problem{
        SUCL_ERROR_INVALID_ARGUMENT,
        "tag " + std::to_string(o.tag) + " is outside 0 to " + std::to_string(max_user_tag),
        "Choose a tag in that range."};
  if (o.element_size == 0) throw problem{SUCL_ERROR_INVALID_TYPE, "elements of 0 bytes", {}};
}

void add(schedule& s, const sucl_operation& o, const void* data) {
  if (receives(o.kind)) s.user(false, o.source, o, o.recv, expected_count(o));
  if (sends(o.kind)) s.user(true, o.root, o, data, o.count);
}

}  // namespace

void plan_message(schedule& s, const sucl_operation& o) {
  check_message(s, o);
  const void* data = o.send;
  if (o.kind == SUCL_KIND_SENDRECV && (o.flags & SUCL_FLAG_IN_PLACE) != 0) {
    std::byte* saved = s.scratch(s.bytes_of(o.count));
    s.copy(saved, static_cast<const std::byte*>(o.recv), s.bytes_of(o.count));
    data = saved;
  }
  add(s, o, data);
}

void plan_group(schedule& s, const sucl_operation& o) {
  for (std::uint64_t i = 0; i < o.part_count; ++i) {
    const sucl_operation& part = o.parts[i];
    if (!sends(part.kind) && !receives(part.kind))
      throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                    "part " + std::to_string(i) + " of the group is neither a send nor a receive",
                    "Put only send, recv and sendrecv into a group."};
    if ((part.flags & SUCL_FLAG_IN_PLACE) != 0)
      throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                    "part " + std::to_string(i) + " of the group is in place",
                    "Give the parts of a group separate memory."};
    check_message(s, part);
  }
  for (std::uint64_t i = 0; i < o.part_count; ++i) add(s, o.parts[i], o.parts[i].send);
}

}  // namespace sucl::fabric
