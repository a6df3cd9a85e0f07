// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One slice of one task: loading it, posting it, storing it.
#pragma once

#include "core/staging/blocks.hpp"

#include <vector>

namespace sucl::core {

/// Copies in flight; done when all are.
struct copies {
  std::vector<void*> tokens;

  void start(const device_copier& copier, void* to, const void* from, std::size_t bytes) {
    if (void* token = copier.start(copier.context, to, from, bytes)) tokens.push_back(token);
  }
  bool done(const device_copier* copier) {
    while (!tokens.empty() && copier->test(copier->context, tokens.back())) tokens.pop_back();
    return tokens.empty();
  }
};

/// The elements [first, last) of each block of a task, and the scratch memory they go through.
struct slice {
  const task* of = nullptr;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  scratch send_wire;
  scratch recv_wire;
  scratch staged;  ///< device elements on the host, where they have another form on the wire
  scratch arrays;  ///< counts and displacements
};

/// Takes scratch memory and brings the source's elements there, except what `pending` still copies.
void begin_load(slice& s, const device_copier* copier, scratch_pool& pool, copies& pending);

/// Converts what was copied.
void finish_load(slice& s);

/// The operation that executes a loaded slice. It refers to the slice's memory.
sucl_operation backend_instance(slice& s, scratch_pool& pool);

/// Stores a slice whose operation is done, except what `pending` still copies.
void begin_store(slice& s, const device_copier* copier, scratch_pool& pool, copies& pending);

/// Gives scratch memory back, or keeps it from being used again.
void end(slice& s, bool reuse) noexcept;

}  // namespace sucl::core
