// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Several ranks in a process. `--queues 1,3` gives the processes that many, in turns; `--parts`
// gives each a sub-device of its own where the device has as many, `--devices gpu,cpu` devices of
// these kinds in turns, a GPU of its own to each. What a test does is done by one thread for all
// ranks of its process, by events or in a group, and by a thread for each.
#include "ranks/queues.hpp"
#include "support/host_command.hpp"

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

runtime* g_runtime = nullptr;
std::vector<int> g_counts;  // of each process

}  // namespace

// Ranks are numbered by process and then by position.
TEST_P(several, are_numbered_by_process) {
  const int process = g_runtime->rank();
  int first = 0, total = 0;
  for (int p = 0; p < g_runtime->size(); ++p) {
    const int n = g_counts[static_cast<std::size_t>(p) % g_counts.size()];
    if (p < process) first += n;
    total += n;
  }
  EXPECT_EQ(size, total);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(rank(i), first + static_cast<int>(i));
    const auto& self = mine[i].members()[static_cast<std::size_t>(rank(i))];
    EXPECT_EQ(self.process, getpid());
    EXPECT_EQ(self.rank, rank(i));
  }
}

template <class T>
void several::check_vectors(std::size_t n, sycl::usm::alloc kind) {
  const int root = size - 1;
  auto x = make<T>(n, kind), y = make<T>(n, kind);
  on_all(how, mine, [&](auto& c, std::size_t) { return c.barrier(); });
  on_all(how, mine, [&](auto& c, std::size_t i) { return c.broadcast(x[i].get(), n, root); });
  expect(x, [&](int, std::size_t i) { return value(root, i); }, "broadcast");
  x = make<T>(n, kind);
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.allreduce(x[i].get(), y[i].get(), n, op::sum); });
  expect(y, [&](int, std::size_t i) { return sum(i); }, "allreduce");
  on_all(how, mine, [&](auto& c, std::size_t i) { return c.reduce(x[i].get(), n, op::max, root); });
  expect(x, [&](int r, std::size_t i) { return value(r, i); }, "reduce");
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.scan(x[i].get(), y[i].get(), n, op::sum); });
  expect(y, [&](int r, std::size_t i) { return value(0, i) * (r + 1) * (r + 2) / 2; }, "scan");
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.exscan(x[i].get(), y[i].get(), n, op::sum); });
  expect(
      y, [&](int r, std::size_t i) { return value(0, i) * (r == 0 ? 1 : r * (r + 1) / 2); },
      "exscan");
}

template <class T>
void several::check_equal_blocks(std::size_t n, sycl::usm::alloc kind) {
  const auto p = static_cast<std::size_t>(size);
  const int root = size - 1;
  auto x = make<T>(n, kind), y = make<T>(n, kind);
  auto wide = make<T>(n * p, kind), other = make<T>(n * p, kind);
  const auto of_block = [&](std::size_t i) { return std::pair{static_cast<int>(i / n), i % n}; };
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.allgather(x[i].get(), wide[i].get(), n); });
  expect(
      wide, [&](int, std::size_t i) { return value(of_block(i).first, of_block(i).second); },
      "allgather");
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.alltoall(wide[i].get(), other[i].get(), n); });
  expect(other, [&](int r, std::size_t i) { return value(r, i % n); }, "alltoall");
  on_all(how, mine, [&](auto& c, std::size_t i) {
    return c.reduce_scatter_block(wide[i].get(), y[i].get(), n, op::sum);
  });
  expect(y, [&](int r, std::size_t i) { return size * value(r, i); }, "reduce_scatter_block");
  const counts equal(p, n);
  on_all(how, mine, [&](auto& c, std::size_t i) {
    const counts copy = equal;  // it need not stay
    return c.reduce_scatter(wide[i].get(), y[i].get(), copy, op::max);
  });
  expect(y, [&](int r, std::size_t i) { return value(r, i); }, "reduce_scatter");
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.scatter(wide[i].get(), y[i].get(), n, root); });
  expect(y, [&](int r, std::size_t i) { return value(r, i); }, "scatter");
  wide = make<T>(n * p, kind);
  on_all(how, mine,
         [&](auto& c, std::size_t i) { return c.gather(y[i].get(), wide[i].get(), n, root); });
  expect(
      wide,
      [&](int r, std::size_t i) {
        return r == root ? value(of_block(i).first, of_block(i).second) : value(r, i);
      },
      "gather");
}

