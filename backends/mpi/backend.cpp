// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backend "mpi": every kind of collective and point-to-point operation over an MPI library.
#include "communicator.hpp"

#include "base/setting_values.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sucl::mpi_module {
namespace {

struct kind_row {
  issuer issue;
  bool reduces;
  bool rooted;
};

constexpr kind_row kinds[] = {
    {issue_barrier, false, false},       {issue_broadcast, false, true},
    {issue_reduce, true, true},          {issue_allreduce, true, false},
    {issue_reduce_scatter, true, false}, {issue_reduce_scatter_block, true, false},
    {issue_allgather, false, false},     {issue_allgatherv, false, false},
    {issue_alltoall, false, false},      {issue_alltoallv, false, false},
    {issue_gather, false, true},         {issue_gatherv, false, true},
    {issue_scatter, false, true},        {issue_scatterv, false, true},
    {issue_scan, true, false},           {issue_exscan, true, false},
    {issue_send, false, false},          {issue_recv, false, false},
    {issue_sendrecv, false, false},      {issue_group, false, false},
};
constexpr sucl_kind kind_count = sizeof kinds / sizeof *kinds;
static_assert(kind_count == SUCL_KIND_GROUP + 1);

constexpr std::string_view any_platform = "*";

// Of max_count. More than the library takes makes no difference.
constexpr base::bounds<std::uint64_t> element_counts{1, std::uint64_t{1} << 60};

// Intel MPI takes device memory where offload is switched on.
std::vector<std::string_view> memory_that_intel_takes() {
  const char* offload = std::getenv("I_MPI_OFFLOAD");
  if (offload == nullptr || std::string_view(offload) == "0") return {};
  return {any_platform};
}

// What the library says about itself. Which of these functions exist depends on the library, hence
// dlsym; none of them touches memory.
std::vector<std::string_view> memory_the_library_takes() {
  if (this_library() == library::impi) return memory_that_intel_takes();
  int initialised = 0;
  // MPICH ends a process that queries it before MPI_Init.
  if (MPI_Initialized(&initialised) != MPI_SUCCESS || !initialised) return {};
  struct support_query {
    const char* platform;
    const char* function;
  };
  constexpr support_query support_queries[] = {{"cuda", "MPIX_Query_cuda_support"},
                                               {"hip", "MPIX_Query_rocm_support"},
                                               {"hip", "MPIX_Query_hip_support"},
                                               {"level_zero", "MPIX_Query_ze_support"}};
  std::vector<std::string_view> taken;
  for (const auto& [platform, function] : support_queries) {
    const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, function));
    if (query != nullptr && query() == 1) taken.emplace_back(platform);
  }
  return taken;
}

sucl_status apply(sucl_state& state, const sucl_setting& setting) {
  const std::string_view key = setting.key;
  const std::string_view value = setting.value;
  if (key == "device_memory") {
    if (value == "direct") state.direct = {any_platform};
    if (value == "stage") state.direct.clear();
    if (value == "direct" || value == "stage" || value == "probe") return SUCL_SUCCESS;
    return fail(state.core, SUCL_ERROR_CONFIGURATION,
                "backend mpi does not understand device_memory = " + std::string(value),
                "Use probe, direct or stage.");
  }
  if (key == "max_count") {
    std::uint64_t count = 0;
    const auto problem = base::read_number("max_count", value, element_counts, count);
    if (!problem.message.empty())
      return fail(
          state.core, SUCL_ERROR_CONFIGURATION, "backend mpi: " + problem.message,
          (problem.hint + " Or leave it out: the backend knows its library's limit.").c_str());
    if (count < state.limit) {
      state.limit = count;
      state.limited = true;
    }
    return SUCL_SUCCESS;
  }
  return fail(state.core, SUCL_ERROR_CONFIGURATION,
              "backend mpi does not understand " + std::string(key) + " = " + setting.value,
              "It knows device_memory and max_count.");
}

