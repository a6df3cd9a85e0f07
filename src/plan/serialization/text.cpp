// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/serialization/text.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/serialization/file_limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace sucl::plan {
namespace {

constexpr range some_transfers{0, 0xffffffff};
constexpr range flag_numbers{0, 0xffffffff};

void put(std::string& out, std::uint64_t n) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
  out.append(digits.data(), end);
}

void put(std::string& out, std::string_view word, std::uint64_t n) {
  out += word;
  put(out, n);
}

void put_address(std::string& out, space s, std::uint64_t offset) {
  out += ' ';
  out += name(s);
  out += '+';
  put(out, offset);
}

bool has_peer(const instruction& i) {
  return i.op != opcode::fence && (i.peer >= 0 || i.op > opcode::reduce);
}

void put_instruction(std::string& out, const instruction& i) {
  out += name(i.op);
  if (has_peer(i)) put(out, " ", static_cast<std::uint64_t>(i.peer));
  switch (i.op) {
    case opcode::signal:
    case opcode::wait: put(out, " flag ", i.dst_offset); break;
    case opcode::fence:
      if (i.bytes > 0) put(out, " ", i.bytes);
      break;
    default:
      if (i.dst != space::none) put_address(out, i.dst, i.dst_offset);
      if (i.src != space::none) put_address(out, i.src, i.src_offset);
      put(out, " ", i.bytes);
  }
  if (i.level != 0) put(out, " @", i.level);
}

void put_list(std::string& out, std::string_view word, const std::vector<std::uint64_t>& list) {
  out += word;
  for (const std::uint64_t n : list) put(out, " ", n);
}

void put_problem(std::string& out, const problem& p) {
  out += "collective ";
  out += p.kind == kind::group ? custom : sucl::name(p.kind);
  put(out, " ranks ", static_cast<std::uint64_t>(p.ranks));
  if (rooted(p.kind)) put(out, " root ", static_cast<std::uint64_t>(p.root));
  put(out, " element ", p.element_bytes);
  if (p.in_place) out += " in_place";
  if (p.order != ordering::any) (out += ' ') += name(p.order);
  put_list(out, " counts", p.counts);
  out += '\n';
  if (!p.send_displs.empty()) put_list(out, "send_displs", p.send_displs), out += '\n';
  if (!p.recv_displs.empty()) put_list(out, "recv_displs", p.recv_displs), out += '\n';
  for (std::size_t r = 0; r < p.outcome.size(); ++r) {
    for (const piece& part : p.outcome[r]) {
      put(out, "outcome ", r);
      put(out, " ", part.offset);
      put(out, " ", part.bytes);
      for (const term& t : part.terms) {
        put(out, " ", static_cast<std::uint64_t>(t.first));
        put(out, ":", static_cast<std::uint64_t>(t.count));
        put(out, ":", t.source);
      }
      out += '\n';
    }
  }
}

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads the text form line by line, word by word. Files have millions of words: what only an error
// says is made for errors alone.
class reader {
 public:
  explicit reader(std::string_view text) : m_rest(text) {}

  // Goes to the next line that has words; false at the end.
  bool next_line() {
    while (!m_rest.empty()) {
      const std::size_t end = m_rest.find('\n');
      m_line = m_rest.substr(0, end);
      m_rest = end == std::string_view::npos ? std::string_view{} : m_rest.substr(end + 1);
      ++m_number;
      if (const std::size_t hash = m_line.find('#'); hash != std::string_view::npos)
        m_line = m_line.substr(0, hash);
      skip_blanks();
      if (!m_line.empty()) return true;
    }
    return false;
  }

  bool at_end() const { return m_line.empty(); }
  std::string_view peek() const { return m_word; }

  std::string_view word(const char* expected) {
    const std::string_view w = m_word;
    if (w.empty()) fail(expected);
    m_line.remove_prefix(w.size());
    skip_blanks();
    return w;
  }

  bool accept(std::string_view keyword) {
    if (m_word != keyword) return false;
    word("");
    return true;
  }

  void expect(std::string_view keyword) {
    if (!accept(keyword)) fail("'" + std::string(keyword) + "'");
  }

  std::string rest() {
    std::string_view r = m_line;
    while (!r.empty() && is_blank(r.back())) r.remove_suffix(1);
    m_line = m_word = {};
    return std::string(r);
  }

