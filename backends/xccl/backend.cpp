// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// NCCL and RCCL as backends. An operation that comes with a stream is enqueued on it and is, for
/// the core, over; one that comes without goes to a stream of the communicator's own, with an event
/// behind it. The library orders the work of a communicator on the device as it was called,
/// whatever the streams, so both kinds may be mixed. The communicator of a split gets a unique id
/// of its own, over its own out-of-band channel: ncclCommSplit wants all ranks of the parent, also
/// those that get nothing, and nothing in flight there.
#include "communicator.hpp"

#include "base/setting_values.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#define SUCL_TEXT_OF(word) #word
#define SUCL_TEXT(word) SUCL_TEXT_OF(word)

namespace sucl::xccl {
namespace {

constexpr const vendor& own = SUCL_XCCL_VENDOR;

// How long communicators may take to end: at the end of the runtime, and then at that of the
// process.
constexpr auto longest_ending = std::chrono::seconds(10), longest_exit = std::chrono::seconds(60);

template <class Body>
sucl_status guarded(const sucl_core* core, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for the backend's bookkeeping",
                      nullptr);
  }
}

// The table's description, once it is known. Several processes may be played by threads of one.
void set_description(const std::string& text);

// One setting; false if there is none of this name and form.
bool read(const sucl_setting& setting, sucl_state& state, std::string& file) {
  const std::string_view key = setting.key, value = setting.value;
  if (key == "library") {
    file = value;
    return true;
  }
  bool* target = key == "exact"      ? &state.wanted.exact
                 : key == "messages" ? &state.wanted.messages
                                     : nullptr;
  const auto yes = base::boolean_of(value);
  if (!target || !yes) return false;
  *target = *yes;
  return true;
}

void describe(const sucl_state& state) {
  const loaded& l = state.library;
  std::string text =
      std::string(state.from->title) + " " + print_version(l.version) + ", " + l.path;
  for (const auto& other : l.others) {
    text += "; another copy is loaded too: " + other;
    const std::string warning = std::string("the process has two copies of ") + state.from->title +
                                ": " + l.path + " is used, and there is " + other;
    state.core->log(SUCL_LOG_WARN, state.from->name, warning.c_str());
  }
  set_description(text);
}

sucl_status open(const sucl_core* core, const sucl_setting* settings, std::uint64_t count,
                 sucl_state** result);

using clock = std::chrono::steady_clock;

bool have_ended(endings& all, clock::time_point limit) {
  std::unique_lock lock(all.mutex);
  return all.changed.wait_until(lock, limit, [&] { return all.running == 0; });
}

/// States of runtimes that have ended before their communicators. Never destroyed: threads use it.
struct left_behind {
  std::mutex mutex;
  std::vector<sucl_state*> all;
};
left_behind& left() {
  static auto& those = *new left_behind;
  return those;
}

// The exit of a process takes the library and the driver to pieces, also beneath threads that are
// inside of them. It comes before that, as it is registered after they were loaded.
void end_of_process(int status, void* process) {
  if (reinterpret_cast<std::intptr_t>(process) != getpid())
    return;  // a child's threads end nothing
  std::vector<sucl_state*> all;
  {
    const std::lock_guard lock(left().mutex);
    all = left().all;
  }
  const auto limit = clock::now() + longest_exit;
  if (std::all_of(all.begin(), all.end(),
                  [&](const sucl_state* s) { return have_ended(*s->ending, limit); }))
    return;
  std::fprintf(stderr,
               "sucl error %s: communicators do not end, so the process ends without its "
               "exit handlers\n",
               own.name);
  std::fflush(nullptr);
  std::_Exit(status != 0 ? status : EXIT_FAILURE);
}

void leave_behind(sucl_state* state) {
  const std::lock_guard lock(left().mutex);
  left().all.push_back(state);
  if (left().all.size() == 1)
    on_exit(end_of_process, reinterpret_cast<void*>(std::intptr_t{getpid()}));
}

