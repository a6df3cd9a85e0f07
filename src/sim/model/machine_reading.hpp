// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the readers of a description's parts share: values with their ranges, from one node of TOML
/// each. All throw errc::configuration with the location in the file.
#pragma once

#include "base/bounds.hpp"
#include "base/config/toml_reading.hpp"
#include "sim/model/machine.hpp"

#include <cstdint>
#include <string>

namespace sucl::sim::file {

// What figures may be, in the units of the file: from nothing to far more than there is. What a
// simulation adds up then stays far below what its clock counts, and what it keeps of ports in
// memory.
using range = base::bounds<double>;
using whole_range = base::bounds<std::int64_t>;
inline constexpr double microseconds = 1e-6;
inline constexpr double gigabytes = 1e9;       // a second
inline constexpr range times{0, 1e8};          // microseconds
inline constexpr range bandwidths{0, 1e6};     // GB/s
inline constexpr double min_bandwidth = 1e-6;  // of one that is a limit
inline constexpr whole_range rank_counts{1, max_machine_ranks};

[[noreturn]] void refuse_value(const toml::node& node, const base::toml_document& document,
                               const std::string& name, const std::string& wanted);
double real_of(const toml::node& node, const base::toml_document& document, const std::string& name,
               const range& wanted, double unit);
std::int32_t whole_of(const toml::node& node, const base::toml_document& document,
                      const std::string& name, const whole_range& wanted);
std::string text_of(const toml::node& node, const base::toml_document& document,
                    const std::string& name);

/// The figure as it is written, in the file's unit, so that it is read back to the same one.
std::string number_in(double figure, double unit);

/// The graph of a description, and the levels that it stands for, into `m`.
void read_graph(machine& m, const toml::table& table, const base::toml_document& document);
std::string graph_to_toml(const machine& m);

}  // namespace sucl::sim::file
