// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include "abandoned_names.hpp"
#include "input.hpp"
#include "launcher_processes.hpp"
#include "local_job.hpp"
#include "report.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
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
#include <ctime>
#include <optional>
#include <set>
#include <thread>

extern char** environ;

namespace sucl::tools {
namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

// SuCL's own variables that say which MPI the ranks belong to.
variables flavour_variables(const mpi_flavour& flavour) {
  variables result{{"SUCL_MPI_FLAVOUR", flavour.family}};
  // A second MPI of one family has a module of its own name.
  if (flavour.name != flavour.family) result.emplace_back("SUCL_MPI_MODULE", flavour.module);
  return result;
}

void set_variables(const environment& env, const job& what) {
  apply(env.sycl);
  setenv("SUCL_CONTROL_PLANE", what.flavour ? "mpi" : "tcp", 1);
  if (what.flavour) {
    apply(what.flavour->variables);
    for (const auto& [name, value] : flavour_variables(*what.flavour))
      setenv(name.c_str(), value.c_str(), 1);
  }
  for (const auto& [name, value] : what.variables) setenv(name.c_str(), value.c_str(), 1);
}

// The variables that ranks on other nodes need too.
std::set<std::string> names_to_forward(const environment& env, const mpi_flavour* flavour) {
  std::set<std::string> names;
  const variable_changes none;
  for (const variable_changes* changes : {&env.sycl, flavour ? &flavour->variables : &none}) {
    for (const auto& one : changes->set) names.insert(one.first);
    for (const auto& one : changes->prepend) names.insert(one.first);
  }
  for (char** entry = environ; entry && *entry; ++entry)
    if (std::strncmp(*entry, "SUCL_", 5) == 0)
      names.emplace(*entry, static_cast<std::size_t>(std::strchr(*entry, '=') - *entry));
  return names;
}

// A typing error must not bring a machine down. A user of several machines knows how many
// ranks they bear.
void check_ranks(int ranks) {
  for (const char* job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"})
    if (std::getenv(job)) return;
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int most = std::max(256, 64 * processors);
  if (ranks > most)
    throw exit_error(exit_code::failure,
                     std::to_string(ranks) + " ranks are too many for this machine, which has " +
                         std::to_string(processors) + " processors. Start at most " +
                         std::to_string(most) +
                         ", or, on several machines, start the program with mpiexec or srun.");
}

void check_launcher(const environment& env, const mpi_flavour& flavour) {
  if (access(flavour.launcher.c_str(), X_OK) == 0) return;
  throw exit_error(exit_code::failure, "the launcher of " + flavour.name + ", '" +
                                           flavour.launcher +
                                           "', cannot be run: " + std::strerror(errno) +
                                           ". Install this MPI again ('make setup'), or correct "
                                           "'launcher' in " +
                                           env.file + ", or start without MPI: --launcher local.");
}

words srun_command(const job& what) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : base::split(path ? path : "", ':')) {
    const std::string file = folder + "/srun";
    if (access(file.c_str(), X_OK) != 0) continue;
    words command{file, "-n", std::to_string(what.ranks), "--export=ALL",
                  what.survive ? "--kill-on-bad-exit=0" : "--kill-on-bad-exit=1"};
    if (!what.input.empty()) command.push_back("--input=" + what.input);
    command.insert(command.end(), what.program.begin(), what.program.end());
    return command;
  }
  throw exit_error(exit_code::failure,
                   "there is no srun on PATH. Load Slurm's module, or use --launcher local.");
}

// What a shell does instead of `sucl run`, at a port that is free if it is not taken.
std::string describe_local(const job& what) {
  std::string text = "export SUCL_TCP_ADDRESS=127.0.0.1 SUCL_TCP_PORT=29400 SUCL_TCP_SIZE=" +
                     std::to_string(what.ranks) + "\n";
  for (int r = 0; r < what.ranks; ++r)
    text += "SUCL_TCP_RANK=" + std::to_string(r) + " " + shell_quoted(what.program) + " &\n";
  return text + "wait\n";
}

constexpr timespec between_launcher_polls{0, 20'000'000};
constexpr std::chrono::milliseconds grace{300};
constexpr std::chrono::seconds time_to_end_mpi_job{2};
// After which a job has not ended because of a rank that has failed. MPI's launchers end the others
// at once if that has come to MPI_Init, and some wait for ever otherwise.
constexpr std::chrono::seconds time_to_fail_mpi_job{5};
// In which a launcher that has started the ranks may not have noticed.
constexpr std::chrono::seconds time_to_start_mpi_job{1};
// For a launcher that is to end, and has no rank left. That of Intel MPI, if it is told early, goes
// on for ever to send signals to what has ended.
constexpr std::chrono::seconds time_to_end_launcher{5};

sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    sigaddset(&set, s);
  return set;
}

