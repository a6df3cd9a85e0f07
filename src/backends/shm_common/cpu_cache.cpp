// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_common/cpu_cache.hpp"

#include "core/operation/operation.hpp"
#include "core/staging/blocks.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace sucl::core {
namespace {

// How many processors a list such as "0-3,8" has.
int count_processors(std::istream& list) {
  int count = 0;
  for (int first = 0; list >> first; list.get()) {
    int last = first;
    if (list.peek() == '-') list.get(), list >> last;
    count += last - first + 1;
  }
  return count;
}

}  // namespace

shared_cache last_cache_of(const std::string& folder) {
  shared_cache last;
  int highest = 0;
  for (int i = 0;; ++i) {
    const std::string at = folder + "/index" + std::to_string(i) + "/";
    std::ifstream level_file(at + "level"), size_file(at + "size"), list(at + "shared_cpu_list");
    int level = 0;
    std::uint64_t size = 0;
    if (!(level_file >> level)) break;
    if (level < highest || !(size_file >> size)) continue;
    const int unit = size_file.get();
    highest = level;
    last.bytes = size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
    last.processors = std::max(1, count_processors(list));
  }
  return last;
}

shared_cache last_cache() {
  static const shared_cache last = [] {
    const shared_cache found = last_cache_of("/sys/devices/system/cpu/cpu0/cache");
    return found.bytes > 0 ? found : shared_cache{std::uint64_t{32} << 20, 8};
  }();
  return last;
}

std::uint64_t bytes_touched(const sucl_operation& o, int ranks) noexcept {
  const auto size = static_cast<std::uint64_t>(ranks);
  const bool from_root =
      o.kind == SUCL_KIND_BROADCAST || o.kind == SUCL_KIND_SCATTER || o.kind == SUCL_KIND_SCATTERV;
  const bool to_root =
      o.kind == SUCL_KIND_REDUCE || o.kind == SUCL_KIND_GATHER || o.kind == SUCL_KIND_GATHERV;
  const std::uint64_t sources = from_root ? 1 : size;
  // The root's own memory is input and output of a broadcast.
  const std::uint64_t sinks = to_root ? 1 : o.kind == SUCL_KIND_BROADCAST ? size - 1 : size;
  std::uint64_t block = o.count, all = size * o.count;
  if (o.kind == SUCL_KIND_ALLGATHERV || o.kind == SUCL_KIND_REDUCE_SCATTER) {
    all = 0;
    for (int r = 0; r < ranks; ++r) all += o.recv_counts[r];
    block = all / size;
  }
  const std::uint64_t elements = sources * (has_source_blocks(o.kind) ? all : block) +
                                 sinks * (has_sink_blocks(o.kind) ? all : block);
  return elements * o.element_size / size;
}

}  // namespace sucl::core
