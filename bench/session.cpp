// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "bench/device/device_queue.hpp"
#include "measure.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <sucl/sucl.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <set>

namespace sucl::bench {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

// One line of the plan: everything but the sizes.
struct subject {
  kind of;
  memory_choice where;
  type element;
  op reduction;
};

std::vector<subject> subjects(const options& wanted) {
  std::vector<subject> list;
  for (const kind of : wanted.collectives) {
    if (of == kind::barrier) {
      list.push_back({of, {"none", memory::system}, type::bytes, op::none});
      continue;
    }
    for (const auto& where : wanted.memories)
      for (const type element : wanted.types) {
        if (!reduces(of)) list.push_back({of, where, element, op::none});
        for (const op o : wanted.ops) {
          const bool scans = of == kind::scan || of == kind::exscan;
          if (reduces(of) && defined(o, element) && !(scans && o == op::avg))
            list.push_back({of, where, element, o});
        }
      }
  }
  return list;
}

// The sizes that the type can have, each once.
std::vector<std::uint64_t> counts_of(const subject& s, const options& wanted) {
  if (s.of == kind::barrier) return {0};
  std::vector<std::uint64_t> counts;
  for (const std::uint64_t bytes : wanted.sizes) {
    const std::uint64_t count = bytes / size_of(s.element);
    if ((count == 0 && bytes != 0) || (count == 0 && s.where.where == memory::buffer)) continue;
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

problem make_problem(const subject& s, std::uint64_t count, const communicator& comm,
                     const options& wanted) {
  problem p;
  p.of = s.of;
  p.element = s.of == kind::barrier ? type::uint8 : s.element;
  p.reduction = s.reduction;
  p.ranks = comm.size();
  p.rank = comm.rank();
  p.root = rooted(s.of) ? wanted.root : 0;
  p.count = count;
  return p;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      return std::string(base::trim(line.substr(line.find(':') + 1)));
  return "unknown";
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

template <class Handler>
concept with_host_tasks = requires(Handler& h) { h.host_task([] {}); };

json as_json(const statistics& s) {
  return {{"median_us", s.median}, {"p95_us", s.p95}, {"min_us", s.min}};
}

// What the SYCL runtime itself takes for a host task that does nothing: the yardstick of the event
// form. Null where the implementation has no host tasks.
template <class Handler = sycl::handler>
json time_host_task(sycl::queue queue, bool with_accessor) {
  if constexpr (with_host_tasks<Handler>) {
    sycl::buffer<std::byte, 1> buffer(sycl::range<1>(64));
    const auto submit = [&] {
      queue
          .submit([&](Handler& h) {
            if (with_accessor) {
              sycl::accessor access{buffer, h, sycl::read_write_host_task};
              h.host_task([access] {});
            } else {
              h.host_task([] {});
            }
          })
          .wait();
    };
    return as_json(time_alone(submit, 300));
  } else {
    (void)queue;
    (void)with_accessor;
    return nullptr;
  }
}

json time_creation(runtime& rt, const sycl::queue& queue, together& ranks) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    ranks.barrier();
    const auto begin = clock::now();
    const communicator made = rt.world(queue);
    times.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  ranks.max(times);
  return as_json(summarise(std::move(times)));
}

// What the first operation of a size takes longer than the second one, after others of each order
// of size: plans, kernels and memory are there by then.
json time_first_of_size(communicator comm, together& ranks) {
  constexpr std::size_t before[] = {1 << 10, 64 << 10, 1 << 20}, sizes[] = {3000, 200000, 3000000};
  sycl::queue queue = comm.queue();
  const std::size_t most = sizes[2] * static_cast<std::size_t>(comm.size() + 1);
  auto* memory = sycl::malloc_device<std::uint8_t>(most, queue);
  if (!memory) base::fail(errc::out_of_memory, "the device has no memory for a few megabytes");
  queue.fill(memory, std::uint8_t{0}, most).wait();
  const auto run = [&](std::size_t bytes, int which) {
    auto* result = memory + sizes[2];
    ranks.barrier();
    const auto begin = clock::now();
    switch (which) {
      case 0: comm.allreduce(memory, result, bytes, op::max).wait(); break;
      case 1: comm.allgather(memory, result, bytes).wait(); break;
      default: comm.broadcast(memory, bytes, 0).wait();
    }
    return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
  };
  std::vector<double> more;
  for (int which = 0; which < 3; ++which) {
    for (const std::size_t bytes : before) run(bytes, which);
    for (const std::size_t bytes : sizes) {
      const double first = run(bytes, which);
      more.push_back(std::max(0.0, first - run(bytes, which)));
    }
  }
  ranks.barrier();  // a rank may still be reading
  sycl::free(memory, queue);
  ranks.max(more);
  return as_json(summarise(std::move(more)));
}

json time_flags(together& ranks) {
  if (!ranks.flags()) return nullptr;
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    ranks.barrier();
    const auto begin = clock::now();
    ranks.flags()->run();
    times.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  ranks.max(times);
  return as_json(summarise(std::move(times)));
}

// Gigabytes a second that all ranks together read and write when each copies memory of its own.
double memory_bandwidth(together& ranks, int size) {
  std::vector<std::byte> from(std::size_t{64} << 20, std::byte{1}), to(from.size());
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    ranks.barrier();
    const auto begin = clock::now();
    std::memcpy(to.data(), from.data(), to.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // so that the compiler keeps it
    std::vector<double> took{std::chrono::duration<double>(clock::now() - begin).count()};
    ranks.max(took);
    best =
        std::max(best, 2e-9 * static_cast<double>(size) * static_cast<double>(to.size()) / took[0]);
  }
  return best;
}

json describe_members(const communicator& comm) {
  std::set<std::string> hosts;
  std::set<std::string> devices;
  for (const member& m : comm.members()) {
    hosts.insert(m.host);
    devices.insert(m.device);
  }
  return {{"hosts", hosts}, {"devices", devices}};
}

json make_header(const runtime& rt, const communicator& comm, const options& wanted) {
  const member& me = comm.members()[static_cast<std::size_t>(comm.rank())];
  const json members = describe_members(comm);
  json header{{"sucl", SUCL_VERSION_STRING},
              {"date", now()},
              {"command", wanted.command},
              {"cpu", cpu_model()},
              {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
              {"hosts", members["hosts"]},
              {"ranks", comm.size()},
              {"sycl", me.implementation},
              {"sycl_backend", me.sycl_backend},
              {"platform", me.platform},
              {"devices", members["devices"]},
              {"mpi", rt.control_plane()}};
  return header;
}

void print_header(const json& h) {
  std::fprintf(stderr, "SuCL %s, %d ranks, %d cores of %s\n%s, %s device %s\n%s\n",
               h["sucl"].get<std::string>().c_str(), h["ranks"].get<int>(), h["cores"].get<int>(),
               h["cpu"].get<std::string>().c_str(), h["sycl"].get<std::string>().c_str(),
               h["platform"].get<std::string>().c_str(),
               h["devices"].front().get<std::string>().c_str(),
               base::split(h["mpi"].get<std::string>(), ',').front().c_str());
  if (h["nccl"].get<std::string>().rfind("none", 0) != 0)
    std::fprintf(stderr, "bare NCCL: %s\n", h["nccl"].get<std::string>().c_str());
}

// Reports progress on standard error: on a terminal in one line that changes.
class progress {
 public:
  progress(bool shown, bool terminal, std::size_t total)
      : m_shown(shown), m_terminal(terminal), m_total(total) {}
  void begin(const std::string& what) {
    ++m_at;
    if (m_shown && m_terminal)
      std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", m_at, m_total, what.c_str());
  }
  void end(const std::vector<row>& rows) {
    if (m_shown && !m_terminal)
      std::fprintf(stderr, "[%zu/%zu] %s\n", m_at, m_total, as_line(rows).c_str());
  }
  void finish() {
    if (m_shown && m_terminal) std::fputs("\r\033[K", stderr);
  }

 private:
  bool m_shown;
  bool m_terminal;
  std::size_t m_total;
  std::size_t m_at = 0;
};

// The measurements of one collective and size.
std::vector<row> measure_point(const bench_context& at, const subject& s, std::uint64_t count,
                               together& ranks) {
  const problem p = make_problem(s, count, at.comm, *at.wanted);
  const testbed bed = s.where.where == memory::buffer ? make_buffer_testbed(at, p)
                                                      : make_usm_testbed(at, p, s.where.where);
  const std::uint64_t bytes = s.of == kind::barrier ? 0 : p.bytes();
  const auto report = [&](const std::string& difference) {
    std::fprintf(stderr, "%ssucl bench: rank %d: %s, %s, %s, %s bytes: wrong result: %s\n",
                 at.wanted->terminal ? "\n" : "", p.rank, name(s.of), s.where.label.c_str(),
                 name(s.element), base::print_bytes(bytes).c_str(), difference.c_str());
  };
  std::vector<row> rows;
  for (const outcome& o : measure(bed, p, *at.wanted, ranks, report))
    rows.push_back(
        {name(s.of), s.where.label, name(s.element), name(s.reduction), p.ranks, bytes, o});
  at.comm.check();
  return rows;
}

void check_root(const options& wanted, const communicator& comm) {
  if (wanted.root < comm.size()) return;
  base::fail(errc::invalid_rank,
             "--root " + std::to_string(wanted.root) + ", but there are " +
                 std::to_string(comm.size()) + " ranks, counted from 0",
             "Choose a smaller root or more ranks");
}

bool needs_raw_mpi(const options& wanted) {
  return wanted.against_mpi || wanted.against_host_accessor;
}

std::vector<row> measure_all(const bench_context& at, together& ranks) {
  const options& wanted = *at.wanted;
  const auto list = subjects(wanted);
  std::size_t total = 0;
  for (const subject& s : list) total += counts_of(s, wanted).size();
  progress shown(at.comm.rank() == 0, wanted.terminal, total);
  std::vector<row> rows;
  for (const subject& s : list)
    for (const std::uint64_t count : counts_of(s, wanted)) {
      shown.begin(std::string(name(s.of)) + " " + s.where.label + " " + name(s.element) + " " +
                  base::print_bytes(count * size_of(s.element)));
      const auto added = measure_point(at, s, count, ranks);
      shown.end(added);
      rows.insert(rows.end(), added.begin(), added.end());
    }
  shown.finish();
  return rows;
}

}  // namespace

session_result run_session(const options& wanted, const std::string& flavour) {
  runtime rt;
  const communicator hosts = rt.world();
  check_root(wanted, hosts);
  const member& me = hosts.members()[static_cast<std::size_t>(hosts.rank())];
  const sycl::queue queue =
      make_queue(choose_device(wanted.devices, me.local_rank), wanted.in_order);
  std::optional<baseline> raw;
  if (!flavour.empty() && needs_raw_mpi(wanted)) raw.emplace(flavour);
  together ranks(raw ? &*raw : nullptr, hosts);
  bench_context at{rt.world(queue), raw ? &*raw : nullptr, nullptr, &wanted};
  std::optional<bare_nccl> bare;
  std::string obstacle = "not asked for";
  if (wanted.against_nccl) {
    const auto exchange = [&](void* data, std::size_t bytes) {
      hosts.blocking().broadcast(static_cast<std::uint8_t*>(data), bytes, 0);
    };
    bare.emplace(hosts.rank(), hosts.size(), device_number(queue), exchange);
    obstacle = bare->obstacle();
    if (ranks.anywhere(!obstacle.empty()))
      bare.reset();
    else
      at.bare = &*bare;
  }
  std::optional<device_clock> queue_clock, bare_clock;
  if (wanted.on_device) {
    void* stream = device_number(queue) >= 0 ? stream_of(queue) : nullptr;
    if (ranks.anywhere(!stream))
      base::fail(errc::unavailable, "the queue has no stream of a CUDA device to time",
                 "Leave device out of --timing");
    at.queue_clock = &queue_clock.emplace(device_number(queue), stream);
    if (bare) at.bare_clock = &bare_clock.emplace(device_number(queue), bare->stream());
  }
  for (const memory_choice& m : wanted.memories) {
    if (m.where != memory::window || at.bare) continue;
    base::fail(errc::unavailable, "there is no window memory without bare NCCL: " + obstacle,
               "Measure another --memory");
  }
  session_result result;
  result.rank = rt.rank();
  result.header = make_header(rt, at.comm, wanted);
  result.header["queue"] = queue.is_in_order() ? "in order" : "out of order";
  result.header["nccl"] = bare ? bare->description() : "none: " + obstacle;
  if (result.rank == 0) print_header(result.header);
  result.header["memory_gbs"] = memory_bandwidth(ranks, hosts.size());
  result.header["flag_exchange"] = time_flags(ranks);
  result.header["communicator_creation"] = time_creation(rt, queue, ranks);
  result.header["first_of_size"] = time_first_of_size(at.comm, ranks);
  result.header["empty_host_task"] = time_host_task(queue, false);
  result.header["empty_host_task_with_accessor"] = time_host_task(queue, true);
  result.rows = measure_all(at, ranks);
  return result;
}

}  // namespace sucl::bench
