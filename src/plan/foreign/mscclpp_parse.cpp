// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/mscclpp_parse.hpp"

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "plan/serialization/file_limits.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <utility>

namespace sucl::plan::mscclpp {
namespace {

using nlohmann::json;
using range = base::bounds<std::int64_t>;

constexpr int max_depth = 16;
constexpr range ranks_allowed{0, 1023}, chunks_allowed{0, 1 << 20}, numbers_allowed{0, 1 << 16},
    slices_allowed{1, 64};
constexpr std::size_t max_operations = 1 << 18;

[[noreturn]] void refuse_text(
    const std::string& where, const std::string& what,
    const std::string& cure = "Give a plan as MSCCL++'s tools write it.") {
  base::fail(errc::invalid_argument, where + ": " + what, cure);
}

const json* find(const json& from, const char* name) {
  if (!from.is_object()) return nullptr;
  const auto at = from.find(name);
  return at == from.end() ? nullptr : &*at;
}
const json& need(const json& from, const char* name, const std::string& where) {
  const json* value = find(from, name);
  if (!value) refuse_text(where, std::string("there is no \"") + name + "\"");
  return *value;
}
const json& list_of(const json& from, const char* name, const std::string& where) {
  static const json none = json::array();
  const json* value = find(from, name);
  if (!value) return none;
  if (!value->is_array()) refuse_text(where, std::string("\"") + name + "\" is no list");
  return *value;
}
int number(const json& value, const char* name, const std::string& where, range allowed) {
  if (!value.is_number_integer())
    refuse_text(where, std::string("\"") + name + "\" is no whole number");
  const auto n = value.is_number_unsigned() && value.get<std::uint64_t>() > (1u << 30)
                     ? std::int64_t{1} << 40
                     : value.get<std::int64_t>();
  base::check_bounds(where, name, n, allowed, errc::invalid_argument);
  return static_cast<int>(n);
}
int number_of(const json& from, const char* name, const std::string& where,
              range allowed = numbers_allowed) {
  return number(need(from, name, where), name, where, allowed);
}
std::string text_of(const json& from, const char* name, const std::string& where) {
  const json& value = need(from, name, where);
  if (!value.is_string()) refuse_text(where, std::string("\"") + name + "\" is no text");
  return value.get<std::string>().substr(0, 60);
}
char buffer_of(const json& from, const char* name, const std::string& where) {
  const std::string type = text_of(from, name, where);
  if (type != "i" && type != "o" && type != "s") refuse_text(where, "'" + type + "' is no buffer");
  return type[0];
}

/// What a GPU reaches.
struct access {
  std::map<std::string, std::vector<channel_end>> channels;  ///< by type
  struct group {
    char type = 'i';
    std::vector<int> ranks;
  };
  std::vector<group> switches;
  struct buffer {
    int rank = 0;
    char type = 'i';
  };
  std::vector<buffer> remote;
};

class reader {
 public:
  explicit reader(const json& root) : m_root(root) {}

  plan_text run() {
    plan_text p;
    p.name = text_of(m_root, "name", "the plan");
    p.collective = text_of(m_root, "collective", "the plan");
    if (const json* there = find(m_root, "inplace")) {
      if (!there->is_boolean()) refuse_text("the plan", "\"inplace\" is neither true nor false");
      p.in_place = there->get<bool>();
    }
    const json& gpus = list_of(m_root, "gpus", "the plan");
    if (gpus.empty() || gpus.size() > 1024)
      refuse_text("the plan", "it has no GPUs, or more than 1024");
    m_ranks = static_cast<int>(gpus.size());
    for (const json& g : gpus) p.gpus.push_back(read_gpu(g, static_cast<int>(p.gpus.size())));
    return p;
  }

