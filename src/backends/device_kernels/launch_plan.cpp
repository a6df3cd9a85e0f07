// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/launch_plan.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

using kernels::alike;
using kernels::job;
using kernels::listed;
using kernels::way;

constexpr std::uint64_t quad_bytes = 16;
constexpr std::uint64_t line_of_cache = 128;
constexpr int all = -1;

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Writes down what goes where.
struct maker {
  const sucl_operation& o;
  const job_setting& s;
  kernel_launch k{};
  std::uint64_t size = o.element_size;
  std::uint64_t block = o.count * size;
  std::uint64_t most = block;  ///< of what a pair exchanges, as far as every rank knows
  bool known = true;           ///< every rank does

  bool in_place() const { return (o.flags & SUCL_FLAG_IN_PLACE) != 0; }
  bool at_root() const { return s.rank == o.root; }
  alike every(std::uint64_t stride, std::uint64_t start = 0) const {
    return {start, stride, block, 0, s.ranks};
  }
  alike only(int rank) const { return {0, 0, block, rank, rank + 1}; }
  alike nobody(std::uint64_t stride = 0) const { return {0, stride, 0, 0, 0}; }

  void folds(int ranks) {
    k.reduces = true;
    k.what.folded_ranks = ranks;
    k.what.fold_bytes = ranks > 0 ? block : 0;
  }
  void lists(const std::uint64_t* send_counts, const std::uint64_t* send_displs,
             const std::uint64_t* recv_counts, const std::uint64_t* recv_displs) {
    k.lists = std::make_unique<listed[]>(2);
    for (int r = 0; r < s.ranks; ++r) {
      k.lists[0].start[r] = send_displs ? send_displs[r] * size : 0;
      k.lists[0].size[r] = send_counts ? send_counts[r] * size : 0;
      k.lists[1].start[r] = recv_displs ? recv_displs[r] * size : 0;
      k.lists[1].size[r] = recv_counts ? recv_counts[r] * size : 0;
    }
  }

  void barrier() {
    block = most = 1;
    k.send = {0, 0, 1, 0, s.ranks};
    k.recv = {0, 0, 1, 0, s.ranks};
  }
  void broadcast() {
    k.send = at_root() ? every(0) : nobody();
    k.recv = only(o.root);
  }
  void reduce() {
    k.send = only(o.root);
    k.recv = at_root() ? every(0) : nobody();
    k.what.own_bytes = block;
    folds(s.ranks);
    if (!at_root()) k.what.fold_bytes = 0;
  }
  void allreduce() {
    k.send = k.recv = every(0);
    k.what.own_bytes = block;
    folds(s.ranks);
  }
  void reduce_scatter_block() {
    k.send = every(block);
    k.recv = every(0);
    k.what.own_bytes = block;
    folds(s.ranks);
  }
  // Every rank knows all counts: equal ones need no lists, and go the ways of equal blocks.
  void reduce_scatter() {
    if (std::all_of(o.recv_counts, o.recv_counts + s.ranks,
                    [&](std::uint64_t n) { return n == o.recv_counts[0]; })) {
      block = most = o.recv_counts[0] * size;
      return reduce_scatter_block();
    }
    lists(o.recv_counts, nullptr, nullptr, nullptr);
    std::uint64_t at = 0;
    most = 0;
    for (int r = 0; r < s.ranks; ++r) {
      k.lists[0].start[r] = at;
      at += k.lists[0].size[r];
      most = std::max(most, k.lists[0].size[r]);
    }
    block = k.lists[0].size[s.rank];
    for (int r = 0; r < s.ranks; ++r) k.lists[1].size[r] = block;
    k.what.own_bytes = block;
    folds(s.ranks);
  }
  void allgather() {
    k.send = every(0, in_place() ? block * static_cast<unsigned>(s.rank) : 0);
    k.recv = every(block);
    k.what.own_bytes = block;
    k.what.peer_at = block * static_cast<unsigned>(s.rank);
  }
  void allgatherv() {
    lists(nullptr, nullptr, o.recv_counts, o.recv_displs);
    block = o.recv_counts[s.rank] * size;
    most = 0;
    for (int r = 0; r < s.ranks; ++r) {
      k.lists[0].start[r] = in_place() ? k.lists[1].start[s.rank] : 0;
      k.lists[0].size[r] = block;
      most = std::max(most, k.lists[1].size[r]);
    }
    k.what.own_bytes = block;
  }
  void alltoall() {
    k.send = k.recv = every(block);
    k.what.own_bytes = block;
    k.what.peer_at = block * static_cast<unsigned>(s.rank);
  }
  void alltoallv() {
    known = false;
    if (in_place())
      lists(o.recv_counts, o.recv_displs, o.recv_counts, o.recv_displs);
    else
      lists(o.send_counts, o.send_displs, o.recv_counts, o.recv_displs);
    k.what.own_bytes = k.lists[0].size[s.rank];
  }
  void gather() {
    const bool from_recv = in_place() && at_root();
    k.send = only(o.root);
    if (from_recv) k.send.start = block * static_cast<unsigned>(s.rank);
    k.recv = at_root() ? every(block) : nobody();
    k.what.own_bytes = at_root() ? block : 0;
  }
  void gatherv() {
    known = false;
    lists(nullptr, nullptr, at_root() ? o.recv_counts : nullptr,
          at_root() ? o.recv_displs : nullptr);
    if (at_root() && in_place()) k.lists[0].start[s.rank] = k.lists[1].start[s.rank];
    if (at_root())
      k.what.own_bytes = k.lists[1].size[s.rank];
    else
      k.lists[0].size[o.root] = block;
  }
  void scatter() {
    k.send = at_root() ? every(block) : nobody();
    k.recv = only(o.root);
    if (at_root() && in_place()) k.recv.start = block * static_cast<unsigned>(s.rank);
    k.what.own_bytes = at_root() ? block : 0;
  }
  void scatterv() {
    known = false;
    lists(at_root() ? o.send_counts : nullptr, at_root() ? o.send_displs : nullptr, nullptr,
          nullptr);
    if (at_root() && in_place()) k.lists[1].start[s.rank] = k.lists[0].start[s.rank];
    if (at_root())
      k.what.own_bytes = k.lists[0].size[s.rank];
    else
      k.lists[1].size[o.root] = block;
  }
  void scan(bool inclusive) {
    k.send = {0, 0, block, s.rank + 1, s.ranks};
    k.recv = {0, 0, block, 0, s.rank};
    k.what.own_bytes = block;
    folds(s.rank + (inclusive ? 1 : 0));
  }

