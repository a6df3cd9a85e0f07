// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "abandoned_names.hpp"
#include "command.hpp"
#include "input.hpp"
#include "report.hpp"

#include "base/system/started_ranks.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

// `sucl watch-rank INBOX LIVE_ON READERS INPUT PROGRAM...`: what `sucl run` has the launcher start
// instead of each rank. It starts the program, forwards signals, reports to the inbox how the
// program ends, and ends alike. Launchers differ in what they make of a rank that a signal ends;
// this does not.
namespace sucl::tools {
namespace {

constexpr timespec between_rank_polls{0, 100'000'000};
constexpr timespec between_polls_when_over{0, 20'000'000};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s :
       {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGWINCH})
    sigaddset(&set, s);
  return set;
}

int rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return -1;
}

// So that the program knows where it comes from, whatever becomes of its environment on the way.
void take_name_of_run() {
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* value = std::getenv(size)) {
      prctl(PR_SET_NAME, (base::name_of_sucl_run + std::string(value)).c_str());
      return;
    }
}

class watched_rank {
 public:
  watched_rank(const std::string& inbox, bool live_on, const std::string& input,
               const words& program)
      : m_line(inbox), m_live_on(live_on), m_rank(rank_of_environment()) {
    const sigset_t set = watched_signals();
    sigprocmask(SIG_BLOCK, &set, &m_before);
    take_name_of_run();
    m_child = fork();
    if (m_child == 0) become(input, program);
    if (m_child < 0)
      throw exit_error(exit_code::failure,
                       std::string("cannot start a process: ") + std::strerror(errno) + ".");
    // The launcher's connections stay open here: Hydra kills the others when one closes.
    report(rank_report::what::started, 0);
  }

  // Waits for the end; returns the exit code.
  int wait() {
    const sigset_t set = watched_signals();
    for (;;) {
      siginfo_t info{};
      const int number = sigtimedwait(&set, &info, &between_rank_polls);
      if (number > 0 && number != SIGCHLD) forward_signal(info);
      if (poll_rank()) return leave();
      if (m_line.listen() == report_line::word::end) kill(m_child, SIGKILL);
      // No process is left that would end the rank.
      if (getppid() != m_parent) kill(m_child, SIGKILL);
    }
  }

 private:
  [[noreturn]] void become(const std::string& input, const words& program) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != m_self) _exit(exit_code::failure);
    if (!take_input(input.c_str())) {
      std::fprintf(
          stderr,
          "sucl: cannot read the standard input of `sucl run --stdin all`: %s. It is there "
          "for the ranks of its machine; give others a file.\n",
          std::strerror(errno));
      _exit(exit_code::failure);
    }
    sigprocmask(SIG_SETMASK, &m_before, nullptr);
    execvp(program.front().c_str(), raw_arguments(program).data());
    std::fprintf(stderr, "sucl: cannot start '%s': %s.\n", program.front().c_str(),
                 std::strerror(errno));
    _exit(exit_code::not_found);
  }

  // A launcher that has made a process group of the rank signals all of it: then the program has
  // the signal already.
  void forward_signal(const siginfo_t& info) {
    const bool to_group = getpgrp() == m_self && info.si_pid == m_parent;
    if (!to_group) kill(m_child, info.si_signo);
    const bool ends = info.si_signo == SIGTERM || info.si_signo == SIGINT;
    if (ends && m_stopped) kill(m_child, SIGKILL);
  }

  // Whether the program has ended.
  bool poll_rank() {
    int status = 0;
    while (waitpid(m_child, &status, WNOHANG | WUNTRACED | WCONTINUED) == m_child) {
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        m_stopped = WIFSTOPPED(status);
        report(m_stopped ? rank_report::what::stopped : rank_report::what::continued, 0);
        continue;
      }
      m_status = status;
      return true;
    }
    return false;
  }

  // Ends as the program has, so that the launcher ends the others. Where they shall live on, it
  // must not: Open MPI's lets them after a signal, when asked to, and the others' after a status
  // only.
  int leave() {
    const bool reported = report(rank_report::what::ended, m_status);
    remove_abandoned_names(m_begun);
    if (reported && m_live_on) stay();
    const int code = shell_code(m_status);
    const bool by_signal = m_live_on ? reported && std::getenv("OMPI_COMM_WORLD_RANK") && code != 0
                                     : WIFSIGNALED(m_status);
    if (by_signal) end_by(m_live_on ? SIGKILL : WTERMSIG(m_status));
    return code;
  }

  // A launcher that saw this end would end the others.
  void stay() {
    const sigset_t set = watched_signals();
    while (m_line.listen() == report_line::word::none && getppid() == m_parent) {
      const int number = sigtimedwait(&set, nullptr, &between_polls_when_over);
      if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT) return;
    }
  }

  static void end_by(int number) {
    const rlimit nothing{0, 0};
    setrlimit(RLIMIT_CORE, &nothing);  // the program has left one
    std::fflush(nullptr);
    std::signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    raise(number);
  }

  bool report(rank_report::what event, int status) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return m_line.send({event, m_rank, status, 0, std::chrono::nanoseconds(now).count()});
  }

  report_line m_line;
  bool m_live_on;
  int m_rank;
  std::time_t m_begun = std::time(nullptr);
  pid_t m_self = getpid();
  pid_t m_parent = getppid();
  pid_t m_child = -1;
  bool m_stopped = false;
  int m_status = 0;
  sigset_t m_before{};
};

}  // namespace

int watch_rank_command(const words& arguments) {
  if (arguments.size() < 5) wrong_usage("watch-rank is for `sucl run` alone.");
  const bool reads = arguments[2] != "first" || rank_of_environment() == 0;
  watched_rank rank(arguments[0], arguments[1] == "live-on", reads ? arguments[3] : no_input,
                    {arguments.begin() + 4, arguments.end()});
  return rank.wait();
}

}  // namespace sucl::tools
