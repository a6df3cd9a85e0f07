// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include "types.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

bool sucl_group::spans_all_ranks() const {
  if (size != over->size()) return false;
  for (int r = 0; r < size; ++r)
    if (members[static_cast<std::size_t>(r)] != r) return false;
  return true;
}

namespace sucl::mpi_module {
namespace {

using medium_ptr = std::shared_ptr<medium>;

// What a member says when a group is made.
struct proposal {
  std::int32_t colour = 0;
  std::int32_t key = 0;
  std::int32_t slot = 0;
  std::int32_t in_medium = 0;  // its rank there
  std::uint64_t serial = 0;
};

std::mutex g_lock;
medium_ptr g_world;  // over all processes
sucl_group* g_root;  // all of them; new groups of the world are agreed on by its exchanges
std::atomic<std::uint32_t> g_made{0};

sucl_status no_slot(const sucl_core* core) {
  return fail(core, SUCL_ERROR_UNAVAILABLE, "MPI has no tag left for another group of processes",
              "End communicators that are not used any more.");
}

std::uint64_t new_serial(const medium& over) {
  return static_cast<std::uint64_t>(over.rank()) << 32 | ++g_made;
}

std::unique_ptr<sucl_group> make_group(const medium_ptr& over, std::vector<int> members, int slot,
                                       std::uint64_t serial) {
  auto made = std::make_unique<sucl_group>();
  made->over = over;
  made->members = std::move(members);
  made->size = static_cast<int>(made->members.size());
  made->rank = static_cast<int>(
      std::find(made->members.begin(), made->members.end(), over->rank()) - made->members.begin());
  made->slot = slot;
  made->serial = serial;
  return made;
}

// Moves an exchange on as far as it goes; true at its end. The dissemination of Bruck and others:
// in each round a rank has twice as many blocks. All messages of a group have one tag: a round's
// peers are different ones, and exchanges come one after another.
bool advance(sucl_group& group, sucl_oob_request& e) {
  const auto peer = [&](int distance) {
    return group
        .members[static_cast<std::size_t>((group.rank + distance + group.size) % group.size)];
  };
  while (true) {
    if (e.coming > 0) {
      int complete = 0;
      const errors_are_returned errors;
      e.code = errors.result(MPI_Testall(2, e.handles.data(), &complete, MPI_STATUSES_IGNORE));
      if (e.code != MPI_SUCCESS) return true;
      if (!complete) return false;
      e.have += e.coming;
      e.coming = 0;
    }
    if (e.have == group.size) return true;
    const int count = std::min(e.have, group.size - e.have);
    std::byte* block = e.blocks.data() + static_cast<std::size_t>(e.have) * e.bytes;
    e.code = MPI_Irecv(block, count, e.block, peer(e.have), group.exchange_tag(),
                       group.over->comm(), &e.handles[0]);
    if (e.code == MPI_SUCCESS)
      e.code = MPI_Isend(e.blocks.data(), count, e.block, peer(-e.have), group.exchange_tag(),
                         group.over->comm(), &e.handles[1]);
    if (e.code != MPI_SUCCESS) return true;
    e.coming = count;
  }
}

// Puts the blocks in order of rank.
void finish(const sucl_group& group, sucl_oob_request& e) {
  if (e.block != MPI_DATATYPE_NULL) MPI_Type_free(&e.block);
  e.done = true;
  if (e.code != MPI_SUCCESS) return;
  for (int i = 0; i < group.size; ++i)
    std::memcpy(e.all + static_cast<std::size_t>((group.rank + i) % group.size) * e.bytes,
                e.blocks.data() + static_cast<std::size_t>(i) * e.bytes, e.bytes);
}

// Asks all ranks of a communicator that is not the module's own, without a group.
int ask_all(MPI_Comm comm, const proposal& mine, std::vector<proposal>& all) {
  MPI_Request request = MPI_REQUEST_NULL;
  // Past an interposer: this is no collective of the program's.
  const int code = PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                                   comm, &request);
  return code == MPI_SUCCESS ? await(&request) : code;
}

std::vector<const proposal*> of_colour(const std::vector<proposal>& all, std::int32_t colour) {
  std::vector<const proposal*> list;
  for (const proposal& p : all)
    if (p.colour == colour) list.push_back(&p);
  std::stable_sort(list.begin(), list.end(),
                   [](const proposal* a, const proposal* b) { return a->key < b->key; });
  return list;
}

bool same_slot(const std::vector<const proposal*>& list) {
  return std::all_of(list.begin(), list.end(),
                     [&](const proposal* p) { return p->slot == list.front()->slot; });
}

// Has the members of every new group agree on a slot that is free at all of them: each takes the
// first free one, and the largest of them is the next to be tried. `exchange` gathers the proposals
// of all.
template <class Exchange>
sucl_status agree(const sucl_core* core, const medium_ptr& over, std::int32_t colour,
                  std::int32_t key, std::size_t ranks, const Exchange& exchange,
                  sucl_group** result) {
  *result = nullptr;
  const bool joins = colour >= 0;
  proposal mine{joins ? colour : -1, key, joins ? over->take_slot(1) : 0, over->rank(),
                new_serial(*over)};
  std::vector<proposal> all(ranks);
  while (true) {
    const int code = exchange(mine, all);
    if (code != MPI_SUCCESS) {
      if (joins) over->give_back(mine.slot);
      return fail_native(core, code, "an exchange of the control plane");
    }
    bool settled = true, full = false;
    for (const proposal& p : all) {
      settled = settled && same_slot(of_colour(all, p.colour));
      full = full || p.slot < 0;
    }
    if (full) {
      if (joins) over->give_back(mine.slot);
      return no_slot(core);
    }
    const auto members = of_colour(all, mine.colour);
    if (settled) {
      if (!joins) return SUCL_SUCCESS;
      std::vector<int> ranks_of;
      for (const proposal* p : members) ranks_of.push_back(p->in_medium);
      *result = make_group(over, std::move(ranks_of), mine.slot, members.front()->serial).release();
      return SUCL_SUCCESS;
    }
    int most = 0;
    for (const proposal* p : members) most = std::max(most, p->slot);
    if (!joins || most == mine.slot) continue;
    over->give_back(mine.slot);
    mine.slot = over->take_slot(most);
  }
}

// The ranks that the members of `comm` have in the medium, or MPI_UNDEFINED.
std::vector<int> world_ranks_in(const medium& over, MPI_Comm comm) {
  MPI_Group theirs = MPI_GROUP_NULL, ours = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &theirs);
  MPI_Comm_group(over.comm(), &ours);
  int size = 0;
  MPI_Group_size(theirs, &size);
  std::vector<int> from(static_cast<std::size_t>(size)), to(from.size());
  std::iota(from.begin(), from.end(), 0);
  MPI_Group_translate_ranks(theirs, size, from.data(), ours, to.data());
  MPI_Group_free(&theirs);
  MPI_Group_free(&ours);
  return to;
}

