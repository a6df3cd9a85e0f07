// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Calls with several tensors of a rank, which count as if they were those of several ranks. What is
// coalesced is something else: there each tensor is by itself.
#include "backend.hpp"

#include <cstdint>
#include <utility>

namespace sucl::torch {

namespace {

at::Tensor combined(const at::Tensor& a, const at::Tensor& b, const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::PREMUL_SUM:
    case c10d::ReduceOp::AVG:
    case c10d::ReduceOp::SUM: return at::add(a, b);
    case c10d::ReduceOp::PRODUCT: return at::mul(a, b);
    case c10d::ReduceOp::MIN: return at::minimum(a, b);
    case c10d::ReduceOp::MAX: return at::maximum(a, b);
    case c10d::ReduceOp::BAND: return at::bitwise_and(a, b);
    case c10d::ReduceOp::BOR: return at::bitwise_or(a, b);
    case c10d::ReduceOp::BXOR: return at::bitwise_xor(a, b);
    default: break;
  }
  op_of(op, a.scalar_type());  // says that there is none
  return a;
}

}  // namespace

backend::request backend::allreduce_of_several(tensors& list, const c10d::AllreduceOptions& o) {
  at::Tensor sum = scaled(list[0].detach(), o.reduceOp);
  for (std::size_t i = 1; i < list.size(); ++i)
    sum = combined(sum, scaled(list[i].detach(), o.reduceOp), o.reduceOp);
  // An average is one of all tensors; a factor is in already.
  auto with = o;
  if (o.reduceOp.op_ == c10d::ReduceOp::PREMUL_SUM) with.reduceOp = c10d::ReduceOp::SUM;
  if (o.reduceOp.op_ == c10d::ReduceOp::AVG) sum = at::div(sum, static_cast<double>(list.size()));
  if (sum.layout() == at::kSparse) {
    tensors one{sum.coalesce()};
    allreduce_sparse(one, with)->wait();
    for (const at::Tensor& t : list) t.copy_(one[0]);
    return start(parts(c10d::OpType::_ALLREDUCE_SPARSE, "all_reduce", list, {list}, o.timeout), {});
  }
  auto p = parts(c10d::OpType::ALLREDUCE, "all_reduce", list, {list}, o.timeout);
  flight f = begin(list);
  const at::Tensor data = dense(sum.to(list[0].scalar_type()));
  for (const at::Tensor& t : list) f.finish.emplace_back(t.detach(), data);
  allreduce_in_place(f, data, with.reduceOp);
  return start(std::move(p), std::move(f));
}

backend::request backend::allgather_of_several(lists& out, tensors& in,
                                               const c10d::AllgatherOptions& o) {
  auto p = parts(c10d::OpType::ALLGATHER, "all_gather", in, out, o.timeout);
  flight f = begin(in);
  tensors rows;
  for (const at::Tensor& t : in) rows.push_back(dense(t).detach().reshape({-1}));
  const at::Tensor from = at::cat(rows);
  const at::Tensor to = at::empty({from.numel() * getSize()}, from.options());
  const std::int64_t each = in[0].numel();
  for (const tensors& list : out)
    for (std::size_t i = 0; i < list.size(); ++i)
      f.finish.emplace_back(
          list[i].detach(),
          to.narrow(0, static_cast<std::int64_t>(i) * each, each).view(in[0].sizes()));
  sucl_operation r = record(SUCL_KIND_ALLGATHER, from);
  r.send = from.const_data_ptr();
  r.recv = to.data_ptr();
  r.count = r.recv_count = static_cast<std::uint64_t>(from.numel());
  f.held = {from, to};
  issue(f, r);
  return start(std::move(p), std::move(f));
}

}  // namespace sucl::torch
