// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "fake.hpp"

#include "bench/reference/fold.hpp"

#include <algorithm>

namespace sucl::test {
namespace {

sucl_status fake_query(sucl_state* state, const sucl_query* question, sucl_capability* answer) {
  *answer = reinterpret_cast<fake_world*>(state)->answer(*question);
  return SUCL_SUCCESS;
}

sucl_status fake_post(sucl_backend_comm* comm, const sucl_operation* op, sucl_request** request) {
  return comm->world->post(*comm, *op, request);
}

sucl_status fake_test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  *done = comm->world->test(*request);
  if (*done) comm->world->end(request);
  return SUCL_SUCCESS;
}

const sucl_backend& table() {
  static const sucl_backend value = [] {
    sucl_backend b{};
    b.struct_size = sizeof(b);
    b.abi_major = SUCL_ABI_MAJOR;
    b.name = "fake";
    b.query = fake_query;
    b.post = fake_post;
    b.test = fake_test;
    return b;
  }();
  return value;
}

bool reads(const sucl_operation& op, int rank, int p) {
  return !reference::contributed(op, rank, p).empty();
}

bool writes(const sucl_operation& op, int rank, int p) {
  return !reference::delivered(op, rank, p).empty();
}

// Element i of what the ranks of a piece contribute.
reference::value element_of(const std::vector<sucl_operation>& ops, const std::vector<bytes>& in,
                            const reference::piece& piece, std::uint64_t i) {
  std::vector<const std::byte*> from;
  for (int r = piece.first; r <= piece.last; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    std::uint64_t at = piece.offset + i;
    if (piece.number > 0) {
      const auto blocks = reference::contributed(ops[rank], r, static_cast<int>(ops.size()));
      for (std::size_t b = 0; b < piece.number; ++b) at += blocks[b].count;
    }
    from.push_back(reinterpret_cast<const std::byte*>(&in[rank][at * ops[0].element_size]));
  }
  if (ops[0].op == SUCL_OP_NONE) return {from[0], from[0] + ops[0].element_size};
  return reference::reduce(static_cast<type>(ops[0].type), static_cast<op>(ops[0].op), from);
}

}  // namespace

std::vector<bytes> solve(const std::vector<sucl_operation>& ops, const std::vector<bytes>& in) {
  const int p = static_cast<int>(ops.size());
  std::vector<bytes> out(ops.size());
  for (int r = 0; r < p; ++r)
    for (const auto& piece : reference::delivered(ops[static_cast<std::size_t>(r)], r, p))
      for (std::uint64_t i = 0; i < piece.count; ++i)
        for (const std::byte b : element_of(ops, in, piece, i))
          out[static_cast<std::size_t>(r)].push_back(static_cast<unsigned char>(b));
  return out;
}

bytes gather(const void* array, const std::vector<reference::block>& blocks, std::uint64_t size) {
  bytes result;
  const auto* from = static_cast<const unsigned char*>(array);
  for (const auto& b : blocks)
    if (b.count > 0)
      result.insert(result.end(), from + b.at * size, from + (b.at + b.count) * size);
  return result;
}

core::device_copier fake_copier::table() {
  return {this,
          [](void* self, void* to, const void* from, std::size_t size) -> void* {
            auto& copier = *static_cast<fake_copier*>(self);
            ++copier.started;
            auto* t =
                new token{static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from),
                          size, static_cast<int>(copier.m_random() % 3)};
            if (copier.m_random() % 8 != 0) {
              ++copier.pending;
              return t;
            }
            copier.finish(*t);
            delete t;
            return nullptr;
          },
          [](void* self, void* started) {
            auto* t = static_cast<token*>(started);
            if (t->delay-- > 0) return false;
            static_cast<fake_copier*>(self)->finish(*t);
            --static_cast<fake_copier*>(self)->pending;
            delete t;
            return true;
          }};
}

bool fake_copier::on_device(const void* at) const {
  const auto* byte = static_cast<const unsigned char*>(at);
  return std::any_of(m_devices.begin(), m_devices.end(), [&](const fake_memory* m) {
    return byte >= m->storage.data() && byte < m->storage.data() + m->storage.size();
  });
}

void fake_copier::finish(const token& t) const {
  const int changes = (on_device(t.to) ? 1 : 0) + (on_device(t.from) ? 1 : 0);
  for (std::size_t i = 0; i < t.size; ++i)
    t.to[i] = static_cast<unsigned char>(t.from[i] ^ (changes == 1 ? scrambler : 0));
}