bool are_all_in(const medium& over, MPI_Comm comm) {
  const std::vector<int> ranks = world_ranks_in(over, comm);
  return std::find(ranks.begin(), ranks.end(), MPI_UNDEFINED) == ranks.end();
}

sucl_status world_medium(const sucl_core* core, medium_ptr* over) {
  const std::lock_guard<std::mutex> lock(g_lock);
  if (!g_world) {
    MPI_Comm comm = MPI_COMM_NULL;
    const int code = duplicate(MPI_COMM_WORLD, &comm);
    if (code != MPI_SUCCESS) return fail_native(core, code, "MPI_Comm_dup");
    g_world = std::make_shared<medium>(comm);
    std::vector<int> members(static_cast<std::size_t>(g_world->size()));
    std::iota(members.begin(), members.end(), 0);
    g_root = make_group(g_world, std::move(members), g_world->take_slot(0), 0).release();
  }
  *over = g_world;
  return SUCL_SUCCESS;
}

}  // namespace

medium::medium(MPI_Comm comm) : m_comm(comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &m_rank);
  MPI_Comm_size(comm, &m_size);
  m_max = largest_tag() / 2 - 1;
}

medium::~medium() {
  if (!m_kept && alive()) MPI_Comm_free(&m_comm);
}

int medium::take_slot(int least) {
  const std::lock_guard<std::mutex> lock(m_lock);
  auto at = static_cast<std::size_t>(least);
  while (at < m_taken.size() && m_taken[at]) ++at;
  if (at > static_cast<std::size_t>(m_max)) return -1;
  if (at >= m_taken.size()) m_taken.resize(at + 1, false);
  m_taken[at] = true;
  return static_cast<int>(at);
}

void medium::give_back(int slot) {
  const std::lock_guard<std::mutex> lock(m_lock);
  if (slot >= 0) m_taken[static_cast<std::size_t>(slot)] = false;
}

sucl_oob_request* start_exchange(sucl_group& group, const void* mine, void* all,
                                 std::uint64_t bytes) {
  auto e = std::make_unique<sucl_oob_request>();
  e->all = static_cast<std::byte*>(all);
  e->bytes = bytes;
  if (bytes == 0) {
    e->done = true;
    return e.release();
  }
  e->blocks.resize(static_cast<std::size_t>(group.size) * bytes);
  std::memcpy(e->blocks.data(), mine, bytes);
  // Each block travels as one element, so that no count can overflow.
  e->code = make_block(bytes, &e->block);
  const std::lock_guard<std::mutex> lock(group.exchange_lock);
  group.exchanges.push_back(e.get());
  return e.release();
}

bool test_exchange(sucl_group& group, sucl_oob_request& exchange) {
  const std::lock_guard<std::mutex> lock(group.exchange_lock);
  while (!exchange.done && !group.exchanges.empty()) {
    sucl_oob_request& first = *group.exchanges.front();
    if (first.code == MPI_SUCCESS && !advance(group, first)) break;
    finish(group, first);
    group.exchanges.pop_front();
  }
  return exchange.done;
}

