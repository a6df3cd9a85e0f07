// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which provider of libfabric carries the messages, over which interface.
#pragma once

#include "net/library.hpp"
#include "net/settings.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sucl::fabric {

struct info_deleter {
  const library* from = nullptr;
  void operator()(fi_info* info) const { from->freeinfo(info); }
};
using info_ptr = std::unique_ptr<fi_info, info_deleter>;

/// Queries the providers that meet the needs of the backend, and selects the best. The order is
/// that of libfabric, which has the networks of supercomputers first; then comes TCP. Providers
/// that reach one machine only, or lose messages, are taken where the settings name them. Throws
/// problem.
info_ptr choose_provider(const library& from, const settings& wanted);

/// How good a provider of this name is for data between machines: the lower the better. Nothing for
/// what is only taken by name.
std::optional<int> provider_rank(std::string_view name);

/// Whether an address of libfabric is in a subnet, as "10.1.0.0/16" or "fd00::/8". False for one
/// that is not of IP. Throws problem where the text is no subnet.
bool in_subnet(const fi_info& info, const std::string& subnet);

}  // namespace sucl::fabric
