// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "expected.hpp"

#include "bench/reference/delivery.hpp"
#include "bench/reference/fold.hpp"

#include <algorithm>

namespace sucl::bench {
namespace {

// A different number for every rank and index; which one does not matter.
std::uint64_t number(int rank, std::uint64_t index) {
  return reference::mix(static_cast<std::uint64_t>(rank), index);
}

// The largest whole number up to which all are exact in T.
template <class T>
constexpr std::int64_t exact_limit() {
  if constexpr (reference::is_narrow<T>) return 2 << reference::format_of<T>.fraction;
  return sizeof(T) == 1 ? 127 : 30000;
}

// Terms whose sum over all ranks stays exact.
template <class T>
std::int64_t term(std::uint64_t bits, const problem& p, int rank) {
  const std::int64_t most = std::min<std::int64_t>(50, exact_limit<T>() / p.ranks);
  if (most == 0) return rank < exact_limit<T>() ? static_cast<std::int64_t>(bits & 1) : 0;
  const auto value = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(most + 1));
  return std::is_unsigned_v<T> || (bits >> 32 & 1) == 0 ? value : -value;
}

// At most two ranks have a factor of 2 in a product.
std::int64_t factor(const problem& p, int rank, std::uint64_t index) {
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  const auto me = static_cast<std::uint64_t>(rank);
  return index % ranks == me || index / 3 % ranks == me ? 2 : 1;
}

// Whether a value could come out as it went in: then MPI leaves open whether true is 1.
bool may_be_alone(const problem& p) {
  return p.ranks == 1 || p.of == kind::scan || p.of == kind::exscan;
}

template <class T>
T logical_input(const problem& p, std::uint64_t bits) {
  const bool yes = p.reduction == op::logical_and ? bits % 8 != 0 : bits % 3 == 0;
  return static_cast<T>(!yes ? 0 : may_be_alone(p) ? 1 : 1 + (bits >> 8) % 3);
}

// One input of a reduction: small whole numbers, exact in every type.
template <class T>
T reduced_input(const problem& p, int rank, std::uint64_t index) {
  const std::uint64_t bits = number(rank, index);
  const op o = p.reduction;
  if constexpr (std::is_same_v<T, std::byte>) {
    return {};
  } else if constexpr (reference::is_loc<T>) {
    // Few different values, so that ties happen.
    T pair;
    std::memset(static_cast<void*>(&pair), 0, sizeof pair);
    pair.value = static_cast<decltype(T::value)>(bits % 4);
    pair.index = static_cast<std::int32_t>((bits >> 8) % 1000);
    return pair;
  } else if constexpr (reference::is_complex<T>) {
    using V = typename T::value_type;
    if (o == op::prod) return static_cast<V>(factor(p, rank, index));
    return {static_cast<V>(term<T>(bits, p, rank)), static_cast<V>(term<T>(bits >> 16, p, rank))};
  } else {
    if constexpr (std::is_integral_v<T>) {
      if (o == op::bit_and || o == op::bit_or || o == op::bit_xor) return static_cast<T>(bits);
      if (o == op::logical_and || o == op::logical_or || o == op::logical_xor)
        return logical_input<T>(p, bits);
    }
    const std::int64_t whole = o == op::prod ? factor(p, rank, index) : term<T>(bits, p, rank);
    if constexpr (reference::is_narrow<T>)
      return reference::narrowed<T>(static_cast<double>(whole));
    else
      return static_cast<T>(whole);
  }
}

// Writes `count` elements of what a rank sends, from `index` on. Data that is only moved has
// arbitrary bytes.
void write_input(const problem& p, int rank, std::uint64_t index, std::uint64_t count,
                 std::byte* to) {
  const std::size_t size = p.element_size();
  for (std::uint64_t i = index; !reduces(p.of) && i < index + count; ++i)
    for (std::size_t done = 0; done < size; done += 8) {
      const std::uint64_t word = number(rank, i * 4 + done / 8);
      std::memcpy(to, &word, std::min<std::size_t>(8, size - done));
      to += std::min<std::size_t>(8, size - done);
    }
  if (!reduces(p.of)) return;
  reference::with_type(p.element, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::uint64_t i = 0; i < count; ++i) {
      const T value = reduced_input<T>(p, rank, index + i);
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace

std::vector<std::byte> make_input(const problem& p, int rank, std::uint64_t elements) {
  std::vector<std::byte> memory(elements * p.element_size());
  write_input(p, rank, 0, elements, memory.data());
  return memory;
}

std::vector<std::byte> make_expected(const problem& p, std::byte untouched) {
  const sucl_operation o = operation_of(p);
  std::vector<std::byte> memory(recv_elements(p) * p.element_size(), untouched);
  if (in_place(p))
    for (const reference::block& own : reference::contributed(o, p.rank, p.ranks))
      write_input(p, p.rank, 0, own.count, memory.data() + own.at * p.element_size());
  for (const reference::piece& piece : reference::delivered(o, p.rank, p.ranks)) {
    std::byte* const to = memory.data() + piece.at * p.element_size();
    if (!reduces(p.of)) {
      write_input(p, piece.first, piece.offset, piece.count, to);
      continue;
    }
    reference::with_type(p.element, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      for (std::uint64_t i = 0; i < piece.count; ++i) {
        const T value = reference::fold<T>(p.reduction, piece.last - piece.first + 1, [&](int r) {
          return reduced_input<T>(p, piece.first + r, piece.offset + i);
        });
        std::memcpy(to + i * sizeof(T), &value, sizeof(T));
      }
    });
  }
  return memory;
}

std::string find_difference(const problem& p, const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& got) {
  const std::size_t size = p.element_size();
  const reference::element e{p.element, size};
  const op o = reduces(p.of) ? p.reduction : op::none;
  for (std::size_t at = 0; at < expected.size(); at += size)
    if (!reference::same(e, o, &got[at], &expected[at]))
      return "element " + std::to_string(at / size) + " is " + reference::text(e, o, &got[at]) +
             ", should be " + reference::text(e, o, &expected[at]);
  return {};
}

}  // namespace sucl::bench
