// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Calls that go wrong while every rank is well: arguments that differ, backends that fail,
// configurations that cannot be used. The first argument says which.
#include <sucl/sucl.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

int g_failures = 0;

void fail(const std::string& text) {
  std::fprintf(stderr, "not as expected: %s\n", text.c_str());
  ++g_failures;
}

sucl::error_info expect_error(const std::string& what, sucl::errc code,
                              const std::vector<std::string>& parts,
                              const std::function<void()>& call) {
  try {
    call();
  } catch (const sucl::error& e) {
    if (e.code() != code) fail(what + ": code of: " + e.what());
    for (const auto& part : parts)
      if (std::string(e.what()).find(part) == std::string::npos)
        fail(what + ": no '" + part + "' in: " + e.what());
    return e.info();
  }
  fail(what + ": no error");
  return {};
}

void report_failures(sucl::communicator& world) {
  int failures = g_failures;
  world.blocking().allreduce(&failures, 1, sucl::op::sum);
  if (world.rank() == 0) std::printf("all ranks had %d failures\n", failures);
}

// With SUCL_VALIDATE: each difference is an error on every rank, and the communicator goes on.
void mismatch(sucl::runtime& rt) {
  auto world = rt.world();
  const int r = world.rank();
  const bool odd = r == world.size() - 1;  // the rank that is different
  std::vector<int> x(64, r), y(64 * 3, r);
  std::vector<float> f(64, 1.0f);
  using call = std::function<sycl::event(sucl::communicator&)>;
  const auto n = x.size();
  const auto p = static_cast<std::size_t>(world.size());
  const std::vector<std::size_t> counts(p, 4), others{4, 4, 5}, displs{0, 8, 16};
  const std::map<std::string, std::pair<call, call>> cases{
      {"count: 64",
       {[&](auto& c) { return c.allreduce(x.data(), n, sucl::op::sum); },
        [&](auto& c) { return c.allreduce(x.data(), n - 1, sucl::op::sum); }}},
      {"op: sum",
       {[&](auto& c) { return c.allreduce(x.data(), n, sucl::op::sum); },
        [&](auto& c) { return c.allreduce(x.data(), n, sucl::op::max); }}},
      {"type: int32",
       {[&](auto& c) { return c.allreduce(x.data(), n, sucl::op::sum); },
        [&](auto& c) { return c.allreduce(f.data(), n, sucl::op::sum); }}},
      {"kind: broadcast",
       {[&](auto& c) { return c.broadcast(x.data(), n, 0); },
        [&](auto& c) { return c.allreduce(x.data(), n, sucl::op::sum); }}},
      {"root: 0",
       {[&](auto& c) { return c.broadcast(x.data(), n, 0); },
        [&](auto& c) { return c.broadcast(x.data(), n, 1); }}},
      {"in place: no",
       {[&](auto& c) { return c.allreduce(x.data(), y.data(), n, sucl::op::sum); },
        [&](auto& c) { return c.allreduce(x.data(), n, sucl::op::sum); }}},
      {"counts of allgatherv",
       {[&](auto& c) { return c.allgatherv(x.data(), 4, y.data(), counts, displs); },
        [&](auto& c) { return c.allgatherv(x.data(), 5, y.data(), others, displs); }}},
  };
  for (const auto& [words, calls] : cases) {
    auto comm = world.dup();
    expect_error(words, sucl::errc::mismatch, {words, "differs between ranks"}, [&] {
      auto done = (odd ? calls.second : calls.first)(comm);
      done.wait();
      comm.check();
    });
    int again = r;
    comm.allreduce(&again, 1, sucl::op::max).wait();
    comm.check();
    if (again != world.size() - 1) fail(words + ": the next operation is wrong");
  }
  auto comm = world.dup();
  expect_error("form", sucl::errc::mismatch, {"form:", "blocking"}, [&] {
    int z = r;
    if (odd) {
      comm.blocking().allreduce(&z, 1, sucl::op::max);
    } else {
      comm.allreduce(&z, 1, sucl::op::max).wait();
      comm.check();
    }
  });
}

