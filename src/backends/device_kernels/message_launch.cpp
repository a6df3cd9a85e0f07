// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/message_launch.hpp"

#include "base/error.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

using kernels::message_fault;
using kernels::message_part;

constexpr std::size_t min_parts = 64;
constexpr std::size_t lists_at_once = 64;
constexpr std::size_t parts_in_args = 2;

std::size_t queue_of(const message_part& p) {
  return 2 * static_cast<std::size_t>(p.peer) + static_cast<std::size_t>(p.sends);
}

template <class Word>
Word load_word(const Word& word) {
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
}

}  // namespace

message_launcher::message_launcher(kernel_device& device, const kernels::message_layout& layout,
                                   kernels::kernel_control* control)
    : m_device(device),
      m_layout(layout),
      m_control(control),
      m_counts(device.allocate(sizeof(kernels::message_counts))) {
  add_lists(lists_at_once, min_parts);
}

void message_launcher::collect(const sucl_operation& o, const void* given) {
  const auto add = [&](const void* memory, std::uint64_t count, int peer, bool sends) {
    m_parts.push_back({static_cast<std::byte*>(const_cast<void*>(memory)), count * o.element_size,
                       peer, kernels::message_label::of(o.tag, o.type, o.element_size), -1, sends});
  };
  if (o.kind != SUCL_KIND_RECV) add(given ? given : o.send, o.count, o.root, true);
  if (o.kind == SUCL_KIND_RECV) add(o.recv, o.count, o.source, false);
  if (o.kind == SUCL_KIND_SENDRECV) add(o.recv, o.recv_count, o.source, false);
}

// Returns the number of queues.
int message_launcher::arrange() {
  std::array<std::int32_t, kernels::max_queues> last{};
  std::array<bool, kernels::max_queues> opened{}, begun{};
  m_arranged.clear();
  const auto append = [&](const message_part& p) {
    last[queue_of(p)] = static_cast<std::int32_t>(m_arranged.size());
    m_arranged.push_back(p);
  };
  for (const message_part& p : m_parts)
    if (!std::exchange(opened[queue_of(p)], true)) append(p);
  const auto queues = static_cast<int>(m_arranged.size());
  for (const message_part& p : m_parts) {
    if (!std::exchange(begun[queue_of(p)], true)) continue;
    m_arranged[static_cast<std::size_t>(last[queue_of(p)])].next =
        static_cast<std::int32_t>(m_arranged.size());
    append(p);
  }
  return queues;
}

bool message_launcher::in_use(const part_list& s) const {
  return !std::all_of(m_control->read, m_control->read + s.groups,
                      [&](const std::uint64_t& word) { return load_word(word) >= s.number; });
}

// The device's library may wait for all that runs before it gives such memory: many at once.
void message_launcher::add_lists(std::size_t count, std::size_t room) {
  const auto block = m_device.allocate_host(count * room * sizeof(message_part));
  auto* parts = static_cast<message_part*>(block.get());
  for (std::size_t i = 0; i < count; ++i)
    m_lists.push_back({{block, parts + i * room}, room, 0, 0});
}

// The one that has been used longest ago is tried first.
message_launcher::part_list& message_launcher::take_list(std::size_t parts) {
  for (std::size_t i = 0; i < m_lists.size(); ++i) {
    part_list& s = m_lists[m_next];
    m_next = (m_next + 1) % m_lists.size();
    if (s.room >= parts && !in_use(s)) return s;
  }
  std::size_t room = min_parts;
  while (room < parts) room *= 2;
  m_next = m_lists.size();
  add_lists(std::max<std::size_t>(1, lists_at_once * min_parts / room), room);
  return m_lists[m_next];
}

message_launch message_launcher::make(const sucl_operation& o, const void* given) {
  m_parts.clear();
  if (o.kind == SUCL_KIND_GROUP)
    for (std::uint64_t i = 0; i < o.part_count; ++i) collect(o.parts[i], nullptr);
  else
    collect(o, given);
  message_launch k;
  auto& j = k.what;
  j.control = m_control;
  j.abort = &m_control->abort;
  j.counts = static_cast<kernels::message_counts*>(m_counts.get());
  j.layout = m_layout;
  j.queues = arrange();
  std::uint64_t most = 1;
  for (const message_part& p : m_arranged)
    most = std::max(most, kernels::cut_of(m_layout, p.bytes).pieces);
  k.groups = static_cast<int>(std::min(most, static_cast<std::uint64_t>(m_layout.channels)));
  if (!m_arranged.empty()) j.first = m_arranged.front();
  if (m_arranged.size() > 1) j.second = m_arranged[1];
  if (m_arranged.size() > parts_in_args) {
    part_list& s = take_list(m_arranged.size());
    s.number = j.number = ++m_number;
    s.groups = k.groups;
    std::copy(m_arranged.begin(), m_arranged.end(), s.parts.get());
    j.list = s.parts.get();
  }
  return k;
}

void check_messages(const kernels::kernel_control& control, int ranks) {
  if (load_word(control.abort) == 0) return;
  const auto text = [](std::uint64_t bytes, kernels::message_label label) {
    const auto t = static_cast<type>(label.type());
    const std::uint64_t size = t == type::bytes ? label.size() : size_of(t);
    const bool whole = size > 0 && bytes % size == 0;
    return (whole ? elements_text(bytes / size, label.type(), size)
                  : elements_text(bytes, SUCL_TYPE_BYTES, 1)) +
           " with tag " + std::to_string(label.tag());
  };
  for (int r = 0; r < ranks; ++r) {
    const auto& f = control.failures[r];
    const std::string peer = "rank " + std::to_string(r);
    std::string what;
    switch (load_word(f.fault)) {
      case message_fault::none: continue;
      case message_fault::mismatch:
        what = peer + " has sent a message of " + text(f.bytes, f.label) +
               " where this rank waits for one of " + text(f.wanted_bytes, f.wanted_label);
        break;
      case message_fault::refused:
        what = peer +
               " waits for another message than this rank has sent: tag, length or element type "
               "differ";
        break;
    }
    base::fail(errc::mismatch, what,
               "Kernels match the messages of two ranks in the order of the calls: receive them in "
               "the order in which they are sent, or have messages = false in [backends.kernels]");
  }
}

}  // namespace sucl::core
