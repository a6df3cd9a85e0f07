// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernel_backend.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "runtime/core_services.hpp"
#include "runtime/operation.hpp"
#include "runtime/selection.hpp"

#include <algorithm>
#include <atomic>
#include <new>

namespace sucl::core {
namespace {

constexpr std::uint64_t page = 4096;

kernel_comm& of(sucl_backend_comm* comm) { return *reinterpret_cast<kernel_comm*>(comm); }

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    void* token = of(comm).start(*o, o->stream);
    *request = o->stream ? nullptr : static_cast<sucl_request*>(token);
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] { *done = of(comm).test(request); });
}

sucl_status query(sucl_state* state, const sucl_query* q, sucl_capability* answer) {
  const auto* comm = reinterpret_cast<kernel_comm*>(state);  // null: of any GPU
  const auto kind = static_cast<sucl::kind>(q->kind);
  const bool reached = (comm && comm->device().on_host) || q->memory != SUCL_MEMORY_SYSTEM;
  answer->supported =
      kernels_carry(q->kind) && reached &&
      (!reduces(kind) || defined(static_cast<op>(q->op), static_cast<type>(q->type)));
  answer->flags = SUCL_CAP_STREAM_ORDERED;
  answer->max_count = 0;
  return SUCL_SUCCESS;
}

sucl_backend make_table() {
  sucl_backend t = table_of(kernel_backend_name,
                            "SuCL's own kernels over memory that the devices of a node share");
  t.query = query;
  t.comm_destroy = [](sucl_backend_comm* c) { delete &of(c); };
  t.post = post;
  t.test = test;
  t.abort = [](sucl_backend_comm* c) { of(c).abort(); };
  return t;
}

kernels::lane_shape shape_of(const kernel_settings& s) {
  constexpr std::uint64_t line = 128;
  return {(s.small + line - 1) / line * line, (s.staging + page - 1) / page * page};
}

}  // namespace

kernel_settings::kernel_settings(int ranks) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto n = static_cast<std::uint64_t>(ranks), peers = std::max<std::uint64_t>(n, 2) - 1;
  small = mebi / n;
  staging = std::clamp(128 * mebi / n, 8 * mebi, 32 * mebi);
  two_shot = 16 * mebi / (peers * peers);
}

kernel_settings kernel_settings::read(const std::vector<std::pair<std::string, std::string>>& table,
                                      int ranks) {
  kernel_settings s(ranks);
  for (const auto& [key, value] : table) {
    std::uint64_t* place = key == "low_latency" ? &s.small
                           : key == "staging"   ? &s.staging
                           : key == "two_shot"  ? &s.two_shot
                           : key == "direct"    ? &s.direct
                           : key == "groups"    ? &s.groups
                                                : nullptr;
    if (!place)
      base::fail(errc::configuration, "backend kernels does not understand " + key + " = " + value,
                 "It knows low_latency, staging, two_shot and direct, which are sizes, and groups");
    *place = key == "groups" ? base::parse_number(value) : base::parse_bytes(value);
  }
  constexpr std::uint64_t least = 4096, most = std::uint64_t{1} << 30;
  if (s.groups < 1 || s.groups > kernels::most_groups || s.small > most || s.staging > most ||
      s.staging < least * s.groups)
    base::fail(errc::configuration, "the settings of backend kernels are out of range",
               "groups is from 1 to " + std::to_string(kernels::most_groups) +
                   ", staging at least 4Ki for each group, and no size more than 1Gi");
  return s;
}

kernel_comm::kernel_comm(const channel& lender, const sucl_oob& oob, kernel_device& device,
                         int rank, int size, const kernel_settings& settings)
    : m_device(device), m_memory(lender, oob, device, rank, size, shape_of(settings)) {
  m_setting.rank = rank;
  m_setting.ranks = size;
  m_setting.shape = shape_of(settings);
  m_setting.items = device.items;
  m_setting.groups =
      m_memory.least(std::min(static_cast<std::int32_t>(settings.groups), device.groups));
  m_setting.two_shot = settings.two_shot;
  m_setting.direct = std::max(settings.direct, settings.small + 1);
  m_epoch = settings.operations;
  m_abort = device.allocate_host(sizeof(std::uint32_t));
}

