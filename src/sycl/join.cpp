// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Jobs whose processes find each other by an id, or through a store of the program's own.
#include "base/config/config.hpp"
#include "base/error.hpp"
#include "core/control/control_plane.hpp"
#include "core/control/program_store.hpp"
#include "core/failure/setup_steps.hpp"
#include "sycl/common/state.hpp"

#include <sucl/runtime.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace sucl {
namespace {

core::launch launch_of(int rank, int size, const char* why) {
  if (size < 1 || rank < 0 || rank >= size)
    base::fail(errc::invalid_rank,
               "rank " + std::to_string(rank) + " of " + std::to_string(size) +
                   " is none: a job has the ranks 0 to size - 1",
               "Pass this process's rank, and the number of all of them");
  core::launch l;
  l.rank = rank;
  l.size = size;
  l.why = why;
  return l;
}

}  // namespace

unique_id unique_id::make(const std::string& network, std::uint16_t port) {
  core::throw_if_forked();
  const auto settings = base::load_config(nullptr, nullptr);
  return from_string(
      core::make_job_id(network.empty() ? settings.tcp.interface : network,
                        port != 0 ? port : static_cast<std::uint16_t>(settings.tcp.port)));
}

unique_id unique_id::from_string(const std::string& text) {
  unique_id id;
  if (text.size() >= id.m_text.size())
    base::fail(errc::invalid_argument,
               "a text of " + std::to_string(text.size()) + " bytes is no id of a job",
               "Pass what unique_id::to_string() has given");
  std::copy(text.begin(), text.end(), id.m_text.begin());
  return id;
}

runtime runtime::join(const unique_id& id, int rank, int size) {
  core::launch l = launch_of(rank, size, "runtime::join with an id");
  l.id = id.to_string();
  if (l.id.empty())
    base::fail(errc::invalid_argument, "the id is empty", "Make it with unique_id::make()");
  return runtime(std::make_shared<sycl_layer::runtime_state>(nullptr, nullptr, core::native_group{},
                                                             std::move(l)));
}

runtime runtime::join(const rendezvous_store& store, int rank, int size) {
  core::launch l = launch_of(rank, size, "runtime::join with a store");
  if (!store.put || !store.get || !store.wait)
    base::fail(errc::invalid_argument, "a function of the store is empty", "Set put, get and wait");
  core::program_store calls(store);
  l.store = calls.table();
  try {
    return runtime(std::make_shared<sycl_layer::runtime_state>(nullptr, nullptr,
                                                               core::native_group{}, std::move(l)));
  } catch (const error&) {
    calls.rethrow();
    throw;
  }
}

// The configuration stays: its file may have been an argument of the program.
void runtime::grow(communicator members, const unique_id& id, int joiners) {
  auto& state = members.state();
  if (!m_state || !m_state->process().alive())
    base::fail(errc::shut_down, "the runtime has ended", "Call join() for a new job");
  if (state.process().get() != &m_state->process())
    base::fail(errc::invalid_argument,
               "the communicator is of another runtime, or has several ranks of a process",
               "Pass what world(queue) of this one, or shrink() of that, has returned");
  core::launch l;
  {
    const auto step = state.core().begin_step("grow");
    l = core::in_step(*step, [&] { return state.core().agree_to_grow(id.to_string(), joiners); });
  }
  std::string name = "sucl", option = "--sucl-config", file = m_state->process().settings().file;
  char* arguments[] = {name.data(), option.data(), file.data(), nullptr};
  int count = 3;
  char** first = arguments;
  const bool named = !file.empty();
  members = {};
  m_state->process().shut_down();
  *this = runtime(std::make_shared<sycl_layer::runtime_state>(
      named ? &count : nullptr, named ? &first : nullptr, core::native_group{}, std::move(l)));
}

}  // namespace sucl
