// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Errors within the module are exceptions; its entry points report them to the core.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string>

namespace sucl::fabric {

/// What went wrong, and the cure.
struct problem {
  sucl_status status = SUCL_SUCCESS;
  std::string message;
  std::string hint;
  std::int64_t native_code = 0;
};

inline sucl_status report(const sucl_core* core, const problem& p) {
  return core->fail(p.status, p.native_code, p.message.c_str(),
                    p.hint.empty() ? nullptr : p.hint.c_str());
}

/// Every entry of the table runs inside this: no exception may leave through C.
template <class Work>
sucl_status guarded(const sucl_core* core, const Work& work) noexcept {
  try {
    return work();
  } catch (const problem& p) {
    return report(core, p);
  } catch (const std::bad_alloc&) {
    return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "the backend fabric ran out of host memory",
                      "Make operations smaller, or fewer at once.");
  } catch (const std::exception& e) {
    return core->fail(SUCL_ERROR_INTERNAL, 0, e.what(), nullptr);
  }
}

}  // namespace sucl::fabric
