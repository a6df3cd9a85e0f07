// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "plan/team.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sucl::plan {
namespace {

int product(const std::vector<int>& factors) {
  return std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>());
}

// One phase of a recursive exchange: members whose numbers differ only in this digit meet.
struct phase {
  int factor;
  int stride;
};

std::vector<phase> phases(const std::vector<int>& radices, bool far_first, int members) {
  std::vector<phase> list;
  int stride = far_first ? members : 1;
  for (const int f : radices) {
    if (far_first) stride /= f;
    list.push_back({f, stride});
    if (!far_first) stride *= f;
  }
  return list;
}

// The chunks that a member works on before each phase, and after the last.
struct window {
  int first, count;
};

std::vector<window> windows(const std::vector<phase>& list, int member, int members) {
  std::vector<window> all{{0, members}};
  for (const phase& p : list) {
    const window w = all.back();
    const int part = w.count / p.factor;
    all.push_back({w.first + member / p.stride % p.factor * part, part});
  }
  return all;
}

int partner(int member, const phase& p, int digit) {
  return member + (digit - member / p.stride % p.factor) * p.stride;
}

int batch_of(int ports, int messages) { return ports > 0 ? std::min(ports, messages) : messages; }

// A phase of reduce-scatter: everybody sends each partner's part of the window, and reduces what
// comes in. Partners come in the order digit + 1, digit + 2, ..., `ports` at a time.
void scatter_phase(builder& b, const team& t, const ends& cuts, const phase& p, int member,
                   window before, window after, int ports) {
  const int rank = t.ranks[static_cast<std::size_t>(member)];
  const place base = t.base[static_cast<std::size_t>(member)];
  const auto end = [&](int chunk) { return cuts[static_cast<std::size_t>(chunk)]; };
  const int digit = member / p.stride % p.factor, part = before.count / p.factor;
  const std::uint64_t mine = end(after.first), size = end(after.first + after.count) - mine;
  const std::uint64_t mark = b.scratch_mark(rank);
  const int batch = batch_of(ports, p.factor - 1);
  std::vector<place> landing;
  for (int k = 0; k < batch; ++k) landing.push_back(b.scratch(rank, size));
  for (int begin = 1; begin < p.factor; begin += batch) {
    const int last = std::min(p.factor, begin + batch);
    for (int k = begin; k < last; ++k) {
      const int to = (digit + k) % p.factor, from = (digit + p.factor - k) % p.factor;
      const std::uint64_t theirs = end(before.first + to * part);
      b.send(rank, t.ranks[static_cast<std::size_t>(partner(member, p, to))], base + theirs,
             end(before.first + (to + 1) * part) - theirs);
      b.receive(rank, t.ranks[static_cast<std::size_t>(partner(member, p, from))],
                landing[static_cast<std::size_t>(k - begin)], size);
    }
    b.fence(rank);
    for (int k = begin; k < last; ++k)
      b.reduce(rank, base + mine, landing[static_cast<std::size_t>(k - begin)], size);
  }
  b.scratch_release(rank, mark);
}

// A phase of allgather: everybody sends its window to all partners and takes theirs.
void gather_phase(builder& b, const team& t, const ends& cuts, const phase& p, int member,
                  window before, window after, int ports) {
  const int rank = t.ranks[static_cast<std::size_t>(member)];
  const place base = t.base[static_cast<std::size_t>(member)];
  const auto end = [&](int chunk) { return cuts[static_cast<std::size_t>(chunk)]; };
  const int digit = member / p.stride % p.factor;
  const std::uint64_t mine = end(after.first), size = end(after.first + after.count) - mine;
  const int batch = batch_of(ports, p.factor - 1);
  for (int k = 1; k < p.factor; ++k) {
    const int to = (digit + k) % p.factor, from = (digit + p.factor - k) % p.factor;
    const std::uint64_t theirs = end(before.first + from * after.count);
    b.send(rank, t.ranks[static_cast<std::size_t>(partner(member, p, to))], base + mine, size);
    b.receive(rank, t.ranks[static_cast<std::size_t>(partner(member, p, from))], base + theirs,
              end(before.first + (from + 1) * after.count) - theirs);
    if (k % batch == 0) b.fence(rank);
  }
  b.fence(rank);
}

