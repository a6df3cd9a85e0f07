// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The backend nccl over a library that plays NCCL, against the mock backend; and what it says when
// something is missing, wrong or fails. What real devices do is another matter: tests/device.
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <numeric>

namespace {

using namespace sucl;
using namespace sucl::testing;

using settings = std::vector<std::pair<std::string, std::string>>;
using values = std::vector<std::int32_t>;
using counts = std::vector<std::uint64_t>;

core::backend_source source(const std::string& name, settings s = {}) {
  return {name, SUCL_TEST_MODULES "/libsucl_backend_" + name + ".so", std::move(s)};
}

/// A variable that the fakes read, for the length of a test.
class variable {
 public:
  variable(const char* name, const char* value) : m_name(name) { setenv(name, value, 1); }
  ~variable() { unsetenv(m_name); }

 private:
  const char* m_name;
};

// Runs ranks that have devices of their own.
void for_ranks(const core::backend_source& from, int size,
               const std::function<void(const core::backend_comm&, const sucl_comm_info&)>& body) {
  core::registry registry;
  const auto& handle = registry.open(from);
  run_ranks(size, [&](const sucl_comm_info& info) {
    int device = info.rank;
    sucl_comm_info own = info;
    own.native_device = &device;
    const core::backend_comm c = create_comm(handle, own);
    body(c, info);
    destroy(c);
  });
}

/// An operation on memory of its own.
struct example {
  std::string name;
  sucl_operation operation{};
  values send, recv;
  std::size_t result_end = ~std::size_t{0};  ///< what lies behind is scrap
  std::vector<std::unique_ptr<counts>> arrays;
  std::vector<sucl_operation> parts;

  const std::uint64_t* array(counts c) {
    arrays.push_back(std::make_unique<counts>(std::move(c)));
    return arrays.back()->data();
  }
  void bind() {
    const bool in_place = (operation.flags & SUCL_FLAG_IN_PLACE) != 0;
    operation.send = in_place ? nullptr : send.data();
    operation.recv = recv.data();
    for (auto& p : parts) p.send = send.data(), p.recv = recv.data();
    operation.parts = parts.data();
    operation.part_count = parts.size();
  }
};

values inputs(int rank, std::size_t n) {
  values v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 1000 * (rank + 1) + static_cast<int>(i * 7 % 31);
  return v;
}

counts starts_of(const counts& sizes) {
  counts starts;
  std::uint64_t at = 1;
  for (const auto n : sizes) {
    starts.push_back(at);
    at += n + 2;
  }
  return starts;
}

example make(kind k, int rank, int size, std::uint64_t n, bool in_place, op o = op::sum) {
  const auto p = static_cast<std::uint64_t>(size);
  example e;
  e.name = name(k);
  e.operation = operation(k, type::int32, n, reduces(k) ? o : op::none);
  e.operation.root = size - 1;
  e.operation.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
  e.send = inputs(rank, 4 * p * (n + p + 4));
  e.recv = in_place ? e.send : values(e.send.size(), -1);
  counts sizes;
  for (std::uint64_t r = 0; r < p; ++r) sizes.push_back(r % 3 == 1 ? 0 : n + r);
  const auto me = static_cast<std::size_t>(rank);
  switch (k) {
    case kind::reduce_scatter:
      e.operation.recv_counts = e.array(sizes);
      if (in_place) e.result_end = sizes[me];
      break;
    case kind::reduce_scatter_block:
      if (in_place) e.result_end = n;
      break;
    case kind::allgatherv:
    case kind::gatherv:
      e.operation.count = sizes[me];
      e.operation.recv_displs = e.array(starts_of(sizes));
      e.operation.recv_counts = e.array(sizes);
      break;
    case kind::scatterv:
      e.operation.count = sizes[me];
      e.operation.send_displs = e.array(starts_of(sizes));
      e.operation.send_counts = e.array(sizes);
      break;
    case kind::alltoallv:
      for (std::uint64_t r = 0; r < p; ++r) sizes[r] = n + r + me;
      e.operation.send_displs = e.operation.recv_displs = e.array(starts_of(sizes));
      e.operation.send_counts = e.operation.recv_counts = e.array(sizes);
      break;
    default: break;
  }
  return e;
}

std::vector<example> examples(int rank, int size, std::uint64_t n) {
  std::vector<example> all;
  const bool root = rank == size - 1;
  for (const bool in_place : {false, true}) {
    for (const kind k :
         {kind::barrier, kind::allreduce, kind::reduce_scatter, kind::reduce_scatter_block,
          kind::allgather, kind::allgatherv, kind::alltoall, kind::alltoallv})
      all.push_back(make(k, rank, size, n, in_place));
    for (const kind k : {kind::broadcast, kind::reduce, kind::gather, kind::gatherv, kind::scatter,
                         kind::scatterv})
      all.push_back(make(k, rank, size, n, in_place && root));
    for (const op o : {op::prod, op::min, op::max})
      all.push_back(make(kind::allreduce, rank, size, n, in_place, o));
  }
  return all;
}

void run_examples(const core::backend_comm& c, std::vector<example>& all, const char* who) {
  for (example& e : all) {
    e.bind();
    const flight done = run(c, e.operation);
    EXPECT_EQ(done.status, SUCL_SUCCESS) << who << ": " << e.name << ": " << done.error.message;
  }
}

class xccl : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, xccl, ::testing::Values(1, 2, 3, 5));

