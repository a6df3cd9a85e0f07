// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/verify/check_form.hpp"

#include "plan/serialization/text.hpp"

namespace sucl::plan {
namespace {

struct address {
  space where = space::none;
  std::uint64_t offset = 0;
};

// Whether a rank has an outcome, without listing it where all ranks have one: that would take as
// many steps as there are pairs of ranks.
bool gets_something(const problem& p, int rank) {
  const bool all = p.kind == kind::allreduce || p.kind == kind::allgather ||
                   p.kind == kind::alltoall || p.kind == kind::reduce_scatter_block;
  if (all) return p.counts[0] > 0;
  bool something = false;
  for_each_outcome(p, rank, [&](const piece&) { something = true; });
  return something;
}

// Checks one instruction at a time; remembers the sizes of all spaces.
class form_checker {
 public:
  explicit form_checker(const schedule& s) : m_schedule(s) {
    for (int r = 0; r < s.what.ranks; ++r) {
      m_sizes.push_back(send_bytes(s.what, r));
      m_sizes.push_back(recv_bytes(s.what, r));
      m_sizes.push_back(s.ranks[static_cast<std::size_t>(r)].scratch_bytes);
      m_writable.push_back(gets_something(s.what, r));
    }
  }

  // What is wrong with instruction `i` of `rank`, or fault::none.
  fault check(int rank, const instruction& i) {
    m_why = nullptr;
    m_address = {};
    fault f = check_fields(rank, i);
    if (f == fault::none && has_memory(i.op)) f = check_memory(rank, i);
    return f;
  }

  const char* why() const { return m_why; }
  address where() const { return m_address; }

 private:
  static bool has_memory(opcode op) { return op <= opcode::get; }

  fault bad(fault f, const char* why, address p = {}) {
    m_why = why;
    m_address = p;
    return f;
  }

  fault check_fields(int rank, const instruction& i) {
    const auto malformed = [&](const char* why) { return bad(fault::malformed, why); };
    if (static_cast<int>(i.op) >= opcode_count) return malformed("there is no such instruction");
    if (i.level >= m_schedule.levels.size()) return malformed("there is no such level");
    const bool remote = is_remote(i.dst) || is_remote(i.src);
    const bool local_only = i.op <= opcode::reduce && !remote;
    if (i.op == opcode::fence || local_only) {
      if (i.peer != -1) return malformed("it has a peer, which it does not use");
    } else if (i.peer < 0 || i.peer >= m_schedule.what.ranks) {
      return malformed("its peer does not exist");
    } else if (i.peer == rank && i.op != opcode::signal && i.op != opcode::wait) {
      return malformed("its peer is the rank itself");
    }
    if (!spaces_fit(i)) return malformed("it cannot work on these spaces");
    if ((i.dst == space::none && i.op != opcode::signal && i.op != opcode::wait &&
         i.dst_offset != 0) ||
        (i.src == space::none && i.src_offset != 0) ||
        (!has_memory(i.op) && i.op != opcode::fence && i.bytes != 0))
      return malformed("a field that it does not use is not zero");
    return fault::none;
  }

  static bool spaces_fit(const instruction& i) {
    const auto local = [](space s) { return s != space::none && !is_remote(s); };
    if (static_cast<int>(i.dst) >= space_count || static_cast<int>(i.src) >= space_count)
      return false;
    switch (i.op) {
      case opcode::copy:
      case opcode::reduce:
        return i.dst != space::none && i.src != space::none &&
               !(is_remote(i.dst) && is_remote(i.src));
      case opcode::send: return i.dst == space::none && local(i.src);
      case opcode::receive: return local(i.dst) && i.src == space::none;
      case opcode::put: return is_remote(i.dst) && local(i.src);
      case opcode::get: return local(i.dst) && is_remote(i.src);
      default: return i.dst == space::none && i.src == space::none;
    }
  }

  fault check_memory(int rank, const instruction& i) {
    if (i.bytes == 0) return bad(fault::malformed, "its length is zero");
    for (const address p : {address{i.dst, i.dst_offset}, address{i.src, i.src_offset}}) {
      if (p.where == space::none) continue;
      const int owner = is_remote(p.where) ? i.peer : rank;
      const std::uint64_t size = m_sizes[static_cast<std::size_t>(owner) * 3 +
                                         static_cast<std::size_t>(local_form(p.where)) - 1];
      if (i.bytes > size || p.offset > size - i.bytes)
        return bad(fault::out_of_bounds, "the space ends before that", p);
    }
    if (i.dst != space::none) {
      const space written = local_form(i.dst);
      const int owner = is_remote(i.dst) ? i.peer : rank;
      if (written == space::send ||
          (written == space::recv && !m_writable[static_cast<std::size_t>(owner)]))
        return bad(fault::read_only, "it may not be written", {i.dst, i.dst_offset});
    }
    const std::uint64_t element = m_schedule.what.element_bytes;
    if (i.op == opcode::reduce &&
        (i.dst_offset % element != 0 || i.src_offset % element != 0 || i.bytes % element != 0))
      return bad(fault::malformed, "it does not reduce whole elements", {i.dst, i.dst_offset});
    const bool both = i.op <= opcode::reduce && i.dst == i.src;
    if (both && i.dst_offset < i.src_offset + i.bytes && i.src_offset < i.dst_offset + i.bytes)
      return bad(fault::malformed, "source and destination overlap", {i.dst, i.dst_offset});
    return fault::none;
  }

  const schedule& m_schedule;
  std::vector<std::uint64_t> m_sizes;  // send, recv, scratch of each rank
  std::vector<bool> m_writable;        // recv of each rank
  const char* m_why = nullptr;
  address m_address;
};

verdict whole(const std::string& why) {
  verdict v;
  v.what = fault::malformed;
  v.message = "malformed: " + why;
  return v;
}

verdict at(const schedule& s, const form_checker& form, fault f, std::size_t rank,
           std::size_t channel, std::size_t index) {
  const instruction& i = s.ranks[rank].channels[channel][index];
  verdict v;
  v.what = f;
  v.rank = static_cast<int>(rank);
  v.channel = static_cast<int>(channel);
  v.instruction = static_cast<std::int64_t>(index);
  v.where = form.where().where;
  v.offset = form.where().offset;
  v.bytes = v.where == space::none ? 0 : i.bytes;
  v.message = std::string(name(f)) + ": rank " + std::to_string(rank) + ", channel " +
              std::to_string(channel) + ", instruction " + std::to_string(index) + " (" +
              to_text(i) + "): " + form.why();
  return v;
}

}  // namespace

verdict check_form(const schedule& s) {
  if (s.ranks.size() != static_cast<std::size_t>(s.what.ranks))
    return whole("there are " + std::to_string(s.ranks.size()) + " programs for " +
                 std::to_string(s.what.ranks) + " ranks");
  if (s.levels.empty() || s.levels.size() > max_levels)
    return whole("there are " + std::to_string(s.levels.size()) + " levels");
  form_checker form(s);
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const auto& channels = s.ranks[r].channels;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      for (std::size_t k = 0; k < channels[c].size(); ++k) {
        const fault f = form.check(static_cast<int>(r), channels[c][k]);
        if (f != fault::none) return at(s, form, f, r, c, k);
      }
    }
  }
  return {};
}

}  // namespace sucl::plan
