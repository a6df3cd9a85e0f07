// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Random collectives in all forms, each compared with what MPI itself gives through its profiling
// interface, mixed with messages; requests complete by any function, communicators come and go.
//
//   fuzz SEED|date STEPS [single|serialized|multiple [early|devices]]
//
// devices: some arguments are memory of CUDA's devices, on each rank others.
//
// early: arrays of counts, displacements and types are changed once a call has returned, before MPI
// allows it; it is for what SuCL executes, and for libraries that copy them too.
//
// A failure is repeated by the same seed and steps on as many ranks; SUCL_FUZZ_SEED goes before. To
// be run interposed.
#include "../collective.hpp"
#include "../library_faults.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace fuzz {
namespace {

// MPICH 5.0 takes some that have been started for inactive in the functions for any and some. Its
// MPI_Testall says MPI_ERR_IN_STATUS of them where no status has an error.
#if defined(MPICH_VERSION)
constexpr bool persistent_are_active = false;
#else
constexpr bool persistent_are_active = true;
#endif

// Open MPI 5.0 may wait for ever where two threads make communicators at once.
#if defined(OPEN_MPI)
constexpr bool threads_make_communicators = false;
#else
constexpr bool threads_make_communicators = true;
#endif

int g_world_rank = 0;
change g_changes = change::once_over;
std::atomic<int> g_failures{0};
std::atomic<long> g_checked{0};  // collectives
std::atomic<long> g_unknown{0};  // those for which MPI itself fails

int class_of(int code) {
  int c = MPI_SUCCESS;
  MPI_Error_class(code, &c);
  return c;
}

/// A collective under way, persistent or not, or a message to a neighbour.
struct flight {
  std::unique_ptr<collective> what;  // null: a message
  std::vector<int> sent, received, expected;
  bool persistent = false;
};

/// Lets two threads into MPI in turns, the same on every rank.
class turns {
 public:
  template <class Work>
  void take(int who, Work&& work) {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_next == who; });
    work();
    m_next = 1 - who;
    m_changed.notify_all();
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
  int m_next = 0;
};

class player {
 public:
  player(MPI_Comm world, std::uint64_t seed)
      : m_common(seed), m_own(seed * 977 + std::uint64_t(g_world_rank)), m_world(world) {
    m_comms.push_back(world);
  }

  // From now on it takes communicators that are made here.
  void make_ahead() {
    m_ahead = true;
    for (int i = 0; i < 12; ++i) m_spare.push_back(make_communicator());
  }

  void play(int steps) {
    for (m_step = 0; m_step < steps; ++m_step) step();
    end();
  }

  void play(int steps, turns& in_turns, int who) {
    for (m_step = 0; m_step < steps; ++m_step) in_turns.take(who, [&] { step(); });
    in_turns.take(who, [&] { end(); });
  }

 private:
  void end() {
    complete(0);
    while (!m_prepared.empty()) free_prepared(0);
    m_comms.insert(m_comms.end(), m_spare.begin(), m_spare.end());
    while (m_comms.size() > 1) {
      MPI_Comm_free(&m_comms.back());
      m_comms.pop_back();
    }
  }

  // What all ranks decide alike comes from m_common, what each decides for itself from m_own.
  void step() {
    const auto kind = m_common() % 100;
    if (kind < 4) {
      change_communicators();
    } else if (kind < 45) {
      blocking();
    } else if (kind < 75) {
      start();
    } else if (kind < 80) {
      message();
    } else if (kind < 92) {
      if (!persistent_works) return;
      if (kind < 85)
        prepare();
      else
        start_prepared();
    } else {
      complete(m_common() % 2 ? 0 : m_common() % (m_requests.size() + 1));
    }
    if (m_requests.size() > 12) complete(6);
    if (m_own() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(m_own() % 300));
  }

  MPI_Comm any_comm() { return m_comms[m_common() % m_comms.size()]; }

