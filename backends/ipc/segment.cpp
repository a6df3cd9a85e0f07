// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Anonymous shared memory: a descriptor and mappings, never a name, so that nothing is left behind
// by processes that are killed.
#include "ipc.hpp"

#include "base/sizes.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sucl::ipc {
namespace {

// One mapping. Ranks that are threads of one process share it, and the last one to leave unmaps.
struct mapping {
  void* base;
  std::uint64_t bytes;
  std::atomic<int> users{1};

  void leave() {
    if (users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    munmap(base, bytes);
    delete this;
  }
};

struct segment {
  std::uint64_t bytes = 0;
  std::vector<void*> peers;
  std::vector<mapping*> mappings;

  ~segment() {
    for (mapping* m : mappings)
      if (m) m->leave();
  }
  void set(std::size_t rank, mapping* m) {
    mappings[rank] = m;
    peers[rank] = m->base;
  }
};

void* map(int descriptor, std::uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
}

// Makes this rank's part.
segment_info make_part(const sucl_backend_comm& c, segment& s) {
  segment_info info;
  const auto self = static_cast<std::size_t>(c.rank);
  if (s.bytes > base::max_bytes) {
    info.problem = ENOMEM;
    return info;
  }
  const int descriptor = memfd_create("sucl", MFD_CLOEXEC);
  if (descriptor < 0) {
    info.problem = errno;
    return info;
  }
  struct stat about{};
  void* base = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(s.bytes)) == 0 && fstat(descriptor, &about) == 0)
    base = map(descriptor, s.bytes);
  if (base == MAP_FAILED) {
    info.problem = errno;
    close(descriptor);
    return info;
  }
  s.set(self, new mapping{base, s.bytes});
  info.descriptor = descriptor;
  info.device = about.st_dev;
  info.inode = about.st_ino;
  info.mapping = reinterpret_cast<std::uint64_t>(s.mappings[self]);
  info.bytes = s.bytes;
  return info;
}

// Whether a descriptor is of the memory that a peer has announced, all of it.
bool is_announced(int descriptor, const segment_info& info) {
  struct stat about{};
  return fstat(descriptor, &about) == 0 && about.st_dev == info.device &&
         about.st_ino == info.inode && static_cast<std::uint64_t>(about.st_size) >= info.bytes;
}

// Maps what was taken from the peers, and closes the descriptors. Returns errno, or 0.
int map_peers(const sucl_backend_comm& c, const std::vector<segment_info>& infos,
              const std::vector<int>& descriptors, segment& s) {
  int problem = 0;
  for (std::int32_t r = 0; r < c.size; ++r) {
    const auto p = static_cast<std::size_t>(r);
    if (r == c.rank) continue;
    if (s.mappings[p]) {
      if (descriptors[p] >= 0) close(descriptors[p]);
      continue;
    }
    if (c.same_process(r) && c.near(r)) {
      auto* theirs = reinterpret_cast<mapping*>(infos[p].mapping);
      theirs->users.fetch_add(1, std::memory_order_relaxed);
      s.set(p, theirs);
    }
    if (descriptors[p] < 0) continue;
    if (!is_announced(descriptors[p], infos[p])) {
      problem = problem ? problem : ESTALE;
    } else if (void* at = map(descriptors[p], infos[p].bytes); at == MAP_FAILED) {
      problem = errno;
    } else {
      s.set(p, new mapping{at, infos[p].bytes});
    }
    close(descriptors[p]);
  }
  return problem;
}

sucl_status fail(const sucl_backend_comm& c, int problem) {
  const std::string text = std::string("memory cannot be shared between the processes of this ") +
                           "node: " + std::strerror(problem);
  const bool too_large = problem == ENOMEM || problem == EFBIG || problem == ENOSPC;
  return c.state->core->fail(too_large ? SUCL_ERROR_OUT_OF_MEMORY : SUCL_ERROR_UNAVAILABLE, problem,
                             text.c_str(),
                             "Raise the memory limit of the job, or turn the backend off with "
                             "SUCL_BACKEND_IPC_ENABLED=0");
}

