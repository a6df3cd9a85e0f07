// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The device functions of collectives with threads as work items, launched by the backend kernels:
// every operation that it supports, drawn at random, against the backend mock. What devices do is
// another matter: tests/device.
#include "kernels/collective/fold.hpp"
#include "unit/device_kernels/thread_device.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

namespace {

using namespace sucl;
using namespace sucl::testing;
using core::kernel_comm;

void compare(const kernel_rank& j, std::uint64_t seed, std::byte* mapped,
             std::uint64_t mapped_bytes) {
  const int rank = j.info.rank, size = j.info.size;
  const draw d = make_draw(seed, size, 3000);
  const bool in_place = (seed * 7 + static_cast<unsigned>(rank)) % 3 == 0;
  memory mine, model;
  auto o = prepare(d, rank, size, in_place, mine);
  const auto same_operation = prepare(d, rank, size, in_place, model);
  // The same in mapped memory.
  const bool moves = mapped && mine.send.size() + mine.recv.size() + 256 < mapped_bytes;
  std::byte* send = mapped;
  std::byte* recv = moves ? mapped + (mine.send.size() + 127) / 128 * 128 : nullptr;
  if (moves) {
    std::copy(mine.send.begin(), mine.send.end(), send);
    std::copy(mine.recv.begin(), mine.recv.end(), recv);
    o.send = o.send ? send + d.misalignment : nullptr;
    o.recv = recv + d.misalignment;
  }
  const flight done = run(j.kernels, o);
  const flight reference = run(j.mock, same_operation);
  if (moves) {
    std::copy_n(send, mine.send.size(), mine.send.begin());
    std::copy_n(recv, mine.recv.size(), mine.recv.begin());
  }
  EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
  EXPECT_EQ(reference.status, SUCL_SUCCESS) << reference.error.message;
  EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, rank, size, in_place);
  EXPECT_EQ(mine.send, model.send) << describe(d, rank, size, in_place);
}

class kernels_with : public ::testing::TestWithParam<std::tuple<int, peer_access>> {};
INSTANTIATE_TEST_SUITE_P(
    ranks, kernels_with,
    ::testing::Values(std::tuple{1, peer_access::none}, std::tuple{2, peer_access::all},
                      std::tuple{2, peer_access::none}, std::tuple{3, peer_access::all},
                      std::tuple{3, peer_access::some}, std::tuple{4, peer_access::all}));

// Wherever the memory ends, on one rank or on all.
TEST(kernels_memory, a_rank_without_memory_is_told_to_all) {
  for (int first = 0; first < 2; ++first)
    for (int left = 0; left < 4; ++left)
      for_providers(2, [&](const provider_rank& j) {
        thread_device device(true);
        if (j.rank >= first) device.allocations_left = left;
        try {
          kernel_comm made(j.memory_provider, j.oob, device, j.rank, j.size, small_buffers());
          ADD_FAILURE() << "no error with " << left;
        } catch (const error& e) {
          EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
        }
      });
}

TEST(kernels_memory, further_communicators_of_a_device_take_less) {
  constexpr std::uint64_t mebi = 1 << 20;
  for (const int size : {2, 3})
    for_providers(size, [&](const provider_rank& j) {
      thread_device device(true);
      device.who[0] = static_cast<unsigned char>(j.rank + 1);
      const core::kernel_settings usual(j.size);
      const auto made = [&](const core::kernel_settings& s) {
        const std::uint64_t before = device.allocated;
        auto comm =
            std::make_unique<kernel_comm>(j.memory_provider, j.oob, device, j.rank, j.size, s);
        return std::pair{std::move(comm), device.allocated - before};
      };
      auto first = made(usual);
      const auto second = made(usual), third = made(usual);
      EXPECT_GT(first.second, 64 * mebi);
      EXPECT_LT(second.second, 64 * mebi);
      EXPECT_EQ(second.second, third.second);
      // What the program wants it gets.
      auto wanted = core::kernel_settings::read({{"staging", "32Mi"}}, j.size);
      EXPECT_GT(made(wanted).second, 64 * mebi);
      first.first.reset();
      EXPECT_EQ(made(usual).second, first.second);
    });
}

