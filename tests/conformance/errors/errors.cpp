// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "conformance/errors/errors.hpp"

namespace sucl::testing {

void errors::refused_once(errc code, const std::string& operation, const std::string& words,
                          const std::function<void()>& call) {
  SCOPED_TRACE(operation + ": " + words);
  try {
    call();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_EQ(e.rank(), world.rank()) << e.what();
    EXPECT_EQ(e.operation().substr(0, operation.size()), operation) << e.what();
    EXPECT_NE(e.message().find(words), std::string::npos) << e.what();
    EXPECT_FALSE(e.hint().empty()) << e.what();
    const std::string what = e.what();
    for (const auto& part : {e.message(), e.hint(), std::string(name(code))})
      EXPECT_NE(what.find(part), std::string::npos) << what;
    return;
  }
  ADD_FAILURE() << "no error";
}

}  // namespace sucl::testing
