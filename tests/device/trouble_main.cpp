// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What goes wrong on GPUs, one case a run: their memory is full, a kernel of the program fails or
// takes its time, or is first used while a message is in flight, a function of a user_op throws,
// communicators are made by the thousand, events are asked for their times, messages have other
// types than their receives, ranks mean different operations, a rank never makes the call that the
// others wait in. Prints "trouble: ..." for what was expected.
#include <sucl/sucl.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace sucl;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t n = std::size_t{4} << 20;

struct bench {
  runtime& rt;
  sycl::queue q;
  communicator world;
  int* x;
  int* y;
  int* host;
  int wrong = 0;

  void say(const std::string& text) const {
    std::printf("[%d] %s\n", world.rank(), text.c_str());
    std::fflush(stdout);
  }
  void expect(bool good, const std::string& text) {
    say((good ? "right: " : "WRONG: ") + text);
    if (!good) ++wrong;
  }
  // What the program's own kernels need has to be there before the memory is full.
  void fill(std::size_t count) {
    int* from = x;
    const int mine = world.rank() + 1;
    q.submit([&](sycl::handler& h) {
      h.parallel_for(sycl::range<1>(count),
                     [=](sycl::id<1> i) { from[i] = mine + static_cast<int>(i[0] % 61); });
    });
    q.fill(y, -7, count);
  }
  // The right sum, of memory that held something else.
  void expect_sum(communicator& c, const std::string& when, std::size_t count = n) {
    fill(count);
    c.allreduce(x, y, count, op::sum).wait();
    c.check();
    q.memcpy(host, y, count * sizeof(int)).wait();
    std::size_t bad = 0;
    for (std::size_t i = 0; i < count; ++i)
      bad += host[i] != c.size() * (c.size() + 1) / 2 + c.size() * static_cast<int>(i % 61);
    expect(bad == 0, "a sum of " + std::to_string(count) + " " + when);
  }
  std::string error_of(errc wanted, const std::string& what, const std::function<void()>& call) {
    try {
      call();
      expect(false, what + ": no error");
      return {};
    } catch (const error& e) {
      expect(e.code() == wanted, what + ": " + e.what());
      return e.what();
    }
  }
};

// Free memory of the current device, in MiB; a negative number where the driver does not say.
double free_memory() {
  using function = int (*)(std::size_t*, std::size_t*);
  const auto ask = reinterpret_cast<function>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  std::size_t free = 0, all = 0;
  if (!ask || ask(&free, &all) != 0) return -1;
  return static_cast<double>(free) / (1 << 20);
}

bool is_executed_by_device(const communicator& c) {
  const auto backend = c.selected_backend(kind::allreduce, n * sizeof(int));
  return backend == "kernels" || backend == "nccl" || backend == "rccl";
}

std::vector<void*> fill_memory(const sycl::queue& q) {
  std::vector<void*> all;
  for (std::size_t piece = std::size_t{8} << 30; piece >= std::size_t{1} << 20; piece /= 2)
    while (void* p = sycl::malloc_device(piece, q)) all.push_back(p);
  return all;
}

// `used`: operations of the sizes that come have been executed before.
void memory_full(bench& b, bool everywhere, bool used) {
  if (used) b.expect_sum(b.world, "before");
  b.fill(n);
  b.q.wait();
  std::vector<void*> all;
  if (everywhere || b.world.rank() == 0) all = fill_memory(b.q);
  b.say(std::to_string(free_memory()) + " MiB are free");
  b.world.blocking().barrier();
  b.expect_sum(b.world, "without memory, 16 MiB");
  b.expect_sum(b.world, "without memory, 4 KiB", 1000);
  for (int i = 0; i < 2; ++i) {
    const auto text =
        b.error_of(errc::out_of_memory, "dup without memory", [&] { (void)b.world.dup(); });
    if (!everywhere) b.expect(text.find("rank 0") != std::string::npos, "names rank 0");
  }
  constexpr std::size_t gigabyte = std::size_t{1} << 30;
  if (is_executed_by_device(b.world)) {
    b.error_of(errc::out_of_memory, "allocate",
               [&] { (void)b.world.allocate<std::byte>(gigabyte); });
  } else {
    // Of the host's memory, of which there is enough.
    b.world.deallocate(b.world.allocate<std::byte>(gigabyte));
    b.say("allocates in the host's memory");
  }
  b.expect_sum(b.world, "after what failed");
  for (void* p : all) sycl::free(p, b.q);
  b.world.blocking().barrier();
  auto another = b.world.dup();
  b.expect_sum(another, "on another communicator, with memory again");
}

