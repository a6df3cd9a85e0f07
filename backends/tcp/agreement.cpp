// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include <algorithm>
#include <utility>

namespace sucl::tcp {
namespace {

constexpr std::uint64_t max_members = 1 << 24;

void put_members(writer& out, const std::vector<std::uint8_t>& members) {
  out.number(static_cast<std::uint32_t>(members.size())).raw(members.data(), members.size());
}

std::vector<std::uint8_t> take_members(reader& in) {
  const std::string text = in.text(max_members);
  return {text.begin(), text.end()};
}

}  // namespace

void paxos_message::put_into(writer& out) const {
  out.number(static_cast<std::uint32_t>(step)).number(number).number(flags).number(other);
  put_members(out, failed);
  out.number(std::uint8_t{value.has_value()});
  if (!value) return;
  out.number(value->flags).number(value->id);
  put_members(out, value->failed);
}

std::optional<paxos_message> paxos_message::take_from(reader& in) {
  paxos_message m;
  m.step = static_cast<paxos_step>(in.number<std::uint32_t>());
  m.number = in.number<std::uint64_t>();
  m.flags = in.number<std::uint32_t>();
  m.other = in.number<std::uint64_t>();
  m.failed = take_members(in);
  if (in.number<std::uint8_t>() != 0) {
    m.value.emplace();
    m.value->flags = in.number<std::uint32_t>();
    m.value->id = in.number<std::uint64_t>();
    m.value->failed = take_members(in);
  }
  if (!in.complete() || m.step < paxos_step::prepare || m.step > paxos_step::request_decision)
    return std::nullopt;
  const bool has_value = m.step == paxos_step::accept || m.step == paxos_step::decided ||
                         (m.step == paxos_step::promise && m.other != 0);
  return has_value == m.value.has_value() ? std::optional(m) : std::nullopt;
}

void agreement::enter(int own, int size, std::uint32_t flags, std::uint64_t new_id) {
  if (entered()) return;
  m_own = own;
  m_size = size;
  m_flags = flags;
  m_new_id = new_id;
  m_failed.assign(static_cast<std::size_t>(size), 0);
}

void agreement::note_failed(int member) {
  if (member == m_own || has_failed(member)) return;
  m_failed[static_cast<std::size_t>(member)] = 1;
}

void agreement::note_failed(const std::vector<std::uint8_t>& members) {
  for (std::size_t i = 0; i < members.size() && i < m_failed.size(); ++i)
    if (members[i]) note_failed(static_cast<int>(i));
}

int agreement::coordinator() const {
  const auto alive = std::find(m_failed.begin(), m_failed.end(), 0);
  return static_cast<int>(alive - m_failed.begin());
}

bool agreement::contains_all_alive(const std::set<int>& these) const {
  for (int i = 0; i < m_size; ++i)
    if (!has_failed(i) && !these.contains(i)) return false;
  return true;
}

void agreement::send_to_others(const paxos_message& m, messages& out) const {
  for (int i = 0; i < m_size; ++i) {
    if (i == m_own || has_failed(i)) continue;
    out.push_back(m);
    out.back().to = i;
  }
}

// ---- every member

agreement::messages agreement::take(int from, const paxos_message& m) {
  messages out;
  switch (m.step) {
    case paxos_step::prepare:
      m_prepares[from] = m.number;  // answered by advance()
      break;
    case paxos_step::accept:
      if (entered()) accept(from, m, out);
      break;
    case paxos_step::decided:
      if (m_decided) break;
      m_decided = m.value;
      if (m_number != 0) decide(out);  // those that have promised wait for this member
      break;
    case paxos_step::request_decision:
      m_undecided_members.insert(from);
      if (entered()) note_failed(m.failed);
      break;
    case paxos_step::refused:
      if (m_number == 0 || m.number != m_number || m_decided) break;
      m_promised = std::max(m_promised, m.other);
      m_number = 0;  // and again, with a greater one
      break;
    case paxos_step::promise:
      if (m_number == 0 || m.number != m_number || m_proposed) break;
      m_promises.insert(from);
      m_all_flags &= m.flags;
      note_failed(m.failed);
      if (m.other > m_newest_number) {
        m_newest_number = m.other;
        m_newest = m.value;
      }
      break;
    case paxos_step::accepted:
      if (m_number != 0 && m.number == m_number && m_proposed) m_acceptances.insert(from);
      break;
  }
  messages more = advance();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

void agreement::answer(int from, std::uint64_t number, messages& out) {
  paxos_message m;
  m.to = from;
  m.number = number;
  if (m_decided) {
    m.step = paxos_step::decided;
    m.value = m_decided;
  } else if (number < m_promised) {
    m.step = paxos_step::refused;
    m.other = m_promised;
  } else {
    m_promised = number;
    m.step = paxos_step::promise;
    m.flags = m_flags;
    m.failed = m_failed;
    m.other = m_accepted_number;
    m.value = m_accepted;
  }
  out.push_back(std::move(m));
}

void agreement::accept(int from, const paxos_message& proposed, messages& out) {
  paxos_message m;
  m.to = from;
  m.number = proposed.number;
  if (proposed.number < m_promised) {
    m.step = paxos_step::refused;
    m.other = m_promised;
  } else {
    m_promised = m_accepted_number = proposed.number;
    m_accepted = proposed.value;
    m.step = paxos_step::accepted;
  }
  out.push_back(std::move(m));
}

// ---- the coordinator

// Also answers requests that came before this member has entered.
agreement::messages agreement::advance() {
  messages out;
  if (m_decided) send_decision(out);
  if (!entered()) return out;
  for (const auto& [from, number] : std::exchange(m_prepares, {})) answer(from, number, out);
  if (m_decided) return out;
  if (coordinator() != m_own) {
    request_decision(out);
    return out;
  }
  if (m_number == 0) begin_proposal(out);
  if (!m_proposed && contains_all_alive(m_promises)) propose(out);
  if (m_proposed && contains_all_alive(m_acceptances)) decide(out);
  return out;
}

// The new coordinator may have decided already, and then starts no round by itself.
void agreement::request_decision(messages& out) {
  if (std::exchange(m_last_coordinator, coordinator()) == coordinator()) return;
  paxos_message m;
  m.to = coordinator();
  m.step = paxos_step::request_decision;
  m.failed = m_failed;
  out.push_back(std::move(m));
}

void agreement::send_decision(messages& out) {
  for (const int member : std::exchange(m_undecided_members, {})) {
    paxos_message m;
    m.to = member;
    m.step = paxos_step::decided;
    m.value = m_decided;
    out.push_back(std::move(m));
  }
}

// Numbers of members differ, and each is greater than what was promised.
void agreement::begin_proposal(messages& out) {
  const auto size = static_cast<std::uint64_t>(m_size);
  m_number = (m_promised / size + 1) * size + static_cast<std::uint64_t>(m_own);
  m_promised = m_number;
  m_proposed = false;
  m_promises = {m_own};
  m_acceptances.clear();
  m_all_flags = m_flags;
  m_newest_number = m_accepted_number;
  m_newest = m_accepted;
  paxos_message m;
  m.step = paxos_step::prepare;
  m.number = m_number;
  send_to_others(m, out);
}

// What a member has accepted may be decided already.
void agreement::propose(messages& out) {
  paxos_message m;
  m.step = paxos_step::accept;
  m.number = m_number;
  m.value = m_newest ? *m_newest : decision{m_all_flags, m_new_id, m_failed};
  m_proposed = true;
  m_accepted_number = m_number;
  m_accepted = m.value;
  m_acceptances = {m_own};
  send_to_others(m, out);
}

void agreement::decide(messages& out) {
  if (!m_decided) m_decided = m_accepted;
  paxos_message m;
  m.step = paxos_step::decided;
  m.number = m_number;
  m.value = m_decided;
  send_to_others(m, out);
}

}  // namespace sucl::tcp
