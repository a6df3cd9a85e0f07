// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/argument_comparison.hpp"

#include "core/operation/operation.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t groups_shown = 8;

const char* const rules_hint =
    "Every rank of a communicator must issue the same collectives in the same order with matching "
    "arguments.";

struct field {
  const char* name;
  bool (*matters)(sucl_kind kind);
  std::function<std::string(const digest&)> text;
};

bool always(sucl_kind) { return true; }
bool moves_data(sucl_kind k) { return k != SUCL_KIND_BARRIER; }
bool has_op(sucl_kind k) { return reduces(static_cast<kind>(k)); }
bool has_root(sucl_kind k) { return rooted(static_cast<kind>(k)); }
bool same_count(sucl_kind k) { return moves_data(k) && !has_counts(k); }
// With a root, only the root's buffers show whether it works in place.
bool same_in_place(sucl_kind k) { return moves_data(k) && !has_root(k); }

// The arguments that are compared. The first one that differs is reported, so those that explain
// most come first.
const std::vector<field>& fields() {
  static const std::vector<field> table{
      {"origin", always,
       [](const digest& d) {
         const std::string number = std::to_string(d.tag >> 3);
         if (origin_of(d.tag) == origin::replay)
           return "replayed (recorded operation " + number + ")";
         return d.tag ? "called after " + number + " recorded" : std::string("called");
       }},
      {"kind", always,
       [](const digest& d) {
         return d.kind == SUCL_KIND_BARRIER ? describe_barrier(d.plan)
                                            : std::string(name(static_cast<kind>(d.kind)));
       }},
      {"type", moves_data,
       [](const digest& d) { return std::string(name(static_cast<type>(d.type))); }},
      {"element size", moves_data,
       [](const digest& d) { return std::to_string(d.element_size) + " bytes"; }},
      {"op", has_op, [](const digest& d) { return std::string(name(static_cast<op>(d.op))); }},
      {"form", always,
       [](const digest& d) { return std::string(d.blocking ? "blocking" : "asynchronous"); }},
      {"root", has_root, [](const digest& d) { return std::to_string(d.root); }},
      {"in place", same_in_place,
       [](const digest& d) { return std::string(d.flags & SUCL_FLAG_IN_PLACE ? "yes" : "no"); }},
      {"count", same_count, [](const digest& d) { return std::to_string(d.count); }},
  };
  return table;
}

// "100 on ranks 0,2-5; 101 on rank 1", or "" if all ranks say the same.
std::string differences(const std::vector<digest>& all,
                        const std::function<std::string(const digest&)>& text) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  std::map<std::string, std::size_t> index;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto [at, fresh] = index.emplace(text(all[r]), groups.size());
    if (fresh) groups.emplace_back(at->first, std::vector<int>{});
    groups[at->second].second.push_back(static_cast<int>(r));
  }
  if (groups.size() < 2) return {};
  std::string result;
  for (std::size_t g = 0; g < std::min(groups.size(), groups_shown); ++g)
    result += (g == 0 ? "" : "; ") + groups[g].first + " on " + ranks_text(groups[g].second);
  if (groups.size() > groups_shown)
    result += "; and " + std::to_string(groups.size() - groups_shown) + " more values";
  return result;
}

// Sends and receives have sequence numbers too, so those of one collective may differ by rank.
std::string title(const std::vector<digest>& all, std::uint64_t ordinal, std::uint64_t comm) {
  const bool same = std::all_of(
      all.begin(), all.end(), [&](const digest& d) { return d.sequence == all.front().sequence; });
  return "collective " + std::to_string(ordinal) + " of communicator " + std::to_string(comm) +
         (same ? " (operation #" + std::to_string(all.front().sequence) + ")" : "");
}

error_info problem(errc code, std::string message) {
  error_info info;
  info.code = code;
  info.message = std::move(message);
  info.hint = rules_hint;
  return info;
}

// Ranks whose own arguments are wrong, by message; all get the error of the first.
std::optional<error_info> local_problem(const std::vector<digest>& all, const std::string& where) {
  const auto first = std::find_if(all.begin(), all.end(),
                                  [](const digest& d) { return d.status != SUCL_SUCCESS; });
  if (first == all.end()) return std::nullopt;
  std::vector<int> ranks;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].status == first->status && std::strcmp(all[r].message, first->message) == 0)
      ranks.push_back(static_cast<int>(r));
  error_info info =
      problem(static_cast<errc>(first->status),
              where + " has a wrong argument on " + ranks_text(ranks) + ": " + first->message);
  info.hint = "Correct the call on the ranks named.";
  return info;
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i == 0 ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ",") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