// The problem that some rank has, or 0; the same on every rank.
sucl_status worst(const sucl_backend_comm& c, int mine, int* all) {
  std::vector<std::int64_t> problems;
  const auto status = gather(c, static_cast<std::int64_t>(mine), problems);
  *all = static_cast<int>(*std::max_element(problems.begin(), problems.end()));
  return status;
}

// Reaches the parts of the peers in one way. Collective.
sucl_status reach(const sucl_backend_comm& c, bool by_proc, const std::vector<segment_info>& infos,
                  segment& s, int* problem) {
  std::vector<int> descriptors(static_cast<std::size_t>(c.size), -1);
  sucl_status status = SUCL_SUCCESS;
  int mine = 0;
  if (by_proc)
    mine = take_by_proc(c, infos, descriptors);
  else
    mine = take_by_socket(c, static_cast<int>(infos[static_cast<std::size_t>(c.rank)].descriptor),
                          descriptors, &status);
  const int mapping = map_peers(c, infos, descriptors, s);
  if (status) return status;
  return worst(c, mine ? mine : mapping, problem);
}

}  // namespace

sucl_status memory_create(sucl_backend_comm* comm, std::uint64_t bytes, sucl_region* region) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  auto made = std::make_unique<segment>();
  made->bytes = std::max<std::uint64_t>(base::round_up(bytes, page), page);
  made->peers.resize(static_cast<std::size_t>(comm->size), nullptr);
  made->mappings.resize(static_cast<std::size_t>(comm->size), nullptr);
  const segment_info mine = make_part(*comm, *made);
  std::vector<segment_info> infos;
  sucl_status status = gather(*comm, mine, infos);
  int problem = 0;
  for (const auto& info : infos) problem = std::max(problem, static_cast<int>(info.problem));
  using handover = sucl_state::handover;
  const auto how = comm->state->how;
  if (!status && !problem) {
    status = reach(*comm, how != handover::socket, infos, *made, &problem);
    // What is mapped by now stays so; every rank sends all the same.
    if (!status && problem && how == handover::any)
      status = reach(*comm, false, infos, *made, &problem);
  }
  if (mine.descriptor >= 0) close(static_cast<int>(mine.descriptor));
  if (status) return status;
  if (problem) return fail(*comm, problem);
  region->bytes = made->bytes;
  region->base = made->peers[static_cast<std::size_t>(comm->rank)];
  region->peers = made->peers.data();
  region->handle = made.release();
  return SUCL_SUCCESS;
}

void memory_destroy(sucl_backend_comm*, sucl_region* region) {
  delete static_cast<segment*>(region->handle);
  region->handle = nullptr;
}

sucl_status memory_read(sucl_backend_comm* comm, std::int32_t rank, void* to, std::uint64_t from,
                        std::uint64_t bytes) {
  if (bytes == 0) return SUCL_SUCCESS;  // there need not be an address
  if (comm->same_process(rank)) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return SUCL_SUCCESS;
  }
  const auto pid = static_cast<pid_t>(comm->infos[static_cast<std::size_t>(rank)].pid);
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const iovec mine{out, bytes};
    const iovec theirs{reinterpret_cast<void*>(from), bytes};
    const ssize_t got = process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
    if (got <= 0) {
      const int problem = got < 0 ? errno : EFAULT;  // nothing was read, and nothing failed
      return comm->state->core->fail(
          problem == ESRCH ? SUCL_ERROR_PEER_LOST : SUCL_ERROR_UNSUPPORTED, problem,
          ("the memory of rank " + std::to_string(rank) +
           " cannot be read: " + std::strerror(problem))
              .c_str(),
          "The system forbids it, the process has ended, or the memory is not there");
    }
    out += got;
    from += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
  return SUCL_SUCCESS;
}

}  // namespace sucl::ipc
