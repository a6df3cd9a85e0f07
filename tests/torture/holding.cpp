// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "holding.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sucl::torture {
namespace {

std::int64_t entries(const char* folder) {
  std::error_code ignored;
  std::filesystem::directory_iterator at(folder, ignored), end;
  return std::distance(at, end);
}

}  // namespace

holding holding::now() {
  holding h;
  h.files = entries("/proc/self/fd");
  h.threads = entries("/proc/self/task");
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  while (std::getline(maps, line)) {
    std::int64_t kilobytes = 0;
    char word[64] = "";
    if (std::sscanf(line.c_str(), "%63[A-Za-z_]: %ld kB", word, &kilobytes) == 2) {
      const std::string name = word;
      if (name == "Private_Dirty") h.resident += kilobytes * 1024;
      if (name == "Shared_Dirty") h.shared += kilobytes * 1024;
    } else if (line.find('-') < 20) {
      ++h.regions;
    }
  }
  return h;
}

std::string holding::text() const {
  std::ostringstream out;
  out << resident / 1024 << " KiB private, " << shared / 1024 << " KiB shared, " << files
      << " files, " << threads << " threads, " << regions << " regions";
  return out.str();
}

std::string growth(const std::vector<holding>& samples) {
  if (samples.size() < 8) return "nothing that " + std::to_string(samples.size()) + " looks tell";
  struct quantity {
    const char* name;
    std::int64_t holding::* of;
    std::int64_t slack;  // what comes and goes
  };
  static constexpr quantity all[] = {{"private memory", &holding::resident, 4 << 20},
                                     {"shared memory", &holding::shared, 4 << 20},
                                     {"open files", &holding::files, 4},
                                     {"threads", &holding::threads, 2},
                                     {"mapped regions", &holding::regions, 64}};
  const auto median = [&](std::int64_t holding::* of, std::size_t first, std::size_t last) {
    std::vector<std::int64_t> v;
    for (std::size_t i = first; i < last; ++i) v.push_back(samples[i].*of);
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  std::string grown;
  const std::size_t quarter = samples.size() / 4;
  for (const quantity& q : all) {
    const auto before = median(q.of, 0, quarter);
    const auto after = median(q.of, samples.size() - quarter, samples.size());
    if (after - before <= q.slack) continue;
    grown += std::string(grown.empty() ? "" : "; ") + q.name + " from " + std::to_string(before) +
             " to " + std::to_string(after);
  }
  return grown;
}

}  // namespace sucl::torture
