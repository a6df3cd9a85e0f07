// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/own_ops.hpp"

#include "interposer/arguments/types.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace sucl::interposer::own_ops {
namespace {

struct use {
  int operations = 0;  ///< that apply it
  bool freed = false;  ///< by the program
};

struct table {
  std::atomic<int> count{0};  // so that programs without any do not lock
  std::mutex mutex;           // guards what follows
  std::unordered_map<std::uint64_t, use> ops;
};

// Outlives whatever the end of the process calls.
table& all() {
  static table& ops = *new table;
  return ops;
}

}  // namespace

void add(MPI_Op op) {
  const std::lock_guard lock(all().mutex);
  all().ops[bits_of(op)] = {};
  all().count = static_cast<int>(all().ops.size());
}

bool contains(MPI_Op op) {
  if (all().count == 0) return false;
  const std::lock_guard lock(all().mutex);
  const auto found = all().ops.find(bits_of(op));
  return found != all().ops.end() && !found->second.freed;
}

void keep(MPI_Op op) {
  const std::lock_guard lock(all().mutex);
  ++all().ops[bits_of(op)].operations;
}

void release(MPI_Op op) {
  {
    const std::lock_guard lock(all().mutex);
    use& u = all().ops[bits_of(op)];
    if (--u.operations > 0 || !u.freed) return;
    all().ops.erase(bits_of(op));
    all().count = static_cast<int>(all().ops.size());
  }
  PMPI_Op_free(&op);
}

bool remove(MPI_Op op) {
  const std::lock_guard lock(all().mutex);
  const auto found = all().ops.find(bits_of(op));
  if (found == all().ops.end()) return false;
  if (found->second.operations > 0) return found->second.freed = true;
  all().ops.erase(found);
  all().count = static_cast<int>(all().ops.size());
  return false;
}

}  // namespace sucl::interposer::own_ops
