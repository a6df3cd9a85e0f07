// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What rank 0 holds while a symmetric plan is proved: expressions, up to translation.
#pragma once

#include "plan/symmetric/digits.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace sucl::plan {

/// An expression, translated by `by`. Equal expressions are equal values. Node 0: none.
struct translated_value {
  std::uint32_t node = 0;
  std::int32_t by = 0;

  friend bool operator==(const translated_value&, const translated_value&) = default;
};

/// The expressions of a proof. Each is kept once for all of its translations, with the digits whose
/// translations leave it as it is.
class translated_values {
 public:
  explicit translated_values(const digits& ranks) : m_ranks(ranks), m_nodes(1) {}

  /// The input of rank 0 at this offset. Translated to a rank, it is that rank's input at the
  /// translated offset.
  translated_value input(std::uint64_t offset);

  translated_value translate(translated_value v, int by) const;

  /// `a op b`. `commutes`: b op a has the same bits. `open`: a partial result of a longer fold.
  translated_value combine(translated_value a, translated_value b, bool commutes, bool open);

  /// The fold of these in their order, on every rank in the same one: the ranks of number i in
  /// digit `digit` contribute part i. None if the parts are not translations of each other.
  std::optional<translated_value> fold_along(int digit, const std::vector<translated_value>& parts);

  /// Calls `visit` with each input, as rank and offset, until it returns false; then false.
  bool for_each_input(translated_value v, const std::function<bool(int, std::uint64_t)>& visit);

  bool is_input(translated_value v) const { return m_nodes[v.node].what == form::input; }
  std::size_t count() const { return m_nodes.size() - 1; }

 private:
  enum class form : std::uint8_t { input, pair, open_pair, along };
  struct node {
    form what = form::input;
    std::uint64_t where = 0;       // of an input; of a fold along a digit: digit, and part 0's
    std::uint32_t a = 0, b = 0;    // a pair's, the first as it is
    std::int32_t apart = 0;        // and the second translated by this
    std::uint64_t unmoved_by = 0;  // digits, as bits
  };
  using key = std::array<std::uint64_t, 4>;

  translated_value keep(const node& n, int by);
  // What translates a pair, and how far apart its parts are.
  std::pair<int, int> common(translated_value a, translated_value b) const;

  const digits& m_ranks;
  std::vector<node> m_nodes;
  std::map<key, std::uint32_t> m_known;
};

}  // namespace sucl::plan
