// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symmetric/by_digits.hpp"

#include "base/error.hpp"
#include "plan/ir/builder.hpp"
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sucl::plan {
namespace {

// A region that is being written to, by number.
struct cells {
  space where = space::none;
  std::uint64_t offset = 0;
  std::uint64_t cell = 0;

  address at(std::uint64_t index) const { return {where, offset + index * cell}; }
};

std::vector<int> range_of(int first, int last) {
  std::vector<int> list(static_cast<std::size_t>(std::max(0, last - first)));
  std::iota(list.begin(), list.end(), first);
  return list;
}

std::vector<int> reversed(std::vector<int> list) {
  std::reverse(list.begin(), list.end());
  return list;
}

// Writes the program of rank 0.
class writer {
 public:
  writer(const problem& p, const by_digits_options& o)
      : m_plan{p, {}, {}, digits(o.radices), {}, 0, {}}, m_options(o) {
    for (std::size_t d = 0; d < o.radices.size(); ++d)
      m_plan.levels.push_back({"level" + std::to_string(d), o.via.empty() ? "any" : o.via[d]});
  }

  symmetric_schedule take() {
    if (m_options.stagger > 0) stagger_channels();
    std::sort(m_plan.regions.begin(), m_plan.regions.end(), [](const region& a, const region& b) {
      return std::pair(a.where, a.offset) < std::pair(b.where, b.offset);
    });
    return std::move(m_plan);
  }

  void allreduce() {
    const problem& p = m_plan.what;
    const std::uint64_t bytes = send_bytes(p, 0);
    const int split = m_options.split;
    std::uint64_t shares = 1;
    for (int i = 0; i < split; ++i) shares *= radix(count() - 1 - i);
    const auto ends = cut_evenly(bytes, p.element_bytes * shares, m_options.pipeline);
    for (std::size_t c = 0; c + 1 < ends.size(); ++c) {
      set_channel(c);
      reduce_all(split, ends[c], (ends[c + 1] - ends[c]) / shares);
    }
  }

  void allgather() {
    const std::uint64_t block = send_bytes(m_plan.what, 0);
    const cells in = add(space::send, 0, block, {});
    const cells out = add(space::recv, 0, block, range_of(0, count()));
    set_channel(0);
    if (m_options.outer_first)
      gather_outer_first(in, out, block);
    else
      gather(in, out, reversed(range_of(0, count())));
  }

  void reduce_scatter() {
    const std::uint64_t block = recv_bytes(m_plan.what, 0);
    const cells in = add(space::send, 0, block, range_of(0, count()));
    const cells out = add(space::recv, 0, block, {});
    set_channel(0);
    if (m_options.outer_first)
      scatter_inner_first(in, out, block);
    else
      scatter(in, out, range_of(0, count()));
  }

  // Along one digit after the other, the outermost first: the first digits of a cell are then those
  // of its source, the others those of its destination. What stays on a rank stays where it is.
  void alltoall() {
    const std::uint64_t block = recv_bytes(m_plan.what, 0) / ranks();
    std::vector<cells> stage{add(space::send, 0, block, range_of(0, count()))};
    for (int d = 1; d < count(); ++d) stage.push_back(add_scratch(block, range_of(0, count())));
    stage.push_back(add(space::recv, 0, block, range_of(0, count())));
    set_channel(0);
    for (int d = 0; d < count(); ++d) {
      const std::uint64_t inner = stride(d), width = inner * radix(d);
      // Where cells are whose source has these first digits.
      const auto kept = [&](std::uint64_t cell) {
        int last = d;
        while (last > 0 && m_plan.ranks.digit(static_cast<int>(cell), last - 1) == 0) --last;
        return stage[static_cast<std::size_t>(last)].at(cell);
      };
      const cells& to = stage[static_cast<std::size_t>(d) + 1];
      for (std::uint64_t x = 1; x < radix(d); ++x)
        for (std::uint64_t first = 0; first < ranks(); first += width) {
          receive(d, x, to.at(first + (radix(d) - x) * inner), inner * block);
          send(d, x, kept(first + x * inner), inner * block);
        }
      if (d + 1 == count())
        for (std::uint64_t first = 0; first < ranks(); first += width)
          copy(to.at(first), kept(first), block);
      fence();
    }
  }

 private:
  int count() const { return m_plan.ranks.count(); }
  std::uint64_t ranks() const { return static_cast<std::uint64_t>(m_plan.ranks.ranks()); }
  std::uint64_t radix(int d) const { return static_cast<std::uint64_t>(m_plan.ranks.radix(d)); }
  std::uint64_t stride(int d) const { return static_cast<std::uint64_t>(m_plan.ranks.stride(d)); }
  std::uint64_t cells_in(const std::vector<int>& dimensions) const {
    std::uint64_t n = 1;
    for (const int d : dimensions) n *= radix(d);
    return n;
  }

  // ---- regions

  cells add(space where, std::uint64_t offset, std::uint64_t cell, std::vector<int> dimensions,
            bool folded = false) {
    const std::uint64_t n = cells_in(dimensions);
    m_plan.regions.push_back({where, offset, cell, std::move(dimensions), n, folded});
    return {where, offset, cell};
  }
  cells add_scratch(std::uint64_t cell, std::vector<int> dimensions, bool folded = false) {
    const std::uint64_t step = std::lcm(m_plan.what.element_bytes, std::uint64_t{16});
    const cells at = add(space::scratch, m_plan.scratch_bytes, cell, std::move(dimensions), folded);
    m_plan.scratch_bytes = (m_plan.regions.back().end() + step - 1) / step * step;
    return at;
  }

  // ---- instructions

  void set_channel(std::size_t c) {
    m_plan.channels.resize(std::max(m_plan.channels.size(), c + 1));
    m_channel = c;
  }
  void append(const instruction& i) { m_plan.channels[m_channel].push_back(i); }
  static std::uint8_t level(int d) { return static_cast<std::uint8_t>(d); }

  // To the rank that is x farther in digit d, and from the one that is x nearer.
  void send(int d, std::uint64_t x, address from, std::uint64_t bytes) {
    append({opcode::send, space::none, from.where, level(d), static_cast<int>(x * stride(d)), 0,
            from.offset, bytes});
  }
  void receive(int d, std::uint64_t x, address to, std::uint64_t bytes) {
    append({opcode::receive, to.where, space::none, level(d),
            static_cast<int>((radix(d) - x) * stride(d)), to.offset, 0, bytes});
  }
  void copy(address to, address from, std::uint64_t bytes) {
    if (to == from) return;
    append({opcode::copy, to.where, from.where, 0, -1, to.offset, from.offset, bytes});
  }
  void reduce(address to, address from, std::uint64_t bytes) {
    append({opcode::reduce, to.where, from.where, 0, -1, to.offset, from.offset, bytes});
  }
  void fence() { append({opcode::fence, space::none, space::none, 0, -1, 0, 0, 0}); }

  // ---- patterns

  // Shares out what ranks have along these digits, the first dimension first. What the first
  // message of a step brings goes straight to `out`, unless that holds what is to be shared.
  void scatter(cells from, const cells& out, const std::vector<int>& order, bool in_out = false) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int d = order[k];
      const std::vector<int> rest(order.begin() + static_cast<std::ptrdiff_t>(k) + 1, order.end());
      const std::uint64_t inner = cells_in(rest), bytes = inner * from.cell;
      const bool keeps = from.where == out.where;
      const cells to = in_out || k + 1 == order.size() ? out : add_scratch(from.cell, rest);
      std::vector<address> parts;
      for (std::uint64_t x = 1; x < radix(d); ++x) {
        const address part = x == 1 && !keeps ? to.at(0) : add_scratch(from.cell, rest).at(0);
        receive(d, x, part, bytes);
        send(d, x, from.at(x * inner), bytes);
        parts.push_back(part);
      }
      fence();
      if (!keeps) parts[0] = from.at(0);
      for (const address& part : parts) reduce(to.at(0), part, bytes);
      from = to;
    }
  }

  // Gathers along these digits, each time all that it has, which begins with `own`, into `out`,
  // whose last dimension is the first of them.
  void gather(const cells& own, const cells& out, const std::vector<int>& order) {
    std::uint64_t inner = 1;
    for (const int d : order) {
      exchange(d, inner == 1 ? own.at(0) : out.at(0), out, inner);
      if (inner == 1) copy(out.at(0), own.at(0), out.cell);
      fence();
      inner *= radix(d);
    }
  }

  // Sends so many cells to all along digit d and receives theirs.
  void exchange(int d, address own, const cells& out, std::uint64_t inner) {
    for (std::uint64_t x = 1; x < radix(d); ++x) {
      receive(d, x, out.at((radix(d) - x) * inner), inner * out.cell);
      send(d, x, own, inner * out.cell);
    }
  }

  // The rank with these digits, by the number of its cell in an array of these dimensions.
  std::uint64_t rank_at(std::uint64_t cell, const std::vector<int>& dimensions) const {
    std::uint64_t rank = 0;
    for (std::size_t k = dimensions.size(); k-- > 0; cell /= radix(dimensions[k]))
      rank += cell % radix(dimensions[k]) * stride(dimensions[k]);
    return rank;
  }

  void gather_outer_first(const cells& in, const cells& out, std::uint64_t block) {
    const int last = count() - 1;
    const std::uint64_t inner = radix(last);
    const std::vector<int> order = range_of(0, last), dimensions = reversed(order);
    const cells far = add_scratch(block, dimensions);
    gather(in, far, order);
    for (std::uint64_t c = 0; c < ranks() / inner; ++c)
      for (std::uint64_t x = 1; x < inner; ++x) {
        receive(last, x, out.at(rank_at(c, dimensions) + inner - x), block);
        send(last, x, far.at(c), block);
      }
    for (std::uint64_t c = 0; c < ranks() / inner; ++c)
      copy(out.at(rank_at(c, dimensions)), far.at(c), block);
    fence();
  }

  void scatter_inner_first(const cells& in, const cells& out, std::uint64_t block) {
    const int last = count() - 1;
    const std::uint64_t inner = radix(last), far = ranks() / inner;
    const std::vector<int> rest = reversed(range_of(0, last));
    std::vector<cells> parts;
    for (std::uint64_t x = 1; x < inner; ++x) parts.push_back(add_scratch(block, rest));
    for (std::uint64_t c = 0; c < far; ++c)
      for (std::uint64_t x = 1; x < inner; ++x) {
        receive(last, x, parts[x - 1].at(c), block);
        send(last, x, in.at(rank_at(c, rest) + x), block);
      }
    fence();
    for (std::uint64_t c = 0; c < far; ++c) reduce(parts[0].at(c), in.at(rank_at(c, rest)), block);
    for (std::uint64_t x = 2; x < inner; ++x)
      reduce(parts[0].at(0), parts[x - 1].at(0), far * block);
    scatter(parts[0], out, rest);
  }

  // One channel of an allreduce, on `bytes` a share from `offset` on.
  void reduce_all(int split, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    std::vector<int> order;  // the innermost first
    for (int i = 0; i < split; ++i) order.push_back(count() - 1 - i);
    const cells in = add(space::send, offset, bytes, order);
    const cells out = add(space::recv, offset, bytes, order);
    scatter(in, out, order, true);
    exchange_rest(count() - 1 - split, split > 0 ? out.at(0) : in.at(0), out.at(0), bytes);
    std::uint64_t inner = 1;
    for (std::size_t k = order.size(); k-- > 0; inner *= radix(order[k])) {
      exchange(order[k], out.at(0), out, inner);
      fence();
    }
  }

  // Along each digit from `first` outwards all fold the shares of all, in the same order. The share
  // that `own` holds ends as the result in `out`.
  void exchange_rest(int first, address own, address out, std::uint64_t bytes) {
    cells parts;  // of the next step; its part 0 is where the result of this one goes
    for (int d = first; d >= 0; --d) {
      const cells here = std::exchange(parts, {});
      if (d > 0 && radix(d - 1) > 2) parts = add_scratch(bytes, {d - 1}, true);
      const address to = parts.cell > 0 ? parts.at(0) : out;
      if (radix(d) == 2)
        exchange_two(d, own, to, bytes);
      else
        exchange_all(d, own, to, here.cell > 0 ? here : add_scratch(bytes, {d}, true), bytes);
      own = to;
    }
  }

  void exchange_two(int d, address own, address to, std::uint64_t bytes) {
    const address other = own == to ? add_scratch(bytes, {}).at(0) : to;
    receive(d, 1, other, bytes);
    send(d, 1, own, bytes);
    fence();
    reduce(to, own == to ? other : own, bytes);
  }

  void exchange_all(int d, address own, address to, const cells& parts, std::uint64_t bytes) {
    for (std::uint64_t x = 1; x < radix(d); ++x) {
      receive(d, x, parts.at(radix(d) - x), bytes);
      send(d, x, own, bytes);
    }
    copy(parts.at(0), own, bytes);
    fence();
    copy(to, parts.at(0), bytes);
    for (std::uint64_t x = 1; x < radix(d); ++x) reduce(to, parts.at(x), bytes);
  }

  // Each stage of a channel waits for that of the channel before.
  void stagger_channels() {
    schedule one{m_plan.what, {}, m_plan.levels, {}};
    one.ranks.push_back({0, std::move(m_plan.channels)});
    m_plan.channels = std::move(stagger(std::move(one)).ranks[0].channels);
  }

  symmetric_schedule m_plan;
  const by_digits_options& m_options;
  std::size_t m_channel = 0;
};