void close(sucl_state* state) {
  // Communicators that are still being ended, because other ranks end theirs later or never.
  if (have_ended(*state->ending, clock::now() + longest_ending)) {
    delete state;
    return;
  }
  state->core->log(SUCL_LOG_WARN, state->from->name,
                   "communicators could not be ended in time and are left as they are");
  leave_behind(state);  // what the threads use stays
}

sucl_status query(sucl_state* state, const sucl_query* question, sucl_capability* answer) {
  answer->supported = question->memory != SUCL_MEMORY_SYSTEM &&
                      supports(state->wanted, question->kind, question->type, question->op);
  answer->flags = SUCL_CAP_STREAM_ORDERED;
  answer->max_count = 0;
  return SUCL_SUCCESS;
}

// This rank's part that may fail; the others get its error.
sucl_status prepare(sucl_backend_comm& comm, const sucl_comm_info& info) {
  const loaded& l = comm.state->library;
  const char* no_device = comm.state->from->is_hip ? "the rank's queue is not on a HIP device"
                                                   : "the rank's queue is not on a CUDA device";
  if (!info.native_device)
    return comm.state->core->fail(SUCL_ERROR_UNAVAILABLE, 0, no_device,
                                  "Make the communicator with a queue of such a device.");
  std::memcpy(&comm.device, info.native_device, sizeof comm.device);
  if (const int result = l.device.retain_context(&comm.context, comm.device))
    return device_failed(comm, result, "the use of the device");
  const on_device here(l.device, comm.context);
  if (const int result = l.device.create_stream(&comm.stream, non_blocking_stream))
    return device_failed(comm, result, "the creation of a stream");
  return SUCL_SUCCESS;
}

sucl_status agree_failed(const sucl_backend_comm& comm, std::size_t rank, sucl_status status) {
  return comm.state->core->fail(status, 0,
                                ("rank " + std::to_string(rank) + " cannot use it").c_str(),
                                "See what that rank logs with SUCL_LOG=info.");
}

// Whether all ranks have come so far. The first one that has not gives the status and is named.
sucl_status agree(const sucl_backend_comm& comm, sucl_status mine) {
  const sucl_core* core = comm.state->core;
  const std::int32_t own_status = mine;
  std::vector<std::int32_t> all(static_cast<std::size_t>(comm.size));
  if (const auto status = core->oob_allgather(comm.oob, &own_status, all.data(), sizeof own_status))
    return status;
  if (mine) return mine;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r]) return agree_failed(comm, r, all[r]);
  return SUCL_SUCCESS;
}

void release(sucl_backend_comm* comm) {
  const device_api& device = comm->state->library.device;
  if (comm->context) {
    const on_device here(device, comm->context);
    for (auto& r : comm->requests) device.destroy_event(r->event);
    for (void* memory : comm->memory) device.free(memory);
    if (comm->stream) device.destroy_stream(comm->stream);
  }
  if (comm->context) device.release_context(comm->device);
  delete comm;
}

// The library's calls wait for those of other ranks, when they connect and whenever they use a new
// way between two. Where a thread calls for several ranks, one after the other, it would wait for
// itself.
sucl_status refuse_ranks_of_one_process(const sucl_backend_comm& comm, const sucl_comm_info& info) {
  if (info.ranks_of_process <= 1) return SUCL_SUCCESS;
  const std::string text = "a process has several ranks of the communicator, and " +
                           std::string(own.name) + " would wait there for itself";
  return comm.state->core->fail(
      SUCL_ERROR_UNSUPPORTED, 0, text.c_str(),
      "Let SuCL's kernels execute it, or start a process for each device");
}

using device_uuid = std::array<unsigned char, 16>;

