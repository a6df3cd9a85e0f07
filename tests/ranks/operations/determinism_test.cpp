// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The bits of reductions whose association shows: the same on all ranks whichever backend executes
// them, and with determinism = "strict", under which tests/ranks/CMakeLists.txt runs this with
// several backends, those of a plain loop over the ranks.
#include "ranks/fixture.hpp"
#include "support/ordered_sums.hpp"

#include <cfenv>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sucl::testing {
namespace {

// How the thread of a rank computes, other than those of other ranks and those that SuCL starts.
class odd_arithmetic {
 public:
  explicit odd_arithmetic(bool is_odd) {
    std::fegetenv(&m_before);
    if (!is_odd) return;
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);  // denormal numbers are zero, as operands and as results
#endif
  }
  ~odd_arithmetic() { std::fesetenv(&m_before); }
  odd_arithmetic(const odd_arithmetic&) = delete;
  odd_arithmetic& operator=(const odd_arithmetic&) = delete;

 private:
  std::fenv_t m_before{};
};

struct bits : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();

  static bool strict() {
    const char* level = std::getenv("SUCL_DETERMINISM");
    return level && std::strcmp(level, "strict") == 0;
  }

  template <class T>
  std::vector<T> input(op o, std::size_t n) const {
    const auto data = ordered_input(type_of<T>::value, o, rank, n);
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }

  template <class T>
  void expect_fixed(kind k, op o, const std::vector<T>& got, std::size_t n, int root,
                    const std::string& what) const {
    if (!strict()) return;
    const auto wanted = ordered_result(k, type_of<T>::value, o, rank, size, n, root);
    ASSERT_LE(wanted.size(), got.size() * sizeof(T)) << what;
    EXPECT_TRUE(wanted.empty() || std::memcmp(wanted.data(), got.data(), wanted.size()) == 0)
        << what << " is not in the fixed order on rank " << rank;
  }

  template <class T>
  void expect_same(const std::vector<T>& got, const std::string& what) const {
    std::vector<unsigned char> mine(got.size() * sizeof(T));
    if (!mine.empty()) std::memcpy(mine.data(), got.data(), mine.size());
    std::vector<unsigned char> all(mine.size() * static_cast<std::size_t>(size));
    j.aside.blocking().allgather(mine.data(), all.data(), mine.size());
    for (int r = 0; r < size; ++r)
      EXPECT_TRUE(mine.empty() ||
                  std::memcmp(all.data() + static_cast<std::size_t>(r) * mine.size(), mine.data(),
                              mine.size()) == 0)
          << what << " differs between ranks " << rank << " and " << r;
  }

  template <class T>
  void allreduce(op o, std::size_t n) {
    const std::string what = std::string("allreduce of ") + std::to_string(n) + " " +
                             name(type_of<T>::value) + ", " + name(o);
    const auto in = input<T>(o, n);
    std::vector<T> out(n);
    const auto check = [&](const std::string& form) {
      expect_same(out, what + form);
      expect_fixed(kind::allreduce, o, out, n, 0, what + form);
    };
    for (int call = 0; call < 3; ++call) {  // the later ones are prepared
      out.assign(n, T{});
      j.aside.blocking().allreduce(in.data(), out.data(), n, o);
      check("");
    }
    out = in;
    j.aside.blocking().allreduce(out.data(), n, o);
    check(", in place");
    out.assign(n, T{});
    auto repeated = j.aside.persistent().allreduce(in.data(), out.data(), n, o);
    for (int round = 0; round < 2; ++round) {
      repeated.run();
      check(", persistent");
    }
    shared<T> from(n, j.queue), to(n, j.queue);
    for (std::size_t i = 0; i < n; ++i) from[i] = in[i];
    j.world.allreduce(from.get(), to.get(), n, o).wait();
    for (std::size_t i = 0; i < n; ++i) out[i] = to[i];
    check(", by event");
  }

  template <class T>
  void others(op o, std::size_t n) {
    const auto blocks = n * static_cast<std::size_t>(size);
    const std::string what =
        std::string(" of ") + std::to_string(n) + " " + name(type_of<T>::value) + ", " + name(o);
    const auto in = input<T>(o, n);
    std::vector<T> out(n);
    auto call = j.aside.blocking();
    for (const int root : {0, size - 1}) {
      call.reduce(in.data(), out.data(), n, o, root);
      if (rank == root) expect_fixed(kind::reduce, o, out, n, root, "reduce" + what);
    }
    const auto many = input<T>(o, blocks);
    call.reduce_scatter_block(many.data(), out.data(), n, o);
    expect_fixed(kind::reduce_scatter_block, o, out, n, 0, "reduce_scatter_block" + what);
    std::vector<std::size_t> counts;
    std::size_t total = 0;
    for (int r = 0; r < size; ++r) {
      counts.push_back(n + static_cast<std::size_t>(r));
      total += counts.back();
    }
    const auto uneven = input<T>(o, total);
    std::vector<T> part(counts[static_cast<std::size_t>(rank)]);
    call.reduce_scatter(uneven.data(), part.data(), counts, o);
    expect_fixed(kind::reduce_scatter, o, part, n, 0, "reduce_scatter" + what);
    if (o == op::avg) return;
    call.scan(in.data(), out.data(), n, o);
    expect_fixed(kind::scan, o, out, n, 0, "scan" + what);
    call.exscan(in.data(), out.data(), n, o);
    expect_fixed(kind::exscan, o, out, n, 0, "exscan" + what);
  }

  template <class T>
  void in_all_forms(op o) {
    for (const std::size_t n : {1, 7, 1000, 4099, 70001}) {
      allreduce<T>(o, n);
      if (n < 70001) others<T>(o, n);
    }
  }
};