sucl_status open(const sucl_core* core, const sucl_setting* settings, uint64_t setting_count,
                 sucl_state** state) {
  return guarded(core, [&] {
    *state = nullptr;
    auto made = std::make_unique<sucl_state>();
    made->core = core;
    made->direct = memory_the_library_takes();
    made->limit = native_limit;
    made->limited = native_limit <= INT_MAX;
    for (uint64_t i = 0; i < setting_count; ++i) {
      const sucl_status status = apply(*made, settings[i]);
      if (status != SUCL_SUCCESS) return status;
    }
    std::string takes;
    for (const auto platform : made->direct) takes.append(" ").append(platform);
    core->log(SUCL_LOG_INFO, "mpi",
              takes.empty() ? "device memory is staged: MPI does not take it"
                            : ("device memory goes to MPI directly; platforms:" + takes).c_str());
    *state = made.release();
    return sucl_status{SUCL_SUCCESS};
  });
}

void close(sucl_state* state) { delete state; }

bool takes_device_memory(const sucl_state& state, const sucl_query& query) {
  const char* wanted = SUCL_HAS_FIELD(&query, sucl_query, platform) ? query.platform : nullptr;
  return std::any_of(state.direct.begin(), state.direct.end(), [&](std::string_view platform) {
    return wanted == nullptr || platform == any_platform || platform == wanted;
  });
}

sucl_status query(sucl_state* state, const sucl_query* query, sucl_capability* answer) {
  answer->supported = 0;
  answer->flags = 0;
  answer->max_count = state->limited ? state->limit : 0;
  if (query->kind < 0 || query->kind >= kind_count) return SUCL_SUCCESS;
  const bool in_device = query->memory == SUCL_MEMORY_DEVICE;
  if (kinds[query->kind].reduces) {
    const reduction how = reduction_of(query->op, query->type);
    // Functions of this module run on the host.
    if (!how.is_there() || (in_device && how.own != nullptr)) return SUCL_SUCCESS;
  }
  answer->supported = !in_device || takes_device_memory(*state, *query);
  return SUCL_SUCCESS;
}

// Takes a part of the tags of the communicator that backends share. The first one has its
// collectives too.
sucl_status share(sucl_backend_comm& comm, native_comm& shared) {
  if (shared.broken)
    return fail(comm.core, SUCL_ERROR_SHUT_DOWN, "operations on this communicator were given up",
                "Make another communicator.");
  unsigned part = 0;
  while (part < max_users && (shared.users >> part & 1u) != 0) ++part;
  if (part == max_users)
    return fail(comm.core, SUCL_ERROR_UNAVAILABLE,
                std::to_string(max_users) + " backends mpi are on this communicator already",
                "Make another communicator.");
  if (part == 0) comm.collective = shared.comm;
  comm.messages = shared.comm;
  comm.shared = &shared;
  comm.part = part;
  shared.users |= 1u << part;
  return SUCL_SUCCESS;
}

void leave(sucl_backend_comm& comm) {
  comm.blocks.free_all();
  comm.ops.free_all();
  if (comm.part > 0 && comm.collective != MPI_COMM_NULL) MPI_Comm_free(&comm.collective);
  comm.shared->users &= ~(1u << comm.part);
}

sucl_status comm_create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** comm) {
  return guarded(state->core, [&] {
    *comm = nullptr;
    if (!alive())
      return fail(state->core, SUCL_ERROR_SHUT_DOWN, "MPI is not initialised, or finalised already",
                  "Create communicators between the start and the end of MPI.");
    if (info->native_comm == nullptr)
      return fail(state->core, SUCL_ERROR_UNAVAILABLE,
                  "the control plane has no MPI communicator for the backend mpi",
                  "Use the control plane of the same MPI module.");
    auto made = std::make_unique<sucl_backend_comm>();
    made->core = state->core;
    made->limit = state->limit;
    made->limited = state->limited;
    made->rank = info->rank;
    made->size = info->size;
    made->tag_limit = largest_tag() / tag_parts - 1;
    auto& shared = *static_cast<native_comm*>(const_cast<void*>(info->native_comm));
    if (shared.comm == MPI_COMM_NULL) return no_communicator(state->core, shared.code);
    const sucl_status status = share(*made, shared);
    if (status == SUCL_SUCCESS) *comm = made.release();
    return status;
  });
}

