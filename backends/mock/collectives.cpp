// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include "reduce.hpp"

#include <cstring>
#include <numeric>

namespace sucl::mock {
namespace {

bool in_place(const view& v) { return v.op->flags & SUCL_FLAG_IN_PLACE; }
bool is_root(const view& v) { return v.rank == v.op->root; }

const std::byte* input(const view& v) {
  return static_cast<const std::byte*>(in_place(v) ? v.op->recv : v.op->send);
}

std::uint64_t total(const std::uint64_t* counts, int size) {
  return std::accumulate(counts, counts + size, std::uint64_t{0});
}

void append(std::vector<std::byte>& to, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  const auto* first = static_cast<const std::byte*>(from);
  to.insert(to.end(), first, first + bytes);
}

// The counts go before the data, so that a receiver can find its part.
std::vector<std::byte> packed(const view& v, const std::uint64_t* counts,
                              const std::uint64_t* displs) {
  const std::uint64_t element = v.op->element_size;
  std::vector<std::byte> result;
  append(result, counts, v.size * sizeof(std::uint64_t));
  for (int r = 0; r < v.size; ++r)
    append(result, input(v) + displs[r] * element, counts[r] * element);
  return result;
}

std::vector<std::byte> elements(const std::byte* first, std::uint64_t count, const view& v) {
  std::vector<std::byte> result;
  append(result, first, count * v.op->element_size);
  return result;
}

// With the in-place flag, a rank's part of a gather already lies at its offset in recv. Only the
// root of a gatherv has displacements: elsewhere recv starts with the own part.
std::vector<std::byte> own_part(const view& v) {
  const sucl_operation& op = *v.op;
  if (!in_place(v)) return elements(input(v), op.count, v);
  if (op.kind == SUCL_KIND_ALLGATHERV || (op.kind == SUCL_KIND_GATHERV && is_root(v)))
    return elements(input(v) + op.recv_displs[v.rank] * op.element_size, op.recv_counts[v.rank], v);
  const std::uint64_t offset = op.kind == SUCL_KIND_GATHERV ? 0 : v.rank * op.count;
  return elements(input(v) + offset * op.element_size, op.count, v);
}

// Writes into recv, and remembers the last element.
class writer {
 public:
  writer(const view& v, outcome& result) : m_view(v), m_result(result) {}
  void put(std::uint64_t offset, const std::byte* from, std::uint64_t count) {
    if (count == 0) return;
    std::memmove(at(offset), from, count * m_view.op->element_size);
    note(offset, count);
  }
  std::byte* at(std::uint64_t offset) {
    return static_cast<std::byte*>(m_view.op->recv) + offset * m_view.op->element_size;
  }
  void note(std::uint64_t offset, std::uint64_t count) {
    if (count > 0) m_result.last = at(offset + count - 1);
  }

