// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Runs steps and judges what they gave.
#pragma once

#include "trial.hpp"

#include <map>
#include <tuple>

namespace sucl::torture {

/// What has been found so far, on this rank.
struct findings {
  std::uint64_t operations = 0;
  std::uint64_t wrong = 0;
};

class stage {
 public:
  stage(runtime& rt, std::uint64_t seed, bool messages_in_order);

  void run(std::uint64_t index, const step& s);
  /// Waits for the queues that operations are on.
  void wait();
  /// Compares results between ranks; collective. Returns how many steps differed.
  std::uint64_t compare();

  findings found;
  torture::board board;

 private:
  using trials = std::vector<std::unique_ptr<trial>>;
  void one_by_one(const step& s);
  void window(const step& s);
  void chained(const step& s);
  void persistent(const step& s);
  void compiled(const step& s);
  void allocated(const step& s);
  void threads(const step& s);
  void renewed(const step& s);
  void repeated(trial& t, std::size_t times, const std::function<void(std::size_t)>& start,
                const step& s);
  void check_result(trial& t, const step& s, std::size_t i, std::uint64_t turn = 0);
  void report(const std::string& what, const trial& t, const step& s, std::size_t i);
  trials make(const step& s);

  pool m_pool;
  std::uint64_t m_seed;
  std::uint64_t m_index = 0;
  std::map<std::tuple<group_of, int, std::size_t, op, type>, compiled_plan> m_plans;
};

}  // namespace sucl::torture
