// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/operation.hpp"
#include "core/staging/blocks.hpp"
#include "core/staging/staged_operation.hpp"

#include <sucl/error.hpp>
#include <sucl/types.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace sucl;
using core::layouts;
using core::plan_staging;
using core::staging;
using core::staging_plan;
using core::transfer_formats;

constexpr std::uint32_t host_only =
    1u << SUCL_MEMORY_SYSTEM | 1u << SUCL_MEMORY_HOST | 1u << SUCL_MEMORY_SHARED;
constexpr std::uint32_t device_only = 1u << SUCL_MEMORY_DEVICE;
constexpr std::uint32_t everywhere = host_only | device_only;

// Answers "in these memories, up to this count", or 0 memories for "no".
struct answer {
  std::uint32_t memories;
  std::uint64_t max_count = 0;
};

transfer_formats table_of(std::function<answer(const sucl_query&)> rule) {
  return transfer_formats("test", [rule = std::move(rule)](const sucl_query& q) {
    const answer a = rule(q);
    sucl_capability result{};
    result.struct_size = sizeof(result);
    result.supported = (a.memories >> q.memory & 1u) != 0;
    result.max_count = a.max_count;
    return result;
  });
}

bool mpi_lacks(const sucl_query& q) {
  return reduces(static_cast<kind>(q.kind)) &&
         (q.type == SUCL_TYPE_FP16 || q.type == SUCL_TYPE_BF16 || q.op == SUCL_OP_AVG);
}

transfer_formats mpi_table(std::uint32_t memories = host_only) {
  return table_of([=](const sucl_query& q) { return answer{mpi_lacks(q) ? 0 : memories}; });
}

sucl_operation operation(sucl_kind kind, sucl_type type, sucl_op op, std::uint64_t count = 10,
                         sucl_memory memory = SUCL_MEMORY_SYSTEM) {
  static char memory_of_all[64];
  sucl_operation o{};
  o.struct_size = sizeof(o);
  o.kind = kind;
  o.type = type;
  o.op = op;
  o.element_size = type == SUCL_TYPE_BYTES ? 12 : size_of(static_cast<sucl::type>(type));
  o.count = count;
  o.send = memory_of_all;
  o.recv = memory_of_all + 32;
  o.send_memory = o.recv_memory = memory;
  return o;
}

TEST(plan_staging, leaves_alone_what_is_native) {
  transfer_formats formats = mpi_table(everywhere);
  for (const sucl_memory memory : {SUCL_MEMORY_SYSTEM, SUCL_MEMORY_DEVICE}) {
    for (const sucl_kind kind : {SUCL_KIND_ALLREDUCE, SUCL_KIND_SCAN})
      EXPECT_FALSE(
          plan_staging(operation(kind, SUCL_TYPE_FP32, SUCL_OP_SUM, 10, memory), {}, formats, {})
              .needed);
    for (const sucl_kind kind :
         {SUCL_KIND_BROADCAST, SUCL_KIND_ALLTOALL, SUCL_KIND_SENDRECV, SUCL_KIND_BARRIER})
      EXPECT_FALSE(
          plan_staging(operation(kind, SUCL_TYPE_FP16, SUCL_OP_NONE, 10, memory), {}, formats, {})
              .needed);
  }
}

TEST(plan_staging, knows_a_wire_for_each_average) {
  const std::vector<std::array<sucl_type, 3>> rows{
      {SUCL_TYPE_INT8, SUCL_TYPE_INT64, 1},  {SUCL_TYPE_UINT32, SUCL_TYPE_INT64, 1},
      {SUCL_TYPE_INT64, SUCL_TYPE_INT64, 2}, {SUCL_TYPE_UINT64, SUCL_TYPE_UINT64, 2},
      {SUCL_TYPE_FP16, SUCL_TYPE_FP32, 1},   {SUCL_TYPE_BF16, SUCL_TYPE_FP32, 1},
      {SUCL_TYPE_FP64, SUCL_TYPE_FP64, 1},   {SUCL_TYPE_COMPLEX_FP32, SUCL_TYPE_COMPLEX_FP32, 1}};
  transfer_formats formats = mpi_table();
  for (const auto& [type, on_wire, components] : rows) {
    const staging_plan a =
        plan_staging(operation(SUCL_KIND_ALLREDUCE, type, SUCL_OP_AVG), {}, formats, {});
    EXPECT_TRUE(a.needed);
    EXPECT_EQ(a.type, on_wire);
    EXPECT_EQ(a.op, SUCL_OP_SUM);
    ASSERT_NE(a.convert, nullptr);
    EXPECT_EQ(a.convert->components, static_cast<std::uint32_t>(components));
    EXPECT_EQ(a.element_size, size_of(static_cast<sucl::type>(on_wire)));
    EXPECT_EQ(a.scratch_send, a.convert->load != nullptr);
  }
}

