// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tuner.hpp"

#include "bench/baselines/baseline.hpp"
#include "bench/operations/problem.hpp"
#include "bench/results/statistics.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "process/process.hpp"
#include "sim/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace sucl::bench {
namespace {

using clock = std::chrono::steady_clock;
using tune::call_form;
using tune::memory_kind;

constexpr std::uint64_t min_slice = 16 << 10, max_slice = 4 << 20;
constexpr int quick_samples = 9;
constexpr int shortlist = 3;
constexpr double hopeless = 1.4;  // times the best after a few samples

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// What ranks do together outside of what is measured: by raw MPI, or where there is none by a
// communicator of the library, which no table changes.
class coordination {
 public:
  coordination(const std::string& flavour, core::process& process) {
    if (flavour.empty())
      m_comm = process.world({});
    else
      m_raw.emplace(flavour);
  }
  void barrier() const {
    if (m_raw) return m_raw->barrier();
    m_comm->run(record(SUCL_KIND_BARRIER), {});
  }
  /// The largest of each number over the ranks.
  void max(std::vector<double>& numbers) const {
    if (m_raw) return m_raw->max(numbers);
    sucl_operation o = record(SUCL_KIND_ALLREDUCE);
    o.type = SUCL_TYPE_FP64;
    o.op = SUCL_OP_MAX;
    o.element_size = sizeof(double);
    o.count = numbers.size();
    o.flags = SUCL_FLAG_IN_PLACE;
    o.recv = numbers.data();
    o.send_memory = o.recv_memory = SUCL_MEMORY_SYSTEM;
    m_comm->run(o, {});
  }

 private:
  static sucl_operation record(sucl_kind kind) {
    sucl_operation o{};
    o.struct_size = sizeof o;
    o.kind = kind;
    o.element_size = 1;
    return o;
  }
  std::optional<baseline> m_raw;
  std::shared_ptr<core::communicator> m_comm;
};

// Memory of a whole run: send and receive, ordinary and the communicator's own, all on pages.
class arena {
 public:
  arena(core::communicator& comm, std::uint64_t bytes, bool symmetric) : m_comm(comm) {
    const std::uint64_t whole = (bytes + page - 1) / page * page;
    for (auto& m : m_ordinary) {
      m.reset(std::aligned_alloc(page, whole));
      if (!m)
        base::fail(errc::out_of_memory, "no memory for " + std::to_string(whole) + " bytes",
                   "Tune smaller --sizes");
      std::memset(m.get(), 0, whole);
    }
    if (!symmetric) return;
    for (void*& p : m_symmetric) p = comm.allocate(whole);
  }
  ~arena() {
    try {
      for (void* p : m_symmetric)
        if (p) m_comm.deallocate(p);
    } catch (const error&) {
      // The communicator has failed; its caller has got the error.
    }
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  void* send(memory_kind where) { return at(where, 0); }
  void* recv(memory_kind where) { return at(where, 1); }

 private:
  static constexpr std::uint64_t page = 4096;
  struct free_it {
    void operator()(void* p) const { std::free(p); }
  };

  void* at(memory_kind where, std::size_t side) {
    return where == memory_kind::symmetric ? m_symmetric[side] : m_ordinary[side].get();
  }

  core::communicator& m_comm;
  std::unique_ptr<void, free_it> m_ordinary[2];
  void* m_symmetric[2] = {nullptr, nullptr};
};

// The table that makes everything go by one candidate.
std::shared_ptr<const tune::table> only(const tried& t, kind what) {
  auto table = std::make_shared<tune::table>();
  for (const memory_kind where : {memory_kind::system, memory_kind::symmetric}) {
    tune::table_row r;
    r.what = what;
    r.memory = where;
    r.backend = t.backend;
    r.origin = "sucl tune";
    if (!t.recipe.empty()) r.how = plan::recipe_from_text(t.recipe);
    r.slice = t.slice;
    if (!t.recipe.empty() || where == memory_kind::system) table->rows.push_back(r);
  }
  return table;
}

class tuner {
 public:
  tuner(const tuning_request& wanted, core::communicator& comm, const coordination& others,
        std::optional<sim::machine> machine)
      : m_wanted(wanted),
        m_comm(comm),
        m_coordination(others),
        m_machine(comm.where().nodes > 1 ? std::nullopt : std::move(machine)),
        m_arena(comm, wanted.sizes.back() * static_cast<std::uint64_t>(comm.size()),
                wanted.symmetric) {}

