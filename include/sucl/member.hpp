// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a communicator knows about each of its ranks.
#pragma once

#include <cstdint>
#include <string>

namespace sucl {

/// One rank of a communicator, as every rank sees it.
struct member {
  int rank = 0;
  int node = 0;              ///< index of its node, counted in order of first appearance
  int local_rank = 0;        ///< rank among those of its node
  std::string host;          ///< host name
  std::int64_t process = 0;  ///< process id on that host
  std::string platform =
      "host";                  ///< canonical platform name: "cuda", "cpu", ...; "host": no device
  std::string implementation;  ///< SYCL implementation: "dpcpp", "adaptivecpp"; "" without
  std::string sycl_backend;    ///< name of the sycl::backend, as that implementation spells it
  std::string device;          ///< device name
  bool device_memory_on_host = true;  ///< the host can read this rank's device allocations
  /// Memory that its backends access natively, as in "mpi: system host shared device".
  std::string native_memory;
  int island = 0;  ///< index of its island: ranks of a node whose memory one backend reaches
};

}  // namespace sucl
