// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations on memory of a GPU: on the stream of a queue of SuCL's, in order with torch's
/// streams. By what torch has for any device, so that it compiles without the headers of the
/// vendor's API.
#pragma once

#include "work.hpp"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sucl::torch {

/// A communicator for memory of a GPU, with the stream that its operations are on. Any thread.
class track {
 public:
  track(std::shared_ptr<line> on, c10::Stream stream)
      : m_calls(std::move(on)), m_stream(stream), m_before(stream.device_type()) {}
  track(const track&) = delete;
  track& operator=(const track&) = delete;
  ~track();

  line& calls() const { return *m_calls; }
  const c10::Stream& stream() const { return m_stream; }
  c10::Device device() const { return m_stream.device(); }
  /// The thread's current stream on that device, of torch's.
  c10::Stream current() const;

  /// Issues an operation, or a group that is at its end, behind what the current stream has been
  /// given.
  void issue(const sucl_operation& o);
  void end_group();
  /// The event of all that the stream has been given by now. For give_back().
  std::unique_ptr<c10::Event> mark();
  void give_back(std::unique_ptr<c10::Event> over);
  /// Lets the tensors live until that event, and takes it back.
  void adopt(std::unique_ptr<c10::Event> over, tensors held);
  /// Lets go of adopted tensors of what is done.
  void sweep();

 private:
  void follow();

  std::shared_ptr<line> m_calls;
  const c10::Stream m_stream;
  std::mutex m_mutex;
  c10::Event m_before;
  std::vector<std::unique_ptr<c10::Event>> m_unused;  ///< making one takes as long as recording it
  std::deque<std::pair<std::unique_ptr<c10::Event>, tensors>> m_held;
};

/// An operation on a track, or several. wait() has the current stream wait, not the thread: then
/// who uses the tensors' memory next comes behind it, and they are let go.
class gpu_work : public c10d::Work {
 public:
  gpu_work(work_parts parts, std::shared_ptr<track> on, tensors held, bool blocks);
  ~gpu_work() override;

  bool isCompleted() override;
  bool wait(milliseconds timeout) override;
  void synchronize() override { wait(milliseconds(0)); }
  void abort() override {}
  std::vector<at::Tensor> result() override { return outputs_of(m_parts); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return m_parts.number; }

 private:
  const work_parts m_parts;
  std::shared_ptr<track> m_on;
  std::unique_ptr<c10::Event> m_over;
  std::mutex m_letting_go;
  tensors m_held;
  bool m_blocks;  ///< the thread too, as a barrier does
  c10::intrusive_ptr<c10::ivalue::Future> m_future;
};

}  // namespace sucl::torch
