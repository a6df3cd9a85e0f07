// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The part of a description that names wires: docs/design/plans/simulation.md.
#include "base/text.hpp"
#include "sim/model/machine_reading.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sucl::sim::file {
namespace {

using base::toml_document;
using base::toml_entry;
using words = std::vector<std::string>;

constexpr const char* transport_name = "link";

// What [graph] says of its nodes.
struct nodes {
  std::int32_t ranks = 0;  // of one copy
  std::int32_t copies = 1;
  words of_copy, common;  // switches

  std::int32_t all_ranks() const { return ranks * copies; }
};

words names_of(const toml_entry& entry, const toml_document& document, const std::string& name) {
  const toml::array* list = entry.node->as_array();
  if (list == nullptr) refuse_value(*entry.node, document, name, "a list of names");
  if (list->size() > max_switches)
    base::refuse(entry.origin, name + " has " + std::to_string(list->size()) + " names",
                 "Give at most " + std::to_string(max_switches) + ".");
  words all;
  for (const toml::node& one : *list) all.push_back(text_of(one, document, name));
  return all;
}

// Whether a name reads as a number, as ranks do.
bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

// Reads links once the nodes are known.
class link_reader {
 public:
  link_reader(machine& m, const nodes& n, const toml_document& document)
      : m_machine(m), m_nodes(n), m_document(document) {
    for (std::int32_t c = 0; c < n.copies; ++c)
      for (const std::string& name : n.of_copy)
        add_switch(n.copies > 1 ? name + "." + std::to_string(c) : name);
    for (const std::string& name : n.common) add_switch(name);
  }

  void read(const toml::table& table, const std::string& prefix) {
    link one;
    bool in_copies = true;
    std::vector<std::pair<const toml_entry*, bool>> ends;  // and whether both ways
    const std::vector<toml_entry> entries = base::in_order(table, m_document);
    for (const toml_entry& entry : entries) {
      const std::string name = prefix + entry.key;
      if (entry.key == "bandwidth")
        one.bandwidth =
            real_of(*entry.node, m_document, name, {min_bandwidth, bandwidths.high}, gigabytes);
      else if (entry.key == "latency")
        one.latency = real_of(*entry.node, m_document, name, times, microseconds);
      else if (entry.key == "of")
        in_copies = is_of_copies(*entry.node, name);
      else if (entry.key == "both" || entry.key == "one_way")
        ends.emplace_back(&entry, entry.key == "both");
      else
        base::refuse(
            entry.origin, "unknown key '" + name + "'",
            base::did_you_mean(entry.key, words{"both", "one_way", "bandwidth", "latency", "of"}));
    }
    if (ends.empty() || one.bandwidth == 0)
      base::refuse(base::origin_of(m_document, table.source()),
                   prefix + (ends.empty() ? "both is missing" : "bandwidth is missing"),
                   "Write both = [[0, 1]] or one_way = [[0, 1]], and bandwidth = 25.0.");
    for (const auto& [entry, both] : ends) read_ends(*entry, both, one, in_copies, prefix);
  }

 private:
  void add_switch(std::string name) {
    const auto node =
        m_nodes.all_ranks() + static_cast<std::int32_t>(m_machine.wires.switches.size());
    if (is_number(name) || !m_switches.emplace(name, node).second)
      base::fail(errc::configuration,
                 m_document.name + ": two nodes of the graph are called '" + name + "'",
                 "Give each switch a name of its own that is no number.");
    m_machine.wires.switches.push_back(std::move(name));
  }

  bool is_of_copies(const toml::node& node, const std::string& name) const {
    const std::string of = node.is_string() ? text_of(node, m_document, name) : std::string();
    if (of != "copy" && of != "machine")
      refuse_value(node, m_document, name, "\"copy\", each copy has these links, or \"machine\"");
    return of == "copy";
  }

  void read_ends(const toml_entry& entry, bool both, const link& one, bool in_copies,
                 const std::string& prefix) {
    const std::string name = prefix + entry.key;
    const toml::array* list = entry.node->as_array();
    if (list == nullptr)
      refuse_value(*entry.node, m_document, name,
                   "a list of pairs, as in [[0, 1], [0, \"switch\"]]");
    for (const toml::node& pair : *list) {
      const toml::array* two = pair.as_array();
      if (two == nullptr || two->size() != 2)
        refuse_value(pair, m_document, name, "pairs, as in [0, 1] or [0, \"switch\"]");
      for (std::int32_t c = 0; c < (in_copies ? m_nodes.copies : 1); ++c) {
        const std::int32_t copy = in_copies ? c : -1;
        link l = one;
        l.from = node_of(*two->get(0), name, copy);
        l.to = node_of(*two->get(1), name, copy);
        if (l.from == l.to) refuse_value(pair, m_document, name, "two different nodes");
        add(l, entry);
        std::swap(l.from, l.to);
        if (both) add(l, entry);
      }
    }
  }

  void add(const link& l, const toml_entry& entry) {
    if (m_machine.wires.links.size() == max_links)
      base::refuse(entry.origin, "the graph has more than " + std::to_string(max_links) + " links",
                   "Describe larger machines by [[level]].");
    m_machine.wires.links.push_back(l);
  }