TEST_P(xccl, does_what_mock_does) {
  const int size = GetParam();
  for (const std::uint64_t n : {0, 1, 6}) {
    std::vector<std::vector<example>> wanted(static_cast<std::size_t>(size));
    for_ranks(source("mock"), size, [&](const core::backend_comm& c, const sucl_comm_info& info) {
      auto all = examples(info.rank, size, n);
      run_examples(c, all, "mock");
      wanted[static_cast<std::size_t>(info.rank)] = std::move(all);
    });
    for_ranks(source("nccl"), size, [&](const core::backend_comm& c, const sucl_comm_info& info) {
      auto all = examples(info.rank, size, n);
      run_examples(c, all, "nccl");
      for (std::size_t i = 0; i < all.size(); ++i) {
        const example& want = wanted[static_cast<std::size_t>(info.rank)][i];
        const auto end = std::min(want.recv.size(), want.result_end);
        EXPECT_EQ(values(all[i].recv.begin(), all[i].recv.begin() + static_cast<long>(end)),
                  values(want.recv.begin(), want.recv.begin() + static_cast<long>(end)))
            << want.name << " of " << n << ", example " << i << ", rank " << info.rank << " of "
            << size;
        EXPECT_EQ(all[i].send, want.send) << want.name;
      }
    });
  }
}

// The library orders its own work, whatever the streams, but not a copy that comes with it.
TEST_P(xccl, scratch_memory_is_of_one_stream) {
  const int size = GetParam();
  const variable late("FAKE_NCCL_LATE", "1");
  for_ranks(source("nccl"), size, [&](const core::backend_comm& c, const sucl_comm_info& info) {
    int program_stream = 0;
    const sucl_operation first = [&] {
      sucl_operation o = operation(kind::barrier, type::bytes, 0);
      o.stream = &program_stream;
      return o;
    }();
    std::vector<example> all;
    all.push_back(make(kind::alltoall, info.rank, size, 5, true));
    const example& swapped = all.front();
    const values before = swapped.recv;
    EXPECT_EQ(post(c, first).status, SUCL_SUCCESS);  // writes its scratch memory later
    run_examples(c, all, "nccl");
    for (int r = 0; r < size; ++r)
      for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(swapped.recv[static_cast<std::size_t>(r) * 5 + i],
                  inputs(r, before.size())[static_cast<std::size_t>(info.rank) * 5 + i])
            << "from rank " << r << ", element " << i;
  });
}

