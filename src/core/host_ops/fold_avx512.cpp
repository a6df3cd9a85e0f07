// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#define SUCL_FOLD_SET find_fold_avx512
#include "core/host_ops/fold_kernels.hpp"
