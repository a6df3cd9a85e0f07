// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The control plane over MPI: processes, groups, out-of-band exchange, the control messages.
#include "base/system/started_ranks.hpp"
#include "group.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#ifndef SUCL_MPI_FLAVOUR
#if defined(OPEN_MPI)
#define SUCL_MPI_FLAVOUR "openmpi"
#elif defined(SUCL_MPI_ABI)
#define SUCL_MPI_FLAVOUR "abi"
#elif defined(I_MPI_VERSION)
#define SUCL_MPI_FLAVOUR "impi"
#else
#define SUCL_MPI_FLAVOUR "mpich"
#endif
#endif

namespace sucl::mpi_module {
namespace {

const sucl_core* g_core = nullptr;
bool g_initialised_here = false;

sucl_status check(int code, const char* function) {
  return code == MPI_SUCCESS ? SUCL_SUCCESS : fail_native(g_core, code, function);
}

sucl_status check_alive() {
  if (alive()) return SUCL_SUCCESS;
  return fail(g_core, SUCL_ERROR_SHUT_DOWN, "MPI is not initialised, or finalised already",
              "Use SuCL between the start and the end of MPI.");
}

// The other processes wait for this one in their library's start. Open MPI's launcher ends them
// when one ends with an error, Hydra where that has told it who it is; otherwise it has to be asked
// to.
void end_others_at_exit() {
  if (this_library() != library::openmpi || std::getenv("PMI_FD") == nullptr) return;
  std::atexit([] {
    constexpr char request[] = "cmd=abort exitcode=1\n";
    const char* descriptor = std::getenv("PMI_FD");
    if (descriptor != nullptr) (void)!write(std::atoi(descriptor), request, sizeof request - 1);
  });
}

// Where a launcher has started several processes and this library sees each of them alone, every
// one would compute as rank 0 of 1. What its own launcher says goes before what an outer one says.
sucl_status check_launcher() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* own =
      std::getenv(this_library() == library::openmpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE");
  if (size > 1 || (own != nullptr && std::string(own) == "1")) return SUCL_SUCCESS;
  const std::string alone = ", but " SUCL_MPI_FLAVOUR " sees this one alone";
  const auto variable = [](const char* name) { return std::getenv(name); };
  if (const auto by_mpi = base::several_by_mpi(variable)) {
    end_others_at_exit();
    return fail(g_core, SUCL_ERROR_UNAVAILABLE, by_mpi->text() + alone,
                "Start the program with the launcher of that MPI library, as `sucl run "
                "--mpi " SUCL_MPI_FLAVOUR
                "` does, or unset SUCL_MPI_FLAVOUR: then the launcher's library "
                "is taken, unless the program itself is linked with this one. To start a process "
                "alone, unset the launcher's variable.");
  }
  if (const auto others = base::several_without_mpi(variable))
    return fail(g_core, SUCL_ERROR_UNAVAILABLE, others->text() + alone,
                "Start the program with the launcher of that MPI library, or set "
                "SUCL_CONTROL_PLANE=tcp on all ranks: then they find each other without MPI. To "
                "start a process alone, unset the launcher's variable.");
  if (const int ranks = own == nullptr ? base::ranks_of_sucl_run() : 0; ranks > 1)
    return fail(g_core, SUCL_ERROR_UNAVAILABLE,
                "`sucl run` has started " + std::to_string(ranks) + " ranks" + alone,
                "Leave the variables of the launcher in the environment of every rank. Start "
                "processes that shall be alone without `sucl run`.");
  return SUCL_SUCCESS;
}

void read_library(char (&line)[256]) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  char* end = std::find(version, version + length, '\n');
  std::replace(version, end, '\t', ' ');
  *end = '\0';
  std::snprintf(line, sizeof line, "%.255s", version);
}

// MPICH gives its shared memory a name in /dev/shm that only MPI_Finalize removes: ranks that are
// killed, or exit without it, would leave it behind. All processes of the node have it when it is
// initialised, and the name is of no more use.
void remove_names_of_shared_memory() {
  if (this_library() != library::mpich) return;
  std::ifstream maps("/proc/self/maps");
  const std::string prefix = "/dev/shm/mpich_shm_";
  std::vector<std::string> names;
  for (std::string line; std::getline(maps, line);)
    if (const auto at = line.find(prefix); at != std::string::npos)
      names.push_back(line.substr(at));
  for (const std::string& name : names) unlink(name.c_str());
}

sucl_status init(const sucl_core* core, int* argc, char*** argv, sucl_bootstrap_info* info) {
  g_core = core;
  wait_with(core);
  return guarded(core, [&] {
    int initialised = 0;
    int finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (finalised)
      return fail(core, SUCL_ERROR_SHUT_DOWN, "MPI is finalised already: it cannot start again",
                  "Start SuCL before MPI_Finalize, and only once if SuCL starts MPI.");
    int provided = MPI_THREAD_SINGLE;
    if (initialised) {
      MPI_Query_thread(&provided);
    } else {
      const int code = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
      if (code != MPI_SUCCESS) return fail_native(core, code, "MPI_Init_thread");
      g_initialised_here = true;
    }
    if (const sucl_status status = check_launcher(); status != SUCL_SUCCESS) return status;
    replace_default_handler();
    remove_names_of_shared_memory();
    info->initialised_here = g_initialised_here ? 1 : 0;
    info->thread_multiple = provided == MPI_THREAD_MULTIPLE ? 1 : 0;
    read_library(info->library);
    return sucl_status{SUCL_SUCCESS};
  });
}

void finalize() {
  if (!g_initialised_here || !alive()) return;
  g_initialised_here = false;
  MPI_Finalize();
}

int32_t is_alive() { return alive() ? 1 : 0; }

struct finalize_hook {
  void (*function)(void*);
  void* arg;
};

int run_hook(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<finalize_hook> hook(static_cast<finalize_hook*>(value));
  hook->function(hook->arg);
  --hooks_to_run;
  return MPI_SUCCESS;
}

// MPI deletes the attributes of MPI_COMM_SELF first of all when it is finalised.
sucl_status at_finalize(void (*function)(void*), void* arg) {
  return guarded(g_core, [&] {
    sucl_status status = check_alive();
    if (status != SUCL_SUCCESS) return status;
    auto hook = std::make_unique<finalize_hook>(finalize_hook{function, arg});
    int key = MPI_KEYVAL_INVALID;
    status = check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, run_hook, &key, nullptr),
                   "MPI_Comm_create_keyval");
    if (status != SUCL_SUCCESS) return status;
    status = check(MPI_Comm_set_attr(MPI_COMM_SELF, key, hook.get()), "MPI_Comm_set_attr");
    if (status == SUCL_SUCCESS) {
      (void)hook.release();
      ++hooks_to_run;
    }
    MPI_Comm_free_keyval(&key);  // MPI keeps it until the attribute is gone
    return status;
  });
}

