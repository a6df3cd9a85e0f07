// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the core knows of the backend of kernels.
#include "backends/device_kernels/backend.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/backend_creation.hpp"

namespace sucl::core {
namespace {

using base::range;

// Messages that kernels move faster than the libraries of the vendors: between two ranks all but
// some scatters, where the root's own block moves while that of its peer does.
// Three and four ranks have the sizes that were measured with four GPUs (docs/results/gpu); for
// more nothing was measured, and only short messages go by kernels.
std::vector<range> sizes_for_kernels(sucl_kind what, const selection_scope& scope) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto ranks = static_cast<std::uint64_t>(scope.ranks);
  if (scope.nodes > 1 || is_point_to_point(what)) return {{}};
  const std::uint64_t ll = mebi / ranks;
  if (ranks == 2 && what == SUCL_KIND_SCATTER) return {{0, 8 * mebi}, {48 * mebi, range{}.high}};
  if (ranks > 4) return {{0, what == SUCL_KIND_ALLREDUCE ? ll : ll / 2}};
  if (ranks > 2) switch (what) {
      case SUCL_KIND_ALLREDUCE: return {{0, 64 * mebi}};
      case SUCL_KIND_BROADCAST: return {{0, 16 * mebi}};
      case SUCL_KIND_REDUCE: return {{0, 4 * mebi}};
      case SUCL_KIND_GATHER:
      case SUCL_KIND_SCATTER: return {{0, 4 * mebi}};
      case SUCL_KIND_BARRIER:
      case SUCL_KIND_SCAN:
      case SUCL_KIND_EXSCAN: return {{0, ll / 2}};
      // Where no rank knows the sizes of all, one backend executes every size: kernels are faster
      // by a third to 1 MiB, and at worst slower by a twenty-fifth from 4 MiB on.
      default: break;
    }
  return {{}};
}

class kernel_built_in_comm final : public built_in_comm {
 public:
  kernel_built_in_comm(kernel_comm& kernels, const sucl_oob& oob)
      : m_kernels(kernels), m_oob(oob) {}

  std::string describe(const sucl_operation& o) override {
    return "  kernels work " + m_kernels.describe(o) + "\n";
  }
  void retune(const tune::table* tuned) override { m_kernels.retune(tuned); }
  void check() override { m_kernels.check(); }
  bool checks() const override { return true; }
  const call_board* board() const override { return &m_kernels.board(); }
  void compare_calls() override { m_kernels.compare_calls(); }
  bool compares() const override { return true; }
  void end_kernels() override { m_kernels.abort(); }
  bool allocates() const override { return !m_kernels.device().on_host; }
  void* allocate(std::uint64_t bytes, std::uint64_t sequence) override {
    return m_kernels.memory().add(bytes, sequence);
  }
  bool attach(void* memory, std::uint64_t bytes, std::uint64_t sequence) override {
    return m_kernels.memory().attach(memory, bytes, sequence);
  }
  bool free(void* memory) override { return m_kernels.memory().remove(memory); }

  // Kernels of groups, and those beside which something is copied.
  bool needs_addresses(const sucl_operation& o) const override {
    return o.kind == SUCL_KIND_GROUP || needs_bounce_buffer(o) ||
           (o.kind == SUCL_KIND_SENDRECV && (o.flags & SUCL_FLAG_IN_PLACE) != 0);
  }

  bool begin_capture() override { return m_kernels.begin_capture(); }
  captured_kernels end_capture() override { return m_kernels.end_capture(); }
  bool may_replay(const captured_kernels& c) const override { return m_kernels.may_replay(c); }
  graph_base replay(const captured_operations& c) override { return m_kernels.replay(c); }

  bool runs_custom_plans() const override { return m_kernels.runs_plans(); }
  std::unique_ptr<plan_draft> draft(const compile_request& r, base::determinism level) override {
    draft_plan d = compose(r, m_kernels.rank(), m_kernels.size(), level);
    prove(d);
    auto made = std::make_unique<own_draft>();
    made->plan = std::make_unique<stored_plan>();
    made->plan->code = lower_for_device(d.schedule, m_kernels.rank(), m_kernels.plan_limits());
    made->plan->type = static_cast<sucl_type>(d.element);
    made->plan->op = static_cast<sucl_op>(d.reduction);
    made->facts = d.facts;
    made->facts.text += "; executed by kernels";
    made->identity = d.identity;
    return made;
  }
  bool runs_parts() const override { return m_kernels.runs_plans(); }
  std::unique_ptr<plan_draft> draft_part(const plan_part& p) override {
    auto made = std::make_unique<own_draft>();
    made->plan = std::make_unique<stored_plan>();
    made->plan->code = lower_for_device(p.what, m_kernels.rank(), m_kernels.plan_limits());
    made->plan->type = static_cast<sucl_type>(p.element);
    made->plan->op = static_cast<sucl_op>(p.reduction);
    return made;
  }
  void allocate_scratch(plan_draft& d) override {
    stored_plan& plan = *static_cast<own_draft&>(d).plan;
    m_kernels.plans().allocate(plan, m_kernels.size(), m_oob);
    d.scratch = plan.scratch.get();
  }
  void add_plan(std::uint64_t number, std::unique_ptr<plan_draft> d) override {
    m_kernels.plans().add(number, std::move(static_cast<own_draft&>(*d).plan));
  }
  void remove_plan(std::uint64_t number) override { m_kernels.plans().remove(number); }

