// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/record_signals.hpp"

#include "core/record/flight_recorder.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>

namespace sucl::core {
namespace {

struct watched_signal {
  int number;
  bool crash;            // the others are requests, which also end what is well
  bool programs = true;  // the program handles or ignores it
  bool taken = false;    // the handler here was installed
  struct sigaction before{};
};

std::array g_signals{
    watched_signal{SIGSEGV, true}, watched_signal{SIGBUS, true},  watched_signal{SIGFPE, true},
    watched_signal{SIGILL, true},  watched_signal{SIGABRT, true}, watched_signal{SIGTERM, false},
    watched_signal{SIGINT, false}, watched_signal{SIGHUP, false}, watched_signal{SIGQUIT, false}};
std::mutex g_mutex;  // of g_signals, but for the handler
std::array<std::atomic<flight_recorder*>, 16> g_records;
std::atomic<long> g_writer{0};  // the thread that writes them

bool is_default(const struct sigaction& a) {
  return (a.sa_flags & SA_SIGINFO) == 0 && a.sa_handler == SIG_DFL;
}

void write_records(const watched_signal& s) {
  for (auto& slot : g_records)
    if (flight_recorder* r = slot.load(std::memory_order_acquire))
      if (s.crash || r->busy()) r->end_by(s.number, s.crash);
}

// Makes system calls alone. A second thread that crashes waits for the first one to write; a crash
// while writing is handed on.
void write_and_end(int number, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const auto s = std::find_if(g_signals.begin(), g_signals.end(),
                              [&](const watched_signal& w) { return w.number == number; });
  const long self = syscall(SYS_gettid);
  long writer = 0;
  if (g_writer.compare_exchange_strong(writer, self))
    write_records(*s);
  else if (writer != self)
    while (g_writer.load(std::memory_order_acquire) != 0) poll(nullptr, 0, 1);
  sigaction(number, &s->before, nullptr);
  g_writer.store(0, std::memory_order_release);
  // An instruction that failed is tried again, for its next handler to see why.
  const bool by_instruction = s->crash && number != SIGABRT && info->si_code > 0;
  if (!by_instruction) raise(number);
  errno = error;
}

bool is_own(const struct sigaction& a) {
  return (a.sa_flags & SA_SIGINFO) != 0 && a.sa_sigaction == write_and_end;
}

void take(watched_signal& s) {
  struct sigaction now{};
  if (s.taken || s.programs || sigaction(s.number, nullptr, &now) != 0) return;
  if (!is_default(now) && !s.crash) return;
  s.before = now;
  struct sigaction own{};
  own.sa_sigaction = write_and_end;
  own.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
  sigemptyset(&own.sa_mask);
  s.taken = sigaction(s.number, &own, nullptr) == 0;
}

void give_back(watched_signal& s) {
  struct sigaction now{};
  if (s.taken && sigaction(s.number, nullptr, &now) == 0 && is_own(now))
    sigaction(s.number, &s.before, nullptr);
  s.taken = false;
}

}  // namespace

void note_own_signals() noexcept {
  const std::lock_guard lock(g_mutex);
  for (watched_signal& s : g_signals) {
    struct sigaction now{};
    if (!s.taken) s.programs = sigaction(s.number, nullptr, &now) != 0 || !is_default(now);
  }
}

void write_on_signals(flight_recorder& record) noexcept {
  const std::lock_guard lock(g_mutex);
  for (auto& slot : g_records) {
    flight_recorder* none = nullptr;
    if (!slot.compare_exchange_strong(none, &record)) continue;
    for (watched_signal& s : g_signals) take(s);
    return;
  }
}

void forget_on_signals(flight_recorder& record) noexcept {
  const std::lock_guard lock(g_mutex);
  for (auto& slot : g_records) {
    flight_recorder* mine = &record;
    slot.compare_exchange_strong(mine, nullptr);
  }
  if (std::all_of(g_records.begin(), g_records.end(), [](const auto& r) { return !r.load(); }))
    for (watched_signal& s : g_signals) give_back(s);
}

}  // namespace sucl::core
