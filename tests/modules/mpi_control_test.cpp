// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The control plane of the MPI module: groups, exchange, control messages.
#include "mpi_module.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace sucl::test {
namespace {

const sucl_bootstrap& control() { return *module().control; }

TEST(control, says_what_it_is) {
  EXPECT_EQ(module().info.initialised_here, 1);
  EXPECT_EQ(module().info.thread_multiple, 1);
  EXPECT_GT(std::strlen(module().info.library), 3u);
  EXPECT_EQ(std::strchr(module().info.library, '\n'), nullptr);
  EXPECT_EQ(control().alive(), 1);
  // A second query has the same answer.
  sucl_bootstrap_info again{};
  again.struct_size = sizeof again;
  EXPECT_EQ(control().init(&module().core, nullptr, nullptr, &again), SUCL_SUCCESS);
  EXPECT_EQ(again.initialised_here, 1);
}

TEST(control, refuses_another_major_version) {
  using entry = sucl_bootstrap_entry_function;
  EXPECT_EQ(module().symbol<entry>(SUCL_BOOTSTRAP_ENTRY)(SUCL_ABI_MAJOR + 1, 0), nullptr);
  using backend_entry = sucl_backend_entry_function;
  EXPECT_EQ(module().symbol<backend_entry>(SUCL_BACKEND_ENTRY)(SUCL_ABI_MAJOR + 1, 0), nullptr);
}

TEST(allgather, gathers_in_both_forms) {
  const auto size = static_cast<std::size_t>(module().size);
  for (const std::size_t bytes : {0u, 1u, 3u, 4096u, 100000u}) {
    const std::vector<char> mine(bytes, static_cast<char>('a' + module().rank));
    std::vector<char> expected;
    for (std::size_t r = 0; r < size; ++r)
      expected.insert(expected.end(), bytes, static_cast<char>('a' + r));
    std::vector<char> all(bytes * size), later(all.size());
    ASSERT_EQ(control().allgather(module().world, mine.data(), all.data(), bytes), SUCL_SUCCESS);
    sucl_oob_request* request = nullptr;
    ASSERT_EQ(control().allgather_start(module().world, mine.data(), later.data(), bytes, &request),
              SUCL_SUCCESS);
    int32_t done = 0;
    while (!done) ASSERT_EQ(control().test(module().world, request, &done), SUCL_SUCCESS);
    EXPECT_EQ(all, expected);
    EXPECT_EQ(later, expected);
  }
}

TEST(allgather, started_ones_overlap) {
  constexpr std::size_t many = 20;
  const auto size = static_cast<std::size_t>(module().size);
  std::vector<int> mine(many), all(many * size);
  std::vector<sucl_oob_request*> requests(many);
  for (std::size_t i = 0; i < many; ++i) {
    mine[i] = static_cast<int>(i) * 10 + module().rank;
    ASSERT_EQ(control().allgather_start(module().world, &mine[i], &all[i * size], sizeof(int),
                                        &requests[i]),
              SUCL_SUCCESS);
  }
  for (std::size_t i = many; i-- > 0;) {
    int32_t done = 0;
    while (!done) ASSERT_EQ(control().test(module().world, requests[i], &done), SUCL_SUCCESS);
    for (std::size_t r = 0; r < size; ++r)
      EXPECT_EQ(all[i * size + r], static_cast<int>(i * 10 + r));
  }
}

TEST(groups, split_by_colour_and_key) {
  const int rank = module().rank;
  sucl_group* part = nullptr;
  ASSERT_EQ(control().group_split(module().world, rank % 2, -rank, &part), SUCL_SUCCESS);
  ASSERT_NE(part, nullptr);
  const int size = (module().size + 1 - rank % 2) / 2;
  EXPECT_EQ(control().group_size(part), size);
  EXPECT_EQ(control().group_rank(part), size - 1 - rank / 2);
  std::vector<int> members(static_cast<std::size_t>(size));
  ASSERT_EQ(control().allgather(part, &rank, members.data(), sizeof rank), SUCL_SUCCESS);
  for (int i = 0; i < size; ++i)
    EXPECT_EQ(members[static_cast<std::size_t>(i)], (size - 1 - i) * 2 + rank % 2);

  backend_comm comm(part);
  sucl_operation o = make_operation(SUCL_KIND_ALLREDUCE);
  std::int32_t sum = 0;
  const std::int32_t one = 1;
  o.type = SUCL_TYPE_INT32;
  o.op = SUCL_OP_SUM;
  o.element_size = sizeof sum;
  o.count = 1;
  o.send = &one;
  o.recv = &sum;
  EXPECT_EQ(comm.run(o), SUCL_SUCCESS);
  EXPECT_EQ(sum, size);
  control().group_free(part);
}

TEST(groups, leave_out_a_negative_colour) {
  sucl_group* part = nullptr;
  const bool out = module().rank == 0;
  ASSERT_EQ(control().group_split(module().world, out ? -1 : 4, 0, &part), SUCL_SUCCESS);
  EXPECT_EQ(part == nullptr, out);
  if (part != nullptr) {
    EXPECT_EQ(control().group_size(part), module().size - 1);
  }
  control().group_free(part);
}

std::uint64_t handle_bytes() {
  // An MPI_Comm is a pointer in Open MPI and in the standard ABI, an int elsewhere.
  const bool pointer = module().symbol<void*>("ompi_mpi_comm_world") != nullptr ||
                       std::string_view(control().name) == "abi";
  return pointer ? sizeof(void*) : sizeof(int);
}

TEST(groups, adopt_a_native_communicator) {
  sucl_group* adopted = nullptr;
  const void* native = control().group_native(module().world);
  ASSERT_EQ(control().group_adopt(native, handle_bytes(), &adopted), SUCL_SUCCESS)
      << module().error.message;
  EXPECT_EQ(control().group_rank(adopted), module().rank);
  EXPECT_EQ(control().group_size(adopted), module().size);
  EXPECT_NE(std::memcmp(control().group_native(adopted), native, handle_bytes()), 0);
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(module().size));
  std::uint64_t count = ranks.size();
  EXPECT_EQ(control().native_ranks(module().world, native, handle_bytes(), ranks.data(), &count),
            SUCL_SUCCESS);
  EXPECT_EQ(count, ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) EXPECT_EQ(ranks[r], static_cast<std::int32_t>(r));
  control().group_free(adopted);
  module().meet();  // the native one lives on
}