// Until some call throws.
std::string first_error(bench& b, errc wanted, const std::function<void()>& call) {
  const auto until = clock_type::now() + std::chrono::seconds(60);
  while (clock_type::now() < until) {
    try {
      call();
    } catch (const error& e) {
      b.expect(e.code() == wanted, e.what());
      return e.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  b.expect(false, "no error within 60 s");
  return {};
}

// A message to the next rank and one from it, on an out-of-order queue.
void exchange(const bench& b, communicator& c) {
  const int peer = c.rank() ^ 1;
  if (peer >= c.size()) return;
  const auto send = [&] { c.send(b.x, n, peer); };
  if (peer > c.rank()) send();
  c.recv(b.y, n, peer);
  if (peer < c.rank()) send();
  c.wait();
}

void fault(bench& b, const std::string& form) {
  b.expect_sum(b.world, "before");
  const auto ignore = [](const sycl::exception_list&) {};
  auto unordered = b.rt.world(sycl::queue{b.q.get_context(), b.q.get_device(), ignore});
  if (form == "message") exchange(b, unordered);
  const bool mine = b.world.rank() == b.world.size() - 1;
  if (mine) {
    auto* bad = reinterpret_cast<int*>(0x10);
    b.q.submit([&](sycl::handler& h) { h.single_task([=] { *bad = 1; }); });
#ifdef SYCL_IMPLEMENTATION_ACPP
    hipsycl::rt::runtime_keep_alive_token runtime;
    runtime.get()->dag().flush_async();
#endif
  }
  const auto text = first_error(b, errc::native, [&] {
    if (form == "call")
      b.world.allreduce(b.x, n, op::max);
    else if (form == "blocking")
      b.world.blocking().allreduce(b.x, n, op::max);
    else if (form == "message")
      exchange(b, unordered);
    else if (form == "wait")
      b.world.allreduce(b.x, n, op::max), b.world.wait();
    else
      b.world.check();
  });
  const std::string culprit = "rank " + std::to_string(b.world.size() - 1);
  b.expect(text.find(mine ? "has failed" : culprit.c_str()) != std::string::npos,
           mine ? "says what has failed" : "names " + culprit);
}

// CUDA loads a kernel when it is first used, unless it is told to load all at the start, and that
// waits for all streams. Here it is between a receive and the send that the peer waits for: a
// kernel of the program, or one of the library.
void first_launch(bench& b, bool of_library) {
  b.expect_sum(b.world, "before");
  const auto ignore = [](const sycl::exception_list&) {};
  auto unordered = b.rt.world(sycl::queue{b.q.get_context(), b.q.get_device(), ignore});
  if (unordered.selected_backend(kind::recv, 4000) == "kernels")
    return b.say("skipped: messages by kernels come in the order of the calls");
  exchange(b, unordered);
  b.fill(n);
  b.q.wait();
  b.say(std::to_string(free_memory()) + " MiB are free");
  b.world.blocking().barrier();
  const int peer = b.world.rank() ^ 1;
  auto* const other = reinterpret_cast<unsigned long*>(b.y + n / 2);
  const auto got = unordered.recv(b.y, 1000, peer);
  if (of_library)
    b.world.allreduce(other, 1000, op::bit_xor).wait();
  else
    b.q.submit([&](sycl::handler& h) { h.single_task([=] { *other = 42; }); }).wait();
  unordered.send(b.x, 1000, peer).wait();
  sycl::event(got).wait();
  unordered.check();
  b.q.memcpy(b.host, b.y, sizeof(int)).wait();
  b.expect(b.host[0] == peer + 1, "a message while a kernel was first used");
}

// A function of a user_op throws on the last rank: that ends the communicator on all.
void raising(bench& b, bool blocking) {
  const auto ignore = [](const sycl::exception_list&) {};
  auto unordered = b.rt.world(sycl::queue{b.q.get_context(), b.q.get_device(), ignore});
  const bool mine = b.world.rank() == b.world.size() - 1;
  const user_op<int> larger([mine](int x, int y) {
    if (mine) throw std::runtime_error("the function's own error");
    return std::max(x, y);
  });
  int* const from = sycl::malloc_host<int>(n, b.q);
  for (std::size_t i = 0; i < n; ++i) from[i] = b.world.rank();
  for (communicator* base : {&b.world, &unordered})
    for (const std::size_t count : {std::size_t{100}, n}) {
      auto c = base->dup();
      // Who has its result already is told later.
      try {
        if (blocking)
          (void)larger.allreduce(c, *from);
        else
          larger.allreduce(c, from, b.host, count).wait();
      } catch (const std::exception& e) {
        b.say(std::string("the call: ") + e.what());
      }
      const auto text = first_error(b, errc::invalid_argument, [&] { c.check(); });
      b.expect(text.find("the function's own error") != std::string::npos, "says what was thrown");
    }
  b.world.blocking().barrier();
  b.expect_sum(b.world, "after it");
}

// One rank means another op than the others: an error on all, and the GPU goes on.
void differ(bench& b, bool is_event) {
  const bool mine = b.world.rank() == b.world.size() - 1;
  for (const std::size_t count : {std::size_t{100}, std::size_t{200000}, n}) {
    auto c = b.world.dup();
    b.expect_sum(c, "before", count);
    b.error_of(errc::mismatch, "another op", [&] {
      const op meant = mine ? op::max : op::sum;
      if (!is_event) return c.blocking().allreduce(b.x, b.y, count, meant);
      c.allreduce(b.x, b.y, count, meant).wait();
      c.check();
    });
    b.world.blocking().barrier();
  }
  b.expect_sum(b.world, "after it");
}

// With messages by kernels: elements of another type and the same size are an error at both ends,
// and those of a type that SuCL does not know fit any.
void mismatch(bench& b) {
  struct opaque {
    int value;
  };
  for (const std::size_t count : {std::size_t{10}, n / 4}) {
    const auto size = std::to_string(count);
    auto pair = b.world.dup();
    b.fill(count);
    b.q.wait();
    if (pair.rank() == 0) {
      pair.send(b.x, count, 1, 7).wait();
      first_error(b, errc::mismatch, [&] {
        pair.send(reinterpret_cast<float*>(b.x), count, 1, 8).wait();
        pair.check();
      });
    } else if (pair.rank() == 1) {
      pair.recv(reinterpret_cast<opaque*>(b.y), count, 0, 7).wait();
      b.q.memcpy(b.host, b.y, count * sizeof(int)).wait();
      bool right = true;
      for (std::size_t i = 0; i < count; ++i)
        right = right && b.host[i] == 1 + static_cast<int>(i % 61);
      b.expect(right, size + " opaque elements");
      const auto text = first_error(b, errc::mismatch, [&] {
        pair.recv(b.y, count, 0, 8).wait();
        pair.check();
      });
      b.expect(text.find(size + " fp32") != std::string::npos &&
                   text.find(size + " int32") != std::string::npos,
               "names both types");
    }
    b.world.blocking().barrier();
    b.expect_sum(b.world, "after it");
  }
}

// A kernel of the program that runs until the host ends it.
class held_queue {
 public:
  explicit held_queue(sycl::queue& q) : m_queue(q), m_go(sycl::malloc_host<int>(1, q)) {
    *m_go = 0;
    const int* go = m_go;
    m_event = q.submit([&](sycl::handler& h) {
      h.single_task([=] {
        const volatile int* word = go;
        while (*word == 0) {
        }
      });
    });
  }
  ~held_queue() {
    release();
    m_event.wait();
    sycl::free(m_go, m_queue);
  }
  held_queue(const held_queue&) = delete;
  held_queue& operator=(const held_queue&) = delete;
  void release() { *static_cast<volatile int*>(m_go) = 1; }

 private:
  sycl::queue m_queue;
  int* m_go;
  sycl::event m_event;
};

// With SUCL_TIMEOUT=2. On both ranks: an operation behind 6 s of kernels is no hang. On rank 0
// alone: rank 1's operation could begin, and is given up; rank 0, whose operation comes to an end
// as all kernels of the communicator do, has to be told.
void slow(bench& b, bool both) {
  b.expect_sum(b.world, "before");
  b.fill(n);
  b.q.wait();
  b.world.blocking().barrier();
  const bool held = both || b.world.rank() == 0;
  std::thread ender;
  {
    std::optional<held_queue> kernel;
    if (held) kernel.emplace(b.q);
    ender = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::seconds(6));
      if (kernel) kernel->release();
    });
    const auto operation = [&] {
      b.world.allreduce(b.x, b.y, n, op::sum).wait();
      b.q.wait();
      b.world.check();
    };
    if (both) {
      operation();
      b.q.memcpy(b.host, b.y, sizeof(int)).wait();
      b.expect(b.host[0] == 3, "a sum behind kernels that took 6 s");
    } else {
      const auto text = b.error_of(errc::timeout, "behind another's kernel", operation);
      b.expect(text.find("rank 0 still executes") != std::string::npos, "names rank 0");
    }
    ender.join();
  }
  if (both) return b.expect_sum(b.world, "after");
  for (int i = 0; i < 2; ++i) b.error_of(errc::timeout, "check", [&] { b.world.check(); });
  b.error_of(errc::timeout, "another call", [&] { b.world.allreduce(b.x, b.y, n, op::sum); });
}