TEST_P(xccl, groups_of_messages) {
  const int size = GetParam();
  for_ranks(source("nccl", {{"messages", "true"}}), size,
            [&](const core::backend_comm& c, const sucl_comm_info& info) {
              example e;
              e.operation = operation(kind::group, type::bytes, 0);
              e.send = inputs(info.rank, 4);
              e.recv = values(4, -1);
              e.parts.push_back(operation(kind::send, type::int32, 4));
              e.parts.back().root = (info.rank + 1) % size;
              e.parts.push_back(operation(kind::recv, type::int32, 4));
              e.parts.back().source = (info.rank + size - 1) % size;
              e.bind();
              EXPECT_EQ(run(c, e.operation).status, SUCL_SUCCESS);
              EXPECT_EQ(e.recv, inputs((info.rank + size - 1) % size, 4));
              auto pair = operation(kind::sendrecv, type::int32, 2);
              pair.root = e.parts[0].root;
              pair.source = e.parts[1].source;
              pair.recv_count = 2;
              pair.send = e.send.data() + 2;
              pair.recv = e.recv.data();
              EXPECT_EQ(run(c, pair).status, SUCL_SUCCESS);
              EXPECT_EQ(e.recv[0], inputs(pair.source, 4)[2]);
            });
}

// On the caller's stream an operation is over, for the core, when it is posted.
TEST(xccl_streams, leave_nothing_to_test) {
  for_ranks(source("nccl"), 2, [&](const core::backend_comm& c, const sucl_comm_info& info) {
    example e = make(kind::allreduce, info.rank, 2, 5, false);
    e.bind();
    int stream = 0;
    e.operation.stream = &stream;
    const flight posted = post(c, e.operation);
    EXPECT_EQ(posted.status, SUCL_SUCCESS);
    EXPECT_EQ(posted.request, nullptr);
    EXPECT_EQ(e.recv[4], inputs(0, 5)[4] + inputs(1, 5)[4]);
  });
}

TEST(xccl_streams, complex_sums_are_sums_of_reals) {
  for_ranks(source("nccl"), 2, [&](const core::backend_comm& c, const sucl_comm_info&) {
    std::vector<double> x{1, 2, 3, 4}, y(4);
    auto o = operation(kind::allreduce, type::complex_fp64, 2, op::sum);
    o.send = x.data();
    o.recv = y.data();
    EXPECT_EQ(run(c, o).status, SUCL_SUCCESS);
    EXPECT_EQ(y, (std::vector<double>{2, 4, 6, 8}));
  });
}

bool supports(const core::backend_handle& b, kind k, type t, op o,
              sucl_memory memory = SUCL_MEMORY_DEVICE) {
  sucl_query q{};
  q.struct_size = sizeof q;
  q.kind = static_cast<sucl_kind>(k);
  q.type = static_cast<sucl_type>(t);
  q.op = static_cast<sucl_op>(o);
  q.memory = memory;
  sucl_capability a{};
  a.struct_size = sizeof a;
  EXPECT_EQ(b.table->query(b.state, &q, &a), SUCL_SUCCESS);
  EXPECT_TRUE(a.flags & SUCL_CAP_STREAM_ORDERED);
  return a.supported != 0;
}

TEST(xccl_query, says_what_the_library_has) {
  core::registry registry;
  const auto& b = registry.open(source("nccl"));
  EXPECT_TRUE(supports(b, kind::allreduce, type::bf16, op::sum));
  EXPECT_TRUE(supports(b, kind::allreduce, type::fp16, op::avg));
  EXPECT_TRUE(supports(b, kind::alltoallv, type::int64_loc, op::none));
  EXPECT_FALSE(supports(b, kind::allreduce, type::int16, op::sum));
  EXPECT_FALSE(supports(b, kind::allreduce, type::int32, op::avg));
  EXPECT_FALSE(supports(b, kind::allreduce, type::int32, op::bit_or));
  EXPECT_FALSE(supports(b, kind::allreduce, type::complex_fp32, op::prod));
  EXPECT_TRUE(supports(b, kind::allreduce, type::int64, op::min));
  // There a number wins over a NaN.
  for (const type t : {type::fp16, type::bf16, type::fp32, type::fp64}) {
    EXPECT_FALSE(supports(b, kind::allreduce, t, op::min));
    EXPECT_FALSE(supports(b, kind::reduce, t, op::max));
  }
  EXPECT_FALSE(supports(b, kind::scan, type::fp32, op::sum));
  EXPECT_FALSE(supports(b, kind::send, type::fp32, op::none));
  EXPECT_FALSE(supports(b, kind::allreduce, type::fp32, op::sum, SUCL_MEMORY_SYSTEM));
}

