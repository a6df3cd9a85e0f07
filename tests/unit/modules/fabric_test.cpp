// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the backend over libfabric is made of, as far as it needs no libfabric.
#include "net/contexts.hpp"
#include "net/kept_signals.hpp"
#include "net/problem.hpp"
#include "net/provider.hpp"
#include "net/settings.hpp"
#include "ops.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <barrier>
#include <thread>

using sucl::fabric::contexts;
using sucl::fabric::problem;

namespace {

// What ranks, as threads, agree on.
std::vector<std::optional<std::uint32_t>> agree(const std::vector<contexts*>& ranks) {
  std::vector<std::uint64_t> board(ranks.size());
  std::barrier meeting(static_cast<std::ptrdiff_t>(ranks.size()));
  std::vector<std::optional<std::uint32_t>> found(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] {
      found[r] = ranks[r]->agree([&](std::uint64_t mine) {
        board[r] = mine;
        meeting.arrive_and_wait();
        auto all = board;
        meeting.arrive_and_wait();
        return all;
      });
    });
  for (auto& t : threads) t.join();
  return found;
}

TEST(fabric_contexts, are_free_on_every_rank_and_come_again_late) {
  contexts a, b, c;
  const auto first = agree({&a, &b});
  ASSERT_TRUE(first[0]);
  EXPECT_EQ(first[0], first[1]);
  const auto second = agree({&a, &b, &c});
  ASSERT_TRUE(second[0]);
  EXPECT_EQ(second[0], second[2]);
  EXPECT_NE(second[0], first[0]);
  a.give_back(*first[0]);
  b.give_back(*first[0]);
  EXPECT_NE(agree({&a, &b})[0], first[0]);
  // What one rank has taken for itself is free on another, which has to look further.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(agree({&c})[0]);
  const auto last = agree({&a, &c});
  EXPECT_EQ(last[0], last[1]);
  EXPECT_GT(*last[0], *second[0] + 4);
}

TEST(fabric_contexts, that_are_all_taken_are_none_on_every_rank) {
  contexts full, other;
  for (std::uint64_t i = 0; i < contexts::count; ++i)
    ASSERT_TRUE(full.agree([](std::uint64_t mine) { return std::vector{mine}; }));
  for (const auto& found : agree({&other, &full})) EXPECT_FALSE(found);
  full.give_back(7);
  const auto found = agree({&other, &full});
  EXPECT_EQ(found[0], 7u);
  EXPECT_EQ(found[1], 7u);
}

TEST(fabric_signals, do_what_they_did) {
  const auto handler_of = [](int s) {
    struct sigaction now{};
    sigaction(s, nullptr, &now);
    return now.sa_handler;
  };
  const auto mine = [](int) {};
  const auto other = [](int) {};
  const auto before = signal(SIGUSR1, mine);
  {
    const sucl::fabric::kept_signals kept;
    signal(SIGUSR1, other);
    signal(SIGUSR2, other);
  }
  EXPECT_EQ(handler_of(SIGUSR1), static_cast<sighandler_t>(mine));
  EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
  signal(SIGUSR1, before);
}

TEST(fabric_provider, prefers_networks_of_supercomputers_and_then_tcp_itself) {
  using sucl::fabric::provider_rank;
  for (const char* name : {"cxi", "opx", "psm3", "efa", "verbs;ofi_rxm"})
    EXPECT_LT(provider_rank(name), provider_rank("tcp")) << name;
  EXPECT_LT(provider_rank("tcp"), provider_rank("net;ofi_rxm"));
  EXPECT_LT(provider_rank("net;ofi_rxm"), provider_rank("tcp;ofi_rxm"));
  for (const char* name : {"shm", "sm2", "udp;ofi_rxd", "sockets", "net"})
    EXPECT_FALSE(provider_rank(name)) << name;
}

// What libfabric says of an interface with this address.
bool is_in(const std::string& subnet, const char* v4, const char* v6 = nullptr) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  fi_info info{};
  info.addr_format = v6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  info.src_addr = v6 ? static_cast<void*>(&six) : &four;
  info.src_addrlen = v6 ? sizeof six : sizeof four;
  if (v6)
    inet_pton(AF_INET6, v6, &six.sin6_addr);
  else
    inet_pton(AF_INET, v4, &four.sin_addr);
  return sucl::fabric::in_subnet(info, subnet);
}

TEST(fabric_provider, knows_subnets) {
  EXPECT_TRUE(is_in("10.1.0.0/16", "10.1.200.3"));
  EXPECT_FALSE(is_in("10.1.0.0/16", "10.2.0.1"));
  EXPECT_TRUE(is_in("10.1.128.0/17", "10.1.128.1"));
  EXPECT_FALSE(is_in("10.1.128.0/17", "10.1.127.1"));
  EXPECT_TRUE(is_in("0.0.0.0/0", "192.0.2.1"));
  EXPECT_TRUE(is_in("fd00:1::/64", nullptr, "fd00:1::5"));
  EXPECT_FALSE(is_in("fd00:1::/64", nullptr, "fd00:2::5"));
  EXPECT_FALSE(is_in("0.0.0.0/0", nullptr, "::1"));
  for (const char* wrong : {"10.1.0.0/33", "10.1.0.0/", "10.1.0.0", "10.1/16", "/8", "10.1.0.0/8x"})
    EXPECT_THROW(is_in(wrong, "10.1.0.1"), problem) << wrong;
}

TEST(fabric_settings, of_other_names_are_refused) {
  const sucl_setting good[] = {{"provider", "tcp"}, {"interface", "lo"}};
  EXPECT_EQ(sucl::fabric::read_settings(good, 2).provider, "tcp");
  const sucl_setting bad{"providr", "tcp"};
  EXPECT_THROW(sucl::fabric::read_settings(&bad, 1), problem);
}

TEST(fabric_ops, are_those_that_may_be_rounded_at_each_step) {
  using sucl::fabric::fold_of;
  EXPECT_EQ(fold_of(SUCL_OP_AVG, SUCL_TYPE_FP64), nullptr);
  EXPECT_EQ(fold_of(SUCL_OP_SUM, SUCL_TYPE_BF16), nullptr);
  EXPECT_EQ(fold_of(SUCL_OP_SUM, SUCL_TYPE_BYTES), nullptr);
  EXPECT_NE(fold_of(SUCL_OP_MAX, SUCL_TYPE_BF16), nullptr);
  double into[] = {1, 2, 3};
  const double from[] = {10, 20, 30};
  fold_of(SUCL_OP_SUM, SUCL_TYPE_FP64)(from, into, 3);
  EXPECT_EQ(into[2], 33);
}

}  // namespace
