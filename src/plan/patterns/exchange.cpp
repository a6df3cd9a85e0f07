// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "plan/patterns/phase.hpp"
#include "plan/patterns/team.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sucl::plan {
namespace {

int product(const std::vector<int>& factors) {
  return std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>());
}

// What the phases of one member have in common.
struct member_view {
  builder& b;
  const team& t;
  const ends& cuts;
  int member;
  int ports;

  int rank() const { return t.ranks[static_cast<std::size_t>(member)]; }
  int rank_of(int other) const { return t.ranks[static_cast<std::size_t>(other)]; }
  std::uint64_t begin(window w) const { return cuts[static_cast<std::size_t>(w.first)]; }
  std::uint64_t size(window w) const {
    return cuts[static_cast<std::size_t>(w.first + w.count)] - begin(w);
  }
  address at(window w) const { return t.base[static_cast<std::size_t>(member)] + begin(w); }
  address input(window w) const { return t.input(static_cast<std::size_t>(member)) + begin(w); }
  int batch(const phase& p) const { return batch_of(ports, p.factor - 1); }
};

// A phase of reduce-scatter: every rank sends each partner's part of the window, and reduces what
// comes in. Partners come in the order digit + 1, digit + 2, ..., `ports` at a time. Where the
// input lies apart, as it does before the first phase, the first message goes straight to the
// result.
void scatter_phase(const member_view& v, const phase& p, window before) {
  const int rank = v.rank(), digit = p.digit(v.member), f = p.factor;
  const window mine = before.part(digit, f);
  const bool apart = v.input(mine) != v.at(mine);
  const std::uint64_t mark = v.b.scratch_mark(rank);
  const int batch = v.batch(p);
  std::vector<address> landing;
  for (int k = 0; k < batch; ++k) {
    const bool taken = k > 0 || !apart || batch < f - 1;
    landing.push_back(taken ? v.b.scratch(rank, v.size(mine)) : address{});
  }
  for (int first = 1; first < f; first += batch) {
    const int last = std::min(f, first + batch);
    const auto in = [&](int k) {
      return apart && k == 1 ? v.at(mine) : landing[static_cast<std::size_t>(k - first)];
    };
    for (int k = first; k < last; ++k) {
      const window theirs = before.part((digit + k) % f, f);
      v.b.send(rank, v.rank_of(p.partner(v.member, k)), v.input(theirs), v.size(theirs));
      v.b.receive(rank, v.rank_of(p.partner(v.member, f - k)), in(k), v.size(mine));
    }
    v.b.fence(rank);
    for (int k = first; k < last; ++k)
      v.b.reduce(rank, v.at(mine), apart && k == 1 ? v.input(mine) : in(k), v.size(mine));
  }
  v.b.scratch_release(rank, mark);
}

// A phase of allgather: every rank sends its window to all partners and takes theirs.
void gather_phase(const member_view& v, const phase& p, window before) {
  const int rank = v.rank(), digit = p.digit(v.member), f = p.factor;
  const window mine = before.part(digit, f);
  for (int k = 1; k < f; ++k) {
    const window theirs = before.part((digit + f - k) % f, f);
    v.b.send(rank, v.rank_of(p.partner(v.member, k)), v.at(mine), v.size(mine));
    v.b.receive(rank, v.rank_of(p.partner(v.member, f - k)), v.at(theirs), v.size(theirs));
    if (k % v.batch(p) == 0) v.b.fence(rank);
  }
  v.b.fence(rank);
}

// A phase in which partners exchange their whole window and all fold it in order of digits, in one
// fold, so that all get the same expression. Of the first two either may come first. Where the
// input lies apart, the first message of the others goes straight to the result.
void whole_phase(const member_view& v, const phase& p, window w) {
  const int rank = v.rank(), digit = p.digit(v.member), f = p.factor;
  const std::uint64_t mark = v.b.scratch_mark(rank);
  std::vector<address> landing(static_cast<std::size_t>(f));
  const bool apart = v.input(w) != v.at(w);
  const int direct = !apart ? -1 : digit > 0 ? 0 : 1;
  for (int k = 1; k < f; ++k) {
    const int other = (digit + f - k) % f;
    address& in = landing[static_cast<std::size_t>(other)];
    in = other == direct ? v.at(w) : v.b.scratch(rank, v.size(w));
    v.b.send(rank, v.rank_of(p.partner(v.member, k)), v.input(w), v.size(w));
    v.b.receive(rank, v.rank_of(p.partner(v.member, f - k)), in, v.size(w));
    if (k % v.batch(p) == 0) v.b.fence(rank);
  }
  v.b.fence(rank);
  landing[static_cast<std::size_t>(digit)] = v.input(w);
  // The fold goes to the memory of the first part, or of the second.
  const int first = direct >= 0 ? direct : digit == 1 ? 1 : 0;
  const address to = landing[static_cast<std::size_t>(first)];
  for (int d = 0; d < f; ++d)
    if (d != first) v.b.reduce(rank, to, landing[static_cast<std::size_t>(d)], v.size(w));
  v.b.copy(rank, v.at(w), to, v.size(w));
  v.b.scratch_release(rank, mark);
}

