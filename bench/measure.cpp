// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include "bench/operations/expected.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <chrono>

namespace sucl::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::byte untouched{0x5b};  // what receive memory holds before a result is checked
constexpr int lead_in = 2;            // unmeasured iterations after each change of implementation
constexpr int min_iterations = 5;
constexpr int max_rounds = 10;

double microseconds(clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Iterations where the user has not said how many.
int usual_iterations(std::uint64_t bytes) {
  if (bytes <= 8 * 1024) return 1000;
  if (bytes <= 128 * 1024) return 400;
  return bytes <= 1024 * 1024 ? 150 : 50;
}

// Back to back, as many calls make one sample as take about this long.
constexpr double sample_us = 3000;
constexpr int max_samples = 20;

// On a device as many as surely fit its queue of work.
constexpr double max_held = 50;

enum class timing {
  call,    // each is waited for
  stream,  // back to back, until all are done
  device,  // the same by the device's clock
  issue    // back to back, until the last has returned
};

struct series {
  const implementation* what = nullptr;
  timing how = timing::call;
  int batch = 0;  // calls in a sample, back to back
  int iterations = 0;
  std::vector<double> times;  // of this rank
  bool valid = true;          // on this rank
};

// Turns that the implementations take. Each costs a lead-in, so few iterations make few.
int rounds_for(const std::vector<series>& all) {
  int least = max_rounds * min_iterations;
  for (const series& s : all) least = std::min(least, s.iterations);
  return std::max(1, least / min_iterations);
}

// One point's memory and answers.
class point {
 public:
  point(const testbed& bed, const problem& p, const options& wanted, together& ranks,
        const std::function<void(const std::string&)>& report)
      : m_bed(bed),
        m_problem(p),
        m_wanted(wanted),
        m_ranks(ranks),
        m_report(report),
        m_has_data(p.of != kind::barrier) {
    if (!m_has_data) return;
    m_expected = make_expected(p, untouched);
    m_blank.assign(m_expected.size(), untouched);
    if (in_place(p) && p.rank == p.root) m_blank = make_input(p, p.rank, p.count);
    if (!in_place(p)) bed.write_send(make_input(p, p.rank, send_elements(p)));
  }

  // Removes earlier results, so that none can pass for a new one.
  void blank() {
    if (m_has_data) m_bed.write_recv(m_blank);
    m_ranks.barrier();
  }

  void check(series& s) {
    if (!m_has_data) return;
    const std::string difference = find_difference(m_problem, m_expected, m_bed.read_recv());
    if (difference.empty()) return;
    if (s.valid) m_report(s.what->name + " (" + form_of(s) + "): " + difference);
    s.valid = false;
  }

  // First runs: checked, then timed to see how many iterations there is time for.
  void prepare(series& s) {
    if (s.what->choose) s.what->choose();
    blank();
    s.what->run();
    check(s);
    constexpr int samples = 3;
    m_ranks.barrier();
    const auto begin = clock::now();
    for (int i = 0; i < samples; ++i) s.what->run();
    std::vector<double> each{microseconds(clock::now() - begin) / samples};  // of run()
    m_ranks.max(each);
    if (s.how != timing::call) {
      const double most = s.how == timing::stream ? 500.0 : max_held;
      s.batch = static_cast<int>(std::clamp(sample_us / std::max(each[0], 0.1), 4.0, most));
      each[0] *= s.batch;
    }
    const double fitting = m_wanted.seconds * 1e6 / std::max(each[0], 0.1);
    const int usual = s.how == timing::call ? usual_iterations(m_problem.bytes()) : max_samples;
    s.iterations = m_wanted.iterations.value_or(
        static_cast<int>(std::clamp<double>(fitting, min_iterations, usual)));
    const int warmup = m_wanted.warmup.value_or(std::max(1, s.iterations / 10));
    for (int i = 0; i < warmup; ++i) once(s);
    s.times.reserve(static_cast<std::size_t>(s.iterations));
  }

  // Iterations until the series has `target` of them.
  void run(series& s, int target, bool last) {
    if (s.what->choose) s.what->choose();
    if (last) blank();
    for (int i = 0; i < lead_in; ++i) s.what->run();
    while (static_cast<int>(s.times.size()) < target) {
      m_ranks.barrier();
      s.times.push_back(time_of(s) / std::max(1, s.batch) / s.what->operations);
    }
    if (last) check(s);
  }

  static std::string form_of(const series& s) {
    switch (s.how) {
      case timing::stream: return "stream";
      case timing::device: return "device";
      case timing::issue: return "issue";
      default: return s.what->form;
    }
  }

 private:
  static void issue(const series& s) {
    for (int i = 0; i < s.batch; ++i) s.what->start();
  }

  static void once(const series& s) {
    if (s.how == timing::call) return s.what->run();
    issue(s);
    s.what->finish();
  }

  // One sample, in microseconds.
  double time_of(const series& s) {
    if (s.how == timing::device) return once_on_device(s);
    const auto begin = clock::now();
    if (s.how != timing::issue) {
      once(s);
      return microseconds(clock::now() - begin);
    }
    issue(s);
    const double time = microseconds(clock::now() - begin);
    s.what->finish();
    return time;
  }

  // The same by the device's clock: microseconds. The first one, which is not timed, lets all ranks
  // begin together.
  double once_on_device(const series& s) {
    constexpr int tries = 100;
    for (int i = 0; i < tries; ++i) {
      s.what->clock->hold();
      s.what->start();
      s.what->clock->begin();
      issue(s);
      s.what->clock->end();
      m_ranks.barrier();  // now all of it is issued everywhere
      s.what->clock->release();
      const auto time = s.what->clock->elapsed();
      s.what->finish();
      if (!m_ranks.anywhere(!time)) return *time;
    }
    base::fail(errc::unavailable,
               "the device cannot be timed: issuing " + std::to_string(s.batch) +
                   " calls always takes longer than its stream is held",
               "Leave device out of --timing");
  }

  const testbed& m_bed;
  const problem& m_problem;
  const options& m_wanted;
  together& m_ranks;
  const std::function<void(const std::string&)>& m_report;
  bool m_has_data;
  std::vector<std::byte> m_expected;
  std::vector<std::byte> m_blank;
};

}  // namespace

