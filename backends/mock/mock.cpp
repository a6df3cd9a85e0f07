// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The mock backend: every collective, type and op, from their definitions, over nothing but the
/// out-of-band exchange that the core provides. Slow and right: what other backends are compared
/// with.
///
/// Exchanges match by the order of their starts, and an operation needs two (sizes, then data), so
/// the operations of a communicator take their turns: one is finished before the next begins.
#include "collectives.hpp"
#include "reduce.hpp"
#include "settings.hpp"

#include <sucl/abi/backend.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace {

using clock_type = std::chrono::steady_clock;
using sucl::mock::settings;

// The library's own code in reports of fail_at.
constexpr std::int64_t injected_code = 4242;

}  // namespace

struct sucl_state {
  const sucl_core* core;
  settings config;
};

struct sucl_request {
  enum class stage { waiting, sizes, data, done };
  sucl_operation operation;
  stage at = stage::waiting;
  clock_type::time_point ready;  // not done before
  std::uint64_t my_bytes = 0;
  std::vector<std::uint64_t> bytes;  // of each rank
  std::vector<std::byte> mine;
  std::vector<std::byte> all;
  sucl_oob_request* exchange = nullptr;
  sucl_status status = SUCL_SUCCESS;
  std::string error;
};

struct sucl_backend_comm {
  const sucl_state* state;
  int rank;
  int size;
  sucl_oob* oob;
  std::vector<std::unique_ptr<sucl_request>> live;  // posted, and not yet reported as done
  std::deque<sucl_request*> turns;                  // of these, the unfinished ones, in order
};

namespace {

using stage = sucl_request::stage;

constexpr const char* memory_hint =
    "It keeps every rank's data on each rank: use smaller counts with it.";

// Runs what may throw; the C side sees a status.
template <class Body>
sucl_status guarded(const sucl_core* core, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for the mock backend's copies",
                      memory_hint);
  }
}

void set_error(sucl_request& request, sucl_status status, std::string text) {
  request.status = status;
  request.error = std::move(text);
  request.at = stage::done;
}

void exchange(sucl_backend_comm& comm, sucl_request& request, stage next, const void* mine,
              void* all, std::uint64_t bytes) {
  const sucl_status status =
      comm.state->core->oob_allgather_start(comm.oob, mine, all, bytes, &request.exchange);
  request.at = next;
  if (status != SUCL_SUCCESS) set_error(request, status, "the out-of-band exchange did not start");
}

void begin(sucl_backend_comm& comm, sucl_request& request) {
  request.mine = sucl::mock::contribution({&request.operation, comm.rank, comm.size});
  request.my_bytes = request.mine.size();
  request.bytes.resize(comm.size);
  exchange(comm, request, stage::sizes, &request.my_bytes, request.bytes.data(),
           sizeof request.my_bytes);
}

// An exchange moves the same number of bytes from every rank, so short contributions are padded.
void exchange_data(sucl_backend_comm& comm, sucl_request& request) {
  const std::uint64_t most = *std::max_element(request.bytes.begin(), request.bytes.end());
  request.mine.resize(most);
  request.all.resize(most * comm.size);
  exchange(comm, request, stage::data, request.mine.data(), request.all.data(), most);
}

void conclude(sucl_backend_comm& comm, sucl_request& request) {
  const sucl_operation& op = request.operation;
  const auto result = sucl::mock::finish({&op, comm.rank, comm.size},
                                         {request.all.data(), request.mine.size(), request.bytes});
  request.at = stage::done;
  if (!result.error.empty()) set_error(request, SUCL_ERROR_MISMATCH, result.error);
  if (result.last && (comm.state->config.wrong >> op.kind & 1))
    for (std::uint64_t i = 0; i < op.element_size; ++i) result.last[i] ^= std::byte{0x5a};
}

// One step of the operation whose turn it is; false if it has to wait for other ranks.
bool step(sucl_backend_comm& comm, sucl_request& request) {
  if (request.at == stage::waiting) {
    begin(comm, request);
    return true;
  }
  std::int32_t done = 0;
  const sucl_status status = comm.state->core->oob_test(comm.oob, request.exchange, &done);
  if (status != SUCL_SUCCESS) {
    set_error(request, status, "the out-of-band exchange failed");
    return true;
  }
  if (!done) return false;
  if (request.at == stage::sizes)
    exchange_data(comm, request);
  else
    conclude(comm, request);
  return true;
}

void progress(sucl_backend_comm& comm) {
  while (!comm.turns.empty()) {
    sucl_request& request = *comm.turns.front();
    try {
      while (request.at != stage::done)
        if (!step(comm, request)) return;
    } catch (const std::bad_alloc&) {
      set_error(request, SUCL_ERROR_OUT_OF_MEMORY, "no memory for the mock backend's copies");
    }
    comm.turns.pop_front();
  }
}

bool has(std::uint64_t set, std::int32_t bit) { return bit >= 0 && bit < 64 && (set >> bit & 1); }

bool reduces(sucl_kind kind) {
  switch (kind) {
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return true;
    default: return false;
  }
}

bool supports(const settings& config, sucl_kind kind, sucl_type type, sucl_op op,
              sucl_memory memory) {
  if (!has(config.kinds, kind) || !has(config.memory, memory)) return false;
  if (kind == SUCL_KIND_BARRIER) return true;
  if (!has(config.types, type)) return false;
  return !reduces(kind) || (has(config.ops, op) && sucl::mock::defined(op, type));
}

