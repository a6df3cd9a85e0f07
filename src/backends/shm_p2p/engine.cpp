// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_p2p/engine.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sizes.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"

#include <sucl/types.hpp>

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>

namespace sucl::core {
namespace {

// From here on a second copy costs more than a system call that visits each page.
constexpr std::uint64_t min_read_bytes = std::uint64_t{12} << 10;
// What one step copies at most, so that both directions go on side by side.
constexpr std::uint64_t piece_bytes = std::uint64_t{256} << 10;
// Polls in vain before the processor is yielded, where others need it.
constexpr int polls_before_yield = 8;

// The element size is only known by its low bits.
bool have_same_elements(const envelope& a, const envelope& b) {
  return same_elements(a.type, a.element_size, b.type, b.element_size);
}

bool sends(sucl_kind kind) { return kind == SUCL_KIND_SEND || kind == SUCL_KIND_SENDRECV; }
bool receives(sucl_kind kind) { return kind == SUCL_KIND_RECV || kind == SUCL_KIND_SENDRECV; }

std::uint64_t expected_count(const sucl_operation& o) {
  return o.kind == SUCL_KIND_SENDRECV ? o.recv_count : o.count;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

p2p_engine::p2p_engine(const backend_comm& memory_provider, placement where, bool reads)
    : m_where(std::move(where)),
      m_rank(m_where.rank),
      m_memory_provider(memory_provider),
      m_reads(reads) {
  const std::vector<int> neighbours = m_where.neighbours();
  m_spin_limit = m_where.oversubscribed ? 0 : 500;
  // The FIFOs of a rank's part are those that it sends by, by the index of the receiver on the
  // node; a part is as large as the largest node needs.
  std::uint64_t most = 0;
  for (const int node : m_where.node_of)
    most =
        std::max<std::uint64_t>(most, static_cast<std::uint64_t>(std::count(
                                          m_where.node_of.begin(), m_where.node_of.end(), node)));
  m_region.struct_size = sizeof m_region;
  if (const auto status = memory_provider.table->memory_create(
          memory_provider.comm, most * fifo_layout::bytes, &m_region))
    throw_last(status, memory_provider.table->name, "communicator creation", m_rank);
  m_peers.resize(static_cast<std::size_t>(m_where.size));
  const auto fifo = [&](int from, std::size_t index) {
    auto* part = static_cast<std::byte*>(m_region.peers[from]);
    m_complete = m_complete && part;
    return part ? part + index * fifo_layout::bytes : nullptr;
  };
  const auto own = static_cast<std::size_t>(
      std::find(neighbours.begin(), neighbours.end(), m_rank) - neighbours.begin());
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    auto made = std::make_unique<peer>();
    made->rank = neighbours[i];
    made->out = fifo_sender(fifo(m_rank, i));
    made->in = fifo_receiver(fifo(neighbours[i], own));
    m_near.push_back(made.get());
    m_peers[static_cast<std::size_t>(neighbours[i])] = std::move(made);
  }
}

// What a sender has sent to this rank and it has not received is lost with the communicator.
void p2p_engine::report_unreceived() noexcept try {
  if (m_broken || m_given_up || m_open > 0) return;
  ++m_open;  // has what no receive waits for taken out of the rings
  for (peer* p : m_near) {
    collect(*p);
    if (const unexpected_message* s = p->unexpected.head)
      base::log(base::log_level::warn, "messages", "rank ", m_rank,
                " ends a communicator without having received a message of ", s->what.bytes,
                " bytes from rank ", p->rank, " with tag ", s->what.tag,
                s->next ? ", and others: they are lost" : ": it is lost");
  }
} catch (const std::exception&) {
  // Only what was worth a warning.
}

p2p_engine::~p2p_engine() {
  report_unreceived();
  for (const transport& t : m_where.transports) t.via.table->comm_destroy(t.via.comm);
  if (m_region.handle) m_memory_provider.table->memory_destroy(m_memory_provider.comm, &m_region);
}

void p2p_engine::abort() {
  m_given_up = true;
  for (const transport& t : m_where.transports) t.via.table->abort(t.via.comm);
}

void p2p_engine::add(std::uint64_t number, const sucl_region& region) {
  m_regions.push_back({number, region});
}

void p2p_engine::remove(const void* base) {
  std::erase_if(m_regions, [&](const shared_region& r) { return r.region.base == base; });
}

// ---- operations

p2p_engine::item* p2p_engine::take_item() {
  if (m_free_items.empty()) {
    m_items.push_back(std::make_unique<item>());
    m_free_items.reserve(m_items.size());
    m_free_items.push_back(m_items.back().get());
  }
  item* i = m_free_items.back();
  m_free_items.pop_back();
  *i = item{};
  return i;
}

p2p_request* p2p_engine::take_request() {
  if (m_free_requests.empty()) {
    m_requests.push_back(std::make_unique<p2p_request>());
    m_free_requests.push_back(m_requests.back().get());
  }
  p2p_request* d = m_free_requests.back();
  m_free_requests.pop_back();
  d->open = 0;
  d->far.clear();
  d->failure.reset();
  return d;
}

p2p_request* p2p_engine::start(const sucl_operation& o) {
  if (m_broken) throw error(*m_broken);
  p2p_request* d = take_request();
  try {
    const bool group = o.kind == SUCL_KIND_GROUP;
    const sucl_operation* parts = group ? o.parts : &o;
    const sucl_operation* end = parts + (group ? o.part_count : 1);
    const void* data = o.send;
    if (!group && (o.flags & SUCL_FLAG_IN_PLACE)) {
      const std::uint64_t bytes = o.count * o.element_size;
      if (d->bounce_bytes < bytes) d->bounce_buffer.reset(new std::byte[bytes]);
      d->bounce_bytes = std::max(d->bounce_bytes, bytes);
      if (bytes > 0) std::memcpy(d->bounce_buffer.get(), o.recv, bytes);
      data = d->bounce_buffer.get();
    }
    // Receives come first, so that messages find them.
    for (const sucl_operation* part = parts; part != end; ++part)
      if (receives(part->kind)) receive(*part, d);
    for (const sucl_operation* part = parts; part != end; ++part)
      if (sends(part->kind)) send(*part, group ? part->send : data, d);
  } catch (const error& e) {
    give_up(d, e.info());
  } catch (const std::bad_alloc&) {
    error_info info;
    info.code = errc::out_of_memory;
    info.message = "no memory for the bookkeeping of a message";
    info.hint = "Have fewer messages in flight at once";
    give_up(d, info);
  }
  return d;
}

// Of an operation that failed while it was started: parts that are in flight cannot be taken back.
void p2p_engine::give_up(p2p_request* d, const error_info& info) {
  if (d->open > 0 || !d->far.empty())
    m_broken = info;
  else
    recycle(d);
  throw error(info);
}

// What a transport gets: one message.
void p2p_engine::post_far(sucl_operation o, sucl_kind half, p2p_request* d) {
  if (m_where.transports.empty())
    base::fail(errc::internal, "a message to another node has no transport", "Report this");
  const transport& t = m_where.transports.front();
  if (half == SUCL_KIND_RECV) o.count = expected_count(o);
  o.kind = half;
  o.flags = 0;
  sucl_request* request = nullptr;
  if (const auto status = t.via.table->post(t.via.comm, &o, &request))
    throw_last(status, t.name, {}, m_rank);
  if (!request) return;
  d->far.push_back(request);
  ++m_open;
}

void p2p_engine::send(const sucl_operation& o, const void* data, p2p_request* d) {
  if (!m_where.near(o.root)) {
    sucl_operation far = o;
    far.send = data;
    return post_far(far, SUCL_KIND_SEND, d);
  }
  peer& p = near(o.root);
  const std::uint64_t bytes = o.count * o.element_size;
  const envelope e{bytes, o.tag, false, static_cast<std::uint8_t>(o.type),
                   static_cast<std::uint16_t>(o.element_size)};
  if (bytes <= fifo_layout::short_bytes && !p.unsent.head && p.out.put(e, data, bytes)) return;
  item* i = take_item();
  i->owner = d;
  i->memory = static_cast<std::byte*>(const_cast<void*>(data));
  i->bytes = bytes;
  i->element_size = o.element_size;
  i->type = o.type;
  i->tag = o.tag;
  if (bytes > fifo_layout::short_bytes) {
    i->about.serial = ++p.rendezvous_serial;
    i->about.address = reinterpret_cast<std::uint64_t>(data);
    locate(i->memory, bytes, i->about.region, i->about.offset);
  }
  ++d->open, ++p.open, ++m_open;
  p.unsent.push(i);
  send_waiting(p);
}

void p2p_engine::receive(const sucl_operation& o, p2p_request* d) {
  if (!m_where.near(o.source)) return post_far(o, SUCL_KIND_RECV, d);
  peer& p = near(o.source);
  item* i = take_item();
  i->owner = d;
  i->memory = static_cast<std::byte*>(o.recv);
  i->bytes = expected_count(o) * o.element_size;
  i->element_size = o.element_size;
  i->type = o.type;
  i->tag = o.tag;
  ++d->open, ++p.open, ++m_open;
  if (!match_unexpected(p, *i)) p.receives.push(i);
}

bool p2p_engine::over(p2p_request& d) {
  if (m_broken) throw error(*m_broken);
  for (sucl_request*& request : d.far) {
    if (!request) continue;
    const transport& t = m_where.transports.front();
    std::int32_t done = 0;
    const auto status = t.via.table->test(t.via.comm, request, &done);
    if (status && !d.failure) d.failure = take_last(status);
    if (!status && !done) continue;
    request = nullptr;
    --m_open;
  }
  return d.open == 0 &&
         std::all_of(d.far.begin(), d.far.end(), [](const auto* request) { return !request; });
}

void p2p_engine::finish(peer& p, item* i) {
  --i->owner->open, --p.open, --m_open;
  m_free_items.push_back(i);
}

// ---- memory that both ends reach

void p2p_engine::locate(const std::byte* memory, std::uint64_t bytes, std::uint64_t& region,
                        std::uint64_t& offset) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  for (const shared_region& r : m_regions) {
    const auto start = reinterpret_cast<std::uintptr_t>(r.region.base);
    if (!base::lies_within(address, bytes, start, r.region.bytes)) continue;
    region = r.number;
    offset = address - start;
  }
}

// Null where this rank does not know of the memory, or not yet.
std::byte* p2p_engine::mapped_address(int rank, std::uint64_t region, std::uint64_t offset) const {
  if (region == 0) return nullptr;
  for (const shared_region& r : m_regions)
    if (r.number == region) {
      auto* part = static_cast<std::byte*>(r.region.peers[rank]);
      return part ? part + offset : nullptr;
    }
  return nullptr;
}

// ---- the sender's end

envelope p2p_engine::envelope_of(const item& i) {
  return {i.bytes, i.tag, i.about.serial != 0, static_cast<std::uint8_t>(i.type),
          static_cast<std::uint16_t>(i.element_size)};
}

bool p2p_engine::put(peer& p, item& i) {
  const envelope e = envelope_of(i);
  return e.rendezvous ? p.out.put(e, &i.about, sizeof i.about) : p.out.put(e, i.memory, i.bytes);
}

bool p2p_engine::send_waiting(peer& p) {
  bool moved = false;
  while (p.unsent.head && put(p, *p.unsent.head)) {
    item* i = p.unsent.pop();
    moved = true;
    if (i->about.serial == 0)
      finish(p, i);
    else
      p.waiting_for_reply.push(i);
  }
  return moved;
}

bool p2p_engine::take_replies(peer& p) {
  bool moved = false;
  rendezvous_reply o;
  while (p.waiting_for_reply.head && p.out.next(o)) {
    item** at = &p.waiting_for_reply.head;
    while ((*at)->about.serial != o.serial) at = &(*at)->next;
    item* i = p.waiting_for_reply.take(at);
    moved = true;
    if (o.what == rendezvous_reply::act::refuse)
      refuse(*i, envelope_of(*i), m_rank,
             {o.bytes, i->tag, true, static_cast<std::uint8_t>(o.type),
              static_cast<std::uint16_t>(o.element_size)},
             p.rank);
    if (o.what == rendezvous_reply::act::finish || o.what == rendezvous_reply::act::refuse) {
      finish(p, i);
      continue;
    }
    if (o.what == rendezvous_reply::act::write) {
      i->pushed = true;
      i->target = mapped_address(p.rank, o.region, o.offset);
    }
    p.sending.push(i);
  }
  return moved;
}

bool p2p_engine::fill_chunk(peer& p) {
  item* i = p.sending.head;
  if (!i) return false;
  if (i->target && i->moved < i->bytes) {
    const std::uint64_t n = std::min(i->bytes - i->moved, piece_bytes);
    m_copier.copy(i->target + i->moved, i->memory + i->moved, n);
    i->moved += n;
    return true;
  }
  std::byte* chunk = p.out.empty_chunk();
  if (!chunk) return false;
  if (i->pushed) {
    const std::uint64_t there = i->target != nullptr;
    std::memcpy(chunk, &there, sizeof there);
    i->pushed = false;
  } else {
    const std::uint64_t n = std::min(i->bytes - i->moved, fifo_layout::chunk_bytes);
    m_copier.copy(chunk, i->memory + i->moved, n);
    i->moved += n;
  }
  p.out.filled();
  if (i->moved == i->bytes) finish(p, p.sending.pop());
  return true;
}

// ---- the receiver's end

// Whether a message is what a receive is for. Of the element size the envelope has the low bits.
bool p2p_engine::fits(const item& r, const envelope& e) {
  return r.bytes == e.bytes && have_same_elements(envelope_of(r), e);
}

// The text is the same at both ends.
void p2p_engine::refuse(const item& i, const envelope& sent, int from, const envelope& wanted,
                        int to) {
  if (i.owner->failure) return;
  const auto elements = [](const envelope& e) {
    const bool whole = e.element_size != 0 && e.bytes % e.element_size == 0;
    return whole ? elements_text(e.bytes / e.element_size, e.type, e.element_size)
                 : elements_text(e.bytes, SUCL_TYPE_BYTES, 1);
  };
  error_info info;
  info.code = have_same_elements(sent, wanted) ? errc::invalid_count : errc::mismatch;
  info.message = "the message from rank " + std::to_string(from) + " with tag " +
                 std::to_string(i.tag) + " has " + elements(sent) + ", rank " + std::to_string(to) +
                 " receives " + elements(wanted);
  info.hint =
      "Sender and receiver must name the same count and element type; where the receiver cannot "
      "know the count, send it first.";
  i.owner->failure = std::move(info);
}

// Takes what has come to the receives that are there for it.
void p2p_engine::collect(peer& p) {
  envelope e;
  while (p.in.peek(e)) {
    item** at = &p.receives.head;
    while (*at && (*at)->tag != e.tag) at = &(*at)->next;
    if (!*at) {
      // While this rank waits for anything, no sender has to wait for room in its rings.
      if (m_open == 0) return;
      keep_unexpected(p, e);
      continue;
    }
    item* r = p.receives.take(at);
    if (e.rendezvous) {
      rendezvous_request about;
      p.in.read(&about, sizeof about);
      p.in.pop(sizeof about);
      match_long(p, r, e, about);
      continue;
    }
    if (fits(*r, e))
      p.in.read(r->memory, e.bytes);
    else
      refuse(*r, e, p.rank, envelope_of(*r), m_rank);
    p.in.pop(e.bytes);
    finish(p, r);
  }
}

std::optional<bool> p2p_engine::arrived(int from, int tag) {
  peer* p = m_peers[static_cast<std::size_t>(from)].get();
  if (!p || m_broken) return std::nullopt;
  ++m_open;  // has what no receive waits for taken out of the ring
  collect(*p);
  --m_open;
  const unexpected_message* s = p->unexpected.head;
  while (s && s->what.tag != tag) s = s->next;
  return s != nullptr;
}

void p2p_engine::keep_unexpected(peer& p, const envelope& e) {
  if (m_free_unexpected.empty()) {
    m_unexpected.push_back(std::make_unique<unexpected_message>());
    m_free_unexpected.push_back(m_unexpected.back().get());
  }
  unexpected_message* s = m_free_unexpected.back();
  s->what = e;
  const std::uint64_t bytes = e.rendezvous ? sizeof s->about : e.bytes;
  if (!e.rendezvous) s->data.resize(bytes);
  p.in.read(e.rendezvous ? static_cast<void*>(&s->about) : s->data.data(), bytes);
  p.in.pop(bytes);
  m_free_unexpected.pop_back();
  p.unexpected.push(s);
}

bool p2p_engine::match_unexpected(peer& p, item& r) {
  unexpected_message** at = &p.unexpected.head;
  while (*at && (*at)->what.tag != r.tag) at = &(*at)->next;
  if (!*at) return false;
  unexpected_message* s = p.unexpected.take(at);
  m_free_unexpected.push_back(s);
  if (s->what.rendezvous) {
    match_long(p, &r, s->what, s->about);
    return true;
  }
  if (!fits(r, s->what))
    refuse(r, s->what, p.rank, envelope_of(r), m_rank);
  else if (r.bytes > 0)
    std::memcpy(r.memory, s->data.data(), r.bytes);
  finish(p, &r);
  return true;
}

void p2p_engine::match_long(peer& p, item* r, const envelope& e, const rendezvous_request& about) {
  r->about = about;
  if (!fits(*r, e)) {
    refuse(*r, e, p.rank, envelope_of(*r), m_rank);
    r->refused = true;
  } else if (p.rank == m_rank) {
    r->source = reinterpret_cast<const std::byte*>(about.address);
  } else {
    r->source = mapped_address(p.rank, about.region, about.offset);
    r->read = !r->source && m_reads && r->bytes >= min_read_bytes;
  }
  p.matched.push(r);
}

void p2p_engine::copy_piece(peer& p, item& r) {
  const std::uint64_t n = std::min(r.bytes - r.moved, piece_bytes);
  if (r.source) {
    std::memcpy(r.memory + r.moved, r.source + r.moved, n);
  } else if (const auto status = m_memory_provider.table->memory_read(
                 m_memory_provider.comm, p.rank, r.memory + r.moved, r.about.address + r.moved,
                 n)) {
    take_last(status);  // memory of some other kind, or the process has ended
    r.read = false;
    r.moved = 0;
    return;
  }
  r.moved += n;
}

bool p2p_engine::handle_matched(peer& p) {
  item* r = p.matched.head;
  if (!r) return false;
  rendezvous_reply o;
  o.what = rendezvous_reply::act::finish;
  o.serial = r->about.serial;
  if (r->refused) {
    const envelope wanted = envelope_of(*r);
    o.what = rendezvous_reply::act::refuse;
    o.bytes = wanted.bytes;
    o.element_size = wanted.element_size;
    o.type = wanted.type;
  } else {
    if ((r->source || r->read) && r->moved < r->bytes) {
      copy_piece(p, *r);
      return true;
    }
    if (!r->source && !r->read) {
      locate(r->memory, r->bytes, o.region, o.offset);
      r->pushed = o.region != 0;
      o.what = r->pushed ? rendezvous_reply::act::write : rendezvous_reply::act::send;
    }
  }
  if (!p.in.reply(o)) return false;
  p.matched.pop();
  if (o.what == rendezvous_reply::act::finish || o.what == rendezvous_reply::act::refuse)
    finish(p, r);
  else
    p.receiving.push(r);
  return true;
}

bool p2p_engine::take_chunk(peer& p) {
  item* r = p.receiving.head;
  if (!r) return false;
  const std::byte* chunk = p.in.full_chunk();
  if (!chunk) return false;
  if (r->pushed) {
    std::uint64_t there = 0;
    std::memcpy(&there, chunk, sizeof there);
    r->pushed = false;
    if (there) r->moved = r->bytes;
  } else {
    const std::uint64_t n = std::min(r->bytes - r->moved, fifo_layout::chunk_bytes);
    std::memcpy(r->memory + r->moved, chunk, n);
    r->moved += n;
  }
  p.in.taken();
  if (r->moved == r->bytes) finish(p, p.receiving.pop());
  return true;
}

// ---- progress

// True if something moved.
bool p2p_engine::advance(peer& p) {
  collect(p);
  if (p.open == 0) return false;
  bool moved = send_waiting(p);
  moved |= take_replies(p);
  moved |= handle_matched(p);
  for (std::uint64_t i = 0; i < fifo_layout::chunk_count; ++i) {
    const bool filled = fill_chunk(p), taken = take_chunk(p);
    if (!filled && !taken) break;
    moved = true;
  }
  return moved;
}

void p2p_engine::progress() {
  constexpr int max_passes = 64;
  int polls = m_spin_limit;
  for (int pass = 0; pass < max_passes && m_open > 0;) {
    bool moved = false, streams = false;
    for (peer* p : m_near) {
      moved |= advance(*p);
      streams = streams || p->sending.head || p->receiving.head;
    }
    if (moved) {
      ++pass;
      polls = m_spin_limit;
    } else {
      // The other end is at work on it, too, or needs this processor for that.
      if (m_where.oversubscribed && ++m_idle_polls % polls_before_yield == 0) sched_yield();
      if (!streams || polls-- <= 0) return;
      relax();
    }
  }
}

}  // namespace sucl::core
