// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include "support/host_command.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace sucl::torture {
namespace {

// A dependency that is ready when this rank says so.
class gate {
 public:
  explicit gate(::sycl::queue& q) {
    m_event = q.submit([shared = m_shared](::sycl::handler& h) {
      testing::host_command(h, [shared] {
        std::unique_lock lock(shared->mutex);
        shared->changed.wait(lock, [&] { return shared->open; });
      });
    });
  }
  const ::sycl::event& event() const { return m_event; }
  void open() {
    {
      const std::lock_guard lock(m_shared->mutex);
      m_shared->open = true;
    }
    m_shared->changed.notify_all();
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<state> m_shared = std::make_shared<state>();
  ::sycl::event m_event;
};

// Gates open also when the step fails: commands wait for them.
struct gates {
  std::vector<gate> all;
  ~gates() { open(); }
  void open() {
    for (gate& g : all) g.open();
  }
};

// Ranks that differ in pace.
void dawdle(dice& d) {
  if (d.one_in(64)) std::this_thread::sleep_for(std::chrono::microseconds(d.below(300)));
}

}  // namespace

stage::stage(runtime& rt, std::uint64_t seed, bool messages_in_order)
    : board(rt.world(), rt.rank(), rt.size()), m_pool(rt), m_seed(seed) {
  m_pool.messages_in_order = messages_in_order;
}

void stage::run(std::uint64_t index, const step& s) {
  m_index = index;
  board.at(index);
  m_pool.reset();
  dice pace(s.key, static_cast<std::uint64_t>(m_pool.rank()) + 77);
  dawdle(pace);
  switch (s.form) {
    case form::window: window(s); break;
    case form::chained: chained(s); break;
    case form::persistent: persistent(s); break;
    case form::compiled: compiled(s); break;
    case form::allocated: allocated(s); break;
    case form::threads: threads(s); break;
    case form::renewed: renewed(s); break;
    default: one_by_one(s);
  }
  if (board.is_nearly_full()) compare();
}

void stage::wait() {
  for (const group_of g : {group_of::world, group_of::in_order}) m_pool.of(g).queue->wait();
}

std::uint64_t stage::compare() {
  const auto steps = board.compare();
  for (const std::uint64_t index : steps)
    std::fprintf(stderr, "differs: rank %d got other bits; step %llu; --replay %llu:%llu\n",
                 m_pool.rank(), static_cast<unsigned long long>(index),
                 static_cast<unsigned long long>(m_seed), static_cast<unsigned long long>(index));
  board.add(2, steps.size());
  return steps.size();
}

void stage::report(const std::string& what, const trial& t, const step& s, std::size_t i) {
  if (++found.wrong > 20) return;
  const auto& p = m_pool.of(s.groups[i]);
  const auto m = t.what().memory_of(p.self.rank, p.queue.has_value());
  std::fprintf(stderr,
               "wrong: %s, %s on '%s', rank %d of %d (of %d in the job), %s memory here: %s; "
               "--replay %llu:%llu\n",
               t.what().text().c_str(), name(s.form), name(s.groups[i]), p.self.rank, p.self.size,
               m_pool.size(),
               conformance::names(conformance::f_memory)[static_cast<std::size_t>(m)].c_str(),
               what.c_str(), static_cast<unsigned long long>(m_seed),
               static_cast<unsigned long long>(m_index));
}

void stage::check_result(trial& t, const step& s, std::size_t i, std::uint64_t turn) {
  ++found.operations;
  const std::string wrong = t.verify();
  if (!wrong.empty()) report(wrong, t, s, i);
  const auto& self = m_pool.of(s.groups[i]).self;
  const std::uint64_t name = reference::mix(
      reference::mix(s.key, i * 64 + turn),
      static_cast<std::uint64_t>(s.groups[i]) * 16 + static_cast<std::uint64_t>(self.colour));
  board.note(is_shared(t.what().call.kind) ? name | 1 : 0, t.hash(), m_index);
}

stage::trials stage::make(const step& s) {
  trials all;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    party& p = m_pool.of(s.groups[i]);
    all.push_back(p ? std::make_unique<trial>(m_pool, p, s.operations[i]) : nullptr);
  }
  return all;
}

void stage::one_by_one(const step& s) {
  const trials all = make(s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) {
      board.note(0, 0, m_index);
      continue;
    }
    all[i]->fill();
    if (s.form == form::blocking)
      all[i]->run();
    else
      ::sycl::event::wait(all[i]->start({}));
    all[i]->read();
    check_result(*all[i], s, i);
  }
}

void stage::window(const step& s) {
  const trials all = make(s);
  dice own(s.key, static_cast<std::uint64_t>(m_pool.rank()) + 1000);
  events issued;
  gates held;
  held.all.reserve(all.size());
  // On GPUs nothing on the host holds up commands: AdaptiveCpp has one thread that submits all.
  const bool gated = own.one_in(4) && !m_pool.on_gpu();
  // Before any is issued: CUDA lets copies of pageable memory wait for what is in flight.
  for (const auto& t : all)
    if (t) t->fill();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    events deps;
    if (!issued.empty() && own.one_in(3)) deps.push_back(issued[own.below(issued.size())]);
    if (gated && own.one_in(3)) {
      held.all.emplace_back(m_pool.queue());
      deps.push_back(held.all.back().event());
    }
    for (auto& e : all[i]->start(deps)) issued.push_back(e);
    dawdle(own);
  }
  // Whichever of them this rank lets go first.
  while (!held.all.empty()) {
    std::swap(held.all[own.below(held.all.size())], held.all.back());
    held.all.back().open();
    held.all.pop_back();
  }
  if (own.one_in(2))
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]) m_pool.of(s.groups[i]).comm.wait();
    }
  else
    while (!issued.empty()) {
      std::swap(issued[own.below(issued.size())], issued.back());
      issued.back().wait();
      issued.pop_back();
    }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]) {
      all[i]->read();
      check_result(*all[i], s, i);
    } else {
      board.note(0, 0, m_index);
    }
  }
}

