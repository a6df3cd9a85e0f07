// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/operation.hpp"

#include "base/error.hpp"
#include "base/sizes.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

std::uint64_t sum(const std::uint64_t* counts, int size) {
  std::uint64_t total = 0;
  for (int r = 0; counts && r < size; ++r) total = base::sum(total, counts[r]);
  return total;
}

std::uint64_t end_of(const std::uint64_t* counts, const std::uint64_t* displs, int size) {
  std::uint64_t end = 0;
  for (int r = 0; counts && displs && r < size; ++r)
    if (counts[r] > 0) end = std::max(end, base::sum(displs[r], counts[r]));
  return end;
}

// Before memory moves to the receive side in place.
extents two_sided(const sucl_operation& o, int rank, int size) {
  const auto p = static_cast<std::uint64_t>(size);
  const bool at_root = rank == o.root;
  switch (o.kind) {
    case compiled_plan_kind: return {o.count, o.recv_count};
    case SUCL_KIND_BROADCAST: return {at_root ? o.count : 0, at_root ? 0 : o.count};
    case SUCL_KIND_REDUCE: return {o.count, at_root ? o.count : 0};
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return {o.count, o.count};
    case SUCL_KIND_REDUCE_SCATTER:
      return {sum(o.recv_counts, size), o.recv_counts ? o.recv_counts[rank] : 0};
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return {p * o.count, o.count};
    case SUCL_KIND_ALLGATHER: return {o.count, p * o.count};
    case SUCL_KIND_ALLGATHERV: return {o.count, end_of(o.recv_counts, o.recv_displs, size)};
    case SUCL_KIND_ALLTOALL: return {p * o.count, p * o.count};
    case SUCL_KIND_ALLTOALLV:
      return {end_of(o.send_counts, o.send_displs, size),
              end_of(o.recv_counts, o.recv_displs, size)};
    case SUCL_KIND_GATHER: return {o.count, at_root ? p * o.count : 0};
    case SUCL_KIND_GATHERV:
      return {o.count, at_root ? end_of(o.recv_counts, o.recv_displs, size) : 0};
    case SUCL_KIND_SCATTER: return {at_root ? p * o.count : 0, o.count};
    case SUCL_KIND_SCATTERV:
      return {at_root ? end_of(o.send_counts, o.send_displs, size) : 0, o.count};
    case SUCL_KIND_SEND: return {o.count, 0};
    case SUCL_KIND_RECV: return {0, o.count};
    case SUCL_KIND_SENDRECV: return {o.count, o.recv_count};
    default: return {};
  }
}

}  // namespace

extents extents_of(const sucl_operation& record, int rank, int size) {
  extents e = two_sided(record, rank, size);
  if (record.flags & SUCL_FLAG_IN_PLACE) e = {0, std::max(e.send, e.recv)};
  return e;
}

std::string elements_text(std::uint64_t count, sucl_type t, std::uint64_t element_size) {
  const std::string n = std::to_string(count) + " ";
  if (t != SUCL_TYPE_BYTES) return n + name(static_cast<type>(t));
  if (element_size == 1) return n + (count == 1 ? "byte" : "bytes");
  return n + (count == 1 ? "element of " : "elements of ") + std::to_string(element_size) +
         " bytes";
}

void keep_arrays(sucl_operation& record, int size, std::vector<std::uint64_t>& kept) {
  const auto p = static_cast<std::size_t>(size);
  kept.clear();
  kept.reserve(operation_arrays.size() * p);  // pointers into it must stay valid
  for (const auto member : operation_arrays) {
    const std::uint64_t*& array = record.*member;
    if (!array) continue;
    kept.insert(kept.end(), array, array + p);
    array = kept.data() + kept.size() - p;
  }
}

