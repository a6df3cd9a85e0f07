// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The executor with threads as ranks: every operation that plans carry, drawn at random, against
// the backend mock, which follows the definitions.
#include "runtime/exec/fold.hpp"
#include "runtime/exec/plan_backend.hpp"
#include "support/drive.hpp"
#include "support/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

namespace {

using namespace sucl;
using namespace sucl::testing;

using bytes = std::vector<std::byte>;

// A number that every type holds and whose sums and products stay exact.
template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void write_element(type t, std::uint64_t bits, std::byte* at) {
  const int small = static_cast<int>(bits % 5) - 2;
  switch (t) {
    case type::fp16: {
      constexpr std::uint16_t of[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
      return put(at, of[small + 2]);
    }
    case type::bf16: {
      constexpr std::uint16_t of[] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
      return put(at, of[small + 2]);
    }
    case type::fp32: return put(at, static_cast<float>(small));
    case type::fp64: return put(at, static_cast<double>(small));
    case type::complex_fp32:
      put(at, static_cast<float>(small));
      return put(at + 4, static_cast<float>(bits / 5 % 3));
    case type::complex_fp64:
      put(at, static_cast<double>(small));
      return put(at + 8, static_cast<double>(bits / 5 % 3));
    case type::int16_loc: {
      put(at, std::uint64_t{0});
      put(at, static_cast<std::int16_t>(small));
      return put(at + 4, static_cast<std::int32_t>(bits / 5 % 7));
    }
    case type::int32_loc: return put(at, loc<std::int32_t>{small, static_cast<int>(bits / 5 % 7)});
    case type::int64_loc: return put(at, loc<std::int64_t>{small, static_cast<int>(bits / 5 % 7)});
    case type::fp32_loc: return put(at, loc<float>{static_cast<float>(small), 2});
    case type::fp64_loc: return put(at, loc<double>{static_cast<double>(small), 1});
    default: std::memcpy(at, &bits, size_of(t));
  }
}

// One operation as every rank knows it.
struct draw {
  std::uint64_t seed;
  kind what;
  type element;
  op reduction;
  int root;
  std::uint64_t count;
  std::vector<std::uint64_t> counts, displs;
  std::uint64_t misplaced;  // bytes by which memory is not aligned

  std::uint64_t total() const { return std::accumulate(counts.begin(), counts.end(), count * 0); }
};

constexpr kind kinds[] = {kind::barrier,   kind::broadcast,      kind::reduce,
                          kind::allreduce, kind::reduce_scatter, kind::reduce_scatter_block,
                          kind::allgather, kind::allgatherv,     kind::alltoall,
                          kind::gather,    kind::scatter,        kind::scan,
                          kind::exscan};

draw make_draw(std::uint64_t seed, int size, std::uint64_t most) {
  std::mt19937_64 random(seed);
  draw d{};
  d.seed = seed;
  d.what = kinds[random() % std::size(kinds)];
  do {
    d.element = static_cast<type>(1 + random() % (SUCL_TYPE_COUNT - 1));
    d.reduction = static_cast<op>(1 + random() % (SUCL_OP_COUNT - 1));
  } while (!defined(d.reduction, d.element));
  const bool prefix = d.what == kind::scan || d.what == kind::exscan;
  if (prefix && d.reduction == op::avg) d.reduction = op::sum;
  if (!reduces(d.what)) d.reduction = op::none;
  d.root = static_cast<int>(random() % static_cast<std::uint64_t>(size));
  const std::uint64_t shift = random() % 24;
  d.count = std::min<std::uint64_t>(random() % (std::uint64_t{1} << shift), most);
  d.misplaced = random() % 2 ? random() % 64 : 0;
  std::uint64_t at = 0;
  for (int r = 0; r < size; ++r) {
    d.counts.push_back(random() % 4 ? random() % (d.count + 1) : 0);
    at += d.what == kind::allgatherv ? random() % 3 : 0;
    d.displs.push_back(at);
    at += d.counts.back();
  }
  return d;
}

struct memory {
  bytes send, recv;
};

// The operation of one rank, on memory that is filled for it.
sucl_operation prepare(const draw& d, int rank, int size, bool in_place, memory& m) {
  const auto p = static_cast<std::uint64_t>(size);
  auto o = operation(d.what, d.element, d.count, d.reduction);
  o.root = d.root;
  std::uint64_t send = d.count, recv = d.count;
  switch (d.what) {
    case kind::reduce_scatter:
      send = recv = d.total();
      o.count = 0;
      break;
    case kind::reduce_scatter_block:
    case kind::alltoall: send = recv = p * d.count; break;
    case kind::allgather:
    case kind::gather: recv = p * d.count; break;
    case kind::scatter: send = p * d.count; break;
    case kind::allgatherv:
      o.count = send = d.counts[static_cast<std::size_t>(rank)];
      recv = d.displs.back() + d.counts.back();
      break;
    default: break;
  }
  o.recv_counts =
      d.what == kind::reduce_scatter || d.what == kind::allgatherv ? d.counts.data() : nullptr;
  o.recv_displs = d.what == kind::allgatherv ? d.displs.data() : nullptr;
  const std::uint64_t size_one = o.element_size;
  std::mt19937_64 random(d.seed * 131 + static_cast<std::uint64_t>(rank));
  m.send.assign(send * size_one + d.misplaced, std::byte{0});
  m.recv.assign(std::max(send, recv) * size_one + d.misplaced, std::byte{0});
  for (bytes* side : {&m.send, &m.recv})
    for (std::uint64_t i = d.misplaced; i + size_one <= side->size(); i += size_one)
      write_element(d.element, random(), side->data() + i);
  // Only the root gathers in place, and only it scatters so.
  if ((d.what == kind::gather || d.what == kind::scatter) && rank != d.root) in_place = false;
  o.recv = m.recv.data() + d.misplaced;
  if (in_place) {
    o.flags |= SUCL_FLAG_IN_PLACE;
    if (d.what == kind::scatter) o.flags &= ~std::uint32_t{SUCL_FLAG_IN_PLACE};
  }
  o.send = o.flags & SUCL_FLAG_IN_PLACE ? nullptr : m.send.data() + d.misplaced;
  return o;
}

std::string describe(const draw& d, int rank, int size, bool in_place) {
  return std::string(name(d.what)) + " of " + std::to_string(d.count) + " " + name(d.element) +
         " " + name(d.reduction) + ", root " + std::to_string(d.root) + ", seed " +
         std::to_string(d.seed) + ", rank " + std::to_string(rank) + " of " + std::to_string(size) +
         (in_place ? ", in place" : "");
}

// Quotients may be rounded differently in the last bit, and pairs have bytes that are nobody's.
bool same(const draw& d, bytes a, bytes b) {
  const bool tail = d.element == type::int64_loc || d.element == type::fp64_loc;
  const std::size_t one = size_of(d.element);
  for (bytes* side : {&a, &b})
    for (std::size_t i = d.misplaced; i + one <= side->size(); i += one) {
      if (d.element == type::int16_loc) std::fill_n(side->data() + i + 2, 2, std::byte{0});
      if (tail) std::fill_n(side->data() + i + 12, 4, std::byte{0});
    }
  if (a == b) return true;
  const bool complex = d.element == type::complex_fp32 || d.element == type::complex_fp64;
  if (d.reduction != op::avg && !complex) return false;  // a zero may have another sign
  const bool wide = d.element == type::fp64 || d.element == type::complex_fp64;
  const std::size_t step = wide ? 8 : d.element == type::complex_fp32 ? 4 : 0;
  if (step == 0 || a.size() != b.size()) return false;
  for (std::size_t i = d.misplaced; i + step <= a.size(); i += step) {
    double x = 0, y = 0;
    float u = 0, v = 0;
    if (wide) {
      std::memcpy(&x, &a[i], 8);
      std::memcpy(&y, &b[i], 8);
    } else {
      std::memcpy(&u, &a[i], 4);
      std::memcpy(&v, &b[i], 4);
      x = u, y = v;
    }
    if (std::abs(x - y) > 1e-6 * std::abs(y)) return false;
  }
  return true;
}

struct backends {
  core::channel ipc, plan, mock;
};

void for_ranks(int size, const std::function<void(const backends&, const sucl_comm_info&)>& body,
               std::vector<std::pair<std::string, std::string>> settings = {}) {
  core::registry registry;
  const auto& lender =
      registry.open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", std::move(settings)});
  const auto& model = registry.open({"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", {}});
  run_ranks(size, [&](const sucl_comm_info& info) {
    backends b;
    b.ipc = create_channel(lender, info);
    std::string obstacle;
    b.plan = core::plan_channel(b.ipc, info.rank, info.size, &obstacle);
    EXPECT_EQ(obstacle, "");
    // A channel's user has its exchanges for itself.
    sucl_oob own = core::oob_split(*info.oob, info.rank);
    sucl_comm_info other = info;
    other.oob = &own;
    b.mock = create_channel(model, other);
    body(b, info);
    destroy(b.mock);
    destroy(b.plan);
    destroy(b.ipc);
    core::oob_free(own);
  });
}

class exec : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, exec, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(exec, agrees_with_the_definitions) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      const draw d = make_draw(seed + 1000u * static_cast<unsigned>(size), size, 20000);
      const bool in_place = (seed * 7 + static_cast<unsigned>(info.rank)) % 3 == 0;
      const bool blocking = seed % 2 == 0;
      memory mine, model;
      auto o = prepare(d, info.rank, size, in_place, mine);
      if (blocking) o.flags |= SUCL_FLAG_MAY_BLOCK;
      const flight done = run(b.plan, o);
      const auto same_operation = prepare(d, info.rank, size, in_place, model);
      const flight reference = run(b.mock, same_operation);
      EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      EXPECT_EQ(reference.status, SUCL_SUCCESS) << reference.error.message;
      EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
      EXPECT_EQ(mine.send, model.send) << describe(d, info.rank, size, in_place);
    }
  });
}

