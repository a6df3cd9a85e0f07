// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include "abandoned_names.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {
namespace {

using clock = std::chrono::steady_clock;

struct pipe_ends {
  int read = -1;
  int write = -1;
};

pipe_ends make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw exit_error(exit_code::failure,
                     std::string("cannot make a pipe: ") + std::strerror(errno) + ".");
  return {ends[0], ends[1]};
}

// A folder for the temporary files of the new process, which may end without removing them: MPI
// libraries leave shared memory and folders behind.
class own_folder {
 public:
  own_folder() {
    std::error_code ignored;
    std::string pattern = (std::filesystem::temp_directory_path(ignored) / "sucl-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) m_path = pattern;
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  ~own_folder() {
    std::error_code ignored;
    if (!m_path.empty()) std::filesystem::remove_all(m_path, ignored);
  }
  std::vector<std::pair<std::string, std::string>> variables() const {
    if (m_path.empty()) return {};
    return {{"TMPDIR", m_path}, {"OMPI_MCA_btl_sm_backing_directory", m_path}};
  }

 private:
  std::string m_path;
};

// While it lives, a signal that would end this process ends the child first; this one follows when
// it has cleaned up.
class interruptions {
 public:
  interruptions() {
    s_caught = 0;
    s_child = 0;
    struct sigaction action{};
    action.sa_handler = [](int number) {
      s_caught = number;
      if (s_child > 0) kill(s_child, SIGKILL);
    };
    for (std::size_t i = 0; i < signals.size(); ++i) {
      sigaction(signals[i], nullptr, &m_before[i]);
      if (m_before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
    }
  }
  interruptions(const interruptions&) = delete;
  interruptions& operator=(const interruptions&) = delete;
  ~interruptions() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &m_before[i], nullptr);
  }
  static void pass_to(pid_t child) {
    s_child = child;
    if (s_caught != 0 && child > 0) kill(child, SIGKILL);
  }
  static int caught() { return s_caught; }

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  static inline volatile sig_atomic_t s_caught = 0;
  static inline volatile sig_atomic_t s_child = 0;
  std::array<struct sigaction, signals.size()> m_before{};
};

// What the new process does; the parent has made everything ready that needs memory.
[[noreturn]] void become(const words& command, const variable_changes& variables, int output,
                         int errors) {
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  apply(variables);
  execvp(command.front().c_str(), raw_arguments(command).data());
  const std::string problem =
      "cannot start '" + command.front() + "': " + std::strerror(errno) + "\n";
  (void)!write(STDERR_FILENO, problem.data(), problem.size());
  _exit(exit_code::not_found);
}

// Reads both pipes to their ends; false if `deadline` comes first.
bool read_all(std::array<pollfd, 2>& pipes, std::array<std::string*, 2> texts,
              clock::time_point deadline) {
  std::array<char, 4096> buffer{};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
    if (left.count() <= 0) return false;
    if (poll(pipes.data(), pipes.size(), static_cast<int>(left.count())) < 0) continue;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      const ssize_t bytes = read(pipes[i].fd, buffer.data(), buffer.size());
      if (bytes > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(bytes));
      } else if (bytes == 0 || errno != EINTR) {
        pipes[i].fd = -1;
      }
    }
  }
  return true;
}

child_result run_held(const words& command, variable_changes variables,
                      std::chrono::seconds limit) {
  const own_folder folder;
  variables.replace = folder.variables();
  const pipe_ends output = make_pipe();
  const pipe_ends errors = make_pipe();
  const std::time_t begun = std::time(nullptr);
  const pid_t child = fork();
  if (child == 0) become(command, variables, output.write, errors.write);
  interruptions::pass_to(child);
  close(output.write);
  close(errors.write);
  child_result result;
  if (child < 0) {
    result.code = exit_code::not_found;
    result.errors = std::string("cannot start a process: ") + std::strerror(errno);
  } else {
    std::array<pollfd, 2> pipes{pollfd{output.read, POLLIN, 0}, pollfd{errors.read, POLLIN, 0}};
    result.timed_out = !read_all(pipes, {&result.output, &result.errors}, clock::now() + limit);
    if (result.timed_out) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (status != 0) remove_abandoned_names(begun);
  }
  interruptions::pass_to(0);
  close(output.read);
  close(errors.read);
  return result;
}

}  // namespace

child_result run_child(const words& command, const variable_changes& variables,
                       std::chrono::seconds limit) {
  child_result result;
  {
    const interruptions held;
    result = run_held(command, variables, limit);
  }
  if (const int number = interruptions::caught()) raise(number);
  return result;
}

}  // namespace sucl::tools
