// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/staging/scratch_pool.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t smallest = 256;

std::size_t rounded(std::size_t bytes) {
  if (bytes <= smallest) return smallest;
  const std::size_t step = std::max<std::size_t>(64, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

void* allocate_ordinary(void*, std::size_t bytes) { return std::aligned_alloc(64, bytes); }
void free_ordinary(void*, void* memory) { std::free(memory); }

}  // namespace

void scratch::swap(scratch& other) noexcept {
  std::swap(m_pool, other.m_pool);
  std::swap(m_memory, other.m_memory);
  std::swap(m_capacity, other.m_capacity);
}

void scratch::release() noexcept {
  if (m_memory) m_pool->give_back({std::exchange(m_memory, nullptr), m_capacity}, true);
}

void scratch::abandon() noexcept {
  if (m_memory) m_pool->give_back({std::exchange(m_memory, nullptr), m_capacity}, false);
}

scratch_pool::scratch_pool() : scratch_pool(nullptr, allocate_ordinary, free_ordinary) {}

scratch_pool::scratch_pool(void* context, allocate_function allocate, free_function free)
    : m_context(context), m_allocate(allocate), m_deallocate(free) {}

scratch_pool::~scratch_pool() {
  trim();
  for (const block& b : m_abandoned) m_deallocate(m_context, b.memory);
}

scratch scratch_pool::acquire(std::size_t bytes) {
  const std::size_t capacity = rounded(bytes);
  const std::lock_guard lock(m_mutex);
  scratch result;
  const auto found = std::find_if(m_unused.rbegin(), m_unused.rend(),
                                  [&](const block& b) { return b.capacity == capacity; });
  if (found != m_unused.rend()) {
    result.m_memory = found->memory;
    *found = m_unused.back();
    m_unused.pop_back();
  } else {
    m_unused.reserve(m_blocks + 1);
    m_abandoned.reserve(m_blocks + 1);
    result.m_memory = static_cast<unsigned char*>(m_allocate(m_context, capacity));
    if (!result.m_memory)
      base::fail(errc::out_of_memory,
                 "no memory for " + std::to_string(capacity) + " bytes of scratch",
                 "Lower the chunk size, or communicate fewer elements at a time.");
    ++m_blocks;
  }
  result.m_pool = this;
  result.m_capacity = capacity;
  return result;
}

void scratch_pool::give_back(block b, bool reuse) noexcept {
  const std::lock_guard lock(m_mutex);
  (reuse ? m_unused : m_abandoned).push_back(b);
}

void scratch_pool::trim() noexcept {
  const std::lock_guard lock(m_mutex);
  for (const block& b : m_unused) m_deallocate(m_context, b.memory);
  m_blocks -= m_unused.size();
  m_unused.clear();
}

std::size_t scratch_pool::blocks() const {
  const std::lock_guard lock(m_mutex);
  return m_blocks;
}

}  // namespace sucl::core
