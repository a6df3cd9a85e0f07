// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/self/self_backend.hpp"
#include "core/control/control_plane.hpp"
#include "core/selection/backend_creation.hpp"

namespace sucl::core {
namespace {

class self_built_in_backend final : public built_in_backend {
 public:
  const char* name() const override { return self_backend().name; }
  const sucl_backend& table() const override { return self_backend(); }

  std::string obstacle(backend_creation& c) const override {
    if (c.size() > 1) return "it is for one rank";
    return no_mpi(c.oob.bootstrap).empty() ? "MPI executes what nothing else does" : "";
  }

  backend_instance create(backend_creation&, std::string*) const override {
    backend_instance made;
    made.via = make_self_comm();
    return made;
  }
};

}  // namespace

const built_in_backend& self_built_in() {
  static const self_built_in_backend it;
  return it;
}

}  // namespace sucl::core
