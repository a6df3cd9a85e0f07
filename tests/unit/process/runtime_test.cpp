// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators, the progress thread and the watchdog with threads as ranks: what ThreadSanitizer
// is to see. Nothing here helps an operation on unless it says so.
#include "process/process.hpp"

#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sucl::testing {
namespace {

using namespace std::chrono_literals;
using core::communicator;
using core::process;

base::config settings(std::chrono::nanoseconds timeout = 0s) {
  auto c = base::load_config("/dev/null", {});
  c.default_backend = "mock";
  c.watchdog.timeout = timeout;
  c.progress.poll_us = 0;  // leave all to the progress thread
  for (auto& b : c.backends) {
    b.enabled = b.name == "mock";
    b.platforms = {"*"};
    if (b.name == "mock") b.path = SUCL_TEST_MOCK;
  }
  return c;
}

sucl_operation allreduce(int* data, std::uint64_t count = 1) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_ALLREDUCE;
  o.type = SUCL_TYPE_INT32;
  o.op = SUCL_OP_SUM;
  o.flags = SUCL_FLAG_IN_PLACE;
  o.element_size = sizeof(int);
  o.recv = data;
  o.count = count;
  return o;
}

/// Hears of an operation's end.
class listener {
 public:
  core::observer observer() {
    core::observer o;
    o.context = this;
    o.done = [](void* self, const error_info* e) { static_cast<listener*>(self)->heard(e); };
    return o;
  }
  bool wait() {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, 60s, [this] { return m_times > 0; });
  }
  int times() {
    std::lock_guard lock(m_mutex);
    return m_times;
  }
  std::string error() {
    std::lock_guard lock(m_mutex);
    return m_error;
  }
  void reset() {
    std::lock_guard lock(m_mutex);
    m_times = 0;
  }

 private:
  void heard(const error_info* e) {
    std::lock_guard lock(m_mutex);
    ++m_times;
    if (e) m_error = e->message;
    m_changed.notify_all();
  }
  std::mutex m_mutex;
  std::condition_variable m_changed;
  int m_times = 0;
  std::string m_error;
};

/// Runs on each rank with a process of its own, which ends afterwards.
void run(int ranks, const base::config& c,
         const std::function<void(process&, communicator&)>& body) {
  run_processes(ranks, [&](const sucl_bootstrap& control, int) {
    auto p = process::start(c, &control);
    {
      auto world = p->world({});
      body(*p, *world);
    }
    p->shut_down();
  });
}

int sum(const communicator& c) { return c.size() * (c.size() + 1) / 2; }

// A wake-up that is lost stops everything here.
TEST(runtime, every_operation_is_heard_of) {
  run(3, settings(), [](process&, communicator& c) {
    listener done;
    for (int i = 0; i < 1500; ++i) {
      int x = c.rank() + 1;
      const auto issued = c.issue(allreduce(&x), {}, true, done.observer());
      if (!issued.done) {
        ASSERT_TRUE(done.wait()) << "operation " << i;
      }
      ASSERT_EQ(x, sum(c));
      done.reset();
    }
  });
}

// Until its observer has returned, it may be what a thread of the program waits for.
TEST(runtime, what_is_over_is_undelivered_until_it_was_heard_of) {
  struct slow {
    std::promise<void> begun, goes_on;
    static void hear(void* self, const error_info*) {
      static_cast<slow*>(self)->begun.set_value();
      static_cast<slow*>(self)->goes_on.get_future().wait();
    }
  };
  run(2, settings(), [](process&, communicator& c) {
    EXPECT_FALSE(c.has_undelivered());
    slow one;
    core::observer watch;
    watch.context = &one;
    watch.done = &slow::hear;
    int x = c.rank() + 1;
    const auto issued = c.issue(allreduce(&x), {}, false, watch);
    c.mark_ready(issued.operation);
    one.begun.get_future().wait();
    EXPECT_TRUE(issued.operation.done());
    EXPECT_TRUE(c.has_undelivered());
    one.goes_on.set_value();
    c.wait_all();
    while (c.has_undelivered()) std::this_thread::yield();
  });
}

