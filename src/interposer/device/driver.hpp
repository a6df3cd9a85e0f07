// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory of accelerators in a program that SuCL did not build: which addresses are a device's, and
/// copies between them and the host, by the driver that the process has loaded itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::interposer::device {

class driver;

/// Whose memory it is.
struct owner {
  driver* by = nullptr;
  void* context = nullptr;
  int ordinal = 0;  ///< of the device

  bool operator==(const owner&) const = default;
};

/// Rows of equal length at equal distances, the same on the host and on the device.
struct rows {
  std::ptrdiff_t offset = 0;  ///< of the first one
  std::size_t bytes = 0;      ///< of one
  std::size_t count = 1;
  std::ptrdiff_t pitch = 0;  ///< from one to the next; may be negative

  std::ptrdiff_t begin() const { return pitch < 0 ? last() : offset; }
  std::ptrdiff_t end() const {
    return (pitch < 0 ? offset : last()) + static_cast<std::ptrdiff_t>(bytes);
  }
  std::ptrdiff_t last() const { return offset + static_cast<std::ptrdiff_t>(count - 1) * pitch; }
};

enum class direction { to_host, to_device };

enum class vendor { cuda, hip };

/// One vendor's. Any thread.
class driver {
 public:
  explicit driver(vendor of) : m_of(of) {}
  virtual ~driver() = default;
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  vendor of() const { return m_of; }

  /// Nothing for memory that the host reaches: its own, pinned and managed memory.
  virtual std::optional<owner> find(const void* address) = 0;
  /// Copies between memory of a device and that of the host, and returns when that is done. Throws
  /// where the driver fails.
  virtual void copy(const owner& of, char* on_device, char* on_host, const std::vector<rows>& what,
                    direction to) = 0;
  /// Makes copies of this host memory fast, if that can be.
  virtual void pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

 private:
  vendor m_of;
};

/// CUDA's driver, or HIP's runtime, if the process has it; else null.
std::unique_ptr<driver> find_cuda();
std::unique_ptr<driver> find_hip();

}  // namespace sucl::interposer::device
