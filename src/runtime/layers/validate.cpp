// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/layers/validate.hpp"

#include "runtime/core_services.hpp"
#include "runtime/layers/agreement.hpp"
#include "runtime/operation.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace sucl::core {
namespace {

enum class stage { waiting, digests, counts, below, done };

struct pending {
  sucl_operation op{};
  std::uint64_t ordinal = 0;  // among the collectives, from 1; 0: not compared
  stage at = stage::waiting;
  digest mine{};
  std::vector<digest> all;
  std::vector<std::uint64_t> my_counts;
  std::vector<std::uint64_t> all_counts;
  sucl_oob_request* exchange = nullptr;
  sucl_request* request = nullptr;  // of the channel below
  std::optional<error_info> error;
};

// Exchanges match by the order of their starts, and a collective may need two, so operations take
// their turns until they are posted below. The channel is the layer's own for the same reason.
struct validator {
  channel below;
  sucl_oob oob;
  int rank;
  int size;
  std::uint64_t id;
  std::uint64_t collectives = 0;
  std::vector<std::unique_ptr<pending>> live{};
  std::deque<pending*> turns{};

  ~validator() {
    below.table->comm_destroy(below.comm);
    oob_free(oob);
  }
};

validator& self(sucl_backend_comm* comm) { return *reinterpret_cast<validator*>(comm); }
validator& self(sucl_state* state) { return *reinterpret_cast<validator*>(state); }
pending& self(sucl_request* request) { return *reinterpret_cast<pending*>(request); }

void settle(pending& p, error_info error) {
  p.error = std::move(error);
  p.at = stage::done;
}

void start(validator& v, pending& p, stage next, const void* mine, void* all, std::uint64_t bytes) {
  const sucl_status status = services().oob_allgather_start(&v.oob, mine, all, bytes, &p.exchange);
  p.at = next;
  if (status != SUCL_SUCCESS) settle(p, take_last(status));
}

void start_digests(validator& v, pending& p) {
  p.mine = make_digest({&p.op, v.rank, v.size});
  p.all.resize(v.size);
  start(v, p, stage::digests, &p.mine, p.all.data(), sizeof(digest));
}

void start_counts(validator& v, pending& p) {
  p.my_counts = counts_of({&p.op, v.rank, v.size});
  p.all_counts.resize(p.my_counts.size() * v.size);
  start(v, p, stage::counts, p.my_counts.data(), p.all_counts.data(),
        p.my_counts.size() * sizeof(std::uint64_t));
}

// The ranks do this at different times, so nobody may block in it.
void forward(validator& v, pending& p) {
  p.op.flags &= ~std::uint32_t{SUCL_FLAG_MAY_BLOCK};
  const sucl_status status = v.below.table->post(v.below.comm, &p.op, &p.request);
  p.at = p.request ? stage::below : stage::done;
  if (status != SUCL_SUCCESS) settle(p, take_last(status));
}

bool exchanged(validator& v, pending& p) {
  std::int32_t done = 0;
  const sucl_status status = services().oob_test(&v.oob, p.exchange, &done);
  if (status != SUCL_SUCCESS) settle(p, take_last(status));
  if (status != SUCL_SUCCESS || done) p.exchange = nullptr;
  return done || p.at == stage::done;
}

// One step of the operation whose turn it is; false if it has to wait for other ranks.
bool step(validator& v, pending& p) {
  if (p.at == stage::waiting) {
    p.ordinal == 0 ? forward(v, p) : start_digests(v, p);
    return true;
  }
  const stage before = p.at;
  if (!exchanged(v, p)) return false;
  if (p.at == stage::done) return true;
  auto found = before == stage::digests ? compare(p.all, p.ordinal, v.id)
                                        : compare_counts(p.all, p.all_counts, p.ordinal, v.id);
  if (found)
    settle(p, std::move(*found));
  else if (before == stage::digests && has_counts(p.op.kind))
    start_counts(v, p);
  else if (intent_of(p.op).compare_only)
    p.at = stage::done;
  else
    forward(v, p);
  return true;
}

error_info no_memory() {
  error_info info;
  info.code = errc::out_of_memory;
  info.message = "no memory to compare arguments between ranks";
  info.hint = "Switch the validate layer off for communicators of this size.";
  return info;
}

void progress(validator& v) {
  while (!v.turns.empty()) {
    pending& p = *v.turns.front();
    try {
      while (p.at != stage::below && p.at != stage::done)
        if (!step(v, p)) return;
    } catch (const std::bad_alloc&) {
      settle(p, no_memory());
    }
    v.turns.pop_front();
  }
}

sucl_status query(sucl_state* state, const sucl_query* question, sucl_capability* answer) {
  const channel& below = self(state).below;
  const sucl_status status = below.table->query(below.state, question, answer);
  answer->flags &= ~std::uint32_t{SUCL_CAP_STREAM_ORDERED};
  return status;
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation, sucl_request** request) {
  validator& v = self(comm);
  try {
    auto p = std::make_unique<pending>();
    p->op = *operation;
    if (operation->kind >= SUCL_KIND_BARRIER && operation->kind <= SUCL_KIND_EXSCAN)
      p->ordinal = ++v.collectives;
    v.live.push_back(std::move(p));
    v.turns.push_back(v.live.back().get());
    *request = reinterpret_cast<sucl_request*>(v.turns.back());
  } catch (const std::bad_alloc&) {
    return keep(no_memory());
  }
  progress(v);
  return SUCL_SUCCESS;
}

std::unique_ptr<pending> take(validator& v, const pending& p) {
  const auto at = std::find_if(v.live.begin(), v.live.end(),
                               [&](const auto& entry) { return entry.get() == &p; });
  auto result = std::move(*at);
  v.live.erase(at);
  return result;
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  validator& v = self(comm);
  pending& p = self(request);
  *done = 0;
  progress(v);
  if (p.at == stage::below) {
    const sucl_status status = v.below.table->test(v.below.comm, p.request, done);
    if (status != SUCL_SUCCESS || *done) take(v, p);
    return status;
  }
  if (p.at != stage::done) return SUCL_SUCCESS;
  const auto owned = take(v, p);
  *done = 1;
  return owned->error ? keep(*owned->error) : SUCL_SUCCESS;
}

// What an abort leaves behind: an exchange under way may still write to its memory, and freeing a
// group can wait for a peer that is gone. So both are kept for good.
struct remains {
  sucl_oob oob;
  std::unique_ptr<pending> exchange;
};

void abort(sucl_backend_comm* comm) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<remains>;
  validator& v = self(comm);
  const bool exchanging = !v.turns.empty() && v.turns.front()->exchange;
  {
    const std::lock_guard lock(mutex);
    kept.push_back({v.oob, exchanging ? take(v, *v.turns.front()) : nullptr});
  }
  v.oob = {};
  v.turns.clear();
  v.below.table->abort(v.below.comm);
}

void comm_destroy(sucl_backend_comm* comm) { delete &self(comm); }

constexpr sucl_backend table = [] {
  sucl_backend t = table_of("validate", "layer that compares arguments between ranks");
  t.query = query;
  t.comm_destroy = comm_destroy;
  t.post = post;
  t.test = test;
  t.abort = abort;
  return t;
}();

}  // namespace

channel wrap_validate(channel below, const sucl_comm_info& info) {
  sucl_oob own = info.oob ? oob_split(*info.oob, info.rank) : sucl_oob{};
  auto* layer = new validator{below, own, info.rank, info.size, info.id};
  return {&table, reinterpret_cast<sucl_state*>(layer),
          reinterpret_cast<sucl_backend_comm*>(layer)};
}

}  // namespace sucl::core
