// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Posting operations to a channel, as the core does.
#pragma once

#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/backend_comm.hpp"
#include "support/yield.hpp"

#include <sucl/types.hpp>

#include <chrono>
#include <thread>

namespace sucl::testing {

/// An operation in flight, or the status that post returned.
struct flight {
  sucl_status status = SUCL_SUCCESS;
  sucl_request* request = nullptr;
  error_info error;
};

inline core::backend_comm create_comm(const core::backend_handle& handle,
                                      const sucl_comm_info& info) {
  core::backend_comm c{handle.table, handle.state, nullptr};
  const sucl_status status = c.table->comm_create(c.state, &info, &c.comm);
  if (status != SUCL_SUCCESS) core::throw_last(status, handle.name);
  return c;
}

inline void destroy(const core::backend_comm& c) { c.table->comm_destroy(c.comm); }

inline sucl_operation operation(kind k, type t, std::uint64_t count, op o = op::none) {
  sucl_operation result{};
  result.struct_size = sizeof result;
  result.kind = static_cast<sucl_kind>(k);
  result.type = static_cast<sucl_type>(t);
  result.op = static_cast<sucl_op>(o);
  result.element_size = size_of(t);
  result.sequence = 1;
  result.count = count;
  return result;
}

inline flight post(const core::backend_comm& c, const sucl_operation& o) {
  flight f;
  f.status = c.table->post(c.comm, &o, &f.request);
  if (f.status != SUCL_SUCCESS) f.error = core::take_last(f.status);
  return f;
}

/// One test; true once the operation is over.
inline bool test(const core::backend_comm& c, flight& f) {
  if (!f.request) return true;
  std::int32_t done = 0;
  f.status = c.table->test(c.comm, f.request, &done);
  if (f.status != SUCL_SUCCESS) f.error = core::take_last(f.status);
  if (f.status != SUCL_SUCCESS || done) f.request = nullptr;
  return !f.request;
}

/// Tests until the operation is over; SUCL_ERROR_TIMEOUT after a minute.
inline flight wait(const core::backend_comm& c, flight f) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!test(c, f)) {
    if (std::chrono::steady_clock::now() > end) {
      f.status = SUCL_ERROR_TIMEOUT;
      return f;
    }
    yield_or_sleep();
  }
  return f;
}

inline flight run(const core::backend_comm& c, const sucl_operation& o) {
  return wait(c, post(c, o));
}

}  // namespace sucl::testing
