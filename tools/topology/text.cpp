// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/topology/topology.hpp"

#include "tools/terminal/format.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace sucl::tools {
namespace {

constexpr std::size_t max_pairs = 256;

std::string plural(std::size_t n, const std::string& word) {
  return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
}

std::string rate_text(double bytes_per_second) {
  return number_text(bytes_per_second / 1e9) + " GB/s";
}

// One value, or the least and the greatest.
template <class Text>
std::string range_text(const std::vector<double>& values, Text&& text) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string low = text(*least), high = text(*most);
  return low == high ? low : low + " to " + high;
}

std::string between(int one, int other) {
  const std::string a = "island " + std::to_string(one);
  return one == other ? "within " + a : a + " - island " + std::to_string(other);
}

const member& of(const topology_report& r, int rank) {
  return r.ranks[static_cast<std::size_t>(rank)];
}

std::string summary(const topology_report& r) {
  int nodes = 0, islands = 0;
  for (const member& m : r.ranks) nodes = std::max(nodes, m.node + 1);
  for (const member& m : r.ranks) islands = std::max(islands, m.island + 1);
  return plural(r.ranks.size(), "rank") + " on " + plural(static_cast<std::size_t>(nodes), "node") +
         ", " + plural(static_cast<std::size_t>(islands), "island") + "; started by " +
         r.control_plane.substr(0, r.control_plane.find('\n'));
}

// The ranks as a tree, each island with what is alike in it.
std::string tree(const topology_report& r) {
  std::map<std::pair<int, int>, std::vector<const member*>> islands;
  for (const member& m : r.ranks) islands[{m.node, m.island}].push_back(&m);
  std::string text;
  int node = -1;
  for (const auto& [at, members] : islands) {
    if (std::exchange(node, at.first) != at.first)
      text += "\nnode " + std::to_string(node) + ": " + members.front()->host + "\n";
    const std::string& by = r.within[static_cast<std::size_t>(at.second)];
    text += "  island " + std::to_string(at.second) + ": " +
            (members.front()->device_memory_on_host ? "memory that the host reads"
                                                    : "memory of devices") +
            (by.empty() ? "" : ", collectives by " + by) + "\n";
    for (const member* m : members)
      text += "    rank " + std::to_string(m->rank) + ": process " + std::to_string(m->process) +
              ", " + m->platform + ", " + m->device + "\n";
  }
  return text;
}

std::string links(const topology_report& r) {
  const auto classes = classes_of(r);
  if (classes.empty())
    return "\nOne rank: there are no links. See those of several:\n"
           "  sucl run -n 3 -- sucl info --topology\n";
  std::vector<std::vector<std::string>> rows;
  const bool measured = classes.front().first->seconds.has_value();
  for (const link_class& c : classes) {
    rows.push_back({c.between, c.ranks, c.first->how, c.first->by});
    if (measured) rows.back().insert(rows.back().end(), {c.seconds, c.rate});
  }
  std::vector<std::string> names{"messages", "ranks ", "through ", "backend "};
  if (measured) names.insert(names.end(), {"8 bytes ", "4 MiB "});
  return "\n" + table(names, rows) +
         (r.every_pair ? "" : "Of many pairs of ranks one stands for each two islands.\n");
}

