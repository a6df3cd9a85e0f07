// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// SuCL's own kernels as the SYCL runtime compiles them, against the same device functions compiled
// with this program and run by threads: bit for bit what operations give, and what is written to
// other ranks. Threads run an operation on all ranks. Then all that a rank waits for lies in
// its peer buffers, so that its kernel can be run again alone.
#include "backends/device_kernels/launch_plan.hpp"
#include "backends/device_kernels/message_launch.hpp"
#include "support/special_elements.hpp"
#include "sycl/rtc/kernel_forms.hpp"
#include "unit/device_kernels/thread_device.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <typeinfo>

namespace {

using namespace sucl;
using namespace sucl::testing;

using page = std::vector<std::byte>;

constexpr int items = 2, groups = 2;

/// The device, if it compiles kernels.
class parity : public ::testing::Test {
 protected:
  void SetUp() override {
    auto d = m_queue.get_device();
    if (!d.ext_oneapi_can_build(::sycl::ext::oneapi::experimental::source_language::sycl))
      GTEST_SKIP() << "the SYCL runtime compiles no kernels for "
                   << d.get_info<::sycl::info::device::name>();
    kernels::prepare(m_queue);
  }
  ::sycl::queue m_queue{::sycl::cpu_selector_v};
};

/// The peer buffers between some ranks, and the addresses that their kernels get.
class buffer_set {
 public:
  buffer_set(int ranks, std::uint64_t bytes) : m_ranks(ranks), m_tables(size()) {
    for (std::size_t i = 0; i < size() * size(); ++i) m_buffers.emplace_back(bytes);
    for (int r = 0; r < ranks; ++r) point(r);
  }
  const kernels::peer_buffer_table* of(int rank) const {
    return &m_tables[static_cast<std::size_t>(rank)];
  }
  page& buffer(int from, int to) {
    return m_buffers[static_cast<std::size_t>(from * m_ranks + to)];
  }

  /// Runs a kernel of this rank on buffers that it has not written to yet; whether it then has
  /// written the same as before.
  template <class Kernel>
  bool writes_again(int rank, const Kernel& kernel) {
    bool same = true;
    std::vector<page> before;
    for (int q = 0; q < m_ranks; ++q) {
      before.push_back(buffer(rank, q));
      std::fill(buffer(rank, q).begin(), buffer(rank, q).end(), std::byte{0});
    }
    kernel();
    for (int q = 0; q < m_ranks; ++q) {
      page& after = buffer(rank, q);
      same = same && after == before[static_cast<std::size_t>(q)];
      std::copy_n(before[static_cast<std::size_t>(q)].begin(), after.size(), after.begin());
    }
    return same;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(m_ranks); }
  void point(int rank) {
    auto& table = m_tables[static_cast<std::size_t>(rank)];
    for (int q = 0; q < m_ranks; ++q) {
      table.out[q] = buffer(rank, q).data();
      table.in[q] = buffer(q, rank).data();
    }
  }

  int m_ranks;
  std::vector<page> m_buffers;
  std::vector<kernels::peer_buffer_table> m_tables;
};

/// Ranks whose kernels are threads.
class thread_ranks {
 public:
  explicit thread_ranks(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      m_devices.push_back(std::make_unique<thread_device>(false));
      m_devices.back()->items = items;
    }
  }
  thread_device& of(int rank) { return *m_devices[static_cast<std::size_t>(rank)]; }
  template <class Launch>
  void run(const std::vector<Launch>& kernels) {
    std::vector<void*> tokens;
    for (std::size_t r = 0; r < kernels.size(); ++r)
      tokens.push_back(m_devices[r]->launch(kernels[r], nullptr));
    for (std::size_t r = 0; r < kernels.size(); ++r) {
      m_devices[r]->drain();
      EXPECT_TRUE(m_devices[r]->test(tokens[r]));
    }
  }

 private:
  std::vector<std::unique_ptr<thread_device>> m_devices;
};

// Floats with all of their bits, so that rounding shows; neither infinite nor NaN.
template <class T>
void fill_with_fractions(page& memory, std::size_t from, std::mt19937_64& random) {
  std::uniform_real_distribution<T> any(T(-8), T(8));
  for (std::size_t i = from; i + sizeof(T) <= memory.size(); i += sizeof(T)) {
    const T value = any(random);
    std::memcpy(&memory[i], &value, sizeof value);
  }
}