void check_radices(const std::vector<int>& radices, int members) {
  const bool positive = std::all_of(radices.begin(), radices.end(), [](int f) { return f > 1; });
  if (positive && product(radices) == members) return;
  std::string list;
  for (const int f : radices) {
    if (!list.empty()) list += ',';
    list += std::to_string(f);
  }
  base::fail(errc::invalid_argument,
             "radices " + list + " do not multiply to " + std::to_string(members) + " members",
             "Give factors above 1 of that number, or take the cyclic shift, which needs none.");
}

}  // namespace

std::vector<int> factors_of(int n, int radix) {
  std::vector<int> list;
  for (int f = std::max(radix, 2); n > 1;) {
    if (n % f == 0) {
      list.push_back(f);
      n /= f;
    } else if (f > 2 && f <= radix) {
      --f;  // smaller factors first, then larger ones
    } else {
      f = std::max(f, radix) + 1;
      if (f > n) f = n;
    }
  }
  return list;
}

std::vector<int> powers_below(int n, int radix) {
  std::vector<int> list;
  for (int product = 1; n / product >= radix; product *= radix) list.push_back(radix);
  int power = 1;
  for (const int f : list) power *= f;
  // What is left of n may still take one smaller factor.
  if (n / power > 1) list.push_back(n / power);
  return list;
}

void exchange_reduce_scatter(builder& b, const team& t, const ends& cuts,
                             const std::vector<int>& radices, int ports) {
  check_radices(radices, t.size());
  if (t.size() == 1) return b.copy(t.ranks[0], t.base[0], t.input(0), cuts[1] - cuts[0]);
  const team later{t.ranks, t.base, {}};
  const auto list = phases(radices, true, t.size());
  for (int m = 0; m < t.size(); ++m) {
    const auto w = windows(list, m, t.size());
    for (std::size_t k = 0; k < list.size(); ++k)
      scatter_phase({b, k == 0 ? t : later, cuts, m, ports}, list[k], w[k]);
  }
}

void exchange_allgather(builder& b, const team& t, const ends& cuts,
                        const std::vector<int>& radices, int ports) {
  check_radices(radices, t.size());
  const auto list = phases(radices, true, t.size());
  for (int m = 0; m < t.size(); ++m) {
    const auto w = windows(list, m, t.size());
    for (std::size_t k = list.size(); k-- > 0;) gather_phase({b, t, cuts, m, ports}, list[k], w[k]);
  }
}

namespace {

// Members 2i and 2i + 1 for i < extra are one member of the exchange, which 2i stands for.
void fold_in(builder& b, const team& t, std::uint64_t bytes, int extra) {
  for (int e = 0; e < extra; ++e) {
    const auto keeps = static_cast<std::size_t>(2 * e), hands = keeps + 1;
    const int rank = t.ranks[keeps];
    const bool apart = t.apart(keeps);
    const std::uint64_t mark = b.scratch_mark(rank);
    const address landing = apart ? t.base[keeps] : b.scratch(rank, bytes);
    b.send(t.ranks[hands], rank, t.input(hands), bytes);
    b.fence(t.ranks[hands]);
    b.receive(rank, t.ranks[hands], landing, bytes);
    b.fence(rank);
    b.reduce(rank, t.base[keeps], apart ? t.input(keeps) : landing, bytes);
    b.scratch_release(rank, mark);
  }
}

void fold_out(builder& b, const team& t, std::uint64_t bytes, int extra) {
  for (int e = 0; e < extra; ++e) {
    const auto keeps = static_cast<std::size_t>(2 * e), hands = keeps + 1;
    b.send(t.ranks[keeps], t.ranks[hands], t.base[keeps], bytes);
    b.fence(t.ranks[keeps]);
    b.receive(t.ranks[hands], t.ranks[keeps], t.base[hands], bytes);
    b.fence(t.ranks[hands]);
  }
}

}  // namespace

void exchange_allreduce(builder& b, const team& t, std::uint64_t bytes,
                        const std::vector<int>& radices, int split, int ports) {
  const int members = product(radices), extra = t.size() - members;
  if (extra < 0 || extra > members) check_radices(radices, t.size());
  team inner, later;
  for (int m = 0; m < t.size(); ++m) {
    if (m < 2 * extra && m % 2 == 1) continue;
    const auto i = static_cast<std::size_t>(m);
    later.ranks.push_back(t.ranks[i]);
    later.base.push_back(t.base[i]);
    inner.from.push_back(m < 2 * extra ? t.base[i] : t.input(i));
  }
  inner.ranks = later.ranks;
  inner.base = later.base;
  check_radices(radices, inner.size());
  fold_in(b, t, bytes, extra);
  if (members == 1) b.copy(inner.ranks[0], inner.base[0], inner.input(0), bytes);
  const auto list = phases(radices, false, members);
  const auto halves = static_cast<std::size_t>(split);
  int parts = 1;
  for (std::size_t k = 0; k < halves; ++k) parts *= list[k].factor;
  const ends cuts = cut_evenly(bytes, b.element(), parts);
  for (int m = 0; m < members; ++m) {
    const member_view first{b, inner, cuts, m, ports}, v{b, later, cuts, m, ports};
    const auto w = windows({list.begin(), list.begin() + split}, m, parts);
    for (std::size_t k = 0; k < halves; ++k) scatter_phase(k == 0 ? first : v, list[k], w[k]);
    for (std::size_t k = halves; k < list.size(); ++k)
      whole_phase(k == 0 ? first : v, list[k], w.back());
    for (std::size_t k = halves; k-- > 0;) gather_phase(v, list[k], w[k]);
  }
  fold_out(b, t, bytes, extra);
}

}  // namespace sucl::plan