// Rank 0 compares calls between nodes. When it ends first, the others know that theirs were the
// same, or each would wait in vain for a reply.
TEST(runtime, rank_0_says_that_calls_agree_before_it_ends) {
  auto c = settings();
  c.nodes.size = {1};
  std::promise<void> first_has_ended;
  const auto ended = first_has_ended.get_future().share();
  const auto agrees = [](communicator& world) {
    const call_agreement& calls = world.agreement();
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (calls.agreed() < calls.calls_made() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    return calls.agreed() == calls.calls_made();
  };
  run_processes(3, [&](const sucl_bootstrap& control, int rank) {
    auto p = process::start(c, &control);
    auto world = p->world({});
    EXPECT_TRUE(world->agreement().compares());
    int x = rank + 1;
    world->run(allreduce(&x), {});
    EXPECT_EQ(x, sum(*world));
    if (rank == 0) {
      EXPECT_TRUE(agrees(*world));
      world.reset();
      first_has_ended.set_value();
    } else {
      ended.wait();
      EXPECT_TRUE(agrees(*world)) << "rank " << rank;
      world.reset();
    }
    p->shut_down();
  });
}

// Another thread says when an operation may start, while the progress thread falls asleep.
TEST(runtime, readiness_is_not_missed) {
  run(2, settings(), [](process&, communicator& c) {
    std::mutex mutex;
    std::condition_variable changed;
    core::ticket next;
    bool given = false;
    bool over = false;
    std::thread starter([&] {
      for (;;) {
        core::ticket t;
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return given || over; });
          if (!given) return;
          t = std::move(next);
          given = false;
        }
        c.mark_ready(t);
      }
    });
    listener done;
    for (int i = 0; i < 1500; ++i) {
      int x = c.rank() + 1;
      auto issued = c.issue(allreduce(&x), {}, false, done.observer());
      {
        std::lock_guard lock(mutex);
        next = issued.operation;
        given = true;
      }
      changed.notify_one();
      EXPECT_TRUE(done.wait()) << "operation " << i;
      EXPECT_EQ(x, sum(c));
      done.reset();
    }
    {
      std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_one();
    starter.join();
  });
}

// Assistants come and go; what they leave in flight is the progress thread's.
TEST(runtime, assistants_hand_over) {
  run(3, settings(), [](process&, communicator& c) {
    std::mt19937 pace(static_cast<unsigned>(c.rank()));
    for (int i = 0; i < 300; ++i) {
      int x[3] = {c.rank() + 1, c.rank() + 1, c.rank() + 1};
      core::observer assisted;
      assisted.assisted = true;
      listener done;
      auto first = c.issue(allreduce(&x[0]), {}, true, assisted);
      auto second = c.issue(allreduce(&x[1]), {}, false, done.observer());
      auto third = c.issue(allreduce(&x[2]), {}, true, assisted);
      std::thread helper([&] {
        if (pace() % 2) std::this_thread::yield();
        c.assist(first.operation);
      });
      c.mark_ready(second.operation);
      if (!second.done) {
        EXPECT_TRUE(done.wait());
      }
      c.assist(third.operation);
      helper.join();
      for (int value : x) ASSERT_EQ(value, sum(c));
    }
  });
}

// The blocking form among asynchronous operations, from several threads of each rank.
TEST(runtime, threads_with_communicators_of_their_own) {
  run(3, settings(20s), [](process&, communicator& c) {
    std::vector<std::shared_ptr<communicator>> own;
    for (int t = 0; t < 3; ++t) own.push_back(c.split(0, c.rank(), {}));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        auto& mine = *own[static_cast<std::size_t>(t)];
        for (int i = 0; i < 100; ++i) {
          int x = mine.rank() + 1, y = mine.rank() + 1;
          listener done;
          const auto issued = mine.issue(allreduce(&x), {}, true, done.observer());
          mine.run(allreduce(&y), {});
          if (!issued.done) {
            EXPECT_TRUE(done.wait());
          }
          EXPECT_EQ(x, sum(mine));
          EXPECT_EQ(y, sum(mine));
        }
        mine.wait_all();
      });
    for (auto& t : threads) t.join();
  });
}