sucl_status group_world(sucl_group** group) {
  return guarded(g_core, [&] {
    *group = nullptr;
    const sucl_status status = check_alive();
    return status == SUCL_SUCCESS ? make_world(g_core, group) : status;
  });
}

// What the caller has of a communicator that it passes.
sucl_status read_native(const void* native, uint64_t bytes, MPI_Comm* comm) {
  if (native == nullptr || bytes != sizeof(MPI_Comm))
    return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT,
                "the communicator handle has " + std::to_string(bytes) + " bytes, those of " +
                    SUCL_MPI_FLAVOUR " have " + std::to_string(sizeof(MPI_Comm)),
                "Compile the program with the MPI library that SuCL uses.");
  std::memcpy(comm, native, sizeof *comm);
  if (*comm == MPI_COMM_NULL)
    return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT, "the communicator is MPI_COMM_NULL",
                "Only its members may make a communicator from it.");
  int between_groups = 0;
  const errors_are_returned errors;
  if (errors.result(MPI_Comm_test_inter(*comm, &between_groups)) != MPI_SUCCESS)
    return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT, "the handle is none of a communicator of MPI",
                "Pass an MPI_Comm that has not been freed.");
  if (between_groups)
    return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT, "the communicator is an inter-communicator",
                "Merge it: MPI_Intercomm_merge.");
  return SUCL_SUCCESS;
}

