// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/layout.hpp"

#include "interposer/arguments/types.hpp"

#include <algorithm>

namespace sucl::interposer::device {
namespace {

// Appends a row, to the one before where they touch or are of one pattern.
void append(std::vector<rows>& to, std::ptrdiff_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  if (!to.empty()) {
    rows& last = to.back();
    if (last.count == 1 && last.end() == offset) return void(last.bytes += bytes);
    if (last.bytes == bytes && last.count == 1) last.pitch = offset - last.offset;
    if (last.bytes == bytes &&
        offset == last.offset + static_cast<std::ptrdiff_t>(last.count) * last.pitch)
      return void(++last.count);
  }
  to.push_back({offset, bytes, 1, 0});
}

// The bytes of one element. The library itself marks them, by unpacking into memory of zeros.
std::vector<rows> rows_of(MPI_Datatype type, std::uint64_t size) {
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_true_extent(type, &lower, &extent);
  const std::vector<char> packed(size, '\xff');
  std::vector<char> marked(static_cast<std::size_t>(extent), '\0');
  int at = 0;
  PMPI_Unpack(packed.data(), static_cast<int>(size), &at, marked.data() - lower, 1, type,
              MPI_COMM_SELF);
  std::vector<rows> found;
  for (auto from = marked.begin();
       (from = std::find(from, marked.end(), '\xff')) != marked.end();) {
    const auto until = std::find(from, marked.end(), '\0');
    append(found, lower + (from - marked.begin()), static_cast<std::size_t>(until - from));
    from = until;
  }
  return found;
}

}  // namespace

void add_rows(std::vector<rows>& to, std::ptrdiff_t displacement, std::int64_t elements,
              MPI_Datatype type) {
  if (elements <= 0) return;
  const type_facts facts = facts_of(type);
  if (!facts.usable || facts.size == 0) return;
  if (facts.dense || facts.predefined)
    return append(to, displacement, static_cast<std::size_t>(elements * facts.extent));
  const std::vector<rows> one = rows_of(type, facts.size);
  for (std::int64_t e = 0; e < elements; ++e)
    for (const rows& r : one)
      for (std::size_t k = 0; k < r.count; ++k)
        append(
            to,
            displacement + e * facts.extent + r.offset + static_cast<std::ptrdiff_t>(k) * r.pitch,
            r.bytes);
}

}  // namespace sucl::interposer::device