// One thread may end the ranks of a process, so none waits for the next, or keeps what it has.
TEST(kernels_memory, ranks_of_a_process_end_one_after_the_other) {
  constexpr int size = 3;
  std::array<std::unique_ptr<kernel_comm>, size> all;
  for_providers(size, [&](const provider_rank& j) {
    thread_device device(true);
    const auto meet = [&] {
      sucl_oob meeting = core::oob_split(j.oob, j.rank);
      core::oob_free(meeting);
    };
    all[static_cast<std::size_t>(j.rank)] = std::make_unique<kernel_comm>(
        j.memory_provider, j.oob, device, j.rank, j.size, small_buffers());
    EXPECT_GT(device.in_use, 0u);
    meet();
    if (j.rank == 0)
      for (auto& c : all) c.reset();
    meet();
    EXPECT_EQ(device.in_use, 0u);
  });
}

TEST_P(kernels_with, agree_with_the_definitions) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const kernel_rank& j) {
    EXPECT_EQ(j.comm().memory().all_on_devices(), how == peer_access::all);
    for (std::uint64_t seed = 1; seed <= 80; ++seed)
      compare(j, seed + 1000u * static_cast<unsigned>(j.info.size), nullptr, 0);
    EXPECT_GT(j.device.used[0], 0);
    EXPECT_GT(j.device.used[1], 0);
    EXPECT_EQ(j.device.used[4] > 0, how == peer_access::all);
    if (j.info.size > 2) {
      EXPECT_GT(j.device.used[2], 0);
      // Slices go by LL128 where it is, and by LL elsewhere.
      EXPECT_GT(j.device.used[how == peer_access::all ? 5 : 3], 0);
    }
  });
}

// Some ranks use memory that all map and some do not: whether it is used directly they find out.
TEST_P(kernels_with, agree_in_mapped_memory) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const kernel_rank& j) {
    constexpr std::uint64_t bytes = 1 << 20;
    auto* memory = static_cast<std::byte*>(j.comm().memory().add(bytes, 0));
    EXPECT_EQ(j.comm().memory().used_by(1), how != peer_access::some);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const bool on_all = seed % 4 != 0 || j.info.rank % 2 == 0;
      compare(j, seed + 5000u * static_cast<unsigned>(j.info.size), on_all ? memory : nullptr,
              bytes);
    }
    EXPECT_TRUE(j.comm().memory().remove(memory));
    EXPECT_FALSE(j.comm().memory().remove(memory));
  });
}

// Memory of the program's own, of another size on each rank, at an odd offset.
TEST_P(kernels_with, agree_in_registered_memory) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const kernel_rank& j) {
    auto& memory = j.comm().memory();
    constexpr std::uint64_t most = 1 << 20, page = 4096;
    const std::uint64_t bytes = most + page * static_cast<unsigned>(j.info.rank);
    const auto own = j.device.allocate(bytes + page);
    auto* start = static_cast<std::byte*>(own.get()) + 16;
    EXPECT_EQ(memory.attach(start, bytes, 0), how != peer_access::some);
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      compare(j, seed + 7000u * static_cast<unsigned>(size), start, most);
    memory.remove(start);
    // One rank has none, and later pieces are the same everywhere all the same.
    const bool last = j.info.rank == size - 1;
    EXPECT_FALSE(memory.attach(last ? nullptr : start, last ? 0 : bytes, 0));
    auto* lent = static_cast<std::byte*>(memory.add(most, 0));
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      compare(j, seed + 8000u * static_cast<unsigned>(size), lent, most);
    EXPECT_TRUE(memory.remove(lent));
  });
}