int exchange_now(sucl_group& group, const void* mine, void* all, std::uint64_t bytes) {
  std::unique_ptr<sucl_oob_request> e(start_exchange(group, mine, all, bytes));
  constexpr std::chrono::microseconds spin{50};
  const auto begin = std::chrono::steady_clock::now();
  // As await() does.
  while (!test_exchange(group, *e)) {
    if (is_given_up()) {
      (void)e.release();  // it stays in flight
      return MPI_ERR_OTHER;
    }
    if (std::chrono::steady_clock::now() - begin > spin) sched_yield();
  }
  return e->code;
}

sucl_status make_world(const sucl_core* core, sucl_group** group) {
  medium_ptr over;
  const sucl_status status = world_medium(core, &over);
  if (status != SUCL_SUCCESS) return status;
  const auto exchange = [](const proposal& mine, std::vector<proposal>& all) {
    return exchange_now(*g_root, &mine, all.data(), sizeof mine);
  };
  return agree(core, over, 0, over->rank(), static_cast<std::size_t>(over->size()), exchange,
               group);
}

sucl_status adopt(const sucl_core* core, MPI_Comm comm, sucl_group** group) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  medium_ptr over;
  {
    const std::lock_guard<std::mutex> lock(g_lock);
    over = g_world;
  }
  // Whether all know a medium with all of them in it, so that they do the same: none may if this is
  // the first of all groups, nor if processes of another MPI_COMM_WORLD are among them.
  proposal mine{over && are_all_in(*over, comm) ? 1 : 0, 0, 0, 0, 0};
  std::vector<proposal> all(static_cast<std::size_t>(size));
  int code = ask_all(comm, mine, all);
  if (code != MPI_SUCCESS) return fail_native(core, code, "MPI_Iallgather");
  if (std::any_of(all.begin(), all.end(), [](const proposal& p) { return p.colour == 0; })) {
    MPI_Comm own = MPI_COMM_NULL;
    code = duplicate(comm, &own);
    if (code != MPI_SUCCESS) return no_communicator(core, code);
    over = std::make_shared<medium>(own);
  }
  const auto exchange = [comm](const proposal& m, std::vector<proposal>& a) {
    return ask_all(comm, m, a);
  };
  return agree(core, over, 0, rank, all.size(), exchange, group);
}

std::vector<int> ranks_in(const sucl_group& group, MPI_Comm comm) {
  std::vector<int> ranks = world_ranks_in(*group.over, comm);
  for (int& r : ranks) {
    const auto at = std::find(group.members.begin(), group.members.end(), r);
    r = at == group.members.end() ? -1 : static_cast<int>(at - group.members.begin());
  }
  return ranks;
}

sucl_status split(const sucl_core* core, sucl_group& group, std::int32_t colour, std::int32_t key,
                  sucl_group** result) {
  const auto exchange = [&group](const proposal& mine, std::vector<proposal>& all) {
    return exchange_now(group, &mine, all.data(), sizeof mine);
  };
  return agree(core, group.over, colour, key, static_cast<std::size_t>(group.size), exchange,
               result);
}

sucl_status make_native(const sucl_core* core, sucl_group& group) {
  if (group.own.comm != MPI_COMM_NULL) return SUCL_SUCCESS;
  int code = MPI_SUCCESS;
  if (group.spans_all_ranks()) {
    code = duplicate(group.over->comm(), &group.own.comm);
  } else {
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    MPI_Comm_group(group.over->comm(), &all);
    MPI_Group_incl(all, group.size, group.members.data(), &members);
    code =
        MPI_Comm_create_group(group.over->comm(), members, group.exchange_tag(), &group.own.comm);
    MPI_Group_free(&members);
    MPI_Group_free(&all);
    if (code == MPI_SUCCESS) MPI_Comm_set_errhandler(group.own.comm, MPI_ERRORS_RETURN);
  }
  if (code == MPI_SUCCESS) return SUCL_SUCCESS;
  group.own.comm = MPI_COMM_NULL;
  group.own.code = code;
  return no_communicator(core, code);
}

void free_group(sucl_group* group) {
  // Messages that were not read yet are MPI's from here on: their memory stays.
  for (auto& l : group->sent) {
    MPI_Request_free(&l->handle);
    (void)l.release();
  }
  if (group->incoming) {
    MPI_Request_free(&group->incoming->handle);
    (void)group->incoming.release();
  }
  if (group->own.comm != MPI_COMM_NULL && !group->own.broken) MPI_Comm_free(&group->own.comm);
  // Where an exchange is in flight its messages may still come: no other exchange gets their tag.
  if (group->exchanges.empty())
    group->over->give_back(group->slot);
  else
    group->over->keep();
  delete group;
}

}  // namespace sucl::mpi_module