template <class T>
void several::check_displaced_blocks(std::size_t n, sycl::usm::alloc kind) {
  const auto p = static_cast<std::size_t>(size);
  auto x = make<T>(n, kind);
  auto wide = make<T>(n * p, kind), other = make<T>(n * p, kind);
  const counts equal(p, n);
  counts displs(p);
  for (std::size_t r = 0; r < p; ++r) displs[r] = (p - 1 - r) * n;
  on_all(how, mine, [&](auto& c, std::size_t i) {
    return c.allgatherv(x[i].get(), n, wide[i].get(), equal, displs);
  });
  expect(
      wide, [&](int, std::size_t i) { return value(size - 1 - static_cast<int>(i / n), i % n); },
      "allgatherv");
  on_all(how, mine, [&](auto& c, std::size_t i) {
    return c.alltoallv(wide[i].get(), equal, displs, other[i].get(), equal, displs);
  });
  expect(other, [&](int r, std::size_t i) { return value(r, i % n); }, "alltoallv");
}

TEST_P(several, run_collectives_on_system_memory) {
  check_all_kinds<int>(1, sycl::usm::alloc::unknown);
  check_all_kinds<double>(1000, sycl::usm::alloc::unknown);
  check_all_kinds<std::int64_t>(70000, sycl::usm::alloc::unknown);
}
TEST_P(several, run_collectives_on_memory_of_the_device) {
  check_all_kinds<int>(300, sycl::usm::alloc::device);
  check_all_kinds<float>(300, sycl::usm::alloc::shared);
  check_all_kinds<double>(20000, sycl::usm::alloc::host);
}

TEST_P(several, run_collectives_on_buffers) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{5000}}) {
    std::vector<sycl::buffer<int>> x;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      std::vector<int> init(n, rank(i) + 1);
      x.emplace_back(sycl::range<1>(n));
      sycl::host_accessor a(x.back(), sycl::write_only, sycl::no_init);
      std::copy(init.begin(), init.end(), a.begin());
    }
    on_all(how, mine, [&](auto& c, std::size_t i) { return c.allreduce(x[i], op::sum); });
    on_all(how, mine, [&](auto& c, std::size_t i) { return c.broadcast(x[i], 0); });
    for (auto& b : x) {
      sycl::host_accessor a(b, sycl::read_only);
      EXPECT_EQ(a[0], size * (size + 1) / 2);
      EXPECT_EQ(a[n - 1], size * (size + 1) / 2);
    }
  }
}