std::string refuse_radices(const problem& p, const by_digits_options& o) {
  std::int64_t ranks = 1;
  for (const int f : o.radices) {
    if (f < 2) return "a digit of radix " + std::to_string(f) + ": radices are 2 or more";
    ranks = std::min<std::int64_t>(ranks * f, std::int64_t{1} << 40);
  }
  if (ranks != p.ranks || ranks < 2)
    return "the radices multiply to " + std::to_string(ranks) + ", not to " +
           std::to_string(p.ranks) + " ranks";
  if (!o.via.empty() && o.via.size() != o.radices.size())
    return "there are " + std::to_string(o.via.size()) + " transports for " +
           std::to_string(o.radices.size()) + " digits";
  return {};
}

// Into how many parts the vector is divided, with all its channels, where so many digits share it.
std::uint64_t shares_of(const by_digits_options& o, int split) {
  auto shares = static_cast<std::uint64_t>(std::max(1, o.pipeline));
  for (auto d = o.radices.rbegin(); d != o.radices.rbegin() + split; ++d)
    shares *= static_cast<std::uint64_t>(*d);
  return shares;
}

// All channels and ranks have equal shares of whole elements.
std::string refuse_shares(const problem& p, const by_digits_options& o) {
  const auto digits = static_cast<int>(o.radices.size());
  if (o.split < -1 || o.split > digits) return "there are " + std::to_string(digits) + " digits";
  const std::uint64_t shares = shares_of(o, std::max(0, o.split));
  const std::uint64_t elements = send_bytes(p, 0) / p.element_bytes;
  if (elements == 0 || elements % shares != 0)
    return std::to_string(elements) + " elements are not a multiple of " + std::to_string(shares) +
           " shares";
  return {};
}

}  // namespace

