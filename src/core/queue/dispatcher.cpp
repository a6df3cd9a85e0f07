// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/queue/dispatcher.hpp"

#include "core/failure/device_errors.hpp"
#include "core/failure/peer_processes.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/operation/operation.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace sucl::core {
namespace {

// A network reports broken connections, also to a rank that has given up because of another one.
// Which processes of this machine have ended is known a little later.
void name_dead_peers(error_info& info, const communicator_context& c) {
  constexpr auto longest = std::chrono::milliseconds(100);
  constexpr auto pause = std::chrono::milliseconds(1);
  const peer_processes* peers = c.owner->peers();
  if (info.code != errc::peer_lost || info.backend.empty() || !peers) return;
  const auto until = std::chrono::steady_clock::now() + longest;
  auto died = peers->gone(c.where.world_ranks).died;
  while (died.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(pause);
    died = peers->gone(c.where.world_ranks).died;
  }
  if (died.empty()) return;
  info.message = ranks_text(died) + (died.size() == 1 ? " has died" : " have died");
  info.hint = "Look for the reason in the output of the named ranks";
}

void replace_cause(error_info& info, const error_info& cause) {
  info.code = cause.code;
  info.native_code = cause.native_code;
  info.message = cause.message;
  info.hint = cause.hint;
  info.backend.clear();
}

// What a library reports may only follow from a kernel that has failed on this rank's device, as a
// lost peer that has been told and has ended; or a peer says why it ends before it is lost.
void name_first_cause(error_info& info, const communicator_context& c) {
  if (info.backend.empty()) return;
  if (c.device.errors)
    if (const auto fault = c.device.errors->pending()) return replace_cause(info, *fault);
  const peer_processes* peers = c.owner->peers();
  if (info.code != errc::peer_lost || !peers) return;
  if (const auto published = peers->published(c.id)) replace_cause(info, info_of(*published));
}

}  // namespace

void dispatcher::fail(sucl_status status, const op_request& n) const {
  throw_last(status, n.via->name, describe(n.record), m_context.rank());
}

void dispatcher::replace_memory(op_request& n) const {
  const bool sends = n.record.kind == SUCL_KIND_SEND;
  if (sends)
    n.record.send = n.bounce_buffer;
  else
    n.record.recv = n.bounce_buffer;
  (sends ? n.record.send_memory : n.record.recv_memory) = m_context.stages.scratch_memory;
}

bool dispatcher::post(op_request& n) const {
  const base::default_floating_point_mode mode;
  n.via = &m_context.backends.choose(n.record, is_blocking(n.record));
  if (n.bounce_buffer) replace_memory(n);  // only now: the kind of memory may decide
  staging_plan how = plan_staging(n.record, n.layout, *n.via->formats, m_context.stages);
  if (how.needed) {
    n.pipeline = std::make_unique<staged_operation>(n.record, std::move(how), n.via->via,
                                                    m_context.device.copier, m_context.scratch);
    return n.pipeline->step();
  }
  const backend_comm& below = n.via->via;
  if (const auto status = below.table->post(below.comm, &n.record, &n.request)) fail(status, n);
  return n.request == nullptr;
}

// Any exception becomes an error: none may end the progress thread.
error_info dispatcher::caught(const sucl_operation& record) const {
  error_info info;
  try {
    throw;
  } catch (const error& e) {
    info = e.info();
  } catch (const std::bad_alloc&) {
    info.code = errc::out_of_memory;
    info.message = "no memory for the operation";
    info.hint = "Use smaller counts, or a smaller staging.chunk";
  } catch (const std::exception& e) {
    info.code = errc::internal;
    info.message = e.what();
  }
  if (info.operation.empty()) info.operation = describe(record);
  if (info.rank < 0) info.rank = m_context.rank();
  name_first_cause(info, m_context);
  name_dead_peers(info, m_context);
  return info;
}

}  // namespace sucl::core
