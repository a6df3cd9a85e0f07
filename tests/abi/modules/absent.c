/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/* A library that another one is linked with and that is not there when that one is loaded. */
__attribute__((visibility("default"))) int sucl_test_absent(void);

int sucl_test_absent(void) { return 0; }
