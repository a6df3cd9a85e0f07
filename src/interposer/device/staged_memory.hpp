// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Host memory instead of a device's, for one collective.
#pragma once

#include "interposer/device/driver.hpp"

#include <vector>

namespace sucl::interposer::device {

/// One argument of a call: memory of a device, and host memory of the same layout.
class staged_region {
 public:
  /// `base` is the argument; `in` and `out` are what the call reads and writes of it, one of which
  /// is not empty. Throws where there is no memory.
  staged_region(const owner& of, void* base, std::vector<rows> in, std::vector<rows> out);
  ~staged_region();
  staged_region(staged_region&& other) noexcept;
  staged_region& operator=(staged_region&&) = delete;
  staged_region(const staged_region&) = delete;
  staged_region& operator=(const staged_region&) = delete;

  char* device() const { return m_device; }
  /// What is passed instead of the argument.
  char* host() const { return m_host; }
  void load() const { m_of.by->copy(m_of, m_device, m_host, m_in, direction::to_host); }
  void store() const { m_of.by->copy(m_of, m_device, m_host, m_out, direction::to_device); }

 private:
  owner m_of;
  char* m_device;
  char* m_host = nullptr;
  void* m_memory = nullptr;
  std::size_t m_bytes = 0;
  std::vector<rows> m_in, m_out;
};

/// All of a call.
class staged_memory {
 public:
  ~staged_memory() {
    while (!m_regions.empty()) m_regions.pop_back();  // what was taken last is taken first again
  }
  char* add(staged_region region) { return m_regions.emplace_back(std::move(region)).host(); }
  void load() const {
    for (const staged_region& r : m_regions) r.load();
  }
  void store() const {
    for (const staged_region& r : m_regions) r.store();
  }
  /// Whether the library has the host memory, too: it does not know what a device's is.
  bool at_library = false;

 private:
  std::vector<staged_region> m_regions;
};

}  // namespace sucl::interposer::device