 private:
  gpu read_gpu(const json& from, int rank) {
    const std::string where = "GPU " + std::to_string(rank);
    if (number_of(from, "id", where) != rank)
      refuse_text(where, "its id is another one", "List the GPUs in their order from 0.");
    gpu g;
    const auto chunks = [&](const char* name) {
      return static_cast<std::uint64_t>(number_of(from, name, where, chunks_allowed));
    };
    g.inputs = chunks("input_chunks");
    g.outputs = chunks("output_chunks");
    g.scratch = chunks("scratch_chunks");
    for (const json& s : list_of(from, "semaphores", where))
      g.semaphores.push_back(number_of(s, "init_value", where));
    m_rank = rank;
    m_access = read_access(from, where);
    for (const json& b : list_of(from, "threadblocks", where)) {
      const std::string block = where + ", thread block " + std::to_string(g.blocks.size());
      if (static_cast<std::size_t>(number_of(b, "id", block)) != g.blocks.size())
        refuse_text(block, "its id is another one",
                    "List the thread blocks in their order from 0.");
      g.blocks.push_back(read_block(b, block));
    }
    return g;
  }

  int rank_in(const json& value, const std::string& where) const {
    const int rank = number(value, "rank", where, ranks_allowed);
    if (rank >= m_ranks) refuse_text(where, "there is no GPU " + std::to_string(rank));
    return rank;
  }

  access read_access(const json& from, const std::string& where) const {
    access r;
    std::map<std::pair<std::string, int>, int> connections;
    for (const json& c : list_of(from, "channels", where)) {
      const std::string type = text_of(c, "channel_type", where);
      for (const json& peer : list_of(c, "connected_to", where)) {
        const int other = rank_in(peer, where);
        r.channels[type].push_back({other, type, connections[{type, other}]++});
      }
      for (const json& g : list_of(c, "rank_groups", where)) {
        // Older plans have the other name.
        const char* name = find(c, "buffer_type") ? "buffer_type" : "buff";
        access::group group{buffer_of(c, name, where), {}};
        for (const json& peer : list_of(g, "ranks", where))
          group.ranks.push_back(rank_in(peer, where));
        if (group.ranks.empty()) refuse_text(where, "a switch connects no GPUs");
        r.switches.push_back(std::move(group));
      }
    }
    for (const json& b : list_of(from, "remote_buffers", where))
      r.remote.push_back({rank_in(need(b, "rank", where), where), buffer_of(b, "type", where)});
    return r;
  }

  /// What a thread block calls by its own numbers.
  struct block_names {
    std::map<std::string, std::vector<int>> channels, buffers;
  };
  static int named(const std::map<std::string, std::vector<int>>& names, const std::string& type,
                   int n, const std::string& where) {
    const auto list = names.find(type);
    if (list == names.end() || static_cast<std::size_t>(n) >= list->second.size())
      refuse_text(where,
                  "its thread block has no " + type + " channel or buffer " + std::to_string(n));
    return list->second[static_cast<std::size_t>(n)];
  }

  std::vector<operation> read_block(const json& from, const std::string& where) {
    block_names names;
    for (const json& c : list_of(from, "channels", where))
      for (const json& id : list_of(c, "channel_ids", where))
        names.channels[text_of(c, "channel_type", where)].push_back(
            number(id, "channel_ids", where, numbers_allowed));
    for (const json& b : list_of(from, "remote_buffer_refs", where))
      for (const json& id : list_of(b, "remote_buffer_ids", where))
        names.buffers[text_of(b, "access_channel_type", where)].push_back(
            number(id, "remote_buffer_ids", where, numbers_allowed));
    std::vector<operation> all;
    std::size_t n = 0;
    for (const json& o : list_of(from, "ops", where)) {
      const std::string location = where + ", operation " + std::to_string(n++);
      if (text_of(o, "name", location) != "pipeline") {
        add(all, read_operation(o, names, location));
        continue;
      }
      for (int i = 0; i < iterations; ++i)
        for (const json& inner : list_of(o, "ops", location)) {
          operation op = read_operation(inner, names, location);
          op.iteration = i;
          op.iterations = iterations;
          add(all, std::move(op));
        }
    }
    return all;
  }
  void add(std::vector<operation>& to, operation o) {
    if (++m_operations > max_operations)
      refuse_text(o.where, "there are more than " + std::to_string(max_operations) + " operations",
                  "Give a smaller plan.");
    to.push_back(std::move(o));
  }