int split_of(const problem& p, const by_digits_options& o) {
  if (o.split >= 0 || p.kind != kind::allreduce) return o.split;
  auto split = static_cast<int>(o.radices.size());
  while (split > 0 && send_bytes(p, 0) / p.element_bytes % shares_of(o, split) != 0) --split;
  return split;
}

std::string refusal(const problem& p, const by_digits_options& o) {
  if (p.in_place) return "the collective is in place";
  if (p.order != ordering::any && p.order != ordering::free)
    return "it does not combine in order of rank";
  if (const std::string why = refuse_radices(p, o); !why.empty()) return why;
  const bool all = p.kind == kind::allreduce;
  if (!all && (o.split >= 0 || o.pipeline != 1 || o.stagger != 0))
    return "only an allreduce is split, or in several channels";
  const bool half = p.kind == kind::allgather || p.kind == kind::reduce_scatter_block;
  if (!all && !half && p.kind != kind::alltoall)
    return "it does allreduce, allgather, reduce_scatter_block and alltoall";
  if (o.outer_first && !half) return "only gathers and scatters are packed";
  if (all) return refuse_shares(p, o);
  return recv_bytes(p, 0) == 0 ? "there is nothing to do" : "";
}

symmetric_schedule build_by_digits(const problem& p, const by_digits_options& o) {
  if (const std::string why = refusal(p, o); !why.empty())
    base::fail(errc::invalid_argument, "this plan cannot be built: " + why,
               "Choose other radices or another algorithm.");
  by_digits_options whole = o;
  whole.split = split_of(p, o);
  whole.outer_first &= o.radices.size() > 1;
  writer w(p, whole);
  switch (p.kind) {
    case kind::allreduce: w.allreduce(); break;
    case kind::allgather: w.allgather(); break;
    case kind::reduce_scatter_block: w.reduce_scatter(); break;
    default: w.alltoall();
  }
  return w.take();
}

}  // namespace sucl::plan
