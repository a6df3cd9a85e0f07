// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// NCCL as a program without SYCL and without this library would call it.
#pragma once

#include "bench/operations/problem.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace sucl::bench {

/// A communicator of NCCL's own on a stream of its own.
class bare_nccl {
 public:
  struct call;  ///< one call with everything it refers to

  /// Collective. `exchange` broadcasts bytes from rank 0. Does not throw: see obstacle().
  bare_nccl(int rank, int size, int device,
            const std::function<void(void*, std::size_t)>& exchange);
  ~bare_nccl();
  bare_nccl(const bare_nccl&) = delete;
  bare_nccl& operator=(const bare_nccl&) = delete;

  /// Why it cannot be used; "" if it can.
  const std::string& obstacle() const { return m_obstacle; }
  /// Its version and path.
  std::string description() const;

  /// The call for a problem; null if NCCL has none.
  std::shared_ptr<call> prepare(const problem& p, const void* send, void* recv) const;
  void start(const call& c);  ///< throws sucl::error

  /// Memory in a symmetric window of the communicator, which NCCL reaches without copying to its
  /// own first; and back. Collective, with equal `bytes`; throws sucl::error.
  void* allocate_window(std::size_t bytes);
  void free_window(void* memory);
  int device() const;    ///< its number
  void* stream() const;  ///< what start() puts work on
  void finish();         ///< returns when everything that was started is done

 private:
  struct state;
  std::unique_ptr<state> m_state;
  std::string m_obstacle;
};

}  // namespace sucl::bench
