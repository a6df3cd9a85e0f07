// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "unit/shm_plan/executor_draw.hpp"

#include "bench/reference/delivery.hpp"
#include "core/selection/backend_creation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <thread>

namespace sucl::testing {

namespace {

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

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
    case type::fp8_e4m3: {
      constexpr std::uint8_t of[] = {0xc0, 0xb8, 0, 0x38, 0x40};
      return put(at, of[small + 2]);
    }
    case type::fp8_e5m2: {
      constexpr std::uint8_t of[] = {0xc0, 0xbc, 0, 0x3c, 0x40};
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
    case type::int64_loc:  // all of it, for what comes last is padding
      put(at, static_cast<std::int64_t>(small));
      return put(at + 8, bits / 5 % 7);
    case type::fp32_loc: return put(at, loc<float>{static_cast<float>(small), 2});
    case type::fp64_loc: put(at, static_cast<double>(small)); return put(at + 8, std::uint64_t{1});
    default: std::memcpy(at, &bits, size_of(t));
  }
}

namespace {

constexpr kind kinds[] = {kind::barrier,   kind::broadcast,      kind::reduce,
                          kind::allreduce, kind::reduce_scatter, kind::reduce_scatter_block,
                          kind::allgather, kind::allgatherv,     kind::alltoall,
                          kind::gather,    kind::scatter,        kind::scan,
                          kind::exscan,    kind::alltoallv,      kind::gatherv,
                          kind::scatterv};

}  // namespace

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
  d.misalignment = random() % 2 ? random() % 64 : 0;
  d.symmetric = random() % 2;
  std::uint64_t at = 0;
  for (int r = 0; r < size; ++r) {
    d.counts.push_back(random() % 4 ? random() % (d.count + 1) : 0);
    at += d.what == kind::reduce_scatter ? 0 : random() % 3;
    d.displs.push_back(at);
    at += d.counts.back();
  }
  // Equal blocks have ways of their own.
  const bool gathers = d.what == kind::allgatherv;
  if ((d.what == kind::reduce_scatter || gathers) && d.symmetric)
    d.counts.assign(static_cast<std::size_t>(size), d.count);
  if (gathers && d.symmetric)
    for (std::size_t r = 0; r < d.displs.size(); ++r) d.displs[r] = r * (d.count + d.seed % 3);
  return d;
}

namespace {

// The arrays of an alltoallv.
void prepare_pairs(const draw& d, int rank, int size, memory& m) {
  for (int side = 0; side < 2; ++side) {
    std::uint64_t at = 0;
    for (int r = 0; r < size; ++r) {
      m.counts[side].push_back(side == 0 ? d.between(rank, r) : d.between(r, rank));
      m.displs[side].push_back(at + static_cast<std::uint64_t>(r % 2));
      at = m.displs[side].back() + m.counts[side].back();
    }
  }
}

}  // namespace

sucl_operation prepare(const draw& d, int rank, int size, bool in_place, memory& m) {
  auto o = operation(d.what, d.element, d.count, d.reduction);
  o.root = d.root;
  if (d.what == kind::reduce_scatter || d.what == kind::alltoallv) o.count = 0;
  if (d.what == kind::allgatherv || d.what == kind::gatherv || d.what == kind::scatterv)
    o.count = d.counts[static_cast<std::size_t>(rank)];
  if (d.what == kind::alltoallv) prepare_pairs(d, rank, size, m);
  const bool root = rank == d.root;
  if (d.what == kind::reduce_scatter || d.what == kind::allgatherv ||
      (d.what == kind::gatherv && root))
    o.recv_counts = d.counts.data();
  if (d.what == kind::allgatherv || (d.what == kind::gatherv && root))
    o.recv_displs = d.displs.data();
  if (d.what == kind::scatterv && root) {
    o.send_counts = d.counts.data();
    o.send_displs = d.displs.data();
  }
  if (d.what == kind::alltoallv) {
    o.send_counts = m.counts[0].data();
    o.send_displs = m.displs[0].data();
    o.recv_counts = m.counts[1].data();
    o.recv_displs = m.displs[1].data();
  }
  // Memory that is not of the result has to stay as it is.
  const std::uint64_t send = std::max(d.count, end_of(reference::contributed(o, rank, size)));
  const std::uint64_t recv = std::max(d.count, end_of(reference::delivered(o, rank, size)));
  const std::uint64_t size_one = o.element_size;
  std::mt19937_64 random(d.seed * 131 + static_cast<std::uint64_t>(rank));
  m.send.assign(send * size_one + d.misalignment, std::byte{0});
  m.recv.assign(std::max(send, recv) * size_one + d.misalignment, std::byte{0});
  for (bytes* side : {&m.send, &m.recv})
    for (std::uint64_t i = d.misalignment; i + size_one <= side->size(); i += size_one)
      write_element(d.element, random(), side->data() + i);
  // Only the root gathers in place, and only it scatters so.
  const bool gathers_or_scatters = d.what == kind::gather || d.what == kind::gatherv ||
                                   d.what == kind::scatter || d.what == kind::scatterv;
  if (gathers_or_scatters && !root) in_place = false;
  if (d.what == kind::alltoallv && !d.symmetric) in_place = false;
  o.recv = m.recv.data() + d.misalignment;
  if (in_place) {
    o.flags |= SUCL_FLAG_IN_PLACE;
    if (d.what == kind::scatter || d.what == kind::scatterv)
      o.flags &= ~std::uint32_t{SUCL_FLAG_IN_PLACE};
  }
  o.send = o.flags & SUCL_FLAG_IN_PLACE ? nullptr : m.send.data() + d.misalignment;
  return o;
}