message_size message_size_of(const sucl_operation& o, int size) {
  switch (o.kind) {
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_REDUCE_SCATTER: return {sum(o.recv_counts, size) * o.element_size, true};
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_GATHERV:
    case SUCL_KIND_SCATTERV: return {0, false};
    case SUCL_KIND_GROUP:
    case SUCL_KIND_SENDRECV: return {0, false};  // pairs differ, and both ends must choose alike
    default: return {o.count * o.element_size, true};
  }
}

sucl_operation example_of(kind k, std::uint64_t bytes, type t, op o) {
  sucl_operation record{};
  record.kind = static_cast<sucl_kind>(k);
  record.type = static_cast<sucl_type>(t);
  record.op = reduces(k) ? static_cast<sucl_op>(o) : SUCL_OP_NONE;
  record.element_size = std::max<std::size_t>(1, size_of(t));
  record.count = bytes / record.element_size;
  return record;
}

std::vector<int> peers_of(const sucl_operation& o) {
  std::vector<int> peers;
  const auto add = [&](int rank) {
    if (rank >= 0 && std::find(peers.begin(), peers.end(), rank) == peers.end())
      peers.push_back(rank);
  };
  if (o.kind == SUCL_KIND_SEND || o.kind == SUCL_KIND_SENDRECV) add(o.root);
  if (o.kind == SUCL_KIND_RECV || o.kind == SUCL_KIND_SENDRECV) add(o.source);
  if (o.kind == SUCL_KIND_GROUP)
    for (std::size_t i = 0; i < o.part_count; ++i)
      for (const int rank : peers_of(o.parts[i])) add(rank);
  return peers;
}

std::string barrier_name(std::uint64_t plan) {
  switch (arriving_call::of(plan).call) {
    case arrival::none: break;
    case arrival::split: return "split()";
    case arrival::dup: return "dup()";
    case arrival::compile: return "compile()";
    case arrival::use_tuning: return "use_tuning()";
    case arrival::allocate: return "allocate()";
    case arrival::register_memory: return "register_memory()";
    case arrival::deallocate: return "deallocate()";
    case arrival::deregister_memory: return "deregister_memory()";
  }
  return name(kind::barrier);
}

std::string describe_barrier(std::uint64_t plan) {
  const arriving_call before = arriving_call::of(plan);
  std::string text = barrier_name(plan);
  if (before.block != 0 && before.block != arriving_call::any_block)
    return text + " of block " + std::to_string(before.block) + " of " +
           barrier_name(arriving_call{before.call == arrival::deallocate ? arrival::allocate
                                                                         : arrival::register_memory}
                            .packed());
  if (before.element_size == 0) return text;
  if (before.type != SUCL_TYPE_BYTES) return text + " of " + name(static_cast<type>(before.type));
  return text + " of elements of " + std::to_string(before.element_size) +
         (before.element_size == 1 ? " byte" : " bytes");
}

std::string describe(const sucl_operation& o) {
  std::string what =
      o.kind == SUCL_KIND_BARRIER ? barrier_name(o.plan) : name(static_cast<kind>(o.kind));
  switch (o.kind) {
    case SUCL_KIND_SEND:
      return what + " to rank " + std::to_string(o.root) + " (tag " + std::to_string(o.tag) + ")";
    case SUCL_KIND_RECV:
      return what + " from rank " + std::to_string(o.source) + " (tag " + std::to_string(o.tag) +
             ")";
    case SUCL_KIND_SENDRECV:
      return what + " to rank " + std::to_string(o.root) + " from rank " +
             std::to_string(o.source) + " (tag " + std::to_string(o.tag) + ")";
    case compiled_plan_kind:
      return "compiled plan #" + std::to_string(o.sequence) + describe_origin(o.tag);
    case SUCL_KIND_GROUP: return what;
    default:
      return (o.sequence ? what + " #" + std::to_string(o.sequence) : what) +
             describe_origin(o.tag);
  }
}

std::string describe_origin(std::int32_t tag) {
  if (origin_of(tag) != origin::replay) return {};
  return " replayed from a graph (recorded operation " + std::to_string(tag >> 3) + ")";
}

