// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "device_graph.hpp"

#include "base/error.hpp"
#include "base/system/library.hpp"

#include <string>

namespace sucl::bench {
namespace {

using handle = void*;

// Functions of CUDA's driver.
struct driver {
  base::library library = base::library::open("libcuda.so.1");
  template <class Function>
  Function find(const char* name) const {
    return library.symbol_as<Function>(name);
  }
  int (*retain)(handle*, int) = find<int (*)(handle*, int)>("cuDevicePrimaryCtxRetain");
  int (*release)(int) = find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  int (*push)(handle) = find<int (*)(handle)>("cuCtxPushCurrent_v2");
  int (*pop)(handle*) = find<int (*)(handle*)>("cuCtxPopCurrent_v2");
  int (*begin)(handle, int) = find<int (*)(handle, int)>("cuStreamBeginCapture_v2");
  int (*end)(handle, handle*) = find<int (*)(handle, handle*)>("cuStreamEndCapture");
  int (*make)(handle*, handle, unsigned long long) =
      find<int (*)(handle*, handle, unsigned long long)>("cuGraphInstantiateWithFlags");
  int (*launch)(handle, handle) = find<int (*)(handle, handle)>("cuGraphLaunch");
  int (*destroy)(handle) = find<int (*)(handle)>("cuGraphDestroy");
  int (*destroy_made)(handle) = find<int (*)(handle)>("cuGraphExecDestroy");
};

void check(int code, const char* what) {
  if (code == 0) return;
  base::fail(errc::native,
             std::string("calls cannot be captured: ") + what + ": code " + std::to_string(code) +
                 " of CUDA's driver",
             "Leave replay out of --timing");
}

}  // namespace

struct device_graph::state {
  driver cuda;
  int device;
  handle stream;
  handle context = nullptr;
  handle graph = nullptr;
  handle made = nullptr;

  class here {
   public:
    explicit here(const state& s) : m_cuda(s.cuda) { check(m_cuda.push(s.context), "its context"); }
    ~here() {
      handle other;
      m_cuda.pop(&other);
    }

   private:
    const driver& m_cuda;
  };

  ~state() {
    if (!context) return;
    cuda.push(context);
    if (made) cuda.destroy_made(made);
    if (graph) cuda.destroy(graph);
    handle other;
    cuda.pop(&other);
    cuda.release(device);
  }
};

device_graph::device_graph(int device, void* stream, const std::function<void()>& issue)
    : m_state(new state{.cuda = {}, .device = device, .stream = stream}) {
  // Other threads of the process may go on using the device.
  constexpr int relaxed = 2;
  state& s = *m_state;
  check(s.cuda.retain(&s.context, device), "its context");
  const state::here here(s);
  check(s.cuda.begin(stream, relaxed), "the beginning");
  issue();
  check(s.cuda.end(stream, &s.graph), "the end");
  check(s.cuda.make(&s.made, s.graph, 0), "an executable graph");
}

device_graph::~device_graph() = default;

void device_graph::launch() {
  const state::here here(*m_state);
  check(m_state->cuda.launch(m_state->made, m_state->stream), "a launch");
}

}  // namespace sucl::bench