void stage::chained(const step& s) {
  const trials all = make(s);
  if (!all[0]) return board.note(0, 0, m_index);
  const party& p = m_pool.of(s.groups[0]);
  if (!p.queue) return one_by_one(s);
  const bool ordered = p.queue->is_in_order();
  const events filled = all[0]->fill_on_queue();
  const events done = all[0]->start(ordered ? events{} : filled);
  ::sycl::event::wait(all[0]->read_on_queue(ordered ? events{} : done));
  ::sycl::event::wait(done);
  check_result(*all[0], s, 0);
}

void stage::repeated(trial& t, std::size_t times, const std::function<void(std::size_t)>& start,
                     const step& s) {
  for (std::size_t turn = 0; turn < times; ++turn) {
    t.use_key(reference::mix(s.key, turn));
    t.fill();
    start(turn);
    t.read();
    check_result(t, s, 0, turn);
  }
}

void stage::persistent(const step& s) {
  const std::size_t times = 1 + s.key % 4;
  const trials all = make(s);
  if (!all[0]) {
    for (std::size_t turn = 0; turn < times; ++turn) board.note(0, 0, m_index);
    return;
  }
  auto made = all[0]->make_persistent();
  repeated(
      *all[0], times,
      [&](std::size_t turn) {
        if (made.size() == 1 && (s.key >> 8 >> turn) % 2 == 0) return made[0].run();
        events done;
        for (auto& one : made) done.push_back(one.start());
        ::sycl::event::wait(done);
      },
      s);
}

namespace {

// An allreduce in two steps, an allgather, and an allreduce by one rank.
composition compose(int which, int ranks, std::size_t n, op o) {
  composition c(ranks);
  const auto at = [n](int r) { return static_cast<std::size_t>(r) * n; };
  switch (which) {
    case 0:
      for (int r = 0; r < ranks; ++r) c.reduction(c.send(at(r), n), c.recv(at(r), n), all, r, o);
      c.fence();
      for (int r = 0; r < ranks; ++r) c.multicast(c.recv(at(r), n), c.recv(at(r), n), r, all);
      break;
    case 1:
      for (int r = 0; r < ranks; ++r) c.multicast(c.send(0, n), c.recv(at(r), n), r, all);
      break;
    default:
      c.reduction(c.send(0, n), c.scratch(0, n), all, ranks - 1, o);
      c.fence();
      c.multicast(c.scratch(0, n), c.recv(0, n), ranks - 1, all);
  }
  return c;
}

}  // namespace

void stage::compiled(const step& s) {
  party& p = m_pool.of(s.groups[0]);
  const operation& o = s.operations[0];
  trial t(m_pool, p, o);
  const auto run = [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto& plan = m_plans[{s.groups[0], s.composition, s.block, o.op, o.element.t}];
    if (!plan) plan = p.comm.compile<T>(compose(s.composition, p.self.size, s.block, o.op));
    const auto start = [&](std::size_t turn) {
      t.run_by([&](const std::byte* send, std::byte* recv) {
        const auto* from = reinterpret_cast<const T*>(send);
        auto* to = reinterpret_cast<T*>(recv);
        if (turn == 0) return plan.run(from, to);
        plan.start(from, to).wait();
      });
    };
    repeated(t, 2, start, s);
  };
  if (o.element.t == type::fp64)
    run(static_cast<double*>(nullptr));
  else
    run(static_cast<std::int32_t*>(nullptr));
}

void stage::allocated(const step& s) {
  party& p = m_pool.of(s.groups[0]);
  if (!p) return board.note(0, 0, m_index);
  // Of the size that this rank needs, and of more on some.
  const auto& o = s.operations[0];
  const auto f = conformance::flow_of(o.call, p.self.rank, p.self.size);
  dice own(s.key, static_cast<std::uint64_t>(p.self.rank) + 2000);
  const std::size_t more = own.one_in(3) ? own.below(100000) : 0;
  std::swap(p.symmetric, m_pool.spare);
  p.symmetric =
      pool::allocate(p, (f.send_size + f.recv_size) * o.element.size + 4 * guard + 256 + more);
  {
    trial t(m_pool, p, o);
    t.fill();
    if (s.key % 2 == 0)
      t.run();
    else
      ::sycl::event::wait(t.start({}));
    t.read();
    check_result(t, s, 0);
  }
  p.symmetric.reset();
  std::swap(p.symmetric, m_pool.spare);
}

void stage::threads(const step& s) {
  const trials all = make(s);
  for (const auto& t : all) t->fill();
  // Each thread has a communicator of its own, and every other operation.
  std::exception_ptr failure;
  std::thread other([&] {
    try {
      for (std::size_t i = 1; i < all.size(); i += 2) all[i]->run();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  try {
    for (std::size_t i = 0; i < all.size(); i += 2) all[i]->run();
  } catch (...) {
    other.join();
    throw;
  }
  other.join();
  if (failure) std::rethrow_exception(failure);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->read();
    check_result(*all[i], s, i);
  }
}

void stage::renewed(const step& s) {
  party& old = m_pool.of(s.groups[0]);
  if (!old) return board.note(0, 0, m_index);
  party fresh = m_pool.renew(s.groups[0], s.key % 2 == 0);
  trial t(m_pool, fresh, s.operations[0]);
  t.fill();
  ::sycl::event::wait(t.start({}));
  t.read();
  check_result(t, s, 0);
}

}  // namespace sucl::torture
