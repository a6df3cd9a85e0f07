/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/* Both headers as plain, pedantic C99, each after the other has been included already. */
#include <sucl/abi/bootstrap.h>

#include <sucl/abi/backend.h>

int sucl_test_has_hint_of_growth(const sucl_capability* answer);

/* What a reader of a possibly shorter struct writes. */
int sucl_test_has_hint_of_growth(const sucl_capability* answer) {
  return SUCL_HAS_FIELD(answer, sucl_capability, max_count) ? 1 : 0;
}
