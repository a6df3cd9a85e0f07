// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/plans/plan_store.hpp"

#include "base/error.hpp"
#include "base/sizes.hpp"

#include <algorithm>
#include <string>

namespace sucl::core {
namespace {

constexpr std::uint64_t line = 128;

template <class T>
std::uint64_t bytes_of(const std::vector<T>& v) {
  return base::round_up(v.size() * sizeof(T), line);
}

}  // namespace

// The memory that this rank alone needs.
void plan_store::copy_in(stored_plan& plan) const {
  const device_plan& c = plan.code;
  plan.text =
      m_device.allocate(line + bytes_of(c.steps) + bytes_of(c.operands) + bytes_of(c.bounds));
  auto* at = static_cast<std::byte*>(plan.text.get());
  const auto write = [&](const auto& v) {
    if (!v.empty()) m_device.write(at, v.data(), v.size() * sizeof v[0]);
    at += bytes_of(v);
  };
  write(c.steps);
  write(c.operands);
  write(c.bounds);
  if (c.scratch_bytes > 0) plan.scratch = m_device.allocate(c.scratch_bytes);
}

void plan_store::allocate(stored_plan& plan, int size, const sucl_oob& oob) {
  decltype(m_forgotten) unused;
  {
    const std::lock_guard lock(m_mutex);
    unused.swap(m_forgotten);
  }
  if (!unused.empty()) m_device.drain();
  unused.clear();
  error_info mine;
  mine.code = errc::success;
  try {
    copy_in(plan);
  } catch (const error& e) {
    mine = e.info();
  }
  const auto code = static_cast<std::int32_t>(mine.code);
  std::vector<std::int32_t> all(static_cast<std::size_t>(size));
  sucl_oob own = oob;
  if (const auto status = services().oob_allgather(&own, &code, all.data(), sizeof code))
    throw_last(status, "kernels", "compile");
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] != 0)
      base::fail(static_cast<errc>(all[r]),
                 "rank " + std::to_string(r) + " has no device memory for the plan" +
                     (mine.message.empty() ? "" : ": " + mine.message),
                 "Free memory of the device first");
  plan.memory = m_memory.make_reached(plan.code.shared_bytes());
}

void plan_store::add(std::uint64_t number, std::unique_ptr<stored_plan> plan) {
  m_plans.emplace_back(number, std::move(plan));
}

void plan_store::remove(std::uint64_t number) {
  const auto found = std::find_if(m_plans.begin(), m_plans.end(),
                                  [&](const auto& p) { return p.first == number; });
  if (found == m_plans.end()) return;
  const std::lock_guard lock(m_mutex);
  m_forgotten.push_back(std::move(found->second));
  m_plans.erase(found);
}

plan_launch plan_store::next_run(const sucl_operation& o) {
  const auto found = std::find_if(m_plans.begin(), m_plans.end(),
                                  [&](const auto& p) { return p.first == o.plan; });
  if (found == m_plans.end())
    base::fail(errc::shut_down, "the compiled plan has been destroyed",
               "Keep the handle while the plan is used");
  stored_plan& plan = *found->second;
  const device_plan& c = plan.code;
  plan_launch run;
  run.type = plan.type;
  run.op = plan.op;
  run.reduces = plan.op != SUCL_OP_NONE;
  run.from = o.send;
  run.to = o.recv;
  run.groups = c.groups;
  auto& j = run.what;
  const auto* text = static_cast<const std::byte*>(plan.text.get());
  j.steps = reinterpret_cast<const kernels::plan_step*>(text);
  text += bytes_of(c.steps);
  j.operands = reinterpret_cast<const kernels::plan_operand*>(text);
  text += bytes_of(c.operands);
  const auto wave = static_cast<std::uint32_t>(o.root);
  j.bounds = reinterpret_cast<const std::uint32_t*>(text) + wave * c.channels();
  j.continues = wave != c.first_wave;
  if (!j.continues) ++plan.runs;
  j.memory = static_cast<std::byte* const*>(plan.memory->table.get());
  j.scratch = static_cast<std::byte*>(plan.scratch.get());
  j.slots = c.flags_bytes + plan.runs % 2 * c.slots_bytes;
  j.period = c.period;
  j.stripe = c.stripe;
  j.channels = static_cast<std::int32_t>(c.channels());
  j.divisor = 1;
  return run;
}

}  // namespace sucl::core
