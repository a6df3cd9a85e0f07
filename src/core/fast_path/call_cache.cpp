// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/fast_path/call_cache.hpp"

#include <algorithm>

namespace sucl::core {

// Of records with arrays or parts, whose contents count.
bool call_cache::same_contents(const entry& known, sucl_operation asked) const {
  if (known.asked.part_count > 0) {
    if (asked.part_count != known.asked.part_count ||
        std::memcmp(asked.parts, known.asked.parts, asked.part_count * sizeof *asked.parts) != 0)
      return false;
    asked.parts = known.asked.parts;
  } else {
    for (const auto member : operation_arrays) {
      const std::uint64_t *own = known.asked.*member, *theirs = asked.*member;
      if (own && theirs && std::equal(own, own + m_size, theirs)) asked.*member = own;
    }
  }
  return std::memcmp(&known.asked, &asked, sizeof asked) == 0;
}

void call_cache::remember(const sucl_operation& asked, const sucl_operation& record, bool blocking,
                          const backend_instance& via) {
  entry& known = m_entries.slot(key_of(asked, blocking));
  known.asked = asked;
  known.call = {record, blocking, &via, m_epoch, {}};
  keep_arrays(known.asked, m_size, known.arrays);
  for (const auto member : operation_arrays) known.call.record.*member = known.asked.*member;
  // A message that names no_rank is a group of what is left of it, and was not asked for as one.
  known.parts.assign(record.parts, record.parts + record.part_count);
  known.call.record.parts = known.parts.data();
  if (asked.part_count == 0) return;
  known.asked_parts.assign(asked.parts, asked.parts + asked.part_count);
  known.asked.parts = known.asked_parts.data();
}

}  // namespace sucl::core