  operation read_operation(const json& from, const block_names& names, const std::string& where) {
    operation o;
    o.name = text_of(from, "name", where);
    o.where = where + " (" + o.name + ")";
    const std::string type =
        find(from, "channel_type") ? text_of(from, "channel_type", where) : "none";
    for (const json& id : list_of(from, "channel_ids", where)) {
      const int channel =
          named(names.channels, type, number(id, "channel_ids", where, numbers_allowed), where);
      if (type == "switch") continue;
      const auto& ends = m_access.channels[type];
      if (static_cast<std::size_t>(channel) >= ends.size())
        refuse_text(where, "its GPU has no " + type + " channel " + std::to_string(channel));
      o.channels.push_back(ends[static_cast<std::size_t>(channel)]);
    }
    for (const json& b : list_of(from, "src_buff", where))
      o.from.push_back(read_buffer(b, names, type, where));
    for (const json& b : list_of(from, "dst_buff", where))
      o.to.push_back(read_buffer(b, names, type, where));
    for (const json& s : list_of(from, "semaphore_ids", where))
      o.semaphores.push_back(number(s, "semaphore_ids", where, numbers_allowed));
    if (find(from, "barrier_id")) {
      o.barrier = number_of(from, "barrier_id", where);
      o.barrier_blocks = number_of(from, "num_threadblocks", where);
    }
    if (const json* group = find(from, "tbg_info")) {
      o.slices = number_of(*group, "tbg_size", where, slices_allowed);
      o.slice = number_of(*group, "tb_id", where, {0, o.slices - 1});
    }
    return o;
  }

  buffer_range read_buffer(const json& from, const block_names& names, const std::string& type,
                           const std::string& where) const {
    buffer_range b;
    b.chunk = static_cast<std::uint64_t>(number_of(from, "index", where, chunks_allowed));
    b.chunks = static_cast<std::uint64_t>(number_of(from, "size", where, {1, chunks_allowed.high}));
    if (find(from, "buffer_id")) {
      const int id = named(names.buffers, type, number_of(from, "buffer_id", where), where);
      if (static_cast<std::size_t>(id) >= m_access.remote.size())
        refuse_text(where, "its GPU has no remote buffer " + std::to_string(id));
      const auto& there = m_access.remote[static_cast<std::size_t>(id)];
      b.type = there.type;
      b.ranks = {there.rank};
      b.remote = true;
    } else if (find(from, "switch_channel_id")) {
      const int id =
          named(names.channels, "switch", number_of(from, "switch_channel_id", where), where);
      if (static_cast<std::size_t>(id) >= m_access.switches.size())
        refuse_text(where, "its GPU has no switch channel " + std::to_string(id));
      const auto& there = m_access.switches[static_cast<std::size_t>(id)];
      b.type = there.type;
      b.ranks = there.ranks;
      b.remote = true;
    } else {
      b.type = buffer_of(from, "type", where);
      b.ranks = {m_rank};
    }
    return b;
  }

  const json& m_root;
  int m_ranks = 0, m_rank = 0;
  access m_access;
  std::size_t m_operations = 0;
};

}  // namespace

plan_text parse(std::string_view text) {
  const bool bearable = text.size() <= max_json_bytes && !base::nests_deeper(text, max_depth);
  const json root = bearable ? json::parse(text, nullptr, false) : json();
  if (!root.is_object())
    base::fail(
        errc::invalid_argument,
        "the text is no JSON of an execution plan of at most " + base::print_bytes(max_json_bytes),
        "Give a plan as MSCCL++'s tools write it.");
  return reader(root).run();
}

}  // namespace sucl::plan::mscclpp