// With SUCL_TIMEOUT=2. Kernels that wait for a rank that does not come are ended on the others.
void absent(bench& b, bool is_event) {
  const char* const limit = std::getenv("SUCL_TIMEOUT");
  const double timeout = limit ? std::atof(limit) : 0;
  if (!(timeout > 0)) return b.say("skipped: it needs SUCL_TIMEOUT");
  const int missing = b.world.size() - 1;
  for (const std::size_t count : {std::size_t{100}, std::size_t{200000}, n}) {
    auto c = b.world.dup();
    b.expect_sum(c, "before", count);
    b.q.wait();
    b.world.blocking().barrier();
    const auto begin = clock_type::now();
    const auto late = [&] {
      const std::chrono::duration<double> passed = clock_type::now() - begin;
      return std::to_string(static_cast<int>(1000 * (passed.count() - timeout))) + " ms";
    };
    if (b.world.rank() == missing) {
      first_error(b, errc::timeout, [&] { c.check(); });
      continue;
    }
    std::string ended;
    const auto text = b.error_of(errc::timeout, "an absent rank", [&] {
      if (!is_event) return c.blocking().allreduce(b.x, b.y, count, op::sum);
      c.allreduce(b.x, b.y, count, op::sum).wait();
      ended = ", the event " + late();
      c.check();
    });
    const auto told = late();
    b.q.wait();
    b.expect(text.find("rank " + std::to_string(missing)) != std::string::npos, "names the rank");
    b.say(std::to_string(count) + " elements, after the timeout: the error " + told +
          ", the queue " + late() + ended);
  }
  b.expect_sum(b.world, "after it");
}