// The vendor's library refuses ranks that share a device, but only once it connects them, when no
// other backend can take its operations any more. Collective. A device without a UUID, all zeros,
// counts as one of its own.
sucl_status refuse_shared_device(const sucl_backend_comm& comm) {
  const loaded& l = comm.state->library;
  device_uuid mine{};
  if (l.device.get_uuid && l.device.get_uuid(mine.data(), comm.device) != device_ok) mine = {};
  std::vector<device_uuid> all(static_cast<std::size_t>(comm.size));
  const sucl_core* core = comm.state->core;
  if (const auto status = core->oob_allgather(comm.oob, mine.data(), all.data(), sizeof mine))
    return status;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (all[a] == all[b] && all[a] != device_uuid{}) {
        const std::string text = "ranks " + std::to_string(b) + " and " + std::to_string(a) +
                                 " share a device, which " + comm.state->from->title + " refuses";
        return core->fail(SUCL_ERROR_UNAVAILABLE, 0, text.c_str(),
                          "Give each rank a device of its own, or let SuCL's kernels execute it by "
                          "a rule that names them");
      }
  return SUCL_SUCCESS;
}

sucl_status comm_create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** result) {
  return guarded(state->core, [&] {
    auto* comm = new sucl_backend_comm;
    comm->state = state;
    comm->rank = info->rank;
    comm->size = info->size;
    comm->oob = info->oob;
    sucl_status own_status = refuse_ranks_of_one_process(*comm, *info);
    if (!own_status) own_status = prepare(*comm, *info);
    sucl_status status = agree(*comm, own_status);
    if (!status) status = refuse_shared_device(*comm);
    if (status)
      release(comm);
    else
      *result = comm;
    return status;
  });
}

// Ends the library's communicator in a thread, then calls `last`.
template <class Last>
void end(sucl_backend_comm* comm, int (*how)(comm_handle), Last last) {
  const auto ending = comm->state->ending;
  {
    const std::lock_guard lock(ending->mutex);
    ++ending->running;
  }
  std::thread([comm, how, ending, last, native = std::exchange(comm->native, nullptr)] {
    {
      const on_device here(comm->state->library.device, comm->context);
      if (native) how(native);
    }
    last();
    const std::lock_guard lock(ending->mutex);
    --ending->running;
    ending->changed.notify_all();
  }).detach();
}

// For ever: the memory and streams of what was given up may still be in use.
void keep(sucl_backend_comm* comm) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<sucl_backend_comm*>;
  const std::lock_guard lock(mutex);
  kept.push_back(comm);
}

void comm_destroy(sucl_backend_comm* comm) {
  if (comm->given_up) return keep(comm);
  if (!comm->native) return release(comm);  // no operation came
  end(comm, comm->state->library.api.comm_destroy, [comm] { release(comm); });
}

void abort(sucl_backend_comm* comm) {
  comm->given_up = true;
  if (comm->native) end(comm, comm->state->library.api.comm_abort, [] {});
}

sucl_request* take_request(sucl_backend_comm& comm, sucl_status& status) {
  if (!comm.unused.empty()) {
    sucl_request* r = comm.unused.back();
    comm.unused.pop_back();
    return r;
  }
  auto made = std::make_unique<sucl_request>();
  const int result = comm.state->library.device.create_event(&made->event, event_without_timing);
  if (result != device_ok) {
    status = device_failed(comm, result, "the creation of an event");
    return nullptr;
  }
  comm.unused.reserve(comm.requests.size() + 1);
  comm.requests.push_back(std::move(made));
  return comm.requests.back().get();
}

