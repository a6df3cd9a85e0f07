// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The control plane over TCP, all processes of a job in this one: how they find each other, what
// they exchange, and what they hear of each other's ends.
#include "support/jobs/tcp_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

namespace sucl {
namespace {

using namespace std::chrono_literals;
using testing::outcome;
using testing::part;
using testing::tcp_job;
using testing::whole_job;

std::vector<int> gather(tcp::job_process& n, sucl_group& group, int mine) {
  std::vector<int> all(static_cast<std::size_t>(group.size), -1);
  n.finish(group, n.start_exchange(group, &mine, all.data(), sizeof mine));
  return all;
}

void leave(std::vector<outcome>& all) {
  tcp_job::each(static_cast<int>(all.size()), [&](int r) {
    if (all[static_cast<std::size_t>(r)].process) all[static_cast<std::size_t>(r)].process->leave();
  });
}

/// Whether all have started.
bool all_up(const std::vector<outcome>& all) {
  bool up = true;
  for (const outcome& o : all) {
    EXPECT_TRUE(o.process) << o.why.text;
    up = up && o.process;
  }
  return up;
}

TEST(tcp_tree, is_a_tree_of_ranges) {
  for (const int size : {1, 2, 3, 8, 9, 10, 64, 73, 100, 585, 4096}) {
    std::vector<int> parent(static_cast<std::size_t>(size), -2);
    std::size_t deepest = 0;
    for (int i = 0; i < size; ++i) {
      const auto p = tcp::position_in_tree(i, size);
      parent[static_cast<std::size_t>(i)] = p.parent;
      EXPECT_LE(p.children.size(), 8u);
      int next = i + 1;  // what is below it is what comes after it, without gaps
      for (std::size_t c = 0; c < p.children.size(); ++c) {
        EXPECT_EQ(p.children[c], next);
        EXPECT_EQ(tcp::position_in_tree(p.children[c], size).parent, i);
        EXPECT_EQ(tcp::position_in_tree(p.children[c], size).end, p.child_end(c));
        next = p.child_end(c);
      }
      EXPECT_EQ(next, p.end);
      std::size_t depth = 0;
      for (int at = i; parent[static_cast<std::size_t>(at)] >= 0; ++depth)
        at = parent[static_cast<std::size_t>(at)];
      deepest = std::max(deepest, depth);
    }
    EXPECT_LE(deepest, size > 585 ? 4u : 3u) << size;
  }
}

class tcp_jobs : public ::testing::TestWithParam<int> {};

TEST_P(tcp_jobs, start_exchange_and_end) {
  const int size = GetParam();
  tcp_job job;
  auto all = job.start(whole_job(size));
  ASSERT_TRUE(all_up(all));
  tcp_job::each(size, [&](int r) {
    tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
    sucl_group* world = n.world();
    std::vector<int> expected(static_cast<std::size_t>(size));
    std::iota(expected.begin(), expected.end(), 10);
    EXPECT_EQ(gather(n, *world, 10 + r), expected);
    sucl_group* part = n.split(*world, r % 2, -r);
    EXPECT_EQ(part->size, (size + 1 - r % 2) / 2);
    std::vector<int> of_part;
    for (int i = size - 1; i >= 0; --i)
      if (i % 2 == r % 2) of_part.push_back(i);
    EXPECT_EQ(gather(n, *part, r), of_part);
    EXPECT_EQ(n.split(*world, r == 0 ? -1 : 0, r) == nullptr, r == 0);
    n.free(part);
    n.free(world);
  });
  // It notes that after its last answer.
  while (!job.server().finished()) std::this_thread::yield();
  leave(all);
}

INSTANTIATE_TEST_SUITE_P(sizes, tcp_jobs, ::testing::Values(1, 2, 3, 4, 9, 10, 33));

TEST(tcp_job, exchanges_that_are_started_together_do_not_mix) {
  constexpr int size = 4, many = 30;
  tcp_job job;
  auto all = job.start(whole_job(size));
  ASSERT_TRUE(all_up(all));
  tcp_job::each(size, [&](int r) {
    tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
    sucl_group* world = n.world();
    std::vector<std::vector<int>> got(many, std::vector<int>(size));
    std::vector<int> mine(many);
    std::vector<sucl_oob_request*> requests;
    for (int i = 0; i < many; ++i) {
      mine[static_cast<std::size_t>(i)] = 100 * i + r;
      requests.push_back(n.start_exchange(*world, &mine[static_cast<std::size_t>(i)],
                                          got[static_cast<std::size_t>(i)].data(), sizeof(int)));
    }
    for (int i = many; i-- > 0;) n.finish(*world, requests[static_cast<std::size_t>(i)]);
    for (int i = 0; i < many; ++i)
      for (int k = 0; k < size; ++k)
        EXPECT_EQ(got[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)], 100 * i + k);
    std::vector<char> large(300'000, static_cast<char>(r)), everything(large.size() * size);
    n.finish(*world, n.start_exchange(*world, large.data(), everything.data(), large.size()));
    for (int k = 0; k < size; ++k)
      EXPECT_EQ(everything[static_cast<std::size_t>(k + 1) * large.size() - 1], k);
    n.free(world);
  });
  leave(all);
}

TEST(tcp_job, control_messages_come_in_order_without_waiting_for_the_reader) {
  constexpr int size = 12, messages = 40;
  tcp_job job;
  auto all = job.start(whole_job(size));
  ASSERT_TRUE(all_up(all));
  std::vector<sucl_group*> worlds(size);
  tcp_job::each(size, [&](int r) {
    tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
    sucl_group* world = worlds[static_cast<std::size_t>(r)] = n.world();
    for (int i = 0; i < messages; ++i)  // also to those that there is no connection to yet
      n.notify(*world, (r + 5) % size, std::string(i % 3 ? 9 : 4096, char('A' + i)).data(),
               i % 3 ? 9 : 4096);
    n.notify(*world, r, "me", 2);
    int own = 0, others = 0;
    while (own + others < messages + 1) {
      const auto message = n.poll(*world, 4096);
      if (!message) continue;
      if (message->source == r) {
        ++own;
        EXPECT_EQ(message->text, "me");
      } else {
        EXPECT_EQ(message->source, (r + size - 5) % size);
        EXPECT_EQ(message->text, std::string(others % 3 ? 9 : 4096, char('A' + others)));
        ++others;
      }
    }
    EXPECT_EQ(own, 1);
    n.notify(*world, r, "too long", 8);
    EXPECT_THROW(n.poll(*world, 3), tcp::problem);
    EXPECT_EQ(n.poll(*world, 8)->text, "too long");
    EXPECT_THROW(n.notify(*world, size, "", 0), tcp::problem);
    n.free(world);
  });
  leave(all);
}

/// Starts the parts, and rank 0, which waits for a moment only, once `ready` says so.
std::vector<outcome> start_with_rank_0_last(const tcp_job& job, std::vector<part> parts,
                                            const std::function<bool()>& ready) {
  parts.front().timeout = 1000ms;
  std::vector<outcome> all(parts.size());
  tcp_job::each(static_cast<int>(parts.size()), [&](int i) {
    while (i == 0 && !ready()) std::this_thread::sleep_for(5ms);
    all[static_cast<std::size_t>(i)] = job.start(parts[static_cast<std::size_t>(i)]);
  });
  return all;
}

std::vector<int> missing(const tcp_job& job, int size) {
  tcp::tcp_store client(job.loop(0), job.id().secret, job.id().hosts(), 0, [] {});
  return client.missing("member/", size);
}

TEST(tcp_job, names_those_that_do_not_come) {
  tcp_job job;
  auto parts = whole_job(11);
  parts.erase(parts.begin() + 9);
  parts.erase(parts.begin() + 4);
  const auto all = start_with_rank_0_last(
      job, parts, [&] { return missing(job, 11) == std::vector<int>{0, 4, 9}; });
  for (const outcome& o : all) {
    EXPECT_FALSE(o.process);
    EXPECT_EQ(o.why.status, SUCL_ERROR_TIMEOUT);
    EXPECT_NE(o.why.text.find("ranks 4, 9 have not arrived"), std::string::npos) << o.why.text;
  }
}

// The rank that is missing comes once rank 0 has said so.
TEST(tcp_job, says_who_is_missing_while_it_waits) {
  tcp_job job;
  auto parts = whole_job(3);
  std::vector<std::string> said;
  std::atomic<bool> has_said{false};
  parts[0].long_wait = 300ms;
  parts[0].late = [&](const std::string& text) {
    said.push_back(text);
    has_said = true;
  };
  std::vector<outcome> all(parts.size());
  tcp_job::each(3, [&](int r) {
    while (r == 2 && !has_said) std::this_thread::sleep_for(5ms);
    all[static_cast<std::size_t>(r)] = job.start(parts[static_cast<std::size_t>(r)]);
  });
  for (const outcome& o : all) EXPECT_TRUE(o.process) << o.why.text;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("2 ha"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("not arrived at the store at "), std::string::npos) << said[0];
  leave(all);
}

// Only rank 0 tells them otherwise.
TEST(tcp_job, names_rank_0_where_that_does_not_come) {
  tcp_job job;
  auto parts = whole_job(3);
  parts.erase(parts.begin());
  for (part& p : parts) p.timeout = 500ms;
  for (const outcome& o : job.start(parts)) {
    EXPECT_EQ(o.why.status, SUCL_ERROR_TIMEOUT);
    EXPECT_NE(o.why.text.find("rank 0 has not arrived at the store"), std::string::npos)
        << o.why.text;
  }
}

// Where the store is that process's, and where it is another one's.
TEST(tcp_job, names_ranks_where_the_store_does_not_answer) {
  std::vector<std::string> nowhere;
  std::string secret;
  {
    tcp_job gone;
    nowhere = gone.id().hosts();
    secret = gone.id().secret;
    gone.server().stop();
  }
  for (const bool of_rank_0 : {true, false}) {
    tcp::job_process_settings s;
    s.rank = 2;
    s.size = 4;
    s.secret = secret;
    s.loopback = true;
    s.timeout = 300ms;
    s.store_at_rank_0 = of_rank_0;
    std::vector<std::string> said;
    s.long_wait = 100ms;
    s.late = [&](const std::string& text) { said.push_back(text); };
    const auto loop = std::make_shared<tcp::reactor>();
    const auto process = std::make_shared<tcp::job_process>(loop, s);
    tcp::tcp_store store(loop, secret, nowhere, 0, [process] { process->check_wait(); });
    try {
      process->start(store);
      ADD_FAILURE() << "started without a store";
    } catch (const tcp::problem& why) {
      EXPECT_EQ(why.status, SUCL_ERROR_TIMEOUT);
      const char* words = of_rank_0 ? "rank 0, which serves the store of the rendezvous at "
                                    : "has not heard from ranks 0, 1, 3 within";
      EXPECT_NE(why.text.find(words), std::string::npos) << why.text;
      EXPECT_TRUE(why.text.ends_with(": no process listens there")) << why.text;
    }
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("does not answer this process, which is to be rank 2"),
              std::string::npos)
        << said[0];
  }
}

TEST(tcp_job, tells_all_ranks_that_two_are_the_same_rank) {
  tcp_job job;
  auto parts = whole_job(12);
  parts[7].rank = 3;
  for (const outcome& o : job.start(parts)) {
    EXPECT_FALSE(o.process);
    EXPECT_EQ(o.why.status, SUCL_ERROR_MISMATCH) << o.why.text;
    EXPECT_NE(o.why.text.find("two processes say that they are rank 3"), std::string::npos)
        << o.why.text;
  }
}

TEST(tcp_job, tells_all_ranks_that_sizes_differ) {
  tcp_job job;
  auto parts = whole_job(6);
  parts[4].size = 5;
  for (const outcome& o : job.start(parts)) {
    EXPECT_FALSE(o.process);
    EXPECT_EQ(o.why.status, SUCL_ERROR_MISMATCH) << o.why.text;
    EXPECT_NE(o.why.text.find("says that the job has 5 ranks"), std::string::npos) << o.why.text;
  }
}

TEST(tcp_job, refuses_who_does_not_know_the_secret) {
  tcp_job job;
  auto parts = whole_job(3);
  parts[2].secret = "guessed";
  const auto all = start_with_rank_0_last(job, parts, [&] {
    return job.server().refused() > 0 && missing(job, 3) == std::vector<int>{0, 2};
  });
  EXPECT_EQ(all[2].why.status, SUCL_ERROR_UNAVAILABLE);
  EXPECT_NE(all[2].why.text.find("does not accept this process"), std::string::npos)
      << all[2].why.text;
  EXPECT_NE(all[0].why.text.find("rank 2 has not arrived"), std::string::npos) << all[0].why.text;
  EXPECT_NE(all[0].why.text.find("did not know the secret"), std::string::npos) << all[0].why.text;
  EXPECT_EQ(all[1].why.text, all[0].why.text);
}

TEST(tcp_job, an_exchange_ends_when_a_member_dies) {
  constexpr int size = 11;
  tcp_job job;
  auto all = job.start(whole_job(size));
  ASSERT_TRUE(all_up(all));
  std::vector<sucl_group*> worlds(size);
  tcp_job::each(size, [&](int r) {
    worlds[static_cast<std::size_t>(r)] = all[static_cast<std::size_t>(r)].process->world();
  });
  // Without a goodbye, as where a process is killed.
  all[5].process->free(worlds[5]);
  all[5].process.reset();
  tcp_job::each(size, [&](int r) {
    if (r == 5) return;
    tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
    try {
      gather(n, *worlds[static_cast<std::size_t>(r)], r);
      ADD_FAILURE() << "rank " << r << " has exchanged with the dead";
    } catch (const tcp::problem& p) {
      EXPECT_EQ(p.status, SUCL_ERROR_PEER_LOST);
      EXPECT_EQ(p.text, "rank 5 has died");
    }
    n.free(worlds[static_cast<std::size_t>(r)]);
  });
}

TEST(tcp_job, an_exchange_ends_when_a_member_has_left) {
  constexpr int size = 3;
  tcp_job job;
  auto all = job.start(whole_job(size));
  ASSERT_TRUE(all_up(all));
  tcp_job::each(size, [&](int r) {
    tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
    sucl_group* world = n.world();
    if (r == 1) {
      n.free(world);
      return n.leave();
    }
    try {
      gather(n, *world, r);
      ADD_FAILURE() << "rank " << r << " has exchanged with a rank that has left";
    } catch (const tcp::problem& p) {
      EXPECT_EQ(p.text, "rank 1 has left");
    }
    n.free(world);
  });
}

TEST(tcp_job, ranks_that_leave_late_still_hear_all) {
  constexpr int size = 20;
  for (int times = 0; times < 5; ++times) {
    tcp_job job;
    auto all = job.start(whole_job(size));
    ASSERT_TRUE(all_up(all));
    tcp_job::each(size, [&](int r) {
      tcp::job_process& n = *all[static_cast<std::size_t>(r)].process;
      sucl_group* world = n.world();
      const auto got = gather(n, *world, r);
      EXPECT_EQ(got[size - 1], size - 1);
      n.free(world);
      n.leave();  // each at once, whatever the others still wait for
    });
  }
}

}  // namespace
}  // namespace sucl