TEST(plan_staging, does_not_convert_what_some_memory_supports_natively) {
  // Whether elements are converted must not depend on where a rank's memory is.
  transfer_formats formats = table_of([](const sucl_query& q) {
    return answer{q.type == SUCL_TYPE_FP16 ? device_only : everywhere};
  });
  const auto on = [&](sucl_memory memory) {
    return plan_staging(operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP16, SUCL_OP_SUM, 10, memory), {},
                        formats, {});
  };
  EXPECT_FALSE(on(SUCL_MEMORY_DEVICE).needed);
  EXPECT_THROW(on(SUCL_MEMORY_SYSTEM), error);
}

TEST(plan_staging, stages_memory_out_of_reach) {
  transfer_formats formats = mpi_table();
  sucl_operation o = operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_SUM);
  o.recv_memory = SUCL_MEMORY_DEVICE;
  staging_plan a = plan_staging(o, {}, formats, {});
  EXPECT_TRUE(a.needed);
  EXPECT_FALSE(a.scratch_send);
  EXPECT_TRUE(a.stage_recv);
  o.flags = SUCL_FLAG_IN_PLACE;
  o.send_memory = SUCL_MEMORY_DEVICE;
  a = plan_staging(o, {}, formats, {});
  EXPECT_FALSE(a.scratch_send);
  EXPECT_TRUE(a.scratch_recv);
}

TEST(plan_staging, stages_compiled_plans_of_the_host_as_a_whole) {
  transfer_formats formats = mpi_table();
  sucl_operation o = operation(core::compiled_plan_kind, SUCL_TYPE_FP32, SUCL_OP_NONE, 1 << 20);
  o.recv_count = 1 << 22;
  EXPECT_FALSE(plan_staging(o, {}, formats, {}).needed);
  o.recv_memory = SUCL_MEMORY_DEVICE;
  const staging_plan a = plan_staging(o, {}, formats, {});
  EXPECT_TRUE(a.needed);
  EXPECT_FALSE(a.scratch_send);
  EXPECT_TRUE(a.stage_recv);
  const core::task t = core::make_task(o, a);
  EXPECT_EQ(t.slices, 1u);
  EXPECT_TRUE(t.keeps_sink);
  EXPECT_EQ(t.sink.wire_count(0, a.slice_elements), o.recv_count);
}

TEST(plan_staging, leaves_compiled_plans_of_devices_alone) {
  transfer_formats formats = table_of([](const sucl_query& q) {
    return answer{q.kind == core::compiled_plan_kind ? device_only : 0};
  });
  sucl_operation o = operation(core::compiled_plan_kind, SUCL_TYPE_FP32, SUCL_OP_NONE);
  o.send_memory = o.recv_memory = SUCL_MEMORY_DEVICE;
  EXPECT_FALSE(plan_staging(o, {}, formats, {}).needed);
  o.send_memory = SUCL_MEMORY_SYSTEM;
  EXPECT_THROW(plan_staging(o, {}, formats, {}), error);
}

TEST(plan_staging, divides_on_the_host_only_what_the_host_reads) {
  transfer_formats formats = mpi_table(everywhere);
  for (const sucl_memory memory : {SUCL_MEMORY_SHARED, SUCL_MEMORY_DEVICE}) {
    const staging_plan a = plan_staging(
        operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_AVG, 10, memory), {}, formats, {});
    EXPECT_FALSE(a.scratch_send);
    EXPECT_EQ(a.stage_recv, memory == SUCL_MEMORY_DEVICE);
  }
}

TEST(plan_staging, asks_nothing_of_memory_that_is_not_there) {
  transfer_formats formats = mpi_table(device_only);
  const std::vector<std::uint64_t> counts{0};
  sucl_operation o = operation(SUCL_KIND_ALLTOALLV, SUCL_TYPE_FP32, 0, 0, SUCL_MEMORY_DEVICE);
  o.send_counts = o.send_displs = o.recv_counts = o.recv_displs = counts.data();
  o.send = nullptr;
  o.send_memory = SUCL_MEMORY_SYSTEM;
  EXPECT_FALSE(plan_staging(o, {}, formats, {}).needed);
}

TEST(plan_staging, gives_no_scratch_to_a_side_that_a_rank_does_not_have) {
  transfer_formats formats = mpi_table();
  staging s;
  s.size = 2;
  sucl_operation o = operation(SUCL_KIND_REDUCE, SUCL_TYPE_FP16, SUCL_OP_SUM);
  for (s.rank = 0; s.rank < 2; ++s.rank)
    EXPECT_EQ(plan_staging(o, {}, formats, s).scratch_recv, s.rank == 0);
  o = operation(SUCL_KIND_SCATTER, SUCL_TYPE_FP16, SUCL_OP_NONE, 10, SUCL_MEMORY_DEVICE);
  for (s.rank = 0; s.rank < 2; ++s.rank)
    EXPECT_EQ(plan_staging(o, {}, formats, s).stage_send, s.rank == 0);
}

