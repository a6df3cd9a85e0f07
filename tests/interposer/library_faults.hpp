// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What MPI libraries themselves get wrong, so that several programs leave it out.
#pragma once

#include <mpi.h>

/// Persistent collectives of the library: many of Intel MPI 2021.18's leave the output as it was.
#if defined(I_MPI_VERSION) || defined(I_MPI_NUMVERSION)
inline constexpr bool persistent_works = false;
#else
inline constexpr bool persistent_works = true;
#endif
