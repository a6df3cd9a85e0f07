// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/system/file.hpp"
#include "core/record/diagnose.hpp"
#include "core/record/flight_recorder.hpp"
#include "core/record/record_file.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace sucl::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* dump_examples =
    "PID is a rank, or what has started ranks: sucl run, mpiexec, a shell. The ranks go on, and "
    "may be stopped or inside a library.\n\n"
    "Examples:\n"
    "  sucl dump 12345                                 says which files it has written\n"
    "  sucl dump $(pgrep -f 'sucl run') && sucl diagnose\n\n"
    "Exit code: 0; 1 if there is no rank, or its record cannot be read.";

constexpr const char* diagnose_examples =
    "Ranks write a file when something fails or a signal ends them, into SUCL_RECORD_DIR or the "
    "user's cache, and sucl dump does. Of a folder the newest job is read, without FILEs that "
    "of the folder where ranks write. A rank without a file counts as one that has left none.\n\n"
    "Examples:\n"
    "  sucl diagnose\n"
    "  sucl diagnose node1 node2/job-00c0ffee00c0ffee.rank-*\n\n"
    "Exit code: 0 if no rank waits, 1 if one is late, missing or has called something else.";

// Where ranks write, as far as the environment says.
std::string folder_of_ranks() {
  const char* set = std::getenv("SUCL_RECORD_DIR");
  const std::string named = set ? set : "";
  return named.empty() || named == "none" ? core::record_folder() : named;
}

// The records of the job that was written last in a folder.
words newest_records(const std::string& folder) {
  std::error_code ignored;
  std::string newest;
  fs::file_time_type written;
  words names;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("job-", 0) != 0 || name.find(".rank-") == name.npos) continue;
    names.push_back(name);
    const auto time = entry.last_write_time(ignored);
    if (!newest.empty() && time < written) continue;
    newest = name.substr(0, name.find('.') + 1);
    written = time;
  }
  words found;
  for (const std::string& name : names)
    if (name.rfind(newest, 0) == 0) found.push_back((fs::path(folder) / name).string());
  std::sort(found.begin(), found.end());
  if (found.empty())
    throw exit_error(exit_code::failure, "there is no record of a job in '" + folder +
                                             "'. Ranks write one when something fails; `sucl dump "
                                             "PID` writes those of a job that runs.");
  return found;
}

std::vector<int> child_processes(int of) {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(of) + "/task", ignored)) {
    std::ifstream list(task.path() / "children");
    for (int child = 0; list >> child;) found.push_back(child);
  }
  return found;
}

// The process and all that it has started.
std::vector<int> family_of(int process) {
  std::vector<int> all{process};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const int child : child_processes(all[i])) all.push_back(child);
  return all;
}

// The records in the memory of a process: one, or one for each of its ranks.
std::vector<std::string> memories_of(int process) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.find(std::string("memfd:") + core::flight_recorder::memory_name) != target.npos)
      found.push_back(entry.path().string());
  }
  return found;
}

void write_record(const std::string& from, const std::string& to) {
  const base::file_content content = base::read_regular_file(from);
  std::ofstream file(to, std::ios::binary);
  if (!(file << content.text).flush())
    throw exit_error(exit_code::failure,
                     "cannot write '" + to + "'. Name a folder of your own with --output.");
}

struct found_record {
  int rank = 0;
  std::string memory;
};

// By the name of the file. Where a process has several ranks, its own record, which has no
// communicator, is none.
std::map<std::string, found_record> records_of(const std::vector<int>& processes) {
  std::map<std::string, found_record> found;
  for (const int process : processes)
    for (const int one : family_of(process)) {
      const auto memories = memories_of(one);
      for (const std::string& memory : memories) {
        const core::rank_history h = core::read_record(memory);
        if (memories.size() > 1 && h.members.empty()) continue;
        found[core::record_name(h.job, h.rank)] = {h.rank, memory};
      }
    }
  return found;
}

}  // namespace

int dump_command(const words& arguments) {
  std::vector<int> processes;
  std::string output = folder_of_ranks();
  CLI::App app{"Writes the last operations of running ranks to files, for sucl diagnose.",
               "sucl dump"};
  app.add_option("PID", processes, "Ranks, or what has started them")->required();
  app.add_option("-o,--output", output, "Where to write (default: where ranks do)")
      ->type_name("FOLDER");
  app.footer(dump_examples);
  if (!parse(app, arguments)) return exit_code::success;
  for (const int process : processes)
    if (!fs::exists("/proc/" + std::to_string(process)))
      throw exit_error(exit_code::failure, "there is no process " + std::to_string(process) + ".");
  const auto found = records_of(processes);
  if (found.empty())
    throw exit_error(exit_code::failure,
                     "neither process " + std::to_string(processes.front()) +
                         " nor what it has started is a rank whose memory can be read. Name the "
                         "launcher or a rank on this machine, as the user who has started it.");
  std::error_code ignored;
  fs::create_directories(output, ignored);
  for (const auto& [name, record] : found) {
    const std::string file = (fs::path(output) / name).string();
    write_record(record.memory, file);
    std::printf("rank %d: %s\n", record.rank, file.c_str());
  }
  return exit_code::success;
}

int diagnose_command(const words& arguments) {
  words files;
  CLI::App app{
      "Names the ranks that are late, are missing or have called something else, from their "
      "records.",
      "sucl diagnose"};
  app.add_option("FILE", files, "Records, one for each rank, or folders");
  app.footer(diagnose_examples);
  if (!parse(app, arguments)) return exit_code::success;
  if (files.empty()) files.push_back(folder_of_ranks());
  std::vector<core::rank_history> ranks;
  for (const std::string& file : files) {
    std::error_code ignored;
    const words records = fs::is_directory(file, ignored) ? newest_records(file) : words{file};
    for (const std::string& record : records) ranks.push_back(core::read_record(record));
  }
  const core::record_diagnosis found = core::diagnose(ranks);
  std::printf("%s.\n", found.sentence.c_str());
  return found.trouble ? exit_code::failure : exit_code::success;
}

}  // namespace sucl::tools