// Many operations under way at once, ranks at different speeds, and no waiting in between.
TEST_P(exec, keeps_the_order_of_thousands_of_operations) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    std::mt19937_64 random(static_cast<unsigned>(info.rank) + 17);
    struct one {
      std::vector<std::int32_t> in, out;
      sucl_operation what;
      flight state;
      std::int32_t want;
    };
    constexpr std::size_t depth = 12;
    std::vector<one> slots(depth);
    for (int i = 0; i < 1500; ++i) {
      one& s = slots[static_cast<std::size_t>(i) % depth];
      s.state = wait(b.plan, s.state);
      EXPECT_EQ(s.state.status, SUCL_SUCCESS);
      if (!s.out.empty()) {
        EXPECT_EQ(s.out.back(), s.want) << "operation " << i;
        EXPECT_EQ(s.out.front(), s.want) << "operation " << i;
      }
      const std::size_t n = i % 50 == 7 ? 100000 : 1 + static_cast<std::size_t>(i) % 300;
      const bool sum = i % 3 != 0;
      s.in.assign(n, i + info.rank);
      s.out.assign(n, -1);
      s.what = operation(sum ? kind::allreduce : kind::broadcast, type::int32, n,
                         sum ? op::sum : op::none);
      s.what.root = i % size;
      s.what.send = s.in.data();
      s.what.recv = s.out.data();
      s.want = sum ? size * i + size * (size - 1) / 2 : i + s.what.root;
      if (!sum && info.rank == s.what.root) s.want = -1;
      s.state = post(b.plan, s.what);
      if (random() % 40 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    }
    for (one& s : slots) {
      s.state = wait(b.plan, s.state);
      EXPECT_EQ(s.out.back(), s.want);
    }
  });
}

