// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory of devices that other processes map, by the means of the device's vendor: CUDA's driver,
/// HIP's runtime or Level Zero. Our own declarations of what is called; the library is loaded when
/// it is needed first.
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sucl::ipc {

/// What processes exchange of an allocation.
struct memory_handle {
  unsigned char bytes[64];
};

/// Functions of libcuda or libamdhip64, which agree in their arguments.
struct cuda_api {
  int (*retain_context)(void** context, int device);
  int (*release_context)(int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*get_handle)(memory_handle* handle, std::uintptr_t memory);
  int (*open_handle)(std::uintptr_t* memory, memory_handle handle, unsigned flags);
  int (*close_handle)(std::uintptr_t memory);
  int (*get_range)(std::uintptr_t* base, std::size_t* bytes, std::uintptr_t memory);
  int (*get_attribute)(void* value, int attribute, std::uintptr_t memory);
  int (*enable_peer)(void* context, unsigned flags);
};

/// Functions of libze_loader.
struct level_zero_api {
  int (*get_handle)(void* context, const void* memory, memory_handle* handle);
  int (*open_handle)(void* context, void* device, memory_handle handle, std::uint32_t flags,
                     void** memory);
  int (*close_handle)(void* context, const void* memory);
  int (*get_range)(void* context, const void* memory, void** base, std::size_t* bytes);
};

/// An exported allocation, as it travels in a sucl_memory_key.
struct device_key {
  memory_handle handle;
  std::uint64_t offset = 0;   ///< of the memory in the allocation
  std::uint64_t bytes = 0;    ///< of the allocation
  std::uint64_t address = 0;  ///< for ranks of the same process
  std::int64_t pid = 0;
};
static_assert(sizeof(device_key) <= sizeof(sucl_memory_key));

/// The device memory of one rank, and what it has mapped of its peers'. One thread at a time.
class device_memory {
 public:
  /// Null where the platform has none of the three, or the handles of the device are unknown.
  static std::unique_ptr<device_memory> make(const sucl_comm_info& info);
  virtual ~device_memory() = default;

  /// All return the vendor's error code, 0 for success.
  virtual int get_handle(const void* memory, device_key& key) = 0;
  /// Lets this rank's device use memory of another rank of the same process, at its own address.
  virtual int reach(std::uintptr_t) { return 0; }
  /// Maps an allocation once, however often it is requested.
  int open(int rank, const device_key& key, void** memory);
  void close(int rank, const void* memory);
  void close_all();
  /// What failed, human-readable: the name of the library or what it lacks.
  const std::string& problem() const { return m_problem; }

 protected:
  virtual int map(const device_key& key, void** base) = 0;
  virtual void unmap(void* base) = 0;
  std::string m_problem;

 private:
  struct mapping {
    int rank;
    device_key key;
    std::byte* base;
    int users;
  };
  std::vector<mapping> m_mappings;
};

}  // namespace sucl::ipc
