// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/bounds.hpp"
#include "base/error.hpp"
#include "plan/ir/text.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace sucl::plan {
namespace {

using nlohmann::json;

constexpr const char* custom = "custom";

// What the numbers of a plan may be.
using range = base::bounds<std::uint64_t>;
constexpr range any_bytes{0, most_bytes};
constexpr range element_sizes{1, most_bytes};
constexpr range rank_counts{1, most_ranks};
constexpr range rank_numbers{0, most_ranks - 1};

// Deeper than plans are, and than what follows could bear.
constexpr int most_depth = 16;

std::string hexadecimal(std::uint64_t n) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(n));
  return digits;
}

json to_json_value(const problem& p) {
  json j{{"kind", p.kind == kind::group ? custom : sucl::name(p.kind)},
         {"ranks", p.ranks},
         {"root", p.root},
         {"element_bytes", p.element_bytes},
         {"in_place", p.in_place},
         {"order", name(p.order)},
         {"counts", p.counts}};
  if (!p.send_displs.empty()) j["send_displs"] = p.send_displs;
  if (!p.recv_displs.empty()) j["recv_displs"] = p.recv_displs;
  if (p.kind != kind::group) return j;
  json lists = json::array();
  for (const auto& list : p.outcome) {
    json pieces = json::array();
    for (const piece& part : list) {
      json terms = json::array();
      for (const term& t : part.terms) terms.push_back({t.first, t.count, t.source});
      pieces.push_back({{"offset", part.offset}, {"bytes", part.bytes}, {"terms", terms}});
    }
    lists.push_back(std::move(pieces));
  }
  j["outcome"] = std::move(lists);
  return j;
}

// Instructions are most of a plan: they are written without a tree in between.
void put(std::string& out, const instruction& i) {
  out += "[\"";
  out += name(i.op);
  out += "\"," + std::to_string(i.peer) + ",\"" + name(i.dst) + "\"," +
         std::to_string(i.dst_offset) + ",\"" + name(i.src) + "\"," + std::to_string(i.src_offset) +
         "," + std::to_string(i.bytes) + "," + std::to_string(i.level) + "]";
}

// Reads with the path in every complaint.
class reader {
 public:
  explicit reader(const json& root) : m_root(root) {}

