// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "testbed.hpp"

#include <algorithm>
#include <memory>

namespace sucl::bench {
namespace {

// A memory that the problem does not use is one element, since a buffer cannot be empty.
template <class T>
struct buffers {
  sycl::buffer<T, 1> send;
  sycl::buffer<T, 1> recv;
  explicit buffers(const problem& p)
      : send(sycl::range<1>(std::max<std::uint64_t>(1, send_elements(p)))),
        recv(sycl::range<1>(std::max<std::uint64_t>(1, recv_elements(p)))) {}
};

template <class T>
void write(sycl::buffer<T, 1>& buffer, const std::vector<std::byte>& from) {
  if (from.empty()) return;
  sycl::host_accessor to(buffer, sycl::write_only);
  std::copy(from.begin(), from.end(), reinterpret_cast<std::byte*>(&to[0]));
}

template <class T>
std::vector<std::byte> read(sycl::buffer<T, 1>& buffer, std::size_t bytes) {
  if (bytes == 0) return {};
  const sycl::host_accessor from(buffer, sycl::read_only);
  const auto* data = reinterpret_cast<const std::byte*>(&from[0]);
  return {data, data + bytes};
}

template <class T>
void add_library(testbed& bed, const bench_context& at, const problem& p,
                 const std::shared_ptr<buffers<T>>& memory) {
  auto arrays = std::make_shared<blocks>(p);
  if (at.wanted->blocking) {
    auto comm = std::make_shared<typed_blocking>(at.comm.blocking(), p.element);
    bed.implementations.push_back({"sucl", "blocking",
                                   [=] { call(*comm, p, *arrays, memory->send, memory->recv); },
                                   nullptr, nullptr});
  }
  if (at.wanted->event) {
    auto comm = std::make_shared<typed_asynchronous>(at.comm, p.element);
    bed.implementations.push_back(
        {"sucl", "event", [=] { call(*comm, p, *arrays, memory->send, memory->recv).wait(); },
         [=] { call(*comm, p, *arrays, memory->send, memory->recv); },
         [library = at.comm] { library.wait(); }});
  }
}

// Listing 1 of the SuCL paper: the host gets at the buffers, and MPI gets their addresses.
template <class T>
void add_host_accessor(testbed& bed, const bench_context& at, const problem& p,
                       const std::shared_ptr<buffers<T>>& memory) {
  if (!at.raw || !at.wanted->against_host_accessor) return;
  auto prepared = at.raw->prepare(p, in_place(p) ? nullptr : memory.get(), memory.get());
  if (!prepared) return;
  auto raw = std::make_shared<raw_call>(std::move(*prepared));
  const bool sends = send_elements(p) > 0;
  const bool receives = recv_elements(p) > 0;
  bed.implementations.push_back({"host-accessor", "blocking",
                                 [=] {
                                   if (sends && receives) {
                                     const sycl::host_accessor from(memory->send, sycl::read_only);
                                     const sycl::host_accessor to(memory->recv);
                                     baseline::move(*raw, &from[0], &to[0]);
                                     baseline::run(*raw);
                                   } else if (sends) {
                                     const sycl::host_accessor from(memory->send, sycl::read_only);
                                     baseline::move(*raw, &from[0], nullptr);
                                     baseline::run(*raw);
                                   } else {
                                     const sycl::host_accessor to(memory->recv);
                                     baseline::move(*raw, nullptr, &to[0]);
                                     baseline::run(*raw);
                                   }
                                 },
                                 nullptr, nullptr});
}

template <class T>
testbed make(const bench_context& at, const problem& p) {
  auto memory = std::make_shared<buffers<T>>(p);
  const std::size_t bytes = recv_elements(p) * sizeof(T);
  testbed bed;
  bed.write_send = [memory](const std::vector<std::byte>& from) { write(memory->send, from); };
  bed.write_recv = [memory](const std::vector<std::byte>& from) { write(memory->recv, from); };
  bed.read_recv = [memory, bytes] { return read(memory->recv, bytes); };
  add_library<T>(bed, at, p, memory);
  add_host_accessor<T>(bed, at, p, memory);
  return bed;
}

}  // namespace

testbed make_buffer_testbed(const bench_context& at, const problem& p) {
  return with_element_type(p.element_size(),
                           [&](auto sample) { return make<decltype(sample)>(at, p); });
}

}  // namespace sucl::bench
