// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/fast_path/call_cache.hpp"

#include <algorithm>

namespace sucl::core {

// Compares the contents of the arrays and parts of two records.
bool call_cache::same_contents(const entry& known, sucl_operation requested) const {
  if (known.requested.part_count > 0) {
    if (requested.part_count != known.requested.part_count ||
        std::memcmp(requested.parts, known.requested.parts,
                    requested.part_count * sizeof *requested.parts) != 0)
      return false;
    requested.parts = known.requested.parts;
  } else {
    for (const auto member : operation_arrays) {
      const std::uint64_t *own = known.requested.*member, *theirs = requested.*member;
      if (own && theirs && std::equal(own, own + m_size, theirs)) requested.*member = own;
    }
  }
  return std::memcmp(&known.requested, &requested, sizeof requested) == 0;
}

void call_cache::remember(const sucl_operation& requested, const sucl_operation& record,
                          bool blocking, const backend_instance& via) {
  entry& known = m_entries.slot(key_of(requested, blocking));
  known.requested = requested;
  known.call = {record, blocking, &via, m_epoch, {}};
  keep_arrays(known.requested, m_size, known.arrays);
  for (const auto member : operation_arrays) known.call.record.*member = known.requested.*member;
  // A message that names no_rank is a group of what is left of it, and was not requested as one.
  known.parts.assign(record.parts, record.parts + record.part_count);
  known.call.record.parts = known.parts.data();
  if (requested.part_count == 0) return;
  known.requested_parts.assign(requested.parts, requested.parts + requested.part_count);
  known.requested.parts = known.requested_parts.data();
}

}  // namespace sucl::core
