// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

#include "backend.hpp"

#include "checks.hpp"
#include "coalesced.hpp"

#include <c10/core/StreamGuard.h>
#include <torch/csrc/python_headers.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace sucl::torch {

using c10d::OpType;

backend::backend(const sucl_port_handle& h, int rank, int size, group_options options)
    : Backend(rank, size),
      m_options(std::move(options)),
      m_line(std::make_shared<line>(h)),
      m_timeout(m_options.timeout),
      m_own_limit(m_options.own_limit) {}

// One that nothing has shut down, as a part of another group, waits for no other rank.
backend::~backend() {
  m_rest->end();
  // Another thread that wants Python while that ends is ended itself.
#if PY_VERSION_HEX >= 0x030D0000
  const bool ends = Py_IsFinalizing() != 0;
#else
  const bool ends = _Py_IsFinalizing() != 0;
#endif
  if (!Py_IsInitialized() || ends) return;
  try {
    report_end(true);
  } catch (...) {  // Python ends
  }
}

void backend::setTimeout(milliseconds timeout) {
  m_own_limit = m_own_limit || timeout < m_timeout;
  m_timeout = timeout;
}

void backend::shutdown() {
  m_rest->end();
  if (m_rest->hangs()) give_up();  // the end would wait for it
  report_end(false);
  const std::lock_guard lock(m_tracks_mutex);
  m_tracks.clear();
}

// Never waits for other ranks. torch calls no shutdown() after it, or calls that too.
void backend::abort() {
  give_up();
  report_end(true);
}

void backend::report_end(bool aborted) {
  if (!m_has_ended.exchange(true) && m_options.ended) m_options.ended(aborted);
}

void backend::give_up() {
  const char* why = "the process group was aborted";
  m_line->calls().abort(m_line->get(), why);
  const std::lock_guard lock(m_tracks_mutex);
  for (const auto& [key, one] : m_tracks) one->calls().calls().abort(one->calls().get(), why);
}

std::shared_ptr<track> backend::track_on(c10::Device gpu, int peer) {
  const std::lock_guard lock(m_tracks_mutex);
  auto& found = m_tracks[{gpu.index(), peer}];
  if (found) return found;
  const auto [handle, stream] = m_options.on_gpu(gpu, peer);
  found = std::make_shared<track>(std::make_shared<line>(handle),
                                  c10::Stream(c10::Stream::UNSAFE, gpu, stream));
  return found;
}

flight backend::begin(const at::Tensor& like, int peer) {
  flight f;
  check_device(like);
  if (like.device().is_cpu()) return f;
  f.on = track_on(like.device(), peer);
  f.on->sweep();
  return f;
}

sucl_operation backend::record(sucl_kind kind) const {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = SUCL_TYPE_BYTES;
  o.element_size = 1;
  return o;
}

sucl_operation backend::record(sucl_kind kind, const at::Tensor& like) const {
  sucl_operation o = record(kind);
  o.type = type_of(like.scalar_type());
  o.element_size = like.element_size();
  return o;
}

operation backend::issue(const sucl_operation& o) {
  sucl_port_operation* issued = nullptr;
  if (m_line->calls().issue(m_line->get(), &o, &issued) != SUCL_SUCCESS) m_line->rethrow();
  return {m_line, issued};
}

void backend::issue(flight& f, const sucl_operation& o) {
  const c10::Device where = f.on ? f.on->device() : c10::Device(c10::kCPU);
  for (const at::Tensor& t : f.held)
    if (t.device() != where)
      throw failure(SUCL_ERROR_INVALID_MEMORY,
                    "tensors of one call are on " + where.str() + " and " + t.device().str(),
                    "Pass tensors of one device");
  if (f.on) return f.on->issue(o);
  operation issued = issue(o);
  f.operations.push_back(std::move(issued));
}

work_parts backend::parts(OpType type, const char* what, tensors inputs, lists outputs,
                          milliseconds timeout) {
  m_rest->sweep();
  work_parts p;
  p.rank = getRank();
  p.type = type;
  p.title = m_options.name + ":" + what;
  p.inputs = std::move(inputs);
  p.outputs = std::move(outputs);
  p.number = ++m_number;
  if (timeout.count() > 0 && timeout < m_timeout)
    p.limit = timeout;
  else if (m_own_limit)
    p.limit = m_timeout;
  return p;
}

