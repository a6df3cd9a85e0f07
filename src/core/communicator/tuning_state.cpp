// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/tuning_state.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/exchange/readiness.hpp"

#include <atomic>
#include <utility>

namespace sucl::core {

void tuning_state::use(std::shared_ptr<const tune::table> table) {
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
  m_context.backends.use_table(m_context.owner->settings(), table.get());
  m_pace = tuned_pace(table.get());
  m_table = std::move(table);
  m_calls.clear();
}

void tuning_state::use_text(const std::string& toml) {
  std::shared_ptr<tune::table> table;
  readiness mine{"no table", {}};
  try {
    if (!toml.empty()) {
      table = std::make_shared<tune::table>(tune::table_from_toml(toml, "given to use_tuning()"));
      m_context.owner->check_backends(*table);
      mine.choice = std::to_string(tune::hash(*table));
    }
  } catch (const error& e) {
    mine.wrong = e.info();
  }
  const int other = agree(m_context.oob(), m_context.rank(), m_context.size(), mine,
                          "cannot use its tuning table");
  if (other != 0)
    base::fail(errc::mismatch,
               "ranks 0 and " + std::to_string(other) + " name different tuning tables",
               "Pass the same text on every rank");
  use(std::move(table));
}

void tuning_state::compare_device() const {
  if (!m_table || m_context.rank() != 0) return;
  tune::table_machine here = m_table->machine;
  here.device = m_context.device.self.device;
  const std::string why = tune::foreign(*m_table, here);
  static std::atomic<bool> logged{false};
  if (why.empty() || logged.exchange(true)) return;
  base::log(base::log_level::warn, "tuning", m_table->file, " may not fit: ", why,
            ". Run sucl tune --device gpu here");
}

}  // namespace sucl::core
