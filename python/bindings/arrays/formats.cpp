// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "arrays/formats.hpp"

#include "arrays/arrays.hpp"

#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace sucl::python {
namespace {

struct number_format {
  char kind;  ///< as of numpy's typestr
  std::size_t size;
  type is;
};
constexpr std::array known{
    number_format{'i', 1, type::int8},          number_format{'i', 2, type::int16},
    number_format{'i', 4, type::int32},         number_format{'i', 8, type::int64},
    number_format{'u', 1, type::uint8},         number_format{'u', 2, type::uint16},
    number_format{'u', 4, type::uint32},        number_format{'u', 8, type::uint64},
    number_format{'f', 2, type::fp16},          number_format{'f', 4, type::fp32},
    number_format{'f', 8, type::fp64},          number_format{'c', 8, type::complex_fp32},
    number_format{'c', 16, type::complex_fp64}, number_format{'b', 1, type::boolean}};

type number(char kind, std::size_t size) {
  for (const number_format& n : known)
    if (n.kind == kind && n.size == size) return n.is;
  return type::bytes;
}

[[noreturn]] void other_order(const char* what) {
  fail(errc::invalid_type, std::string(what) + " has the byte order of another machine",
       "Pass a copy in this machine's, as of array.astype(array.dtype.newbyteorder('='))");
}

[[noreturn]] void objects_of_python(const char* what) {
  fail(errc::invalid_type,
       std::string(what) +
           " has elements that are objects of Python, which only their own process "
           "knows",
       "Pass numbers, or the bytes of pickle.dumps()");
}

// Of a letter of the struct module; ' ' if it is none of a number.
char kind_of(char letter) {
  constexpr std::string_view integers = "bhilqn", unsigned_integers = "BHILQN", floats = "efd";
  if (integers.find(letter) != integers.npos) return 'i';
  if (unsigned_integers.find(letter) != unsigned_integers.npos) return 'u';
  if (floats.find(letter) != floats.npos) return 'f';
  return letter == '?' ? 'b' : ' ';
}

// "T{f:value:i:index:}" without "T{", names and padding: "fi".
std::string fields_of(std::string_view format) {
  std::string fields;
  bool in_name = false;
  if (format.substr(0, 2) == "T{") format.remove_prefix(2);
  for (const char c : format) {
    if (c == ':') in_name = !in_name;
    if (!in_name && c != 'x' && std::isalpha(static_cast<unsigned char>(c)) != 0) fields += c;
  }
  return fields;
}

// A value with an index of 32 bits, laid out as SuCL's loc and MPI's pair types.
type pair_of(std::string_view format, std::size_t size) {
  const std::string fields = fields_of(format);
  if (fields.size() != 2 || (fields[1] != 'i' && fields[1] != 'l')) return type::bytes;
  switch (fields[0]) {
    case 'h': return size == 8 ? type::int16_loc : type::bytes;
    case 'i': return size == 8 ? type::int32_loc : type::bytes;
    case 'l':
    case 'q': return size == 16 ? type::int64_loc : size == 8 ? type::int32_loc : type::bytes;
    case 'f': return size == 8 ? type::fp32_loc : type::bytes;
    case 'd': return size == 16 ? type::fp64_loc : type::bytes;
    default: return type::bytes;
  }
}

}  // namespace

type type_of_format(const std::string& format, std::size_t size, const char* what) {
  std::string_view text = format;
  while (!text.empty() && (text[0] == '<' || text[0] == '=' || text[0] == '@' || text[0] == '^'))
    text.remove_prefix(1);
  if (!text.empty() && (text[0] == '>' || text[0] == '!')) {
    if (size > 1) other_order(what);
    text.remove_prefix(1);
  }
  if (text.find('O') != text.npos && fields_of(text).find('O') != std::string::npos)
    objects_of_python(what);
  if (text.substr(0, 2) == "T{") {
    if (text.find('>') != text.npos) other_order(what);
    return pair_of(text, size);
  }
  if (text.size() == 2 && text[0] == 'Z') return number('c', size);
  return text.size() == 1 ? number(kind_of(text[0]), size) : type::bytes;
}

void type_of_typestr(const std::string& typestr, const char* what, type& element,
                     std::size_t& size) {
  const bool has_order = !typestr.empty() && std::isalpha(typestr[0]) == 0;
  const std::string text = has_order ? typestr.substr(1) : typestr;
  if (text.substr(0, 1) == "O") objects_of_python(what);
  size = text.size() > 1 ? std::strtoul(text.c_str() + 1, nullptr, 10) : 0;
  if (size == 0)
    fail(errc::invalid_type,
         std::string(what) + " has elements of the type '" + typestr + "', which has no size",
         "Pass an array of numbers or of other elements of one size");
  if (has_order && typestr[0] == '>' && size > 1) other_order(what);
  element = number(text[0], size);
}

void check_fields(const std::string& descr, const char* what) {
  if (descr.find("'|O'") != std::string::npos) objects_of_python(what);
}

void type_of_dlpack(const dlpack_tensor& tensor, const char* what, type& element,
                    std::size_t& size) {
  constexpr std::array<char, 7> kinds{'i', 'u', 'f', ' ', 'h', 'c', 'b'};
  constexpr int bfloat = 4, fp8_e4m3fn = 10, fp8_e5m2 = 12;
  size = std::size_t{tensor.bits} * tensor.per_element / 8;
  if (size == 0 || (tensor.bits * tensor.per_element) % 8 != 0)
    fail(errc::invalid_type,
         std::string(what) + " has elements of " + std::to_string(tensor.bits) + " bits",
         "Pass elements of whole bytes, as the bytes that they are packed in");
  element = type::bytes;
  if (tensor.per_element != 1) return;
  if (tensor.code == bfloat && size == 2)
    element = type::bf16;
  else if (tensor.code == fp8_e4m3fn && size == 1)
    element = type::fp8_e4m3;
  else if (tensor.code == fp8_e5m2 && size == 1)
    element = type::fp8_e5m2;
  else if (tensor.code < kinds.size())
    element = number(kinds[tensor.code], size);
}

void type_of_dtype(const std::string& name, type& element, std::size_t& size) {
  struct entry {
    std::string_view name;
    type is;
  };
  constexpr std::array names{entry{"int8", type::int8},
                             entry{"uint8", type::uint8},
                             entry{"int16", type::int16},
                             entry{"uint16", type::uint16},
                             entry{"int32", type::int32},
                             entry{"uint32", type::uint32},
                             entry{"int64", type::int64},
                             entry{"uint64", type::uint64},
                             entry{"float16", type::fp16},
                             entry{"bfloat16", type::bf16},
                             entry{"float32", type::fp32},
                             entry{"float64", type::fp64},
                             entry{"complex64", type::complex_fp32},
                             entry{"complex128", type::complex_fp64},
                             entry{"bool", type::boolean},
                             entry{"float8_e4m3fn", type::fp8_e4m3},
                             entry{"float8_e5m2", type::fp8_e5m2}};
  for (const entry& e : names)
    if (name == e.name) {
      element = e.is;
      size = size_of(e.is);
      return;
    }
  element = type::bytes;
  size = 1;
}

}  // namespace sucl::python