sucl_status group_adopt(const void* native, uint64_t bytes, sucl_group** group) {
  return guarded(g_core, [&] {
    *group = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    sucl_status status = check_alive();
    if (status == SUCL_SUCCESS) status = read_native(native, bytes, &comm);
    return status == SUCL_SUCCESS ? adopt(g_core, comm, group) : status;
  });
}

sucl_status native_ranks(sucl_group* group, const void* native, uint64_t bytes, int32_t* ranks,
                         uint64_t* count) {
  return guarded(g_core, [&] {
    const uint64_t room = std::exchange(*count, 0);
    MPI_Comm comm = MPI_COMM_NULL;
    sucl_status status = check_alive();
    if (status == SUCL_SUCCESS) status = read_native(native, bytes, &comm);
    if (status != SUCL_SUCCESS) return status;
    const std::vector<int> found = ranks_in(*group, comm);
    *count = found.size();
    std::copy_n(found.begin(), std::min<std::size_t>(found.size(), room), ranks);
    return status;
  });
}

// Lets go of the messages that MPI has sent.
void reap(sucl_group& group) {
  const errors_are_returned errors;
  group.sent.remove_if([](const std::unique_ptr<control_message>& l) {
    int sent = 0;
    // One that cannot be sent any more is as good as sent.
    return MPI_Test(&l->handle, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || sent != 0;
  });
}

void group_free(sucl_group* group) {
  if (group == nullptr) return;
  if (!alive()) {
    delete group;
    return;
  }
  reap(*group);
  free_group(group);
}

int32_t group_rank(const sucl_group* group) { return group->rank; }
int32_t group_size(const sucl_group* group) { return group->size; }
// Collective: the first call makes the communicator. Where it cannot be made, the backend that gets
// null says why.
const void* group_native(const sucl_group* group) {
  make_native(g_core, *const_cast<sucl_group*>(group));
  return &group->own;
}

sucl_status allgather(sucl_group* group, const void* mine, void* all, uint64_t bytes) {
  return guarded(g_core, [&] {
    const sucl_status status = check_alive();
    if (status != SUCL_SUCCESS || bytes == 0) return status;
    return check(exchange_now(*group, mine, all, bytes), "an exchange of the control plane");
  });
}

sucl_status group_split(sucl_group* group, int32_t colour, int32_t key, sucl_group** result) {
  return guarded(g_core, [&] {
    *result = nullptr;
    const sucl_status status = check_alive();
    return status == SUCL_SUCCESS ? split(g_core, *group, colour, key, result) : status;
  });
}

sucl_status allgather_start(sucl_group* group, const void* mine, void* all, uint64_t bytes,
                            sucl_oob_request** request) {
  return guarded(g_core, [&] {
    *request = nullptr;
    const sucl_status status = check_alive();
    if (status == SUCL_SUCCESS) *request = start_exchange(*group, mine, all, bytes);
    return status;
  });
}

sucl_status test(sucl_group* group, sucl_oob_request* request, int32_t* done) {
  return guarded(g_core, [&] {
    *done = 0;
    const sucl_status status = check_alive();
    if (status != SUCL_SUCCESS || !test_exchange(*group, *request)) return status;
    *done = 1;
    const std::unique_ptr<sucl_oob_request> ended(request);
    return check(ended->code, "an exchange of the control plane");
  });
}

sucl_status notify(sucl_group* group, int32_t rank, const void* data, uint64_t bytes) {
  return guarded(g_core, [&] {
    sucl_status status = check_alive();
    if (status != SUCL_SUCCESS) return status;
    if (rank < 0 || rank >= group->size || bytes > max_message_bytes)
      return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT,
                  "a control message of " + std::to_string(bytes) + " bytes to rank " +
                      std::to_string(rank) + " of " + std::to_string(group->size),
                  "At most 4096 bytes, to a rank of the group.");
    auto l = std::make_unique<control_message>();
    l->bytes = bytes;
    l->what.serial = group->serial;
    std::memcpy(l->what.text.data(), data, bytes);
    const std::lock_guard<std::mutex> lock(group->message_lock);
    reap(*group);
    status = check(MPI_Isend(&l->what, static_cast<int>(control_message::head + bytes), MPI_BYTE,
                             group->members[static_cast<std::size_t>(rank)], group->message_tag(),
                             group->over->comm(), &l->handle),
                   "MPI_Isend");
    if (status == SUCL_SUCCESS) group->sent.push_back(std::move(l));
    return status;
  });
}

