// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/presence.hpp"

#include "base/system/process_stat.hpp"
#include "core/failure/peer_processes.hpp"
#include "core/support/host_identity.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace sucl::core {
namespace {

constexpr int max_ranks = 4096;

int number_of(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return otherwise;
}

// Hydra's proxies start the ranks of a job on a machine, perhaps through other programs.
std::string launching_proxy() {
  for (pid_t process = getppid(); process > 1;) {
    const auto known = base::stat_of(process);
    if (!known) return {};
    if (known->name.rfind("hydra", 0) == 0 || known->name.rfind("slurmstepd", 0) == 0)
      return "proxy " + std::to_string(process);
    process = known->parent;
  }
  return {};
}

std::string name_of_job() {
  if (const char* name = std::getenv("PMIX_NAMESPACE")) return name;
  return launching_proxy();
}

socklen_t address_of(const std::string& job, int rank, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  // The name may be long, and begins with a 0: abstract.
  const std::string name = "sucl-" + std::to_string(getuid()) + "-" +
                           std::to_string(std::hash<std::string>{}(job)) + "-" +
                           std::to_string(rank);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// The process that listens at the address of this rank; 0: none.
pid_t listener(const std::string& job, int rank) {
  sockaddr_un address;
  const socklen_t length = address_of(job, rank, address);
  const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) return -1;
  ucred peer{};
  socklen_t bytes = sizeof peer;
  pid_t found = 0;
  if (connect(s, generic(address), length) == 0 &&
      getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0)
    found = peer.pid;
  else if (errno != ECONNREFUSED)
    found = -1;  // its queue is full: it is there
  close(s);
  return found;
}

}  // namespace

presence::presence()
    : m_job(name_of_job()),
      m_rank(number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, -1)),
      m_size(number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 0)) {
  m_all_near = m_size > 0 && m_size <= max_ranks &&
               m_size == number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0);
  if (m_job.empty() || m_rank < 0) return;
  m_job += host_identity();
  sockaddr_un address;
  const socklen_t length = address_of(m_job, m_rank, address);
  m_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (m_socket >= 0 &&
      (bind(m_socket, generic(address), length) != 0 || listen(m_socket, SOMAXCONN) != 0)) {
    close(m_socket);
    m_socket = -1;
  }
}

presence::~presence() {
  if (m_socket >= 0) close(m_socket);
}

presence::report presence::poll() const {
  report r;
  if (m_socket < 0 || !m_all_near) return r;
  r.known = true;
  for (int rank = 0; rank < m_size; ++rank) {
    if (rank == m_rank) continue;
    const pid_t process = listener(m_job, rank);
    if (process == 0) r.missing.push_back(rank);
    if (process > 0 && is_stopped_process(process)) r.stopped.push_back(rank);
  }
  return r;
}

}  // namespace sucl::core