  bool rooted() const { return o.kind == SUCL_KIND_REDUCE || o.kind == SUCL_KIND_BROADCAST; }
  // What can be cut in a slice for each rank.
  bool sliced() const { return rooted() || o.kind == SUCL_KIND_ALLREDUCE; }
  // Reductions are not faster so: staging memory, which is written from afar, is read at home.
  bool could_be_direct() const {
    if (!s.mapped) return false;
    if (o.kind == SUCL_KIND_BROADCAST) return block >= s.direct_from_root;
    return (o.kind == SUCL_KIND_ALLGATHER || o.kind == SUCL_KIND_ALLTOALL) && block >= s.direct;
  }

  // Whether an operation can go a way, on every rank alike. Words of eight bytes are combined one
  // by one. Between two ranks only an allreduce has work to share.
  bool possible(way w) const {
    switch (w) {
      case way::small: return known && most <= s.shape.small;
      case way::wide:
        return known && !k.lists && s.wide > 0 && most <= s.wide && (!k.reduces || size <= 8);
      case way::small_two_shot: return sliced() && s.ranks > 2 && block <= s.shared;
      case way::two_shot: return sliced() && (s.ranks > 2 || !rooted()) && block > 0;
      default: return !known || most > 0;  // there are pieces
    }
  }
  // A root that sends all to everybody is what takes longest.
  std::uint64_t alone_in_lines() const {
    constexpr std::uint64_t early = 8;
    const bool shared = o.kind == SUCL_KIND_BROADCAST && possible(way::small_two_shot);
    return shared ? s.small / early : s.small;
  }
  // The way without being told. Among more than two ranks what is sent to all of them is shared
  // sooner.
  way usual() const {
    if (could_be_direct()) return o.kind == SUCL_KIND_BROADCAST ? way::two_shot : way::staged;
    // Where data goes one way only, the links are all that counts, and lines keep them busy
    // longest.
    const bool one_way = rooted() || o.kind == SUCL_KIND_GATHER;
    const std::uint64_t in_wide_lines = sliced() && s.ranks > 2 ? alone_in_lines()
                                        : one_way               ? s.wide
                                                                : s.wide_from_all;
    if (possible(way::wide) && most >= s.wide_from && most <= in_wide_lines) return way::wide;
    if (known && most <= alone_in_lines()) return way::small;
    if (possible(way::small_two_shot)) return way::small_two_shot;
    return possible(way::two_shot) && block >= s.two_shot ? way::two_shot : way::staged;
  }
  void share() {
    if (o.kind == SUCL_KIND_BROADCAST) {
      k.what.source = o.root;
      k.what.folded_ranks = 1;
    } else if (o.kind == SUCL_KIND_REDUCE) {
      k.what.target = o.root;
    }
  }

  // Half of the groups take a processor each; with all of them one group of a processor waits while
  // another works, which pays when each has some to do.
  int groups_for_lines(std::uint64_t bytes) const {
    const auto each = quad_bytes * static_cast<unsigned>(s.items);
    return static_cast<int>(
        std::clamp<std::uint64_t>((bytes + each - 1) / each, 1, half_of_groups()));
  }
  int groups_for_wide(std::uint64_t bytes) const {
    const auto each = kernels::wide_data * static_cast<unsigned>(s.items) / kernels::wide_parts;
    return static_cast<int>(std::clamp<std::uint64_t>(
        (bytes + each - 1) / std::max(each, quad_bytes), 1, static_cast<unsigned>(s.groups)));
  }
  int groups_for(std::uint64_t bytes) const {
    constexpr std::uint64_t enough = 64 << 10;
    const auto all = static_cast<std::uint64_t>(s.groups);
    return static_cast<int>(std::clamp(bytes / enough, half_of_groups(), all));
  }
  std::uint64_t half_of_groups() const { return (static_cast<std::uint64_t>(s.groups) + 1) / 2; }