  std::uint64_t to_number(std::string_view w, const char* expected, const range& wanted) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), n);
    if (error != std::errc{} || end != w.data() + w.size()) fail(expected, w);
    if (!wanted.contain(n))
      base::check_bounds(location(), expected, n, wanted, errc::invalid_argument);
    return n;
  }

  std::uint64_t number(const char* expected, const range& wanted = any_bytes) {
    return to_number(word(expected), expected, wanted);
  }

  std::int32_t small(const char* expected, const range& wanted = rank_numbers) {
    return static_cast<std::int32_t>(number(expected, wanted));
  }

  bool at_number() const { return !m_line.empty() && m_line[0] >= '0' && m_line[0] <= '9'; }

  std::vector<std::uint64_t> numbers(const char* expected) {
    std::vector<std::uint64_t> list;
    while (!at_end()) list.push_back(number(expected));
    return list;
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found = {}) {
    if (found.empty()) found = peek();
    if (m_number == 0)
      base::fail(errc::invalid_argument, "the plan is empty: there is no line with words in it",
                 "The text form is described in docs/reference/plan-ir.md.");
    base::fail(errc::invalid_argument,
               location() + ": expected " + std::string(expected) + ", found " +
                   (found.empty() ? "the end of the line" : "'" + printable(found) + "'"),
               "The text form is described in docs/reference/plan-ir.md.");
  }

  std::string location() const { return "line " + std::to_string(m_number) + " of the plan"; }

 private:
  // A file may be no text at all.
  static std::string printable(std::string_view word) {
    constexpr std::size_t most = 40;
    std::string text(word.substr(0, most));
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return word.size() > most ? text + "..." : text;
  }

  void skip_blanks() {
    const auto* const begin = std::find_if_not(m_line.begin(), m_line.end(), is_blank);
    m_line.remove_prefix(static_cast<std::size_t>(begin - m_line.begin()));
    const auto* const end = std::find_if(m_line.begin(), m_line.end(), is_blank);
    m_word = m_line.substr(0, static_cast<std::size_t>(end - m_line.begin()));
  }

  std::string_view m_rest;
  std::string_view m_line;  ///< what is left of it
  std::string_view m_word;  ///< its first word
  int m_number = 0;
};

kind read_kind(reader& in) {
  const std::string_view w = in.peek();
  if (in.accept(custom)) return kind::group;
  for (int k = 0; k < SUCL_KIND_COUNT; ++k)
    if (w == sucl::name(static_cast<kind>(k))) return in.word(""), static_cast<kind>(k);
  in.fail("a collective, as in 'allreduce'");
}

void read_collective(reader& in, problem& p) {
  p.kind = read_kind(in);
  in.expect("ranks");
  p.ranks = in.small("the number of ranks", rank_counts);
  if (in.accept("root")) p.root = in.small("the root");
  in.expect("element");
  p.element_bytes = in.number("bytes of an element", element_sizes);
  p.in_place = in.accept("in_place");
  for (const ordering o : {ordering::ranked, ordering::fixed, ordering::free})
    if (p.order == ordering::any && in.accept(name(o))) p.order = o;
  in.expect("counts");
  p.counts = in.numbers("a count");
}

void read_outcome(reader& in, problem& p) {
  const auto rank = static_cast<std::size_t>(in.small("a rank"));
  if (p.ranks < 1 || rank >= static_cast<std::size_t>(p.ranks)) in.fail("a rank of the plan");
  p.outcome.resize(static_cast<std::size_t>(p.ranks));
  piece part{in.number("an offset"), in.number("a length"), {}};
  while (!in.at_end()) {
    const std::string_view w = in.word("a term");
    const std::size_t a = w.find(':'), b = w.find(':', a + 1);
    if (a == std::string_view::npos || b == std::string_view::npos)
      in.fail("a term 'first:count:source'", w);
    const std::uint64_t first = in.to_number(w.substr(0, a), "a rank", rank_numbers);
    const std::uint64_t count =
        in.to_number(w.substr(a + 1, b - a - 1), "a number of ranks", rank_counts);
    part.terms.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(count),
                          in.to_number(w.substr(b + 1), "a source offset", any_bytes)});
  }
  p.outcome[rank].push_back(std::move(part));
}

void read_address(reader& in, space& s, std::uint64_t& offset) {
  const std::string_view w = in.word("an address, as in 'recv+0'");
  const std::size_t plus = w.find('+');
  for (int i = 1; i < space_count; ++i) {
    if (plus == std::string_view::npos || w.substr(0, plus) != name(static_cast<space>(i)))
      continue;
    s = static_cast<space>(i);
    offset = in.to_number(w.substr(plus + 1), "an offset", any_bytes);
    return;
  }
  in.fail("an address, as in 'recv+0' or 'peer.send+64'", w);
}

std::optional<opcode> opcode_of(std::string_view word) {
  for (int op = 0; op < opcode_count; ++op)
    if (word == name(static_cast<opcode>(op))) return static_cast<opcode>(op);
  return std::nullopt;
}

