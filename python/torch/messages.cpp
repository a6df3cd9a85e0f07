// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Messages, and the barrier that is made of them.
#include "backend.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace sucl::torch {

namespace {

using clock = std::chrono::steady_clock;

// Tags of SuCL end at 32766; the barrier takes the last two.
constexpr int arrive_tag = 32766, leave_tag = 32765, last_tag = 32764;
constexpr auto pause = std::chrono::microseconds(50);

std::string list_of(const std::vector<int>& ranks, bool may_be_many) {
  std::string text = may_be_many ? "Ranks " : "Rank ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

void backend::check_peer(int peer, int tag) const {
  if (peer < 0 || peer >= getSize() || peer == getRank())
    throw failure(SUCL_ERROR_INVALID_RANK,
                  "rank " + std::to_string(peer) + " is none that this rank can exchange with",
                  "Pass another rank of the group");
  if (tag < 0 || tag > last_tag)
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  "the tag " + std::to_string(tag) + " is not possible",
                  "Pass one from 0 to " + std::to_string(last_tag));
}

operation backend::start_message(sucl_kind kind, int peer, int tag, void* memory,
                                 std::uint64_t bytes) {
  sucl_operation o = record(kind);
  o.root = o.source = peer;
  o.tag = tag;
  o.count = o.recv_count = bytes;
  (kind == SUCL_KIND_SEND ? const_cast<void*&>(o.send) : o.recv) = memory;
  return issue(o);
}

// A message of its own is one of two ranks alone, whose stream holds up no other's; those that are
// coalesced are a group of the whole.
backend::request backend::start_on_gpu(sucl_kind kind, work_parts p, flight f, int peer, int tag) {
  sucl_operation o = record(kind);
  o.root = o.source = m_coalesces ? peer : static_cast<int>(peer > getRank());
  o.tag = tag;
  o.count = o.recv_count = f.held[0].nbytes();
  (kind == SUCL_KIND_SEND ? const_cast<void*&>(o.send) : o.recv) =
      const_cast<void*>(f.held[0].const_data_ptr());
  if (!m_coalesces) {
    issue(f, o);
    return start(std::move(p), std::move(f));
  }
  line& calls = f.on->calls();
  if (!m_group.on) calls.calls().begin_group(calls.get());
  sucl_port_operation* nothing = nullptr;
  calls.check(calls.calls().issue(calls.get(), &o, &nothing));
  m_group.on = f.on;
  m_group.held.insert(m_group.held.end(), f.held.begin(), f.held.end());
  for (auto& copy : f.finish) m_group.finish.push_back(std::move(copy));
  return c10::make_intrusive<work>(std::move(p), flight{}, m_rest);
}

backend::request backend::send(tensors& list, int to, int tag) {
  check_peer(to, tag);
  auto p = parts(c10d::OpType::SEND, "send", list, {list}, milliseconds(0));
  flight f = begin(list.at(0), m_coalesces ? -1 : to);
  f.held = {dense(list.at(0))};
  if (f.on) return start_on_gpu(SUCL_KIND_SEND, std::move(p), std::move(f), to, tag);
  f.operations.push_back(start_message(
      SUCL_KIND_SEND, to, tag, const_cast<void*>(f.held[0].const_data_ptr()), f.held[0].nbytes()));
  return start(std::move(p), std::move(f));
}

backend::request backend::recv(tensors& list, int from, int tag) {
  check_peer(from, tag);
  auto p = parts(c10d::OpType::RECV, "recv", list, {list}, milliseconds(0));
  flight f = begin(list.at(0), m_coalesces ? -1 : from);
  f.held = {writable(list.at(0), f.finish)};
  if (f.on) return start_on_gpu(SUCL_KIND_RECV, std::move(p), std::move(f), from, tag);
  f.operations.push_back(
      start_message(SUCL_KIND_RECV, from, tag, f.held[0].data_ptr(), f.held[0].nbytes()));
  return start(std::move(p), std::move(f));
}

/// A receive from whichever rank sends first.
class work_from_any : public work {
 public:
  work_from_any(work_parts p, flight f, std::shared_ptr<afterwards> rest, backend& on, int tag)
      : work(std::move(p), std::move(f), std::move(rest)), m_on(&on), m_tag(tag) {}
  ~work_from_any() override {
    if (m_source >= 0) return;
    const std::lock_guard lock(m_on->m_from_any_mutex);
    std::erase(m_on->m_from_any[m_tag], this);
  }
  int sourceRank() const override { return m_source; }

 private:
  friend class backend;
  bool issued() override { return m_source >= 0 || m_on->take_from_any(*this, m_tag); }
  bool issue_until(clock::time_point end) override {
    const auto spin_end = clock::now() + pause;
    while (!issued()) {
      const auto now = clock::now();
      if (now >= end) return false;
      if (now >= spin_end) std::this_thread::sleep_for(pause);
    }
    return true;
  }

