// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/layers/validate.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace sucl::core {

// What the ranks exchange of one operation. Apart from the validator: an exchange that is
// given up may still write here.
struct validator::exchange {
  digest mine{};
  std::vector<digest> all;
  std::vector<std::uint64_t> my_counts;
  std::vector<std::uint64_t> all_counts;
  sucl_oob_request* request = nullptr;
};

validator::validator(const sucl_oob& oob, int rank, int size, std::uint64_t id)
    : m_oob(oob_split(oob, rank)),
      m_rank(rank),
      m_size(size),
      m_id(id),
      m_exchange(std::make_unique<exchange>()) {
  m_exchange->all.resize(static_cast<std::size_t>(size));
}

validator::~validator() { oob_free(m_oob); }

void validator::begin(stage next, const void* mine, void* all, std::uint64_t bytes) {
  const auto status =
      services().oob_allgather_start(&m_oob, mine, all, bytes, &m_exchange->request);
  m_at = next;
  if (status != SUCL_SUCCESS) settle(take_last(status));
}

void validator::settle(std::optional<error_info> failure) {
  m_failure = std::move(failure);
  m_exchange->request = nullptr;
  m_at = stage::idle;
}

void validator::start(const sucl_operation& operation, const error_info* wrong) {
  m_operation = operation;
  ++m_ordinal;
  m_failure.reset();
  m_exchange->mine = make_digest({&operation, m_rank, m_size}, wrong);
  begin(stage::digests, &m_exchange->mine, m_exchange->all.data(), sizeof(digest));
}

bool validator::test() {
  while (busy()) {
    std::int32_t done = 0;
    if (const auto status = services().oob_test(&m_oob, m_exchange->request, &done))
      settle(take_last(status));
    else if (!done)
      return false;
    else if (m_at == stage::digests)
      compare_digests();
    else
      settle(compare_counts(m_exchange->all, m_exchange->all_counts, m_ordinal, m_id));
  }
  return true;
}

void validator::compare_digests() {
  exchange& e = *m_exchange;
  auto found = compare(e.all, m_ordinal, m_id);
  if (found || !has_counts(m_operation.kind)) return settle(std::move(found));
  e.my_counts = counts_of({&m_operation, m_rank, m_size});
  e.all_counts.resize(e.my_counts.size() * static_cast<std::size_t>(m_size));
  begin(stage::counts, e.my_counts.data(), e.all_counts.data(),
        e.my_counts.size() * sizeof(std::uint64_t));
}

// What an abort leaves behind: an exchange in flight may still write to its memory, and freeing a
// group can wait for a peer that is gone. So both are kept for good.
void validator::abort() {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<exchange>>;
  oob_keep(m_oob);
  m_oob = {};
  if (!busy()) return;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(m_exchange));
  m_at = stage::idle;
}

}  // namespace sucl::core
