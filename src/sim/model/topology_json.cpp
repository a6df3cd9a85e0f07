// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/topology_json.hpp"

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "sim/model/infragraph.hpp"
#include "sim/model/topology_builder.hpp"

#include <algorithm>
#include <vector>

namespace sucl::sim {
namespace file {

using nlohmann::json;

void refuse_topology(const std::string& where, const std::string& what, const std::string& cure) {
  base::fail(errc::configuration, where + ": " + what, cure);
}

const json& need(const json& from, const char* name, const std::string& where) {
  const auto at = from.is_object() ? from.find(name) : from.end();
  if (!from.is_object() || at == from.end())
    refuse_topology(where, std::string("there is no \"") + name + "\"", "Add it.");
  return *at;
}

const json& list_in(const json& from, const char* name, const std::string& where) {
  const json& list = need(from, name, where);
  if (!list.is_array())
    refuse_topology(where, std::string("\"") + name + "\" is no list", "Write a list.");
  return list;
}

double real_in(const json& value, const char* name, const std::string& where,
               base::bounds<double> allowed) {
  if (!value.is_number())
    refuse_topology(where, std::string("\"") + name + "\" is no number", "Write a number.");
  base::check_bounds(where, name, value.get<double>(), allowed);
  return value.get<double>();
}

std::string text_in(const json& from, const char* name, const std::string& where) {
  const json& value = need(from, name, where);
  if (!value.is_string())
    refuse_topology(where, std::string("\"") + name + "\" is no text", "Write a text.");
  return value.get<std::string>();
}

std::int32_t topology_builder::add_node(const std::string& name, bool rank) {
  if (m_nodes.size() >= max_switches)
    refuse_topology(m_origin, "it has more than " + std::to_string(max_switches) + " nodes",
                    "Describe larger machines by [[level]] in TOML.");
  const auto [at, fresh] = m_numbers.emplace(name, static_cast<std::int32_t>(m_nodes.size()));
  if (!fresh) refuse_topology(m_origin, "two nodes are called '" + name + "'", "Rename one.");
  m_nodes.push_back({name, rank, {}, {}});
  return at->second;
}

std::int32_t topology_builder::find(const std::string& name, const std::string& where) const {
  const auto at = m_numbers.find(name);
  if (at == m_numbers.end())
    refuse_topology(where, "there is no node '" + name.substr(0, 80) + "'",
                    "Add it, or correct the name.");
  return at->second;
}

void topology_builder::add_link(std::int32_t from, std::int32_t to, double bandwidth,
                                double latency) {
  if (from == to) return;
  node& n = m_nodes[static_cast<std::size_t>(from)];
  if (n.to.emplace(to, wire{}).second && ++m_links > max_links)
    refuse_topology(m_origin, "it has more than " + std::to_string(max_links) + " links",
                    "Describe larger machines by [[level]] in TOML.");
  n.to[to] = {bandwidth, latency};
  m_nodes[static_cast<std::size_t>(to)].from.insert(from);
}

// A name that a description may have, and no other node of it.
std::string topology_builder::own_name(const std::string& name) {
  std::string own;
  for (const char c : name.substr(0, 80)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain)
      own += c;
    else if (!own.empty() && own.back() != '.')
      own += '.';
  }
  while (!own.empty() && own.back() == '.') own.pop_back();
  if (own.find_first_not_of("0123456789") == std::string::npos) own = "node" + own;
  std::string unique = own;
  for (int i = 1; !m_taken.insert(unique).second; ++i) unique = own + "_" + std::to_string(i);
  return unique;
}

void topology_builder::cut(std::int32_t from, std::int32_t to) {
  m_nodes[static_cast<std::size_t>(from)].to.erase(to);
  m_nodes[static_cast<std::size_t>(to)].from.erase(from);
}

// Switches that lead nowhere, and those that only join two nodes.
void topology_builder::simplify() {
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < m_nodes.size(); ++i) open.push_back(static_cast<std::int32_t>(i));
  while (!open.empty()) {
    const std::int32_t at = open.back();
    open.pop_back();
    node& n = m_nodes[static_cast<std::size_t>(at)];
    std::set<std::int32_t> near = n.from;
    for (const auto& [to, wire] : n.to) near.insert(to);
    if (n.rank || near.empty() || near.size() > 2) continue;
    const std::vector<std::int32_t> ends(near.begin(), near.end());
    if (ends.size() == 2) {
      // Beside a link that is there already it is another one, and stays.
      const auto linked = [&](std::int32_t a, std::int32_t b) {
        return m_nodes[static_cast<std::size_t>(a)].to.count(b) > 0;
      };
      if (linked(ends[0], ends[1]) || linked(ends[1], ends[0])) continue;
      for (const auto& [a, b] : {std::pair(ends[0], ends[1]), std::pair(ends[1], ends[0])}) {
        if (!linked(a, at) || !linked(at, b)) continue;
        const wire in = m_nodes[static_cast<std::size_t>(a)].to[at], out = n.to[b];
        add_link(a, b, std::min(in.bandwidth, out.bandwidth), in.latency + out.latency);
      }
    }
    for (const std::int32_t end : ends) {
      cut(at, end);
      cut(end, at);
      open.push_back(end);
    }
  }
}

