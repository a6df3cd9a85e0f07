// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/backend.hpp"

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "base/setting_values.hpp"
#include "base/text.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/selection.hpp"
#include "core/selection/settings.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <set>

namespace sucl::core {
namespace {

constexpr std::uint64_t page = 4096;

kernel_comm& of(sucl_backend_comm* comm) { return *reinterpret_cast<kernel_comm*>(comm); }

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    void* token = of(comm).start(*o, o->launch_target);
    *request = o->launch_target ? nullptr : static_cast<sucl_request*>(token);
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] { *done = of(comm).test(request); });
}

sucl_status query(sucl_state* state, const sucl_query* q, sucl_capability* answer) {
  const auto* comm = reinterpret_cast<kernel_comm*>(state);  // null: of any GPU
  const auto kind = static_cast<sucl::kind>(q->kind);
  const bool reached = (comm && comm->device().on_host) || q->memory != SUCL_MEMORY_SYSTEM;
  const bool supported = q->kind == compiled_plan_kind ? comm && comm->runs_plans()
                         : is_point_to_point(q->kind)  ? comm && comm->supports_messages()
                                                       : kernels_support(q->kind);
  answer->supported =
      supported && reached &&
      (!reduces(kind) || defined(static_cast<op>(q->op), static_cast<type>(q->type)));
  answer->flags = SUCL_CAP_STREAM_ORDERED;
  answer->max_count = 0;
  return SUCL_SUCCESS;
}

kernels::buffer_layout layout_of(const kernel_settings& s, std::uint64_t groups, int ranks,
                                 bool ll128) {
  constexpr std::uint64_t line = 128;
  kernels::buffer_layout layout;
  // Two slices of what is shared, or one of what has a root.
  const std::uint64_t slices = ranks > 2
                                   ? std::max(2 * kernels::ll_slice(s.ll_two_shot_max_bytes, ranks),
                                              kernels::ll_slice(s.ll_two_shot_max_bytes, ranks - 1))
                                   : 0;
  constexpr std::uint64_t row = kernels::ll_row;
  layout.ll = (std::max(s.ll_max_bytes, slices) + row - 1) / row * row;
  layout.ll128 = ll128 ? kernels::ll128_bytes(s.ll128_max_bytes) : 0;
  layout.stage = (s.staging + page - 1) / page * page;
  if (!s.messages) return layout;
  auto& m = layout.messages;
  m.at = layout.of_collectives();
  m.channels = static_cast<int>(std::min<std::uint64_t>(groups, kernels::max_channels));
  m.ll_bytes = s.message_ll_bytes;
  m.slot = s.message_staging / (static_cast<unsigned>(m.channels) * m.slots) / line * line;
  return layout;
}

