// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "arrays/arrays.hpp"

#include "arrays/dlpack.hpp"
#include "arrays/formats.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <typeinfo>
#include <utility>

namespace nb = nanobind;

namespace sucl::python {
namespace {

constexpr const char* sycl_interface = "__sycl_usm_array_interface__";
constexpr const char* contiguous_hint =
    "Pass a contiguous copy, as of numpy.ascontiguousarray() or tensor.contiguous(), and copy "
    "the result back";

// What an exception of Python says, without its traceback.
std::string text_of(const nb::python_error& e) { return nb::cast<std::string>(nb::str(e.value())); }

// The text of the error that Python has set, which is cleared.
std::string taken_error() { return text_of(nb::python_error()); }

// As numpy's masked arrays.
bool may_have_mask(nb::handle type) {
  return nb::hasattr(type, "mask") && nb::hasattr(type, "filled");
}

// Whether objects of this class have the buffer protocol and no interface of SYCL, so that arrays
// of numpy, the most frequent ones, are not asked for it again.
bool is_plain_buffer(nb::handle array) {
  static auto& known = *new std::vector<nb::object>;
  const nb::handle type = array.type();
  for (const nb::object& one : known)
    if (one.is(type)) return true;
  if (PyObject_CheckBuffer(array.ptr()) == 0 || nb::hasattr(type, sycl_interface) ||
      may_have_mask(type))
    return false;
  if (known.size() < 8) known.push_back(nb::borrow(type));
  return true;
}

std::string class_of(nb::handle object) {
  return nb::cast<std::string>(nb::type_name(object.type()));
}

[[noreturn]] void no_access(const char* what, const std::string& why) {
  fail(errc::invalid_memory, std::string(what) + " gives no access to its memory: " + why,
       "Pass an array that is alive and dense; of torch, tensor.detach()");
}

// An attribute, or None. An array that is dead says so in what its properties raise.
nb::object attribute(nb::handle array, const char* name, const char* what) {
  PyObject* found = PyObject_GetAttrString(array.ptr(), name);
  if (found) return nb::steal(found);
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) no_access(what, taken_error());
  PyErr_Clear();
  return nb::none();
}

// What is masked has values too, which would be reduced with the others.
void check_mask(nb::handle array, const char* what) {
  const nb::object mask = attribute(array, "mask", what);
  if (!nb::hasattr(mask, "any") || !nb::cast<bool>(nb::bool_(mask.attr("any")()))) return;
  fail(errc::invalid_type, std::string(what) + " has masked elements, and SuCL knows no masks",
       "Pass array.filled(value), or array.data and array.mask one after the other");
}

// The number of elements of these extents.
template <class Extent>
std::size_t elements_of(const Extent* extents, std::size_t dimensions, std::size_t element_size,
                        const char* what) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  std::size_t all = 1;
  bool fits = element_size <= most, empty = false;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (extents[d] < 0)
      fail(errc::invalid_count,
           std::string(what) + " has an extent of " + std::to_string(extents[d]),
           "Pass an array whose extents are from 0");
    const auto n = static_cast<std::size_t>(extents[d]);
    empty = empty || n == 0;
    fits = fits && n <= most / std::max<std::size_t>(1, all * element_size);
    if (fits) all *= n;
  }
  if (empty) return 0;
  if (!fits)
    fail(errc::invalid_count, std::string(what) + " is larger than any address space",
         "Check its shape and type");
  return all;
}

[[noreturn]] void not_contiguous(const char* what) {
  fail(errc::invalid_memory,
       std::string(what) + " is not contiguous: its elements do not follow one another in C order",
       contiguous_hint);
}

// Whether strides, in units of `unit`, are those of C order. Dimensions of one element have any.
template <class Extent, class Stride>
bool in_order(const Extent* shape, const Stride* strides, int dimensions, std::int64_t unit) {
  for (int d = 0; d < dimensions; ++d)
    if (shape[d] == 0) return true;
  std::int64_t expected = unit;
  for (int d = dimensions; d-- > 0;) {
    if (shape[d] == 1) continue;
    if (static_cast<std::int64_t>(strides[d]) != expected) return false;
    expected *= static_cast<std::int64_t>(shape[d]);
  }
  return true;
}

