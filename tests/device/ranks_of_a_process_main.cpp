// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Times allreduce and broadcast with each GPU of the machine as a rank, and checks the results:
// `--queues 2` has one process use two, as one rank each; with `--queues 1` and a process for each
// GPU the same program tells what that costs or saves. One thread issues for all its ranks, in a
// group, or with `--group 0` by one call after the other, and waits for the events of all; with
// `--threads 1` each rank has a thread. Rank 0 prints a line for each size: kind, bytes, median
// microseconds, number of results that are wrong.
#include <sucl/sucl.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

// In order, and as docs/how-to/gpus.md says costs least.
sycl::property_list cheapest() {
  const sycl::property::queue::in_order ordered;
#ifdef ACPP_EXT_COARSE_GRAINED_EVENTS
  return {ordered, sycl::property::queue::AdaptiveCpp_coarse_grained_events()};
#else
  return {ordered};
#endif
}

std::vector<sycl::queue> make_queues(int process, int count) {
  auto devices = sycl::device::get_devices(sycl::info::device_type::gpu);
  if (devices.empty()) devices = sycl::device::get_devices(sycl::info::device_type::cpu);
  if (devices.empty()) throw std::runtime_error("there is no device");
  std::vector<sycl::queue> queues;
  for (int i = 0; i < count; ++i)
    queues.emplace_back(devices[static_cast<std::size_t>(process * count + i) % devices.size()],
                        cheapest());
  return queues;
}

class trial {
 public:
  trial(std::vector<sucl::communicator>& ranks, std::size_t most, bool threads, bool group)
      : m_ranks(ranks), m_threads(threads), m_group(group), m_host(most) {
    for (auto& c : m_ranks) {
      m_send.push_back(sycl::malloc_device<float>(most, c.queue()));
      m_recv.push_back(sycl::malloc_device<float>(most, c.queue()));
      std::fill(m_host.begin(), m_host.end(), static_cast<float>(c.rank() + 1));
      auto q = c.queue();
      q.memcpy(m_send.back(), m_host.data(), most * sizeof(float)).wait();
    }
  }
  ~trial() {
    for (std::size_t i = 0; i < m_ranks.size(); ++i) {
      sycl::free(m_send[i], m_ranks[i].queue());
      sycl::free(m_recv[i], m_ranks[i].queue());
    }
  }
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  // The median time of a call and its end, in microseconds.
  double time(sucl::kind kind, std::size_t count) {
    const int rounds = count > (std::size_t{1} << 20) ? 60 : 300;
    std::vector<double> all;
    if (!m_threads) {
      all = times_of(rounds, [&] { run(kind, count); });
    } else {
      sucl::each_rank(m_ranks, [&](sucl::communicator&, std::size_t i) {
        auto mine = times_of(rounds, [&] { start_one(i, kind, count).wait(); });
        if (i == 0) all = std::move(mine);
        return true;
      });
    }
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
  }

  // Of all elements of all ranks of this process.
  std::size_t wrong(sucl::kind kind, std::size_t count) {
    const int size = m_ranks.front().size();
    const auto expected =
        static_cast<float>(kind == sucl::kind::allreduce ? size * (size + 1) / 2 : 1);
    std::size_t n = 0;
    for (std::size_t i = 0; i < m_ranks.size(); ++i) {
      auto q = m_ranks[i].queue();
      const float* from = kind == sucl::kind::allreduce ? m_recv[i] : m_send[i];
      q.memcpy(m_host.data(), from, count * sizeof(float)).wait();
      for (std::size_t k = 0; k < count; ++k) n += m_host[k] != expected;
    }
    return n;
  }

 private:
  template <class Call>
  static std::vector<double> times_of(int rounds, const Call& call) {
    std::vector<double> all;
    for (int i = 0; i < rounds + 20; ++i) {
      const auto began = clock_type::now();
      call();
      const std::chrono::duration<double, std::micro> took = clock_type::now() - began;
      if (i >= 20) all.push_back(took.count());
    }
    return all;
  }

  sycl::event start_one(std::size_t i, sucl::kind kind, std::size_t count) {
    auto& c = m_ranks[i];
    if (kind == sucl::kind::allreduce)
      return c.allreduce(m_send[i], m_recv[i], count, sucl::op::sum);
    return c.broadcast(m_send[i], count, 0);
  }

  void run(sucl::kind kind, std::size_t count) {
    if (!m_group) {
      std::vector<sycl::event> done;
      for (std::size_t i = 0; i < m_ranks.size(); ++i) done.push_back(start_one(i, kind, count));
      for (auto& e : done) e.wait();
      return;
    }
    sucl::group all;
    for (std::size_t i = 0; i < m_ranks.size(); ++i) {
      auto calls = all.on(m_ranks[i]);
      if (kind == sucl::kind::allreduce)
        calls.allreduce(m_send[i], m_recv[i], count, sucl::op::sum);
      else
        calls.broadcast(m_send[i], count, 0);
    }
    for (auto& e : all.submit_each()) e.wait();
  }

  std::vector<sucl::communicator>& m_ranks;
  bool m_threads, m_group;
  std::vector<float> m_host;
  std::vector<float*> m_send, m_recv;
};

int run(int argc, char** argv) {
  int queues = 2;
  bool threads = false, group = true;
  std::size_t most = std::size_t{16} << 20;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--queues") queues = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--threads") threads = std::atoi(argv[i + 1]) != 0;
    if (std::string(argv[i]) == "--group") group = std::atoi(argv[i + 1]) != 0;
    if (std::string(argv[i]) == "--most") most = std::strtoull(argv[i + 1], nullptr, 10);
  }
  sucl::runtime runtime;
  auto ranks = runtime.world(make_queues(runtime.rank(), queues));
  std::size_t wrong = 0;
  trial t(ranks, most, threads, group);
  for (const auto kind : {sucl::kind::allreduce, sucl::kind::broadcast}) {
    if (runtime.rank() == 0)
      std::printf("%s", ranks[0].explain(kind, std::size_t{1} << 20).c_str());
    for (std::size_t count = 2; count <= most; count *= 8) {
      const double us = t.time(kind, count);
      const std::size_t bad = t.wrong(kind, count);
      wrong += bad;
      if (runtime.rank() == 0)
        std::printf("%s %zu bytes %.2f us %zu wrong\n", name(kind), count * sizeof(float), us, bad);
    }
  }
  std::printf("process %d: %d ranks of %d, %zu wrong\n", runtime.rank(), queues, ranks[0].size(),
              wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
