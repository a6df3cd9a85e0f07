// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/devices.hpp"

#include "base/system/device_variables.hpp"
#include "sycl/common/names.hpp"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

std::string implementation_version() {
#if defined(ACPP_VERSION_MAJOR)
  return std::to_string(ACPP_VERSION_MAJOR) + "." + std::to_string(ACPP_VERSION_MINOR) + "." +
         std::to_string(ACPP_VERSION_PATCH);
#elif defined(__LIBSYCL_MAJOR_VERSION)
  return "libsycl " + std::to_string(__LIBSYCL_MAJOR_VERSION) + "." +
         std::to_string(__LIBSYCL_MINOR_VERSION) + "." + std::to_string(__LIBSYCL_PATCH_VERSION);
#else
  return "";
#endif
}

const char* kind_of(const sycl::device& d) {
  if (d.is_gpu()) return "gpu";
  if (d.is_cpu()) return "cpu";
  if (d.is_accelerator()) return "accelerator";
  return "custom";
}

json capabilities(const sycl::device& d) {
  const std::pair<const char*, sycl::aspect> wanted[] = {
      {"fp16", sycl::aspect::fp16},
      {"fp64", sycl::aspect::fp64},
      {"atomic64", sycl::aspect::atomic64},
      {"usm_device", sycl::aspect::usm_device_allocations},
      {"usm_host", sycl::aspect::usm_host_allocations},
      {"usm_shared", sycl::aspect::usm_shared_allocations},
      {"usm_system", sycl::aspect::usm_system_allocations}};
  json names = json::array();
  for (const auto& [name, aspect] : wanted)
    if (d.has(aspect)) names.push_back(name);
  return names;
}

json describe(const sycl::device& d) {
  return {{"name", d.get_info<sycl::info::device::name>()},
          {"type", kind_of(d)},
          {"vendor", d.get_info<sycl::info::device::vendor>()},
          {"driver", d.get_info<sycl::info::device::driver_version>()},
          {"compute_units", d.get_info<sycl::info::device::max_compute_units>()},
          {"memory_bytes", d.get_info<sycl::info::device::global_mem_size>()},
          {"aspects", capabilities(d)}};
}

// Pairs of GPUs, by their numbers on the platform, of which one cannot reach the other's memory.
json without_peer_access([[maybe_unused]] const sycl::platform& p) {
  json pairs = json::array();
#ifndef SYCL_IMPLEMENTATION_ACPP
  auto devices = p.get_devices(sycl::info::device_type::gpu);  // one that asks is not const
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (std::size_t k = 0; k < devices.size(); ++k)
      if (i != k && !devices[i].ext_oneapi_can_access_peer(devices[k]))
        pairs.push_back(std::to_string(i) + "-" + std::to_string(k));
#endif
  return pairs;
}

json describe(const sycl::platform& p, const base::config& settings) {
  json devices = json::array();
  std::string backend;
  for (const sycl::device& d : p.get_devices()) {
    backend = sycl_layer::backend_name(d);
    devices.push_back(describe(d));
  }
  return {{"name", p.get_info<sycl::info::platform::name>()},
          {"vendor", p.get_info<sycl::info::platform::vendor>()},
          {"version", p.get_info<sycl::info::platform::version>()},
          {"sycl_backend", backend},
          {"canonical", base::platform_name(settings, sycl_layer::this_implementation, backend)},
          {"devices", devices},
          {"no_peer_access", without_peer_access(p)}};
}

}  // namespace

json describe_devices(const base::config& settings) {
  json result{{"implementation", sycl_layer::implementation_name()},
              {"version", implementation_version()},
              {"platforms", json::array()},
              {"problem", ""}};
  try {
    for (const sycl::platform& p : sycl::platform::get_platforms())
      result["platforms"].push_back(describe(p, settings));
    if (result["platforms"].empty())
      result["problem"] =
          "the SYCL runtime finds no device; " +
          base::cure_for_no_device([](const char* name) { return std::getenv(name); });
  } catch (const sycl::exception& e) {
    result["problem"] = e.what();
  }
  return result;
}

}  // namespace sucl::tools
