// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <algorithm>
#include <thread>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr auto store_poll_interval = 20ms;
constexpr auto max_pause = 500ms;
constexpr std::size_t max_text = 64 << 10;

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
  return text;
}

}  // namespace

// Events that the reactor's thread queues for the caller's thread.
class tcp_store::link final : public listener {
 public:
  std::shared_ptr<connection> at;
  std::condition_variable changed;
  bool open = false, over = false;
  ending how = ending::closed;
  std::string why;
  struct answer {
    frame_type type;
    bytes message;
  };
  std::deque<answer> answers;

  void opened(connection&) override {
    open = true;
    changed.notify_all();
  }
  void received(connection& c, frame_type type, reader& message) override {
    if (answers.size() > 16) return c.close();  // more answers than requests
    answers.push_back({type, bytes(message.rest(), message.rest() + message.left())});
    changed.notify_all();
  }
  void ended(connection&, ending e, const std::string& text) override {
    over = true;
    how = e;
    why = text;
    changed.notify_all();
  }
};

tcp_store::tcp_store(std::shared_ptr<reactor> loop, std::string secret,
                     std::vector<std::string> hosts, std::uint16_t port, wait_check wait)
    : m_loop(std::move(loop)),
      m_secret(std::move(secret)),
      m_hosts(std::move(hosts)),
      m_port(port),
      m_wait(std::move(wait)) {}

tcp_store::~tcp_store() { leave(); }

void tcp_store::leave() {
  if (!m_link) return;
  const std::lock_guard lock(m_loop->lock());
  // Values that were put are still sent.
  if (m_link->at->has_unsent())
    m_link->at->shut_after_sending();
  else
    m_link->at->close();
  m_link.reset();
  m_waiting_for.clear();
}

std::string tcp_store::location() const {
  if (m_port == 0) return joined(m_hosts);
  return joined(m_hosts) + ", port " + std::to_string(m_port);
}

// `later`: why some are not known yet.
std::vector<endpoint> tcp_store::addresses(std::string* later) const {
  std::vector<endpoint> list;
  for (const std::string& host : m_hosts) {
    if (const endpoint e = endpoint_of(host); e.family() != 0 && e.port() != 0) {
      list.push_back(e);
      continue;
    }
    const auto more = resolve(host, m_port, later);
    list.insert(list.end(), more.begin(), more.end());
  }
  return list;
}

// Tries each address once. Throws where it makes no sense to try again.
std::shared_ptr<tcp_store::link> tcp_store::try_addresses(std::string* why) {
  std::string reasons;
  const auto known = addresses(&reasons);
  bool all_unauthenticated = reasons.empty();
  for (const endpoint& e : known) {
    const auto made = std::make_shared<link>();
    std::unique_lock lock(m_loop->lock());
    made->at = std::make_shared<connection>(m_loop, m_secret, limits{2000ms, 5000ms, max_text});
    made->at->connect_to(e, made);
    while (!made->open && !made->over) {
      made->changed.wait_for(lock, store_poll_interval);
      lock.unlock();
      m_wait();
      lock.lock();
    }
    if (made->open) {
      m_local = made->at->local();
      return made;
    }
    if (made->how != ending::unauthenticated) all_unauthenticated = false;
    reasons += (reasons.empty() ? "" : "; ") + text_of(e) + ": " + made->why;
  }
  if (all_unauthenticated && !reasons.empty())
    throw problem{SUCL_ERROR_UNAVAILABLE,
                  "the store of the rendezvous does not accept this process: " + reasons,
                  "Give all ranks the same id, or the same SUCL_TCP_SECRET and variables of the "
                  "launcher; where another job has the port, choose another one: SUCL_TCP_PORT"};
  *why = reasons;
  return nullptr;
}

void tcp_store::connect() {
  if (m_link) {
    const std::lock_guard lock(m_loop->lock());
    if (!m_link->over && !m_link->at->is_closed()) return;
  }
  leave();
  auto pause = std::chrono::milliseconds(10);
  std::string why;
  for (;;) {
    const auto until = std::max(clock::now() + pause, m_not_before);
    if (clock::now() >= m_not_before)
      if (m_link = try_addresses(&why); m_link) return;
    while (clock::now() < until) {
      try {
        m_wait();
      } catch (problem& p) {
        if (!why.empty())
          p.text += ". The store of the rendezvous at " + location() + " cannot be reached: " + why;
        throw;
      }
      std::this_thread::sleep_for(
          std::min<clock::duration>(store_poll_interval, until - clock::now()));
    }
    pause = std::min(pause * 2, std::chrono::milliseconds(max_pause));
  }
}