machine topology_builder::take(const std::string& name, const std::string& summary) {
  simplify();
  machine m;
  m.name = own_name(name);
  m_taken.clear();
  m.summary = summary;
  std::vector<std::int32_t> number(m_nodes.size(), -1);
  std::int32_t ranks = 0;
  for (std::size_t i = 0; i < m_nodes.size(); ++i)
    if (m_nodes[i].rank) number[i] = ranks++;
  if (ranks == 0)
    refuse_topology(m_origin, "no node is a rank",
                    "Say which nodes compute: see the documentation of machines.");
  for (std::size_t i = 0; i < m_nodes.size(); ++i) {
    if (m_nodes[i].rank || m_nodes[i].to.empty()) continue;
    number[i] = ranks + static_cast<std::int32_t>(m.wires.switches.size());
    m.wires.switches.push_back(own_name(m_nodes[i].name));
  }
  for (std::size_t i = 0; i < m_nodes.size(); ++i)
    for (const auto& [to, wire] : m_nodes[i].to) {
      if (number[static_cast<std::size_t>(to)] < 0) continue;  // it leads nowhere from there
      m.wires.links.push_back({number[i], number[static_cast<std::size_t>(to)],
                               wire.bandwidth * gigabytes_a_second, wire.latency});
    }
  if (m.wires.links.empty()) refuse_topology(m_origin, "no links join its ranks", "Add links.");
  level l;
  l.name = "graph";
  l.groups = ranks;
  l.transports.push_back({"link", 0, 0, 0});
  m.levels.push_back(l);
  check(m);
  return m;
}

}  // namespace file

