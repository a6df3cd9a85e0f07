// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/self/self_backend.hpp"

#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

struct message {
  int tag;
  const void* from;  // of a send
  void* to;          // of a receive
  std::uint64_t count;
  sucl_type type;
  std::uint64_t element_size;
  sucl_request* owner;
};

}  // namespace

/// An operation whose messages are not all matched yet.
struct sucl_request {
  int open = 0;
  sucl_status status = SUCL_SUCCESS;
  std::string what;  ///< has failed
};

/// Messages to oneself that wait for their match.
struct sucl_backend_comm {
  std::vector<message> sends;
  std::vector<message> receives;
};

namespace sucl::core {
namespace {

void refuse(const message& send, const message& receive, sucl_status status) {
  const auto text = [](const message& m) { return elements_text(m.count, m.type, m.element_size); };
  for (sucl_request* r : {send.owner, receive.owner}) {
    r->status = status;
    r->what = "the message with tag " + std::to_string(send.tag) +
              " from this rank to itself has " + text(send) + ", its receive " + text(receive);
  }
}

void match(const message& m, std::vector<message>& mine, std::vector<message>& others) {
  const auto partner =
      std::find_if(others.begin(), others.end(), [&](const message& o) { return o.tag == m.tag; });
  ++m.owner->open;
  if (partner == others.end()) {
    mine.push_back(m);
    return;
  }
  const message& send = m.from ? m : *partner;
  const message& receive = m.from ? *partner : m;
  if (!same_elements(send.type, send.element_size, receive.type, receive.element_size))
    refuse(send, receive, SUCL_ERROR_MISMATCH);
  else if (send.count != receive.count)
    refuse(send, receive, SUCL_ERROR_INVALID_COUNT);
  else if (send.count > 0)
    std::memcpy(receive.to, send.from, send.count * send.element_size);
  --m.owner->open;
  --partner->owner->open;
  others.erase(partner);
}

// What a send without memory points at, so that a send is never taken for a receive.
const char nothing = 0;

void exchange(sucl_backend_comm& c, const sucl_operation& o, sucl_request* owner) {
  if (o.kind == SUCL_KIND_SEND || o.kind == SUCL_KIND_SENDRECV)
    match({o.tag, o.send ? o.send : &nothing, nullptr, o.count, o.type, o.element_size, owner},
          c.sends, c.receives);
  if (o.kind == SUCL_KIND_RECV || o.kind == SUCL_KIND_SENDRECV)
    match({o.tag, nullptr, o.recv, o.kind == SUCL_KIND_RECV ? o.count : o.recv_count, o.type,
           o.element_size, owner},
          c.receives, c.sends);
}

sucl_status settle(sucl_request* request, std::int32_t* done) {
  *done = request->open == 0;
  if (!*done) return SUCL_SUCCESS;
  const std::unique_ptr<sucl_request> ends(request);
  if (request->status == SUCL_SUCCESS) return SUCL_SUCCESS;
  return services().fail(request->status, 0, request->what.c_str(),
                         "Give both the same count and element type");
}

void copy(const sucl_operation& o) {
  if ((o.flags & SUCL_FLAG_IN_PLACE) || o.kind == SUCL_KIND_EXSCAN || o.kind == SUCL_KIND_BARRIER)
    return;
  std::uint64_t count = o.count, from = 0, to = 0;
  if (o.kind == SUCL_KIND_REDUCE_SCATTER) count = *o.recv_counts;
  if (o.kind == SUCL_KIND_ALLTOALLV) count = *o.recv_counts;
  if (o.send_displs) from = *o.send_displs;
  if (o.recv_displs) to = *o.recv_displs;
  if (count > 0)
    std::memcpy(static_cast<char*>(o.recv) + to * o.element_size,
                static_cast<const char*>(o.send) + from * o.element_size, count * o.element_size);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  *request = nullptr;
  const bool messages = o->kind >= SUCL_KIND_SEND && o->kind <= SUCL_KIND_GROUP;
  if (!messages) {
    copy(*o);
    return SUCL_SUCCESS;
  }
  *request = new sucl_request;
  if (o->kind == SUCL_KIND_GROUP)
    for (std::uint64_t i = 0; i < o->part_count; ++i) exchange(*comm, o->parts[i], *request);
  else
    exchange(*comm, *o, *request);
  return SUCL_SUCCESS;
}

sucl_status query(sucl_state*, const sucl_query* q, sucl_capability* a) {
  a->supported = q->kind <= SUCL_KIND_GROUP && q->memory != SUCL_MEMORY_DEVICE;
  a->flags = 0;
  a->max_count = 0;
  return SUCL_SUCCESS;
}

sucl_backend make_table() {
  sucl_backend t = table_of("self", "copies, for a single process");
  t.query = query;
  t.comm_destroy = [](sucl_backend_comm* c) { delete c; };
  t.post = post;
  t.test = [](sucl_backend_comm*, sucl_request* r, std::int32_t* done) { return settle(r, done); };
  t.abort = [](sucl_backend_comm*) {};
  return t;
}

}  // namespace

const sucl_backend& self_backend() noexcept {
  static const sucl_backend table = make_table();
  return table;
}

backend_comm make_self_comm() { return {&self_backend(), nullptr, new sucl_backend_comm}; }

}  // namespace sucl::core