// A tuning table has operations use other protocols, where they can, and they stay right.
TEST_P(kernels_with, go_the_ways_of_a_table) {
  const auto [size, how] = GetParam();
  for (std::size_t protocol = 0; protocol < std::size(kernels::protocol_names); ++protocol)
    for_devices(size, how, [&](const kernel_rank& j) {
      tune::table table;
      for (int k = 0; k < SUCL_KIND_COUNT; ++k) {
        tune::table_row r;
        r.what = static_cast<kind>(k);
        r.memory = tune::memory_kind::device;
        r.backend = "kernels";
        r.protocol = kernels::protocol_names[protocol];
        r.origin = "file t.toml:1:1";
        table.rows.push_back(r);
      }
      j.device.on_host = false;
      j.comm().retune(&table);
      auto o = operation(kind::allreduce, type::fp32, 16, op::sum);
      const bool possible = protocol < 2 || (protocol == 2 && size > 1) ||
                            (protocol == 3 && size > 2) ||
                            (protocol == 4 && how == peer_access::all) ||
                            (protocol == 5 && size > 2 && how == peer_access::all);
      if (size > 1) {
        EXPECT_EQ(
            j.comm().describe(o).find(table.rows[0].protocol +
                                      ", tuning table (file t.toml:1:1)") != std::string::npos,
            possible)
            << j.comm().describe(o);
      }
      for (std::uint64_t seed = 1; seed <= 25; ++seed)
        compare(j, seed + 9000u * static_cast<unsigned>(size), nullptr, 0);
      if (size > 1 && possible) {
        EXPECT_GT(j.device.used[protocol], 0) << table.rows[0].protocol;
      }
      j.comm().retune(nullptr);
      EXPECT_EQ(j.comm().describe(o).find("tuning table"), std::string::npos);
    });
}

// Neither flags that no rank has written yet nor the flags of lines starting again may pass for
// data.
TEST(kernels, go_on_after_very_many_operations) {
  for (const std::uint64_t before : {(1ull << 31) - 20, (1ull << 32) - 20, (1ull << 40) - 20}) {
    auto settings = small_buffers();
    settings.operations = before;
    for_devices(
        3, peer_access::all,
        [&](const kernel_rank& j) {
          for (std::uint64_t seed = 1; seed <= 40; ++seed) compare(j, seed + 9000, nullptr, 0);
        },
        settings);
  }
}

// A root that runs ahead must not overwrite what slow ranks have yet to read.
TEST(kernels, a_fast_root_waits_for_slow_ranks) {
  for_devices(3, peer_access::all, [&](const kernel_rank& j) {
    constexpr std::size_t n = 300;
    std::vector<std::vector<int>> got(40, std::vector<int>(n));
    std::vector<flight> flights;
    for (int i = 0; i < 40; ++i) {
      auto& data = got[static_cast<std::size_t>(i)];
      if (j.info.rank == 0) std::fill(data.begin(), data.end(), i);
      auto o = operation(kind::broadcast, type::int32, i % 2 ? n : 20);
      o.send = o.recv = data.data();
      if (j.info.rank == 2 && i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      flights.push_back(post(j.kernels, o));
    }
    for (auto& f : flights) EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(got[static_cast<std::size_t>(i)].front(), i);
      EXPECT_EQ(got[static_cast<std::size_t>(i)][i % 2 ? n - 1 : 19], i);
    }
  });
}

