// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sends and receives with threads as ranks: drawn at random, against what was sent.
#include "backends/shm_p2p/fifo.hpp"
#include "core/exchange/core_services.hpp"
#include "unit/allocation_counter.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

namespace {

using namespace sucl;
using namespace sucl::testing;

struct sample_message {
  int from, to, tag;
  std::uint64_t elements, element_size;
  std::uint64_t key;
  bool mapped[2];  // at its sender, at its receiver

  std::uint64_t bytes() const { return elements * element_size; }
  std::byte at(std::uint64_t i) const {
    return static_cast<std::byte>((key * 131 + i * 7 + (i >> 8)) & 0xff);
  }
};

// The same on every rank.
std::vector<sample_message> draw_messages(std::uint64_t seed, int ranks, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<sample_message> all;
  for (std::size_t i = 0; i < count; ++i) {
    sample_message l{};
    l.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    l.to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    l.tag = static_cast<int>(random() % 3);
    l.element_size = 1 + random() % 16;
    l.elements = random() % (std::uint64_t{1} << random() % 15);
    if (random() % 20 == 0) l.elements += 300000 / l.element_size;
    l.key = random();
    l.mapped[0] = random() % 4 == 0;
    l.mapped[1] = random() % 4 == 0;
    all.push_back(l);
  }
  return all;
}

// Memory of one sample_message at one end, with a margin that must not change.
struct page {
  std::vector<std::byte> own;
  std::byte* data;
};

constexpr std::uint64_t margin = 8;
constexpr std::uint64_t mapped_bytes = std::uint64_t{64} << 20;

class post_office {
 public:
  post_office(const backends& b, const sucl_comm_info& info, std::uint64_t seed)
      : m_channel(b.messages),
        m_ipc(b.ipc),
        m_rank(info.rank),
        m_random(seed * 977 + static_cast<unsigned>(info.rank)),
        m_region(core::make_mapped(b.ipc, info.rank, mapped_bytes)) {
    core::add_message_memory(m_channel, m_region, seed + 1);
  }
  ~post_office() {
    core::remove_message_memory(m_channel, m_region.base);
    m_ipc.table->memory_destroy(m_ipc.comm, &m_region);
  }
  post_office(const post_office&) = delete;
  post_office& operator=(const post_office&) = delete;

  // All of this rank's sample_messages: those of a direction, a peer and a tag in their order,
  // everything else in any.
  void handle(const std::vector<sample_message>& all) {
    std::vector<std::deque<const sample_message*>> pairs;
    for (const sample_message& l : all)
      for (const bool sending : {true, false}) {
        if ((sending ? l.from : l.to) != m_rank) continue;
        const auto key =
            static_cast<std::size_t>((sending ? l.to : l.from) * 6 + l.tag * 2 + (sending ? 1 : 0));
        if (pairs.size() <= key) pairs.resize(key + 1);
        pairs[key].push_back(&l);
      }
    for (;;) {
      std::vector<std::size_t> left;
      for (std::size_t i = 0; i < pairs.size(); ++i)
        if (!pairs[i].empty()) left.push_back(i);
      if (left.empty()) break;
      post_some(pairs, left);
      while (m_flights.size() > 40) settle();
    }
    while (!m_flights.empty()) settle();
  }

 private:
  struct under_way {
    std::vector<sucl_operation> parts;
    std::vector<std::pair<const sample_message*, page>> in, out;
    flight state;
  };

  page make_page(const sample_message& l, bool mapped) {
    page p;
    const std::uint64_t bytes = l.bytes() + 2 * margin;
    if (mapped && m_used + bytes < mapped_bytes) {
      p.data = static_cast<std::byte*>(m_region.base) + m_used + margin;
      m_used += bytes;
      std::fill_n(p.data - margin, bytes, std::byte{0xaa});
      return p;
    }
    p.own.assign(bytes, std::byte{0xaa});
    p.data = p.own.data() + margin;
    return p;
  }

