// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Every function that completes or asks for requests, over requests in every state, some executed
// by SuCL and some the library's. What comes out has to be what the standard says or, where a
// library has its own mind, what that library says of the same requests through its profiling
// interface.
//
//   requests [first row [last row]]
//
// To be run interposed, without trials.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr bool has_get_status_all = MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1);
// MPICH and Intel MPI never complete a persistent collective that has not been started, and take
// some that are active for inactive.
#if defined(OPEN_MPI)
constexpr bool own_mind = false;
#else
constexpr bool own_mind = true;
#endif

int g_rank = 0, g_size = 1, g_failures = 0, g_own_minds = 0;

/// MPI's functions by their usual names, or those of the library.
struct interface {
#define SUCL_FUNCTION(name) decltype(&PMPI_##name) name
  SUCL_FUNCTION(Wait);
  SUCL_FUNCTION(Test);
  SUCL_FUNCTION(Waitall);
  SUCL_FUNCTION(Testall);
  SUCL_FUNCTION(Waitany);
  SUCL_FUNCTION(Testany);
  SUCL_FUNCTION(Waitsome);
  SUCL_FUNCTION(Testsome);
  SUCL_FUNCTION(Request_get_status);
  SUCL_FUNCTION(Request_free);
  SUCL_FUNCTION(Start);
  SUCL_FUNCTION(Startall);
  SUCL_FUNCTION(Cancel);
  SUCL_FUNCTION(Irecv);
  SUCL_FUNCTION(Recv_init);
  SUCL_FUNCTION(Iallreduce);
  SUCL_FUNCTION(Allreduce_init);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  SUCL_FUNCTION(Request_get_status_all);
  SUCL_FUNCTION(Request_get_status_any);
  SUCL_FUNCTION(Request_get_status_some);
#endif
#undef SUCL_FUNCTION
};
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define SUCL_NEWER(p) \
  , p##Request_get_status_all, p##Request_get_status_any, p##Request_get_status_some
