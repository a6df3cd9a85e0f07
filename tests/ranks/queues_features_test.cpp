// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What is beside plain collectives, with several ranks in a process: functions as ops, neighbours,
// repeated and recorded operations, plans of parts, and calls that differ. Results are compared
// with loops over the ranks.
#include "ranks/queues.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace sucl::testing {
namespace {

// Composition of affine maps: associative, and not commutative. Wraps.
struct affine_map {
  std::uint32_t factor, term;
  bool operator==(const affine_map& o) const { return factor == o.factor && term == o.term; }
};

affine_map after(const affine_map& first, const affine_map& second) {
  return {first.factor * second.factor, first.term * second.factor + second.term};
}

affine_map map_of(int rank, std::size_t i) {
  const auto n = static_cast<std::uint32_t>(i), r = static_cast<std::uint32_t>(rank);
  return {2 * n + 3 + r, 7 * r + n};
}

// Of ranks 0 to `last`.
affine_map composed(std::size_t i, int last) {
  affine_map all = map_of(0, i);
  for (int r = 1; r <= last; ++r) all = after(all, map_of(r, i));
  return all;
}

// Has every rank of this process start something and waits for all; by a thread each, or by one.
template <class Call>
void start_all(form f, std::vector<communicator>& ranks, Call call) {
  std::vector<sycl::event> done(ranks.size());
  if (f == form::threads)
    done = each_rank(ranks, call);
  else
    for (std::size_t i = 0; i < ranks.size(); ++i) done[i] = call(ranks[i], i);
  for (auto& e : done) e.wait();
  for (const auto& c : ranks) c.check();
}

void check_functions(form how, std::vector<communicator>& ranks, std::size_t n) {
  const user_op<affine_map> op{after};
  const int size = ranks.front().size(), root = size - 1;
  std::vector<std::vector<affine_map>> x, y(ranks.size());
  for (const auto& c : ranks) {
    x.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) x.back()[i] = map_of(c.rank(), i);
  }
  const auto start = [&](const auto& call) {
    for (auto& v : y) v.assign(n, {1, 1});
    start_all(how, ranks, call);
  };
  const auto expect = [&](const char* what, const auto& expected) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(y[r][i], expected(ranks[r].rank(), i)) << what << " at " << i;
  };
  start([&](auto& c, std::size_t i) { return op.allreduce(c, x[i].data(), y[i].data(), n); });
  expect("allreduce", [&](int, std::size_t i) { return composed(i, size - 1); });
  start([&](auto& c, std::size_t i) { return op.reduce(c, x[i].data(), y[i].data(), n, root); });
  expect("reduce", [&](int r, std::size_t i) {
    return r == root ? composed(i, size - 1) : affine_map{1, 1};
  });
  start([&](auto& c, std::size_t i) { return op.scan(c, x[i].data(), y[i].data(), n); });
  expect("scan", [&](int r, std::size_t i) { return composed(i, r); });
  start([&](auto& c, std::size_t i) { return op.exscan(c, x[i].data(), y[i].data(), n); });
  expect("exscan",
         [&](int r, std::size_t i) { return r == 0 ? affine_map{1, 1} : composed(i, r - 1); });
  // All to the last but one rank, if there is one.
  counts shares(static_cast<std::size_t>(size), 0);
  const int owner = size > 1 ? size - 2 : 0;
  shares[static_cast<std::size_t>(owner)] = n;
  start([&](auto& c, std::size_t i) {
    return op.reduce_scatter(c, x[i].data(), y[i].data(), shares);
  });
  expect("reduce_scatter", [&](int r, std::size_t i) {
    return r == owner ? composed(i, size - 1) : affine_map{1, 1};
  });
  const auto values =
      each_rank(ranks, [&](communicator& c) { return op.allreduce(c, map_of(c.rank(), 5)); });
  for (const auto& v : values) EXPECT_EQ(v, composed(5, size - 1));
}

constexpr const char* needs_host = "it uses memory of the host";

// The ranks of this process that have a part of that colour.
std::vector<communicator> parts_of(const std::vector<communicator>& ranks, int divisor) {
  std::vector<int> colours;
  for (const auto& c : ranks) colours.push_back(c.rank() % divisor);
  return communicator::split(ranks, colours);
}

}  // namespace

TEST_P(several, reduce_by_functions) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  for (const std::size_t n : {1, 7, 3000}) check_functions(how, mine, n);
}