 private:
  struct own_draft final : plan_draft {
    std::unique_ptr<stored_plan> plan;
  };

  kernel_comm& m_kernels;
  sucl_oob m_oob;
};

// Why kernels are not for these ranks: some share a process and a device, which need not begin one
// kernel before the other has ended, as that of CPU devices does not; or, unless a rule asks for
// them, processes share a device, where kernels that wait for each other take turns of
// milliseconds. Devices that are not known by a number may be the same. Collective.
std::string shared_device(const backend_creation& c) {
  const auto* device = c.around.kernels;
  const auto all = c.gather(device ? c.around.kernels->identity() : kernel_device::identity_type{});
  const auto& members = c.where.members;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (all[a] == all[b] && members[a].node == members[b].node &&
          members[a].process == members[b].process)
        return "ranks " + std::to_string(b) + " and " + std::to_string(a) +
               " are of one process and may share a device, where one's kernel might wait for the "
               "other's, which does not start";
  if (c.some_rule_names(kernel_backend_name)) return {};
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (all[a] == all[b] && all[a] != kernel_device::identity_type{})
        return "ranks " + std::to_string(b) + " and " + std::to_string(a) +
               " share a device, and the backend needs a device for each rank unless a rule names "
               "it";
  return {};
}

class kernel_built_in_backend final : public built_in_backend {
 public:
  const char* name() const override { return kernel_backend_name; }
  const sucl_backend& table() const override { return kernel_backend(); }
  bool uses_memory_provider() const override { return true; }
  bool supports_messages(const base::backend_entry& entry) const override {
    return kernel_settings::wants_messages(entry.settings);
  }

  std::string obstacle(backend_creation& c) const override {
    std::string platform = c.not_for_platform(name());
    if (!platform.empty()) return platform;
    if (c.size() > max_kernel_ranks)
      return "it is for up to " + std::to_string(max_kernel_ranks) + " ranks";
    if (c.where.nodes > 1) return "the ranks are on several nodes";
    const std::string memory = c.no_shared_memory();
    return memory.empty() ? shared_device(c) : memory;
  }

  backend_instance create(backend_creation& c, std::string* why) const override {
    backend_instance made;
    if (!prepare(c, why)) return made;
    sucl_oob& own = c.split_oob();
    made.via = make_kernel_comm(std::make_unique<kernel_comm>(
        c.memory_provider, own, *c.around.kernels, c.rank(), c.size(),
        kernel_settings::read(c.entry_of(name())->settings, c.size())));
    kernels_of(made.via).retune(c.around.tuned);
    made.own = std::make_unique<kernel_built_in_comm>(kernels_of(made.via), own);
    made.traits.launches = made.traits.ends_on_mismatch = made.traits.folds_alike = true;
    return made;
  }

  void add_candidates(candidate_list& list, sucl_kind what, candidate_position at) const override {
    const bool supported =
        what <= SUCL_KIND_EXSCAN || (supports_messages(list.entry()) && is_point_to_point(what));
    if (at > candidate_position::after_platforms || !supported) return;
    std::vector<range> sizes = sizes_for_kernels(what, list.scope());
    const bool all = sizes.front().everything();
    if (at == candidate_position::after_platforms) {
      if (all) return;
      sizes = {{}};
    }
    std::string ruled_out = list.other_platform();
    if (!ruled_out.empty() && !sizes.front().everything()) return;  // said once
    if (ruled_out.empty() && list.scope().nodes > 1) ruled_out = "it is for the ranks of one node";
    for (const range& bytes : sizes)
      list.add(selection_stage::platform, bytes, every_memory, ruled_out);
  }

 private:
  // Whether every rank has kernels for its device. Throws where one has no memory for them.
  static bool prepare(backend_creation& c, std::string* why) {
    error_info mine;
    mine.code = c.around.kernels ? errc::success : errc::unavailable;
    if (!c.around.kernels) mine.message = "the device of this rank runs no kernels of SuCL's";
    try {
      if (c.around.kernels) c.around.kernels->prepare();
    } catch (const error& e) {
      mine = e.info();
    }
    const auto ready = c.agree_on_part(mine);
    if (ready.no_memory) throw error(*ready.no_memory);
    if (!ready.all) *why = mine.message.empty() ? "it cannot be used on every rank" : mine.message;
    return ready.all;
  }
};

}  // namespace

const built_in_backend& kernels_built_in() {
  static const kernel_built_in_backend it;
  return it;
}

}  // namespace sucl::core