  void check(collective& c, const char* form, int code) {
    c.download();
    ++(c.is_known() ? g_checked : g_unknown);
    if (is_right(c, code)) return;
    ++g_failures;
    std::fprintf(stderr, "rank %d: step %d: %s %s is wrong: error class %d, of MPI itself %d\n",
                 g_world_rank, m_step, form, c.describe().c_str(), class_of(code),
                 class_of(c.reference_code()));
  }

  // Where MPI itself fails, this call fails alike or, as another algorithm executes it, succeeds.
  static bool is_right(const collective& c, int code) {
    if (c.is_known()) return code == MPI_SUCCESS && c.right();
    return code == MPI_SUCCESS || class_of(code) == class_of(c.reference_code());
  }

  void blocking() {
    collective c(any_comm(), m_common);
    c.expect();
    const int code = c.run(form::blocking, nullptr);
    check(c, "blocking", code);
  }

  void start() {
    flight f;
    f.what = std::make_unique<collective>(any_comm(), m_common);
    f.what->expect();
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = f.what->run(form::started, &r, g_changes);
    if (code != MPI_SUCCESS) return check(*f.what, "non-blocking", code);
    add(std::move(f), r);
  }

  void message() {
    int rank = 0, size = 1;
    MPI_Comm comm = any_comm();
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int n = 1 + int(m_common() % 60000);
    flight in, out;
    in.received.assign(std::size_t(n), -1);
    in.expected.assign(std::size_t(n), (rank + size - 1) % size + m_step);
    out.sent.assign(std::size_t(n), rank + m_step);
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Irecv(in.received.data(), n, MPI_INT, (rank + size - 1) % size, m_step % 30000, comm, &r);
    add(std::move(in), r);
    MPI_Isend(out.sent.data(), n, MPI_INT, (rank + 1) % size, m_step % 30000, comm, &r);
    add(std::move(out), r);
  }

  void prepare() {
    if (m_prepared.size() > 5) return free_prepared(m_common() % m_prepared.size());
    // Libraries do not get persistent collectives of a single rank right.
    auto c = std::make_unique<collective>(m_world, m_common);
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = c->run(form::persistent, &r, g_changes);
    if (code != MPI_SUCCESS) return check(*c, "persistent", code);
    m_prepared.push_back({std::move(c), r});
  }

  // Started by each rank in an order of its own.
  void start_prepared() {
    complete(0);
    std::vector<prepared> chosen;
    for (auto& p : m_prepared)
      if (m_common() % 3) chosen.push_back(std::move(p));
    std::erase_if(m_prepared, [](const prepared& p) { return !p.what; });
    for (auto& p : chosen) p.what->expect();
    std::shuffle(chosen.begin(), chosen.end(), m_own);
    if (m_own() % 2 && !chosen.empty()) {
      std::vector<MPI_Request> all;
      for (auto& p : chosen) all.push_back(p.request);
      MPI_Startall(int(all.size()), all.data());
    } else {
      for (auto& p : chosen) MPI_Start(&p.request);
    }
    for (auto& p : chosen) {
      flight f;
      f.what = std::move(p.what);
      f.persistent = true;
      add(std::move(f), p.request);
    }
    complete(0);
    // Back in the order in which they were made.
    std::sort(m_prepared.begin(), m_prepared.end(),
              [](const prepared& a, const prepared& b) { return a.what->number < b.what->number; });
  }

  void free_prepared(std::size_t i) {
    complete(0);
    MPI_Request_free(&m_prepared[i].request);
    m_prepared[i].what->over();
    m_prepared.erase(m_prepared.begin() + std::ptrdiff_t(i));
  }