/// The launcher and what the ranks report.
class supervised {
 public:
  supervised(const words& command, report_inbox& inbox, const job& what)
      : m_inbox(inbox), m_what(what), m_ranks(what.ranks) {
    const sigset_t set = forwarded_signals();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t self = getpid();
    m_launcher = fork();
    if (m_launcher == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // the ranks end with this process
      if (getppid() != self) _exit(exit_code::failure);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      execv(command.front().c_str(), raw_arguments(command).data());
      std::fprintf(stderr, "sucl: cannot start '%s': %s.\n", command.front().c_str(),
                   std::strerror(errno));
      _exit(exit_code::failure);
    }
    if (m_launcher < 0)
      throw exit_error(exit_code::failure,
                       std::string("cannot start the launcher: ") + std::strerror(errno) + ".");
  }

  /// Returns the exit code of the job.
  int wait() {
    const sigset_t set = forwarded_signals();
    int status = 0;
    for (;;) {
      siginfo_t info{};
      const int number = sigtimedwait(&set, &info, &between_launcher_polls);
      // A terminal signals the launcher too.
      if (number > 0 && number != SIGCHLD) {
        if (info.si_code != SI_KERNEL) kill(m_launcher, number);
        note_end_by(number);
      }
      take_reports();
      const pid_t ended = waitpid(m_launcher, &status, WNOHANG);
      if (ended == m_launcher || (ended < 0 && errno == ECHILD)) break;
      end_stopped_ranks();
      end_surviving_ranks();
      repeat_early_signal();
      end_launcher();
      // Ranks of other machines do not report; then no process stays for them.
      const auto ranks = static_cast<std::size_t>(m_ranks);
      if (m_ended.size() == ranks || (!m_ended.empty() && m_started.size() < ranks))
        m_inbox.release();
    }
    take_reports();
    const bool cut_off = m_end_by != 0 && m_ended.size() < static_cast<std::size_t>(m_ranks);
    const int code = shell_code(status);
    return conclude(m_killed || (cut_off && code == 0) ? 128 + m_end_by : code);
  }

 private:
  void take_reports() {
    while (const auto report = m_inbox.next()) {
      using what = rank_report::what;
      if (report->event == what::started) m_started.insert(report->rank);
      if (!m_all_started_at && m_started.size() == static_cast<std::size_t>(m_ranks))
        m_all_started_at = std::chrono::steady_clock::now();
      if (report->event == what::stopped) m_stopped.insert(report->rank);
      if (report->event == what::continued) m_stopped.erase(report->rank);
      if (report->event != what::ended) continue;
      m_stopped.erase(report->rank);
      m_ended.insert(report->rank);
      if (report->status == 0) continue;
      ++m_failed;
      const auto limit = m_what.survive ? m_what.time_to_report : time_to_fail_mpi_job;
      if (!m_first) m_end_at = std::chrono::steady_clock::now() + limit;
      if (!m_first || report->when < m_first->when) m_first = *report;
    }
  }

  // Stopped ranks that all others have left after a failure would be waited for for ever.
  void end_stopped_ranks() {
    const auto now = std::chrono::steady_clock::now();
    const bool stuck = m_first && !m_stopped.empty() &&
                       m_ended.size() + m_stopped.size() == static_cast<std::size_t>(m_ranks);
    if (!stuck) {
      m_stuck_since.reset();
    } else if (!m_stuck_since) {
      m_stuck_since = now;
    } else if (now - *m_stuck_since > grace) {
      std::fprintf(stderr,
                   "sucl: rank %d is stopped, and every other rank has ended: it is ended\n",
                   *m_stopped.begin());
      for (const int rank : m_stopped) m_inbox.end(rank);
      m_stuck_since = now + grace;
    }
  }

  // A rank that is not in SuCL gets no error, and may never end.
  void end_surviving_ranks() {
    if (!m_end_at || m_what.recovers || std::chrono::steady_clock::now() < *m_end_at) return;
    m_end_at = std::chrono::steady_clock::now() + time_to_end_mpi_job;
    bool here = false;
    for (const int rank : m_started) {
      if (m_ended.count(rank)) continue;
      here = true;
      std::fputs(describe_late_end(rank, m_first->rank).c_str(), stderr);
      m_inbox.end(rank);
    }
    if (here) return;
    kill(m_launcher, SIGTERM);  // they are on other machines
    note_end_by(SIGTERM);
  }

  void note_end_by(int signal_number) {
    if (m_end_by != 0 || signal_number == SIGUSR1 || signal_number == SIGUSR2) return;
    m_end_by = signal_number;
    m_told_at = std::chrono::steady_clock::now();
  }

  // MPICH's launcher forgets what it is told while it starts the ranks.
  void repeat_early_signal() {
    if (m_repeated || m_end_by == 0 || !m_all_started_at) return;
    const auto due = *m_all_started_at + time_to_start_mpi_job;
    if (m_told_at > due || std::chrono::steady_clock::now() < due) return;
    m_repeated = true;
    kill(m_launcher, m_end_by);
  }