#else
#define SUCL_NEWER(p)
#endif
#define SUCL_ALL(p)       \
  {p##Wait,               \
   p##Test,               \
   p##Waitall,            \
   p##Testall,            \
   p##Waitany,            \
   p##Testany,            \
   p##Waitsome,           \
   p##Testsome,           \
   p##Request_get_status, \
   p##Request_free,       \
   p##Start,              \
   p##Startall,           \
   p##Cancel,             \
   p##Irecv,              \
   p##Recv_init,          \
   p##Iallreduce,         \
   p##Allreduce_init SUCL_NEWER(p)}
const interface usual SUCL_ALL(MPI_), library SUCL_ALL(PMPI_);

enum state {
  null,
  fresh,           ///< a persistent collective that has never been started
  rested,          ///< one that has been started and completed
  rested_message,  ///< a persistent receive that is not active
  collective,      ///< done, as the next three
  persistent,
  message,
  cancelled,
  late_collective,  ///< on rank 0 only, until it has called the function; as the next two
  late_persistent,
  late_message,
  states
};
const char* const state_names[] = {
    "null",    "fresh",     "rested",          "rested message",  "collective",  "persistent",
    "message", "cancelled", "late collective", "late persistent", "late message"};
bool is_late(state s) { return s >= late_collective; }
bool is_done(state s) { return s >= collective && s <= cancelled; }
bool is_active(state s) { return s >= collective; }
bool lasts(state s) {
  return s == fresh || s == rested || s == rested_message || s == persistent ||
         s == late_persistent;
}

enum function {
  wait,
  test,
  waitall,
  testall,
  waitany,
  testany,
  waitsome,
  testsome,
  get_status,
  get_status_all,
  get_status_any,
  get_status_some,
  functions
};
const char* const function_names[] = {"Wait",
                                      "Test",
                                      "Waitall",
                                      "Testall",
                                      "Waitany",
                                      "Testany",
                                      "Waitsome",
                                      "Testsome",
                                      "Request_get_status",
                                      "Request_get_status_all",
                                      "Request_get_status_any",
                                      "Request_get_status_some"};
bool waits(function f) { return f == wait || f == waitall || f == waitany || f == waitsome; }
bool of_one(function f) { return f == wait || f == test || f == get_status; }
bool of_any(function f) { return f == waitany || f == testany || f == get_status_any; }
bool of_some(function f) { return f == waitsome || f == testsome || f == get_status_some; }
bool asks_only(function f) { return f >= get_status; }

/// A request and what it needs.
struct slot {
  state is = null;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm = MPI_COMM_NULL;  ///< its own, so that collectives may be late
  int tag = 0, in = 0, out = -1, sent = 0;
  // Kept from row to row.
  MPI_Request prepared[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  ///< fresh, and not
  MPI_Request receive = MPI_REQUEST_NULL;
};

struct outcome {
  int code = MPI_SUCCESS, flag = 1;
  std::vector<int> over;  ///< the requests that it names
  bool none = false;      ///< MPI_UNDEFINED
  std::vector<MPI_Status> statuses;
  std::vector<bool> gone;  ///< the handle is null
};

class bench {
 public:
  explicit bench(const interface& calls, int tags) : m_calls(calls) {
    for (slot& s : m_slots) {
      s.tag = tags++;
      MPI_Comm_dup(MPI_COMM_WORLD, &s.comm);
      MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
      int sum = 0;
      for (int i = 0; i < 6; ++i) MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, s.comm);
      for (MPI_Request& r : s.prepared)
        calls.Allreduce_init(&s.in, &s.out, 1, MPI_INT, MPI_SUM, s.comm, MPI_INFO_NULL, &r);
      calls.Recv_init(&s.out, 1, MPI_INT, g_size - 1, s.tag, MPI_COMM_WORLD, &s.receive);
      calls.Start(&s.prepared[1]);
      calls.Wait(&s.prepared[1], MPI_STATUS_IGNORE);
    }
  }
  ~bench() {
    for (slot& s : m_slots) {
      for (MPI_Request& r : s.prepared) m_calls.Request_free(&r);
      m_calls.Request_free(&s.receive);
      MPI_Comm_free(&s.comm);
    }
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  outcome run(function f, const std::vector<state>& row, bool ignore) {
    for (std::size_t i = 0; i < row.size(); ++i) arm(m_slots[i], row[i]);
    for (std::size_t i = 0; i < row.size(); ++i) settle(m_slots[i]);
    PMPI_Barrier(MPI_COMM_WORLD);
    outcome o;
    if (g_rank == 0) o = call(f, row.size(), ignore);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t i = 0; i < row.size(); ++i) join(m_slots[i]);
    for (std::size_t i = 0; i < row.size(); ++i) clear(m_slots[i], row[i]);
    return o;
  }

 private:
  void start(slot& s) {
    s.in = g_rank + s.tag;
    s.out = -1;
    if (s.is == collective || s.is == late_collective) {
      m_calls.Iallreduce(&s.in, &s.out, 1, MPI_INT, MPI_SUM, s.comm, &s.request);
    } else {
      s.request = s.prepared[1];
      m_calls.Start(&s.request);
    }
  }
  void arm(slot& s, state is) {
    s.is = is;
    s.request = MPI_REQUEST_NULL;
    s.out = -1;
    switch (is) {
      case fresh: s.request = s.prepared[0]; break;
      case rested: s.request = s.prepared[1]; break;
      case rested_message: s.request = s.receive; break;
      case collective:
      case persistent: start(s); break;
      case late_collective:
      case late_persistent:
        if (g_rank == 0) start(s);
        break;
      case message:
      case late_message:
        if (g_rank == 0)
          m_calls.Irecv(&s.out, 1, MPI_INT, g_size - 1, s.tag, MPI_COMM_WORLD, &s.request);
        if (is == message) send(s);
        break;
      case cancelled:
        if (g_rank > 0) break;
        m_calls.Irecv(&s.out, 1, MPI_INT, g_size - 1, s.tag + 1000, MPI_COMM_WORLD, &s.request);
        m_calls.Cancel(&s.request);
        break;
      default: break;
    }
  }
  void send(slot& s) {
    if (g_rank == g_size - 1) PMPI_Send(&s.tag, 1, MPI_INT, 0, s.tag, MPI_COMM_WORLD);
  }
  // What is to be done is done.
  void settle(slot& s) {
    if (!is_done(s.is)) return;
    for (int done = 0; !done;) m_calls.Request_get_status(s.request, &done, MPI_STATUS_IGNORE);
    // A library may say so too early.
    if (s.is == collective || s.is == persistent)
      while (*const_cast<volatile int*>(&s.out) == -1) {
        int flag = 0;
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
      }
  }
  void join(slot& s) {
    if (s.is == late_message) send(s);
    if (g_rank > 0 && (s.is == late_collective || s.is == late_persistent)) start(s);
  }
  void clear(slot& s, state was) {
    // Never started: by the library's own rules it may not be waited for.
    if (s.is == fresh) return;
    m_calls.Wait(&s.request, MPI_STATUS_IGNORE);
    const bool sums =
        was == collective || was == persistent || was == late_collective || was == late_persistent;
    int expected = g_size * s.tag + g_size * (g_size - 1) / 2;
    if (sums && s.out != expected) fail("a sum", s.out);
    if (g_rank == 0 && (was == message || was == late_message) && s.out != s.tag)
      fail("a message", s.out);
    if (lasts(was) != (s.request != MPI_REQUEST_NULL)) fail("a handle", int(was));
  }
  static void fail(const char* what, int value) {
    ++g_failures;
    std::fprintf(stderr, "rank %d: %s is wrong (%d)\n", g_rank, what, value);
  }

  outcome call(function f, std::size_t n, bool ignore) {
    outcome o;
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < n; ++i) requests.push_back(m_slots[i].request);
    o.statuses.assign(n + 1, {});
    for (MPI_Status& s : o.statuses) s.MPI_SOURCE = s.MPI_TAG = -77;
    MPI_Status* const many = ignore ? MPI_STATUSES_IGNORE : o.statuses.data();
    MPI_Status* const one = ignore ? MPI_STATUS_IGNORE : o.statuses.data();
    MPI_Request* const all = requests.data();
    const int count = int(n);
    std::vector<int> indices(n + 1, -5);
    int number = -5;
    switch (f) {
      case wait: o.code = m_calls.Wait(all, one); break;
      case test: o.code = m_calls.Test(all, &o.flag, one); break;
      case waitall: o.code = m_calls.Waitall(count, all, many); break;
      case testall: o.code = m_calls.Testall(count, all, &o.flag, many); break;
      case waitany: o.code = m_calls.Waitany(count, all, &number, one); break;
      case testany: o.code = m_calls.Testany(count, all, &number, &o.flag, one); break;
      case waitsome: o.code = m_calls.Waitsome(count, all, &number, indices.data(), many); break;
      case testsome: o.code = m_calls.Testsome(count, all, &number, indices.data(), many); break;
      case get_status: o.code = m_calls.Request_get_status(all[0], &o.flag, one); break;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
      case get_status_all:
        o.code = m_calls.Request_get_status_all(count, all, &o.flag, many);
        break;
      case get_status_any:
        o.code = m_calls.Request_get_status_any(count, all, &number, &o.flag, one);
        break;
      case get_status_some:
        o.code = m_calls.Request_get_status_some(count, all, &number, indices.data(), many);
        break;
#endif
      default: break;
    }
    if (of_any(f)) {
      o.none = number == MPI_UNDEFINED;
      if (!o.none) o.over.push_back(number);
    } else if (of_some(f)) {
      o.none = number == MPI_UNDEFINED;
      for (int i = 0; i < number; ++i) o.over.push_back(indices[std::size_t(i)]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      o.gone.push_back(requests[i] == MPI_REQUEST_NULL);
      m_slots[i].request = requests[i];
    }
    return o;
  }

  const interface& m_calls;
  slot m_slots[5];
};

bool is_status(const MPI_Status& s, state of, int tag) {
  int count = -1, is_cancelled = -1;
  PMPI_Get_count(&s, MPI_INT, &count);
  PMPI_Test_cancelled(&s, &is_cancelled);
  if (of == cancelled) return is_cancelled;
  if (is_cancelled) return false;
  if (of == message) return count == 1 && s.MPI_SOURCE == g_size - 1 && s.MPI_TAG == tag;
  if (is_active(of)) return true;  // of collectives the fields mean nothing
  return count == 0 && s.MPI_SOURCE == MPI_ANY_SOURCE && s.MPI_TAG == MPI_ANY_TAG;
}

// What is wrong by the standard, or null.
const char* check(function f, const std::vector<state>& row, bool ignore, const outcome& o,
                  int tags) {
  if (o.code != MPI_SUCCESS) return "an error";
  const auto count = [&](auto is) { return std::count_if(row.begin(), row.end(), is); };
  const bool some_active = count(is_active) > 0, some_late = count(is_late) > 0;
  const auto done = count(is_done);
  std::vector<bool> over(row.size(), false);
  for (int i : o.over) {
    if (i < 0 || i >= int(row.size()) || !is_done(row[std::size_t(i)]) || over[std::size_t(i)])
      return "an index";
    over[std::size_t(i)] = true;
  }
  const bool all = !of_any(f) && !of_some(f);
  if (all) {
    if (o.flag != int(!some_late)) return "the flag";
    if (o.flag)
      for (std::size_t i = 0; i < row.size(); ++i) over[i] = is_done(row[i]);
  } else {
    const bool none = of_any(f) ? done == 0 : !some_active;
    if (o.none != none) return "MPI_UNDEFINED, or not";
    if (of_any(f) && o.flag != int(done > 0 || !some_active)) return "the flag";
    if (of_some(f) && done > 0 && o.over.empty()) return "the number";
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool gone = row[i] == null || (over[i] && !asks_only(f) && !lasts(row[i]));
    if (o.gone[i] != gone) return "a handle";
  }
  if (ignore || !o.flag) return nullptr;
  const auto status_of = [&](std::size_t status, std::size_t request) {
    return is_status(o.statuses[status], row[request], tags + int(request));
  };
  if (all)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!status_of(i, i)) return "a status";
  for (std::size_t i = 0; i < o.over.size(); ++i)
    if (!status_of(i, std::size_t(o.over[i]))) return "a status";
  if (of_any(f) && o.none && !is_status(o.statuses[0], null, 0)) return "the empty status";
  return nullptr;
}

