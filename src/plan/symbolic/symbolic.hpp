// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the verifier computes with: symbolic values and memories that hold them by runs of bytes.
#pragma once

#include "plan/ir/fold_rules.hpp"
#include "plan/ir/problem.hpp"
#include "plan/symbolic/proof_cost.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sucl::plan {

/// The value of a run of bytes: byte x of the memory holds, of every term of value `id`, input byte
/// x + shift + term.shift.
struct symbol {
  std::uint32_t id = 0;  ///< 0: never written
  std::int64_t shift = 0;

  friend bool operator==(const symbol&, const symbol&) = default;
};

/// A run of ranks that contribute the same offset of their inputs.
struct share {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int64_t shift = 0;

  friend bool operator==(const share&, const share&) = default;
};

/// All values of one verification. Two values have the same id exactly if they are the same
/// expression under the fold_rules, but for the offset in the inputs. The shares of a value, which
/// are what it is made of whatever the expression, are sorted, merged, and start with shift 0.
class value_table {
 public:
  enum class outcome { good, twice, order };

  value_table(int ranks, ordering order, fold_rules rules, proof_cost& cost);

  symbol input_of(int rank, std::int64_t shift) const {
    return {static_cast<std::uint32_t>(rank) + 1, shift};
  }

  /// Combines two values that were written, `a` on the left. `open`: `a` is the partial result of
  /// a fold that goes on. On a fault `result` is untouched.
  outcome combine(symbol a, symbol b, bool open, symbol& result);

  /// What a value is computed from; {0, 0} for an input.
  struct operands {
    std::uint32_t left = 0, right = 0;
    bool open = false;  ///< `left` is a partial result of the same fold
  };
  operands made_of(std::uint32_t id) const { return m_made_of[id]; }
  /// The expression in words: 0 + (1 + 2) of the inputs of these ranks. What is in parentheses is
  /// folded from the left and rounded once. Long ones are cut short.
  std::string text_of(std::uint32_t id) const;

  std::span<const share> shares(std::uint32_t id) const {
    return {m_shares.data() + m_values[id].begin, m_values[id].count};
  }
  std::uint64_t size() const { return m_values.size(); }

 private:
  struct extent_of_shares {
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  struct memo {
    std::uint32_t a = 0, b = 0;  // a == 0: empty
    std::int64_t delta = 0;
    symbol result;  // shift relative to a's
  };

  memo& slot(std::uint32_t a, std::uint32_t b, std::int64_t delta);
  void grow();
  void add_text(std::uint32_t id, int& left, std::string& text) const;
  bool merge(std::span<const share> a, std::span<const share> b, std::int64_t delta);

  ordering m_order;
  fold_rules m_rules;
  proof_cost& m_cost;
  std::vector<extent_of_shares> m_values;
  std::vector<operands> m_made_of;
  std::vector<share> m_shares;
  std::vector<memo> m_memos;
  std::size_t m_used = 0;
  std::vector<share> m_merged;
};

/// Sorts shares by rank and shift and joins neighbours. False if a contribution is there twice.
bool normalise(std::vector<share>& shares);

/// Which thread accessed a run of bytes, and when on its clock. The top bit of `stamp` says that a
/// posted transfer did, in which case the rest is its ticket.
struct access {
  static constexpr std::uint32_t no_thread = 0xffffffff;
  static constexpr std::uint32_t posted = 0x80000000;
  std::uint32_t thread = no_thread;
  std::uint32_t stamp = 0;
};

/// A run of bytes of equal value and history; it ends where the next begins.
struct segment {
  std::uint64_t begin = 0;
  symbol value;
  access write;
  access read;
  std::uint32_t more_reads = 0;  ///< 1 + index of a list of further reads; 0: none
};

/// One space of one rank, as segments in order of address. They are kept in blocks of bounded
/// size, so that cutting one costs the same however many there are.
class memory {
 public:
  /// A segment; valid until the next cut() or replace().
  struct cursor {
    std::uint32_t block = 0;
    std::uint32_t index = 0;
  };

  /// `cost` must outlive this object.
  void reset(std::uint64_t bytes, access start, proof_cost& cost);
  std::uint64_t bytes() const { return m_bytes; }

  /// The segment that holds byte `offset`. `hint` is where the caller found its last one, in any
  /// state of the memory: the next is often it or beside it.
  cursor find(std::uint64_t offset, cursor& hint) const;
  cursor find(std::uint64_t offset) const { return search(offset); }
  /// Whether the segment begins at `end` or later, or there is none.
  bool past(cursor c, std::uint64_t end) const {
    return c.block == m_blocks.size() || m_blocks[c.block][c.index].begin >= end;
  }
  void next(cursor& c) const {
    if (++c.index < m_blocks[c.block].size()) return;
    ++c.block;
    c.index = 0;
  }
  segment& operator[](cursor c) { return m_blocks[c.block][c.index]; }
  const segment& operator[](cursor c) const { return m_blocks[c.block][c.index]; }
  std::uint64_t end_of(cursor c) const {
    next(c);
    return c.block == m_blocks.size() ? m_bytes : (*this)[c].begin;
  }

  /// Cuts segments so that one begins at each end of the range; returns the first of the range.
  cursor cut(std::uint64_t offset, std::uint64_t bytes, std::vector<std::vector<access>>& lists,
             cursor& hint);
  cursor cut(std::uint64_t offset, std::uint64_t bytes, std::vector<std::vector<access>>& lists) {
    cursor none;
    return cut(offset, bytes, lists, none);
  }

  /// Replaces the segments of a range, which cut() returned, by these, which cover the same bytes.
  void replace(cursor first, std::uint64_t bytes, std::span<const segment> segments);

 private:
  using block = std::vector<segment>;

  std::uint64_t end_of_block(std::uint32_t b) const {
    return b + 1 < m_blocks.size() ? m_first[b + 1] : m_bytes;
  }
  cursor search(std::uint64_t offset) const;
  void cut_at(cursor at, std::uint64_t offset, std::vector<std::vector<access>>& lists);
  void split(std::uint32_t b);
  void erase(cursor from, std::uint64_t end);

  std::uint64_t m_bytes = 0;
  proof_cost* m_cost = nullptr;
  std::vector<block> m_blocks;         // none empty
  std::vector<std::uint64_t> m_first;  // first byte of each block
};

}  // namespace sucl::plan