void several::check_messages(std::size_t n) {
  auto x = make<int>(n), y = make<int>(n);
  on_all(how, mine, [&](auto& c, std::size_t i) {
    const int next = (rank(i) + 1) % size, last = (rank(i) + size - 1) % size;
    return c.sendrecv(x[i].get(), n, next, y[i].get(), n, last);
  });
  expect(y, [&](int r, std::size_t i) { return value((r + size - 1) % size, i); }, "sendrecv");
  // Every rank to every other one, each as a message of its own.
  const auto p = static_cast<std::size_t>(size);
  auto all = make<int>(n * p);
  std::vector<std::vector<sycl::event>> done(mine.size());
  group together;
  // Commands of an in-order queue end in order: ranks meet two by two, and the lower sends first.
  const auto exchange = [&](auto& c, std::size_t i, auto keep) {
    const bool in_order = c.queue().is_in_order();
    for (int round = 0; round < size; ++round) {
      const int r = in_order ? (round - rank(i) + size) % size : round;
      if (r == rank(i)) continue;
      const bool sends_first = !in_order || rank(i) < r;
      if (sends_first) keep(c.send(x[i].get(), n, r, 5));
      keep(c.recv(all[i].get() + static_cast<std::size_t>(r) * n, n, r, 5));
      if (!sends_first) keep(c.send(x[i].get(), n, r, 5));
    }
  };
  if (how == form::grouped) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      auto c = together.on(mine[i]);
      for (int r = 0; r < size; ++r) {
        if (r == rank(i)) continue;
        c.send(x[i].get(), n, r, 5);
        c.recv(all[i].get() + static_cast<std::size_t>(r) * n, n, r, 5);
      }
    }
    together.run();
  } else {
    const auto issue = [&](communicator& c, std::size_t i) {
      exchange(c, i, [&](sycl::event e) { done[i].push_back(std::move(e)); });
    };
    if (how == form::threads)
      each_rank(mine, issue);
    else
      for (std::size_t i = 0; i < mine.size(); ++i) issue(mine[i], i);
    for (auto& of_rank : done)
      for (auto& e : of_rank) e.wait();
  }
  expect(
      all,
      [&](int r, std::size_t i) {
        const int from = static_cast<int>(i / n);
        return from == r ? value(r, i) : value(from, i % n);
      },
      "messages");
}

// Of GPUs the backend fabric, where it is built, moves messages in memory of the host.
TEST_P(several, exchange_messages) try {
  if (needs_blocking_forms()) GTEST_SKIP() << "some of them return events";
  for (const std::size_t n : {1, 900, 200000}) check_messages(n);
} catch (const error& e) {
  if (!on_gpus() || e.code() != errc::unsupported) throw;
  GTEST_SKIP() << e.what();
}

// Many at once, before any is waited for.
TEST_P(several, start_many_operations) {
  constexpr int rounds = 40;
  std::vector<std::vector<int>> x(mine.size(), std::vector<int>(rounds));
  for (std::size_t i = 0; i < mine.size(); ++i) std::fill(x[i].begin(), x[i].end(), rank(i) + 1);
  if (how == form::threads) {
    each_rank(mine, [&](communicator& c, std::size_t i) {
      for (int k = 0; k < rounds; ++k) c.blocking().allreduce(&x[i][k], 1, op::sum);
    });
  } else {
    group all;
    std::vector<sycl::event> done;
    // One rank is far ahead of the others.
    for (std::size_t i = 0; i < mine.size(); ++i)
      for (int k = 0; k < rounds; ++k)
        if (how == form::grouped)
          all.on(mine[i]).allreduce(&x[i][k], 1, op::sum);
        else
          done.push_back(mine[i].allreduce(&x[i][k], 1, op::sum));
    all.run();
    for (auto& e : done) e.wait();
  }
  for (const auto& values : x)
    for (const int v : values) EXPECT_EQ(v, size * (size + 1) / 2);
}

