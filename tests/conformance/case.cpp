// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include "elements.hpp"

#include <algorithm>

namespace sucl::conformance {
namespace {

constexpr std::size_t counts[] = {0, 1, 17, 1000, 70001};

std::vector<std::string> list(factor f) {
  switch (f) {
    case f_kind: {
      std::vector<std::string> all;
      for (int k = 0; k <= SUCL_KIND_GROUP; ++k) all.push_back(name(static_cast<kind>(k)));
      return all;
    }
    case f_type: {
      std::vector<std::string> all;
      for (const auto& row : elements) all.push_back(row.name);
      return all;
    }
    case f_op: {
      std::vector<std::string> all;
      for (int o = 0; o < SUCL_OP_COUNT; ++o) all.push_back(name(static_cast<op>(o)));
      return all;
    }
    case f_form: return {"event", "blocking", "chained", "persistent"};
    case f_memory:
      return {"device",   "host",     "shared", "system",   "buffer1d",
              "buffer2d", "buffer3d", "mixed",  "symmetric"};
    case f_in_place: return {"no", "yes"};
    case f_comm: return {"world", "in_order", "reversed", "host"};
    case f_root: return {"first", "last"};
    case f_count: {
      std::vector<std::string> all;
      for (const auto n : counts) all.push_back(std::to_string(n));
      return all;
    }
    default: return {};
  }
}

bool op_fits(const test_case& c) {
  if (!reduces(c.kind())) return c.op() == op::none;
  const bool prefix = c.kind() == kind::scan || c.kind() == kind::exscan;
  return elements[c.at[f_type]].reducible && defined(c.op(), c.element().t) &&
         !(prefix && c.op() == op::avg);
}

// Which calls the API has in place, and out of place.
bool in_place_fits(const test_case& c) {
  const bool pointers = !is_buffer(c.at[f_memory]) && c.at[f_memory] != mixed_memory;
  switch (c.kind()) {
    case kind::broadcast: return c.in_place();
    case kind::barrier:
    case kind::gatherv:
    case kind::scatterv:
    case kind::send:
    case kind::recv:
    case kind::sendrecv:
    case kind::group: return !c.in_place();
    case kind::reduce_scatter:
    case kind::allgatherv:
    case kind::alltoallv:
    case kind::gather:
    case kind::scatter: return !c.in_place() || pointers;
    default: return true;
  }
}

}  // namespace

const std::vector<std::string>& names(factor f) {
  static const auto all = [] {
    std::array<std::vector<std::string>, factors> lists;
    for (int i = 0; i < factors; ++i) lists[i] = list(static_cast<factor>(i));
    return lists;
  }();
  return all[f];
}

const char* factor_name(factor f) {
  static constexpr const char* all[] = {"kind",     "type", "op",    "form", "memory",
                                        "in_place", "comm", "count", "root"};
  return all[f];
}

std::size_t count_of(int value) { return counts[value]; }

reference::element test_case::element() const {
  return {elements[at[f_type]].t, elements[at[f_type]].size};
}

memory test_case::memory_of(int rank) const {
  static constexpr memory cycle[] = {device_memory, buffer_2d,   system_memory, buffer_1d,
                                     shared_memory, host_memory, buffer_3d};
  if (at[f_memory] != mixed_memory) return static_cast<memory>(at[f_memory]);
  return cycle[(rank + at[f_root]) % 7];
}

std::string test_case::text() const {
  std::string line;
  for (int f = 0; f < factors; ++f)
    line += std::string(f == 0 ? "" : " ") + factor_name(static_cast<factor>(f)) + "=" +
            names(static_cast<factor>(f))[at[f]];
  return line;
}

bool valid(const test_case& c) {
  const int m = c.at[f_memory];
  if (!op_fits(c) || !in_place_fits(c)) return false;
  if (c.kind() == kind::barrier)
    return c.at[f_type] == 0 && c.at[f_count] == 0 && c.at[f_root] == 0 && m == system_memory;
  if (!rooted(c.kind()) && m != mixed_memory && c.at[f_root] != 0) return false;
  const bool queueless = m == system_memory || m == symmetric_memory || is_buffer(m);
  if (c.at[f_comm] == host_comm && !queueless) return false;
  if (c.at[f_form] == persistent_form && (is_buffer(m) || m == mixed_memory)) return false;
  return !(is_buffer(m) || m == mixed_memory) || in_buffers(c.kind(), c.at[f_type]);
}

filter::filter() {
  for (int f = 0; f < factors; ++f) allowed[f].assign(names(static_cast<factor>(f)).size(), true);
  allowed[f_form][persistent_form] = allowed[f_memory][symmetric_memory] = false;
}

std::string filter::restrict(const std::string& argument) {
  const auto equals = argument.find('=');
  const std::string key = argument.substr(0, equals);
  int f = 0;
  while (f < factors && key != factor_name(static_cast<factor>(f))) ++f;
  if (f == factors || equals == std::string::npos)
    return "'" + argument + "' is not FACTOR=VALUE,...";
  const auto& known = names(static_cast<factor>(f));
  allowed[f].assign(known.size(), false);
  std::string rest = argument.substr(equals + 1) + ",";
  for (auto comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
    const std::string value = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    const auto at = std::find(known.begin(), known.end(), value);
    if (at == known.end()) return "factor " + key + " has no value '" + value + "'";
    allowed[f][static_cast<std::size_t>(at - known.begin())] = true;
  }
  return {};
}

namespace {

constexpr int open_value = -1;

struct pair {
  int f, v, g, w;
};

// Chooses cases one after the other, each the best of a few random ones that fill a gap.
class chooser {
 public:
  chooser(const filter& f, std::uint64_t seed, int ranks)
      : m_filter(f), m_turn(ranks % 2), m_state(seed + 1) {
    int start = 0;
    for (int i = 0; i < factors; ++i) {
      m_start[i] = start;
      start += static_cast<int>(f.allowed[i].size());
    }
    m_width = start;
    m_covered.assign(static_cast<std::size_t>(start) * start, false);
    list_triples();
  }

