// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_p2p/backend.hpp"

#include "backends/shm_p2p/engine.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/selection.hpp"

#include <memory>

namespace sucl::core {
namespace {

p2p_engine& of(sucl_backend_comm* comm) { return *reinterpret_cast<p2p_engine*>(comm); }
p2p_request* of(sucl_request* request) { return reinterpret_cast<p2p_request*>(request); }

// Gives a request back that is over, and reports how it failed, if it did.
void conclude(p2p_engine& m, p2p_request* d) {
  m.recycle(d);
  if (d->failure) throw error(*d->failure);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    p2p_engine& m = of(comm);
    *request = nullptr;
    p2p_request* d = m.start(*o);
    if (d->open > 0) m.progress();
    if (m.over(*d))
      conclude(m, d);
    else
      *request = reinterpret_cast<sucl_request*>(d);
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] {
    p2p_engine& m = of(comm);
    p2p_request* d = of(request);
    if (d->open > 0 || !d->far.empty()) m.progress();
    *done = m.over(*d);
    if (*done) conclude(m, d);
  });
}

// Both ends of a message cut it alike, so the limit of the transport is one for all messages.
sucl_status query(sucl_state* state, const sucl_query* q, sucl_capability* answer) {
  answer->supported = is_point_to_point(q->kind) && q->memory != SUCL_MEMORY_DEVICE;
  answer->flags = 0;
  answer->max_count = 0;
  if (!state || !answer->supported) return SUCL_SUCCESS;
  const backend_comm& transport = *reinterpret_cast<const backend_comm*>(state);
  return transport.table->query(transport.state, q, answer);
}

}  // namespace

const sucl_backend& message_backend() noexcept {
  static const sucl_backend table = table_of<p2p_engine>(
      message_backend_name, "sends and receives through memory that the ranks of a node share",
      query, post, test);
  return table;
}

backend_comm make_message_comm(const backend_comm& memory, placement where, bool reads,
                               std::string* obstacle) {
  const std::vector<transport> transports_of_caller = where.transports;
  std::unique_ptr<p2p_engine> made;
  try {
    made = std::make_unique<p2p_engine>(memory, std::move(where), reads);
  } catch (...) {
    for (const transport& t : transports_of_caller) t.via.table->comm_destroy(t.via.comm);
    throw;
  }
  if (!made->complete()) {
    *obstacle = "some ranks of a node share no memory";
    return {};
  }
  const auto& transports = made->where().transports;
  const backend_comm* between = transports.empty() ? nullptr : &transports.front().via;
  return {&message_backend(), reinterpret_cast<sucl_state*>(const_cast<backend_comm*>(between)),
          reinterpret_cast<sucl_backend_comm*>(made.release())};
}

bool supports_messages(const backend_comm& c) { return c.table == &message_backend(); }

sucl_request* start_message(const backend_comm& messages, const sucl_operation& o) {
  p2p_engine& m = of(messages.comm);
  p2p_request* d = m.start(o);
  for (int polls = d->far.empty() ? m.spin_limit() : 1; !m.over(*d); --polls) {
    if (polls == 0) return reinterpret_cast<sucl_request*>(d);
    m.progress();
  }
  conclude(m, d);
  return nullptr;
}

void add_message_memory(const backend_comm& messages, const sucl_region& region,
                        std::uint64_t number) {
  of(messages.comm).add(number, region);
}

void remove_message_memory(const backend_comm& messages, const void* base) {
  of(messages.comm).remove(base);
}

std::optional<bool> message_arrived(const backend_comm& messages, int from, int tag) {
  return of(messages.comm).arrived(from, tag);
}

std::string describe_messages(const backend_comm& messages) {
  const p2p_engine& m = of(messages.comm);
  std::string text = "  messages of a node: up to " + std::to_string(fifo_layout::short_bytes) +
                     " bytes beside their envelope, longer ones in pieces of " +
                     std::to_string(fifo_layout::chunk_bytes >> 10) + " KiB\n";
  if (!m.where().transports.empty())
    text += "  messages between nodes: by " + m.where().transports.front().name + "\n";
  return text;
}

}  // namespace sucl::core