// numpy exports no buffer of types that are not its own, but tells where they are. Those of
// ml_dtypes are known by name.
void take_name(nb::handle array, array_view& view) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  if (dtype.is_none()) return;
  type element = type::bytes;
  std::size_t size = 0;
  type_of_dtype(nb::cast<std::string>(nb::str(dtype)), element, size);
  if (element == type::bytes || size != view.element_size) return;
  view.element = element;
}

std::vector<std::int64_t> numbers(nb::handle sequence) {
  std::vector<std::int64_t> list;
  for (nb::handle entry : nb::iter(sequence)) list.push_back(nb::cast<std::int64_t>(entry));
  return list;
}

nb::object entry(const nb::dict& interface, const char* key) {
  return interface.contains(key) ? nb::object(interface[key]) : nb::object(nb::none());
}

// The address is in a tuple, or is that of an object with a buffer, which is kept then. Returns how
// many bytes there are, as far as that is known.
std::size_t take_data(array_view& view, const nb::object& data, const nb::object& offset,
                      holdings& held) {
  if (nb::isinstance<nb::tuple>(data)) {
    view.pointer = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::tuple(data)[0]));
    view.read_only = nb::cast<bool>(nb::tuple(data)[1]);
    return std::numeric_limits<std::size_t>::max();
  }
  Py_buffer& buffer = held.hold_buffer();
  if (PyObject_GetBuffer(data.ptr(), &buffer, PyBUF_SIMPLE) != 0) {
    held.drop_buffer();
    throw nb::python_error();
  }
  const auto bytes = static_cast<std::size_t>(buffer.len);
  const std::size_t skipped = offset.is_none() ? 0 : std::min(nb::cast<std::size_t>(offset), bytes);
  view.pointer = static_cast<std::byte*>(buffer.buf) + skipped;
  view.read_only = buffer.readonly != 0;
  return bytes - skipped;
}

array_view read_interface(nb::handle array, const nb::dict& interface, const char* what,
                          const char* protocol, holdings& held) {
  const nb::object data = entry(interface, "data"), shape = entry(interface, "shape"),
                   typestr = entry(interface, "typestr"), strides = entry(interface, "strides");
  const bool located =
      nb::isinstance<nb::tuple>(data) ? nb::len(data) >= 2 : PyObject_CheckBuffer(data.ptr()) != 0;
  if (!located || shape.is_none() || typestr.is_none())
    fail(errc::invalid_argument,
         std::string(what) + " has an incomplete " + protocol +
             ": data, shape or typestr is missing",
         "Report it to the makers of " + class_of(array));
  array_view view;
  // SYCL's offsets and strides are in elements, those of the others in bytes.
  const bool in_elements = std::strcmp(protocol, sycl_interface) == 0;
  const nb::object offset = entry(interface, "offset");
  const std::size_t bytes = take_data(view, data, offset, held);
  type_of_typestr(nb::cast<std::string>(typestr), what, view.element, view.element_size);
  if (in_elements && !offset.is_none())
    view.pointer =
        static_cast<std::byte*>(view.pointer) + nb::cast<std::size_t>(offset) * view.element_size;
  const auto extents = numbers(shape);
  view.elements = elements_of(extents.data(), extents.size(), view.element_size, what);
  if (view.element_size > 0 && view.elements > bytes / view.element_size)
    fail(errc::invalid_memory,
         std::string(what) + " has more elements than the buffer that its " + protocol + " names",
         "Report it to the makers of " + class_of(array));
  if (!strides.is_none()) {
    const auto steps = numbers(strides);
    if (steps.size() != extents.size() ||
        !in_order(extents.data(), steps.data(), static_cast<int>(extents.size()),
                  in_elements ? 1 : static_cast<std::int64_t>(view.element_size)))
      not_contiguous(what);
  }
  if (view.element == type::bytes) {
    check_fields(nb::cast<std::string>(nb::str(entry(interface, "descr"))), what);
    take_name(array, view);
  }
  return view;
}