std::string describe(const draw& d, int rank, int size, bool in_place) {
  return std::string(name(d.what)) + " of " + std::to_string(d.count) + " " + name(d.element) +
         " " + name(d.reduction) + ", root " + std::to_string(d.root) + ", seed " +
         std::to_string(d.seed) + ", rank " + std::to_string(rank) + " of " + std::to_string(size) +
         (in_place ? ", in place" : "");
}

bytes without_padding(type t, std::size_t misalignment, bytes b) {
  const bool tail = t == type::int64_loc || t == type::fp64_loc;
  const std::size_t one = size_of(t);
  for (std::size_t i = misalignment; i + one <= b.size(); i += one) {
    if (t == type::int16_loc) std::fill_n(b.data() + i + 2, 2, std::byte{0});
    if (tail) std::fill_n(b.data() + i + 12, 4, std::byte{0});
  }
  return b;
}

bool same(const draw& d, bytes a, bytes b) {
  a = without_padding(d.element, d.misalignment, std::move(a));
  b = without_padding(d.element, d.misalignment, std::move(b));
  if (a == b) return true;
  const bool complex = d.element == type::complex_fp32 || d.element == type::complex_fp64;
  if (d.reduction != op::avg && !complex) return false;  // a zero may have another sign
  const bool wide = d.element == type::fp64 || d.element == type::complex_fp64;
  const std::size_t step = wide ? 8 : d.element == type::complex_fp32 ? 4 : 0;
  if (step == 0 || a.size() != b.size()) return false;
  for (std::size_t i = d.misalignment; i + step <= a.size(); i += step) {
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

void for_nodes(const std::vector<int>& node_of, const rank_body& body,
               std::vector<std::pair<std::string, std::string>> settings, const tune::table* tuned,
               bool ordered) {
  const int size = static_cast<int>(node_of.size());
  message_board board, block_descriptors;
  core::registry registry;
  const auto& memory_provider =
      registry.open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", std::move(settings)});
  const auto& model = registry.open({"mock", SUCL_TEST_MODULES "/libsucl_backend_mock.so", {}});
  run_ranks(size, [&](const sucl_comm_info& given) {
    sucl_comm_info info = given;
    info.node_of = node_of.data();
    backends b;
    b.ipc = create_comm(memory_provider, info);
    std::string obstacle;
    const bool oversubscribed = info.size > static_cast<int>(std::thread::hardware_concurrency());
    core::placement where{info.rank, info.size, node_of, {}, oversubscribed};
    if (where.several_nodes()) where.transports.push_back({"threads", board.open(info.rank)});
    b.plan = core::make_plan_comm(b.ipc, where, &obstacle, tuned, ordered);
    EXPECT_EQ(obstacle, "");
    if (!where.several_nodes() && core::can_read(b.ipc, info.size)) core::allow_reads(b.plan);
    if (where.several_nodes()) where.transports = {{"threads", block_descriptors.open(info.rank)}};
    b.messages = core::make_message_comm(b.ipc, where, core::can_read(b.ipc, info.size), &obstacle);
    EXPECT_EQ(obstacle, "");
    // A channel's user has its exchanges for itself.
    sucl_oob own = core::oob_split(*info.oob, info.rank);
    sucl_comm_info other = info;
    other.oob = &own;
    b.mock = create_comm(model, other);
    body(b, info);
    destroy(b.mock);
    destroy(b.messages);
    destroy(b.plan);
    destroy(b.ipc);
    core::oob_free(own);
  });
  EXPECT_TRUE(board.empty() && block_descriptors.empty());
}

void for_ranks(int size, const rank_body& body,
               std::vector<std::pair<std::string, std::string>> settings,
               const tune::table* tuned) {
  for_nodes(std::vector<int>(static_cast<std::size_t>(size), 0), body, std::move(settings), tuned);
}

bool supports(const core::backend_comm& c, const draw& d) {
  sucl_query q{};
  q.struct_size = sizeof q;
  q.kind = static_cast<sucl_kind>(d.what);
  q.type = static_cast<sucl_type>(d.element);
  q.op = static_cast<sucl_op>(d.reduction);
  q.element_size = size_of(d.element);
  sucl_capability answer{};
  answer.struct_size = sizeof answer;
  c.table->query(c.state, &q, &answer);
  return answer.supported;
}

tune::table table_of(const char* recipe, tune::memory_kind memory) {
  tune::table t;
  for (int k = SUCL_KIND_BARRIER + 1; k <= SUCL_KIND_EXSCAN; ++k) {
    const plan::recipe how = plan::recipe_from_text(recipe);
    const auto list = plan::algorithms_for(static_cast<kind>(k));
    if (std::none_of(list.begin(), list.end(),
                     [&](const auto* a) { return how.algorithm == a->name; }))
      continue;
    tune::table_row row;
    row.what = static_cast<kind>(k);
    row.memory = memory;
    row.backend = "plan";
    row.how = how;
    row.slice = 16 << 10;
    row.origin = "a test";
    t.rows.push_back(row);
  }
  return t;
}

}  // namespace sucl::testing