void comm_destroy(sucl_backend_comm* comm) {
  // What may still be in flight writes into the requests: then they and the communicators stay.
  if (comm->broken) {
    comm->shared->broken = true;
    return;
  }
  if (alive()) leave(*comm);
  delete comm;
}

sucl_status check_usable(const sucl_backend_comm& comm) {
  if (comm.broken)
    return fail(comm.core, SUCL_ERROR_SHUT_DOWN,
                "the communicator was given up after an earlier error", "Create a new one.");
  if (finalised())
    return fail(comm.core, SUCL_ERROR_SHUT_DOWN, "MPI is finalised",
                "Finish all communication before MPI_Finalize.");
  return SUCL_SUCCESS;
}

sucl_status check_operation(const sucl_backend_comm& comm, const sucl_operation& o) {
  if (o.kind < 0 || o.kind >= kind_count)
    return fail(comm.core, SUCL_ERROR_UNSUPPORTED,
                "the backend mpi cannot execute kind " + std::to_string(o.kind), nullptr);
  const kind_row& row = kinds[o.kind];
  if (row.reduces && !reduction_of(o.op, o.type).is_there())
    return fail(comm.core, SUCL_ERROR_UNSUPPORTED,
                "MPI has no op " + std::to_string(o.op) + " for type " + std::to_string(o.type),
                nullptr);
  if (row.rooted && (o.root < 0 || o.root >= comm.size))
    return fail(comm.core, SUCL_ERROR_INVALID_RANK,
                "root " + std::to_string(o.root) + " is not in the communicator of " +
                    std::to_string(comm.size) + " ranks",
                "Ranks count from 0.");
  if (o.count > comm.limit)
    return fail(comm.core, SUCL_ERROR_INVALID_COUNT,
                std::to_string(o.count) + " elements are more than the " +
                    std::to_string(comm.limit) + " that one MPI call can say",
                "Do the operation in pieces.");
  return SUCL_SUCCESS;
}

// Backends beside the first on a communicator execute messages, for plans between nodes. One that
// is asked for collectives all the same gets a communicator of its own.
sucl_status find_collective(sucl_backend_comm& comm, const sucl_operation& o) {
  if (comm.collective != MPI_COMM_NULL || o.kind >= SUCL_KIND_SEND) return SUCL_SUCCESS;
  const int code = duplicate(comm.messages, &comm.collective);
  return code == MPI_SUCCESS ? SUCL_SUCCESS : no_communicator(comm.core, code);
}

// Elements that this rank gets from several ranks: what it alone contributes, or another rank,
// comes through as it is.
std::uint64_t combined_results(const sucl_backend_comm& comm, const sucl_operation& o) {
  if (comm.size == 1) return 0;
  switch (o.kind) {
    case SUCL_KIND_REDUCE: return comm.rank == o.root ? o.count : 0;
    case SUCL_KIND_REDUCE_SCATTER: return o.recv_counts[comm.rank];
    case SUCL_KIND_SCAN: return comm.rank > 0 ? o.count : 0;
    case SUCL_KIND_EXSCAN: return comm.rank > 1 ? o.count : 0;
    default: return o.count;
  }
}

// How a reduction is executed; nothing for other kinds.
sucl_status find_reduction(sucl_backend_comm& comm, const sucl_operation& o, reduction* how) {
  if (!kinds[o.kind].reduces) return SUCL_SUCCESS;
  *how = reduction_of(o.op, o.type);
  if (how->own == nullptr) return SUCL_SUCCESS;
  const int code = comm.ops.find(how->own, &how->native);
  return code == MPI_SUCCESS ? SUCL_SUCCESS : fail_native(comm.core, code, "MPI_Op_create");
}

sucl_status find_type(sucl_backend_comm& comm, const sucl_operation& o, const reduction& how,
                      MPI_Datatype* type) {
  *type = MPI_BYTE;
  if (o.kind == SUCL_KIND_BARRIER || o.kind == SUCL_KIND_GROUP) return SUCL_SUCCESS;
  if (kinds[o.kind].reduces) {
    *type = how.type;
    return SUCL_SUCCESS;
  }
  if (o.element_size == 0)
    return fail(comm.core, SUCL_ERROR_INVALID_TYPE, "elements of 0 bytes", nullptr);
  const int code = comm.blocks.find(o.element_size, type);
  return code == MPI_SUCCESS ? SUCL_SUCCESS : fail_native(comm.core, code, "MPI_Type_commit");
}