together::together(const baseline* raw, communicator comm) : m_raw(raw), m_comm(std::move(comm)) {
  std::unique_ptr<flag_exchange> made;
  try {
    made = std::make_unique<flag_exchange>(m_comm);
  } catch (const error&) {
    // Some other rank may have them all the same.
  }
  if (!anywhere(!made)) m_flags = std::move(made);
}

void together::barrier() {
  if (m_flags) {
    m_flags->run();
  } else if (m_raw) {
    m_raw->barrier();
  } else {
    m_comm.blocking().barrier();
  }
}

void together::max(std::vector<double>& numbers) {
  if (numbers.empty()) return;
  if (m_raw) {
    m_raw->max(numbers);
  } else {
    m_comm.blocking().allreduce(numbers.data(), numbers.size(), op::max);
  }
}

bool together::anywhere(bool here) {
  std::vector<double> flag{here ? 1.0 : 0.0};
  max(flag);
  return flag[0] > 0;
}

std::vector<outcome> measure(const testbed& bed, const problem& p, const options& wanted,
                             together& ranks,
                             const std::function<void(const std::string&)>& report) {
  point here(bed, p, wanted, ranks, report);
  std::vector<series> all;
  for (const auto& one : bed.implementations) {
    const auto add = [&](timing how) { all.push_back({&one, how, 0, 0, {}, true}); };
    if (wanted.to_completion || one.operations > 1) add(timing::call);
    if (wanted.back_to_back && one.start) add(timing::stream);
    if (wanted.on_device && one.clock) add(timing::device);
    if (wanted.issuing && one.start) add(timing::issue);
  }
  for (auto& s : all) here.prepare(s);
  const int rounds = rounds_for(all);
  for (int round = 1; round <= rounds; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      series& s = all[(i + static_cast<std::size_t>(round)) % all.size()];
      here.run(s, s.iterations * round / rounds, round == rounds);
    }
  std::vector<outcome> outcomes;
  for (auto& s : all) {
    ranks.max(s.times);
    outcomes.push_back({s.what->name, point::form_of(s), s.iterations, summarise(s.times),
                        !ranks.anywhere(!s.valid)});
  }
  return outcomes;
}

statistics time_alone(const std::function<void()>& run, int iterations) {
  std::vector<double> times;
  for (int i = 0; i < iterations / 10 + 1; ++i) run();
  for (int i = 0; i < iterations; ++i) {
    const auto begin = clock::now();
    run();
    times.push_back(microseconds(clock::now() - begin));
  }
  return summarise(std::move(times));
}

}  // namespace sucl::bench
