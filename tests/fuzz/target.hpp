// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a fuzzer calls: one function for each format. libFuzzer gives it inputs, or driver.cpp
/// those of the corpus.
#pragma once

#include <sucl/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sucl::fuzz {

/// Ends the process unless a property of what was accepted holds.
inline void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "property violated: %s\n", what);
  std::abort();
}

/// What `read` makes of an input that it accepts is handed to `use`. What it refuses must be an
/// error of SuCL's, with a message and a cure.
template <class Read, class Use>
int one_input(const std::uint8_t* data, std::size_t size, Read&& read, Use&& use) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    use(read(text));
  } catch (const error& e) {
    require(!e.info().message.empty(), "an error says what is wrong");
  }
  return 0;
}

}  // namespace sucl::fuzz