backend::request backend::start(work_parts p, flight f, bool blocks) {
  request made;
  if (!f.on) {
    for (const at::Tensor& t : f.held) f.memory.push_back(t.storage());
    made = c10::make_intrusive<work>(std::move(p), std::move(f), m_rest);
  } else {
    const c10::StreamGuard on(f.on->stream());
    copy_back(f.finish);
    for (auto& [to, from] : f.finish) f.held.push_back(std::move(to));
    made = c10::make_intrusive<gpu_work>(std::move(p), std::move(f.on), std::move(f.held), blocks);
  }
  if (m_coalesces) m_coalesced.push_back(made);
  return made;
}

void backend::startCoalescing() {
  m_coalesces = true;
  m_coalesced.clear();
}

backend::request backend::endCoalescing() {
  if (m_group.on) {
    flight f = std::exchange(m_group, {});
    f.on->end_group();
    start(parts(OpType::COALESCED, "coalesced", {}, {f.held}, milliseconds(0)), std::move(f));
  }
  m_coalesces = false;
  auto all = std::exchange(m_coalesced, {});
  if (all.size() > 1) return c10::make_intrusive<work_of_all>(getRank(), std::move(all));
  return all.empty() ? request() : all[0];
}

void backend::check_root(std::int64_t root) const {
  if (root < 0 || root >= getSize())
    throw failure(SUCL_ERROR_INVALID_RANK, "invalid root rank: " + std::to_string(root),
                  "Pass a rank of the group");
}

void backend::check_lists(const lists& all, const char* what) const {
  for (const tensors& one : all)
    if (one.size() != static_cast<std::size_t>(getSize()))
      throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                    std::string(what) + " has " + std::to_string(one.size()) +
                        " tensors, and the group " + std::to_string(getSize()) + " ranks",
                    "Pass one tensor for each rank");
}

void backend::check_sum(const at::Tensor& whole, const at::Tensor& part, const char* what) const {
  check_types(whole, {part});
  if (whole.numel() != part.numel() * getSize())
    throw failure(SUCL_ERROR_INVALID_COUNT,
                  std::string(what) + ": the greater tensor has " + std::to_string(whole.numel()) +
                      " elements, which is not the number of ranks times the other's " +
                      std::to_string(part.numel()),
                  "Pass a tensor of world_size times that size");
}

// Reductions.

namespace {

// Of tensors that are coalesced: so many bytes at most are copied together for one operation.
constexpr std::size_t together = 262144;

}  // namespace

backend::request backend::allreduce(tensors& list, const c10d::AllreduceOptions& o) {
  check_any(list, "all_reduce");
  check_like(list[0], list);
  if (list.size() > 1) return allreduce_of_several(list, o);
  return list[0].layout() == at::kSparse ? allreduce_sparse(list, o) : allreduce_each(list, o);
}

void backend::allreduce_in_place(flight& f, const at::Tensor& data, const c10d::ReduceOp& op) {
  sucl_operation r = record(SUCL_KIND_ALLREDUCE, data);
  r.op = op_of(op, data.scalar_type());
  r.flags = SUCL_FLAG_IN_PLACE;
  r.recv = data.data_ptr();
  r.count = r.recv_count = static_cast<std::uint64_t>(data.numel());
  f.held.push_back(data);
  issue(f, r);
}

backend::request backend::allreduce_each(tensors& list, const c10d::AllreduceOptions& o) {
  auto p = parts(OpType::ALLREDUCE, "all_reduce", list, {list}, o.timeout);
  flight f = begin(list);
  for (const at::Tensor& t : list) {
    const at::Tensor data = writable(t, f.finish);
    if (o.reduceOp.op_ == c10d::ReduceOp::PREMUL_SUM) data.copy_(scaled(data, o.reduceOp));
    allreduce_in_place(f, data, o.reduceOp);
  }
  return start(std::move(p), std::move(f));
}

