// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The process group of torch.distributed on a communicator of SuCL.
#pragma once

#include "gpu.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sucl::torch {

class work_from_any;

using some_backend = c10::intrusive_ptr<c10d::Backend>;

/// What getError() returns, where torch has it.
template <class Backend>
struct error_of {
  enum class type {};
};
template <class Backend>
  requires requires(Backend& b) { b.getError(); }
struct error_of<Backend> {
  using type = decltype(std::declval<Backend&>().getError());
};
using error_type = error_of<c10d::Backend>::type;

/// Options as torch has them, which Python can copy.
struct backend_options : c10d::Backend::Options {
  using Options::Options;
};

/// How a group is made.
struct group_options {
  std::string name;         ///< of the backend
  std::string id;           ///< of the group, of which there is no other in the job
  std::vector<int> ranks;   ///< of the job
  milliseconds timeout{0};  ///< of operations that name none
  bool own_limit = false;   ///< it is shorter than what SuCL itself gives operations
  std::function<void(bool aborted)> ended;
  /// Makes a communicator for memory of a GPU, of the whole group or, unless `peer` is negative, of
  /// this rank and that one, which alone make it; with the identity of its stream in torch.
  std::function<std::pair<sucl_port_handle, std::int64_t>(c10::Device gpu, int peer)> on_gpu;
  /// Makes a group of these ranks of the job, which alone call it, with an id of its own.
  std::function<some_backend(const std::string& id, const std::vector<int>& ranks,
                             milliseconds timeout)>
      part;
};

/// Nothing says `override`, and functions that newer releases of torch call by another name have
/// that name too: a release that lacks one of them compiles this as well.
class backend : public c10d::Backend {
  using request = c10::intrusive_ptr<c10d::Work>;
  using lists = std::vector<tensors>;

 public:
  backend(const sucl_port_handle& h, int rank, int size, group_options options);
  ~backend();

  const std::string getBackendName() const { return m_options.name; }
  void setTimeout(milliseconds timeout);
  void setSequenceNumberForGroup() {}
  uint64_t getSequenceNumberForGroup() { return m_number; }
  void shutdown();
  void abort();
  /// A copy, which is the caller's.
  c10::intrusive_ptr<Options> getBackendOptions();
  /// Of what kind the first failure of the group's operations is.
  error_type getError();
  const std::vector<int>& ranks_of_job() const { return m_options.ranks; }

