// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The control plane over TCP, for jobs without MPI: the table of its functions.
#include "failed_start.hpp"
#include "job_process.hpp"
#include "store/identity.hpp"

#include <sucl/abi/failed_start.h>
#include <sucl/abi/members.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <set>
#include <thread>

namespace sucl::tcp {
namespace {

using namespace std::chrono_literals;

/// For so long rank 0 asks for its own addresses where the service of names does not answer.
constexpr auto name_limit = 10s;
/// For so long rank 0 waits for a port that a connection of another process has. Connections that
/// are over keep theirs for a minute.
constexpr auto busy_port_limit = 65s;

/// The job as the core has described it.
struct job_description {
  int rank = -1, size = 0;
  bool serves = false;
  std::string address, id, secret, interface;
  std::uint16_t port = 0;
  std::chrono::milliseconds timeout{300'000};
  std::optional<sucl_store> store;
  problem failure;  ///< why this process can be none of its ranks
};

struct state {
  std::mutex lock;
  const sucl_core* core = nullptr;
  std::optional<job_description> job;
  std::shared_ptr<job_process> local_process;
  std::shared_ptr<store_server> server;
  /// Of ids that this process has made.
  std::vector<std::shared_ptr<store_server>> servers;
  std::set<std::string> used;  ///< secrets of ids by which this process has found a job
  std::vector<std::pair<void (*)(void*), void*>> hooks;
};

// Never destroyed: threads may be at work when the process ends.
state& global() {
  static state& it = *new state;
  return it;
}

sucl_status fail(const problem& p) {
  const sucl_core* core = global().core;
  if (p.text.empty() || !core) return p.status;  // keep_waiting has left the details
  return core->fail(p.status, 0, p.text.c_str(), p.hint.c_str());
}

template <class Body>
sucl_status guarded(Body body) {
  try {
    body();
    return SUCL_SUCCESS;
  } catch (const problem& p) {
    return fail(p);
  } catch (const std::bad_alloc&) {
    return fail({SUCL_ERROR_OUT_OF_MEMORY, "no memory for the control plane", "Free memory first"});
  } catch (const std::exception& e) {
    return fail({SUCL_ERROR_INTERNAL, std::string("the control plane failed: ") + e.what(),
                 "Look at the state of the system"});
  }
}

std::shared_ptr<job_process> started_process() {
  const std::lock_guard lock(global().lock);
  if (!global().local_process)
    throw problem{SUCL_ERROR_SHUT_DOWN, "the control plane is not started, or finalised already",
                  "Use SuCL between the start and the end of its runtime."};
  return global().local_process;
}

/// A store of the program's own.
class callback_store final : public key_value_store {
 public:
  explicit callback_store(const sucl_store& calls) : m_calls(calls) {}

  std::optional<std::string> put(const std::string& key, const std::string& value) override {
    check(m_calls.put(m_calls.context, named(key).c_str(), value.data(), value.size()), "put");
    return std::nullopt;
  }

  std::optional<found> wait(const std::vector<std::string>& keys,
                            std::chrono::milliseconds limit) override {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool last = i + 1 == keys.size();
      std::int32_t there = 0;
      check(m_calls.wait(m_calls.context, named(keys[i]).c_str(),
                         last ? static_cast<std::uint64_t>(limit.count()) : 0, &there),
            "wait");
      if (!there) continue;
      std::string value(64 << 10, '\0');
      std::uint64_t n = value.size();
      check(m_calls.get(m_calls.context, named(keys[i]).c_str(), value.data(), &n), "get");
      value.resize(std::min<std::size_t>(n, value.size()));
      return found{keys[i], std::move(value)};
    }
    return std::nullopt;
  }

  std::vector<int> missing(const std::string& prefix, int size) override {
    std::vector<int> list;
    for (int i = 0; i < size && list.size() < 64; ++i)
      if (!wait({prefix + std::to_string(i)}, 0ms)) list.push_back(i);
    return list;
  }

  void finish() override {}
  std::string location() const override { return "an address that the program chose"; }