  // What is mapped is for each rank to find out, and has its own ways.
  void choose_way(std::optional<way> wanted) {
    job& j = k.what;
    j.bytes = block;
    j.source = j.target = all;
    j.how = wanted && possible(*wanted) && !could_be_direct() ? *wanted : usual();
    if (j.how == way::two_shot || j.how == way::small_two_shot) share();
    switch (j.how) {
      case way::wide: k.groups = groups_for_wide(most); break;
      case way::small: k.groups = groups_for_lines(most); break;
      case way::small_two_shot:
        k.groups = groups_for_lines(kernels::line_slice(block, s.ranks));
        break;
      default: cut();
    }
  }

  // In pieces, for staging memory.
  void cut() {
    job& j = k.what;
    k.groups = known ? groups_for(most) : s.groups;
    j.may_be_direct = known && could_be_direct();
    auto cuts = static_cast<std::uint64_t>(k.groups);
    if (j.how == way::two_shot) cuts *= static_cast<unsigned>(s.ranks);
    const auto groups = static_cast<unsigned>(k.groups);
    j.slot = s.shape.stage / (4 * groups) / quad_bytes * quad_bytes;
    if (known) j.slot = std::min(j.slot, rounded_up((most + cuts - 1) / cuts, line_of_cache));
    if (largest() / (j.slot * groups) >= kernels::most_steps - 1)
      base::fail(errc::unsupported, "the message is cut into too many pieces",
                 "Raise staging in [backends.kernels]");
  }

  // Of what this rank exchanges with another one.
  std::uint64_t largest() const {
    if (known) return most;
    std::uint64_t bytes = 0;
    for (int r = 0; r < s.ranks; ++r)
      bytes = std::max({bytes, k.lists[0].size[r], k.lists[1].size[r]});
    return bytes;
  }

  void describe() {
    switch (o.kind) {
      case SUCL_KIND_BARRIER: return barrier();
      case SUCL_KIND_BROADCAST: return broadcast();
      case SUCL_KIND_REDUCE: return reduce();
      case SUCL_KIND_ALLREDUCE: return allreduce();
      case SUCL_KIND_REDUCE_SCATTER: return reduce_scatter();
      case SUCL_KIND_REDUCE_SCATTER_BLOCK: return reduce_scatter_block();
      case SUCL_KIND_ALLGATHER: return allgather();
      case SUCL_KIND_ALLGATHERV: return allgatherv();
      case SUCL_KIND_ALLTOALL: return alltoall();
      case SUCL_KIND_ALLTOALLV: return alltoallv();
      case SUCL_KIND_GATHER: return gather();
      case SUCL_KIND_GATHERV: return gatherv();
      case SUCL_KIND_SCATTER: return scatter();
      case SUCL_KIND_SCATTERV: return scatterv();
      case SUCL_KIND_SCAN: return scan(true);
      default: return scan(false);
    }
  }
};

}  // namespace

bool kernels_carry(sucl_kind kind) noexcept {
  return kind >= SUCL_KIND_BARRIER && kind <= SUCL_KIND_EXSCAN;
}

bool hears_all(const kernel_launch& kernel, sucl_kind kind) noexcept {
  if (kernel.what.how == way::two_shot) return false;
  // Of every rank that has a slice.
  if (kernel.what.how == way::small_two_shot)
    return kind == SUCL_KIND_ALLREDUCE &&
           kernels::line_slice(kernel.what.bytes, kernel.what.ranks) *
                   static_cast<unsigned>(kernel.what.ranks - 1) <
               kernel.what.bytes;
  switch (kind) {
    case SUCL_KIND_BARRIER:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER:  // of equal counts; there are lists otherwise
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLTOALL: return kernel.send.each > 0;
    default: return false;
  }
}

kernel_launch make_launch(const sucl_operation& o, const job_setting& s,
                          std::optional<way> wanted) {
  maker m{o, s};
  m.describe();
  job& j = m.k.what;
  j.rank = s.rank;
  j.ranks = s.ranks;
  j.small = s.shape.small;
  j.wide = s.shape.wide;
  j.stage = s.shape.stage;
  j.divisor = o.op == SUCL_OP_AVG ? s.ranks : 1;
  m.choose_way(wanted);
  m.k.type = o.type;
  m.k.op = o.op;
  m.k.in_place = m.in_place() || (o.kind == SUCL_KIND_BARRIER);
  m.k.from = o.send;
  m.k.to = o.recv;
  return std::move(m.k);
}

}  // namespace sucl::core
