// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "baseline.hpp"

#include "base/error.hpp"
#include "base/narrow.hpp"
#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"

#include <cstdint>
#include <limits>

namespace sucl::bench {
namespace {

void check(int code, const char* what) {
  if (code == 0) return;
  error_info info;
  info.code = errc::native;
  info.message = std::string("raw MPI failed in ") + what;
  info.backend = "raw mpi";
  info.native_code = code;
  throw error(info);
}

std::string module_file(const std::string& flavour) {
  return core::find_module("libsucl_raw_mpi_" + flavour + ".so", core::module_directories());
}

}  // namespace

baseline::baseline(const std::string& flavour)
    : m_library(base::library::open(module_file(flavour))),
      m_table(m_library.symbol_as<sucl_raw_mpi_entry_function>(SUCL_RAW_MPI_ENTRY)()),
      m_control(&core::load_bootstrap("libsucl_mpi_" + flavour + ".so")) {
  const sucl_status status = m_control->group_world(&m_group);
  if (status != SUCL_SUCCESS) core::throw_last(status, flavour, "world");
  m_native = m_control->group_native(m_group);
}

baseline::~baseline() {
  if (m_control->alive()) m_control->group_free(m_group);
}

std::optional<raw_call> baseline::prepare(const problem& p, const void* send, void* recv) const {
  raw_call call;
  sucl_raw_call& r = call.record;
  r.kind = static_cast<sucl_kind>(p.of);
  r.type = static_cast<sucl_type>(p.element);
  r.op = static_cast<sucl_op>(p.reduction);
  r.root = p.root;
  r.element_size = p.element_size();
  std::uint64_t count = p.count;
  const bool has_type = !base::is_narrow_float(static_cast<std::int32_t>(p.element));
  if (!reduces(p.of) && !has_type) {
    // What is only moved can be moved as bytes.
    r.type = SUCL_TYPE_BYTES;
    r.element_size = 1;
    count = p.bytes();
  }
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  if (count * ranks > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  r.count = static_cast<std::int32_t>(count);
  r.recv_count = r.count;
  if (p.of == kind::sendrecv) {
    r.root = (p.rank + 1) % p.ranks;
    r.source = (p.rank + p.ranks - 1) % p.ranks;
  }
  call.counts.assign(ranks, r.count);
  for (std::int32_t rank = 0; rank < p.ranks; ++rank) call.displs.push_back(rank * r.count);
  r.send_counts = r.recv_counts = call.counts.data();
  r.send_displs = r.recv_displs = call.displs.data();
  move(call, send, recv);
  if (m_table->resolve(&r, m_native) != 0) return std::nullopt;
  call.function = m_table->run[r.kind];
  return call;
}

void baseline::move(raw_call& call, const void* send, void* recv) {
  call.record.send = call.record.input = send;
  call.record.recv = recv;
}

void baseline::run(const raw_call& call) {
  check(call.function(&call.record), name(static_cast<kind>(call.record.kind)));
}

void baseline::barrier() const { check(m_table->barrier(m_native), "barrier"); }

void baseline::max(std::vector<double>& numbers) const {
  std::vector<double> largest(numbers.size());
  check(m_table->max_reduce(m_native, numbers.data(), largest.data(),
                            static_cast<std::int32_t>(numbers.size())),
        "allreduce");
  numbers = std::move(largest);
}

}  // namespace sucl::bench