// Gives the request of an operation that failed while it was posted back to the pool. If parts of
// it are in flight already they can be neither waited for nor taken back: then the communicator is
// lost.
class posting {
 public:
  posting(sucl_backend_comm& comm, sucl_request& request) : m_comm(comm), m_request(&request) {}
  posting(const posting&) = delete;
  posting& operator=(const posting&) = delete;
  ~posting() {
    if (m_request == nullptr) return;
    if (m_request->unmatched > 0) m_comm.broken = true;
    for (MPI_Request handle : m_request->handles)
      if (handle != MPI_REQUEST_NULL) m_comm.broken = true;
    if (!m_comm.broken) m_comm.idle.push_back(m_request);
  }
  void succeeded() { m_request = nullptr; }

 private:
  sucl_backend_comm& m_comm;
  sucl_request* m_request;
};

sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation, sucl_request** request) {
  return guarded(comm->core, [&] {
    *request = nullptr;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    reduction how;
    sucl_status status = check_usable(*comm);
    if (status == SUCL_SUCCESS) status = check_operation(*comm, *operation);
    if (status == SUCL_SUCCESS) status = find_reduction(*comm, *operation, &how);
    if (status == SUCL_SUCCESS) status = find_type(*comm, *operation, how, &type);
    if (status == SUCL_SUCCESS) status = find_collective(*comm, *operation);
    if (status != SUCL_SUCCESS) return status;

    const kind_row& row = kinds[operation->kind];
    sucl_request& own = acquire(*comm);
    posting attempt(*comm, own);
    if (how.unify_nans != nullptr && operation->recv_memory != SUCL_MEMORY_DEVICE) {
      own.unify_nans = how.unify_nans;
      own.results = combined_results(*comm, *operation);
      own.operation = *operation;
    }
    call c{*comm, *operation, own, (operation->flags & SUCL_FLAG_MAY_BLOCK) != 0, type, how.native};
    if (c.blocking && !comm->unmatched.empty()) post_receives(*comm);
    status = row.issue(c);
    if (status != SUCL_SUCCESS) return status;
    attempt.succeeded();
    if (own.handles.empty()) return complete(*comm, own);
    *request = &own;
    return status;
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, int32_t* done) {
  return guarded(comm->core, [&] {
    *done = 0;
    const sucl_status status = check_usable(*comm);
    if (status != SUCL_SUCCESS) return status;
    if (!progress(*comm, *request)) return status;
    *done = 1;
    return complete(*comm, *request);
  });
}

void abort(sucl_backend_comm* comm) {
  comm->broken = true;
  if (!alive()) return;
  // Receives can be taken back, so that nothing is written into memory that the caller frees.
  for (const auto& request : comm->requests)
    for (std::size_t i = 0; i < request->handles.size(); ++i)
      if (request->handles[i] != MPI_REQUEST_NULL &&
          request->expected[i].count != sucl_request::expectation::nothing)
        MPI_Cancel(&request->handles[i]);
}

const char* description() {
  static const std::string text = [] {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::string line(version, static_cast<std::size_t>(length));
    return "MPI, host and MPI-aware device memory: " + line.substr(0, line.find_first_of("\n,"));
  }();
  return text.c_str();
}

}  // namespace
}  // namespace sucl::mpi_module

extern "C" SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(uint32_t core_major, uint32_t) {
  namespace module = sucl::mpi_module;
  static const sucl_backend table = [] {
    sucl_backend t{};
    t.struct_size = sizeof t;
    t.abi_major = SUCL_ABI_MAJOR;
    t.abi_minor = SUCL_ABI_MINOR;
    t.name = "mpi";
    t.description = module::description();
    t.open = module::open;
    t.close = module::close;
    t.query = module::query;
    t.comm_create = module::comm_create;
    t.comm_destroy = module::comm_destroy;
    t.post = module::post;
    t.test = module::test;
    t.abort = module::abort;
    return t;
  }();
  return core_major == SUCL_ABI_MAJOR ? &table : nullptr;
}