  void change_communicators() {
    // Open MPI crashes where one is freed while its collectives are under way.
    complete(0);
    if (m_comms.size() > 4) {
      const auto i = 1 + m_common() % (m_comms.size() - 1);
      MPI_Comm_free(&m_comms[i]);
      m_comms.erase(m_comms.begin() + std::ptrdiff_t(i));
      return;
    }
    if (!m_ahead) return m_comms.push_back(make_communicator());
    if (m_spare.empty()) return;
    m_comms.push_back(m_spare.back());
    m_spare.pop_back();
  }

  MPI_Comm make_communicator() {
    MPI_Comm made = MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm_rank(m_world, &rank);
    if (m_common() % 2)
      MPI_Comm_dup(any_comm(), &made);
    else
      MPI_Comm_split(m_world, m_common() % 3 ? rank % 2 : 0, m_common() % 2 ? -rank : rank, &made);
    return made;
  }

  void add(flight f, MPI_Request r) {
    m_flights.push_back(std::move(f));
    m_requests.push_back(r);
  }

  void landed(std::size_t i, int code) {
    flight& f = m_flights[i];
    if (f.what) {
      if (!f.persistent) f.what->over();
      check(*f.what, f.persistent ? "persistent" : "non-blocking", code);
    } else if (code != MPI_SUCCESS || f.received != f.expected) {
      ++g_failures;
      std::fprintf(stderr, "rank %d: step %d: a message is wrong\n", g_world_rank, m_step);
    }
    if (f.persistent) m_prepared.push_back({std::move(f.what), m_requests[i]});
    if (f.persistent != (m_requests[i] != MPI_REQUEST_NULL)) {
      ++g_failures;
      std::fprintf(stderr, "rank %d: step %d: a request is %s\n", g_world_rank, m_step,
                   f.persistent ? "null" : "not null");
    }
  }

  // Completes until no more than `left` requests are.
  void complete(std::size_t left) {
    while (m_requests.size() > left) {
      std::vector<completion> done = complete_some();
      for (const completion& c : done) {
        if (c.of < 0) {
          ++g_failures;
          std::fprintf(stderr, "rank %d: step %d: no request is active\n", g_world_rank, m_step);
          return;
        }
        landed(std::size_t(c.of), c.code);
      }
      std::sort(done.begin(), done.end(),
                [](const completion& a, const completion& b) { return a.of > b.of; });
      for (const completion& c : done) {
        m_flights.erase(m_flights.begin() + c.of);
        m_requests.erase(m_requests.begin() + c.of);
      }
    }
  }

  struct completion {
    int of;  // the request's index; -1 if there was none to complete
    int code;
  };

  // By whatever function this rank likes.
  std::vector<completion> complete_some() {
    const int n = int(m_requests.size());
    std::vector<int> done(m_requests.size());
    std::vector<MPI_Status> statuses(m_requests.size());
    const bool any_way = persistent_are_active || !m_flights.front().persistent;
    // Where one may fail its status says so.
    const bool ignored = m_own() % 2 == 0 && any_way && !any_unknown();
    MPI_Status* s = ignored ? MPI_STATUSES_IGNORE : statuses.data();
    MPI_Status* one = m_own() % 2 ? statuses.data() : MPI_STATUS_IGNORE;
    int count = 0, flag = 0, code = MPI_SUCCESS;
    constexpr int simple[] = {0, 1, 6, 7};
    const auto how = any_way ? int(m_own() % 9) : simple[m_own() % 4];
    switch (how) {
      case 0:
        done[0] = int(m_own() % m_requests.size()), count = 1;
        code = MPI_Wait(&m_requests[std::size_t(done[0])], one);
        break;
      case 1:
        done[0] = int(m_own() % m_requests.size());
        code = MPI_Test(&m_requests[std::size_t(done[0])], &count, one);
        break;
      case 2: code = MPI_Waitany(n, m_requests.data(), done.data(), one), count = 1; break;
      case 3: code = MPI_Testany(n, m_requests.data(), done.data(), &count, one); break;
      case 4: code = MPI_Waitsome(n, m_requests.data(), &count, done.data(), s); break;
      case 5: code = MPI_Testsome(n, m_requests.data(), &count, done.data(), s); break;
      case 6: code = MPI_Testall(n, m_requests.data(), &flag, s); break;
      case 7: code = MPI_Waitall(n, m_requests.data(), s), flag = 1; break;
      default:
        MPI_Request_get_status(m_requests[0], &flag, one);
        if (flag) code = MPI_Wait(&m_requests[0], one), count = 1;
        flag = 0;
    }
    if (flag) {
      count = n;
      for (int i = 0; i < n; ++i) done[std::size_t(i)] = i;
    }
    if (count == MPI_UNDEFINED || (count && done[0] == MPI_UNDEFINED)) return {{-1, code}};
    const bool each = class_of(code) == MPI_ERR_IN_STATUS && !ignored;
    std::vector<completion> all;
    for (int k = 0; k < count; ++k)
      all.push_back({done[std::size_t(k)], each ? statuses[std::size_t(k)].MPI_ERROR : code});
    return all;
  }