  c10::intrusive_ptr<backend> m_keeps;
  backend* m_on;
  int m_tag;
  std::atomic<int> m_source{-1};
};

// In the order of the calls: those before this one take what is here first.
bool backend::take_from_any(work_from_any& w, int tag) {
  const std::lock_guard lock(m_from_any_mutex);
  auto& waiting = m_from_any[tag];
  while (w.m_source < 0 && !waiting.empty()) {
    const int source = arrived_from(tag);
    if (source < 0) return false;
    work_from_any& first = *waiting.front();
    const at::Tensor& to = first.m_flight.held[0];
    first.m_flight.operations.push_back(
        start_message(SUCL_KIND_RECV, source, tag, to.data_ptr(), to.nbytes()));
    waiting.pop_front();
    first.m_source = source;
  }
  return w.m_source >= 0;
}

// A rank of which a message is here; negative: there is none.
int backend::arrived_from(int tag) const {
  for (int r = 0; r < getSize(); ++r) {
    bool known = true;
    if (r == getRank()) continue;
    if (m_line->arrived(r, tag, &known)) return r;
    if (known) continue;
    throw failure(SUCL_ERROR_UNSUPPORTED,
                  "a receive from any rank is for groups whose ranks share a machine",
                  "Name the rank that sends: src=");
  }
  return -1;
}

backend::request backend::recvAnysource(tensors& list, int tag) {
  check_peer(getRank() == 0 ? getSize() - 1 : 0, tag);
  if (!list.at(0).device().is_cpu())
    throw failure(SUCL_ERROR_UNSUPPORTED,
                  "a receive from any rank is for memory of the host, and the tensor is on " +
                      list[0].device().str(),
                  "Name the rank that sends: src=");
  auto p = parts(c10d::OpType::RECVANYSOURCE, "recvAnySource", list, {list}, milliseconds(0));
  flight f;
  f.held = {writable(list.at(0), f.finish)};
  p.is_open = true;
  auto made = c10::make_intrusive<work_from_any>(std::move(p), std::move(f), m_rest, *this, tag);
  made->m_keeps = c10::intrusive_ptr<backend>::unsafe_reclaim_from_nonowning(this);
  const std::lock_guard lock(m_from_any_mutex);
  m_from_any[tag].push_back(made.get());
  return made;
}

// Rank 0 waits for a message of every rank, names those that are missing, and releases the others.
void backend::monitoredBarrier(const c10d::BarrierOptions& o, bool all_ranks) {
  m_rest->sweep();
  const milliseconds limit = o.timeout.count() >= 0 ? o.timeout : m_timeout;
  const auto end = clock::now() + limit;
  const auto left = [&] {
    return std::max<std::int64_t>(0, std::chrono::ceil<milliseconds>(end - clock::now()).count());
  };
  const std::string self = "[Rank " + std::to_string(getRank()) + "]: ";
  flight f;
  if (getRank() != 0) {
    f.operations.push_back(start_message(SUCL_KIND_SEND, 0, arrive_tag, nullptr, 0));
    f.operations.push_back(start_message(SUCL_KIND_RECV, 0, leave_tag, nullptr, 0));
    for (operation& one : f.operations) {
      sucl_status what = SUCL_ERROR_TIMEOUT;
      std::string why = "nothing came in " + std::to_string(limit.count()) + " ms";
      try {
        if (one.wait(left())) continue;
      } catch (const failure& e) {
        what = e.code;
        why = e.fact;
      }
      m_rest->adopt(std::move(f), true);
      throw failure(what,
                    self + "Rank " + std::to_string(getRank()) +
                        " successfully reached monitoredBarrier, but received errors while "
                        "waiting for send/recv from rank 0: " +
                        why,
                    "Please check rank 0 logs for faulty rank");
    }
    return;
  }
  if (limit.count() == 0)
    throw failure(SUCL_ERROR_TIMEOUT, self + "Rank 0 timed out in monitoredBarrier after 0 ms",
                  "Pass a timeout in which the other ranks can come");
  std::vector<int> missing;
  for (int r = 1; r < getSize(); ++r)
    f.operations.push_back(start_message(SUCL_KIND_RECV, r, arrive_tag, nullptr, 0));
  sucl_status what = SUCL_ERROR_TIMEOUT;
  std::string why;
  for (int r = 1; r < getSize() && (all_ranks || missing.empty()); ++r) {
    try {
      if (f.operations[static_cast<std::size_t>(r - 1)].wait(left())) continue;
    } catch (const failure& e) {
      what = e.code;
      why = ": " + e.fact;
    }
    missing.push_back(r);
  }
  if (!missing.empty()) {
    m_rest->adopt(std::move(f), true);
    throw failure(what,
                  self + list_of(missing, all_ranks) + " failed to pass monitoredBarrier in " +
                      std::to_string(limit.count()) + " ms" + why,
                  "Look at what they do");
  }
  flight answers;
  for (int r = 1; r < getSize(); ++r)
    answers.operations.push_back(start_message(SUCL_KIND_SEND, r, leave_tag, nullptr, 0));
  for (operation& one : answers.operations) one.wait(-1);
}

}  // namespace sucl::torch
