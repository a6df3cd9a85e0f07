// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/rtc/kernel_launcher.hpp"

#include "backends/device_kernels/memory/nvlink.hpp"
#include "base/error.hpp"
#include "base/system/library.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/rtc/kernel_forms.hpp"

#include <algorithm>
#include <mutex>
#include <set>

namespace sucl::sycl_layer {
namespace {

using core::kernel_launch;
using core::message_launch;
using core::plan_launch;
using events = std::vector<::sycl::event>;
using buffer_list = std::vector<buffer_use>;

// Work groups of this size fit a processor of every GPU, whatever a kernel needs.
constexpr int items_on_gpus = 256;
// Two of them. Some slots stay free: kernels of two communicators that meet in different order on
// different GPUs go on as long as each has one.
constexpr int groups_on_processor = 2;
constexpr int slots_left = 8;

int groups_for(const ::sycl::device& d) {
  const auto processors = static_cast<int>(d.get_info<::sycl::info::device::max_compute_units>());
  return std::clamp(groups_on_processor * processors - slots_left, 1, kernels::max_groups);
}

/// Functions of the vendor: to give a device access to memory of the host, and to distinguish
/// devices.
struct vendor_functions {
  base::library library;
  int (*add)(void*, std::size_t, unsigned) = nullptr;
  int (*address)(void**, void*, unsigned) = nullptr;
  int (*remove)(void*) = nullptr;
  int (*name)(void*, int) = nullptr;  ///< 16 bytes that no other device has

  explicit vendor_functions(bool is_hip)
      : library(base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1")) {
    const auto find = [&](auto& function, const char* cuda, const char* hip) {
      function = library.symbol_as<std::decay_t<decltype(function)>>(is_hip ? hip : cuda);
    };
    find(add, "cuMemHostRegister_v2", "hipHostRegister");
    find(address, "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer");
    find(remove, "cuMemHostUnregister", "hipHostUnregister");
    find(name, "cuDeviceGetUuid_v2", "hipDeviceGetUuid");
  }
};

const vendor_functions& vendor(const ::sycl::queue& q) {
  static const vendor_functions functions(backend_name(q.get_device()).find("hip") !=
                                          std::string::npos);
  return functions;
}

#ifdef SYCL_IMPLEMENTATION_ACPP

// A command with accessors, for whose buffers the device has other addresses than the call. What is
// no buffer is at `send` or `recv`.
template <class Kernel>
::sycl::event submit_buffers(submitter& queue, const ::sycl::nd_range<1>& range, const events& deps,
                             Kernel kernel, const buffer_list& buffers, const std::byte* send,
                             std::byte* recv) {
  for (const auto& use : buffers)
    (use.operand.is_send ? kernel.send_start : kernel.recv_start) = use.operand.start;
  if (kernel.in_place) kernel.send_start = kernel.recv_start;
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.parallel_for(range, [=, held = held_buffers(buffers, h)](::sycl::nd_item<1> item) {
      const std::byte* read = send;
      if (held.reads[0]) read = held.reads[0]->get_pointer();
      std::byte* written = recv;
      if (held.writes[0]) written = held.writes[0]->get_pointer();
      // In place a rank may only read its receive memory, as that of a reduce which is no root.
      kernel(item, read, kernel.in_place && !written ? const_cast<std::byte*>(read) : written);
    });
  });
}

// The same for a message, or a send and a recv, of which each has its memory in a buffer or none.
::sycl::event submit_buffers(submitter& queue, const ::sycl::nd_range<1>& range, const events& deps,
                             const kernels::message_args& args, const buffer_list& buffers) {
  std::size_t send_start = 0, recv_start = 0;
  for (const auto& use : buffers)
    (use.operand.is_send ? send_start : recv_start) = use.operand.start;
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    const ::sycl::local_accessor<kernels::message_board, 1> board(::sycl::range<1>(1), h);
    h.parallel_for(range, [=, held = held_buffers(buffers, h)](::sycl::nd_item<1> item) {
      const std::byte* read = nullptr;
      if (held.reads[0]) read = held.reads[0]->get_pointer();
      std::byte* send = const_cast<std::byte*>(read) + send_start;
      std::byte* recv = nullptr;
      if (held.writes[0]) recv = held.writes[0]->get_pointer() + recv_start;
      kernels::message kernel{args};
      kernel.what.first.memory = args.first.sends ? send : recv;
      kernel.what.second.memory = args.second.sends ? send : recv;
      kernel(item, &board[0]);
    });
  });
}

