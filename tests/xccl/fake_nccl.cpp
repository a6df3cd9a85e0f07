// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plays NCCL for ranks that are threads of one process. Calls are executed when they are made,
// or at the end of their group; a collective waits there for the other ranks. The environment
// makes it misbehave: FAKE_NCCL_VERSION, FAKE_NCCL_FAIL (the name of a call), FAKE_NCCL_ASYNC. With
// FAKE_NCCL_LATE a call outside of a group is executed when the next group is; with FAKE_NCCL_ENDS
// the end of a communicator takes as many milliseconds, and must not outlast what the library uses.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int internal_error = 3;

struct unique_id {
  char bytes[128];
};

struct call {
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  int type = 0;
  int op = 0;
  int root = 0;
};

using bytes = std::vector<char>;

// What the ranks of a communicator share.
struct board {
  explicit board(int ranks) : size(ranks), calls(static_cast<std::size_t>(ranks)) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<call> calls;  // of the collective that is going on
  int arrived = 0;
  std::uint64_t round = 0;
  std::map<std::pair<int, int>, std::deque<bytes>> mail;

  void barrier() {
    std::unique_lock lock(mutex);
    const auto mine = round;
    if (++arrived == size) {
      arrived = 0;
      ++round;
      changed.notify_all();
    } else {
      changed.wait(lock, [&] { return round != mine; });
    }
  }
};

std::mutex boards_mutex;
std::map<std::string, std::weak_ptr<board>> boards;

bool configured_to(const char* variable, const char* value) {
  const char* set = std::getenv(variable);
  return set && std::strcmp(set, value) == 0;
}

// What the library uses is gone once the process ends, which takes the driver a while.
std::atomic<bool> has_been_unloaded{false};
struct unload {
  ~unload() {
    has_been_unloaded = true;
    if (std::getenv("FAKE_NCCL_ENDS")) std::this_thread::sleep_for(std::chrono::seconds(2));
  }
} unloads;

struct communicator {
  std::shared_ptr<board> shared;
  int rank;
};

std::size_t size_of(int type) {
  static const std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

template <class T>
void fold(const std::vector<call>& all, std::size_t first, std::size_t count, int op, void* to) {
  auto* result = static_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    T value = static_cast<const T*>(all[0].send)[first + i];
    for (std::size_t r = 1; r < all.size(); ++r) {
      const T other = static_cast<const T*>(all[r].send)[first + i];
      if (op == 0 || op == 4) value = static_cast<T>(value + other);
      if (op == 1) value = static_cast<T>(value * other);
      if (op == 2) value = std::max(value, other);
      if (op == 3) value = std::min(value, other);
    }
    result[i] = op == 4 ? static_cast<T>(value / static_cast<T>(all.size())) : value;
  }
}

bytes reduced(const std::vector<call>& all, std::size_t first, std::size_t count, int type,
              int op) {
  bytes result(count * size_of(type));
  const auto run = [&](auto sample) {
    fold<decltype(sample)>(all, first, count, op, result.data());
  };
  if (type == 0) run(std::int8_t{});
  if (type == 1) run(std::uint8_t{});
  if (type == 2) run(std::int32_t{});
  if (type == 3) run(std::uint32_t{});
  if (type == 4) run(std::int64_t{});
  if (type == 5) run(std::uint64_t{});
  if (type == 7) run(float{});
  if (type == 8) run(double{});
  return result;
}

using compute = std::function<bytes(const std::vector<call>&, int rank)>;

// All calls are known and all results computed before anything is written.
void collective(communicator& comm, const call& mine, const compute& result_of) {
  board& b = *comm.shared;
  {
    const std::lock_guard lock(b.mutex);
    b.calls[static_cast<std::size_t>(comm.rank)] = mine;
  }
  b.barrier();
  const bytes result = result_of(b.calls, comm.rank);
  b.barrier();
  if (!result.empty()) std::memcpy(mine.recv, result.data(), result.size());
}

thread_local int depth = 0;
thread_local std::vector<std::function<void()>> sends, others, late;

void flush() {
  for (const auto& run : std::exchange(late, {})) run();
  const auto first = std::move(sends), second = std::move(others);
  sends.clear();
  others.clear();
  for (const auto& run : first) run();
  for (const auto& run : second) run();
}

int enqueue(const char* name, bool is_send, std::function<void()> run) {
  if (configured_to("FAKE_NCCL_FAIL", name)) return internal_error;
  if (depth == 0 && std::getenv("FAKE_NCCL_LATE")) {
    late.push_back(std::move(run));
    return 0;
  }
  (is_send ? sends : others).push_back(std::move(run));
  if (depth == 0) flush();
  return 0;
}

