// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// As much of a second MPI library as shows that there is one.
extern "C" __attribute__((visibility("default"))) int PMPI_Get_processor_name(char*, int*) {
  return 1;
}