// Collective: devices may differ, and all ranks cut alike. `large`: whether the device's large
// memory is free, and then whether all ranks' is.
launch_setting agree(const kernel_settings& wanted, kernel_device& device, sucl_oob oob, int rank,
                     int size, bool& large) {
  const auto share = [&](const auto& mine) {
    std::vector<std::decay_t<decltype(mine)>> all(static_cast<std::size_t>(size));
    if (const auto status = services().oob_allgather(&oob, &mine, all.data(), sizeof mine))
      throw_last(status, kernel_backend_name, "set-up", rank);
    return all;
  };
  struct device_summary {
    std::int32_t groups;
    std::int32_t large;
    kernel_device::identity_type identity;
  };
  const auto summaries = share(device_summary{
      std::min(static_cast<std::int32_t>(wanted.groups), device.groups), large, device.identity()});
  for (const device_summary& c : summaries) large = large && c.large;
  const kernel_settings s = large ? wanted : wanted.of_further_communicators(size);
  bool whole = s.ll128_max_bytes > 0;
  for (int r = 0; r < size && whole; ++r)
    whole = r == rank ||
            device.keeps_ll128_stores_whole(summaries[static_cast<std::size_t>(r)].identity);
  const auto all_whole = share(static_cast<char>(whole));
  const bool ll128 = std::count(all_whole.begin(), all_whole.end(), 0) == 0;
  launch_setting setting;
  setting.rank = rank;
  setting.ranks = size;
  setting.groups = kernels::max_groups;
  for (const device_summary& c : summaries) setting.groups = std::min(setting.groups, c.groups);
  setting.layout = layout_of(s, static_cast<std::uint64_t>(setting.groups), size, ll128);
  setting.ll128_min_bytes = s.ll128_min_bytes;
  setting.ll128_max_bytes = ll128 ? s.ll128_max_bytes : 0;
  setting.ll_max_bytes = s.ll_max_bytes;
  setting.ll_two_shot_max_bytes = s.ll_two_shot_max_bytes;
  setting.items = device.items;
  setting.two_shot_min_bytes = s.two_shot_min_bytes;
  // LL128 is as fast, and works on any memory without asking where it is.
  constexpr std::uint64_t mebi = 1 << 20;
  const auto from = [&](std::uint64_t in_ll128) {
    const std::uint64_t usual = ll128 ? std::max(mebi, in_ll128 + 1) : mebi;
    return std::max(s.direct_min_bytes ? s.direct_min_bytes : usual, s.ll_max_bytes + 1);
  };
  setting.direct_min_bytes = from(s.ll128_exchange_max_bytes);
  setting.direct_min_bytes_of_root =
      from(size > 2 ? s.ll128_exchange_max_bytes : s.ll128_max_bytes);
  setting.ll128_exchange_max_bytes = std::min(setting.ll128_max_bytes, s.ll128_exchange_max_bytes);
  setting.ll128_two_shot_max_bytes = s.ll128_two_shot_max_bytes;
  return setting;
}

}  // namespace

kernel_settings::kernel_settings(int ranks) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto n = static_cast<std::uint64_t>(ranks), peers = std::max<std::uint64_t>(n, 2) - 1;
  ll_max_bytes = mebi / n;
  // Among few ranks a message of 16 MiB goes in one piece for each group.
  staging = ranks <= 4 ? 64 * mebi : std::clamp(128 * mebi / n, 8 * mebi, 64 * mebi);
  ll128_exchange_max_bytes = 8 * mebi / peers;
  ll128_max_bytes = ranks > 2 ? 64 * mebi / n : 32 * mebi;
  ll128_two_shot_max_bytes = 16 * mebi;
  ll_two_shot_max_bytes = mebi / 2;
  two_shot_min_bytes = 16 * mebi / (peers * peers);
  message_staging = std::clamp(64 * mebi / n, 4 * mebi, 16 * mebi);
}

kernel_settings kernel_settings::of_further_communicators(int ranks) const {
  if (sized) return *this;
  constexpr std::uint64_t mebi = 1 << 20;
  kernel_settings less = *this;
  const auto peers = static_cast<std::uint64_t>(std::max(ranks, 2) - 1);
  less.staging = std::clamp(8 * mebi / peers, std::min(mebi, staging), staging);
  less.ll128_max_bytes = std::min(ll128_max_bytes, ll128_exchange_max_bytes);
  return less;
}

namespace {

constexpr std::uint64_t min_staging = 4096;  // for each group

// A setting that is a size.
struct size_row {
  const char* key;
  std::uint64_t kernel_settings::* field;
  base::bounds<std::uint64_t> wanted;
};

// Of memory, and of what lies in it.
constexpr std::uint64_t max_memory = std::uint64_t{1} << 30;
// A size from which something is done may be beyond every message.
constexpr base::bounds<std::uint64_t> any_size{0, std::uint64_t{1} << 60};

constexpr size_row sizes[] = {
    {"ll_max_bytes", &kernel_settings::ll_max_bytes, {0, max_memory}},
    {"ll_two_shot_max_bytes", &kernel_settings::ll_two_shot_max_bytes, {0, max_memory}},
    {"ll128_min_bytes", &kernel_settings::ll128_min_bytes, any_size},
    {"ll128_max_bytes", &kernel_settings::ll128_max_bytes, {0, max_memory}},
    {"ll128_exchange_max_bytes", &kernel_settings::ll128_exchange_max_bytes, any_size},
    {"ll128_two_shot_max_bytes", &kernel_settings::ll128_two_shot_max_bytes, any_size},
    {"staging", &kernel_settings::staging, {min_staging, max_memory}},
    {"two_shot_min_bytes", &kernel_settings::two_shot_min_bytes, any_size},
    {"direct_min_bytes", &kernel_settings::direct_min_bytes, any_size},
    {"message_staging",
     &kernel_settings::message_staging,
     {min_staging * kernels::max_channels * kernels::message_layout::slots, max_memory}}};

}  // namespace