// Every event of a queue that profiles has its times, however its operation was executed.
void profiling(bench& b) {
  for (const bool ordered : {true, false}) {
    sycl::property_list properties{sycl::property::queue::enable_profiling()};
    if (ordered)
      properties = {sycl::property::queue::enable_profiling(), sycl::property::queue::in_order()};
    sycl::queue q{b.q.get_context(), b.q.get_device(), properties};
    auto c = b.rt.world(q);
    std::vector<int> system(1000);
    const auto ask = [&](const sycl::event& asked, const std::string& what) {
      auto e = asked;
      e.wait();
      using namespace sycl::info::event_profiling;
      const auto begin = e.get_profiling_info<command_start>();
      b.expect(begin > 0 && begin <= e.get_profiling_info<command_end>(), "times of " + what);
    };
    for (const std::size_t count : {1u, 1000u, 100000u, 1u << 22}) {
      const auto of = " of " + std::to_string(count) + (ordered ? ", in order" : "");
      for (int i = 0; i < 5; ++i) ask(c.allreduce(b.x, count, op::max), "an allreduce" + of);
      ask(c.scan(b.x, b.y, count, op::sum), "a scan" + of);
      ask(c.sendrecv(b.x, count, 1 - b.world.rank(), b.y, count, 1 - b.world.rank()),
          "a sendrecv" + of);
    }
    ask(c.barrier(), "a barrier");
    ask(c.allreduce(system.data(), system.size(), op::max), "an allreduce of system memory");
    sycl::buffer<int, 1> x{sycl::range<1>(5000)}, y{sycl::range<1>(5000)};
    for (int i = 0; i < 2; ++i) ask(c.allreduce(x, y, op::max), "an allreduce of buffers");
  }
}