  // `copy` -1: of the machine.
  std::int32_t node_of(const toml::node& node, const std::string& name, std::int32_t copy) const {
    if (node.is_integer()) {
      const std::int32_t ranks = copy < 0 ? m_nodes.all_ranks() : m_nodes.ranks;
      return whole_of(node, m_document, name, {0, ranks - 1}) + std::max(0, copy) * m_nodes.ranks;
    }
    const std::string word = text_of(node, m_document, name);
    const bool suffix =
        copy >= 0 && m_nodes.copies > 1 &&
        std::find(m_nodes.of_copy.begin(), m_nodes.of_copy.end(), word) != m_nodes.of_copy.end();
    const auto known = m_switches.find(suffix ? word + "." + std::to_string(copy) : word);
    if (known == m_switches.end())
      base::refuse(base::origin_of(m_document, node.source()),
                   name + ": there is no switch '" + word + "'",
                   base::did_you_mean(word, m_machine.wires.switches));
    return known->second;
  }

  machine& m_machine;
  const nodes& m_nodes;
  const toml_document& m_document;
  std::map<std::string, std::int32_t> m_switches;
};

level level_of(const char* name, std::int32_t groups, double overhead) {
  level l;
  l.name = name;
  l.groups = groups;
  l.transports.push_back({transport_name, 0, overhead, 0});
  return l;
}

}  // namespace

void read_graph(machine& m, const toml::table& table, const toml_document& document) {
  nodes n;
  double overhead = 0;
  const toml_entry* links = nullptr;
  const std::vector<toml_entry> entries = base::in_order(table, document);
  for (const toml_entry& entry : entries) {
    const std::string name = "graph." + entry.key;
    if (entry.key == "ranks")
      n.ranks = whole_of(*entry.node, document, name, rank_counts);
    else if (entry.key == "copies")
      n.copies = whole_of(*entry.node, document, name, rank_counts);
    else if (entry.key == "overhead")
      overhead = real_of(*entry.node, document, name, times, microseconds);
    else if (entry.key == "switches")
      n.of_copy = names_of(entry, document, name);
    else if (entry.key == "common")
      n.common = names_of(entry, document, name);
    else if (entry.key == "link")
      links = &entry;
    else
      base::refuse(entry.origin, "unknown key '" + name + "'",
                   base::did_you_mean(entry.key, words{"ranks", "copies", "overhead", "switches",
                                                       "common", "link"}));
  }
  const std::string origin = base::origin_of(document, table.source());
  if (n.ranks == 0 || links == nullptr || !links->node->is_array())
    base::refuse(origin, n.ranks == 0 ? "graph.ranks is missing" : "the graph has no links",
                 "Write [graph] with ranks = 8, and [[graph.link]] for its links.");
  if (std::int64_t{n.ranks} * n.copies > max_machine_ranks ||
      n.of_copy.size() * static_cast<std::size_t>(n.copies) > max_switches)
    base::refuse(origin, std::to_string(n.copies) + " copies of this graph are too many nodes",
                 "Give at most " + std::to_string(max_machine_ranks) + " ranks and " +
                     std::to_string(max_switches) + " switches in all.");
  if (n.copies > 1) m.levels.push_back(level_of("copies", n.copies, overhead));
  m.levels.push_back(level_of("graph", n.ranks, overhead));
  link_reader reader(m, n, document);
  const toml::array& list = *links->node->as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = "graph.link[" + std::to_string(i) + "]";
    reader.read(base::table_of(*list.get(i), document, name), name + ".");
  }
  if (m.wires.links.empty())
    base::refuse(origin, "the graph has no links", "Write both = [[0, 1]] in [[graph.link]].");
}

std::string graph_to_toml(const machine& m) {
  const auto quoted = [&](std::int32_t node) {
    const std::string name = node_name(m, node);
    return node < rank_count(m) ? name : "\"" + name + "\"";
  };
  std::string out = "\n[graph]\nranks = " + std::to_string(m.levels.back().groups) + "\n";
  if (m.levels.size() > 1) out += "copies = " + std::to_string(m.levels[0].groups) + "\n";
  const double overhead = m.levels.back().transports.front().overhead;
  if (overhead > 0) out += "overhead = " + number_in(overhead, microseconds) + "\n";
  if (!m.wires.switches.empty()) {
    words names;
    for (const std::string& name : m.wires.switches) names.push_back("\"" + name + "\"");
    out += "common = [" + base::join(names, ", ") + "]\n";
  }
  const std::vector<link>& all = m.wires.links;
  for (std::size_t i = 0; i < all.size();) {
    out += "\n[[graph.link]]\nof = \"machine\"\none_way = [";
    const link first = all[i];
    for (const char* comma = "";
         i < all.size() && all[i].bandwidth == first.bandwidth && all[i].latency == first.latency;
         ++i, comma = ", ")
      out += comma + ("[" + quoted(all[i].from)) + ", " + quoted(all[i].to) + "]";
    out += "]\nbandwidth = " + number_in(first.bandwidth, gigabytes) + "\n";
    if (first.latency > 0) out += "latency = " + number_in(first.latency, microseconds) + "\n";
  }
  return out;
}

}  // namespace sucl::sim::file
