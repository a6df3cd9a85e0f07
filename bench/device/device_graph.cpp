// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_graph.hpp"

#include "cuda_context.hpp"

namespace sucl::bench {

struct device_graph::state {
  using handle = cuda_handle;

  cuda_context cuda;
  handle stream;
  handle graph = nullptr;
  handle made = nullptr;
  int (*begin)(handle, int) = cuda.find<int (*)(handle, int)>("cuStreamBeginCapture_v2");
  int (*end)(handle, handle*) = cuda.find<int (*)(handle, handle*)>("cuStreamEndCapture");
  int (*make)(handle*, handle, unsigned long long) =
      cuda.find<int (*)(handle*, handle, unsigned long long)>("cuGraphInstantiateWithFlags");
  int (*launch)(handle, handle) = cuda.find<int (*)(handle, handle)>("cuGraphLaunch");
  int (*destroy)(handle) = cuda.find<int (*)(handle)>("cuGraphDestroy");
  int (*destroy_made)(handle) = cuda.find<int (*)(handle)>("cuGraphExecDestroy");

  state(int device, void* on)
      : cuda(device, "calls cannot be captured", "Leave replay out of --timing"), stream(on) {}
  ~state() {
    const cuda_context::here here(cuda);
    if (made) destroy_made(made);
    if (graph) destroy(graph);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

device_graph::device_graph(int device, void* stream, const std::function<void()>& issue)
    : m_state(new state(device, stream)) {
  constexpr int relaxed = 2;  // other threads of the process may go on using the device
  state& s = *m_state;
  const cuda_context::here here(s.cuda);
  s.cuda.check(s.begin(stream, relaxed), "the beginning");
  issue();
  s.cuda.check(s.end(stream, &s.graph), "the end");
  s.cuda.check(s.make(&s.made, s.graph, 0), "an executable graph");
}

device_graph::~device_graph() = default;

void device_graph::launch() {
  const cuda_context::here here(m_state->cuda);
  m_state->cuda.check(m_state->launch(m_state->made, m_state->stream), "a launch");
}

}  // namespace sucl::bench
