// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What the core knows of the backend of messages.
#include "backends/shm_common/make_part.hpp"
#include "backends/shm_p2p/backend.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/backend_creation.hpp"
#include "core/selection/settings.hpp"

namespace sucl::core {
namespace {

class message_comm final : public built_in_comm {
 public:
  explicit message_comm(const backend_comm& messages) : m_messages(messages) {}

  std::string describe(const sucl_operation&) override { return describe_messages(m_messages); }
  bool starts_messages() const override { return true; }
  sucl_request* start_message(const sucl_operation& o) override {
    return core::start_message(m_messages, o);
  }
  std::optional<bool> arrived(int from, int tag) override {
    return message_arrived(m_messages, from, tag);
  }
  void add_memory(const sucl_region& region, std::uint64_t number, std::uint64_t) override {
    add_message_memory(m_messages, region, number);
  }
  bool remove_memory(void* base, std::uint64_t, sucl_region*) override {
    remove_message_memory(m_messages, base);
    return false;
  }

 private:
  backend_comm m_messages;
};

class message_built_in_backend final : public built_in_backend {
 public:
  const char* name() const override { return message_backend_name; }
  const sucl_backend& table() const override { return message_backend(); }
  bool uses_memory_provider() const override { return true; }
  bool supports_messages(const base::backend_entry&) const override { return true; }

  std::string obstacle(backend_creation& c) const override {
    std::string platform = c.not_for_platform(name());
    if (!platform.empty()) return platform;
    if (c.size() > max_message_ranks)
      return "it is for up to " + std::to_string(max_message_ranks) + " ranks";
    if (c.where.nodes > 1 && c.where.nodes == c.size()) return "every rank is alone on its node";
    return c.no_host_memory();
  }

  backend_instance create(backend_creation& c, std::string* why) const override {
    const auto* entry = c.entry_of(name());
    if (entry && !entry->settings.empty())
      backend_setting(name(), entry->settings.front().first, entry->settings.front().second)
          .refuse_key("It has no settings of its own");
    backend_instance made;
    made.via = make_shared_part(c, why, [&](placement where, bool reads) {
      return make_message_comm(c.memory_provider, std::move(where), reads, why);
    });
    if (!made.via.table) return made;
    made.own = std::make_unique<message_comm>(made.via);
    made.traits.independent_progress = made.traits.ends_on_mismatch = true;
    return made;
  }

  void add_candidates(candidate_list& list, sucl_kind what, candidate_position at) const override {
    if (!is_point_to_point(what)) return;
    if (at == candidate_position::before_default && list.mpi_is_default())
      list.add(selection_stage::built_in, {}, every_memory, list.other_platform());
    if (at == candidate_position::last && !list.mpi_is_default())
      list.add(selection_stage::last_resort, {}, every_memory, list.other_platform());
  }

  std::string reason(const selection_scope&) const override {
    return "ranks of a node exchange messages through shared memory";
  }
};

}  // namespace

const built_in_backend& messages_built_in() {
  static const message_built_in_backend it;
  return it;
}

}  // namespace sucl::core