kernel_settings kernel_settings::read(const std::vector<std::pair<std::string, std::string>>& table,
                                      int ranks) {
  kernel_settings s(ranks);
  for (const auto& [key, value] : table) {
    const backend_setting one(kernel_backend_name, key, value);
    const auto size = std::find_if(std::begin(sizes), std::end(sizes),
                                   [&k = key](const size_row& r) { return k == r.key; });
    if (key == "messages")
      s.messages = one.boolean();
    else if (key == "plans")
      s.plans = one.boolean();
    else if (key == "groups")
      s.groups = one.number({1, kernels::max_groups});
    else if (size != std::end(sizes))
      s.*size->field = one.size(size->wanted);
    else
      one.refuse_key(
          "Its keys are ll_max_bytes, ll_two_shot_max_bytes, ll128_min_bytes, ll128_max_bytes, "
          "ll128_exchange_max_bytes, ll128_two_shot_max_bytes, staging, two_shot_min_bytes, "
          "direct_min_bytes and message_staging, which are sizes, groups, a number, and messages "
          "and plans, which are true or false");
    s.sized = s.sized || key == "staging" || key == "ll128_max_bytes";
  }
  if (s.staging < min_staging * s.groups)
    base::refuse(std::string("backend ") + kernel_backend_name,
                 "staging = " + base::print_bytes(s.staging) + " is too small for " +
                     std::to_string(s.groups) + " groups",
                 "Write at least " + base::print_bytes(min_staging * s.groups) +
                     ", 4Ki for each group, or fewer groups.");
  return s;
}

namespace {

bool is_true(const std::vector<std::pair<std::string, std::string>>& table, const char* key) {
  const auto it = std::find_if(table.begin(), table.end(),
                               [&](const auto& entry) { return entry.first == key; });
  return it != table.end() && base::boolean_of(it->second).value_or(false);
}

}  // namespace

bool kernel_settings::wants_messages(
    const std::vector<std::pair<std::string, std::string>>& table) {
  return is_true(table, "messages");
}

bool kernel_settings::wants_plans(const std::vector<std::pair<std::string, std::string>>& table) {
  return is_true(table, "plans");
}

namespace {

std::mutex devices_mutex;
std::set<kernel_device::identity_type> devices_with_large_memory_in_use;

}  // namespace

// The limit does not hold for a device that cannot be distinguished from others.
kernel_comm::large_memory::large_memory(const kernel_device::identity_type& identity)
    : m_identity(identity) {
  const std::lock_guard lock(devices_mutex);
  m_free = identity == kernel_device::identity_type{} ||
           devices_with_large_memory_in_use.insert(identity).second;
  m_mine = m_free;
}

void kernel_comm::large_memory::keep(bool yes) {
  if (yes || !m_mine) return;
  const std::lock_guard lock(devices_mutex);
  devices_with_large_memory_in_use.erase(m_identity);
  m_mine = false;
}

kernel_comm::large_memory::~large_memory() { keep(false); }

std::int32_t kernel_comm::make_control() try {
  m_control = m_device.allocate_host(sizeof(kernels::kernel_control));
  return SUCL_SUCCESS;
} catch (const error& e) {
  return static_cast<std::int32_t>(e.code());
}

