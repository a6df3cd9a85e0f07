// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One rank does not take part in a step of set-up: faults_setup STEP kill|stop|wrong|throw
// [FOLDER]. The last rank is the victim. Each other one prints "told: " and its error. In FOLDER
// ranks wait for each other before they end, because launchers end all ranks with the first that
// fails. setup_test.py runs this.
#include <sucl/sucl.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

int number(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return -1;
}

const int rank = number({"SUCL_TCP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
const int size = number({"SUCL_TCP_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
const bool is_victim = rank == size - 1;

void come_to_harm(const std::string& how) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the others are waiting by then
  if (how == "throw") throw std::runtime_error("the victim's own");
  raise(how == "kill" ? SIGKILL : SIGSTOP);
}

void take_part(const std::string& step, sucl::runtime& rt) {
  if (step == "world") {
    (void)rt.world();
    return;
  }
  auto world = rt.world();
  world.blocking().barrier();
  if (step == "end") return;
  if (step == "allocate") (void)world.allocate<int>(100000);
  if (step == "dup") (void)world.dup();
  if (step == "split") (void)world.split(world.rank() % 2);
  if (step == "operation") world.blocking().barrier();
  if (step == "compile") {
    sucl::composition c{world.size()};
    for (int r = 0; r < world.size(); ++r)
      c.reduction(c.send(static_cast<std::size_t>(r) * 8, 8),
                  c.recv(static_cast<std::size_t>(r) * 8, 8), sucl::all, r, sucl::op::sum);
    (void)world.compile<int>(c, {});
  }
}

void be_the_victim(const std::string& step, const std::string& how, sucl::runtime& rt) {
  if (step == "world") return come_to_harm(how);
  auto world = rt.world();
  world.blocking().barrier();
  come_to_harm(how);
}

// Where all that are to print something have done so. The limit is for ranks that hang.
void wait_for_others(const char* folder, bool victim_too) {
  if (!folder) return;
  const auto name = [&](int r) { return std::filesystem::path(folder) / std::to_string(r); };
  std::ofstream(name(rank)).flush();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int r = 0; r < (victim_too ? size : size - 1); ++r)
    while (!std::filesystem::exists(name(r)) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string step = argc > 2 ? argv[1] : "", how = argc > 2 ? argv[2] : "";
  const char* const folder = argc > 3 ? argv[3] : nullptr;
  const bool victim_ends_itself = how == "wrong" || how == "throw";
  if (is_victim && how == "wrong") setenv(step.c_str(), "/nonexist", 1);
  if (is_victim && step == "start" && how != "wrong") come_to_harm(how);
  try {
    sucl::runtime rt{argc, argv};
    if (is_victim)
      be_the_victim(step, how, rt);
    else
      take_part(step, rt);
    std::printf("rank %d: at the end\n", rank);
    std::fflush(stdout);
  } catch (const sucl::error& e) {
    std::printf("rank %d told: %s\n", rank, e.what());
    std::fflush(stdout);
    wait_for_others(folder, victim_ends_itself);
    return 1;
  } catch (const std::exception& e) {
    std::printf("the victim: %s\n", e.what());
    std::fflush(stdout);
    wait_for_others(folder, victim_ends_itself);
    return 1;
  }
  wait_for_others(folder, victim_ends_itself);
  return 0;
}
