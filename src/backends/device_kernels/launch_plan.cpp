// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/launch_plan.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

using kernels::alike;
using kernels::collective_args;
using kernels::listed;
using kernels::protocol;

constexpr std::uint64_t quad_bytes = 16;
constexpr std::uint64_t cache_line = 128;
constexpr int all = -1;

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Derives from an operation which bytes go where.
struct maker {
  const sucl_operation& o;
  const launch_setting& s;
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
  alike none(std::uint64_t stride = 0) const { return {0, stride, 0, 0, 0}; }

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
    k.send = at_root() ? every(0) : none();
    k.recv = only(o.root);
  }
  void reduce() {
    k.send = only(o.root);
    k.recv = at_root() ? every(0) : none();
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
  // Every rank knows all counts: equal ones need no lists, and take the protocols of equal blocks.
  void reduce_scatter() {
    if (std::all_of(o.recv_counts, o.recv_counts + s.ranks,
                    [&](std::uint64_t n) { return n == o.recv_counts[0]; })) {
      block = most = o.recv_counts[0] * size;
      return reduce_scatter_block();
    }
    lists(o.recv_counts, nullptr, nullptr, nullptr);
    k.all_give = std::all_of(o.recv_counts, o.recv_counts + s.ranks, [](auto n) { return n > 0; });
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
  // Blocks of one size at equal distances, which need no lists.
  std::optional<alike> evenly(const std::uint64_t* counts, const std::uint64_t* displs) const {
    const std::uint64_t first = displs[0];
    const std::uint64_t apart = s.ranks > 1 ? displs[1] - first : 0;
    if (s.ranks > 1 && displs[1] < first) return std::nullopt;
    for (int r = 0; r < s.ranks; ++r)
      if (counts[r] != counts[0] || displs[r] != first + apart * static_cast<unsigned>(r))
        return std::nullopt;
    return alike{first * size, apart * size, counts[0] * size, 0, s.ranks};
  }
  // The block that the root has for itself, at this offset of its memory.
  alike of_root(std::uint64_t offset, std::uint64_t bytes) const {
    return {offset, 0, bytes, o.root, o.root + 1};
  }
  // Every rank knows all counts, but only its own displacements: other ranks may have lists
  // here.
  void allgatherv() {
    if (const auto even = evenly(o.recv_counts, o.recv_displs)) {
      block = most = even->each;
      k.recv = *even;
      k.send = every(0, in_place() ? k.recv.at(s.rank) : 0);
      k.what.own_bytes = block;
      return;
    }
    lists(nullptr, nullptr, o.recv_counts, o.recv_displs);
    k.all_give = std::all_of(o.recv_counts, o.recv_counts + s.ranks, [](auto n) { return n > 0; });
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
  // Of the counts of the forms below no rank knows all. One whose own are even needs no lists,
  // whatever other ranks have.
  void alltoallv() {
    known = false;
    const auto takes = evenly(o.recv_counts, o.recv_displs);
    const auto gives = in_place() ? takes : evenly(o.send_counts, o.send_displs);
    if (gives && takes) {
      k.send = *gives;
      k.recv = *takes;
      k.what.own_bytes = gives->each;
      return;
    }
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
    k.recv = at_root() ? every(block) : none();
    k.what.own_bytes = at_root() ? block : 0;
  }
  void gatherv() {
    known = false;
    if (!at_root()) {
      k.send = only(o.root);
      k.recv = none();
    } else if (const auto takes = evenly(o.recv_counts, o.recv_displs)) {
      k.send = of_root(in_place() ? takes->at(s.rank) : 0, takes->each);
      k.recv = *takes;
      k.what.own_bytes = takes->each;
    } else {
      lists(nullptr, nullptr, o.recv_counts, o.recv_displs);
      if (in_place()) k.lists[0].start[s.rank] = k.lists[1].start[s.rank];
      k.what.own_bytes = k.lists[1].size[s.rank];
    }
  }
  void scatter() {
    k.send = at_root() ? every(block) : none();
    k.recv = only(o.root);
    if (at_root() && in_place()) k.recv.start = block * static_cast<unsigned>(s.rank);
    k.what.own_bytes = at_root() ? block : 0;
  }
  void scatterv() {
    known = false;
    if (!at_root()) {
      k.send = none();
      k.recv = only(o.root);
    } else if (const auto gives = evenly(o.send_counts, o.send_displs)) {
      k.send = *gives;
      k.recv = of_root(in_place() ? gives->at(s.rank) : 0, gives->each);
      k.what.own_bytes = gives->each;
    } else {
      lists(o.send_counts, o.send_displs, nullptr, nullptr);
      if (in_place()) k.lists[1].start[s.rank] = k.lists[0].start[s.rank];
      k.what.own_bytes = k.lists[0].size[s.rank];
    }
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
  // Reductions are not faster so: staging memory, which peers write, is read locally.
  bool could_be_direct() const {
    if (!s.mapped) return false;
    if (o.kind == SUCL_KIND_BROADCAST) return block >= s.direct_min_bytes_of_root;
    return (o.kind == SUCL_KIND_ALLGATHER || o.kind == SUCL_KIND_ALLTOALL) &&
           block >= s.direct_min_bytes;
  }

  int owners() const { return kernels::slice_owners(s.ranks, rooted()); }
  // Words of eight bytes are combined one by one.
  bool has_ll128() const { return s.ll128_max_bytes > 0 && (!k.reduces || size <= 8); }
  // Of ll128_two_shot, in a peer buffer: from or to a root there is one, otherwise two.
  std::uint64_t slices_in_ll128() const {
    return kernels::ll128_slice(block, owners()) * (rooted() ? 1 : 2);
  }

  // Whether a protocol supports an operation, on every rank alike. Between two ranks only an
  // allreduce has work to share.
  bool possible(protocol w) const {
    switch (w) {
      case protocol::ll: return most <= s.layout.ll;
      case protocol::ll128: return has_ll128() && most <= s.ll128_max_bytes;
      case protocol::ll_two_shot:
        return sliced() && s.ranks > 2 && block <= s.ll_two_shot_max_bytes;
      case protocol::ll128_two_shot:
        return sliced() && s.ranks > 2 && block > 0 && has_ll128() &&
               slices_in_ll128() <= s.ll128_max_bytes;
      case protocol::two_shot: return sliced() && (s.ranks > 2 || !rooted()) && block > 0;
      default: return most > 0;  // there are pieces
    }
  }
  // Up to where each rank sends all to every peer, among more than two. A root that does so takes
  // longest. Measured with four GPUs.
  std::uint64_t alone_in_ll() const {
    constexpr std::uint64_t early = 8;
    const bool shared = o.kind == SUCL_KIND_BROADCAST &&
                        (possible(protocol::ll_two_shot) || possible(protocol::ll128_two_shot));
    return shared ? s.ll_max_bytes / early : s.ll_max_bytes;
  }
  std::uint64_t alone_in_ll128() const {
    return o.kind == SUCL_KIND_BROADCAST ? s.ll_max_bytes
           : o.kind == SUCL_KIND_REDUCE  ? 4 * s.ll_max_bytes
                                         : 2 * s.ll_max_bytes;
  }
  // In an allreduce, whose links are busy in both directions twice, pieces are better sooner.
  std::uint64_t shared_in_ll128() const {
    return rooted() ? s.ll128_two_shot_max_bytes : s.ll128_two_shot_max_bytes / 2;
  }

  // Where only the ends of a pair know how much they exchange: up to so many bytes go by LL, and
  // more up to so many by LL128.
  std::uint64_t ll_pair_bytes() const {
    return ll128_pair_bytes() > 0 ? std::min(s.ll_max_bytes, s.ll128_min_bytes - 1)
                                  : s.ll_max_bytes;
  }
  std::uint64_t ll128_pair_bytes() const {
    if (!has_ll128()) return 0;
    // The links of a root are all that counts, and of LL128 a sixteenth is flags.
    constexpr std::uint64_t gathered = 4 << 20;
    const std::uint64_t most = o.kind == SUCL_KIND_SCATTERV  ? scattered_in_ll128()
                               : o.kind != SUCL_KIND_GATHERV ? s.ll128_exchange_max_bytes
                               : s.ranks > 2                 ? std::min(s.ll128_max_bytes, gathered)
                                                             : s.ll128_max_bytes;
    return most < s.ll128_min_bytes ? 0 : most;
  }
  // What a root sends away, which gets nothing. Measured with four GPUs: above that, pieces need no
  // flags and are as fast.
  std::uint64_t scattered_in_ll128() const {
    constexpr std::uint64_t scattered = 6 << 20;
    if (s.ranks == 2) return s.ll128_exchange_max_bytes;
    return std::max(s.ll128_exchange_max_bytes, std::min(s.ll128_max_bytes, scattered));
  }
  // The protocol between two ranks, which both ends choose alike.
  protocol of_pair(std::uint64_t bytes) const {
    if (bytes <= ll_pair_bytes()) return protocol::ll;
    return bytes <= ll128_pair_bytes() ? protocol::ll128 : protocol::staged;
  }
  // The protocol of all pairs of this rank if they have the same one; else that of the kernel which
  // has them all.
  protocol of_pairs() const {
    std::optional<protocol> common;
    for (int r = 0; r < s.ranks; ++r) {
      if (r == s.rank) continue;
      for (const std::uint64_t bytes : {sent_to(r), received_from(r)}) {
        if (bytes == 0) continue;
        if (common && *common != of_pair(bytes)) return protocol::staged;
        common = of_pair(bytes);
      }
    }
    return common.value_or(protocol::ll);
  }

  // The protocol by default. Among more than two ranks what is sent to all of them is shared
  // sooner.
  protocol usual() const {
    if (!known) return of_pairs();
    if (could_be_direct())
      return o.kind == SUCL_KIND_BROADCAST ? protocol::two_shot : protocol::staged;
    // Where data goes in one direction only, the links are all that counts, and LL128 keeps them
    // busy longest.
    const bool one_direction = rooted() || o.kind == SUCL_KIND_GATHER;
    const std::uint64_t in_ll128 = sliced() && s.ranks > 2       ? alone_in_ll128()
                                   : one_direction               ? s.ll128_max_bytes
                                   : o.kind == SUCL_KIND_SCATTER ? scattered_in_ll128()
                                                                 : s.ll128_exchange_max_bytes;
    if (possible(protocol::ll128) && most >= s.ll128_min_bytes && most <= in_ll128)
      return protocol::ll128;
    if (most <= alone_in_ll()) return protocol::ll;
    if (possible(protocol::ll128_two_shot) && block <= shared_in_ll128())
      return protocol::ll128_two_shot;
    if (possible(protocol::ll_two_shot)) return protocol::ll_two_shot;
    return possible(protocol::two_shot) && block >= s.two_shot_min_bytes ? protocol::two_shot
                                                                         : protocol::staged;
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
  int groups_for_ll(std::uint64_t bytes) const {
    const auto each = quad_bytes * static_cast<unsigned>(s.items);
    return static_cast<int>(
        std::clamp<std::uint64_t>((bytes + each - 1) / each, 1, half_of_groups()));
  }
  int groups_for_ll128(std::uint64_t bytes) const {
    const auto each = kernels::ll128_data * static_cast<unsigned>(s.items) / kernels::ll128_parts;
    return static_cast<int>(std::clamp<std::uint64_t>(
        (bytes + each - 1) / std::max(each, quad_bytes), 1, static_cast<unsigned>(s.groups)));
  }
  int groups_for(std::uint64_t bytes) const {
    constexpr std::uint64_t enough = 64 << 10;
    const auto all = static_cast<std::uint64_t>(s.groups);
    return static_cast<int>(std::clamp(bytes / enough, half_of_groups(), all));
  }
  std::uint64_t half_of_groups() const { return (static_cast<std::uint64_t>(s.groups) + 1) / 2; }

  // What is mapped is for each rank to find out, and has its own protocols.
  void choose_protocol(std::optional<protocol> wanted) {
    collective_args& j = k.what;
    j.bytes = block;
    j.source = j.target = all;
    j.how = known && wanted && possible(*wanted) && !could_be_direct() ? *wanted : usual();
    switch (j.how) {
      case protocol::ll128: k.groups = groups_for_ll128(largest()); break;
      case protocol::ll: k.groups = groups_for_ll(largest()); break;
      case protocol::ll_two_shot:
        share();
        k.groups = groups_for_ll(kernels::ll_slice(block, owners()));
        break;
      case protocol::ll128_two_shot:
        share();
        k.groups = groups_for_ll128(kernels::ll128_slice(block, owners()));
        break;
      case protocol::two_shot: share(); [[fallthrough]];
      default: cut();
    }
  }

  // Divides the message into pieces, for staging memory.
  void cut() {
    collective_args& j = k.what;
    j.may_be_direct = known && could_be_direct();
    if (j.how == protocol::two_shot) return cut_slices();
    k.groups = s.groups;
    j.slot = largest_piece(s.groups);
    if (!known) {
      j.ll_pair_bytes = ll_pair_bytes();
      j.ll128_pair_bytes = ll128_pair_bytes();
    }
    const auto c =
        kernels::cut_for_staging(largest(), static_cast<std::uint64_t>(s.groups), j.slot, s.ranks);
    check_pieces(largest(), c.slot);
    if (k.lists && !k.reduces) return;  // the kernel cuts what each pair has
    k.groups = static_cast<int>(c.groups);
    j.slot = c.slot;
  }
  // Divides each slice as cut() divides a whole message.
  void cut_slices() {
    collective_args& j = k.what;
    k.groups = groups_for(most);
    const std::uint64_t pieces =
        static_cast<std::uint64_t>(k.groups) * static_cast<unsigned>(owners());
    j.slot = largest_piece(k.groups);
    const std::uint64_t whole = rounded_up((most + pieces - 1) / pieces, cache_line);
    if (whole <= j.slot)
      j.slot = whole;
    else if (s.ranks > 2)
      j.slot = std::min(j.slot, kernels::one_of_many);
    check_pieces(most, j.slot);
  }
  std::uint64_t largest_piece(int groups) const {
    return s.layout.stage / (4 * static_cast<std::uint64_t>(groups)) / quad_bytes * quad_bytes;
  }
  void check_pieces(std::uint64_t bytes, std::uint64_t piece) const {
    if (bytes / (piece * static_cast<std::uint64_t>(k.groups)) >= kernels::max_steps - 1)
      base::fail(errc::unsupported, "the message is cut into too many pieces",
                 "Raise staging in [backends.kernels]");
  }

  std::uint64_t sent_to(int r) const { return k.lists ? k.lists[0].size[r] : k.send.bytes(r); }
  std::uint64_t received_from(int r) const {
    return k.lists ? k.lists[1].size[r] : k.recv.bytes(r);
  }
  // The most bytes that this rank exchanges with another one.
  std::uint64_t largest() const {
    if (known) return most;
    std::uint64_t bytes = 0;
    for (int r = 0; r < s.ranks; ++r) bytes = std::max({bytes, sent_to(r), received_from(r)});
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

bool kernels_support(sucl_kind kind) noexcept {
  return kind >= SUCL_KIND_BARRIER && kind <= SUCL_KIND_EXSCAN;
}

bool implies_barrier(const kernel_launch& kernel, sucl_kind kind) noexcept {
  if (kernel.what.how == protocol::two_shot) return false;
  // A rank receives from every rank that has a slice.
  const bool in_ll = kernel.what.how == protocol::ll_two_shot;
  if (in_ll || kernel.what.how == protocol::ll128_two_shot) {
    const std::uint64_t bytes = kernel.what.bytes;
    const int ranks = kernel.what.ranks;
    const auto slice = in_ll ? kernels::ll_slice(bytes, ranks) : kernels::ll128_slice(bytes, ranks);
    return kind == SUCL_KIND_ALLREDUCE && slice * static_cast<unsigned>(ranks - 1) < bytes;
  }
  switch (kind) {
    case SUCL_KIND_BARRIER:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_ALLTOALL: return kernel.lists ? kernel.all_give : kernel.send.each > 0;
    default: return false;
  }
}

kernel_launch make_launch(const sucl_operation& o, const launch_setting& s,
                          std::optional<protocol> wanted) {
  maker m{o, s};
  m.describe();
  collective_args& j = m.k.what;
  j.rank = s.rank;
  j.ranks = s.ranks;
  j.ll = s.layout.ll;
  j.ll128 = s.layout.ll128;
  j.stage = s.layout.stage;
  j.divisor = o.op == SUCL_OP_AVG ? s.ranks : 1;
  m.choose_protocol(wanted);
  m.k.type = o.type;
  m.k.op = o.op;
  m.k.in_place = m.in_place() || (o.kind == SUCL_KIND_BARRIER);
  m.k.from = o.send;
  m.k.to = o.recv;
  return std::move(m.k);
}

}  // namespace sucl::core
