// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/messages.hpp"

namespace apps {

team::team(context& c, int colour) : m_context(&c), m_comm(c.world().split(colour)) {
  if (c.uses_mpi() && c.size() > 1) m_mpi = mpi_team(colour);
}

bool team::by_host(std::size_t bytes) const {
  int found = 0;  // on every rank alike, whatever their devices are
  if (!m_context->queue().get_device().is_cpu()) {
    const auto who = m_comm.selected_backend(sucl::kind::send, bytes);
    found = who != "kernels" && who != "nccl" && who != "rccl";
  }
  m_comm.blocking().allreduce(&found, 1, sucl::op::max);
  return found != 0;
}

reduction::reduction(context& c, const array<double>& values) : m_context(&c), m_values(values) {
  if (c.uses_mpi() && c.size() > 1) m_mpi = mpi_team(0);
  if (!c.uses_mpi())
    m_plan = c.world().persistent().allreduce(values.pointer(), values.size(), sucl::op::sum);
}

sycl::event reduction::start(const events& deps) {
  if (m_context->wanted().kind == variant::sucl && !m_context->is_blocking())
    return m_done = m_plan.start(deps);
  if (m_context->wanted().kind == variant::sucl) {
    m_plan.run(deps);
  } else if (m_context->uses_buffers()) {
    auto buffer = m_values.buffer();
    sycl::host_accessor values{buffer, sycl::read_write};
    if (m_mpi) m_mpi.sum(&values[0], m_values.size());
    m_seen.assign(&values[0], &values[0] + m_values.size());
  } else {
    for (auto e : deps) e.wait();
    if (m_mpi) m_mpi.sum(m_values.pointer(), m_values.size());
  }
  return m_done = sycl::event{};
}

void reduction::put(const std::vector<double>& sums) {
  m_values.put(sums);
  m_seen = sums;
}

double reduction::value(std::size_t i) {
  m_done.wait_and_throw();
  return m_context->uses_buffers() ? m_seen[i] : m_values.pointer()[i];
}

}  // namespace apps
