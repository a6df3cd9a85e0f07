// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The names that array protocols have for element types. What SuCL has no type for is bytes, which
/// are moved and not reduced; what has the other byte order, and objects of Python, throw
/// errc::invalid_type.
#pragma once

#include "arrays/dlpack.hpp"

#include <sucl/types.hpp>

#include <cstddef>
#include <string>

namespace sucl::python {

/// Of the buffer protocol, as "f", "<i", "Zd" or, of a value with an index, "T{f:value:i:index:}".
type type_of_format(const std::string& format, std::size_t size, const char* what);

/// Of the array interfaces, as "<f4".
void type_of_typestr(const std::string& typestr, const char* what, type& element,
                     std::size_t& size);

/// Throws if a field of the array interfaces, whose list `descr` is, is of objects of Python.
void check_fields(const std::string& descr, const char* what);

/// Of DLPack.
void type_of_dlpack(const dlpack_tensor& tensor, const char* what, type& element,
                    std::size_t& size);

}  // namespace sucl::python