bool would_hang(function f, const std::vector<state>& row) {
  const auto is = [&](auto what) { return std::any_of(row.begin(), row.end(), what); };
  if (!waits(f) || !is(is_late)) return false;
  return f == wait || f == waitall || !is(is_done);
}
bool library_hangs(function f, const std::vector<state>& row) {
  if (!own_mind || !waits(f)) return false;
  if (f == wait || f == waitall) return std::find(row.begin(), row.end(), fresh) != row.end();
  const auto is = [&](auto what) { return std::any_of(row.begin(), row.end(), what); };
  return is(is_late) && !is([](state s) { return is_done(s) && s != persistent; });
}

constexpr int usual_tags = 100, library_tags = 200;

void compare(bench& by_usual, bench& by_library, function f, const std::vector<state>& row,
             bool ignore, int number) {
  const outcome found = by_usual.run(f, row, ignore);
  const bool asks_library = !library_hangs(f, row);
  outcome its;
  if (asks_library) its = by_library.run(f, row, ignore);
  if (g_rank > 0) return;  // it has only helped
  const char* const wrong = check(f, row, ignore, found, usual_tags);
  const char* const other = asks_library ? check(f, row, ignore, its, library_tags) : nullptr;
  if (other) ++g_own_minds;
  if (!wrong || (other && std::string(wrong) == other)) return;
  ++g_failures;
  std::fprintf(stderr, "row %d: MPI_%s%s of", number, function_names[f],
               ignore ? ", statuses ignored," : "");
  for (state s : row) std::fprintf(stderr, " (%s)", state_names[s]);
  std::fprintf(stderr, ": %s is wrong (flag %d, %s, %d over)\n", wrong, found.flag,
               found.none ? "undefined" : "defined", int(found.over.size()));
}

