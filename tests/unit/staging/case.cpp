// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include "bench/reference/element.hpp"
#include "core/staging/blocks.hpp"

#include <memory>
#include <numeric>
#include <sstream>

namespace sucl::test {
namespace {

struct rank_case {
  sucl_operation op{};
  core::layouts where;
  std::vector<std::uint64_t> send_counts, send_displs, recv_counts, recv_displs;
  std::unique_ptr<user_array> send, recv;
  std::unique_ptr<core::staged_operation> running;
  sucl_request* request = nullptr;
  bool done = false;
};

// The count between two ranks; the same both ways, as in-place exchanges need it.
std::uint64_t pair_count(std::uint64_t count, int i, int j) {
  if (count == 0) return 0;
  const auto low = static_cast<std::uint64_t>(std::min(i, j));
  const auto high = static_cast<std::uint64_t>(std::max(i, j));
  return (count * (1 + low + 2 * high) + low) % (count + 2);
}

// Blocks in reverse order with a gap after each.
std::vector<std::uint64_t> displacements(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> result(counts.size());
  std::uint64_t at = 1;
  for (std::size_t i = counts.size(); i-- > 0; at += counts[i] + 1) result[i] = at;
  return result;
}

void set_counts(rank_case& r, const collective_case& c, int rank) {
  const auto pair = [&](int i) { return pair_count(c.count, i, rank); };
  const auto own = [&](int i) { return pair_count(c.count, i, i + 1); };
  std::vector<std::uint64_t> by_pair, by_rank;
  for (int i = 0; i < c.p; ++i) {
    by_pair.push_back(pair(i));
    by_rank.push_back(own(i));
  }
  sucl_operation& op = r.op;
  op.count = c.count;
  switch (c.kind) {
    case SUCL_KIND_ALLTOALLV:
      if (!c.in_place) r.send_counts = by_pair;
      r.recv_counts = by_pair;
      break;
    case SUCL_KIND_ALLGATHERV: r.recv_counts = by_rank; break;
    case SUCL_KIND_REDUCE_SCATTER: r.recv_counts = by_rank; break;
    case SUCL_KIND_GATHERV:
      if (op.root == rank) r.recv_counts = by_rank;
      break;
    case SUCL_KIND_SCATTERV:
      if (op.root == rank) r.send_counts = by_rank;
      break;
    default: return;
  }
  if (c.kind == SUCL_KIND_REDUCE_SCATTER || c.kind == SUCL_KIND_ALLTOALLV)
    op.count = 0;
  else
    op.count = own(rank);
  r.send_displs = displacements(r.send_counts);
  r.recv_displs = displacements(r.recv_counts);
  if (!r.send_counts.empty()) op.send_counts = r.send_counts.data();
  if (!r.send_counts.empty()) op.send_displs = r.send_displs.data();
  if (!r.recv_counts.empty()) op.recv_counts = r.recv_counts.data();
  if (!r.recv_counts.empty() && c.kind != SUCL_KIND_REDUCE_SCATTER)
    op.recv_displs = r.recv_displs.data();
}

void make_rank(rank_case& r, const collective_case& c, int rank, std::mt19937& random) {
  sucl_operation& op = r.op;
  op.struct_size = sizeof(op);
  op.kind = c.kind;
  op.type = c.type;
  op.op = reduces(static_cast<kind>(c.kind)) ? c.op : SUCL_OP_NONE;
  op.element_size = c.type == SUCL_TYPE_BYTES ? 12 : size_of(static_cast<type>(c.type));
  op.sequence = 1;
  op.flags = SUCL_FLAG_MAY_BLOCK;
  op.root = static_cast<std::int32_t>(c.seed % static_cast<unsigned>(c.p));
  set_counts(r, c, rank);
  const bool gathers = c.kind == SUCL_KIND_GATHER || c.kind == SUCL_KIND_GATHERV;
  // In gathers and reductions to a root the others may leave the flag out, as with MPI.
  const bool optional = (gathers || c.kind == SUCL_KIND_REDUCE) && op.root != rank;
  if (c.in_place && !(optional && c.seed % 2 == 0)) op.flags |= SUCL_FLAG_IN_PLACE;
  const bool inside = (op.flags & SUCL_FLAG_IN_PLACE) != 0;
  const auto in = reference::contributed(op, rank, c.p);
  const auto out = reference::delivered(op, rank, c.p);
  const bool device = c.memory == where::device || (c.memory == where::mixed && rank % 2 == 0);
  const bool strided = c.strided && rank % 2 == 0;
  if (!in.empty() && !inside)
    r.send = std::make_unique<user_array>(reference::end_of(in), op.element_size, strided, device,
                                          random);
  if (!out.empty() || (inside && !in.empty()) || (c.kind == SUCL_KIND_EXSCAN && c.seed % 3 != 0))
    r.recv = std::make_unique<user_array>(
        std::max(reference::end_of(out), inside ? reference::end_of(in) : 0), op.element_size,
        strided && c.seed % 3 != 0, device, random);
  op.send_memory = op.recv_memory = device ? SUCL_MEMORY_DEVICE : SUCL_MEMORY_SYSTEM;
  if (r.send) op.send = r.send->data();
  if (r.recv) op.recv = r.recv->data();
  if (r.send) r.where.send = r.send->layout;
  if (r.recv) r.where.recv = r.recv->layout;
  user_array* from = inside ? r.recv.get() : r.send.get();
  for (const auto& b : in)
    for (std::uint64_t i = 0; i < b.count; ++i)
      from->put(b.at + i, make_element(c.type, op.op, random).data());
}

void expect_results(std::vector<rank_case>& ranks) {
  const int p = static_cast<int>(ranks.size());
  std::vector<sucl_operation> ops;
  std::vector<bytes> in;
  for (int r = 0; r < p; ++r) {
    const rank_case& one = ranks[static_cast<std::size_t>(r)];
    const user_array* from = in_place(one.op) ? one.recv.get() : one.send.get();
    in.emplace_back();
    ops.push_back(one.op);
    for (const auto& b : reference::contributed(one.op, r, p))
      for (std::uint64_t i = 0; i < b.count; ++i) {
        const bytes element = from->get(b.at + i);
        in.back().insert(in.back().end(), element.begin(), element.end());
      }
  }
  const std::vector<bytes> out = solve(ops, in);
  for (int r = 0; r < p; ++r) {
    rank_case& one = ranks[static_cast<std::size_t>(r)];
    const unsigned char* at = out[static_cast<std::size_t>(r)].data();
    for (const auto& b : reference::delivered(one.op, r, p))
      for (std::uint64_t i = 0; i < b.count; ++i, at += one.op.element_size)
        one.recv->expect(b.at + i, at);
  }
}

core::staging settings_of(const collective_case& c, const sucl_operation& op,
                          core::transfer_formats& formats) {
  core::staging s;
  s.size = c.p;
  s.depth = 1 + static_cast<int>(c.seed % 4);
  s.min_block_bytes = 1;
  s.comm_stages = c.memory != where::host;
  const core::transfer_format& w = formats.of(op.kind, op.type, op.op, op.element_size);
  if (c.slice != 0 && !c.by_limit) {
    s.comm_stages = true;
    const std::uint64_t components = w.convert ? w.convert->components : 1;
    const bool blocks = w.fold || core::has_sink_blocks(c.kind) || core::has_source_blocks(c.kind);
    s.chunk_bytes =
        c.slice * w.element_size * components * (blocks ? static_cast<unsigned>(c.p) : 1u);
  }
  return s;
}

bool step(fake_world& world, rank_case& r, int rank) {
  if (r.running) return r.running->step();
  const core::backend_comm below = world.channel_of(rank);
  if (!r.request) below.table->post(below.comm, &r.op, &r.request);
  std::int32_t done = 0;
  below.table->test(below.comm, r.request, &done);
  return done != 0;
}

std::string drive(fake_world& world, std::vector<rank_case>& ranks, std::mt19937& random) {
  std::size_t left = ranks.size();
  for (int turns = 0; left > 0; ++turns) {
    if (turns > 2000000) return "never ends";
    const int r = static_cast<int>(random() % ranks.size());
    rank_case& one = ranks[static_cast<std::size_t>(r)];
    if (one.done) continue;
    one.done = step(world, one, r);
    if (one.done) --left;
    if (one.done && one.running && !one.running->all_posted()) return "done before all is posted";
  }
  return {};
}

}  // namespace

user_array::user_array(std::uint64_t elements, std::uint64_t element_size, bool strided,
                       bool device, std::mt19937& random)
    : size(element_size) {
  std::uint64_t total = elements + 1;
  if (strided) {
    const std::uint64_t planes = std::max<std::uint64_t>(1, (elements + 5) / 6);
    layout = base::strided{{planes + 2, 4, 5}, {1, 2, 1}, {planes, 2, 3}, size};
    total = (planes + 2) * 20;
    for (std::uint64_t i = 0; i < planes; ++i)
      for (std::uint64_t j = 0; j < 2; ++j)
        for (std::uint64_t k = 0; k < 3; ++k) indices.push_back((i + 1) * 20 + (j + 2) * 5 + k + 1);
  } else {
    indices.resize(elements);
    std::iota(indices.begin(), indices.end(), std::uint64_t{0});
  }
  expected.resize(total * size);
  for (unsigned char& byte : expected) byte = static_cast<unsigned char>(random());
  memory.device = device;
  memory.storage = expected;
  if (device)
    for (unsigned char& byte : memory.storage) byte ^= scrambler;
}

void user_array::expect(std::uint64_t index, const unsigned char* element) {
  std::copy_n(element, size, expected.begin() + static_cast<std::ptrdiff_t>(indices[index] * size));
}

void user_array::put(std::uint64_t index, const unsigned char* element) {
  expect(index, element);
  for (std::uint64_t i = 0; i < size; ++i)
    memory.storage[indices[index] * size + i] =
        static_cast<unsigned char>(element[i] ^ (memory.device ? scrambler : 0));
}

bytes user_array::get(std::uint64_t index) const {
  const auto at = expected.begin() + static_cast<std::ptrdiff_t>(indices[index] * size);
  return {at, at + static_cast<std::ptrdiff_t>(size)};
}

bool user_array::as_expected() const {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if ((memory.storage[i] ^ (memory.device ? scrambler : 0)) != expected[i]) return false;
  return true;
}

bool supports_like_mpi(sucl_kind kind, sucl_type type, sucl_op op) {
  if (!reduces(static_cast<sucl::kind>(kind))) return true;
  return type != SUCL_TYPE_FP16 && type != SUCL_TYPE_BF16 && type != SUCL_TYPE_FP8_E4M3 &&
         type != SUCL_TYPE_FP8_E5M2 && op != SUCL_OP_AVG;
}

bytes make_element(sucl_type type, sucl_op op, std::mt19937& random) {
  const auto copy = [](const auto& value) {
    bytes result(sizeof value);
    std::memcpy(result.data(), &value, sizeof value);
    return result;
  };
  const double whole = static_cast<int>(random() % 7) - 3;
  const double real = op == SUCL_OP_PROD ? whole : (static_cast<int>(random() % 129) - 64) / 8.0;
  switch (type) {
    case SUCL_TYPE_FP16: return copy(reference::narrowed<fp16>(real));
    case SUCL_TYPE_BF16: return copy(reference::narrowed<bf16>(real));
    case SUCL_TYPE_FP8_E4M3: return copy(reference::narrowed<fp8_e4m3>(whole));
    case SUCL_TYPE_FP8_E5M2: return copy(reference::narrowed<fp8_e5m2>(whole));
    case SUCL_TYPE_BOOL: return {static_cast<unsigned char>(random() % 2)};
    case SUCL_TYPE_FP32: return copy(static_cast<float>(real));
    case SUCL_TYPE_FP64: return copy(real);
    case SUCL_TYPE_COMPLEX_FP32:
      return copy(std::complex<float>(std::complex<double>(real, whole)));
    case SUCL_TYPE_COMPLEX_FP64: return copy(std::complex<double>(real, whole));
    case SUCL_TYPE_INT32_LOC:
      return copy(loc<std::int32_t>{static_cast<std::int32_t>(whole),
                                    static_cast<std::int32_t>(random() % 9)});
    case SUCL_TYPE_FP32_LOC:
      return copy(loc<float>{static_cast<float>(whole), static_cast<std::int32_t>(random() % 9)});
    default: {
      bytes result(type == SUCL_TYPE_BYTES ? 12 : size_of(static_cast<sucl::type>(type)));
      for (unsigned char& byte : result) byte = static_cast<unsigned char>(random() >> 5);
      return result;
    }
  }
}

std::ostream& operator<<(std::ostream& out, const collective_case& c) {
  return out << name(static_cast<kind>(c.kind)) << " " << name(static_cast<type>(c.type)) << " "
             << name(static_cast<op>(c.op)) << " p=" << c.p << " count=" << c.count
             << " slice=" << c.slice << (c.by_limit ? " by max_count" : "")
             << (c.in_place ? " in place" : "") << " memory=" << static_cast<int>(c.memory)
             << (c.strided ? " strided" : "") << (c.native ? " native" : "") << " seed=" << c.seed;
}

std::string run(const collective_case& c) {
  std::mt19937 random(c.seed);
  fake_rules rules;
  if (!c.native) rules.supports = supports_like_mpi;
  fake_world world(c.p, rules, c.seed + 1);
  fake_copier copier(c.seed + 2);
  core::scratch_pool pool;
  std::vector<rank_case> ranks(static_cast<std::size_t>(c.p));
  for (int r = 0; r < c.p; ++r) make_rank(ranks[static_cast<std::size_t>(r)], c, r, random);
  expect_results(ranks);
  core::transfer_formats unlimited = world.formats();
  if (c.ordered) unlimited.fold_above();
  const sucl_operation& first = ranks[0].op;
  core::staging settings = settings_of(c, first, unlimited);
  const core::transfer_format& w =
      unlimited.of(first.kind, first.type, first.op, first.element_size);
  if (c.by_limit) world.rules.max_count = c.slice * (w.convert ? w.convert->components : 1);
  const core::device_copier table = copier.table();
  core::transfer_formats formats = world.formats();
  if (c.ordered) formats.fold_above();
  for (int r = 0; r < c.p; ++r) {
    rank_case& one = ranks[static_cast<std::size_t>(r)];
    if (one.send) copier.add(one.send->memory);
    if (one.recv) copier.add(one.recv->memory);
    settings.rank = r;
    core::staging_plan how = core::plan_staging(one.op, one.where, formats, settings);
    if (how.needed)
      one.running = std::make_unique<core::staged_operation>(one.op, std::move(how),
                                                             world.channel_of(r), &table, pool);
  }
  std::string problem = drive(world, ranks, random);
  if (problem.empty()) problem = world.error;
  if (problem.empty()) problem = world.leftovers();
  if (problem.empty() && copier.pending != 0) problem = "copies are still going on";
  for (rank_case& one : ranks) {
    if (problem.empty() && one.send && !one.send->as_expected()) problem = "send was changed";
    if (problem.empty() && one.recv && !one.recv->as_expected()) problem = "recv is wrong";
    one.running.reset();
  }
  pool.trim();
  if (problem.empty() && pool.blocks() != 0) problem = "scratch memory was not given back";
  return problem;
}

}  // namespace sucl::test