// A command before, the operation, and a command behind, each on its rank's queue.
TEST_P(several, follow_events) {
  if (needs_blocking_forms()) GTEST_SKIP() << "it has events";
  constexpr std::size_t n = 1000;
  const auto do_all = [&](const auto& work) {
    std::vector<sycl::event> done(mine.size());
    if (how == form::threads)
      done = each_rank(mine, work);
    else
      for (std::size_t i = 0; i < mine.size(); ++i) done[i] = work(mine[i], i);
    for (auto& e : done) e.wait();
  };
  auto x = make<int>(n, sycl::usm::alloc::host);
  auto from = make<int>(n, sycl::usm::alloc::device), to = make<int>(n, sycl::usm::alloc::device);
  for (auto& m : x) m.fill([](std::size_t) { return -5; });
  do_all([&](communicator& c, std::size_t i) {
    auto q = c.queue();
    const auto before = q.memcpy(x[i].get(), from[i].get(), n * sizeof(int));
    const auto reduced = c.allreduce(x[i].get(), n, op::sum, {before});
    return q.memcpy(to[i].get(), x[i].get(), n * sizeof(int), reduced);
  });
  expect(to, [&](int, std::size_t i) { return sum(i); }, "copies around allreduce");
  if (on_gpus()) return;  // AdaptiveCpp runs such commands before the device gets there
  x = make<int>(n, sycl::usm::alloc::host);
  do_all([&](communicator& c, std::size_t i) {
    auto q = c.queue();
    int* data = x[i].get();
    const auto add = [&](const sycl::event& after) {
      return q.submit([&](sycl::handler& h) {
        h.depends_on(after);
        host_command(h, [data] { std::for_each_n(data, n, [](int& v) { ++v; }); });
      });
    };
    return add(c.allreduce(data, n, op::sum, {add({})}));
  });
  expect(x, [&](int, std::size_t i) { return sum(i) + size + 1; }, "commands around allreduce");
}

static void expect_sum(form how, std::vector<communicator>& ranks) {
  if (ranks.empty()) return;
  std::vector<int> x(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) x[i] = ranks[i].rank() + 1;
  on_all(how, ranks, [&](auto& c, std::size_t i) { return c.allreduce(&x[i], 1, op::sum); });
  for (std::size_t i = 0; i < ranks.size(); ++i)
    EXPECT_EQ(x[i], ranks[i].size() * (ranks[i].size() + 1) / 2);
}

TEST_P(several, make_others) {
  auto copies = communicator::dup(mine);
  expect_sum(how, copies);
  expect_sum(how, mine);
  const auto split = [&](auto colour, auto key) {
    std::vector<int> colours, keys;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      colours.push_back(colour(rank(i)));
      keys.push_back(key(rank(i)));
    }
    auto parts = communicator::split(mine, colours, keys);
    std::vector<communicator> there;
    for (auto& c : parts)
      if (c) there.push_back(c);
    return there;
  };
  const auto none = [](int) { return 0; };
  const auto backwards = [](int r) { return -r; };
  auto halves = split([](int r) { return r % 2; }, backwards);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const int peers = (size + 1 - rank(i) % 2) / 2;
    EXPECT_EQ(halves[i].size(), peers);
    EXPECT_EQ(halves[i].rank(), peers - 1 - rank(i) / 2);
  }
  expect_sum(how, halves);
  auto blocks = split([](int r) { return r / 2; }, none);
  expect_sum(how, blocks);
  auto alone = split([](int r) { return r; }, none);
  expect_sum(how, alone);
  auto first = split([](int r) { return r == 0 ? -1 : 7; }, none);
  for (const auto& c : first) EXPECT_EQ(c.size(), size - 1);
  expect_sum(how, first);
  // Those that have none are left out.
  std::vector<int> all_but_one(mine.size(), 0);
  if (rank(0) == 0) all_but_one.front() = -1;
  auto some = communicator::split(mine, all_but_one);
  auto of_some = communicator::dup(some);
  EXPECT_EQ(static_cast<bool>(of_some.front()), rank(0) != 0);
  communicator::deallocate(of_some, communicator::allocate<int>(of_some, 100));
  // Of what was split already.
  auto again = communicator::dup(halves);
  expect_sum(how, again);
}

// AdaptiveCpp does not copy from host to host on a queue of a GPU.
static void copy(const communicator& c, double* to, const double* from, std::size_t n) {
  auto q = c.queue();
  const auto unknown = [&](const void* at) {
    return sycl::get_pointer_type(at, q.get_context()) == sycl::usm::alloc::unknown;
  };
  if (unknown(to) && unknown(from))
    std::copy(from, from + n, to);
  else
    q.memcpy(to, from, n * sizeof(double)).wait();
}

