// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/built_ins.hpp"

namespace sucl::core {

#define SUCL_BUILT_IN_BACKEND(folder, name, ...) const built_in_backend& name##_built_in();
#include "base/config/built_in_backends.def"
#undef SUCL_BUILT_IN_BACKEND
const built_in_backend& self_built_in();

const built_in_list& built_ins() {
  static const built_in_list all{
#define SUCL_BUILT_IN_BACKEND(folder, name, ...) &name##_built_in(),
#include "base/config/built_in_backends.def"
#undef SUCL_BUILT_IN_BACKEND
      &self_built_in()};
  return all;
}

}  // namespace sucl::core