// A call that has run is known, until something else has to be found out about it.
TEST(runtime, calls_that_are_known) {
  run(3, settings(), [](process&, communicator& c) {
    int x = 0, y = 1;
    const auto asked = allreduce(&x);
    EXPECT_FALSE(c.run_cached(asked));
    c.run(asked, {}, &asked);
    for (int i = 0; i < 100; ++i) {
      x = c.rank() + 1;
      ASSERT_TRUE(c.run_cached(asked));
      ASSERT_EQ(x, sum(c));
    }
    auto other = asked;
    other.op = SUCL_OP_MAX;
    EXPECT_FALSE(c.run_cached(other));

    listener done;
    const auto held = c.issue(allreduce(&y), {}, false, done.observer());
    EXPECT_FALSE(c.run_cached(asked)) << "what was issued before goes before";
    c.mark_ready(held.operation);
    EXPECT_TRUE(done.wait());
    x = c.rank() + 1;
    EXPECT_TRUE(c.run_cached(asked));
    EXPECT_EQ(x, sum(c));

    c.use_table(nullptr);
    EXPECT_FALSE(c.run_cached(asked)) << "another backend may execute it now";
    c.run(asked, {}, &asked);
    c.shut_down(true);
    EXPECT_THROW(c.run_cached(asked), error);
  });
}

// Communicators end under the eyes of the watchdog, with operations in flight.
TEST(runtime, communicators_come_and_go) {
  run(3, settings(20s), [](process&, communicator& c) {
    for (int i = 0; i < 40; ++i) {
      auto part = c.split(c.rank() % 2, -c.rank(), {});
      auto dup = part->split(0, 0, {});
      int x = 1, y = 1;
      listener done;
      const bool at_once = part->issue(allreduce(&x), {}, true, done.observer()).done;
      dup->run(allreduce(&y), {});
      EXPECT_EQ(y, dup->size());
      part->shut_down(true);
      if (!at_once) {
        EXPECT_TRUE(done.wait());
      }
      EXPECT_EQ(x, part->size());
      EXPECT_THROW(part->run(allreduce(&x), {}), error);
    }
  });
}

TEST(runtime, numbers_of_communicators_are_unique) {
  std::mutex mutex;
  std::map<std::uint64_t, std::set<int>> groups;  // of each number: the worlds' ranks that have it
  run(4, settings(), [&](process& p, communicator& c) {
    auto half = c.split(c.rank() / 2, 0, {});
    auto pair = half->split(0, 0, {});
    const std::lock_guard lock(mutex);
    for (auto* made : {&c, half.get(), pair.get()}) groups[made->id()].insert(p.rank());
  });
  std::multiset<std::set<int>> found;
  for (const auto& [id, ranks] : groups) found.insert(ranks);
  EXPECT_EQ(found, (std::multiset<std::set<int>>{{0, 1}, {0, 1}, {0, 1, 2, 3}, {2, 3}, {2, 3}}));
}

// Ranks wait by looking where each can have a processor, also if it is bound to it.
// In bytes; 0 under sanitizers, whose allocator is another one.
std::size_t memory_in_use() { return ::mallinfo2().uordblks; }

// The steps of set-up are told apart by their communicator and counted: with it, not for ever.
TEST(runtime, communicators_leave_no_memory) {
  run(1, settings(), [](process&, communicator& c) {
    const auto live = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const auto part = c.split(0, 0, {});
        for (const char* what : {"allocate", "deallocate", "split", "compile"})
          part->begin_step(what);
        part->shut_down(true);
      }
    };
    live(100);
    const auto before = memory_in_use();
    live(2000);
    EXPECT_LT(memory_in_use(), before + 32 * 2000);
  });
}

