// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/record_signals.hpp"

#include "core/record/flight_recorder.hpp"

#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
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
std::array<bool, NSIG> g_handled_before{};  // by the program, or what it had begun
std::mutex g_mutex;                         // of both, but for the handler
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

bool handles(const struct sigaction& a) {
  const bool ignores = (a.sa_flags & SA_SIGINFO) == 0 && a.sa_handler == SIG_IGN;
  return !is_default(a) && !ignores && !is_own(a);
}

bool is_raised_by_threads(int number) {
  constexpr std::array all{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  return std::find(all.begin(), all.end(), number) != all.end();
}

// Whether a handler is of the executable itself, not of a library.
bool is_in_program(const struct sigaction& a) {
  auto at = reinterpret_cast<std::uintptr_t>(a.sa_sigaction);
  const auto look = [](dl_phdr_info* program, std::size_t, void* handler) {
    const auto& where = *static_cast<const std::uintptr_t*>(handler);
    const bool is_inside = std::any_of(
        program->dlpi_phdr, program->dlpi_phdr + program->dlpi_phnum, [&](const auto& part) {
          const std::uintptr_t begin = program->dlpi_addr + part.p_vaddr;
          return part.p_type == PT_LOAD && where >= begin && where - begin < part.p_memsz;
        });
    return is_inside ? 1 : -1;  // the executable comes first
  };
  return dl_iterate_phdr(look, &at) == 1;
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
  static bool noted = false;
  for (int number = 1; number <= SIGRTMAX && !noted; ++number) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) == 0 && handles(now))
      g_handled_before[static_cast<std::size_t>(number)] = true;
  }
  noted = true;
  for (watched_signal& s : g_signals) {
    struct sigaction now{};
    if (!s.taken) s.programs = sigaction(s.number, nullptr, &now) != 0 || !is_default(now);
  }
}

bool program_handles_signals() noexcept {
  const std::lock_guard lock(g_mutex);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction now{};
    if (is_raised_by_threads(number) || sigaction(number, nullptr, &now) != 0) continue;
    if (handles(now) && (g_handled_before[static_cast<std::size_t>(number)] || is_in_program(now)))
      return true;
  }
  return false;
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
