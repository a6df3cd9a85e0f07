// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/program/application.hpp"

#include "common/program/guard.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>

namespace apps {
namespace {

constexpr int failure = 1, usage = 2;

void validate(const options& o) {
  if (o.iterations < 1 || o.iterations > 100000000)
    throw usage_error("--iterations: use a number from 1 to 100000000");
  if (o.breakdown < 0) throw usage_error("--breakdown: use a number from 0 on");
}

// A file that cannot be written is found before the run, not after it.
std::string unwritable(context& c, const std::string& path) {
  if (path.empty() || c.rank() != 0 || std::ofstream(path, std::ios::app)) return {};
  return "cannot write '" + path + "'. Does its folder exist?";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

void report(context& c, const std::string& app, const outcome& o) {
  if (c.rank() != 0) return;
  nlohmann::ordered_json j;
  j["application"] = app;
  j["variant"] = name(c.wanted().kind);
  j["ranks"] = c.size();
  j["device"] = c.device_name();
  j["mpi"] = c.mpi_name();
  j["iterations"] = o.iterations;
  j["seconds"] = o.seconds;
  if (c.wanted().breakdown > 0)
    for (std::size_t p = 0; p < o.phases.size(); ++p) j["phases"][phase_names[p]] = o.phases[p];
  j["passed"] = o.passed;
  j.update(o.details);
  for (const auto& [key, value] : o.details.items())
    if (key != "checks") std::printf("%-14s %s\n", key.c_str(), value.dump().c_str());
  if (o.details.contains("checks"))
    for (const auto& check : o.details["checks"])
      std::printf("check          %s: %s, at most %s\n", check["what"].get<std::string>().c_str(),
                  number(check["value"]).c_str(), number(check["limit"]).c_str());
  if (c.wanted().breakdown > 0) {
    std::printf("one iteration  ");
    for (std::size_t p = 0; p < o.phases.size(); ++p)
      std::printf("%s %s ms%s", phase_names[p], number(1e3 * o.phases[p]).c_str(),
                  p + 1 < o.phases.size() ? ", " : " (each phase by itself)\n");
  }
  if (!c.wanted().json.empty()) std::ofstream(c.wanted().json) << j.dump(2) << '\n';
  std::printf("RESULT %s %s %d %.6f check=%s\n", app.c_str(), name(c.wanted().kind), c.size(),
              o.seconds, o.passed ? "passed" : "FAILED");
  std::fflush(stdout);
}

int complain(const std::string& where, const char* what, int code) {
  std::fprintf(stderr, "%s: %s\n", where.c_str(), what);
  return code;
}

}  // namespace

void outcome::check(const std::string& what, double value, double limit) {
  if (!(std::abs(value) <= limit)) passed = false;  // and for NaN
  details["checks"].push_back({{"what", what}, {"value", value}, {"limit", limit}});
}

int run_application(int argc, char** argv, const std::string& name, const std::string& summary,
                    settings& wanted, const std::function<outcome(context&)>& body) {
  std::string where = name;
  try {
    command_line line(name, summary);
    add_options(line, wanted.common);
    wanted.define(line);
    // The runtime's own option is not ours.
    line.add_foreign("--sucl-config", "Configuration file of SuCL", "FILE");
    if (!line.parse(argc, argv)) return 0;
    validate(wanted.common);
    wanted.validate();
    sucl::runtime runtime(argc, argv);
    try {
      context c(runtime, wanted.common);
      where += ": rank " + std::to_string(c.rank());
      std::optional<guard> watch;
      if (c.uses_mpi()) watch.emplace(where, c.world().members(), c.rank());
      c.agree(unwritable(c, wanted.common.json));
      c.agree(unwritable(c, wanted.common.plot));
      const outcome o = body(c);
      report(c, name, o);
      c.world().blocking().barrier();  // no rank leaves before every rank has what it needs
      return o.passed ? 0 : failure;
    } catch (const usage_error& e) {  // thrown by every rank, so all of them end in good order
      return complain(where, e.what(), usage);
    }
  } catch (const usage_error& e) {
    return complain(where, e.what(), usage);
  } catch (const std::exception& e) {
    return complain(where, e.what(), failure);
  }
}

}  // namespace apps
