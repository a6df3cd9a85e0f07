// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Shared libraries loaded at run time.
#pragma once

#include <sucl/export.hpp>

#include <string>

namespace sucl::base {

/// A loaded shared library, closed by the destructor: nothing may run in it or point into it then.
class SUCL_CORE_API library {
 public:
  library() = default;
  library(library&& other) noexcept;
  library& operator=(library&& other) noexcept;
  ~library();

  /// Loads a library with all its symbols resolved and none of them offered to other libraries.
  /// A path without a slash is searched for as the dynamic linker does. Throws sucl::error
  /// (errc::unavailable) that says which file, why, and what to do.
  static library open(const std::string& path);

  /// The address of a symbol; throws sucl::error (errc::unavailable) if there is none.
  void* symbol(const char* name) const;

  /// The same for a function of a type, as in `symbol_as<int (*)(int)>("f")`.
  template <class Function>
  Function symbol_as(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

  explicit operator bool() const noexcept { return m_handle != nullptr; }
  const std::string& path() const noexcept { return m_path; }

 private:
  void* m_handle = nullptr;
  std::string m_path;
};

}  // namespace sucl::base
