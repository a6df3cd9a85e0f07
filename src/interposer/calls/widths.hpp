// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Includes SUCL_CALLS for counts of type int, and again for those of type MPI_Count, whose
/// functions end in _c, where the library has them.

#define SUCL_COUNT int
#define SUCL_DISPL int
#define SUCL_FORM(name) MPI_##name
#define SUCL_ON(name) SUCL_NEXT(name)
#include SUCL_CALLS
#undef SUCL_COUNT
#undef SUCL_DISPL
#undef SUCL_FORM
#undef SUCL_ON

#if MPI_VERSION >= 4 && !defined(SUCL_MPI_WITHOUT_LARGE_COUNTS)
#define SUCL_COUNT MPI_Count
#define SUCL_DISPL MPI_Aint
#define SUCL_FORM(name) MPI_##name##_c
#define SUCL_ON(name) SUCL_NEXT(name##_c)
#include SUCL_CALLS
#undef SUCL_COUNT
#undef SUCL_DISPL
#undef SUCL_FORM
#undef SUCL_ON
#endif