sucl_status open(const sucl_core* core, const sucl_setting* list, std::uint64_t count,
                 sucl_state** state) {
  return guarded(core, [&]() -> sucl_status {
    auto result = std::make_unique<sucl_state>(sucl_state{core, {}});
    const auto complaint = sucl::mock::read(list, count, result->config);
    if (!complaint.message.empty())
      return core->fail(SUCL_ERROR_CONFIGURATION, 0, complaint.message.c_str(),
                        complaint.hint.c_str());
    if (!result->config.fail_open.empty())
      return core->fail(SUCL_ERROR_UNAVAILABLE, 0, result->config.fail_open.c_str(),
                        "Remove the setting 'fail_open' of backend mock.");
    *state = result.release();
    return SUCL_SUCCESS;
  });
}

void close(sucl_state* state) { delete state; }

sucl_status query(sucl_state* state, const sucl_query* query, sucl_capability* answer) {
  answer->supported = supports(state->config, query->kind, query->type, query->op, query->memory);
  answer->flags = 0;
  answer->max_count = state->config.max_count;
  return SUCL_SUCCESS;
}

sucl_status comm_create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** comm) {
  return guarded(state->core, [&] {
    *comm = new sucl_backend_comm{state, info->rank, info->size, info->oob, {}, {}};
    return SUCL_SUCCESS;
  });
}

void comm_destroy(sucl_backend_comm* comm) { delete comm; }

bool is_chosen(const sucl_backend_comm& comm) {
  const std::int64_t rank = comm.state->config.fail_rank;
  return rank < 0 || rank == comm.rank;
}

// As a library is that waits for a process for ever.
[[noreturn]] void stay_inside() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// What cannot be executed must not reach the exchange.
sucl_status refuse(const sucl_backend_comm& comm, const sucl_operation& op) {
  const sucl_core* core = comm.state->core;
  const settings& config = comm.state->config;
  const std::string kind = sucl::mock::kind_name(op.kind);
  if (config.fail_at != 0 && op.sequence == config.fail_at && is_chosen(comm))
    return core->fail(SUCL_ERROR_NATIVE, injected_code,
                      "the mock backend is configured to fail this operation",
                      "Remove the setting 'fail_at' of backend mock.");
  if (op.stream != nullptr || !supports(config, op.kind, op.type, op.op, op.send_memory) ||
      !has(config.memory, op.recv_memory))
    return core->fail(SUCL_ERROR_UNSUPPORTED, 0,
                      ("the mock backend cannot execute this " + kind).c_str(),
                      "It takes collectives on memory the host can read: call query() first.");
  const std::uint64_t most = std::max(op.count, op.recv_count);
  if (config.max_count != 0 && most > config.max_count)
    return core->fail(SUCL_ERROR_INVALID_COUNT, 0,
                      ("the mock backend is configured to take at most " +
                       std::to_string(config.max_count) + " elements")
                          .c_str(),
                      "Split the operation, or raise the setting 'max_count'.");
  return SUCL_SUCCESS;
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation, sucl_request** request) {
  return guarded(comm->state->core, [&]() -> sucl_status {
    if (const sucl_status status = refuse(*comm, *operation)) return status;
    const std::uint64_t stuck_at = comm->state->config.stuck_at;
    if (stuck_at != 0 && operation->sequence == stuck_at && is_chosen(*comm)) stay_inside();
    auto result = std::make_unique<sucl_request>();
    result->operation = *operation;
    result->ready = clock_type::now() + std::chrono::microseconds(comm->state->config.delay_us);
    comm->live.push_back(std::move(result));
    comm->turns.push_back(comm->live.back().get());
    *request = comm->turns.back();
    return SUCL_SUCCESS;
  });
}

// Takes a request out of the communicator's care.
std::unique_ptr<sucl_request> take(sucl_backend_comm& comm, const sucl_request* request) {
  const auto at = std::find_if(comm.live.begin(), comm.live.end(),
                               [&](const auto& entry) { return entry.get() == request; });
  auto result = std::move(*at);
  comm.live.erase(at);
  return result;
}

const char* hint_for(sucl_status status) {
  if (status == SUCL_ERROR_OUT_OF_MEMORY) return memory_hint;
  return "Check that every rank passes the same operation; the validate layer names the "
         "difference.";
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  *done = 0;
  progress(*comm);
  const bool late = request->status == SUCL_SUCCESS && clock_type::now() < request->ready;
  if (request->at != stage::done || late) return SUCL_SUCCESS;
  const auto owned = take(*comm, request);
  *done = 1;
  if (owned->status == SUCL_SUCCESS) return SUCL_SUCCESS;
  return comm->state->core->fail(owned->status, 0, owned->error.c_str(), hint_for(owned->status));
}

// The memory of an exchange in flight may still be written to, so it is kept for good.
void abort(sucl_backend_comm* comm) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<sucl_request>>;
  const std::lock_guard lock(mutex);
  if (!comm->turns.empty() && comm->turns.front()->exchange != nullptr)
    kept.push_back(take(*comm, comm->turns.front()));
  comm->turns.clear();
}

constexpr sucl_backend table = [] {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = "mock";
  t.description = "reference implementation over the out-of-band exchange, for tests";
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

}  // namespace

extern "C" SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(std::uint32_t core_major,
                                                                  std::uint32_t) {
  return core_major == SUCL_ABI_MAJOR ? &table : nullptr;
}
