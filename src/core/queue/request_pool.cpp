// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/queue/request_pool.hpp"

#include <algorithm>

namespace sucl::core {

op_request* request_pool::take() {
  const auto unused = std::find_if(m_free.begin(), m_free.end(), [](op_request* n) {
    return n->references.load(std::memory_order_acquire) == 0;
  });
  if (unused != m_free.end()) {
    op_request* n = *unused;
    *unused = m_free.back();
    m_free.pop_back();
    n->request = nullptr;
    n->pipeline.reset();
    n->failure.reset();
    n->watch = {};
    n->on_stream = false;
    n->at.store(op_request::phase::waiting, std::memory_order_relaxed);
    return n;
  }
  m_all.push_back(std::make_unique<op_request>());
  return m_all.back().get();
}

}  // namespace sucl::core
