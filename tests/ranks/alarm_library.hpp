// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A library of a program's that handles a signal.
#pragma once

#include <semaphore.h>

namespace sucl_test {

/// From now on SIGALRM posts to it.
__attribute__((visibility("default"))) void post_at_alarm(sem_t* which);

}  // namespace sucl_test
