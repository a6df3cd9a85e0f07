// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "bare_nccl.hpp"

#include "backends/xccl/communicator.hpp"

#include "core/exchange/core_services.hpp"

#include "base/error.hpp"

#include <cstdlib>
#include <map>
#include <vector>

namespace sucl::bench {

struct bare_nccl::call {
  sucl_operation operation{};
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> displs;
};

struct bare_nccl::state {
  sucl_state library;
  sucl_backend_comm comm;
  std::map<void*, xccl::window_handle> windows;

  void check(int result, const char* what) const {
    if (result == xccl::ok) return;
    base::fail(
        errc::native,
        std::string("bare NCCL: ") + what + ": " + library.library.api.get_error_string(result),
        "Measure another --memory than window");
  }
};

bare_nccl::bare_nccl(int rank, int size, int device,
                     const std::function<void(void*, std::size_t)>& exchange)
    : m_state(std::make_unique<state>()) {
  auto& [library, comm, windows] = *m_state;
  library.core = &core::services();
  library.from = &xccl::nccl;
  comm.state = &library;
  comm.rank = rank;
  comm.size = size;
  comm.device = device;
  const char* file = std::getenv("SUCL_BACKEND_NCCL_LIBRARY");
  if (device < 0) {
    m_obstacle = "the queue is not on a CUDA device";
  } else if (const auto problem = xccl::open(xccl::nccl, file ? file : "", library.library);
             !problem.message.empty()) {
    m_obstacle = problem.message;
  }
  xccl::unique_id id{};
  if (m_obstacle.empty() && rank == 0) library.library.api.get_unique_id(&id);
  int ready = m_obstacle.empty();
  exchange(&id, sizeof id);
  exchange(&ready, sizeof ready);  // of rank 0: machines are alike
  if (!ready || !m_obstacle.empty()) return;
  const auto& d = library.library.device;
  d.init(0);
  d.retain_context(&comm.context, device);
  const xccl::on_device here(d, comm.context);
  d.create_stream(&comm.stream, xccl::non_blocking_stream);
  if (const int result = library.library.api.comm_init_rank(&comm.native, size, id, rank))
    m_obstacle = library.library.api.get_error_string(result);
}

bare_nccl::~bare_nccl() {
  auto& [library, comm, windows] = *m_state;
  if (!comm.native) return;
  const xccl::on_device here(library.library.device, comm.context);
  library.library.api.comm_destroy(comm.native);
  library.library.device.destroy_stream(comm.stream);
}

std::string bare_nccl::description() const {
  const auto& l = m_state->library.library;
  return xccl::print_version(l.version) + ", " + l.path;
}

std::shared_ptr<bare_nccl::call> bare_nccl::prepare(const problem& p, const void* send,
                                                    void* recv) const {
  const auto kind = static_cast<sucl_kind>(p.of);
  if (!xccl::supports({false, true}, kind, static_cast<sucl_type>(p.element),
                      static_cast<sucl_op>(p.reduction)))
    return nullptr;
  auto c = std::make_shared<call>();
  c->counts.assign(static_cast<std::size_t>(p.ranks), p.count);
  for (int r = 0; r < p.ranks; ++r) c->displs.push_back(static_cast<std::uint64_t>(r) * p.count);
  sucl_operation& o = c->operation;
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = static_cast<sucl_type>(p.element);
  o.op = static_cast<sucl_op>(p.reduction);
  o.root = p.root;
  o.element_size = p.element_size();
  o.send = send;
  o.recv = recv;
  o.flags = send ? 0 : SUCL_FLAG_IN_PLACE;
  o.count = o.recv_count = p.count;
  if (p.of == sucl::kind::sendrecv) {
    o.root = (p.rank + 1) % p.ranks;
    o.source = (p.rank + p.ranks - 1) % p.ranks;
  }
  const bool counted = row_of(p.of).with_counts;
  o.send_counts = o.recv_counts = counted ? c->counts.data() : nullptr;
  o.send_displs = o.recv_displs = counted ? c->displs.data() : nullptr;
  return c;
}

void bare_nccl::start(const call& c) {
  auto& comm = m_state->comm;
  if (const auto status = xccl::enqueue(comm, c.operation, comm.stream))
    core::throw_last(status, "bare nccl");
}

void* bare_nccl::allocate_window(std::size_t bytes) {
  auto& [library, comm, windows] = *m_state;
  const auto& api = library.library.api;
  if (!api.mem_alloc || !api.window_register)
    base::fail(errc::unavailable, "NCCL " + description() + " has no symmetric windows",
               "Take NCCL 2.27 or later");
  const xccl::on_device here(library.library.device, comm.context);
  void* memory = nullptr;
  m_state->check(api.mem_alloc(&memory, bytes), "ncclMemAlloc");
  m_state->check(
      api.window_register(comm.native, memory, bytes, &windows[memory], xccl::symmetric_window),
      "ncclCommWindowRegister");
  return memory;
}

void bare_nccl::free_window(void* memory) {
  auto& [library, comm, windows] = *m_state;
  const auto& api = library.library.api;
  const xccl::on_device here(library.library.device, comm.context);
  api.window_deregister(comm.native, windows[memory]);
  windows.erase(memory);
  api.mem_free(memory);
}

int bare_nccl::device() const { return m_state->comm.device; }

void* bare_nccl::stream() const { return m_state->comm.stream; }

void bare_nccl::finish() {
  auto& comm = m_state->comm;
  const xccl::on_device here(m_state->library.library.device, comm.context);
  if (const int result = m_state->library.library.device.synchronize(comm.stream))
    core::throw_last(xccl::device_failed(comm, result, "a synchronisation"), "bare nccl");
}

}  // namespace sucl::bench
