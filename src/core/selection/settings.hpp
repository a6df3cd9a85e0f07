// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Settings of backends, and errors about them.
#pragma once

#include "base/bounds.hpp"
#include "base/config/config.hpp"

#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <cstdint>
#include <string>

namespace sucl::core {

/// A setting of a built-in backend, as the configuration has it. What is wrong with it throws
/// errc::configuration with the backend, the key, the value, and what is allowed.
class SUCL_CORE_API backend_setting {
 public:
  backend_setting(const char* backend, const std::string& key, const std::string& value)
      : m_backend(backend), m_key(key), m_value(value) {}

  /// A whole number in decimal digits.
  [[nodiscard]] std::uint64_t number(base::bounds<std::uint64_t> range) const;
  /// Bytes, as in "64Ki".
  [[nodiscard]] std::uint64_t size(base::bounds<std::uint64_t> range) const;
  [[nodiscard]] bool boolean() const;
  /// The backend has no setting of this key. `known`: those that it has.
  [[noreturn]] void refuse_key(const std::string& known) const;

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;

  const char* m_backend;
  const std::string& m_key;
  const std::string& m_value;
};

/// Puts before the error of a backend about one of its settings where that was set.
SUCL_CORE_API void add_origin(error_info& problem, const base::config& settings,
                              const std::string& backend);

}  // namespace sucl::core
