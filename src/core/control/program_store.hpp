// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A program's own store, as the control plane calls it.
#pragma once

#include <sucl/abi/bootstrap.h>
#include <sucl/rendezvous.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

namespace sucl::core {

/// The functions of a store as a table. What they throw may not pass through the functions of a
/// module, and is kept. The object stays where it is while the table is used.
class program_store {
 public:
  explicit program_store(const rendezvous_store& store) : m_store(store) {}

  /// Throws again what a function of the store has thrown.
  void rethrow() const {
    if (m_thrown) std::rethrow_exception(m_thrown);
  }

  sucl_store table() {
    sucl_store t{};
    t.struct_size = sizeof t;
    t.context = this;
    t.put = [](void* self, const char* key, const void* value, std::uint64_t n) {
      auto& c = *static_cast<program_store*>(self);
      return c.guarded(
          [&] { c.m_store.put(key, std::string(static_cast<const char*>(value), n)); });
    };
    t.get = [](void* self, const char* key, void* value, std::uint64_t* n) {
      auto& c = *static_cast<program_store*>(self);
      return c.guarded([&] {
        const std::string found = c.m_store.get(key);
        std::copy_n(found.data(), std::min<std::uint64_t>(*n, found.size()),
                    static_cast<char*>(value));
        *n = std::min<std::uint64_t>(*n, found.size());
      });
    };
    t.wait = [](void* self, const char* key, std::uint64_t ms, std::int32_t* there) {
      auto& c = *static_cast<program_store*>(self);
      return c.guarded(
          [&] { *there = c.m_store.wait(key, std::chrono::milliseconds(ms)) ? 1 : 0; });
    };
    return t;
  }

 private:
  template <class Body>
  sucl_status guarded(Body body) noexcept {
    try {
      body();
      return SUCL_SUCCESS;
    } catch (...) {
      m_thrown = std::current_exception();
      return SUCL_ERROR_UNAVAILABLE;
    }
  }

  const rendezvous_store& m_store;
  std::exception_ptr m_thrown;
};

}  // namespace sucl::core
