// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// check_arguments(): what one rank can see alone.
#include "runtime/layers/agreement.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sucl::core {
namespace {

constexpr std::uint64_t too_much = std::numeric_limits<std::uint64_t>::max();

// Sums and products that stay at too_much once they are there.
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result;
  return __builtin_add_overflow(a, b, &result) ? too_much : result;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result;
  return __builtin_mul_overflow(a, b, &result) ? too_much : result;
}

error_info wrong(errc code, std::string message) {
  error_info info;
  info.code = code;
  info.message = std::move(message);
  return info;
}

std::uint64_t total(const std::uint64_t* counts, int size) {
  std::uint64_t sum = 0;
  for (int r = 0; r < size; ++r) sum = plus(sum, counts[r]);
  return sum;
}

std::uint64_t reach(const std::uint64_t* counts, const std::uint64_t* displs, int size) {
  std::uint64_t end = 0;
  for (int r = 0; r < size; ++r)
    if (counts[r] > 0) end = std::max(end, plus(displs[r], counts[r]));
  return end;
}

// Elements from the start of each buffer that the operation touches.
struct extent {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};

extent extent_of(const issued& call) {
  const sucl_operation& op = *call.op;
  const bool root = call.rank == op.root;
  const auto parts = static_cast<std::uint64_t>(call.size);
  const std::uint64_t every = times(parts, op.count);
  switch (op.kind) {
    case SUCL_KIND_BROADCAST: return root ? extent{op.count, 0} : extent{0, op.count};
    case SUCL_KIND_REDUCE: return {op.count, root ? op.count : 0};
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_SCAN: return {op.count, op.count};
    case SUCL_KIND_EXSCAN: return {op.count, call.rank > 0 ? op.count : 0};
    case SUCL_KIND_REDUCE_SCATTER:
      return {total(op.recv_counts, call.size), op.recv_counts[call.rank]};
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return {every, op.count};
    case SUCL_KIND_ALLGATHER: return {op.count, every};
    case SUCL_KIND_ALLGATHERV: return {op.count, reach(op.recv_counts, op.recv_displs, call.size)};
    case SUCL_KIND_ALLTOALL: return {every, every};
    case SUCL_KIND_ALLTOALLV:
      return {op.send_counts ? reach(op.send_counts, op.send_displs, call.size) : 0,
              reach(op.recv_counts, op.recv_displs, call.size)};
    case SUCL_KIND_GATHER: return {op.count, root ? every : 0};
    case SUCL_KIND_GATHERV:
      return {op.count, root ? reach(op.recv_counts, op.recv_displs, call.size) : 0};
    case SUCL_KIND_SCATTER: return {root ? every : 0, op.count};
    case SUCL_KIND_SCATTERV:
      return {root ? reach(op.send_counts, op.send_displs, call.size) : 0, op.count};
    default: return {};
  }
}

std::optional<error_info> check_arrays(const issued& call) {
  const sucl_operation& op = *call.op;
  const bool root = call.rank == op.root;
  const bool in_place = op.flags & SUCL_FLAG_IN_PLACE;
  const bool receives = op.kind == SUCL_KIND_REDUCE_SCATTER || op.kind == SUCL_KIND_ALLGATHERV ||
                        op.kind == SUCL_KIND_ALLTOALLV || (op.kind == SUCL_KIND_GATHERV && root);
  const bool sends =
      (op.kind == SUCL_KIND_ALLTOALLV && !in_place) || (op.kind == SUCL_KIND_SCATTERV && root);
  const char* missing = nullptr;
  if (receives && !op.recv_counts) missing = "recv_counts";
  if (receives && !op.recv_displs && op.kind != SUCL_KIND_REDUCE_SCATTER) missing = "recv_displs";
  if (sends && !op.send_counts) missing = "send_counts";
  if (sends && !op.send_displs) missing = "send_displs";
  if (missing)
    return wrong(errc::invalid_argument,
                 std::string(missing) + " is null; " + name(static_cast<kind>(op.kind)) +
                     " needs one entry for each of the " + std::to_string(call.size) + " ranks");
  return std::nullopt;
}

std::optional<error_info> check_element(const sucl_operation& op) {
  const auto element = static_cast<type>(op.type);
  if (op.type < 0 || op.type >= SUCL_TYPE_COUNT)
    return wrong(errc::invalid_type, "type " + std::to_string(op.type) + " does not exist");
  const std::uint64_t size = size_of(element);
  if (op.element_size == 0 || (size != 0 && op.element_size != size))
    return wrong(errc::invalid_type, "elements of " + std::to_string(op.element_size) +
                                         " bytes are not " + name(element) +
                                         (size ? ", which has " + std::to_string(size) : ""));
  if (reduces(static_cast<kind>(op.kind)) && !defined(static_cast<sucl::op>(op.op), element))
    return wrong(errc::invalid_type, std::string("op ") + name(static_cast<sucl::op>(op.op)) +
                                         " is not defined for type " + name(element));
  return std::nullopt;
}

std::optional<error_info> check_memory(const issued& call) {
  const sucl_operation& op = *call.op;
  extent elements = extent_of(call);
  const bool in_place = op.flags & SUCL_FLAG_IN_PLACE;
  if (in_place) elements = {0, std::max(elements.send, elements.recv)};
  const std::uint64_t sent = times(elements.send, op.element_size);
  const std::uint64_t received = times(elements.recv, op.element_size);
  const auto send = reinterpret_cast<std::uintptr_t>(op.send);
  const auto recv = reinterpret_cast<std::uintptr_t>(op.recv);
  if (plus(send, sent) == too_much || plus(recv, received) == too_much)
    return wrong(errc::invalid_count, "count " + std::to_string(op.count) + " of elements of " +
                                          std::to_string(op.element_size) +
                                          " bytes is more than there is memory");
  if (sent > 0 && !op.send) return wrong(errc::invalid_memory, "the memory to send from is null");
  if (received > 0 && !op.recv)
    return wrong(errc::invalid_memory, "the memory to receive into is null");
  if (sent > 0 && received > 0 && send < recv + received && recv < send + sent)
    return wrong(errc::invalid_memory,
                 "the memory to send from and the memory to receive into overlap, and the "
                 "operation is not in place");
  return std::nullopt;
}

}  // namespace

std::optional<error_info> check_arguments(const issued& call) {
  const sucl_operation& op = *call.op;
  if (op.kind == SUCL_KIND_BARRIER) return std::nullopt;
  if (rooted(static_cast<kind>(op.kind)) && (op.root < 0 || op.root >= call.size))
    return wrong(errc::invalid_rank, "root " + std::to_string(op.root) + " is outside 0.." +
                                         std::to_string(call.size - 1));
  if (auto found = check_element(op)) return found;
  if (auto found = check_arrays(call)) return found;
  return check_memory(call);
}

}  // namespace sucl::core
