// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The control plane over TCP: its hashes and texts, its store, and its protection against
// outsiders.
#include "job_process.hpp"
#include "store/identity.hpp"
#include "support/jobs/tcp_job.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>

namespace {

// What the service of names answers to the next questions for names of this test; then it knows
// that they are this machine.
std::mutex g_names_mutex;
std::deque<int> g_answers;
int g_questions = 0;

}  // namespace

// Instead of the C library's.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* wanted,
                           addrinfo** found) {
  const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!host || std::string_view(host) != "named.in.this.test")
    return real(host, service, wanted, found);
  const std::lock_guard lock(g_names_mutex);
  ++g_questions;
  if (g_answers.empty()) return real("127.0.0.1", service, wanted, found);
  const int answer = g_answers.front();
  g_answers.pop_front();
  return answer;
}

namespace sucl {
namespace {

using namespace std::chrono_literals;
using testing::tcp_job;

std::string hex(const tcp::digest& d) { return tcp::hex(d.data(), d.size()); }

TEST(tcp_sha256, has_the_published_values) {
  const auto of = [](std::string_view text) {
    return hex(tcp::sha256().add(text.data(), text.size()).finish());
  };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  tcp::sha256 million;
  for (int i = 0; i < 1000; ++i) million.add(std::string(1000, 'a').data(), 1000);
  EXPECT_EQ(hex(million.finish()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The test cases 1, 2, 4 and 6 of RFC 4231.
TEST(tcp_hmac, has_the_published_values) {
  EXPECT_EQ(hex(tcp::hmac(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(tcp::hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  std::string key;
  for (char c = 1; c <= 25; ++c) key += c;
  EXPECT_EQ(hex(tcp::hmac(key, std::string(50, '\xcd'))),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(hex(tcp::hmac(std::string(131, '\xaa'),
                          "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  tcp::digest one{}, other{};
  EXPECT_TRUE(tcp::equal(one, other));
  other[31] = 1;
  EXPECT_FALSE(tcp::equal(one, other));
}

TEST(tcp_wire, reads_back_what_it_wrote_and_nothing_else) {
  const auto frame = tcp::writer(tcp::frame_type::control_message)
                         .number(std::uint64_t{1} << 60)
                         .number(std::int32_t{-7})
                         .text("abc")
                         .frame();
  const std::byte* body = frame->data() + tcp::frame_header_bytes;
  const std::size_t n = frame->size() - tcp::frame_header_bytes;
  tcp::reader in(body, n);
  EXPECT_EQ(in.number<std::uint64_t>(), std::uint64_t{1} << 60);
  EXPECT_EQ(in.number<std::int32_t>(), -7);
  EXPECT_EQ(in.text(3), "abc");
  EXPECT_TRUE(in.complete());
  for (std::size_t shorter = 0; shorter < n; ++shorter) {
    tcp::reader cut(body, shorter);
    cut.number<std::uint64_t>();
    cut.number<std::int32_t>();
    EXPECT_EQ(cut.text(3), "");
    EXPECT_FALSE(cut.good()) << shorter;
  }
  tcp::reader limited(body + 12, n - 12);
  EXPECT_EQ(limited.text(2), "");
  EXPECT_FALSE(limited.good());
}

TEST(tcp_address, has_texts_of_both_families) {
  EXPECT_EQ(tcp::text_of(tcp::endpoint_of("10.1.2.3:80")), "10.1.2.3:80");
  EXPECT_EQ(tcp::text_of(tcp::endpoint_of("[fd00::1]:443")), "[fd00::1]:443");
  EXPECT_EQ(tcp::address_text(tcp::endpoint_of("fd00::1")), "fd00::1");
  for (const char* wrong : {"", "host", "10.1.2.3:x", "10.1.2.3:70000", "1.2.3.4.5", "[::1", "::g"})
    EXPECT_EQ(tcp::endpoint_of(wrong).family(), 0) << wrong;
  EXPECT_TRUE(tcp::endpoint_of("127.3.0.1").is_loopback());
  EXPECT_TRUE(tcp::endpoint_of("::1").is_loopback());
  EXPECT_FALSE(tcp::endpoint_of("128.0.0.1").is_loopback());
  EXPECT_TRUE(tcp::means_loopback("localhost"));
  EXPECT_FALSE(tcp::means_loopback("node1"));
}

TEST(tcp_address, names_and_interfaces_that_do_not_exist_are_errors) {
  try {
    tcp::resolve("no-such-host.invalid", 1);
    FAIL();
  } catch (const tcp::problem& p) {
    EXPECT_NE(p.text.find("no-such-host.invalid"), std::string::npos);
    EXPECT_NE(p.hint.find("MASTER_ADDR"), std::string::npos);
  }
  EXPECT_EQ(tcp::own_addresses("lo").front().is_loopback(), true);
  EXPECT_EQ(tcp::address_text(tcp::own_addresses("127.0.0.0/8").front()), "127.0.0.1");
  for (const char* wrong : {"eth77", "203.0.113.0/24", "127.0.0.0/40", "127.0.0.0/x"}) {
    try {
      tcp::own_addresses(wrong);
      ADD_FAILURE() << wrong;
    } catch (const tcp::problem& p) {
      EXPECT_NE(p.text.find(wrong), std::string::npos);
      EXPECT_NE(p.text.find("lo 127.0.0.1"), std::string::npos) << p.text;
    }
  }
}

TEST(tcp_identity, is_a_line_that_reads_back) {
  tcp::identity id;
  id.secret = std::string(16, '\x5a');
  id.port = 4711;
  for (const char* a : {"10.0.0.1", "fd00::1"}) id.addresses.push_back(tcp::endpoint_of(a));
  const auto back = tcp::identity::of(id.text());
  EXPECT_EQ(back.secret, id.secret);
  EXPECT_EQ(back.hosts(), (std::vector<std::string>{"10.0.0.1:4711", "[fd00::1]:4711"}));
  for (int i = 0; i < 100; ++i)
    id.addresses.push_back(tcp::endpoint_of("fd00:1111:2222:3333:4444:5555:6666:7777"));
  EXPECT_LE(id.text().size(), tcp::max_identity);
  EXPECT_GE(tcp::identity::of(id.text()).addresses.size(), 4u);
  const std::string text = back.text();
  for (std::size_t n = 0; n + 8 < text.size(); n += 3)
    EXPECT_THROW(tcp::identity::of(text.substr(0, n)), tcp::problem) << text.substr(0, n);
  EXPECT_THROW(tcp::identity::of("sucl1-zz" + text.substr(8)), tcp::problem);
}

tcp::tcp_store client(const tcp_job& job) {
  return {job.loop(0), job.id().secret, job.id().hosts(), 0, [] {}};
}

// A store behind a name, for which the service of names gives these answers first.
class named_store {
 public:
  explicit named_store(std::deque<int> answers) {
    g_answers = std::move(answers);
    g_questions = 0;
    bool in_use = false;
    const int socket = tcp::listen_at(m_at, &in_use);
    m_server = tcp::store_server::start(m_job.loop(0), socket, m_job.id().secret);
  }
  ~named_store() { m_server->stop(); }
  tcp::tcp_store client(tcp::wait_check wait) const {
    return {m_job.loop(0), m_job.id().secret, {"named.in.this.test"}, m_at.port(), std::move(wait)};
  }

 private:
  tcp_job m_job;
  tcp::endpoint m_at = tcp::endpoint_of("127.0.0.1");
  std::shared_ptr<tcp::store_server> m_server;
};

TEST(tcp_store, is_found_once_the_service_of_names_answers) {
  const named_store named({EAI_AGAIN, EAI_AGAIN, EAI_AGAIN});
  auto a = named.client([] {});
  EXPECT_FALSE(a.put("k", "one"));
  EXPECT_EQ(a.wait({"k"}, 0ms)->second, "one");
  EXPECT_EQ(g_questions, 4);
}

TEST(tcp_store, is_not_looked_for_where_its_name_does_not_exist) {
  const named_store named({EAI_NONAME});
  auto a = named.client([] { FAIL() << "waits"; });
  try {
    a.connect();
    FAIL();
  } catch (const tcp::problem& p) {
    EXPECT_NE(p.text.find("'named.in.this.test'"), std::string::npos) << p.text;
  }
  EXPECT_EQ(g_questions, 1);
}

TEST(tcp_store, says_at_the_end_of_the_wait_that_the_service_of_names_did_not_answer) {
  const named_store named(std::deque<int>(1000, EAI_AGAIN));
  auto a = named.client([] {
    if (g_questions > 2) throw tcp::problem{SUCL_ERROR_TIMEOUT, "too late", ""};
  });
  try {
    a.connect();
    FAIL();
  } catch (const tcp::problem& p) {
    EXPECT_EQ(p.text.find("too late"), 0u);
    EXPECT_NE(p.text.find("'named.in.this.test'"), std::string::npos) << p.text;
    EXPECT_NE(p.text.find(gai_strerror(EAI_AGAIN)), std::string::npos) << p.text;
  }
  g_answers.clear();
}

TEST(tcp_address, of_a_name_is_asked_for_again_for_a_while) {
  g_answers = {EAI_AGAIN, EAI_AGAIN};
  EXPECT_TRUE(tcp::resolve_within(1h, "named.in.this.test", 1).front().is_loopback());
  g_answers = {EAI_AGAIN};
  EXPECT_THROW(tcp::resolve_within(0s, "named.in.this.test", 1), tcp::problem);
  g_answers = {EAI_NONAME};
  EXPECT_THROW(tcp::resolve_within(1h, "named.in.this.test", 1), tcp::problem);
}

TEST(tcp_store, keeps_what_was_put_first_and_wakes_who_waits) {
  tcp_job job;
  auto a = client(job);
  EXPECT_FALSE(a.put("k", "one"));
  EXPECT_FALSE(a.put("k", "one"));
  EXPECT_EQ(a.put("k", "two"), "one");
  EXPECT_EQ(a.wait({"none", "k"}, 0ms)->second, "one");
  EXPECT_FALSE(a.wait({"later"}, 30ms));
  std::thread other([&] { client(job).put("later", std::string("\0\n", 2)); });
  std::optional<tcp::key_value_store::found> found;
  while (!found) found = a.wait({"later"}, 1000ms);
  other.join();
  EXPECT_EQ(found->second, std::string("\0\n", 2));
  a.put("p0", "");
  a.put("p2", "");
  EXPECT_EQ(a.missing("p", 4), (std::vector<int>{1, 3}));
  EXPECT_FALSE(job.server().finished());
  a.finish();
  while (!job.server().finished()) std::this_thread::sleep_for(1ms);
}

/// A process that is not of the job.
class outsider {
 public:
  explicit outsider(const tcp_job& job) {
    const auto where = tcp::endpoint_of(job.id().hosts().front());
    m_socket = socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    m_connected = connect(m_socket, where.generic(), where.length()) == 0;
  }
  ~outsider() { close(m_socket); }
  outsider(const outsider&) = delete;
  outsider& operator=(const outsider&) = delete;

  bool connected() const { return m_connected; }
  void say(const std::string& text) {
    (void)!send(m_socket, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Everything until the other side closes; false if it has not by then.
  bool is_shut_out(std::chrono::milliseconds limit) {
    const auto until = tcp::clock::now() + limit;
    char text[256];
    while (tcp::clock::now() < until) {
      pollfd p{m_socket, POLLIN, 0};
      if (::poll(&p, 1, 50) <= 0) continue;
      if (recv(m_socket, text, sizeof text, 0) <= 0) return true;
    }
    return false;
  }

 private:
  int m_socket;
  bool m_connected = false;
};

TEST(tcp_outsiders, are_shut_out_whatever_they_say) {
  tcp_job job;
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    outsider s(job);
    ASSERT_TRUE(s.connected());
    std::string text(1 + random() % 300, '\0');
    for (char& c : text) c = static_cast<char>(random());
    if (i % 4 == 0) text = "GET / HTTP/1.1\r\n\r\n";
    // Right until the proof.
    if (i % 4 == 1) text.assign("SuCL\1\0\0\0", 8).append(48, static_cast<char>(i));
    s.say(text);
    if (text.size() >= 56 || text.substr(0, 4) != "SuCL") {
      EXPECT_TRUE(s.is_shut_out(20s)) << i;
    }
  }
  EXPECT_GE(job.server().refused(), 50);
  EXPECT_FALSE(client(job).put("still", "serves"));
}

TEST(tcp_outsiders, who_say_nothing_neither_stay_nor_keep_others_out) {
  tcp_job job;
  std::vector<std::unique_ptr<outsider>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<outsider>(job));
  auto all = job.start(testing::whole_job(4));
  for (const auto& o : all) EXPECT_TRUE(o.process) << o.why.text;
  for (const auto& s : silent) EXPECT_TRUE(s->is_shut_out(30s));
  EXPECT_FALSE(outsider(job).connected()) << "a process listens after the start";
  for (const auto& o : all)
    if (o.process) o.process->leave();
}

TEST(tcp_outsiders, who_speak_one_byte_at_a_time_are_shut_out) {
  tcp_job job;
  outsider s(job);
  std::atomic<bool> out{false};
  std::thread speaker([&] {
    const std::string text = std::string("SuCL\1\0\0\0", 8) + std::string(40, 'x');
    for (std::size_t i = 0; i < text.size() && !out; ++i) {
      s.say(text.substr(i, 1));
      std::this_thread::sleep_for(300ms);
    }
  });
  EXPECT_TRUE(s.is_shut_out(12s));
  out = true;
  speaker.join();
}

// A faulty member, or an attacker who knows the secret.
class odd_member final : public tcp::listener {
 public:
  std::atomic<bool> open{false}, over{false};
  void opened(tcp::connection&) override { open = true; }
  void received(tcp::connection&, tcp::frame_type, tcp::reader&) override {}
  void ended(tcp::connection&, tcp::ending, const std::string&) override { over = true; }
};

TEST(tcp_outsiders, members_that_send_nonsense_do_no_harm) {
  tcp_job job;
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    if (static_cast<tcp::frame_type>(i % 41) == tcp::frame_type::finish) continue;  // it is right
    const auto odd = std::make_shared<odd_member>();
    const auto c = std::make_shared<tcp::connection>(job.loop(0), job.id().secret, tcp::limits{});
    {
      const std::lock_guard lock(job.loop(0)->lock());
      c->connect_to(tcp::endpoint_of(job.id().hosts().front()), odd);
    }
    while (!odd->open && !odd->over) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(odd->open);
    tcp::writer nonsense(static_cast<tcp::frame_type>(i % 41));
    for (auto n = random() % 64; n > 0; --n) nonsense.number(static_cast<std::uint8_t>(random()));
    auto frame = *nonsense.frame();
    if (i % 5 == 0) frame[6] = std::byte{0x7f};  // a length beyond all bounds
    const std::lock_guard lock(job.loop(0)->lock());
    c->send(std::make_shared<tcp::bytes>(frame));
    c->shut_after_sending();
  }
  EXPECT_FALSE(client(job).put("still", "serves"));
}

// A process object is destroyed by one thread while another process proves itself to the reactor's.
TEST(tcp_acceptor, ends_connections_that_are_not_taken_over) {
  const auto loop = std::make_shared<tcp::reactor>();
  tcp::endpoint where = tcp::endpoint_of("127.0.0.1");
  bool in_use = false;
  const int socket = tcp::listen_at(where, &in_use);
  ASSERT_GE(socket, 0);
  const auto waits = std::make_shared<tcp::acceptor>(loop, socket, "secret", tcp::limits{});
  const auto other = std::make_shared<odd_member>();
  tcp::limits slow;
  slow.authenticate = 60s;
  const auto c = std::make_shared<tcp::connection>(loop, "secret", slow);
  {
    const std::lock_guard lock(loop->lock());
    waits->start([](const std::shared_ptr<tcp::connection>&) { return false; });
    c->connect_to(where, other);
  }
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!other->over && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(other->over);
  const std::lock_guard lock(loop->lock());
  waits->close();
  c->close();
}

}  // namespace
}  // namespace sucl
