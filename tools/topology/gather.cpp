// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/topology/topology.hpp"

#include "bench/device/device_queue.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <sucl/sucl.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

namespace sucl::tools {
namespace {

using clock = std::chrono::steady_clock;

std::vector<sycl::queue> choose_queues(const std::string& device, bool in_job, int local_rank) {
  std::vector<sycl::queue> queues;
  if (device == "all" || (device.empty() && !in_job)) {
    for (const sycl::platform& p : sycl::platform::get_platforms())
      for (const sycl::device& d : p.get_devices()) queues.push_back(bench::make_queue(d, true));
    if (queues.empty())
      base::fail(errc::unavailable, "the SYCL runtime finds no device", "See 'sucl info'");
    return queues;
  }
  queues.push_back(
      bench::make_queue(bench::choose_device(base::split(device, ','), local_rank), true));
  return queues;
}

// The rank of this process among those of its node, before there is a communicator with queues.
int local_rank_of(runtime& rt) {
  const communicator hosts = rt.world();
  return hosts.members()[static_cast<std::size_t>(hosts.rank())].local_rank;
}

// Which backend executes collectives on each island, as its first rank reports it.
std::vector<std::string> backends_within(const std::vector<communicator>& mine) {
  const std::vector<member>& ranks = mine.front().members();
  std::vector<int> colours;
  for (const communicator& c : mine)
    colours.push_back(ranks[static_cast<std::size_t>(c.rank())].island);
  const auto islands = communicator::split(mine, colours);
  using word = std::array<char, 32>;
  std::vector<word> all(ranks.size() * mine.size());
  each_rank(mine, [&](communicator& c, std::size_t i) {
    word own{};
    if (islands[i].size() > 1) {
      const std::string by = islands[i].selected_backend(kind::allreduce, std::size_t{1} << 20);
      std::copy_n(by.begin(), std::min(by.size(), own.size() - 1), own.begin());
    }
    c.blocking().allgather(own.data(), all[i * ranks.size()].data(), own.size());
  });
  std::vector<std::string> names;
  for (const member& m : ranks)
    if (static_cast<std::size_t>(m.island) == names.size())
      names.emplace_back(all[static_cast<std::size_t>(m.rank)].data());
  return names;
}

// "messages between nodes: by X" in an explanation.
std::string transport_in(const std::string& explanation) {
  const std::string words = "messages between nodes: by ";
  const auto at = explanation.find(words);
  if (at == explanation.npos) return {};
  const auto from = at + words.size();
  return explanation.substr(from, explanation.find('\n', from) - from);
}

std::vector<topology_operation> explain_operations(const communicator& c) {
  const std::pair<kind, std::size_t> wanted[] = {
      {kind::send, long_message},      {kind::barrier, 0},        {kind::broadcast, 1024},
      {kind::broadcast, long_message}, {kind::allreduce, 1024},   {kind::allreduce, long_message},
      {kind::alltoall, long_message},  {kind::scan, long_message}};
  std::vector<topology_operation> list;
  for (const auto& [what, bytes] : wanted) {
    const std::string size = bytes >= 1u << 20 ? std::to_string(bytes >> 20) + " MiB"
                                               : std::to_string(bytes >> 10) + " KiB";
    list.push_back({name(what) + (bytes == 0 ? "" : " of " + size), c.selected_backend(what, bytes),
                    c.explain(what, bytes)});
  }
  return list;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Half the median round trip of `count` messages between this rank and its peer.
double round_trips(communicator& c, std::uint8_t* memory, int peer, bool begins, std::size_t bytes,
                   int count) {
  auto calls = c.blocking();
  std::vector<double> took;
  const int warm_up = count / 5 + 1;
  for (int i = -warm_up; i < count; ++i) {
    const auto begin = clock::now();
    if (begins) {
      calls.send(memory, bytes, peer);
      calls.recv(memory, bytes, peer);
    } else {
      calls.recv(memory, bytes, peer);
      calls.send(memory, bytes, peer);
    }
    if (i >= 0) took.push_back(std::chrono::duration<double>(clock::now() - begin).count() / 2);
  }
  return median(std::move(took));
}

// Two numbers of each link, measured one link after the other by its lower rank.
std::vector<double> measure_links(communicator& c, const std::vector<topology_link>& links) {
  constexpr int short_count = 50, long_count = 9;
  sycl::queue queue = c.queue();
  auto* memory = sycl::malloc_device<std::uint8_t>(long_message, queue);
  if (!memory) base::fail(errc::out_of_memory, "the device has no memory for 4 MiB");
  queue.fill(memory, std::uint8_t{1}, long_message).wait();
  std::vector<double> times(2 * links.size());
  for (std::size_t l = 0; l < links.size(); ++l) {
    c.blocking().barrier();
    const bool begins = links[l].from == c.rank();
    if (!begins && links[l].to != c.rank()) continue;
    const int peer = begins ? links[l].to : links[l].from;
    const double brief = round_trips(c, memory, peer, begins, short_message, short_count);
    const double lengthy = round_trips(c, memory, peer, begins, long_message, long_count);
    if (begins) times[2 * l] = brief, times[2 * l + 1] = lengthy;
  }
  c.blocking().allreduce(times.data(), times.size(), op::max);
  sycl::free(memory, queue);
  return times;
}

void measure(const std::vector<communicator>& mine, std::vector<topology_link>& links) {
  if (links.empty()) return;
  const auto times =
      each_rank(mine, [&](communicator& c) { return measure_links(c, links); }).front();
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l].seconds = times[2 * l];
    links[l].bytes_per_second = static_cast<double>(long_message) / times[2 * l + 1];
  }
}

}  // namespace

topology_report gather_topology(const topology_options& wanted, bool in_job) {
  runtime rt;
  const auto mine = rt.world(choose_queues(wanted.device, in_job, local_rank_of(rt)));
  topology_report r;
  r.control_plane = rt.control_plane();
  r.rank = mine.front().rank();
  r.ranks = mine.front().members();
  r.within = backends_within(mine);
  r.operations = explain_operations(mine.front());
  r.every_pair = r.ranks.size() <= max_ranks_in_pairs;
  const topology_operation& message = r.operations.front();
  const std::string transport = transport_in(message.explanation);
  for (const auto& [from, to] : topology_pairs(r.ranks)) {
    const member& a = r.ranks[static_cast<std::size_t>(from)];
    const member& b = r.ranks[static_cast<std::size_t>(to)];
    r.links.push_back({from, to, message.by, how_reached(a, b, message.by, transport), {}, {}});
  }
  if (wanted.measure) measure(mine, r.links);
  return r;
}

}  // namespace sucl::tools