TEST(plan_staging, cuts_alike_whatever_a_rank_has) {
  const base::strided block{{30, 30, 30}, {1, 1, 1}, {10, 10, 10}, 4};
  const std::vector<std::uint64_t> counts{1000, 5};
  transfer_formats formats = mpi_table();
  for (sucl_kind kind = SUCL_KIND_BROADCAST; kind <= SUCL_KIND_SENDRECV; ++kind) {
    std::set<std::uint64_t> slices;
    for (const sucl_memory memory : {SUCL_MEMORY_SYSTEM, SUCL_MEMORY_DEVICE, SUCL_MEMORY_SHARED})
      for (const bool strided : {false, true})
        for (int rank = 0; rank < 2; ++rank)
          for (const std::uint32_t flags : {0u, std::uint32_t{SUCL_FLAG_IN_PLACE}}) {
            sucl_operation o =
                operation(kind, SUCL_TYPE_FP32,
                          reduces(static_cast<sucl::kind>(kind)) ? SUCL_OP_SUM : 0, 1000, memory);
            o.flags = flags;
            o.recv_count = 1000;
            o.send_counts = o.send_displs = o.recv_counts = o.recv_displs = counts.data();
            layouts where;
            if (strided) where.send = where.recv = block;
            staging s;
            s.rank = rank;
            s.size = 2;
            s.comm_stages = true;
            s.chunk_bytes = 400;
            s.min_block_bytes = 4;
            slices.insert(plan_staging(o, where, formats, s).slice_elements);
          }
    EXPECT_EQ(slices.size(), 1u) << name(static_cast<sucl::kind>(kind));
    const bool whole =
        kind == SUCL_KIND_ALLTOALLV || kind == SUCL_KIND_GATHERV || kind == SUCL_KIND_SCATTERV;
    EXPECT_EQ(*slices.begin() > 1000, whole) << name(static_cast<sucl::kind>(kind));
  }
}

TEST(plan_staging, keeps_to_the_tightest_limit_of_any_memory) {
  transfer_formats formats = table_of([](const sucl_query& q) {
    return answer{everywhere, q.memory == SUCL_MEMORY_SHARED ? 100u : 0u};
  });
  const auto slice = [&](sucl_type type, sucl_op op) {
    return plan_staging(operation(SUCL_KIND_ALLREDUCE, type, op, 1000), {}, formats, {})
        .slice_elements;
  };
  EXPECT_EQ(slice(SUCL_TYPE_FP32, SUCL_OP_SUM), 100u);
  transfer_formats components =
      table_of([](const sucl_query& q) { return answer{mpi_lacks(q) ? 0 : host_only, 101}; });
  EXPECT_EQ(plan_staging(operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_INT64, SUCL_OP_AVG, 1000), {},
                         components, {})
                .slice_elements,
            50u);
}

TEST(plan_staging, cuts_both_ends_of_a_message_alike) {
  transfer_formats formats = table_of(
      [](const sucl_query& q) { return answer{host_only, q.kind == SUCL_KIND_RECV ? 7u : 0u}; });
  for (const sucl_kind kind : {SUCL_KIND_SEND, SUCL_KIND_RECV, SUCL_KIND_SENDRECV})
    EXPECT_EQ(plan_staging(operation(kind, SUCL_TYPE_FP32, 0), {}, formats, {}).slice_elements, 7u);
}

TEST(plan_staging, turns_private_counts_into_messages_under_a_limit) {
  transfer_formats limited =
      table_of([](const sucl_query&) { return answer{host_only, std::uint64_t{1} << 31}; });
  transfer_formats unlimited = mpi_table();
  transfer_formats without = table_of(
      [](const sucl_query& q) { return answer{q.kind == SUCL_KIND_GATHERV ? 0 : host_only}; });
  const std::vector<std::uint64_t> counts{1};
  sucl_operation o = operation(SUCL_KIND_GATHERV, SUCL_TYPE_FP32, 0);
  o.recv_counts = o.recv_displs = counts.data();
  // Under a limit even a small count: another rank may have a large one, and the ranks do not know
  // of each other.
  EXPECT_TRUE(plan_staging(o, {}, limited, {}).as_messages);
  EXPECT_TRUE(plan_staging(o, {}, without, {}).as_messages);
  EXPECT_FALSE(plan_staging(o, {}, unlimited, {}).needed);
}

