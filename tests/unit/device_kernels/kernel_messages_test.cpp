// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sends, receives and groups of them by kernels whose work items are threads: drawn at random,
// against what was sent.
#include "unit/device_kernels/thread_device.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <future>
#include <random>

namespace {

using namespace sucl;
using namespace sucl::testing;

core::kernel_settings with_messages() {
  auto s = small_buffers();
  s.messages = true;
  s.groups = 3;
  s.message_ll_bytes = 64;
  s.message_staging = 3 * kernels::message_layout::slots * 256;
  return s;
}

struct sample_message {
  int from, to, tag;
  std::uint64_t bytes, key, misalignment;
  std::byte at(std::uint64_t i) const {
    return static_cast<std::byte>((key * 131 + i * 7 + (i >> 8)) & 0xff);
  }
};

// Lengths around those at which messages are cut otherwise, and beyond all staging memory.
std::uint64_t draw_length(std::mt19937_64& random) {
  constexpr std::uint64_t around[] = {0, 1, 16, 64, 192, 193, 256, 768, 3072, 12000};
  const std::uint64_t n = around[random() % std::size(around)];
  return random() % 2 ? n : n + random() % 40;
}

// What all ranks exchange in one operation each; the same on every rank.
std::vector<sample_message> draw_round(std::mt19937_64& random, int ranks, std::size_t most) {
  std::vector<sample_message> all(1 + random() % most);
  for (sample_message& l : all) {
    l.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    l.to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    l.tag = static_cast<int>(random() % 3);
    l.bytes = draw_length(random);
    l.key = random();
    l.misalignment = random() % 3 == 0 ? random() % 16 : 0;
  }
  return all;
}

constexpr std::uint64_t margin = 32;

// One rank's part of a round, as one operation.
class round_of_messages {
 public:
  round_of_messages(const std::vector<sample_message>& all, int rank) {
    m_pages.reserve(2 * all.size());
    for (const sample_message& l : all) {
      if (l.from == rank) add(l, true);
      if (l.to == rank) add(l, false);
    }
  }
  bool empty() const { return m_parts.empty(); }

  // A group, a lone message, or a sendrecv where two parts make one.
  sucl_operation whole() {
    if (m_parts.size() == 1) return m_parts.front();
    if (m_parts.size() == 2 && m_parts[0].kind != m_parts[1].kind &&
        m_parts[0].tag == m_parts[1].tag) {
      const bool first_sends = m_parts[0].kind == SUCL_KIND_SEND;
      auto o = m_parts[first_sends ? 0 : 1];
      const auto& other = m_parts[first_sends ? 1 : 0];
      o.kind = SUCL_KIND_SENDRECV;
      o.source = other.source;
      o.recv = other.recv;
      o.recv_count = other.count;
      return o;
    }
    auto o = operation(kind::group, type::bytes, 0);
    o.parts = m_parts.data();
    o.part_count = m_parts.size();
    return o;
  }

  void check() const {
    for (const page& p : m_pages) {
      if (p.sends) continue;
      const std::byte* data = p.memory.data() + margin + p.what.misalignment;
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < p.what.bytes; ++i) wrong += data[i] != p.what.at(i);
      for (std::uint64_t i = 0; i < 8; ++i)
        wrong += data[p.what.bytes + i] != untouched || *(data - 1 - i) != untouched;
      EXPECT_EQ(wrong, 0u) << "of " << p.what.bytes << " bytes from rank " << p.what.from << " to "
                           << p.what.to;
    }
  }

 private:
  static constexpr std::byte untouched{0xaa};
  struct page {
    sample_message what;
    bool sends;
    bytes memory;
  };

  void add(const sample_message& l, bool sends) {
    page p{l, sends, bytes(l.bytes + 2 * margin + l.misalignment, untouched)};
    std::byte* data = p.memory.data() + margin + l.misalignment;
    auto o = operation(sends ? kind::send : kind::recv, type::bytes, l.bytes);
    o.element_size = 1;
    o.tag = l.tag;
    o.root = l.to;
    o.source = l.from;
    for (std::uint64_t i = 0; sends && i < l.bytes; ++i) data[i] = l.at(i);
    if (sends)
      o.send = data;
    else
      o.recv = data;
    m_parts.push_back(o);
    m_pages.push_back(std::move(p));
  }

  std::vector<sucl_operation> m_parts;
  std::vector<page> m_pages;
};

