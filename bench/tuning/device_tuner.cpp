// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Which backend is the fastest for which messages in memory of devices. What orders operations on
// the device's stream is compared: the vendor's library, and SuCL's kernels with each protocol that
// they support. What would go through the host is not, as programs would wait for it.
#include "bench/device/device_queue.hpp"
#include "bench/measure.hpp"
#include "tuner.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "kernels/collective/args.hpp"

#include <sucl/sucl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

namespace sucl::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// A table with which one candidate executes everything of a kind.
std::string only(const tried& t, kind what) {
  tune::table table;
  tune::table_row r;
  r.what = what;
  r.memory = tune::memory_kind::device;
  r.backend = t.backend;
  r.protocol = t.protocol;
  table.rows.push_back(r);
  return tune::to_toml(table);
}

class device_tuner {
 public:
  device_tuner(const tuning_request& wanted, const bench_context& at, together& ranks)
      : m_wanted(wanted), m_at(at), m_ranks(ranks) {}

  std::vector<tuned_point> run() {
    std::vector<tuned_point> points;
    std::size_t left = m_wanted.collectives.size() * m_wanted.sizes.size();
    for (const kind what : m_wanted.collectives)
      for (const std::uint64_t bytes : m_wanted.sizes) {
        std::vector<double> spent{seconds_since(m_begin)};
        m_ranks.max(spent);
        report(spent[0], what, bytes);
        const double share =
            std::max(0.0, m_wanted.seconds - spent[0]) / static_cast<double>(left--);
        tuned_point p = measure_point(what, bytes, share);
        if (!p.all.empty()) points.push_back(std::move(p));
      }
    return points;
  }

 private:
  void report(double spent, kind what, std::uint64_t bytes) const {
    if (m_at.comm.rank() != 0 || !m_wanted.progress) return;
    m_wanted.progress(
        std::min(1.0, spent / m_wanted.seconds),
        std::string(name(what)) + ", memory of the device, " + base::print_bytes(bytes));
  }

  // Whether it is what executes such a message if a table says so: else something else would be
  // timed under its name.
  bool executes(const tried& t, kind what, std::uint64_t bytes) {
    m_at.comm.use_tuning(only(t, what));
    if (m_at.comm.selected_backend(what, bytes) != t.backend) return false;
    return t.protocol.empty() ||
           m_at.comm.explain(what, bytes).find(", protocol " + t.protocol + ", tuning table") !=
               std::string::npos;
  }

  std::vector<tried> candidates(kind what, std::uint64_t bytes) {
    std::vector<tried> all;
    const auto add = [&](const char* backend, const char* protocol) {
      tried t;
      t.backend = backend;
      t.protocol = protocol;
      if (executes(t, what, bytes)) all.push_back(std::move(t));
    };
    for (const char* library : {"nccl", "rccl"}) add(library, "");
    for (const char* protocol : kernels::protocol_names) add("kernels", protocol);
    return all;
  }

  // All candidates on the same memory, in turns, each result compared with the reference.
  tuned_point measure_point(kind what, std::uint64_t bytes, double share) {
    tuned_point point{what, tune::memory_kind::device, tune::call_form::any, bytes, {}};
    std::vector<tried> list = candidates(what, bytes);
    if (list.empty()) return point;
    problem p;
    p.of = what;
    p.element = type::fp32;
    p.reduction = reduces(what) ? op::sum : op::none;
    p.ranks = m_at.comm.size();
    p.rank = m_at.comm.rank();
    p.count = bytes / sizeof(float);
    testbed bed = make_usm_testbed(m_at, p, memory::device);
    const implementation library = bed.implementations.front();
    bed.implementations.clear();
    for (const tried& t : list) {
      implementation one = library;
      one.clock = m_at.queue_clock;
      one.choose = [this, text = only(t, what)] { m_at.comm.use_tuning(text); };
      bed.implementations.push_back(std::move(one));
    }
    options how = *m_at.wanted;
    how.seconds = std::clamp(share / (2 * static_cast<double>(list.size())), 0.002, 0.2);
    const auto report = [&](const std::string& difference) {
      std::fprintf(stderr, "sucl tune: rank %d: %s of %s: wrong result: %s\n", p.rank, name(what),
                   base::print_bytes(bytes).c_str(), difference.c_str());
    };
    const auto outcomes = measure(bed, p, how, m_ranks, report);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!outcomes[i].valid) continue;
      list[i].seconds = outcomes[i].time.median * 1e-6;
      list[i].samples = outcomes[i].iterations;
      point.all.push_back(std::move(list[i]));
    }
    std::stable_sort(point.all.begin(), point.all.end(),
                     [](const tried& a, const tried& b) { return a.seconds < b.seconds; });
    return point;
  }

  const tuning_request& m_wanted;
  bench_context m_at;
  together& m_ranks;
  clock::time_point m_begin = clock::now();
};

}  // namespace

tuning_result run_device_tuning(const tuning_request& wanted, const std::string& flavour) {
  const auto begin = clock::now();
  runtime rt;
  const communicator hosts = rt.world();
  if (hosts.size() < 2)
    base::fail(errc::invalid_argument, "there is one rank, and nothing to choose",
               "Tune with the numbers of ranks that your programs have: sucl tune -n 2");
  const member& me = hosts.members()[static_cast<std::size_t>(hosts.rank())];
  const sycl::queue queue = make_queue(choose_device({"gpu"}, me.local_rank), true);
  together ranks(nullptr, hosts);
  options how;
  how.blocking = how.against_mpi = how.against_host_accessor = false;
  void* stream = device_number(queue) >= 0 ? stream_of(queue) : nullptr;
  // By the device's clock, or back to back by the host's where there is none.
  how.on_device = !ranks.anywhere(!stream);
  how.to_completion = false;
  how.back_to_back = !how.on_device;
  std::optional<device_clock> timer;
  if (how.on_device) timer.emplace(device_number(queue), stream);
  bench_context at{rt.world(queue), nullptr, nullptr, &how, timer ? &*timer : nullptr, nullptr};
  tuning_result result;
  result.rank = hosts.rank();
  result.ranks = hosts.size();
  for (const member& m : hosts.members()) result.nodes = std::max(result.nodes, m.node + 1);
  result.points = device_tuner(wanted, at, ranks).run();
  at.comm.use_tuning("");
  if (result.points.empty())
    base::fail(errc::unavailable,
               "neither a vendor's library nor SuCL's kernels order operations on these devices: " +
                   at.comm.explain(kind::allreduce, wanted.sizes.front()),
               "'sucl info' says what each of them needs");
  result.table.machine.device = at.comm.members()[0].device;
  result.between = {tune::memory_kind::device, "kernels", "library"};
  conclude(result, wanted, flavour);
  result.took = seconds_since(begin);
  return result;
}

}  // namespace sucl::bench
