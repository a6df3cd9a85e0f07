// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include "base/names.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace sucl::fabric {
namespace {

// Scratch beyond this is given back after each operation.
constexpr std::uint64_t kept_scratch = std::uint64_t{4} << 20;

// Tags have 48 bits, which every provider has: 16 of the communicator, one that tells collectives
// from the user's messages, 31 of these: of a message its tag, and above it its elements.
constexpr unsigned tag_bits = 31, label_bits = 14, label_at = tag_bits - label_bits;
constexpr std::uint64_t label_mask = ((std::uint64_t{1} << label_bits) - 1) << label_at;
static_assert(max_user_tag < 1 << label_at);
constexpr unsigned piece_bits = 15;  ///< of a collective's; the others are its number
// Marks what a rank returns of a piece that it was sent.
constexpr std::uint32_t result_mark = 1u << (piece_bits - 1);

std::uint64_t tag_of(const sucl_request& r, const transfer& t) {
  const std::uint64_t context = static_cast<std::uint64_t>(r.comm->context) << (tag_bits + 1);
  if (!r.collective) return context | std::uint64_t{t.elements} << label_at | t.tag;
  const std::uint64_t number = r.serial & ((1u << (tag_bits - piece_bits)) - 1);
  const std::uint64_t piece = t.tag & ((1u << piece_bits) - 1);
  return context | std::uint64_t{1} << tag_bits | number << piece_bits | piece;
}

std::uint32_t label_in(std::uint64_t tag) {
  return static_cast<std::uint32_t>((tag & label_mask) >> label_at);
}

std::string elements_text(const sucl_request& r, std::uint64_t bytes) {
  if (bytes % r.element_size != 0) return "no whole number of elements";
  const std::uint64_t n = bytes / r.element_size;
  return std::to_string(n) + (n == 1 ? " element" : " elements");
}

std::string sender_text(const sucl_request& r, const transfer& t) {
  return "from rank " + std::to_string(t.peer) +
         (r.collective ? std::string() : " with tag " + std::to_string(t.tag));
}

constexpr const char* count_hint =
    "Sender and receiver must name the same count and element type; where the receiver cannot know "
    "the count, send it first.";

bool means_lost(int code) {
  constexpr int lost[] = {ECONNRESET, ECONNREFUSED, ECONNABORTED, EPIPE,     ENOTCONN,
                          ESHUTDOWN,  EHOSTUNREACH, ENETUNREACH,  ETIMEDOUT, EHOSTDOWN};
  return std::find(std::begin(lost), std::end(lost), code) != std::end(lost);
}

void note(sucl_request& r, problem p) {
  if (r.failure.status == SUCL_SUCCESS) r.failure = std::move(p);
}

// Of the element type of a message.
std::string type_text(std::uint32_t label) {
  const std::size_t type = label & 31u;
  if (type > 0 && type < base::type_names.size())
    return "elements of type " + std::string(base::type_names[type]);
  return "elements of " + std::to_string(label >> 5) + " bytes";
}

void note_elements(sucl_request& r, const transfer& t, std::uint32_t sent) {
  note(r, {SUCL_ERROR_MISMATCH,
           "the message " + sender_text(r, t) + " has " + type_text(sent) +
               ", this rank receives " + type_text(t.elements),
           count_hint});
}

void note_length(sucl_request& r, const transfer& t, std::uint64_t bytes) {
  note(r, {SUCL_ERROR_INVALID_COUNT,
           "the message " + sender_text(r, t) + " has " + elements_text(r, bytes) +
               ", this rank receives " + std::to_string(t.bytes / r.element_size),
           count_hint});
}

void note_error(sucl_request& r, const transfer& t, const ending& how) {
  if (!t.sends && how.code == FI_ETRUNC)
    return note(r, {SUCL_ERROR_INVALID_COUNT,
                    "the message " + sender_text(r, t) + " is longer than the " +
                        elements_text(r, t.bytes) + " this rank receives",
                    count_hint, how.code});
  const library& from = *r.comm->state->from;
  const std::string peer = "rank " + std::to_string(t.peer);
  std::string reason = from.text_of(how.code);
  if (!how.text.empty() && how.text != reason) reason += " (" + how.text + ")";
  r.ends_comm = true;
  if (means_lost(how.code))
    return note(r, {SUCL_ERROR_PEER_LOST, peer + " cannot be reached: " + reason,
                    "Look for what " + peer +
                        " says; if it lives, its machine or network does not "
                        "let connections through.",
                    how.code});
  note(r, {SUCL_ERROR_NATIVE,
           "a message " + std::string(t.sends ? "to " : "from ") + peer + " failed: " + reason,
           "The network reported this; the same operation may work with another "
           "fabric.provider (SUCL_FABRIC_PROVIDER).",
           how.code});
}

void launch(sucl_request& r, const transfer& t, std::size_t index) {
  endpoint& e = *r.comm->endpoint;
  message& m = e.take();
  m.owner = &r;
  m.memory = t.memory;
  m.bytes = t.bytes;
  m.peer = r.comm->peers[static_cast<std::size_t>(t.peer)];
  m.tag = tag_of(r, t);
  m.ignored = r.collective ? 0 : label_mask;
  m.sends = t.sends;
  m.about = static_cast<std::uint32_t>(index);
  ++r.open;
  try {
    e.start(m);
  } catch (const problem& p) {
    --r.open;
    r.ends_comm = true;
    note(r, p);
  }
}

// The memory of a transfer is free: what was held for it begins.
void release(sucl_request& r, std::size_t next) {
  if (next == transfer::none) return;
  const transfer t = r.transfers[next];
  launch(r, t, next);
}

// What has arrived is combined, and sent on.
void arrived(sucl_request& r, const transfer& t) {
  if (t.count > 0) r.fold(t.fold_from, t.fold_into, t.count);
  if (t.forward_to < 0) return release(r, t.next);
  transfer on;
  on.sends = true;
  on.peer = t.forward_to;
  on.memory = t.count > 0 ? t.fold_into : t.memory;
  on.bytes = t.bytes;
  on.tag = t.forward_tag;
  if (on.memory == t.memory) on.next = t.next;
  r.transfers.push_back(on);
  launch(r, on, r.transfers.size() - 1);
  if (on.memory != t.memory) release(r, t.next);
}

void transfer_ended(sucl_request& r, std::size_t index, const ending& how) {
  const transfer t = r.transfers[index];
  --r.open;
  if (how.code != 0)
    note_error(r, t, how);
  else if (!t.sends && !r.collective && !same_elements(label_in(how.tag), t.elements))
    note_elements(r, t, label_in(how.tag));
  else if (!t.sends && how.bytes != t.bytes)
    note_length(r, t, how.bytes);
  else if (r.failure.status == SUCL_SUCCESS)
    t.sends ? release(r, t.next) : arrived(r, t);
  if (!r.running) advance(r);
}

// Messages to the own rank never leave the process.
void match_own_message(sucl_request& r, std::size_t index) {
  sucl_backend_comm& c = *r.comm;
  const bool sends = r.transfers[index].sends;
  ++r.open;
  auto& others = sends ? c.own_receives : c.own_sends;
  const auto other = std::find_if(others.begin(), others.end(), [&](const self_message& m) {
    return m.request->transfers[m.transfer].tag == r.transfers[index].tag;
  });
  if (other == others.end()) {
    (sends ? c.own_sends : c.own_receives).push_back({&r, index});
    return;
  }
  const self_message partner = *other;
  others.erase(other);
  const self_message mine{&r, index};
  const self_message& from = sends ? mine : partner;
  const self_message& to = sends ? partner : mine;
  const transfer source = from.request->transfers[from.transfer];
  const transfer sink = to.request->transfers[to.transfer];
  if (source.bytes > 0 && source.bytes <= sink.bytes)
    std::memmove(sink.memory, source.memory, source.bytes);
  const ending how{0, source.bytes, {}, tag_of(*from.request, source)};
  transfer_ended(*from.request, from.transfer, how);
  transfer_ended(*to.request, to.transfer, how);
}

void do_work(sucl_request& r, const local_work& w) {
  if (w.count > 0)
    r.fold(w.from, w.to, w.count);
  else if (w.bytes > 0 && w.to != w.from)
    std::memmove(w.to, w.from, w.bytes);
}

void begin(sucl_request& r, std::size_t index) {
  const bool last = index + 1 == r.stages.size();
  const stage& here = r.stages[index];
  const std::size_t end_of_work = last ? r.work.size() : r.stages[index + 1].first_work;
  const std::size_t end = last ? r.planned : r.stages[index + 1].first_transfer;
  for (std::size_t i = here.first_work; i < end_of_work; ++i)
    if (!r.work[i].late) do_work(r, r.work[i]);
  // Receives come first, so that every message finds its memory.
  for (const bool sending : {false, true})
    for (std::size_t i = here.first_transfer; i < end && !r.ends_comm; ++i) {
      const transfer t = r.transfers[i];
      if (t.sends != sending || t.held) continue;
      if (t.peer == r.comm->rank)
        match_own_message(r, i);
      else
        launch(r, t, i);
    }
  for (std::size_t i = here.first_work; i < end_of_work; ++i)
    if (r.work[i].late) do_work(r, r.work[i]);
}

}  // namespace

