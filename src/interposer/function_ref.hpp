// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A callable argument of a function that is not a template.
#pragma once

#include <type_traits>

namespace sucl::interposer {

template <class Signature>
class function_ref;

/// Refers to a callable that outlives it, as an argument does the call. It is called as a constant.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Callable>
    requires(!std::is_same_v<Callable, function_ref> &&
             std::is_invocable_r_v<Result, const Callable&, Arguments...>)
  function_ref(const Callable& callable)
      : m_callable(&callable), m_call([](const void* c, Arguments... arguments) -> Result {
          return (*static_cast<const Callable*>(c))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return m_call(m_callable, arguments...); }

 private:
  const void* m_callable;
  Result (*m_call)(const void*, Arguments...);
};

}  // namespace sucl::interposer