// Calls that make or change something, of which the last rank makes another one than the others:
// every rank gets the error, whichever backend executes barriers.
void management(sucl::runtime& rt) {
  auto world = rt.world();
  const bool odd = world.rank() == world.size() - 1;
  std::vector<double> x(64);
  sucl::composition all(world.size());
  all.multicast(all.send(0, 1), all.recv(0, 1), 0, sucl::all);
  std::vector<double*> own;  // of each communicator: what it has allocated
  using call = std::pair<std::string, std::function<void(sucl::communicator&)>>;
  const std::vector<call> calls{
      {"split()", [](auto& c) { (void)c.split(0, c.rank()); }},
      {"dup()", [](auto& c) { (void)c.dup(); }},
      {"compile() of int32", [&](auto& c) { (void)c.template compile<int>(all); }},
      {"compile() of fp32", [&](auto& c) { (void)c.template compile<float>(all); }},
      {"use_tuning()", [](auto& c) { c.use_tuning(""); }},
      {"allocate() of elements of 4 bytes", [](auto& c) { (void)c.template allocate<int>(9); }},
      {"allocate() of elements of 8 bytes", [](auto& c) { (void)c.template allocate<double>(9); }},
      {"register_memory()", [&](auto& c) { (void)c.register_memory(x.data(), x.size()); }},
      {"deallocate() of block 1 of allocate()", [&](auto& c) { c.deallocate(own[0]); }},
      {"deallocate() of block 2 of allocate()", [&](auto& c) { c.deallocate(own[1]); }},
      {"deregister_memory() of block 1 of register_memory()",
       [&](auto& c) { c.deregister_memory(x.data()); }},
      {"deregister_memory() of block 2 of register_memory()",
       [&](auto& c) { c.deregister_memory(x.data() + 1); }}};
  // Which blocks they are matters to calls that free some alike.
  const auto shown = [](const std::string& text, const std::string& others) {
    const std::string without_block = text.substr(0, text.find(" of block"));
    return others.compare(0, without_block.size(), without_block) == 0 ? text : without_block;
  };
  for (auto first = calls.begin(); first != calls.end(); ++first)
    for (auto second = first + 1; second != calls.end(); ++second) {
      const auto frees = [](const call& c) {
        return c.first.find(" of block") != std::string::npos;
      };
      const bool allocates = first->first == "allocate() of elements of 8 bytes";
      if (frees(*second) && !frees(*first) && !allocates) continue;
      const bool even = (second - first) % 2 == 0;
      const call &usual = even ? *first : *second, &other = even ? *second : *first;
      auto comm = world.dup();
      own = {comm.allocate<double>(4), comm.allocate<double>(5)};
      for (double* const memory : {x.data(), x.data() + 1}) (void)comm.register_memory(memory, 8);
      expect_error(usual.first + " and " + other.first, sucl::errc::mismatch,
                   {shown(usual.first, other.first), shown(other.first, usual.first)},
                   [&] { (odd ? other : usual).second(comm); });
    }
  // Those of no communicator.
  sycl::queue queue{sycl::cpu_selector_v};
  expect_error("world", sucl::errc::mismatch,
               {"called world(), ", "called world() with several queues"}, [&] {
                 if (odd)
                   (void)rt.world(std::vector<sycl::queue>(2, queue));
                 else
                   (void)rt.world(queue);
               });
  report_failures(world);
}

// Ranks differ in a call while others are late in one before it, in which all have called the same:
// that one ends as ever, with the right result.
void earlier(sucl::runtime& rt) {
  auto world = rt.world();
  const int r = world.rank(), late = 1, last = world.size() - 1;
  using call = std::function<void(sucl::communicator&, int*)>;
  using forms = std::map<std::string, call>;
  const auto reduce = [](auto&& calls, int* x) { return calls.reduce(x, 1, sucl::op::sum, 2); };
  const auto copy = [](auto&& calls, int* x) { return calls.broadcast(x, 1, 0); };
  const auto forms_of = [](const auto& made) {
    return forms{{"blocking", [=](auto& c, int* x) { made(c.blocking(), x); }},
                 {"event", [=](auto& c, int* x) { made(c, x).wait(); }},
                 {"persistent", [=](auto& c, int* x) { made(c.persistent(), x).run(); }}};
  };
  const int sum = world.size() * (world.size() - 1) / 2;
  const auto check = [&](const std::string& name, const call& what, int root, int right) {
    auto comm = world.dup();
    for (int round = 0; round < 4; ++round) {  // the later ones of what is kept of the first
      int x = r;
      if (round == 3 && r == late) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      what(comm, &x);
      if ((r == root || root < 0) && x != right) fail(name + " gave " + std::to_string(x));
    }
    expect_error(name + ", then a mismatch", sucl::errc::mismatch, {"allreduce"}, [&] {
      int x = r;
      comm.blocking().allreduce(&x, 1, r == last ? sucl::op::max : sucl::op::sum);
    });
  };
  for (const auto& [form, what] : forms_of(reduce)) check("reduce, " + form, what, 2, sum);
  for (const auto& [form, what] : forms_of(copy)) check("broadcast, " + form, what, -1, 0);
  report_failures(world);
}

