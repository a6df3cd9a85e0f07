// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ops that the program has made. SuCL knows nothing of what they do, and has MPI apply them.
#pragma once

#include <mpi.h>

namespace sucl::interposer::own_ops {

/// The program has made it by a call that SuCL has seen: a handle like no predefined one.
void add(MPI_Op op);
bool contains(MPI_Op op);

/// An operation that goes on after the program's call applies it: until release() it lasts,
/// whatever the program does with its handle.
void keep(MPI_Op op);
void release(MPI_Op op);

/// The program frees it. True if it is in use: then release() frees it.
bool remove(MPI_Op op);

}  // namespace sucl::interposer::own_ops
