// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/decision/persistent_agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace {

using sucl::interposer::persistent_agreement;
using sucl::interposer::persistent_calls;

constexpr int ranks = 3;

/// Each rank is a thread.
template <class Rank>
void on_all_ranks(const Rank& rank) {
  std::vector<char> shared(persistent_agreement::bytes(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { rank(r, persistent_agreement(shared.data(), r, ranks)); });
  for (std::thread& t : threads) t.join();
}

void yield() { std::this_thread::yield(); }

TEST(PersistentAgreement, IsOnWhatIsFitOnEveryRank) {
  constexpr int calls = 1000;
  const auto fit = [](int call, int r) { return call % 7 != r; };
  std::array<std::vector<bool>, ranks> agreed;
  on_all_ranks([&](int r, persistent_agreement of_rank) {
    for (int call = 0; call < calls; ++call)
      agreed[std::size_t(r)].push_back(of_rank.meet(fit(call, r), yield));
  });
  for (int r = 0; r < ranks; ++r)
    for (int call = 0; call < calls; ++call)
      EXPECT_EQ(agreed[std::size_t(r)][std::size_t(call)], call % 7 >= ranks) << r << " " << call;
}

TEST(PersistentAgreement, EndsOnEveryRankWhereOneIsRefused) {
  constexpr int before = 5, calls = 200;
  std::array<int, ranks> agreed{};
  on_all_ranks([&](int r, persistent_agreement of_rank) {
    for (int call = 0; call < calls; ++call) {
      if (r == 1 && call == before) of_rank.refuse();
      agreed[std::size_t(r)] += of_rank.meet(true, yield);
    }
  });
  EXPECT_EQ(agreed, (std::array<int, ranks>{before, before, before}));
}

TEST(PersistentAgreement, DoesNotWaitForWhatIsNotFit) {
  std::vector<char> shared(persistent_agreement::bytes(ranks));
  persistent_agreement alone(shared.data(), 0, ranks);
  for (std::uint64_t call = 0; call < persistent_calls::kept; ++call)
    EXPECT_FALSE(alone.meet(false, [] { FAIL() << "waits"; }));
}

TEST(PersistentAgreement, IsNoneWhereRanksShareNoMemory) {
  persistent_agreement none;
  none.refuse();
  EXPECT_FALSE(none.meet(true, [] { FAIL() << "waits"; }));
  persistent_agreement apart(nullptr, 0, ranks);
  EXPECT_FALSE(apart.meet(true, [] { FAIL() << "waits"; }));
}

}  // namespace
