// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tuning tables of communicators.
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/communicator/communicator.hpp"
#include "core/exchange/readiness.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

namespace sucl::core {

void communicator::use_table(std::shared_ptr<const tune::table> table) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  m_backends.use_table(m_job->settings(), table.get());
  m_pace = tuned_pace(table.get());
  m_tuned = std::move(table);
  m_call_cache.clear();
  ++m_cache_epoch;
}

void communicator::use_tuning(const std::string& toml) {
  wait_all();
  meet();
  std::shared_ptr<tune::table> table;
  readiness mine{"no table", {}};
  try {
    if (!toml.empty()) {
      table = std::make_shared<tune::table>(tune::table_from_toml(toml, "given to use_tuning()"));
      m_job->check_backends(*table);
      mine.choice = std::to_string(tune::hash(*table));
    }
  } catch (const error& e) {
    mine.wrong = e.info();
  }
  const int other =
      agree({m_job->control(), m_group}, rank(), size(), mine, "cannot use its tuning table");
  if (other != 0)
    base::fail(errc::mismatch,
               "ranks 0 and " + std::to_string(other) + " name different tuning tables",
               "Pass the same text on every rank");
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
