// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// How a process finds the others.
#include "failed_start.hpp"
#include "job_process.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <thread>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr auto set_up_poll_interval = 20ms;
constexpr auto start_grace = 2000ms;
constexpr std::size_t max_addresses = 8, max_contact = 1024, max_host = 255;

const std::string secret_key = "secret";
constexpr std::string_view unreachable = " cannot be reached: ";  // as store_client says it
constexpr const char* late_hint =
    "Check that every rank was started, and that the machine and port of the store are the "
    "right ones; tcp.timeout (SUCL_TCP_TIMEOUT) waits longer";

std::string key_of(int rank) { return "member/" + std::to_string(rank); }

// FNV-1a.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

std::string host_name() {
  std::array<char, max_host + 1> text{};
  return gethostname(text.data(), text.size() - 1) == 0 ? text.data() : "unknown";
}

// Equal for processes that share a loopback.
std::uint64_t machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat network{};
  if (stat("/proc/self/ns/net", &network) == 0) boot += "/" + std::to_string(network.st_ino);
  return hash(boot);
}

// Ends a wait for the store, because the exchange with all ranks is complete.
struct all_ranks_present {};

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i + 1) {
      text += "-" + std::to_string(ranks[last]);
      i = last;
    }
  }
  return text;
}

std::string in_seconds(std::chrono::milliseconds t) {
  const std::string text = std::to_string(static_cast<double>(t.count()) / 1000);
  return text.substr(0, text.find('.') + 2) + " s";
}

endpoint loopback_address() {
  for (const char* text : {"127.0.0.1", "::1"})
    if (const endpoint e = endpoint_of(text); !own_addresses(text).empty()) return e;
  return endpoint_of("127.0.0.1");
}

}  // namespace

void contact::put_into(writer& out) const {
  out.number(static_cast<std::int32_t>(rank)).number(static_cast<std::int32_t>(size));
  out.number(process).number(machine).text(host);
  out.number(static_cast<std::uint8_t>(addresses.size()));
  for (const endpoint& e : addresses) put(out, e);
}

contact contact::take_from(reader& in) {
  contact c;
  c.rank = in.number<std::int32_t>();
  c.size = in.number<std::int32_t>();
  c.process = in.number<std::int64_t>();
  c.machine = in.number<std::uint64_t>();
  c.host = in.text(max_host);
  for (auto n = in.number<std::uint8_t>(); n > 0 && in.good(); --n)
    c.addresses.push_back(take_endpoint(in));
  return c;
}

std::string contact::packed() const {
  writer out(frame_type::hello);
  put_into(out);
  const auto frame = out.frame();
  return {reinterpret_cast<const char*>(frame->data()) + frame_header_bytes,
          frame->size() - frame_header_bytes};
}

contact contact::of(const std::string& text) {
  reader in(reinterpret_cast<const std::byte*>(text.data()), text.size());
  contact c = take_from(in);
  if (!in.complete()) c.rank = -1;
  return c;
}

std::string contact::process_text() const {
  return "process " + std::to_string(process) + " of " + host;
}

// Listens for the other ranks. The address that has reached the store is listed first.
void job_process::listen(const endpoint& towards_store) {
  std::vector<endpoint> known;
  endpoint at;
  if (!m_settings.interface.empty()) {
    known.push_back(at = own_address(m_settings.interface, {towards_store}));
  } else if (m_settings.loopback) {
    known.push_back(at = loopback_address());
  } else {
    known = own_addresses("");
    std::stable_partition(known.begin(), known.end(),
                          [&](const endpoint& e) { return e.same_address(towards_store); });
    known.resize(std::min(known.size(), max_addresses - 2));
    for (const char* text : {"127.0.0.1", "::1"}) known.push_back(endpoint_of(text));
  }
  bool in_use = false;
  at.set_port(0);
  const int socket = listen_at(at, &in_use);
  for (endpoint& e : known) e.set_port(at.port());
  m_own = {rank(), size(), getpid(), machine(), host_name(), std::move(known)};
  limits members;
  members.frame = 64 << 10;  // until its identity is checked
  m_acceptor = std::make_shared<acceptor>(m_loop, socket, m_settings.secret, members);
  const std::lock_guard lock(m_loop->lock());
  m_acceptor->start([self = weak_from_this()](const std::shared_ptr<connection>& c) {
    const auto n = self.lock();
    if (n) n->accept_member(c);
    return n != nullptr;
  });
}

void job_process::start(key_value_store& store) {
  m_begun = clock::now();
  std::vector<int> everyone(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) everyone[static_cast<std::size_t>(r)] = r;
  m_root = make_group(0, std::move(everyone));
  problem why;
  try {
    m_connects_to = store.location();
    store.connect();
    m_connects_to.clear();
    if (m_settings.secret.empty()) agree_on_secret(store);
    // A single rank need not listen.
    if (size() > 1) listen(store.local());
    publish_contact(store);
    if (m_root->position.parent >= 0) connect_to_parent(store);
    gather_contacts(store);
    m_grace_end = clock::now() + start_grace;
    if (rank() == 0) store.finish();
    return;
  } catch (const problem& p) {
    if (m_set_up) return;  // the store has ended before this message
    why = p;
  }
  why = find_cause(store, why);
  report(store, why);
  throw why;
}

