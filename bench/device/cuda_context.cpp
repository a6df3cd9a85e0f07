// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "cuda_context.hpp"

#include "base/error.hpp"

#include <string>

namespace sucl::bench {

cuda_context::cuda_context(int device, const char* purpose, const char* cure)
    : m_device(device), m_purpose(purpose), m_cure(cure) {
  check(m_retain(&m_context, device), "its context");
}

cuda_context::~cuda_context() { m_release(m_device); }

void cuda_context::check(int code, const char* what) const {
  if (code == 0) return;
  base::fail(
      errc::native,
      std::string(m_purpose) + ": " + what + ": code " + std::to_string(code) + " of CUDA's driver",
      m_cure);
}

cuda_context::here::here(const cuda_context& context)
    : m_context(context), m_entered(context.m_push(context.m_context) == 0) {}

cuda_context::here::~here() {
  cuda_handle other;
  if (m_entered) m_context.m_pop(&other);
}

}  // namespace sucl::bench
