// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the core knows of the backend hierarchical.
#include "backends/device_kernels/backend.hpp"
#include "backends/hierarchical/backend.hpp"
#include "core/selection/backend_creation.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

// Sums in device memory, which stand for all that can be ordered on streams.
sucl_operation probe_of_device_memory() {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_ALLREDUCE;
  o.type = SUCL_TYPE_FP32;
  o.op = SUCL_OP_SUM;
  o.element_size = sizeof(float);
  o.count = 1;
  o.send_memory = o.recv_memory = SUCL_MEMORY_DEVICE;
  return o;
}

class hierarchical_built_in_comm final : public built_in_comm {
 public:
  explicit hierarchical_built_in_comm(hierarchical_comm& comm) : m_comm(comm) {}

  std::string describe(const sucl_operation& o) override {
    return "  on this rank: " + m_comm.describe(o) + "\n";
  }
  void check() override { m_comm.check(); }
  bool checks() const override { return true; }
  void report_mismatch(const std::string& what) override { m_comm.report_mismatch(what); }
  bool orders_on_stream(const sucl_operation& o) override { return m_comm.orders_on_stream(o); }

  bool runs_custom_plans() const override { return m_comm.plans() != nullptr; }
  std::unique_ptr<plan_draft> draft(const compile_request& r, base::determinism level) override {
    return m_comm.plans()->draft(r, level);
  }
  void allocate_scratch(plan_draft& d) override { m_comm.plans()->allocate(d); }
  void add_plan(std::uint64_t number, std::unique_ptr<plan_draft> d) override {
    m_comm.plans()->add(number, std::move(d));
  }
  void remove_plan(std::uint64_t number) override { m_comm.plans()->remove(number); }

 private:
  hierarchical_comm& m_comm;
};

class hierarchical_built_in_backend final : public built_in_backend {
 public:
  const char* name() const override { return hierarchical_backend_name; }
  const sucl_backend& table() const override { return hierarchical_backend(); }

  std::string obstacle(backend_creation& c) const override {
    if (c.around.flat) return "it is what crosses between the islands of another communicator";
    if (c.where.islands == 1) return "the ranks are on one node";
    return wants_plans(c) ? "" : obstacle_but_for_plans(c);
  }

  std::string obstacle_but_for_plans(backend_creation& c) const override {
    const bool mixed = c.where.mixed();
    if (c.where.islands == c.size())
      return mixed ? "every rank is alone on its island" : "every rank is alone on its node";
    if (!c.not_for_platform(name()).empty()) return "it is for device memory, or for rules";
    if (mixed || c.some_rule_names(name())) return {};
    const sucl_operation sums = probe_of_device_memory();
    const auto orders = [&](const backend_instance& one) {
      const transfer_format& f = one.formats->of(sums.kind, sums.type, sums.op, sums.element_size);
      return f.streams && f.reaches(SUCL_MEMORY_DEVICE);
    };
    const auto library = std::find_if(c.made->begin(), c.made->end(), orders);
    return library == c.made->end() ? ""
                                    : library->name + " orders operations on the device's streams";
  }

  backend_instance create(backend_creation& c, std::string* why) const override {
    const sucl_operation sums = probe_of_device_memory();
    hierarchical_makers how{c.around.split,
                            [&](bool mine) { return c.agree(mine); },
                            {c.around.scratch, c.around.kernels},
                            c.around.hierarchical};
    // Islands of memory that the host reads have other backends.
    const member& me = c.where.members[static_cast<std::size_t>(c.rank())];
    const bool mixed = c.where.mixed();
    how.collectives = obstacle_but_for_plans(c).empty();
    if (how.collectives && !c.some_rule_names(name()) && !(mixed && me.device_memory_on_host))
      how.must_order = &sums;
    if (wants_plans(c)) how.plans = &c.split_oob();
    backend_instance made;
    hierarchical_map where = map_nodes(c.where.island_of, c.rank());
    where.islands = mixed;
    made.via = make_hierarchical(c.entry_of(name())->settings, where, how, why);
    if (!made.via.table) return made;
    made.own = std::make_unique<hierarchical_built_in_comm>(hierarchical_of(made.via));
    made.traits.launches = made.traits.needs_progress = made.traits.composed = true;
    return made;
  }

  // Where the configuration has kernels run plans of programs.
  static bool wants_plans(backend_creation& c) {
    const auto* kernels = c.entry_of(kernel_backend_name);
    return kernels && !c.where.mixed() && kernel_settings::wants_plans(kernels->settings);
  }

  // Where MPI would copy every rank's data through the host. Whatever memory a rank uses: others
  // may use device memory in the same operation.
  void add_candidates(candidate_list& list, sucl_kind what, candidate_position at) const override {
    if (at == candidate_position::before_default && list.mpi_is_default() &&
        what <= SUCL_KIND_EXSCAN && list.other_platform().empty() &&
        (list.scope().mixed || (list.scope().device && list.scope().nodes > 1)))
      list.add(selection_stage::built_in);
  }

  std::string reason(const selection_scope& scope) const override {
    if (scope.mixed)
      return "data crosses between islands of devices once, after the ranks of each have combined "
             "it";
    return "device memory leaves its node once, after the node's ranks have combined it";
  }
};

}  // namespace

const built_in_backend& hierarchical_built_in() {
  static const hierarchical_built_in_backend it;
  return it;
}

}  // namespace sucl::core
