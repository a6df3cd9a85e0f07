// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "net/settings.hpp"

#include "net/problem.hpp"

namespace sucl::fabric {

settings read_settings(const sucl_setting* list, std::uint64_t count) {
  settings s;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = list[i].key, value = list[i].value;
    if (key == "provider")
      s.provider = value;
    else if (key == "library")
      s.library = value;
    else if (key == "interface")
      s.interface = value;
    else
      throw problem{SUCL_ERROR_CONFIGURATION,
                    "backend fabric does not understand " + key + " = " + value,
                    "It knows provider, library and interface."};
  }
  return s;
}

}  // namespace sucl::fabric
