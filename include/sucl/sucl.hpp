// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All of SuCL's API but the MPI-shaped wrapper (<sucl/mpi.hpp>) and kernels (<sucl/kernels.hpp>).
#pragma once

#include <sucl/communicator.hpp>
#include <sucl/composition.hpp>
#include <sucl/error.hpp>
#include <sucl/fp8.hpp>
#include <sucl/memory.hpp>
#include <sucl/neighborhood.hpp>
#include <sucl/partition.hpp>
#include <sucl/persistent.hpp>
#include <sucl/rendezvous.hpp>
#include <sucl/runtime.hpp>
#include <sucl/types.hpp>
#include <sucl/user_op.hpp>
#include <sucl/version.hpp>
