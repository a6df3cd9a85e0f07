// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.hpp"

#include "net/problem.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace sucl::fabric {
namespace {

// Makes one of libfabric's objects by a function that writes a pointer to it.
template <class Object, class Make>
std::ptrdiff_t make(object<Object>& to, const Make& how) {
  Object* made = nullptr;
  const std::ptrdiff_t code = how(&made);
  if (code == 0) to.reset(made);
  return code;
}

// Newer libraries than the headers may write more of it.
union error_entry {
  fi_cq_err_entry entry;
  std::array<std::byte, 256> room;
};

}  // namespace

endpoint::endpoint(const library& from, const fi_info& info)
    : m_from(from), m_info(from.dupinfo(&info), {&from}) {
  if (!m_info) throw std::bad_alloc();
  check(make(m_fabric, [&](auto** f) { return from.open(m_info->fabric_attr, f, nullptr); }),
        "fi_fabric");
  check(
      make(m_domain, [&](auto** d) { return fi_domain(m_fabric.get(), m_info.get(), d, nullptr); }),
      "fi_domain");
  open_address_vector();
  open_completion_queue();
  open_endpoint();
}

void endpoint::check(std::ptrdiff_t code, const char* what) const {
  if (code >= 0) return;
  throw problem{SUCL_ERROR_NATIVE,
                std::string(what) + " of libfabric failed (provider " +
                    m_info->fabric_attr->prov_name + "): " + m_from.text_of(code),
                "Choose another provider or interface: fabric.provider (SUCL_FABRIC_PROVIDER), "
                "fabric.interface (SUCL_FABRIC_INTERFACE).",
                -code};
}

void endpoint::open_address_vector() {
  fi_av_attr how{};
  how.type = FI_AV_UNSPEC;
  check(make(m_addresses, [&](auto** a) { return fi_av_open(m_domain.get(), &how, a, nullptr); }),
        "fi_av_open");
}

void endpoint::open_completion_queue() {
  fi_cq_attr how{};
  how.format = FI_CQ_FORMAT_TAGGED;
  how.wait_obj = FI_WAIT_NONE;
  how.size = m_info->tx_attr->size + m_info->rx_attr->size;
  check(make(m_queue, [&](auto** q) { return fi_cq_open(m_domain.get(), &how, q, nullptr); }),
        "fi_cq_open");
}

void endpoint::open_endpoint() {
  check(make(m_endpoint,
             [&](auto** e) { return fi_endpoint(m_domain.get(), m_info.get(), e, nullptr); }),
        "fi_endpoint");
  check(fi_ep_bind(m_endpoint.get(), &m_addresses->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(m_endpoint.get(), &m_queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_enable(m_endpoint.get()), "fi_enable");
  std::size_t bytes = 256;
  m_address.resize(bytes);
  check(fi_getname(&m_endpoint->fid, m_address.data(), &bytes), "fi_getname");
  m_address.resize(bytes);
}

fi_addr_t endpoint::peer(const std::vector<std::byte>& address) {
  const std::string key(reinterpret_cast<const char*>(address.data()), address.size());
  if (const auto known = m_peers.find(key); known != m_peers.end()) return known->second;
  fi_addr_t made = FI_ADDR_UNSPEC;
  const int inserted = fi_av_insert(m_addresses.get(), address.data(), 1, &made, 0, nullptr);
  check(inserted < 0 ? inserted : inserted == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
  m_peers.emplace(key, made);
  return made;
}

message& endpoint::take() {
  if (m_idle.empty()) {
    m_idle.push_back(&m_messages.emplace_back());
    m_idle.reserve(m_messages.size());  // end() must not run out of memory
  }
  message& m = *m_idle.back();
  m_idle.pop_back();
  return m;
}

std::ptrdiff_t endpoint::try_now(message& m) {
  const auto bytes = static_cast<std::size_t>(m.bytes);
  const std::ptrdiff_t code =
      m.sends ? fi_tsend(m_endpoint.get(), m.memory, bytes, nullptr, m.peer, m.tag, &m.context)
              : fi_trecv(m_endpoint.get(), m.memory, bytes, nullptr, m.peer, m.tag, m.ignored,
                         &m.context);
  m.started = code == 0;
  return code;
}

void endpoint::start(message& m) {
  std::deque<message*>& before = m.sends ? m_sends[m.peer] : m_receives;
  const std::ptrdiff_t code = before.empty() ? try_now(m) : -FI_EAGAIN;
  if (code == 0) return;
  if (code == -FI_EAGAIN) {
    before.push_back(&m);
    ++m_waiting;
    return;
  }
  m.owner = nullptr;
  m_idle.push_back(&m);
  check(code, m.sends ? "fi_tsend" : "fi_trecv");
}

void endpoint::give_up(const sucl_request& owner) {
  for (message& m : m_messages)
    if (m.owner == &owner) give_up(m);
}

void endpoint::give_up(message& m) {
  m.owner = nullptr;
  if (m.started) {
    if (!m.sends) fi_cancel(&m_endpoint->fid, &m.context);
    return;  // it comes back when libfabric is done with it
  }
  std::deque<message*>& waiting = m.sends ? m_sends[m.peer] : m_receives;
  const auto at = std::find(waiting.begin(), waiting.end(), &m);
  if (at == waiting.end()) return;
  waiting.erase(at);
  --m_waiting;
  m_idle.push_back(&m);
}

void endpoint::end(message& m, const ending& how) {
  m.started = false;
  if (m.owner != nullptr) ended(m, how);
  m.owner = nullptr;
  m_idle.push_back(&m);
}

// The first that finds no room stops it, those behind it would overtake.
void endpoint::retry(std::deque<message*>& waiting) {
  while (!waiting.empty()) {
    message& m = *waiting.front();
    const std::ptrdiff_t code = try_now(m);
    if (code == -FI_EAGAIN) return;
    waiting.pop_front();
    --m_waiting;
    if (code != 0) end(m, {static_cast<int>(-code), 0, {}, 0});
  }
}

bool endpoint::read_error() {
  error_entry e;
  std::memset(&e, 0, sizeof e);
  if (fi_cq_readerr(m_queue.get(), &e.entry, 0) <= 0) return false;
  if (e.entry.op_context == nullptr) return true;
  std::array<char, 128> text{};
  const char* reason =
      fi_cq_strerror(m_queue.get(), e.entry.prov_errno, e.entry.err_data, text.data(), text.size());
  ending how{e.entry.err == 0 ? FI_EIO : e.entry.err, e.entry.len, reason ? reason : "",
             e.entry.tag};
  // What a provider cancels itself has a reason: an error code where the text is that of one.
  const int cause = std::abs(e.entry.prov_errno);
  if (how.code == FI_ECANCELED && cause != 0 && how.text == m_from.text_of(cause)) how.code = cause;
  end(*static_cast<message*>(e.entry.op_context), how);
  return true;
}

void endpoint::progress() {
  std::array<fi_cq_tagged_entry, 16> found;
  for (;;) {
    const ssize_t n = fi_cq_read(m_queue.get(), found.data(), found.size());
    for (ssize_t i = 0; i < n; ++i) {
      const fi_cq_tagged_entry& one = found[static_cast<std::size_t>(i)];
      if (one.op_context != nullptr)
        end(*static_cast<message*>(one.op_context), {0, one.len, {}, one.tag});
    }
    if (n == -FI_EAVAIL && read_error()) continue;
    if (n < static_cast<ssize_t>(found.size())) break;
  }
  if (m_waiting == 0) return;
  retry(m_receives);
  for (auto& [peer, waiting] : m_sends) retry(waiting);
}

}  // namespace sucl::fabric