std::vector<std::vector<state>> all_rows() {
  std::vector<std::vector<state>> rows{{}};
  for (int a = 0; a < states; ++a) {
    rows.push_back({state(a)});
    for (int b = 0; b < states; ++b) rows.push_back({state(a), state(b)});
  }
  std::mt19937 random(7);
  for (int i = 0; i < 120; ++i) {
    std::vector<state> row(3 + random() % 3);
    for (state& s : row) s = state(random() % states);
    rows.push_back(row);
  }
  return rows;
}

void table(int first, int last) {
  bench by_usual(usual, usual_tags), by_library(library, library_tags);
  int number = 0;
  for (const auto& row : all_rows())
    for (int f = 0; f < functions; ++f) {
      const auto what = function(f);
      if (of_one(what) != (row.size() == 1) && of_one(what)) continue;
      if (!has_get_status_all && what > get_status) continue;
      if (would_hang(what, row)) continue;
      if (number >= first && number <= last)
        compare(by_usual, by_library, what, row, number % 3 == 0, number);
      ++number;
    }
  if (g_rank == 0)
    std::printf("%d rows, of which the library itself sees %d differently\n", number, g_own_minds);
}

void expect(bool right, const char* what) {
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: %s\n", g_rank, what);
}

// Persistent ones of all kinds are started together, again and again, and freed while the others
// go on; what is active is not started.
void starts() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int sum = 0;
  for (int i = 0; i < 6; ++i) MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  const int next = (g_rank + 1) % g_size, before = (g_rank + g_size - 1) % g_size;
  int sums[2], word = -1;
  MPI_Request r[4];
  for (int i = 0; i < 2; ++i)
    MPI_Allreduce_init(&g_rank, &sums[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[3 * i]);
  MPI_Recv_init(&word, 1, MPI_INT, before, 3, comm, &r[1]);
  MPI_Send_init(&g_rank, 1, MPI_INT, next, 3, comm, &r[2]);
  const int expected = g_size * (g_size - 1) / 2;
  for (int round = 0; round < 20; ++round) {
    sums[0] = sums[1] = word = -1;
    MPI_Startall(4, r);
    if (round % 4 == 1) expect(MPI_Start(&r[0]) != MPI_SUCCESS, "an active collective was started");
    if (round % 4 == 2) expect(MPI_Startall(4, r) != MPI_SUCCESS, "active requests were started");
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    expect(sums[0] == expected && sums[1] == expected && word == before, "a start went wrong");
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);  // of inactive ones
    MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE);
    if (round != 9) continue;
    MPI_Request_free(&r[3]);
    expect(r[3] == MPI_REQUEST_NULL, "a freed request is not null");
    MPI_Allreduce_init(&g_rank, &sums[1], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[3]);
  }
  for (MPI_Request& request : r) MPI_Request_free(&request);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&comm);
}

