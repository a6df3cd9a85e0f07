// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a process ends after SuCL has failed in it.
#pragma once

#include <memory>

namespace sucl::core {

class peer_processes;

/// When the process exits it waits, for at most half a second, until the other processes of this
/// machine that have failed have ended or are about to: a launcher ends all of them, and what they
/// have not written yet is lost, once one has ended. To be called after what else is registered for
/// the exit and may end the job.
void exit_after_reports(std::shared_ptr<peer_processes> peers);

}  // namespace sucl::core