launch_setting kernel_comm::agreed(const kernel_settings& settings, const sucl_oob& oob, int rank,
                                   int size) {
  bool large = m_large.is_free();
  auto setting = agree(settings, m_device, oob, rank, size, large);
  m_large.keep(large);
  return setting;
}

kernel_comm::kernel_comm(const backend_comm& memory_provider, const sucl_oob& oob,
                         kernel_device& device, int rank, int size, const kernel_settings& settings)
    : m_device(device),
      m_large(device.identity()),
      m_setting(agreed(settings, oob, rank, size)),
      m_memory(memory_provider, oob, device, rank, size, m_setting.layout, make_control()),
      m_board(m_memory.boards(), rank),
      m_plans(device, m_memory),
      m_runs_plans(settings.plans.value_or(device.on_host)),
      m_epoch(settings.operations) {
  // What cannot be mapped goes through the host, in parts.
  if (!m_memory.all_on_devices()) m_setting.ll128_max_bytes = 0;
  if (settings.messages) m_messages.emplace(device, m_setting.layout.messages, &control());
}

kernel_comm::~kernel_comm() {
  if (std::atomic_ref(control().abort).load(std::memory_order_relaxed) != 0) m_memory.abandon();
  m_device.drain();
}

void kernel_comm::check() {
  check_messages(control(), m_setting.ranks);
  if (!m_board.alarmed()) return;
  abort();
  throw error(m_board.diagnosis());
}

void kernel_comm::compare_calls() {
  m_calls_since_compare = 0;
  if (m_board.compare()) abort();
}

void kernel_comm::abort() { std::atomic_ref(control().abort).store(1, std::memory_order_release); }

// The flags of LL lines have 32 bits, and 0 is what fresh memory has. Even and odd numbers take
// turns all the same.
void kernel_comm::next_epoch() {
  m_previous = m_epoch++;
  if (static_cast<std::uint32_t>(m_epoch) == 0) m_epoch += 2;
}

void* kernel_comm::bounce_buffer(std::uint64_t bytes) {
  if (bytes > m_bounce_bytes) {
    // The old ones may still be in use by kernels that were launched before.
    m_bounce_bytes = std::max(bytes, 2 * m_bounce_bytes);
    m_bounce_buffers.push_back(m_device.allocate(m_bounce_bytes));
  }
  return m_bounce_buffers.back().get();
}

bool kernel_comm::begin_capture() {
  if (m_captured) return false;
  if (!m_base) m_base = m_device.allocate(sizeof(kernels::replay_base));
  m_captured.emplace();
  return true;
}

captured_kernels kernel_comm::end_capture() {
  const captured_kernels captured = *m_captured;
  m_captured.reset();
  return captured;
}

// Numbers that next_epoch() leaves out would be in the middle of a graph.
bool kernel_comm::may_replay(const captured_kernels& captured) const {
  const std::uint64_t after = m_epoch + captured.count + 1;
  return m_epoch >> 32 == after >> 32;
}

graph_base kernel_comm::replay(const captured_operations& captured) {
  check();
  for (const auto& o : captured.all) m_board.note(signature_of(o.record, m_setting.ranks));
  compare_calls();
  const graph_base base{m_base.get(), {m_epoch, m_previous_was_barrier ? 0 : m_epoch}};
  m_epoch += captured.of_kernels.count;
  m_previous_was_barrier = captured.of_kernels.ends_as_barrier;
  return base;
}

void kernel_comm::enter_capture(kernels::collective_args& j, bool barrier) {
  captured_kernels& c = *m_captured;
  j.base = static_cast<const kernels::replay_base*>(m_base.get());
  if (c.count == 0)
    j.await = kernels::await_of_base;
  else
    j.await = c.ends_as_barrier ? 0 : c.count;
  j.epoch = ++c.count;
  c.ends_as_barrier = barrier;
  j.signals_start = !barrier;
}

