// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/local_ranks.hpp"

#include "core/exchange/core_services.hpp"
#include "core/exchange/waiting.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t max_message = 4096;
constexpr std::chrono::milliseconds longest_pause{1};

/// Where a rank of a group is.
struct location {
  int process = 0;  ///< rank of its process among those of the group
  int slot = 0;     ///< its position among the ranks that the process has in the group
};

/// What stands before a control message between processes.
struct address {
  std::int32_t source = 0;  ///< rank in the group
  std::int32_t slot = 0;    ///< of the rank that is meant, in the receiving process
};

struct control_message {
  int source;
  std::vector<std::byte> text;
};

/// One exchange, from the first rank of this process that starts it to the last that has it.
struct exchange_state {
  std::uint64_t bytes = 0;
  std::vector<std::byte> mine;  ///< of the ranks of this process, by slot
  std::vector<std::byte> all;   ///< the same of every process
  int arrived = 0, left = 0;
  bool begun = false, done = false;  ///< between the processes
  sucl_oob_request* below = nullptr;
  std::optional<error_info> failure;
};

// Never frees an exchange that was given up, because its memory may still be written to.
void keep_for_good(std::unique_ptr<exchange_state> e) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<exchange_state>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(e));
}

struct rank_board;

/// One split, which one rank of this process does for all of them.
struct split_state {
  bool taken = false, done = false;
  int left = 0;
  std::map<int, std::shared_ptr<rank_board>> made;  ///< by colour
  std::optional<error_info> failure;
};

/// What the ranks that this process has in a group share.
struct rank_board {
  rank_board(const sucl_bootstrap* control, sucl_group* group, int own, std::vector<location> ranks)
      : below(control), over(group), process(own), members(std::move(ranks)) {
    for (std::size_t r = 0; r < members.size(); ++r) {
      processes = std::max(processes, members[r].process + 1);
      width = std::max(width, members[r].slot + 1);
      if (members[r].process == process) local.push_back(static_cast<int>(r));
    }
    control_messages.resize(local.size());
  }
  ~rank_board() {
    for (auto& [number, e] : exchanges)
      if (e->begun && !e->done) keep_for_good(std::move(e));
    if (over && below->alive()) below->group_free(over);
  }
  rank_board(const rank_board&) = delete;
  rank_board& operator=(const rank_board&) = delete;

  std::uint64_t slots() const { return local.size(); }

  const sucl_bootstrap* const below;
  sucl_group* const over;  ///< null: all ranks are in this process
  const int process;
  const std::vector<location> members;
  std::vector<int> local;  ///< the ranks that this process has
  int processes = 1;
  int width = 1;     ///< the most ranks that a process has
  std::mutex mutex;  ///< guards what follows, and all calls on `over` but those of a split
  std::condition_variable changed;
  std::map<std::uint64_t, std::unique_ptr<exchange_state>> exchanges;
  std::map<std::uint64_t, split_state> splits;  ///< by the exchange that they begin with
  std::vector<std::deque<control_message>> control_messages;  ///< by slot
};

struct rank_request {
  std::uint64_t number;
  std::byte* all;
};

/// A rank's handle.
struct rank_group {
  std::shared_ptr<rank_board> board;
  int rank = 0;
  std::uint64_t started = 0;  ///< exchanges
  /// By the number of the exchange; what was given up ends with the handle.
  std::map<std::uint64_t, std::unique_ptr<rank_request>> requests{};

  std::size_t slot() const {
    return static_cast<std::size_t>(board->members[static_cast<std::size_t>(rank)].slot);
  }
};

rank_group& group_of(sucl_group* g) { return *reinterpret_cast<rank_group*>(g); }
const rank_group& group_of(const sucl_group* g) { return *reinterpret_cast<const rank_group*>(g); }
sucl_group* handle_of(const std::shared_ptr<rank_board>& board, int rank) {
  return reinterpret_cast<sucl_group*>(new rank_group{board, rank});
}

template <class Body>
sucl_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return services().fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for the control plane",
                           "Free memory first");
  } catch (const std::exception& e) {
    return services().fail(SUCL_ERROR_INTERNAL, 0, e.what(), "Look at the state of the system");
  }
}

sucl_status ended() {
  return services().fail(SUCL_ERROR_SHUT_DOWN, 0, "the control plane has been finalised",
                         "Use SuCL between the start and the end of its runtime.");
}

// An error between processes names processes, not the ranks of the group: the text says so.
error_info between_processes(sucl_status status) {
  error_info info = take_last(status);
  info.message = "between the processes of the job, which have several ranks each: " + info.message;
  return info;
}

