/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/** @file The frozen layout as assertions, for C11 and C++17. */
#include <sucl/abi/backend.h>
#include <sucl/abi/bootstrap.h>

#ifdef __cplusplus
#define SUCL_FROZEN_ASSERT static_assert
#else
#define SUCL_FROZEN_ASSERT _Static_assert
#endif

#define SUCL_FROZEN_STRUCT(type, bytes) \
  SUCL_FROZEN_ASSERT(sizeof(type) == (bytes), #type " has another size");
#define SUCL_FROZEN_FIELD(type, field, position, bytes)         \
  SUCL_FROZEN_ASSERT(offsetof(type, field) == (position),       \
                     #type "." #field " is at another offset"); \
  SUCL_FROZEN_ASSERT(sizeof(((type*)0)->field) == (bytes), #type "." #field " has another size");
#define SUCL_FROZEN_VALUE(name, value) \
  SUCL_FROZEN_ASSERT((name) == (value), #name " has another value");

#include "frozen.def"

#undef SUCL_FROZEN_STRUCT
#undef SUCL_FROZEN_FIELD
#undef SUCL_FROZEN_VALUE
#undef SUCL_FROZEN_ASSERT
