// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which kernel executes an operation: from the numbers of a launch to types. A source that
/// includes it has all of SuCL's kernels among those that sucl::kernels::launch() knows.
#pragma once

#include "backends/device_kernels/memory/device.hpp"
#include "kernels/collective/collective.hpp"
#include "kernels/message/message.hpp"
#include "kernels/plan/plan.hpp"
#include "sycl/common/streams.hpp"

#include <sucl/kernels.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace sucl::sycl_layer {

inline ::sycl::nd_range<1> range_of(int groups, int items) {
  const auto n = static_cast<std::size_t>(items);
  return {::sycl::range<1>(static_cast<std::size_t>(groups) * n), ::sycl::range<1>(n)};
}

template <class Kernel, class... Memory>
::sycl::event launch_by(submitter& queue, const ::sycl::nd_range<1>& range,
                        const std::vector<::sycl::event>& deps, const Kernel& kernel,
                        const Memory&... memory) {
#ifdef SUCL_KERNELS_AT_RUN_TIME
  return kernels::launch(queue.queue(), range, deps, kernel, memory...);
#else
  return kernels::detail::launch_by(queue, range, deps, kernel, memory...);
#endif
}

/// Calls `use` with the kernel.
template <class Amounts, class Folder, class Use>
::sycl::event with_args(const core::kernel_launch& k, const kernels::exchange_args<Amounts>& j,
                        const Folder& folder, Use&& use) {
  return kernels::with_protocol<Folder>(j, [&](auto how, auto may_be_direct) {
    return use(
        kernels::collective<how(), may_be_direct(), Folder, Amounts>{j, folder, 0, 0, k.in_place});
  });
}

template <class Folder, class Use>
::sycl::event with_amounts(const core::kernel_launch& k, const Folder& folder, Use&& use) {
  using kernels::alike, kernels::exchange_args;
  if constexpr (std::is_same_v<Folder, kernels::fold_any> ||
                std::is_same_v<Folder, kernels::fold_nothing>) {
    if (k.lists)
      return core::with_lists(k, [&](const auto& j) { return with_args(k, j, folder, use); });
  }
  return with_args(k, exchange_args<alike>{k.what, k.send, k.recv}, folder, use);
}

template <class Use>
::sycl::event with_kernel(const core::kernel_launch& k, Use&& use) {
  using namespace kernels::elements;
  using kernels::fold_any, kernels::fold_nothing, kernels::fold_of;
  if (!k.reduces) return with_amounts(k, fold_nothing{}, use);
  if (k.op == SUCL_OP_SUM && !k.lists) {
    switch (k.type) {
      case SUCL_TYPE_FP32:
        return with_amounts(k, fold_of<plain<float>, kernels::elements::add>{}, use);
      case SUCL_TYPE_FP64:
        return with_amounts(k, fold_of<plain<double>, kernels::elements::add>{}, use);
      case SUCL_TYPE_FP16: return with_amounts(k, fold_of<half16, kernels::elements::add>{}, use);
      case SUCL_TYPE_BF16: return with_amounts(k, fold_of<brain16, kernels::elements::add>{}, use);
      default: break;
    }
  }
  return with_amounts(k, fold_any{k.type, k.op}, use);
}

/// Launches a collective operation on the memory that it names.
inline ::sycl::event launch_kernel(submitter& queue, const core::kernel_launch& k, int items,
                                   const std::vector<::sycl::event>& deps) {
  return with_kernel(k, [&](const auto& kernel) {
    return launch_by(queue, range_of(k.groups, items), deps, kernel,
                     static_cast<const std::byte*>(k.from), static_cast<std::byte*>(k.to));
  });
}

/// The same for messages.
inline ::sycl::event launch_kernel(submitter& queue, const core::message_launch& k, int items,
                                   const std::vector<::sycl::event>& deps) {
  return launch_by(queue, range_of(k.groups, items), deps, kernels::message{k.what},
                   kernels::local<kernels::message_board>());
}

/// Types and ops of plans that have kernels of their own, and one of the others. Where kernels are
/// compiled at run time one does for all: they are waited for.
inline constexpr std::pair<sucl_type, sucl_op> plan_kernels[] = {
#ifndef SUCL_KERNELS_AT_RUN_TIME
    {SUCL_TYPE_BYTES, SUCL_OP_NONE}, {SUCL_TYPE_FP32, SUCL_OP_SUM}, {SUCL_TYPE_FP64, SUCL_OP_SUM},
    {SUCL_TYPE_FP16, SUCL_OP_SUM},   {SUCL_TYPE_BF16, SUCL_OP_SUM},
#endif
    {SUCL_TYPE_INT32, SUCL_OP_SUM}};

/// Calls `use` with the kernel of a plan.
template <class Use>
::sycl::event with_plan_kernel(const core::plan_launch& k, Use&& use) {
  using namespace kernels::elements;
  using kernels::fold_any, kernels::fold_nothing, kernels::fold_of, kernels::plan_run;
  const auto with = [&](const auto& folder) {
    return use(plan_run<std::decay_t<decltype(folder)>>{k.what, folder, 0, 0, false});
  };
#ifndef SUCL_KERNELS_AT_RUN_TIME
  if (!k.reduces) return with(fold_nothing{});
  if (k.op == SUCL_OP_SUM) switch (k.type) {
      case SUCL_TYPE_FP32: return with(fold_of<plain<float>, kernels::elements::add>{});
      case SUCL_TYPE_FP64: return with(fold_of<plain<double>, kernels::elements::add>{});
      case SUCL_TYPE_FP16: return with(fold_of<half16, kernels::elements::add>{});
      case SUCL_TYPE_BF16: return with(fold_of<brain16, kernels::elements::add>{});
      default: break;
    }
#endif
  return with(fold_any{k.type, k.op});
}

/// Launches a run of a plan on the memory that it names.
inline ::sycl::event launch_kernel(submitter& queue, const core::plan_launch& k, int items,
                                   const std::vector<::sycl::event>& deps) {
  return with_plan_kernel(k, [&](const auto& kernel) {
    return launch_by(queue, range_of(k.groups, items), deps, kernel,
                     static_cast<const std::byte*>(k.from), static_cast<std::byte*>(k.to));
  });
}

}  // namespace sucl::sycl_layer
