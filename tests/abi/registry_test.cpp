// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Modules as they come: right, newer, and broken in every way there is.
#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace {

using namespace sucl;

std::string module(const std::string& name) {
  return std::string(SUCL_TEST_MODULES) + "/libsucl_test_" + name + ".so";
}

core::backend_source source(const std::string& variant) { return {"nothing", module(variant), {}}; }

int& opened(const std::string& variant) {
  void* handle = ::dlopen(module(variant).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return *static_cast<int*>(::dlsym(handle, "sucl_test_opened"));
}

void expect_problem(const core::backend_source& from, errc code, const std::string& part,
                    const std::string& cure) {
  core::registry registry;
  EXPECT_EQ(registry.try_open(from), nullptr);
  const auto problem = registry.reports().at(0).problem;
  ASSERT_TRUE(problem) << from.file;
  EXPECT_EQ(problem->code, code);
  EXPECT_EQ(problem->backend, from.name);
  EXPECT_NE(problem->message.find(part), std::string::npos) << problem->message;
  EXPECT_NE(problem->hint.find(cure), std::string::npos) << problem->hint;
  try {
    registry.open(from);
    ADD_FAILURE() << "opened " << from.file;
  } catch (const error& e) {
    EXPECT_EQ(e.message(), problem->message);
  }
  EXPECT_EQ(registry.reports().size(), 1u);
}

void expect_broken(const std::string& variant, const std::string& part, const std::string& cure) {
  expect_problem(source(variant), errc::unavailable, part, cure);
}

TEST(registry, opens_and_closes_a_backend) {
  {
    core::registry registry;
    const auto& handle = registry.open(source("good"));
    EXPECT_EQ(handle.name, "nothing");
    EXPECT_EQ(handle.description, "a test's backend");
    EXPECT_EQ(handle.path, module("good"));
    EXPECT_NE(handle.state, nullptr);
    EXPECT_EQ(&registry.open(source("good")), &handle);
    EXPECT_EQ(registry.try_open(source("good")), &handle);
    EXPECT_EQ(opened("good"), 1);
    ASSERT_EQ(registry.reports().size(), 1u);
    EXPECT_FALSE(registry.reports()[0].problem);
  }
  EXPECT_EQ(opened("good"), 0);
}

TEST(registry, takes_a_longer_table_of_a_newer_minor_version) {
  core::registry registry;
  EXPECT_EQ(registry.open(source("newer")).table->abi_minor, SUCL_ABI_MINOR + 1);
  EXPECT_GT(registry.open(source("newer")).table->struct_size, sizeof(sucl_backend));
}

TEST(registry, refuses_another_major_version) {
  const std::string minor = std::to_string(SUCL_ABI_MINOR);
  expect_broken("major",
                "libsucl_test_major.so' was built for version 2." + minor +
                    " of the contract; this SuCL has version 1." + minor,
                "Rebuild");
}

TEST(registry, refuses_a_short_table) {
  expect_broken("short", "has a table sucl_backend of 88 bytes; version 1.0 has at least 96",
                "struct_size");
}

TEST(registry, refuses_a_null_function) {
  expect_broken("null", "has a null 'post' in its sucl_backend", "must define it");
}

TEST(registry, refuses_a_module_that_gives_no_table) {
  expect_broken("refusing", "does not work with this SuCL", "Rebuild");
}

TEST(registry, refuses_a_library_that_is_no_module) {
  expect_broken("symbol", "has no symbol 'sucl_backend_entry'", "not the library that was meant");
}

TEST(registry, names_a_missing_dependency) {
  expect_broken("orphan", "it needs the library 'libsucl_abi_absent.so', which was not found",
                "LD_LIBRARY_PATH");
}

TEST(registry, says_that_a_file_is_not_a_library) {
  expect_problem({"nothing", SUCL_TEST_SOURCE_DIR "/tests/abi/modules/not_elf.txt", {}},
                 errc::unavailable, "it is not a shared library", "Give the path");
}

TEST(registry, says_where_it_searched) {
  core::registry registry({"/no/such/folder"});
  EXPECT_EQ(registry.try_open({"ghost", "", {}}), nullptr);
  const auto report = registry.reports().at(0);
  EXPECT_EQ(report.path, "libsucl_backend_ghost.so");
  EXPECT_NE(report.problem->message.find("/no/such/folder"), std::string::npos);
  EXPECT_NE(report.problem->hint.find("SUCL_MODULE_PATH"), std::string::npos);
  expect_problem({"ghost", "/no/such/file.so", {}}, errc::unavailable, "No such file", "path");
}

TEST(registry, finds_files_in_the_folders_it_is_given) {
  core::registry registry({"/no/such/folder", SUCL_TEST_MODULES});
  EXPECT_EQ(registry.open({"nothing", "libsucl_test_good.so", {}}).path, module("good"));
}

TEST(registry, searches_SUCL_MODULE_PATH_after_its_own_folder) {
  ASSERT_EQ(::setenv("SUCL_MODULE_PATH", "/a::" SUCL_TEST_MODULES, 1), 0);
  const auto directories = core::module_directories();
  ::unsetenv("SUCL_MODULE_PATH");
  ASSERT_EQ(directories.size(), 3u);
  EXPECT_EQ(directories[0].substr(directories[0].rfind('/')), "/sucl");
  EXPECT_EQ(directories[1], "/a");
  EXPECT_EQ(directories[2], SUCL_TEST_MODULES);
}

TEST(registry, refuses_a_backend_of_another_name) {
  auto from = source("good");
  from.name = "something";
  expect_problem(from, errc::configuration, "holds the backend 'nothing', not 'something'",
                 "Configure it as 'nothing'");
}

TEST(registry, keeps_what_a_backend_says_about_its_failure) {
  auto from = source("good");
  from.settings = {{"the fact", "the cure"}};
  expect_problem(from, errc::unavailable, "the fact", "the cure");
  core::registry registry;
  registry.try_open(from);
  EXPECT_EQ(registry.reports()[0].problem->native_code, 77);
}

// What SuCL's modules say of a setting: its key, its value, and what is allowed.
TEST(registry, modules_name_a_wrong_setting) {
  struct wrong_setting {
    const char* backend;
    const char* key;
    const char* value;
    const char* allowed;
  };
  constexpr wrong_setting all[] = {{"ipc", "handover", "phone", "any, proc or socket"},
                                   {"ipc", "reads", "perhaps", "true or false"},
                                   {"ipc", "no_such", "1", "handover"},
                                   {"fabric", "no_such", "1", "provider, library and interface"},
                                   {"nccl", "exact", "perhaps", "true or false"},
                                   {"nccl", "messages", "2", "true or false"},
                                   {"nccl", "no_such", "1", "library"},
                                   {"mock", "kinds", "broadcast,walk", "allreduce"},
                                   {"mock", "types", "fp31", "fp32"},
                                   {"mock", "ops", "plus", "sum"},
                                   {"mock", "memory", "paper", "shared"},
                                   {"mock", "wrong", "all,walk", "allreduce"},
                                   {"mock", "max_count", "-1", "from 0 to"},
                                   {"mock", "delay_us", "3600000001", "from 0 to 3600000000"},
                                   {"mock", "fail_at", "first", "from 0 to"},
                                   {"mock", "stuck_at", "1.5", "from 0 to"},
                                   {"mock", "fail_rank", "-2", "from -1 to"},
                                   {"mock", "no_such", "1", "fail_open"}};
  for (const auto& one : all) {
    SCOPED_TRACE(std::string(one.backend) + " " + one.key);
    const std::string file = SUCL_MODULES "/libsucl_backend_" + std::string(one.backend) + ".so";
    if (::access(file.c_str(), F_OK) != 0) continue;  // this build has none
    const core::backend_source from{one.backend, file, {{one.key, one.value}}};
    expect_problem(from, errc::configuration, one.value, one.allowed);
    expect_problem(from, errc::configuration, one.key, one.allowed);
  }
}

TEST(registry, says_so_when_a_backend_gives_no_details) {
  expect_problem(source("silent"), errc::native, "failed with status 10 (native) and gave no",
                 "author");
}

TEST(registry, checks_control_planes_the_same_way) {
  try {
    core::load_bootstrap(module("bootstrap"));
    ADD_FAILURE() << "loaded";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_NE(e.message().find("null 'init' in its sucl_bootstrap"), std::string::npos)
        << e.message();
  }
  EXPECT_THROW(core::load_bootstrap(module("good")), error);
}

TEST(services, turn_failures_into_errors) {
  const sucl_core& services = core::services();
  EXPECT_EQ(services.fail(SUCL_ERROR_TIMEOUT, 3, "fact", "cure"), SUCL_ERROR_TIMEOUT);
  try {
    core::throw_last(SUCL_ERROR_TIMEOUT, "name", "allreduce #17", 4);
  } catch (const error& e) {
    EXPECT_STREQ(e.what(),
                 "sucl: allreduce #17: fact [timeout, rank 4, backend name, native code 3]. cure");
  }
  // What was taken is gone, and the details of another failure belong to no call.
  EXPECT_NE(core::take_last(SUCL_ERROR_TIMEOUT).message, "fact");
  services.fail(SUCL_ERROR_TIMEOUT, 3, "fact", "cure");
  EXPECT_NE(core::take_last(SUCL_ERROR_NATIVE).message, "fact");
  EXPECT_EQ(core::take_last(12345).code, errc::internal);
}

TEST(services, exchange_within_a_single_process) {
  const sucl_core& services = core::services();
  sucl_oob oob;
  const int mine = 7;
  int all = 0;
  EXPECT_EQ(services.oob_allgather(&oob, &mine, &all, sizeof mine), SUCL_SUCCESS);
  EXPECT_EQ(all, 7);
  all = 0;
  sucl_oob_request* request = nullptr;
  EXPECT_EQ(services.oob_allgather_start(&oob, &mine, &all, sizeof mine, &request), SUCL_SUCCESS);
  std::int32_t done = 0;
  EXPECT_EQ(services.oob_test(&oob, request, &done), SUCL_SUCCESS);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(all, 7);
  EXPECT_EQ(services.oob_allgather(nullptr, &mine, &all, sizeof mine), SUCL_ERROR_INVALID_ARGUMENT);
}

}  // namespace
