// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The bits of reductions of device memory, on a GPU if there is one: the same on all ranks, in all
// forms, again and again, and where the ranks are combined in order those of a plain loop. Prints a
// digest, by which runs can be compared. No kernels, so that no SYCL compiler is needed.
#include "ranks/fixture.hpp"
#include "support/ordered_sums.hpp"
#include "support/own_device.hpp"

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using std::size_t;
using bytes = std::vector<std::byte>;

std::uint64_t g_digest = 0xcbf29ce484222325u;  // FNV-1a
void digest(const bytes& data) {
  for (const std::byte b : data)
    g_digest = (g_digest ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
}

/// Elements in the device's memory.
template <class T>
class on_device {
 public:
  on_device(const sycl::queue& q, size_t count)
      : m_queue(q), m_count(count), m_data(sycl::malloc_device<T>(count + 1, q)) {}
  ~on_device() { sycl::free(m_data, m_queue); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  T* get() const { return m_data; }
  void write(const bytes& from) { m_queue.memcpy(m_data, from.data(), from.size()).wait(); }
  void erase() { m_queue.memset(m_data, 0x5b, m_count * sizeof(T)).wait(); }
  bytes read() {
    bytes to(m_count * sizeof(T));
    m_queue.memcpy(to.data(), m_data, to.size()).wait();
    return to;
  }

 private:
  sycl::queue m_queue;
  size_t m_count;
  T* m_data;
};

/// A reduction of elements of type T.
template <class T>
struct reduction {
  kind k;
  sucl::op op;
  size_t n;
  int root;
  std::vector<size_t> counts;  // of reduce_scatter

  reduction(kind what, sucl::op o, size_t elements, int size)
      : k(what), op(o), n(elements), root(size - 1) {
    for (int r = 0; r < size; ++r) counts.push_back(n + static_cast<size_t>(r));
  }
  size_t inputs() const {
    if (k == kind::reduce_scatter_block) return n * counts.size();
    size_t all = 0;
    for (const size_t c : counts) all += c;
    return k == kind::reduce_scatter ? all : n;
  }
  size_t outputs(int rank) const {
    if (k == kind::reduce && rank != root) return 0;
    return k == kind::reduce_scatter ? counts[static_cast<size_t>(rank)] : n;
  }
  template <class Facade>
  auto call(Facade&& comm, const T* from, T* to) const {
    switch (k) {
      case kind::reduce: return comm.reduce(from, to, n, op, root);
      case kind::reduce_scatter: return comm.reduce_scatter(from, to, counts, op);
      case kind::reduce_scatter_block: return comm.reduce_scatter_block(from, to, n, op);
      case kind::scan: return comm.scan(from, to, n, op);
      default: return comm.allreduce(from, to, n, op);
    }
  }
  std::string text() const {
    return std::string(name(k)) + " of " + std::to_string(n) + " " + name(type_of<T>::value) +
           ", " + name(op);
  }
};

struct bits : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();
  const bool m_gpu = j.queue.get_device().is_gpu();

  bool is_strict() const {
    const char* level = std::getenv("SUCL_DETERMINISM");
    return level && std::strcmp(level, "strict") == 0;
  }
  /// Whether the ranks are combined in order.
  template <class T>
  bool is_in_order(const reduction<T>& r) const {
    const auto text = j.world.explain(r.k, r.n * sizeof(T), type_of<T>::value, r.op);
    return is_strict() || text.find("executed by kernels") != text.npos;
  }

  void expect_on_all(const bytes& mine, const std::string& what) const {
    bytes all(mine.size() * static_cast<size_t>(size));
    j.aside.blocking().allgather(mine.data(), all.data(), mine.size());
    for (int r = 0; r < size && !mine.empty(); ++r)
      EXPECT_EQ(
          std::memcmp(all.data() + static_cast<size_t>(r) * mine.size(), mine.data(), mine.size()),
          0)
          << what << " differs between ranks " << rank << " and " << r;
  }

  /// The result in all forms, several times, which must not differ.
  template <class T>
  bytes result(const reduction<T>& r, const bytes& input, int rounds) {
    on_device<T> from(j.queue, r.inputs()), to(j.queue, r.outputs(rank));
    from.write(input);
    auto again = r.call(j.world.persistent(), from.get(), to.get());
    bytes first;
    for (int round = 0; round < rounds; ++round) {
      to.erase();
      switch (round % 4) {
        case 0: r.call(j.world, from.get(), to.get()).wait(); break;
        case 1: r.call(j.in_order_world, from.get(), to.get()).wait(); break;
        case 2: r.call(j.world.blocking(), from.get(), to.get()); break;
        default: again.run();
      }
      const bytes got = to.read();
      if (round == 0) first = got;
      EXPECT_EQ(first, got) << r.text() << " differs in round " << round << " on rank " << rank;
    }
    digest(first);
    if (r.k == kind::allreduce) expect_on_all(first, r.text());
    return first;
  }

  template <class T>
  void fixed(kind k, sucl::op o, size_t n, int rounds) {
    const reduction<T> r(k, o, n, size);
    const auto t = type_of<T>::value;
    const auto got = result(r, ordered_input(t, o, rank, r.inputs()), rounds);
    if (!is_in_order(r)) return;
    const auto wanted = ordered_result(k, t, o, rank, size, n, r.root);
    EXPECT_TRUE(wanted == got) << r.text() << " is not in order of rank on rank " << rank;
  }
  template <class T>
  void all_kinds(sucl::op o) {
    for (const kind k : {kind::allreduce, kind::reduce, kind::reduce_scatter,
                         kind::reduce_scatter_block, kind::scan}) {
      if (k == kind::scan && o == op::avg) continue;
      for (const size_t n : {1, 31, 1000, 70001}) fixed<T>(k, o, n, m_gpu ? 12 : 4);
    }
  }

  /// Elements such that all pairs of them meet.
  template <class T>
  bytes meeting(const std::vector<T>& values) const {
    size_t n = 1, step = 1;
    for (int r = 0; r < size; ++r) n *= values.size();
    for (int r = 0; r < rank; ++r) step *= values.size();
    bytes data(n * sizeof(T));
    for (size_t i = 0; i < n; ++i)
      std::memcpy(&data[i * sizeof(T)], &values[i / step % values.size()], sizeof(T));
    return data;
  }
  /// What a communicator of the host makes of the same.
  template <class T>
  void as_on_host(sucl::op o, const std::vector<T>& values) {
    if (size > 4) GTEST_SKIP() << "too many values meet";
    const bytes input = meeting(values);
    const reduction<T> r(kind::allreduce, o, input.size() / sizeof(T), size);
    // The host's plans take another order among more than two ranks.
    if (!is_in_order(r) || (size > 2 && !is_strict())) return;
    const bytes got = result(r, input, 4);
    bytes wanted(input.size());
    j.aside.blocking().allreduce(reinterpret_cast<const T*>(input.data()),
                                 reinterpret_cast<T*>(wanted.data()), r.n, o);
    EXPECT_EQ(wanted, got) << r.text() << " is not that of the host on rank " << rank;
  }
};

TEST_F(bits, of_fp32) {
  all_kinds<float>(op::sum);
  all_kinds<float>(op::avg);
}
TEST_F(bits, of_fp64) {
  all_kinds<double>(op::sum);
  all_kinds<double>(op::prod);
}
TEST_F(bits, of_complex) {
  all_kinds<std::complex<float>>(op::prod);
  all_kinds<std::complex<double>>(op::sum);
}
TEST_F(bits, of_bf16) {
  all_kinds<bf16>(op::sum);
  all_kinds<bf16>(op::avg);
}

// Of each of the kernels' protocols, and in slices.
TEST_F(bits, of_large_messages) {
  for (const size_t n : {size_t{20000}, size_t{1} << 18, (size_t{5} << 20) + 3}) {
    fixed<float>(kind::allreduce, op::sum, m_gpu ? n : n / 16, 8);
    fixed<float>(kind::reduce_scatter_block, op::sum, m_gpu ? n : n / 16, 4);
  }
}

template <class T>
std::vector<T> special() {
  using limits = std::numeric_limits<T>;
  return {T(0),  T(-0.0), limits::quiet_NaN(), -limits::quiet_NaN(), limits::infinity(),
          T(-2), T(1.5),  -limits::infinity(), limits::denorm_min()};
}

TEST_F(bits, of_special_numbers) {
  for (const sucl::op o : {op::min, op::max, op::sum, op::prod}) {
    as_on_host(o, special<float>());
    as_on_host(o, special<double>());
  }
  // Bits of two NaN, of both zeros and infinities, of a subnormal number, and of -2 and 1.5.
  std::vector<bf16> small;
  for (const std::uint16_t b :
       {0x0000, 0x8000, 0x7fc1, 0xffc0, 0x7f80, 0xff80, 0x0001, 0xc000, 0x3fc0}) {
    bf16 value{};
    std::memcpy(&value, &b, sizeof value);
    small.push_back(value);
  }
  for (const sucl::op o : {op::min, op::max, op::sum, op::prod}) as_on_host(o, small);
}

TEST_F(bits, of_special_complex_numbers) {
  std::vector<std::complex<float>> values;
  for (const float re : {0.F, -0.F, 1.1F, std::numeric_limits<float>::infinity()})
    for (const float im : {0.3F, -0.F, std::numeric_limits<float>::quiet_NaN()})
      values.emplace_back(re, im);
  as_on_host(op::prod, values);
  as_on_host(op::sum, values);
}

TEST_F(bits, are_explained) {
  const char* level = std::getenv("SUCL_DETERMINISM");
  const auto wanted = std::string("determinism = \"") + (level ? level : "ranks") + '"';
  const auto text = j.world.explain(kind::allreduce, 4096, type::fp32, op::sum);
  EXPECT_NE(text.find(wanted), text.npos) << text;
  if (rank == 0) std::puts(text.c_str());
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  using namespace sucl::testing;
  try {
    sucl::runtime rt{argc, argv};
    rank_fixture j = make_fixture(own_device(rt.rank()), rt);
    const int result = run_tests(argc, argv, rt, j);
    if (rt.rank() == 0) std::printf("digest: %016llx\n", static_cast<unsigned long long>(g_digest));
    return result;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
