// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "plan/serialization/file_limits.hpp"
#include "plan/serialization/json_line.hpp"
#include "plan/serialization/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace sucl::plan {
namespace {

using nlohmann::json;

// Plans are not so deep, and the recursion of readers could overflow the stack.
constexpr int max_depth = 16;

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

// Reads a plan; every error names the path and the line.
class reader {
 public:
  reader(const json& root, std::string_view text) : m_root(root), m_text(text) {}

  schedule read() const {
    expect(m_root.is_object() && number(m_root, "sucl_plan", m_top) == 1, m_top,
           "a plan of version 1 (\"sucl_plan\": 1)");
    schedule s;
    read_problem(member(m_root, "collective", m_top), s.what);
    s.algorithm = text(m_root, "algorithm", m_top);
    const json& levels = array(m_root, "levels", m_top);
    const json_path of_levels = m_top.member("levels");
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const json_path at = of_levels.element(l);
      s.levels.push_back({text(levels[l], "name", at), text(levels[l], "via", at)});
    }
    const json& ranks = array(m_root, "ranks", m_top);
    const json_path of_ranks = m_top.member("ranks");
    for (std::size_t r = 0; r < ranks.size(); ++r)
      s.ranks.push_back(read_rank(ranks[r], of_ranks.element(r)));
    return s;
  }

  void expect_hash(const std::string& hash) const {
    if (!m_root.contains("hash") || m_root["hash"] == hash) return;
    base::fail(
        errc::invalid_argument,
        "the plan's hash" + line(m_top.member("hash"), " (", ")") + " is not that of its content",
        "The file was changed or cut short: write it again, or remove the member \"hash\".");
  }

 private:
  // As in "line 3", between two texts; nothing if it cannot be found.
  std::string line(const json_path& at, const char* before, const char* after) const {
    const std::size_t found = line_in_json(m_text, to_text(at));
    return found == 0 ? "" : before + ("line " + std::to_string(found)) + after;
  }
  [[noreturn]] void fail(const json_path& at, const std::string& expected) const {
    const std::string path = to_text(at);
    base::fail(errc::invalid_argument,
               "the plan's JSON has at '" + (path.empty() ? "the top" : path) + "'" +
                   line(at, " (", ")") + " no " + expected,
               "src/plan/schedule.schema.json describes the form.");
  }
  // Words are made only for what is wrong: a plan has millions of values.
  void expect(bool good, const json_path& at, const char* expected) const {
    if (!good) fail(at, expected);
  }

  const json& member(const json& j, const char* key, const json_path& at) const {
    if (!j.is_object() || !j.contains(key)) fail(at, std::string("member \"") + key + "\"");
    return j[key];
  }
  const json& array(const json& j, const char* key, const json_path& at) const {
    const json& a = member(j, key, at);
    expect(a.is_array(), at.member(key), "list");
    return a;
  }
  std::uint64_t to_number(const json& j, const json_path& at,
                          const range& wanted = any_bytes) const {
    expect(j.is_number_unsigned(), at, "number that is a whole one and not negative");
    const auto n = j.get<std::uint64_t>();
    if (!wanted.contain(n))
      base::check_bounds("the plan's JSON" + line(at, ", ", ""), to_text(at), n, wanted,
                         errc::invalid_argument);
    return n;
  }
  std::int32_t to_small(const json& j, const json_path& at,
                        const range& wanted = rank_numbers) const {
    return static_cast<std::int32_t>(to_number(j, at, wanted));
  }
  std::uint64_t number(const json& j, const char* key, const json_path& at,
                       const range& wanted = any_bytes) const {
    return to_number(member(j, key, at), at.member(key), wanted);
  }
  std::string text(const json& j, const char* key, const json_path& at) const {
    const json& t = member(j, key, at);
    expect(t.is_string(), at.member(key), "text");
    return t.get<std::string>();
  }

  std::vector<std::uint64_t> numbers(const json& j, const char* key, const json_path& at) const {
    const json& from = array(j, key, at);
    const json_path path = at.member(key);
    std::vector<std::uint64_t> list;
    for (std::size_t i = 0; i < from.size(); ++i)
      list.push_back(to_number(from[i], path.element(i)));
    return list;
  }

  void read_problem(const json& j, problem& p) const {
    const json_path at = m_top.member("collective");
    const std::string word = text(j, "kind", at);
    p.kind = kind::group;
    for (int k = 0; k < SUCL_KIND_COUNT; ++k)
      if (word == sucl::name(static_cast<kind>(k))) p.kind = static_cast<kind>(k);
    expect((p.kind == kind::group) == (word == custom), at.member("kind"), "known collective");
    p.ranks = to_small(member(j, "ranks", at), at.member("ranks"), rank_counts);
    p.root = to_small(member(j, "root", at), at.member("root"));
    p.element_bytes = number(j, "element_bytes", at, element_sizes);
    expect(member(j, "in_place", at).is_boolean(), at.member("in_place"), "true or false");
    p.in_place = j["in_place"].get<bool>();
    const std::string order = text(j, "order", at);
    bool known = false;
    p.order = ordering_named(order, known);
    expect(known, at.member("order"), "\"any\", \"ranked\", \"fixed\" or \"free\"");
    p.counts = numbers(j, "counts", at);
    if (j.contains("send_displs")) p.send_displs = numbers(j, "send_displs", at);
    if (j.contains("recv_displs")) p.recv_displs = numbers(j, "recv_displs", at);
    if (p.kind == kind::group) read_outcome(array(j, "outcome", at), at.member("outcome"), p);
  }

