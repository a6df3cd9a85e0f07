// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace sucl::tcp {
namespace {

constexpr std::size_t max_key = 256, max_value = 32 << 10, max_keys = 8;
constexpr std::size_t max_bytes = std::size_t{256} << 20;
constexpr std::size_t max_listed = 64;
constexpr std::int32_t max_ranks = 1 << 24;

// Each waiting client holds a connection. Further clients have to retry.
std::size_t max_waiting() {
  static const std::size_t most = [] {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return std::size_t{64};
    return std::clamp<std::size_t>(static_cast<std::size_t>(files.rlim_cur / 8), 16, 512);
  }();
  return most;
}

}  // namespace

std::shared_ptr<store_server> store_server::start(const std::shared_ptr<reactor>& loop, int socket,
                                                  const std::string& secret) {
  auto made = std::make_shared<store_server>(loop);
  const std::lock_guard lock(loop->lock());
  made->m_acceptor = std::make_shared<acceptor>(loop, socket, secret, limits{});
  made->m_acceptor->start([self = std::weak_ptr(made)](const std::shared_ptr<connection>& link) {
    const auto server = self.lock();
    if (server) server->take(link);
    return server != nullptr;
  });
  return made;
}

void store_server::stop() {
  const std::lock_guard lock(m_loop->lock());
  finish();
  for (auto& [at, c] : m_clients) c.link->close();
  m_clients.clear();
}

void store_server::put(const std::string& key, const std::string& value,
                       std::function<void()> on_put) {
  const std::lock_guard lock(m_loop->lock());
  m_values.try_emplace(key, value);
  m_on_put = std::move(on_put);
}

int store_server::refused() {
  const std::lock_guard lock(m_loop->lock());
  return m_acceptor ? m_acceptor->refused() : m_refused;
}

bool store_server::finished() {
  const std::lock_guard lock(m_loop->lock());
  return m_finished;
}

void store_server::take(const std::shared_ptr<connection>& link) {
  link->set_listener(shared_from_this());
  m_clients[link.get()] = {link, std::nullopt};
  hold_connections();
}

// Clients that do not wait send a request and leave.
void store_server::hold_connections() {
  constexpr std::size_t others = 256;
  if (m_acceptor) m_acceptor->hold(m_clients.size() >= max_waiting() + others);
}

void store_server::drop(connection& c) {
  const auto found = m_clients.find(&c);
  if (found == m_clients.end()) return;
  if (found->second.waits) --m_waiting;
  c.close();
  m_clients.erase(found);
  hold_connections();
}

void store_server::ended(connection& c, ending, const std::string&) { drop(c); }

void store_server::received(connection& c, frame_type type, reader& message) {
  switch (type) {
    case frame_type::put: return put_value(c, message);
    case frame_type::wait: return wait_for(c, message);
    case frame_type::missing: return list_missing(c, message);
    case frame_type::finish: return finish();
    default: return drop(c);
  }
}

void store_server::put_value(connection& c, reader& message) {
  const std::string key = message.text(max_key);
  std::string value = message.text(max_value);
  if (!message.complete() || key.empty() || m_bytes + key.size() + value.size() > max_bytes)
    return drop(c);
  const auto [entry, is_new] = m_values.try_emplace(key, value);
  if (!is_new && entry->second != value)
    return c.send(writer(frame_type::conflict).text(entry->second).frame());
  if (is_new) m_bytes += key.size() + value.size();
  if (m_on_put) m_on_put();
  c.send(writer(frame_type::stored).frame());
  if (!is_new) return;
  for (auto& [at, other] : m_clients) {
    if (!other.waits) continue;
    const auto& keys = other.waits->keys;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
    if (answer(*other.link, *other.waits)) {
      other.waits.reset();
      --m_waiting;
    }
  }
}

bool store_server::answer(connection& c, const waiter& w) {
  for (const std::string& key : w.keys) {
    const auto found = m_values.find(key);
    if (found == m_values.end()) continue;
    c.send(writer(frame_type::value).number(w.number).text(key).text(found->second).frame());
    return true;
  }
  return false;
}

void store_server::wait_for(connection& c, reader& message) {
  waiter w;
  w.number = message.number<std::uint64_t>();
  const auto count = message.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && i < max_keys; ++i) w.keys.push_back(message.text(max_key));
  const auto found = m_clients.find(&c);
  if (!message.complete() || found == m_clients.end()) return drop(c);
  if (found->second.waits) --m_waiting;
  found->second.waits.reset();
  if (answer(c, w)) return;
  if (m_waiting >= max_waiting()) {
    constexpr std::uint32_t again_ms = 100;
    return c.send(writer(frame_type::later).number(w.number).number(again_ms).frame());
  }
  found->second.waits = std::move(w);
  ++m_waiting;
}

void store_server::list_missing(connection& c, reader& message) {
  const std::string prefix = message.text(max_key);
  const auto size = message.number<std::int32_t>();
  if (!message.complete() || size < 0 || size > max_ranks) return drop(c);
  std::vector<std::int32_t> list;
  for (std::int32_t i = 0; i < size && list.size() < max_listed; ++i)
    if (!m_values.contains(prefix + std::to_string(i))) list.push_back(i);
  writer out(frame_type::absent);
  out.number(static_cast<std::uint32_t>(list.size()));
  for (const std::int32_t i : list) out.number(i);
  c.send(out.frame());
}

// New clients are not accepted any more; connected ones may still send requests.
void store_server::finish() {
  m_finished = true;
  if (!m_acceptor) return;
  m_refused = m_acceptor->refused();
  m_acceptor->close();
  m_acceptor.reset();
}

}  // namespace sucl::tcp