// Of one colour are ranks of several processes, or several ranks of one.
TEST_P(several, reduce_by_functions_in_parts) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  auto halves = parts_of(mine, 2);
  for (std::size_t i = 0; i < mine.size(); ++i)
    ASSERT_EQ(halves[i].size(), (size + 1 - rank(i) % 2) / 2);
  std::vector<communicator> of_one;
  for (int colour = 0; colour < 2; ++colour) {
    of_one.clear();
    for (const auto& c : halves)
      if (mine[static_cast<std::size_t>(&c - halves.data())].rank() % 2 == colour)
        of_one.push_back(c);
    if (!of_one.empty()) check_functions(how, of_one, 100);
  }
}

TEST_P(several, exchange_with_neighbors) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  constexpr std::size_t n = 500;
  auto rings =
      each_rank(mine, [&](communicator& c) { return neighborhood::grid(c, {size}, {true}); });
  auto lines = each_rank(mine, [&](communicator& c) { return neighborhood::grid(c, {1, size}); });
  // Rank r sends to the next one as often as its number says, and once to itself.
  const auto last_of = [&](int r) { return (r + size - 1) % size; };
  auto graphs = each_rank(mine, [&](communicator& c) {
    const int r = c.rank();
    std::vector<int> from(static_cast<std::size_t>(last_of(r)), last_of(r)), to{r};
    from.push_back(r);
    to.insert(to.end(), static_cast<std::size_t>(r), (r + 1) % size);
    return neighborhood(c, from, to);
  });
  auto x = make<int>(2 * n), y = make<int>(2 * n);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    x[i].fill([&](std::size_t k) { return 1000000 * rank(i) + static_cast<int>(k); });
    y[i].fill([](std::size_t) { return -1; });
  }
  start_all(how, mine, [&](communicator&, std::size_t i) {
    return rings[i].alltoall(x[i].get(), y[i].get(), n);
  });
  // What goes down comes from above.
  expect(
      y,
      [&](int r, std::size_t k) {
        const int from = k < n ? last_of(r) : (r + 1) % size;
        return 1000000 * from + static_cast<int>(k < n ? k + n : k - n);
      },
      "ring");
  std::vector<std::vector<int>> ends(mine.size(), std::vector<int>(4 * n, -7));
  start_all(how, mine, [&](communicator&, std::size_t i) {
    return lines[i].allgather(x[i].get(), ends[i].data(), n);
  });
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (std::size_t k = 0; k < 4 * n; ++k) {
      const int from = k < 2 * n ? -1 : k < 3 * n ? rank(i) - 1 : rank(i) + 1;
      const int expected = from < 0 || from == size ? -7 : 1000000 * from + static_cast<int>(k % n);
      ASSERT_EQ(ends[i][k], expected) << "line at " << k << " of rank " << rank(i);
    }
  std::vector<std::vector<int>> received(mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i)
    received[i].assign(n * (static_cast<std::size_t>(last_of(rank(i))) + 1), -1);
  start_all(how, mine, [&](communicator&, std::size_t i) {
    return graphs[i].allgather(x[i].get(), received[i].data(), n);
  });
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (std::size_t k = 0; k < received[i].size(); ++k) {
      const bool is_own = k / n == static_cast<std::size_t>(last_of(rank(i)));
      const int from = is_own ? rank(i) : last_of(rank(i));
      ASSERT_EQ(received[i][k], 1000000 * from + static_cast<int>(k % n)) << "graph at " << k;
    }
}

// Prepared on each rank, and started in turns with other operations and other values.
TEST_P(several, repeat_operations_of_all_kinds) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  constexpr std::size_t n = 300;
  const auto p = static_cast<std::size_t>(size);
  auto x = make<int>(n * p), y = make<int>(n * p), total = make<int>(n);
  std::vector<persistent> scatters, exchanges, sums, messages;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const int next = (rank(i) + 1) % size, last = (rank(i) + size - 1) % size;
    const int* from = x[i].get();
    scatters.push_back(mine[i].persistent().scatter(from, total[i].get(), n, size - 1));
    exchanges.push_back(mine[i].persistent().alltoall(from, y[i].get(), n));
    sums.push_back(mine[i].persistent().reduce_scatter_block(from, total[i].get(), n, op::sum));
    messages.push_back(mine[i].persistent().sendrecv(from, n, next, total[i].get(), n, last));
  }
  for (int round = 0; round < 4; ++round) {
    const auto of = [&](int r, std::size_t k) {
      return 100000 * r + 20000 * round + static_cast<int>(k);
    };
    for (std::size_t i = 0; i < mine.size(); ++i)
      x[i].fill([&](std::size_t k) { return of(rank(i), k); });
    const auto go = [&](std::vector<persistent>& which) {
      start_all(how, mine, [&](communicator&, std::size_t i) { return which[i].start(); });
    };
    const auto block = [&](int r) { return static_cast<std::size_t>(r) * n; };
    go(exchanges);
    expect(
        y, [&](int r, std::size_t k) { return of(static_cast<int>(k / n), block(r) + k % n); },
        "persistent alltoall");
    go(scatters);
    expect(
        total, [&](int r, std::size_t k) { return of(size - 1, block(r) + k); },
        "persistent scatter");
    on_all(how, mine, [&](auto& c, std::size_t) { return c.barrier(); });
    go(sums);
    expect(
        total,
        [&](int r, std::size_t k) {
          int all = 0;
          for (int from = 0; from < size; ++from) all += of(from, block(r) + k);
          return all;
        },
        "persistent reduce_scatter_block");
    go(messages);
    expect(
        total, [&](int r, std::size_t k) { return of((r + size - 1) % size, k); },
        "persistent sendrecv");
  }
}