backend::request backend::allreduce_coalesced(tensors& list,
                                              const c10d::AllreduceCoalescedOptions& o) {
  check_coalesced(list);
  std::size_t bytes = 0;
  for (const at::Tensor& t : list) bytes += t.nbytes();
  if (list.size() == 1 || bytes > together) return allreduce_each(list, o);
  auto p = parts(OpType::ALLREDUCE_COALESCED, "all_reduce", list, {list}, o.timeout);
  flight f = begin(list);
  tensors rows;
  for (const at::Tensor& t : list) rows.push_back(scaled(dense(t), o.reduceOp).reshape({-1}));
  const at::Tensor data = at::cat(rows);
  std::int64_t start_of = 0;
  for (const at::Tensor& t : list) {
    f.finish.emplace_back(t.detach(), data.narrow(0, start_of, t.numel()).view(t.sizes()));
    start_of += t.numel();
  }
  allreduce_in_place(f, data, o.reduceOp);
  return start(std::move(p), std::move(f));
}

backend::request backend::reduce(tensors& list, const c10d::ReduceOptions& o) {
  check_root(o.rootRank);
  check_root_tensor(o.rootTensor, list);
  check_one(list, "reduce", "tensor list");
  const at::Tensor& t = list[0];
  auto p = parts(OpType::REDUCE, "reduce", list, {list}, o.timeout);
  flight f = begin(t);
  sucl_operation r = record(SUCL_KIND_REDUCE, t);
  r.op = op_of(o.reduceOp, t.scalar_type());
  r.root = r.source = static_cast<std::int32_t>(o.rootRank);
  r.count = r.recv_count = static_cast<std::uint64_t>(t.numel());
  if (getRank() == o.rootRank) {
    f.held = {writable(t, f.finish)};
    if (o.reduceOp.op_ == c10d::ReduceOp::PREMUL_SUM) f.held[0].copy_(scaled(t, o.reduceOp));
    r.flags = SUCL_FLAG_IN_PLACE;
    r.recv = f.held[0].data_ptr();
  } else {
    f.held = {scaled(dense(t), o.reduceOp)};
    r.send = f.held[0].const_data_ptr();
  }
  issue(f, r);
  return start(std::move(p), std::move(f));
}

backend::request backend::reduce_scatter(tensors& out, lists& in,
                                         const c10d::ReduceScatterOptions& o) {
  check_lists(in, "the list to reduce");
  auto p = parts(OpType::REDUCE_SCATTER, "reduce_scatter", in.empty() ? tensors{} : in[0], {out},
                 o.timeout);
  flight f = begin(out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    check_types(out[i], in.at(i));
    const at::Tensor to = writable(out[i], f.finish);
    const at::Tensor from = joined(apart(scaled(in[i], o.reduceOp), {to}));
    const auto sizes = sizes_of(in[i]);
    const auto mine = sizes[static_cast<std::size_t>(getRank())];
    if (mine != static_cast<std::uint64_t>(to.numel()))
      throw failure(SUCL_ERROR_INVALID_COUNT,
                    "the output of reduce_scatter has " + std::to_string(to.numel()) +
                        " elements, and this rank's input " + std::to_string(mine),
                    "Pass tensors of one size for each rank");
    sucl_operation r =
        record(all_same(sizes) ? SUCL_KIND_REDUCE_SCATTER_BLOCK : SUCL_KIND_REDUCE_SCATTER, to);
    r.op = op_of(o.reduceOp, to.scalar_type());
    r.send = from.const_data_ptr();
    r.recv = to.data_ptr();
    r.count = r.recv_count = mine;
    if (!all_same(sizes)) r.recv_counts = sizes.data();
    f.held.insert(f.held.end(), {from, to});
    issue(f, r);
  }
  return start(std::move(p), std::move(f));
}

backend::request backend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                               const c10d::ReduceScatterOptions& o) {
  tensors outs{out}, ins{in};
  return reduce_scatter_tensor_coalesced(outs, ins, o);
}

