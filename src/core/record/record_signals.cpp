// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/record_signals.hpp"

#include "core/record/flight_recorder.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>

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
std::mutex g_mutex;  // of it, but for the handler
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

// LLVM's handlers remove files and end the process. A SYCL runtime has it to compile kernels, in
// libraries of these names.
bool is_of_compiler(const struct sigaction& a) {
  constexpr std::array<std::string_view, 8> all{"libintelocl",      "libcommon_clang.", "libpocl",
                                                "libopencl-clang.", "libLLVM",          "libclang",
                                                "libigc.",          "libigdfcl."};
  Dl_info object{};
  if (dladdr(reinterpret_cast<void*>(a.sa_sigaction), &object) == 0 || !object.dli_fname)
    return false;
  const std::string_view path = object.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(all.begin(), all.end(),
                     [&](std::string_view one) { return name.substr(0, one.size()) == one; });
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

bool handles_signals_from_outside() noexcept {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction now{};
    if (is_raised_by_threads(number) || sigaction(number, nullptr, &now) != 0) continue;
    if (handles(now) && !is_of_compiler(now)) return true;
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