  bool any_unknown() const {
    return std::any_of(m_flights.begin(), m_flights.end(),
                       [](const flight& f) { return f.what && !f.what->is_known(); });
  }

  struct prepared {
    std::unique_ptr<collective> what;
    MPI_Request request;
  };
  std::mt19937_64 m_common, m_own;
  MPI_Comm m_world;
  int m_step = 0;
  std::vector<MPI_Comm> m_comms, m_spare;
  bool m_ahead = false;
  std::vector<flight> m_flights;
  std::vector<MPI_Request> m_requests;  // of the flights
  std::vector<prepared> m_prepared;     // not started
};

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  const int steps = argc > 2 ? std::atoi(argv[2]) : 1000;
  const std::string level = argc > 3 ? argv[3] : "single";
  const std::string variant = argc > 4 ? argv[4] : "";
  if (variant == "early") fuzz::g_changes = fuzz::change::at_return;
  fuzz::with_devices = variant == "devices";
  const bool multiple = level == "multiple", serialized = level == "serialized";
  int provided = 0;
  if (multiple || serialized)
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED,
                    &provided);
  else
    MPI_Init(&argc, &argv);
  const std::uint64_t seed = fuzz::agree_on_seed(argc > 1 ? argv[1] : "1");
  MPI_Comm_rank(MPI_COMM_WORLD, &fuzz::g_world_rank);
  if (fuzz::with_devices) fuzz::open_device(fuzz::g_world_rank);
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  fuzz::player first(MPI_COMM_WORLD, seed), second(other, seed + 1000000);
  if (multiple && !fuzz::threads_make_communicators)
    for (fuzz::player* p : {&first, &second}) p->make_ahead();
  std::thread another;
  fuzz::turns in_turns;
  if (serialized || multiple)
    another = std::thread([&] {
      if (fuzz::with_devices) fuzz::use_device();
      serialized ? second.play(steps, in_turns, 1) : second.play(steps);
    });
  serialized ? first.play(steps, in_turns, 0) : first.play(steps);
  if (another.joinable()) another.join();
  std::printf("rank %d: %d failures with seed %llu and %d steps\n", fuzz::g_world_rank,
              fuzz::g_failures.load(), static_cast<unsigned long long>(seed), steps);
  const long mine[] = {fuzz::g_checked, fuzz::g_failures, fuzz::g_unknown};
  long all[3] = {0, 0, 0};
  PMPI_Reduce(mine, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (fuzz::g_world_rank == 0)
    std::printf("{\"calls\": %ld, \"wrong\": %ld, \"unknown\": %ld}\n", all[0], all[1], all[2]);
  std::fflush(stdout);
  MPI_Comm_free(&other);
  MPI_Finalize();
  // Where MPI itself fails often the run says nothing.
  const bool compared = 10 * fuzz::g_unknown <= fuzz::g_checked;
  return fuzz::g_failures == 0 && compared ? 0 : 1;
}
