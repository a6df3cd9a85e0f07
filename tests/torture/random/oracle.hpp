// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What an operation has to give: worked out from the inputs by the documented rules, on its own.
#pragma once

#include "draw.hpp"

#include <string>

namespace sucl::torture {

/// Checks `count` reduced elements at `got`, of the ranks first to last, whose inputs start at
/// `index`. Returns "" or what is wrong.
///
/// Integers wrap. Of floating-point numbers a result is right if some order and association of the
/// inputs gives it, in the arithmetic of the type or, for 16 bits, of fp32 rounded at the end or
/// after any step. min and max are those of IEEE 754-2019 minimum and maximum: NaN wins, -0 is
/// below +0. Products of complex numbers are within an error bound. Which NaN is not judged.
std::string check_folds(const operation& o, int ranks, int first, int last, std::uint64_t index,
                        std::size_t count, const std::byte* got);

/// A hash of `count` elements that leaves out the padding of pairs.
std::uint64_t hash_elements(reference::element e, std::size_t count, const std::byte* at,
                            std::uint64_t before);

/// An element, human-readable, with its bits.
std::string describe(reference::element e, op o, const std::byte* at);

}  // namespace sucl::torture
