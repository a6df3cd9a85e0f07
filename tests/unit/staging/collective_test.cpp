// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include "support/sanitized.hpp"

#include <gtest/gtest.h>

namespace {

using namespace sucl;
using test::collective_case;
using test::where;

struct element {
  sucl_type type;
  sucl_op op;
};

// Every transfer format: native, as bytes, converted, widened, scaled, in two components.
const std::vector<element> reduced{{SUCL_TYPE_INT32, SUCL_OP_SUM},
                                   {SUCL_TYPE_FP16, SUCL_OP_SUM},
                                   {SUCL_TYPE_INT16, SUCL_OP_AVG},
                                   {SUCL_TYPE_FP32, SUCL_OP_AVG},
                                   {SUCL_TYPE_INT64, SUCL_OP_AVG}};
const std::vector<element> moved{{SUCL_TYPE_BYTES, SUCL_OP_NONE}, {SUCL_TYPE_FP16, SUCL_OP_NONE}};

// Scatters choices that follow from the number of a case, so that they do not go in step.
unsigned mixed(unsigned number) { return number * 2654435761u >> 12; }

// Under the sanitizers one case of so many. The inner loops have other factors, so that each of
// their choices stays among them.
constexpr unsigned thinned = sucl_test::sanitized ? 23 : 1;

class staged_collective : public testing::TestWithParam<sucl_kind> {};

bool prefixes(sucl_kind kind) { return kind == SUCL_KIND_SCAN || kind == SUCL_KIND_EXSCAN; }

TEST_P(staged_collective, gives_what_it_means) {
  collective_case c;
  c.kind = GetParam();
  unsigned cases = 0;
  for (const element e : reduces(static_cast<kind>(c.kind)) ? reduced : moved) {
    if (e.op == SUCL_OP_AVG && prefixes(c.kind)) continue;
    c.type = e.type;
    c.op = e.op;
    for (c.p = 1; c.p <= 5; c.p += c.p == 3 ? 2 : 1)
      for (const std::uint64_t count : {0, 1, 2, 17, 1000})
        for (const std::uint64_t slice : {0, 1, 3, 64}) {
          // A thousand slices of one element add minutes and nothing else.
          if (count == 1000 && slice == 1) continue;
          for (unsigned bits = 0; bits < 8; ++bits)
            for (const where memory : {where::host, where::device, where::mixed}) {
              c.count = count;
              c.slice = slice;
              c.by_limit = bits & 1;
              c.in_place = bits & 2;
              c.strided = bits & 4;
              c.memory = memory;
              c.seed = 1 + mixed(++cases);
              if ((c.by_limit && slice == 0) || cases % thinned != 0) continue;
              // Of the larger cases a part, another one for each kind.
              const unsigned part = count == 1000 ? 12 : count == 17 || c.p == 5 ? 3 : 1;
              if ((c.seed + static_cast<unsigned>(c.kind)) % part != 0) continue;
              ASSERT_EQ(test::run(c), "") << c;
            }
        }
  }
}

INSTANTIATE_TEST_SUITE_P(every_kind, staged_collective,
                         testing::Range<sucl_kind>(SUCL_KIND_BROADCAST, SUCL_KIND_EXSCAN + 1),
                         [](const auto& info) {
                           return std::string(name(static_cast<kind>(info.param)));
                         });

// Reductions whose order matters are moved and folded above the backend, whatever it executes.
TEST(staged_reduction, is_folded_above_where_the_order_matters) {
  collective_case c;
  c.ordered = c.native = true;
  unsigned cases = 0;
  for (const sucl_kind kind : {SUCL_KIND_ALLREDUCE, SUCL_KIND_REDUCE, SUCL_KIND_REDUCE_SCATTER,
                               SUCL_KIND_REDUCE_SCATTER_BLOCK, SUCL_KIND_SCAN, SUCL_KIND_EXSCAN})
    for (const element e : {element{SUCL_TYPE_FP32, SUCL_OP_SUM},
                            {SUCL_TYPE_BF16, SUCL_OP_PROD},
                            {SUCL_TYPE_FP16, SUCL_OP_AVG},
                            {SUCL_TYPE_COMPLEX_FP64, SUCL_OP_SUM},
                            {SUCL_TYPE_FP64, SUCL_OP_AVG},
                            {SUCL_TYPE_FP64, SUCL_OP_MAX}})
      for (c.p = 1; c.p <= 5; ++c.p)
        for (const std::uint64_t count : {0, 1, 2, 17, 100})
          for (const std::uint64_t slice : {0, 1, 3, 64})
            for (unsigned bits = 0; bits < 4; ++bits)
              for (const where memory : {where::host, where::device, where::mixed}) {
                if (e.op == SUCL_OP_AVG && prefixes(kind)) continue;
                c.kind = kind;
                c.type = e.type;
                c.op = e.op;
                c.count = count;
                c.slice = slice;
                c.in_place = bits & 1;
                c.strided = bits & 2;
                c.memory = memory;
                c.seed = 1 + mixed(++cases);
                if (count == 100 && slice == 1) continue;
                if (c.seed % 3 != 0 || cases % thinned != 0) continue;
                ASSERT_EQ(test::run(c), "") << c;
              }
}

TEST(staged_reduction, holds_for_every_type_and_op) {
  collective_case c;
  unsigned cases = 0;
  for (c.type = SUCL_TYPE_INT8; c.type < SUCL_TYPE_COUNT; ++c.type)
    for (c.op = SUCL_OP_SUM; c.op < SUCL_OP_COUNT; ++c.op) {
      if (!defined(static_cast<op>(c.op), static_cast<type>(c.type))) continue;
      // Pairs with padding have bytes without meaning, which this test would compare.
      if (c.type == SUCL_TYPE_INT16_LOC || c.type == SUCL_TYPE_INT64_LOC ||
          c.type == SUCL_TYPE_FP64_LOC)
        continue;
      for (const sucl_kind kind :
           {SUCL_KIND_ALLREDUCE, SUCL_KIND_REDUCE, SUCL_KIND_REDUCE_SCATTER,
            SUCL_KIND_REDUCE_SCATTER_BLOCK, SUCL_KIND_SCAN, SUCL_KIND_EXSCAN})
        for (c.p = 1; c.p <= 5; ++c.p)
          for (const where memory : {where::host, where::mixed})
            for (c.native = false;; c.native = true) {
              if (c.op == SUCL_OP_AVG && prefixes(kind)) break;
              c.kind = kind;
              c.memory = memory;
              c.count = 100;
              c.slice = 33;
              c.seed = 1 + mixed(++cases);
              c.in_place = c.seed % 2 != 0;
              c.by_limit = c.seed % 3 == 0;
              if (c.seed % thinned == 0) {
                ASSERT_EQ(test::run(c), "") << c;
              }
              if (c.native) break;
            }
    }
}

}  // namespace
