// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "support/jobs/thread_messages.hpp"

#include "core/exchange/core_services.hpp"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

struct sucl_request {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
  bool done = false;
  bool wrong = false;
};

namespace sucl::testing {

struct message_board::shared {
  std::mutex mutex;
  // By sender, receiver and tag.
  std::map<std::tuple<int, int, int>, std::deque<sucl_request*>> sends, receives;
};

}  // namespace sucl::testing

struct sucl_backend_comm {
  std::shared_ptr<sucl::testing::message_board::shared> board;
  int rank;
};

namespace sucl::testing {
namespace {

void move(sucl_request& send, sucl_request& receive) {
  receive.wrong = send.wrong = send.bytes != receive.bytes;
  if (!receive.wrong) std::memcpy(receive.to, send.from, send.bytes);
  receive.done = send.done = true;
}

sucl_status post(sucl_backend_comm* c, const sucl_operation* o, sucl_request** request) {
  auto& b = *c->board;
  const std::lock_guard lock(b.mutex);
  const bool sends = o->kind == SUCL_KIND_SEND;
  auto made = std::make_unique<sucl_request>();
  made->from = o->send;
  made->to = o->recv;
  made->bytes = o->count * o->element_size;
  const std::tuple key{sends ? c->rank : o->source, sends ? o->root : c->rank, o->tag};
  auto& others = sends ? b.receives[key] : b.sends[key];
  if (!others.empty()) {
    sends ? move(*made, *others.front()) : move(*others.front(), *made);
    others.pop_front();
  } else {
    (sends ? b.sends[key] : b.receives[key]).push_back(made.get());
  }
  *request = made.release();
  return SUCL_SUCCESS;
}

sucl_status test(sucl_backend_comm* c, sucl_request* request, std::int32_t* done) {
  const std::lock_guard lock(c->board->mutex);
  *done = request->done;
  if (!request->done) return SUCL_SUCCESS;
  const std::unique_ptr<sucl_request> over(request);
  if (!over->wrong) return SUCL_SUCCESS;
  return core::services().fail(SUCL_ERROR_INVALID_COUNT, 0, "a message has another length",
                               nullptr);
}

sucl_backend backend_table() {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = "threads";
  t.comm_destroy = [](sucl_backend_comm* c) { delete c; };
  t.post = post;
  t.test = test;
  t.abort = [](sucl_backend_comm*) {};
  return t;
}

}  // namespace

message_board::message_board() : m_shared(std::make_shared<shared>()) {}
message_board::~message_board() = default;

core::backend_comm message_board::open(int rank) {
  static const sucl_backend table = backend_table();
  return {&table, nullptr, new sucl_backend_comm{m_shared, rank}};
}

bool message_board::empty() {
  const std::lock_guard lock(m_shared->mutex);
  for (const auto* side : {&m_shared->sends, &m_shared->receives})
    for (const auto& [key, list] : *side)
      if (!list.empty()) return false;
  return true;
}

}  // namespace sucl::testing
