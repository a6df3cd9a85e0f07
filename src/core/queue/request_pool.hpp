// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The records of operations, used again and again.
#pragma once

#include "core/queue/op_request.hpp"

#include <memory>
#include <vector>

namespace sucl::core {

/// Owns all records of a communicator. One thread at a time.
class request_pool {
 public:
  /// One that no ticket refers to any more, as good as new; allocates only if there is none.
  op_request* take();
  /// The operation is over, and its observer knows. Tickets may still refer to it.
  void give_back(op_request* n) { m_free.push_back(n); }

 private:
  std::vector<std::unique_ptr<op_request>> m_all;
  std::vector<op_request*> m_free;
};

}  // namespace sucl::core
