// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_queue.hpp"

#include "sycl/common/adaptivecpp.hpp"

#include "base/error.hpp"

#include <cstddef>

namespace sucl::bench {

sycl::device choose_device(const std::vector<std::string>& kinds, int local_rank) {
  const auto kind = [&](int rank) {
    return kinds.empty() ? "" : kinds[static_cast<std::size_t>(rank) % kinds.size()];
  };
  const std::string wanted = kind(local_rank);
  if (wanted == "cpu") return sycl::device(sycl::cpu_selector_v);
  std::size_t before = 0;
  for (int rank = 0; rank < local_rank; ++rank) before += kind(rank) == wanted;
  const auto gpus = sycl::device::get_devices(sycl::info::device_type::gpu);
  if (!gpus.empty()) return gpus[before % gpus.size()];
  if (wanted == "gpu")
    base::fail(errc::unavailable, "there is no GPU among the SYCL devices",
               "See 'sucl info', or leave --device out");
  return sycl::device(sycl::default_selector_v);
}

sycl::queue make_queue(const sycl::device& device, bool in_order) {
  if (!in_order) return sycl::queue(device);
  const sycl::property::queue::in_order ordered;
#ifdef ACPP_EXT_COARSE_GRAINED_EVENTS
  return sycl::queue(device, {ordered, sycl::property::queue::AdaptiveCpp_coarse_grained_events()});
#else
  return sycl::queue(device, ordered);
#endif
}

int device_number(const sycl::queue& queue) {
  const auto device = queue.get_device();
#ifdef SYCL_IMPLEMENTATION_ACPP
  return device.get_backend() == sycl::backend::cuda ? device.AdaptiveCpp_device_id().get_id() : -1;
#else
  if (device.get_backend() != sycl::backend::ext_oneapi_cuda) return -1;
  return static_cast<int>(sycl::get_native<sycl::backend::ext_oneapi_cuda>(device));
#endif
}

namespace {

template <class Handler = sycl::handler>
void* find_stream(sycl::queue queue) {
  void* stream = nullptr;
#ifdef SYCL_IMPLEMENTATION_ACPP
  queue.submit([&](Handler& h) {
    h.AdaptiveCpp_enqueue_custom_operation(
        [&stream](sycl::interop_handle& handle) { stream = sycl_layer::stream_of(handle); });
  });
#else
  if constexpr (sycl_layer::with_native_commands<Handler>)
    queue.submit([&](Handler& h) {
      h.ext_codeplay_enqueue_native_command([&stream](sycl::interop_handle handle) {
        stream = reinterpret_cast<void*>(
            handle.template get_native_queue<sycl::backend::ext_oneapi_cuda>());
      });
    });
#endif
  queue.wait();
  return stream;
}

}  // namespace

void* stream_of(const sycl::queue& queue) { return find_stream(queue); }

}  // namespace sucl::bench
