// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backend "fabric": every kind of collective and point-to-point operation over libfabric.
#include "communicator.hpp"
#include "net/kept_signals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

namespace sucl::fabric {
namespace {

struct kind_row {
  void (*plan)(schedule&, const sucl_operation&);
  bool reduces;
  bool rooted;
};

constexpr kind_row kinds[] = {
    {plan_barrier, false, false},       {plan_broadcast, false, true},
    {plan_reduce, true, true},          {plan_allreduce, true, false},
    {plan_reduce_scatter, true, false}, {plan_reduce_scatter, true, false},
    {plan_allgather, false, false},     {plan_allgather, false, false},
    {plan_alltoall, false, false},      {plan_alltoall, false, false},
    {plan_gather, false, true},         {plan_gather, false, true},
    {plan_scatter, false, true},        {plan_scatter, false, true},
    {plan_scan, true, false},           {plan_scan, true, false},
    {plan_message, false, false},       {plan_message, false, false},
    {plan_message, false, false},       {plan_group, false, false},
};
constexpr sucl_kind kind_count = static_cast<sucl_kind>(std::size(kinds));
static_assert(kind_count == SUCL_KIND_GROUP + 1);

// What libfabric and its provider are, once it is known. One process, one libfabric.
std::string& description() {
  static std::string text = "messages and collectives between nodes over libfabric";
  return text;
}

sucl_backend& table();

void describe(const sucl_state& state) {
  static std::mutex lock;
  const std::lock_guard hold(lock);
  const fi_info& info = *state.provider;
  description() = "libfabric " + state.from->version_text() + ", provider " +
                  info.fabric_attr->prov_name + " at " +
                  (info.domain_attr->name ? info.domain_attr->name : "a domain without a name");
  table().description = description().c_str();
}

void check_limits(const fi_info& info) {
  const std::uint64_t format = info.ep_attr->mem_tag_format;
  if (format != 0 && std::bit_width(format) < 48)
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  std::string("the provider ") + info.fabric_attr->prov_name + " has tags of " +
                      std::to_string(std::bit_width(format)) + " bits, and 48 are needed",
                  "Set fabric.provider (SUCL_FABRIC_PROVIDER) to another one."};
}

sucl_status open(const sucl_core* core, const sucl_setting* list, std::uint64_t count,
                 sucl_state** state) {
  *state = nullptr;
  return guarded(core, [&] {
    const settings wanted = read_settings(list, count);
    auto made = std::make_unique<sucl_state>();
    made->core = core;
    made->from = &load_library(wanted.library);
    made->provider = choose_provider(*made->from, wanted);
    check_limits(*made->provider);
    describe(*made);
    *state = made.release();
    return SUCL_SUCCESS;
  });
}

void close(sucl_state* state) { delete state; }

sucl_status query(sucl_state* state, const sucl_query* query, sucl_capability* answer) {
  answer->supported = 0;
  answer->flags = 0;
  answer->max_count = 0;
  if (query->kind < 0 || query->kind >= kind_count || query->memory == SUCL_MEMORY_DEVICE)
    return SUCL_SUCCESS;
  if (kinds[query->kind].reduces && fold_of(query->op, query->type) == nullptr) return SUCL_SUCCESS;
  answer->supported = 1;
  // A collective may put all its ranks' elements into one message, never more than are there.
  const std::uint64_t most = state->provider->ep_attr->max_msg_size;
  if (most < std::uint64_t{1} << 48 && query->element_size > 0)
    answer->max_count = std::max<std::uint64_t>(1, most / query->element_size);
  return SUCL_SUCCESS;
}

// What each rank sends the others about itself.
struct endpoint_info {
  std::int32_t status;
  std::uint32_t address_bytes;
  char provider[64];
  union {
    std::byte address[384];
    char failure[384];
  };
};

endpoint_info open_and_describe(sucl_state& state, problem& mine) {
  endpoint_info c{};
  try {
    endpoint& e = state.open_endpoint();
    const std::lock_guard hold(e.lock);
    if (e.address().size() > sizeof c.address)
      throw problem{SUCL_ERROR_UNAVAILABLE, "the address of the endpoint is too long",
                    "Set fabric.provider (SUCL_FABRIC_PROVIDER) to another one."};
    c.address_bytes = static_cast<std::uint32_t>(e.address().size());
    std::memcpy(c.address, e.address().data(), e.address().size());
  } catch (const problem& p) {
    mine = p;
    c.status = p.status;
    p.message.copy(c.failure, sizeof c.failure - 1);
  }
  std::string(state.provider->fabric_attr->prov_name).copy(c.provider, sizeof c.provider - 1);
  return c;
}

void check_endpoints(const std::vector<endpoint_info>& endpoints, const problem& mine) {
  for (std::size_t r = 0; r < endpoints.size(); ++r) {
    const endpoint_info& c = endpoints[r];
    if (c.status != SUCL_SUCCESS)
      throw problem{c.status, "rank " + std::to_string(r) + ": " + c.failure,
                    mine.hint.empty() ? "See the message of that rank." : mine.hint};
    if (std::strcmp(c.provider, endpoints[0].provider) != 0)
      throw problem{SUCL_ERROR_UNAVAILABLE,
                    std::string("rank 0 has the provider ") + endpoints[0].provider + ", rank " +
                        std::to_string(r) + " has " + c.provider,
                    "Set fabric.provider (SUCL_FABRIC_PROVIDER) to one that all ranks have; "
                    "`sucl info` says what a machine has."};
  }
}

void gather(const sucl_core* core, sucl_oob* oob, const void* mine, void* all,
            std::uint64_t bytes) {
  if (const sucl_status status = core->oob_allgather(oob, mine, all, bytes))
    throw status;  // its details are the core's
}

void exchange_endpoints(sucl_backend_comm& c, const sucl_comm_info& info) {
  const sucl_core* core = c.state->core;
  const auto ranks = static_cast<std::size_t>(c.size);
  problem mine;
  const endpoint_info own = open_and_describe(*c.state, mine);
  std::vector<endpoint_info> endpoints(ranks);
  gather(core, info.oob, &own, endpoints.data(), sizeof own);
  check_endpoints(endpoints, mine);
  const auto context = c.state->contexts.agree([&](std::uint64_t number) {
    std::vector<std::uint64_t> all(ranks);
    gather(core, info.oob, &number, all.data(), sizeof number);
    return all;
  });
  if (!context)
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  "some rank has " + std::to_string(contexts::count) +
                      " communicators over libfabric already",
                  "End those that are not used any more."};
  c.context = *context;
  c.endpoint = c.state->endpoint.get();
  const std::lock_guard hold(c.endpoint->lock);
  for (const endpoint_info& one : endpoints)
    c.peers.push_back(c.endpoint->peer({one.address, one.address + one.address_bytes}));
}