fake_world::fake_world(int ranks, fake_rules given, unsigned seed)
    : p(ranks), rules(std::move(given)), random(seed) {
  for (int r = 0; r < p; ++r) comms.push_back({this, r});
}

fake_world::~fake_world() {
  for (sucl_request* request : m_requests) delete request;
}

void fake_world::end(sucl_request* request) {
  m_requests.erase(request);
  delete request;
}

core::backend_comm fake_world::channel_of(int rank) {
  return {&table(), reinterpret_cast<sucl_state*>(this), &comms[static_cast<std::size_t>(rank)]};
}

sucl_capability fake_world::answer(const sucl_query& q) const {
  sucl_capability result{};
  result.struct_size = sizeof(result);
  result.supported = (rules.memories >> q.memory & 1u) != 0 &&
                     (!rules.supports || rules.supports(q.kind, q.type, q.op));
  result.max_count = rules.max_count;
  return result;
}

core::transfer_formats fake_world::formats() {
  return core::transfer_formats("fake", [this](const sucl_query& q) { return answer(q); });
}

void fake_world::complain(const std::string& what) {
  if (error.empty()) error = what;
}

void fake_world::check(int rank, const sucl_operation& op) {
  const auto asked = [&](sucl_memory memory) {
    return answer(
        {sizeof(sucl_query), op.kind, op.type, op.op, memory, 0, op.element_size, "host"});
  };
  const std::string which =
      std::string(name(static_cast<kind>(op.kind))) + " of rank " + std::to_string(rank) + ": ";
  if (op.struct_size != sizeof(op)) complain(which + "struct_size");
  if (op.stream) complain(which + "has a stream");
  const bool inside = in_place(op);
  if (reads(op, rank, p) && !asked(inside ? op.recv_memory : op.send_memory).supported)
    complain(which + "reads what it was not declared to support");
  if (writes(op, rank, p) && !asked(op.recv_memory).supported)
    complain(which + "writes what it was not declared to support");
  const std::uint64_t most = rules.max_count ? rules.max_count : ~std::uint64_t{0};
  bool fits = true;
  if (op.kind != SUCL_KIND_REDUCE_SCATTER && op.kind != SUCL_KIND_ALLTOALLV)
    fits = op.count <= most;
  for (const std::uint64_t* counts : {op.send_counts, op.recv_counts})
    for (int i = 0; counts && i < p; ++i) fits = fits && counts[i] <= most;
  if (!fits) complain(which + "exceeds max_count");
}

sucl_status fake_world::post(sucl_backend_comm& comm, const sucl_operation& op,
                             sucl_request** request) {
  auto* r = new sucl_request;
  r->op = op;
  *request = r;
  m_requests.insert(r);
  ++posts;
  if (op.kind == SUCL_KIND_GROUP) {
    ++groups;
    for (std::uint64_t i = 0; i < op.part_count; ++i) {
      r->parts.push_back(std::make_unique<sucl_request>());
      r->parts.back()->op = op.parts[i];
      start(comm.rank, *r->parts.back());
    }
    ready(*r);
  } else if (op.kind == SUCL_KIND_SENDRECV) {
    for (const sucl_kind half : {SUCL_KIND_SEND, SUCL_KIND_RECV}) {
      r->parts.push_back(std::make_unique<sucl_request>());
      sucl_operation& part = r->parts.back()->op = op;
      part.kind = half;
      if (half == SUCL_KIND_SEND && in_place(op)) {
        part.send = op.recv;
        part.send_memory = op.recv_memory;
      }
      part.flags &= ~static_cast<std::uint32_t>(SUCL_FLAG_IN_PLACE);
      if (half == SUCL_KIND_RECV) part.count = op.recv_count;
      start(comm.rank, *r->parts.back());
    }
    ready(*r);
  } else {
    start(comm.rank, *r);
  }
  return SUCL_SUCCESS;
}

void fake_world::start(int rank, sucl_request& request) {
  const sucl_operation& op = request.op;
  check(rank, op);
  if (op.kind == SUCL_KIND_SEND) {
    const message_key key{rank, op.root, op.tag};
    m_messages[key].first.push_back(&request);
    match_message(key);
  } else if (op.kind == SUCL_KIND_RECV) {
    const message_key key{op.source, rank, op.tag};
    m_messages[key].second.push_back(&request);
    match_message(key);
  } else {
    match_collective(rank, request);
  }
}

