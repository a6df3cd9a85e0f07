// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/elements/floating_point_mode.hpp"

namespace sucl::base {

#if defined(__x86_64__)
namespace {

constexpr unsigned default_control = 0x1f80;  // all traps masked, to nearest even, denormals kept
constexpr unsigned raised = 0x3f;  // exceptions that have happened, which control nothing

}  // namespace

default_floating_point_mode::default_floating_point_mode() noexcept
    : m_before(__builtin_ia32_stmxcsr()) {
  if ((m_before & ~raised) != default_control) __builtin_ia32_ldmxcsr(default_control);
}

default_floating_point_mode::~default_floating_point_mode() {
  if ((m_before & ~raised) != default_control) __builtin_ia32_ldmxcsr(m_before);
}
#else
default_floating_point_mode::default_floating_point_mode() noexcept {
  std::fegetenv(&m_before);
  std::fesetenv(FE_DFL_ENV);
}

default_floating_point_mode::~default_floating_point_mode() { std::fesetenv(&m_before); }
#endif

}  // namespace sucl::base
