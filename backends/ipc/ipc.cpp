// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The backend ipc executes no operation by itself: it provides memory that the ranks of a node
// share, for the backends that do.
#include "ipc.hpp"

#include "base/setting_values.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace sucl::ipc {
namespace {

// A number that peers read to find out whether they may.
const std::uint64_t probe_word = 0x5375434c69706321;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t host_number() {
  std::string text = first_line("/proc/sys/kernel/random/boot_id");
  struct stat space{};
  if (stat("/proc/self/ns/pid", &space) == 0) text += "/" + std::to_string(space.st_ino);
  return std::hash<std::string>{}(text);
}

// What the system says about reading the memory of other processes. Whether two ranks may, they
// find out when they meet.
std::string find_obstacle() {
  std::uint64_t word = 0;
  const iovec to{&word, sizeof word};
  const iovec from{const_cast<std::uint64_t*>(&probe_word), sizeof word};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof word))
    return std::string("process_vm_readv: ") + std::strerror(errno);
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0" || scope == "1") return {};
  return "kernel.yama.ptrace_scope is " + scope;
}

const char* describe() {
  static const std::string text = [] {
    const std::string obstacle = find_obstacle();
    return "memory that the ranks of a node share (memfd); single-copy reads of other memory: " +
           (obstacle.empty() ? std::string("possible") : "not possible (" + obstacle + ")");
  }();
  return text.c_str();
}

sucl_status open_backend(const sucl_core* core, const sucl_setting* settings, std::uint64_t count,
                         sucl_state** state) {
  auto made = std::make_unique<sucl_state>();
  made->core = core;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = settings[i].key, value = settings[i].value;
    using handover = sucl_state::handover;
    if (key == "handover" && value == "any")
      made->how = handover::any;
    else if (key == "handover" && value == "proc")
      made->how = handover::proc;
    else if (key == "handover" && value == "socket")
      made->how = handover::socket;
    else if (const auto yes = base::boolean_of(value); key == "reads" && yes)
      made->reads = *yes;
    else
      return core->fail(
          SUCL_ERROR_CONFIGURATION, 0,
          ("backend ipc does not understand " + key + " = " + value).c_str(),
          "It knows handover = any, proc or socket, and reads = true or false, or 1 or 0.");
  }
  *state = made.release();
  return SUCL_SUCCESS;
}

// Where only relatives may read a process, the ranks of a job are none. Collective, as peers read
// only when all have allowed it.
sucl_status allow_peers(const sucl_backend_comm& c) {
  std::vector<ancestry> peers;
  for (std::int32_t r = 0; r < c.size; ++r)
    if (c.near(r) && !c.same_process(r))
      peers.push_back(c.infos[static_cast<std::size_t>(r)].started_by);
  const bool restricted = first_line("/proc/sys/kernel/yama/ptrace_scope") == "1";
  if (restricted) allow_reading(peers);
  std::vector<char> all;
  return gather(c, static_cast<char>(restricted), all);
}

sucl_status comm_create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** comm) {
  auto made = std::make_unique<sucl_backend_comm>();
  made->state = state;
  made->oob = info->oob;
  made->rank = info->rank;
  made->size = info->size;
  made->node_of.assign(info->node_of, info->node_of + info->size);
  made->device = device_memory::make(*info);
  // The address of a variable of this library differs between processes, not between threads.
  const process_info mine{host_number(), reinterpret_cast<std::uint64_t>(&probe_word), getpid(),
                          reinterpret_cast<std::uint64_t>(&probe_word), own_ancestry()};
  if (const auto status = gather(*made, mine, made->infos)) return status;
  if (state->reads)
    if (const auto status = allow_peers(*made)) return status;
  made->readable.assign(static_cast<std::size_t>(info->size), 0);
  for (std::int32_t r = 0; r < made->size && state->reads; ++r) {
    std::uint64_t word = 0;
    const auto p = static_cast<std::size_t>(r);
    made->readable[p] =
        made->near(r) &&
        memory_read(made.get(), r, &word, made->infos[p].word, sizeof word) == SUCL_SUCCESS &&
        word == probe_word;
  }
  *comm = made.release();
  return SUCL_SUCCESS;
}

