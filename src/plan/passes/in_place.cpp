// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::plan {
namespace {

// Where each rank's input lies instead of in send.
struct input_address {
  space where;
  std::uint64_t offset;
};

// Flags above all that the schedule uses, for channels that wait for the staged copy.
std::uint64_t free_flag(const schedule& s) {
  std::uint64_t flag = 0;
  for (const program& p : s.ranks)
    for (const channel& c : p.channels)
      for (const instruction& i : c)
        if (i.op == opcode::signal || i.op == opcode::wait) flag = std::max(flag, i.dst_offset + 1);
  return flag;
}

void redirect(space& where, std::uint64_t& offset, const std::vector<input_address>& inputs,
              std::size_t rank, std::int32_t peer) {
  if (local_form(where) != space::send) return;
  const input_address& in = inputs[is_remote(where) ? static_cast<std::size_t>(peer) : rank];
  where = is_remote(where) ? remote_form(in.where) : in.where;
  offset += in.offset;
}

void redirect_all(schedule& s, const std::vector<input_address>& inputs) {
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    for (channel& c : s.ranks[r].channels) {
      for (instruction& i : c) redirect(i.src, i.src_offset, inputs, r, i.peer);
      std::erase_if(c, [](const instruction& i) {
        return i.op == opcode::copy && i.src == i.dst && i.src_offset == i.dst_offset &&
               !is_remote(i.src);
      });
    }
  }
}

// Each rank's channel 0 copies the input, which is in send or in recv, to scratch; the others wait
// for it.
schedule staged(schedule s, space from) {
  const std::uint64_t flag = free_flag(s);
  const std::uint64_t step = std::lcm(s.what.element_bytes, std::uint64_t{16});
  std::vector<input_address> inputs;
  for (program& p : s.ranks) {
    inputs.push_back({space::scratch, (p.scratch_bytes + step - 1) / step * step});
  }
  redirect_all(s, inputs);
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    program& p = s.ranks[r];
    const extent in = input_extent(s.what, static_cast<int>(r));
    if (in.bytes == 0 || p.channels.empty()) continue;
    p.scratch_bytes = inputs[r].offset + in.bytes;
    const std::uint64_t offset = from == space::recv ? in.offset : 0;
    channel start{{opcode::copy, space::scratch, from, 0, -1, inputs[r].offset, offset, in.bytes}};
    for (std::size_t c = 1; c < p.channels.size(); ++c) {
      const auto self = static_cast<std::int32_t>(r);
      start.push_back({opcode::signal, space::none, space::none, 0, self, flag + c, 0, 0});
      p.channels[c].insert(p.channels[c].begin(),
                           {opcode::wait, space::none, space::none, 0, self, flag + c, 0, 0});
    }
    p.channels[0].insert(p.channels[0].begin(), start.begin(), start.end());
  }
  return s;
}

// The same schedule, which reads its input from recv.
schedule redirected(schedule s) {
  s.what.in_place = true;
  std::vector<input_address> inputs;
  for (int r = 0; r < s.what.ranks; ++r)
    inputs.push_back({space::recv, input_extent(s.what, r).offset});
  redirect_all(s, inputs);
  return s;
}

// With a scatter in place the root's own block stays where it is.
void drop_own_block(schedule& s) {
  if (s.what.kind != kind::scatter && s.what.kind != kind::scatterv) return;
  for (channel& c : s.ranks[static_cast<std::size_t>(s.what.root)].channels)
    std::erase_if(c, [](const instruction& i) {
      return i.op == opcode::copy && i.dst == space::recv && i.src == space::send;
    });
}

}  // namespace

schedule make_in_place(schedule s) {
  drop_own_block(s);
  schedule direct = redirected(s);
  if (verify(direct)) return direct;
  s.what.in_place = true;
  return staged(std::move(s), space::recv);
}

schedule take_input_first(schedule s) { return staged(std::move(s), space::send); }

bool serves_in_place(const schedule& s, entry how) {
  schedule apart = s;
  drop_own_block(apart);
  return static_cast<bool>(verify(redirected(apart), how));
}

}  // namespace sucl::plan
