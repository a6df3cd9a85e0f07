// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Right plans are damaged in one instruction, drawn by lot. A plan that the verifier passes must
// give right results whatever the timing; a plan that gives wrong ones must not have passed.
#include "cases.hpp"
#include "interpret.hpp"
#include "plan/ir/fold_run.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/check_form.hpp"
#include "plan/verify/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace sucl::plan {
namespace {

std::vector<schedule> subjects() {
  std::vector<schedule> list;
  for (const kind k : cases::kinds()) {
    for (const int ranks : {3, 4, 6}) {
      problem p = cases::make_problem(k, ranks, 5, 4, 1);
      for (const algorithm_info* a : algorithms_for(k))
        for (const recipe& r : cases::recipes(*a, p)) list.push_back(build(p, r));
    }
  }
  return list;
}

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : m_random(seed) {}

  // Damages one instruction; says what it did.
  std::string damage(schedule& s) {
    const std::size_t rank = m_random() % s.ranks.size();
    auto& channels = s.ranks[rank].channels;
    if (channels.empty()) return {};
    channel& c = channels[m_random() % channels.size()];
    if (c.empty()) return {};
    const std::size_t k = m_random() % c.size();
    std::string what = "rank " + std::to_string(rank) + " instruction " + std::to_string(k) + " '" +
                       to_text(c[k]) + "': ";
    return what + change(s, c, k);
  }

 private:
  std::uint64_t shifted(std::uint64_t n, std::uint64_t unit) {
    return m_random() % 2 == 0 ? n + unit : n - std::min(n, unit);
  }

  std::string change(schedule& s, channel& c, std::size_t k) {
    instruction& i = c[k];
    const std::uint64_t unit = m_random() % 4 == 0 ? 1 : 4 * (1 + m_random() % 3);
    switch (m_random() % 11) {
      case 0: c.erase(c.begin() + static_cast<std::ptrdiff_t>(k)); return "removed";
      case 1:
        c.insert(c.begin() + static_cast<std::ptrdiff_t>(k), instruction(i));
        return "doubled";
      case 2:
        if (k + 1 < c.size()) std::swap(c[k], c[k + 1]);
        return "swapped with the next";
      case 3: i.dst_offset = shifted(i.dst_offset, unit); return "other destination";
      case 4: i.src_offset = shifted(i.src_offset, unit); return "other source";
      case 5: i.bytes = shifted(i.bytes, unit); return "other length";
      case 6: i.peer = static_cast<int>(m_random() % s.ranks.size()); return "other peer";
      case 7: i.dst = static_cast<space>(m_random() % space_count); return "other space of dst";
      case 8: i.src = static_cast<space>(m_random() % space_count); return "other space of src";
      case 9: i.op = static_cast<opcode>(m_random() % opcode_count); return "other opcode";
      default: {
        const std::size_t to = m_random() % c.size();
        const instruction moved = i;
        c.erase(c.begin() + static_cast<std::ptrdiff_t>(k));
        c.insert(c.begin() + static_cast<std::ptrdiff_t>(to), moved);
        return "moved to " + std::to_string(to);
      }
    }
  }

  std::mt19937_64 m_random;
};

TEST(plan_mutations, right_plans_run_right) {
  std::uint64_t seed = 1;
  for (const schedule& s : subjects())
    for (int run = 0; run < 2; ++run, ++seed)
      ASSERT_EQ(interpret(s, seed), "") << sucl::name(s.what.kind) << " " << s.algorithm << " of "
                                        << s.what.ranks << " ranks, seed " << seed;
}

TEST(plan_mutations, every_harmful_one_is_caught) {
  const std::vector<schedule> plans = subjects();
  mutator lot(20240607);
  int harmful = 0, harmless = 0;
  std::map<fault, int> caught;
  for (int n = 0; n < 30000; ++n) {
    schedule s = plans[static_cast<std::size_t>(n) % plans.size()];
    const schedule right = s;
    const std::string damage = lot.damage(s);
    if (s == right) continue;
    const verdict v = verify(s);
    ++caught[v.what];
    std::string wrong;
    if (check_form(s))
      for (std::uint64_t seed = 0; seed < 8 && wrong.empty(); ++seed)
        wrong = interpret(s, seed + 100 * static_cast<std::uint64_t>(n));
    ASSERT_TRUE(!v || wrong.empty()) << "missed in " << sucl::name(s.what.kind) << " "
                                     << s.algorithm << ", " << damage << ": " << wrong << "\n"
                                     << to_text(s);
    wrong.empty() ? ++harmless : ++harmful;
  }
  for (const auto& [f, n] : caught) RecordProperty(name(f), n);
  EXPECT_GT(harmful, 5000);  // the lot must really have done harm
  for (const fault f : {fault::malformed, fault::out_of_bounds, fault::read_only, fault::unset_read,
                        fault::race, fault::length, fault::unmatched, fault::deadlock,
                        fault::unfinished, fault::twice, fault::result, fault::differs})
    EXPECT_GT(caught[f], 0) << name(f);
}

// One rank of an allreduce folds the last two sources of a fold in the other order, which changes
// no number of exact arithmetic.
TEST(plan_mutations, another_association_on_one_rank_is_caught) {
  int swapped = 0;
  for (const int ranks : {3, 5, 6}) {
    const problem p = cases::make_problem(kind::allreduce, ranks, 5, 4);
    for (const char* text : {"one_shot", "staged_one_shot", "doubling(radices=3)",
                             "composed(steps=1)", "two_shot", "direct"})
      for (int rank = 0; rank < ranks; ++rank) {
        const recipe how = recipe_from_text(text);
        if (!refusal(p, how).empty()) continue;
        schedule s = build(p, how);
        channel& c = s.ranks[static_cast<std::size_t>(rank)].channels[0];
        std::size_t k = 1;
        while (k + 1 < c.size() && !(goes_on(c[k - 1], c[k]) && goes_on(c[k], c[k + 1]))) ++k;
        if (k + 1 >= c.size()) continue;
        std::swap(c[k], c[k + 1]);
        const verdict v = verify(s);
        const std::string name = std::string(text) + " of " + std::to_string(ranks);
        // A chunk that one rank folds for all is another expression, and the same on all.
        if (how.algorithm == "two_shot" || how.algorithm == "direct") {
          EXPECT_TRUE(v) << name << ": " << v.message;
          continue;
        }
        ++swapped;
        EXPECT_EQ(plan::name(v.what), std::string("differs")) << name;
        EXPECT_NE(v.message.find("element 0 is "), std::string::npos) << v.message;
        EXPECT_NE(v.message.find("on rank " + std::to_string(std::max(rank, 1))), std::string::npos)
            << v.message;
        EXPECT_NE(v.message.find(" on rank 0"), std::string::npos) << v.message;
      }
  }
  EXPECT_GT(swapped, 20);
}

}  // namespace
}  // namespace sucl::plan
