// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/built_ins.hpp"

namespace sucl::core {

const built_in_backend& plan_built_in();
const built_in_backend& message_built_in();
const built_in_backend& kernel_built_in();
const built_in_backend& hierarchical_built_in();
const built_in_backend& self_built_in();

const built_in_list& built_ins() {
  static const built_in_list all{&plan_built_in(), &message_built_in(), &kernel_built_in(),
                                 &hierarchical_built_in(), &self_built_in()};
  return all;
}

}  // namespace sucl::core
