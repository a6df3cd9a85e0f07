// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tuning tables of communicators.
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/communicator/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

namespace sucl::core {
namespace {

constexpr const char* no_table = "none";

// What must be the same on every rank, or, on the ranks that `problem` is of, what is wrong.
void agree(const std::vector<std::string>& votes, const std::optional<error_info>& problem) {
  if (problem) throw error(*problem);
  const auto other =
      std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return v != votes.front(); });
  if (other == votes.end()) return;
  base::fail(errc::mismatch,
             "ranks 0 and " + std::to_string(other - votes.begin()) +
                 " name different tuning tables, or one of them cannot be used",
             "Pass the same text on every rank; the rank whose table is wrong says why");
}

}  // namespace

void communicator::use_table(std::shared_ptr<const tune::table> table) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  m_backends.use_table(m_job->settings(), table.get());
  m_pace = tuned_pace(table.get());
  m_tuned = std::move(table);
  m_call_cache = {};
  ++m_cache_epoch;
}

void communicator::use_tuning(const std::string& toml) {
  wait_all();
  meet();
  std::shared_ptr<tune::table> table;
  std::optional<error_info> problem;
  std::string vote = no_table;
  try {
    if (!toml.empty()) {
      table = std::make_shared<tune::table>(tune::table_from_toml(toml, "given to use_tuning()"));
      m_job->check_backends(*table);
      vote = std::to_string(tune::hash(*table));
    }
  } catch (const error& e) {
    problem = e.info();
    problem->rank = rank();
    vote = "wrong";
  }
  agree(exchange({m_job->control(), m_group}, size(), vote), problem);
  use_table(std::move(table));
}

// Said once, whatever number of communicators.
void communicator::compare_device() const {
  if (!m_tuned || rank() != 0) return;
  tune::table_machine here = m_tuned->machine;
  here.device = m_device.self.device;
  const std::string why = tune::foreign(*m_tuned, here);
  static std::atomic<bool> said{false};
  if (why.empty() || said.exchange(true)) return;
  base::log(base::log_level::warn, "tuning", m_tuned->file, " may not fit: ", why,
            ". Run sucl tune --device gpu here");
}

}  // namespace sucl::core
