// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/topology.hpp"

#include "base/error.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>

namespace sucl::core {
namespace {

std::string host_name() {
  std::array<char, 256> text{};
  return gethostname(text.data(), text.size() - 1) == 0 ? std::string(text.data()) : "unknown";
}

void gather(const sucl_oob& oob, const void* mine, void* all, std::uint64_t bytes) {
  sucl_oob channel = oob;
  if (const auto status = services().oob_allgather(&channel, mine, all, bytes)) throw_last(status);
}

// FNV-1a: the same in every build.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char byte : text) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return value;
}

// One line a field; fields hold no line breaks.
std::string pack(const std::vector<std::string>& fields) {
  std::string text;
  for (const auto& f : fields) {
    for (char c : f) text += c == '\n' ? ' ' : c;
    text += '\n';
  }
  return text;
}

std::vector<std::string> unpack(const std::string& text) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    fields.push_back(text.substr(at, end - at));
  return fields;
}

// The first lines in which two texts differ, as "here, but there".
std::string first_difference(const std::string& a, const std::string& b) {
  const auto left = unpack(a);
  const auto right = unpack(b);
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string x = i < left.size() ? left[i] : "nothing more";
    const std::string y = i < right.size() ? right[i] : "nothing more";
    if (x != y) return x + ", but " + y;
  }
  return {};
}

// Compares what has to be the same on every rank; the values are only sent where they differ.
void check_settings(const sucl_oob& oob, int rank, const std::string& mine,
                    const std::vector<std::string>& hashes) {
  if (std::all_of(hashes.begin(), hashes.end(), [&](auto& h) { return h == hashes[0]; })) return;
  const auto all = exchange(oob, rank, static_cast<int>(hashes.size()), mine);
  std::size_t other = 1;
  while (other + 1 < all.size() && all[other] == all[0]) ++other;
  base::fail(errc::configuration,
             "the configuration of ranks 0 and " + std::to_string(other) +
                 " differs: " + first_difference(all[0], all[other]),
             "Give every rank the same configuration file and SUCL_ variables; `sucl info` "
             "prints the values and where each came from");
}

}  // namespace

std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat space{};
  if (stat("/proc/self/ns/pid", &space) == 0) boot += "/" + std::to_string(space.st_ino);
  // Containers of one machine may share the kernel but not the network, nor memory.
  return boot + "/" + host_name();
}

std::vector<std::string> exchange(const sucl_oob& oob, int rank, int size,
                                  const std::string& mine) {
  (void)rank;
  const auto p = static_cast<std::size_t>(size);
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(p);
  gather(oob, &length, lengths.data(), sizeof length);
  const auto most = *std::max_element(lengths.begin(), lengths.end());
  std::vector<char> padded(most + 1), all((most + 1) * p);
  std::copy(mine.begin(), mine.end(), padded.begin());
  gather(oob, padded.data(), all.data(), most + 1);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < p; ++r) texts.emplace_back(all.data() + r * (most + 1), lengths[r]);
  return texts;
}

topology discover(const sucl_oob& oob, int rank, int size, const self_description& self,
                  std::uint64_t node_size) {
  const auto texts =
      exchange(oob, rank, size,
               pack({host_name(), host_identity(), std::to_string(getpid()), self.platform,
                     self.implementation, self.sycl_backend, self.device,
                     self.device_memory_on_host ? "1" : "0", std::to_string(hash(self.settings))}));
  topology t;
  t.rank = rank;
  std::vector<std::string> hashes;
  std::vector<std::string> identities;
  std::map<std::string, int> nodes;
  std::map<int, int> on_node;
  for (int r = 0; r < size; ++r) {
    const auto f = unpack(texts[static_cast<std::size_t>(r)]);
    if (f.size() != 9)
      base::fail(errc::mismatch, "rank " + std::to_string(r) + " runs another version of SuCL",
                 "Start every rank with the same build");
    const std::string node_key =
        node_size ? std::to_string(static_cast<std::uint64_t>(r) / node_size) : f[1];
    member m;
    m.rank = r;
    m.node = nodes.emplace(node_key, static_cast<int>(nodes.size())).first->second;
    m.local_rank = on_node[m.node]++;
    m.host = f[0];
    m.process = std::stoll(f[2]);
    m.platform = f[3];
    m.implementation = f[4];
    m.sycl_backend = f[5];
    m.device = f[6];
    m.device_memory_on_host = f[7] == "1";
    t.device_memory_everywhere_on_host &= m.device_memory_on_host;
    hashes.push_back(f[8]);
    identities.push_back(f[1]);
    t.node_of.push_back(m.node);
    t.members.push_back(std::move(m));
  }
  check_settings(oob, rank, self.settings, hashes);
  t.nodes = static_cast<int>(nodes.size());
  t.local_size = on_node[t.node_of[static_cast<std::size_t>(rank)]];
  for (int r = 0; r < size; ++r)
    if (r != rank &&
        identities[static_cast<std::size_t>(r)] == identities[static_cast<std::size_t>(rank)])
      t.same_host.push_back(r);
  return t;
}

}  // namespace sucl::core
