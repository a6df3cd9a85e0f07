// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What an operation reads and writes: buffers, parts of buffers, USM pointers, ranges of elements.
#pragma once

#include <sucl/export.hpp>
#include <sucl/sycl.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace sucl {

/// A part of a buffer: the elements of `range` from `offset` on, in row-major order. It is a view:
/// it shares the buffer, and copying it copies no data. A part that is not contiguous in memory is
/// packed for the transfer.
template <class T, int Dimensions = 1>
class block {
 public:
  /// The whole of `buffer`.
  explicit block(const ::sycl::buffer<T, Dimensions>& buffer)
      : m_buffer(buffer), m_range(buffer.get_range()) {}

  /// `range` elements from `offset` on. Whether they lie inside the buffer is checked when an
  /// operation uses the block (errc::invalid_count).
  block(const ::sycl::buffer<T, Dimensions>& buffer, ::sycl::id<Dimensions> offset,
        ::sycl::range<Dimensions> range)
      : m_buffer(buffer), m_offset(offset), m_range(range) {}

  [[nodiscard]] const ::sycl::buffer<T, Dimensions>& buffer() const { return m_buffer; }
  [[nodiscard]] ::sycl::id<Dimensions> offset() const { return m_offset; }
  [[nodiscard]] ::sycl::range<Dimensions> range() const { return m_range; }
  [[nodiscard]] std::size_t size() const { return m_range.size(); }  ///< in elements

 private:
  ::sycl::buffer<T, Dimensions> m_buffer;
  ::sycl::id<Dimensions> m_offset;
  ::sycl::range<Dimensions> m_range;
};

namespace detail {

/// The bytes of so many elements; throws errc::invalid_count if no address space has them.
SUCL_API std::size_t byte_count(std::size_t elements, std::size_t element_size);

/// Memory of an operation after its types are erased.
struct operand {
  void* pointer = nullptr;                             ///< USM or system memory
  bool bounded = false;                                ///< of which elements() are there
  std::optional<::sycl::buffer<std::byte, 1>> buffer;  ///< or a buffer, seen as bytes
  std::array<std::size_t, 3> extent{1, 1, 1};          ///< of the buffer, in elements
  std::array<std::size_t, 3> offset{0, 0, 0};          ///< of the block in it
  std::array<std::size_t, 3> range{1, 1, 1};
  std::size_t elements() const { return range[0] * range[1] * range[2]; }
};

struct range_memory {};

template <class M, class Enable = void>
struct memory_traits {
  static constexpr bool is_memory = false;
};

template <class T, int D>
struct memory_traits<::sycl::buffer<T, D>> {
  static constexpr bool is_memory = true;
  static constexpr bool owns = false;  ///< copies refer to the same elements
  using element = T;
  static operand erase(const ::sycl::buffer<T, D>& b) {
    return memory_traits<block<T, D>>::erase(block<T, D>(b));
  }
};

template <class T, int D>
struct memory_traits<block<T, D>> {
  static constexpr bool is_memory = true;
  static constexpr bool owns = false;
  using element = T;
  static operand erase(const block<T, D>& b) {
    operand o;
    const ::sycl::range<1> bytes{byte_count(b.buffer().size(), sizeof(T))};
    if (bytes.size() > 0) o.buffer.emplace(b.buffer().template reinterpret<std::byte, 1>(bytes));
    for (int d = 0; d < D; ++d) {
      // The last dimension varies fastest; missing ones in front have extent 1.
      const auto at = static_cast<std::size_t>(3 - D + d);
      o.extent[at] = b.buffer().get_range()[d];
      o.offset[at] = b.offset()[d];
      o.range[at] = b.range()[d];
    }
    return o;
  }
};

/// std::vector, std::array, std::span and what else has data() and size() of one element type:
/// USM or system memory that knows how many elements it has.
template <class M>
struct memory_traits<
    M,
    std::enable_if_t<std::is_pointer_v<decltype(std::declval<M&>().data())> &&
                     std::is_convertible_v<decltype(std::declval<const M&>().size()), std::size_t>>>
    : range_memory {
  static constexpr bool is_memory = true;
  using element = std::remove_pointer_t<decltype(std::declval<M&>().data())>;
  /// A constant container has constant elements; those of a span stay what they are.
  static constexpr bool owns = !std::is_same_v<decltype(std::declval<const M&>().data()), element*>;
  template <class Range>
  static operand erase(Range& r) {
    operand o;
    o.pointer = const_cast<void*>(static_cast<const void*>(r.data()));
    o.bounded = true;
    o.range[2] = r.size();
    return o;
  }
};

template <class M>
inline constexpr bool is_memory = memory_traits<std::decay_t<M>>::is_memory;

template <class M>
using element_of = typename memory_traits<std::decay_t<M>>::element;

template <class M>
inline constexpr bool is_range = std::is_base_of_v<range_memory, memory_traits<std::decay_t<M>>>;

/// Whether an operation may write to an argument of type `M&&`: not to a container that is
/// constant, or that ends with the call.
template <class M>
constexpr bool can_receive() {
  if constexpr (!is_memory<M>)
    return false;
  else if constexpr (std::is_const_v<element_of<M>>)
    return false;
  else if constexpr (memory_traits<std::decay_t<M>>::owns)
    return std::is_lvalue_reference_v<M> && !std::is_const_v<std::remove_reference_t<M>>;
  else
    return true;
}

/// Two ranges of elements `T`, of which an operation may write to the second.
template <class T, class Send, class Recv>
constexpr bool are_ranges() {
  if constexpr (is_memory<Send> && can_receive<Recv>())
    return is_range<Send> && is_range<Recv> && std::is_same_v<element_of<Recv>, T> &&
           std::is_same_v<std::remove_cv_t<element_of<Send>>, T>;
  else
    return false;
}

/// Throws errc::invalid_count where a range has fewer elements than an operation reads or writes.
SUCL_API void check_room(std::size_t needed, std::size_t elements, const char* side);

template <class M>
operand erase(M& memory) {
  return memory_traits<std::decay_t<M>>::erase(memory);
}

template <class T>
operand erase_pointer(const T* pointer) {
  operand o;
  o.pointer = const_cast<void*>(static_cast<const void*>(pointer));
  return o;
}

}  // namespace detail
}  // namespace sucl