// Blocks of one size at equal distances need no lists. Ranks whose blocks lie otherwise have them,
// and write and read the same; none runs ahead of one that is slow.
TEST(kernels, gather_equal_blocks_wherever_each_rank_has_them) {
  for (const int size : {2, 3, 4})
    for (const std::uint64_t n : {std::uint64_t{5}, std::uint64_t{300}, std::uint64_t{9000}})
      for_devices(size, peer_access::all, [&](const kernel_rank& j) {
        const auto ranks = static_cast<std::size_t>(size);
        const auto me = static_cast<std::size_t>(j.info.rank);
        const std::vector<std::uint64_t> counts(ranks, n);
        std::vector<std::uint64_t> displs;
        for (std::size_t r = 0; r < ranks; ++r)
          displs.push_back(me == 1 ? (ranks - 1 - r) * (n + 1) + r % 2 : 3 + r * (n + me));
        constexpr int rounds = 12;
        std::vector<std::vector<int>> sent(rounds), got(rounds);
        std::vector<flight> flights;
        for (int i = 0; i < rounds; ++i) {
          auto& from = sent[static_cast<std::size_t>(i)];
          auto& to = got[static_cast<std::size_t>(i)];
          from.assign(n, 100 * i + j.info.rank);
          to.assign(ranks * (n + ranks) + 3, -1);
          auto o = operation(kind::allgatherv, type::int32, n);
          o.recv_counts = counts.data();
          o.recv_displs = displs.data();
          o.send = from.data();
          o.recv = to.data();
          if (me + 1 == ranks && i % 4 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          flights.push_back(post(j.kernels, o));
        }
        for (auto& f : flights) EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
        for (int i = 0; i < rounds; ++i) {
          std::vector<int> wanted(ranks * (n + ranks) + 3, -1);
          for (std::size_t r = 0; r < ranks; ++r)
            std::fill_n(wanted.begin() + static_cast<long>(displs[r]), n,
                        100 * i + static_cast<int>(r));
          EXPECT_EQ(got[static_cast<std::size_t>(i)], wanted) << size << " ranks, " << n;
        }
      });
}

// What one rank sends another in a round of the test below: as much as any other pair, as much
// where rank 0 is an end and another amount elsewhere, or what that pair draws. Some need lists
// then and some do not, and the pairs of a rank go by protocols of their own.
std::uint64_t elements_of_pair(int round, int from, int to) {
  constexpr std::uint64_t amounts[] = {5, 0, 100, 300, 512, 700, 1000, 5000, 513, 1};
  const auto draw = [&](int n) {
    return amounts[static_cast<std::size_t>(n) % std::size(amounts)];
  };
  if (round % 3 == 0) return draw(round / 3);
  if (round % 3 == 1) return draw(round / 3 + (from == 0 || to == 0 ? 0 : 3));
  return draw(3 * from + 5 * to + round);
}

// Memory of a rank in such an exchange: blocks at equal distances, or backwards with gaps.
struct blocks_of_pairs {
  std::vector<std::uint64_t> counts, displs;
  std::vector<int> data;

  template <class Count>
  blocks_of_pairs(std::size_t ranks, bool backwards, const Count& count) {
    std::uint64_t most = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      counts.push_back(count(static_cast<int>(r)));
      most = std::max(most, counts.back());
    }
    for (std::size_t r = 0; r < ranks; ++r)
      displs.push_back(backwards ? (ranks - 1 - r) * (most + 1) + r % 2 : 2 + r * most);
    data.assign(ranks * (most + 1) + 2, -1);
  }
  template <class Value>
  void fill(const Value& value) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t i = 0; i < counts[r]; ++i)
        data[displs[r] + i] = value(static_cast<int>(r), static_cast<int>(i));
  }
};

