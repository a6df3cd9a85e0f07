// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "sycl/buffers/resident.hpp"

#include "sycl/common/adaptivecpp.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sucl::sycl_layer {

// What is used here of AdaptiveCpp's runtime is not promised to programs.
#if defined(SYCL_IMPLEMENTATION_ACPP) && ACPP_VERSION_MAJOR == 24
namespace {

namespace rt = ::hipsycl::rt;

// Stands for an operation in the runtime's account of the users of each buffer: a command that does
// nothing behind it on the same queue, which stays while a thread may wait for it.
class mark final : public rt::operation {
 public:
  explicit mark(const ::sycl::queue& on) : m_queue(on) {}
  void dump(std::ostream& out, int = 0) const override { out << "an operation of SuCL"; }
  rt::result dispatch(rt::operation_dispatcher*, const rt::dag_node_ptr&) override {
    return rt::make_success();
  }

 private:
  ::sycl::queue m_queue;
};

using region = std::shared_ptr<rt::buffer_data_region>;

struct used_region {
  region data;
  const buffer_use* use;
};

bool reads_only(const rt::data_user& user) { return user.mode == ::sycl::access_mode::read; }

// Whether what used a buffer before is done or stands before anything that comes on a lane now.
bool is_before(const rt::data_user& user, const void* lane) {
  const auto node = user.user.lock();
  return !node || node->is_known_complete() ||
         (node->is_submitted() &&
          (node->get_assigned_execution_lane() == lane || node->is_complete()));
}

// The last mark. Marks of one queue stand for each other: the runtime takes all that one depends on
// for done when that one is, and need not query the device for each.
struct chain {
  std::mutex mutex;
  const void* lane = nullptr;
  std::weak_ptr<rt::dag_node> last;
  unsigned length = 0;
  unsigned since_check = 0;  ///< marks, of all queues
};
// So long that asking costs little, and so short that the runtime may descend it.
constexpr unsigned longest_chain = 64;
chain& marks() {
  static auto& all = *new chain;  // used by threads that may outlive this library's end
  return all;
}

class found final : public resident_buffers {
 public:
  found(const ::sycl::queue& queue, rt::device_id where, std::vector<used_region> regions)
      : m_queue(queue), m_where(where), m_regions(std::move(regions)) {}

  void set(sucl_operation& record, std::vector<sucl_operation>& parts) const override {
    for (const used_region& p : m_regions)
      set_addresses(record, parts, p.use->operand, p.data->get_memory(m_where));
  }

  void note_use() override {
    rt::runtime_keep_alive_token runtime;
    auto* executor = m_queue.AdaptiveCpp_inorder_executor();
    rt::execution_hints hints;
    hints.set_hint(rt::hints::bind_to_device{m_where});
    hints.set_hint(rt::hints::instant_execution{});
    if (m_queue.has_property<::sycl::property::queue::AdaptiveCpp_coarse_grained_events>())
      hints.set_hint(rt::hints::coarse_grained_synchronization{});
    const void* lane = executor->get_queue();
    auto& before = marks();
    std::unique_lock lock(before.mutex);
    rt::node_list_t older;
    if (auto last = before.last.lock();
        last && before.lane == lane && before.length < longest_chain)
      older.push_back(std::move(last));
    const auto node = std::make_shared<rt::dag_node>(hints, older, std::make_unique<mark>(m_queue),
                                                     runtime.get());
    node->assign_to_device(m_where);
    node->assign_to_executor(executor);
    executor->submit_directly(node, node->get_operation(), {});  // the lane keeps their order
    node->get_operation()->get_instrumentations().mark_set_complete();
    before.lane = lane;
    before.last = node;
    before.length = older.empty() ? 1 : before.length + 1;
    // The runtime releases events when their state is queried.
    const bool check = ++before.since_check == longest_chain;
    if (check) before.since_check = 0;
    lock.unlock();
    for (const used_region& p : m_regions) note(p, node, lane);
    runtime.get()->dag().register_submitted_ops(node);
    if (check) runtime.get()->dag().flush_sync();
  }

 private:
  void note(const used_region& p, const rt::dag_node_ptr& node, const void* lane) const {
    const bool writes = p.use->writes;
    const auto all = p.data->get_num_elements();
    // A wait for this one includes a wait for what it replaces.
    const auto replaces = [&](const rt::data_user& user) {
      return writes || user.user.expired() || (reads_only(user) && is_before(user, lane));
    };
    p.data->get_users().add_user(
        node, writes ? ::sycl::access_mode::read_write : ::sycl::access_mode::read,
        ::sycl::target::device, rt::id<3>{}, all, replaces);
    if (writes) p.data->mark_range_current(m_where, rt::id<3>{}, all);
  }

  ::sycl::queue m_queue;
  rt::device_id m_where;
  std::vector<used_region> m_regions;
};

bool has_gaps(const core::layouts& layout) {
  return layout.send || layout.recv ||
         std::any_of(layout.parts.begin(), layout.parts.end(), has_gaps);
}

bool is_resident(const used_region& p, const rt::device_id& where, const void* lane) {
  if (!p.data->has_allocation(where)) return false;
  bool before = true;
  p.data->get_users().for_each_user([&](const rt::data_user& user) {
    const bool conflicts = p.use->writes || !reads_only(user);
    before = before && (!conflicts || is_before(user, lane));
  });
  if (!before) return false;
  if (p.use->discards) return true;
  std::vector<rt::range_store::rect> outdated;
  p.data->get_outdated_regions(where, rt::id<3>{}, p.data->get_num_elements(), outdated);
  return outdated.empty();
}

}  // namespace

std::unique_ptr<resident_buffers> resident_buffers::find(const ::sycl::queue& queue,
                                                         const std::vector<buffer_use>& buffers,
                                                         const core::layouts& layout) {
  if (buffers.empty() || !queue.is_in_order() || !program_submits_instantly() || has_gaps(layout))
    return nullptr;
  const auto* executor = queue.AdaptiveCpp_inorder_executor();
  if (!executor) return nullptr;
  const auto where = queue.get_device().AdaptiveCpp_device_id();
  std::vector<used_region> regions;
  for (const buffer_use& use : buffers) {
    regions.push_back({::sycl::detail::extract_buffer_data_region(use.buffer), &use});
    if (!is_resident(regions.back(), where, executor->get_queue())) return nullptr;
  }
  return std::make_unique<found>(queue, where, std::move(regions));
}

#else

std::unique_ptr<resident_buffers> resident_buffers::find(const ::sycl::queue&,
                                                         const std::vector<buffer_use>&,
                                                         const core::layouts&) {
  return nullptr;
}

#endif

}  // namespace sucl::sycl_layer
