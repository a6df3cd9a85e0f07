// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What torch asks a group about itself, and groups that are parts of it.
#include "backend.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace sucl::torch {

namespace {

// Older releases of torch have no such members.
template <class Options>
void name_group(Options& o, const group_options& of) {
  if constexpr (requires { o.group_name; }) o.group_name = of.id;
  if constexpr (requires { o.global_ranks_in_group; })
    o.global_ranks_in_group.assign(of.ranks.begin(), of.ranks.end());
}

// torch's numbers of kinds of failures.
constexpr int no_failure = 0, was_late = 1, is_broken = 2, peer_failed = 3;

int kind_of(sucl_status status) {
  switch (status) {
    case SUCL_SUCCESS: return no_failure;
    case SUCL_ERROR_TIMEOUT: return was_late;
    case SUCL_ERROR_PEER_LOST: return peer_failed;
    default: return is_broken;
  }
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int r : ranks) text += (text.empty() ? "" : ",") + std::to_string(r);
  return text;
}

}  // namespace

c10::intrusive_ptr<backend::Options> backend::getBackendOptions() {
  auto o = c10::make_intrusive<backend_options>(m_options.name, m_timeout);
  name_group(*o, m_options);
  return o;
}

// What no Work has reported is asked for.
error_type backend::getError() {
  if (m_rest->failure_of_any() == SUCL_SUCCESS) {
    m_rest->note(m_line->calls().check(m_line->get()));
    const std::lock_guard lock(m_tracks_mutex);
    for (const auto& [key, one] : m_tracks)
      m_rest->note(one->calls().calls().check(one->calls().get()));
  }
  return static_cast<error_type>(kind_of(m_rest->failure_of_any()));
}

some_backend backend::split(const std::vector<int>& ranks, const c10::intrusive_ptr<Options>& o) {
  const std::string id =
      m_options.id + "/split" + std::to_string(m_splits++) + ":" + list_of(ranks);
  std::vector<int> of_job;
  for (const int r : ranks) {
    check_root(r);
    of_job.push_back(m_options.ranks[static_cast<std::size_t>(r)]);
  }
  if (std::find(ranks.begin(), ranks.end(), getRank()) == ranks.end()) return {};
  return m_options.part(id, of_job, o ? o->timeout : m_timeout);
}

some_backend backend::shrink(const std::vector<int64_t>& ranks_to_exclude, int flags,
                             const c10::intrusive_ptr<Options>& o) {
  std::vector<int> left, of_job;
  for (int r = 0; r < getSize(); ++r) {
    if (std::find(ranks_to_exclude.begin(), ranks_to_exclude.end(), r) != ranks_to_exclude.end())
      continue;
    left.push_back(r);
    of_job.push_back(m_options.ranks[static_cast<std::size_t>(r)]);
  }
  if (std::find(left.begin(), left.end(), getRank()) == left.end())
    throw failure(SUCL_ERROR_INVALID_RANK, "this rank is among those to exclude",
                  "Have the other ranks call it alone");
  constexpr int to_abort = 1;
  if ((flags & to_abort) != 0) give_up();
  const std::string id =
      m_options.id + "/shrunk" + std::to_string(m_shrinks++) + ":" + list_of(left);
  return m_options.part(id, of_job, o ? o->timeout : m_timeout);
}

// Else the first operation makes what is needed there.
void backend::eagerConnectSingleDevice(at::Device device) {
  if (!device.is_cpu()) track_on(device, -1);
}

}  // namespace sucl::torch
