// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the readers of others' topologies share: values with their ranges, and a graph that grows.
#pragma once

#include "base/bounds.hpp"
#include "sim/model/machine.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sucl::sim::file {

inline constexpr double gigabytes_a_second = 1e9;
inline constexpr base::bounds<double> bandwidths_allowed{1e-6, 1e6};  // GB/s
inline constexpr base::bounds<double> microseconds_allowed{0, 1e8};

[[noreturn]] void refuse_topology(const std::string& where, const std::string& what,
                                  const std::string& cure);
const nlohmann::json& need(const nlohmann::json& from, const char* name, const std::string& where);
const nlohmann::json& list_in(const nlohmann::json& from, const char* name,
                              const std::string& where);
double real_in(const nlohmann::json& value, const char* name, const std::string& where,
               base::bounds<double> allowed);
std::string text_in(const nlohmann::json& from, const char* name, const std::string& where);

/// Nodes and links by name.
class topology_builder {
 public:
  explicit topology_builder(std::string origin) : m_origin(std::move(origin)) {}

  std::int32_t add_node(const std::string& name, bool rank);
  std::int32_t find(const std::string& name, const std::string& where) const;
  /// In one direction, GB/s and seconds. A second link between two nodes replaces the
  /// first one.
  void add_link(std::int32_t from, std::int32_t to, double bandwidth, double latency);
  machine take(const std::string& name, const std::string& summary);

 private:
  struct wire {
    double bandwidth = 0, latency = 0;
  };
  struct node {
    std::string name;
    bool rank = false;
    std::map<std::int32_t, wire> to;
    std::set<std::int32_t> from;
  };

  std::string own_name(const std::string& name);
  void cut(std::int32_t from, std::int32_t to);
  void simplify();

  std::string m_origin;
  std::vector<node> m_nodes;
  std::map<std::string, std::int32_t> m_numbers;
  std::size_t m_links = 0;
  std::set<std::string> m_taken;
};

}  // namespace sucl::sim::file