// Whether the library has noticed by itself that something has gone wrong.
sucl_status check_async_error(sucl_backend_comm& comm) {
  int error = ok;
  const int result = comm.state->library.api.comm_get_async_error(comm.native, &error);
  if (result == ok && (error == ok || error == in_progress)) return SUCL_SUCCESS;
  return failed(comm, result == ok ? error : result, "the communicator");
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  *request = nullptr;
  if (!comm->native)
    if (const auto status = guarded(comm->state->core, [&] { return connect(*comm); }))
      return status;
  if (const auto status = check_async_error(*comm)) return status;
  if (o->stream) return enqueue(*comm, *o, o->stream);
  return guarded(comm->state->core, [&]() -> sucl_status {
    const on_device here(comm->state->library.device, comm->context);
    sucl_status status = SUCL_SUCCESS;
    sucl_request* r = take_request(*comm, status);
    if (!r) return status;
    status = enqueue(*comm, *o, comm->stream);
    const int result =
        status ? device_ok : comm->state->library.device.record_event(r->event, comm->stream);
    if (result != device_ok) status = device_failed(*comm, result, "an event");
    if (status)
      comm->unused.push_back(r);
    else
      *request = r;
    return status;
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  const int result = comm->state->library.device.query_event(request->event);
  *done = result == device_ok;
  sucl_status status = SUCL_SUCCESS;
  if (result == device_not_ready)
    status = check_async_error(*comm);
  else if (result != device_ok)
    status = device_failed(*comm, result, "an operation");
  if (*done || status) comm->unused.push_back(request);
  return status;
}

sucl_backend table = [] {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = SUCL_TEXT(SUCL_XCCL_VENDOR);
  t.description = "";
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

void set_description(const std::string& text) {
  static std::mutex mutex;
  static auto& all = *new std::set<std::string>;  // what was given out stays
  const std::lock_guard lock(mutex);
  table.description = all.insert(text).first->c_str();
}

sucl_status open(const sucl_core* core, const sucl_setting* settings, std::uint64_t count,
                 sucl_state** result) {
  return guarded(core, [&]() -> sucl_status {
    auto state = std::make_unique<sucl_state>();
    state->core = core;
    state->from = &own;
    std::string file;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (read(settings[i], *state, file)) continue;
      const std::string text = "the setting " + std::string(settings[i].key) + " = '" +
                               settings[i].value + "' is not understood";
      return core->fail(
          SUCL_ERROR_CONFIGURATION, 0, text.c_str(),
          "There are library (a path), exact and messages (true or false, or 1 or 0).");
    }
    const complaint problem = xccl::open(own, file, state->library);
    if (!problem.message.empty())
      return core->fail(SUCL_ERROR_UNAVAILABLE, 0, problem.message.c_str(), problem.hint.c_str());
    if (const int status = state->library.device.init(0); status != device_ok)
      return core->fail(SUCL_ERROR_UNAVAILABLE, status,
                        (std::string(own.device_library) + " finds no device").c_str(),
                        "Check the driver with the vendor's own tools.");
    describe(*state);
    *result = state.release();
    return SUCL_SUCCESS;
  });
}

}  // namespace

sucl_status connect(sucl_backend_comm& comm) {
  const sucl_core* core = comm.state->core;
  if (comm.given_up)
    return core->fail(SUCL_ERROR_SHUT_DOWN, 0, "the communicator has been given up", nullptr);
  struct greeting {
    std::int32_t status = SUCL_SUCCESS;
    unique_id id{};
  } mine;
  const on_device here(comm.state->library.device, comm.context);
  const library_api& api = comm.state->library.api;
  if (comm.rank == 0)
    if (const int result = api.get_unique_id(&mine.id))
      mine.status = failed(comm, result, "ncclGetUniqueId");
  std::vector<greeting> all(static_cast<std::size_t>(comm.size));
  if (const auto status = core->oob_allgather(comm.oob, &mine, all.data(), sizeof mine))
    return status;
  if (all[0].status) return comm.rank == 0 ? mine.status : agree_failed(comm, 0, all[0].status);
  const int result = api.comm_init_rank(&comm.native, comm.size, all[0].id, comm.rank);
  const auto status =
      agree(comm, result == ok ? SUCL_SUCCESS : failed(comm, result, "ncclCommInitRank"));
  if (status && comm.native) api.comm_abort(std::exchange(comm.native, nullptr));
  return status;
}

}  // namespace sucl::xccl

extern "C" SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(std::uint32_t core_major,
                                                                  std::uint32_t) {
  return core_major == SUCL_ABI_MAJOR ? &sucl::xccl::table : nullptr;
}
