// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Groups of ranks of which processes have several. The processes are threads here too.
#include "core/control/local_ranks.hpp"

#include "base/threads/concurrently.hpp"
#include "core/exchange/core_services.hpp"
#include "process/process.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace sucl::testing::local_ranks {
namespace {

const sucl_bootstrap& plane() { return core::local_ranks_control(); }

struct sucl_group_deleter {
  void operator()(sucl_group* g) const { plane().group_free(g); }
};
using handle = std::unique_ptr<sucl_group, sucl_group_deleter>;

// Runs `body(group, rank)` for each rank of these processes, in a thread each.
template <class Body>
void for_ranks(const std::vector<int>& counts, Body body) {
  const auto on_process = [&](const sucl_bootstrap* below, int process) {
    sucl_group* over = nullptr;
    ASSERT_EQ(below ? below->group_world(&over) : SUCL_SUCCESS, SUCL_SUCCESS);
    auto made = core::make_rank_groups(below, over, {process, counts});
    ASSERT_EQ(made.size(), static_cast<std::size_t>(counts[static_cast<std::size_t>(process)]));
    std::vector<handle> own;
    for (sucl_group* g : made) own.emplace_back(g);
    base::run_concurrently(
        own.size(), [&](std::size_t i) { body(own[i].get(), plane().group_rank(own[i].get())); });
  };
  if (counts.size() == 1) return on_process(nullptr, 0);
  run_processes(static_cast<int>(counts.size()),
                [&](const sucl_bootstrap& below, int process) { on_process(&below, process); });
}

const std::vector<std::vector<int>> mixes{{1}, {4}, {2, 2}, {1, 3}, {3, 1, 2}, {1, 1, 1, 1}};

int total(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0);
}

void expect_exchange(sucl_group* g, int rank, int size) {
  ASSERT_EQ(plane().group_size(g), size);
  for (const std::size_t n : {1, 7, 3000}) {
    std::vector<char> mine(n, static_cast<char>('a' + rank));
    std::vector<char> all(n * static_cast<std::size_t>(size));
    ASSERT_EQ(plane().allgather(g, mine.data(), all.data(), n), SUCL_SUCCESS);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i], static_cast<char>('a' + i / n)) << i << " of rank " << rank;
  }
}

TEST(local_ranks, exchange_in_order_of_processes) {
  for (const auto& counts : mixes)
    for_ranks(counts, [&](sucl_group* g, int rank) { expect_exchange(g, rank, total(counts)); });
}

// Started one after another, ended in the opposite order.
TEST(local_ranks, have_many_exchanges_under_way) {
  for (const auto& counts : mixes)
    for_ranks(counts, [&](sucl_group* g, int rank) {
      constexpr int rounds = 20;
      const auto size = static_cast<std::size_t>(total(counts));
      std::vector<std::vector<int>> all(rounds, std::vector<int>(size, -1));
      std::vector<sucl_oob_request*> requests(rounds);
      for (int k = 0; k < rounds; ++k) {
        const int mine = 100 * k + rank;
        ASSERT_EQ(plane().allgather_start(g, &mine, all[static_cast<std::size_t>(k)].data(),
                                          sizeof mine, &requests[static_cast<std::size_t>(k)]),
                  SUCL_SUCCESS);
      }
      for (int k = rounds - 1; k >= 0; --k) {
        for (std::int32_t done = 0; !done;)
          ASSERT_EQ(plane().test(g, requests[static_cast<std::size_t>(k)], &done), SUCL_SUCCESS);
        for (std::size_t r = 0; r < size; ++r)
          EXPECT_EQ(all[static_cast<std::size_t>(k)][r], 100 * k + static_cast<int>(r));
      }
    });
}

struct splitting {
  const char* name;
  int (*colour)(int rank);
  int (*key)(int rank);
};
const splitting splittings[] = {
    {"all, backwards", [](int) { return 3; }, [](int r) { return -r; }},
    {"by turns", [](int r) { return r % 2; }, [](int) { return 0; }},
    {"neighbours, backwards", [](int r) { return r / 2; }, [](int r) { return 10 - r; }},
    {"each alone", [](int r) { return 9 - r; }, [](int r) { return r; }},
    {"without rank 1", [](int r) { return r == 1 ? -1 : 0; }, [](int r) { return r; }},
};

TEST(local_ranks, split) {
  for (const auto& counts : mixes)
    for (const splitting& s : splittings)
      for_ranks(counts, [&](sucl_group* g, int rank) {
        sucl_group* part = nullptr;
        ASSERT_EQ(plane().group_split(g, s.colour(rank), s.key(rank), &part), SUCL_SUCCESS);
        const handle owned(part);
        ASSERT_EQ(part == nullptr, s.colour(rank) < 0) << s.name;
        if (part) {
          int before = 0, members = 0;
          for (int r = 0; r < total(counts); ++r) {
            if (s.colour(r) != s.colour(rank)) continue;
            ++members;
            before += s.key(r) < s.key(rank) || (s.key(r) == s.key(rank) && r < rank);
          }
          EXPECT_EQ(plane().group_rank(part), before) << s.name;
          expect_exchange(part, before, members);
          // Of the part again.
          sucl_group* again = nullptr;
          ASSERT_EQ(plane().group_split(part, 0, 0, &again), SUCL_SUCCESS);
          expect_exchange(again, before, members);
          plane().group_free(again);
        }
        expect_exchange(g, rank, total(counts));
      });
}