// A receive that is too short is an error of its own: the statuses of a collective beside it, and
// of what has not been started, say that those are right, or still to be waited for.
void beside_an_error(bool wait) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int sum = 0, unused = 0;
  for (int i = 0; i < 6; ++i) MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  sum = -1;
  const int next = (g_rank + 1) % g_size, words[2] = {1, 2};
  int word = 0, done = 0;
  MPI_Request r[3];
  MPI_Status statuses[3] = {};
  for (MPI_Status& s : statuses) s.MPI_ERROR = -1;
  MPI_Allreduce_init(&g_rank, &unused, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
  MPI_Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r[1]);
  MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, &r[2]);
  MPI_Send(words, 2, MPI_INT, next, 4, comm);
  for (int i = 1; i < 3; ++i)
    for (done = 0; !done;) MPI_Request_get_status(r[i], &done, MPI_STATUS_IGNORE);
  const int code = wait ? MPI_Waitall(3, r, statuses) : MPI_Testall(3, r, &done, statuses);
  int of_code = MPI_SUCCESS;
  MPI_Error_class(code, &of_code);
  expect(of_code == MPI_ERR_IN_STATUS, "a message that is too long is no error");
  for (int i = 0; i < 2; ++i) {
    const int found = statuses[i].MPI_ERROR;
    expect(found == MPI_SUCCESS || found == MPI_ERR_PENDING, "the status beside an error is wrong");
    expect(i == 0 || (found == MPI_SUCCESS) == (r[1] == MPI_REQUEST_NULL), "a handle is wrong");
  }
  MPI_Waitall(2, r + 1, MPI_STATUSES_IGNORE);
  expect(sum == g_size * (g_size - 1) / 2, "the sum beside an error is wrong");
  MPI_Request_free(&r[0]);
  MPI_Comm_free(&comm);
}