 private:
  static std::string named(const std::string& key) { return "sucl/" + key; }
  static void check(sucl_status status, const char* what) {
    if (status != SUCL_SUCCESS)
      throw problem{SUCL_ERROR_UNAVAILABLE,
                    std::string("the program's own store failed in ") + what + "()",
                    "Look for what it has thrown or printed"};
  }
  sucl_store m_calls;
};

/// Of a process that is alone.
class no_store final : public key_value_store {
 public:
  std::optional<std::string> put(const std::string&, const std::string&) override { return {}; }
  std::optional<found> wait(const std::vector<std::string>&, std::chrono::milliseconds) override {
    return {};
  }
  std::vector<int> missing(const std::string&, int) override { return {}; }
  void finish() override {}
  std::string location() const override { return "nowhere"; }
};

// Another process listens at the port of the store. Another process that takes itself for rank 0
// is found when this one introduces itself there.
void check_who_serves(const job_description& p, const std::string& secret, const std::string& host,
                      const problem& in_use) {
  const auto until = clock::now() + 3s;
  try {
    tcp_store(reactor::of_process(), secret, {host}, p.port, [&] {
      if (clock::now() > until) throw in_use;
    }).connect();
  } catch (const problem&) {
    throw in_use;
  }
}

// Listens at the port of the store. A connection that the system has given that port, of any
// process, ends some time; a process that listens there is an error, unless it is a rank of this
// job, which is found when this one introduces itself. -1: that is so.
int listen_for_ranks(const job_description& p, endpoint at, const std::string& host) {
  const auto until = clock::now() + std::min<clock::duration>(p.timeout, busy_port_limit);
  for (bool logged = false;; logged = true) {
    bool in_use = false;
    try {
      endpoint where = at;
      return listen_at(where, &in_use);
    } catch (problem& why) {
      if (!in_use) throw;
      if (accepts_connections(at)) {
        check_who_serves(p, p.secret, host, why);
        return -1;
      }
      why.text += ", by a connection of another process";
      if (clock::now() > until) throw;
      if (!logged) global().core->log(SUCL_LOG_WARN, "tcp", (why.text + "; waiting").c_str());
    }
    std::this_thread::sleep_for(50ms);
  }
}

// Of the store's host. None where only other nodes know it.
std::vector<endpoint> known_addresses(const job_description& p) {
  try {
    return resolve_within(std::min<clock::duration>(p.timeout, name_limit), p.address, p.port);
  } catch (const problem&) {
    return {};
  }
}

// Serves the store of the job, and says where this process reaches it.
std::string serve(const job_description& p) {
  endpoint at;
  if (means_loopback(p.address))
    at = endpoint_of(p.address).family() != 0 ? endpoint_of(p.address) : endpoint_of("127.0.0.1");
  else if (!p.interface.empty())
    at = own_address(p.interface, known_addresses(p));
  const std::string host = at.family() != 0 ? address_text(at) : "127.0.0.1";
  at.set_port(p.port);
  if (const int socket = listen_for_ranks(p, at, host); socket >= 0)
    global().server = store_server::start(reactor::of_process(), socket, p.secret);
  return host;
}

/// Set once another process has come for this one, which computes as a job of one.
std::atomic<bool> others_have_come{false};

void fail_where_others_have_come(int status, void* process) {
  if (status != 0 || !others_have_come || reinterpret_cast<std::intptr_t>(process) != getpid())
    return;
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

// A job of one by variables. Another process may have them with another size: it learns of this
// one, and this one's result is not taken for that of the job.
void answer_others(state& g, const job_description& p) {
  if (!p.serves || p.address.empty() || p.port == 0) return;
  const std::string text = "rank 0 (process " + std::to_string(getpid()) +
                           ") says that the job has 1 rank, and computes alone";
  const problem why{SUCL_ERROR_MISMATCH, text,
                    "Start every rank with the same size (SUCL_TCP_SIZE, WORLD_SIZE, or that of "
                    "the launcher), or jobs of their own with other ports"};
  try {
    endpoint at;
    if (means_loopback(p.address)) at = resolve(p.address, p.port).front();
    at.set_port(p.port);
    bool in_use = false;
    g.server = store_server::start(reactor::of_process(), listen_at(at, &in_use), p.secret);
  } catch (const problem&) {
    return;  // another process has the port
  }
  on_exit(fail_where_others_have_come, reinterpret_cast<void*>(std::intptr_t{getpid()}));
  g.server->put(failed_key, packed(why), [text] {
    if (others_have_come.exchange(true)) return;
    const std::string line =
        text + ", but other ranks of that job have come. " + "Start every rank with the same size";
    global().core->log(SUCL_LOG_ERROR, "tcp", line.c_str());
  });
}

problem differs_from_id(const job_description& p) {
  const identity id = p.id.empty() ? identity{} : identity::of(p.id);
  if (id.ranks == 0 || id.ranks == p.size) return {};
  return {SUCL_ERROR_MISMATCH,
          "rank " + std::to_string(p.rank) + " (process " + std::to_string(getpid()) +
              ") says that the job has " + std::to_string(p.size) +
              (p.size == 1 ? " rank" : " ranks") + ", and " + std::to_string(id.ranks) +
              " were started",
          "Leave SUCL_TCP_SIZE on every rank as the launcher sets it"};
}

std::unique_ptr<key_value_store> make_store(const job_description& p, job_process_settings& s,
                                            const wait_check& wait) {
  if (p.store) return std::make_unique<callback_store>(*p.store);
  if (!p.id.empty()) {
    const identity id = identity::of(p.id);
    s.secret = id.secret;
    s.loopback = id.addresses.size() == 1 && id.addresses.front().is_loopback();
    return std::make_unique<tcp_store>(reactor::of_process(), s.secret, id.hosts(), 0, wait);
  }
  s.secret = p.secret;
  s.store_at_rank_0 = true;
  if (p.size == 1) {
    answer_others(global(), p);
    return std::make_unique<no_store>();
  }
  s.loopback = means_loopback(p.address);
  const std::string host = p.serves ? serve(p) : p.address;
  return std::make_unique<tcp_store>(reactor::of_process(), s.secret, std::vector{host}, p.port,
                                     wait);
}

void check(const job_description& p) {
  if (p.size < 1 || p.rank < 0 || p.rank >= p.size)
    throw problem{SUCL_ERROR_INVALID_ARGUMENT,
                  "rank " + std::to_string(p.rank) + " of " + std::to_string(p.size) +
                      " is none: a job has the ranks 0 to size - 1",
                  "Correct rank and size, or the launcher's variables for them"};
  if (p.size > 1 && !p.store && p.id.empty() && (p.address.empty() || p.port == 0))
    throw problem{SUCL_ERROR_CONFIGURATION,
                  "it is not known where the ranks of the job find each other",
                  "Set SUCL_TCP_ADDRESS to the machine of rank 0, and SUCL_TCP_PORT to a free port "
                  "there"};
}

void start(state& g) {
  if (!g.job)
    throw problem{SUCL_ERROR_CONFIGURATION,
                  "nothing gives the rank of this process and the size of the job",
                  "Start it with `sucl run`, torchrun or srun, or use runtime::join"};
  const job_description& p = *g.job;
  if (const problem why = p.failure ? p.failure : differs_from_id(p)) {
    const bool by_id = !p.id.empty();
    const identity id = by_id ? identity::of(p.id) : identity{};
    report_failed_start(
        {by_id ? id.hosts() : std::vector{p.address}, by_id ? std::uint16_t{0} : p.port,
         by_id ? id.secret : p.secret, p.timeout},
        why);
    throw why;
  }
  check(p);
  job_process_settings s;
  s.rank = p.rank;
  s.size = p.size;
  s.interface = p.interface;
  s.timeout = p.timeout;
  const sucl_core* core = g.core;
  if (SUCL_HAS_FIELD(core, sucl_core, keep_waiting)) s.keep_waiting = core->keep_waiting;
  s.refused = [&g] { return g.server ? g.server->refused() : 0; };
  s.late = [core](const std::string& text) {
    const std::string line = "waiting: " + text +
                             ". Look for the output of the ranks that are missing, and check that "
                             "every rank is given the same address and port";
    core->log(SUCL_LOG_WARN, "tcp", line.c_str());
  };
  s.aborted = [core](int code, int rank) {
    const std::string text = "rank " + std::to_string(rank) +
                             " has failed and ended the job: look for what it has printed";
    core->log(SUCL_LOG_ERROR, "tcp", text.c_str());
    std::fflush(nullptr);
    std::_Exit(code);
  };
  std::weak_ptr<job_process> self;
  const auto store = make_store(p, s, [&self] {
    if (const auto n = self.lock()) n->check_wait();
  });
  const auto made = std::make_shared<job_process>(reactor::of_process(), std::move(s));
  self = made;
  made->start(*store);
  const std::lock_guard lock(g.lock);
  g.local_process = made;
  if (!p.id.empty()) g.used.insert(identity::of(p.id).secret);
}

// What would fail once the job that runs has ended, where another one follows.
void check_next(state& g, const job_description& p) {
  constexpr int max_ranks = 1 << 24;
  if (p.size > max_ranks)
    throw problem{SUCL_ERROR_INVALID_COUNT,
                  "a job of " + std::to_string(p.size) + " ranks is larger than any",
                  "Pass the number of processes; at most " + std::to_string(max_ranks)};
  if (p.id.empty()) return;
  const std::string secret = identity::of(p.id).secret;
  const std::lock_guard lock(g.lock);
  if (g.used.count(secret) != 0)
    throw problem{SUCL_ERROR_INVALID_ARGUMENT, "a job has been found by this id already",
                  "Make an id for each job: unique_id::make()"};
}

sucl_status rendezvous(const sucl_core* core, const sucl_rendezvous* r) {
  global().core = core;
  return guarded([&] {
    job_description p;
    p.rank = r->rank;
    p.size = r->size;
    p.serves = r->serves != 0;
    const auto text = [](const char* t) { return std::string(t ? t : ""); };
    p.address = text(r->address);
    p.id = text(r->id);
    p.interface = text(r->network);
    if (r->secret) p.secret.assign(static_cast<const char*>(r->secret), r->secret_bytes);
    p.port = static_cast<std::uint16_t>(r->port);
    if (r->timeout_ms > 0) p.timeout = std::chrono::milliseconds(r->timeout_ms);
    if (r->store) p.store = *r->store;
    if (r->struct_size >= sizeof(sucl_failed_start)) {
      const auto* failed = reinterpret_cast<const sucl_failed_start*>(r);
      p.failure = {failed->status, text(failed->failure), text(failed->hint)};
    }
    check_next(global(), p);
    const std::lock_guard lock(global().lock);
    global().job = std::move(p);
  });
}

sucl_status make_id(const sucl_core* core, const char* network, uint32_t port, char* text,
                    uint64_t capacity) {
  global().core = core;
  return guarded([&] {
    std::shared_ptr<store_server> server;
    const std::string line = make_identity(reactor::of_process(), network ? network : "",
                                           static_cast<std::uint16_t>(port), server)
                                 .text();
    if (line.size() >= capacity)
      throw problem{SUCL_ERROR_INVALID_ARGUMENT, "there is no room for an id", "Give 256 bytes"};
    std::memcpy(text, line.c_str(), line.size() + 1);
    const std::lock_guard lock(global().lock);
    std::erase_if(global().servers, [](const auto& s) { return s->finished(); });
    global().servers.push_back(std::move(server));
  });
}

sucl_status init(const sucl_core* core, int*, char***, sucl_bootstrap_info* info) {
  global().core = core;
  return guarded([&] {
    state& g = global();
    if (!g.local_process) start(g);
    info->initialised_here = 1;
    info->thread_multiple = 1;
    std::snprintf(info->library, sizeof info->library, "SuCL over TCP");
  });
}

void finalize() {
  std::shared_ptr<job_process> gone;
  {
    const std::lock_guard lock(global().lock);
    gone = std::move(global().local_process);
    global().local_process.reset();
    global().job.reset();
  }
  if (!gone) return;
  for (const auto& [hook, arg] : std::exchange(global().hooks, {})) hook(arg);
  gone->leave();
  if (global().server) global().server->stop();
  global().server.reset();
}

int32_t alive() {
  const std::lock_guard lock(global().lock);
  return global().local_process ? 1 : 0;
}

sucl_status at_finalize(void (*hook)(void*), void* arg) {
  return guarded([&] {
    started_process();
    global().hooks.emplace_back(hook, arg);
  });
}

sucl_status group_world(sucl_group** group) {
  *group = nullptr;
  return guarded([&] { *group = started_process()->world(); });
}

// No communicator of MPI, but a list of processes of the job.
sucl_status group_adopt(const void* native, uint64_t bytes, sucl_group** group) {
  *group = nullptr;
  return guarded([&] {
    const auto* list = static_cast<const sucl_members*>(native);
    if (bytes != sizeof *list || list->struct_size != sizeof *list)
      throw problem{SUCL_ERROR_UNSUPPORTED,
                    "a communicator of MPI was passed, but this job runs without MPI: its control "
                    "plane is tcp",
                    "Start the program with mpiexec or `sucl run --launcher mpi`, or use world()"};
    *group = started_process()->group_among(list->id, {list->ranks, list->ranks + list->count});
  });
}

sucl_status group_split(sucl_group* group, int32_t colour, int32_t key, sucl_group** result) {
  *result = nullptr;
  return guarded([&] { *result = started_process()->split(*group, colour, key); });
}

sucl_status agree(sucl_group* group, sucl_agreement* how) {
  return guarded([&] {
    const decision agreed = started_process()->agree(*group, how->flags, [&](int index) {
      return how->failed[index] != 0 || how->has_failed(how->context, index) != 0;
    });
    how->flags = agreed.flags;
    std::copy(agreed.failed.begin(), agreed.failed.end(), how->failed);
  });
}

sucl_status group_shrink(sucl_group* group, sucl_group** result) {
  *result = nullptr;
  return guarded([&] { *result = started_process()->shrink(*group); });
}

void group_free(sucl_group* group) {
  if (!group) return;
  const std::shared_ptr<job_process> owner = group->owner;
  owner->free(group);
}

int32_t group_rank(const sucl_group* group) { return group->rank; }
int32_t group_size(const sucl_group* group) { return group->size; }
const void* group_native(const sucl_group*) { return nullptr; }

sucl_status allgather(sucl_group* group, const void* mine, void* all, uint64_t n) {
  return guarded([&] {
    const auto process = started_process();
    process->finish(*group, process->start_exchange(*group, mine, all, n));
  });
}

sucl_status allgather_start(sucl_group* group, const void* mine, void* all, uint64_t n,
                            sucl_oob_request** request) {
  *request = nullptr;
  return guarded([&] { *request = started_process()->start_exchange(*group, mine, all, n); });
}

sucl_status test(sucl_group* group, sucl_oob_request* request, int32_t* done) {
  *done = 0;
  return guarded([&] { *done = started_process()->test(*group, request) ? 1 : 0; });
}

sucl_status notify(sucl_group* group, int32_t rank, const void* data, uint64_t n) {
  return guarded([&] { started_process()->notify(*group, rank, data, n); });
}

sucl_status poll(sucl_group* group, int32_t* source, void* data, uint64_t capacity, uint64_t* n) {
  *source = -1;
  *n = 0;
  return guarded([&] {
    const auto message = started_process()->poll(*group, capacity);
    if (!message) return;
    std::memcpy(data, message->text.data(), message->text.size());
    *n = message->text.size();
    *source = message->source;
  });
}

void abort_job(int32_t exit_code) {
  std::shared_ptr<job_process> process;
  {
    const std::lock_guard lock(global().lock);
    process = global().local_process;
  }
  if (process) process->abort(exit_code);
  std::_Exit(exit_code);
}

}  // namespace
}  // namespace sucl::tcp

extern "C" SUCL_ABI_EXPORT const sucl_bootstrap* sucl_bootstrap_entry(uint32_t core_major,
                                                                      uint32_t) {
  namespace module = sucl::tcp;
  static const sucl_bootstrap table = {sizeof(sucl_bootstrap),
                                       SUCL_ABI_MAJOR,
                                       SUCL_ABI_MINOR,
                                       0,
                                       "tcp",
                                       module::init,
                                       module::finalize,
                                       module::alive,
                                       module::at_finalize,
                                       module::group_world,
                                       module::group_adopt,
                                       module::group_split,
                                       module::group_free,
                                       module::group_rank,
                                       module::group_size,
                                       module::group_native,
                                       module::allgather,
                                       module::allgather_start,
                                       module::test,
                                       module::notify,
                                       module::poll,
                                       module::abort_job,
                                       module::rendezvous,
                                       module::make_id,
                                       module::agree,
                                       module::group_shrink,
                                       nullptr};
  return core_major == SUCL_ABI_MAJOR ? &table : nullptr;
}
