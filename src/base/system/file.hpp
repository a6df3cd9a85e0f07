// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reading files that a user named, whatever they turn out to be.
#pragma once

#include <sucl/export.hpp>

#include <cstddef>
#include <string>

namespace sucl::base {

/// The largest file that is read, in bytes.
inline constexpr std::size_t max_file_bytes = std::size_t{64} << 20;

/// What reading a file came to.
struct file_content {
  std::string text;
  std::string problem;  ///< why it cannot be read, as in "it is a directory"; empty: it was read
};

/// Reads a whole regular file of at most `most` bytes. Everything else is refused before it is
/// read: pipes (which would wait for a writer), devices (which may have no end), sockets and
/// directories. /dev/null is an empty file.
SUCL_CORE_API file_content read_regular_file(const std::string& path,
                                             std::size_t most = max_file_bytes);

/// Where SuCL keeps what it has found out, for this user: sucl in XDG_CACHE_HOME or ~/.cache.
/// Empty: neither is known.
SUCL_CORE_API std::string cache_folder();

}  // namespace sucl::base
