// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Point-to-point of the MPI module: sends, receives, groups, and what goes wrong with them.
#include "mpi_elements.hpp"
#include "mpi_module.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace sucl::test {
namespace {

using numbers = std::vector<std::int32_t>;

int next() { return (module().rank + 1) % module().size; }
int previous() { return (module().rank + module().size - 1) % module().size; }

sucl_operation message(sucl_kind kind, int peer, int tag) {
  sucl_operation o = make_operation(kind);
  o.type = SUCL_TYPE_INT32;
  o.element_size = sizeof(std::int32_t);
  o.root = peer;
  o.source = peer;
  o.tag = tag;
  return o;
}

sucl_operation send_of(const numbers& data, int to, int tag = 0) {
  sucl_operation o = message(SUCL_KIND_SEND, to, tag);
  o.send = data.data();
  o.count = data.size();
  return o;
}

sucl_operation recv_into(numbers& data, int from, int tag = 0) {
  sucl_operation o = message(SUCL_KIND_RECV, from, tag);
  o.recv = data.data();
  o.count = data.size();
  return o;
}

numbers filled(std::size_t n, int first) {
  numbers v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

TEST(messages, send_every_type_around_the_ring) {
  backend_comm comm(module().world);
  for (const element_kind& e : all_elements()) {
    for (const std::uint64_t count : {0u, 1u, 7u, 1000u}) {
      for (const unsigned flags : {0u, unsigned{SUCL_FLAG_MAY_BLOCK}}) {
        std::vector<std::byte> out(count * e.size), in(out.size()), expected(out.size());
        for (std::uint64_t i = 0; i < count; ++i) {
          e.make(&out[i * e.size], module().rank, i, SUCL_OP_NONE);
          e.make(&expected[i * e.size], previous(), i, SUCL_OP_NONE);
        }
        sucl_operation o = make_operation(SUCL_KIND_SENDRECV);
        o.type = e.type;
        o.element_size = e.size;
        o.flags = flags;
        o.send = out.data();
        o.recv = in.data();
        o.count = o.recv_count = count;
        o.root = next();
        o.source = previous();
        o.tag = 3;
        ASSERT_EQ(comm.run(o), SUCL_SUCCESS) << e.name << ": " << module().error.message;
        for (std::uint64_t i = 0; i < count; ++i)
          ASSERT_TRUE(e.equal(&in[i * e.size], &expected[i * e.size])) << e.name << " " << i;
      }
    }
  }
}

TEST(messages, sendrecv_in_place_replaces) {
  backend_comm comm(module().world);
  for (const unsigned flags : {0u, unsigned{SUCL_FLAG_MAY_BLOCK}}) {
    numbers data = filled(500, module().rank * 1000);
    sucl_operation o = message(SUCL_KIND_SENDRECV, next(), 1);
    o.source = previous();
    o.recv = data.data();
    o.count = o.recv_count = data.size();
    o.flags = flags | SUCL_FLAG_IN_PLACE;
    ASSERT_EQ(comm.run(o), SUCL_SUCCESS) << module().error.message;
    EXPECT_EQ(data, filled(500, previous() * 1000));
  }
}

// Large enough that no library buffers it: a send that blocks would never return.
TEST(messages, to_the_own_rank_arrive_even_where_blocking_is_allowed) {
  backend_comm comm(module().world);
  const numbers out = filled(1 << 20, 5);
  for (const bool send_first : {true, false}) {
    numbers in(out.size());
    sucl_operation s = send_of(out, module().rank);
    sucl_operation r = recv_into(in, module().rank);
    s.flags = r.flags = SUCL_FLAG_MAY_BLOCK;
    sucl_request* first = nullptr;
    sucl_request* second = nullptr;
    ASSERT_EQ(comm.post(send_first ? s : r, &first), SUCL_SUCCESS);
    ASSERT_EQ(comm.post(send_first ? r : s, &second), SUCL_SUCCESS);
    EXPECT_EQ(comm.finish(first), SUCL_SUCCESS);
    EXPECT_EQ(comm.finish(second), SUCL_SUCCESS);
    EXPECT_EQ(in, out);
  }
}

TEST(messages, of_different_tags_may_overtake) {
  backend_comm comm(module().world);
  const numbers a = filled(3, 10), b = filled(4, 20);
  numbers got_a(3), got_b(4);
  sucl_request* requests[4] = {};
  ASSERT_EQ(comm.post(send_of(a, next(), 1), &requests[0]), SUCL_SUCCESS);
  ASSERT_EQ(comm.post(send_of(b, next(), 2), &requests[1]), SUCL_SUCCESS);
  ASSERT_EQ(comm.post(recv_into(got_b, previous(), 2), &requests[2]), SUCL_SUCCESS);
  ASSERT_EQ(comm.finish(requests[2]), SUCL_SUCCESS);
  ASSERT_EQ(comm.post(recv_into(got_a, previous(), 1), &requests[3]), SUCL_SUCCESS);
  for (const int i : {0, 1, 3}) EXPECT_EQ(comm.finish(requests[i]), SUCL_SUCCESS);
  EXPECT_EQ(got_a, a);
  EXPECT_EQ(got_b, b);
}

// Every rank with every rank, itself included, in one group; sends before receives.
TEST(groups, progress_together) {
  backend_comm comm(module().world);
  const auto size = static_cast<std::size_t>(module().size);
  for (const unsigned flags : {0u, unsigned{SUCL_FLAG_MAY_BLOCK}}) {
    std::vector<numbers> out, in;
    std::vector<sucl_operation> parts;
    for (std::size_t r = 0; r < size; ++r) {
      out.push_back(filled(100000 + r, module().rank));
      in.emplace_back(100000 + static_cast<std::size_t>(module().rank));
    }
    for (std::size_t r = 0; r < size; ++r) parts.push_back(send_of(out[r], static_cast<int>(r)));
    for (std::size_t r = 0; r < size; ++r) parts.push_back(recv_into(in[r], static_cast<int>(r)));
    sucl_operation around = message(SUCL_KIND_SENDRECV, next(), 9);
    std::int32_t mine = module().rank, theirs = -1;
    around.source = previous();
    around.send = &mine;
    around.recv = &theirs;
    around.count = around.recv_count = 1;
    parts.push_back(around);
    sucl_operation group = make_operation(SUCL_KIND_GROUP);
    group.flags = flags;
    group.parts = parts.data();
    group.part_count = parts.size();
    ASSERT_EQ(comm.run(group), SUCL_SUCCESS) << module().error.message;
    for (std::size_t r = 0; r < size; ++r)
      EXPECT_EQ(in[r], filled(in[r].size(), static_cast<int>(r)));
    EXPECT_EQ(theirs, previous());
  }
}

TEST(groups, may_be_empty) {
  backend_comm comm(module().world);
  EXPECT_EQ(comm.run(make_operation(SUCL_KIND_GROUP)), SUCL_SUCCESS);
}

TEST(groups, refuse_what_is_no_message) {
  backend_comm comm(module().world);
  const sucl_operation part = make_operation(SUCL_KIND_BARRIER);
  sucl_operation group = make_operation(SUCL_KIND_GROUP);
  group.parts = &part;
  group.part_count = 1;
  EXPECT_EQ(comm.run(group), SUCL_ERROR_INVALID_ARGUMENT);
}

// Each rank sends `sent` elements to the next one, which expects `expected`.
sucl_status pass(backend_comm& comm, std::size_t sent, std::size_t expected, unsigned flags) {
  const numbers out = filled(sent, 0);
  numbers in(expected);
  sucl_operation r = recv_into(in, previous(), 17);
  sucl_operation s = send_of(out, next(), 17);
  r.flags = flags;
  sucl_request* sending = nullptr;
  EXPECT_EQ(comm.post(s, &sending), SUCL_SUCCESS);
  const sucl_status status = comm.run(r);
  const reported error = module().error;
  EXPECT_EQ(comm.finish(sending), SUCL_SUCCESS);
  module().error = error;
  return status;
}

bool says(const std::string& word) {
  return module().error.message.find(word) != std::string::npos;
}

TEST(lengths, that_differ_are_errors_that_name_them) {
  backend_comm comm(module().world);
  for (const unsigned flags : {0u, unsigned{SUCL_FLAG_MAY_BLOCK}}) {
    EXPECT_EQ(pass(comm, 8, 8, flags), SUCL_SUCCESS);
    EXPECT_EQ(pass(comm, 3, 8, flags), SUCL_ERROR_INVALID_COUNT);
    EXPECT_TRUE(says("3 elements") && says("8") && says("tag 17")) << module().error.message;
    EXPECT_EQ(pass(comm, 0, 8, flags), SUCL_ERROR_INVALID_COUNT);
    EXPECT_TRUE(says("0 elements")) << module().error.message;
    EXPECT_EQ(pass(comm, 8, 5, flags), SUCL_ERROR_INVALID_COUNT);
    EXPECT_TRUE(says("5") && (says("longer") || says("8 elements"))) << module().error.message;
    EXPECT_FALSE(module().error.hint.empty());
    // A long one is not copied into the library before it is refused.
    EXPECT_EQ(pass(comm, 300000, 5, flags), SUCL_ERROR_INVALID_COUNT);
    EXPECT_EQ(pass(comm, 8, 8, flags), SUCL_SUCCESS) << module().error.message;
  }
}

TEST(lengths, of_parts_are_compared_and_the_other_parts_arrive) {
  backend_comm comm(module().world);
  const numbers few = filled(3, 1), many = filled(50000, 2);
  for (const bool longer : {false, true}) {
    numbers in_first(longer ? 2 : 4), in_second(many.size());
    std::vector<sucl_operation> parts{recv_into(in_first, previous(), 1),
                                      recv_into(in_second, previous(), 2), send_of(few, next(), 1),
                                      send_of(many, next(), 2)};
    sucl_operation group = make_operation(SUCL_KIND_GROUP);
    group.parts = parts.data();
    group.part_count = parts.size();
    EXPECT_EQ(comm.run(group), SUCL_ERROR_INVALID_COUNT);
    EXPECT_TRUE(says("tag 1")) << module().error.message;
    EXPECT_EQ(in_second, many);
  }
}

TEST(lengths, of_an_exchange_are_compared) {
  if (module().size < 2) GTEST_SKIP() << "needs a peer";
  backend_comm comm(module().world, {{"max_count", "100"}});
  const auto size = static_cast<std::size_t>(module().size);
  numbers out(size), in(size * 2);
  std::vector<std::uint64_t> ones(size, 1), twos(size, 2), displs(size);
  std::iota(displs.begin(), displs.end(), std::uint64_t{0});
  twos[static_cast<std::size_t>(module().rank)] = 1;
  sucl_operation o = message(SUCL_KIND_ALLTOALLV, 0, 0);
  o.send = out.data();
  o.recv = in.data();
  o.send_counts = ones.data();
  o.recv_counts = twos.data();
  o.send_displs = o.recv_displs = displs.data();
  EXPECT_EQ(comm.run(o), SUCL_ERROR_INVALID_COUNT);
  EXPECT_TRUE(says("1 element,")) << module().error.message;
}

TEST(messages, with_wrong_arguments_are_refused) {
  backend_comm comm(module().world);
  numbers data(4);
  for (const int peer : {-2, -1, module().size}) {
    EXPECT_EQ(comm.run(send_of(data, peer)), SUCL_ERROR_INVALID_RANK);
    EXPECT_EQ(comm.run(recv_into(data, peer)), SUCL_ERROR_INVALID_RANK);
    EXPECT_TRUE(says(std::to_string(peer))) << module().error.message;
  }
  EXPECT_EQ(comm.run(send_of(data, 0, -1)), SUCL_ERROR_INVALID_ARGUMENT);
}

TEST(communicators, are_given_up_without_waiting) {
  numbers data(4);
  sucl_group* own = nullptr;
  ASSERT_EQ(module().control->group_split(module().world, 0, 0, &own), SUCL_SUCCESS);
  {
    backend_comm comm(own);
    sucl_request* receiving = nullptr;
    ASSERT_EQ(comm.post(recv_into(data, previous()), &receiving), SUCL_SUCCESS);
    sucl_request* meeting = nullptr;
    if (module().rank == 0) {
      ASSERT_EQ(comm.post(make_operation(SUCL_KIND_BARRIER), &meeting), SUCL_SUCCESS);
    }
    module().backend->abort(comm.get());
    int32_t done = 0;
    EXPECT_EQ(module().backend->test(comm.get(), receiving, &done), SUCL_ERROR_SHUT_DOWN);
    EXPECT_EQ(comm.run(make_operation(SUCL_KIND_BARRIER)), SUCL_ERROR_SHUT_DOWN);
  }
  // Others do not suffer.
  sucl_group* another = nullptr;
  ASSERT_EQ(module().control->group_split(module().world, 0, 0, &another), SUCL_SUCCESS);
  {
    backend_comm comm(another);
    EXPECT_EQ(comm.run(make_operation(SUCL_KIND_BARRIER)), SUCL_SUCCESS);
  }
  module().control->group_free(another);
}

TEST(communicators, are_destroyed_by_each_rank_when_it_likes) {
  for (const int first : {0, module().size - 1}) {
    auto comm = std::make_unique<backend_comm>(module().world);
    EXPECT_EQ(comm->run(make_operation(SUCL_KIND_BARRIER)), SUCL_SUCCESS);
    if (module().rank == first) comm.reset();
    module().meet();
    comm.reset();
  }
}

// Libraries have some thousand communicators: what is destroyed must be free again.
TEST(communicators, leave_nothing_behind) {
  sucl_group* alone = nullptr;
  ASSERT_EQ(module().control->group_split(module().world, module().rank, 0, &alone), SUCL_SUCCESS);
  for (int i = 0; i < 1500; ++i) {
    backend_comm comm(alone);
    if (i % 500 == 0) {
      EXPECT_EQ(comm.run(make_operation(SUCL_KIND_BARRIER)), SUCL_SUCCESS);
    }
  }
  module().control->group_free(alone);
}

}  // namespace
}  // namespace sucl::test

int main(int argc, char** argv) { return sucl::test::run_tests(argc, argv); }
