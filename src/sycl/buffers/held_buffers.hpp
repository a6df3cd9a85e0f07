// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What commands of DPC++ hold of buffers: the counterpart of adaptivecpp.hpp.
#pragma once

#include "sycl/common/implementation.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <utility>
#include <variant>
#include <vector>

namespace sucl::sycl_layer {

/// Whether a buffer has rows. DPC++ moves a buffer between host and device by the extents of its
/// last accessor on each side, and the CUDA driver refuses rows that are longer on one of them:
/// bytes of a buffer with rows have to be accessed in rows too.
inline bool has_rows(const buffer_use& use) {
  return use.extents[0] * use.extents[1] > 1 && use.extents.size() == use.buffer.size();
}

/// The bytes of such a buffer.
inline ::sycl::buffer<std::byte, 3> in_rows(const buffer_use& use) {
  auto buffer = use.buffer;
  return buffer.reinterpret<std::byte, 3>(use.extents);
}

/// Access to the buffers of an operation in a command, without handles of them.
template <::sycl::target Target>
class held_buffers {
  template <int Dimensions, ::sycl::access_mode Mode>
  using access = ::sycl::accessor<std::byte, Dimensions, Mode, Target>;
  static constexpr auto read = ::sycl::access_mode::read;
  static constexpr auto write = ::sycl::access_mode::read_write;

 public:
  held_buffers(const std::vector<buffer_use>& buffers, ::sycl::handler& h) {
    for (const buffer_use& use : buffers) {
      if (has_rows(use))
        add(use, in_rows(use), h);
      else
        add(use, use.buffer, h);
    }
  }

  /// Writes `address(accessor)` of each into an operation: its `record` and `parts`.
  template <class Operation, class Address>
  void set(Operation& n, const Address& address) const {
    for (const auto& [operand, memory] : m_held)
      set_addresses(n.record, n.parts, operand, std::visit(address, memory));
  }
  /// Notes that all of them are in the host's memory.
  template <class Operation>
  void set_host_memory(Operation& n) const {
    for (const auto& [operand, memory] : m_held) set_memory(n.record, n.parts, operand);
  }
  bool reads_and_writes() const { return m_reads && m_writes; }

 private:
  template <int Dimensions>
  void add(const buffer_use& use, ::sycl::buffer<std::byte, Dimensions> buffer,
           ::sycl::handler& h) {
    (use.writes ? m_writes : m_reads) = true;
    if (!use.writes)
      m_held.emplace_back(use.operand, access<Dimensions, read>(buffer, h));
    else if (use.discards)
      m_held.emplace_back(use.operand,
                          access<Dimensions, write>(buffer, h, {::sycl::property::no_init{}}));
    else
      m_held.emplace_back(use.operand, access<Dimensions, write>(buffer, h));
  }

  using any = std::variant<access<1, read>, access<3, read>, access<1, write>, access<3, write>>;
  std::vector<std::pair<buffer_operand, any>> m_held;
  bool m_reads = false, m_writes = false;
};

/// The first byte that a host accessor covers.
template <class Access>
void* first_byte(const Access& memory) {
  using range = decltype(memory.get_range());
  return const_cast<std::byte*>(&memory[::sycl::id<range::dimensions>()]);
}

}  // namespace sucl::sycl_layer
#endif