// The same on memory that all ranks reach, on all of it or on some.
TEST_P(exec, agrees_with_the_definitions_on_mapped_memory) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    const auto region = core::make_mapped(b.ipc, info.rank, 16u << 20);
    core::add_mapped(b.plan, region, 1, 0);
    auto* base = static_cast<std::byte*>(region.base);
    for (std::uint64_t seed = 1; seed <= 80; ++seed) {
      const draw d = make_draw(seed + 5000u * static_cast<unsigned>(size), size, 20000);
      const bool in_place = seed % 3 == 0 && (seed % 2 || info.rank % 2 == 0);
      memory mine, model;
      auto o = prepare(d, info.rank, size, in_place, mine);
      // Other offsets on each rank, and now and then a rank with ordinary memory.
      const std::uint64_t shift = 64 * static_cast<std::uint64_t>(info.rank) + d.misplaced;
      const bool plain = seed % 5 == 0 && info.rank == size / 2;
      std::byte* send = base + shift;
      std::byte* recv = base + (8u << 20) + shift;
      if (!plain) {
        std::memcpy(send, mine.send.data(), mine.send.size());
        std::memcpy(recv, mine.recv.data(), mine.recv.size());
        if (o.send) o.send = send + d.misplaced;
        o.recv = recv + d.misplaced;
      }
      const flight done = run(b.plan, o);
      EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      if (!plain) std::memcpy(mine.recv.data(), recv, mine.recv.size());
      run(b.mock, prepare(d, info.rank, size, in_place, model));
      EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
    }
    EXPECT_FALSE(core::remove_mapped(b.plan, b.ipc, base + 1));
    EXPECT_TRUE(core::remove_mapped(b.plan, b.ipc, base));
  });
}

