// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The processes of a job over TCP, in one process: each has a thread that starts it.
#pragma once

#include "job_process.hpp"
#include "store/identity.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sucl::testing {

/// What a process says of its start.
struct outcome {
  std::shared_ptr<tcp::job_process> process;  ///< null where it has failed
  tcp::problem why;
};

/// One process of a job.
struct part {
  int rank = 0;
  int size = 1;
  std::string secret;  ///< empty: that of the id
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds long_wait{60'000};
  std::function<void(const std::string&)> late = [](const std::string&) {};
};

class tcp_job {
 public:
  explicit tcp_job(int reactors = 1) {
    for (int i = 0; i < reactors; ++i) m_reactors.push_back(std::make_shared<tcp::reactor>());
    m_id = tcp::make_identity(m_reactors.front(), "loopback", 0, m_server);
  }

  const tcp::identity& id() const { return m_id; }
  tcp::store_server& server() { return *m_server; }
  const std::shared_ptr<tcp::reactor>& loop(int rank) const {
    return m_reactors[static_cast<std::size_t>(rank) % m_reactors.size()];
  }

  outcome start(const part& p) const {
    tcp::job_process_settings s;
    s.rank = p.rank;
    s.size = p.size;
    s.secret = p.secret.empty() ? m_id.secret : p.secret;
    s.loopback = true;
    s.timeout = p.timeout;
    s.long_wait = p.long_wait;
    s.late = p.late;
    s.refused = [server = m_server] { return server->refused(); };
    const auto made = std::make_shared<tcp::job_process>(loop(p.rank), s);
    tcp::tcp_store store(loop(p.rank), s.secret, m_id.hosts(), 0, [made] { made->check_wait(); });
    try {
      made->start(store);
      return {made, {}};
    } catch (const tcp::problem& why) {
      return {nullptr, why};
    }
  }

  std::vector<outcome> start(const std::vector<part>& parts) const {
    std::vector<outcome> all(parts.size());
    each(static_cast<int>(parts.size()), [&](int i) {
      all[static_cast<std::size_t>(i)] = start(parts[static_cast<std::size_t>(i)]);
    });
    return all;
  }

  /// Runs a body for each rank, in a thread each.
  static void each(int size, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) threads.emplace_back(body, r);
    for (auto& t : threads) t.join();
  }

 private:
  std::vector<std::shared_ptr<tcp::reactor>> m_reactors;
  std::shared_ptr<tcp::store_server> m_server;
  tcp::identity m_id;
};

inline std::vector<part> whole_job(int size) {
  std::vector<part> parts(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    parts[static_cast<std::size_t>(r)].rank = r;
    parts[static_cast<std::size_t>(r)].size = size;
  }
  return parts;
}

}  // namespace sucl::testing