TEST(groups, refuse_a_handle_of_another_library) {
  sucl_group* adopted = nullptr;
  const void* native = control().group_native(module().world);
  EXPECT_EQ(control().group_adopt(native, 12, &adopted), SUCL_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(module().error.message.find("12 bytes"), std::string::npos);
  EXPECT_EQ(control().group_adopt(nullptr, handle_bytes(), &adopted), SUCL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(adopted, nullptr);
  std::uint64_t count = 5;
  EXPECT_EQ(control().native_ranks(module().world, native, 12, nullptr, &count),
            SUCL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(count, 0u);
}

TEST(groups, know_the_ranks_of_processes_that_are_not_in_them) {
  sucl_group* part = nullptr;
  const int odd = module().rank % 2;
  ASSERT_EQ(control().group_split(module().world, odd, 0, &part), SUCL_SUCCESS);
  const void* native = control().group_native(module().world);
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(module().size));
  std::uint64_t count = ranks.size();
  ASSERT_EQ(control().native_ranks(part, native, handle_bytes(), ranks.data(), &count),
            SUCL_SUCCESS);
  for (int r = 0; r < module().size; ++r)
    EXPECT_EQ(ranks[static_cast<std::size_t>(r)], r % 2 == odd ? r / 2 : -1) << r;
  control().group_free(part);
}

/// The next message.
std::string read(sucl_group* group, int* source) {
  std::string text(4096, '\0');
  std::uint64_t bytes = 0;
  int32_t from = -1;
  while (from < 0) {
    EXPECT_EQ(control().poll(group, &from, text.data(), text.size(), &bytes), SUCL_SUCCESS);
    if (from < 0) sched_yield();
  }
  text.resize(bytes);
  *source = from;
  return text;
}

sucl_status notify(sucl_group* group, int to, const std::string& text) {
  return control().notify(group, to, text.data(), text.size());
}

TEST(control_messages, arrives_in_order_without_a_waiting_rank) {
  constexpr int messages = 50;
  const int to = (module().rank + 1) % module().size;
  const int from = (module().rank + module().size - 1) % module().size;
  for (int i = 0; i < messages; ++i)
    ASSERT_EQ(
        notify(module().world, to, std::string(i % 3 == 0 ? 4096u : 10u, static_cast<char>(i))),
        SUCL_SUCCESS);
  module().meet();  // all are sent, none is read
  for (int i = 0; i < messages; ++i) {
    int source = -1;
    const std::string text = read(module().world, &source);
    EXPECT_EQ(source, from);
    EXPECT_EQ(text, std::string(i % 3 == 0 ? 4096u : 10u, static_cast<char>(i)));
  }
  module().meet();
  int32_t source = 0;
  std::uint64_t bytes = 7;
  char nothing[1];
  EXPECT_EQ(control().poll(module().world, &source, nothing, 1, &bytes), SUCL_SUCCESS);
  EXPECT_EQ(source, -1);
}

TEST(control_messages, may_be_empty_and_to_oneself) {
  module().meet();
  ASSERT_EQ(notify(module().world, module().rank, ""), SUCL_SUCCESS);
  int source = -1;
  EXPECT_EQ(read(module().world, &source), "");
  EXPECT_EQ(source, module().rank);
  module().meet();
}

TEST(control_messages, is_kept_where_there_is_no_room_for_it) {
  module().meet();
  ASSERT_EQ(notify(module().world, module().rank, "hello"), SUCL_SUCCESS);
  char little[2];
  int32_t source = -1;
  std::uint64_t bytes = 0;
  sucl_status status = SUCL_SUCCESS;
  while (status == SUCL_SUCCESS)
    status = control().poll(module().world, &source, little, sizeof little, &bytes);
  EXPECT_EQ(status, SUCL_ERROR_INVALID_ARGUMENT);
  int from = -1;
  EXPECT_EQ(read(module().world, &from), "hello");
  module().meet();
}

TEST(control_messages, refuses_what_it_cannot_send) {
  EXPECT_EQ(notify(module().world, module().size, "x"), SUCL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(notify(module().world, -1, "x"), SUCL_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(notify(module().world, 0, std::string(4097, 'x')), SUCL_ERROR_INVALID_ARGUMENT);
}

// The watchdog's thread writes and reads while the main thread is in a collective.
TEST(control_messages, travels_beside_the_main_thread) {
  const int to = (module().rank + 1) % module().size;
  std::string text;
  std::thread watchdog([&] {
    int source = -1;
    EXPECT_EQ(notify(module().world, to, "beside"), SUCL_SUCCESS);
    text = read(module().world, &source);
  });
  for (int i = 0; i < 20; ++i) module().meet();
  watchdog.join();
  EXPECT_EQ(text, "beside");
}

// Freed with messages that no rank has read: neither side waits.
TEST(control_messages, unread_does_not_keep_a_group) {
  sucl_group* part = nullptr;
  ASSERT_EQ(control().group_split(module().world, 0, 0, &part), SUCL_SUCCESS);
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(notify(part, (module().rank + 1) % module().size, std::string(4096, 'x')),
              SUCL_SUCCESS);
  control().group_free(part);
}

TEST(groups, are_freed_by_each_rank_when_it_likes) {
  for (const int first : {0, module().size - 1}) {
    sucl_group* part = nullptr;
    ASSERT_EQ(control().group_split(module().world, 0, 0, &part), SUCL_SUCCESS);
    if (module().rank == first) control().group_free(part);
    module().meet();
    if (module().rank != first) control().group_free(part);
  }
}

}  // namespace
}  // namespace sucl::test

int main(int argc, char** argv) { return sucl::test::run_tests(argc, argv); }