// Starts to receive the next message, if one is there. Not to its end: its sender may be stalled.
sucl_status open_message(sucl_group& group) {
  int found = 0;
  MPI_Message message;
  MPI_Status probed;
  sucl_status status = check(MPI_Improbe(MPI_ANY_SOURCE, group.message_tag(), group.over->comm(),
                                         &found, &message, &probed),
                             "MPI_Improbe");
  if (status != SUCL_SUCCESS || !found) return status;
  auto l = std::make_unique<control_message>();
  int bytes = 0;
  MPI_Get_count(&probed, MPI_BYTE, &bytes);
  l->bytes = static_cast<std::size_t>(bytes) - control_message::head;
  status = check(MPI_Imrecv(&l->what, bytes, MPI_BYTE, &message, &l->handle), "MPI_Imrecv");
  if (status != SUCL_SUCCESS) return status;
  group.incoming = std::move(l);
  const auto& members = group.members;
  group.incoming_from = static_cast<int>(
      std::find(members.begin(), members.end(), probed.MPI_SOURCE) - members.begin());
  return status;
}

sucl_status poll(sucl_group* group, int32_t* source, void* data, uint64_t capacity,
                 uint64_t* bytes) {
  return guarded(g_core, [&] {
    *source = -1;
    *bytes = 0;
    sucl_status status = check_alive();
    if (status != SUCL_SUCCESS) return status;
    const std::lock_guard<std::mutex> lock(group->message_lock);
    reap(*group);
    if (!group->incoming) status = open_message(*group);
    if (status != SUCL_SUCCESS || !group->incoming) return status;
    if (group->incoming->bytes > capacity)
      return fail(g_core, SUCL_ERROR_INVALID_ARGUMENT,
                  "a control message of " + std::to_string(group->incoming->bytes) +
                      " bytes does not fit into " + std::to_string(capacity),
                  "Give poll room for 4096 bytes.");
    const errors_are_returned errors;
    int complete = 0;
    status = check(errors.result(MPI_Test(&group->incoming->handle, &complete, MPI_STATUS_IGNORE)),
                   "MPI_Test");
    if (status != SUCL_SUCCESS || !complete) return status;
    const std::unique_ptr<control_message> read = std::move(group->incoming);
    if (read->what.serial != group->serial) return status;  // it was for an earlier group
    std::memcpy(data, read->what.text.data(), read->bytes);
    *bytes = read->bytes;
    *source = group->incoming_from;
    return status;
  });
}

void abort_job(int32_t exit_code) {
  if (alive()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace
}  // namespace sucl::mpi_module

extern "C" SUCL_ABI_EXPORT const sucl_bootstrap* sucl_bootstrap_entry(uint32_t core_major,
                                                                      uint32_t) {
  namespace module = sucl::mpi_module;
  static const sucl_bootstrap table = {sizeof(sucl_bootstrap),
                                       SUCL_ABI_MAJOR,
                                       SUCL_ABI_MINOR,
                                       0,
                                       SUCL_MPI_FLAVOUR,
                                       module::init,
                                       module::finalize,
                                       module::is_alive,
                                       module::at_finalize,
                                       module::group_world,
                                       module::group_adopt,
                                       module::group_split,
                                       module::group_free,
                                       module::group_rank,
                                       module::group_size,
                                       module::group_native,
                                       module::allgather,
                                       module::allgather_start,
                                       module::test,
                                       module::notify,
                                       module::poll,
                                       module::abort_job,
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       module::native_ranks};
  return core_major == SUCL_ABI_MAJOR ? &table : nullptr;
}
