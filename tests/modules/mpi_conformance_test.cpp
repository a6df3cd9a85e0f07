// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Every collective kind x type x op x in place x count x form, against results computed apart.
#include "mpi_elements.hpp"
#include "mpi_module.hpp"

#include <gtest/gtest.h>

namespace {
int g_takes_cuda = 0;
bool g_was_queried = false;
}  // namespace

/// Stands before the function of that name in Open MPI and MPICH.
extern "C" __attribute__((visibility("default"))) int MPIX_Query_cuda_support() {
  g_was_queried = true;
  return g_takes_cuda;
}

namespace sucl::test {
namespace {

/// What one case varies.
struct scenario {
  sucl_kind kind;
  const element_kind* element;
  sucl_op op;
  std::uint64_t count;
  bool in_place;
  bool blocking;
  int root;
  std::uint64_t gap;  ///< elements between the blocks of the v-kinds
};

std::string text(const scenario& s) {
  return std::string(name(static_cast<kind>(s.kind))) + " " + s.element->name + " " +
         name(static_cast<op>(s.op)) + " count " + std::to_string(s.count) + " root " +
         std::to_string(s.root) + " gap " + std::to_string(s.gap) +
         (s.in_place ? " in place" : "") + (s.blocking ? " blocking" : " started") + ", rank " +
         std::to_string(module().rank) + " of " + std::to_string(module().size);
}

/// A buffer of elements, with a guard behind them.
class buffer {
 public:
  static constexpr std::uint64_t guard = 3;

  buffer(const element_kind& e, std::uint64_t elements)
      : m_element(e), m_bytes((elements + guard) * e.size, std::byte{0xA5}) {}

  std::byte* data() { return m_bytes.data(); }
  std::byte* at(std::uint64_t i) { return m_bytes.data() + i * m_element.size; }
  const std::byte* at(std::uint64_t i) const { return m_bytes.data() + i * m_element.size; }
  std::uint64_t elements() const { return m_bytes.size() / m_element.size; }
  void put(std::uint64_t i, int r, std::uint64_t id, sucl_op op) {
    m_element.make(at(i), r, id, op);
  }

 private:
  const element_kind& m_element;
  std::vector<std::byte> m_bytes;
};

/// Lengths and displacements of the v-kinds' blocks: some empty, the same both ways, last rank
/// first.
std::uint64_t block_length(const scenario& s, int a, int b) {
  return s.count * static_cast<std::uint64_t>((a + b) % 3) / 2;
}

struct blocks {
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> displs;
  std::uint64_t end = 0;
};

blocks blocks_between(const scenario& s, bool with_self, int self) {
  blocks b;
  const int size = module().size;
  b.counts.resize(static_cast<std::size_t>(size));
  b.displs.resize(b.counts.size());
  for (int r = size - 1; r >= 0; --r) {
    const auto i = static_cast<std::size_t>(r);
    b.counts[i] = block_length(s, r, with_self ? self : 0);
    b.displs[i] = b.end;
    b.end += b.counts[i] + s.gap;
  }
  return b;
}

/// One case: memory before the operation, and what it must hold after it.
class trial {
 public:
  trial(const scenario& s, backend_comm& comm, int& failures);
  void run();

 private:
  std::uint64_t ranks() const { return static_cast<std::uint64_t>(m_size); }
  bool at_root() const { return m_rank == m_s.root; }
  static std::uint64_t id(int to, std::uint64_t i) {
    return static_cast<std::uint64_t>(to) * 4096 + i;
  }
  void allocate(std::uint64_t send, std::uint64_t recv);
  /// Element `i` of the input: of send, or of recv where the operation is in place.
  void input(std::uint64_t in_send, std::uint64_t in_recv, std::uint64_t id);
  void expect(std::uint64_t i, int from, std::uint64_t id);
  void expect_reduced(std::uint64_t i, int first, int last, std::uint64_t id);
  void ignore_from(std::uint64_t i) { m_ignored_from = i; }
  void set_up();
  void set_up_broadcast();
  void set_up_reduction();
  void set_up_reduce_scatter();
  void set_up_gather();
  void set_up_alltoall();
  void set_up_scatter();
  void compare();

