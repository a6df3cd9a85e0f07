// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The verifier's symbolic execution of all ranks; verify() is its face.
#pragma once

#include "plan/symbolic/symbolic.hpp"
#include "plan/verify/order.hpp"
#include "plan/verify/queues.hpp"
#include "plan/verify/thread_state.hpp"
#include "plan/verify/verify.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sucl::plan {

/// What a fault throws.
struct stopped {
  verdict why;
};

/// One verification of a schedule whose form is right.
class checker {
 public:
  checker(const schedule& s, entry how, fold_rules rules, proof_cost& cost)
      : m_schedule(s),
        m_entry(how),
        m_cost(cost),
        m_clocks(s, cost),
        m_values(s.what.ranks, s.what.order, rules, cost) {}

  verdict run();

 private:
  // --- faults
  [[noreturn]] void stop(verdict v, const std::string& why) const;
  [[noreturn]] void stop(fault f, std::uint32_t t, std::uint32_t pc, space s, std::uint64_t offset,
                         std::uint64_t bytes, const std::string& why) const;
  std::string text_of(access a) const;

  // --- memory
  memory& at(int rank, space s) {
    return m_memories[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(s) - 1];
  }
  memory& of(const thread_state& t, const instruction& i, space s) {
    return at(is_remote(s) ? i.peer : t.rank, local_form(s));
  }
  void prepare();
  void read(std::uint32_t t, std::uint32_t pc, bool source, access as, bool keep);
  void check_write(std::uint32_t t, std::uint32_t pc, memory& m, memory::cursor first);
  void write(std::uint32_t t, std::uint32_t pc, access as);
  void mark_write(std::uint32_t t, std::uint32_t pc, access as);
  void check_order(std::uint32_t t, std::uint32_t pc, space s, const memory& m, memory::cursor at,
                   access past, const char* act, const char* past_act);
  void note_read(segment& g, access as);
  void combine(std::uint32_t t, std::uint32_t pc, bool open);
  bool note_fold(std::uint32_t t, const instruction& i);

  // --- execution
  void run_thread(std::uint32_t t);
  bool step(std::uint32_t t, const instruction& i);
  bool fence(std::uint32_t t, const instruction& i);
  bool wait(std::uint32_t t, const instruction& i);
  void signal(std::uint32_t t, const instruction& i);
  void message(std::uint32_t t, const instruction& i);
  void deliver(const parcel& send, const parcel& receive);
  void copy_run(const parcel& send, const parcel& receive);
  void take_in(std::uint32_t t, const instruction& i, symbol value);
  void one_sided(std::uint32_t t);
  void wake(std::uint32_t t);
  void claim(std::uint32_t t, const instruction& i, std::uint32_t& owner, const char* act);

  // --- the end
  void check_ends();
  void check_left_over();
  [[noreturn]] void stop_blocked(std::uint32_t t);
  void check_last_accesses();
  void check_last(int rank, space s, const memory& m, memory::cursor k, access a);
  void check_outcome(int rank);
  void check_piece(int rank, const piece& part);
  void check_fixed(int rank, const piece& part, std::uint64_t offset, symbol found);
  void check_same(int rank, std::uint64_t offset, std::uint64_t end, symbol found);

  // What `t` publishes to a rank that observes it.
  std::uint32_t publish(std::uint32_t t, int peer) {
    return m_clocks.observes(peer, t) ? m_snapshots.hold(m_clocks.release(t)) : 0;
  }
  const thread_state& state(std::uint32_t t) const { return m_threads[t]; }
  const instruction& code(std::uint32_t t, std::uint32_t pc) const {
    return (*m_threads[t].code)[pc];
  }

  const schedule& m_schedule;
  const entry m_entry;
  proof_cost& m_cost;
  clocks m_clocks;
  value_table m_values;
  std::vector<memory> m_memories;  // send, recv and scratch of each rank
  std::vector<std::vector<access>> m_lists;
  std::vector<thread_state> m_threads;
  std::vector<std::uint32_t> m_ready;
  queues<parcel> m_messages, m_signals;
  held_snapshots m_snapshots;
  std::vector<segment> m_run, m_other, m_merged;  // runs of bytes in flight
  std::vector<share> m_shares;

  // What ranks have received of reductions: by what it is made of, offsets in the input of the
  // first rank of that, with the expression and the first rank that received it.
  struct received {
    std::int64_t end;
    std::uint32_t value;
    int rank;
  };
  using received_map = std::map<std::int64_t, received>;
  std::map<std::vector<std::int64_t>, received_map> m_received;
  std::vector<received_map*> m_received_of;  // by value; null: not looked up yet
  std::vector<std::int64_t> m_key;
  bool m_identical = true;
};

}  // namespace sucl::plan