TEST(runtime, bound_ranks_have_processors_of_their_own) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all)) processors.push_back(i);
  if (processors.size() < 2) GTEST_SKIP() << "one processor";
  const auto bind = [](int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
  };
  run(2, settings(), [&](process&, communicator& c) {
    EXPECT_FALSE(c.where().oversubscribed());
    bind(processors[static_cast<std::size_t>(c.rank())]);
    EXPECT_FALSE(c.split(0, 0, {})->where().oversubscribed());
    bind(processors[1]);
    EXPECT_TRUE(c.split(0, 0, {})->where().oversubscribed());
    EXPECT_FALSE(c.split(c.rank(), 0, {})->where().oversubscribed());
  });
}

// The last rank does not come. Every other rank gets the error once, in each form, and all ends.
TEST(runtime, a_rank_that_does_not_arrive) {
  for (int round = 0; round < 3; ++round) {
    run(3, settings(200ms), [](process&, communicator& c) {
      if (c.rank() == c.size() - 1) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        for (bool told = false; !told && std::chrono::steady_clock::now() < deadline;) {
          try {
            c.check();
            std::this_thread::sleep_for(1ms);
          } catch (const error& e) {
            told = e.code() == errc::timeout;
          }
        }
        EXPECT_THROW(c.check(), error);
        return;
      }
      std::vector<int> x(8, 1);
      std::vector<listener> heard(4);
      std::vector<core::ticket> tickets;
      for (std::size_t i = 0; i < heard.size(); ++i)
        tickets.push_back(c.issue(allreduce(&x[i]), {}, i < 2, heard[i].observer()).operation);
      std::thread helper([&] { c.assist(tickets[1]); });
      std::thread starter([&] { c.mark_ready(tickets[2]); });
      try {
        c.run(allreduce(&x[7]), {});
        ADD_FAILURE() << "no error";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::timeout);
        EXPECT_NE(e.message().find("rank 2 has not arrived"), std::string::npos) << e.what();
      }
      helper.join();
      starter.join();
      for (auto& l : heard) {
        EXPECT_TRUE(l.wait());
        EXPECT_NE(l.error().find("allreduce #1"), std::string::npos) << l.error();
      }
      std::this_thread::sleep_for(10ms);
      for (auto& l : heard) EXPECT_EQ(l.times(), 1);
      EXPECT_THROW(c.issue(allreduce(&x[0]), {}, true, {}), error);
    });
  }
}

// Gives up from another thread while operations are issued, posted and waited for.
TEST(runtime, giving_up_at_any_time) {
  for (int round = 0; round < 20; ++round) {
    run(2, settings(), [&](process&, communicator& c) {
      std::thread breaker([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
        error_info info;
        info.code = errc::native;
        info.message = "given up";
        c.fail_all(info);
      });
      std::vector<int> x(10000, 1);
      try {
        for (int& value : x) {
          core::observer assisted;
          assisted.assisted = true;
          const auto issued = c.issue(allreduce(&value), {}, true, assisted);
          if (&value - x.data() > 8000) std::this_thread::sleep_for(1ms);
          c.wait(issued.operation);
        }
      } catch (const error& e) {
        EXPECT_EQ(e.message(), "given up");
      }
      breaker.join();
      EXPECT_THROW(c.wait_all(), error);
    });
  }
}

TEST(runtime, a_process_can_be_abandoned) {
  run_processes(2, [](const sucl_bootstrap& control, int rank) {
    auto p = process::start(settings(), &control);
    auto world = p->world({});
    int x = 1;
    listener done;
    if (rank == 0) world->issue(allreduce(&x), {}, true, done.observer());
    p->abandon("a test says so");
    if (rank == 0) {
      EXPECT_TRUE(done.wait());
    }
    EXPECT_THROW(world->run(allreduce(&x), {}), error);
  });
}

}  // namespace
}  // namespace sucl::testing