// Only the ends of a pair know how much they exchange, and work out alone how.
TEST(kernels, exchange_by_the_size_of_each_pair) {
  constexpr int rounds = 30;
  const auto value = [](int round, int from, int to, int i) {
    return round * 1000000 + from * 100000 + to * 10000 + i;
  };
  for (const kind k : {kind::alltoallv, kind::gatherv, kind::scatterv})
    for (const int size : {2, 3, 4})
      for_devices(size, peer_access::all, [&](const kernel_rank& j) {
        const auto ranks = static_cast<std::size_t>(size);
        const int me = j.info.rank;
        std::vector<blocks_of_pairs> sent, got, wanted;
        std::vector<flight> flights;
        sent.reserve(rounds), got.reserve(rounds);
        for (int n = 0; n < rounds; ++n) {
          const int root = n % size;
          const auto exchanged = [&](int from, int to) {
            const bool none =
                (k == kind::gatherv && to != root) || (k == kind::scatterv && from != root);
            return none ? 0 : elements_of_pair(n, from, to);
          };
          const bool backwards = (n + me) % 4 == 3;
          auto& from = sent.emplace_back(ranks, backwards && k != kind::gatherv,
                                         [&](int r) { return exchanged(me, r); });
          from.fill([&](int r, int i) { return value(n, me, r, i); });
          auto& to = got.emplace_back(ranks, backwards && k != kind::scatterv,
                                      [&](int r) { return exchanged(r, me); });
          auto& right = wanted.emplace_back(to);
          right.fill([&](int r, int i) { return value(n, r, me, i); });
          auto o = operation(k, type::int32, 0);
          o.root = root;
          const auto at_root = static_cast<std::size_t>(root);
          o.send = from.data.data() + (k == kind::gatherv ? from.displs[at_root] : 0);
          o.recv = to.data.data() + (k == kind::scatterv ? to.displs[at_root] : 0);
          if (k == kind::gatherv) o.count = from.counts[at_root];
          if (k == kind::scatterv) o.count = to.counts[at_root];
          if (k != kind::gatherv) {
            o.send_counts = from.counts.data();
            o.send_displs = from.displs.data();
          }
          if (k != kind::scatterv) {
            o.recv_counts = to.counts.data();
            o.recv_displs = to.displs.data();
          }
          if (me + 1 == size && n % 8 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          flights.push_back(post(j.kernels, o));
        }
        for (auto& f : flights) EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
        for (std::size_t n = 0; n < rounds; ++n)
          EXPECT_EQ(got[n].data, wanted[n].data) << name(k) << ", " << size << " ranks, " << n;
        if (k != kind::alltoallv) return;
        // All in lines, all in other lines, and each its own way.
        for (const int how : {0, 1, 4}) EXPECT_GT(j.device.used[static_cast<std::size_t>(how)], 0);
      });
}

// A rank that does not come: the others' kernels end when they are aborted.
TEST(kernels, end_when_they_are_given_up) {
  for (const std::size_t n : {std::size_t{10}, std::size_t{5000}})
    for_devices(2, peer_access::all, [&](const kernel_rank& j) {
      if (j.info.rank == 1) return j.comm().memory().abandon();
      std::vector<float> data(n);
      auto o = operation(kind::allreduce, type::fp32, n, op::sum);
      o.flags = SUCL_FLAG_IN_PLACE;
      o.recv = data.data();
      flight f = post(j.kernels, o);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(sucl::testing::test(j.kernels, f));
      j.comm().abort();
      EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
    });
}

// Of two kernels in a row the first waits for the peer, which waits until the call has returned.
TEST(kernels, are_not_waited_for_in_the_call) {
  std::promise<void> returned;
  const auto has_returned = returned.get_future().share();
  for_devices(2, peer_access::all, [&](const kernel_rank& j) {
    const std::uint64_t counts[] = {700, 300};
    std::vector<std::int32_t> data(1000, j.info.rank + 1);
    auto o = operation(kind::reduce_scatter, type::int32, counts[j.info.rank], op::sum);
    o.flags = SUCL_FLAG_IN_PLACE;
    o.recv = data.data();
    o.recv_counts = counts;
    if (j.info.rank == 1) has_returned.wait();
    flight f = post(j.kernels, o);
    if (j.info.rank == 0) returned.set_value();
    EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
    const auto mine = data.begin() + static_cast<std::ptrdiff_t>(counts[j.info.rank]);
    EXPECT_TRUE(std::all_of(data.begin(), mine, [](std::int32_t v) { return v == 3; }));
  });
}

TEST(kernels, divide_sums_of_64_bits) {
  using kernels::integer128;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto sum = integer128(least) + integer128(least) + integer128(least);
  EXPECT_EQ(static_cast<std::int64_t>(sum / integer128(3)), least);
  EXPECT_EQ(static_cast<std::int64_t>((integer128(std::int64_t{-7}) + integer128(std::int64_t{2})) /
                                      integer128(2)),
            -2);
  EXPECT_EQ(static_cast<std::uint64_t>((integer128(most) + integer128(most)) / integer128(2)),
            most);
  EXPECT_EQ(
      static_cast<std::uint64_t>((integer128(most) + integer128(std::uint64_t{2})) / integer128(3)),
      (std::uint64_t{1} << 63) / 3 * 2 + 1);
}

TEST(kernels, settings_are_checked) {
  EXPECT_EQ(core::kernel_settings::read({{"ll_max_bytes", "8Ki"}, {"groups", "4"}}, 2).ll_max_bytes,
            8192u);
  EXPECT_EQ(
      core::kernel_settings::read({{"two_shot_min_bytes", "1048576Ti"}}, 2).two_shot_min_bytes,
      1ull << 60);
  EXPECT_FALSE(core::kernel_settings::wants_messages({{"messages", "perhaps"}}));
}

TEST(kernels, wrong_settings_are_named) {
  constexpr const char* all[][3] = {
      {"blocks", "4", "Its keys are"},
      {"groups", "257", "from 1 to"},
      {"groups", "many", "from 1 to"},
      {"messages", "perhaps", "true or false"},
      {"plans", "2", "true or false"},
      {"staging", "1Ki", "from 4Ki to 1Gi"},
      {"staging", "4Ki", "Write at least"},
      {"message_staging", "64Ki", "to 1Gi"},
      {"ll_max_bytes", "-8", "from 0 to 1Gi"},
      {"ll_two_shot_max_bytes", "8 bits", "from 0 to 1Gi"},
      {"ll128_min_bytes", "2097152Ti", "from 0 to"},
      {"ll128_max_bytes", "2Gi", "from 0 to 1Gi"},
      {"ll128_exchange_max_bytes", "x", "from 0 to"},
      {"ll128_two_shot_max_bytes", "1.5Ki", "from 0 to"},
      {"two_shot_min_bytes", "2097152Ti", "from 0 to"},
      {"direct_min_bytes", "all", "from 0 to"},
  };
  for (const auto& [key, value, allowed] : all) {
    try {
      (void)core::kernel_settings::read({{key, value}}, 2);
      ADD_FAILURE() << key << " = " << value << " was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::configuration);
      EXPECT_NE(e.message().find("backend kernels"), std::string::npos) << e.what();
      EXPECT_NE(e.message().find(key + std::string(" = ") + value), std::string::npos) << e.what();
      EXPECT_NE(e.hint().find(allowed), std::string::npos) << e.what();
    }
  }
}

// Kernels of ranks that mean different operations compute anything, or wait for ever: ranks find
// out beside them, all of them, and let them end.
TEST(kernels_mismatch, is_an_error_on_every_rank) {
  const auto sums = [](std::uint64_t n) {
    return operation(kind::allreduce, type::int32, n, op::sum);
  };
  auto to_other_root = operation(kind::broadcast, type::int32, 3000);
  to_other_root.root = 1;
  const std::pair<sucl_operation, sucl_operation> pairs[] = {
      {sums(10), sums(30)},
      {sums(10), sums(3000)},
      {sums(10), operation(kind::allgather, type::int32, 10)},
      {operation(kind::broadcast, type::int32, 3000), to_other_root},
      {sums(10), operation(kind::barrier, type::bytes, 0)}};
  for (const int size : {2, 3})
    for (const auto& [usual, other] : pairs)
      for_devices(size, peer_access::all, [&, usual = usual, other = other](const kernel_rank& j) {
        std::vector<std::int32_t> in(10000, 1), out(in.size());
        const auto call = [&](sucl_operation o, std::uint64_t sequence) {
          o.send = in.data();
          o.recv = out.data();
          o.sequence = sequence;
          return run(j.kernels, o);
        };
        for (std::uint64_t n = 1; n <= 20; ++n) EXPECT_EQ(call(sums(5), n).status, SUCL_SUCCESS);
        sucl_oob meeting = core::oob_split(*j.info.oob, j.info.rank);  // no rank goes on before
        core::oob_free(meeting);
        flight f = call(j.info.rank == 0 ? other : usual, 21);
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!j.comm().board().alarmed() && std::chrono::steady_clock::now() < end) {
          j.comm().compare_calls();
          sucl::testing::yield_or_sleep();
        }
        if (f.status == SUCL_SUCCESS) f = call(sums(5), 22);
        EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH) << f.error.message;
        EXPECT_NE(f.error.message.find("rank 0 called " +
                                       core::describe(core::signature_of(other, size))),
                  std::string::npos)
            << f.error.message;
        EXPECT_NE(f.error.message.find(core::describe(core::signature_of(usual, size))),
                  std::string::npos)
            << f.error.message;
        EXPECT_EQ(call(sums(5), 23).status, SUCL_ERROR_MISMATCH);
      });
}

}  // namespace
