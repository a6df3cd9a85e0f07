// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/online/shared_decision.hpp"

#include "base/direct_cache.hpp"
#include "tune/online/trials.hpp"

namespace sucl::tune {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free);

}  // namespace

std::optional<bool> shared_decision::join(std::uint64_t n) {
  std::uint64_t seen = m_word.load();
  for (;;) {
    const std::uint64_t calls = seen >> 2, state = seen & 3;
    if (state != undecided) {
      if (n < calls) return {};
      return state == won;
    }
    if (calls > n || m_word.compare_exchange_weak(seen, word(n + 1, undecided))) return {};
  }
}

void shared_decision::submit(const std::array<double, 2>& seconds, int ranks, double part) {
  for (std::size_t i = 0; i < 2; ++i) {
    double known = m_slowest[i].load();
    while (known < seconds[i] && !m_slowest[i].compare_exchange_weak(known, seconds[i])) {
    }
  }
  if (m_submitted.fetch_add(1) + 1 < ranks) return;
  const std::uint64_t state = wins(slowest()[0], slowest()[1], part) ? won : lost;
  std::uint64_t seen = m_word.load();
  while (!m_word.compare_exchange_weak(seen, seen | state)) {
  }
}

std::array<double, 2> shared_decision::slowest() const {
  return {m_slowest[0].load(), m_slowest[1].load()};
}

void shared_decision::clear() {
  m_key = 0;
  m_word = 0;
  m_slowest[0] = m_slowest[1] = 0;
  m_submitted = 0;
}

bool shared_decision::claim(std::uint64_t key) {
  std::uint64_t owner = m_key.load();
  if (owner == 0 && m_key.compare_exchange_strong(owner, key)) return true;
  return owner == key;
}

shared_decision* shared_decisions::find(std::uint64_t key) const {
  const std::size_t start = base::spread<32>(key);
  for (std::size_t i = 0; m_decisions && i < slots; ++i) {
    shared_decision& b = m_decisions[(start + i) % slots];
    if (b.claim(key)) return &b;
  }
  return nullptr;
}

}  // namespace sucl::tune
