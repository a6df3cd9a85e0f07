// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/infragraph.hpp"

#include "base/error.hpp"
#include "sim/model/topology_builder.hpp"

#include <algorithm>
#include <utility>

namespace sucl::sim::file {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

constexpr int max_nesting = 8;
constexpr base::bounds<double> counts_allowed{0, 65536};
constexpr const char* units[] = {"gigabits_per_second", "gigabytes_per_second",
                                 "gigatransfers_per_second"};

int count_in(const json& from, const std::string& where) {
  return static_cast<int>(real_in(need(from, "count", where), "count", where, counts_allowed));
}

// A part of an endpoint: a name and its indices, as in xpu[0:4], xpu[2] or xpu.
struct slice {
  std::string name;
  int begin = 0, end = 0;
};

slice slice_of(const std::string& text, const std::string& where) {
  slice s{text.substr(0, text.find('[')), 0, -1};
  if (s.name.size() == text.size()) return s;
  const auto wrong = [&] {
    refuse_topology(where, "'" + text.substr(0, 80) + "' is no component with its indices",
                    "Write name, name[2] or name[0:4].");
  };
  if (text.back() != ']') wrong();
  const std::string inside = text.substr(s.name.size() + 1, text.size() - s.name.size() - 2);
  const auto number = [&](const std::string& digits, int otherwise) {
    if (digits.empty()) return otherwise;
    if (digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) wrong();
    return std::stoi(digits);
  };
  const std::size_t colon = inside.find(':');
  if (colon == std::string::npos && inside.empty()) wrong();
  s.begin = number(inside.substr(0, colon), 0);
  s.end = colon == std::string::npos ? s.begin + 1 : number(inside.substr(colon + 1), -1);
  return s;
}

class infragraph_reader {
 public:
  infragraph_reader(const json& root, const std::string& origin)
      : m_root(root), m_origin(origin), m_builder(origin) {}

  machine run(const std::string& name) {
    for (const json& device : list_in(m_root, "devices", m_origin))
      m_devices[text_in(device, "name", m_origin + ": \"devices\"")] = &device;
    for (const json& instance : list_in(m_root, "instances", m_origin)) add_instance(instance);
    if (m_root.contains("edges"))
      for (const json& edge : list_in(m_root, "edges", m_origin))
        add_edges(edge, m_root, m_origin + ": \"edges\"", [&](const json& end) {
          return ends_of_instances(end, m_origin + ": \"edges\"");
        });
    return m_builder.take(name, "a graph in InfraGraph's form");
  }

 private:
  const json& device_named(const std::string& name, const std::string& where) const {
    const auto at = m_devices.find(name);
    if (at == m_devices.end())
      refuse_topology(where, "there is no device '" + name.substr(0, 80) + "'",
                      "Add it to \"devices\".");
    return *at->second;
  }

  void add_instance(const json& instance) {
    const std::string where = m_origin + ": \"instances\"";
    const std::string name = text_in(instance, "name", where);
    const std::string device = text_in(instance, "device", where);
    m_instances[name] = {device, count_in(instance, where)};
    for (int i = 0; i < m_instances[name].second; ++i)
      add_device(name + "." + std::to_string(i), device_named(device, where), 0);
  }

  void add_device(const std::string& path, const json& device, int nesting) {
    const std::string where = m_origin + ": device '" + text_in(device, "name", m_origin) + "'";
    if (nesting == max_nesting)
      refuse_topology(where, "devices contain each other", "Take one out of the other.");
    for (const json& component : list_in(device, "components", where)) {
      const std::string name = text_in(component, "name", where);
      const std::string choice = text_in(component, "choice", where);
      for (int i = 0; i < count_in(component, where); ++i) {
        const std::string full = path + "." + name + "." + std::to_string(i);
        if (choice == "device")
          add_device(full, device_named(name, where), nesting + 1);
        else
          m_builder.add_node(full, choice == "xpu");
      }
    }
    if (!device.contains("edges")) return;
    for (const json& edge : list_in(device, "edges", where))
      add_edges(edge, device, where, [&](const json& end) {
        std::string component = text_in(end, "component", where);
        if (end.contains("device")) component = text_in(end, "device", where) + "." + component;
        return ends_in_device({path}, device, component, where);
      });
  }