  const scenario& m_s;
  backend_comm& m_comm;
  int& m_failures;  ///< a few say enough; the ranks must go on together
  const element_kind& m_e;
  int m_rank;
  int m_size;
  sucl_operation m_operation;
  blocks m_send_blocks, m_recv_blocks;
  std::vector<buffer> m_memory;  ///< send, recv, expected
  std::uint64_t m_ignored_from = ~std::uint64_t{0};
};

trial::trial(const scenario& s, backend_comm& comm, int& failures)
    : m_s(s),
      m_comm(comm),
      m_failures(failures),
      m_e(*s.element),
      m_rank(module().rank),
      m_size(module().size) {
  m_operation = make_operation(s.kind);
  m_operation.type = m_e.type;
  m_operation.op = s.op;
  m_operation.element_size = m_e.size;
  m_operation.root = s.root;
  m_operation.count = s.count;
  m_operation.flags = (s.in_place ? unsigned{SUCL_FLAG_IN_PLACE} : 0u) |
                      (s.blocking ? unsigned{SUCL_FLAG_MAY_BLOCK} : 0u);
}

void trial::allocate(std::uint64_t send, std::uint64_t recv) {
  m_memory.emplace_back(m_e, send);
  m_memory.emplace_back(m_e, recv);
  m_memory.emplace_back(m_e, recv);
}

void trial::input(std::uint64_t in_send, std::uint64_t in_recv, std::uint64_t id) {
  if (m_s.in_place) {
    m_memory[1].put(in_recv, m_rank, id, m_s.op);
    m_memory[2].put(in_recv, m_rank, id, m_s.op);
  } else {
    m_memory[0].put(in_send, m_rank, id, m_s.op);
  }
}

void trial::expect(std::uint64_t i, int from, std::uint64_t id) {
  m_memory[2].put(i, from, id, m_s.op);
}

void trial::expect_reduced(std::uint64_t i, int first, int last, std::uint64_t id) {
  if (first == last) return;
  m_memory[2].put(i, first, id, m_s.op);
  std::vector<std::byte> other(m_e.size);
  for (int r = first + 1; r < last; ++r) {
    m_e.make(other.data(), r, id, m_s.op);
    m_e.combine(m_memory[2].at(i), other.data(), m_s.op);
  }
}

void trial::set_up_broadcast() {
  allocate(m_s.count, m_s.count);
  for (std::uint64_t i = 0; i < m_s.count; ++i) {
    if (at_root()) input(i, i, i);
    if (!at_root()) expect(i, m_s.root, i);
  }
}

void trial::set_up_reduction() {
  allocate(m_s.count, m_s.count);
  int last = m_size;
  if (m_s.kind == SUCL_KIND_SCAN) last = m_rank + 1;
  if (m_s.kind == SUCL_KIND_EXSCAN) last = m_rank;
  for (std::uint64_t i = 0; i < m_s.count; ++i) {
    input(i, i, i);
    if (m_s.kind != SUCL_KIND_REDUCE || at_root()) expect_reduced(i, 0, last, i);
  }
}

void trial::set_up_reduce_scatter() {
  const bool varied = m_s.kind == SUCL_KIND_REDUCE_SCATTER;
  if (varied) m_recv_blocks = blocks_between(m_s, false, 0);
  std::uint64_t total = 0;
  std::uint64_t mine = 0;
  std::uint64_t before = 0;
  for (int r = 0; r < m_size; ++r) {
    const auto n = varied ? m_recv_blocks.counts[static_cast<std::size_t>(r)] : m_s.count;
    if (r == m_rank) {
      mine = n;
      before = total;
    }
    total += n;
  }
  allocate(total, m_s.in_place ? total : mine);
  for (std::uint64_t i = 0; i < total; ++i) input(i, i, i);
  for (std::uint64_t i = 0; i < mine; ++i) expect_reduced(i, 0, m_size, before + i);
  if (m_s.in_place) ignore_from(mine);
  if (varied) m_operation.recv_counts = m_recv_blocks.counts.data();
}

void trial::set_up_gather() {
  const bool varied = m_s.kind == SUCL_KIND_ALLGATHERV || m_s.kind == SUCL_KIND_GATHERV;
  const bool rooted = m_s.kind == SUCL_KIND_GATHER || m_s.kind == SUCL_KIND_GATHERV;
  const bool has_all = !rooted || at_root();
  const auto me = static_cast<std::size_t>(m_rank);
  m_recv_blocks = blocks_between(m_s, false, 0);
  if (!varied) {
    for (std::size_t r = 0; r < ranks(); ++r) {
      m_recv_blocks.counts[r] = m_s.count;
      m_recv_blocks.displs[r] = r * m_s.count;
    }
    m_recv_blocks.end = ranks() * m_s.count;
  }
  const std::uint64_t mine = m_recv_blocks.counts[me];
  const std::uint64_t offset =
      m_s.kind == SUCL_KIND_GATHERV && !at_root() ? 0 : m_recv_blocks.displs[me];
  allocate(mine, m_recv_blocks.end + mine);
  for (std::uint64_t i = 0; i < mine; ++i) input(i, offset + i, i);
  for (std::size_t r = 0; has_all && r < ranks(); ++r)
    for (std::uint64_t i = 0; i < m_recv_blocks.counts[r]; ++i)
      expect(m_recv_blocks.displs[r] + i, static_cast<int>(r), i);
  if (varied) m_operation.count = mine;
  if (varied && has_all) {
    m_operation.recv_counts = m_recv_blocks.counts.data();
    m_operation.recv_displs = m_recv_blocks.displs.data();
  }
}

void trial::set_up_alltoall() {
  const bool varied = m_s.kind == SUCL_KIND_ALLTOALLV;
  m_recv_blocks = blocks_between(m_s, true, m_rank);
  if (!varied) {
    for (std::size_t r = 0; r < ranks(); ++r) {
      m_recv_blocks.counts[r] = m_s.count;
      m_recv_blocks.displs[r] = r * m_s.count;
    }
    m_recv_blocks.end = ranks() * m_s.count;
  }
  m_send_blocks = m_recv_blocks;
  if (varied && !m_s.in_place) {
    // Another order than that of what is received.
    std::uint64_t end = 1;
    for (std::size_t r = 0; r < ranks(); ++r) {
      m_send_blocks.displs[r] = end;
      end += m_send_blocks.counts[r];
    }
    m_send_blocks.end = end;
  }
  allocate(m_send_blocks.end, m_recv_blocks.end);
  for (std::size_t r = 0; r < ranks(); ++r) {
    for (std::uint64_t i = 0; i < m_recv_blocks.counts[r]; ++i)
      input(m_send_blocks.displs[r] + i, m_recv_blocks.displs[r] + i, id(static_cast<int>(r), i));
  }
  for (std::size_t r = 0; r < ranks(); ++r)
    for (std::uint64_t i = 0; i < m_recv_blocks.counts[r]; ++i)
      expect(m_recv_blocks.displs[r] + i, static_cast<int>(r), id(m_rank, i));
  if (!varied) return;
  m_operation.count = 0;
  m_operation.send_counts = m_send_blocks.counts.data();
  m_operation.send_displs = m_send_blocks.displs.data();
  m_operation.recv_counts = m_recv_blocks.counts.data();
  m_operation.recv_displs = m_recv_blocks.displs.data();
}

void trial::set_up_scatter() {
  const bool varied = m_s.kind == SUCL_KIND_SCATTERV;
  m_send_blocks = blocks_between(m_s, false, 0);
  if (!varied) {
    for (std::size_t r = 0; r < ranks(); ++r) {
      m_send_blocks.counts[r] = m_s.count;
      m_send_blocks.displs[r] = r * m_s.count;
    }
    m_send_blocks.end = ranks() * m_s.count;
  }
  const std::uint64_t mine = m_send_blocks.counts[static_cast<std::size_t>(m_rank)];
  const bool keeps = m_s.in_place && at_root();
  allocate(m_send_blocks.end, keeps ? m_send_blocks.end : mine);
  for (std::size_t r = 0; at_root() && r < ranks(); ++r)
    for (std::uint64_t i = 0; i < m_send_blocks.counts[r]; ++i)
      input(m_send_blocks.displs[r] + i, m_send_blocks.displs[r] + i, id(static_cast<int>(r), i));
  for (std::uint64_t i = 0; !keeps && i < mine; ++i) expect(i, m_s.root, id(m_rank, i));
  if (varied) m_operation.count = mine;
  if (varied && at_root()) {
    m_operation.send_counts = m_send_blocks.counts.data();
    m_operation.send_displs = m_send_blocks.displs.data();
  }
}

void trial::set_up() {
  switch (m_s.kind) {
    case SUCL_KIND_BROADCAST: return set_up_broadcast();
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return set_up_reduction();
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return set_up_reduce_scatter();
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return set_up_gather();
    case SUCL_KIND_ALLTOALL:
    case SUCL_KIND_ALLTOALLV: return set_up_alltoall();
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return set_up_scatter();
    default: return allocate(0, 0);
  }
}

void trial::compare() {
  const buffer& recv = m_memory[1];
  const buffer& expected = m_memory[2];
  const std::uint64_t guards = recv.elements() - buffer::guard;
  for (std::uint64_t i = 0; m_failures < 5 && i < recv.elements(); ++i) {
    if (i >= m_ignored_from && i < guards) continue;
    if (m_e.equal(recv.at(i), expected.at(i))) continue;
    ADD_FAILURE() << text(m_s) << ": element " << i << " of recv is wrong";
    ++m_failures;
    return;
  }
}

void trial::run() {
  set_up();
  // Pointers that a rank does not need are null, as the contract allows.
  const bool scatters = m_s.kind == SUCL_KIND_SCATTER || m_s.kind == SUCL_KIND_SCATTERV;
  const bool reads_send = (m_s.kind != SUCL_KIND_BROADCAST && !scatters) || at_root();
  m_operation.send = m_s.in_place || !reads_send ? nullptr : m_memory[0].data();
  m_operation.recv = m_memory[1].data();
  const sucl_status status = m_comm.run(m_operation);
  ASSERT_EQ(status, SUCL_SUCCESS) << text(m_s) << ": " << module().error.message;
  compare();
}

const std::vector<sucl_kind> moving{SUCL_KIND_BROADCAST, SUCL_KIND_ALLGATHER, SUCL_KIND_ALLGATHERV,
                                    SUCL_KIND_ALLTOALL,  SUCL_KIND_ALLTOALLV, SUCL_KIND_GATHER,
                                    SUCL_KIND_GATHERV,   SUCL_KIND_SCATTER,   SUCL_KIND_SCATTERV};

const std::vector<sucl_kind> reducing{SUCL_KIND_REDUCE,         SUCL_KIND_ALLREDUCE,
                                      SUCL_KIND_REDUCE_SCATTER, SUCL_KIND_REDUCE_SCATTER_BLOCK,
                                      SUCL_KIND_SCAN,           SUCL_KIND_EXSCAN};

/// All types and ops of one kind, over the counts that a limit of 1000 elements allows.
void run_all(sucl_kind kind, backend_comm& comm) {
  static const std::vector<element_kind> elements = all_elements();
  const bool reduces = sucl::reduces(static_cast<sucl::kind>(kind));
  // Many ranks on few processors take their time: there a part must do.
  const bool few = module().size <= 3;
  const std::vector<std::uint64_t> counts =
      few ? std::vector<std::uint64_t>{0, 1, 7, 1000} : std::vector<std::uint64_t>{7, 1000};
  const std::vector<int> forms = few ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 3};
  int number = 0;
  int failures = 0;
  for (const element_kind& e : elements) {
    for (const sucl_op op : reduces ? e.ops : std::vector<sucl_op>{SUCL_OP_NONE}) {
      ASSERT_TRUE(comm.supports(kind, e.type, op)) << e.name << " op " << op;
      for (const std::uint64_t count : counts) {
        for (const int form : forms) {
          const scenario s{kind,
                           &e,
                           op,
                           count,
                           (form & 1) != 0,
                           (form & 2) != 0,
                           ++number % module().size,
                           number % 2 == 0 ? 2u : 1500u};
          trial(s, comm, failures).run();
        }
      }
    }
  }
}

class collectives : public testing::TestWithParam<sucl_kind> {};

TEST_P(collectives, agree_with_the_reference) {
  backend_comm comm(module().world);
  run_all(GetParam(), comm);
}

// The limit makes small operations take the ways of those whose totals or displacements do not fit
// into MPI's counts.
TEST_P(collectives, agree_with_the_reference_beyond_the_limit) {
  backend_comm comm(module().world, {{"max_count", "1000"}});
  run_all(GetParam(), comm);
}

std::string kind_name(const testing::TestParamInfo<sucl_kind>& i) {
  return name(static_cast<kind>(i.param));
}

INSTANTIATE_TEST_SUITE_P(moving, collectives, testing::ValuesIn(moving), kind_name);
INSTANTIATE_TEST_SUITE_P(reducing, collectives, testing::ValuesIn(reducing), kind_name);

TEST(barrier, completes_in_both_forms) {
  backend_comm comm(module().world);
  for (const unsigned flags : {0u, unsigned{SUCL_FLAG_MAY_BLOCK}}) {
    sucl_operation o = make_operation(SUCL_KIND_BARRIER);
    o.flags = flags;
    EXPECT_EQ(comm.run(o), SUCL_SUCCESS) << module().error.message;
  }
}

// Operations of one communicator may be in flight together, and end in any order.
TEST(requests, overlap) {
  backend_comm comm(module().world);
  constexpr int many = 64;
  std::vector<std::int32_t> in(many), out(many);
  std::vector<sucl_request*> requests(many);
  for (int i = 0; i < many; ++i) {
    in[static_cast<std::size_t>(i)] = module().rank + i;
    sucl_operation o = make_operation(SUCL_KIND_ALLREDUCE);
    o.type = SUCL_TYPE_INT32;
    o.op = SUCL_OP_SUM;
    o.element_size = 4;
    o.count = 1;
    o.send = &in[static_cast<std::size_t>(i)];
    o.recv = &out[static_cast<std::size_t>(i)];
    ASSERT_EQ(comm.post(o, &requests[static_cast<std::size_t>(i)]), SUCL_SUCCESS);
  }
  const int size = module().size;
  for (int i = many - 1; i >= 0; --i) {
    EXPECT_EQ(comm.finish(requests[static_cast<std::size_t>(i)]), SUCL_SUCCESS);
    EXPECT_EQ(out[static_cast<std::size_t>(i)], size * i + size * (size - 1) / 2);
  }
}

TEST(query, leaves_to_the_core_what_mpi_lacks) {
  backend_comm comm(module().world);
  EXPECT_FALSE(comm.supports(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_AVG));
  EXPECT_FALSE(comm.supports(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP16, SUCL_OP_SUM));
  EXPECT_FALSE(comm.supports(SUCL_KIND_ALLREDUCE, SUCL_TYPE_BF16, SUCL_OP_MAX));
  EXPECT_FALSE(comm.supports(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_BIT_AND));
  EXPECT_FALSE(comm.supports(SUCL_KIND_ALLREDUCE, SUCL_TYPE_INT32, SUCL_OP_NONE));
  EXPECT_TRUE(comm.supports(SUCL_KIND_BROADCAST, SUCL_TYPE_FP16, SUCL_OP_NONE));
  EXPECT_FALSE(comm.supports(SUCL_KIND_COUNT, SUCL_TYPE_FP32, SUCL_OP_NONE));
}

TEST(query, follows_the_device_memory_setting) {
  for (const char* value : {"direct", "stage"}) {
    backend_comm comm(module().world, {{"device_memory", value}});
    EXPECT_EQ(comm.supports(SUCL_KIND_BROADCAST, SUCL_TYPE_FP32, SUCL_OP_NONE, SUCL_MEMORY_DEVICE),
              std::string(value) == "direct");
    EXPECT_TRUE(
        comm.supports(SUCL_KIND_BROADCAST, SUCL_TYPE_FP32, SUCL_OP_NONE, SUCL_MEMORY_SHARED));
  }
}

TEST(query, asks_the_library_for_each_platform) {
  for (const int takes : {0, 1}) {
    g_takes_cuda = takes;
    g_was_queried = false;
    backend_comm comm(module().world, {{"device_memory", "probe"}});
    const auto supported = [&](const char* platform) {
      return comm.supports(SUCL_KIND_BROADCAST, SUCL_TYPE_FP32, SUCL_OP_NONE, SUCL_MEMORY_DEVICE,
                           platform);
    };
    if (!g_was_queried) GTEST_SKIP() << "this library is not queried";
    EXPECT_EQ(supported("cuda"), takes == 1);
    EXPECT_FALSE(supported("level_zero"));
    EXPECT_FALSE(supported("hip"));
    EXPECT_EQ(supported(nullptr), takes == 1);
  }
}

// Copies within a rank go through MPI where memory is a device's. Host memory serves as well here.
TEST(device_memory, is_copied_by_mpi_beyond_the_limit) {
  backend_comm comm(module().world, {{"max_count", "4"}, {"device_memory", "direct"}});
  const auto size = static_cast<std::size_t>(module().size);
  std::vector<std::int32_t> data(size * 4);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = module().rank * 100 + static_cast<std::int32_t>(i);
  sucl_operation o = make_operation(SUCL_KIND_ALLTOALL);
  o.type = SUCL_TYPE_INT32;
  o.element_size = 4;
  o.count = 4;
  o.flags = SUCL_FLAG_IN_PLACE;
  o.recv = data.data();
  o.recv_memory = SUCL_MEMORY_DEVICE;
  ASSERT_EQ(comm.run(o), SUCL_SUCCESS) << module().error.message;
  for (std::size_t i = 0; i < data.size(); ++i)
    EXPECT_EQ(data[i], static_cast<std::int32_t>(i / 4 * 100 + i % 4) + module().rank * 4);

  std::vector<std::int32_t> sums(size * 4, module().rank + 1);
  sucl_operation r = make_operation(SUCL_KIND_REDUCE_SCATTER_BLOCK);
  r.type = SUCL_TYPE_INT32;
  r.op = SUCL_OP_SUM;
  r.element_size = 4;
  r.count = 4;
  r.flags = SUCL_FLAG_IN_PLACE;
  r.recv = sums.data();
  r.recv_memory = SUCL_MEMORY_DEVICE;
  ASSERT_EQ(comm.run(r), SUCL_SUCCESS) << module().error.message;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(sums[static_cast<std::size_t>(i)], module().size * (module().size + 1) / 2);
}

// A rank's block moves to the front, over elements of its own where what is before it is shorter.
TEST(reduce_scatter, in_place_with_blocks_longer_than_what_is_before) {
  backend_comm comm(module().world);
  const auto size = static_cast<std::size_t>(module().size);
  const auto rank = static_cast<std::size_t>(module().rank);
  std::vector<std::uint64_t> counts(size, 70'003);
  counts[0] = 10;
  const std::size_t before = rank == 0 ? 0 : 10 + (rank - 1) * 70'003;
  for (const bool blocking : {false, true}) {
    std::vector<std::int32_t> data(10 + (size - 1) * 70'003);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(i + rank);
    sucl_operation o = make_operation(SUCL_KIND_REDUCE_SCATTER);
    o.type = SUCL_TYPE_INT32;
    o.op = SUCL_OP_SUM;
    o.element_size = 4;
    o.recv_counts = counts.data();
    o.flags = SUCL_FLAG_IN_PLACE | (blocking ? SUCL_FLAG_MAY_BLOCK : 0);
    o.recv = data.data();
    ASSERT_EQ(comm.run(o), SUCL_SUCCESS) << module().error.message;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < counts[rank]; ++i)
      wrong += data[i] != static_cast<std::int32_t>(size * (before + i) + size * (size - 1) / 2);
    EXPECT_EQ(wrong, 0u) << (blocking ? "blocking" : "not blocking");
  }
}

TEST(settings, are_checked) {
  mpi_module& m = module();
  const std::vector<sucl_setting> wrong{
      {"device_memory", "maybe"}, {"max_count", "0"},
      {"max_count", "12x"},       {"max_count", "-1"},
      {"max_count", ""},          {"max_count", "1152921504606846977"},
      {"max_cout", "12"},         {"max_count", "18446744073709551616"}};
  for (const sucl_setting& s : wrong) {
    sucl_state* state = nullptr;
    EXPECT_EQ(m.backend->open(&m.core, &s, 1, &state), SUCL_ERROR_CONFIGURATION) << s.key;
    EXPECT_NE(m.error.message.find(s.key), std::string::npos) << m.error.message;
    EXPECT_EQ(state, nullptr);
    if (std::string_view(s.key) != "max_count") continue;
    EXPECT_NE(m.error.hint.find("from 1 to 1152921504606846976"), std::string::npos);
  }
}

TEST(errors, are_found_before_mpi_is_called) {
  backend_comm comm(module().world);
  std::int32_t one = 1, two = 2;
  sucl_operation o = make_operation(SUCL_KIND_REDUCE);
  o.type = SUCL_TYPE_INT32;
  o.element_size = 4;
  o.count = 1;
  o.send = &one;
  o.recv = &two;
  o.op = SUCL_OP_AVG;
  EXPECT_EQ(comm.run(o), SUCL_ERROR_UNSUPPORTED);
  o.op = SUCL_OP_SUM;
  for (const int root : {-1, module().size}) {
    o.root = root;
    EXPECT_EQ(comm.run(o), SUCL_ERROR_INVALID_RANK);
    EXPECT_NE(module().error.message.find(std::to_string(root)), std::string::npos);
  }
  o.kind = SUCL_KIND_COUNT;
  EXPECT_EQ(comm.run(o), SUCL_ERROR_UNSUPPORTED);
  backend_comm small(module().world, {{"max_count", "5"}});
  o = make_operation(SUCL_KIND_BROADCAST);
  o.count = 6;
  EXPECT_EQ(small.run(o), SUCL_ERROR_INVALID_COUNT);
}

}  // namespace
}  // namespace sucl::test

int main(int argc, char** argv) { return sucl::test::run_tests(argc, argv); }
