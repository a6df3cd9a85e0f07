// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>
#include <bit>

namespace sucl::fabric {
namespace {

// Messages to so many peers are in flight at once.
constexpr int window = 16;
// Up to here a reduction needs the fewest steps, whatever it sends.
constexpr std::uint64_t short_bytes = std::uint64_t{2} << 10;
// Up to here all contributions are received before they are combined.
constexpr std::uint64_t gathered_bytes = std::uint64_t{256} << 10;
// Up to here two ranks exchange whole messages.
constexpr std::uint64_t whole_bytes = std::uint64_t{256} << 10;
// From here on ranks are chained.
constexpr std::uint64_t chained_bytes = std::uint64_t{1} << 20;

bool in_place(const sucl_operation& o) { return (o.flags & SUCL_FLAG_IN_PLACE) != 0; }

std::byte* received(const sucl_operation& o) { return static_cast<std::byte*>(o.recv); }

std::byte* input(const sucl_operation& o) {
  return in_place(o) ? received(o) : static_cast<std::byte*>(const_cast<void*>(o.send));
}

// Where the blocks of the ranks lie, in bytes.
struct layout {
  std::byte* base = nullptr;
  const std::uint64_t* counts = nullptr;
  const std::uint64_t* displs = nullptr;
  std::uint64_t element = 1;
  std::uint64_t uniform = 0;  ///< elements, where there are no counts
  std::uint64_t stride = 0;   ///< elements, where there are no displs

  std::uint64_t bytes(int r) const { return (counts ? counts[r] : uniform) * element; }
  std::byte* at(int r) const {
    return base + (displs ? displs[r] : static_cast<std::uint64_t>(r) * stride) * element;
  }
};

layout uniform_blocks(const sucl_operation& o, std::byte* base) {
  return {base, nullptr, nullptr, o.element_size, o.count, o.count};
}

// One memory for every rank.
layout same_block(const sucl_operation& o, std::byte* base, std::uint64_t bytes) {
  return {base, nullptr, nullptr, o.element_size, bytes / o.element_size, 0};
}

// What a rank sends itself moves within memory; with the others it exchanges blocks, which of no
// length are no messages.
void exchange(schedule& s, const layout& from, const layout& to) {
  for (int k = 1; k < s.size(); ++k) {
    const int source = (s.rank() + s.size() - k) % s.size();
    const int sink = (s.rank() + k) % s.size();
    if (to.bytes(source) > 0) s.receive(source, to.at(source), to.bytes(source));
    if (from.bytes(sink) > 0) s.send(sink, from.at(sink), from.bytes(sink));
    if (k % window == 0) s.next_stage();
  }
}

void copy_own(schedule& s, const layout& from, const layout& to) {
  if (from.bytes(s.rank()) != to.bytes(s.rank()))
    throw problem{SUCL_ERROR_INVALID_COUNT,
                  "rank " + std::to_string(s.rank()) + " sends itself " +
                      std::to_string(from.bytes(s.rank()) / from.element) +
                      " elements and receives " + std::to_string(to.bytes(s.rank()) / to.element),
                  "Give the own rank the same count on both sides."};
  s.copy_aside(to.at(s.rank()), from.at(s.rank()), to.bytes(s.rank()));
}

// The input in parts of whole elements, one for each rank.
struct parts {
  std::vector<std::uint64_t> counts, displs;
  layout of;