namespace {

// The highest tag that every MPI library offers is kept for collectives that are sent as messages.
constexpr int max_tag = 32766;

void check_rank(const char* role, int value, int size) {
  if (value >= 0 && value < size) return;
  base::fail(errc::invalid_rank,
             std::string(role) + " " + std::to_string(value) +
                 " is not a rank of a communicator of " + std::to_string(size),
             "Ranks go from 0 to " + std::to_string(size - 1));
}

void check_element(const sucl_operation& o) {
  const auto t = static_cast<type>(o.type);
  if (o.type < 0 || o.type >= SUCL_TYPE_COUNT || o.element_size == 0)
    base::fail(errc::invalid_type,
               "element type " + std::to_string(o.type) + " of " + std::to_string(o.element_size) +
                   " bytes is unknown",
               "Use a type of sucl::type");
  if (t != type::bytes && o.element_size != size_of(t))
    base::fail(errc::invalid_type,
               std::string(name(t)) + " has elements of " + std::to_string(size_of(t)) +
                   " bytes, not " + std::to_string(o.element_size),
               "Leave the element size to the library");
}

void check_op(const sucl_operation& o) {
  const auto k = static_cast<kind>(o.kind);
  if (!reduces(k)) return;
  const auto t = static_cast<type>(o.type);
  const auto r = static_cast<op>(o.op);
  const bool prefix = k == kind::scan || k == kind::exscan;
  if (defined(r, t) && !(prefix && r == op::avg)) return;
  if (prefix && r == op::avg)
    base::fail(errc::invalid_type, "op avg is not defined for " + std::string(name(k)),
               "Use sum and divide by the number of ranks that you mean");
  std::string types;
  for (std::int32_t i = 0; i < SUCL_TYPE_COUNT; ++i)
    if (defined(r, static_cast<type>(i)))
      types += (types.empty() ? "" : ", ") + std::string(name(static_cast<type>(i)));
  base::fail(errc::invalid_type,
             "op " + std::string(name(r)) + " is not defined for elements of type " + name(t),
             types.empty() ? "Use an op of sucl::op" : "It is defined for " + types);
}

void check_ranks(const sucl_operation& o, int size) {
  if (rooted(static_cast<kind>(o.kind))) check_rank("root", o.root, size);
  if (o.kind == SUCL_KIND_SEND || o.kind == SUCL_KIND_SENDRECV) check_rank("peer", o.root, size);
  if (o.kind == SUCL_KIND_RECV || o.kind == SUCL_KIND_SENDRECV) check_rank("peer", o.source, size);
  if (is_point_to_point(o.kind) && (o.tag < 0 || o.tag > max_tag))
    base::fail(errc::invalid_argument, "tag " + std::to_string(o.tag) + " is out of range",
               "Tags go from 0 to " + std::to_string(max_tag));
}

void need_array(const sucl_operation& o, const std::uint64_t* array, const char* what) {
  if (array) return;
  base::fail(errc::invalid_argument,
             std::string(name(static_cast<kind>(o.kind))) + " needs " + what + ", one entry a rank",
             "Pass a vector with as many entries as the communicator has ranks");
}

void check_arrays(const sucl_operation& o, int rank) {
  const bool at_root = rank == o.root;
  switch (o.kind) {
    case SUCL_KIND_REDUCE_SCATTER: need_array(o, o.recv_counts, "counts"); break;
    case SUCL_KIND_ALLGATHERV:
      need_array(o, o.recv_counts, "counts");
      need_array(o, o.recv_displs, "displacements");
      if (!(o.flags & SUCL_FLAG_IN_PLACE) && o.count != o.recv_counts[rank])
        base::fail(errc::invalid_count,
                   "this rank contributes " + std::to_string(o.count) + " elements, but counts[" +
                       std::to_string(rank) + "] is " + std::to_string(o.recv_counts[rank]),
                   "Make both the same");
      break;
    case SUCL_KIND_ALLTOALLV:
      if (!(o.flags & SUCL_FLAG_IN_PLACE)) {
        need_array(o, o.send_counts, "send counts");
        need_array(o, o.send_displs, "send displacements");
      }
      need_array(o, o.recv_counts, "receive counts");
      need_array(o, o.recv_displs, "receive displacements");
      break;
    case SUCL_KIND_GATHERV:
      if (at_root) need_array(o, o.recv_counts, "counts");
      if (at_root) need_array(o, o.recv_displs, "displacements");
      break;
    case SUCL_KIND_SCATTERV:
      if (at_root) need_array(o, o.send_counts, "counts");
      if (at_root) need_array(o, o.send_displs, "displacements");
      break;
    default: break;
  }
}

// Sizes must not wrap: the products and sums of counts, element sizes and ranks that backends make
// are of numbers checked here.
void check_sizes(const sucl_operation& o, int size) {
  constexpr std::uint64_t small = std::uint64_t{1} << 31;
  const bool arrays = o.send_counts || o.send_displs || o.recv_counts || o.recv_displs;
  if (!arrays && o.count < small && o.recv_count < small && o.element_size < 65536 && size < 65536)
    return;
  const auto check = [&](std::uint64_t elements) {
    base::bytes_of(elements, o.element_size, static_cast<std::uint64_t>(size));
  };
  check(o.count);
  check(o.recv_count);
  for (const auto* array : {o.send_counts, o.send_displs, o.recv_counts, o.recv_displs})
    for (int r = 0; array && r < size; ++r) check(array[r]);
  // The sum of the counts and the end of the farthest block must fit into the address space.
  const auto check_ends = [&](const std::uint64_t* counts, const std::uint64_t* displs) {
    base::bytes_of(std::max(sum(counts, size), end_of(counts, displs, size)), o.element_size);
  };
  check_ends(o.send_counts, o.send_displs);
  check_ends(o.recv_counts, o.recv_displs);
}

void make_in_place(sucl_operation& o, int rank) {
  if (!o.send || !o.recv || (o.flags & SUCL_FLAG_IN_PLACE)) return;
  const auto* send = static_cast<const std::byte*>(o.send);
  auto* recv = static_cast<std::byte*>(o.recv);
  bool same = false;
  switch (o.kind) {
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: same = send == recv; break;
    case SUCL_KIND_ALLGATHER:
      same = send == recv + static_cast<std::uint64_t>(rank) * o.count * o.element_size;
      break;
    case SUCL_KIND_GATHER:
      same = rank == o.root &&
             send == recv + static_cast<std::uint64_t>(rank) * o.count * o.element_size;
      break;
    default: break;
  }
  if (!same) return;
  o.flags |= SUCL_FLAG_IN_PLACE;
  o.send = nullptr;
}

void check_own_block(const sucl_operation& o, int rank) {
  if (o.flags & SUCL_FLAG_IN_PLACE) return;
  std::uint64_t sent = 0, received = 0;
  if (o.kind == SUCL_KIND_ALLTOALLV) {
    sent = o.send_counts[rank];
    received = o.recv_counts[rank];
  } else if (o.kind == SUCL_KIND_GATHERV && rank == o.root) {
    sent = o.count;
    received = o.recv_counts[rank];
  } else if (o.kind == SUCL_KIND_SCATTERV && rank == o.root) {
    sent = o.send_counts[rank];
    received = o.count;
  }
  if (sent == received) return;
  base::fail(errc::invalid_count,
             "this rank, " + std::to_string(rank) + ", sends itself " + std::to_string(sent) +
                 " elements and receives " + std::to_string(received) + " from itself",
             "Give the own rank the same count on both sides");
}

}  // namespace

