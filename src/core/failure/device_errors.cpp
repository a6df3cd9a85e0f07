// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/failure/device_errors.hpp"

#include "base/log.hpp"
#include "base/system/library.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sucl::core {
namespace {

// The same numbers in CUDA's driver and runtime and in HIP.
constexpr int success = 0, out_of_memory = 2, not_ready = 600;
constexpr int relaxed_mode = 2;
constexpr unsigned non_blocking_stream = 1;

// A kernel has failed, and with it the context: no call ever succeeds again.
bool is_fault(int code) {
  return code == 214 || code == 220 || code == 700 || code == 702 || code == 710 ||
         (code >= 714 && code <= 719);
}
// Whether only a launch returns this error.
bool is_of_launch(int code) { return code == 9 || code == 98 || code == 209 || code == 701; }

// Among the libraries of the SYCL runtime, which has launched with them.
template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

std::unique_ptr<device_errors> make(bool is_hip, int device) {
  device_error_functions f;
  void* context = nullptr;
  void* stream = nullptr;
  find(f.take_last, is_hip ? "hipGetLastError" : "cudaGetLastError");
  find(f.name, is_hip ? "hipGetErrorName" : "cudaGetErrorName");
  try {
    static auto& kept = *new std::map<bool, base::library>;
    if (!kept.count(is_hip))
      kept.emplace(is_hip, base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1"));
    const base::library& l = kept.at(is_hip);
    const auto take = [&](auto& function, const char* cuda, const char* hip) {
      function = l.symbol_as<std::decay_t<decltype(function)>>(is_hip ? hip : cuda);
    };
    int (*retain)(void**, int) = nullptr;
    int (*create)(void**, unsigned) = nullptr;
    take(retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain");
    take(create, "cuStreamCreate", "hipStreamCreateWithFlags");
    take(f.push_context, "cuCtxPushCurrent_v2", "hipCtxPushCurrent");
    take(f.pop_context, "cuCtxPopCurrent_v2", "hipCtxPopCurrent");
    take(f.exchange_mode, "cuThreadExchangeStreamCaptureMode",
         "hipThreadExchangeStreamCaptureMode");
    if (retain(&context, device) == success && f.push_context(context) == success) {
      if (create(&stream, non_blocking_stream) != success) stream = nullptr;
      void* mine = nullptr;
      f.pop_context(&mine);
    }
    take(f.query_stream, "cuStreamQuery", "hipStreamQuery");
  } catch (const error&) {
    f.query_stream = nullptr;  // an old driver, or none
  }
  return std::make_unique<device_errors>(f, context, stream);
}

}  // namespace

const device_errors& device_errors::of(bool is_hip, int device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<bool, int>, std::unique_ptr<device_errors>>;
  const std::lock_guard lock(mutex);
  auto& entry = all[{is_hip, device}];
  if (!entry) entry = make(is_hip, device);
  return *entry;
}

std::string device_errors::text_of(int code) const {
  const char* text = m_call.name ? m_call.name(code) : nullptr;
  return (text ? std::string(text) + ", " : std::string()) + "code " + std::to_string(code);
}

error_info device_errors::fault(int code) const {
  error_info info;
  info.code = errc::native;
  info.native_code = code;
  info.message =
      "the device has reported that a kernel of this process has failed: " + text_of(code) +
      "; nothing runs on it any more";
  info.hint =
      "A kernel of the program may have read or written beyond its memory: run it under the "
      "vendor's memory checker (compute-sanitizer)";
  return info;
}

std::optional<error_info> device_errors::clear() const {
  const int code = m_call.take_last ? m_call.take_last() : success;
  if (is_fault(code)) return fault(code);
  if (is_of_launch(code))
    base::log(base::log_level::warn, "device",
              "a kernel of the program was not launched: ", text_of(code));
  return std::nullopt;
}

std::optional<error_info> device_errors::launch() const {
  const int code = m_call.take_last ? m_call.take_last() : success;
  if (code == success || code == not_ready) return std::nullopt;
  error_info info = fault(code);
  if (is_fault(code)) return info;
  info.message = "the kernel could not be launched: " + text_of(code);
  info.hint = "The driver's version and the device that SuCL was compiled for may not fit";
  if (code == out_of_memory) {
    info.code = errc::out_of_memory;
    info.message = "the device has no memory to launch the kernel: " + text_of(code);
    info.hint = "Free memory of the device first";
  }
  return info;
}

std::optional<error_info> device_errors::pending() const {
  if (!m_call.query_stream || !m_stream) return std::nullopt;
  if (m_call.push_context(m_context) != success) return std::nullopt;
  // Streams that are being captured anywhere in the process forbid such questions otherwise.
  int mode = relaxed_mode;
  if (m_call.exchange_mode) m_call.exchange_mode(&mode);
  const int code = m_call.query_stream(m_stream);
  if (m_call.exchange_mode) m_call.exchange_mode(&mode);
  void* mine = nullptr;
  m_call.pop_context(&mine);
  return is_fault(code) ? std::optional(fault(code)) : std::nullopt;
}

}  // namespace sucl::core
