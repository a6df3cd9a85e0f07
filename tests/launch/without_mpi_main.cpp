// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A rank of a job without MPI: without_mpi [--id ID|--make|--store FOLDER RANK SIZE] WHAT...
// `without_mpi --fork SIZE` makes an id and forks as many ranks, which it is none of.
//
//   check      operations of all sorts, each with its result checked
//   die RANK   that rank is killed while the others wait for it; they must hear of it
//   exit CODE  rank 1 ends with that status, without SuCL
//   unlike     ranks on several nodes, which nothing connects
//   stay       until the input ends
//   adopt      an MPI communicator, which there is not
#include <sucl/sucl.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::printf("FAILED: %s\n", what);
}

// The store of a program: a folder.
sucl::rendezvous_store folder_store(const std::filesystem::path& folder) {
  const auto file = [folder](std::string key) {
    for (char& c : key)
      if (c == '/') c = '_';
    return folder / key;
  };
  sucl::rendezvous_store s;
  s.put = [file](const std::string& key, const std::string& value) {
    const auto draft = file(key + "." + std::to_string(getpid()));
    std::ofstream(draft, std::ios::binary) << value;
    std::filesystem::rename(draft, file(key));
  };
  s.get = [file](const std::string& key) {
    std::ifstream in(file(key), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  s.wait = [file](const std::string& key, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!std::filesystem::exists(file(key))) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  };
  return s;
}

bool has_mpi() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libmpi") != std::string::npos) return true;
  return false;
}

void check_operations(sucl::runtime& rt, sucl::communicator comm) {
  const int rank = comm.rank(), size = comm.size();
  expect(rank == rt.rank() && size == rt.size(), "rank and size");
  std::vector<double> x(1000, rank + 1.0);
  comm.blocking().allreduce(x.data(), x.size(), sucl::op::sum);
  expect(x[999] == size * (size + 1) / 2.0, "allreduce");
  std::vector<int> all(static_cast<std::size_t>(size), -1);
  comm.blocking().allgather(&rank, all.data(), 1);
  for (int r = 0; r < size; ++r) expect(all[static_cast<std::size_t>(r)] == r, "allgather");
  int token = rank;
  int got = -1;
  comm.blocking().sendrecv(&token, 1, (rank + 1) % size, &got, 1, (rank + size - 1) % size);
  expect(got == (rank + size - 1) % size, "sendrecv");
  const auto half = comm.split(rank % 2, rank);
  int ranks = 1;
  half.blocking().allreduce(&ranks, 1, sucl::op::sum);
  expect(ranks == half.size(), "split");
  comm.blocking().barrier();
  expect(!has_mpi(), "no MPI library is in the process");
  if (rank == 0)
    std::printf("%d ranks by %s: %s\n", size, rt.control_plane().c_str(),
                comm.explain(sucl::kind::allreduce, 8000).c_str());
}

int run(sucl::runtime& rt, const std::string& what, const std::string& argument) {
  if (what == "stay") {
    std::puts("started");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  sycl::queue queue;
  if (what == "adopt") {
    const int none = 0;
    try {
      (void)rt.adopt(none, queue);
      expect(false, "adopt() throws");
    } catch (const sucl::error& e) {
      expect(std::strstr(e.what(), "runs without MPI") != nullptr, e.what());
    }
    return failures;
  }
  auto comm = rt.world(queue);
  if (what == "exit" && rt.rank() == 1) std::_Exit(std::atoi(argument.c_str()));
  if (what == "crash" && rt.rank() == std::atoi(argument.c_str())) raise(SIGSEGV);
  if (what == "die") {
    try {
      comm.blocking().barrier();  // in which the others may still be when that one is lost
      if (rt.rank() == std::atoi(argument.c_str())) raise(SIGKILL);
      int one = 1;
      for (;;) comm.blocking().allreduce(&one, 1, sucl::op::max);
    } catch (const sucl::error& e) {
      const bool named = std::string(e.what()).find("rank " + argument) != std::string::npos;
      std::printf("rank %d: %s: %s\n", rt.rank(), named ? "it is named" : "NOT named", e.what());
      std::fflush(stdout);
      // For those who have not heard of it yet one rank is dead, and not two.
      std::this_thread::sleep_for(std::chrono::seconds(2));
      std::_Exit(named ? 0 : 4);
    }
  }
  if (what == "exit") {
    comm.blocking().barrier();
    return 0;
  }
  check_operations(rt, comm);
  return failures;
}

sucl::runtime start(std::vector<std::string>& words) {
  const auto take = [&] {
    const std::string first = words.empty() ? "" : words.front();
    if (!words.empty()) words.erase(words.begin());
    return first;
  };
  if (words.empty() || words.front().substr(0, 2) != "--") return {};
  const std::string how = take();
  const std::string with = how == "--make" ? "" : take();
  const int rank = std::atoi(take().c_str()), size = std::atoi(take().c_str());
  if (how == "--store") return sucl::runtime::join(folder_store(with), rank, size);
  sucl::unique_id id;
  if (how == "--make") {
    id = sucl::unique_id::make("loopback");
    std::printf("%s\n", id.to_string().c_str());
    std::fflush(stdout);
  } else {
    id = sucl::unique_id::from_string(with);
  }
  return sucl::runtime::join(id, rank, size);
}

// The thread that serves the start is the parent's, and no child keeps its connections.
int fork_ranks(int size) {
  const auto id = sucl::unique_id::make("loopback");
  for (int rank = 0; rank < size; ++rank) {
    if (fork() != 0) continue;
    sucl::runtime rt = sucl::runtime::join(id, rank, size);
    check_operations(rt, rt.world(sycl::queue{}));
    rt.shut_down();
    std::fflush(stdout);
    std::_Exit(failures);
  }
  int worst = 0;
  for (int status = 0; wait(&status) > 0;) worst = worst ? worst : status;
  return worst == 0 ? 0 : 5;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "--fork") return fork_ranks(std::atoi(words[1].c_str()));
    sucl::runtime rt = start(words);
    return run(rt, words.empty() ? "check" : words[0], words.size() > 1 ? words[1] : "");
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    std::fflush(stdout);
    std::_Exit(3);
  }
}
