// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A backend for tests of layers: it remembers what is posted to it, and every operation is done
/// when the test says so.
#pragma once

#include "core/exchange/core_services.hpp"
#include "core/operation/backend_comm.hpp"

#include <vector>

namespace sucl::testing {

struct recorder {
  std::vector<sucl_operation> posted;
  std::size_t finished = 0;  ///< the first so many are done
  bool at_once = false;      ///< post completes
  sucl_status fail_post = SUCL_SUCCESS;
  sucl_status fail_test = SUCL_SUCCESS;
  int aborts = 0;
  int destroyed = 0;

  core::backend_comm channel() {
    return {&table(), reinterpret_cast<sucl_state*>(this),
            reinterpret_cast<sucl_backend_comm*>(this)};
  }

 private:
  static recorder& self(sucl_backend_comm* comm) { return *reinterpret_cast<recorder*>(comm); }

  static sucl_status query(sucl_state*, const sucl_query*, sucl_capability* answer) {
    answer->supported = 1;
    answer->flags = SUCL_CAP_STREAM_ORDERED;
    answer->max_count = 99;
    return SUCL_SUCCESS;
  }
  static sucl_status post(sucl_backend_comm* comm, const sucl_operation* o,
                          sucl_request** request) {
    recorder& r = self(comm);
    if (r.fail_post) return core::services().fail(r.fail_post, 7, "post refused", "as told");
    r.posted.push_back(*o);
    *request = r.at_once ? nullptr : reinterpret_cast<sucl_request*>(r.posted.size());
    return SUCL_SUCCESS;
  }
  static sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
    recorder& r = self(comm);
    if (r.fail_test) return core::services().fail(r.fail_test, 8, "test refused", "as told");
    *done = reinterpret_cast<std::size_t>(request) <= r.finished;
    return SUCL_SUCCESS;
  }
  static void abort(sucl_backend_comm* comm) { ++self(comm).aborts; }
  static void destroy(sucl_backend_comm* comm) { ++self(comm).destroyed; }

  static const sucl_backend& table() {
    static constexpr sucl_backend value = [] {
      sucl_backend t = core::table_of("recorder", "");
      t.query = query;
      t.comm_destroy = destroy;
      t.post = post;
      t.test = test;
      t.abort = abort;
      return t;
    }();
    return value;
  }
};

}  // namespace sucl::testing
