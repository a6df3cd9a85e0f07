// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "failed_start.hpp"

#include "store/store.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>

namespace sucl::tcp {

using namespace std::chrono_literals;

namespace {

constexpr auto report_limit = 5s;

bool is_of_this_machine(const endpoint& e) {
  if (e.is_loopback()) return true;
  const auto own = own_addresses("");
  return std::any_of(own.begin(), own.end(),
                     [&](const endpoint& mine) { return mine.same_address(e); });
}

void put_failure(const store_location& where, const problem& why) {
  const auto until = clock::now() + std::min<clock::duration>(where.timeout, report_limit);
  std::shared_ptr<store_server> server;
  const std::string& host = where.hosts.front();
  const endpoint at = where.port == 0
                          ? endpoint_of(host)
                          : resolve_within(until - clock::now(), host, where.port).front();
  if (is_of_this_machine(at) && !accepts_connections(at)) {
    if (where.port == 0) return;  // who has made an id serves until all ranks have come
    endpoint here = at.is_loopback() ? at : endpoint();
    here.set_port(where.port);
    bool in_use = false;
    try {
      server = store_server::start(reactor::of_process(), listen_at(here, &in_use), where.secret);
    } catch (const problem&) {
      if (!in_use) throw;  // else rank 0 has come meanwhile
    }
  }
  tcp_store store(reactor::of_process(), where.secret, where.hosts, where.port, [&] {
    if (clock::now() > until) throw why;
  });
  store.put(failed_key, packed(why));
  while (server && clock::now() < until) std::this_thread::sleep_for(20ms);
  if (server) server->stop();
}

}  // namespace

std::string packed(const problem& p) {
  return std::to_string(p.status) + "\n" + p.text + "\n" + p.hint;
}

problem unpacked(const std::string& text) {
  const auto first = text.find('\n'), second = text.find('\n', first + 1);
  if (first == text.npos || second == text.npos) return {SUCL_ERROR_INTERNAL, text, ""};
  const int status = std::atoi(text.c_str());
  return {status > SUCL_SUCCESS && status <= SUCL_ERROR_INTERNAL ? status : SUCL_ERROR_INTERNAL,
          text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

void report_failed_start(const store_location& where, const problem& why) noexcept {
  try {
    const bool known = !where.hosts.empty() && !where.hosts.front().empty();
    if (known && !where.secret.empty()) put_failure(where, why);
  } catch (const problem&) {
  } catch (const std::exception&) {
  }
}

}  // namespace sucl::tcp
