// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The mock backend against definitions written out once more, for every kind and type and op.
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>

namespace {

using namespace sucl;
using namespace sucl::testing;

core::backend_source source(std::vector<std::pair<std::string, std::string>> settings = {}) {
  return {"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", std::move(settings)};
}

using values = std::vector<std::int32_t>;
using counts = std::vector<std::uint64_t>;

// Element i of the input of rank r.
std::int32_t input(int r, std::uint64_t i) { return 1000 * (r + 1) + static_cast<std::int32_t>(i); }

values inputs(int r, std::uint64_t n) {
  values v(n);
  for (std::uint64_t i = 0; i < n; ++i) v[i] = input(r, i);
  return v;
}

// Sum of element i over ranks first..last-1.
std::int32_t sum(int first, int last, std::uint64_t i) {
  std::int32_t s = 0;
  for (int r = first; r < last; ++r) s += input(r, i);
  return s;
}

struct fixture {
  core::backend_comm c;
  int rank;
  int size;
  std::uint64_t n;  // count of the operation
};

void for_ranks(int size, const std::function<void(const fixture&)>& body) {
  core::registry registry;
  const auto& handle = registry.open(source());
  run_ranks(size, [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    for (const std::uint64_t n : {0, 1, 5}) body({c, info.rank, info.size, n});
    destroy(c);
  });
}

void expect(const fixture& f, const sucl_operation& o, const values& got, const values& want) {
  const flight done = run(f.c, o);
  EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
  EXPECT_EQ(got, want) << name(static_cast<kind>(o.kind)) << " of " << f.n << " on rank " << f.rank
                       << " of " << f.size;
}

class mock : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, mock, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(mock, barrier_ends) {
  for_ranks(GetParam(), [](const fixture& f) {
    EXPECT_EQ(run(f.c, operation(kind::barrier, type::bytes, 0)).status, SUCL_SUCCESS);
  });
}

TEST_P(mock, broadcast) {
  for_ranks(GetParam(), [](const fixture& f) {
    const int root = f.size - 1;
    values in = inputs(f.rank, f.n), out(f.n, -1);
    auto o = operation(kind::broadcast, type::int32, f.n);
    o.root = root;
    o.send = in.data();
    o.recv = out.data();
    expect(f, o, out, f.rank == root ? values(f.n, -1) : inputs(root, f.n));
    if (f.rank == root) o.flags = SUCL_FLAG_IN_PLACE, o.recv = in.data(), o.send = nullptr;
    const flight done = run(f.c, o);
    EXPECT_EQ(done.status, SUCL_SUCCESS);
    EXPECT_EQ(f.rank == root ? in : out, inputs(root, f.n));
  });
}

TEST_P(mock, reductions) {
  for (const kind k : {kind::reduce, kind::allreduce, kind::scan, kind::exscan}) {
    for (const bool in_place : {false, true}) {
      for_ranks(GetParam(), [&](const fixture& f) {
        const int root = f.size / 2;
        values in = inputs(f.rank, f.n);
        values out = in_place ? in : values(f.n, -1);
        values want = out;
        int last = f.size;
        if (k == kind::scan) last = f.rank + 1;
        if (k == kind::exscan) last = f.rank;
        if (last > 0 && (k != kind::reduce || f.rank == root))
          for (std::uint64_t i = 0; i < f.n; ++i) want[i] = sum(0, last, i);
        auto o = operation(k, type::int32, f.n, op::sum);
        o.root = root;
        o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
        o.send = in_place ? nullptr : in.data();
        o.recv = out.data();
        expect(f, o, out, want);
      });
    }
  }
}

TEST_P(mock, reduce_scatter) {
  for (const bool in_place : {false, true}) {
    for_ranks(GetParam(), [&](const fixture& f) {
      counts parts(static_cast<std::size_t>(f.size));
      for (std::size_t r = 0; r < parts.size(); ++r) parts[r] = r % 3 == 2 ? 0 : f.n + r;
      const auto total = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
      const auto before = std::accumulate(parts.begin(), parts.begin() + f.rank, std::uint64_t{0});
      values in = inputs(f.rank, total);
      values out = in_place ? in : values(total, -1);
      values want = out;
      for (std::uint64_t i = 0; i < parts[static_cast<std::size_t>(f.rank)]; ++i)
        want[i] = sum(0, f.size, before + i);
      auto o = operation(kind::reduce_scatter, type::int32, 0, op::sum);
      o.recv_counts = parts.data();
      o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
      o.send = in_place ? nullptr : in.data();
      o.recv = out.data();
      expect(f, o, out, want);

      values block = inputs(f.rank, f.n * static_cast<std::uint64_t>(f.size));
      values block_out = in_place ? block : values(block.size(), -1);
      want = block_out;
      for (std::uint64_t i = 0; i < f.n; ++i)
        want[i] = sum(0, f.size, f.n * static_cast<std::uint64_t>(f.rank) + i);
      o = operation(kind::reduce_scatter_block, type::int32, f.n, op::sum);
      o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
      o.send = in_place ? nullptr : block.data();
      o.recv = block_out.data();
      expect(f, o, block_out, want);
    });
  }
}

// Counts n, n+1, ... with a gap of one element after each part.
struct varied {
  counts sizes, displs;
  std::uint64_t end = 0;
  varied(int size, std::uint64_t n) {
    for (int r = 0; r < size; ++r) {
      sizes.push_back(n + static_cast<std::uint64_t>(r));
      displs.push_back(end);
      end += sizes.back() + 1;
    }
  }
};

TEST_P(mock, gathers) {
  for (const bool rooted : {false, true}) {
    for (const bool in_place : {false, true}) {
      for_ranks(GetParam(), [&](const fixture& f) {
        const int root = f.size - 1;
        const bool receives = !rooted || f.rank == root;
        const auto me = static_cast<std::size_t>(f.rank);
        values all;
        for (int r = 0; r < f.size; ++r)
          for (std::uint64_t i = 0; i < f.n; ++i) all.push_back(input(r, i));
        values in = inputs(f.rank, f.n);
        values out(all.size(), -1);
        if (in_place) std::copy(in.begin(), in.end(), out.begin() + static_cast<long>(me * f.n));
        auto o = operation(rooted ? kind::gather : kind::allgather, type::int32, f.n);
        o.root = root;
        o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
        o.send = in_place ? nullptr : in.data();
        o.recv = out.data();
        expect(f, o, out, receives ? all : values(out));

        const varied v(f.size, f.n);
        in = inputs(f.rank, v.sizes[me]);
        values want(v.end, -1);
        for (int r = 0; r < f.size; ++r)
          for (std::uint64_t i = 0; i < v.sizes[static_cast<std::size_t>(r)]; ++i)
            want[v.displs[static_cast<std::size_t>(r)] + i] = input(r, i);
        out.assign(v.end, -1);
        const std::uint64_t offset = receives ? v.displs[me] : 0;
        if (in_place) std::copy(in.begin(), in.end(), out.begin() + static_cast<long>(offset));
        if (!receives) want = out;
        o = operation(rooted ? kind::gatherv : kind::allgatherv, type::int32, v.sizes[me]);
        o.root = root;
        o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
        o.send = in_place ? nullptr : in.data();
        o.recv = out.data();
        o.recv_counts = receives ? v.sizes.data() : nullptr;
        o.recv_displs = receives ? v.displs.data() : nullptr;
        expect(f, o, out, want);
      });
    }
  }
}

TEST_P(mock, scatters) {
  for (const bool in_place : {false, true}) {
    for_ranks(GetParam(), [&](const fixture& f) {
      const int root = f.size / 2;
      const bool keeps = in_place && f.rank == root;
      const auto me = static_cast<std::uint64_t>(f.rank);
      values in = inputs(root, f.n * static_cast<std::uint64_t>(f.size)), out(f.n, -1);
      auto o = operation(kind::scatter, type::int32, f.n);
      o.root = root;
      o.flags = keeps ? SUCL_FLAG_IN_PLACE : 0;
      o.send = keeps ? nullptr : in.data();
      o.recv = keeps ? in.data() : out.data();
      values want(f.n);
      for (std::uint64_t i = 0; i < f.n; ++i) want[i] = input(root, f.n * me + i);
      expect(f, o, keeps ? in : out, keeps ? inputs(root, in.size()) : want);

      const varied v(f.size, f.n);
      in = inputs(root, v.end);
      out.assign(v.sizes[me], -1);
      o = operation(kind::scatterv, type::int32, v.sizes[me]);
      o.root = root;
      o.flags = keeps ? SUCL_FLAG_IN_PLACE : 0;
      o.send = keeps ? nullptr : in.data();
      o.recv = keeps ? in.data() : out.data();
      o.send_counts = f.rank == root ? v.sizes.data() : nullptr;
      o.send_displs = f.rank == root ? v.displs.data() : nullptr;
      want.resize(v.sizes[me]);
      for (std::uint64_t i = 0; i < want.size(); ++i) want[i] = input(root, v.displs[me] + i);
      expect(f, o, keeps ? in : out, keeps ? inputs(root, in.size()) : want);
    });
  }
}

TEST_P(mock, alltoalls) {
  for (const bool in_place : {false, true}) {
    for_ranks(GetParam(), [&](const fixture& f) {
      const auto size = static_cast<std::uint64_t>(f.size), me = static_cast<std::uint64_t>(f.rank);
      values in = inputs(f.rank, f.n * size), out = in_place ? in : values(f.n * size, -1), want;
      for (int r = 0; r < f.size; ++r)
        for (std::uint64_t i = 0; i < f.n; ++i) want.push_back(input(r, f.n * me + i));
      auto o = operation(kind::alltoall, type::int32, f.n);
      o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
      o.send = in_place ? nullptr : in.data();
      o.recv = out.data();
      expect(f, o, out, want);

      // Rank i gives i + j + n elements to rank j: symmetric, as in place needs it.
      const auto between = [&](std::uint64_t a, std::uint64_t b) { return a + b + f.n; };
      counts sizes, displs;
      std::uint64_t end = 0;
      for (std::uint64_t r = 0; r < size; ++r) {
        sizes.push_back(between(me, r));
        displs.push_back(end);
        end += sizes.back();
      }
      in = inputs(f.rank, end);
      out = in_place ? in : values(end, -1);
      want.clear();
      for (std::uint64_t r = 0; r < size; ++r) {
        std::uint64_t offset = 0;
        for (std::uint64_t j = 0; j < me; ++j) offset += between(r, j);
        for (std::uint64_t i = 0; i < between(r, me); ++i)
          want.push_back(input(static_cast<int>(r), offset + i));
      }
      o = operation(kind::alltoallv, type::int32, 0);
      o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
      o.send = in_place ? nullptr : in.data();
      o.recv = out.data();
      o.send_counts = o.recv_counts = sizes.data();
      o.send_displs = o.recv_displs = displs.data();
      expect(f, o, out, want);
    });
  }
}

// Three ranks' values of one element, and what an op makes of them.
template <class T>
void reduces_to(type t, op o, std::vector<T> in, T want, const char* what) {
  core::registry registry;
  const auto& handle = registry.open(source());
  run_ranks(static_cast<int>(in.size()), [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    T got{};
    auto operation_ = operation(kind::allreduce, t, 1, o);
    EXPECT_EQ(operation_.element_size, sizeof(T));
    operation_.send = &in[static_cast<std::size_t>(info.rank)];
    operation_.recv = &got;
    EXPECT_EQ(run(c, operation_).status, SUCL_SUCCESS) << what;
    EXPECT_EQ(std::memcmp(&got, &want, sizeof(T)), 0) << what << " on rank " << info.rank;
    destroy(c);
  });
}

#define REDUCES(type_name, op_name, CppType, want, ...)                                     \
  reduces_to<CppType>(type::type_name, op::op_name, std::vector<CppType> __VA_ARGS__, want, \
                      #type_name " " #op_name " " #__VA_ARGS__)

TEST(mock_arithmetic, integers_wrap_and_average_exactly) {
  REDUCES(int8, sum, std::int8_t, -126, {127, 2, 1});
  REDUCES(uint8, prod, std::uint8_t, 144, {20, 20, 1});
  REDUCES(int16, prod, std::int16_t, 1, {-1, -1, 1});
  REDUCES(uint16, prod, std::uint16_t, 1, {65535, 65535, 1});
  REDUCES(int64, avg, std::int64_t, INT64_MAX, {INT64_MAX, INT64_MAX, INT64_MAX});
  REDUCES(uint64, avg, std::uint64_t, UINT64_MAX, {UINT64_MAX, UINT64_MAX, UINT64_MAX});
  REDUCES(int32, avg, std::int32_t, -2, {-3, -3, -2});
  REDUCES(uint32, max, std::uint32_t, 0xffffffffu, {1, 0xffffffffu, 7});
  REDUCES(int64, min, std::int64_t, INT64_MIN, {1, INT64_MIN, 7});
}

TEST(mock_arithmetic, logical_and_bitwise) {
  REDUCES(int32, logical_and, std::int32_t, 1, {2, 4, 8});
  REDUCES(int32, logical_or, std::int32_t, 0, {0, 0, 0});
  REDUCES(int32, logical_xor, std::int32_t, 1, {2, 4, 8});
  REDUCES(uint8, bit_and, std::uint8_t, 8, {12, 10, 0xff});
  REDUCES(uint64, bit_or, std::uint64_t, 15, {12, 10, 1});
  REDUCES(int16, bit_xor, std::int16_t, 7, {12, 10, 1});
}

TEST(mock_arithmetic, small_floats_round_once) {
  // 1 + 2^-11 + 2^-11: each addition alone would round back to 1 in binary16.
  REDUCES(fp16, sum, std::uint16_t, 0x3c01, {0x3c00, 0x1000, 0x1000});
  REDUCES(fp16, sum, std::uint16_t, 0x7c00, {0x7bff, 0x7bff, 0x0000});  // overflows to infinity
  REDUCES(fp16, sum, std::uint16_t, 0x0003, {0x0001, 0x0001, 0x0001});  // subnormal
  REDUCES(fp16, sum, std::uint16_t, 0x0400, {0x03ff, 0x0001, 0x0000});  // carries into normal
  REDUCES(fp16, avg, std::uint16_t, 0x4000, {0x3c00, 0x4000, 0x4200});  // 1, 2, 3
  REDUCES(fp16, min, std::uint16_t, 0xc000, {0x3c00, 0xc000, 0x4200});
  REDUCES(bf16, sum, std::uint16_t, 0x4040, {0x3f80, 0x3f80, 0x3f80});
  REDUCES(bf16, sum, std::uint16_t, 0x3f82, {0x3f81, 0x3b80, 0x3a80});  // 2.5 steps: up, past half
  REDUCES(bf16, sum, std::uint16_t, 0x3f80, {0x3f80, 0x3b80, 0x0000});  // a tie goes to even
  REDUCES(fp32, avg, float, 2.0f, {1.0f, 2.0f, 3.0f});
  REDUCES(fp32, sum, float, 0.0f, {1e8f, 1.0f, -1e8f});  // fp32 rounds at each step
  REDUCES(fp64, prod, double, -8.0, {2.0, 2.0, -2.0});
}

TEST(mock_arithmetic, complex_and_pairs) {
  using cf = std::complex<float>;
  using cd = std::complex<double>;
  REDUCES(complex_fp32, prod, cf, (cf{-2, 2}), {cf{1, 1}, cf{1, 1}, cf{1, 1}});
  REDUCES(complex_fp64, avg, cd, (cd{2, 1}), {cd{1, 0}, cd{2, 1}, cd{3, 2}});
  using li = loc<std::int32_t>;
  REDUCES(int32_loc, minloc, li, (li{-4, 1}), {li{3, 0}, li{-4, 2}, li{-4, 1}});
  REDUCES(int32_loc, maxloc, li, (li{9, 5}), {li{9, 8}, li{9, 5}, li{-4, 1}});
  using lf = loc<float>;
  REDUCES(fp32_loc, maxloc, lf, (lf{3, 0}), {lf{3, 0}, lf{2, 2}, lf{1, 1}});
}

// What each pair (op, type) answers to a query is what sucl::defined says.
TEST(mock_query, knows_ops_and_memory) {
  core::registry registry;
  const auto& handle = registry.open(source());
  const auto ask = [&](kind k, type t, op o, sucl_memory memory) {
    sucl_query q{};
    q.struct_size = sizeof q;
    q.kind = static_cast<sucl_kind>(k);
    q.type = static_cast<sucl_type>(t);
    q.op = static_cast<sucl_op>(o);
    q.memory = memory;
    sucl_capability a{};
    a.struct_size = sizeof a;
    EXPECT_EQ(handle.table->query(handle.state, &q, &a), SUCL_SUCCESS);
    return a.supported != 0;
  };
  for (int t = 0; t < SUCL_TYPE_COUNT; ++t)
    for (int o = 0; o < SUCL_OP_COUNT; ++o)
      EXPECT_EQ(ask(kind::allreduce, static_cast<type>(t), static_cast<op>(o), SUCL_MEMORY_HOST),
                defined(static_cast<op>(o), static_cast<type>(t)))
          << name(static_cast<op>(o)) << " " << name(static_cast<type>(t));
  EXPECT_TRUE(ask(kind::broadcast, type::bytes, op::none, SUCL_MEMORY_SYSTEM));
  EXPECT_FALSE(ask(kind::broadcast, type::bytes, op::none, SUCL_MEMORY_DEVICE));
  EXPECT_FALSE(ask(kind::send, type::int32, op::none, SUCL_MEMORY_SYSTEM));
}

// One allreduce of one int on each of two ranks, with settings.
flight with(std::vector<std::pair<std::string, std::string>> settings, std::int32_t* result,
            std::uint64_t count = 1) {
  core::registry registry;
  const auto& handle = registry.open(source(std::move(settings)));
  flight at_zero;
  run_ranks(2, [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    values in(count, 21), out(count, 0);
    auto o = operation(kind::allreduce, type::int32, count, op::sum);
    o.send = in.data();
    o.recv = out.data();
    const flight done = run(c, o);
    if (info.rank == 0) at_zero = done, *result = out[0];
    destroy(c);
  });
  return at_zero;
}

TEST(mock_settings, make_it_fail_on_demand) {
  std::int32_t got = 0;
  EXPECT_EQ(with({}, &got).status, SUCL_SUCCESS);
  EXPECT_EQ(got, 42);
  const flight failed = with({{"fail_at", "1"}}, &got);
  EXPECT_EQ(failed.status, SUCL_ERROR_NATIVE);
  EXPECT_EQ(failed.error.native_code, 4242);
  EXPECT_EQ(with({{"fail_at", "2"}}, &got).status, SUCL_SUCCESS);
  EXPECT_EQ(with({{"max_count", "2"}}, &got, 3).status, SUCL_ERROR_INVALID_COUNT);
  EXPECT_EQ(with({{"kinds", "broadcast, barrier"}}, &got).status, SUCL_ERROR_UNSUPPORTED);
  EXPECT_EQ(with({{"types", "fp32"}}, &got).status, SUCL_ERROR_UNSUPPORTED);
  EXPECT_EQ(with({{"ops", "prod"}}, &got).status, SUCL_ERROR_UNSUPPORTED);
  EXPECT_EQ(with({{"memory", "shared"}}, &got).status, SUCL_ERROR_UNSUPPORTED);
}

TEST(mock_settings, corrupt_results_on_demand) {
  std::int32_t got = 0;
  EXPECT_EQ(with({{"wrong", "allreduce"}}, &got).status, SUCL_SUCCESS);
  EXPECT_NE(got, 42);
  EXPECT_EQ(with({{"wrong", "broadcast"}}, &got).status, SUCL_SUCCESS);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(with({{"wrong", "all"}}, &got).status, SUCL_SUCCESS);
  EXPECT_NE(got, 42);
}

TEST(mock_settings, delay_completion) {
  std::int32_t got = 0;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(with({{"delay_us", "50000"}}, &got).status, SUCL_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST(mock_settings, are_refused_with_a_cure) {
  const auto problem = [](const char* key, const char* value) {
    core::registry registry;
    EXPECT_EQ(registry.try_open(source({{key, value}})), nullptr);
    return registry.reports().at(0).problem.value();
  };
  const auto unknown = problem("kind", "all");
  EXPECT_EQ(unknown.code, errc::configuration);
  EXPECT_NE(unknown.hint.find("kinds, types"), std::string::npos) << unknown.hint;
  EXPECT_NE(problem("types", "fp32,fp33").message.find("'fp33'"), std::string::npos);
  EXPECT_EQ(problem("delay_us", "1s").message,
            "backend mock: delay_us = 1s is not a whole number in decimal digits");
  for (const auto& [key, value, range] :
       {std::array{"delay_us", "3600000001", "from 0 to 3600000000"},
        std::array{"max_count", "1152921504606846977", "from 0 to 1152921504606846976"},
        std::array{"fail_at", "99999999999999999999", "from 0 to 1152921504606846976"},
        std::array{"stuck_at", "1152921504606846977", "from 0 to 1152921504606846976"},
        std::array{"fail_rank", "-2", "from -1 to 2147483647"}}) {
    const auto out = problem(key, value);
    EXPECT_EQ(out.message,
              "backend mock: " + std::string(key) + " = " + value + " is out of range");
    EXPECT_NE(out.hint.find(range), std::string::npos) << out.hint;
  }
  const auto refused = problem("fail_open", "no such device");
  EXPECT_EQ(refused.code, errc::unavailable);
  EXPECT_EQ(refused.message, "no such device");
}

TEST(mock, finds_counts_that_do_not_fit) {
  core::registry registry;
  const auto& handle = registry.open(source());
  run_ranks(2, [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    values in(8), out(8);
    auto o = operation(kind::allreduce, type::int32, info.rank == 0 ? 4 : 5, op::sum);
    o.send = in.data();
    o.recv = out.data();
    EXPECT_EQ(run(c, o).status, SUCL_ERROR_MISMATCH);
    destroy(c);
  });
}

TEST(mock, gives_up_when_aborted) {
  core::registry registry;
  const auto& handle = registry.open(source());
  run_ranks(2, [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    if (info.rank == 0) {
      flight f = post(c, operation(kind::barrier, type::bytes, 0));
      EXPECT_FALSE(sucl::testing::test(c, f));
      c.table->abort(c.comm);
    }
    destroy(c);
  });
}

}  // namespace