// Rounds by round, without waiting for one before the next; and collectives in between.
void exchange(const kernel_rank& j, std::uint64_t seed, int rounds, std::size_t most) {
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<round_of_messages>> all;
  std::vector<flight> flights;
  std::vector<std::vector<float>> sums;
  sums.reserve(static_cast<std::size_t>(rounds));
  for (int i = 0; i < rounds; ++i) {
    const auto messages = draw_round(random, j.info.size, most);
    auto mine = std::make_unique<round_of_messages>(messages, j.info.rank);
    if (!mine->empty()) flights.push_back(post(j.kernels, mine->whole()));
    all.push_back(std::move(mine));
    if (i % 5 != 0) continue;
    sums.emplace_back(1 + random() % 700, 1.0f);
    auto o = operation(kind::allreduce, type::fp32, sums.back().size(), op::sum);
    o.flags = SUCL_FLAG_IN_PLACE;
    o.recv = sums.back().data();
    flights.push_back(post(j.kernels, o));
  }
  for (flight& f : flights)
    EXPECT_EQ((f = wait(j.kernels, f)).status, SUCL_SUCCESS) << f.error.message;
  for (const auto& r : all) r->check();
  for (const auto& v : sums)
    EXPECT_EQ(v, std::vector<float>(v.size(), static_cast<float>(j.info.size)));
}

class kernel_messages : public ::testing::TestWithParam<std::tuple<int, peer_access>> {};
INSTANTIATE_TEST_SUITE_P(
    ranks, kernel_messages,
    ::testing::Values(std::tuple{1, peer_access::none}, std::tuple{2, peer_access::all},
                      std::tuple{2, peer_access::none}, std::tuple{3, peer_access::some},
                      std::tuple{4, peer_access::all}, std::tuple{7, peer_access::all}));

TEST_P(kernel_messages, arrive) {
  const auto [size, how] = GetParam();
  for_devices(
      size, how,
      [&](const kernel_rank& j) {
        exchange(j, 7, 40, 1 + 2u * static_cast<unsigned>(j.info.size));
      },
      with_messages());
}

// Devices that run fewer work groups at once than a kernel has, and not all the same number.
TEST_P(kernel_messages, arrive_where_few_groups_run) {
  const auto [size, how] = GetParam();
  for_devices(
      size, how,
      [&](const kernel_rank& j) {
        j.device.resident = 1 + j.info.rank % 2;
        exchange(j, 11, 15, 12);
      },
      with_messages());
}

sucl_operation send_of(const bytes& v, int to, int tag) {
  auto o = operation(kind::send, type::uint8, v.size());
  o.send = v.data();
  o.root = to;
  o.tag = tag;
  return o;
}

sucl_operation recv_of(bytes& v, int from, int tag) {
  auto o = operation(kind::recv, type::uint8, v.size());
  o.recv = v.data();
  o.source = from;
  o.tag = tag;
  return o;
}

// What fits the peer buffer is sent before it is received, to the rank itself too.
TEST(kernel_messages_short, do_not_wait_for_their_receives) {
  for_devices(
      2, peer_access::all,
      [](const kernel_rank& j) {
        for (const int peer : {1 - j.info.rank, j.info.rank})
          for (int round = 0; round < 20; ++round) {
            const bytes out(round % 2 ? 190 : 700, static_cast<std::byte>(round));
            bytes in(out.size());
            EXPECT_EQ(run(j.kernels, send_of(out, peer, round)).status, SUCL_SUCCESS);
            EXPECT_EQ(run(j.kernels, recv_of(in, peer, round)).status, SUCL_SUCCESS);
            EXPECT_EQ(in, out);
          }
      },
      with_messages());
}

// Both see the other's header at the same time, now and then, and neither has sent its data then.
TEST(kernel_messages_in_lines, do_not_wait_for_each_other_in_groups) {
  for_devices(
      2, peer_access::all,
      [](const kernel_rank& j) {
        const int peer = 1 - j.info.rank;
        const bytes out(40, static_cast<std::byte>(j.info.rank + 1));
        bytes in(out.size());
        const sucl_operation parts[] = {recv_of(in, peer, 1), send_of(out, peer, 1)};
        auto o = operation(kind::group, type::bytes, 0);
        o.parts = parts;
        o.part_count = std::size(parts);
        for (int round = 0; round < 2000; ++round)
          ASSERT_EQ(run(j.kernels, o).status, SUCL_SUCCESS);
        EXPECT_EQ(in, bytes(40, static_cast<std::byte>(peer + 1)));
      },
      with_messages());
}