// The dictionary that numpy's, CUDA's and SYCL's interfaces share.
array_view view_of_interface(nb::handle array, const nb::dict& interface, const char* what,
                             const char* protocol, holdings& held) {
  std::string why = "an entry is of the wrong type";
  try {
    return read_interface(array, interface, what, protocol, held);
  } catch (const nb::python_error& e) {
    why = text_of(e);
  } catch (const std::bad_cast&) {  // of nanobind: it has no more to say
  }
  fail(errc::invalid_argument,
       std::string(what) + " has a " + protocol + " that makes no sense: " + why,
       "Report it to the makers of " + class_of(array));
}

array_view view_of_sycl(nb::handle array, const nb::dict& interface, const char* what,
                        holdings& held) {
  array_view view = view_of_interface(array, interface, what, sycl_interface, held);
  view.on_device = true;
  // dpctl says of bare memory always that it is read-only.
  if (nb::hasattr(array, "copy_from_host")) view.read_only = false;
  if (const auto queue = queue_from(entry(interface, "syclobj"))) {
    view.queue = queue->get();
    held.hold(nb::cast(queue));
  }
  held.hold(nb::borrow(array));
  return view;
}

array_view view_of_buffer(nb::handle array, const char* what, holdings& held) {
  Py_buffer& buffer = held.hold_buffer();
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_FULL_RO) != 0) {
    held.drop_buffer();
    const std::string why = taken_error();
    const nb::object interface = attribute(array, "__array_interface__", what);
    if (nb::isinstance<nb::dict>(interface)) {
      held.hold(nb::borrow(array));
      return view_of_interface(array, nb::borrow<nb::dict>(interface), what, "__array_interface__",
                               held);
    }
    fail(errc::invalid_memory, std::string(what) + " gives no access to its memory: " + why,
         "Pass an array that has not been released or closed");
  }
  array_view view;
  view.pointer = buffer.buf;
  view.read_only = buffer.readonly != 0;
  view.element_size = static_cast<std::size_t>(buffer.itemsize);
  view.elements = buffer.itemsize > 0 ? static_cast<std::size_t>(buffer.len / buffer.itemsize) : 0;
  if (buffer.suboffsets ||
      (buffer.strides && !in_order(buffer.shape, buffer.strides, buffer.ndim, buffer.itemsize)))
    not_contiguous(what);
  view.element = type_of_format(buffer.format ? buffer.format : "B", view.element_size, what);
  return view;
}

// Of a dead tensor, one that needs gradients, and the like, the library says why.
nb::object capsule_of(nb::handle array, const char* what) {
  try {
    const nb::object method = nb::getattr(array, "__dlpack__");
    try {
      return method(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& e) {
      if (!e.matches(PyExc_TypeError)) throw;
    }
    return method();
  } catch (const nb::python_error& e) {
    no_access(what, text_of(e));
  }
}

array_view view_of_dlpack(nb::handle array, const char* what, holdings& held) {
  nb::object capsule = capsule_of(array, what);
  const dlpack_tensor* tensor = nullptr;
  array_view view;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    const auto* managed = static_cast<const dlpack_versioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    tensor = &managed->tensor;
    view.read_only = (managed->flags & 1) != 0;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    tensor = &static_cast<const dlpack_managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))
                  ->tensor;
  } else {
    no_access(what, "its __dlpack__ gives no capsule, or one that was used before");
  }
  view.on_device = tensor->device_type != dlpack_cpu && tensor->device_type != dlpack_cuda_host;
  view.pointer = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  type_of_dlpack(*tensor, what, view.element, view.element_size);
  view.elements =
      elements_of(tensor->shape, static_cast<std::size_t>(tensor->ndim), view.element_size, what);
  if (tensor->strides && !in_order(tensor->shape, tensor->strides, tensor->ndim, 1))
    not_contiguous(what);
  held.hold(std::move(capsule));  // which keeps the tensor until it ends, not having been consumed
  held.hold(nb::borrow(array));
  return view;
}

}  // namespace