// Called once all ranks of this process have arrived.
void begin(rank_board& b, exchange_state& e) {
  e.all.resize(e.mine.size() * static_cast<std::size_t>(b.processes));
  if (!b.over) {
    e.all = e.mine;
    e.begun = e.done = true;
    return;
  }
  e.begun = true;
  if (const auto status =
          b.below->allgather_start(b.over, e.mine.data(), e.all.data(), e.mine.size(), &e.below)) {
    e.failure = between_processes(status);
    e.done = true;
  }
}

sucl_status allgather_start(sucl_group* g, const void* mine, void* all, std::uint64_t bytes,
                            sucl_oob_request** request) {
  *request = nullptr;
  return guarded([&] {
    rank_group& group = group_of(g);
    rank_board& b = *group.board;
    if (b.over && !b.below->alive()) return ended();
    const std::lock_guard lock(b.mutex);
    const std::uint64_t number = group.started++;
    auto& made = group.requests[number];
    made = std::make_unique<rank_request>(rank_request{number, static_cast<std::byte*>(all)});
    auto& e = b.exchanges[number];
    if (!e) {
      e = std::make_unique<exchange_state>();
      e->bytes = bytes;
      e->mine.resize(bytes * static_cast<std::uint64_t>(b.width));
    }
    if (e->bytes == bytes)
      std::memcpy(e->mine.data() + group.slot() * bytes, mine, bytes);
    else
      e->failure.emplace().message = "ranks exchange different numbers of bytes";
    if (++e->arrived == static_cast<int>(b.slots())) begin(b, *e);
    *request = reinterpret_cast<sucl_oob_request*>(made.get());
    return sucl_status{SUCL_SUCCESS};
  });
}

void hand_out(const rank_board& b, const exchange_state& e, std::byte* to) {
  for (const location& p : b.members) {
    const auto at = static_cast<std::uint64_t>(p.process) * static_cast<std::uint64_t>(b.width) +
                    static_cast<std::uint64_t>(p.slot);
    std::memcpy(to, e.all.data() + at * e.bytes, e.bytes);
    to += e.bytes;
  }
}

sucl_status test(sucl_group* g, sucl_oob_request* request, std::int32_t* done) {
  *done = 0;
  return guarded([&] {
    rank_group& group = group_of(g);
    rank_board& b = *group.board;
    const rank_request r = *reinterpret_cast<const rank_request*>(request);
    if (b.over && !b.below->alive()) return ended();
    const std::lock_guard lock(b.mutex);
    const auto at = b.exchanges.find(r.number);
    exchange_state& e = *at->second;
    if (e.begun && !e.done) {
      std::int32_t complete = 0;
      if (const auto status = b.below->test(b.over, e.below, &complete))
        e.failure = between_processes(status);
      e.done = complete != 0 || e.failure;
    }
    if (!e.done) return sucl_status{SUCL_SUCCESS};
    const auto failure = e.failure;
    if (!failure) hand_out(b, e, r.all);
    group.requests.erase(r.number);
    if (++e.left == static_cast<int>(b.slots())) b.exchanges.erase(at);
    *done = failure ? 0 : 1;
    return failure ? keep(*failure) : sucl_status{SUCL_SUCCESS};
  });
}

// Waits as exchanges of the core do: until waiting becomes useless.
sucl_status allgather(sucl_group* g, const void* mine, void* all, std::uint64_t bytes) {
  sucl_oob channel{&local_ranks_control(), g};
  return services().oob_allgather(&channel, mine, all, bytes);
}

struct choice {
  std::int32_t colour, key;
};

/// A group to be made: the ranks of one colour, in order, and their processes.
struct new_group {
  int colour = 0;
  std::vector<int> ranks;
  std::vector<int> processes;  ///< ascending

  bool has(int process) const {
    return std::binary_search(processes.begin(), processes.end(), process);
  }
  std::vector<location> locations(const rank_board& b) const {
    std::vector<location> list;
    std::vector<int> used(processes.size(), 0);
    for (const int r : ranks) {
      const int owner = b.members[static_cast<std::size_t>(r)].process;
      const auto at = std::lower_bound(processes.begin(), processes.end(), owner);
      const auto p = static_cast<std::size_t>(at - processes.begin());
      list.push_back({static_cast<int>(p), used[p]++});
    }
    return list;
  }
};

std::vector<new_group> groups_of(const rank_board& b, const std::vector<choice>& all) {
  std::map<int, new_group> by_colour;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].colour < 0) continue;
    new_group& g = by_colour[all[r].colour];
    g.colour = all[r].colour;
    g.ranks.push_back(static_cast<int>(r));
    g.processes.push_back(b.members[r].process);
  }
  std::vector<new_group> list;
  for (auto& [colour, g] : by_colour) {
    std::stable_sort(g.ranks.begin(), g.ranks.end(), [&](int x, int y) {
      return all[static_cast<std::size_t>(x)].key < all[static_cast<std::size_t>(y)].key;
    });
    std::sort(g.processes.begin(), g.processes.end());
    g.processes.erase(std::unique(g.processes.begin(), g.processes.end()), g.processes.end());
    list.push_back(std::move(g));
  }
  return list;
}