TEST(local_ranks, notify_each_other) {
  for (const auto& counts : mixes)
    for_ranks(counts, [&](sucl_group* g, int rank) {
      const int size = total(counts);
      for (int to = 0; to < size; ++to) {
        const std::string text = std::to_string(rank) + " to " + std::to_string(to);
        ASSERT_EQ(plane().notify(g, to, text.data(), text.size()), SUCL_SUCCESS);
      }
      std::vector<bool> heard(static_cast<std::size_t>(size));
      for (int left = size; left > 0;) {
        char text[64];
        std::int32_t source = -1;
        std::uint64_t bytes = 0;
        ASSERT_EQ(plane().poll(g, &source, text, sizeof text, &bytes), SUCL_SUCCESS);
        if (source < 0) continue;
        EXPECT_EQ(std::string(text, bytes), std::to_string(source) + " to " + std::to_string(rank));
        EXPECT_FALSE(heard[static_cast<std::size_t>(source)]);
        heard[static_cast<std::size_t>(source)] = true;
        --left;
      }
      expect_exchange(g, rank, size);  // no rank leaves before all have the result
    });
}

TEST(local_ranks, refuse_what_is_too_long) {
  for_ranks({2}, [](sucl_group* g, int rank) {
    const std::vector<char> text(5000);
    EXPECT_EQ(plane().notify(g, 1 - rank, text.data(), text.size()), SUCL_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(core::take_last(SUCL_ERROR_INVALID_ARGUMENT).message.find("too long"),
              std::string::npos);
  });
}

// What all start and some give up is no obstacle to ending.
TEST(local_ranks, end_with_exchanges_under_way) {
  for (const auto& counts : mixes) {
    if (total(counts) == 1) continue;
    for_ranks(counts, [&](sucl_group* g, int rank) {
      static int all[8];
      static sucl_oob_request* kept[8];
      if (rank == 0) return;
      ASSERT_EQ(plane().allgather_start(g, &rank, all, sizeof rank, &kept[rank]), SUCL_SUCCESS);
    });
  }
}

base::config settings() {
  auto c = base::load_config("/dev/null", {});
  c.default_backend = "mock";
  c.watchdog.timeout = std::chrono::seconds(30);
  for (auto& b : c.backends) {
    b.enabled = b.name == "mock";
    b.platforms = {"*"};
    if (b.name == "mock") b.path = SUCL_TEST_MOCK;
  }
  return c;
}

sucl_operation sum_of(int* data) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_ALLREDUCE;
  o.type = SUCL_TYPE_INT32;
  o.op = SUCL_OP_SUM;
  o.flags = SUCL_FLAG_IN_PLACE;
  o.element_size = sizeof(int);
  o.recv = data;
  o.count = 1;
  return o;
}

using worlds = std::vector<std::shared_ptr<core::communicator>>;

worlds worlds_of(const std::vector<std::shared_ptr<core::process>>& ranks) {
  worlds made(ranks.size());
  base::run_concurrently(ranks.size(), [&](std::size_t i) { made[i] = ranks[i]->world({}); });
  return made;
}

void expect_sums(const worlds& all) {
  base::run_concurrently(all.size(), [&](std::size_t i) {
    int x = all[i]->rank() + 1;
    all[i]->run(sum_of(&x), {});
    EXPECT_EQ(x, all[i]->size() * (all[i]->size() + 1) / 2);
  });
}

// Ranks end when nothing refers to them, at the next start, and with their process.
TEST(local_ranks, are_ranks_of_a_process) {
  for (const auto& counts : mixes) {
    const auto on_process = [&](const sucl_bootstrap* below, int number) {
      const auto p = core::process::start(settings(), below);
      const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(number)]);
      worlds first = worlds_of(p->start_ranks(count));
      EXPECT_EQ(first.front()->size(), total(counts));
      expect_sums(first);
      worlds second = worlds_of(p->start_ranks(count));
      expect_sums(second);
      expect_sums(first);
      first.clear();
      const worlds third = worlds_of(p->start_ranks(count));
      expect_sums(third);
      expect_sums(second);
      p->shut_down();
      EXPECT_FALSE(second.front()->alive());
      EXPECT_FALSE(third.back()->alive());
    };
    if (counts.size() == 1)
      on_process(nullptr, 0);
    else
      run_processes(static_cast<int>(counts.size()),
                    [&](const sucl_bootstrap& below, int n) { on_process(&below, n); });
  }
}

// One rank has not come: the others are told which, and that it may be their own thread's.
TEST(local_ranks, are_named_where_they_are_late) {
  auto impatient = settings();
  impatient.watchdog.timeout = std::chrono::milliseconds(200);
  const auto p = core::process::start(impatient, nullptr);
  const worlds all = worlds_of(p->start_ranks(3));
  int x = 1;
  try {
    all.front()->run(sum_of(&x), {});
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    const std::string text = e.what();
    EXPECT_NE(text.find("ranks 1,2 have not arrived. Ranks 0 and 1 are of one process"),
              std::string::npos)
        << text;
  }
}

// A rank that has ended is told from one that is late.
TEST(local_ranks, are_named_where_they_have_left) {
  const auto p = core::process::start(settings(), nullptr);
  const auto ranks = p->start_ranks(3);
  const worlds all = worlds_of(ranks);
  ranks[2]->shut_down();
  int x = 1;
  try {
    all.front()->run(sum_of(&x), {});
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::mismatch);
    EXPECT_NE(std::string(e.what()).find("rank 2 has ended communicator"), std::string::npos)
        << e.what();
  }
}

TEST(run_concurrently, throws_what_the_first_has_thrown) {
  std::vector<int> done(4);
  try {
    base::run_concurrently(4, [&](std::size_t i) {
      done[i] = 1;
      if (i > 1) throw std::runtime_error(std::to_string(i));
    });
    ADD_FAILURE() << "nothing is thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "2");
  }
  EXPECT_EQ(done, (std::vector<int>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace sucl::testing::local_ranks
