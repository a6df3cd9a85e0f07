// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symmetric/symmetric.hpp"

#include "base/error.hpp"
#include "plan/ir/builder.hpp"
#include "plan/serialization/text.hpp"

#include <algorithm>
#include <utility>

namespace sucl::plan {
namespace {

// The offset on another rank of what lies at `offset` on rank 0.
std::uint64_t moved(const symmetric_schedule& s, space where, std::uint64_t offset,
                    std::uint64_t bytes, bool in_place, int by) {
  if (where == space::none) return offset;
  const cells_at at = cells_of(s, where, offset, bytes);
  if (!at.in)
    base::fail(errc::invalid_argument, "an instruction has no translation to other ranks",
               "Prove the plan first.");
  if (in_place) return offset;
  // Cells that differ only in the inner dimensions stay together.
  const std::uint64_t to = translated(s.ranks, *at.in, at.first, by);
  return at.in->offset + to / at.count * at.count * at.in->cell;
}

bool reads_in_place(const symmetric_schedule& s, const instruction& i) {
  if (i.op != opcode::copy && i.op != opcode::reduce) return false;
  const cells_at at = cells_of(s, i.src, i.src_offset, i.bytes);
  return at.in && at.in->folded;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

}  // namespace

cells_at cells_of(const symmetric_schedule& s, space where, std::uint64_t offset,
                  std::uint64_t bytes) {
  const auto after = std::upper_bound(
      s.regions.begin(), s.regions.end(), std::pair(where, offset),
      [](const auto& at, const region& r) { return at < std::pair(r.where, r.offset); });
  if (after == s.regions.begin()) return {};
  const region& r = *std::prev(after);
  if (r.where != where || bytes == 0 || bytes > r.end() - std::min(offset, r.end())) return {};
  if ((offset - r.offset) % r.cell != 0 || bytes % r.cell != 0) return {};
  cells_at at{&r, (offset - r.offset) / r.cell, bytes / r.cell, 0};
  std::uint64_t inner = 1;
  for (std::size_t d = r.dimensions.size(); d-- > 0 && inner < at.count; ++at.inner)
    inner *= static_cast<std::uint64_t>(s.ranks.radix(r.dimensions[d]));
  if (inner != at.count || at.first % inner != 0) return {};
  return at;
}

std::uint64_t translated(const digits& ranks, const region& in, std::uint64_t cell, int by) {
  std::uint64_t result = 0, stride = 1;
  for (std::size_t d = in.dimensions.size(); d-- > 0;) {
    const auto radix = static_cast<std::uint64_t>(ranks.radix(in.dimensions[d]));
    const auto step = static_cast<std::uint64_t>(ranks.digit(by, in.dimensions[d]));
    result += (cell / stride + step) % radix * stride;
    stride *= radix;
  }
  return result;
}

program program_of(const symmetric_schedule& s, int rank) {
  program p;
  p.scratch_bytes = s.scratch_bytes;
  p.channels = s.channels;
  for (channel& c : p.channels)
    for (instruction& i : c) {
      if (i.peer >= 0) i.peer = s.ranks.add(i.peer, rank);
      if (i.op == opcode::signal || i.op == opcode::wait || i.op == opcode::fence) continue;
      i.src_offset = moved(s, i.src, i.src_offset, i.bytes, reads_in_place(s, i), rank);
      i.dst_offset = moved(s, i.dst, i.dst_offset, i.bytes, false, rank);
    }
  return p;
}

std::uint64_t instruction_count(const symmetric_schedule& s) {
  std::uint64_t n = 0;
  for (const channel& c : s.channels) n += c.size();
  return n * static_cast<std::uint64_t>(s.ranks.ranks());
}

schedule expand(const symmetric_schedule& s) {
  if (instruction_count(s) > max_instructions)
    base::fail(errc::out_of_memory,
               "the plan has more than " + std::to_string(max_instructions / 1'000'000) +
                   " million instructions",
               "Take fewer ranks, or a plan with fewer messages.");
  schedule all{s.what, s.algorithm, s.levels, {}};
  for (int r = 0; r < s.ranks.ranks(); ++r) all.ranks.push_back(program_of(s, r));
  return all;
}

std::uint64_t hash(const symmetric_schedule& s) {
  schedule first{s.what, {}, s.levels, {}};
  first.ranks.resize(1);
  first.ranks[0] = {s.scratch_bytes, s.channels};
  std::uint64_t h = hash(first);
  for (int d = 0; d < s.ranks.count(); ++d)
    h = mix(h, static_cast<std::uint64_t>(s.ranks.radix(d)));
  for (const region& r : s.regions) {
    h = mix(mix(mix(h, r.offset), r.cell), static_cast<std::uint64_t>(r.where) << 1 | r.folded);
    for (const int d : r.dimensions) h = mix(h, static_cast<std::uint64_t>(d));
  }
  return h;
}

verdict prove(const schedule& s, const symmetric_schedule& claim) {
  verdict v = prove(claim);
  if (!v) return v;
  const auto wrong = [&](int rank, const std::string& why) {
    verdict w;
    w.what = fault::malformed;
    w.rank = rank;
    w.message = std::string(name(w.what)) + ": rank " + std::to_string(rank) + why;
    return w;
  };
  if (s.what != claim.what || s.levels != claim.levels ||
      s.ranks.size() != static_cast<std::size_t>(claim.ranks.ranks()))
    return wrong(0, ": the plan is of another collective, or of other levels or ranks");
  for (int r = 0; r < claim.ranks.ranks(); ++r) {
    const program& found = s.ranks[static_cast<std::size_t>(r)];
    const program expected = program_of(claim, r);
    if (found == expected) continue;
    for (std::size_t c = 0; c < std::min(found.channels.size(), expected.channels.size()); ++c) {
      const auto& a = found.channels[c];
      const auto& b = expected.channels[c];
      const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      if (at.first == a.end() && at.second == b.end()) continue;
      verdict w =
          wrong(r, ", channel " + std::to_string(c) + ", instruction " +
                       std::to_string(at.first - a.begin()) +
                       (at.first == a.end() ? " is missing" : " (" + to_text(*at.first) + ")") +
                       ": the program is not that of rank 0, translated");
      w.channel = static_cast<int>(c);
      w.instruction = at.first - a.begin();
      return w;
    }
    return wrong(r, ": its channels or its scratch are not those of rank 0");
  }
  return v;
}

}  // namespace sucl::plan