TEST(plan_staging, moves_unknown_types_as_bytes) {
  transfer_formats formats = table_of(
      [](const sucl_query& q) { return answer{q.type == SUCL_TYPE_BYTES ? host_only : 0}; });
  const staging_plan a =
      plan_staging(operation(SUCL_KIND_BROADCAST, SUCL_TYPE_FP64_LOC, 0), {}, formats, {});
  EXPECT_TRUE(a.needed);
  EXPECT_EQ(a.type, SUCL_TYPE_BYTES);
  EXPECT_EQ(a.element_size, sizeof(loc<double>));
  EXPECT_FALSE(a.scratch_send);
}

TEST(plan_staging, packs_only_what_is_scattered) {
  transfer_formats formats = mpi_table();
  layouts where;
  where.send = base::strided{{4, 4, 4}, {1, 0, 0}, {2, 4, 4}, 4};
  const sucl_operation o = operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_SUM);
  staging_plan a = plan_staging(o, where, formats, {});
  EXPECT_TRUE(a.needed);  // it does not start where the array does
  EXPECT_FALSE(a.scratch_send);
  where.send->offset = {0, 0, 0};
  EXPECT_FALSE(plan_staging(o, where, formats, {}).needed);
  where.send->range = {2, 2, 4};
  a = plan_staging(o, where, formats, {});
  EXPECT_TRUE(a.scratch_send);
  EXPECT_FALSE(a.scratch_recv);
}

TEST(plan_staging, says_what_it_cannot_bridge) {
  transfer_formats formats = table_of(
      [](const sucl_query& q) { return answer{q.op == SUCL_OP_BIT_AND ? 0 : device_only}; });
  const auto text = [&](sucl_kind kind, sucl_type type, sucl_op op) -> std::string {
    try {
      plan_staging(operation(kind, type, op), {}, formats, {});
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::unsupported);
      EXPECT_EQ(e.backend(), "test");
      EXPECT_FALSE(e.hint().empty());
      return e.what();
    }
    return {};
  };
  const auto has = [](const std::string& whole, const char* part) {
    return whole.find(part) != std::string::npos;
  };
  std::string what = text(SUCL_KIND_ALLREDUCE, SUCL_TYPE_INT8, SUCL_OP_BIT_AND);
  for (const char* part : {"test", "allreduce", "int8", "bit_and", "any memory"})
    EXPECT_TRUE(has(what, part)) << what;
  what = text(SUCL_KIND_BROADCAST, SUCL_TYPE_INT8, SUCL_OP_NONE);
  for (const char* part : {"test", "broadcast", "int8", "system memory"})
    EXPECT_TRUE(has(what, part)) << what;
  for (const sucl_kind kind : {SUCL_KIND_SCAN, SUCL_KIND_EXSCAN}) {
    what = text(kind, SUCL_TYPE_FP32, SUCL_OP_AVG);
    EXPECT_TRUE(has(what, "not defined")) << what;
  }
}

TEST(transfer_formats, asks_once) {
  int asked = 0;
  transfer_formats formats = table_of([&](const sucl_query&) {
    ++asked;
    return answer{host_only};
  });
  const sucl_operation o = operation(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP32, SUCL_OP_SUM);
  plan_staging(o, {}, formats, {});
  const int before = asked;
  plan_staging(o, {}, formats, {});
  EXPECT_EQ(asked, before);
}

template <class T>
void expect_average(const std::vector<T>& values, T wanted) {
  const auto* c = core::conversion_for(static_cast<sucl_type>(type_of_v<T>), SUCL_OP_AVG);
  ASSERT_NE(c, nullptr);
  std::vector<std::uint64_t> sum(c->components), one(c->components);
  for (const T value : values) {
    c->load(one.data(), &value, 1);
    for (std::size_t component = 0; component < sum.size(); ++component)
      sum[component] += one[component];
  }
  T got{};
  c->store(&got, sum.data(), 1, static_cast<int>(values.size()));
  EXPECT_EQ(got, wanted);
}

TEST(conversion, averages_integers_exactly_and_toward_zero) {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  expect_average<std::int64_t>(std::vector<std::int64_t>(1000, lowest), lowest);
  expect_average<std::int64_t>(std::vector<std::int64_t>(1000, highest), highest);
  expect_average<std::int64_t>({lowest, highest}, 0);
  expect_average<std::int64_t>({-1, -2}, -1);
  expect_average<std::int64_t>({-1, 0, 0}, 0);
  expect_average<std::int64_t>({-(std::int64_t{1} << 32), 1}, -(std::int64_t{1} << 31) + 1);
  expect_average<std::uint64_t>(std::vector<std::uint64_t>(1000, most), most);
  expect_average<std::uint64_t>({most, most - 1}, most - 1);
  expect_average<std::uint32_t>(std::vector<std::uint32_t>(3, 0xffffffffu), 0xffffffffu);
  expect_average<std::int8_t>({-128, -127}, -127);
  expect_average<std::int16_t>({3, 4}, 3);
}

}  // namespace