instruction read_instruction(reader& in) {
  const std::string_view w = in.word("an instruction");
  instruction i;
  const auto op = opcode_of(w);
  if (!op) in.fail("an instruction, as in 'copy'", w);
  i.op = *op;
  if (i.op == opcode::fence) {
    if (in.at_number()) i.bytes = in.number("a number of transfers", some_transfers);
  } else {
    if (i.op > opcode::reduce || in.at_number()) i.peer = in.small("a peer");
    if (i.op == opcode::signal || i.op == opcode::wait) {
      in.expect("flag");
      i.dst_offset = in.number("the number of a flag", flag_numbers);
    } else {
      if (i.op != opcode::send) read_address(in, i.dst, i.dst_offset);
      if (i.op != opcode::receive) read_address(in, i.src, i.src_offset);
      i.bytes = in.number("a length");
    }
  }
  if (!in.at_end() && in.peek()[0] == '@') {
    i.level = static_cast<std::uint8_t>(
        in.to_number(in.word("").substr(1), "a level", {0, max_levels - 1}));
  }
  return i;
}

void read_rank(reader& in, schedule& s) {
  const std::int32_t rank = in.small("a rank");
  if (rank != static_cast<std::int32_t>(s.ranks.size()) || rank >= s.what.ranks)
    in.fail("rank " + std::to_string(s.ranks.size()) + ", in order");
  in.expect("scratch");
  s.ranks.push_back({in.number("bytes of scratch"), {}});
}

void read_level(reader& in, schedule& s) {
  if (in.number("the number of a level") != s.levels.size() || s.levels.size() >= max_levels)
    in.fail("level " + std::to_string(s.levels.size()) + ", in order");
  level l;
  l.name = in.word("the name of a level");
  in.expect("via");
  l.via = in.word("a transport");
  s.levels.push_back(std::move(l));
}

void read_line(reader& in, schedule& s) {
  if (in.accept("collective")) return read_collective(in, s.what);
  if (in.accept("send_displs")) return void(s.what.send_displs = in.numbers("a displacement"));
  if (in.accept("recv_displs")) return void(s.what.recv_displs = in.numbers("a displacement"));
  if (in.accept("outcome")) return read_outcome(in, s.what);
  if (in.accept("algorithm")) return void(s.algorithm = in.rest());
  if (in.accept("level")) return read_level(in, s);
  if (in.accept("rank")) return read_rank(in, s);
  if (s.ranks.empty()) in.fail("'rank 0'");
  auto& channels = s.ranks.back().channels;
  if (in.accept("channel")) {
    if (in.number("the number of a channel") != channels.size())
      in.fail("channel " + std::to_string(channels.size()) + ", in order");
    channels.emplace_back();
    return;
  }
  if (channels.empty()) in.fail("'channel 0'");
  channels.back().push_back(read_instruction(in));
}

}  // namespace

std::string to_text(const instruction& i) {
  std::string out;
  put_instruction(out, i);
  return out;
}

std::string to_text(const schedule& s) {
  std::string out = "sucl-plan 1\n";
  put_problem(out, s.what);
  out += "algorithm " + s.algorithm + "\n";
  for (std::size_t l = 0; l < s.levels.size(); ++l) {
    put(out, "level ", l);
    out += " " + s.levels[l].name + " via " + s.levels[l].via + "\n";
  }
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    put(out, "rank ", r);
    put(out, " scratch ", s.ranks[r].scratch_bytes);
    out += '\n';
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
      put(out, "channel ", c);
      out += '\n';
      for (const instruction& i : s.ranks[r].channels[c]) {
        out += "  ";
        put_instruction(out, i);
        out += '\n';
      }
    }
  }
  return out;
}

void check_names(const schedule& s) {
  const auto good = [](std::string_view name, char least) {
    return std::all_of(name.begin(), name.end(),
                       [least](char c) { return c >= least && c <= '~' && c != '#'; });
  };
  const auto refuse = [](const std::string& what) {
    base::fail(
        errc::invalid_argument, what + " of the plan cannot be written as text",
        "Use printable characters but '#', and no blanks in names of levels and transports.");
  };
  const std::string& a = s.algorithm;
  if (!good(a, ' ') || (!a.empty() && (a.front() == ' ' || a.back() == ' ')))
    refuse("the algorithm");
  for (const level& l : s.levels)
    if (l.name.empty() || l.via.empty() || !good(l.name, '!') || !good(l.via, '!'))
      refuse("the name or transport of a level");
}

schedule from_text(std::string_view text) {
  if (text.size() > max_text_bytes)
    base::fail(
        errc::invalid_argument,
        "the plan's text has more than the " + base::print_bytes(max_text_bytes) + " that are read",
        "Make a plan of fewer ranks, channels or pieces.");
  reader in(text);
  if (!in.next_line() || !in.accept("sucl-plan")) in.fail("'sucl-plan 1'");
  if (in.number("the version") != 1) in.fail("version 1");
  schedule s;
  while (in.next_line()) {
    read_line(in, s);
    if (!in.at_end()) in.fail("the end of the line");
  }
  if (s.what.kind == kind::group && s.what.ranks > 0)
    s.what.outcome.resize(static_cast<std::size_t>(s.what.ranks));
  check(s.what);
  check_names(s);
  return s;
}

}  // namespace sucl::plan
