/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/* A control plane whose table lacks most functions. */
#include <sucl/abi/bootstrap.h>

static const sucl_bootstrap table = {.struct_size = sizeof(sucl_bootstrap),
                                     .abi_major = SUCL_ABI_MAJOR,
                                     .abi_minor = SUCL_ABI_MINOR,
                                     .name = "partial"};

SUCL_ABI_EXPORT const sucl_bootstrap* sucl_bootstrap_entry(uint32_t major, uint32_t minor);

SUCL_ABI_EXPORT const sucl_bootstrap* sucl_bootstrap_entry(uint32_t major, uint32_t minor) {
  (void)major;
  (void)minor;
  return &table;
}
