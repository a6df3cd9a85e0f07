// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What launchers without MPI leave in the environment.
#include "core/control/launch.hpp"
#include "core/control/control_plane.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

using environment = std::map<std::string, std::string>;

std::optional<launch> find(const environment& e) {
  return find_launch([&](const char* name) {
    const auto found = e.find(name);
    return found == e.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const environment& e) {
  try {
    const auto found = find(e);
    return found && found->wrong ? found->wrong->message : "";
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), errc::configuration);
    return wrong.message();
  }
}

const environment torchrun{{"RANK", "3"},
                           {"WORLD_SIZE", "8"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "node7"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "abc"}};
const environment slurm{
    {"SLURM_PROCID", "5"},  {"SLURM_NTASKS", "99"},   {"SLURM_STEP_NUM_TASKS", "6"},
    {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_NODELIST", "n[03-07,9],login1"}};

environment with(environment e, const std::string& name, const std::string& value) {
  e[name] = value;
  return e;
}

TEST(launch, is_none_without_variables) {
  EXPECT_FALSE(find({}));
  EXPECT_FALSE(find({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(find({{"MASTER_ADDR", "node7"}}));
  // A batch script outside of a step is one process.
  EXPECT_FALSE(find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}}));
}

TEST(launch, reads_torchrun_and_leaves_its_port_to_it) {
  const auto l = *find(torchrun);
  EXPECT_EQ(l.rank, 3);
  EXPECT_EQ(l.size, 8);
  EXPECT_EQ(l.address, "node7");
  EXPECT_EQ(l.port, 29501);
  EXPECT_EQ(find(with(torchrun, "MASTER_PORT", "65535"))->port, 65534);
  EXPECT_EQ(find(with(torchrun, "SUCL_TCP_PORT", "4000"))->port, 4000);
  EXPECT_EQ(find(with(torchrun, "SUCL_TCP_ADDRESS", "fd00::1"))->address, "fd00::1");
  // All ranks of a job have one secret, those of another job another.
  EXPECT_EQ(find(with(torchrun, "RANK", "0"))->secret, l.secret);
  EXPECT_NE(find(with(torchrun, "TORCHELASTIC_RUN_ID", "abd"))->secret, l.secret);
  EXPECT_NE(find(with(torchrun, "SUCL_TCP_SECRET", "s"))->secret, l.secret);
}

TEST(launch, reads_the_step_of_slurm) {
  const auto l = *find(slurm);
  EXPECT_EQ(l.rank, 5);
  EXPECT_EQ(l.size, 6);
  EXPECT_EQ(l.address, "n03");
  EXPECT_GE(l.port, 12000);
  EXPECT_LT(l.port, 32000);
  EXPECT_NE(find(with(slurm, "SLURM_STEP_ID", "1"))->port, l.port);
  EXPECT_NE(find(with(slurm, "SLURM_STEP_ID", "1"))->secret, l.secret);
  // What `sucl run --launcher srun` says goes before.
  const auto by_id = *find(with(slurm, "SUCL_TCP_ID", "sucl1-..."));
  EXPECT_EQ(by_id.id, "sucl1-...");
  EXPECT_EQ(by_id.rank, 5);
}

TEST(launch, finds_the_first_host_of_a_list) {
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("n[3,5]"), "n3");
  EXPECT_EQ(first_host("n[003-010]"), "n003");
  EXPECT_EQ(first_host("rack[1-2]n[7-9]-ib,x"), "rack1n7-ib");
  EXPECT_EQ(first_host("n[1"), "");
  EXPECT_EQ(first_host(""), "");
}

TEST(launch, reads_pals_with_the_nodes_of_pbs) {
  const std::string file = ::testing::TempDir() + "sucl_launch_nodes";
  std::ofstream(file) << "x1000c0\nx1000c1\n";
  const environment pals{
      {"PALS_RANKID", "1"}, {"PMI_SIZE", "4"}, {"PALS_APID", "x-y"}, {"PBS_NODEFILE", file}};
  const auto l = *find(pals);
  EXPECT_EQ(l.rank, 1);
  EXPECT_EQ(l.size, 4);
  EXPECT_EQ(l.address, "x1000c0");
  EXPECT_EQ(find(with(pals, "MASTER_ADDR", "h"))->address, "h");
  EXPECT_EQ(find(with(pals, "PALS_SIZE", "3"))->size, 3);
  std::remove(file.c_str());
}

TEST(launch, own_variables_go_before_all_others) {
  const auto l = *find(with(with(with(torchrun, "SUCL_TCP_RANK", "0"), "SUCL_TCP_SIZE", "2"),
                            "SUCL_TCP_ID", "sucl1-x"));
  EXPECT_EQ(l.rank, 0);
  EXPECT_EQ(l.size, 2);
  EXPECT_EQ(l.id, "sucl1-x");
}

TEST(launch, refuses_what_cannot_be) {
  EXPECT_NE(refusal(with(torchrun, "RANK", "8")).find("RANK is 8, and WORLD_SIZE is 8"),
            std::string::npos);
  EXPECT_NE(refusal(with(torchrun, "RANK", "-1")).find("RANK is '-1'"), std::string::npos);
  EXPECT_NE(refusal(with(torchrun, "WORLD_SIZE", "many")).find("'many'"), std::string::npos);
  EXPECT_NE(refusal(with(torchrun, "MASTER_PORT", "70000")).find("MASTER_PORT"), std::string::npos);
  EXPECT_NE(refusal(with(slurm, "SUCL_TCP_PORT", "x")).find("SUCL_TCP_PORT"), std::string::npos);
}

// A process without one of them would compute as a job of one.
TEST(launch, refuses_what_is_incomplete) {
  const auto without = [](environment e, const std::string& name) {
    e.erase(name);
    return e;
  };
  const environment own{{"SUCL_TCP_RANK", "1"}, {"SUCL_TCP_SIZE", "3"}, {"SUCL_TCP_ID", "sucl1-x"}};
  const environment pals{{"PALS_RANKID", "1"}, {"PALS_SIZE", "4"}, {"MASTER_ADDR", "h"}};
  for (const auto& [whole, names] : {std::pair{own, std::vector{"SUCL_TCP_RANK", "SUCL_TCP_SIZE"}},
                                     {torchrun, {"RANK", "WORLD_SIZE", "MASTER_ADDR"}},
                                     {slurm, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}},
                                     {pals, {"PALS_RANKID", "PALS_SIZE"}}})
    for (const std::string name : names) {
      EXPECT_EQ(refusal(whole), "");
      EXPECT_NE(refusal(without(whole, name)).find(name + " is not set"), std::string::npos)
          << name;
    }
  // The others are where they were, and learn of it.
  const auto l = *find(without(torchrun, "RANK"));
  EXPECT_EQ(l.address, "node7");
  EXPECT_EQ(l.port, 29501);
  EXPECT_EQ(l.secret, find(torchrun)->secret);
}