  std::vector<tuned_point> run() {
    std::vector<memory_kind> memories{memory_kind::system};
    const bool one_node = m_comm.where().nodes == 1;
    if (m_wanted.symmetric && one_node) memories.push_back(memory_kind::symmetric);
    const std::size_t total = m_wanted.collectives.size() * memories.size() * m_wanted.sizes.size();
    std::vector<tuned_point> points, by_event;
    for (const kind what : m_wanted.collectives)
      for (const memory_kind where : memories) {
        tried best;
        for (const std::uint64_t bytes : m_wanted.sizes) {
          begin_point(total - m_done++, what, where, bytes);
          tuned_point p = search(what, where, bytes, best);
          if (p.all.empty()) continue;  // nothing there is meant for messages so short
          best = p.all.front();
          for (const tried& t : p.all)
            if (!t.recipe.empty()) {
              best = t;
              break;
            }
          if (where == memory_kind::system) by_event.push_back(again_by_event(p));
          points.push_back(std::move(p));
        }
      }
    points.insert(points.end(), by_event.begin(), by_event.end());
    return points;
  }

 private:
  // Divides what is left of the time evenly among what is left to do.
  void begin_point(std::size_t left, kind what, memory_kind where, std::uint64_t bytes) {
    std::vector<double> spent{seconds_since(m_begin)};
    m_coordination.max(spent);
    m_share = std::max(0.0, m_wanted.seconds - spent[0]) / static_cast<double>(left);
    m_point = clock::now();
    if (m_comm.rank() == 0 && m_wanted.progress)
      m_wanted.progress(std::min(1.0, spent[0] / m_wanted.seconds),
                        std::string(name(what)) + ", " + tune::name(where) + " memory, " +
                            base::print_bytes(bytes));
  }

  // The part of the point's share that is spent, alike on every rank.
  double spent() const {
    std::vector<double> part{seconds_since(m_point) / std::max(m_share, 1e-6)};
    m_coordination.max(part);
    return part[0];
  }

  sucl_operation record(kind what, memory_kind where, std::uint64_t bytes) {
    sucl_operation o{};
    o.struct_size = sizeof o;
    o.kind = static_cast<sucl_kind>(what);
    o.type = SUCL_TYPE_FP32;
    o.op = reduces(what) ? SUCL_OP_SUM : SUCL_OP_NONE;
    o.element_size = sizeof(float);
    o.count = bytes / sizeof(float);
    o.send_memory = o.recv_memory = SUCL_MEMORY_SYSTEM;
    o.send = m_arena.send(where);
    o.recv = m_arena.recv(where);
    if (what == kind::broadcast) {
      o.send = nullptr;
      o.flags |= SUCL_FLAG_IN_PLACE;
    }
    return o;
  }

  // Takes samples of one candidate until there are `samples` or the time is over.
  void sample(tried& t, kind what, memory_kind where, std::uint64_t bytes, call_form form,
              int samples) {
    m_comm.use_table(only(t, what));
    const sucl_operation o = record(what, where, bytes);
    std::vector<double> times;
    for (int i = -2; i < samples; ++i) {
      m_coordination.barrier();
      const auto begin = clock::now();
      if (form == call_form::blocking)
        m_comm.run(o, {});
      else
        m_comm.wait(m_comm.issue(o, {}, true, {}).operation);
      if (i >= 0) times.push_back(seconds_since(begin));
    }
    m_coordination.max(times);
    // Few samples say how fast it can be, many how fast it is.
    const statistics all = summarise(times);
    const double median = samples > quick_samples ? all.median : (all.median + all.min) / 2;
    t.seconds = t.samples > 0 ? std::min(t.seconds, median) : median;
    t.samples += samples;
  }