  // Ranks may take their time for a signal: as long as any is left, the launcher is.
  void end_launcher() {
    if (m_end_by == 0 || std::chrono::steady_clock::now() < m_told_at + time_to_end_launcher)
      return;
    m_told_at += time_to_end_launcher;
    const std::vector<pid_t> left = processes_of(m_launcher);
    if (!is_left_alone(left)) return;
    std::fprintf(stderr,
                 "sucl: the launcher has not ended after signal %d, and no rank is left: "
                 "it is killed\n",
                 m_end_by);
    m_killed = true;
    for (const pid_t process : left) kill(process, SIGKILL);
  }

  int conclude(int code) const {
    if (!m_first) return code;
    std::string others;
    if (m_failed > 1) others = "; " + std::to_string(m_failed - 1) + " more failed after it";
    std::fprintf(stderr, "sucl: rank %d %s%s\n", m_first->rank,
                 describe_end(m_first->status).c_str(), others.c_str());
    return shell_code(m_first->status);
  }

  report_inbox& m_inbox;
  const job& m_what;
  int m_ranks;
  pid_t m_launcher = -1;
  std::optional<rank_report> m_first;  ///< of a rank that failed
  int m_failed = 0;
  std::set<int> m_started, m_ended, m_stopped;
  std::optional<std::chrono::steady_clock::time_point> m_stuck_since, m_end_at;
  int m_end_by = 0;  ///< the signal that ends the launcher; 0: none was sent
  std::chrono::steady_clock::time_point m_told_at;
  std::optional<std::chrono::steady_clock::time_point> m_all_started_at;
  bool m_repeated = false, m_killed = false;
};

}  // namespace

launcher choose_launcher(const environment& env, const std::string& name) {
  if (name == "mpi") return launcher::mpi;
  if (name == "local") return launcher::local;
  if (name == "srun") return launcher::srun;
  if (!name.empty())
    wrong_usage("--launcher: there is no launcher '" + name + "'. " +
                base::did_you_mean(name, {"mpi", "local", "srun"}));
  // One that is broken is an error, not a reason to do something else.
  return env.flavours.empty() && env.problem.empty() ? launcher::local : launcher::mpi;
}

words launcher_command(const environment& env, const job& what) {
  if (what.by == launcher::srun) return srun_command(what);
  const mpi_flavour& flavour = *what.flavour;
  words command{flavour.launcher};
  const auto append = [&command](const words& more) {
    command.insert(command.end(), more.begin(), more.end());
  };
  append(flavour.arguments);
  if (what.survive) append(flavour.survive_arguments);
  // The launchers of the other families hand on the whole environment by themselves.
  if (flavour.family == "openmpi")
    for (const std::string& name : names_to_forward(env, &flavour)) append({"-x", name});
  append({"-n", std::to_string(what.ranks)});
  append(what.program);
  return command;
}

void launch(const environment& env, const job& what) {
  if (what.by != launcher::srun) check_ranks(what.ranks);
  set_variables(env, what);
  // Slurm's launcher supports any choice. MPI's do not, and some never close the input of ranks.
  std::string copy = no_copy;
  if (what.input == "none") {
    leave_input();
    copy = no_input;
  } else if (what.by != launcher::srun &&
             (what.input == "all" || (what.input == "0" && what.by == launcher::mpi))) {
    copy = copy_input();
  }
  if (what.by == launcher::local) std::exit(run_local(what, copy));
  if (what.by == launcher::srun) {
    setenv("SUCL_TCP_ID", core::make_job_id("", 0, what.ranks).c_str(), 1);
    unsetenv("SUCL_TCP_RANK");
  } else {
    check_launcher(env, *what.flavour);
  }
  job reported = what;
  report_inbox inbox;
  const words watch{own_path(),
                    "watch-rank",
                    inbox.name(),
                    what.survive ? "live-on" : "end",
                    what.input == "0" ? "first" : "each",
                    copy};
  reported.program.insert(reported.program.begin(), watch.begin(), watch.end());
  const std::time_t begun = std::time(nullptr);
  const int code = supervised(launcher_command(env, reported), inbox, what).wait();
  // The launcher may have killed what watched over the last rank.
  remove_abandoned_names(begun);
  std::exit(code);
}

std::string describe(const environment& env, const job& what) {
  set_variables(env, what);
  std::set<std::string> names = names_to_forward(env, what.flavour);
  std::string text;
  for (const std::string& name : names)
    if (const char* value = std::getenv(name.c_str()))
      text += "export " + name + "=" + shell_quoted(value) + "\n";
  if (what.by == launcher::local) return text + describe_local(what);
  return text + shell_quoted(launcher_command(env, what)) +
         (what.input == "none" ? " </dev/null\n" : "\n");
}

}  // namespace sucl::tools