void fill_with_halves(page& memory, std::size_t from, std::uint16_t most, std::mt19937_64& random) {
  for (std::size_t i = from; i + 2 <= memory.size(); i += 2) {
    const auto bits = static_cast<std::uint16_t>(random() % most | (random() % 2) << 15);
    std::memcpy(&memory[i], &bits, sizeof bits);
  }
}

void fill(page& memory, const draw& d, std::mt19937_64& random) {
  constexpr std::uint16_t eight_in_fp16 = 0x4800, eight_in_bf16 = 0x4100;
  switch (d.element) {
    case type::fp32:
    case type::complex_fp32: return fill_with_fractions<float>(memory, d.misalignment, random);
    case type::fp64:
    case type::complex_fp64: return fill_with_fractions<double>(memory, d.misalignment, random);
    case type::fp16: return fill_with_halves(memory, d.misalignment, eight_in_fp16, random);
    case type::bf16: return fill_with_halves(memory, d.misalignment, eight_in_bf16, random);
    default: break;  // as it was drawn
  }
}

// NaN, infinities, subnormal numbers, zeros of both signs, ends of ranges.
void fill_with_special_elements(page& memory, const draw& d, std::mt19937_64& random) {
  const auto special = reference::special_elements(d.element);
  const std::size_t one = size_of(d.element);
  for (std::size_t i = d.misalignment; i + one <= memory.size(); i += one) {
    const reference::value e = reference::any_element(d.element, special, random);
    std::copy(e.begin(), e.end(), &memory[i]);
  }
}

bool is_pair(type t) { return t >= type::int16_loc && t <= type::fp64_loc; }

/// One collective operation on all ranks.
class collective_case {
 public:
  collective_case(const draw& d, int ranks, bool in_place, bool mapped, bool special)
      : m_draw(d),
        m_ranks(ranks),
        m_in_place(in_place),
        m_threads(ranks),
        m_buffers(ranks, bytes()),
        m_table(2 * kernels::max_ranks),
        m_memory(static_cast<std::size_t>(ranks)) {
    std::mt19937_64 random(d.seed);
    for (int r = 0; r < ranks; ++r) {
      auto& m = m_memory[static_cast<std::size_t>(r)];
      m_operations.push_back(prepare(d, r, ranks, in_place, m));
      for (page* memory : {&m.send, &m.recv})
        special ? fill_with_special_elements(*memory, d, random) : fill(*memory, d, random);
      m_table[static_cast<std::size_t>(r)] = m.send.data();
      m_table[static_cast<std::size_t>(kernels::max_ranks + r)] = m.recv.data();
    }
    for (int r = 0; r < ranks; ++r) m_kernels.push_back(kernel_of(r, mapped));
  }

  /// Adds the names of the kernels that it takes.
  void run(::sycl::queue& queue, std::set<std::string>& used) {
    const auto start = m_memory;
    m_threads.run(m_kernels);
    const auto wanted = m_memory;
    for (std::size_t r = 0; r < start.size(); ++r) restore(m_memory[r], start[r]);
    sycl_layer::submitter on(queue);
    for (int r = 0; r < m_ranks; ++r) {
      const auto& k = m_kernels[static_cast<std::size_t>(r)];
      sycl_layer::with_kernel(k, [&](const auto& kernel) {
        used.insert(typeid(kernel).name());
        return ::sycl::event{};
      });
      const bool same =
          m_buffers.writes_again(r, [&] { sycl_layer::launch_kernel(on, k, items, {}).wait(); });
      EXPECT_TRUE(same || is_pair(m_draw.element)) << text(r);  // pairs have padding
    }
    for (int r = 0; r < m_ranks; ++r) {
      const auto n = static_cast<std::size_t>(r);
      EXPECT_TRUE(without_padding(m_memory[n].send) == without_padding(wanted[n].send)) << text(r);
      EXPECT_TRUE(without_padding(m_memory[n].recv) == without_padding(wanted[n].recv)) << text(r);
    }
  }

 private:
  static constexpr std::uint64_t max_in_ll128 = 1000;

  static kernels::buffer_layout layout() {
    kernels::buffer_layout s;
    s.ll = 4 << 10;
    s.ll128 = kernels::ll128_bytes(max_in_ll128);
    s.stage = 64 << 10;  // no slot is used twice, so that all stays to be read again
    return s;
  }
  static std::uint64_t bytes() { return layout().bytes(); }

