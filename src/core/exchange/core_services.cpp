// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/core_services.hpp"

#include "base/log.hpp"
#include "core/exchange/waiting.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

struct failure {
  sucl_status status = SUCL_SUCCESS;
  std::int64_t native_code = 0;
  std::string message;
  std::string hint;
};

std::optional<failure>& last() {
  thread_local std::optional<failure> value;
  return value;
}

void log(std::int32_t level, const char* component, const char* text) {
  const auto known = std::clamp<std::int32_t>(level, SUCL_LOG_ERROR, SUCL_LOG_DEBUG);
  base::log_text(static_cast<base::log_level>(known), component ? component : "backend",
                 text ? text : "");
}

sucl_status fail(sucl_status status, std::int64_t native_code, const char* message,
                 const char* hint) {
  try {
    last() = failure{status, native_code, message ? message : "", hint ? hint : ""};
  } catch (...) {
    last().reset();  // no memory for the details: the status alone must do
  }
  return status;
}

// What a started exchange of a single process returns: a backend may take null for "none".
sucl_oob_request* done_at_once() {
  static char token;
  return reinterpret_cast<sucl_oob_request*>(&token);
}

sucl_status check(const sucl_oob* oob) {
  if (!oob)
    return fail(SUCL_ERROR_INVALID_ARGUMENT, 0, "the out-of-band channel is null",
                "Pass the `oob` of the sucl_comm_info that comm_create was given.");
  if (oob->bootstrap && !oob->bootstrap->alive())
    return fail(SUCL_ERROR_SHUT_DOWN, 0,
                "out-of-band exchange after the control plane has been finalised",
                "Destroy communicators before MPI is finalised.");
  return SUCL_SUCCESS;
}

// Waits until the exchange is done or waiting for it has become useless.
sucl_status await(const sucl_bootstrap& control, sucl_group* group, sucl_oob_request* request) {
  constexpr std::chrono::microseconds spin{50};
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    std::int32_t done = 0;
    if (const sucl_status status = control.test(group, request, &done)) return status;
    if (done) return SUCL_SUCCESS;
    if (const sucl_status status = keep_waiting()) return status;
    if (std::chrono::steady_clock::now() - begin > spin) sched_yield();
  }
}

sucl_status oob_allgather(sucl_oob* oob, const void* mine, void* all, std::uint64_t bytes) {
  if (const sucl_status status = check(oob)) return status;
  if (bytes == 0) return SUCL_SUCCESS;
  if (!oob->bootstrap) {
    std::memmove(all, mine, bytes);
    return SUCL_SUCCESS;
  }
  const auto size = static_cast<std::uint64_t>(oob->bootstrap->group_size(oob->group));
  auto memory = std::make_unique<std::byte[]>(bytes * (size + 1));
  std::memcpy(memory.get(), mine, bytes);
  sucl_oob_request* request = nullptr;
  if (const sucl_status status = oob->bootstrap->allgather_start(
          oob->group, memory.get(), memory.get() + bytes, bytes, &request))
    return status;
  if (const sucl_status status = await(*oob->bootstrap, oob->group, request)) {
    (void)memory.release();  // what is given up may still be written to
    return status;
  }
  std::memcpy(all, memory.get() + bytes, bytes * size);
  note_progress();
  return SUCL_SUCCESS;
}

sucl_status oob_allgather_start(sucl_oob* oob, const void* mine, void* all, std::uint64_t bytes,
                                sucl_oob_request** request) {
  if (const sucl_status status = check(oob)) return status;
  if (oob->bootstrap) return oob->bootstrap->allgather_start(oob->group, mine, all, bytes, request);
  if (bytes > 0) std::memmove(all, mine, bytes);
  *request = done_at_once();
  return SUCL_SUCCESS;
}

sucl_status oob_test(sucl_oob* oob, sucl_oob_request* request, std::int32_t* done) {
  if (const sucl_status status = check(oob)) return status;
  if (oob->bootstrap) return oob->bootstrap->test(oob->group, request, done);
  *done = 1;
  return SUCL_SUCCESS;
}

errc code_of(sucl_status status) {
  const bool known = status > SUCL_SUCCESS && status <= SUCL_ERROR_INTERNAL;
  return known ? static_cast<errc>(status) : errc::internal;
}

}  // namespace

const sucl_core& services() noexcept {
  static constexpr sucl_core table{
      sizeof(sucl_core), SUCL_ABI_MAJOR,      SUCL_ABI_MINOR, 0,           log, fail,
      oob_allgather,     oob_allgather_start, oob_test,       keep_waiting};
  return table;
}

error_info take_last(sucl_status status) {
  error_info info;
  info.code = code_of(status);
  std::optional<failure> found = std::exchange(last(), std::nullopt);
  if (found && found->status == status) {
    info.message = std::move(found->message);
    info.hint = std::move(found->hint);
    info.native_code = found->native_code;
  } else {
    info.message = "failed with status " + std::to_string(status) + " (" + name(info.code) +
                   ") and gave no details";
    info.hint =
        "A backend should `return core->fail(...)` with fact, cause and cure: tell its author.";
  }
  return info;
}

void throw_last(sucl_status status, std::string backend, std::string operation, int rank) {
  error_info info = take_last(status);
  info.backend = std::move(backend);
  info.operation = std::move(operation);
  info.rank = rank;
  throw error(std::move(info));
}

sucl_status keep(const error_info& info) noexcept {
  return fail(static_cast<sucl_status>(info.code), info.native_code, info.message.c_str(),
              info.hint.c_str());
}

sucl_oob oob_split(const sucl_oob& oob, int rank) {
  sucl_oob result{oob.bootstrap, nullptr};
  if (!oob.bootstrap) return result;
  const sucl_status status = oob.bootstrap->group_split(oob.group, 0, rank, &result.group);
  if (status != SUCL_SUCCESS)
    throw_last(status, oob.bootstrap->name, "splitting an out-of-band channel", rank);
  return result;
}

void oob_keep(sucl_oob& oob) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<sucl_group*>;
  const std::lock_guard lock(mutex);
  kept.push_back(oob.group);
  oob.group = nullptr;
}

void oob_free(sucl_oob& oob) noexcept {
  if (oob.bootstrap && oob.group && oob.bootstrap->alive()) oob.bootstrap->group_free(oob.group);
  oob.group = nullptr;
}

}  // namespace sucl::core
