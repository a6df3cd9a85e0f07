// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The independent reference: inputs, and what each rank must get from them.
///
/// Nothing here uses the library; what is delivered is in reference/delivery.hpp, what ops give in
/// reference/fold.hpp. Inputs are a formula of rank and index, so every rank knows every other
/// one's; values are chosen so that all results are exact in every type, whatever the order of the
/// reduction.
#pragma once

#include "problem.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sucl::bench {

/// What `rank` puts into its send memory (a broadcast's root: its only memory): `elements`
/// elements.
std::vector<std::byte> make_input(const problem& p, int rank, std::uint64_t elements);

/// What this rank's receive memory must hold afterwards. Elements that the collective leaves alone
/// hold `untouched` in every byte.
std::vector<std::byte> make_expected(const problem& p, std::byte untouched);

/// The first difference, as in "element 3 is 5, should be 4"; "" if there is none. Bytes that no
/// value uses, between the parts of a pair, do not count.
std::string find_difference(const problem& p, const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& got);

}  // namespace sucl::bench
