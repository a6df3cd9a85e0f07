/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Some processes of a job without MPI, which make a group among themselves.
 */
#ifndef SUCL_ABI_MEMBERS_H
#define SUCL_ABI_MEMBERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What `group_adopt` of the control plane `tcp` takes: the others do not have to know of it. */
typedef struct sucl_members {
  uint32_t struct_size;
  int32_t count;
  uint64_t id;          /**< the same on all of them, and of no other group of the job */
  const int32_t* ranks; /**< in the job, ordered as in the group */
} sucl_members;

#ifdef __cplusplus
}
#endif
#endif
