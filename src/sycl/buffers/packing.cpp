// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/buffers/packing.hpp"

#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "kernels/block/block.hpp"
#include "kernels/collective/memory.hpp"
#include "kernels/work_item.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/state.hpp"
#include "sycl/rtc/kernel_launcher.hpp"

#include <algorithm>

namespace sucl::sycl_layer {

packed_memory::~packed_memory() {
  for (std::byte* block : m_blocks) ::sycl::free(block, m_queue);
}

std::byte* packed_memory::take(std::size_t bytes) {
  if (bytes <= m_bytes) return m_blocks.back();
  const std::size_t more = std::max(bytes, 2 * m_bytes);
  auto* block = ::sycl::malloc_device<std::byte>(more, m_queue);
  if (!block)
    base::fail(errc::out_of_memory,
               "the device has no memory for " + std::to_string(more) + " packed bytes",
               "Free memory of the device first, or make the block smaller");
  m_blocks.push_back(block);
  m_bytes = more;
  return block;
}

#ifdef SYCL_IMPLEMENTATION_ACPP
namespace {

using event = ::sycl::event;

/// One side of an operation.
struct side {
  const buffer_use* use = nullptr;
  const base::strided* block = nullptr;
  std::uint64_t elements = 0;
  std::byte* dense = nullptr;

  explicit operator bool() const { return block != nullptr; }
  std::size_t bytes() const {
    constexpr std::size_t unit = 256;
    return block ? (elements * block->element_size + unit - 1) / unit * unit : 0;
  }
};

side side_of(const std::vector<buffer_use>& buffers, const std::optional<base::strided>& block,
             bool is_send, std::uint64_t elements) {
  if (!block) return {};
  for (const buffer_use& use : buffers)
    if (use.operand.is_send == is_send) return {&use, &*block, elements};
  return {};
}

// Calls `use` with a unit that fits the block.
template <class Use>
event with_unit(const base::strided& block, Use&& use) {
  switch (kernels::unit_of(block, sizeof(kernels::quad))) {
    case 16: return use(kernels::quad{});
    case 8: return use(std::uint64_t{});
    case 4: return use(std::uint32_t{});
    case 2: return use(std::uint16_t{});
    default: return use(std::uint8_t{});
  }
}

event copy_block(::sycl::queue& queue, const side& s, bool packs, const std::vector<event>& deps) {
  return with_unit(*s.block, [&](auto unit) {
    using word = decltype(unit);
    constexpr std::size_t items = 256, max_groups = 1024;
    const auto layout = kernels::layout_of(*s.block, s.elements, sizeof(word));
    const std::size_t groups = std::clamp<std::size_t>(layout.units / items, 1, max_groups);
    buffer_use use = *s.use;
    use.writes = !packs;
    return queue.submit([&](::sycl::handler& h) {
      h.depends_on(deps);
      h.parallel_for(::sycl::nd_range<1>(groups * items, items),
                     [=, held = held_buffers({use}, h),
                      dense = reinterpret_cast<word*>(s.dense)](::sycl::nd_item<1> item) {
                       const kernels::work_item at(item);
                       if (packs) {
                         const std::byte* array = held.reads[0]->get_pointer();
                         kernels::pack(at, layout, dense, reinterpret_cast<const word*>(array));
                       } else {
                         std::byte* array = held.writes[0]->get_pointer();
                         const word* from = dense;
                         kernels::unpack(at, layout, reinterpret_cast<word*>(array), from);
                       }
                     });
    });
  });
}

// Whether something of the receive memory is read or stays as it is.
bool keeps_some(const sucl_operation& o) {
  return (o.flags & SUCL_FLAG_IN_PLACE) || o.recv_displs || o.kind == SUCL_KIND_EXSCAN;
}

}  // namespace

std::optional<event> start_packed(communicator_state& state, ::sycl::queue& queue,
                                  const sucl_operation& record, const core::layouts& layout,
                                  const std::vector<buffer_use>& buffers,
                                  const std::vector<event>& deps) {
  if (!layout.send && !layout.recv) return std::nullopt;
  auto* device = state.on_device();
  if (!device || !device->packed() || record.kind == SUCL_KIND_GROUP) return std::nullopt;
  const auto needed = core::extents_of(record, state.core().rank(), state.core().size());
  side send = side_of(buffers, layout.send, true, needed.send);
  side recv = side_of(buffers, layout.recv, false, needed.recv);
  sucl_operation dense = record;
  if (send) dense.send_memory = SUCL_MEMORY_DEVICE;
  if (recv) dense.recv_memory = SUCL_MEMORY_DEVICE;
  if (!state.core().streams().would_order(dense) || !state.core().streams().launches(dense))
    return std::nullopt;

  const std::lock_guard lock(device->packed()->mutex);
  send.dense = device->packed()->take(send.bytes() + recv.bytes());
  recv.dense = send.dense + send.bytes();
  std::vector<event> before = deps;
  // The memory is in use until the operation before is unpacked.
  if (auto last = device->streams()->before(queue)) before.push_back(*last);
  std::vector<event> ready = deps;
  if (send) ready.push_back(copy_block(queue, send, true, before));
  if (recv && keeps_some(record)) ready.push_back(copy_block(queue, recv, true, before));
  std::vector<buffer_use> others;
  for (const buffer_use& use : buffers)
    if (&use != send.use && &use != recv.use) others.push_back(use);
  if (send) dense.send = send.dense;
  if (recv) dense.recv = recv.dense;
  event done = start(state, queue, dense, {}, others, ready);
  if (recv && recv.use->writes) {
    done = copy_block(queue, recv, false, {done});
    device->streams()->add(done, queue, true);
  }
  flush();
  return done;
}

#else

std::optional<::sycl::event> start_packed(communicator_state&, ::sycl::queue&,
                                          const sucl_operation&, const core::layouts&,
                                          const std::vector<buffer_use>&,
                                          const std::vector<::sycl::event>&) {
  return std::nullopt;  // without kernels the host packs
}

#endif

}  // namespace sucl::sycl_layer
