// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Kernels that are written once and run whether or not a SYCL compiler compiles the program.
///
/// A kernel is a trivially copyable struct: its members are the parameters, and its call operator
/// takes the work item and the memory that it works on.
///
/// ```cpp
/// // kernels.hpp
/// #include <sycl/sycl.hpp>
/// struct axpy {
///   double a;
///   std::int64_t n;
///   void operator()(sycl::nd_item<1> item, const double* x, double* y) const {
///     const auto i = static_cast<std::int64_t>(item.get_global_id(0));
///     if (i < n) y[i] += a * x[i];
///   }
/// };
/// // main.cpp
/// sucl::kernels::launch(queue, sucl::kernels::items(n), {ready}, axpy{2.0, n}, x, y);
/// ```
///
/// A SYCL compiler (AdaptiveCpp, icpx) compiles it with the program. Where the program is compiled
/// by an ordinary C++ compiler against the run-time wheels of DPC++, the text of the header is part
/// of the program, and all kernels that it launches are compiled together when the first one is.
/// The CMake function `sucl_embed_kernels(TARGET HEADER...)` puts the text there; with a SYCL
/// compiler it does nothing.
///
/// For the compilation at run time kernels and the types they name are neither local nor in an
/// unnamed namespace, and their headers need nothing but the standard library, SYCL and each other.
#pragma once

#include <sucl/export.hpp>
#include <sucl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace sucl::kernels {

/// A buffer that a kernel works on, and how. Made by read(), write() and update().
template <class T, ::sycl::access_mode Mode>
struct buffer_use {
  ::sycl::buffer<T, 1> buffer;
};

/// The kernel reads the buffer: it gets a `const T*`.
template <class T>
buffer_use<T, ::sycl::access_mode::read> read(const ::sycl::buffer<T, 1>& buffer) {
  return {buffer};
}
/// The kernel overwrites all of the buffer.
template <class T>
buffer_use<T, ::sycl::access_mode::write> write(const ::sycl::buffer<T, 1>& buffer) {
  return {buffer};
}
/// The kernel reads and writes the buffer, or writes a part of it.
template <class T>
buffer_use<T, ::sycl::access_mode::read_write> update(const ::sycl::buffer<T, 1>& buffer) {
  return {buffer};
}

/// Memory that a work group shares for as long as it runs. Made by local().
template <class T>
struct local_use {
  std::size_t count;
};

/// The kernel gets a `T*` to memory for `count` elements, which its work group shares: not
/// initialised, and gone with the group.
template <class T>
local_use<T> local(std::size_t count = 1) {
  return {count};
}

/// The range for at least `count` work items, in groups of `group`.
inline ::sycl::nd_range<1> items(std::size_t count, std::size_t group = 256) {
  const std::size_t groups = count == 0 ? 1 : (count + group - 1) / group;
  return {::sycl::range<1>(groups * group), ::sycl::range<1>(group)};
}

/// @cond internal
/// A header with kernels, as sucl_embed_kernels() writes it.
struct file {
  const char* name;
  const char* text;
};