// With these variables alone of those that launchers set.
std::string started_with(const char* plane, const environment& e) {
  for (const char* name : {"SUCL_TCP_RANK", "SUCL_TCP_SIZE", "SUCL_TCP_ID", "PMI_SIZE",
                           "MPI_LOCALNRANKS", "RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    const auto given = e.find(name);
    given == e.end() ? ::unsetenv(name) : ::setenv(name, given->second.c_str(), 1);
  }
  base::config settings;
  settings.control_plane = plane;
  settings.mpi.flavour = "auto";
  try {
    const control_plane_choice found = choose_control_plane(settings);
    return found.file.empty() ? "alone" : found.file;
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), errc::unavailable);
    return wrong.message();
  }
}

TEST(launch, of_several_leaves_none_alone) {
  const environment own{{"SUCL_TCP_RANK", "0"}, {"SUCL_TCP_SIZE", "1"}};
  EXPECT_EQ(started_with("mpi", {}), "alone");
  EXPECT_EQ(started_with("mpi", with(own, "RANK", "1")), "alone");
  EXPECT_NE(started_with("mpi", torchrun).find("started 8 processes (WORLD_SIZE)"),
            std::string::npos);
  EXPECT_NE(started_with("mpi", with(own, "SUCL_TCP_SIZE", "3")).find("no launcher of MPI"),
            std::string::npos);
  EXPECT_EQ(started_with("auto", own), "libsucl_tcp.so");
  for (const char* plane : {"auto", "tcp"})
    EXPECT_NE(
        started_with(plane, with(own, "PMI_SIZE", "3")).find("started 3 processes (PMI_SIZE)"),
        std::string::npos);
  // What Hydra leaves where PMI's variables have gone; one rank on a node says nothing.
  EXPECT_NE(started_with("auto", with(own, "MPI_LOCALNRANKS", "2"))
                .find("started 2 processes (MPI_LOCALNRANKS)"),
            std::string::npos);
  EXPECT_EQ(started_with("auto", with(own, "MPI_LOCALNRANKS", "1")), "libsucl_tcp.so");
  EXPECT_NE(started_with("auto", {{"MPI_LOCALNRANKS", "2"}}).find("does not say which it is"),
            std::string::npos);
  // `sucl run` may be started by a rank of another job.
  EXPECT_EQ(started_with("tcp", with(with(own, "PMI_SIZE", "3"), "SUCL_TCP_ID", "sucl1-x")),
            "libsucl_tcp.so");
  started_with("mpi", {});
}

}  // namespace
}  // namespace sucl::core