// Calls that have no room for what they tell are refused, and the request is what it was.
[[maybe_unused]] void without_room() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (MPI_Comm c : {comm, MPI_Comm(MPI_COMM_SELF)}) MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  int sum = 0;
  for (int i = 0; i < 6; ++i) MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  std::vector<int> classes[2];
  for (const interface* calls : {&usual, &library}) {
    int flag = 0, number = 0;
    MPI_Status status;
    MPI_Request r = MPI_REQUEST_NULL;
    std::vector<int>& found = classes[calls == &library];
    const auto note = [&](int code) {
      found.push_back(MPI_SUCCESS);
      if (code != MPI_SUCCESS) PMPI_Error_class(code, &found.back());
    };
    sum = -1;
    calls->Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r);
    note(calls->Test(&r, nullptr, &status));
    note(calls->Testall(1, &r, nullptr, &status));
    note(calls->Testany(1, &r, &number, nullptr, &status));
    note(calls->Testany(1, &r, nullptr, &flag, &status));
    note(calls->Waitany(1, &r, nullptr, &status));
    note(calls->Waitsome(1, &r, nullptr, &number, &status));
    note(calls->Waitsome(1, &r, &number, nullptr, &status));
    note(calls->Testsome(1, &r, &number, nullptr, &status));
    note(calls->Request_get_status(r, nullptr, &status));
    // Where null is the value that ignores statuses some libraries write through a null request.
    if (MPI_STATUS_IGNORE != nullptr) {
      note(calls->Wait(&r, nullptr));
      note(calls->Testany(1, &r, &number, &flag, nullptr));
      note(calls->Iallreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm, nullptr));
    }
    expect(r != MPI_REQUEST_NULL, "a refused call has completed a request");
    calls->Wait(&r, MPI_STATUS_IGNORE);
    expect(sum == g_size * (g_size - 1) / 2, "a sum is wrong after refused calls");
  }
  expect(classes[0] == classes[1], "calls without room end in another class");
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  for (int i = 0; i < 6; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  table(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2 ? std::atoi(argv[2]) : 1 << 30);
  starts();
  for (const bool wait : {false, true}) beside_an_error(wait);
#if !defined(MPI_ABI_VERSION)  // MPICH's library for it crashes in such calls
  without_room();
#endif
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