  // The nodes that a component of a device names, as in nic[0:2].port[0].
  words ends_in_device(words paths, const json& of, const std::string& component,
                       const std::string& where) const {
    const json* device = &of;
    for (std::size_t begin = 0; begin <= component.size();) {
      const std::size_t dot = std::min(component.find('.', begin), component.size());
      slice s = slice_of(component.substr(begin, dot - begin), where);
      begin = dot + 1;
      const json* found = nullptr;
      if (device)
        for (const json& one : list_in(*device, "components", where))
          if (text_in(one, "name", where) == s.name) found = &one;
      if (!found)
        refuse_topology(where, "there is no component '" + s.name.substr(0, 80) + "'",
                        "Add it to the device.");
      const int count = count_in(*found, where);
      if (s.end < 0) s.end = count;
      if (s.begin >= s.end || s.end > count)
        refuse_topology(where,
                        "component '" + s.name + "' has " + std::to_string(count) +
                            " parts, and an edge names others",
                        "Correct its indices.");
      words longer;
      for (const std::string& path : paths)
        for (int i = s.begin; i < s.end; ++i) {
          longer.push_back(path + "." + s.name + "." + std::to_string(i));
          limit(longer.size(), where);
        }
      paths = std::move(longer);
      device =
          text_in(*found, "choice", where) == "device" ? &device_named(s.name, where) : nullptr;
    }
    return paths;
  }

  words ends_of_instances(const json& end, const std::string& where) const {
    slice s = slice_of(text_in(end, "instance", where), where);
    const auto at = m_instances.find(s.name);
    if (at == m_instances.end())
      refuse_topology(where, "there is no instance '" + s.name.substr(0, 80) + "'",
                      "Add it to \"instances\".");
    const auto& [device, count] = at->second;
    if (s.end < 0) s.end = count;
    if (s.begin >= s.end || s.end > count)
      refuse_topology(where,
                      "there are " + std::to_string(count) + " instances '" + s.name +
                          "', and an edge names others",
                      "Correct its indices.");
    words paths;
    for (int i = s.begin; i < s.end; ++i) paths.push_back(s.name + "." + std::to_string(i));
    return ends_in_device(std::move(paths), device_named(device, where),
                          text_in(end, "component", where), where);
  }

  void limit(std::size_t count, const std::string& where) const {
    if (count > max_links)
      refuse_topology(where, "an edge joins more than " + std::to_string(max_links) + " nodes",
                      "Describe larger machines by [[level]] in TOML.");
  }

  template <class Ends>
  void add_edges(const json& edge, const json& links_of, const std::string& where,
                 const Ends& ends) {
    const words from = ends(need(edge, "ep1", where)), to = ends(need(edge, "ep2", where));
    const auto [bandwidth, latency] = link_named(text_in(edge, "link", where), links_of, where);
    const std::string scheme = edge.contains("scheme") ? text_in(edge, "scheme", where) : "one2one";
    if (scheme != "one2one" && scheme != "many2many")
      refuse_topology(where, "scheme '" + scheme.substr(0, 80) + "' is not known",
                      "It is one2one or many2many.");
    const auto join = [&](const std::string& a, const std::string& b) {
      const std::int32_t first = m_builder.find(a, where), second = m_builder.find(b, where);
      m_builder.add_link(first, second, bandwidth, latency);
      m_builder.add_link(second, first, bandwidth, latency);
    };
    if (scheme == "one2one")
      for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) join(from[i], to[i]);
    else
      for (const std::string& a : from)
        for (const std::string& b : to) join(a, b);
  }

  // GB/s and seconds.
  static std::pair<double, double> link_named(const std::string& name, const json& of,
                                              const std::string& in) {
    const json* found = nullptr;
    if (of.contains("links"))
      for (const json& one : list_in(of, "links", in))
        if (text_in(one, "name", in) == name) found = &one;
    const std::string where = in + ", link '" + name.substr(0, 80) + "'";
    if (!found) refuse_topology(where, "it is not in \"links\"", "Add it.");
    const json none = json::object();
    const json& physical = found->contains("physical") ? (*found)["physical"] : none;
    double bandwidth = 0, latency = 0;
    if (physical.is_object() && physical.contains("bandwidth"))
      for (const char* unit : units) {
        if (!physical["bandwidth"].is_object() || !physical["bandwidth"].contains(unit)) continue;
        bandwidth = real_in(physical["bandwidth"][unit], unit, where, {1e-5, 1e6});
        // Of PCIe: a bit a transfer, 16 of them at once.
        if (unit == units[0]) bandwidth /= 8;
        if (unit == units[2]) bandwidth *= 2;
      }
    if (bandwidth == 0)
      refuse_topology(where, "it has no bandwidth",
                      "Give physical.bandwidth.gigabits_per_second or gigabytes_per_second.");
    if (physical.contains("latency"))
      for (const auto& [unit, seconds] : {std::pair("ms", 1e-3), {"us", 1e-6}, {"ns", 1e-9}})
        if (physical["latency"].is_object() && physical["latency"].contains(unit))
          latency = seconds * real_in(physical["latency"][unit], unit, where, {0, 1e8});
    return {bandwidth, latency};
  }

  const json& m_root;
  const std::string m_origin;
  topology_builder m_builder;
  std::map<std::string, const json*> m_devices;
  std::map<std::string, std::pair<std::string, int>> m_instances;  // device and count
};

}  // namespace

machine from_infragraph(const json& root, const std::string& origin, const std::string& name) {
  return infragraph_reader(root, origin).run(name);
}

}  // namespace sucl::sim::file
