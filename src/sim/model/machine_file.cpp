// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "sim/model/machine_reading.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace sucl::sim {
namespace file {

[[noreturn]] void refuse_value(const toml::node& node, const base::toml_document& document,
                               const std::string& name, const std::string& wanted) {
  base::refuse(base::origin_of(document, node.source()),
               name + " is " + base::type_of(node).name + " that does not fit",
               "Write " + wanted + ".");
}

double real_of(const toml::node& node, const base::toml_document& document, const std::string& name,
               const range& wanted, double unit) {
  const auto value = node.value<double>();
  if (!value || node.is_boolean()) refuse_value(node, document, name, "a number");
  const std::string origin = base::origin_of(document, node.source());
  base::check_bounds(origin, name, *value, wanted);
  if (unit == gigabytes && *value > 0)  // 0 is no limit
    base::check_bounds(origin, name, *value, range{min_bandwidth, wanted.high});
  return *value == 0 ? 0 : *value * unit;  // -0 is 0
}

std::int32_t whole_of(const toml::node& node, const base::toml_document& document,
                      const std::string& name, const whole_range& wanted) {
  const auto* value = node.as_integer();
  if (value == nullptr) refuse_value(node, document, name, "a whole number");
  base::check_bounds(base::origin_of(document, node.source()), name, std::int64_t{value->get()},
                     wanted);
  return static_cast<std::int32_t>(value->get());
}

std::string text_of(const toml::node& node, const base::toml_document& document,
                    const std::string& name) {
  const auto* value = node.as_string();
  if (value == nullptr || value->get().empty() || !base::is_plain(value->get()))
    refuse_value(node, document, name, "a string of plain characters");
  return value->get();
}

namespace {

// The figure in the file's unit that is read back to the same one: dividing rounds.
double in_unit(double figure, double unit) {
  const double near = figure / unit;
  for (const double towards : {0.0, std::numeric_limits<double>::infinity()}) {
    double candidate = near;
    for (int i = 0; i < 3; ++i, candidate = std::nextafter(candidate, towards))
      if (candidate * unit == figure) return candidate;
  }
  return near;
}

std::string number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string number_in(double figure, double unit) { return number(in_unit(figure, unit)); }

}  // namespace file

namespace {

using base::toml_document;
using base::toml_entry;
using words = std::vector<std::string>;
using namespace file;  // NOLINT(google-build-using-namespace)

constexpr whole_range port_counts{1, 1024};

// A key of a table: a real number in a unit, a whole number, or text; one of them is set.
template <class T>
struct key {
  const char* name;
  double T::* real = nullptr;
  double unit = 1;
  range reals{};
  std::int32_t T::* whole = nullptr;
  whole_range wholes{};
  std::string T::* text = nullptr;
};
template <class T>
constexpr key<T> a_time(const char* name, double T::* field) {
  return {.name = name, .real = field, .unit = microseconds, .reals = times};
}
template <class T>
constexpr key<T> a_bandwidth(const char* name, double T::* field) {
  return {.name = name, .real = field, .unit = gigabytes, .reals = bandwidths};
}

constexpr key<machine> machine_keys[] = {
    {.name = "name", .text = &machine::name},
    {.name = "summary", .text = &machine::summary},
};
constexpr key<level> level_keys[] = {
    {.name = "name", .text = &level::name},
    {.name = "groups", .whole = &level::groups, .wholes = rank_counts},
    {.name = "ports", .whole = &level::ports, .wholes = port_counts},
    a_bandwidth("port_bandwidth", &level::port_bandwidth),
    a_bandwidth("port_both", &level::port_both),
    a_bandwidth("link_bandwidth", &level::link_bandwidth),
    a_bandwidth("fabric_bandwidth", &level::fabric_bandwidth),
};
constexpr key<transport> transport_keys[] = {
    {.name = "name", .text = &transport::name},
    a_time("latency", &transport::latency),
    a_time("overhead", &transport::overhead),
    a_bandwidth("bandwidth", &transport::bandwidth),
};
constexpr key<memory> memory_keys[] = {
    a_bandwidth("bandwidth", &memory::bandwidth),
    {.name = "shared_by", .whole = &memory::shared_by, .wholes = rank_counts},
    a_bandwidth("copy_rate", &memory::copy_rate),
    a_bandwidth("reduce_rate", &memory::reduce_rate),
    a_time("launch_latency", &memory::launch_latency),
    a_time("launch_overhead", &memory::launch_overhead),
};

// Sets the key of this name. False if there is none.
template <class T>
bool set_key(T& target, std::span<const key<T>> keys, const toml_entry& entry,
             const toml_document& document, const std::string& prefix) {
  for (const key<T>& k : keys) {
    if (entry.key != k.name) continue;
    const std::string name = prefix + entry.key;
    if (k.real) target.*k.real = real_of(*entry.node, document, name, k.reals, k.unit);
    if (k.whole) target.*k.whole = whole_of(*entry.node, document, name, k.wholes);
    if (k.text) target.*k.text = text_of(*entry.node, document, name);
    return true;
  }
  return false;
}

template <class T>
[[noreturn]] void refuse_key(std::span<const key<T>> keys, words others, const toml_entry& entry,
                             const std::string& prefix) {
  for (const key<T>& k : keys) others.emplace_back(k.name);
  base::refuse(entry.origin, "unknown key '" + prefix + entry.key + "'",
               base::did_you_mean(entry.key, others));
}

// Calls read(table, prefix) for each table of a list of tables.
template <class Read>
void for_each_table(const toml_entry& entry, const toml_document& document,
                    const std::string& prefix, const Read& read) {
  const toml::array* list = entry.node->as_array();
  const std::string name = prefix + entry.key;
  if (list == nullptr)
    base::refuse(entry.origin, name + " is " + base::type_of(*entry.node).name,
                 "Write each one as a table [[" + name.substr(0, name.find('[')) +
                     (prefix.empty() ? "" : "." + entry.key) + "]].");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string one = name + "[" + std::to_string(i) + "]";
    read(base::table_of(*list->get(i), document, one), one + ".");
  }
}

// The binding as it stands in the file, until the size of a member is known.
struct written_binding {
  const toml::node* node = nullptr;
  std::string name;
};

transport read_transport(const toml::table& table, const toml_document& document,
                         const std::string& prefix) {
  transport t;
  const std::span<const key<transport>> keys = transport_keys;
  for (const toml_entry& entry : base::in_order(table, document))
    if (!set_key(t, keys, entry, document, prefix)) refuse_key(keys, {}, entry, prefix);
  if (t.name.empty())
    base::refuse(base::origin_of(document, table.source()), prefix + "name is missing",
                 "Add name = \"mpi\" or what executes the messages.");
  return t;
}

level read_level(const toml::table& table, const toml_document& document, const std::string& prefix,
                 written_binding& binding) {
  level l;
  const std::span<const key<level>> keys = level_keys;
  for (const toml_entry& entry : base::in_order(table, document)) {
    if (entry.key == "binding") {
      binding = {entry.node, prefix + entry.key};
    } else if (entry.key == "transport") {
      for_each_table(entry, document, prefix, [&](const toml::table& t, const std::string& p) {
        l.transports.push_back(read_transport(t, document, p));
      });
    } else if (!set_key(l, keys, entry, document, prefix)) {
      refuse_key(keys, {"binding", "transport"}, entry, prefix);
    }
  }
  return l;
}

std::vector<std::int32_t> packed(std::int64_t ranks, std::int32_t ports) {
  std::vector<std::int32_t> binding;
  for (std::int64_t r = 0; r < ranks; ++r)
    binding.push_back(static_cast<std::int32_t>(r * ports / ranks));
  return binding;
}

std::vector<std::int32_t> round_robin(std::int64_t ranks, std::int32_t ports) {
  std::vector<std::int32_t> binding;
  for (std::int64_t r = 0; r < ranks; ++r) binding.push_back(static_cast<std::int32_t>(r % ports));
  return binding;
}

std::vector<std::int32_t> read_binding(const written_binding& written,
                                       const toml_document& document, std::int64_t ranks,
                                       std::int32_t ports) {
  std::vector<std::int32_t> binding;
  const toml::array* list = written.node->as_array();
  if (list != nullptr) {
    for (const toml::node& port : *list)
      binding.push_back(whole_of(port, document, written.name, {0, ports - 1}));
    return binding;
  }
  const std::string how =
      written.node->is_string() ? text_of(*written.node, document, written.name) : std::string();
  if (how != "packed" && how != "round_robin")
    refuse_value(*written.node, document, written.name,
                 "\"packed\", \"round_robin\" or one port for each rank of a member");
  return how == "packed" ? packed(ranks, ports) : round_robin(ranks, ports);
}

// What stands after `binding =`.
std::string binding_text(const std::vector<std::int32_t>& binding, std::int32_t ports) {
  const auto ranks = static_cast<std::int64_t>(binding.size());
  if (binding == packed(ranks, ports)) return "\"packed\"";
  if (binding == round_robin(ranks, ports)) return "\"round_robin\"";
  words numbers;
  for (const std::int32_t port : binding) numbers.push_back(std::to_string(port));
  return "[" + base::join(numbers, ", ") + "]";
}

void read_memory(memory& m, const toml_entry& entry, const toml_document& document) {
  const std::span<const key<memory>> keys = memory_keys;
  for (const toml_entry& one :
       base::in_order(base::table_of(*entry.node, document, entry.key), document))
    if (!set_key(m, keys, one, document, "memory.")) refuse_key(keys, {}, one, "memory.");
}

template <class T>
void write_keys(std::string& out, const T& source, std::span<const key<T>> keys) {
  const T unset{};
  for (const key<T>& k : keys) {
    std::string value;
    if (k.real && source.*k.real != unset.*k.real) value = number_in(source.*k.real, k.unit);
    if (k.whole && source.*k.whole != unset.*k.whole) value = std::to_string(source.*k.whole);
    if (k.text && source.*k.text != unset.*k.text) value = "\"" + source.*k.text + "\"";
    if (!value.empty()) out += std::string(k.name) + " = " + value + "\n";
  }
}

}  // namespace

