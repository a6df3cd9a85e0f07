// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "mpi_module.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>

namespace sucl::test {
namespace {

void log(int32_t level, const char* component, const char* text) {
  if (level <= SUCL_LOG_WARN) std::fprintf(stderr, "%s: %s\n", component, text);
}

sucl_status note_error(sucl_status status, int64_t native_code, const char* message,
                       const char* hint) {
  module().error = {status, native_code, message, hint ? hint : ""};
  return status;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(2);
}

}  // namespace

mpi_module& module() {
  static mpi_module m;
  return m;
}

void* mpi_module::find(const char* name) const { return dlsym(library, name); }

void mpi_module::meet() {
  std::vector<char> all(static_cast<std::size_t>(size));
  const char mine = 0;
  control->allgather(world, &mine, all.data(), 1);
}

void start(const char* path, int* argc, char*** argv) {
  mpi_module& m = module();
  m.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (m.library == nullptr) give_up(dlerror());
  const auto control =
      reinterpret_cast<sucl_bootstrap_entry_function>(dlsym(m.library, SUCL_BOOTSTRAP_ENTRY));
  const auto backend =
      reinterpret_cast<sucl_backend_entry_function>(dlsym(m.library, SUCL_BACKEND_ENTRY));
  if (control == nullptr || backend == nullptr) give_up("the module lacks an entry");
  m.control = control(SUCL_ABI_MAJOR, SUCL_ABI_MINOR);
  m.backend = backend(SUCL_ABI_MAJOR, SUCL_ABI_MINOR);
  m.core.struct_size = sizeof m.core;
  m.core.abi_major = SUCL_ABI_MAJOR;
  m.core.abi_minor = SUCL_ABI_MINOR;
  m.core.log = log;
  m.core.fail = note_error;
  m.info.struct_size = sizeof m.info;
  if (m.control->init(&m.core, argc, argv, &m.info) != SUCL_SUCCESS ||
      m.control->group_world(&m.world) != SUCL_SUCCESS)
    give_up(m.error.message);
  m.rank = m.control->group_rank(m.world);
  m.size = m.control->group_size(m.world);
}

backend_comm::backend_comm(sucl_group* group, std::vector<sucl_setting> settings) {
  mpi_module& m = module();
  sucl_comm_info info{};
  info.struct_size = sizeof info;
  info.rank = m.control->group_rank(group);
  info.size = m.control->group_size(group);
  info.native_comm = m.control->group_native(group);
  info.platform = "host";
  if (m.backend->open(&m.core, settings.data(), settings.size(), &m_state) != SUCL_SUCCESS ||
      m.backend->comm_create(m_state, &info, &m_comm) != SUCL_SUCCESS)
    give_up(m.error.message);
}

backend_comm::~backend_comm() {
  module().backend->comm_destroy(m_comm);
  module().backend->close(m_state);
}

sucl_status backend_comm::post(const sucl_operation& operation, sucl_request** request) {
  return module().backend->post(m_comm, &operation, request);
}

sucl_status backend_comm::finish(sucl_request* request) {
  int32_t done = request == nullptr;
  sucl_status status = SUCL_SUCCESS;
  while (!done && status == SUCL_SUCCESS) {
    status = module().backend->test(m_comm, request, &done);
    if (!done) sched_yield();  // there may be more ranks than processors
  }
  return status;
}

sucl_status backend_comm::run(const sucl_operation& operation) {
  sucl_request* request = nullptr;
  const sucl_status status = post(operation, &request);
  return status == SUCL_SUCCESS ? finish(request) : status;
}

bool backend_comm::supports(sucl_kind kind, sucl_type type, sucl_op op, sucl_memory memory,
                            const char* platform) const {
  sucl_query query{sizeof query, kind, type, op, memory, 0, 1, platform};
  sucl_capability answer{sizeof answer, -1, 0, 0, 0};
  EXPECT_EQ(module().backend->query(m_state, &query, &answer), SUCL_SUCCESS);
  return answer.supported == 1;
}

sucl_operation make_operation(sucl_kind kind) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.element_size = 1;
  return o;
}

int run_tests(int argc, char** argv) {
  if (argc < 2) give_up("usage: program MODULE");
  start(argv[1], &argc, &argv);
  mpi_module& m = module();
  // Every rank prints its failures, one its successes.
  if (m.rank != 0) testing::GTEST_FLAG(brief) = true;
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (m.control->alive()) {
    if (m.world != nullptr) m.control->group_free(m.world);
    m.control->finalize();
  }
  return result;
}

}  // namespace sucl::test