TEST_P(several, share_memory) {
  constexpr std::size_t n = 50000;
  const auto shared = communicator::allocate<double>(mine, n);
  std::vector<double> values(n);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t k = 0; k < n; ++k) values[k] = value(rank(i), k);
    copy(mine[i], shared[i], values.data(), n);
  }
  on_all(how, mine, [&](auto& c, std::size_t i) { return c.allreduce(shared[i], n, op::sum); });
  for (std::size_t i = 0; i < mine.size(); ++i) {
    copy(mine[i], values.data(), shared[i], n);
    for (std::size_t k = 0; k < n; k += 7) ASSERT_EQ(values[k], sum(k));
  }
  communicator::deallocate(mine, shared);
}

TEST_P(several, compile_and_repeat) {
  if (needs_blocking_forms()) GTEST_SKIP() << "plans are started in forms that return events";
  constexpr std::size_t n = 100;
  composition c{size};
  std::vector<std::vector<int>> others(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r)
    for (int o = 0; o < size; ++o)
      if (o != r) others[static_cast<std::size_t>(r)].push_back(o);
  for (int r = 0; r < size; ++r) {
    const auto at = static_cast<std::size_t>(r) * n;
    c.reduction(c.send(at, n), c.recv(at, n), all, r, op::sum);
  }
  c.fence();
  for (int r = 0; r < size; ++r) {
    const auto at = static_cast<std::size_t>(r) * n;
    c.multicast(c.recv(at, n), c.recv(at, n), r, others[static_cast<std::size_t>(r)]);
  }
  const auto total = n * static_cast<std::size_t>(size);
  const auto where = on_gpus() ? sycl::usm::alloc::device : sycl::usm::alloc::unknown;
  auto x = make<int>(total, where), y = make<int>(total, where);
  auto plans = communicator::compile<int>(mine, c);
  for (int round = 0; round < 3; ++round) {
    std::vector<sycl::event> done;
    for (std::size_t i = 0; i < mine.size(); ++i)
      done.push_back(plans[i].start(std::as_const(x[i]).get(), y[i].get()));
    for (auto& e : done) e.wait();
    expect(y, [&](int, std::size_t i) { return sum(i); }, "compiled plan");
  }
  std::vector<persistent> repeated;
  for (std::size_t i = 0; i < mine.size(); ++i)
    repeated.push_back(
        mine[i].persistent().allreduce(std::as_const(x[i]).get(), y[i].get(), total, op::max));
  for (int round = 0; round < 3; ++round) {
    if (how == form::threads) {
      each_rank(mine, [&](communicator&, std::size_t i) { repeated[i].run(); });
    } else {
      std::vector<sycl::event> done;
      for (auto& p : repeated) done.push_back(p.start());
      for (auto& e : done) e.wait();
    }
    expect(y, [&](int, std::size_t i) { return value(size - 1, i); }, "persistent");
  }
}

// Others of the same processes, while these are in use, and after their end.
TEST_P(several, start_more_than_once) {
  std::vector<sycl::queue> queues;
  for (auto& c : mine) queues.push_back(c.queue());
  auto second = g_runtime->world(queues);
  expect_sum(how, second);
  expect_sum(how, mine);
  second.clear();
  if (queues.size() > 1) queues.resize(1);
  auto third = g_runtime->world(queues);  // one on each process
  expect_sum(how, third);
  expect_sum(how, mine);
}

TEST_P(several, refuse_a_process_without_queues) {
  std::vector<sycl::queue> queues;
  for (auto& c : mine) queues.push_back(c.queue());
  if (g_runtime->rank() == g_runtime->size() - 1) queues.clear();
  try {
    (void)g_runtime->world(queues);
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    const auto named = "process " + std::to_string(g_runtime->size() - 1) + " has passed no queue";
    EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
  }
  expect_sum(how, mine);
}