// A phase in which partners exchange their whole window and all reduce it, in order of digits, so
// that all get the same expression: the lower ones together, then the own, then the higher ones.
void whole_phase(builder& b, const team& t, const ends& cuts, const phase& p, int member,
                 window w, int ports) {
  const int rank = t.ranks[static_cast<std::size_t>(member)];
  const std::uint64_t begin = cuts[static_cast<std::size_t>(w.first)];
  const std::uint64_t size = cuts[static_cast<std::size_t>(w.first + w.count)] - begin;
  const place own = t.base[static_cast<std::size_t>(member)] + begin;
  const int digit = member / p.stride % p.factor;
  const std::uint64_t mark = b.scratch_mark(rank);
  const int batch = batch_of(ports, p.factor - 1);
  std::vector<place> landing(static_cast<std::size_t>(p.factor));
  for (int k = 1; k < p.factor; ++k) {
    const int to = (digit + k) % p.factor, from = (digit + p.factor - k) % p.factor;
    landing[static_cast<std::size_t>(from)] = b.scratch(rank, size);
    b.send(rank, t.ranks[static_cast<std::size_t>(partner(member, p, to))], own, size);
    b.receive(rank, t.ranks[static_cast<std::size_t>(partner(member, p, from))],
              landing[static_cast<std::size_t>(from)], size);
    if (k % batch == 0) b.fence(rank);
  }
  b.fence(rank);
  for (int d = 1; d < digit; ++d)
    b.reduce(rank, landing[0], landing[static_cast<std::size_t>(d)], size);
  if (digit > 0) b.reduce(rank, own, landing[0], size);
  for (int d = digit + 1; d < p.factor; ++d)
    b.reduce(rank, own, landing[static_cast<std::size_t>(d)], size);
  b.scratch_release(rank, mark);
}

void check_radices(const std::vector<int>& radices, int members) {
  const bool positive = std::all_of(radices.begin(), radices.end(), [](int f) { return f > 1; });
  if (positive && product(radices) == members) return;
  std::string list;
  for (const int f : radices) list += (list.empty() ? "" : ",") + std::to_string(f);
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
  const auto list = phases(radices, true, t.size());
  for (int m = 0; m < t.size(); ++m) {
    const auto w = windows(list, m, t.size());
    for (std::size_t k = 0; k < list.size(); ++k)
      scatter_phase(b, t, cuts, list[k], m, w[k], w[k + 1], ports);
  }
}

void exchange_allgather(builder& b, const team& t, const ends& cuts,
                        const std::vector<int>& radices, int ports) {
  check_radices(radices, t.size());
  const auto list = phases(radices, true, t.size());
  for (int m = 0; m < t.size(); ++m) {
    const auto w = windows(list, m, t.size());
    for (std::size_t k = list.size(); k-- > 0;)
      gather_phase(b, t, cuts, list[k], m, w[k], w[k + 1], ports);
  }
}

void exchange_allreduce(builder& b, const team& t, std::uint64_t bytes,
                        const std::vector<int>& radices, int split, int ports) {
  const int members = product(radices), extra = t.size() - members;
  if (extra < 0 || extra > members) check_radices(radices, t.size());
  // Members 2i and 2i + 1 for i < extra share one place in the exchange, taken by 2i.
  team inner;
  for (int m = 0; m < t.size(); ++m) {
    if (m < 2 * extra && m % 2 == 1) continue;
    inner.ranks.push_back(t.ranks[static_cast<std::size_t>(m)]);
    inner.base.push_back(t.base[static_cast<std::size_t>(m)]);
  }
  check_radices(radices, inner.size());
  for (int e = 0; e < extra; ++e) {
    const auto keeps = static_cast<std::size_t>(2 * e), hands = keeps + 1;
    const int rank = t.ranks[keeps];
    const std::uint64_t mark = b.scratch_mark(rank);
    const place landing = b.scratch(rank, bytes);
    b.send(t.ranks[hands], rank, t.base[hands], bytes);
    b.fence(t.ranks[hands]);
    b.receive(rank, t.ranks[hands], landing, bytes);
    b.fence(rank);
    b.reduce(rank, t.base[keeps], landing, bytes);
    b.scratch_release(rank, mark);
  }
  const auto list = phases(radices, false, members);
  const auto halves = std::vector<phase>(list.begin(), list.begin() + split);
  int parts = 1;
  for (const phase& p : halves) parts *= p.factor;
  const ends cuts = cut_evenly(bytes, b.element(), parts);
  for (int m = 0; m < members; ++m) {
    const auto w = windows(halves, m, parts);
    for (std::size_t k = 0; k < halves.size(); ++k)
      scatter_phase(b, inner, cuts, halves[k], m, w[k], w[k + 1], ports);
    for (std::size_t k = halves.size(); k < list.size(); ++k)
      whole_phase(b, inner, cuts, list[k], m, w.back(), ports);
    for (std::size_t k = halves.size(); k-- > 0;)
      gather_phase(b, inner, cuts, halves[k], m, w[k], w[k + 1], ports);
  }
  for (int e = 0; e < extra; ++e) {
    const auto keeps = static_cast<std::size_t>(2 * e), hands = keeps + 1;
    b.send(t.ranks[keeps], t.ranks[hands], t.base[keeps], bytes);
    b.fence(t.ranks[keeps]);
    b.receive(t.ranks[hands], t.ranks[keeps], t.base[hands], bytes);
    b.fence(t.ranks[hands]);
  }
}

}  // namespace sucl::plan