  bool supportsSplitting() const { return true; }
  /// A group of a part of the ranks, which all ranks call; null where this rank is not in it. It
  /// shares nothing with this one, so that the others have nothing to do.
  some_backend split(const std::vector<int>& ranks, const c10::intrusive_ptr<Options>& o);
  some_backend split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                     const c10::intrusive_ptr<Options>& o) {
    return split(ranks, o);
  }
  int splits() const { return m_splits; }
  bool supportsShrinking() const { return true; }
  /// A group of the other ranks, which alone call it. `flags`: 1 to give up what is in flight on
  /// this one.
  some_backend shrink(const std::vector<int64_t>& ranks_to_exclude, int flags,
                      const c10::intrusive_ptr<Options>& o);
  void eagerConnectSingleDevice(at::Device device);

  request allreduce(tensors& list, const c10d::AllreduceOptions& o);
  request allreduce_sparse(tensors& list, const c10d::AllreduceOptions& o);
  request allreduce_coalesced(tensors& list, const c10d::AllreduceCoalescedOptions& o);
  request reduce(tensors& list, const c10d::ReduceOptions& o);
  request reduce_scatter(tensors& out, lists& in, const c10d::ReduceScatterOptions& o);
  request _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                               const c10d::ReduceScatterOptions& o);
  request reduce_scatter_single(at::Tensor& out, at::Tensor& in,
                                const c10d::ReduceScatterOptions& o) {
    return _reduce_scatter_base(out, in, o);
  }
  request reduce_scatter_tensor_coalesced(tensors& out, tensors& in,
                                          const c10d::ReduceScatterOptions& o);
  request reduce_scatter_single_coalesced(tensors& out, tensors& in,
                                          const c10d::ReduceScatterOptions& o) {
    return reduce_scatter_tensor_coalesced(out, in, o);
  }

  request broadcast(tensors& list, const c10d::BroadcastOptions& o);
  request allgather(lists& out, tensors& in, const c10d::AllgatherOptions& o);
  request allgather_coalesced(lists& out, tensors& in, const c10d::AllgatherOptions& o);
  request _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& o);
  request all_gather_single(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& o) {
    return _allgather_base(out, in, o);
  }
  request allgather_into_tensor_coalesced(tensors& out, tensors& in,
                                          const c10d::AllgatherOptions& o);
  request all_gather_single_coalesced(tensors& out, tensors& in, const c10d::AllgatherOptions& o) {
    return allgather_into_tensor_coalesced(out, in, o);
  }
  request gather(lists& out, tensors& in, const c10d::GatherOptions& o);
  request scatter(tensors& out, lists& in, const c10d::ScatterOptions& o);
  request alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_splits,
                        std::vector<int64_t>& in_splits, const c10d::AllToAllOptions& o);
  request all_to_all_single(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_splits,
                            std::vector<int64_t>& in_splits, const c10d::AllToAllOptions& o) {
    return alltoall_base(out, in, out_splits, in_splits, o);
  }
  request alltoall(tensors& out, tensors& in, const c10d::AllToAllOptions& o);

  request send(tensors& list, int to, int tag);
  request recv(tensors& list, int from, int tag);
  request recvAnysource(tensors& list, int tag);
  request barrier(const c10d::BarrierOptions& o);
  void monitoredBarrier(const c10d::BarrierOptions& o, bool all_ranks);

  bool supportsCoalescing() const { return true; }
  void startCoalescing();
  request endCoalescing();

 private:
  friend class work_from_any;

  void give_up();
  void report_end(bool aborted);
  sucl_operation record(sucl_kind kind) const;
  sucl_operation record(sucl_kind kind, const at::Tensor& like) const;
  void issue(flight& f, const sucl_operation& o);
  operation issue(const sucl_operation& o);
  work_parts parts(c10d::OpType type, const char* what, tensors inputs, lists outputs,
                   milliseconds timeout);
  request start(work_parts p, flight f, bool blocks = false);
  flight begin(const tensors& list) { return list.empty() ? flight{} : begin(list[0]); }
  flight begin(const at::Tensor& like, int peer = -1);
  std::shared_ptr<track> track_on(c10::Device gpu, int peer);
  void allreduce_in_place(flight& f, const at::Tensor& data, const c10d::ReduceOp& op);
  request allreduce_each(tensors& list, const c10d::AllreduceOptions& o);
  request allreduce_of_several(tensors& list, const c10d::AllreduceOptions& o);
  request allgather_of_several(lists& out, tensors& in, const c10d::AllgatherOptions& o);
  request start_on_gpu(sucl_kind kind, work_parts p, flight f, int peer, int tag);
  void check_root(std::int64_t root) const;
  void check_lists(const lists& all, const char* what) const;
  void check_sum(const at::Tensor& whole, const at::Tensor& part, const char* what) const;
  void gather_all(flight& f, const at::Tensor& in, const tensors& out);
  void check_peer(int peer, int tag) const;
  operation start_message(sucl_kind kind, int peer, int tag, void* memory, std::uint64_t bytes);
  bool take_from_any(work_from_any& w, int tag);
  int arrived_from(int tag) const;

  const group_options m_options;
  std::shared_ptr<line> m_line;
  std::shared_ptr<afterwards> m_rest = std::make_shared<afterwards>();
  milliseconds m_timeout;
  std::atomic<bool> m_own_limit;
  std::atomic<bool> m_has_ended{false};
  std::atomic<int> m_splits{0}, m_shrinks{0};
  std::atomic<std::uint64_t> m_number{0};
  std::mutex m_tracks_mutex;
  std::map<std::pair<int, int>, std::shared_ptr<track>> m_tracks;  ///< by device and peer
  bool m_coalesces = false;
  std::vector<request> m_coalesced;
  flight m_group;  ///< messages on a GPU that are coalesced
  std::mutex m_from_any_mutex;
  /// Receives from any rank, by tag, in the order of the calls.
  std::map<int, std::deque<work_from_any*>> m_from_any;
};

}  // namespace sucl::torch
