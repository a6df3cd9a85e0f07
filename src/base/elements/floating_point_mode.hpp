// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a thread computes with floating-point numbers.
#pragma once

#include <sucl/export.hpp>

#if !defined(__x86_64__)
#include <cfenv>
#endif

namespace sucl::base {

/// While it lives, this thread rounds to nearest even, keeps denormal numbers and has no traps, as
/// IEEE 754 has it by default. A program may set its own threads otherwise, and not those of the
/// library or of other ranks: what an operation gives must not depend on which thread executes it.
///
/// Not inline, so that it can be used where code for newer processors is compiled, and so that no
/// computation is moved past it.
class SUCL_CORE_API default_floating_point_mode {
 public:
  default_floating_point_mode() noexcept;
  ~default_floating_point_mode();
  default_floating_point_mode(const default_floating_point_mode&) = delete;
  default_floating_point_mode& operator=(const default_floating_point_mode&) = delete;

 private:
#if defined(__x86_64__)
  unsigned m_before;  ///< the control register; nothing else is used to compute on this processor
#else
  std::fenv_t m_before;
#endif
};

}  // namespace sucl::base