bool may_touch(const sucl_operation& o, int rank, int size, const void* memory,
               std::uint64_t bytes) {
  if (o.kind == SUCL_KIND_GROUP)
    return std::any_of(o.parts, o.parts + o.part_count, [&](const sucl_operation& part) {
      return may_touch(part, rank, size, memory, bytes);
    });
  const auto at = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const auto meet = [&](const void* side, std::uint64_t elements) {
    return side && elements > 0 && at(side) < at(memory) + bytes &&
           at(memory) < at(side) + elements * o.element_size;
  };
  const extents e = extents_of(o, rank, size);
  return meet(o.send, e.send) || meet(o.recv, e.recv);
}

void check_blocks(const sucl_operation& o, int rank, int size) {
  check_own_block(o, rank);
  const bool gathers = o.kind == SUCL_KIND_GATHERV && rank == o.root;
  if (!gathers && o.kind != SUCL_KIND_ALLGATHERV && o.kind != SUCL_KIND_ALLTOALLV) return;
  // Most programs have their blocks in the order of the ranks.
  std::uint64_t end = 0;
  bool ordered = true;
  for (int r = 0; r < size && ordered; ++r) {
    if (o.recv_counts[r] == 0) continue;
    ordered = o.recv_displs[r] >= end;
    end = o.recv_displs[r] + o.recv_counts[r];
  }
  if (ordered) return;
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r)
    if (o.recv_counts[r] > 0) ranks.push_back(r);
  std::sort(ranks.begin(), ranks.end(),
            [&](int a, int b) { return o.recv_displs[a] < o.recv_displs[b]; });
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const int a = ranks[i - 1], b = ranks[i];
    if (o.recv_displs[b] >= o.recv_displs[a] + o.recv_counts[a]) continue;
    base::fail(errc::invalid_memory,
               "the block of rank " + std::to_string(a) + ", " + std::to_string(o.recv_counts[a]) +
                   " elements from " + std::to_string(o.recv_displs[a]) + " on, and that of rank " +
                   std::to_string(b) + " from " + std::to_string(o.recv_displs[b]) +
                   " on overlap where they are received",
               "Give each rank a block of its own: counts and displacements are in elements");
  }
}

