// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "simgrid_replay.hpp"

#include <simgrid/s4u.hpp>

#include <map>
#include <string>
#include <vector>

namespace sucl::sim {
namespace {

namespace s4u = simgrid::s4u;
using plan::instruction;
using plan::opcode;

constexpr double unlimited = 1e15;

std::string text(std::int64_t value) { return std::to_string(value); }

// The machine as hosts and links: a host for a rank, and one for its kernels.
class platform {
 public:
  platform(const machine& m, int ranks) : m_machine(m) {
    m_zone = s4u::create_full_zone("machine");
    for (int r = 0; r < ranks; ++r) {
      m_ranks.push_back(m_zone->create_host("rank" + text(r), 1e9)->seal());
      m_kernels.push_back(m_zone->create_host("kernel" + text(r), 1e9)->seal());
    }
    for (int a = 0; a < ranks; ++a) {
      // What a rank does in its own memory.
      route(m_ranks[index(a)], m_kernels[index(a)], a, a, a);
      for (int b = 0; b < ranks; ++b) {
        if (a == b) continue;
        route(m_ranks[index(a)], m_ranks[index(b)], a, b, -1);
        route(m_kernels[index(a)], m_ranks[index(b)], a, b, a);  // a kernel of a writes
        route(m_ranks[index(a)], m_kernels[index(b)], a, b, b);  // a kernel of b reads
      }
    }
    m_zone->seal();
  }

  s4u::Host* rank(int r) const { return m_ranks[index(r)]; }
  s4u::Host* kernel(int r) const { return m_kernels[index(r)]; }

 private:
  static std::size_t index(int r) { return static_cast<std::size_t>(r); }

  s4u::Link* limit(const std::string& name, double bandwidth) {
    s4u::Link*& known = m_links[name];
    if (known == nullptr) {
      known = m_zone->create_link(name, bandwidth);
      known->seal();
    }
    return known;
  }

  void route(s4u::Host* from, s4u::Host* to, int a, int b, int kernel) {
    std::vector<s4u::LinkInRoute> links;
    const auto add = [&](const std::string& name, double bandwidth) {
      if (bandwidth > 0) links.emplace_back(limit(name, bandwidth));
    };
    const double latency =
        a == b ? m_machine.local.launch_latency
               : m_machine.levels[common_level(m_machine, a, b)].transports[0].latency;
    s4u::Link* delay =
        m_zone->create_link("delay " + from->get_name() + " " + to->get_name(), unlimited);
    delay->set_latency(latency);
    delay->seal();
    links.emplace_back(delay);
    add("memory" + text(a / m_machine.local.shared_by), m_machine.local.bandwidth);
    if (a != b) {
      add_message(a, b, add);
      add("memory" + text(b / m_machine.local.shared_by), m_machine.local.bandwidth);
    }
    if (kernel >= 0) add("kernels" + text(kernel), m_machine.local.copy_rate);
    m_zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
  }

  template <class Add>
  void add_message(int a, int b, const Add& add) const {
    const std::size_t l = common_level(m_machine, a, b);
    const level& of = m_machine.levels[l];
    const std::int64_t size = member_ranks(m_machine, l);
    const auto port = [&](int rank) {
      const std::int64_t inside = rank % size;
      return text(rank / size) + "." +
             text(of.binding.empty() ? inside * of.ports / size
                                     : of.binding[static_cast<std::size_t>(inside)]);
    };
    const std::string at = "level" + text(static_cast<int>(l)) + " ";
    add(at + "rank out " + text(a), of.transports[0].bandwidth);
    add(at + "rank in " + text(b), of.transports[0].bandwidth);
    add(at + "port out " + port(a), of.port_bandwidth);
    add(at + "port in " + port(b), of.port_bandwidth);
    add(at + "port both " + port(a), of.port_both);
    add(at + "port both " + port(b), of.port_both);
    add(at + "link " + text(a / size) + " " + text(b / size), of.link_bandwidth);
    add(at + "fabric " + text(a / size / of.groups), of.fabric_bandwidth);
  }

  const machine& m_machine;
  s4u::NetZone* m_zone;
  std::vector<s4u::Host*> m_ranks, m_kernels;
  std::map<std::string, s4u::Link*> m_links;
};

s4u::Mailbox* flag(int from, int to, std::uint64_t number) {
  return s4u::Mailbox::by_name("flag " + text(from) + " " + text(to) + " " +
                               std::to_string(number));
}

// One channel of a rank.
class player {
 public:
  player(const plan::schedule& s, const machine& m, const platform& p, int rank, int channel,
         s4u::MutexPtr turn)
      : m_schedule(s),
        m_machine(m),
        m_platform(p),
        m_rank(rank),
        m_channel(channel),
        m_turn(std::move(turn)) {}

  void operator()() {
    const plan::channel& code = m_schedule.ranks[static_cast<std::size_t>(m_rank)]
                                    .channels[static_cast<std::size_t>(m_channel)];
    for (std::size_t pc = 0; pc < code.size(); pc += play(code, pc)) continue;
  }