  // What the simulator says of a plan; 0: it cannot.
  double predict(const tried& t, kind what, std::uint64_t bytes) const {
    if (!m_machine || bytes < sizeof(float)) return 0;
    plan::problem p;
    p.kind = what;
    p.ranks = m_comm.size();
    p.element_bytes = sizeof(float);
    const std::uint64_t piece = std::min(bytes, t.slice);
    p.counts = {std::max<std::uint64_t>(1, piece / sizeof(float))};
    const auto pieces = static_cast<double>((bytes + piece - 1) / piece);
    return pieces *
           sim::simulate(plan::build(p, plan::recipe_from_text(t.recipe)), *m_machine).seconds;
  }

  // Whether it is what executes such a message if a table says so: else something else would be
  // timed under its name.
  bool supports(const tried& t, kind what, memory_kind where, std::uint64_t bytes) {
    const auto table = only(t, what);
    const sucl_operation o = record(what, where, bytes);
    const auto row = std::find_if(table->rows.begin(), table->rows.end(),
                                  [&](const auto& r) { return r.memory == where; });
    if (!m_comm.backends().plan_obstacle(*row, o).empty()) return false;
    m_comm.use_table(table);
    return m_comm.backends().name_of(o) == t.backend;
  }

  // Plans that differ from `best` in the algorithm or one step of the slice; all algorithms where
  // there is no best one yet.
  std::vector<tried> neighbours(kind what, memory_kind where, std::uint64_t bytes,
                                const tried& best) {
    std::vector<tried> list;
    const auto add = [&](const std::string& recipe, std::uint64_t slice) {
      slice = std::clamp(slice, min_slice, max_slice);
      // Slices that hold the whole message are all the same.
      if (slice / 2 >= bytes && slice > min_slice) return;
      tried t{"plan", recipe, slice, 0, 0, 0};
      if (!supports(t, what, where, bytes)) return;
      t.predicted = predict(t, what, bytes);
      list.push_back(std::move(t));
    };
    const std::uint64_t slice = best.slice ? best.slice : 128 << 10;
    for (const char* recipe : recipes(where))
      add(recipe, std::min(slice, std::max(bytes, min_slice)));
    if (!best.recipe.empty()) add(best.recipe, slice * 2);
    if (!best.recipe.empty()) add(best.recipe, slice / 2);
    std::stable_sort(list.begin(), list.end(),
                     [](const tried& a, const tried& b) { return a.predicted < b.predicted; });
    return list;
  }

  // What there is for some collective. The executor knows the nodes that recipes go along.
  const std::vector<const char*>& recipes(memory_kind where) const {
    static const std::vector<const char*> staged_or_read{"staged_one_shot", "staged_two_shot",
                                                         "read_one_shot", "read_two_shot"};
    static const std::vector<const char*> mapped{"mapped_one_shot", "mapped_two_shot"};
    static const std::vector<const char*> between_nodes{
        "node_shot(leaders=1)",      "node_shot",
        "two_level(outer=tree)",     "two_level(radices=4;outer=tree)",
        "two_level(outer=exchange)", "two_level(leaders=1;outer=exchange)",
        "two_level(outer=doubling)", "two_level(leaders=1;outer=doubling)",
        "two_level(outer=cyclic)",   "two_level(leaders=1;outer=cyclic)"};
    if (where == memory_kind::symmetric) return mapped;
    return m_comm.where().nodes > 1 ? between_nodes : staged_or_read;
  }

  // Climbs from the best plan of the size before; every step measures what differs in one thing.
  tuned_point search(kind what, memory_kind where, std::uint64_t bytes, const tried& before) {
    tuned_point p{what, where, call_form::blocking, bytes, {}};
    if (where == memory_kind::system) try_one(p, {"mpi", "", 0, 0, 0, 0});
    tried best = before;
    for (int step = 0; step < 4; ++step) {
      bool better = false;
      for (const tried& t : neighbours(what, where, bytes, best)) {
        if (known(p, t) || (step > 0 && spent() > 0.6)) continue;
        try_one(p, t);
      }
      sort(p);
      for (const tried& t : p.all) {
        if (t.backend != "plan") continue;
        better = t.recipe != best.recipe || t.slice != best.slice;
        best = t;
        break;
      }
      if (!better) break;
    }
    if (!p.all.empty()) compare_shortlist(p);
    return p;
  }