sucl_status comm_create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** comm) {
  *comm = nullptr;
  return guarded(state->core, [&]() -> sucl_status {
    auto made = std::make_unique<sucl_backend_comm>();
    made->state = state;
    made->rank = info->rank;
    made->size = info->size;
    try {
      exchange_endpoints(*made, *info);
    } catch (const sucl_status status) {
      return status;
    }
    *comm = made.release();
    return SUCL_SUCCESS;
  });
}

void comm_destroy(sucl_backend_comm* comm) {
  if (comm->is_in_use) return;  // what it has in flight may still end in it
  // What was given up may still come: no other may have its context.
  if (!comm->broken) comm->state->contexts.give_back(comm->context);
  delete comm;
}

void check_usable(const sucl_backend_comm& comm) {
  if (comm.broken)
    throw problem{SUCL_ERROR_SHUT_DOWN, "the communicator was given up after an earlier error",
                  "Create a new one."};
}

constexpr std::uint64_t long_transfer = std::uint64_t{64} << 10;
constexpr std::chrono::nanoseconds per_byte{2};
constexpr std::chrono::microseconds first_poll{20};

// How the request of an operation is found. Throws problem for what cannot be executed.
void write_schedule(sucl_request& r, const sucl_operation& o) {
  if (o.kind < 0 || o.kind >= kind_count)
    throw problem{SUCL_ERROR_UNSUPPORTED,
                  "the backend fabric cannot execute kind " + std::to_string(o.kind),
                  {}};
  const kind_row& row = kinds[o.kind];
  r.collective = o.kind < SUCL_KIND_SEND;
  r.element_size = std::max<std::uint64_t>(1, o.element_size);
  r.pairwise =
      o.kind == SUCL_KIND_ALLTOALLV || o.kind == SUCL_KIND_GATHERV || o.kind == SUCL_KIND_SCATTERV;
  if (r.collective) r.serial = r.comm->collectives++;
  if (row.reduces) r.fold = fold_of(o.op, o.type);
  if (row.reduces && !r.fold)
    throw problem{SUCL_ERROR_UNSUPPORTED,
                  "the backend fabric has no op " + std::to_string(o.op) + " for type " +
                      std::to_string(o.type),
                  {}};
  if (row.rooted && (o.root < 0 || o.root >= r.comm->size))
    throw problem{SUCL_ERROR_INVALID_RANK,
                  "root " + std::to_string(o.root) + " is not in the communicator of " +
                      std::to_string(r.comm->size) + " ranks",
                  "Ranks count from 0."};
  schedule s(r, o);
  row.plan(s, o);
  r.planned = r.transfers.size();
  std::uint64_t bytes = 0;
  for (const transfer& t : r.transfers) bytes += t.bytes;
  r.is_long = bytes > long_transfer;
  r.expected = first_poll + per_byte * static_cast<std::int64_t>(bytes);
}

