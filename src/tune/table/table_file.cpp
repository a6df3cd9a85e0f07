// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The one reader of tables.
#include "base/bounds.hpp"
#include "base/config/config.hpp"
#include "base/config/toml_reading.hpp"
#include "base/system/file.hpp"
#include "kernels/collective/args.hpp"
#include "tune/table/table.hpp"

#include <algorithm>
#include <cmath>

namespace sucl::tune {
namespace {

using base::origin_of;
using base::refuse;
using base::toml_document;
using base::toml_entry;
using words = std::vector<std::string>;

constexpr std::int64_t format = 2;
constexpr const char* again = "Write the table again with sucl tune or sucl plan search --toml.";

[[noreturn]] void refuse_type(const toml_entry& e, const toml_document& document,
                              const std::string& wanted) {
  refuse(origin_of(document, e.node->source()), e.key + " is " + base::type_of(*e.node).name,
         "Write " + wanted + ".");
}

std::string text_of(const toml_entry& e, const toml_document& document) {
  if (const auto* s = e.node->as_string(); s && base::is_plain(s->get())) return s->get();
  if (e.node->is_string())
    refuse(origin_of(document, e.node->source()), e.key + " has quotes or control characters",
           "Write plain characters.");
  if (const auto* i = e.node->as_integer(); i && i->get() >= 0) return std::to_string(i->get());
  refuse_type(e, document, "a string");
}

bool yes_or_no(const toml_entry& e, const toml_document& document) {
  if (const auto* b = e.node->as_boolean()) return b->get();
  refuse_type(e, document, "true or false");
}

// What the numbers of a table may be.
constexpr base::bounds<double> times{0, 1e12};  // microseconds
constexpr base::bounds<std::uint64_t> core_counts{1, 1 << 20};
constexpr base::bounds<std::uint64_t> slices{1, std::uint64_t{1} << 40};
constexpr base::bounds<std::uint64_t> sizes{0, plan::max_bytes};

double time_of(const toml_entry& e, const toml_document& document) {
  const auto value = e.node->value<double>();
  if (!value || e.node->is_boolean()) refuse_type(e, document, "a number of microseconds");
  base::check_bounds(origin_of(document, e.node->source()), e.key, *value, times);
  // Tables are written with three decimals: what is read has no more.
  return std::abs(std::round(*value * 1e3)) / 1e3 * 1e-6;
}

// What `parse` returns; its error gets the location of the entry.
template <class Parse>
auto parsed(const toml_entry& e, const toml_document& document, Parse parse) {
  const std::string text = text_of(e, document);
  try {
    return parse(text);
  } catch (const error& problem) {
    refuse(origin_of(document, e.node->source()), e.key + ": " + problem.message(), problem.hint());
  }
}

// The same for a number, which has to be within bounds.
template <class Parse>
std::uint64_t bounded(const toml_entry& e, const toml_document& document, Parse parse,
                      const base::bounds<std::uint64_t>& wanted) {
  const std::uint64_t value = parsed(e, document, parse);
  base::check_bounds(origin_of(document, e.node->source()), e.key, value, wanted);
  return value;
}

// The index of a word in a list of those that there are.
std::size_t one_of(const toml_entry& e, const toml_document& document, const words& known) {
  const std::string text = text_of(e, document);
  const auto found = std::find(known.begin(), known.end(), text);
  if (found == known.end())
    refuse(origin_of(document, e.node->source()), e.key + ": there is no '" + text + "'",
           base::did_you_mean(text, known));
  return static_cast<std::size_t>(found - known.begin());
}

const words& kind_names() {
  static const words names = [] {
    words list;
    for (int k = 0; k < SUCL_KIND_COUNT; ++k) list.emplace_back(sucl::name(static_cast<kind>(k)));
    return list;
  }();
  return names;
}

plan::recipe read_recipe(const std::string& text) {
  plan::recipe r = plan::recipe_from_text(text);
  words names;
  for (const auto& a : plan::algorithms()) names.emplace_back(a.name);
  if (std::find(names.begin(), names.end(), r.algorithm) == names.end())
    base::fail(errc::invalid_argument, "there is no algorithm '" + r.algorithm + "'",
               base::did_you_mean(r.algorithm, names));
  return r;
}

// A key of a row and what is done with its value.
struct row_key {
  const char* name;
  void (*set)(table_row&, const toml_entry&, const toml_document&);
};
constexpr row_key row_keys[] = {
    {"collective",
     [](table_row& r, const toml_entry& e, const toml_document& p) {
       r.what = static_cast<kind>(one_of(e, p, kind_names()));
     }},
    {"form",
     [](table_row& r, const toml_entry& e, const toml_document& p) {
       r.form = static_cast<call_form>(one_of(e, p, {"any", "blocking", "event"}));
     }},
    {"memory",
     [](table_row& r, const toml_entry& e, const toml_document& p) {
       r.memory = static_cast<memory_kind>(one_of(e, p, {"system", "symmetric", "device"}));
     }},
    {"ranks", [](table_row& r, const toml_entry& e,
                 const toml_document& p) { r.ranks = parsed(e, p, base::parse_range); }},
    {"nodes", [](table_row& r, const toml_entry& e,
                 const toml_document& p) { r.nodes = parsed(e, p, base::parse_range); }},
    {"bytes", [](table_row& r, const toml_entry& e,
                 const toml_document& p) { r.bytes = parsed(e, p, base::parse_byte_range); }},
    {"backend",
     [](table_row& r, const toml_entry& e, const toml_document& p) { r.backend = text_of(e, p); }},
    {"recipe", [](table_row& r, const toml_entry& e,
                  const toml_document& p) { r.how = parsed(e, p, read_recipe); }},
    {"slice", [](table_row& r, const toml_entry& e,
                 const toml_document& p) { r.slice = bounded(e, p, base::parse_bytes, slices); }},
    {"protocol",
     [](table_row& r, const toml_entry& e, const toml_document& p) {
       r.protocol = kernels::protocol_names[one_of(
           e, p, {std::begin(kernels::protocol_names), std::end(kernels::protocol_names)})];
     }},
    {"us",
     [](table_row& r, const toml_entry& e, const toml_document& p) { r.seconds = time_of(e, p); }},
    {"at", [](table_row& r, const toml_entry& e,
              const toml_document& p) { r.at = bounded(e, p, base::parse_bytes, sizes); }},
    {"verified", [](table_row& r, const toml_entry& e,
                    const toml_document& p) { r.verified = yes_or_no(e, p); }},
};

[[noreturn]] void refuse_key(const toml_entry& e, const words& known) {
  refuse(e.origin, "unknown key '" + e.key + "'", base::did_you_mean(e.key, known));
}

words backends_that(bool base::backend_entry::* can) {
  words names;
  for (const base::backend_entry& b : base::known_backends())
    if (b.*can) names.push_back(b.name);
  return names;
}

// A row may give a backend only what that takes.
void check_taken(const table_row& r) {
  const auto refuse_unless = [&](bool base::backend_entry::* can, const std::string& fact,
                                 const std::string& what) {
    const words able = backends_that(can);
    if (std::find(able.begin(), able.end(), r.backend) != able.end()) return;
    refuse(r.origin, fact, what + " \"" + base::join(able, "\" or \"") + "\".");
  };
  if (!r.how.algorithm.empty() || r.slice)
    refuse_unless(&base::backend_entry::recipes,
                  "this choice has a recipe, but backend " + r.backend + " takes none",
                  "Recipes and slices are for backend =");
  if (!r.protocol.empty())
    refuse_unless(&base::backend_entry::protocols,
                  "this choice has a protocol, but backend " + r.backend + " takes none",
                  "Protocols are for backend =");
  if (r.memory == memory_kind::symmetric)
    refuse_unless(&base::backend_entry::recipes,
                  "this choice gives symmetric memory to backend " + r.backend,
                  "Memory that a communicator has allocated is for backend =");
}

void check(const table_row& r, bool has_collective) {
  if (!has_collective)
    refuse(r.origin, "this choice names no collective", "Add collective = \"allreduce\" or such.");
  if (r.backend.empty())
    refuse(r.origin, "this choice names no backend", "Add backend = \"plan\" or \"mpi\".");
  check_taken(r);
  if (r.seconds > 0 && !r.bytes.contains(r.at))
    refuse(r.origin, "at = " + base::print_bytes(r.at) + " is not among the bytes of this choice",
           "Measure a size of the range " + base::print_byte_range(r.bytes) + ".");
}

table_row read_row(const toml::node& node, const toml_document& document, std::size_t number) {
  table_row r;
  r.origin = origin_of(document, node.source());
  bool has_collective = false;
  const toml::table& keys =
      base::table_of(node, document, "choice[" + std::to_string(number) + "]");
  for (const toml_entry& e : base::in_order(keys, document)) {
    const auto known = std::find_if(std::begin(row_keys), std::end(row_keys),
                                    [&](const row_key& k) { return e.key == k.name; });
    if (known == std::end(row_keys)) {
      words names;
      for (const row_key& k : row_keys) names.emplace_back(k.name);
      refuse_key(e, names);
    }
    known->set(r, e, document);
    has_collective |= e.key == "collective";
  }
  check(r, has_collective);
  return r;
}

void read_machine(table_machine& m, const toml_entry& entry, const toml_document& document) {
  const toml::table& keys = base::table_of(*entry.node, document, entry.key);
  for (const toml_entry& e : base::in_order(keys, document)) {
    if (e.key == "name")
      m.name = text_of(e, document);
    else if (e.key == "processor")
      m.processor = text_of(e, document);
    else if (e.key == "mpi")
      m.mpi = text_of(e, document);
    else if (e.key == "device")
      m.device = text_of(e, document);
    else if (e.key == "cores")
      m.cores = static_cast<int>(bounded(e, document, base::parse_number, core_counts));
    else
      refuse_key(e, {"name", "processor", "cores", "mpi", "device"});
  }
}

void read_format(const toml::table& root, const toml_document& document) {
  const toml::node* node = root.get("format");
  if (!node) refuse(document.name + ":1:1", "this is no table of choices: it has no format", again);
  const auto* number = node->as_integer();
  if (number && number->get() == format) return;
  refuse(origin_of(document, node->source()),
         "the format is " + (number ? std::to_string(number->get()) : "no number") +
             ", and this SuCL reads format " + std::to_string(format),
         again);
}

void read_top(table& t, const toml_entry& e, const toml_document& document) {
  if (e.key == "format") return;
  if (e.key == "author") {
    t.author = text_of(e, document);
  } else if (e.key == "times") {
    t.measured = one_of(e, document, {"measured", "predicted"}) == 0;
  } else if (e.key == "machine") {
    read_machine(t.machine, e, document);
  } else if (e.key == "choice") {
    const toml::array* list = e.node->as_array();
    if (!list) refuse_type(e, document, "each choice as a table [[choice]]");
    for (std::size_t i = 0; i < list->size(); ++i)
      t.rows.push_back(read_row(*list->get(i), document, i));
  } else {
    refuse_key(e, {"format", "author", "times", "machine", "choice"});
  }
}

}  // namespace

table table_from_toml(std::string_view text, const std::string& origin) {
  const toml_document document{"file " + origin};
  const toml::table root = base::parse_toml(text, document);
  read_format(root, document);
  table t;
  t.file = origin;
  for (const toml_entry& e : base::in_order(root, document)) read_top(t, e, document);
  return t;
}

table load_table(const std::string& file, const std::string& named_by) {
  const base::file_content in = base::read_regular_file(file);
  if (!in.problem.empty())
    base::fail(
        errc::configuration,
        "cannot read the tuning table '" + file + "' given by " + named_by + ": " + in.problem,
        "Correct the path, or make the table with sucl tune.");
  return table_from_toml(in.text, file);
}

}  // namespace sucl::tune
