// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace sucl::plan {
namespace {

// A message, as both of its ends see it.
struct end_point {
  std::size_t index = 0;   // of the instruction in its channel
  std::size_t window = 0;  // grows with everything that is no posted transfer
  bool plain = false;      // the fence that ends the window leaves nothing unfinished
};

struct message {
  end_point out, in;
  std::uint64_t bytes = 0;
};

using message_key =
    std::tuple<std::size_t, std::size_t, std::size_t, int>;  // from, to, channel, level
using messages_by_key = std::map<message_key, std::vector<message>>;

// Finds all messages, in the order in which they match.
messages_by_key messages_of(const schedule& s) {
  messages_by_key all;
  for (const bool sending : {true, false}) {
    std::map<message_key, std::size_t> seen;
    for (std::size_t r = 0; r < s.ranks.size(); ++r) {
      for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
        const channel& code = s.ranks[r].channels[c];
        std::size_t window = 0;
        for (std::size_t k = 0; k < code.size(); ++k) {
          const instruction& i = code[k];
          if (!is_posted(i.op)) ++window;
          if (i.op != (sending ? opcode::send : opcode::receive)) continue;
          std::size_t stop = k;
          while (stop < code.size() && is_posted(code[stop].op)) ++stop;
          const bool plain =
              stop < code.size() && code[stop].op == opcode::fence && code[stop].bytes == 0;
          const auto peer = static_cast<std::size_t>(i.peer);
          const message_key l =
              sending ? message_key{r, peer, c, i.level} : message_key{peer, r, c, i.level};
          auto& list = all[l];
          const std::size_t n = seen[l]++;
          if (list.size() <= n) list.resize(n + 1);
          (sending ? list[n].out : list[n].in) = {k, window, plain};
          list[n].bytes = i.bytes;
        }
      }
    }
  }
  return all;
}

// What is done to the instructions of one channel.
struct edits {
  std::map<std::size_t, channel> replaced;  // by these instead
  std::map<std::size_t, channel> after;     // and these follow
};

class fuser {
 public:
  explicit fuser(schedule s)
      : m_schedule(std::move(s)),
        m_unit(std::lcm(m_schedule.what.element_bytes, std::uint64_t{16})) {}

  schedule run(std::uint64_t most) {
    for (const auto& [l, list] : messages_of(m_schedule)) {
      for (std::size_t first = 0; first < list.size();) {
        std::size_t last = first + 1;
        while (last < list.size() && fits(list[first], list[last], most)) ++last;
        if (last - first > 1 && fits(list[first], list[first], most))
          fuse(l, {list.begin() + static_cast<std::ptrdiff_t>(first),
                   list.begin() + static_cast<std::ptrdiff_t>(last)});
        first = last;
      }
    }
    apply();
    return std::move(m_schedule);
  }

 private:
  static bool fits(const message& a, const message& b, std::uint64_t most) {
    return a.bytes <= most && b.bytes <= most && a.out.window == b.out.window &&
           a.in.window == b.in.window && a.out.plain && a.in.plain;
  }

  channel& code(std::size_t rank, std::size_t c) { return m_schedule.ranks[rank].channels[c]; }

  std::uint64_t take_scratch(std::size_t rank, std::uint64_t bytes) {
    std::uint64_t& size = m_schedule.ranks[rank].scratch_bytes;
    const std::uint64_t at = (size + m_unit - 1) / m_unit * m_unit;
    size = at + bytes;
    return at;
  }

  // One end of fused messages: one transfer in place of the first, nothing in place of the others,
  // and copies where the data does not lie in one run.
  void fuse_end(std::size_t rank, std::size_t c, const std::vector<std::size_t>& where,
                std::uint64_t total) {
    channel& code_here = code(rank, c);
    const bool sending = code_here[where[0]].op == opcode::send;
    const auto at = [&](std::size_t k) {
      const instruction& i = code_here[k];
      return std::pair(sending ? i.src : i.dst, sending ? i.src_offset : i.dst_offset);
    };
    bool one_run = true;
    std::uint64_t end = at(where[0]).second;
    for (const std::size_t k : where) {
      one_run = one_run && at(k) == std::pair(at(where[0]).first, end);
      end += code_here[k].bytes;
    }
    instruction whole = code_here[where[0]];
    whole.bytes = total;
    channel first;
    edits& here = m_edits[{rank, c}];
    if (!one_run) {
      const std::uint64_t staging = take_scratch(rank, total);
      (sending ? whole.src : whole.dst) = space::scratch;
      (sending ? whole.src_offset : whole.dst_offset) = staging;
      std::size_t fence = where[0];
      while (code_here[fence].op != opcode::fence) ++fence;
      channel& copies = sending ? first : here.after[fence];
      std::uint64_t offset = staging;
      for (const std::size_t k : where) {
        const auto [user, user_offset] = at(k);
        copies.push_back({opcode::copy, sending ? space::scratch : user,
                          sending ? user : space::scratch, whole.level, -1,
                          sending ? offset : user_offset, sending ? user_offset : offset,
                          code_here[k].bytes});
        offset += code_here[k].bytes;
      }
    }
    first.push_back(whole);
    here.replaced[where[0]] = std::move(first);
    for (std::size_t n = 1; n < where.size(); ++n) here.replaced[where[n]] = {};
  }

  void fuse(const message_key& l, const std::vector<message>& list) {
    std::vector<std::size_t> out, in;
    std::uint64_t total = 0;
    for (const message& m : list) {
      out.push_back(m.out.index);
      in.push_back(m.in.index);
      total += m.bytes;
    }
    const auto& [from, to, c, level] = l;
    fuse_end(from, c, out, total);
    fuse_end(to, c, in, total);
  }

  void apply() {
    for (const auto& [where, e] : m_edits) {
      channel made;
      const channel& old = code(where.first, where.second);
      for (std::size_t k = 0; k < old.size(); ++k) {
        const auto r = e.replaced.find(k);
        if (r == e.replaced.end()) {
          made.push_back(old[k]);
        } else {
          made.insert(made.end(), r->second.begin(), r->second.end());
        }
        if (const auto a = e.after.find(k); a != e.after.end())
          made.insert(made.end(), a->second.begin(), a->second.end());
      }
      code(where.first, where.second) = std::move(made);
    }
  }

  schedule m_schedule;
  std::uint64_t m_unit;
  std::map<std::pair<std::size_t, std::size_t>, edits> m_edits;
};

}  // namespace

schedule fuse_messages(schedule s, std::uint64_t bytes) { return fuser(std::move(s)).run(bytes); }

}  // namespace sucl::plan