kernel_comm::~kernel_comm() {
  if (std::atomic_ref(*abort_word()).load(std::memory_order_relaxed) != 0) m_memory.abandon();
  m_device.drain();
}

void kernel_comm::abort() { std::atomic_ref(*abort_word()).store(1, std::memory_order_release); }

// The flags of lines have 32 bits, and 0 is what fresh memory has. Even and odd numbers take turns
// all the same.
void kernel_comm::next_epoch() {
  m_previous = m_epoch++;
  if (static_cast<std::uint32_t>(m_epoch) == 0) m_epoch += 2;
}

void* kernel_comm::aside(std::uint64_t bytes) {
  if (bytes > m_aside_bytes) {
    // The old ones may still be in use by kernels that were launched before.
    m_aside_bytes = std::max(bytes, 2 * m_aside_bytes);
    m_aside.push_back(m_device.allocate(m_aside_bytes));
  }
  return m_aside.back().get();
}

void* kernel_comm::launch(kernel_launch& kernel, void* target) {
  auto& j = kernel.what;
  j.with = m_memory.lanes();
  j.mapped = m_memory.table();
  j.abort = abort_word();
  return m_device.launch(kernel, target);
}

void* kernel_comm::start(const sucl_operation& o, void* target) {
  m_setting.mapped = m_memory.used_by(o.sequence);
  auto kernel = make_launch(o, m_setting);
  auto& j = kernel.what;
  next_epoch();
  j.epoch = m_epoch;
  j.await = m_heard_all ? 0 : m_previous;
  m_heard_all = hears_all(kernel, o.kind);
  j.announces = !m_heard_all;
  if (o.kind == SUCL_KIND_BARRIER) kernel.to = m_memory.spare();
  if (j.may_be_direct) {
    const auto e = extents_of(o, m_setting.rank, m_setting.ranks);
    const void* from = kernel.in_place ? o.recv : o.send;
    const bool moves_within =
        kernel.in_place && j.how == kernels::way::staged && o.kind != SUCL_KIND_ALLGATHER;
    // Memory that a rank has not is as good as mapped.
    const auto key = [&](const void* memory, std::uint64_t elements) {
      if (elements == 0) return kernels::key_of(0, 0);
      return moves_within ? 0 : m_memory.key_of(memory, elements * o.element_size);
    };
    j.send_key = key(from, kernel.in_place ? e.recv : e.send);
    j.recv_key = key(o.recv, e.recv);
  }
  if (!needs_result_aside(o) || j.fold_bytes == 0) return launch(kernel, target);
  const std::uint64_t bytes = j.fold_bytes;
  // Sources stay where they are, and the result comes last.
  kernel_launch last;
  last.what.rank = m_setting.rank;
  last.what.ranks = m_setting.ranks;
  last.what.how = kernels::way::small;
  last.what.own_bytes = bytes;
  last.groups = m_setting.groups;
  last.from = aside(bytes);
  last.to = o.recv;
  kernel.from = o.recv;
  kernel.to = aside(bytes);
  kernel.in_place = false;
  void* first = launch(kernel, target);
  while (first && !m_device.test(first)) {
  }
  return launch(last, target);
}

const sucl_backend& kernel_backend() noexcept {
  static const sucl_backend table = make_table();
  return table;
}

channel kernel_channel(std::unique_ptr<kernel_comm> comm) {
  auto* c = comm.release();
  return {&kernel_backend(), reinterpret_cast<sucl_state*>(c),
          reinterpret_cast<sucl_backend_comm*>(c)};
}

kernel_comm& kernels_of(const channel& c) { return of(c.comm); }

}  // namespace sucl::core