machine machine_from_toml(std::string_view text, const std::string& origin) {
  const toml_document document{"file " + origin};
  const toml::table root = base::parse_toml(text, document);
  machine m;
  std::vector<written_binding> bindings;
  const std::span<const key<machine>> keys = machine_keys;
  const std::vector<toml_entry> entries = base::in_order(root, document);
  const toml_entry* wires = nullptr;
  for (const toml_entry& entry : entries) {
    if (entry.key == "level")
      for_each_table(entry, document, "", [&](const toml::table& t, const std::string& p) {
        m.levels.push_back(read_level(t, document, p, bindings.emplace_back()));
      });
    else if (entry.key == "memory")
      read_memory(m.local, entry, document);
    else if (entry.key == "graph")
      wires = &entry;
    else if (!set_key(m, keys, entry, document, ""))
      refuse_key(keys, {"level", "memory", "graph"}, entry, "");
  }
  if (wires && !m.levels.empty())
    base::refuse(wires->origin, "the machine has levels and a graph",
                 "Describe it by [[level]] or by [graph]; copies of a graph are its levels.");
  try {
    if (wires) read_graph(m, base::table_of(*wires->node, document, wires->key), document);
    check_size(m);
    for (std::size_t l = 0; l < m.levels.size(); ++l)
      if (l < bindings.size() && bindings[l].node != nullptr)
        m.levels[l].binding =
            read_binding(bindings[l], document, member_ranks(m, l), m.levels[l].ports);
    check(m);
  } catch (const error& e) {
    if (e.code() == errc::configuration) throw;  // it names its location
    base::fail(errc::configuration, origin + ": " + e.message(), e.hint());
  }
  return m;
}

std::string to_toml(const machine& m) {
  std::string out;
  write_keys<machine>(out, m, machine_keys);
  if (!m.wires.empty()) out += graph_to_toml(m);
  for (const level& l : m.levels) {
    if (!m.wires.empty()) break;  // the graph says them
    out += "\n[[level]]\n";
    write_keys<level>(out, l, level_keys);
    if (!l.binding.empty()) out += "binding = " + binding_text(l.binding, l.ports) + "\n";
    for (const transport& t : l.transports) {
      out += "\n[[level.transport]]\n";
      write_keys<transport>(out, t, transport_keys);
    }
  }
  out += "\n[memory]\n";
  write_keys<memory>(out, m.local, memory_keys);
  return out;
}

}  // namespace sucl::sim