// The arguments that all kernels of a communicator have in common.
void kernel_comm::enter(kernels::collective_args& j, bool barrier) {
  if (m_captured) return enter_capture(j, barrier);
  next_epoch();
  j.epoch = m_epoch;
  j.await = m_previous_was_barrier ? 0 : m_previous;
  m_previous_was_barrier = barrier;
  j.signals_start = !barrier;
}

void kernel_comm::set_addresses(kernels::collective_args& j) {
  j.with = m_memory.addresses();
  j.mapped = m_memory.table();
  j.abort = &control().abort;
  m_memory.set_near(j);
}

void* kernel_comm::launch(kernel_launch& kernel, void* target) {
  set_addresses(kernel.what);
  return m_device.launch(kernel, target);
}

void* kernel_comm::start_collective(const sucl_operation& o, void* target) {
  m_setting.mapped = m_memory.used_by(o.sequence);
  const tuned_protocol* row = tuned(o);
  auto kernel = make_launch(o, m_setting, row ? std::optional(row->how) : std::nullopt);
  auto& j = kernel.what;
  enter(j, implies_barrier(kernel, o.kind));
  if (o.kind == SUCL_KIND_BARRIER) kernel.to = m_memory.spare();
  if (j.may_be_direct) {
    const auto e = extents_of(o, m_setting.rank, m_setting.ranks);
    const void* from = kernel.in_place ? o.recv : o.send;
    const bool moves_within =
        kernel.in_place && j.how == kernels::protocol::staged && o.kind != SUCL_KIND_ALLGATHER;
    // A rank without such memory counts as if it were mapped.
    const auto key = [&](const void* memory, std::uint64_t elements) {
      if (elements == 0) return kernels::key_of(0, 0);
      return moves_within ? 0 : m_memory.key_of(memory, elements * o.element_size);
    };
    j.send_key = key(from, kernel.in_place ? e.recv : e.send);
    j.recv_key = key(o.recv, e.recv);
  }
  if (!needs_bounce_buffer(o) || j.fold_bytes == 0) return launch(kernel, target);
  const std::uint64_t bytes = j.fold_bytes;
  // Sources stay where they are, and the result comes last.
  kernel.from = o.recv;
  kernel.to = bounce_buffer(bytes);
  kernel.in_place = false;
  void* const first = launch(kernel, target);
  return followed(first, copy(o.recv, bounce_buffer(bytes), bytes, target));
}

void* kernel_comm::copy(void* to, const void* from, std::uint64_t bytes, void* target) {
  kernel_launch k;
  k.what.rank = m_setting.rank;
  k.what.ranks = m_setting.ranks;
  k.what.how = kernels::protocol::ll;
  k.what.own_bytes = bytes;
  k.groups = m_setting.groups;
  k.from = from;
  k.to = to;
  return launch(k, target);
}

// Not waited for here: a peer's kernel may need what this thread is yet to do.
void* kernel_comm::followed(void* first, void* last) {
  if (first) m_followed.push_back({first, last});
  return last;
}

// Kernels end in the order in which they were launched.
void kernel_comm::forget_those_before(const void* last) {
  std::erase_if(m_followed, [&](const followed_launch& f) {
    if (f.last != last) return false;
    while (!m_device.test(f.first)) {
    }
    return true;
  });
}

void kernel_comm::retune(const tune::table* table) {
  const auto memory = m_device.on_host ? tune::memory_kind::system : tune::memory_kind::device;
  const auto ranks = static_cast<std::uint64_t>(m_setting.ranks);
  for (auto& rows : m_tuned) rows.clear();
  if (!table) return;
  for (const tune::table_row& r : table->rows) {
    const auto* name = std::find(std::begin(kernels::protocol_names),
                                 std::end(kernels::protocol_names), r.protocol);
    if (name == std::end(kernels::protocol_names) || r.memory != memory ||
        !r.ranks.contains(ranks) || !r.nodes.contains(1) || r.form == tune::call_form::blocking)
      continue;
    m_tuned[static_cast<std::size_t>(r.what)].push_back(
        {r.bytes, static_cast<kernels::protocol>(name - std::begin(kernels::protocol_names)),
         r.origin});
  }
}

