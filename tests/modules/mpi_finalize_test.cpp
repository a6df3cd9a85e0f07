// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Who starts and who ends MPI, and what is left of the module then. Each order needs a process of
/// its own: `program MODULE ORDER`.
#include "mpi_module.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace sucl::test {
namespace {

const sucl_bootstrap& control() { return *module().control; }

void finalize_by_the_program() { EXPECT_EQ(module().symbol<int (*)()>("MPI_Finalize")(), 0); }

/// What everything must answer once MPI is gone; nothing of it may call MPI.
void expect_shut_down(backend_comm* comm) {
  EXPECT_EQ(control().alive(), 0);
  if (comm != nullptr) {
    EXPECT_EQ(comm->run(make_operation(SUCL_KIND_BARRIER)), SUCL_ERROR_SHUT_DOWN);
  }
  char mine = 0, all[64];
  int32_t source = 0;
  std::uint64_t bytes = 0;
  sucl_group* group = nullptr;
  sucl_group* world = module().world;
  sucl_oob_request* request = nullptr;
  EXPECT_EQ(control().allgather(world, &mine, all, 1), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().allgather_start(world, &mine, all, 1, &request), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().notify(world, 0, &mine, 1), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().poll(world, &source, all, sizeof all, &bytes), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().group_world(&group), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().group_split(world, 0, 0, &group), SUCL_ERROR_SHUT_DOWN);
  EXPECT_EQ(control().at_finalize([](void*) {}, nullptr), SUCL_ERROR_SHUT_DOWN);
  sucl_bootstrap_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(control().init(&module().core, nullptr, nullptr, &info), SUCL_ERROR_SHUT_DOWN);
  EXPECT_FALSE(module().error.hint.empty());
  control().finalize();
}

struct calls {
  int count = 0;
  int alive = 0;
};

void count_call(void* arg) {
  auto* c = static_cast<calls*>(arg);
  ++c->count;
  c->alive += control().alive();
}

void program_ends_mpi_first() {
  auto comm = std::make_unique<backend_comm>(module().world);
  calls hook;
  ASSERT_EQ(control().at_finalize(count_call, &hook), SUCL_SUCCESS);
  EXPECT_EQ(hook.count, 0);
  finalize_by_the_program();
  EXPECT_EQ(hook.count, 1);
  EXPECT_EQ(hook.alive, 1);
  expect_shut_down(comm.get());
  comm.reset();
  control().group_free(module().world);
}

void hook_frees_everything() {
  static std::unique_ptr<backend_comm> comm;
  comm = std::make_unique<backend_comm>(module().world);
  ASSERT_EQ(control().at_finalize(
                [](void*) {
                  EXPECT_EQ(comm->run(make_operation(SUCL_KIND_BARRIER)), SUCL_SUCCESS);
                  comm.reset();
                  control().group_free(module().world);
                },
                nullptr),
            SUCL_SUCCESS);
  control().finalize();
  EXPECT_EQ(control().alive(), 0);
}

void module_ends_mpi_first() {
  backend_comm comm(module().world);
  calls hook;
  ASSERT_EQ(control().at_finalize(count_call, &hook), SUCL_SUCCESS);
  ASSERT_EQ(control().at_finalize(count_call, &hook), SUCL_SUCCESS);
  control().finalize();
  EXPECT_EQ(hook.count, 2);
  EXPECT_EQ(hook.alive, 2);
  expect_shut_down(&comm);
  control().group_free(module().world);
}

// Control messages that no rank reads must not keep the library from ending.
void ends_with_unread_messages() {
  const std::string text(4096, 'x');
  const int to = (module().rank + 1) % module().size;
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(control().notify(module().world, to, text.data(), text.size()), SUCL_SUCCESS);
  control().group_free(module().world);
  control().finalize();
  EXPECT_EQ(control().alive(), 0);
}

void ends_after_abort() {
  {
    backend_comm comm(module().world);
    sucl_request* request = nullptr;
    char data[8];
    sucl_operation o = make_operation(SUCL_KIND_RECV);
    o.count = sizeof data;
    o.recv = data;
    EXPECT_EQ(comm.post(o, &request), SUCL_SUCCESS);
    module().backend->abort(comm.get());
  }
  control().group_free(module().world);
  control().finalize();
  EXPECT_EQ(control().alive(), 0);
}

// The program started MPI before SuCL came: only the program ends it.
void mpi_is_the_programs() {
  EXPECT_EQ(module().info.initialised_here, 0);
  control().finalize();
  EXPECT_EQ(control().alive(), 1);
  module().meet();
  control().group_free(module().world);
  finalize_by_the_program();
}

struct order {
  const char* name;
  void (*run)();
};

const order orders[] = {{"program-ends-mpi-first", program_ends_mpi_first},
                        {"hook-frees-everything", hook_frees_everything},
                        {"module-ends-mpi-first", module_ends_mpi_first},
                        {"ends-with-unread-messages", ends_with_unread_messages},
                        {"ends-after-abort", ends_after_abort},
                        {"mpi-is-the-programs", mpi_is_the_programs}};

void (*selected)() = nullptr;

TEST(finalize, in_the_chosen_order) { selected(); }

void start_mpi_by_the_program(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto init = reinterpret_cast<int (*)(int*, char***, int, int*)>(
      library ? dlsym(library, "MPI_Init_thread") : nullptr);
  // MPI_THREAD_MULTIPLE is 3 in every library whose constants follow the common ABI.
  int provided = 0;
  if (init != nullptr) init(nullptr, nullptr, 3, &provided);
}

}  // namespace
}  // namespace sucl::test

int main(int argc, char** argv) {
  using namespace sucl::test;
  testing::InitGoogleTest(&argc, argv);
  for (const order& o : orders)
    if (argc > 2 && std::strcmp(argv[2], o.name) == 0) selected = o.run;
  if (selected == nullptr) {
    std::fprintf(stderr, "usage: program MODULE ORDER\n");
    return 2;
  }
  if (selected == mpi_is_the_programs) start_mpi_by_the_program(argv[1]);
  start(argv[1], &argc, &argv);
  return RUN_ALL_TESTS();
}