  std::vector<test_case> choose() {
    for (const auto& t : m_triples) {
      if (!reduces(static_cast<kind>(t[0])) || t[0] % 2 != m_turn) continue;
      test_case wanted = nothing();
      std::copy(t.begin(), t.end(), wanted.at.begin());
      add(wanted);
    }
    for (int f = 0; f < factors; ++f)
      for (int g = f + 1; g < factors; ++g) fill(f, g);
    return std::move(m_chosen);
  }

 private:
  static test_case nothing() {
    test_case c;
    c.at.fill(open_value);
    return c;
  }

  void list_triples() {
    test_case c;
    c.at[f_memory] = system_memory;
    const auto& a = m_filter.allowed;
    for (std::size_t k = 0; k < a[f_kind].size(); ++k)
      for (std::size_t t = 0; t < a[f_type].size(); ++t)
        for (std::size_t o = 0; o < a[f_op].size(); ++o) {
          std::copy_n(std::array<int, 3>{int(k), int(t), int(o)}.begin(), 3, c.at.begin());
          if (a[f_kind][k] && a[f_type][t] && a[f_op][o] && op_fits(c))
            m_triples.push_back({c.at[0], c.at[1], c.at[2]});
        }
  }

  std::vector<bool>::reference covered(int f, int v, int g, int w) {
    return m_covered[static_cast<std::size_t>(m_start[f] + v) * m_width + m_start[g] + w];
  }

  void fill(int f, int g) {
    const auto& a = m_filter.allowed;
    for (int v = 0; v < static_cast<int>(a[f].size()); ++v)
      for (int w = 0; w < static_cast<int>(a[g].size()); ++w) {
        if (!a[f][v] || !a[g][w] || covered(f, v, g, w)) continue;
        test_case wanted = nothing();
        wanted.at[f] = v;
        wanted.at[g] = w;
        add(wanted);
      }
  }

  void add(const test_case& wanted) {
    test_case best;
    int most = -1;
    for (int candidate = 0; candidate < 20; ++candidate) {
      test_case c = wanted;
      if (!complete(c)) continue;
      const int gain = uncovered(c);
      if (gain > most) best = c;
      most = std::max(most, gain);
    }
    if (most < 0) return;  // the API has no such call
    for (int f = 0; f < factors; ++f)
      for (int g = f + 1; g < factors; ++g) covered(f, best.at[f], g, best.at[g]) = true;
    m_chosen.push_back(best);
  }

  int uncovered(const test_case& c) {
    int n = 0;
    for (int f = 0; f < factors; ++f)
      for (int g = f + 1; g < factors; ++g) n += !covered(f, c.at[f], g, c.at[g]);
    return n;
  }

  // Fills what is open at random; false if that did not give a valid case.
  bool complete(test_case& c) {
    std::vector<const std::array<int, 3>*> fitting;
    for (const auto& t : m_triples)
      if (fits(c.at[0], t[0]) && fits(c.at[1], t[1]) && fits(c.at[2], t[2])) fitting.push_back(&t);
    if (fitting.empty()) return false;
    const auto& chosen = *fitting[draw(fitting.size())];
    std::copy(chosen.begin(), chosen.end(), c.at.begin());
    const test_case start = c;
    for (int attempt = 0; attempt < 200; ++attempt) {
      c = start;
      for (int f = f_form; f < factors; ++f)
        if (c.at[f] == open_value) c.at[f] = any(static_cast<factor>(f));
      if (valid(c)) return true;
    }
    return false;
  }

  static bool fits(int wanted, int value) { return wanted == open_value || wanted == value; }

  // The large count takes most of the time, so it is drawn less often.
  int any(factor f) {
    const auto& a = m_filter.allowed[f];
    for (;;) {
      const auto v = draw(a.size());
      if (a[v] && (f != f_count || v + 1 < a.size() || draw(3) == 0 || only(a, v)))
        return static_cast<int>(v);
    }
  }

  static bool only(const std::vector<bool>& a, std::size_t v) {
    return std::count(a.begin(), a.end(), true) == 1 && a[v];
  }

  std::size_t draw(std::size_t n) { return reference::mix(m_state, ++m_draws) % n; }

  const filter& m_filter;
  int m_turn;
  std::uint64_t m_state;
  std::uint64_t m_draws = 0;
  std::array<int, factors> m_start{};
  int m_width = 0;
  std::vector<bool> m_covered;
  std::vector<std::array<int, 3>> m_triples;
  std::vector<test_case> m_chosen;
};

}  // namespace

std::vector<test_case> cover(const filter& f, std::uint64_t seed, int ranks) {
  return chooser(f, seed, ranks).choose();
}

}  // namespace sucl::conformance
