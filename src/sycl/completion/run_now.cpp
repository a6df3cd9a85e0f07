// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations on buffers that run in the calling thread.
#include "sycl/buffers/held_buffers.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/common/state.hpp"

namespace sucl::sycl_layer {
namespace {

// A buffer in the host's memory.
#ifdef SYCL_IMPLEMENTATION_ACPP
template <::sycl::access_mode Mode>
using host_view = ::sycl::host_accessor<std::byte, 3, Mode>;
#else
template <::sycl::access_mode Mode>
using host_view = std::variant<::sycl::host_accessor<std::byte, 1, Mode>,
                               ::sycl::host_accessor<std::byte, 3, Mode>>;
#endif

// Opens one more; returns its address.
template <class View, class... Properties>
void* open(std::vector<View>& views, const buffer_use& use, const Properties&... properties) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  whole all(use.buffer);
  views.emplace_back(all.bytes, all.range, properties...);
  return const_cast<std::byte*>(views.back().get_pointer());
#else
  if (has_rows(use)) {
    auto rows = in_rows(use);
    views.emplace_back(std::in_place_index<1>, rows, properties...);
  } else {
    auto buffer = use.buffer;
    views.emplace_back(std::in_place_index<0>, buffer, properties...);
  }
  return std::visit([](const auto& access) { return first_byte(access); }, views.back());
#endif
}

// Views of buffers in the host's memory, held while an operation runs.
class host_views {
 public:
  // In DPC++ accesses that only read pile up, and the next one that writes pays for them all. So
  // memory that other calls write is opened for writing where that moves nothing; memory that is
  // only sent is read as its owner reads it.
  explicit host_views(bool may_write) : m_may_write(may_write) {}

  void* open_for(const buffer_use& use) {
    if (!use.writes && (use.operand.is_send || !m_may_write)) return open(m_reads, use);
    if (!use.discards) return open(m_writes, use);
    return open(m_writes, use, ::sycl::property_list{::sycl::property::no_init{}});
  }

 private:
  bool m_may_write;
  std::vector<host_view<::sycl::access_mode::read>> m_reads;
  std::vector<host_view<::sycl::access_mode::read_write>> m_writes;
};

// For each use of a buffer, the first use of the same one.
std::vector<std::size_t> first_uses(const std::vector<buffer_use>& buffers) {
  std::vector<std::size_t> first(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    first[i] = i;
    for (std::size_t j = 0; j < i && first[i] == i; ++j)
      if (buffers[j].buffer == buffers[i].buffer) first[i] = first[j];
  }
  return first;
}

}  // namespace

void run_now(communicator_state& state, sucl_operation& record, std::vector<sucl_operation>& parts,
             const core::layouts& layout, const std::vector<buffer_use>& buffers) {
  host_views views(state.on_device() && state.on_device()->is_host());
  // A view waits for the end of the one before it of the same buffer: two of them for ever.
  const auto first = first_uses(buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (first[i] == i) continue;
    if (!buffers[i].buffer.is_sub_buffer() && !buffers[first[i]].buffer.is_sub_buffer()) continue;
    // SYCL gives nothing that has both, but to a command.
    auto queue = queue_of(state, nullptr);
    await_event(start(state, queue, record, layout, buffers, {}, true));
    return state.core().check();
  }
  std::vector<void*> addresses(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (first[i] != i) continue;
    buffer_use use = buffers[i];
    for (std::size_t j = i + 1; j < buffers.size(); ++j) {
      if (first[j] != i) continue;
      use.writes = use.writes || buffers[j].writes;
      use.discards = false;
    }
    addresses[i] = views.open_for(use);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    set_addresses(record, parts, buffers[i].operand, addresses[first[i]]);
  state.core().run(record, layout);
}

}  // namespace sucl::sycl_layer