// Groups of which no two have a process in common are made by one split of the processes; the same
// list on every process. A group within one process needs none.
std::vector<std::vector<const new_group*>> rounds_of(const std::vector<new_group>& groups) {
  std::vector<std::vector<const new_group*>> rounds;
  for (const new_group& g : groups) {
    if (g.processes.size() == 1) continue;
    const auto fits = [&](const std::vector<const new_group*>& round) {
      return std::none_of(round.begin(), round.end(), [&](const new_group* other) {
        return std::any_of(g.processes.begin(), g.processes.end(),
                           [&](int p) { return other->has(p); });
      });
    };
    auto at = std::find_if(rounds.begin(), rounds.end(), fits);
    if (at == rounds.end()) at = rounds.emplace(rounds.end());
    at->push_back(&g);
  }
  return rounds;
}

// Makes the boards of all colours that this process has ranks of. Collective over the processes.
sucl_status make_boards(const rank_board& b, const std::vector<choice>& all,
                        std::map<int, std::shared_ptr<rank_board>>& made) {
  const auto groups = groups_of(b, all);
  std::map<int, sucl_group*> over;
  for (const auto& round : rounds_of(groups)) {
    const auto own = std::find_if(round.begin(), round.end(),
                                  [&](const new_group* g) { return g->has(b.process); });
    const int colour = own == round.end() ? -1 : (*own)->colour;
    sucl_group* part = nullptr;
    if (const auto status = b.below->group_split(b.over, colour, b.process, &part)) return status;
    if (part) over[colour] = part;
  }
  for (const new_group& g : groups) {
    if (!g.has(b.process)) continue;
    const auto at = std::lower_bound(g.processes.begin(), g.processes.end(), b.process);
    const auto found = over.find(g.colour);
    made[g.colour] =
        std::make_shared<rank_board>(b.below, found == over.end() ? nullptr : found->second,
                                     static_cast<int>(at - g.processes.begin()), g.locations(b));
  }
  return SUCL_SUCCESS;
}

// The first rank of this process that comes here does the work, the others wait for it.
sucl_status finish_split(rank_board& b, std::uint64_t number, const std::vector<choice>& all) {
  std::unique_lock lock(b.mutex);
  split_state& s = b.splits[number];
  if (!std::exchange(s.taken, true)) {
    lock.unlock();
    std::map<int, std::shared_ptr<rank_board>> made;
    const auto status = guarded([&] { return make_boards(b, all, made); });
    lock.lock();
    if (status) s.failure = between_processes(status);
    s.made = std::move(made);
    s.done = true;
    b.changed.notify_all();
  }
  while (!s.done) {
    b.changed.wait_for(lock, longest_pause);
    if (s.done) break;
    lock.unlock();
    const auto status = keep_waiting();
    lock.lock();
    if (status) return status;
  }
  return s.failure ? keep(*s.failure) : sucl_status{SUCL_SUCCESS};
}

sucl_status group_split(sucl_group* g, std::int32_t colour, std::int32_t key, sucl_group** result) {
  *result = nullptr;
  return guarded([&] {
    rank_group& group = group_of(g);
    rank_board& b = *group.board;
    const std::uint64_t number = group.started;
    const choice mine{colour, key};
    std::vector<choice> all(b.members.size());
    if (const auto status = allgather(g, &mine, all.data(), sizeof mine)) return status;
    if (const auto status = finish_split(b, number, all)) return status;
    const std::lock_guard lock(b.mutex);
    split_state& s = b.splits[number];
    if (colour >= 0) {
      const auto groups = groups_of(b, all);
      const auto own = std::find_if(groups.begin(), groups.end(),
                                    [&](const new_group& n) { return n.colour == colour; });
      const auto at = std::find(own->ranks.begin(), own->ranks.end(), group.rank);
      *result = handle_of(s.made.at(colour), static_cast<int>(at - own->ranks.begin()));
    }
    if (++s.left == static_cast<int>(b.slots())) b.splits.erase(number);
    return sucl_status{SUCL_SUCCESS};
  });
}

void group_free(sucl_group* g) {
  if (!g) return;
  const std::unique_ptr<rank_group> group(&group_of(g));
  const std::lock_guard lock(group->board->mutex);
  group->board->control_messages[group->slot()].clear();
}