 private:
  const view& m_view;
  outcome& m_result;
};

std::string wrong_size_text(int from, std::uint64_t bytes, std::uint64_t expected) {
  return "rank " + std::to_string(from) + " contributed " + std::to_string(bytes) +
         " bytes where " + std::to_string(expected) + " were expected";
}

// Whether each of the first `ranks` contributions has `expected` bytes.
std::string check(const gathered& all, int first, int last, std::uint64_t expected) {
  for (int r = first; r < last; ++r)
    if (all.bytes[r] != expected) return wrong_size_text(r, all.bytes[r], expected);
  return {};
}

void reduce_range(const view& v, const gathered& all, int first, int last, std::uint64_t offset,
                  std::uint64_t count, writer& out) {
  std::vector<const std::byte*> inputs;
  for (int r = first; r < last; ++r)
    inputs.push_back(all.data + r * all.stride + offset * v.op->element_size);
  if (count > 0) reduce(v.op->type, v.op->op, inputs, count, v.size, out.at(0));
  out.note(0, count);
}

void finish_reduction(const view& v, const gathered& all, outcome& result) {
  const sucl_operation& op = *v.op;
  std::uint64_t length = op.count;
  std::uint64_t offset = 0;
  std::uint64_t count = op.count;
  int last = v.size;
  switch (op.kind) {
    case SUCL_KIND_REDUCE_SCATTER:
      length = total(op.recv_counts, v.size);
      offset = total(op.recv_counts, v.rank);
      count = op.recv_counts[v.rank];
      break;
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
      length = v.size * op.count;
      offset = v.rank * op.count;
      break;
    case SUCL_KIND_SCAN: last = v.rank + 1; break;
    case SUCL_KIND_EXSCAN: last = v.rank; break;
    default: break;
  }
  result.error = check(all, 0, v.size, length * op.element_size);
  const bool writes = op.kind == SUCL_KIND_REDUCE ? is_root(v) : last > 0;
  writer out(v, result);
  if (result.error.empty() && writes) reduce_range(v, all, 0, last, offset, count, out);
}

void finish_gather(const view& v, const gathered& all, outcome& result) {
  const sucl_operation& op = *v.op;
  const bool rooted = op.kind == SUCL_KIND_GATHER || op.kind == SUCL_KIND_GATHERV;
  const bool variable = op.kind == SUCL_KIND_GATHERV || op.kind == SUCL_KIND_ALLGATHERV;
  if (rooted && !is_root(v)) return;
  const auto count = [&](int r) { return variable ? op.recv_counts[r] : op.count; };
  for (int r = 0; r < v.size && result.error.empty(); ++r)
    result.error = check(all, r, r + 1, count(r) * op.element_size);
  if (!result.error.empty()) return;
  writer out(v, result);
  for (int r = 0; r < v.size; ++r)
    out.put(variable ? op.recv_displs[r] : r * op.count, all.data + r * all.stride, count(r));
}

// The part for this rank in a contribution that starts with the counts of every rank's part.
void take_packed(const view& v, const gathered& all, int from, std::uint64_t to,
                 std::uint64_t count, bool write, outcome& result) {
  const std::uint64_t head = v.size * sizeof(std::uint64_t);
  std::vector<std::uint64_t> counts(v.size);
  if (all.bytes[from] < head) {
    result.error = wrong_size_text(from, all.bytes[from], head);
    return;
  }
  std::memcpy(counts.data(), all.data + from * all.stride, head);
  if (counts[v.rank] != count) {
    result.error = "rank " + std::to_string(from) + " sends " + std::to_string(counts[v.rank]) +
                   " elements to rank " + std::to_string(v.rank) + ", which expects " +
                   std::to_string(count);
    return;
  }
  const std::uint64_t offset = head + total(counts.data(), v.rank) * v.op->element_size;
  if (write) writer(v, result).put(to, all.data + from * all.stride + offset, count);
}

void finish_alltoall(const view& v, const gathered& all, outcome& result) {
  const sucl_operation& op = *v.op;
  if (op.kind == SUCL_KIND_ALLTOALLV) {
    // First everything is checked, then everything is written.
    for (const bool write : {false, true})
      for (int r = 0; r < v.size && result.error.empty(); ++r)
        take_packed(v, all, r, op.recv_displs[r], op.recv_counts[r], write, result);
    return;
  }
  result.error = check(all, 0, v.size, v.size * op.count * op.element_size);
  if (!result.error.empty()) return;
  writer out(v, result);
  const std::uint64_t offset = v.rank * op.count * op.element_size;
  for (int r = 0; r < v.size; ++r)
    out.put(r * op.count, all.data + r * all.stride + offset, op.count);
}

void finish_from_root(const view& v, const gathered& all, outcome& result) {
  const sucl_operation& op = *v.op;
  const bool kept = is_root(v) && (in_place(v) || op.kind == SUCL_KIND_BROADCAST);
  if (op.kind == SUCL_KIND_SCATTERV) {
    if (!kept) take_packed(v, all, op.root, 0, op.count, true, result);
    return;
  }
  const bool scatter = op.kind == SUCL_KIND_SCATTER;
  const std::uint64_t length = (scatter ? v.size : 1) * op.count * op.element_size;
  result.error = check(all, op.root, op.root + 1, length);
  if (!result.error.empty() || kept) return;
  const std::uint64_t offset = scatter ? v.rank * op.count * op.element_size : 0;
  writer(v, result).put(0, all.data + op.root * all.stride + offset, op.count);
}

}  // namespace

std::vector<std::byte> contribution(const view& v) {
  const sucl_operation& op = *v.op;
  switch (op.kind) {
    case SUCL_KIND_BROADCAST:
      return is_root(v) ? elements(input(v), op.count, v) : std::vector<std::byte>{};
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return elements(input(v), op.count, v);
    case SUCL_KIND_REDUCE_SCATTER: return elements(input(v), total(op.recv_counts, v.size), v);
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLTOALL: return elements(input(v), v.size * op.count, v);
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return own_part(v);
    case SUCL_KIND_SCATTER:
      return is_root(v) ? elements(input(v), v.size * op.count, v) : std::vector<std::byte>{};
    case SUCL_KIND_SCATTERV:
      return is_root(v) ? packed(v, op.send_counts, op.send_displs) : std::vector<std::byte>{};
    case SUCL_KIND_ALLTOALLV:
      return in_place(v) ? packed(v, op.recv_counts, op.recv_displs)
                         : packed(v, op.send_counts, op.send_displs);
    default: return {};  // a barrier
  }
}

outcome finish(const view& v, const gathered& all) {
  outcome result;
  switch (v.op->kind) {
    case SUCL_KIND_BARRIER: break;
    case SUCL_KIND_BROADCAST:
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: finish_from_root(v, all, result); break;
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: finish_gather(v, all, result); break;
    case SUCL_KIND_ALLTOALL:
    case SUCL_KIND_ALLTOALLV: finish_alltoall(v, all, result); break;
    default: finish_reduction(v, all, result); break;
  }
  return result;
}

}  // namespace sucl::mock