TEST_P(several, replay_recorded_operations) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  constexpr std::size_t n = 200;
  auto x = make<int>(n, sycl::usm::alloc::host), y = make<int>(n, sycl::usm::alloc::host);
  auto copies = communicator::dup(mine);
  std::vector<executable> steps(mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    int *from = x[i].get(), *to = y[i].get();
    steps[i] = copies[i].record(copies[i].queue(), [from, to, c = copies[i]]() mutable {
      const auto reduced = c.allreduce(std::as_const(from), to, n, op::max);
      c.broadcast(from, n, 0, {reduced});
    });
  }
  for (int round = 0; round < 3; ++round) {
    const auto of = [&](int r, std::size_t k) { return 100 * r + round + static_cast<int>(k); };
    for (std::size_t i = 0; i < mine.size(); ++i)
      x[i].fill([&](std::size_t k) { return of(rank(i), k); });
    start_all(how, copies, [&](communicator&, std::size_t i) { return steps[i].replay(); });
    expect(y, [&](int, std::size_t k) { return of(size - 1, k); }, "recorded allreduce");
    expect(x, [&](int, std::size_t k) { return of(0, k); }, "recorded broadcast");
  }
}

// A plan of each part: its first rank sends to all others of it.
TEST_P(several, compile_for_parts) {
  if (size < 4) GTEST_SKIP() << "some part has one rank";
  if (on_gpus()) GTEST_SKIP() << needs_host;
  constexpr std::size_t n = 64;
  auto parts = parts_of(mine, 2);
  auto plans = each_rank(parts, [&](communicator& c) {
    composition made{c.size()};
    std::vector<int> others;
    for (int r = 1; r < c.size(); ++r) others.push_back(r);
    made.multicast(made.send(0, n), made.recv(0, n), 0, others);
    return c.compile<int>(made);
  });
  auto x = make<int>(n), y = make<int>(n);
  for (int round = 0; round < 2; ++round) {
    for (auto& m : y) m.fill([&](std::size_t) { return -round; });
    start_all(how, parts, [&](communicator&, std::size_t i) {
      return plans[i].start(std::as_const(x[i]).get(), y[i].get());
    });
    expect(
        y, [&](int r, std::size_t k) { return r < 2 ? -round : value(r % 2, k); },
        "plan of a part");
  }
}

// Where the job's rule names one: the other tests are by that one then.
TEST_P(several, go_by_the_rule) {
  const char* const rules = std::getenv("SUCL_RULES");
  if (!rules) GTEST_SKIP() << "no rule";
  for (const auto& c : mine)
    EXPECT_NE(std::string(rules).find(c.selected_backend(kind::allreduce, 4096)), std::string::npos)
        << c.explain(kind::allreduce, 4096);
}

// One rank calls something else, whether arguments are compared before or while ranks wait.
TEST_P(several, find_calls_that_differ) {
  if (on_gpus()) GTEST_SKIP() << needs_host;
  for (const int odd : {0, size - 1}) {
    auto copies = communicator::dup(mine);
    auto x = make<int>(10), y = make<int>(10);
    const auto errors = each_rank(copies, [&](communicator& c, std::size_t i) -> std::string {
      const std::size_t n = c.rank() == odd ? 9 : 10;
      try {
        if (how == form::threads)
          c.blocking().allreduce(std::as_const(x[i]).get(), y[i].get(), n, op::sum);
        else
          c.allreduce(std::as_const(x[i]).get(), y[i].get(), n, op::sum).wait();
        c.wait();
      } catch (const error& e) {
        return e.code() == errc::mismatch ? e.what() : std::string("no mismatch: ") + e.what();
      }
      return "no error";
    });
    for (const auto& text : errors) EXPECT_NE(text.find("allreduce"), text.npos) << text;
    for (const auto& text : errors) EXPECT_EQ(text.find("no mismatch"), text.npos) << text;
  }
}

}  // namespace sucl::testing