  sucl_operation part_of(const sample_message& l, bool sending, under_way& u) {
    page p = make_page(l, l.mapped[sending ? 0 : 1]);
    auto o = operation(sending ? kind::send : kind::recv, type::bytes, l.elements);
    o.element_size = l.element_size;
    o.tag = l.tag;
    o.root = l.to;
    o.source = l.from;
    if (sending) {
      for (std::uint64_t i = 0; i < l.bytes(); ++i) p.data[i] = l.at(i);
      o.send = p.data;
    } else {
      o.recv = p.data;
    }
    (sending ? u.out : u.in).emplace_back(&l, std::move(p));
    return o;
  }

  void post_some(std::vector<std::deque<const sample_message*>>& pairs,
                 std::vector<std::size_t>& left) {
    auto u = std::make_unique<under_way>();
    std::shuffle(left.begin(), left.end(), m_random);
    const std::size_t most = m_random() % 3 == 0 ? 6 : 1;
    for (std::size_t i = 0; i < std::min(most, left.size()); ++i) {
      auto& fifo = pairs[left[i]];
      u->parts.push_back(part_of(*fifo.front(), left[i] % 2 == 1, *u));
      fifo.pop_front();
    }
    sucl_operation whole = u->parts.front();
    const bool pair = u->parts.size() == 1 ? false : join(*u, whole);
    if (u->parts.size() > 1 && !pair) {
      whole = operation(kind::group, type::bytes, 0);
      whole.parts = u->parts.data();
      whole.part_count = u->parts.size();
    }
    u->state = post(m_channel, whole);
    m_flights.push_back(std::move(u));
  }

  // Two parts of one tag in opposite directions make a sendrecv.
  static bool join(under_way& u, sucl_operation& whole) {
    if (u.parts.size() != 2) return false;
    auto *a = &u.parts[0], *b = &u.parts[1];
    if (a->kind == b->kind || a->tag != b->tag || a->element_size != b->element_size) return false;
    if (a->kind == SUCL_KIND_RECV) std::swap(a, b);
    whole = *a;
    whole.kind = SUCL_KIND_SENDRECV;
    whole.source = b->source;
    whole.recv = b->recv;
    whole.recv_count = b->count;
    return true;
  }

  void settle() {
    const std::size_t i = m_random() % m_flights.size();
    under_way& u = *m_flights[i];
    // Waiting for this one alone could be waiting for what no rank has posted yet.
    if (!sucl::testing::test(m_channel, u.state)) return sucl::testing::yield_or_sleep();
    EXPECT_EQ(u.state.status, SUCL_SUCCESS) << u.state.error.message;
    for (const auto& [l, p] : u.in) {
      std::uint64_t wrong = 0;
      for (std::uint64_t k = 0; k < l->bytes(); ++k) wrong += p.data[k] != l->at(k);
      EXPECT_EQ(wrong, 0u) << "of " << l->bytes() << " bytes from rank " << l->from << " to "
                           << l->to << ", tag " << l->tag;
      for (std::uint64_t k = 0; k < margin; ++k) {
        EXPECT_EQ(p.data[l->bytes() + k], std::byte{0xaa});
        EXPECT_EQ(*(p.data - 1 - k), std::byte{0xaa});
      }
    }
    m_flights.erase(m_flights.begin() + static_cast<std::ptrdiff_t>(i));
  }