sucl_status read(sucl_backend_comm* comm, std::int32_t rank, void* to, std::uint64_t from,
                 std::uint64_t bytes) {
  if (comm->readable[static_cast<std::size_t>(rank)])
    return memory_read(comm, rank, to, from, bytes);
  return comm->state->core->fail(
      SUCL_ERROR_UNSUPPORTED, 0,
      ("this process may not read the memory of rank " + std::to_string(rank)).c_str(),
      "The system or the setting backends.ipc.reads forbids it; memory of SuCL's own is shared");
}

sucl_status device_failed(const sucl_backend_comm& comm, int code, const std::string& what) {
  return comm.state->core->fail(
      SUCL_ERROR_NATIVE, code,
      (what + ": error " + std::to_string(code) + " of the driver").c_str(),
      "The devices may have no way to each other; host memory is used instead");
}

sucl_status memory_export(sucl_backend_comm* comm, const void* address, std::uint64_t,
                          sucl_memory memory, sucl_memory_key* key) {
  const sucl_core* core = comm->state->core;
  if (memory != SUCL_MEMORY_DEVICE)
    return core->fail(SUCL_ERROR_UNSUPPORTED, 0, "only memory of devices can be exported",
                      "Allocate it with communicator::allocate");
  if (!comm->device || !comm->device->problem().empty())
    return core->fail(SUCL_ERROR_UNSUPPORTED, 0,
                      comm->device ? comm->device->problem().c_str()
                                   : "memory of this platform's devices cannot be mapped",
                      "Host memory is used instead");
  device_key made{};
  made.pid = getpid();
  if (const int code = comm->device->get_handle(address, made))
    return device_failed(*comm, code, "the memory cannot be exported");
  *key = {};
  std::memcpy(key->bytes, &made, sizeof made);
  return SUCL_SUCCESS;
}

sucl_status memory_open(sucl_backend_comm* comm, std::int32_t rank, const sucl_memory_key* key,
                        void** address) {
  device_key theirs;
  std::memcpy(&theirs, key->bytes, sizeof theirs);
  if (!comm->near(rank) || !comm->device)
    return comm->state->core->fail(SUCL_ERROR_UNSUPPORTED, 0,
                                   ("rank " + std::to_string(rank) + " is out of reach").c_str(),
                                   nullptr);
  if (comm->same_process(rank)) {
    if (const int code = comm->device->reach(theirs.address))
      return device_failed(*comm, code,
                           "the device cannot reach the memory of that of rank " +
                               std::to_string(rank) + ", in the same process");
    *address = reinterpret_cast<void*>(theirs.address + theirs.offset);
    return SUCL_SUCCESS;
  }
  if (const int code = comm->device->open(rank, theirs, address))
    return device_failed(*comm, code,
                         "the device memory of rank " + std::to_string(rank) + " cannot be mapped");
  return SUCL_SUCCESS;
}

void memory_close(sucl_backend_comm* comm, std::int32_t rank, void* address) {
  if (comm->device && !comm->same_process(rank)) comm->device->close(rank, address);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation*, sucl_request**) {
  return comm->state->core->fail(SUCL_ERROR_UNSUPPORTED, 0, "backend ipc executes no operations",
                                 "It provides memory to the backend plan, which does");
}

const sucl_backend table = [] {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = "ipc";
  t.description = describe();
  t.open = open_backend;
  t.close = [](sucl_state* s) { delete s; };
  t.query = [](sucl_state*, const sucl_query*, sucl_capability* answer) {
    answer->supported = 0;
    return sucl_status{SUCL_SUCCESS};
  };
  t.comm_create = comm_create;
  t.comm_destroy = [](sucl_backend_comm* c) { delete c; };
  t.post = post;
  t.test = [](sucl_backend_comm* c, sucl_request*, std::int32_t*) {
    return post(c, nullptr, nullptr);
  };
  t.abort = [](sucl_backend_comm*) {};
  t.memory_create = memory_create;
  t.memory_destroy = memory_destroy;
  t.memory_export = memory_export;
  t.memory_open = memory_open;
  t.memory_close = memory_close;
  t.memory_read = read;
  return t;
}();

}  // namespace
}  // namespace sucl::ipc

extern "C" SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(std::uint32_t core_major,
                                                                  std::uint32_t) {
  return core_major == SUCL_ABI_MAJOR ? &sucl::ipc::table : nullptr;
}
