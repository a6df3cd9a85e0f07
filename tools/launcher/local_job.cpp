// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "local_job.hpp"

#include "input.hpp"
#include "launcher_processes.hpp"
#include "report.hpp"

#include "base/system/started_ranks.hpp"
#include "core/control/control_plane.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

extern char** environ;

namespace sucl::tools {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::steady_clock::time_point;

constexpr timespec between_local_polls{0, 20'000'000};
// For ranks to end by themselves, once they are asked to.
constexpr auto time_to_end_ranks = 5s;
// For ranks that fail for the same cause as the first one: they say what they know, in their
// message and their record.
constexpr auto time_to_fail_ranks = 2s;
constexpr auto stopped_for = 300ms;

sigset_t local_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    sigaddset(&set, s);
  return set;
}

time_point now() { return std::chrono::steady_clock::now(); }

class local_job {
 public:
  local_job(const job& what, const std::string& input) : m_what(what), m_input(input) {
    const sigset_t set = local_signals();
    sigprocmask(SIG_BLOCK, &set, &m_before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // what ranks leave behind stays a descendant
    m_id = core::make_job_id("loopback", 0, what.ranks);
    const std::string name = base::name_of_sucl_run + std::to_string(what.ranks);
    prctl(PR_SET_NAME, name.c_str());
    for (int r = 0; r < what.ranks; ++r) start(r, m_id);
  }

  int wait() {
    const sigset_t set = local_signals();
    while (m_running > 0) {
      siginfo_t info{};
      const int number = sigtimedwait(&set, &info, &between_local_polls);
      if (number > 0 && number != SIGCHLD) forward_signal(info);
      poll_ranks();
      terminate_remaining();
    }
    const int code = !m_first          ? exit_code::success
                     : m_what.recovers ? code_of_recovered()
                                       : code_of(*m_first);
    if (code != exit_code::success || m_termination_requested) end_left_behind();
    if (!m_first) return code;
    std::string others;
    if (m_failed > 1) others = "; " + std::to_string(m_failed - 1) + " more failed after it";
    std::fprintf(stderr, "sucl: rank %d %s%s\n", *m_first,
                 describe_end(m_ranks[static_cast<std::size_t>(*m_first)].status).c_str(),
                 others.c_str());
    return code;
  }

 private:
  struct one {
    pid_t process = -1;  ///< -1: it has ended
    int status = 0;
    bool stopped = false;
  };

  int code_of(int rank) const { return shell_code(m_ranks[static_cast<std::size_t>(rank)].status); }

  // A rank that a signal has ended is what the others have recovered from, if they have.
  int code_of_recovered() const {
    bool any_right = false;
    for (const one& r : m_ranks) {
      if (WIFEXITED(r.status) && WEXITSTATUS(r.status) != 0) return shell_code(r.status);
      any_right = any_right || r.status == 0;
    }
    return any_right ? exit_code::success : code_of(*m_first);
  }

  // The environment of a rank, made before the fork: other threads may hold the lock of malloc
  // then.
  std::vector<std::string> variables_of(int rank, const std::string& id) const {
    const std::vector<std::pair<std::string, std::string>> own{
        {"SUCL_CONTROL_PLANE", "tcp"},
        {"SUCL_TCP_ID", id},
        {"SUCL_TCP_RANK", std::to_string(rank)},
        {"SUCL_TCP_SIZE", std::to_string(m_what.ranks)}};
    std::vector<std::string> list;
    const auto is_own = [&](const std::string& entry) {
      for (const auto& [name, value] : own)
        if (entry.compare(0, name.size() + 1, name + "=") == 0) return true;
      return false;
    };
    for (char** entry = environ; entry && *entry; ++entry)
      if (!is_own(*entry)) list.emplace_back(*entry);
    for (const auto& [name, value] : own) list.push_back(name + "=" + value);
    return list;
  }

  void start(int rank, const std::string& id) {
    std::vector<std::string> variables = variables_of(rank, id);
    std::vector<char*> raw;
    for (std::string& v : variables) raw.push_back(v.data());
    raw.push_back(nullptr);
    const auto arguments = raw_arguments(m_what.program);
    const pid_t self = getpid();
    const pid_t made = fork();
    if (made == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(exit_code::failure);
      take_input(rank != 0 && m_input == no_copy ? no_input : m_input.c_str());
      sigprocmask(SIG_SETMASK, &m_before, nullptr);
      execve(arguments.front(), arguments.data(), raw.data());
      std::fprintf(stderr, "sucl: cannot start '%s': %s.\n", arguments.front(),
                   std::strerror(errno));
      _exit(exit_code::not_found);
    }
    if (made < 0) {
      const int error = errno;
      signal_all(SIGKILL);
      throw exit_error(exit_code::failure, "cannot start rank " + std::to_string(rank) + ": " +
                                               std::strerror(error) +
                                               ". Start fewer ranks, or raise ulimit -u.");
    }
    m_ranks.push_back({made, 0, false});
    ++m_running;
  }

  void signal_all(int number) const {
    for (const one& r : m_ranks)
      if (r.process > 0) kill(r.process, number);
  }

  // A terminal signals the ranks too. At the second signal all are ended.
  void forward_signal(const siginfo_t& info) {
    if (info.si_code != SI_KERNEL) signal_all(info.si_signo);
    if (info.si_signo == SIGUSR1 || info.si_signo == SIGUSR2) return;
    if (m_termination_requested) m_kill_at = now();
    m_termination_requested = true;
  }

  void poll_ranks() {
    int status = 0;
    pid_t child = 0;
    while ((child = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
      const auto rank = std::find_if(m_ranks.begin(), m_ranks.end(),
                                     [&](const one& r) { return r.process == child; });
      if (rank == m_ranks.end()) continue;
      rank->stopped = WIFSTOPPED(status);
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
      const int number = static_cast<int>(rank - m_ranks.begin());
      rank->process = -1;
      rank->status = status;
      --m_running;
      if (m_running > 0) fail_start(number, status);
      if (status != 0) note_failure(number);
    }
  }

  // What was started by ranks that are scripts, and outlives these. Services have a session of
  // their own.
  static std::vector<pid_t> left_behind() {
    std::vector<pid_t> all = processes_of(getpid());
    std::erase_if(all, [](pid_t p) { return p == getpid() || getsid(p) != getsid(0); });
    return all;
  }

  // A process that is stopped gets the signal once it goes on.
  void end_left_behind() {
    const auto kill_at = now() + time_to_end_ranks;
    bool first = true;
    for (auto all = left_behind(); !all.empty() && now() < kill_at + time_to_fail_ranks;
         all = left_behind()) {
      const bool late = now() > kill_at;
      for (const pid_t p : all)
        if (first || late) kill(p, late ? SIGKILL : SIGTERM);
      for (const pid_t p : all)
        if (first) kill(p, SIGCONT);
      first = false;
      nanosleep(&between_local_polls, nullptr);
      poll_ranks();
    }
  }

  // Ranks that still look for the others would look for this one until their timeout. Those that
  // have found each other do not learn of it.
  void fail_start(int rank, int status) {
    std::string hint = "Look for what rank " + std::to_string(rank) + " has printed";
    if (WIFEXITED(status))
      hint +=
          ". Every rank has to make its sucl::runtime, with SUCL_CONTROL_PLANE, SUCL_TCP_ID, "
          "SUCL_TCP_RANK and SUCL_TCP_SIZE as `sucl run` has set them";
    core::fail_start(m_id, SUCL_ERROR_PEER_LOST,
                     "rank " + std::to_string(rank) + " " + describe_end(status) +
                         " before all ranks had found each other",
                     hint);
  }

  void note_failure(int rank) {
    if (!m_first) m_first = rank;
    if (m_ended_here) return;  // it is this process that has ended the rest
    ++m_failed;
  }

  void end_after_failure() {
    if (!m_failed_at) m_failed_at = now();
    if (now() - *m_failed_at < (m_what.survive ? m_what.time_to_report : time_to_fail_ranks))
      return;
    m_ended_here = true;
    for (std::size_t r = 0; m_what.survive && r < m_ranks.size(); ++r)
      if (m_ranks[r].process > 0)
        std::fputs(describe_late_end(static_cast<int>(r), *m_first).c_str(), stderr);
    signal_all(SIGTERM);
    m_kill_at = now() + time_to_end_ranks;
  }

  void terminate_remaining() {
    const bool failed = m_first.has_value();
    const bool some_ended = m_running < static_cast<int>(m_ranks.size());
    if (m_termination_requested) {
      if (some_ended && !m_kill_at) m_kill_at = now() + time_to_end_ranks;
    } else if (failed && !m_what.recovers && !m_ended_here) {
      end_after_failure();
    }
    int stopped = 0, last = -1;
    for (std::size_t r = 0; r < m_ranks.size(); ++r)
      if (m_ranks[r].process > 0 && m_ranks[r].stopped) {
        ++stopped;
        last = static_cast<int>(r);
      }
    // Stopped ranks that all others have left after a failure would be waited for for ever.
    const bool stuck = failed && m_running > 0 && stopped == m_running;
    if (!stuck)
      m_stuck_since.reset();
    else if (!m_stuck_since)
      m_stuck_since = now();
    const bool end_stopped = m_stuck_since && now() - *m_stuck_since > stopped_for;
    if (end_stopped)
      std::fprintf(stderr,
                   "sucl: rank %d is stopped, and every other rank has ended: it is ended\n", last);
    if (end_stopped || (m_kill_at && now() > *m_kill_at)) {
      m_ended_here = true;
      m_kill_at = now() + time_to_end_ranks;
      m_stuck_since.reset();
      signal_all(SIGKILL);
    }
  }

  const job& m_what;
  const std::string& m_input;
  std::string m_id;
  sigset_t m_before{};
  std::vector<one> m_ranks;
  int m_running = 0;
  std::optional<int> m_first;  ///< rank that failed
  int m_failed = 0;
  bool m_ended_here = false;
  bool m_termination_requested = false;  ///< by a signal to this process, which the ranks have
  std::optional<time_point> m_kill_at, m_stuck_since, m_failed_at;
};

}  // namespace

int run_local(const job& what, const std::string& input) { return local_job(what, input).wait(); }

}  // namespace sucl::tools