  core::backend_comm m_channel, m_ipc;
  int m_rank;
  std::mt19937_64 m_random;
  sucl_region m_region;
  std::uint64_t m_used = 0;
  std::vector<std::unique_ptr<under_way>> m_flights;
};

const std::vector<std::vector<int>> node_lists{{0},          {0, 0},       {0, 0, 0},
                                               {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 2, 2, 2, 0}};

class messages : public ::testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(placements, messages, ::testing::ValuesIn(node_lists));

TEST_P(messages, arrive_in_any_mix) {
  for (const char* reads : {"true", "false"})
    for_nodes(GetParam(),
              [](const backends& b, const sucl_comm_info& info) {
                for (std::uint64_t seed = 1; seed <= 4; ++seed) {
                  post_office office(b, info, seed);
                  office.handle(draw_messages(seed + 100, info.size, 400));
                }
              },
              {{"reads", reads}});
}

constexpr std::size_t fifo_words = core::fifo_layout::short_bytes / sizeof(std::int32_t);

sucl_operation send_of(const std::vector<std::int32_t>& v, int to, int tag) {
  auto o = operation(kind::send, type::int32, v.size());
  o.send = v.data();
  o.root = to;
  o.tag = tag;
  return o;
}

sucl_operation recv_of(std::vector<std::int32_t>& v, int from, int tag) {
  auto o = operation(kind::recv, type::int32, v.size());
  o.recv = v.data();
  o.source = from;
  o.tag = tag;
  return o;
}

constexpr std::size_t short_one = 10, long_one = 100000;

// Who sends a long message, which waits for its receive, gets the receiver's error too.
void expect_sent(const flight& f, std::size_t n, sucl_status of_receiver, const std::string& text) {
  EXPECT_EQ(f.status, n == long_one ? of_receiver : SUCL_SUCCESS) << f.error.message;
  if (n == long_one && of_receiver != SUCL_SUCCESS) {
    EXPECT_NE(f.error.message.find(text), std::string::npos) << f.error.message;
  }
}

// A receive of another length is an error of that message, for short and for long ones, and of
// nothing else.
TEST(messages_length, must_be_the_same) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    for (const std::size_t n : {short_one, long_one})
      for (const std::size_t expected : {n - 1, n + 1}) {
        std::vector<std::int32_t> x(info.rank == 0 ? n : expected, 7), y(3, info.rank);
        const std::string text = "from rank 0 with tag 4 has " + std::to_string(n) +
                                 " int32, rank 1 receives " + std::to_string(expected) + " int32";
        if (info.rank == 0) {
          expect_sent(run(b.messages, send_of(x, 1, 4)), n, SUCL_ERROR_INVALID_COUNT, text);
          EXPECT_EQ(run(b.messages, send_of(y, 1, 4)).status, SUCL_SUCCESS);
        } else {
          const flight f = run(b.messages, recv_of(x, 0, 4));
          EXPECT_EQ(f.status, SUCL_ERROR_INVALID_COUNT);
          EXPECT_NE(f.error.message.find(text), std::string::npos) << f.error.message;
          EXPECT_EQ(run(b.messages, recv_of(y, 0, 4)).status, SUCL_SUCCESS);
          EXPECT_EQ(y[0], 0);
        }
      }
  });
}

// Nor is a message of as many bytes received as elements of another size.
TEST(messages_length, is_that_of_elements) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    for (const std::size_t n : {short_one, long_one}) {
      std::vector<std::int32_t> x(n, 7);
      const std::string text =
          std::to_string(n) + " int32, rank 1 receives " + std::to_string(n / 2) + " fp64";
      if (info.rank == 0) {
        expect_sent(run(b.messages, send_of(x, 1, 4)), n, SUCL_ERROR_MISMATCH, text);
        EXPECT_EQ(run(b.messages, send_of(x, 1, 4)).status, SUCL_SUCCESS);
      } else {
        auto wrong = recv_of(x, 0, 4);
        wrong.type = SUCL_TYPE_FP64;
        wrong.element_size = 8;
        wrong.count = n / 2;
        const flight f = run(b.messages, wrong);
        EXPECT_EQ(f.status, SUCL_ERROR_MISMATCH);
        EXPECT_NE(f.error.message.find(text), std::string::npos) << f.error.message;
        EXPECT_EQ(run(b.messages, recv_of(x, 0, 4)).status, SUCL_SUCCESS);
      }
    }
  });
}

// Types of one size differ; opaque elements are as any others of their size.
TEST(messages_type, must_be_the_same) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    for (const std::size_t n : {short_one, long_one})
      for (const auto& [type, status] :
           {std::pair{SUCL_TYPE_FP32, SUCL_ERROR_MISMATCH},
            std::pair{SUCL_TYPE_UINT32, SUCL_ERROR_MISMATCH},
            std::pair{SUCL_TYPE_BYTES, SUCL_SUCCESS}, std::pair{SUCL_TYPE_INT32, SUCL_SUCCESS}}) {
        std::vector<std::int32_t> x(n, 7);
        if (info.rank == 0) {
          expect_sent(run(b.messages, send_of(x, 1, 4)), n, status, " int32, rank 1 receives ");
        } else {
          std::vector<std::int32_t> y(n, -1);
          auto o = recv_of(y, 0, 4);
          o.type = type;
          const flight f = run(b.messages, o);
          EXPECT_EQ(f.status, status) << f.error.message;
          EXPECT_EQ(y.back(), status == SUCL_SUCCESS ? 7 : -1);
        }
      }
  });
}

