// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/cost/stages.hpp"

#include <algorithm>

namespace sucl::tune {
namespace {

// Seconds for bytes at a rate; a rate of 0 is no limit.
double over(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

const sim::transport& transport_of(const sim::level& l, const std::string& via) {
  for (const sim::transport& t : l.transports)
    if (t.name == via) return t;
  return l.transports.front();
}

double memory_share(const sim::memory& m) {
  return m.bandwidth > 0 ? m.bandwidth / m.shared_by : 0;
}

}  // namespace

void stage_sum::add(const stage& s) {
  const sim::level& l = m_machine.levels[s.level];
  const sim::transport& t = transport_of(l, s.via);
  const sim::memory& local = m_machine.local;
  const double volume = s.messages * s.bytes;
  const double ports = std::clamp(s.active, 1.0, static_cast<double>(l.ports));
  double work = over(volume, t.bandwidth);
  work = std::max(work, over(s.active * volume, ports * l.port_bandwidth));
  work = std::max(work, over(2 * s.active * volume, ports * l.port_both));
  work = std::max(work, over(s.bytes * (s.messages > l.groups - 1 ? s.messages / l.groups : 1),
                             l.link_bandwidth));
  work = std::max(work, over(s.active * volume * l.groups, l.fabric_bandwidth));
  work = std::max(work, over(2 * volume, memory_share(local)));
  double kernels = 0;
  double latency = t.latency;
  double overhead = s.messages * t.overhead;
  if (s.reduced > 0) {
    kernels =
        std::max(over(s.reduced, local.reduce_rate), over(3 * s.reduced, memory_share(local)));
    latency += local.launch_latency;
    overhead += local.launch_overhead * (s.peer ? 1 : s.messages);
  }
  if (s.peer) latency += t.latency;                    // flags
  const double times = s.load < 0 ? s.steps : s.load;  // that one rank or port takes part
  m_latency += s.steps * latency + (s.steps - times) * overhead;
  m_overhead += times * overhead;
  if (s.peer) {
    // A kernel that reads its peers' memory reduces while it does. Channels do so all together, as
    // flags order them and not stages, and nothing overlaps.
    m_latency += s.steps * std::max(work, kernels);
  } else {
    m_work += s.steps * (work + kernels);
    m_load[s.level] += times * work;
    m_load.back() += times * kernels;
  }
  m_instructions += s.ranks * s.steps * (s.messages * (s.peer ? 3 : 2 + (s.reduced > 0)) + 1);
}

void stage_sum::add_copy(double bytes, double ranks, double parts) {
  const sim::memory& local = m_machine.local;
  const double work = std::max(over(bytes, local.copy_rate), over(2 * bytes, memory_share(local)));
  m_latency += parts * local.launch_latency;
  m_overhead += parts * local.launch_overhead;
  m_work += work;
  m_load.back() += work;
  m_instructions += parts * ranks;
}

estimate stage_sum::total(int channels) const {
  const double parts = channels;
  const double busiest = *std::max_element(m_load.begin(), m_load.end());
  const double filled = std::min(busiest, m_work);
  return {m_latency + m_overhead * parts + m_work / parts + filled * (parts - 1) / parts,
          m_instructions * parts, m_latency, m_overhead};
}

}  // namespace sucl::tune
