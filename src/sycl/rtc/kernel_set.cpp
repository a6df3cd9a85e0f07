// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Kernels for programs that no SYCL compiler compiles: DPC++'s extension kernel_compiler gets the
// embedded headers and one free function for each kernel and form of its arguments. The limits of
// its compiler (2026.1.2) determine that text: free function templates whose parameters are
// specialisations of templates crash it, so the functions are no templates.
#include <sucl/error.hpp>
#include <sucl/kernels.hpp>

#include "base/error.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace sucl::kernels::detail {
namespace {

#ifdef SUCL_KERNELS_AT_RUN_TIME
// The SYCL runtime keeps what it has compiled, for the next start; what the user set stays.
[[gnu::constructor]] void ask_for_cache() { setenv("SYCL_CACHE_PERSISTENT", "1", 0); }
#endif

std::string spelled(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : type.name();
  std::free(text);
  return result;
}

const char* mode_name(::sycl::access_mode mode) {
  if (mode == ::sycl::access_mode::read) return "read";
  return mode == ::sycl::access_mode::write ? "write" : "read_write";
}

std::string spelled(const argument& a) {
  const std::string element = spelled(*a.element);
  switch (a.where) {
    case argument::storage::buffer:
      return "::sycl::accessor<" + element + ", 1, ::sycl::access_mode::" + mode_name(a.mode) + ">";
    case argument::storage::local: return "::sycl::local_accessor<" + element + ", 1>";
    default: return (a.is_constant ? "const " : "") + element + "*";
  }
}

struct kernel_entry {
  const std::type_info* type;
  std::vector<argument> arguments;

  std::string parameters() const {
    std::string text = spelled(*type) + " kernel";
    for (std::size_t i = 0; i < arguments.size(); ++i)
      text += ", " + spelled(arguments[i]) + " m" + std::to_string(i);
    return text;
  }
  // What calls the kernel with its arguments.
  std::string body() const {
    std::string values = "::sycl::ext::oneapi::this_work_item::get_nd_item<1>()";
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string name = "m" + std::to_string(i);
      values +=
          arguments[i].where == argument::storage::pointer ? ", " + name : ", &" + name + "[0]";
    }
    return "kernel(" + values + ");";
  }
};

/// What is compiled, and the name of each entry's function.
struct program {
  std::string text = "#include <sycl/sycl.hpp>\n";
  std::vector<std::string> names;

  program(const file* files, const std::vector<kernel_entry>& entries) : names(entries.size()) {
    for (const file* f = files; f->name; ++f) text += std::string("#include \"") + f->name + "\"\n";
    // In an order of their own, not that of the linker: what is compiled is known by its text.
    std::multimap<std::string, std::size_t> order;
    for (std::size_t i = 0; i < entries.size(); ++i) order.emplace(entries[i].parameters(), i);
    std::size_t number = 0;
    for (const auto& [parameters, entry] : order) {
      names[entry] = "sucl_kernel_" + std::to_string(number++);
      text +=
          "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((\n"
          "    ::sycl::ext::oneapi::experimental::nd_range_kernel<1>))\nvoid " +
          names[entry] + "(" + parameters + ") {\n  " + entries[entry].body() + "\n}\n";
    }
  }
};

}  // namespace

struct kernel_set::state {
  const file* files = nullptr;
  std::vector<kernel_entry> entries;
  std::mutex mutex;
  std::vector<std::pair<::sycl::context, std::vector<::sycl::kernel>>> compiled;

  std::vector<::sycl::kernel> compile(const ::sycl::context& context) const;
  const std::vector<::sycl::kernel>& all(const ::sycl::context& context) {
    for (const auto& [known, kernels] : compiled)
      if (known == context) return kernels;
    return compiled.emplace_back(context, compile(context)).second;
  }
};

kernel_set::kernel_set(const file* files) : m_state(std::make_unique<state>()) {
  m_state->files = files;
}
kernel_set::~kernel_set() = default;

std::size_t kernel_set::add(const std::type_info& kernel,
                            std::initializer_list<argument> arguments) {
  m_state->entries.push_back({&kernel, arguments});
  return m_state->entries.size() - 1;
}

#ifdef SUCL_KERNELS_AT_RUN_TIME

std::vector<::sycl::kernel> kernel_set::state::compile(const ::sycl::context& context) const {
  namespace ex = ::sycl::ext::oneapi::experimental;
  std::string log;
  try {
    std::vector<std::pair<std::string, std::string>> texts;
    for (const file* f = files; f->name; ++f) texts.emplace_back(f->name, f->text);
    ex::include_files includes;
    for (const auto& [name, text] : texts) includes.add(name, text);
    const program p(files, entries);
    auto bundle = ex::create_kernel_bundle_from_source(context, ex::source_language::sycl, p.text,
                                                       ex::properties{includes});
    // The embedded headers name each other from the folder that the compiler takes them to be in.
    // With the names of values thrown away, as is the default, what the cache gives back differs
    // from what was put there, and is compiled for the device once more.
    const std::vector<std::string> options{"-I.", "-fno-discard-value-names"};
    auto built = ex::build(bundle, ex::properties{ex::registered_names{p.names}, ex::save_log{&log},
                                                  ex::build_options{options}});
    std::vector<::sycl::kernel> kernels;
    for (const auto& name : p.names) kernels.push_back(built.ext_oneapi_get_kernel(name));
    return kernels;
  } catch (const ::sycl::exception& e) {
    base::fail(errc::unavailable,
               std::string("the kernels of this program do not compile at run time: ") + e.what() +
                   (log.empty() ? "" : "\n") + log,
               "Correct the kernels; if there is no compiler, install the package intel-sycl-rt "
               "whole, or build the program with a SYCL compiler (SUCL_SYCL=adaptivecpp or icpx)");
  }
}

#else

std::vector<::sycl::kernel> kernel_set::state::compile(const ::sycl::context&) const {
  base::fail(errc::unsupported, "kernels are compiled with the program here, not at run time");
}

#endif

void kernel_set::prepare(const ::sycl::context& context) {
  const std::lock_guard lock(m_state->mutex);
  m_state->all(context);
}

::sycl::kernel kernel_set::get(const ::sycl::context& context, std::size_t number) {
  const std::lock_guard lock(m_state->mutex);
  return m_state->all(context).at(number);
}

}  // namespace sucl::kernels::detail