void ended(message& m, const ending& how) { transfer_ended(*m.owner, m.about, how); }

sucl_request& acquire(sucl_backend_comm& comm) {
  if (comm.idle.empty()) {
    comm.requests.push_back(std::make_unique<sucl_request>());
    comm.idle.reserve(comm.requests.size());
    comm.idle.push_back(comm.requests.back().get());
  }
  sucl_request& r = *comm.idle.back();
  comm.idle.pop_back();
  r.comm = &comm;
  r.stages.assign(1, {});
  r.work.clear();
  r.transfers.clear();
  r.next = 0;
  r.open = 0;
  r.running = r.over = r.collective = r.pairwise = r.ends_comm = false;
  r.fold = nullptr;
  r.failure = {};
  return r;
}

void advance(sucl_request& r) {
  r.running = true;
  // After an error of one message the others are waited for, unless they may never end; later
  // stages begin where peers wait for their messages whatever this one was.
  const auto goes_on = [&r] { return r.pairwise || r.failure.status == SUCL_SUCCESS; };
  while (r.open == 0 && r.next < r.stages.size() && goes_on()) begin(r, r.next++);
  r.running = false;
  const bool done = r.next == r.stages.size() || !goes_on();
  if (r.ends_comm || (done && r.open == 0)) r.over = true;
}