  parts(const sucl_operation& o, std::byte* base, int ranks) {
    const auto n = static_cast<std::uint64_t>(ranks);
    for (std::uint64_t r = 0; r < n; ++r) {
      counts.push_back(o.count / n + (r < o.count % n ? 1 : 0));
      displs.push_back(r == 0 ? 0 : displs.back() + counts[r - 1]);
    }
    of = {base, counts.data(), displs.data(), o.element_size, 0, 0};
  }
};

// Combines block r of every rank's `from` at rank r, in `into`, where its own is. All at once, and
// combined in the order of ranks.
void reduce_gathered(schedule& s, const layout& from, std::byte* into, std::byte* scratch) {
  const std::uint64_t own = from.bytes(s.rank());
  layout to = {scratch, nullptr, nullptr, 1, own, own};
  exchange(s, from, to);
  s.next_stage();
  for (int r = 0; r < s.size(); ++r)
    if (r != s.rank()) s.fold(into, to.at(r), own);
}

// The same with one peer after the other, each piece combined as it comes: a permutation of the
// ranks in each step, so that no rank is sent to by two. `own` is what this rank contributes to its
// block; where that is `into`, all pieces come to scratch.
void reduce_pairwise(schedule& s, const layout& from, const std::byte* own, std::byte* into,
                     std::byte* scratch) {
  const std::uint64_t bytes = from.bytes(s.rank());
  for (int k = 1; k < s.size(); ++k) {
    const int source = (s.rank() + s.size() - k) % s.size();
    const int sink = (s.rank() + k) % s.size();
    if (k == 1 && own != into)
      s.fold_pieces(source, {into, false, own, nullptr}, bytes, -1);
    else
      s.fold_pieces(source, {scratch, true, nullptr, into}, bytes, -1);
    s.send_pieces(sink, from.at(sink), from.bytes(sink));
    s.next_stage();
  }
}

std::uint64_t gathered_scratch(const schedule& s, std::uint64_t block) {
  return block * static_cast<std::uint64_t>(s.size());
}

// Recursive doubling: in each step a rank and its partner combine what they have. Ranks beyond the
// largest power of two have others take part for them.
void allreduce_doubling(schedule& s, std::byte* data, std::uint64_t bytes) {
  const int p = s.size();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
  const int rest = p - power;
  const bool paired = s.rank() < 2 * rest;
  std::byte* scratch = s.scratch(bytes * (std::bit_width(static_cast<unsigned>(power)) + 1u));
  if (paired && s.rank() % 2 == 0) {
    s.send(s.rank() + 1, data, bytes);
    s.next_stage();
    s.receive(s.rank() + 1, data, bytes);
    return;
  }
  if (paired) {
    s.receive(s.rank() - 1, scratch, bytes);
    s.next_stage();
    s.fold(data, scratch, bytes);
  }
  const int me = paired ? s.rank() / 2 : s.rank() - rest;
  for (int mask = 1; mask < power; mask *= 2) {
    scratch += bytes;
    const int other = me ^ mask;
    const int peer = other < rest ? 2 * other + 1 : other + rest;
    s.receive(peer, scratch, bytes);
    s.send(peer, data, bytes);
    s.next_stage();
    s.fold(data, scratch, bytes);
  }
  if (paired) s.send(s.rank() - 1, data, bytes);
}

// Short, each sends all that it has: as many bytes as halves there and back, in one step. Long,
// each combines one half: the pieces of results follow those of inputs without a pause, and half as
// much is combined.
void allreduce_of_two(schedule& s, const sucl_operation& o, std::uint64_t bytes) {
  const int peer = 1 - s.rank();
  if (bytes <= whole_bytes) {
    std::byte* theirs = in_place(o) ? s.scratch(bytes) : received(o);
    s.receive(peer, theirs, bytes);
    s.send(peer, input(o), bytes);
    s.next_stage();
    return s.fold(received(o), in_place(o) ? theirs : input(o), bytes);
  }
  const parts from(o, input(o), 2), to(o, received(o), 2);
  const std::uint64_t own = from.of.bytes(s.rank());
  std::byte* sum = to.of.at(s.rank());
  if (in_place(o))
    s.fold_and_return(peer, {s.scratch(s.turns_bytes(own)), true, nullptr, sum}, own);
  else
    s.fold_and_return(peer, {sum, false, from.of.at(s.rank()), nullptr}, own);
  s.send_and_get(peer, from.of.at(peer), to.of.at(peer), from.of.bytes(peer));
}

// The ranks of a tree: counted from the root.
struct tree {
  const schedule& s;
  int root;
  int me() const { return (s.rank() - root + s.size()) % s.size(); }
  int rank(int position) const { return (position + root) % s.size(); }
};

// A chain, in which pieces follow each other, is as fast as one link once it is filled.
bool takes_chain(const schedule& s, std::uint64_t bytes) {
  return bytes > 2 * chained_bytes &&
         static_cast<std::uint64_t>(std::max(0, s.size() - 2)) * chained_bytes <= bytes;
}

void reduce_tree(schedule& s, const sucl_operation& o, const tree& t, std::uint64_t bytes) {
  std::vector<int> children;
  int mask = 1;
  for (; mask < s.size() && (t.me() & mask) == 0; mask *= 2)
    if (t.me() + mask < s.size()) children.push_back(t.rank(t.me() + mask));
  const bool is_root = t.me() == 0;
  const int parent = is_root ? -1 : t.rank(t.me() - mask);
  if (children.empty() && !is_root) return s.send(parent, input(o), bytes);
  std::byte* scratch = s.scratch(bytes * (children.size() + 1));
  std::byte* sum = is_root ? received(o) : scratch;
  s.copy(sum, input(o), bytes);
  for (std::size_t i = 0; i < children.size(); ++i)
    s.receive(children[i], scratch + (i + 1) * bytes, bytes);
  s.next_stage();
  for (std::size_t i = 0; i < children.size(); ++i) s.fold(sum, scratch + (i + 1) * bytes, bytes);
  if (!is_root) s.send(parent, sum, bytes);
}

void reduce_chain(schedule& s, const sucl_operation& o, const tree& t, std::uint64_t bytes) {
  const int before = t.rank(t.me() + 1), after = t.rank(t.me() - 1 + s.size());
  if (t.me() == s.size() - 1) return s.send_pieces(after, input(o), bytes);
  if (t.me() == 0 && !in_place(o))
    return s.fold_pieces(before, {received(o), false, input(o), nullptr}, bytes, -1);
  std::byte* scratch = s.scratch(s.turns_bytes(bytes));
  if (t.me() == 0)
    s.fold_pieces(before, {scratch, true, nullptr, received(o)}, bytes, -1);
  else
    s.fold_pieces(before, {scratch, true, input(o), nullptr}, bytes, after);
}

}  // namespace

// Dissemination: after step k each has signals of 2^k ranks.
void plan_barrier(schedule& s, const sucl_operation&) {
  for (int k = 1; k < s.size(); k *= 2) {
    s.receive((s.rank() + s.size() - k) % s.size(), nullptr, 0);
    s.send((s.rank() + k) % s.size(), nullptr, 0);
    s.next_stage();
  }
}

void plan_broadcast(schedule& s, const sucl_operation& o) {
  const tree t{s, o.root};
  const std::uint64_t bytes = s.bytes_of(o.count);
  std::byte* data = t.me() == 0 ? input(o) : received(o);
  if (bytes == 0) return;
  if (takes_chain(s, bytes)) {
    const int next = t.me() + 1 < s.size() ? t.rank(t.me() + 1) : -1;
    if (t.me() > 0)
      s.relay_pieces(t.rank(t.me() - 1), data, bytes, next);
    else if (next >= 0)
      s.send_pieces(next, data, bytes);
    return;
  }
  int mask = 1;
  for (; mask < s.size(); mask *= 2) {
    if ((t.me() & mask) == 0) continue;
    s.receive(t.rank(t.me() - mask), data, bytes);
    s.next_stage();
    break;
  }
  for (mask /= 2; mask > 0; mask /= 2)
    if (t.me() + mask < s.size()) s.send(t.rank(t.me() + mask), data, bytes);
}

void plan_reduce(schedule& s, const sucl_operation& o) {
  const tree t{s, o.root};
  const std::uint64_t bytes = s.bytes_of(o.count);
  if (s.size() == 1) return s.copy(received(o), input(o), bytes);
  if (bytes == 0) return;
  if (takes_chain(s, bytes))
    reduce_chain(s, o, t, bytes);
  else
    reduce_tree(s, o, t, bytes);
}

void plan_allreduce(schedule& s, const sucl_operation& o) {
  const std::uint64_t bytes = s.bytes_of(o.count);
  if (bytes == 0) return;
  if (s.size() == 2) return allreduce_of_two(s, o, bytes);
  if (s.size() == 1 || bytes <= short_bytes) {
    s.copy(received(o), input(o), bytes);
    if (s.size() > 1) allreduce_doubling(s, received(o), bytes);
    return;
  }
  const parts from(o, input(o), s.size()), to(o, received(o), s.size());
  const std::uint64_t own = from.of.bytes(s.rank());
  std::byte* sum = to.of.at(s.rank());
  if (bytes <= gathered_bytes && s.size() <= window) {
    s.copy(sum, from.of.at(s.rank()), own);
    reduce_gathered(s, from.of, sum, s.scratch(gathered_scratch(s, own)));
  } else {
    reduce_pairwise(s, from.of, from.of.at(s.rank()), sum, s.scratch(s.turns_bytes(own)));
  }
  exchange(s, same_block(o, sum, own), to.of);
}

void plan_reduce_scatter(schedule& s, const sucl_operation& o) {
  layout from = uniform_blocks(o, input(o));
  std::vector<std::uint64_t> displs;
  if (o.kind == SUCL_KIND_REDUCE_SCATTER) {
    for (int r = 0; r < s.size(); ++r)
      displs.push_back(r == 0 ? 0 : displs.back() + o.recv_counts[r - 1]);
    from = {input(o), o.recv_counts, displs.data(), o.element_size, 0, 0};
  }
  std::uint64_t total = 0;
  for (int r = 0; r < s.size(); ++r) total += from.bytes(r);
  const std::uint64_t own = from.bytes(s.rank());
  std::byte* mine = from.at(s.rank());
  if (s.size() == 1) return s.copy(received(o), mine, own);
  const bool gathered = total <= gathered_bytes && s.size() <= window;
  // In place, the start of recv may still be sent from.
  const std::uint64_t kept = in_place(o) ? own : 0;
  std::byte* scratch = s.scratch(kept + (gathered ? gathered_scratch(s, own) : s.turns_bytes(own)));
  std::byte* sum = in_place(o) ? scratch : received(o);
  if (gathered) {
    s.copy(sum, mine, own);
    reduce_gathered(s, from, sum, scratch + kept);
  } else {
    reduce_pairwise(s, from, mine, sum, scratch + kept);
  }
  if (in_place(o)) s.copy(received(o), sum, own);
}

// In place, where it knows them, the counts of recv say what this rank contributes; without
// displacements, at a rank that is not the root of a gatherv, recv starts with its block.
void plan_allgather(schedule& s, const sucl_operation& o) {
  layout to = uniform_blocks(o, received(o));
  if (o.kind == SUCL_KIND_ALLGATHERV)
    to = {received(o), o.recv_counts, o.recv_displs, o.element_size, 0, 0};
  std::byte* own = to.at(s.rank());
  const std::uint64_t bytes = to.bytes(s.rank());
  if (!in_place(o)) {
    own = input(o);
    copy_own(s, same_block(o, own, s.bytes_of(o.count)), to);
  }
  exchange(s, same_block(o, own, bytes), to);
}

void plan_alltoall(schedule& s, const sucl_operation& o) {
  layout from = uniform_blocks(o, input(o)), to = uniform_blocks(o, received(o));
  if (o.kind == SUCL_KIND_ALLTOALLV) {
    to = {received(o), o.recv_counts, o.recv_displs, o.element_size, 0, 0};
    from = in_place(o) ? to : layout{input(o), o.send_counts, o.send_displs, o.element_size, 0, 0};
  }
  if (!in_place(o)) {
    copy_own(s, from, to);
    return exchange(s, from, to);
  }
  // What is replaced travels from a copy.
  std::vector<std::uint64_t> counts, displs;
  std::uint64_t total = 0;
  for (int r = 0; r < s.size(); ++r) {
    counts.push_back(from.bytes(r));
    displs.push_back(total);
    total += counts.back();
  }
  const layout saved = {s.scratch(total), counts.data(), displs.data(), 1, 0, 0};
  for (int r = 0; r < s.size(); ++r)
    if (r != s.rank()) s.copy(saved.at(r), from.at(r), from.bytes(r));
  exchange(s, saved, to);
}

void plan_gather(schedule& s, const sucl_operation& o) {
  const bool varied = o.kind == SUCL_KIND_GATHERV;
  if (s.rank() != o.root) {
    const std::uint64_t offset = varied ? 0 : static_cast<std::uint64_t>(s.rank()) * o.count;
    const std::byte* own = input(o) + (in_place(o) ? s.bytes_of(offset) : 0);
    if (o.count > 0) s.send(o.root, own, s.bytes_of(o.count));
    return;
  }
  layout to = uniform_blocks(o, received(o));
  if (varied) to = {received(o), o.recv_counts, o.recv_displs, o.element_size, 0, 0};
  if (!in_place(o)) copy_own(s, same_block(o, input(o), s.bytes_of(o.count)), to);
  for (int r = 0; r < s.size(); ++r)
    if (r != s.rank() && to.bytes(r) > 0) s.receive(r, to.at(r), to.bytes(r));
}

// In place, the root keeps its block where it lies: all blocks are in recv.
void plan_scatter(schedule& s, const sucl_operation& o) {
  const std::uint64_t bytes = s.bytes_of(o.count);
  if (s.rank() != o.root) {
    if (bytes > 0) s.receive(o.root, received(o), bytes);
    return;
  }
  layout from = uniform_blocks(o, input(o));
  if (o.kind == SUCL_KIND_SCATTERV)
    from = {input(o), o.send_counts, o.send_displs, o.element_size, 0, 0};
  if (!in_place(o)) copy_own(s, from, same_block(o, received(o), bytes));
  for (int r = 0; r < s.size(); ++r)
    if (r != s.rank() && from.bytes(r) > 0) s.send(r, from.at(r), from.bytes(r));
}

// In step k each rank has the sum of 2^k ranks up to it. An exclusive one is that of the rank
// before.
void plan_scan(schedule& s, const sucl_operation& o) {
  const std::uint64_t bytes = s.bytes_of(o.count);
  if (bytes == 0) return;
  const bool exclusive = o.kind == SUCL_KIND_EXSCAN;
  std::byte* scratch = s.scratch(2 * bytes);
  std::byte* sum = exclusive ? scratch + bytes : received(o);
  s.copy(sum, input(o), bytes);
  for (int k = 1; k < s.size(); k *= 2) {
    if (s.rank() >= k) s.receive(s.rank() - k, scratch, bytes);
    if (s.rank() + k < s.size()) s.send(s.rank() + k, sum, bytes);
    s.next_stage();
    if (s.rank() >= k) s.fold(sum, scratch, bytes);
  }
  if (!exclusive) return;
  if (s.rank() > 0) s.receive(s.rank() - 1, received(o), bytes);
  if (s.rank() + 1 < s.size()) s.send(s.rank() + 1, sum, bytes);
}

}  // namespace sucl::fabric