// Both ranks send far more than the ring holds before either receives.
TEST(messages_short, do_not_wait_for_their_receives) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    constexpr int count = 3000;
    const int peer = 1 - info.rank;
    std::vector<std::int32_t> v(200);
    for (int i = 0; i < count; ++i) {
      v.assign(v.size(), i);
      EXPECT_EQ(run(b.messages, send_of(v, peer, i % 7)).status, SUCL_SUCCESS);
    }
    for (int tag = 6; tag >= 0; --tag)
      for (int i = tag; i < count; i += 7) {
        EXPECT_EQ(run(b.messages, recv_of(v, peer, tag)).status, SUCL_SUCCESS);
        EXPECT_EQ(v.front(), i);
        EXPECT_EQ(v.back(), i);
      }
  });
}

// More long messages than there is room for orders, received from the last one on.
TEST(messages_long, are_received_in_any_order) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    constexpr int count = 150;
    std::vector<std::vector<std::int32_t>> v(count);
    std::vector<flight> flights(count);
    for (int i = 0; i < count; ++i) {
      auto& mine = v[static_cast<std::size_t>(i)];
      mine.assign(5000 + static_cast<std::size_t>(i) * 40, info.rank == 0 ? i : -1);
      if (info.rank == 0)
        flights[static_cast<std::size_t>(i)] = post(b.messages, send_of(mine, 1, i));
    }
    for (int i = count - 1; i >= 0; --i) {
      auto& mine = v[static_cast<std::size_t>(i)];
      if (info.rank == 1) {
        EXPECT_EQ(run(b.messages, recv_of(mine, 0, i)).status, SUCL_SUCCESS);
        EXPECT_EQ(mine, std::vector<std::int32_t>(mine.size(), i));
      } else {
        EXPECT_EQ(wait(b.messages, flights[static_cast<std::size_t>(i)]).status, SUCL_SUCCESS);
      }
    }
  });
}

// Once every list has had its longest, nothing is allocated any more, whichever rank comes first.
TEST(messages_steady, allocate_nothing) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    const int peer = 1 - info.rank;
    std::vector<std::int32_t> out(40000, 1), in(out.size());
    const auto exchange = [&](std::uint64_t n) {
      auto o = operation(kind::sendrecv, type::int32, n);
      o.send = out.data();
      o.recv = in.data();
      o.recv_count = n;
      o.root = o.source = peer;
      EXPECT_EQ(run(b.messages, o).status, SUCL_SUCCESS);
    };
    const std::vector<std::int32_t> longest(fifo_words);
    std::vector<std::int32_t> page(longest.size());
    for (int tag = 0; tag < 8; ++tag)
      EXPECT_EQ(run(b.messages, send_of(longest, peer, tag)).status, SUCL_SUCCESS);
    for (int tag = 7; tag >= 0; --tag)
      EXPECT_EQ(run(b.messages, recv_of(page, peer, tag)).status, SUCL_SUCCESS);
    for (int i = 0; i < 20; ++i)
      for (const std::uint64_t n : {1u, 1000u, 40000u}) exchange(n);
    const long before = sucl::test::allocations();
    for (int i = 0; i < 200; ++i)
      for (const std::uint64_t n : {1u, 1000u, 40000u}) exchange(n);
    exchange(1);  // the other rank is through with the rest
    EXPECT_EQ(sucl::test::allocations(), before);
    exchange(1);  // and neither goes on to the end before both have looked
  });
}

TEST(messages_in_place, replace_what_they_send) {
  for_ranks(3, [](const backends& b, const sucl_comm_info& info) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{70000}}) {
      std::vector<std::int32_t> v(n, info.rank);
      auto o = operation(kind::sendrecv, type::int32, n);
      o.flags = SUCL_FLAG_IN_PLACE;
      o.recv = v.data();
      o.recv_count = n;
      o.root = (info.rank + 1) % 3;
      o.source = (info.rank + 2) % 3;
      EXPECT_EQ(run(b.messages, o).status, SUCL_SUCCESS);
      EXPECT_EQ(v, std::vector<std::int32_t>(n, o.source));
    }
  });
}

}  // namespace