namespace detail {

/// What a kernel is given besides its parameters.
struct argument {
  enum class storage { pointer, buffer, local };
  const std::type_info* element;
  bool is_constant;  ///< of a pointer
  storage where;
  ::sycl::access_mode mode;  ///< of a buffer
};

template <class A>
struct argument_traits;
template <class T>
struct argument_traits<T*> {
  static argument describe() {
    return {&typeid(T), std::is_const_v<T>, argument::storage::pointer,
            ::sycl::access_mode::read_write};
  }
};
template <class T, ::sycl::access_mode Mode>
struct argument_traits<buffer_use<T, Mode>> {
  static argument describe() { return {&typeid(T), false, argument::storage::buffer, Mode}; }
};
template <class T>
struct argument_traits<local_use<T>> {
  static argument describe() {
    return {&typeid(T), false, argument::storage::local, ::sycl::access_mode::read_write};
  }
};

template <class T, ::sycl::access_mode Mode>
auto bind(const buffer_use<T, Mode>& use, ::sycl::handler& h) {
  auto buffer = use.buffer;
  if constexpr (Mode == ::sycl::access_mode::write)
    return ::sycl::accessor<T, 1, Mode>(buffer, h, ::sycl::property_list{::sycl::no_init});
  else
    return ::sycl::accessor<T, 1, Mode>(buffer, h);
}
template <class T>
T* bind(T* pointer, ::sycl::handler&) {
  return pointer;
}
template <class T>
auto bind(const local_use<T>& use, ::sycl::handler& h) {
  return ::sycl::local_accessor<T, 1>(::sycl::range<1>(use.count), h);
}

template <class T>
T* address(T* pointer) {
  return pointer;
}
template <class T, ::sycl::access_mode Mode>
auto address(const ::sycl::accessor<T, 1, Mode>& a) {
  return &a[0];
}
template <class T>
T* address(const ::sycl::local_accessor<T, 1>& a) {
  return &a[0];
}

/// The kernels of a program or library that are compiled at run time.
class SUCL_API kernel_set {
 public:
  explicit kernel_set(const file* files);
  ~kernel_set();
  kernel_set(const kernel_set&) = delete;
  kernel_set& operator=(const kernel_set&) = delete;
  /// Before main. Returns the kernel's number.
  std::size_t add(const std::type_info& kernel, std::initializer_list<argument> arguments);
  /// Compiles all kernels if that has not been done for this context. Throws errc::unavailable.
  void prepare(const ::sycl::context& context);
  /// One of them.
  ::sycl::kernel get(const ::sycl::context& context, std::size_t number);

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace detail

#ifdef SUCL_KERNELS_AT_RUN_TIME

/// Defined by sucl_embed_kernels(): if the linker misses it, the target lacks that call.
extern const file embedded_files[] __attribute__((visibility("hidden")));

namespace detail {

/// One for each program and library, since each has files of its own.
__attribute__((visibility("hidden"))) inline kernel_set& own_kernels() {
  static kernel_set& own =
      *new kernel_set(embedded_files);  // kernels outlive the SYCL runtime badly
  return own;
}

template <class Kernel, class... Arguments>
struct __attribute__((visibility("hidden"))) entry {
  static const std::size_t number;
};
template <class Kernel, class... Arguments>
const std::size_t entry<Kernel, Arguments...>::number =
    own_kernels().add(typeid(Kernel), {argument_traits<Arguments>::describe()...});

}  // namespace detail
#endif
/// @endcond

/// Compiles the kernels that the program launches for this queue's context, so that the first
/// launch does not wait for the compiler. Local; blocks. With a SYCL compiler it does nothing.
/// Throws errc::unavailable with the compiler's messages if a kernel does not compile.
inline void prepare([[maybe_unused]] const ::sycl::queue& queue) {
#ifdef SUCL_KERNELS_AT_RUN_TIME
  detail::own_kernels().prepare(queue.get_context());
#endif
}

#ifndef SUCL_KERNELS_AT_RUN_TIME
namespace detail {

/// As launch(), by anything that has a queue's submit().
template <class Queue, class Kernel, class... Memory>
::sycl::event launch_by(Queue& queue, const ::sycl::nd_range<1>& range,
                        const std::vector<::sycl::event>& deps, const Kernel& kernel,
                        const Memory&... memory) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    const auto start = [&](auto... bound) {
      h.parallel_for(range,
                     [=](::sycl::nd_item<1> item) { kernel(item, detail::address(bound)...); });
    };
    start(detail::bind(memory, h)...);
  });
}

}  // namespace detail
#endif

/// Launches a kernel once for each item of `range`, after `deps`, on an in-order queue after what
/// was submitted before, and after earlier commands on its buffers. `memory` is what the call
/// operator takes after the work item: USM pointers, buffers in read(), write() or update(), and
/// memory of the work group in local().
template <class Kernel, class... Memory>
::sycl::event launch(::sycl::queue& queue, const ::sycl::nd_range<1>& range,
                     const std::vector<::sycl::event>& deps, const Kernel& kernel,
                     const Memory&... memory) {
  static_assert(std::is_trivially_copyable_v<Kernel>, "parameters are copied byte by byte");
#ifdef SUCL_KERNELS_AT_RUN_TIME
  const ::sycl::kernel compiled = detail::own_kernels().get(
      queue.get_context(), detail::entry<Kernel, std::decay_t<Memory>...>::number);
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    int index = 0;
    h.set_arg(index, kernel);
    (h.set_arg(++index, detail::bind(memory, h)), ...);
    h.parallel_for(range, compiled);
  });
#else
  return detail::launch_by(queue, range, deps, kernel, memory...);
#endif
}

}  // namespace sucl::kernels