// One rank frees what is not its communicator's, or the others do: nothing is freed on any rank,
// and the communicator goes on.
void foreign_memory(sucl::runtime& rt) {
  auto world = rt.world();
  const bool odd = world.rank() == world.size() - 1;
  const auto n = static_cast<std::size_t>(world.size());
  double* const memory = world.allocate<double>(1);
  double local = 0;
  (void)world.register_memory(&local, 1);
  for (const bool wrong : {odd, !odd}) {
    const std::string own = "is not one that this communicator ";
    const std::string others = " with a pointer that is none of";
    const auto expect = [&](const std::string& call, const std::string& done, const auto& free) {
      expect_error(call, sucl::errc::invalid_memory, {wrong ? own + done : call + "()" + others},
                   free);
    };
    expect("deallocate", "allocated", [&] { world.deallocate(wrong ? memory + 1 : memory); });
    expect("deregister_memory", "has registered",
           [&] { world.deregister_memory(wrong ? memory : &local); });
  }
  *memory = 1;
  auto kept = world.persistent().allreduce(memory, 1, sucl::op::sum);
  kept.run();
  if (*memory != static_cast<double>(n)) fail("the sum afterwards is wrong");
  world.deallocate(memory);
  expect_error("run", sucl::errc::invalid_memory, {"has been deallocated"}, [&] { kept.run(); });
  expect_error("start", sucl::errc::invalid_memory, {"has been deallocated"},
               [&] { kept.start().wait(); });
  double* const another = world.allocate<double>(1);  // maybe there again
  *another = 1;
  world.persistent().allreduce(another, 1, sucl::op::sum).run();
  if (*another != static_cast<double>(n)) fail("the sum on other memory is wrong");
  world.deallocate(another);
  world.deregister_memory(&local);
  // Of ranks with nothing to register, each passes null.
  for (int i = 0; i < 2; ++i) (void)world.register_memory(odd ? nullptr : &local, odd ? 0 : 1);
  for (int i = 0; i < 2; ++i) world.deregister_memory(odd ? nullptr : &local);
  report_failures(world);
}