void check_memory(const sucl_operation& o, int rank, int size) {
  const extents e = extents_of(o, rank, size);
  const auto null = [&](const void* p, std::uint64_t elements, const char* side) {
    if (p || elements == 0) return;
    base::fail(errc::invalid_memory,
               std::string(side) + " memory of " + std::to_string(elements) + " elements is null",
               "Pass an allocation that is large enough");
  };
  null(o.send, e.send, "send");
  null(o.recv, e.recv, "receive");
  if (!o.send || !o.recv || e.send == 0 || e.recv == 0) return;
  const auto* s = static_cast<const std::byte*>(o.send);
  const auto* r = static_cast<const std::byte*>(o.recv);
  if (s < r + e.recv * o.element_size && r < s + e.send * o.element_size)
    base::fail(errc::invalid_memory, "send and receive memory overlap",
               "Use separate memory, or the in-place form, which takes one pointer");
}

void check_names(const sucl_operation& o) {
  if (o.kind < 0 || o.kind >= SUCL_KIND_COUNT)
    base::fail(errc::invalid_argument, "kind " + std::to_string(o.kind) + " is unknown",
               "Use a kind of sucl::kind");
  if (o.kind == SUCL_KIND_GROUP || o.kind == SUCL_KIND_BARRIER) return;
  check_element(o);
  check_op(o);
}

void normalise(sucl_operation& o, int rank, int size) {
  if (o.kind == compiled_plan_kind) {
    check_element(o);
    return check_sizes(o, size);
  }
  check_names(o);
  if (o.kind == SUCL_KIND_GROUP || o.kind == SUCL_KIND_BARRIER) return;
  check_ranks(o, size);
  check_arrays(o, rank);
  check_sizes(o, size);
  make_in_place(o, rank);
}

}  // namespace sucl::core