// Exchanges a secret through the program's own store, which only its processes reach.
void job_process::agree_on_secret(key_value_store& store) {
  if (rank() == 0) {
    const nonce made = random_nonce();
    m_settings.secret.assign(made.begin(), made.end());
    store.put(secret_key, hex(made.data(), made.size()));
    return;
  }
  for (;;) {
    const auto found = store.wait({failed_key, secret_key}, 500ms);
    check_wait();
    if (!found) continue;
    if (found->first == failed_key) throw unpacked(found->second);
    m_settings.secret = unhex(found->second);
    if (m_settings.secret.size() == sizeof(nonce)) return;
    throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                  "the store returns another value than rank 0 has put into it for the key '" +
                      secret_key + "'",
                  "Let put() keep every byte of a value, and use the store for one job only"};
  }
}

void job_process::publish_contact(key_value_store& store) {
  if (m_own.rank < 0) m_own = {rank(), size(), getpid(), machine(), host_name(), {}};
  const auto other = store.put(key_of(rank()), m_own.packed());
  if (!other) return;
  throw problem{SUCL_ERROR_MISMATCH,
                "two processes say that they are rank " + std::to_string(rank()) + ": " +
                    m_own.process_text() + " and " + contact::of(*other).process_text(),
                "Give each process of the job a rank of its own, from 0 to size - 1"};
}

void job_process::connect_to_parent(key_value_store& store) {
  const int parent = m_root->position.parent;
  for (;;) {
    const auto found = store.wait({failed_key, key_of(parent)}, 500ms);
    check_wait();
    if (!found) continue;
    if (found->first == failed_key) throw unpacked(found->second);
    const contact c = contact::of(found->second);
    if (c.rank != parent)
      throw problem{SUCL_ERROR_MISMATCH,
                    "what rank " + std::to_string(parent) + " has put into the store at " +
                        store.location() + " cannot be read",
                    "Start every rank with the same build of SuCL, and use the store once"};
    store.disconnect();  // thousands of ranks may still connect to it
    const std::lock_guard lock(m_loop->lock());
    m_parent = c;
    connect(parent);
    return;
  }
}

// The first exchange gathers all contacts and distributes them along the tree.
void job_process::gather_contacts(key_value_store& store) {
  writer own(frame_type::up);
  m_own.put_into(own);
  const auto packed_contact = own.frame();
  {
    const std::lock_guard lock(m_loop->lock());
    begin_exchange(*m_root,
                   bytes(packed_contact->begin() + frame_header_bytes, packed_contact->end()),
                   nullptr, 1);
  }
  auto last_poll = clock::now();
  for (;;) {
    {
      std::unique_lock lock(m_loop->lock());
      exchange& e = m_exchanges[{0, 0}];
      if (!e.result && !e.failure && !m_failed) m_changed.wait_for(lock, set_up_poll_interval);
      if (e.result) {
        read_contacts(std::move(*e.result));
        m_exchanges.erase({0, 0});
        m_set_up = !m_failed;
      }
    }
    if (m_set_up) return;
    check_wait();
    // A rank that cannot reach the tree leaves its error in the store.
    if (rank() != 0 || clock::now() - last_poll < 200ms) continue;
    last_poll = clock::now();
    m_polls_store = true;
    try {
      const auto found = store.wait({failed_key}, 0ms);
      m_polls_store = false;
      if (found) throw unpacked(found->second);
      if (is_late_now()) m_settings.late(late_ranks_text(store));
    } catch (const all_ranks_present&) {
      m_polls_store = false;
    }
  }
}

void job_process::read_contacts(bytes all) {
  reader in(all.data(), all.size());
  std::vector<std::uint32_t> begins;
  for (int r = 0; r < size() && in.good(); ++r) {
    begins.push_back(static_cast<std::uint32_t>(in.rest() - all.data()));
    const contact c = contact::take_from(in);
    if (c.rank != r || c.size != size()) break;
  }
  if (!in.complete() || begins.size() != static_cast<std::size_t>(size()))
    return fail_start({SUCL_ERROR_INTERNAL, "the addresses of the ranks cannot be read",
                       "Start every rank with the same build of SuCL"});
  m_contacts = std::move(all);
  m_contact_begin = std::move(begins);
}

// Has no addresses while it is unknown.
contact job_process::contact_of(int rank) const {
  if (m_contact_begin.empty()) return m_parent && m_parent->rank == rank ? *m_parent : contact{};
  const std::uint32_t begin = m_contact_begin[static_cast<std::size_t>(rank)];
  reader in(m_contacts.data() + begin, m_contacts.size() - begin);
  return contact::take_from(in);
}

// Whether the wait has become long. Once.
bool job_process::is_late_now() {
  if (m_is_late || m_grace_end || clock::now() - m_begun < m_settings.long_wait) return false;
  return m_is_late = true;
}