// Operations that use memory which is freed end before it is, those that are yet to begin as well,
// and reductions by a function, which end in a command of the host.
void freed_in_flight(sucl::runtime& rt) {
  sycl::queue queue{sycl::cpu_selector_v};
  auto world = rt.world(queue);
  constexpr std::size_t n = 1 << 18, few = 100;
  const sucl::user_op<double> larger([](double a, double b) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::max(a, b);
  });
  for (int round = 0; round < 4; ++round) {
    std::vector<double> sums(n, 0.0);
    double *const memory = world.allocate<double>(n), *const results = world.allocate<double>(few);
    std::fill_n(memory, n, world.rank() + 1.0);
    const sycl::event before = queue.submit([](sycl::handler& h) {
      h.host_task([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
    });
    sycl::event done = round % 2 == 0
                           ? world.allreduce(memory, sums.data(), n, sucl::op::sum, {before})
                           : larger.allreduce(world, memory, results, few, {before});
    world.deallocate(results);
    world.deallocate(memory);
    done.wait();
    const double expected = round % 2 == 0 ? world.size() * (world.size() + 1) / 2.0 : 0;
    if (std::count(sums.begin(), sums.end(), expected) != std::ssize(sums)) fail("a sum is wrong");
  }
  // What others call on another communicator later is not awaited.
  auto other = world.dup();
  std::vector<double> largest(few), mine(few, world.rank() + 1.0);
  double* const unused = world.allocate<double>(1);
  const bool late = world.rank() == 0;
  if (late) world.deallocate(unused);
  sycl::event done = larger.allreduce(other, mine.data(), largest.data(), few);
  if (!late) world.deallocate(unused);
  done.wait();
  if (largest.back() != world.size()) fail("the largest is wrong");
  world.check();
  report_failures(world);
}

// What was recorded on memory that is freed before its replay.
void freed_before_replay(sucl::runtime& rt) {
  sycl::queue queue{sycl::cpu_selector_v, sycl::property::queue::in_order{}};
  auto world = rt.world(), comm = rt.world(queue);
  double* const memory = comm.allocate<double>(1);
  *memory = 1;
  auto step = comm.record(queue, [&] { comm.allreduce(memory, 1, sucl::op::sum); });
  step.replay().wait();
  if (*memory != world.size()) fail("the sum of the replay is wrong");
  comm.deallocate(memory);
  expect_error("replay", sucl::errc::invalid_memory, {"has been deallocated"}, [&] {
    step.replay().wait();
    comm.check();
  });
  report_failures(world);
}

// The mock backend fails at its third operation, everywhere.
void backend(sucl::runtime& rt) {
  const auto check = [](const sucl::error_info& e) {
    if (e.backend != "mock") fail("the backend is '" + e.backend + "'");
    if (e.native_code != 4242) fail("the native code is " + std::to_string(e.native_code));
    if (e.operation != "allreduce #3") fail("the operation is '" + e.operation + "'");
    if (e.rank < 0) fail("there is no rank");
  };
  sycl::queue q{sycl::cpu_selector_v};
  for (int form = 0; form < 3; ++form) {
    auto comm = form == 2 ? rt.world(q) : rt.world();
    int x = 1;
    comm.blocking().allreduce(&x, 1, sucl::op::sum);
    comm.allreduce(&x, 1, sucl::op::sum).wait();
    const int expected = comm.size() * comm.size();
    if (x != expected) fail("the sum before is " + std::to_string(x));
    sycl::buffer<int, 1> b{sycl::range<1>(8)};
    check(expect_error("the third", sucl::errc::native, {"mock"}, [&] {
      if (form == 0) {
        comm.blocking().allreduce(&x, 1, sucl::op::sum);
      } else if (form == 1) {
        comm.allreduce(&x, 1, sucl::op::sum).wait();
        comm.check();
      } else {
        comm.allreduce(b, sucl::op::sum);
        {
          sycl::host_accessor waits{b};
        }
        comm.check();
      }
    }));
    // The failure was one operation's.
    x = 1;
    comm.allreduce(&x, 1, sucl::op::sum).wait();
    comm.check();
    if (x != comm.size()) fail("the sum after is " + std::to_string(x));
  }
}

// It fails on rank 1 only: the others are told by the watchdog, and no rank hangs at the end.
void one_rank(sucl::runtime& rt) {
  auto others = rt.world();
  auto comm = rt.world();
  int x = 1;
  const bool here = rt.rank() == 1;
  expect_error("first", here ? sucl::errc::native : sucl::errc::timeout, {"allreduce #1"},
               [&] { comm.blocking().allreduce(&x, 1, sucl::op::sum); });
}

// Until the others have given up.
void wait_for_error(const sucl::communicator& comm) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < give_up) {
    try {
      comm.check();
    } catch (const sucl::error&) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// The last rank does not come.
void missing(sucl::runtime& rt) {
  auto comm = rt.world();
  int x = 1;
  const int last = rt.size() - 1;
  if (rt.rank() == last) wait_for_error(comm);
  expect_error("missing", sucl::errc::timeout,
               {"allreduce #1", ": rank " + std::to_string(last) + " has not arrived"},
               [&] { comm.blocking().allreduce(&x, 1, sucl::op::sum); });
}

// Nothing executes messages: those of shared memory are off, and the other backend cannot be
// loaded.
void no_backend(sucl::runtime& rt) {
  auto comm = rt.world();
  int x = 1;
  expect_error("no backend", sucl::errc::unsupported,
               {"no backend supports send", "x: cannot load '/nowhere.so'"},
               [&] { comm.blocking().send(&x, 1, 1 - rt.rank()); });
}

// Gives each of two ranks a value of its own, before anything reads it: "VARIABLE=of 0,of 1".
void differ(const std::string& what) {
  const auto equals = what.find('='), comma = what.find(',');
  for (const char* rank : {"SUCL_TCP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* mine = std::getenv(rank)) {
      const bool first = std::string(mine) == "0";
      const auto value =
          first ? what.substr(equals + 1, comma - equals - 1) : what.substr(comma + 1);
      if (!value.empty()) setenv(what.substr(0, equals).c_str(), value.c_str(), 1);
    }
}

int end(sucl::runtime& rt) {
  std::printf("rank %d of %d had %d failures\n", rt.rank(), rt.size(), g_failures);
  std::fflush(stdout);
  return g_failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(sucl::runtime&)>> cases{
      {"mismatch", mismatch},
      {"management", management},
      {"earlier", earlier},
      {"foreign_memory", foreign_memory},
      {"freed_in_flight", freed_in_flight},
      {"freed_before_replay", freed_before_replay},
      {"backend", backend},
      {"one_rank", one_rank},
      {"missing", missing},
      {"no_backend", no_backend},
      {"configuration", [](sucl::runtime& rt) { (void)rt.world(); }}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  try {
    if (const char* what = std::getenv("SUCL_FAULTS_DIFFER")) differ(what);
    sucl::runtime rt{argc, argv};
    found->second(rt);
    return end(rt);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
