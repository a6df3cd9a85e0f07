// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/hierarchical/plans.hpp"

#include "backends/device_kernels/plans/align_scratch.hpp"
#include "base/error.hpp"
#include "core/exchange/core_services.hpp"
#include "core/exchange/readiness.hpp"
#include "core/operation/operation.hpp"
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

step_memory::area area_of(plan::space s) {
  switch (s) {
    case plan::space::send: return step_memory::area::send;
    case plan::space::recv: return step_memory::area::recv;
    default: return step_memory::area::scratch;
  }
}

// A message of bytes in memory of the device, which stands for those of plans.
sucl_operation probe_of_messages(const sucl_operation* part) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = SUCL_KIND_GROUP;
  o.parts = part;
  o.part_count = 1;
  return o;
}

std::string name_of_messages(communicator& whole) {
  sucl_operation send{};
  send.struct_size = sizeof send;
  send.kind = SUCL_KIND_SEND;
  send.type = SUCL_TYPE_BYTES;
  send.element_size = send.count = 1;
  send.send_memory = SUCL_MEMORY_DEVICE;
  return whole.backends().name_of(probe_of_messages(&send), false);
}

// The transports that the options name for a level: kernels within nodes, and between them what
// executes messages of the whole.
void check_transports(const plan::schedule& s, const std::vector<int>& node_of,
                      const std::string& between) {
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (const plan::channel& code : s.ranks[r].channels)
      for (const plan::instruction& i : code) {
        if (i.op != plan::opcode::send && i.op != plan::opcode::receive) continue;
        const std::string& via = s.levels[i.level].via;
        const bool near = node_of[r] == node_of[static_cast<std::size_t>(i.peer)];
        if (via == "any" || via == (near ? plan::shared_memory_transport : between)) continue;
        base::fail(errc::unsupported,
                   "a plan with messages via " + via + (near ? " within" : " between") +
                       " nodes cannot run on devices",
                   "Use \"any\", or " + (near ? plan::shared_memory_transport : between));
      }
}

}  // namespace

struct hierarchical_plans::own_draft final : plan_draft {
  step_list steps;
  std::unique_ptr<plan_draft> within;  ///< of the node
  std::uint64_t of_node = 0;
};

std::string hierarchical_plans::obstacle(communicator& node, communicator& whole) {
  if (!node.plans().runs_parts()) return "no kernels run plans on every node";
  try {
    (void)name_of_messages(whole);
  } catch (const error& e) {
    return e.info().message;
  }
  return {};
}

std::vector<int> hierarchical_plans::members() const {
  std::vector<int> all;
  for (std::size_t r = 0; r < m_where.node_of.size(); ++r)
    if (m_where.node_of[r] == m_where.node) all.push_back(static_cast<int>(r));
  return all;
}

// Each wave's kernel, where some rank of the node has work for it, and then its messages.
step_list hierarchical_plans::steps_of(const plan::wave_division& division,
                                       const plan::node_part& part) const {
  step_list all;
  const auto& messages = division.messages[static_cast<std::size_t>(m_where.rank)];
  auto next = messages.begin();
  for (std::uint32_t wave = 0; wave < division.waves; ++wave) {
    hierarchical_step s;
    s.phase = s.wave = static_cast<int>(2 * wave);
    s.kind = compiled_plan_kind;
    s.root = static_cast<int>(wave);
    s.from.where = step_memory::area::send;
    s.to.where = step_memory::area::recv;
    if (part.occupied[wave]) all.steps.push_back(s);
    s = {};
    s.phase = s.wave = static_cast<int>(2 * wave + 1);
    s.on = level::whole;
    s.kind = SUCL_KIND_GROUP;
    s.first = all.messages.size();
    for (; next != messages.end() && next->wave == wave; ++next)
      all.messages.push_back(
          {next->sends, next->peer, {area_of(next->where), next->offset}, next->bytes});
    s.behind = all.messages.size();
    if (s.behind > s.first) all.steps.push_back(s);
  }
  return all;
}

std::unique_ptr<plan_draft> hierarchical_plans::draft(const compile_request& request,
                                                      base::determinism level) const {
  const int size = static_cast<int>(m_where.node_of.size());
  draft_plan d = compose(request, m_where.rank, size, level);
  const std::string between = name_of_messages(*m_whole);
  check_transports(d.schedule, m_where.node_of, between);
  d.schedule = align_scratch(std::move(d.schedule));
  prove(d);
  const plan::wave_division division = plan::divide_in_waves(d.schedule, m_where.node_of);
  plan_part part{plan::part_of_node(d.schedule, division, members()), d.element, d.reduction};
  auto made = std::make_unique<own_draft>();
  made->steps = steps_of(division, part.what);
  made->within = m_node->plans().draft_part(part);
  made->facts = d.facts;
  made->facts.text += "; executed by kernels within nodes and by " + between +
                      " between them, in " + std::to_string(division.waves) + " waves";
  made->identity = d.identity;
  return made;
}

// The other nodes are to know what is wrong on one.
void hierarchical_plans::allocate(plan_draft& draft) {
  auto& own = static_cast<own_draft&>(draft);
  readiness mine;
  try {
    m_node->plans().allocate(*own.within);
  } catch (const error& e) {
    mine.wrong = e.info();
  }
  const int size = static_cast<int>(m_where.node_of.size());
  agree(m_oob, m_where.rank, size, mine, "has no memory for the plan",
        "Free memory of the device first");
  own.scratch = own.within->scratch;
  own.of_node = m_node->plans().add_part(std::move(own.within));
  for (hierarchical_step& s : own.steps.steps)
    if (s.kind == compiled_plan_kind) s.plan = own.of_node;
}

void hierarchical_plans::add(std::uint64_t number, std::unique_ptr<plan_draft> draft) {
  auto& own = static_cast<own_draft&>(*draft);
  m_plans[number] = {std::move(own.steps), static_cast<std::byte*>(own.scratch), own.of_node};
}

void hierarchical_plans::remove(std::uint64_t number) {
  const auto found = m_plans.find(number);
  if (found == m_plans.end()) return;
  m_node->forget_compiled(found->second.of_node);
  m_plans.erase(found);
}

const hierarchical_plans::stored& hierarchical_plans::known(std::uint64_t number) const {
  const auto found = m_plans.find(number);
  if (found == m_plans.end())
    base::fail(errc::shut_down, "the compiled plan has been destroyed",
               "Keep the handle while the plan is used");
  return found->second;
}

}  // namespace sucl::core
