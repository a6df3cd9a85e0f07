// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "support/jobs/thread_ranks.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sucl::testing {
namespace {

struct exchange {
  std::vector<std::vector<std::byte>> parts;
  int arrived = 0;
  int left = 0;
};

// What the ranks of one group share.
struct board {
  explicit board(int ranks) : size(ranks) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, exchange> exchanges;
  std::map<int, std::shared_ptr<board>> split;  // by colour, while a split is in flight
  struct control_message {
    int source;
    std::vector<std::byte> text;
  };
  std::map<int, std::deque<control_message>> control_messages;  // by receiver
};

}  // namespace
}  // namespace sucl::testing

struct sucl_group {
  std::shared_ptr<sucl::testing::board> shared;
  int rank;
  std::uint64_t started = 0;
};

struct sucl_oob_request {
  std::uint64_t number;
  void* all;
  std::uint64_t bytes;
};

namespace sucl::testing {
namespace {

// The last rank to leave an exchange removes it. Ranks that gave different sizes get an error.
sucl_status collect(sucl_group* group, std::unique_ptr<sucl_oob_request> request) {
  board& b = *group->shared;
  const auto at = b.exchanges.find(request->number);
  bool fits = true;
  auto* out = static_cast<std::byte*>(request->all);
  for (const auto& part : at->second.parts) {
    fits = fits && part.size() == request->bytes;
    if (fits && !part.empty()) std::memcpy(out, part.data(), part.size());
    out += request->bytes;
  }
  if (++at->second.left == b.size) b.exchanges.erase(at);
  return fits ? SUCL_SUCCESS
              : core::services().fail(SUCL_ERROR_INTERNAL, 0,
                                      "ranks exchanged different numbers of bytes", nullptr);
}

sucl_status allgather_start(sucl_group* group, const void* mine, void* all, std::uint64_t bytes,
                            sucl_oob_request** request) {
  board& b = *group->shared;
  const std::lock_guard lock(b.mutex);
  auto result = std::make_unique<sucl_oob_request>(group->started++, all, bytes);
  exchange& e = b.exchanges[result->number];
  e.parts.resize(static_cast<std::size_t>(b.size));
  const auto* data = static_cast<const std::byte*>(mine);
  e.parts[static_cast<std::size_t>(group->rank)].assign(data, data + bytes);
  ++e.arrived;
  b.changed.notify_all();
  *request = result.release();
  return SUCL_SUCCESS;
}

sucl_status test(sucl_group* group, sucl_oob_request* request, std::int32_t* done) {
  board& b = *group->shared;
  const std::lock_guard lock(b.mutex);
  *done = b.exchanges.at(request->number).arrived == b.size;
  return *done ? collect(group, std::unique_ptr<sucl_oob_request>(request)) : SUCL_SUCCESS;
}

sucl_status allgather(sucl_group* group, const void* mine, void* all, std::uint64_t bytes) {
  sucl_oob_request* request = nullptr;
  const sucl_status status = allgather_start(group, mine, all, bytes, &request);
  if (status != SUCL_SUCCESS) return status;
  board& b = *group->shared;
  std::unique_lock lock(b.mutex);
  b.changed.wait(lock, [&] { return b.exchanges.at(request->number).arrived == b.size; });
  return collect(group, std::unique_ptr<sucl_oob_request>(request));
}

sucl_status group_split(sucl_group* group, std::int32_t colour, std::int32_t key,
                        sucl_group** result) {
  struct choice {
    std::int32_t colour, key, rank;
  };
  const choice mine{colour, key, group->rank};
  std::vector<choice> all(static_cast<std::size_t>(group->shared->size));
  if (const auto status = allgather(group, &mine, all.data(), sizeof mine)) return status;
  std::erase_if(all, [&](const choice& c) { return c.colour != colour; });
  std::sort(all.begin(), all.end(), [](const choice& a, const choice& b) {
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
  });
  int rank = 0;
  while (all[static_cast<std::size_t>(rank)].rank != group->rank) ++rank;
  std::shared_ptr<board> made;
  {
    const std::lock_guard lock(group->shared->mutex);
    auto& entry = group->shared->split[colour];
    if (!entry) entry = std::make_shared<board>(static_cast<int>(all.size()));
    made = entry;
  }
  // No rank goes on to a next split before all have taken this one's board.
  const std::int8_t token = 0;
  std::vector<std::int8_t> tokens(static_cast<std::size_t>(group->shared->size));
  if (const auto status = allgather(group, &token, tokens.data(), 1)) return status;
  {
    const std::lock_guard lock(group->shared->mutex);
    const auto at = group->shared->split.find(colour);
    if (at != group->shared->split.end() && at->second == made) group->shared->split.erase(at);
  }
  *result = colour < 0 ? nullptr : new sucl_group{made, rank};
  return SUCL_SUCCESS;
}

void group_free(sucl_group* group) { delete group; }
std::int32_t group_rank(const sucl_group* group) { return group->rank; }
std::int32_t group_size(const sucl_group* group) { return group->shared->size; }
std::int32_t alive() { return 1; }

sucl_status notify(sucl_group* group, std::int32_t rank, const void* data, std::uint64_t bytes) {
  board& b = *group->shared;
  const std::lock_guard lock(b.mutex);
  const auto* text = static_cast<const std::byte*>(data);
  b.control_messages[rank].push_back({group->rank, {text, text + bytes}});
  return SUCL_SUCCESS;
}

sucl_status poll(sucl_group* group, std::int32_t* source, void* data, std::uint64_t capacity,
                 std::uint64_t* bytes) {
  board& b = *group->shared;
  const std::lock_guard lock(b.mutex);
  auto& mine = b.control_messages[group->rank];
  *source = -1;
  if (mine.empty()) return SUCL_SUCCESS;
  *source = mine.front().source;
  *bytes = std::min<std::uint64_t>(capacity, mine.front().text.size());
  std::memcpy(data, mine.front().text.data(), *bytes);
  mine.pop_front();
  return SUCL_SUCCESS;
}

// What all ranks share, and which of them this thread is.
struct seat {
  std::shared_ptr<board> world;
  int rank = 0;
  std::uint64_t started = 0;  // exchanges of the world's own
};
thread_local seat t_seat;

sucl_status init(const sucl_core*, int*, char***, sucl_bootstrap_info* info) {
  info->thread_multiple = 1;
  std::strcpy(info->library, "threads");
  return SUCL_SUCCESS;
}

// As a duplicate: its exchanges are its own.
sucl_status group_world(sucl_group** group) {
  sucl_group world{t_seat.world, t_seat.rank, t_seat.started};
  const auto status = group_split(&world, 0, t_seat.rank, group);
  t_seat.started = world.started;
  return status;
}

void finalize() {}
sucl_status at_finalize(void (*)(void*), void*) { return SUCL_ERROR_UNSUPPORTED; }
const void* group_native(const sucl_group*) { return nullptr; }

sucl_bootstrap bootstrap_table() {
  sucl_bootstrap table{};
  table.struct_size = sizeof table;
  table.abi_major = SUCL_ABI_MAJOR;
  table.abi_minor = SUCL_ABI_MINOR;
  table.name = "threads";
  table.alive = alive;
  table.group_split = group_split;
  table.group_free = group_free;
  table.group_rank = group_rank;
  table.group_size = group_size;
  table.allgather = allgather;
  table.allgather_start = allgather_start;
  table.test = test;
  table.init = init;
  table.finalize = finalize;
  table.at_finalize = at_finalize;
  table.group_world = group_world;
  table.group_native = group_native;
  table.notify = notify;
  table.poll = poll;
  return table;
}

}  // namespace

void run_processes(int size, const std::function<void(const sucl_bootstrap&, int rank)>& body) {
  static const sucl_bootstrap table = bootstrap_table();
  const auto shared = std::make_shared<board>(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      t_seat = {shared, rank, 0};
      body(table, rank);
    });
  for (auto& thread : threads) thread.join();
}

void run_ranks(int size, const std::function<void(const sucl_comm_info& info)>& body) {
  static const sucl_bootstrap table = bootstrap_table();
  const auto shared = std::make_shared<board>(size);
  const std::vector<std::int32_t> nodes(static_cast<std::size_t>(size), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      sucl_group group{shared, rank};
      sucl_oob oob{&table, &group};
      sucl_comm_info info{};
      info.struct_size = sizeof info;
      info.rank = info.local_rank = rank;
      info.size = info.local_size = size;
      info.nodes = 1;
      info.id = 1;
      info.node_of = nodes.data();
      info.oob = &oob;
      info.platform = "host";
      body(info);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace sucl::testing