void job_process::check_wait() {
  if (!m_connects_to.empty() && is_late_now())
    m_settings.late("the store of the rendezvous at " + m_connects_to +
                    " does not answer this process, which is to be rank " + std::to_string(rank()));
  {
    const std::lock_guard lock(m_loop->lock());
    if (m_failed && !m_grace_end) throw m_failed;
    // The exchange that proceeds beside the wait for the store is complete.
    if (m_polls_store && m_exchanges[{0, 0}].result) throw all_ranks_present{};
  }
  const auto now = clock::now();
  if (m_grace_end) {
    m_settings.keep_waiting();  // a rank that does not call this is taken for stuck
    if (now > *m_grace_end) throw problem{SUCL_ERROR_TIMEOUT, "the store does not answer", ""};
    return;
  }
  if (const sucl_status status = m_settings.keep_waiting()) throw problem{status, "", ""};
  if (now - m_begun > m_settings.timeout) throw problem{SUCL_ERROR_TIMEOUT, "", ""};
}

// The cause to report: that of another rank goes before a timeout or a lost peer here, and rank 0
// knows best which ranks are late.
problem job_process::find_cause(key_value_store& store, problem why) {
  const bool late = why.status == SUCL_ERROR_TIMEOUT || why.text.empty();
  const bool lost = why.status == SUCL_ERROR_PEER_LOST;
  m_grace_end = clock::now() + start_grace;
  if (!late && !lost) return why;
  try {
    while (rank() != 0 && clock::now() < *m_grace_end - 1000ms) {
      const auto found = store.wait({failed_key}, 200ms);
      if (found) return unpacked(found->second);
      if (lost) return why;
      const std::lock_guard lock(m_loop->lock());
      if (m_failed) return m_failed;
    }
    if (late) return {why.status, late_ranks_text(store), late_hint};
  } catch (const problem& p) {
    const bool known = why.text.find(unreachable) != std::string::npos;
    if (late) return {why.status, unreachable_text(store, known ? why.text : p.text), late_hint};
  }
  return why;
}

namespace {

std::string waited_since(clock::time_point begin) {
  return in_seconds(std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin));
}

}  // namespace

// For a store that does not answer this rank any more, or never has.
std::string job_process::unreachable_text(const key_value_store& store, const std::string& why) {
  std::string text = m_settings.store_at_rank_0 ? "rank 0, which serves the store of the rendezvous"
                                                : "the store of the rendezvous";
  text += " at " + store.location() + " does not answer";
  if (!m_settings.store_at_rank_0) {
    std::vector<int> others;
    const std::lock_guard lock(m_loop->lock());
    for (int r = 0; r < size(); ++r)
      if (r != rank() && !m_exchanges[{0, 0}].from.contains(r)) others.push_back(r);
    text += ", so that this rank has not heard from " + ranks_text(others);
  }
  text += " within " + waited_since(m_begun);
  const auto reason = why.rfind(unreachable);
  return reason == why.npos ? text : text + why.substr(reason + unreachable.size() - 2);
}

std::string job_process::late_ranks_text(key_value_store& store) {
  auto list = store.missing("member/", size());
  std::erase(list, rank());
  std::string text;
  if (!list.empty()) {
    text = ranks_text(list) + (list.size() == 1 ? " has" : " have") +
           " not arrived at the store at " + store.location() + " within " + waited_since(m_begun) +
           "; the job has " + std::to_string(size()) + " ranks";
  } else {
    std::vector<int> silent;
    const std::lock_guard lock(m_loop->lock());
    const exchange& e = m_exchanges[{0, 0}];
    for (const int c : m_root->position.children)
      if (!e.from.contains(c)) silent.push_back(c);
    text = "every rank has arrived at the store, but ";
    if (silent.empty())
      text += "rank " + std::to_string(m_root->position.parent) +
              ", which connects this rank with the others, has not answered";
    else
      text += "nothing has come from " + ranks_text(silent) + ", or of ranks that connect to " +
              (silent.size() == 1 ? "it," : "them,");
    text += " after " + waited_since(m_begun);
  }
  if (const int n = m_settings.refused(); n > 0)
    text += "; " + std::to_string(n) + (n == 1 ? " connection was" : " connections were") +
            " refused: the other side did not know the secret";
  return text;
}

// Reports a failed start to all ranks: those in the tree along it, the others through the store.
void job_process::report(key_value_store& store, const problem& why) {
  {
    const std::lock_guard lock(m_loop->lock());
    fail_start(why);
  }
  try {
    store.put(failed_key, packed(why));
  } catch (const problem&) {
  }
  const auto until = clock::now() + (rank() == 0 ? 1000ms : 300ms);
  while (clock::now() < until) {
    m_settings.keep_waiting();
    std::this_thread::sleep_for(set_up_poll_interval);
  }
}

void job_process::fail_start(const problem& why) {
  if (m_failed || m_set_up) return;
  m_failed = why;
  writer out(frame_type::failed);
  out.number(why.status).text(why.text).text(why.hint);
  const auto frame = out.frame();
  for (const auto& [at, l] : m_links)
    if (l.welcome) l.at->send(frame);
  m_changed.notify_all();
}

}  // namespace sucl::tcp
