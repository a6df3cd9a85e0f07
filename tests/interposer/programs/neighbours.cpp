// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Random collectives between neighbours: other graphs, counts, displacements and types each time,
// in all forms and widths, each compared with what MPI itself gives through its profiling
// interface. They go on beside collectives of SuCL's on the same communicator, and their arrays are
// overwritten as early as MPI allows.
//
//   neighbours SEED|date STEPS
//
// To be run interposed.
#include "../collective.hpp"
#include "../library_faults.hpp"

namespace fuzz {
namespace {

int g_rank = 0, g_size = 1, g_failures = 0;
long g_checked = 0;

enum class pattern { allgather, allgatherv, alltoall, alltoallv, alltoallw, count };
const char* const pattern_names[] = {"allgather", "allgatherv", "alltoall", "alltoallv",
                                     "alltoallw"};

/// A communicator and, of each edge, the rank at its other end and what its ends know it by.
struct graph {
  struct edge {
    int peer;
    std::uint64_t name;
  };
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<edge> in, out;
  bool even = false;  ///< all edges have the same counts
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  std::mt19937_64 random(a * 1000003 + b * 10007 + c * 101 + d);
  return random();
}

// Up to two edges from any rank to any other, or to itself.
graph any_graph(std::uint64_t seed) {
  graph g;
  std::vector<int> sources, destinations;
  for (int from = 0; from < g_size; ++from)
    for (int to = 0; to < g_size; ++to) {
      const auto edges = mixed(seed, std::uint64_t(from), std::uint64_t(to), 77) % 4 % 3;
      for (std::uint64_t k = 0; k < edges; ++k) {
        const auto name = std::uint64_t(from * 64 + to) * 4 + k;
        if (to == g_rank) sources.push_back(from), g.in.push_back({from, name});
        if (from == g_rank) destinations.push_back(to), g.out.push_back({to, name});
      }
    }
  sources.reserve(1), destinations.reserve(1);  // not null
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, int(sources.size()), sources.data(),
                                 MPI_UNWEIGHTED, int(destinations.size()), destinations.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g.comm);
  return g;
}

// A ring, or a line, whose ends have MPI_PROC_NULL for a neighbour.
graph line(int periodic) {
  graph g;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &g_size, &periodic, 0, &g.comm);
  int before = 0, next = 0;
  MPI_Cart_shift(g.comm, 0, 1, &before, &next);
  for (const int peer : {before, next}) g.in.push_back({peer, 0}), g.out.push_back({peer, 0});
  g.even = true;
  return g;
}

/// One call: its arguments and memory.
class call {
 public:
  call(const graph& on, std::uint64_t seed, pattern what)
      : m_on(on),
        m_what(what),
        m_counts_out({}),
        m_counts_in({}),
        m_displs_out({}),
        m_displs_in({}),
        m_bytes_out({}),
        m_bytes_in({}) {
    std::mt19937_64 random(seed);
    const int limit = int(random() % 3 == 0 ? 3000 : 40);
    m_same = int(random() % std::uint64_t(limit + 1));
    m_element = all_elements()[random() % all_elements().size()];
    while (m_element.gap_end != 0) m_element = all_elements()[random() % all_elements().size()];
    const bool gathers = what == pattern::allgather || what == pattern::allgatherv;
    const bool equal = what == pattern::allgather || what == pattern::alltoall || on.even;
    const auto count_of = [&](int from, std::uint64_t name) {
      if (equal) return m_same;
      return int(mixed(seed, gathers ? std::uint64_t(from) : name, gathers, 5) %
                 std::uint64_t(limit + 1));
    };
    m_mine = count_of(g_rank, 0);
    lay_out(
        on.out, seed, [&](const graph::edge& e) { return count_of(g_rank, e.name); }, m_counts_out,
        m_displs_out, m_bytes_out, m_types_out, m_bytes_sent);
    lay_out(
        on.in, seed, [&](const graph::edge& e) { return count_of(e.peer, e.name); }, m_counts_in,
        m_displs_in, m_bytes_in, m_types_in, m_bytes_received);
    const std::size_t least = std::size_t(m_mine + 1) * m_element.extent;
    m_send.resize(std::max(m_bytes_sent, least));
    std::mt19937_64 own(seed * 31 + std::uint64_t(g_rank));
    for (char& byte : m_send) byte = char(own());
    m_sent = m_send;
    m_expected.assign(m_bytes_received + 1, 0x5a);
    m_actual = m_expected;
  }