void fake_world::match_message(const message_key& key) {
  auto& [sent, awaited] = m_messages[key];
  if (sent.empty() || awaited.empty()) return;
  sucl_request& from = *sent.front();
  sucl_request& to = *awaited.front();
  sent.pop_front();
  awaited.pop_front();
  if (from.op.count != to.op.count || from.op.type != to.op.type ||
      from.op.element_size != to.op.element_size)
    complain("a message of " + std::to_string(from.op.count) + " elements meets a receive of " +
             std::to_string(to.op.count));
  const std::vector<reference::block> all{{0, from.op.count}};
  if (from.op.count > 0)
    to.results.emplace_back(
        static_cast<unsigned char*>(to.op.recv),
        gather(in_place(from.op) ? from.op.recv : from.op.send, all, from.op.element_size));
  ready(from);
  ready(to);
}

void fake_world::match_collective(int rank, sucl_request& request) {
  const std::size_t index = comms[static_cast<std::size_t>(rank)].collectives++;
  if (m_collectives.size() <= index)
    m_collectives.resize(index + 1, std::vector<sucl_request*>(static_cast<std::size_t>(p)));
  std::vector<sucl_request*>& all = m_collectives[index];
  all[static_cast<std::size_t>(rank)] = &request;
  if (std::find(all.begin(), all.end(), nullptr) == all.end()) complete(all);
}

void fake_world::complete(std::vector<sucl_request*>& all) {
  const sucl_operation& first = all[0]->op;
  const bool same_count = !core::is_message(first.kind) && first.kind != SUCL_KIND_ALLTOALLV &&
                          first.kind != SUCL_KIND_GATHERV && first.kind != SUCL_KIND_SCATTERV &&
                          first.kind != SUCL_KIND_ALLGATHERV;
  std::vector<sucl_operation> ops;
  std::vector<bytes> in;
  for (int r = 0; r < p; ++r) {
    const sucl_operation& op = all[static_cast<std::size_t>(r)]->op;
    if (op.kind != first.kind || op.type != first.type || op.op != first.op ||
        op.root != first.root || (same_count && op.count != first.count) ||
        (op.flags & SUCL_FLAG_MAY_BLOCK) != (first.flags & SUCL_FLAG_MAY_BLOCK))
      return complain("rank " + std::to_string(r) + " posted another collective than rank 0");
    if (op.recv_counts && first.kind != SUCL_KIND_ALLTOALLV && first.kind != SUCL_KIND_GATHERV &&
        !std::equal(op.recv_counts, op.recv_counts + p, first.recv_counts))
      return complain("the recv_counts of rank " + std::to_string(r) + " differ");
    ops.push_back(op);
    in.push_back(gather(in_place(op) && op.send == nullptr ? op.recv : op.send,
                        reference::contributed(op, r, p), op.element_size));
  }
  const std::vector<bytes> out = solve(ops, in);
  for (int r = 0; r < p; ++r) {
    sucl_request& request = *all[static_cast<std::size_t>(r)];
    std::uint64_t at = 0;
    for (const auto& b : reference::delivered(request.op, r, p)) {
      const std::uint64_t size = b.count * request.op.element_size;
      const auto from = out[static_cast<std::size_t>(r)].begin() + static_cast<std::ptrdiff_t>(at);
      if (size > 0)
        request.results.emplace_back(
            static_cast<unsigned char*>(request.op.recv) + b.at * request.op.element_size,
            bytes(from, from + static_cast<std::ptrdiff_t>(size)));
      at += size;
    }
    ready(request);
  }
}

void fake_world::ready(sucl_request& request) {
  request.matched = true;
  request.delay = static_cast<int>(random() % static_cast<unsigned>(rules.max_delay + 1));
}

bool fake_world::test(sucl_request& request) {
  bool done = request.matched && request.delay-- <= 0;
  // A sendrecv in place must not receive before its own elements are gone.
  for (const auto& part : request.parts) done = done && part->matched;
  if (!done) return false;
  for (const auto& part : request.parts) done = test(*part) && done;
  if (!done) return false;
  for (const auto& [to, from] : request.results) std::copy(from.begin(), from.end(), to);
  request.results.clear();
  return true;
}

std::string fake_world::leftovers() const {
  for (const auto& all : m_collectives)
    if (std::find(all.begin(), all.end(), nullptr) != all.end())
      return "a collective was not posted by every rank";
  for (const auto& [key, queues] : m_messages)
    if (!queues.first.empty() || !queues.second.empty()) return "a message was not matched";
  return {};
}

}  // namespace sucl::test