backend::request backend::reduce_scatter_tensor_coalesced(tensors& out, tensors& in,
                                                          const c10d::ReduceScatterOptions& o) {
  auto p = parts(OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", in, {out}, o.timeout);
  flight f = begin(out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    check_sum(in.at(i), out[i], "reduce_scatter_tensor");
    const at::Tensor to = writable(out[i], f.finish);
    const at::Tensor from = apart(scaled(dense(in[i]), o.reduceOp), {to});
    sucl_operation r = record(SUCL_KIND_REDUCE_SCATTER_BLOCK, to);
    r.op = op_of(o.reduceOp, to.scalar_type());
    r.send = from.const_data_ptr();
    r.recv = to.data_ptr();
    r.count = r.recv_count = static_cast<std::uint64_t>(to.numel());
    f.held.insert(f.held.end(), {from, to});
    issue(f, r);
  }
  return start(std::move(p), std::move(f));
}

// What moves data.

// Of several tensors, all get what one of the root's has.
backend::request backend::broadcast(tensors& list, const c10d::BroadcastOptions& o) {
  check_root(o.rootRank);
  check_root_tensor(o.rootTensor, list);
  check_like(list[0], list);
  auto p = parts(OpType::BROADCAST, "broadcast", list, {list}, o.timeout);
  flight f = begin(list);
  const bool is_root = getRank() == o.rootRank;
  const at::Tensor& t = list[static_cast<std::size_t>(o.rootTensor)];
  const at::Tensor data = is_root ? dense(t) : writable(t, f.finish);
  for (const at::Tensor& other : list)
    if (!other.is_same(t)) f.finish.emplace_back(other.detach(), data);
  sucl_operation r = record(SUCL_KIND_BROADCAST, t);
  r.root = r.source = static_cast<std::int32_t>(o.rootRank);
  r.flags = SUCL_FLAG_IN_PLACE;
  r.recv = const_cast<void*>(data.const_data_ptr());
  r.count = r.recv_count = static_cast<std::uint64_t>(data.numel());
  f.held.push_back(data);
  issue(f, r);
  return start(std::move(p), std::move(f));
}

// Blocks may be of several sizes, which all ranks know.
void backend::gather_all(flight& f, const at::Tensor& in, const tensors& out) {
  check_types(in, out);
  check_own_block(in, out, getRank());
  const at::Tensor from = apart(dense(in), out), to = room_for(out, f.finish);
  const auto sizes = sizes_of(out);
  const auto starts = starts_of(sizes);
  sucl_operation r = record(all_same(sizes) ? SUCL_KIND_ALLGATHER : SUCL_KIND_ALLGATHERV, in);
  r.send = from.const_data_ptr();
  r.recv = to.data_ptr();
  r.count = r.recv_count = static_cast<std::uint64_t>(from.numel());
  if (!all_same(sizes)) {
    r.recv_counts = sizes.data();
    r.recv_displs = starts.data();
  }
  f.held.insert(f.held.end(), {from, to});
  issue(f, r);
}

backend::request backend::allgather(lists& out, tensors& in, const c10d::AllgatherOptions& o) {
  check_gather(out, in, getSize());
  if (in.size() > 1) return allgather_of_several(out, in, o);
  auto p = parts(OpType::ALLGATHER, "all_gather", in, out, o.timeout);
  flight f = begin(in);
  gather_all(f, in[0], out[0]);
  return start(std::move(p), std::move(f));
}

// Here the first list has the tensors of rank 0.
backend::request backend::allgather_coalesced(lists& out, tensors& in,
                                              const c10d::AllgatherOptions& o) {
  auto p = parts(OpType::ALLGATHER_COALESCED, "all_gather", in, out, o.timeout);
  if (out.size() != static_cast<std::size_t>(getSize()))
    throw failure(
        SUCL_ERROR_INVALID_ARGUMENT,
        "output lists should be equal to world size: there are " + std::to_string(out.size()),
        "Pass one list for each rank");
  for (const tensors& list : out) check_outputs(list, in);
  flight f = begin(in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    tensors of_all;
    for (tensors& list : out) of_all.push_back(list[i]);
    gather_all(f, in[i], of_all);
  }
  return start(std::move(p), std::move(f));
}

backend::request backend::_allgather_base(at::Tensor& out, at::Tensor& in,
                                          const c10d::AllgatherOptions& o) {
  tensors outs{out}, ins{in};
  return allgather_into_tensor_coalesced(outs, ins, o);
}

backend::request backend::allgather_into_tensor_coalesced(tensors& out, tensors& in,
                                                          const c10d::AllgatherOptions& o) {
  auto p = parts(OpType::_ALLGATHER_BASE, "_all_gather_base", in, {out}, o.timeout);
  flight f = begin(out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    check_sum(out[i], in.at(i), "all_gather_into_tensor");
    const at::Tensor to = writable(out[i], f.finish);
    const at::Tensor from = apart(dense(in[i]), {to});
    sucl_operation r = record(SUCL_KIND_ALLGATHER, to);
    r.send = from.const_data_ptr();
    r.recv = to.data_ptr();
    r.count = r.recv_count = static_cast<std::uint64_t>(from.numel());
    f.held.insert(f.held.end(), {from, to});
    issue(f, r);
  }
  return start(std::move(p), std::move(f));
}

backend::request backend::gather(lists& out, tensors& in, const c10d::GatherOptions& o) {
  check_root(o.rootRank);
  const bool is_root = getRank() == o.rootRank;
  check_one(in, "gather", "input tensor list");
  check_at_root(out, is_root, getSize(), "gather", "output");
  auto p = parts(OpType::GATHER, "gather", in, out, o.timeout);
  flight f = begin(in[0]);
  f.held = {dense(in[0])};
  sucl_operation r = record(SUCL_KIND_GATHERV, in[0]);
  r.root = r.source = static_cast<std::int32_t>(o.rootRank);
  r.send = f.held[0].const_data_ptr();
  r.count = r.recv_count = static_cast<std::uint64_t>(f.held[0].numel());
  std::vector<std::uint64_t> sizes, starts;
  if (is_root) {
    check_types(in[0], out[0]);
    check_own_block(in[0], out[0], getRank());
    sizes = sizes_of(out[0]);
    starts = starts_of(sizes);
    f.held.push_back(room_for(out[0], f.finish));
    r.recv = f.held[1].data_ptr();
    r.recv_counts = sizes.data();
    r.recv_displs = starts.data();
  }
  issue(f, r);
  return start(std::move(p), std::move(f));
}

backend::request backend::scatter(tensors& out, lists& in, const c10d::ScatterOptions& o) {
  check_root(o.rootRank);
  const bool is_root = getRank() == o.rootRank;
  check_one(out, "scatter", "output tensor list");
  check_at_root(in, is_root, getSize(), "scatter", "input");
  auto p = parts(OpType::SCATTER, "scatter", in.empty() ? tensors{} : in[0], {out}, o.timeout);
  flight f = begin(out[0]);
  f.held = {writable(out[0], f.finish)};
  sucl_operation r = record(SUCL_KIND_SCATTERV, out[0]);
  r.root = r.source = static_cast<std::int32_t>(o.rootRank);
  r.recv = f.held[0].data_ptr();
  r.count = r.recv_count = static_cast<std::uint64_t>(f.held[0].numel());
  std::vector<std::uint64_t> sizes, starts;
  if (is_root) {
    check_types(out[0], in[0]);
    check_own_block(out[0], in[0], getRank());
    sizes = sizes_of(in[0]);
    starts = starts_of(sizes);
    f.held.push_back(joined(apart(in[0], {f.held[0]})));
    r.send = f.held[1].const_data_ptr();
    r.send_counts = sizes.data();
    r.send_displs = starts.data();
  }
  issue(f, r);
  return start(std::move(p), std::move(f));
}

namespace {

// Elements of the parts of a tensor's first dimension.
std::vector<std::uint64_t> counts_of(const at::Tensor& t, const std::vector<int64_t>& splits,
                                     int size) {
  const std::int64_t rows = t.dim() == 0 ? t.numel() : t.size(0);
  const std::uint64_t row = rows > 0 ? static_cast<std::uint64_t>(t.numel() / rows) : 0;
  std::vector<std::uint64_t> counts;
  std::int64_t all = 0;
  for (const std::int64_t n : splits) {
    if (n < 0)
      throw failure(SUCL_ERROR_INVALID_COUNT, "a split is " + std::to_string(n),
                    "Pass sizes from 0");
    all += n;
    counts.push_back(static_cast<std::uint64_t>(n) * row);
  }
  const bool fits = splits.empty() ? rows % size == 0
                                   : splits.size() == static_cast<std::size_t>(size) && all == rows;
  if (!fits)
    throw failure(SUCL_ERROR_INVALID_COUNT,
                  "Tensor's dim 0 of " + std::to_string(rows) +
                      (splits.empty() ? " does not divide equally across group size"
                                      : " does not match the split sizes in number and sum"),
                  "Pass one size for each rank, which sum up to dim 0");
  if (splits.empty())
    counts.assign(static_cast<std::size_t>(size),
                  static_cast<std::uint64_t>(t.numel()) / static_cast<std::uint64_t>(size));
  return counts;
}

}  // namespace

backend::request backend::alltoall_base(at::Tensor& out, at::Tensor& in,
                                        std::vector<int64_t>& out_splits,
                                        std::vector<int64_t>& in_splits,
                                        const c10d::AllToAllOptions& o) {
  check_types(in, {out});
  auto p = parts(OpType::ALLTOALL_BASE, "all_to_all", {in}, {{out}}, o.timeout);
  const auto send = counts_of(in, in_splits, getSize()),
             recv = counts_of(out, out_splits, getSize());
  const auto send_starts = starts_of(send), recv_starts = starts_of(recv);
  const bool is_even = in_splits.empty() && out_splits.empty();
  flight f = begin(in);
  const at::Tensor to = writable(out, f.finish);
  f.held = {apart(dense(in), {to}), to};
  sucl_operation r = record(is_even ? SUCL_KIND_ALLTOALL : SUCL_KIND_ALLTOALLV, in);
  r.send = f.held[0].const_data_ptr();
  r.recv = f.held[1].data_ptr();
  if (is_even) {
    r.count = r.recv_count = send[0];
  } else {
    r.send_counts = send.data();
    r.send_displs = send_starts.data();
    r.recv_counts = recv.data();
    r.recv_displs = recv_starts.data();
  }
  issue(f, r);
  return start(std::move(p), std::move(f));
}

backend::request backend::alltoall(tensors& out, tensors& in, const c10d::AllToAllOptions& o) {
  check_lists({in, out}, "a list of all_to_all");
  check_types(in[0], in);
  check_types(in[0], out);
  auto p = parts(OpType::ALLTOALL, "all_to_all", in, {out}, o.timeout);
  const auto send = sizes_of(in), recv = sizes_of(out);
  const auto send_starts = starts_of(send), recv_starts = starts_of(recv);
  flight f = begin(in[0]);
  f.held = {joined(apart(in, out)), room_for(out, f.finish)};
  sucl_operation r = record(SUCL_KIND_ALLTOALLV, in[0]);
  r.send = f.held[0].const_data_ptr();
  r.recv = f.held[1].data_ptr();
  r.send_counts = send.data();
  r.send_displs = send_starts.data();
  r.recv_counts = recv.data();
  r.recv_displs = recv_starts.data();
  issue(f, r);
  return start(std::move(p), std::move(f));
}

backend::request backend::barrier(const c10d::BarrierOptions& o) {
  auto p = parts(OpType::BARRIER, "barrier", {}, {}, o.timeout);
  flight f;
  {
    // Where the group has worked on GPUs, what these were given comes before.
    const std::lock_guard lock(m_tracks_mutex);
    for (const auto& [key, one] : m_tracks)
      if (key.second < 0 && !f.on) f.on = one;
  }
  issue(f, record(SUCL_KIND_BARRIER));
  const bool blocks = f.on != nullptr;
  return start(std::move(p), std::move(f), blocks);
}

}  // namespace sucl::torch
