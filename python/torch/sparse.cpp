// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sums of sparse tensors: each rank's elements go to all.
#include "backend.hpp"

#include <cstddef>
#include <cstdint>

namespace sucl::torch {

backend::request backend::allreduce_sparse(tensors& list, const c10d::AllreduceOptions& o) {
  if (o.reduceOp.op_ != c10d::ReduceOp::SUM)
    throw failure(SUCL_ERROR_UNSUPPORTED,
                  "unsupported reduction operation: sparse tensors have none but SUM", "Use SUM");
  const at::Tensor& t = list[0];
  check_device(t._values());
  const at::Tensor mine = t.is_coalesced() ? t : t.coalesce();
  const auto ranks = static_cast<std::size_t>(getSize());
  const at::Tensor count = at::full({1}, mine._nnz(), at::kLong);
  const at::Tensor counts = at::empty({getSize()}, at::kLong);
  at::Tensor to = counts, from = count;
  _allgather_base(to, from, {})->wait();
  lists indices(1), values(1);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::int64_t n = counts[static_cast<std::int64_t>(r)].item<std::int64_t>();
    indices[0].push_back(at::empty({mine.sparse_dim(), n}, mine._indices().options()));
    auto shape = mine._values().sizes().vec();
    shape[0] = n;
    values[0].push_back(at::empty(shape, mine._values().options()));
  }
  tensors own_indices{mine._indices()}, own_values{mine._values()};
  allgather(indices, own_indices, {})->wait();
  allgather(values, own_values, {})->wait();
  at::Tensor sum;
  for (std::size_t r = 0; r < ranks; ++r) {
    const at::Tensor part = at::_sparse_coo_tensor_unsafe(indices[0][r], values[0][r], t.sizes(),
                                                          mine._values().options());
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  t.copy_(sum.coalesce());
  return start(parts(c10d::OpType::_ALLREDUCE_SPARSE, "all_reduce", list, {list}, o.timeout), {});
}

}  // namespace sucl::torch
