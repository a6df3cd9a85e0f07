// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The types of the public headers, for describe_abi.py: those that programs make, hold or pass.
// What they consist of is described with them.
#include <sucl/sucl.hpp>

namespace sucl::abi {

SUCL_API void describe(blocking_communicator*, communicator*, graph_communicator*,
                       persistent_communicator*, compile_options*, compiled_plan*, composition*,
                       executable*, group*, group_member*, persistent*, balance_options*, balancer*,
                       box_partition*, migration*, neighborhood*, partition*, error*, error_info*,
                       rendezvous_store*, runtime*, unique_id*, member*, detail::request*, kind*,
                       type*, op*, errc*) {}

}  // namespace sucl::abi