holdings::~holdings() {
  for (auto& buffer : m_buffers) PyBuffer_Release(buffer.get());
}
Py_buffer& holdings::hold_buffer() {
  m_buffers.push_back(std::make_unique<Py_buffer>());
  return *m_buffers.back();
}
void holdings::drop_buffer() { m_buffers.pop_back(); }

void fail(errc code, std::string message, std::string hint) {
  error_info info;
  info.code = code;
  info.message = std::move(message);
  info.hint = std::move(hint);
  throw error(std::move(info));
}

array_view view_of(nb::handle array, const char* what, holdings& held) {
  if (is_plain_buffer(array)) return view_of_buffer(array, what, held);
  if (may_have_mask(array.type())) check_mask(array, what);
  const nb::object sycl = attribute(array, sycl_interface, what);
  if (nb::isinstance<nb::dict>(sycl))
    return view_of_sycl(array, nb::borrow<nb::dict>(sycl), what, held);
  if (PyObject_CheckBuffer(array.ptr())) return view_of_buffer(array, what, held);
  const nb::object cuda = attribute(array, "__cuda_array_interface__", what);
  if (nb::isinstance<nb::dict>(cuda)) {
    array_view view = view_of_interface(array, nb::borrow<nb::dict>(cuda), what,
                                        "__cuda_array_interface__", held);
    view.on_device = true;
    held.hold(nb::borrow(array));
    return view;
  }
  if (nb::hasattr(array, "__dlpack__")) return view_of_dlpack(array, what, held);
  const nb::object numpy = attribute(array, "__array_interface__", what);
  if (nb::isinstance<nb::dict>(numpy)) {
    held.hold(nb::borrow(array));
    return view_of_interface(array, nb::borrow<nb::dict>(numpy), what, "__array_interface__", held);
  }
  fail(errc::invalid_argument,
       std::string(what) + " is a " + class_of(array) +
           ", which has none of __sycl_usm_array_interface__, the buffer protocol, "
           "__cuda_array_interface__ and __dlpack__",
       nb::isinstance<nb::str>(array)
           ? "Pass the op by its name, as allreduce(x, op=\"max\"): the second array is where "
             "the result goes"
           : "Pass an array of numpy, dpctl, dpnp, torch, cupy or another library that has one of "
             "them; a number as numpy.array(number)");
}

std::shared_ptr<queue_handle> queue_from(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<queue_handle>(object))
    return std::make_shared<queue_handle>(nb::cast<queue_handle&>(object));
  nb::object capsule = nb::borrow(object);
  if (!PyCapsule_CheckExact(object.ptr())) {
    if (nb::isinstance<nb::str>(object))
      return std::make_shared<queue_handle>(queue_handle::of_device(nb::cast<std::string>(object)));
    if (nb::hasattr(object, "sycl_queue")) return queue_from(nb::getattr(object, "sycl_queue"));
    if (!nb::hasattr(object, "_get_capsule"))
      fail(errc::invalid_argument, "a " + class_of(object) + " is no queue",
           "Pass a dpctl.SyclQueue, or 'cpu', 'gpu' or 'default'");
    capsule = nb::getattr(object, "_get_capsule")();
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "SyclQueueRef"))
    fail(errc::invalid_argument, "the capsule holds no SYCL queue, or was used before",
         "Pass a dpctl.SyclQueue");
  return std::make_shared<queue_handle>(PyCapsule_GetPointer(capsule.ptr(), "SyclQueueRef"));
}

}  // namespace sucl::python
