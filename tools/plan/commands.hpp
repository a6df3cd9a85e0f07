// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The sub-commands of `sucl plan`, each with the words that follow its name; they return the exit
/// code.
#pragma once

#include "command.hpp"

namespace sucl::tools {

int plan_build(const words& arguments);
int plan_show(const words& arguments);
int plan_verify(const words& arguments);
int plan_simulate(const words& arguments);
int plan_play(const words& arguments);
int plan_search(const words& arguments);
int plan_compare(const words& arguments);
int plan_machines(const words& arguments);
int plan_algorithms(const words& arguments);

}  // namespace sucl::tools