TEST(kernel_messages_in_place, replace_what_they_send) {
  for_devices(
      3, peer_access::all,
      [](const kernel_rank& j) {
        for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{20000}}) {
          bytes v(n, static_cast<std::byte>(j.info.rank));
          auto o = operation(kind::sendrecv, type::uint8, n);
          o.flags = SUCL_FLAG_IN_PLACE;
          o.recv = v.data();
          o.recv_count = n;
          o.root = (j.info.rank + 1) % 3;
          o.source = (j.info.rank + 2) % 3;
          EXPECT_EQ(run(j.kernels, o).status, SUCL_SUCCESS);
          EXPECT_EQ(v, bytes(n, static_cast<std::byte>(o.source)));
        }
      },
      with_messages());
}

// The copy of what is replaced is behind a message that waits for the peer.
TEST(kernel_messages_in_place, are_not_waited_for_in_the_call) {
  std::promise<void> returned;
  const auto has_returned = returned.get_future().share();
  for_devices(
      2, peer_access::all,
      [&](const kernel_rank& j) {
        const int me = j.info.rank, peer = 1 - me;
        const auto of = [](int rank) { return bytes(5000, static_cast<std::byte>(rank + 1)); };
        bytes exchanged = of(me), sent = of(me), received(5000);
        auto o = operation(kind::sendrecv, type::uint8, exchanged.size());
        o.flags = SUCL_FLAG_IN_PLACE;
        o.recv = exchanged.data();
        o.recv_count = exchanged.size();
        o.root = o.source = peer;
        if (me == 1) has_returned.wait();
        flight first = post(j.kernels, me == 0 ? recv_of(received, 1, 1) : send_of(sent, 0, 1));
        flight second = post(j.kernels, o);
        if (me == 0) returned.set_value();
        EXPECT_EQ(wait(j.kernels, first).status, SUCL_SUCCESS);
        EXPECT_EQ(wait(j.kernels, second).status, SUCL_SUCCESS);
        EXPECT_EQ(exchanged, of(peer));
        EXPECT_EQ(received, me == 0 ? of(peer) : bytes(5000));
      },
      with_messages());
}

// Both ends get the error, also where the sender is in the middle of a message without a receive.
TEST(kernel_messages_mismatch, is_an_error_on_both_sides) {
  struct wrong {
    std::size_t sent, expected;
    int tag;
  };
  for (const wrong w : {wrong{40, 40, 2}, wrong{40, 41, 1}, wrong{100000, 100, 1},
                        wrong{100, 100000, 1}, wrong{100000, 100001, 1}, wrong{0, 1, 1}})
    for_devices(
        2, peer_access::all,
        [w](const kernel_rank& j) {
          const bytes out(w.sent);
          bytes in(w.expected, std::byte{7});
          if (j.info.rank == 0) {
            flight f = run(j.kernels, send_of(out, 1, 1));
            // A short one is over before it is looked at.
            for (int i = 0; i < 100 && f.status == SUCL_SUCCESS; ++i)
              f = run(j.kernels, send_of(out, 1, 1));
            EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH);
            EXPECT_NE(f.error.message.find("rank 1 waits for another message"), std::string::npos)
                << f.error.message;
          } else {
            const flight f = run(j.kernels, recv_of(in, 0, w.tag));
            EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH);
            const std::string text = "rank 0 has sent a message of " + std::to_string(w.sent) +
                                     " uint8 with tag 1 where this rank waits for one of " +
                                     std::to_string(w.expected) + " uint8 with tag " +
                                     std::to_string(w.tag);
            EXPECT_NE(f.error.message.find(text), std::string::npos) << f.error.message;
            EXPECT_EQ(in, bytes(w.expected, std::byte{7}));
            EXPECT_EQ(post(j.kernels, recv_of(in, 0, 1)).status, SUCL_ERROR_MISMATCH);
          }
        },
        with_messages());
}