const kernel_comm::tuned_protocol* kernel_comm::tuned(const sucl_operation& o) const {
  const auto& rows = m_tuned[o.kind];
  if (rows.empty()) return nullptr;
  const auto message = message_size_of(o, m_setting.ranks);
  if (!message.known) return nullptr;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const tuned_protocol& r) {
    return r.bytes.contains(message.bytes);
  });
  return row == rows.end() ? nullptr : &*row;
}

std::string kernel_comm::describe(const sucl_operation& o) const {
  std::string text = m_memory.description();
  const bool has_counts = o.kind == SUCL_KIND_REDUCE_SCATTER || o.kind == SUCL_KIND_ALLGATHERV ||
                          o.kind == SUCL_KIND_ALLTOALLV || o.kind == SUCL_KIND_GATHERV ||
                          o.kind == SUCL_KIND_SCATTERV;
  if (!kernels_support(o.kind) || has_counts) return text;
  const tuned_protocol* row = tuned(o);
  const auto how = make_launch(o, m_setting, row ? std::optional(row->how) : std::nullopt).what.how;
  text += std::string(", protocol ") + kernels::protocol_names[static_cast<std::size_t>(how)];
  if (row && row->how == how) text += ", tuning table (" + row->origin + ")";
  return text;
}

void* kernel_comm::start_plan(const sucl_operation& o, void* target) {
  plan_launch run = m_plans.next_run(o);
  run.what.rank = m_setting.rank;
  run.what.ranks = m_setting.ranks;
  if (run.what.continues) {
    run.what.epoch = m_plan_epoch;
  } else {
    enter(run.what, false);
    m_plan_epoch = m_epoch;
  }
  set_addresses(run.what);
  return m_device.launch(run, target);
}

void* kernel_comm::start_messages(const sucl_operation& o, void* target) {
  void* given = nullptr;
  void* first = nullptr;
  const std::uint64_t bytes = o.count * o.element_size;
  if (o.kind == SUCL_KIND_SENDRECV && (o.flags & SUCL_FLAG_IN_PLACE) != 0 && bytes > 0) {
    given = bounce_buffer(bytes);
    first = copy(given, o.recv, bytes, target);
  }
  auto kernel = m_messages->make(o, given);
  kernel.what.with = m_memory.addresses();
  return followed(first, m_device.launch(kernel, target));
}

// Message lists and the slots of plans belong to one run, so only collectives are captured.
void* kernel_comm::start_captured(const sucl_operation& o, void* target) {
  if (!kernels_support(o.kind))
    base::fail(errc::unsupported, "only collectives of kernels are captured");
  return start_collective(o, target);
}

void* kernel_comm::start(const sucl_operation& o, void* target) {
  constexpr unsigned calls_between = 16;
  check();
  if (m_captured) return start_captured(o, target);
  if (is_point_to_point(o.kind)) return start_messages(o, target);
  m_board.note(signature_of(o, m_setting.ranks));
  if (++m_calls_since_compare >= calls_between) compare_calls();
  if (o.kind == compiled_plan_kind) return start_plan(o, target);
  return start_collective(o, target);
}

bool kernel_comm::test(void* token) {
  constexpr unsigned polls_between = 1000;
  if (!m_device.test(token)) {
    if (++m_calls_since_compare >= polls_between) compare_calls();
    return false;
  }
  forget_those_before(token);
  check();
  return true;
}

const sucl_backend& kernel_backend() noexcept {
  static const sucl_backend table = table_of<kernel_comm>(
      kernel_backend_name, "SuCL's own kernels over memory that the devices of a node share", query,
      post, test);
  return table;
}

backend_comm make_kernel_comm(std::unique_ptr<kernel_comm> comm) {
  auto* c = comm.release();
  return {&kernel_backend(), reinterpret_cast<sucl_state*>(c),
          reinterpret_cast<sucl_backend_comm*>(c)};
}

kernel_comm& kernels_of(const backend_comm& c) { return of(c.comm); }

}  // namespace sucl::core
