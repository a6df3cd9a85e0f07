// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/layers/trace.hpp"

#include "base/error.hpp"
#include "core/exchange/core_services.hpp"
#include "core/layers/trace_file.hpp"
#include "core/operation/operation.hpp"

#include <nlohmann/json.hpp>
#include <sucl/types.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sucl::core {
namespace {

using json = nlohmann::ordered_json;

constexpr int clock_rounds = 8;
constexpr std::size_t max_tracks = 128;
constexpr std::size_t max_notes = 4096;
constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

struct traced {
  sucl_operation op{};  // of its pointers only the arrays of counts are used, which stay valid
  std::int64_t issued = 0;
  std::int64_t posted = 0;
  std::size_t track = 0;
  sucl_request* below = nullptr;
};

struct tracer {
  backend_comm below;
  trace_file& file;
  int process;
  int rank;
  int size;
  std::uint64_t id;
  std::string backend;
  std::vector<bool> tracks{};  // in use; a track is a thread of the timeline
  std::size_t tracks_named = 0;
  std::mutex mutex{};  // of `issued`, which the threads that issue fill
  std::map<std::uint64_t, std::int64_t> issued{};

  ~tracer() {
    below.table->comm_destroy(below.comm);
    file.flush();
  }
};

tracer& self(sucl_backend_comm* comm) { return *reinterpret_cast<tracer*>(comm); }
tracer& self(sucl_state* state) { return *reinterpret_cast<tracer*>(state); }

// Microseconds with all digits of the nanoseconds.
double micro(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// In one line; what is not UTF-8 is replaced.
std::string text_of(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::uint64_t total(const std::uint64_t* counts, int size) {
  std::uint64_t sum = 0;
  for (int r = 0; counts && r < size; ++r) sum += counts[r];
  return sum;
}

// Elements that this rank puts in or takes out, whichever defines the size of the kind.
std::uint64_t elements(const tracer& t, const sucl_operation& op) {
  switch (op.kind) {
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_ALLGATHERV: return total(op.recv_counts, t.size);
    case SUCL_KIND_ALLTOALLV:
      return total(op.flags & SUCL_FLAG_IN_PLACE ? op.recv_counts : op.send_counts, t.size);
    default: return op.count;
  }
}

std::uint64_t bytes_of(const tracer& t, const sucl_operation& op) {
  if (op.kind != SUCL_KIND_GROUP) return elements(t, op) * op.element_size;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < op.part_count; ++i) sum += bytes_of(t, op.parts[i]);
  return sum;
}

// Threads are numbered by track, then communicator, in 31 bits, which is what viewers take.
std::uint64_t thread_of(const tracer& t, std::size_t track) {
  return (t.id & 0xffffff) | (static_cast<std::uint64_t>(track) << 24);
}

void name_thread(const tracer& t, std::size_t track) {
  std::string name = "communicator " + std::to_string(t.id) + " (rank " + std::to_string(t.rank) +
                     " of " + std::to_string(t.size) + ")";
  if (track > 0) name += ", overlap " + std::to_string(track);
  t.file.add(text_of({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", t.process},
                      {"tid", thread_of(t, track)},
                      {"args", {{"name", name}}}}));
}

std::size_t take_track(tracer& t) {
  const auto at = std::find(t.tracks.begin(), t.tracks.end(), false);
  const auto track = static_cast<std::size_t>(at - t.tracks.begin());
  if (track >= max_tracks) return max_tracks;  // shown on top of each other
  if (at == t.tracks.end()) {
    t.tracks.push_back(true);
    name_thread(t, track);
  }
  t.tracks[track] = true;
  return track;
}

std::int64_t take_issue(tracer& t, std::uint64_t sequence, std::int64_t posted) {
  const std::lock_guard lock(t.mutex);
  const auto at = t.issued.find(sequence);
  if (at == t.issued.end()) return posted;
  const std::int64_t time = at->second;
  t.issued.erase(t.issued.begin(), std::next(at));
  return time;
}

std::string event_of(const tracer& t, const traced& r, sucl_status status, std::int64_t done) {
  const sucl_operation& op = r.op;
  const std::int64_t offset = t.file.offset().value_or(0);
  const bool compiled = op.kind == compiled_plan_kind;
  const std::string name = kind_name(op.kind);
  const bool collective = op.kind <= SUCL_KIND_EXSCAN || compiled;
  return text_of({{"name", name},
                  {"cat", collective ? "collective" : "point-to-point"},
                  {"ph", "X"},
                  {"pid", t.process},
                  {"tid", thread_of(t, std::min(r.track, max_tracks - 1))},
                  {"ts", micro(r.posted + offset)},
                  {"dur", micro(done - r.posted)},
                  {"args",
                   {{"sequence", op.sequence},
                    {"kind", name},
                    {"type", sucl::name(static_cast<type>(op.type))},
                    {"op", sucl::name(static_cast<sucl::op>(op.op))},
                    {"count", elements(t, op)},
                    {"bytes", bytes_of(t, op)},
                    {"root", op.root},
                    {"in_place", (op.flags & SUCL_FLAG_IN_PLACE) != 0},
                    {"backend", t.backend},
                    {"communicator", t.id},
                    {"status", sucl::name(static_cast<errc>(status))},
                    {"issued_us", micro(r.issued + offset)},
                    {"posted_us", micro(r.posted + offset)},
                    {"done_us", micro(done + offset)}}}});
}

// The timeline is an aid: without memory for an event, the operation goes on without it.
void finish(tracer& t, const traced& r, sucl_status status) noexcept {
  try {
    t.file.add(event_of(t, r, status, steady_now()));
  } catch (...) {
  }
  if (r.track < t.tracks.size()) t.tracks[r.track] = false;
}

sucl_status query(sucl_state* state, const sucl_query* question, sucl_capability* answer) {
  const backend_comm& below = self(state).below;
  return below.table->query(below.state, question, answer);
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation, sucl_request** request) {
  tracer& t = self(comm);
  std::unique_ptr<traced> r;
  try {
    r = std::make_unique<traced>();
    r->op = *operation;
    r->track = take_track(t);
  } catch (const std::bad_alloc&) {
    return services().fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory to trace an operation",
                           "Switch the trace layer off.");
  }
  r->posted = steady_now();
  r->issued = take_issue(t, operation->sequence, r->posted);
  const sucl_status status = t.below.table->post(t.below.comm, operation, &r->below);
  if (status != SUCL_SUCCESS || !r->below) {
    finish(t, *r, status);
    *request = nullptr;
    return status;
  }
  *request = reinterpret_cast<sucl_request*>(r.release());
  return SUCL_SUCCESS;
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  tracer& t = self(comm);
  auto* r = reinterpret_cast<traced*>(request);
  const sucl_status status = t.below.table->test(t.below.comm, r->below, done);
  if (status == SUCL_SUCCESS && !*done) return SUCL_SUCCESS;
  const std::unique_ptr<traced> owned(r);
  finish(t, *owned, status);
  return status;
}

void abort(sucl_backend_comm* comm) {
  tracer& t = self(comm);
  t.below.table->abort(t.below.comm);
  t.file.flush();
}

void comm_destroy(sucl_backend_comm* comm) { delete &self(comm); }

constexpr sucl_backend table = [] {
  sucl_backend t = table_of("trace", "layer that writes a timeline");
  t.query = query;
  t.comm_destroy = comm_destroy;
  t.post = post;
  t.test = test;
  t.abort = abort;
  return t;
}();

template <class T>
std::vector<T> gather(const sucl_comm_info& info, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(info.size), mine);
  if (!info.oob) return all;
  const sucl_status status = services().oob_allgather(info.oob, &mine, all.data(), sizeof(T));
  if (status != SUCL_SUCCESS) throw_last(status, {}, "starting the trace layer", info.rank);
  return all;
}

