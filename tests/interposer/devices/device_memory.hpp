// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory of a device for programs that test the interposer, by CUDA's driver or what plays it.
#pragma once

#include <cstddef>

namespace fuzz {

/// Loads the driver, and makes a device the process's: another one for each rank, if there are as
/// many. Ends the process with a line where that fails.
void open_device(int rank);
/// For threads beside the one that has called open_device().
void use_device();

enum class memory_kind { host, device, managed };

/// Throws nothing: a failure of the driver ends the process.
class device_memory {
 public:
  device_memory(memory_kind where, std::size_t bytes);
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  char* data() const { return m_data; }
  std::size_t size() const { return m_bytes; }
  void write(const void* from);
  void read(void* to) const;

 private:
  char* m_data = nullptr;
  std::size_t m_bytes;
};

/// Memory of the host that copies are fast with.
class pinned_memory {
 public:
  explicit pinned_memory(std::size_t bytes);
  ~pinned_memory();
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;

  char* data() const { return m_data; }

 private:
  char* m_data = nullptr;
};

}  // namespace fuzz