// A thread that waits gives up its processor between tests, which a transfer of many system calls
// pays at each of them. So it polls for as long as the bytes take that this rank moves, at a
// moderate rate, before it says that the operation is not done.
using clock_type = std::chrono::steady_clock;
constexpr std::chrono::microseconds longest_test{100};

// The lock is free between polls, for other threads.
bool is_over(sucl_backend_comm& comm, sucl_request& r, std::chrono::nanoseconds time) {
  const auto until = clock_type::now() + time;
  do {
    const std::lock_guard hold(comm.endpoint->lock);
    if (!r.over) {
      check_usable(comm);
      comm.endpoint->progress();
    }
    if (r.over) return true;
  } while (clock_type::now() < until);
  return false;
}

sucl_status end_of(sucl_backend_comm& comm, sucl_request& r) {
  const std::lock_guard hold(comm.endpoint->lock);
  return conclude(r);
}

// What it has begun, and whether it is over already.
std::pair<sucl_request*, bool> start(sucl_backend_comm& comm, const sucl_operation& operation) {
  const std::lock_guard hold(comm.endpoint->lock);
  check_usable(comm);
  sucl_request& r = acquire(comm);
  try {
    write_schedule(r, operation);
  } catch (...) {
    comm.idle.push_back(&r);
    throw;
  }
  advance(r);
  return {&r, r.over};
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation, sucl_request** request) {
  *request = nullptr;
  return guarded(comm->state->core, [&]() -> sucl_status {
    const auto [r, over] = start(*comm, *operation);
    const bool blocks = (operation->flags & SUCL_FLAG_MAY_BLOCK) != 0;
    if (over || (blocks && is_over(*comm, *r, r->expected))) return end_of(*comm, *r);
    *request = r;
    return SUCL_SUCCESS;
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  *done = 0;
  return guarded(comm->state->core, [&]() -> sucl_status {
    if (!is_over(*comm, *request, request->is_long ? longest_test : clock_type::duration::zero()))
      return SUCL_SUCCESS;
    *done = 1;
    return end_of(*comm, *request);
  });
}

// A thread may be inside of libfabric and not come back: version 1.17 has been seen to poll for
// ever after a peer had been killed. Others have the lock for moments only.
void abort(sucl_backend_comm* comm) {
  constexpr std::chrono::milliseconds longest{100};
  const auto until = clock_type::now() + longest;
  std::unique_lock hold(comm->endpoint->lock, std::try_to_lock);
  while (!hold && clock_type::now() < until) {
    std::this_thread::yield();
    hold.try_lock();
  }
  if (hold)
    give_up(*comm);
  else
    comm->is_in_use = true;
}

sucl_backend& table() {
  static sucl_backend made = [] {
    sucl_backend t{};
    t.struct_size = sizeof t;
    t.abi_major = SUCL_ABI_MAJOR;
    t.abi_minor = SUCL_ABI_MINOR;
    t.name = "fabric";
    t.description = description().c_str();
    t.open = open;
    t.close = close;
    t.query = query;
    t.comm_create = comm_create;
    t.comm_destroy = comm_destroy;
    t.post = post;
    t.test = test;
    t.abort = abort;
    return t;
  }();
  return made;
}

}  // namespace
}  // namespace sucl::fabric

sucl::fabric::endpoint& sucl_state::open_endpoint() {
  const std::lock_guard hold(lock);
  const sucl::fabric::kept_signals kept;
  if (!endpoint) endpoint = std::make_unique<sucl::fabric::endpoint>(*from, *provider);
  return *endpoint;
}

extern "C" SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(std::uint32_t core_major,
                                                                  std::uint32_t) {
  return core_major == SUCL_ABI_MAJOR ? &sucl::fabric::table() : nullptr;
}