sucl_status notify(sucl_group* g, std::int32_t rank, const void* data, std::uint64_t bytes) {
  return guarded([&] {
    const rank_group& group = group_of(g);
    rank_board& b = *group.board;
    const location& to = b.members.at(static_cast<std::size_t>(rank));
    std::array<std::byte, max_message> text;
    const address head{group.rank, to.slot};
    if (bytes > text.size() - sizeof head)
      return services().fail(SUCL_ERROR_INVALID_ARGUMENT, 0, "a control message is too long",
                             "Send less at once");
    const auto* from = static_cast<const std::byte*>(data);
    const std::lock_guard lock(b.mutex);
    if (to.process == b.process) {
      b.control_messages[static_cast<std::size_t>(to.slot)].push_back(
          {group.rank, {from, from + bytes}});
      return sucl_status{SUCL_SUCCESS};
    }
    if (!b.below->alive()) return ended();
    std::memcpy(text.data(), &head, sizeof head);
    std::memcpy(text.data() + sizeof head, data, bytes);
    return b.below->notify(b.over, to.process, text.data(), bytes + sizeof head);
  });
}

// Takes what has come from other processes to the rank that is meant.
sucl_status sort_control_messages(rank_board& b) {
  std::array<std::byte, max_message> text;
  while (b.over && b.below->alive()) {
    std::int32_t source = -1;
    std::uint64_t bytes = 0;
    if (const auto status = b.below->poll(b.over, &source, text.data(), text.size(), &bytes))
      return status;
    if (source < 0) break;
    address head;
    if (bytes < sizeof head) continue;
    std::memcpy(&head, text.data(), sizeof head);
    if (head.slot < 0 || static_cast<std::size_t>(head.slot) >= b.control_messages.size()) continue;
    b.control_messages[static_cast<std::size_t>(head.slot)].push_back(
        {head.source, {text.data() + sizeof head, text.data() + bytes}});
  }
  return SUCL_SUCCESS;
}

sucl_status poll(sucl_group* g, std::int32_t* source, void* data, std::uint64_t capacity,
                 std::uint64_t* bytes) {
  *source = -1;
  *bytes = 0;
  return guarded([&] {
    const rank_group& group = group_of(g);
    rank_board& b = *group.board;
    const std::lock_guard lock(b.mutex);
    auto& mine = b.control_messages[group.slot()];
    if (mine.empty())
      if (const auto status = sort_control_messages(b)) return status;
    if (mine.empty()) return sucl_status{SUCL_SUCCESS};
    *source = mine.front().source;
    *bytes = std::min<std::uint64_t>(capacity, mine.front().text.size());
    std::memcpy(data, mine.front().text.data(), *bytes);
    mine.pop_front();
    return sucl_status{SUCL_SUCCESS};
  });
}

sucl_status not_here(const char* what) {
  return services().fail(SUCL_ERROR_UNSUPPORTED, 0, what, "Ask the control plane of the processes");
}

sucl_bootstrap make_table() {
  sucl_bootstrap t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = local_ranks_control_plane;
  t.init = [](const sucl_core*, int*, char***, sucl_bootstrap_info*) {
    return not_here("ranks of a process start nothing");
  };
  t.finalize = [] {};
  // Each call that needs the processes asks their control plane.
  t.alive = [] { return std::int32_t{1}; };
  t.at_finalize = [](void (*)(void*), void*) {
    return not_here("ranks of a process finalise nothing");
  };
  t.group_world = [](sucl_group**) { return not_here("a rank has no world of its own"); };
  t.group_adopt = [](const void*, std::uint64_t, sucl_group**) {
    return not_here("a rank adopts no communicator by itself");
  };
  t.group_split = group_split;
  t.group_free = group_free;
  t.group_rank = [](const sucl_group* g) { return std::int32_t{group_of(g).rank}; };
  t.group_size = [](const sucl_group* g) {
    return static_cast<std::int32_t>(group_of(g).board->members.size());
  };
  t.group_native = [](const sucl_group*) -> const void* { return nullptr; };
  t.allgather = allgather;
  t.allgather_start = allgather_start;
  t.test = test;
  t.notify = notify;
  t.poll = poll;
  t.abort = [](std::int32_t code) { std::_Exit(code); };
  return t;
}

}  // namespace

const sucl_bootstrap& local_ranks_control() {
  static const sucl_bootstrap table = make_table();
  return table;
}

std::vector<sucl_group*> make_rank_groups(const sucl_bootstrap* below, sucl_group* over,
                                          const rank_counts& counts) {
  std::vector<location> members;
  int first = 0;
  for (std::size_t p = 0; p < counts.of_each.size(); ++p)
    for (int slot = 0; slot < counts.of_each[p]; ++slot) {
      if (slot == 0 && static_cast<int>(p) == counts.process)
        first = static_cast<int>(members.size());
      members.push_back({static_cast<int>(p), slot});
    }
  const auto board = std::make_shared<rank_board>(below, over, counts.process, std::move(members));
  std::vector<sucl_group*> handles;
  for (std::size_t i = 0; i < board->slots(); ++i)
    handles.push_back(handle_of(board, first + static_cast<int>(i)));
  return handles;
}

}  // namespace sucl::core