  int expect() { return run(form::reference, false, nullptr, m_expected); }
  int start(form how, bool large, MPI_Request* request) {
    return run(how, large, request, m_actual);
  }
  /// Its arrays may be changed.
  void over() {
    for (numbers* n : {&m_counts_out, &m_counts_in}) n->overwrite(1 << 30);
    for (numbers* n : {&m_displs_out, &m_displs_in, &m_bytes_out, &m_bytes_in})
      n->overwrite(-77777);
    for (auto* types : {&m_types_out, &m_types_in})
      std::fill(types->begin(), types->end(), MPI_DATATYPE_NULL);
  }
  void forget() { m_actual.assign(m_actual.size(), 0x5a); }
  bool right() const { return m_actual == m_expected && m_send == m_sent; }

 private:
  static constexpr int max_extent = 48;

  // Blocks lie from the last to the first, with room between. Of alltoallw each has a type of its
  // own.
  template <class CountOf>
  void lay_out(const std::vector<graph::edge>& edges, std::uint64_t seed, const CountOf& count_of,
               numbers& counts, numbers& displs, numbers& bytes, std::vector<MPI_Datatype>& types,
               std::size_t& total) {
    std::vector<int> c, p(edges.size()), b(edges.size());
    const bool listed = m_what == pattern::allgatherv || m_what == pattern::alltoallv;
    int at = 0, at_bytes = 0;
    for (const auto& e : edges) {
      c.push_back(count_of(e));
      types.push_back(m_on.even ? m_element.type : type_of(e, seed));
    }
    for (std::size_t i = edges.size(); i-- > 0;) {
      p[i] = at, b[i] = at_bytes;
      at += c[i] + (listed ? 1 : 0);
      at_bytes += (c[i] + 1) * max_extent;
    }
    total =
        m_what == pattern::alltoallw ? std::size_t(at_bytes) : std::size_t(at) * m_element.extent;
    // Open MPI takes no null array, even of no edges.
    for (auto* array : {&c, &p, &b}) array->push_back(0);
    types.push_back(MPI_INT);
    counts = numbers(c), displs = numbers(p), bytes = numbers(b);
  }

  // Of types with padding it is open what is copied.
  static MPI_Datatype type_of(const graph::edge& e, std::uint64_t seed) {
    const auto& all = all_elements();
    for (auto at = mixed(seed, e.name, 3, 9) % all.size();; at = (at + 1) % all.size())
      if (all[at].gap_end == 0) return all[at].type;
  }

#define SUCL_NEIGHBOR_WIDTH(name, suffix, ...)                                                   \
  switch (how) {                                                                                 \
    case form::reference: return PMPI_Neighbor_##name(__VA_ARGS__, m_on.comm);                   \
    case form::blocking: return MPI_Neighbor_##name##suffix(__VA_ARGS__, m_on.comm);             \
    case form::started: return MPI_Ineighbor_##name##suffix(__VA_ARGS__, m_on.comm, request);    \
    default:                                                                                     \
      return MPI_Neighbor_##name##_init##suffix(__VA_ARGS__, m_on.comm, MPI_INFO_NULL, request); \
  }
#if MPI_VERSION >= 4
#define SUCL_NEIGHBOR_FORM(name, ...)          \
  if (large) {                                 \
    SUCL_NEIGHBOR_WIDTH(name, _c, __VA_ARGS__) \
  } else {                                     \
    SUCL_NEIGHBOR_WIDTH(name, , __VA_ARGS__)   \
  }
#else
#define SUCL_NEIGHBOR_FORM(name, ...) SUCL_NEIGHBOR_WIDTH(name, , __VA_ARGS__)
#endif