#endif

}  // namespace

#ifdef SYCL_IMPLEMENTATION_ACPP

bool has_kernels_for([[maybe_unused]] const ::sycl::device& d) {
#if defined(__ACPP_ENABLE_CUDA_TARGET__) || defined(__HIPSYCL_ENABLE_CUDA_TARGET__)
  if (d.get_backend() == ::sycl::backend::cuda) return true;
#endif
#if defined(__ACPP_ENABLE_HIP_TARGET__) || defined(__HIPSYCL_ENABLE_HIP_TARGET__)
  if (d.get_backend() == ::sycl::backend::hip) return true;
#endif
  return false;
}

void kernel_launcher::prepare() {
  if (!has_kernels_for(m_queue.get_device()))
    base::fail(errc::unavailable,
               "this library has no kernels for devices of " + backend_name(m_queue.get_device()),
               "Build SuCL with SUCL_ACPP_TARGETS naming the device, as in omp,cuda:sm_90");
  load_kernels();
}

// Launches each kernel once, with nothing to do. CUDA loads a kernel when it is launched first:
// that takes memory, for which the launch may fail, and waits for all kernels that run, which may
// be waiting for this one. Here both are harmless.
void kernel_launcher::load_kernels() {
  static std::mutex mutex;
  static auto& loaded = *new std::set<int>;
  const std::lock_guard lock(mutex);
  const int number = native_number(m_queue.get_device());
  if (loaded.count(number)) return;
  submitter own(m_queue);
  const auto load = [&](const kernel_launch& k) {
    checked(true, [&] { return launch_kernel(own, k, items, {}); });
    checked(true, [&] {
      return with_kernel(k, [&](const auto& kernel) {
        return submit_buffers(own, range_of(1, items), {}, kernel, {}, nullptr, nullptr);
      });
    });
  };
  constexpr sucl_type none = -1;
  for (const sucl_type type :
       {none, sucl_type{SUCL_TYPE_FP32}, sucl_type{SUCL_TYPE_FP64}, sucl_type{SUCL_TYPE_FP16},
        sucl_type{SUCL_TYPE_BF16}, sucl_type{SUCL_TYPE_INT32}})
    for (const int listed : {0, 1, kernels::max_ranks})  // ranks with lists
      for (std::size_t how = 0; how < std::size(kernels::protocol_names); ++how)
        for (const bool direct : {false, true}) {
          kernel_launch k;
          k.reduces = type != none;
          k.type = k.reduces ? type : sucl_type{SUCL_TYPE_BYTES};
          k.op = k.reduces ? SUCL_OP_SUM : SUCL_OP_NONE;
          if (listed) k.lists = std::make_unique<kernels::listed[]>(2);
          k.what.ranks = listed;
          k.what.how = static_cast<kernels::protocol>(how);
          k.what.may_be_direct = direct;
          load(k);
        }
  for (const auto& [type, op] : plan_kernels) {
    plan_launch k;
    k.reduces = op != SUCL_OP_NONE;
    k.type = type;
    k.op = op;
    checked(true, [&] { return launch_kernel(own, k, items, {}); });
    checked(true, [&] {
      return with_plan_kernel(k, [&](const auto& kernel) {
        return submit_buffers(own, range_of(1, items), {}, kernel, {}, nullptr, nullptr);
      });
    });
  }
  const message_launch messages;
  checked(true, [&] { return launch_kernel(own, messages, items, {}); });
  checked(true, [&] { return submit_buffers(own, range_of(1, items), {}, messages.what, {}); });
  m_queue.wait();
  loaded.insert(number);
}