sucl_status conclude(sucl_request& r) {
  sucl_backend_comm& c = *r.comm;
  const problem failure = std::move(r.failure);
  r.failure = {};
  if (r.ends_comm || (r.collective && !r.pairwise && failure.status != SUCL_SUCCESS)) give_up(c);
  if (r.scratch_bytes > kept_scratch) {
    r.scratch.reset();
    r.scratch_bytes = 0;
  }
  c.idle.push_back(&r);
  return failure.status == SUCL_SUCCESS ? SUCL_SUCCESS : report(c.state->core, failure);
}

void give_up(sucl_backend_comm& comm) {
  comm.broken = true;
  for (const auto& r : comm.requests) {
    comm.endpoint->give_up(*r);
    r->open = 0;
  }
  comm.own_sends.clear();
  comm.own_receives.clear();
}

schedule::schedule(sucl_request& r, const sucl_operation& o)
    : m_request(r), m_element(o.element_size) {}

void schedule::next_stage() {
  m_request.stages.push_back({m_request.work.size(), m_request.transfers.size()});
}

void schedule::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  m_request.work.push_back({to, from, bytes, 0});
}

void schedule::copy_aside(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  m_request.work.push_back({to, from, bytes, 0, true});
}

void schedule::fold(std::byte* into, const std::byte* from, std::uint64_t bytes) {
  if (bytes > 0) m_request.work.push_back({into, from, 0, bytes / m_element});
}

void schedule::send(int peer, const std::byte* memory, std::uint64_t bytes) {
  transfer t;
  t.sends = true;
  t.peer = peer;
  t.memory = const_cast<std::byte*>(memory);
  t.bytes = bytes;
  m_request.transfers.push_back(t);
}