 private:
  std::size_t play(const plan::channel& code, std::size_t pc) {
    const instruction& i = code[pc];
    switch (i.op) {
      case opcode::copy:
      case opcode::reduce: return kernel(code, pc);
      case opcode::signal: return signals(code, pc);
      case opcode::wait: flag(i.peer, m_rank, i.dst_offset)->get<char>(); return 1;
      case opcode::fence:
        for (; m_finished + i.bytes < m_started.size(); ++m_finished) m_started[m_finished]->wait();
        return 1;
      default: transfer(i); return 1;
    }
  }

  void work(double seconds) {
    if (seconds <= 0) return;
    m_turn->lock();
    s4u::this_actor::sleep_for(seconds);
    m_turn->unlock();
  }

  void message_work(int peer) {
    if (peer != m_rank)
      work(m_machine.levels[common_level(m_machine, m_rank, peer)].transports[0].overhead);
  }

  void transfer(const instruction& i) {
    message_work(i.peer);
    static char nothing;
    const bool sends = i.op == opcode::send;
    if (i.op == opcode::put || i.op == opcode::get) {
      const int from = i.op == opcode::put ? m_rank : i.peer;
      const int to = i.op == opcode::put ? i.peer : m_rank;
      m_started.push_back(
          s4u::Comm::sendto_async(m_platform.rank(from), m_platform.rank(to), i.bytes));
      return;
    }
    s4u::Mailbox* box = s4u::Mailbox::by_name("message " + text(sends ? m_rank : i.peer) + " " +
                                              text(sends ? i.peer : m_rank) + " " +
                                              text(m_channel) + " " + text(i.level));
    m_started.push_back(sends ? box->put_async(&nothing, i.bytes)
                              : box->get_async<char>(&m_ignored));
  }

  std::size_t signals(const plan::channel& code, std::size_t pc) {
    static char nothing;
    message_work(code[pc].peer);
    std::size_t n = 0;
    for (; pc + n < code.size(); ++n) {
      const instruction& i = code[pc + n];
      if (i.op != opcode::signal || i.dst_offset != code[pc].dst_offset) break;
      // Of one byte: SimGrid takes an empty message that is in flight for one that has come.
      flag(m_rank, i.peer, i.dst_offset)->put_init(&nothing, 1)->detach();
    }
    return n;
  }

  // Reduces to one address are one kernel, whose sources are read at once.
  std::size_t kernel(const plan::channel& code, std::size_t pc) {
    work(m_machine.local.launch_overhead);
    std::vector<s4u::CommPtr> parts;
    std::size_t n = 0;
    const instruction& first = code[pc];
    for (; pc + n < code.size(); ++n) {
      const instruction& i = code[pc + n];
      const bool same = i.op == opcode::reduce && first.op == opcode::reduce &&
                        !plan::is_remote(first.dst) && i.dst == first.dst &&
                        i.dst_offset == first.dst_offset && i.bytes == first.bytes &&
                        i.level == first.level;
      if (n > 0 && !same) break;
      start_part(i, n == 0, parts);
    }
    for (const s4u::CommPtr& part : parts) part->wait();
    return n;
  }

  void start_part(const instruction& i, bool first, std::vector<s4u::CommPtr>& parts) {
    const bool reads = plan::is_remote(i.src);
    if (reads || plan::is_remote(i.dst)) {
      if (first) s4u::this_actor::sleep_for(m_machine.local.launch_latency);
      s4u::Host* const own = m_platform.kernel(m_rank);
      s4u::Host* const peer = m_platform.rank(i.peer);
      parts.push_back(s4u::Comm::sendto_async(reads ? peer : own, reads ? own : peer, i.bytes));
      return;
    }
    // In its own memory: so many times the bytes as there are reads and writes.
    const std::uint64_t times = m_machine.local.bandwidth <= 0 ? 1
                                : first                        ? (i.op == opcode::reduce ? 3 : 2)
                                                               : 1;
    parts.push_back(s4u::Comm::sendto_async(m_platform.rank(m_rank), m_platform.kernel(m_rank),
                                            i.bytes * times));
  }

  const plan::schedule& m_schedule;
  const machine& m_machine;
  const platform& m_platform;
  int m_rank, m_channel;
  s4u::MutexPtr m_turn;
  std::vector<s4u::CommPtr> m_started;
  std::size_t m_finished = 0;
  char* m_ignored = nullptr;
};

}  // namespace

double replay_in_simgrid(const plan::schedule& s, const machine& m) {
  // SimGrid's corrections for TCP are left out: what is described is what there is.
  std::vector<std::string> words = {"replay",
                                    "--log=root.thresh:error",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/weight-S:0",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:1e30",
                                    "--cfg=surf/precision:1e-12"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  s4u::Engine engine(&count, arguments.data());
  const platform p(m, s.what.ranks);
  for (int r = 0; r < s.what.ranks; ++r) {
    const s4u::MutexPtr turn = s4u::Mutex::create();
    const auto channels = s.ranks[static_cast<std::size_t>(r)].channels.size();
    for (std::size_t c = 0; c < channels; ++c) {
      const s4u::ActorPtr actor =
          s4u::Actor::create("channel", p.rank(r), player(s, m, p, r, static_cast<int>(c), turn));
      // A signal travels whether it is waited for yet or not.
      for (const instruction& i : s.ranks[static_cast<std::size_t>(r)].channels[c])
        if (i.op == opcode::wait) flag(i.peer, r, i.dst_offset)->set_receiver(actor);
    }
  }
  engine.run();
  return s4u::Engine::get_clock();
}

}  // namespace sucl::sim