  schedule read() {
    expect(m_root.is_object() && number(m_root, "sucl_plan", "") == 1, "",
           "a plan of version 1 (\"sucl_plan\": 1)");
    schedule s;
    read_problem(member(m_root, "collective", ""), s.what);
    s.algorithm = text(m_root, "algorithm", "");
    for (const json& l : array(m_root, "levels", ""))
      s.levels.push_back({text(l, "name", "levels"), text(l, "via", "levels")});
    const json& ranks = array(m_root, "ranks", "");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::string path = "ranks[" + std::to_string(r) + "]";
      s.ranks.push_back({number(ranks[r], "scratch", path), {}});
      for (const json& c : array(ranks[r], "channels", path)) {
        expect(c.is_array(), path + ".channels", "a list of instructions");
        s.ranks.back().channels.emplace_back();
        for (const json& i : c) s.ranks.back().channels.back().push_back(read_instruction(i, path));
      }
    }
    return s;
  }

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& expected) const {
    base::fail(errc::invalid_argument,
               "the plan's JSON has at '" + (path.empty() ? "the top" : path) + "' no " + expected,
               "src/plan/ir/schedule.schema.json describes the form.");
  }
  void expect(bool good, const std::string& path, const std::string& expected) const {
    if (!good) fail(path, expected);
  }

  const json& member(const json& j, const char* key, const std::string& path) const {
    expect(j.is_object() && j.contains(key), path, std::string("member \"") + key + "\"");
    return j[key];
  }
  const json& array(const json& j, const char* key, const std::string& path) const {
    const json& a = member(j, key, path);
    expect(a.is_array(), path + "." + key, "list");
    return a;
  }
  std::uint64_t to_number(const json& j, const std::string& path,
                          const range& wanted = any_bytes) const {
    expect(j.is_number_unsigned(), path, "number that is a whole one and not negative");
    const auto n = j.get<std::uint64_t>();
    base::check_bounds("the plan's JSON", path, n, wanted, errc::invalid_argument);
    return n;
  }
  std::int32_t to_small(const json& j, const std::string& path,
                        const range& wanted = rank_numbers) const {
    return static_cast<std::int32_t>(to_number(j, path, wanted));
  }
  std::uint64_t number(const json& j, const char* key, const std::string& path,
                       const range& wanted = any_bytes) const {
    return to_number(member(j, key, path), path + "." + key, wanted);
  }
  std::string text(const json& j, const char* key, const std::string& path) const {
    const json& t = member(j, key, path);
    expect(t.is_string(), path + "." + key, "text");
    return t.get<std::string>();
  }

  std::vector<std::uint64_t> numbers(const json& j, const char* key) const {
    std::vector<std::uint64_t> list;
    for (const json& n : array(j, key, "collective")) list.push_back(to_number(n, key));
    return list;
  }

  void read_problem(const json& j, problem& p) const {
    const std::string path = "collective", word = text(j, "kind", path);
    p.kind = kind::group;
    for (int k = 0; k < SUCL_KIND_COUNT; ++k)
      if (word == sucl::name(static_cast<kind>(k))) p.kind = static_cast<kind>(k);
    expect((p.kind == kind::group) == (word == custom), path + ".kind", "known collective");
    p.ranks = to_small(member(j, "ranks", path), path + ".ranks", rank_counts);
    p.root = to_small(member(j, "root", path), path + ".root");
    p.element_bytes = number(j, "element_bytes", path, element_sizes);
    expect(member(j, "in_place", path).is_boolean(), path + ".in_place", "true or false");
    p.in_place = j["in_place"].get<bool>();
    const std::string order = text(j, "order", path);
    bool known = false;
    p.order = ordering_named(order, known);
    expect(known, path + ".order", "\"any\", \"ranked\", \"fixed\" or \"free\"");
    p.counts = numbers(j, "counts");
    if (j.contains("send_displs")) p.send_displs = numbers(j, "send_displs");
    if (j.contains("recv_displs")) p.recv_displs = numbers(j, "recv_displs");
    if (p.kind == kind::group) read_outcome(array(j, "outcome", path), p);
  }

  void read_outcome(const json& lists, problem& p) const {
    const std::string path = "collective.outcome";
    for (const json& list : lists) {
      expect(list.is_array(), path, "list of pieces");
      p.outcome.emplace_back();
      for (const json& j : list) {
        piece part{number(j, "offset", path), number(j, "bytes", path), {}};
        for (const json& t : array(j, "terms", path)) {
          expect(t.is_array() && t.size() == 3, path, "term of three numbers");
          part.terms.push_back(
              {to_small(t[0], path), to_small(t[1], path, rank_counts), to_number(t[2], path)});
        }
        p.outcome.back().push_back(std::move(part));
      }
    }
  }

  template <class Enum>
  Enum one_of(const json& j, int count, const std::string& path) const {
    expect(j.is_string(), path, "name as text");
    const auto& word = j.get_ref<const std::string&>();
    for (int i = 0; i < count; ++i)
      if (word == name(static_cast<Enum>(i))) return static_cast<Enum>(i);
    fail(path, "known name in place of '" + word + "'");
  }

  instruction read_instruction(const json& j, const std::string& path) const {
    expect(j.is_array() && j.size() == 8, path, "instruction of eight fields");
    instruction i;
    i.op = one_of<opcode>(j[0], opcode_count, path);
    const bool nobody = j[1].is_number_integer() && j[1].get<std::int64_t>() == -1;
    if (!nobody) i.peer = to_small(j[1], path);
    i.dst = one_of<space>(j[2], space_count, path);
    i.dst_offset = to_number(j[3], path);
    i.src = one_of<space>(j[4], space_count, path);
    i.src_offset = to_number(j[5], path);
    i.bytes = to_number(j[6], path);
    i.level = static_cast<std::uint8_t>(to_number(j[7], path, {0, most_levels - 1}));
    if (!has_its_fields(i))
      fail(path, std::string("'") + name(i.op) +
                     "' with the fields that it needs, and -1, none and 0 in the others");
    return i;
  }

  // The text form has no place for other fields.
  static bool has_its_fields(const instruction& i) {
    const bool flag = i.op == opcode::signal || i.op == opcode::wait;
    const bool moves = !flag && i.op != opcode::fence;
    const bool writes = moves && i.op != opcode::send;
    const bool reads = moves && i.op != opcode::receive;
    const bool peer = i.op == opcode::fence ? i.peer < 0 : i.op <= opcode::reduce || i.peer >= 0;
    return peer && writes == (i.dst != space::none) && reads == (i.src != space::none) &&
           (writes || flag || i.dst_offset == 0) && (reads || i.src_offset == 0) &&
           (!flag || (i.bytes == 0 && i.dst_offset <= 0xffffffff)) &&
           (i.op != opcode::fence || i.bytes <= 0xffffffff);
  }

  const json& m_root;
};

}  // namespace

std::string to_json(const schedule& s) {
  json levels = json::array();
  for (const level& l : s.levels) levels.push_back({{"name", l.name}, {"via", l.via}});
  std::string out = "{\n\"sucl_plan\": 1,\n\"hash\": \"" + hexadecimal(hash(s)) +
                    "\",\n\"collective\": " + to_json_value(s.what).dump() +
                    ",\n\"algorithm\": " + json(s.algorithm).dump() +
                    ",\n\"levels\": " + levels.dump() + ",\n\"ranks\": [";
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    out += std::string(r == 0 ? "" : ",") +
           "\n{\"scratch\": " + std::to_string(s.ranks[r].scratch_bytes) + ", \"channels\": [";
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
      out += c == 0 ? "[" : ", [";
      const channel& code = s.ranks[r].channels[c];
      for (std::size_t k = 0; k < code.size(); ++k) {
        out += k == 0 ? "\n" : ",\n";
        put(out, code[k]);
      }
      out += "]";
    }
    out += "]}";
  }
  return out + "\n]\n}\n";
}

schedule from_json(std::string_view text) {
  bool deep = false;
  const json root = json::parse(
      text,
      [&deep](int depth, json::parse_event_t, json&) {
        if (depth <= most_depth) return true;
        deep = true;
        return false;  // it is not kept
      },
      false);
  if (deep)
    base::fail(
        errc::invalid_argument,
        "the plan's JSON has lists within lists, more than " + std::to_string(most_depth) + " deep",
        "src/plan/ir/schedule.schema.json describes the form.");
  if (root.is_discarded())
    base::fail(errc::invalid_argument, "the plan's text is no JSON",
               "Plans are written by to_json(), or as text that begins with 'sucl-plan 1'.");
  schedule s = reader(root).read();
  check(s.what);
  check_names(s);
  if (root.contains("hash") && root["hash"] != hexadecimal(hash(s)))
    base::fail(errc::invalid_argument, "the plan's hash is not that of its content",
               "The file was changed or cut short: write it again, or remove the member \"hash\".");
  return s;
}

}  // namespace sucl::plan