// Until an answer is there, or the connection has ended: false, or it is late: true.
bool tcp_store::await(clock::time_point until) {
  for (;;) {
    std::unique_lock lock(m_loop->lock());
    if (m_link->answers.empty() && !m_link->over)
      m_link->changed.wait_for(lock, store_poll_interval);
    if (!m_link->answers.empty()) return true;
    if (m_link->over || m_link->at->is_closed()) return false;
    lock.unlock();
    m_wait();
    if (clock::now() >= until) return true;
  }
}

std::optional<std::string> tcp_store::put(const std::string& key, const std::string& value) {
  for (;;) {
    connect();
    // An answer to an earlier request must not be taken for one to this request.
    if (!m_waiting_for.empty()) {
      leave();
      continue;
    }
    {
      const std::lock_guard lock(m_loop->lock());
      m_link->at->send(writer(frame_type::put).text(key).text(value).frame());
    }
    if (!await(clock::time_point::max())) continue;
    const std::lock_guard lock(m_loop->lock());
    const auto answer = std::move(m_link->answers.front());
    m_link->answers.pop_front();
    if (answer.type != frame_type::conflict) return std::nullopt;
    return reader(answer.message.data(), answer.message.size()).text(max_text);
  }
}

std::optional<key_value_store::found> tcp_store::wait(const std::vector<std::string>& keys,
                                                      std::chrono::milliseconds limit) {
  const auto until = clock::now() + limit;
  if (clock::now() < m_not_before) {
    m_wait();
    std::this_thread::sleep_for(std::min<clock::duration>(limit, m_not_before - clock::now()));
    return std::nullopt;
  }
  connect();
  if (m_waiting_for != keys) {
    const std::lock_guard lock(m_loop->lock());
    writer request(frame_type::wait);
    request.number(++m_number).number(static_cast<std::uint32_t>(keys.size()));
    for (const std::string& key : keys) request.text(key);
    m_link->at->send(request.frame());
    m_waiting_for = keys;
  }
  if (!await(until)) {
    m_waiting_for.clear();
    return std::nullopt;
  }
  return take_answer();
}

std::optional<key_value_store::found> tcp_store::take_answer() {
  std::unique_lock lock(m_loop->lock());
  while (!m_link->answers.empty()) {
    const auto answer = std::move(m_link->answers.front());
    m_link->answers.pop_front();
    reader message(answer.message.data(), answer.message.size());
    if (message.number<std::uint64_t>() != m_number) continue;  // of an earlier request
    m_waiting_for.clear();
    if (answer.type == frame_type::value) {
      std::string key = message.text(max_text);
      return found{std::move(key), message.text(max_text)};
    }
    // Too many clients wait; each retries at another time.
    const std::chrono::milliseconds pause(message.number<std::uint32_t>() + random_nonce()[0]);
    m_not_before = clock::now() + pause;
    lock.unlock();
    leave();
    return std::nullopt;
  }
  return std::nullopt;
}

std::vector<int> tcp_store::missing(const std::string& prefix, int size) {
  if (!m_waiting_for.empty()) leave();
  connect();
  {
    const std::lock_guard lock(m_loop->lock());
    m_link->at->send(
        writer(frame_type::missing).text(prefix).number(static_cast<std::int32_t>(size)).frame());
  }
  std::vector<int> list;
  if (!await(clock::now() + 2s)) return list;
  const std::lock_guard lock(m_loop->lock());
  if (m_link->answers.empty()) return list;
  const auto answer = std::move(m_link->answers.front());
  m_link->answers.pop_front();
  reader message(answer.message.data(), answer.message.size());
  for (auto n = message.number<std::uint32_t>(); n > 0 && message.good(); --n)
    list.push_back(message.number<std::int32_t>());
  return list;
}

void tcp_store::finish() {
  connect();
  const std::lock_guard lock(m_loop->lock());
  m_link->at->send(writer(frame_type::finish).frame());
}

}  // namespace sucl::tcp
