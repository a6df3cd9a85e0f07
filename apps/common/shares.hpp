// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How an application shares its work among ranks of unlike speed, from its command line.
#pragma once

#include "common/program/command_line.hpp"

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace apps {

enum class balance {
  off,     ///< shares stay as they are
  probe,   ///< speeds are measured before the work begins
  dynamic  ///< and while it goes on
};

struct share_options {
  balance how = balance::off;
  std::vector<double> speeds;  ///< given by hand; empty: all alike
  int slow_rank = -1;          ///< works as if its device were so many times slower
  int slow_turns = 1;

  void define(command_line& line) {
    line.add_choice(
        "--balance", how,
        {{"off", balance::off}, {"probe", balance::probe}, {"dynamic", balance::dynamic}},
        "Share work by speed: off, probe (measured once), dynamic (off)");
    line.add_read(
        "--speeds", [this](const std::string& t) { read_speeds(t); },
        "Speeds of the ranks to begin with, as in 3,1 (all alike)", "X,...");
    line.add_read(
        "--slow", [this](const std::string& t) { read_slow(t); },
        "Let a rank compute everything FACTOR times, to try --balance", "RANK:FACTOR");
  }

  /// Those to begin with, one a rank.
  std::vector<double> speeds_of(int ranks) const {
    if (speeds.empty()) return std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
    if (speeds.size() != static_cast<std::size_t>(ranks))
      throw usage_error("--speeds: " + std::to_string(speeds.size()) + " speeds for " +
                        std::to_string(ranks) + " ranks. Give one a rank");
    return speeds;
  }
  int turns_of(int rank) const { return rank == slow_rank ? slow_turns : 1; }

 private:
  void read_speeds(const std::string& text) {
    speeds.clear();
    std::istringstream list(text);
    double speed = 0;
    char comma = ',';
    while (comma == ',' && list >> speed && speed > 0) {
      speeds.push_back(speed);
      if (!(list >> comma)) return;
    }
    throw usage_error("--speeds: '" + text + "' is no list of positive numbers, as 3,1");
  }
  void read_slow(const std::string& text) {
    std::istringstream pair(text);
    char colon = 0;
    if (!(pair >> slow_rank >> colon >> slow_turns) || colon != ':' || slow_rank < 0 ||
        slow_turns < 1 || slow_turns > 1000 || pair.peek() != EOF)
      throw usage_error("--slow: '" + text + "' is no rank and factor from 1 to 1000, as 1:4");
  }
};

}  // namespace apps
