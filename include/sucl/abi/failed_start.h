/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * A process of a job without MPI that cannot be one of its ranks.
 */
#ifndef SUCL_ABI_FAILED_START_H
#define SUCL_ABI_FAILED_START_H

#include <sucl/abi/bootstrap.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What `rendezvous` of the control plane `tcp` takes in place of its first part: `init` reports
 * the failure to the processes that wait for each other there, and fails. The rank and the size are
 * not read. */
typedef struct sucl_failed_start {
  sucl_rendezvous where; /**< `struct_size`: that of this type */
  const char* failure;   /**< what is wrong, for all of them */
  const char* hint;      /**< the cure */
  sucl_status status;    /**< the kind of error, not SUCL_SUCCESS */
} sucl_failed_start;

#ifdef __cplusplus
}
#endif
#endif