// How far the clocks of the ranks are ahead of that of rank `reference`. An exchange ends nowhere
// before it has begun everywhere, so what two ranks read before and after it bounds the difference
// of their clocks on both sides; several exchanges narrow the bounds. Clocks that may be one and
// the same are taken to be so, otherwise the middle is taken.
std::int64_t ahead_of(const sucl_comm_info& info, int reference) {
  struct reading {
    std::int64_t before;
    std::int64_t after;
  };
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < clock_rounds; ++round) {
    reading mine{steady_now(), 0};
    gather(info, std::int8_t{0});
    mine.after = steady_now();
    const auto other = gather(info, mine)[static_cast<std::size_t>(reference)];
    least = std::max(least, mine.before - other.after);
    most = std::min(most, mine.after - other.before);
  }
  if (least <= 0 && most >= 0) return 0;
  return least + (most - least) / 2;
}

// Ranks that know the job's clock already, from a communicator before, send it to the others.
void agree_on_clock(trace_file& file, const sucl_comm_info& info) {
  const auto offsets = gather(info, file.offset().value_or(unknown));
  if (std::count(offsets.begin(), offsets.end(), unknown) == 0) return;
  const auto known = std::find_if(offsets.begin(), offsets.end(),
                                  [](std::int64_t offset) { return offset != unknown; });
  const bool none = known == offsets.end();
  const int reference = none ? 0 : static_cast<int>(known - offsets.begin());
  const std::int64_t ahead = ahead_of(info, reference);
  if (!file.offset()) file.set_offset((none ? 0 : *known) - ahead);
}

std::string path_for(const trace_options& options) {
  const std::string rank = std::to_string(options.world_rank);
  std::string path = options.path;
  const auto at = path.find("%r");
  if (at == path.npos) return path + "." + rank;
  return path.replace(at, 2, rank);
}

// Every rank finds out whether all can write, so that all continue or none does.
trace_file& open_together(const std::string& path, const sucl_comm_info& info) {
  trace_file* file = nullptr;
  std::optional<error_info> failed;
  try {
    file = &trace_file::at(path);
  } catch (const error& e) {
    failed = e.info();
  }
  const auto opened = gather(info, static_cast<std::int8_t>(failed ? 0 : 1));
  if (failed) throw error(*failed);
  const auto without = std::find(opened.begin(), opened.end(), 0);
  if (without != opened.end())
    base::fail(errc::configuration,
               "rank " + std::to_string(without - opened.begin()) + " cannot write its trace file",
               "Name a directory that every rank can write to.");
  return *file;
}

}  // namespace

backend_comm wrap_trace(backend_comm below, const sucl_comm_info& info,
                        const trace_options& options) {
  trace_file& file = open_together(path_for(options), info);
  const bool first = !file.offset();
  agree_on_clock(file, info);
  if (first)
    file.add(text_of({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", options.world_rank},
                      {"args", {{"name", "rank " + std::to_string(options.world_rank)}}}}));
  auto* layer =
      new tracer{below, file, options.world_rank, info.rank, info.size, info.id, options.backend};
  return {&table, reinterpret_cast<sucl_state*>(layer),
          reinterpret_cast<sucl_backend_comm*>(layer)};
}

void trace_issue(const backend_comm& top, std::uint64_t sequence) noexcept {
  if (top.table != &table) return;
  tracer& t = self(top.comm);
  try {
    const std::lock_guard lock(t.mutex);
    // Notes of operations that never reached this layer are not kept for ever.
    if (t.issued.size() >= max_notes) t.issued.erase(t.issued.begin());
    t.issued.emplace(sequence, steady_now());
  } catch (...) {
  }
}

}  // namespace sucl::core