int enqueue_collective(const char* name, communicator* comm, const call& mine, compute result_of) {
  return enqueue(name, false, [=] { collective(*comm, mine, result_of); });
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  const char* set = std::getenv("FAKE_NCCL_VERSION");
  *version = set ? std::atoi(set) : 22809;
  return 0;
}

int ncclGetUniqueId(unique_id* id) {
  static int made = 0;
  const std::lock_guard lock(boards_mutex);
  const std::string text = "board " + std::to_string(++made);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, text.data(), text.size());
  return 0;
}

int ncclCommInitRank(communicator** comm, int size, unique_id id, int rank) {
  if (configured_to("FAKE_NCCL_FAIL", "ncclCommInitRank")) return internal_error;
  std::shared_ptr<board> shared;
  {
    const std::lock_guard lock(boards_mutex);
    auto& entry = boards[id.bytes];
    shared = entry.lock();
    if (!shared) entry = shared = std::make_shared<board>(size);
  }
  *comm = new communicator{shared, rank};
  shared->barrier();
  return 0;
}

int ncclCommDestroy(communicator* comm) {
  if (const char* set = std::getenv("FAKE_NCCL_ENDS")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(set)));
    if (has_been_unloaded) std::abort();
  }
  delete comm;
  return 0;
}

int ncclCommAbort(communicator* comm) {
  delete comm;
  return 0;
}

int ncclCommGetAsyncError(communicator*, int* error) {
  const char* set = std::getenv("FAKE_NCCL_ASYNC");
  *error = set ? std::atoi(set) : 0;
  return 0;
}

const char* ncclGetErrorString(int) { return "the fake is configured to fail"; }
const char* ncclGetLastError(communicator*) { return "in a test"; }

int ncclGroupStart() {
  ++depth;
  return 0;
}

int ncclGroupEnd() {
  if (--depth == 0) flush();
  return 0;
}

int ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int op,
                  communicator* comm, void*) {
  return enqueue_collective(
      "ncclAllReduce", comm, {send, recv, count, type, op, 0},
      [=](const std::vector<call>& all, int) { return reduced(all, 0, count, type, op); });
}

int ncclReduce(const void* send, void* recv, std::size_t count, int type, int op, int root,
               communicator* comm, void*) {
  return enqueue_collective("ncclReduce", comm, {send, recv, count, type, op, root},
                            [=](const std::vector<call>& all, int rank) {
                              return rank == root ? reduced(all, 0, count, type, op) : bytes{};
                            });
}

int ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root,
                  communicator* comm, void*) {
  return enqueue_collective(
      "ncclBroadcast", comm, {send, recv, count, type, 0, root},
      [=](const std::vector<call>& all, int) {
        const auto* from = static_cast<const char*>(all[static_cast<std::size_t>(root)].send);
        return bytes(from, from + count * size_of(type));
      });
}

int ncclAllGather(const void* send, void* recv, std::size_t count, int type, communicator* comm,
                  void*) {
  return enqueue_collective("ncclAllGather", comm, {send, recv, count, type, 0, 0},
                            [=](const std::vector<call>& all, int) {
                              bytes result;
                              for (const call& c : all) {
                                const auto* from = static_cast<const char*>(c.send);
                                result.insert(result.end(), from, from + count * size_of(type));
                              }
                              return result;
                            });
}

int ncclReduceScatter(const void* send, void* recv, std::size_t count, int type, int op,
                      communicator* comm, void*) {
  return enqueue_collective("ncclReduceScatter", comm, {send, recv, count, type, op, 0},
                            [=](const std::vector<call>& all, int rank) {
                              return reduced(all, static_cast<std::size_t>(rank) * count, count,
                                             type, op);
                            });
}

int ncclSend(const void* data, std::size_t count, int type, int peer, communicator* comm, void*) {
  return enqueue("ncclSend", true, [=] {
    const auto* from = static_cast<const char*>(data);
    board& b = *comm->shared;
    const std::lock_guard lock(b.mutex);
    b.mail[{comm->rank, peer}].emplace_back(from, from + count * size_of(type));
    b.changed.notify_all();
  });
}

int ncclRecv(void* data, std::size_t count, int type, int peer, communicator* comm, void*) {
  return enqueue("ncclRecv", false, [=] {
    board& b = *comm->shared;
    std::unique_lock lock(b.mutex);
    auto& from = b.mail[{peer, comm->rank}];
    b.changed.wait(lock, [&] { return !from.empty(); });
    std::memcpy(data, from.front().data(), std::min(from.front().size(), count * size_of(type)));
    from.pop_front();
  });
}

}  // extern "C"
