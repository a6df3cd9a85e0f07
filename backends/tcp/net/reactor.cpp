// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "reactor.hpp"

#include "problem.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace sucl::tcp {
namespace {

std::mutex g_lock;
// Leaked on purpose: see of_process().
std::shared_ptr<reactor>* g_reactor = nullptr;

}  // namespace

reactor::reactor() {
  m_epoll = epoll_create1(EPOLL_CLOEXEC);
  m_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (m_epoll < 0 || m_wake < 0 || epoll_ctl(m_epoll, EPOLL_CTL_ADD, m_wake, &wanted) != 0) {
    const int error = errno;
    if (m_epoll >= 0) close(m_epoll);
    if (m_wake >= 0) close(m_wake);
    throw problem{
        SUCL_ERROR_UNAVAILABLE,
        std::string("the system gives no descriptors for sockets: ") + std::strerror(error),
        "Raise the limit of open files: ulimit -n"};
  }
  // Signals are for the threads of the program, but for faults of this one.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  m_thread = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(m_thread.native_handle(), "sucl-tcp");
}

reactor::~reactor() {
  if (m_inherited) {
    m_thread.detach();
    return;
  }
  {
    const std::lock_guard lock(m_lock);
    m_stop = true;
    wake();
  }
  m_thread.join();
  close(m_epoll);
  close(m_wake);
}

const std::shared_ptr<reactor>& reactor::of_process() {
  const std::lock_guard lock(g_lock);
  if (!g_reactor || (*g_reactor)->m_inherited) {
    g_reactor = new std::shared_ptr<reactor>(std::make_shared<reactor>());
    register_for_fork();
  }
  return *g_reactor;
}

// A child has neither the thread nor a right to the connections: they are the parent's, whose end
// others are to see.
void reactor::register_for_fork() {
  static const int registered = pthread_atfork(
      [] {
        g_lock.lock();
        if (g_reactor) (*g_reactor)->m_lock.lock();
      },
      [] {
        if (g_reactor) (*g_reactor)->m_lock.unlock();
        g_lock.unlock();
      },
      [] {
        if (g_reactor) {
          (*g_reactor)->close_in_child();
          (*g_reactor)->m_lock.unlock();
        }
        g_lock.unlock();
      });
  (void)registered;
}

void reactor::close_in_child() {
  if (m_inherited) return;
  m_inherited = true;
  for (const auto& [socket, what] : m_watched) close(socket);
  close(m_epoll);
  close(m_wake);
}

void reactor::add(int socket, std::shared_ptr<handler> target, std::uint32_t events) {
  if (m_inherited) return;
  watched w{std::move(target), ++m_serial};
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.u64 = w.serial;
  epoll_ctl(m_epoll, EPOLL_CTL_ADD, socket, &wanted);
  m_sockets[w.serial] = socket;
  m_watched[socket] = std::move(w);
}

void reactor::change(int socket, std::uint32_t events) {
  const auto found = m_watched.find(socket);
  if (found == m_watched.end() || m_inherited) return;
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.u64 = found->second.serial;
  epoll_ctl(m_epoll, EPOLL_CTL_MOD, socket, &wanted);
}

void reactor::remove(int socket) {
  const auto found = m_watched.find(socket);
  if (found == m_watched.end() || m_inherited) return;
  epoll_ctl(m_epoll, EPOLL_CTL_DEL, socket, nullptr);
  m_sockets.erase(found->second.serial);
  m_watched.erase(found);
}

void reactor::at(clock::time_point when, const std::shared_ptr<handler>& target) {
  const bool first = m_timers.empty() || when < m_timers.begin()->first;
  m_timers.emplace(when, target);
  if (first && !in_own_thread()) wake();
}

void reactor::wake() {
  const std::uint64_t one = 1;
  (void)!write(m_wake, &one, sizeof one);
}

int reactor::wait_ms() {
  if (m_timers.empty()) return -1;
  const auto left = m_timers.begin()->first - clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

void reactor::run_timers() {
  const auto now = clock::now();
  while (!m_timers.empty() && m_timers.begin()->first <= now) {
    const auto target = m_timers.begin()->second.lock();
    m_timers.erase(m_timers.begin());
    if (target) target->due();
  }
}

void reactor::run() {
  std::array<epoll_event, 256> events;
  std::unique_lock lock(m_lock);
  while (!m_stop) {
    const int limit = wait_ms();
    lock.unlock();
    const int n = epoll_wait(m_epoll, events.data(), static_cast<int>(events.size()), limit);
    lock.lock();
    for (int i = 0; i < n; ++i) {
      const epoll_event& e = events[static_cast<std::size_t>(i)];
      const std::uint64_t key = e.data.u64;  // a copy: epoll_event is packed
      if (key == 0) {
        std::uint64_t count = 0;
        (void)!read(m_wake, &count, sizeof count);
        continue;
      }
      const auto socket = m_sockets.find(key);
      if (socket == m_sockets.end()) continue;
      const std::shared_ptr<handler> target = m_watched[socket->second].target;
      target->ready(e.events);
    }
    run_timers();
  }
}

}  // namespace sucl::tcp
