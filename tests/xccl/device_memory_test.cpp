// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Mapping device memory of other processes, over libraries that play CUDA's driver, HIP's runtime
// and Level Zero. What real devices do is another matter: tests/device.
#include "backends/ipc/device_memory.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <string>

namespace {

using namespace sucl::ipc;

struct vendor {
  const char* platform;
  const char* library;
};

void PrintTo(const vendor& v, std::ostream* out) { *out << v.platform; }

class device_memory_of : public ::testing::TestWithParam<vendor> {
 protected:
  template <class Result>
  Result call(const char* name) {
    void* library = dlopen(GetParam().library, RTLD_NOW);
    return reinterpret_cast<Result (*)()>(dlsym(library, name))();
  }
  std::unique_ptr<device_memory> make() {
    sucl_comm_info info{};
    info.platform = GetParam().platform;
    info.native_device = &m_device;
    info.native_context = &m_device;
    return device_memory::make(info);
  }
  int m_device = 0;
};

INSTANTIATE_TEST_SUITE_P(vendors, device_memory_of,
                         ::testing::Values(vendor{"cuda", "libcuda.so.1"},
                                           vendor{"hip", "libamdhip64.so"},
                                           vendor{"level_zero", "libze_loader.so.1"}));

TEST_P(device_memory_of, maps_an_allocation_once) {
  auto memory = make();
  ASSERT_TRUE(memory);
  ASSERT_EQ(memory->problem(), "");
  char* own = call<char*>("fake_allocation");
  device_key key{};
  key.pid = getpid();
  ASSERT_EQ(memory->get_handle(own + 100, key), 0);
  EXPECT_EQ(key.offset, 100u);
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(memory->open(1, key, &first), 0);
  key.offset = 300;
  ASSERT_EQ(memory->open(1, key, &second), 0);
  EXPECT_EQ(static_cast<char*>(second) - static_cast<char*>(first), 200);
  EXPECT_NE(first, own + 100);
  own[300] = 'x';
  EXPECT_EQ(*static_cast<char*>(second), 'x');
  EXPECT_EQ(call<int>("fake_mapped"), 1);
  memory->close(1, first);
  EXPECT_EQ(call<int>("fake_mapped"), 1);
  memory->close(1, second);
  EXPECT_EQ(call<int>("fake_mapped"), 0);
  EXPECT_EQ(call<int>("fake_pushed"), 0);
}

TEST_P(device_memory_of, unmaps_what_is_left) {
  {
    auto memory = make();
    device_key key{};
    key.pid = getpid();
    ASSERT_EQ(memory->get_handle(call<char*>("fake_allocation"), key), 0);
    void* there = nullptr;
    ASSERT_EQ(memory->open(0, key, &there), 0);
    ASSERT_EQ(memory->open(2, key, &there), 0);
    EXPECT_EQ(call<int>("fake_mapped"), 2);
  }
  EXPECT_EQ(call<int>("fake_mapped"), 0);
}

TEST_P(device_memory_of, tells_what_the_driver_refuses) {
  auto memory = make();
  device_key key{};
  key.pid = getpid();
  int elsewhere = 0;
  EXPECT_NE(memory->get_handle(&elsewhere, key), 0);
  key.handle.bytes[63] = 1;
  key.pid = 0;
  void* there = nullptr;
  EXPECT_NE(memory->open(1, key, &there), 0);
  EXPECT_EQ(call<int>("fake_mapped"), 0);
}

// Ranks of one process are on devices that reach each other only once that is asked for.
TEST_P(device_memory_of, reaches_other_devices_of_the_process) {
  if (GetParam().platform == std::string("level_zero")) return;
  auto memory = make();
  const auto own = reinterpret_cast<std::uintptr_t>(call<char*>("fake_allocation"));
  EXPECT_EQ(memory->reach(own), 0);
  EXPECT_EQ(call<int>("fake_enabled"), 0);
  call<int>("fake_move");
  EXPECT_EQ(memory->reach(own), 0);
  EXPECT_EQ(memory->reach(own), 0);
  EXPECT_EQ(call<int>("fake_enabled"), 2);
  EXPECT_EQ(call<int>("fake_pushed"), 0);
}

TEST(device_memory, is_for_platforms_that_have_it) {
  sucl_comm_info info{};
  int device = 0;
  info.native_device = &device;
  info.platform = "cpu";
  EXPECT_FALSE(device_memory::make(info));
  info.platform = "cuda";
  info.native_device = nullptr;
  EXPECT_FALSE(device_memory::make(info));
}

}  // namespace
