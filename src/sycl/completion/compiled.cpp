// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/compile_request.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/common/state.hpp"

#include <sucl/persistent.hpp>

namespace sucl {
namespace sycl_layer {

/// A compiled plan of the API.
struct compiled {
  std::shared_ptr<communicator_state> state;
  core::compiled_facts facts;
  sucl_type element;
  std::uint64_t element_size;

  compiled() = default;
  compiled(const compiled&) = delete;
  compiled& operator=(const compiled&) = delete;
  ~compiled() {
    if (facts.number > 0 && state->process()->alive()) state->core().forget_compiled(facts.number);
  }
};

}  // namespace sycl_layer

namespace {

void check_plan_lives(const sycl_layer::communicator_state& state) {
  core::throw_if_forked();
  if (!state.process()->alive())
    base::fail(errc::shut_down, "the runtime of this plan has been shut down",
               "Keep sucl::runtime alive while its plans are used");
}

// Makes the request one of this plan.
void complete(const sycl_layer::compiled& p, detail::request& r) {
  sucl_operation& o = r.record;
  if (o.type != p.element || o.element_size != p.element_size)
    base::fail(errc::invalid_type,
               std::string("the plan is for elements of ") + name(static_cast<type>(p.element)) +
                   " of " + std::to_string(p.element_size) + " bytes, the memory has " +
                   name(static_cast<type>(o.type)) + " of " + std::to_string(o.element_size),
               "Compile it for this type");
  o.kind = core::compiled_plan_kind;
  o.plan = p.facts.number;
  o.count = p.facts.send_elements;
  o.recv_count = p.facts.recv_elements;
}

}  // namespace

sycl_layer::compiled& compiled_plan::plan() const {
  if (!m_plan)
    base::fail(errc::shut_down, "the compiled plan is empty",
               "Make one by communicator::compile()");
  check_plan_lives(*m_plan->state);
  return *m_plan;
}

::sycl::event compiled_plan::submit(detail::request& r, const std::vector<::sycl::event>& deps) {
  complete(plan(), r);
  return sycl_layer::submit(*m_plan->state, r, deps);
}

void compiled_plan::run_now(detail::request& r, const std::vector<::sycl::event>& deps) {
  complete(plan(), r);
  sycl_layer::run(*m_plan->state, r, deps);
}

#ifdef SYCL_EXT_ONEAPI_GRAPH
graph_node compiled_plan::add(detail::request& r, const modifiable_graph& graph,
                              const std::vector<graph_node>& after) {
  complete(plan(), r);
  sycl_layer::resolved call;
  sycl_layer::resolve_call(*m_plan->state, r, call);
  return sycl_layer::add(*m_plan->state, graph, call, after);
}
#endif

std::size_t compiled_plan::send_size() const { return plan().facts.send_elements; }
std::size_t compiled_plan::recv_size() const { return plan().facts.recv_elements; }
std::string compiled_plan::explain() const { return plan().facts.text; }

compiled_plan communicator::compile(const composition& c, const compile_options& o, type element,
                                    std::size_t element_size) const {
  check_plan_lives(state());
  auto made = std::make_shared<sycl_layer::compiled>();
  made->state = m_state;
  made->element = static_cast<sucl_type>(element);
  made->element_size = element_size;
  const auto step = state().core().begin_step("compile");
  made->facts =
      core::in_step(*step, [&] { return state().core().compile({c, o, element, element_size}); });
  return compiled_plan(std::move(made));
}

}  // namespace sucl
