// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/device_arguments.hpp"

#include <dlfcn.h>

namespace sucl::interposer::device {
namespace {

// Whether the library takes memory of a vendor's devices itself. It is asked in the ways that
// libraries have for that; a wrong guess would crash it.
bool library_takes(std::initializer_list<const char*> questions) {
  for (const char* name : questions)
    if (const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name)))
      if (query() == 1) return true;
  return false;
}

bool library_takes(vendor of) {
  static const bool cuda = library_takes({"MPIX_Query_cuda_support"});
  static const bool hip = library_takes({"MPIX_Query_hip_support", "MPIX_Query_rocm_support"});
  return of == vendor::cuda ? cuda : hip;
}

}  // namespace

const std::vector<rows> arguments::none;

void arguments::input(const void*& argument, layout in) {
  layout out;
  char* const host = add(argument, in, out);
  if (!host) return;
  m_arguments.push_back({&argument, nullptr, argument, host});
  argument = host;
}

void arguments::output(void*& argument, layout in, layout out) {
  char* const host = add(argument, in, out);
  if (!host) return;
  m_arguments.push_back({nullptr, &argument, argument, host});
  argument = host;
}

char* arguments::add(const void* memory, layout& in, layout& out) {
  if ((in.empty() && out.empty()) || is_plain(memory)) return nullptr;
  const rows& some = in.empty() ? out.front() : in.front();
  const auto of = find(static_cast<const char*>(memory) + some.offset);
  if (!of) return nullptr;
  if (!m_staged) m_staged = std::make_shared<staged_memory>();
  if (!library_takes(of->by->of())) m_staged->at_library = true;
  return m_staged->add({*of, const_cast<void*>(memory), std::move(in), std::move(out)});
}

void arguments::set(bool host) const {
  for (const argument& a : m_arguments) {
    const void* const memory = host ? a.host : a.device;
    if (a.in)
      *a.in = memory;
    else
      *a.out = const_cast<void*>(memory);
  }
}

}  // namespace sucl::interposer::device
