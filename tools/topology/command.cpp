// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/command.hpp"
#include "tools/launcher/environment.hpp"
#include "tools/measure/reading.hpp"
#include "tools/topology/topology.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

namespace sucl::tools {
namespace {

void write_picture(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) throw exit_error(exit_code::failure, "cannot write " + file + ". Is the disk full?");
}

void show(const topology_options& wanted, bool in_job) {
  const topology_report r = gather_topology(wanted, in_job);
  if (r.rank != 0) return;
  if (!wanted.svg.empty()) write_picture(wanted.svg, draw_topology(r));
  using json = nlohmann::ordered_json;
  const std::string text =
      wanted.as_json ? topology_json(r).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                     : topology_text(r);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int show_topology(const topology_options& wanted) {
  if (!wanted.svg.empty()) check_file("--svg", wanted.svg);
  const bool in_job = job_flavour().has_value();
  if (!in_job) prepare_sycl(load_environment());
  try {
    show(wanted, in_job);
    return exit_code::success;
  } catch (const std::exception& e) {
    // Without the usual end of MPI, so that the launcher ends the other ranks.
    std::fprintf(stderr, "%s\n", e.what());
    std::fflush(nullptr);
    std::_Exit(exit_code::failure);
  }
}

}  // namespace sucl::tools