// As many bytes of another type; opaque elements are as any others of their size.
TEST(kernel_messages_mismatch, is_of_element_types_too) {
  for (const auto& [type, size, fits] :
       {std::tuple{type::int8, 1, false}, std::tuple{type::boolean, 1, false},
        std::tuple{type::int16, 2, false}, std::tuple{type::bytes, 2, false},
        std::tuple{type::bytes, 1, true}})
    for (const std::size_t n : {std::size_t{40}, std::size_t{100000}})
      for_devices(
          2, peer_access::all,
          [n, t = type, size = size, fits = fits](const kernel_rank& j) {
            const bytes out(n, std::byte{3});
            bytes in(n);
            auto receive = recv_of(in, 0, 1);
            receive.type = static_cast<sucl_type>(t);
            receive.element_size = static_cast<std::uint64_t>(size);
            receive.count = n / receive.element_size;
            flight f;
            if (j.info.rank == 1) f = run(j.kernels, receive);
            for (int i = 0; j.info.rank == 0 && i < (fits ? 1 : 100) && f.status == SUCL_SUCCESS;
                 ++i)
              f = run(j.kernels, send_of(out, 1, 1));
            EXPECT_EQ(f.status, fits ? SUCL_SUCCESS : SUCL_ERROR_MISMATCH) << f.error.message;
            EXPECT_EQ(in == out, j.info.rank == 1 && fits);
          },
          with_messages());
}

// A message that is never sent: the kernel ends when it is aborted.
TEST(kernel_messages_lost, end_when_they_are_given_up) {
  for_devices(
      2, peer_access::all,
      [](const kernel_rank& j) {
        if (j.info.rank == 1) return j.comm().memory().abandon();
        bytes v(5000);
        flight f = post(j.kernels, recv_of(v, 1, 0));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(sucl::testing::test(j.kernels, f));
        j.comm().abort();
        EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
      },
      with_messages());
}

// The lists of long groups are used again once their kernels have read them.
TEST(kernel_messages_lists, do_not_pile_up) {
  for_devices(
      1, peer_access::all,
      [](const kernel_rank& j) {
        const int before = j.device.host_allocations;
        const bytes out(40, std::byte{3});
        bytes in[2] = {bytes(40), bytes(40)};
        const sucl_operation parts[] = {send_of(out, 0, 1), send_of(out, 0, 2),
                                        recv_of(in[0], 0, 1), recv_of(in[1], 0, 2)};
        auto o = operation(kind::group, type::bytes, 0);
        o.parts = parts;
        o.part_count = std::size(parts);
        for (int batch = 0; batch < 8; ++batch) {
          std::vector<flight> flights;
          for (int i = 0; i < 20; ++i) flights.push_back(post(j.kernels, o));
          for (const flight& f : flights) EXPECT_EQ(wait(j.kernels, f).status, SUCL_SUCCESS);
        }
        EXPECT_EQ(in[1], out);
        EXPECT_EQ(j.device.host_allocations, before);
      },
      with_messages());
}

TEST(kernel_messages_cut, is_for_all_channels) {
  const kernels::message_layout s{4, 0, 64, 1024};
  const auto cut = [&](std::uint64_t n) { return kernels::cut_of(s, n); };
  EXPECT_EQ(cut(0).pieces, 1u);
  EXPECT_EQ(cut(65).pieces, 2u);
  EXPECT_TRUE(cut(256).ll);
  EXPECT_FALSE(cut(257).ll);
  EXPECT_EQ(cut(257).piece, 128u);
  EXPECT_EQ(cut(4096).piece, 1024u);
  EXPECT_EQ(cut(4097).pieces, 5u);
  EXPECT_EQ(s.bytes(), s.stage(3, 3) + s.slot);
}

TEST(kernel_messages_setting, has_them_executed) {
  for_devices(1, peer_access::all, [](const kernel_rank& j) {
    sucl_query q{};
    q.struct_size = sizeof q;
    q.kind = SUCL_KIND_SEND;
    q.memory = SUCL_MEMORY_DEVICE;
    sucl_capability a{};
    EXPECT_EQ(j.kernels.table->query(j.kernels.state, &q, &a), SUCL_SUCCESS);
    EXPECT_FALSE(a.supported);
  });
  EXPECT_TRUE(core::kernel_settings::read({{"messages", "true"}}, 2).messages);
  EXPECT_FALSE(core::kernel_settings(2).messages);
  EXPECT_THROW(core::kernel_settings::read({{"messages", "maybe"}}, 2), error);
  EXPECT_THROW(core::kernel_settings::read({{"message_staging", "64Ki"}}, 2), error);
}

}  // namespace