void many(bench& b, int count, bool kept) {
  b.expect_sum(b.world, "before");
  std::vector<communicator> all;
  const double before = free_memory();
  double first = 0, after_first = before;
  const auto begin = clock_type::now();
  for (int i = 0; i < count; ++i) {
    const auto start = clock_type::now();
    auto c = b.world.dup();
    c.allreduce(b.x, 100, op::max);
    c.allreduce(b.x, 1 << 20, op::max).wait();
    c.check();
    if (kept) all.push_back(std::move(c));
    if (i > 0) continue;
    first = std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
    after_first = free_memory();
  }
  const double took = std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
  const double each = (before - free_memory()) / count;
  b.say(std::to_string(count) + (kept ? " kept" : "") + ": first " + std::to_string(first) +
        " ms and " + std::to_string(before - after_first) + " MiB, each " +
        std::to_string(took / count) + " ms and " + std::to_string(each) + " MiB");
  b.expect(each < (kept ? 64 : 1), "memory");
  all.clear();
  b.expect_sum(b.world, "after");
}

// As many communicators as the device's memory or the library below has room for.
void exhaust(bench& b) {
  std::vector<communicator> all;
  try {
    while (all.size() < 10000) all.push_back(b.world.dup());
    b.expect(false, "no error");
  } catch (const error& e) {
    b.expect(e.code() == errc::out_of_memory || e.code() == errc::unavailable,
             "after " + std::to_string(all.size()) + ": " + e.what());
  }
  b.expect_sum(b.world, "beside them");
  if (!all.empty()) b.expect_sum(all.back(), "on the last of them");
  all.clear();
  auto another = b.world.dup();
  b.expect_sum(another, "after them");
}

int run(int argc, char** argv) {
  runtime rt(argc, argv);
  const std::string what = argc > 1 ? argv[1] : "memory_full";
  const auto gpus = sycl::device::get_devices(sycl::info::device_type::gpu);
  if (gpus.empty()) {
    std::puts("skipped: there is no GPU");
    return 0;
  }
  const auto device = gpus[static_cast<std::size_t>(rt.rank()) % gpus.size()];
  const auto report = [](const sycl::exception_list& errors) {
    for (const auto& e : errors) {
      try {
        std::rethrow_exception(e);
      } catch (const std::exception& x) {
        std::printf("handler: %s\n", x.what());
      }
    }
  };
  sycl::queue q{sycl::context(device), device, report,
                sycl::property_list{sycl::property::queue::in_order()}};
  bench b{rt,
          q,
          rt.world(q),
          sycl::malloc_device<int>(n, q),
          sycl::malloc_device<int>(n, q),
          sycl::malloc_host<int>(n, q)};
  const auto has = [&](const char* word) {
    return std::any_of(argv + 1, argv + argc,
                       [&](const char* a) { return a == std::string(word); });
  };
  if (what == "fault")
    fault(b, argc > 2 ? argv[2] : "check");
  else if (what == "mismatch")
    mismatch(b);
  else if (what == "first_launch")
    first_launch(b, has("library"));
  else if (what == "raising")
    raising(b, has("blocking"));
  else if (what == "slow")
    slow(b, has("both"));
  else if (what == "differ")
    differ(b, has("event"));
  else if (what == "absent")
    absent(b, has("event"));
  else if (what == "profiling")
    profiling(b);
  else if (what == "exhaust")
    exhaust(b);
  else if (what == "many")
    many(b, argc > 2 ? std::atoi(argv[2]) : 40, has("kept"));
  else
    memory_full(b, has("everywhere"), has("used"));
  std::printf("trouble: %s, %d wrong\n", what.c_str(), b.wrong);
  std::fflush(nullptr);
  std::_Exit(b.wrong != 0);  // a device that has failed ends no communicator
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::printf("trouble: %s\n", e.what());
    return 1;
  }
}