TEST(exec_handover, works_by_both_ways) {
  for (const char* how : {"proc", "socket", "any"}) {
    for_ranks(3,
              [&](const backends& b, const sucl_comm_info& info) {
                std::int32_t mine = info.rank, sum = -1;
                auto o = operation(kind::allreduce, type::int32, 1, op::sum);
                o.send = &mine;
                o.recv = &sum;
                EXPECT_EQ(run(b.plan, o).status, SUCL_SUCCESS);
                EXPECT_EQ(sum, 3);
              },
              {{"handover", how}});
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A process that is killed in the middle of an operation leaves nothing: what it shares never has a
// name, and goes with its last process.
TEST(exec_killed, leaves_no_shared_memory_behind) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for_ranks(3, [&](const backends& b, const sucl_comm_info& info) {
      std::vector<float> in(100000, 1), out(in.size());
      auto o = operation(kind::allreduce, type::fp32, in.size(), op::sum);
      o.send = in.data();
      o.recv = out.data();
      for (int i = 0;; ++i) {
        if (run(b.plan, o).status != SUCL_SUCCESS) _exit(1);
        if (i == 10 && info.rank == 0 && write(ready[1], "r", 1) != 1) _exit(1);
      }
    });
  }
  char token = 0;
  ASSERT_EQ(read(ready[0], &token, 1), 1);
  const auto folder = "/proc/" + std::to_string(child);
  const std::string maps = read_file(folder + "/maps");
  std::size_t shared = 0;
  for (std::size_t at = 0; (at = maps.find("memfd:sucl (deleted)", at)) != maps.npos; ++at)
    ++shared;
  EXPECT_EQ(shared, 3u) << maps;  // one part a rank, mapped once, and no file with a name
  EXPECT_EQ(maps.find("/dev/shm"), maps.npos);
  EXPECT_EQ(maps.find("SYSV"), maps.npos);
  // The descriptors are closed: the mappings are all that holds the memory.
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code gone;
    EXPECT_EQ(std::filesystem::read_symlink(entry, gone).string().find("memfd"), std::string::npos);
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
}

TEST(exec_plan, refuses_too_many_ranks_on_all) {
  core::registry registry;
  std::string obstacle;
  const core::channel c = core::plan_channel({}, 0, core::most_plan_ranks + 1, &obstacle);
  EXPECT_EQ(c.table, nullptr);
  EXPECT_NE(obstacle.find("ranks"), std::string::npos);
}

// ---- the reductions themselves

// All instruction sets give the same bits, for one source to five and odd places and lengths.
TEST(fold, is_the_same_with_every_instruction_set) {
  using core::instruction_set;
  std::mt19937_64 random(5);
  for (sucl_type t = 1; t < SUCL_TYPE_COUNT; ++t) {
    for (sucl_op o = 1; o < SUCL_OP_COUNT; ++o) {
      const auto base = core::find_fold(instruction_set::baseline, t, o);
      EXPECT_EQ(base != nullptr, defined(static_cast<op>(o), static_cast<type>(t)));
      if (!base) continue;
      const std::size_t one = size_of(static_cast<type>(t));
      for (const std::size_t sources : {1, 2, 3, 5}) {
        const std::uint64_t n = random() % 700;
        std::vector<bytes> in(sources, bytes(n * one + 3));
        std::vector<const void*> from;
        for (bytes& b : in) {
          for (std::uint64_t i = 0; i < n; ++i)
            write_element(static_cast<type>(t), random(), b.data() + 3 + i * one);
          from.push_back(b.data() + 3);
        }
        bytes want(n * one + 1), got(n * one + 1);
        if (t == SUCL_TYPE_INT16_LOC || t == SUCL_TYPE_FP64_LOC || t == SUCL_TYPE_INT64_LOC)
          continue;  // they have bytes that are nobody's
        base(want.data() + 1, from.data(), sources, n, 3);
        for (const auto set : {instruction_set::avx2, instruction_set::avx512}) {
          if (set < core::best_instruction_set()) continue;
          core::find_fold(set, t, o)(got.data() + 1, from.data(), sources, n, 3);
          EXPECT_EQ(got, want) << name(static_cast<type>(t)) << " " << name(static_cast<op>(o))
                               << " " << core::name(set) << " of " << sources;
        }
        // The result may replace any source.
        const std::size_t at = random() % sources;
        base(in[at].data() + 3, from.data(), sources, n, 3);
        EXPECT_EQ(std::memcmp(in[at].data() + 3, want.data() + 1, n * one), 0);
      }
    }
  }
}

TEST(fold, rounds_16_bit_floats_once) {
  // 1 + 2^-11 + 2^-11 is 1 + 2^-10 when rounded once, and 1 when rounded twice.
  const std::uint16_t big = 0x3c00, small = 0x1000;
  const void* from[] = {&big, &small, &small, &small};
  std::uint16_t sum = 0;
  core::find_fold(SUCL_TYPE_FP16, SUCL_OP_SUM)(&sum, from, 3, 1, 1);
  EXPECT_EQ(sum, 0x3c01);
}

}  // namespace