// Of an explanation: how the backend does it, without what was passed over for it.
std::string steps_of(const std::string& explanation) {
  std::string text;
  for (std::size_t at = explanation.find('\n') + 1; at < explanation.size();) {
    const auto end = std::min(explanation.find('\n', at), explanation.size());
    const std::string line = explanation.substr(at, end - at);
    const auto begins = [&](const char* word) { return line.rfind(word, 0) == 0; };
    if (!line.empty() && !begins("  passed ") && !begins("  taken ") && !begins("  bits "))
      text += "  " + line + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace

std::vector<std::pair<int, int>> topology_pairs(const std::vector<member>& ranks) {
  std::vector<std::pair<int, int>> pairs;
  const auto p = static_cast<int>(ranks.size());
  if (ranks.size() <= max_ranks_in_pairs) {
    for (int a = 0; a < p; ++a)
      for (int b = a + 1; b < p; ++b) pairs.emplace_back(a, b);
    return pairs;
  }
  std::map<int, std::vector<int>> islands;
  for (const member& m : ranks) islands[m.island].push_back(m.rank);
  for (const auto& [island, members] : islands)
    if (members.size() > 1 && pairs.size() < max_pairs) pairs.emplace_back(members[0], members[1]);
  for (auto one = islands.begin(); one != islands.end(); ++one)
    for (auto other = std::next(one); other != islands.end() && pairs.size() < max_pairs; ++other)
      pairs.emplace_back(std::minmax(one->second.front(), other->second.front()));
  return pairs;
}

std::string how_reached(const member& a, const member& b, const std::string& by,
                        const std::string& transport) {
  const bool node = a.node == b.node;
  const bool process = a.host == b.host && a.process == b.process;
  if (by == "mpi") return node ? "MPI on the node" : "MPI between nodes";
  if (by == "nccl") return node ? "NCCL on the node" : "NCCL between nodes";
  if (by == "rccl") return node ? "RCCL on the node" : "RCCL between nodes";
  if (by == "kernels") return process ? "peer access" : "peer memory over IPC";
  if (!node) return "the network, by " + (transport.empty() ? by : transport);
  if (by != "messages") return by;
  const std::string memory = process ? "memory of the process" : "shared memory";
  return a.device_memory_on_host && b.device_memory_on_host ? memory
                                                            : memory + ", devices through pinned";
}

std::vector<link_class> classes_of(const topology_report& r) {
  struct numbers {
    std::vector<double> seconds, rates;
  };
  std::vector<link_class> classes;
  std::vector<numbers> all;
  std::map<std::tuple<bool, int, int, std::string>, std::size_t> known;
  for (const topology_link& l : r.links) {
    const auto [one, other] = std::minmax(of(r, l.from).island, of(r, l.to).island);
    const auto [at, added] = known.try_emplace({one != other, one, other, l.how}, classes.size());
    if (added) {
      classes.push_back({between(one, other), one, other, &l, 0, "", "", ""});
      all.emplace_back();
    }
    link_class& c = classes[at->second];
    if (++c.pairs <= 4)
      c.ranks += (c.ranks.empty() ? "" : " ") + std::to_string(l.from) + "-" + std::to_string(l.to);
    if (l.seconds) all[at->second].seconds.push_back(*l.seconds);
    if (l.bytes_per_second) all[at->second].rates.push_back(*l.bytes_per_second);
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].pairs > 4) classes[i].ranks += " and " + std::to_string(classes[i].pairs - 4);
    classes[i].seconds = range_text(all[i].seconds, time_text);
    classes[i].rate = range_text(all[i].rates, rate_text);
  }
  std::vector<link_class> ordered;
  for (const auto& entry : known) ordered.push_back(classes[entry.second]);
  return ordered;
}

std::string topology_text(const topology_report& r) {
  std::string text = summary(r) + "\n" + tree(r) + links(r) + "\n";
  for (const topology_operation& o : r.operations)
    text += o.what + ": executed by " + o.by + "\n" + steps_of(o.explanation);
  return text;
}

nlohmann::ordered_json topology_json(const topology_report& r) {
  using json = nlohmann::ordered_json;
  json ranks = json::array(), links = json::array(), operations = json::array();
  for (const member& m : r.ranks)
    ranks.push_back({{"rank", m.rank},
                     {"node", m.node},
                     {"island", m.island},
                     {"host", m.host},
                     {"process", m.process},
                     {"implementation", m.implementation},
                     {"platform", m.platform},
                     {"device", m.device},
                     {"memory_on_host", m.device_memory_on_host},
                     {"native_memory", m.native_memory}});
  for (const topology_link& l : r.links) {
    json link{{"ranks", {l.from, l.to}}, {"backend", l.by}, {"through", l.how}};
    if (l.seconds) link["short_us"] = *l.seconds * 1e6;
    if (l.bytes_per_second) link["long_gbs"] = *l.bytes_per_second / 1e9;
    links.push_back(std::move(link));
  }
  for (const topology_operation& o : r.operations)
    operations.push_back(
        {{"operation", o.what}, {"backend", o.by}, {"explanation", o.explanation}});
  return {{"control_plane", r.control_plane}, {"ranks", ranks}, {"within_islands", r.within},
          {"every_pair", r.every_pair},       {"links", links}, {"operations", operations}};
}

}  // namespace sucl::tools