void schedule::receive(int peer, std::byte* memory, std::uint64_t bytes) {
  send(peer, memory, bytes);
  m_request.transfers.back().sends = false;
}

void schedule::user(bool sends, int peer, const sucl_operation& o, const void* memory,
                    std::uint64_t count) {
  send(peer, static_cast<const std::byte*>(memory), count * o.element_size);
  transfer& t = m_request.transfers.back();
  t.sends = sends;
  t.tag = static_cast<std::uint32_t>(o.tag);
  t.elements = label_of(o.type, o.element_size);
}

std::uint64_t schedule::piece_of(std::uint64_t bytes) const {
  const std::uint64_t most = std::clamp(bytes / pieces_at_least, short_piece_bytes, piece_bytes);
  return std::max<std::uint64_t>(1, std::min(bytes, most) / m_element) * m_element;
}

// Whole elements in each.
template <class Piece>
void schedule::in_pieces(std::uint64_t bytes, const Piece& piece) {
  const std::uint64_t most = piece_of(bytes);
  std::uint32_t number = 0;
  for (std::uint64_t at = 0; at < bytes; at += most, ++number)
    piece(number % result_mark, at, std::min(most, bytes - at));
}

void schedule::send_pieces(int peer, const std::byte* memory, std::uint64_t bytes) {
  in_pieces(bytes, [&](std::uint32_t number, std::uint64_t at, std::uint64_t n) {
    send(peer, memory + at, n);
    added().tag = number;
  });
}

void schedule::relay_pieces(int peer, std::byte* memory, std::uint64_t bytes, int next) {
  in_pieces(bytes, [&](std::uint32_t number, std::uint64_t at, std::uint64_t n) {
    receive(peer, memory + at, n);
    transfer& t = added();
    t.tag = t.forward_tag = number;
    t.forward_to = next;
  });
}

std::uint64_t schedule::turns_bytes(std::uint64_t bytes) const {
  return std::min(bytes, scratch_pieces * piece_of(bytes));
}

void schedule::fold_pieces(int peer, const folding& how, std::uint64_t bytes, int next) {
  const std::uint64_t most = piece_of(bytes);
  const std::size_t first = m_request.transfers.size();
  in_pieces(bytes, [&](std::uint32_t number, std::uint64_t at, std::uint64_t n) {
    const std::size_t i = m_request.transfers.size() - first;
    std::byte* here = how.memory + (how.in_turns ? i % scratch_pieces * most : at);
    receive(peer, here, n);
    transfer& t = added();
    t.tag = t.forward_tag = number;
    t.fold_from = how.from ? how.from + at : here;
    t.fold_into = how.into ? how.into + at : here;
    t.count = n / m_element;
    t.forward_to = next;
    if (!how.in_turns || i < scratch_pieces) return;
    t.held = true;
    m_request.transfers[first + i - scratch_pieces].next = first + i;
  });
}

void schedule::fold_and_return(int peer, const folding& how, std::uint64_t bytes) {
  const std::size_t first = m_request.transfers.size();
  fold_pieces(peer, how, bytes, peer);
  for (std::size_t i = first; i < m_request.transfers.size(); ++i)
    m_request.transfers[i].forward_tag |= result_mark;
}

void schedule::send_and_get(int peer, const std::byte* from, std::byte* to, std::uint64_t bytes) {
  in_pieces(bytes, [&](std::uint32_t number, std::uint64_t at, std::uint64_t n) {
    receive(peer, to + at, n);
    added().tag = number | result_mark;
    // What is being sent must not change.
    const std::size_t result = m_request.transfers.size() - 1;
    added().held = from == to;
    send(peer, from + at, n);
    added().tag = number;
    if (from == to) added().next = result;
  });
}

std::byte* schedule::scratch(std::uint64_t bytes) {
  sucl_request& r = m_request;
  if (bytes > r.scratch_bytes) {
    r.scratch_bytes = 0;
    r.scratch.reset(new std::byte[bytes]);
    r.scratch_bytes = bytes;
  }
  return r.scratch.get();
}

}  // namespace sucl::fabric
