// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/farewell.hpp"

#include "runtime/topology.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// A process that ends in good order has sent all that the others need before.
constexpr auto grace = 2s;
constexpr auto pause = 1ms;

}  // namespace

farewell::farewell(const sucl_bootstrap& control, sucl_group* everyone)
    : m_control(control),
      m_everyone(everyone),
      m_rank(control.group_rank(everyone)),
      m_size(control.group_size(everyone)) {
  const sucl_oob oob{&control, everyone};
  const auto hosts = exchange(oob, m_size, host_identity());
  const auto pids = exchange(oob, m_size, std::to_string(getpid()));
  for (int r = 0; r < m_size; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (r != m_rank && hosts[i] == hosts[static_cast<std::size_t>(m_rank)])
      m_peers.add(r, std::stoll(pids[i]));
  }
}

void farewell::leave() {
  const char left = 1;
  for (int r = 0; r < m_size; ++r)
    if (r != m_rank) m_control.notify(m_everyone, r, &left, sizeof left);
}

std::string farewell::wait() {
  // Static: given up, the exchange may still write to them.
  static char mine = 1;
  static std::vector<char> all;
  all.assign(static_cast<std::size_t>(m_size), 0);
  sucl_oob_request* request = nullptr;
  if (m_control.allgather_start(m_everyone, &mine, all.data(), 1, &request))
    return "the control plane failed";
  std::optional<std::chrono::steady_clock::time_point> death;
  for (;;) {
    std::int32_t done = 0;
    if (m_control.test(m_everyone, request, &done)) return "the control plane failed";
    if (done) {
      m_control.group_free(m_everyone);
      return {};
    }
    char letter = 0;
    std::int32_t source = -1;
    std::uint64_t bytes = 0;
    if (!m_control.poll(m_everyone, &source, &letter, sizeof letter, &bytes) && source >= 0)
      return "rank " + std::to_string(source) + " has left after an error";
    const auto ended = m_peers.ended();
    const auto now = std::chrono::steady_clock::now();
    if (!ended.empty() && !death) death = now;
    if (death && now - *death > grace)
      return "the process of rank " + std::to_string(ended.front()) + " has ended";
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace sucl::core