// `here`: the kernel is launched by this thread, before the call returns.
template <class Submit>
::sycl::event kernel_launcher::checked(bool here, Submit&& submit) {
  if (!m_errors || !here) return submit();
  if (const auto before = m_errors->clear()) throw error(*before);
  auto done = submit();
  if (const auto problem = m_errors->launch()) throw error(*problem);
  return done;
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const kernel_launch& k,
                                      const events& deps, const buffer_list& buffers) {
  if (queue.is_in_order() && !program_submits_instantly()) flush_and_enqueue();
  submitter to = m_tracker.submitter_to(queue);
  const auto with_buffers = [&](const auto& kernel) {
    return submit_buffers(to, range_of(k.groups, items), deps, kernel, buffers,
                          static_cast<const std::byte*>(k.from), static_cast<std::byte*>(k.to));
  };
  auto done = checked(queue.is_in_order() && buffers.empty(), [&] {
    return buffers.empty() ? launch_kernel(to, k, items, deps) : with_kernel(k, with_buffers);
  });
  if (!queue.is_in_order() || !buffers.empty()) flush();
  return done;
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const plan_launch& k,
                                      const events& deps, const buffer_list& buffers) {
  if (queue.is_in_order() && !program_submits_instantly()) flush_and_enqueue();
  submitter to = m_tracker.submitter_to(queue);
  const auto with_buffers = [&](const auto& kernel) {
    return submit_buffers(to, range_of(k.groups, items), deps, kernel, buffers,
                          static_cast<const std::byte*>(k.from), static_cast<std::byte*>(k.to));
  };
  auto done = checked(queue.is_in_order() && buffers.empty(), [&] {
    return buffers.empty() ? launch_kernel(to, k, items, deps) : with_plan_kernel(k, with_buffers);
  });
  if (!queue.is_in_order() || !buffers.empty()) flush();
  return done;
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const message_launch& k,
                                      const events& deps, const buffer_list& buffers) {
  if (queue.is_in_order() && !program_submits_instantly()) flush_and_enqueue();
  submitter to = m_tracker.submitter_to(queue);
  auto done = checked(queue.is_in_order() && buffers.empty(), [&] {
    return buffers.empty() ? launch_kernel(to, k, items, deps)
                           : submit_buffers(to, range_of(k.groups, items), deps, k.what, buffers);
  });
  if (!queue.is_in_order() || !buffers.empty()) flush();
  return done;
}

#else

// Not where commands go on native streams: buffers are known to such commands alone, and DPC++ has
// a compiler at run time for other devices only.
bool has_kernels_for(const ::sycl::device& d) { return !has_native_streams(d); }

void kernel_launcher::prepare() {
  auto d = m_queue.get_device();
  if (!has_kernels_for(d))
    base::fail(errc::unavailable,
               "with DPC++ there are no kernels for devices of " + backend_name(d),
               "Build SuCL with AdaptiveCpp: SUCL_SYCL=adaptivecpp");
#ifdef SUCL_KERNELS_AT_RUN_TIME
  if (!d.ext_oneapi_can_build(::sycl::ext::oneapi::experimental::source_language::sycl))
    base::fail(errc::unavailable,
               "the SYCL runtime compiles no kernels for devices of " + backend_name(d),
               "Install the package intel-sycl-rt whole");
#endif
  kernels::prepare(m_queue);
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const kernel_launch& k,
                                      const events& deps, const buffer_list&) {
  submitter to = m_tracker.submitter_to(queue);
  return launch_kernel(to, k, items, deps);
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const message_launch& k,
                                      const events& deps, const buffer_list&) {
  submitter to = m_tracker.submitter_to(queue);
  return launch_kernel(to, k, items, deps);
}

::sycl::event kernel_launcher::submit(::sycl::queue& queue, const plan_launch& k,
                                      const events& deps, const buffer_list&) {
  submitter to = m_tracker.submitter_to(queue);
  return launch_kernel(to, k, items, deps);
}

#endif

kernel_launcher::kernel_launcher(const ::sycl::queue& of, stream_tracker* tracker)
    : m_queue(own_queue(of, true)), m_tracker(tracker ? *tracker : m_own_tracker) {
  const auto d = of.get_device();
  on_host = d.is_cpu();
  items = on_host ? 1 : items_on_gpus;
  groups = on_host ? 1 : groups_for(d);
  if (has_native_streams(d))
    m_errors = &core::device_errors::of(backend_name(d).find("hip") != std::string::npos,
                                        native_number(d));
}