  core::kernel_launch kernel_of(int rank, bool mapped) {
    const auto n = static_cast<std::size_t>(rank);
    core::launch_setting s;
    s.rank = rank;
    s.ranks = m_ranks;
    s.layout = layout();
    s.items = items;
    s.groups = groups;
    s.ll_max_bytes = 256;
    s.ll_two_shot_max_bytes = 1 << 10;
    s.ll128_min_bytes = 120;
    s.ll128_max_bytes = s.ll128_exchange_max_bytes = max_in_ll128;
    s.ll128_two_shot_max_bytes = m_draw.seed % 2 == 0 ? 2 * max_in_ll128 : 0;  // or by LL
    s.two_shot_min_bytes = 4 << 10;
    s.direct_min_bytes = 2 << 10;
    s.mapped = mapped;
    auto k = core::make_launch(m_operations[n], s);
    auto& j = k.what;
    j.with = m_buffers.of(rank);
    for (int k = 1; k < m_ranks; ++k) {
      j.near_out[k] = j.with->out[(rank + k) % m_ranks];
      j.near_in[k] = j.with->in[(rank + k) % m_ranks];
    }
    j.pair_out = j.near_out[1];
    j.pair_in = j.near_in[1];
    j.abort = &m_abort;
    j.mapped = m_table.data();
    j.epoch = 2 + m_draw.seed % 2;
    j.await = m_draw.seed % 3 == 0 ? j.epoch : 0;
    j.signals_start = true;
    if (m_draw.what == kind::barrier) k.to = m_buffers.buffer(rank, rank).data();
    j.recv_key = kernels::key_of(1, m_draw.misalignment);
    j.send_key = k.in_place ? j.recv_key : kernels::key_of(0, m_draw.misalignment);
    return k;
  }

  static void restore(memory& to, const memory& from) {  // in place: kernels know the addresses
    std::copy(from.send.begin(), from.send.end(), to.send.begin());
    std::copy(from.recv.begin(), from.recv.end(), to.recv.begin());
  }
  page without_padding(const page& p) const {
    return sucl::testing::without_padding(m_draw.element, m_draw.misalignment, p);
  }
  std::string text(int rank) const { return describe(m_draw, rank, m_ranks, m_in_place); }

  const draw& m_draw;
  int m_ranks;
  bool m_in_place;
  thread_ranks m_threads;
  buffer_set m_buffers;
  std::vector<const std::byte*> m_table;
  std::vector<memory> m_memory;
  std::vector<sucl_operation> m_operations;
  std::vector<core::kernel_launch> m_kernels;
  std::uint32_t m_abort = 0;
};

/// What is staged first takes two kernels, and mapped memory is aligned.
void run(draw d, int ranks, bool in_place, bool mapped, ::sycl::queue& queue,
         std::set<std::string>& used, bool special = false) {
  if (d.what == kind::reduce_scatter || (mapped && d.what == kind::alltoall)) in_place = false;
  if (mapped) d.misalignment = d.misalignment / 16 * 16;
  collective_case(d, ranks, in_place, mapped, special).run(queue, used);
}

TEST_F(parity, of_collectives_and_of_every_kernel) {
  std::set<std::string> used;
  // Each sum that has kernels of its own, another one, and what is only moved, with every protocol.
  const auto run_sizes = [&](kind what, type element, op reduction, bool mapped) {
    for (const std::uint64_t bytes : {80, 200, 1000, 1001, 3000, 30000}) {
      draw d = make_draw(bytes, 3, 1);
      d.what = what;
      d.element = element;
      d.reduction = reduction;
      d.count = bytes / size_of(element);
      run(d, 3, false, mapped, m_queue, used);
    }
  };
  for (const auto element : {type::fp16, type::bf16, type::fp32, type::fp64, type::int32})
    run_sizes(kind::allreduce, element, op::sum, false);
  for (const bool mapped : {false, true})
    for (const auto what : {kind::broadcast, kind::allgather, kind::alltoall})
      run_sizes(what, type::int64, op::none, mapped);
  constexpr std::size_t of_sums = 5 * 6, of_lists = 2 * 3, of_moves = 6 + 2;
  constexpr std::size_t all = of_sums + of_lists + of_moves;
  // Draws are many, and more until they have met every kernel.
  for (std::uint64_t seed = 1; (seed <= 120 || used.size() < all) && seed <= 1000; ++seed) {
    if (HasFailure()) break;
    const int ranks = 1 + static_cast<int>(seed % 4);
    run(make_draw(seed, ranks, 3000), ranks, seed % 5 == 0, seed % 4 >= 2, m_queue, used);
  }
  EXPECT_EQ(used.size(), all);
}

