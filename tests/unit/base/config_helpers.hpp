// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/config/config.hpp"

#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sucl::test {

/// The configuration of a file with this text.
inline base::config loaded(const std::string& text, const base::variables& environment = {}) {
  working_directory here;
  here.write("sucl.toml", text);
  return base::load_config("sucl.toml", environment);
}

/// The message for a bad file or environment, which must be a configuration error.
inline std::string refused(const std::string& text, const base::variables& environment = {}) {
  errc code = errc::success;
  const std::string message = error_of([&] { loaded(text, environment); }, &code);
  EXPECT_EQ(code, errc::configuration) << message;
  return message;
}

}  // namespace sucl::test