TEST(xccl_query, exact_leaves_out_what_is_rounded_otherwise) {
  core::registry registry;
  const auto& b = registry.open(source("nccl", {{"exact", "true"}, {"messages", "1"}}));
  EXPECT_FALSE(supports(b, kind::allreduce, type::bf16, op::sum));
  EXPECT_FALSE(supports(b, kind::allreduce, type::fp32, op::avg));
  EXPECT_TRUE(supports(b, kind::allreduce, type::fp32, op::sum));
  EXPECT_FALSE(supports(b, kind::allreduce, type::fp64, op::sum));
  EXPECT_FALSE(supports(b, kind::allreduce, type::complex_fp64, op::sum));
  EXPECT_TRUE(supports(b, kind::send, type::fp32, op::none));
}

error_info refusal(const core::backend_source& from) {
  core::registry registry;
  try {
    registry.open(from);
  } catch (const error& e) {
    return e.info();
  }
  ADD_FAILURE() << "it was opened";
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(xccl_open, tells_version_path_and_other_copies) {
  core::registry registry;
  const auto& b = registry.open(source("nccl"));
  EXPECT_TRUE(has(b.description, "NCCL 2.28.9, ")) << b.description;
  EXPECT_TRUE(has(b.description, SUCL_TEST_FAKES "/first/libnccl.so.2")) << b.description;
  EXPECT_FALSE(has(b.description, "another copy")) << b.description;
  const std::string other = SUCL_TEST_FAKES "/second/libnccl.so.2";
  core::registry again;
  const auto& c = again.open(source("nccl", {{"library", other}}));
  EXPECT_TRUE(has(c.description, "NCCL 2.28.9, " + other)) << c.description;
  EXPECT_TRUE(has(c.description, "another copy is loaded too: " SUCL_TEST_FAKES "/first"))
      << c.description;
}

TEST(xccl_open, says_what_is_missing_and_what_to_do) {
  const auto library = refusal(source("nccl", {{"library", "/nowhere/libnccl.so.2"}}));
  EXPECT_EQ(library.code, errc::unavailable);
  EXPECT_TRUE(has(library.message, "cannot load '/nowhere/libnccl.so.2'")) << library.message;
  EXPECT_TRUE(has(library.hint, "SUCL_BACKEND_NCCL_LIBRARY")) << library.hint;
  const auto other = refusal(source("nccl", {{"library", "libdl.so.2"}}));
  EXPECT_TRUE(has(other.message, "has no ncclGetVersion")) << other.message;
  if (!dlopen("libamdhip64.so", RTLD_NOW)) {
    const auto device = refusal(source("rccl"));
    EXPECT_EQ(device.code, errc::unavailable);
    EXPECT_TRUE(has(device.message, "there is no libamdhip64.so")) << device.message;
  }
}

TEST(xccl_open, refuses_old_versions_and_unknown_settings) {
  {
    const variable old("FAKE_NCCL_VERSION", "2804");
    const auto e = refusal(source("nccl"));
    EXPECT_EQ(e.code, errc::unavailable);
    EXPECT_TRUE(has(e.message, "is NCCL 2.8.4, too old")) << e.message;
  }
  const auto e = refusal(source("nccl", {{"libary", "x"}}));
  EXPECT_EQ(e.code, errc::configuration);
  EXPECT_TRUE(has(e.message, "libary = 'x'")) << e.message;
  EXPECT_EQ(refusal(source("nccl", {{"exact", "perhaps"}})).code, errc::configuration);
  for (const char* word : {"on", "off", "yes", "no", "True", "0"}) {
    core::registry registry;
    EXPECT_NE(registry.try_open(source("nccl", {{"exact", word}})), nullptr) << word;
  }
}

TEST(xccl_errors, a_rank_without_a_device_is_told_to_all) {
  core::registry registry;
  const auto& handle = registry.open(source("nccl"));
  run_ranks(3, [&](const sucl_comm_info& info) {
    int device = info.rank;
    sucl_comm_info own = info;
    own.native_device = info.rank == 1 ? nullptr : &device;
    sucl_backend_comm* comm = nullptr;
    const auto status = handle.table->comm_create(handle.state, &own, &comm);
    EXPECT_EQ(status, SUCL_ERROR_UNAVAILABLE);
    const auto e = core::take_last(status);
    EXPECT_TRUE(has(e.message, info.rank == 1 ? "not on a CUDA device" : "rank 1 cannot use it"))
        << e.message;
  });
}

TEST(xccl_errors, ranks_that_share_a_device_are_refused) {
  core::registry registry;
  const auto& handle = registry.open(source("nccl"));
  run_ranks(3, [&](const sucl_comm_info& info) {
    int device = info.rank == 2 ? 0 : info.rank;
    sucl_comm_info own = info;
    own.native_device = &device;
    sucl_backend_comm* comm = nullptr;
    const auto status = handle.table->comm_create(handle.state, &own, &comm);
    EXPECT_EQ(status, SUCL_ERROR_UNAVAILABLE);
    const auto e = core::take_last(status);
    EXPECT_TRUE(has(e.message, "ranks 0 and 2 share a device, which NCCL refuses")) << e.message;
  });
}

// It takes long, and much memory.
TEST(xccl, the_library_is_asked_for_a_communicator_when_one_is_used) {
  core::registry registry;
  const auto& handle = registry.open(source("nccl"));
  const variable fail("FAKE_NCCL_FAIL", "ncclCommInitRank");
  run_ranks(2, [&](const sucl_comm_info& info) {
    int device = info.rank;
    sucl_comm_info own = info;
    own.native_device = &device;
    destroy(create_comm(handle, own));
    const auto c = create_comm(handle, own);
    example e = make(kind::allreduce, info.rank, 2, 3, false);
    e.bind();
    for (int i = 0; i < 2; ++i) {
      const flight f = post(c, e.operation);
      EXPECT_EQ(f.status, SUCL_ERROR_NATIVE);
      EXPECT_TRUE(has(f.error.message, "ncclCommInitRank failed")) << f.error.message;
    }
    destroy(c);
  });
}

TEST(xccl_errors, of_the_library_are_passed_on) {
  for_ranks(source("nccl"), 1, [&](const core::backend_comm& c, const sucl_comm_info&) {
    example e = make(kind::allreduce, 0, 1, 3, false);
    e.bind();
    {
      const variable fail("FAKE_NCCL_FAIL", "ncclAllReduce");
      const flight f = post(c, e.operation);
      EXPECT_EQ(f.status, SUCL_ERROR_NATIVE);
      EXPECT_EQ(f.error.native_code, 3);
      EXPECT_TRUE(
          has(f.error.message, "ncclAllReduce failed: the fake is configured to fail: in a test"))
          << f.error.message;
    }
    {
      const variable lost("FAKE_NCCL_ASYNC", "6");
      EXPECT_EQ(post(c, e.operation).status, SUCL_ERROR_PEER_LOST);
    }
    flight f = post(c, e.operation);
    const variable lost("FAKE_NCCL_ASYNC", "6");
    f = wait(c, f);
    EXPECT_EQ(f.status, SUCL_ERROR_PEER_LOST);
  });
}

TEST(xccl_errors, abort_gives_everything_up) {
  for_ranks(source("nccl"), 2, [&](const core::backend_comm& c, const sucl_comm_info& info) {
    example e = make(kind::allreduce, info.rank, 2, 3, false);
    e.bind();
    EXPECT_EQ(post(c, e.operation).status, SUCL_SUCCESS);
    c.table->abort(c.comm);
  });
}

}  // namespace
