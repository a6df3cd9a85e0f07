// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Arrays of any Python library as memory of a call. Nothing else knows their protocols.
#pragma once

#include "bridge.hpp"

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace sucl::python {

/// What keeps the memory of arrays: objects, exported buffers, DLPack's tensors. Made, and ended,
/// with the GIL held.
class holdings {
 public:
  holdings() = default;
  holdings(const holdings&) = delete;
  holdings& operator=(const holdings&) = delete;
  ~holdings();

  void hold(nanobind::object o) { m_objects.push_back(std::move(o)); }
  Py_buffer& hold_buffer();
  void drop_buffer();

 private:
  std::vector<nanobind::object> m_objects;
  std::vector<std::unique_ptr<Py_buffer>> m_buffers;
};

/// Elements in a row.
struct array_view {
  void* pointer = nullptr;
  std::size_t elements = 0;
  type element = type::bytes;
  std::size_t element_size = 1;
  bool read_only = false;
  bool on_device = false;       ///< memory that the host may be unable to read
  const void* queue = nullptr;  ///< the sycl::queue that the array belongs to
};

/// Looks at an array, which is then held. `what` names it in errors, as in "the send array".
/// Throws errc::invalid_argument for what is no array, and errc::invalid_memory for one that is not
/// contiguous, of another byte order or gone.
array_view view_of(nanobind::handle array, const char* what, holdings& held);

/// The type of the elements of numpy's dtype or its name; bytes of a size for others.
void type_of_dtype(const std::string& name, type& element, std::size_t& size);

/// The queue in what dpctl's SyclQueue, or its capsule, holds; null for None.
std::shared_ptr<queue_handle> queue_from(nanobind::handle object);

[[noreturn]] void fail(errc code, std::string message, std::string hint);

}  // namespace sucl::python