  void read_outcome(const json& lists, const json_path& at, problem& p) const {
    for (std::size_t r = 0; r < lists.size(); ++r) {
      const json_path of_rank = at.element(r);
      expect(lists[r].is_array(), of_rank, "list of pieces");
      p.outcome.emplace_back();
      for (std::size_t i = 0; i < lists[r].size(); ++i)
        p.outcome.back().push_back(read_piece(lists[r][i], of_rank.element(i)));
    }
  }

  piece read_piece(const json& j, const json_path& at) const {
    piece part{number(j, "offset", at), number(j, "bytes", at), {}};
    const json& terms = array(j, "terms", at);
    const json_path of_terms = at.member("terms");
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const json& t = terms[i];
      const json_path path = of_terms.element(i);
      expect(t.is_array() && t.size() == 3, path, "term of three numbers");
      part.terms.push_back({to_small(t[0], path.element(0)),
                            to_small(t[1], path.element(1), rank_counts),
                            to_number(t[2], path.element(2))});
    }
    return part;
  }

  program read_rank(const json& j, const json_path& at) const {
    program rank{number(j, "scratch", at), {}};
    const json& channels = array(j, "channels", at);
    const json_path of_channels = at.member("channels");
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const json& code = channels[c];
      const json_path path = of_channels.element(c);
      expect(code.is_array(), path, "list of instructions");
      rank.channels.emplace_back();
      for (std::size_t i = 0; i < code.size(); ++i)
        rank.channels.back().push_back(read_instruction(code[i], path.element(i)));
    }
    return rank;
  }

  template <class Enum>
  Enum one_of(const json& j, int count, const json_path& at) const {
    expect(j.is_string(), at, "name as text");
    const auto& word = j.get_ref<const std::string&>();
    for (int i = 0; i < count; ++i)
      if (word == name(static_cast<Enum>(i))) return static_cast<Enum>(i);
    fail(at, "known name in place of '" + word + "'");
  }

  instruction read_instruction(const json& j, const json_path& at) const {
    expect(j.is_array() && j.size() == 8, at, "instruction of eight fields");
    instruction i;
    i.op = one_of<opcode>(j[0], opcode_count, at.element(0));
    const bool no_peer = j[1].is_number_integer() && j[1].get<std::int64_t>() == -1;
    if (!no_peer) i.peer = to_small(j[1], at.element(1));
    i.dst = one_of<space>(j[2], space_count, at.element(2));
    i.dst_offset = to_number(j[3], at.element(3));
    i.src = one_of<space>(j[4], space_count, at.element(4));
    i.src_offset = to_number(j[5], at.element(5));
    i.bytes = to_number(j[6], at.element(6));
    i.level = static_cast<std::uint8_t>(to_number(j[7], at.element(7), {0, max_levels - 1}));
    if (!has_its_fields(i))
      fail(at, std::string("'") + name(i.op) +
                   "' with the fields that it needs, and -1, none and 0 in the others");
    return i;
  }

  // The text form has no other fields.
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
  std::string_view m_text;
  json_path m_top;
};

// "line 2, column 6: syntax error while parsing value - invalid literal" of the parser's message,
// which goes on with what it last read: that may be megabytes.
std::string location_of(const json::exception& e) {
  std::string_view what = e.what();
  for (const std::string_view before : {"] ", "parse error at "})
    if (const auto at = what.find(before); at != what.npos) what.remove_prefix(at + before.size());
  return std::string(what.substr(0, std::min<std::size_t>(what.find("; last read"), 200)));
}

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
  if (text.size() > max_json_bytes)
    base::fail(
        errc::invalid_argument,
        "the plan's JSON has more than the " + base::print_bytes(max_json_bytes) + " that are read",
        "Give the plan as text, which is shorter, or one of fewer ranks.");
  if (base::nests_deeper(text, max_depth))
    base::fail(
        errc::invalid_argument,
        "the plan's JSON has lists within lists, more than " + std::to_string(max_depth) + " deep",
        "src/plan/schedule.schema.json describes the form.");
  json root;
  try {
    root = json::parse(text);
  } catch (const json::exception& e) {
    base::fail(errc::invalid_argument, "the plan's text is no JSON: " + location_of(e),
               "Correct it there or before it. Plans are written by to_json(), or as text that "
               "begins with 'sucl-plan 1'.");
  }
  const reader from(root, text);
  schedule s = from.read();
  check(s.what);
  check_names(s);
  from.expect_hash(hexadecimal(hash(s)));
  return s;
}

}  // namespace sucl::plan