std::shared_ptr<void> kernel_launcher::allocate(std::uint64_t bytes) {
  void* memory = ::sycl::malloc_device(bytes, m_queue);
  if (!memory) take_errors(m_queue);
  if (!memory)
    base::fail(errc::out_of_memory,
               "the device has no memory for " + std::to_string(bytes) + " bytes",
               "Free memory of the device first");
  m_queue.memset(memory, 0, bytes).wait();
  return {memory, [q = m_queue](void* m) { ::sycl::free(m, q); }};
}

std::shared_ptr<void> kernel_launcher::allocate_host(std::uint64_t bytes) {
  void* memory = ::sycl::malloc_host(bytes, m_queue);
  if (!memory) take_errors(m_queue);
  if (!memory)
    base::fail(errc::out_of_memory, "there is no host memory that the device reaches",
               "Free such memory first");
  std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
  return {memory, [q = m_queue](void* m) { ::sycl::free(m, q); }};
}

void kernel_launcher::write(void* to, const void* from, std::uint64_t bytes) {
  m_queue.memcpy(to, from, bytes).wait();
}

void* kernel_launcher::pin(void* memory, std::uint64_t bytes) {
  if (on_host) return memory;
  if (!has_native_streams(m_queue.get_device()))
    base::fail(errc::unavailable, "this device cannot be given memory of the host");
  constexpr unsigned portable_and_mapped = 3;
  const auto& v = vendor(m_queue);
  void* there = nullptr;
  int code = v.add(memory, bytes, portable_and_mapped);
  if (code == 0) code = v.address(&there, memory, 0);
  if (code != 0)
    base::fail(errc::native,
               "the device cannot be given memory of the host: code " + std::to_string(code) +
                   " of the driver",
               "Raise the limit on locked memory (ulimit -l)");
  m_pinned.emplace_back(there, memory);
  return there;
}

void kernel_launcher::release(void* memory) {
  const auto known = std::find_if(m_pinned.begin(), m_pinned.end(),
                                  [&](const auto& p) { return p.first == memory; });
  if (known == m_pinned.end()) return;
  vendor(m_queue).remove(known->second);
  m_pinned.erase(known);
}

template <class Launch>
void* kernel_launcher::launch_on(const Launch& kernel, void* target) {
  if (target) {
    auto& t = *static_cast<launch_target*>(target);
    t.done = submit(t.queue, kernel, t.deps, t.buffers);
    t.deps.clear();
    if (!t.queue.is_in_order()) t.deps.push_back(t.done);
    return nullptr;
  }
  events deps;
  if (auto before = m_tracker.before(m_queue)) deps.push_back(*before);
  auto done = submit(m_queue, kernel, deps, {});
  m_tracker.add(done, m_queue);
  return new ::sycl::event(done);
}

void* kernel_launcher::launch(const kernel_launch& kernel, void* target) {
  return launch_on(kernel, target);
}

void* kernel_launcher::launch(const message_launch& kernel, void* target) {
  return launch_on(kernel, target);
}

void* kernel_launcher::launch(const plan_launch& kernel, void* target) {
  return launch_on(kernel, target);
}

bool kernel_launcher::test(void* token) {
  auto* event = static_cast<::sycl::event*>(token);
  if (!complete({*event})) return false;
  delete event;
  return true;
}

core::kernel_device::identity_type kernel_launcher::identity() {
  identity_type identity{};
  if (!has_native_streams(m_queue.get_device())) return identity;
  try {
    if (vendor(m_queue).name(identity.data(), native_number(m_queue.get_device())) != 0) return {};
  } catch (const error&) {
    return {};  // an old driver
  }
  return identity;
}

// Not over PCI Express, nor by what is not known to.
bool kernel_launcher::keeps_ll128_stores_whole(const identity_type& peer) {
  return backend_name(m_queue.get_device()).find("cuda") != std::string::npos &&
         core::linked_by_nvlink(identity(), peer);
}

void kernel_launcher::drain() {
  m_queue.wait();
  m_tracker.drain();
}

}  // namespace sucl::sycl_layer
