// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are run over and over: their addresses are looked up once, not in every run.
#include "runtime/exec/prepared.hpp"

#include "runtime/exec/looks.hpp"
#include "runtime/exec/runner.hpp"
#include "runtime/operation.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {

using action = step::action;

std::shared_ptr<prepared_run> runner::prepare(const sucl_operation& asked) {
  const sucl_operation o = simplest(asked);
  if (o.kind == compiled_plan_kind || may_be_mapped(o)) return nullptr;
  contest* const rival = rival_of(o);
  if (!rival && may_be_read(o)) return nullptr;
  auto made = std::make_shared<prepared_run>();
  made->rival = rival;
  made->what = std::make_shared<execution>();
  execution& e = *made->what;
  e.what = o;
  e.element_size = o.element_size;
  set_memory(e);
  if (has_hidden_counts(o.kind)) {
    e.announcing = execution::notice::counts;
    e.peer_send.resize(static_cast<std::size_t>(m_size));
    announce(e);
  } else {
    e.how = &m_shapes.of(o, reach::staged);
  }
  const program& code = e.how->of(0);
  if (e.how->slices != 1 || code.channels.size() != 1 || code.posts) return nullptr;
  if (reduces(static_cast<kind>(o.kind))) made->fold = find_fold(o.type, o.op);
  made->ring = m_memory.ring_of(code.scratch_bytes);
  made->places = m_memory.places(made->ring);
  for (std::uint32_t place = 0; place < made->places; ++place) bind(e, place, *made);
  made->length = made->steps.size() / made->places;
  set_memory(e);  // in place of its notes
  return made;
}

// Whether nothing is left to do once the ranks have told each other their counts.
bool runner::is_all_told(execution& e) {
  e.failure.reset();
  return take_letters(e, false) && !e.failure;
}

namespace {

// Has a signal take along what was to be copied beside its word just before.
void join(bound_step& before, bound_step& signal, std::uint64_t scratch_bytes) {
  constexpr std::uint64_t most = sizeof *signal.word;
  const bool beside = before.what == action::copy && before.size > 0 &&
                      before.to == reinterpret_cast<std::byte*>(signal.word + 1);
  const bool fills = before.size == most || (before.size < most && before.size == scratch_bytes);
  if (!beside || !fills || !stores_pairs()) return;
  signal.first = before.first;
  signal.size = std::exchange(before.size, 0);
}

}  // namespace

// Adds the steps of the runs of a place, one for each of the program.
void runner::bind(execution& e, std::uint32_t place, prepared_run& p) const {
  run r;
  r.owner = &e;
  r.code = &e.how->of(0);
  r.scratch = m_memory.scratch(p.ring, place);
  for (const step& s : r.code->channels[0]) {
    bound_step b;
    b.what = s.what;
    b.peer = s.peer;
    b.value = s.value;
    b.first = p.sources.size();
    if (s.what == action::signal || s.what == action::wait) {
      const bool signals = s.what == action::signal;
      b.word = m_memory.place(0, signals ? m_rank : s.peer, signals ? 0 : s.channel);
      if (signals && !p.steps.empty()) join(p.steps.back(), b, r.code->scratch_bytes);
    } else {
      const bool copies = s.what == action::copy;
      b.to = address(r, s.to);
      b.sources = copies ? 1 : s.sources;
      b.size = copies ? s.bytes : s.bytes / e.element_size;
      b.publishes = s.publishes && s.bytes >= publisher::least_bytes;
      for (std::uint32_t i = 0; i < b.sources; ++i)
        p.sources.push_back(address(r, r.code->sources[s.first + i]));
      if (copies && (keeps_block(e, s) || b.to == p.sources.back())) b.size = 0;
    }
    p.steps.push_back(b);
  }
}

inline void runner::raise(std::uint64_t* word, const bound_step& s, const void* const* from,
                          std::uint64_t value) {
  if (s.size == 0) return shared_memory::word(*word).store(value, std::memory_order_release);
  std::uint64_t data = 0;
  move_bytes(&data, from[0], s.size);
  store_pair(word, value, data);
}

// One step; false if it waits for a peer that is not near. `slot`: words before those of its slot.
inline bool runner::take(const prepared_run& p, const bound_step& s, std::uint64_t number,
                         std::uint64_t slot) {
  const void* const* from = p.sources.data() + s.first;
  switch (s.what) {
    case action::copy:
      if (s.publishes)
        m_publisher.copy(s.to, from[0], s.size);
      else
        move_bytes(s.to, from[0], s.size);
      return true;
    case action::fold: p.fold(s.to, from, s.sources, s.size, m_size); return true;
    case action::signal: raise(s.word + slot, s, from, value_of(number, s.value)); return true;
    default:
      if (!look(shared_memory::word(s.word[slot]), value_of(number, s.value),
                m_looks < eager_looks ? m_looks : eager_looks))
        return false;
      note_alive(s.peer, number);
      return true;
  }
}

// What is left to do where a peer lets this rank wait, the next run begins with.
bool runner::run_at_once(const prepared_run& p) {
  const std::uint64_t number = m_begun + 1;
  if (m_broken || m_begun != m_retired || m_head != m_queue.size() || !may_begin(number, nullptr))
    return false;
  if (p.rival && !p.rival->is_lost()) return false;
  const bool tells = p.what->announcing == execution::notice::counts;
  if (tells) write_letters(*p.what);
  const bound_step* const begin = p.steps.data() + place_of(p.ring, number) * p.length;
  const bound_step* s = begin;
  const std::uint64_t slot = m_memory.slot_of(number) * m_memory.words_of_slot();
  while (s != begin + p.length && take(p, *s, number, slot)) ++s;
  m_ahead = static_cast<std::uint32_t>(s - begin);
  m_prepared = &p;
  if (m_ahead < p.length || (tells && !is_all_told(*p.what))) return false;
  m_ahead = 0;
  m_begun = number;
  ++m_uses[p.ring];
  if (p.rival) p.rival->next();
  note_retired();
  return true;
}

}  // namespace sucl::core