// Sums that are rounded, and of denormal numbers, where one rank has a rounding of its own.
TEST_F(bits, whatever_the_arithmetic_of_a_thread) {
  for (const std::size_t n : {1, 1000, 70001}) {
    // What MPI carries, its library adds up in the calling thread.
    if (!strict() && j.aside.selected_backend(kind::allreduce, n * sizeof(float)) != "plan")
      continue;
    auto in = input<float>(op::sum, n);
    for (std::size_t i = 0; i < n; i += 2)
      in[i] = static_cast<float>(i % 97 + static_cast<std::size_t>(rank)) *
              std::numeric_limits<float>::denorm_min();
    std::vector<float> wanted(n), out(n);
    j.aside.blocking().allreduce(in.data(), wanted.data(), n, op::sum);
    expect_same(wanted, "usual arithmetic");
    auto repeated = j.aside.persistent().allreduce(in.data(), out.data(), n, op::sum);
    const auto check = [&](const char* form, auto&& call) {
      out.assign(n, 0);
      {
        const odd_arithmetic odd(rank == 0);
        call();
      }
      EXPECT_TRUE(std::memcmp(out.data(), wanted.data(), n * sizeof(float)) == 0)
          << form << " of " << n << " on rank " << rank;
    };
    check("blocking", [&] { j.aside.blocking().allreduce(in.data(), out.data(), n, op::sum); });
    check("by event", [&] { j.aside.allreduce(in.data(), out.data(), n, op::sum).wait(); });
    check("persistent", [&] { repeated.run(); });
  }
  const user_op<float> add([](float a, float b) { return a + b; });
  for (const float value : {1 / 3.F, 7e-41F}) {
    const float wanted = add.allreduce(j.aside, value);
    const odd_arithmetic odd(rank == 0);
    const float got = add.allreduce(j.aside, value);
    EXPECT_EQ(std::memcmp(&got, &wanted, sizeof got), 0) << "by a function, of " << value;
  }
}

TEST_F(bits, of_fp32) {
  in_all_forms<float>(op::sum);
  in_all_forms<float>(op::avg);
}
TEST_F(bits, of_fp64) {
  in_all_forms<double>(op::sum);
  in_all_forms<double>(op::prod);
}
TEST_F(bits, of_complex) {
  in_all_forms<std::complex<float>>(op::sum);
  in_all_forms<std::complex<double>>(op::prod);
}
TEST_F(bits, of_bf16) {
  in_all_forms<bf16>(op::sum);
  in_all_forms<bf16>(op::avg);
}

// Each rank reduces for itself, beginning with whatever suits it.
TEST_F(bits, of_compositions) {
  constexpr std::size_t n = 1000;
  composition c{size};
  for (int r = 0; r < size; ++r) c.reduction(c.send(0, n), c.recv(0, n), sucl::all, r, op::sum);
  compile_options deep;
  deep.hierarchy = {(size + 1) / 2, 2};
  const auto in = input<double>(op::sum, n);
  std::vector<double> out(n);
  for (const bool in_levels : {false, true}) {
    if (in_levels && strict() && size > 3) {  // else pairs are the fixed order
      expect_error(errc::invalid_argument, [&] { (void)j.world.compile<double>(c, deep); });
      continue;
    }
    auto plan = in_levels ? j.world.compile<double>(c, deep) : j.world.compile<double>(c);
    plan.run<double>(in.data(), out.data());
    expect_same(out, in_levels ? "composition in levels" : "composition");
    if (!in_levels) expect_fixed(kind::allreduce, op::sum, out, n, 0, "composition");
  }
}

TEST_F(bits, are_explained) {
  const std::string text = j.aside.explain(kind::allreduce, 4096, type::fp32, op::sum);
  const std::string level = strict() ? "determinism = \"strict\"" : "determinism = \"ranks\"";
  EXPECT_NE(text.find("  bits   "), std::string::npos) << text;
  EXPECT_NE(text.find(level), std::string::npos) << text;
  EXPECT_NE(j.aside.explain(kind::allreduce, 4096, type::int32, op::sum).find("associative"),
            std::string::npos);
  EXPECT_EQ(j.aside.explain(kind::broadcast, 4096).find("  bits"), std::string::npos);
}

}  // namespace
}  // namespace sucl::testing