  static bool known(const tuned_point& p, const tried& t) {
    return std::any_of(p.all.begin(), p.all.end(), [&](const tried& k) {
      return k.backend == t.backend && k.recipe == t.recipe && k.slice == t.slice;
    });
  }

  void try_one(tuned_point& p, tried t) {
    sample(t, p.what, p.memory, p.bytes, p.form, quick_samples);
    p.all.push_back(std::move(t));
  }

  static void sort(tuned_point& p) {
    std::stable_sort(p.all.begin(), p.all.end(),
                     [](const tried& a, const tried& b) { return a.seconds < b.seconds; });
  }

  // The fastest ones take turns until the point's share of the time is over.
  void compare_shortlist(tuned_point& p) {
    const double bound = hopeless * p.all.front().seconds;
    for (int round = 0; round < 20; ++round) {
      if (round > 0 && spent() > 0.85) break;
      int taken = 0;
      for (tried& t : p.all) {
        if (t.seconds > bound || taken++ == shortlist) break;
        const double fits = 0.02 / std::max(t.seconds, 1e-7);
        sample(t, p.what, p.memory, p.bytes, p.form,
               static_cast<int>(std::clamp(fits, 3.0, 100.0)));
      }
    }
    sort(p);
  }

  // MPI and the best plan once more, by event: MPI has other algorithms there.
  tuned_point again_by_event(const tuned_point& p) {
    tuned_point e{p.what, p.memory, call_form::event, p.bytes, {}};
    bool plan = false, reference = false;
    for (tried t : p.all) {
      bool& seen = t.recipe.empty() ? reference : plan;
      if (seen) continue;
      seen = true;
      t.samples = 0;
      sample(t, e.what, e.memory, e.bytes, e.form,
             static_cast<int>(std::clamp(0.01 / std::max(t.seconds, 1e-7), 3.0, 50.0)));
      e.all.push_back(t);
    }
    sort(e);
    return e;
  }

  const tuning_request& m_wanted;
  core::communicator& m_comm;
  const coordination& m_coordination;
  std::optional<sim::machine> m_machine;
  arena m_arena;
  clock::time_point m_begin = clock::now();
  clock::time_point m_point = m_begin;
  double m_share = 0;
  std::size_t m_done = 0;
};

// The description that `sucl tune` has left of this machine; predictions only order what is tried,
// so every rank must have the same one or none.
std::optional<sim::machine> describe_machine(int ranks, const coordination& others) {
  std::optional<sim::machine> m;
  std::vector<double> missing{0};
  try {
    m = sim::load_machine("this");
    auto& inner = m->levels.back();
    inner.groups = std::max(inner.groups, ranks);
    if (static_cast<std::int64_t>(ranks) > sim::rank_count(*m)) missing[0] = 1;
    sim::check(*m);
  } catch (const error&) {
    missing[0] = 1;
  }
  others.max(missing);
  if (missing[0] > 0) m.reset();
  return m;
}

}  // namespace

tuning_result run_tuning(const tuning_request& wanted, const std::string& flavour) {
  const auto begin = clock::now();
  const auto process = core::process::start(nullptr, nullptr);
  tuning_result result;
  {
    const auto comm = process->world({});
    const coordination others(flavour, *process);
    if (comm->size() < 2)
      base::fail(errc::invalid_argument, "there is one rank, and nothing to choose",
                 "Tune with the numbers of ranks that your programs have: sucl tune -n 2");
    result.rank = comm->rank();
    result.ranks = comm->size();
    result.nodes = comm->where().nodes;
    tuner work(wanted, *comm, others, describe_machine(comm->size(), others));
    result.points = work.run();
    comm->use_table(nullptr);
  }
  conclude(result, wanted, process->control() ? process->control()->name : "");
  result.took = seconds_since(begin);
  process->shut_down();
  return result;
}

}  // namespace sucl::bench