// Two threads of one rank would each wait for the other ranks, and for each other.
TEST_P(several, refuse_a_rank_that_is_passed_twice) {
  std::vector<communicator> twice = mine;
  twice.push_back(mine.front());
  const auto refused = [&](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      const auto named = "rank " + std::to_string(rank(0)) +
                         " was passed twice, as entries 0 and " + std::to_string(mine.size());
      EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
    }
  };
  refused([&] { (void)communicator::dup(twice); });
  refused([&] { (void)communicator::split(twice, std::vector<int>(twice.size(), 0)); });
  refused([&] { (void)communicator::allocate<int>(twice, 8); });
  refused([&] { each_rank(twice, [](communicator& c) { c.blocking().barrier(); }); });
  expect_sum(how, mine);
}

TEST_P(several, name_a_wrong_colour_list) {
  try {
    (void)communicator::split(mine, std::vector<int>(mine.size() + 1, 0));
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
  }
}

namespace {

std::string name_of(const ::testing::TestParamInfo<form>& info) {
  return info.param == form::events ? "events" : info.param == form::grouped ? "group" : "threads";
}
INSTANTIATE_TEST_SUITE_P(ranks, several, ::testing::ValuesIn(forms), name_of);

// Of these kinds in turns; fewer where there are not enough GPUs.
std::vector<sycl::queue> make_queues_of(const std::vector<std::string>& kinds, int count) {
  const auto gpus = sycl::device::get_devices(sycl::info::device_type::gpu);
  std::size_t next = 0;
  std::vector<sycl::queue> queues;
  for (int i = 0; i < count; ++i) {
    const bool gpu = kinds[static_cast<std::size_t>(i) % kinds.size()] == "gpu";
    if (gpu && next == gpus.size()) break;
    queues.emplace_back(gpu ? gpus[next++] : sycl::device(sycl::cpu_selector_v),
                        sycl::property::queue::in_order());
  }
  return queues;
}

std::vector<sycl::queue> make_queues(int count, bool parts) {
  const sycl::device whole(sycl::cpu_selector_v);
  std::vector<sycl::device> devices(static_cast<std::size_t>(count), whole);
  const auto units = whole.get_info<sycl::info::device::max_compute_units>();
  if (parts && units >= static_cast<unsigned>(count) && count > 1)
    devices = whole.create_sub_devices<sycl::info::partition_property::partition_equally>(
        units / static_cast<unsigned>(count));
  std::vector<sycl::queue> queues;
  for (int i = 0; i < count; ++i) queues.emplace_back(devices[static_cast<std::size_t>(i)]);
  return queues;
}

std::vector<std::string> words_of(const char* list) {
  std::istringstream stream(list);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  bool parts = false;
  std::vector<std::string> kinds;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--queues" && i + 1 < argc) {
      for (const auto& n : words_of(argv[++i])) g_counts.push_back(std::stoi(n));
    } else if (word == "--devices" && i + 1 < argc) {
      kinds = words_of(argv[++i]);
    } else if (word == "--parts") {
      parts = true;
    }
  }
  if (g_counts.empty()) g_counts = {2};
  if (!kinds.empty() && static_cast<int>(make_queues_of(kinds, g_counts[0]).size()) < g_counts[0])
    return std::printf("skipped: there are not enough GPUs\n") < 0;
  runtime rt;
  g_runtime = &rt;
  const int count = g_counts[static_cast<std::size_t>(rt.rank()) % g_counts.size()];
  g_mine = rt.world(kinds.empty() ? make_queues(count, parts) : make_queues_of(kinds, count));
  if (rt.rank() != 0)
    delete ::testing::UnitTest::GetInstance()->listeners().Release(
        ::testing::UnitTest::GetInstance()->listeners().default_result_printer());
  const int result = RUN_ALL_TESTS();
  if (result != 0) std::fprintf(stderr, "process %d: some tests failed\n", rt.rank());
  g_mine.clear();
  return result;
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  try {
    return sucl::testing::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