TEST_F(parity, of_every_type_and_op) {
  std::set<std::string> used;
  for (int t = 0; t < SUCL_TYPE_COUNT; ++t)
    for (int o = 1; o < SUCL_OP_COUNT && !HasFailure(); ++o) {
      const auto element = static_cast<type>(t);
      const auto reduction = static_cast<op>(o);
      if (!defined(reduction, element)) continue;
      draw d = make_draw(static_cast<std::uint64_t>(100 * t + o), 3, 1);
      d.what = kind::allreduce;
      d.element = element;
      d.reduction = reduction;
      for (const std::uint64_t bytes : {240, 3000}) {
        d.count = bytes / size_of(element);
        run(d, 3, bytes > 240, false, m_queue, used);
        run(d, 3, bytes > 240, false, m_queue, used, true);
      }
    }
}

// ---- messages

kernels::message_layout test_message_layout() {
  kernels::message_layout s;
  s.at = kernels::buffer_layout{}.of_collectives();
  s.channels = groups;
  s.ll_bytes = 64;
  s.slot = 1024;
  return s;
}

/// A rank's part of an exchange in which each sends some messages of a length to the next rank, and
/// one to itself.
struct exchange_of_rank {
  std::vector<page> pages;
  std::vector<sucl_operation> parts;

  exchange_of_rank(int rank, int ranks, std::uint64_t bytes, int messages) {
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    for (int i = 0; i < messages; ++i) {
      add(kind::send, next, bytes, i);
      add(kind::recv, previous, bytes, i);
    }
    add(kind::send, rank, bytes / 2, 7);
    add(kind::recv, rank, bytes / 2, 7);
  }
  sucl_operation whole() {
    auto o = operation(kind::group, type::bytes, 0);
    o.parts = parts.data();
    o.part_count = parts.size();
    return o;
  }

 private:
  void add(kind what, int peer, std::uint64_t bytes, int tag) {
    page p(bytes + 1);
    auto o = operation(what, type::bytes, bytes);
    o.element_size = 1;
    o.tag = tag;
    o.root = o.source = peer;
    if (what == kind::send)
      for (std::uint64_t i = 0; i < bytes; ++i)
        p[i] = static_cast<std::byte>(i * 7 + i / 256 + static_cast<unsigned>(tag));
    if (what == kind::send)
      o.send = p.data();
    else
      o.recv = p.data();
    parts.push_back(o);
    pages.push_back(std::move(p));
  }
};

void run_messages(::sycl::queue& queue, std::uint64_t bytes, int messages) {
  constexpr int ranks = 3;
  const auto layout = test_message_layout();
  thread_ranks threads(ranks);
  buffer_set buffers(ranks, layout.at + layout.bytes());
  std::vector<exchange_of_rank> exchanges;
  std::vector<kernels::kernel_control> controls(ranks);
  std::vector<std::unique_ptr<core::message_launcher>> launchers;
  std::vector<core::message_launch> kernels;
  // What has gone through the channels is counted, so the kernel of each protocol has counts of its
  // own.
  const auto kernel_of = [&](int r) {
    const auto n = static_cast<std::size_t>(r);
    launchers.push_back(
        std::make_unique<core::message_launcher>(threads.of(r), layout, &controls[n]));
    auto k = launchers.back()->make(exchanges[n].whole(), nullptr);
    k.what.with = buffers.of(r);
    return k;
  };
  for (int r = 0; r < ranks; ++r) exchanges.emplace_back(r, ranks, bytes, messages);
  for (int r = 0; r < ranks; ++r) kernels.push_back(kernel_of(r));
  threads.run(kernels);
  sycl_layer::submitter on(queue);
  for (int r = 0; r < ranks; ++r) {
    auto& e = exchanges[static_cast<std::size_t>(r)];
    const auto wanted = e.pages;
    for (std::size_t i = 0; i < e.parts.size(); ++i)
      if (e.parts[i].recv) std::fill(e.pages[i].begin(), e.pages[i].end(), std::byte{0});
    const auto k = kernel_of(r);
    EXPECT_TRUE(
        buffers.writes_again(r, [&] { sycl_layer::launch_kernel(on, k, items, {}).wait(); }))
        << bytes << " bytes, rank " << r;
    EXPECT_TRUE(e.pages == wanted) << bytes << " bytes, rank " << r;
    EXPECT_EQ(controls[static_cast<std::size_t>(r)].abort, 0u);
  }
}

TEST_F(parity, of_messages) {
  for (const std::uint64_t bytes : {0, 1, 100, 129, 1000, 3000})
    for (const int messages : {1, 2}) run_messages(m_queue, bytes, messages);
}

}  // namespace
