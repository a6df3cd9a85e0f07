// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/process_context.hpp"

#include "base/error.hpp"

namespace sucl::core {

void process_context::check_backends(const tune::table& t) const {
  for (const auto& row : t.rows)
    if (!m_settings.find_backend(row.backend))
      base::fail(errc::configuration,
                 row.origin + ": there is no backend '" + row.backend + "' in the configuration",
                 "Correct the name, or add [backends." + row.backend + "]");
}

std::uint64_t process_context::agree_on_id(const sucl_oob& oob, int size) {
  // Rank 0 chooses, among the numbers that are its own: unique in the job, whatever other ranks
  // choose now.
  const std::uint64_t mine = m_ids.fetch_add(1) * static_cast<std::uint64_t>(m_size) +
                             static_cast<std::uint64_t>(m_rank) + 1;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size), mine);
  sucl_oob own = oob;
  if (const auto status = services().oob_allgather(&own, &mine, all.data(), sizeof mine))
    throw_last(status, "", "communicator creation", m_rank);
  return all.front();
}

}  // namespace sucl::core
