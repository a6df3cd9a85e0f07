// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations of more than 2^31 elements, which an int cannot count:
//
//   conformance_large [BACKEND]
//
// With a name, that backend must execute them. Skipped, with exit status 77, where the machine has
// too little memory.
#include <sucl/sucl.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr std::size_t n = (std::size_t{1} << 31) + (std::size_t{1} << 26) + 5;
// A prime: no power of two of elements later the same values come again.
constexpr std::size_t period = 1000003;

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::size_t kib = 0;
  while (file >> key >> kib >> unit)
    if (key == "MemAvailable:") return kib << 10;
  return 0;
}

std::int8_t value(int rank, std::size_t i) {
  return static_cast<std::int8_t>((i * 37 + static_cast<std::size_t>(rank) * 5) % 31);
}

template <class Value>
std::vector<std::int8_t> one_period(Value&& v) {
  std::vector<std::int8_t> p(period);
  for (std::size_t i = 0; i < period; ++i) p[i] = v(i);
  return p;
}

void fill(std::int8_t* data, const std::vector<std::int8_t>& with) {
  for (std::size_t i = 0; i < n; i += period)
    std::memcpy(data + i, with.data(), std::min(period, n - i));
}

bool check(const char* what, int rank, const std::int8_t* data,
           const std::vector<std::int8_t>& expected) {
  for (std::size_t start = 0; start < n; start += period) {
    const std::size_t length = std::min(period, n - start);
    if (std::memcmp(data + start, expected.data(), length) == 0) continue;
    const auto* wrong = std::mismatch(data + start, data + start + length, expected.begin()).first;
    std::printf("FAILED on rank %d: %s of %zu int8, element %td: got %d, expected %d\n", rank, what,
                n, wrong - data, *wrong, expected[static_cast<std::size_t>(wrong - data) - start]);
    return false;
  }
  return true;
}

bool enough_memory(sucl::communicator& comm) {
  std::uint64_t least = available_bytes();
  comm.blocking().allreduce(&least, 1, sucl::op::min);
  // The memory here, and as much again in the MPI library.
  const auto needed = 2 * n * static_cast<std::size_t>(comm.size()) + (std::size_t{1} << 30);
  if (least >= needed) return true;
  if (comm.rank() == 0)
    std::printf("skipped: %zu GiB of memory are free, %zu are needed\n",
                static_cast<std::size_t>(least >> 30), (needed >> 30) + 1);
  return false;
}

bool carried_by(const char* backend, sucl::communicator& comm) {
  using sucl::kind;
  bool all = true;
  for (const kind k : {kind::allreduce, kind::broadcast, kind::alltoallv, kind::send, kind::recv}) {
    const auto text = comm.explain(k, n, sucl::type::int8);
    if (text.find("executed by " + std::string(backend) + "\n") != std::string::npos) continue;
    std::printf("FAILED: not executed by %s: %s", backend, text.c_str());
    all = false;
  }
  return all;
}

// From rank 0 to the last one: one block of an alltoallv, among small ones, then a message. `data`
// has them on both ranks.
bool from_first_to_last(sucl::communicator& comm, std::int8_t* data) {
  const int me = comm.rank(), last = comm.size() - 1;
  const auto p = static_cast<std::size_t>(comm.size());
  const auto from_first = one_period([&](std::size_t i) { return value(0, i); });
  std::vector<std::size_t> sent(p, 1), received(p, 1), displs(p);
  std::vector<std::int8_t> small(p, static_cast<std::int8_t>(me));
  for (std::size_t r = 0; r < p; ++r) displs[r] = r;
  if (me == 0) {  // the large block is the last one
    sent.back() = n;
    fill(data + p - 1, from_first);
    std::fill_n(data, p - 1, std::int8_t{0});
  } else if (me == last) {  // and the first one
    received.front() = n;
    for (std::size_t r = 1; r < p; ++r) displs[r] = n + r - 1;
  }
  std::vector<std::size_t> dense(p);
  for (std::size_t r = 0; r < p; ++r) dense[r] = r;
  std::vector<std::int8_t> got(p, -1);
  comm.blocking().alltoallv(me == 0 ? data : small.data(), sent, dense,
                            me == last ? data : got.data(), received, displs);
  bool good = me != last || check("alltoallv", me, data, from_first);
  for (std::size_t r = me == last ? 1 : 0; r < p; ++r) {
    const int what = me == last ? data[displs[r]] : got[r];
    if (what == static_cast<int>(r)) continue;
    std::printf("FAILED on rank %d: alltoallv: got %d from rank %zu\n", me, what, r);
    good = false;
  }
  if (me == 0) {
    comm.send(data + p - 1, n, last).wait();
  } else if (me == last) {
    std::memset(data, 0, n);
    comm.recv(data, n, 0).wait();
    good = check("recv", me, data, from_first) && good;
  }
  comm.check();
  return good;
}

int run(sucl::runtime& rt, const char* backend) {
  auto comm = rt.world();
  const int me = comm.rank();
  const int last = comm.size() - 1;
  if (backend && !carried_by(backend, comm)) return 1;
  if (!enough_memory(comm)) return 77;
  const auto mine = one_period([&](std::size_t i) { return value(me, i); });
  const auto sums = one_period([&](std::size_t i) {
    int total = 0;
    for (int r = 0; r <= last; ++r) total += value(r, i);
    return static_cast<std::int8_t>(total);
  });
  const std::unique_ptr<std::int8_t[]> data(new std::int8_t[n + comm.members().size()]);
  fill(data.get(), mine);
  comm.blocking().allreduce(data.get(), n, sucl::op::sum);
  bool good = check("allreduce", me, data.get(), sums);
  fill(data.get(), mine);
  comm.broadcast(data.get(), n, last).wait();
  comm.check();
  good = check("broadcast", me, data.get(),
               one_period([&](std::size_t i) { return value(last, i); })) &&
         good;
  good = from_first_to_last(comm, data.get()) && good;
  if (good && me == 0) std::printf("%zu elements: all are right\n", n);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    return run(rt, argc > 1 ? argv[1] : nullptr);
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
}