namespace {

using nlohmann::json;
using namespace file;

constexpr int max_depth = 12;

// The id of a node, as (0, 'GPU', 1) or 3, in one form whatever it is.
std::string id_of(const json& id, const std::string& where) {
  if (!id.is_string() && !id.is_number_integer() && !id.is_array())
    refuse_topology(where, "an id is no text, number or list of these", "Write such an id.");
  return id.is_string() ? id.get<std::string>() : id.dump();
}

bool names_gpu(const json& id) {
  if (id.is_string()) return id.get<std::string>().find("GPU") != std::string::npos;
  return id.is_array() && std::any_of(id.begin(), id.end(), [](const json& part) {
           return part.is_string() && part.get<std::string>() == "GPU";
         });
}

machine from_node_link(const json& root, const std::string& origin, const std::string& name) {
  topology_builder b(origin);
  std::set<std::string> ranks;
  const bool listed = root.contains("compute_nodes");
  if (listed)
    for (const json& id : list_in(root, "compute_nodes", origin)) ranks.insert(id_of(id, origin));
  for (const json& one : list_in(root, "nodes", origin)) {
    const json& id = need(one, "id", origin + ": \"nodes\"");
    const std::string text = id_of(id, origin);
    b.add_node(text, listed ? ranks.erase(text) > 0 : names_gpu(id));
  }
  if (!ranks.empty()) b.find(*ranks.begin(), origin + ": \"compute_nodes\"");
  const char* key = root.contains("links") ? "links" : "edges";
  std::size_t number = 0;
  for (const json& one : list_in(root, key, origin)) {
    const std::string where = origin + ": " + key + "[" + std::to_string(number++) + "]";
    const double bandwidth =
        real_in(need(one, "capacity", where), "capacity", where, bandwidths_allowed);
    const double latency = one.contains("latency")
                               ? real_in(one["latency"], "latency", where, microseconds_allowed)
                               : 0;
    const std::int32_t from = b.find(id_of(need(one, "source", where), where), where);
    const std::int32_t to = b.find(id_of(need(one, "target", where), where), where);
    b.add_link(from, to, bandwidth, latency * 1e-6);
    const auto directed = root.find("directed");
    if (directed != root.end() && *directed == false)
      b.add_link(to, from, bandwidth, latency * 1e-6);
  }
  return b.take(name, "a graph in ForestColl's form");
}

// A square matrix of numbers; fails where it is none.
const json& row_of(const json& matrix, std::size_t i, std::size_t size, const char* name,
                   const std::string& origin) {
  const std::string where = origin + ": \"" + name + "\"";
  if (matrix.size() != size || !matrix[i].is_array() || matrix[i].size() != size)
    refuse_topology(where,
                    "it is not a matrix of " + std::to_string(size) + " by " + std::to_string(size),
                    "Write a row and a column for each node.");
  return matrix[i];
}

machine from_matrix(const json& root, const std::string& origin, const std::string& name) {
  const json& capacity = list_in(root, "capacity", origin);
  const json& alpha = list_in(root, "alpha", origin);
  const double chunk = root.contains("chunk_size")
                           ? real_in(root["chunk_size"], "chunk_size", origin, {1e-12, 1e6})
                           : 1;
  const std::size_t size = capacity.size();
  topology_builder b(origin);
  std::vector<bool> is_switch(size);
  if (root.contains("switch_indices"))
    for (const json& i : list_in(root, "switch_indices", origin))
      is_switch[static_cast<std::size_t>(
          real_in(i, "switch_indices", origin, {0, static_cast<double>(size) - 1}))] = true;
  for (std::size_t i = 0; i < size; ++i) b.add_node("node" + std::to_string(i), !is_switch[i]);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) {
      const std::string where = origin + ": [" + std::to_string(i) + "][" + std::to_string(j) + "]";
      const double chunks =
          real_in(row_of(capacity, i, size, "capacity", origin)[j], "capacity", where, {0, 1e15});
      const json& latency = row_of(alpha, i, size, "alpha", origin)[j];
      if (i == j || chunks == 0) continue;
      base::check_bounds(where, "capacity", chunks * chunk, bandwidths_allowed);
      b.add_link(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), chunks * chunk,
                 real_in(latency, "alpha", where, {0, 100}));
    }
  return b.take(name, "a graph in TE-CCL's form");
}

}  // namespace

machine machine_from_json(std::string_view text, const std::string& origin) {
  bool deep = false;
  const auto limit = [&](int depth, json::parse_event_t, json&) {
    deep = deep || depth > max_depth;
    return !deep;
  };
  const json root = json::parse(text, limit, false);
  if (deep || root.is_discarded() || !root.is_object())
    refuse_topology(origin, "it is no JSON of a topology",
                    "Give a graph of networkx, a topology of TE-CCL, or one of InfraGraph.");
  std::string name = origin.substr(origin.find_last_of('/') + 1);
  name = name.substr(0, name.rfind(".json"));
  if (root.contains("devices") && root.contains("instances"))
    return from_infragraph(root, origin, name);
  if (root.contains("capacity")) return from_matrix(root, origin, name);
  if (root.contains("nodes")) return from_node_link(root, origin, name);
  refuse_topology(origin, "it has neither \"nodes\", \"capacity\" nor \"devices\"",
                  "Give a graph of networkx, a topology of TE-CCL, or one of InfraGraph.");
}

}  // namespace sucl::sim