digest make_digest(const issued& call, const error_info* wrong) {
  const sucl_operation& op = *call.op;
  digest result{};
  result.sequence = op.sequence;
  result.element_size = op.element_size;
  result.count = op.count;
  result.plan = op.kind == SUCL_KIND_BARRIER ? op.plan : 0;
  result.kind = op.kind;
  result.type = op.type;
  result.op = op.op;
  result.blocking = is_blocking(op);
  result.tag = op.tag & ~1;
  result.root = op.root;
  result.flags = op.flags;
  if (wrong) {
    result.status = static_cast<std::int32_t>(wrong->code);
    wrong->message.copy(result.message, sizeof result.message - 1);
  }
  return result;
}

std::optional<error_info> compare(const std::vector<digest>& all, std::uint64_t ordinal,
                                  std::uint64_t comm) {
  const std::string where = title(all, ordinal, comm);
  if (auto local = local_problem(all, where)) return local;
  for (const field& f : fields()) {
    // Once the kinds agree, any rank's kind decides which of the other fields matter.
    if (!f.matters(all.front().kind)) continue;
    const std::string found = differences(all, f.text);
    if (!found.empty())
      return problem(errc::mismatch,
                     where + " differs between ranks: " + std::string(f.name) + ": " + found);
  }
  return std::nullopt;
}

bool has_counts(sucl_kind k) {
  return k == SUCL_KIND_REDUCE_SCATTER || k == SUCL_KIND_ALLGATHERV || k == SUCL_KIND_ALLTOALLV ||
         k == SUCL_KIND_GATHERV || k == SUCL_KIND_SCATTERV;
}

std::vector<std::uint64_t> counts_of(const issued& call) {
  const sucl_operation& op = *call.op;
  const int size = call.size;
  const bool in_place = op.flags & SUCL_FLAG_IN_PLACE;
  const bool root = call.rank == op.root;
  std::vector<std::uint64_t> result(2 * static_cast<std::size_t>(size));
  const auto sends = result.begin();
  const auto expects = result.begin() + size;
  switch (op.kind) {
    case SUCL_KIND_REDUCE_SCATTER:
      std::copy_n(op.recv_counts, size, sends);
      std::fill_n(expects, size, op.recv_counts[call.rank]);
      break;
    case SUCL_KIND_ALLGATHERV:
      std::fill_n(sends, size, in_place ? op.recv_counts[call.rank] : op.count);
      std::copy_n(op.recv_counts, size, expects);
      break;
    case SUCL_KIND_ALLTOALLV:
      std::copy_n(in_place ? op.recv_counts : op.send_counts, size, sends);
      std::copy_n(op.recv_counts, size, expects);
      break;
    case SUCL_KIND_GATHERV:
      sends[op.root] = root && in_place ? op.recv_counts[call.rank] : op.count;
      if (root) std::copy_n(op.recv_counts, size, expects);
      break;
    case SUCL_KIND_SCATTERV:
      expects[op.root] = root && in_place ? op.send_counts[call.rank] : op.count;
      if (root) std::copy_n(op.send_counts, size, sends);
      break;
    default: break;
  }
  return result;
}

std::optional<error_info> compare_counts(const std::vector<digest>& all,
                                         const std::vector<std::uint64_t>& counts,
                                         std::uint64_t ordinal, std::uint64_t comm) {
  const std::size_t size = all.size();
  for (std::size_t from = 0; from < size; ++from) {
    for (std::size_t to = 0; to < size; ++to) {
      const std::uint64_t sent = counts[from * 2 * size + to];
      const std::uint64_t expected = counts[to * 2 * size + size + from];
      if (sent == expected) continue;
      return problem(errc::mismatch, title(all, ordinal, comm) +
                                         " differs between ranks: counts of " +
                                         name(static_cast<kind>(all.front().kind)) + ": rank " +
                                         std::to_string(from) + " gives " + std::to_string(sent) +
                                         " elements to rank " + std::to_string(to) +
                                         ", which expects " + std::to_string(expected));
    }
  }
  return std::nullopt;
}

}  // namespace sucl::core