  int run(form how, [[maybe_unused]] bool large, MPI_Request* request,
          std::vector<char>& received) {
    const void* const in = m_send.data();
    void* const out = received.data();
    const MPI_Datatype t = m_element.type;
    switch (m_what) {
      case pattern::allgather: SUCL_NEIGHBOR_FORM(allgather, in, m_same, t, out, m_same, t)
      case pattern::allgatherv:
        SUCL_NEIGHBOR_FORM(allgatherv, in, m_mine, t, out, m_counts_in, m_displs_in, t)
      case pattern::alltoall: SUCL_NEIGHBOR_FORM(alltoall, in, m_same, t, out, m_same, t)
      case pattern::alltoallv:
        SUCL_NEIGHBOR_FORM(alltoallv, in, m_counts_out, m_displs_out, t, out, m_counts_in,
                           m_displs_in, t)
      default:
        SUCL_NEIGHBOR_FORM(alltoallw, in, m_counts_out, m_bytes_out, m_types_out.data(), out,
                           m_counts_in, m_bytes_in, m_types_in.data())
    }
  }

  const graph& m_on;
  pattern m_what;
  element m_element{};
  int m_same = 0, m_mine = 0;
  numbers m_counts_out, m_counts_in, m_displs_out, m_displs_in, m_bytes_out, m_bytes_in;
  std::vector<MPI_Datatype> m_types_out, m_types_in;
  std::size_t m_bytes_sent = 0, m_bytes_received = 0;
  std::vector<char> m_send, m_sent, m_expected, m_actual;
};

void check(bool right, int step, const char* how, pattern what) {
  ++g_checked;
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: step %d: %s neighbor_%s is wrong\n", g_rank, step, how,
               pattern_names[int(what)]);
}

// SuCL's own, before, between and after.
void with_a_sum(MPI_Comm comm, std::vector<MPI_Request>& requests) {
  int all = -1;
  const int one = 1;
  requests.push_back(MPI_REQUEST_NULL);
  MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm, &requests.back());
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  requests.pop_back();
  check(all == g_size, -1, "a sum beside", pattern::allgather);
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  check(all == g_size, -1, "a sum after", pattern::allgather);
}

void step(const graph& on, int number, std::mt19937_64& random) {
  const auto draw = [&] { return pattern(random() % std::uint64_t(pattern::count)); };
  const pattern what[] = {draw(), draw()};
  const bool large = random() % 2;
  call first(on, random(), what[0]), second(on, random(), what[1]);
  bool fine = first.expect() == MPI_SUCCESS;
  fine = second.expect() == MPI_SUCCESS && fine;
  check(fine, number, "MPI's own", what[0]);
  std::vector<MPI_Request> requests(2, MPI_REQUEST_NULL);
  switch (random() % 3) {
    case 0:
      for (auto [c, p] : {std::pair{&first, what[0]}, {&second, what[1]}}) {
        const int code = c->start(form::blocking, large, nullptr);
        check(code == MPI_SUCCESS && c->right(), number, "blocking", p);
      }
      return;
    case 1:
      first.start(form::started, large, &requests[0]);
      second.start(form::started, !large, &requests[1]);
      with_a_sum(on.comm, requests);
      check(first.right(), number, "non-blocking", what[0]);
      check(second.right(), number, "non-blocking", what[1]);
      first.over(), second.over();
      return;
    default: break;
  }
  if (!persistent_works) return;
  first.start(form::persistent, large, &requests[0]);
  second.start(form::persistent, !large, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    first.forget(), second.forget();
    MPI_Startall(2, requests.data());
    with_a_sum(on.comm, requests);
    check(first.right(), number, "persistent", what[0]);
    check(second.right(), number, "persistent", what[1]);
  }
  for (MPI_Request& r : requests) MPI_Request_free(&r);
  first.over(), second.over();
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  using namespace fuzz;
  MPI_Init(&argc, &argv);
  const std::uint64_t seed = agree_on_seed(argc > 1 ? argv[1] : "1");
  const int steps = argc > 2 ? std::atoi(argv[2]) : 300;
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  std::mt19937_64 random(seed);
  for (int done = 0; done < steps;) {
    const auto drawn = random();
    // In a ring of two Open MPI's blocking and other calls differ in which block is for which side.
    const bool ring = drawn % 4 == 0 && g_size > 2;
    graph g = ring ? line(1) : drawn % 4 == 1 ? line(0) : any_graph(drawn);
    for (int i = 0; i < 12 && done < steps; ++i, ++done) step(g, done, random);
    MPI_Comm_free(&g.comm);
  }
  std::printf("rank %d: %d failures of %ld\n", g_rank, g_failures, g_checked);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
