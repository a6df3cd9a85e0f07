// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Jobs and communicators for the process group of torch, by C functions, since the extension that
// calls them is compiled elsewhere. For tensors of the host they are of the core alone, which needs
// no SYCL; for those of a GPU they have a queue on it.
#include "torch/port.h"

#include "base/error.hpp"
#include "calls/calls.hpp"
#include "core/control/program_store.hpp"
#include "core/operation/operation.hpp"
#include "parts.hpp"
#include "process/process.hpp"

#include <sucl/abi/members.h>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

struct sucl_port_communicator {
  std::shared_ptr<sucl::core::process> job;
  std::shared_ptr<sucl::core::communicator> core;
  std::optional<sucl::python::communicator_handle> on_gpu;  ///< which has the core's
  void* stream = nullptr;
  std::optional<sucl::python::group_handle> group;  ///< that is being put together
};

struct sucl_port_operation {
  sucl::core::ticket ticket;
};

namespace sucl::python {
namespace {

// The thread's last failure, with its texts.
struct failed {
  error_info info;
  std::string text;
  sucl_port_failure parts{};
};
failed& last() {
  thread_local failed it;
  return it;
}

sucl_status keep(const error& e) {
  failed& f = last();
  f.info = e.info();
  f.text = e.what();
  f.parts = {sizeof(sucl_port_failure),
             static_cast<std::int32_t>(e.code()),
             f.info.rank,
             0,
             f.info.native_code,
             f.text.c_str(),
             f.info.message.c_str(),
             f.info.hint.c_str(),
             f.info.operation.c_str(),
             f.info.backend.c_str()};
  return f.parts.code;
}

template <class Body>
sucl_status guarded(Body body) noexcept {
  try {
    body();
    return SUCL_SUCCESS;
  } catch (const error& e) {
    return keep(e);
  } catch (const std::exception& e) {
    error_info info;
    info.code = errc::internal;
    info.message = e.what();
    return keep(error(std::move(info)));
  }
}

// Checks a record of a caller and completes it, as the API does.
sucl_operation resolved(core::communicator& c, const sucl_operation& given) {
  sucl_operation o = given;
  o.struct_size = sizeof o;
  o.send_memory = o.recv_memory = SUCL_MEMORY_SYSTEM;
  try {
    core::normalise(o, c.rank(), c.size());
    const auto e = core::extents_of(o, c.rank(), c.size());
    if (e.send == 0) o.send = nullptr;
    if (e.recv == 0) o.recv = nullptr;
    core::check_memory(o, c.rank(), c.size());
  } catch (const error& e) {
    error_info info = e.info();
    info.operation = core::describe(given);
    info.rank = c.rank();
    c.refuse(given, info);
    throw error(std::move(info));
  }
  return o;
}

// A call of the record's counts and memory.
call call_of(const sucl_port_communicator& c, const sucl_operation& o) {
  call made;
  made.record = o;
  made.record.struct_size = sizeof o;
  const std::uint64_t* const lists[] = {o.send_counts, o.send_displs, o.recv_counts, o.recv_displs};
  for (std::size_t i = 0; i < made.arrays.size(); ++i)
    if (lists[i]) made.arrays[i].emplace(lists[i], lists[i] + c.core->size());
  made.send.pointer = const_cast<void*>(o.send);
  made.recv.pointer = o.recv;
  return made;
}

void issue_on_gpu(sucl_port_communicator& c, const sucl_operation& o) {
  const kept_device kept;
  const call made = call_of(c, o);
  if (c.group)
    c.group->add(made);
  else
    c.on_gpu->submit(made, {c.on_gpu->mark()});
}

sucl_status issue(sucl_port_communicator* c, const sucl_operation* given,
                  sucl_port_operation** issued) {
  *issued = nullptr;
  return guarded([&] {
    core::throw_if_forked();
    if (c->on_gpu) return issue_on_gpu(*c, *given);
    auto made = c->core->issue(resolved(*c->core, *given), {}, true, {});
    if (made.done && !made.operation.failure()) return;
    *issued = new sucl_port_operation{std::move(made.operation)};
  });
}

std::int32_t done(const sucl_port_operation* o) { return o->ticket.done() ? 1 : 0; }

// For so long a wait with an end looks again and again before it sleeps.
constexpr auto looking = std::chrono::microseconds(50);

bool wait_until(core::communicator& c, const core::ticket& t,
                std::chrono::steady_clock::time_point end) {
  auto now = std::chrono::steady_clock::now();
  const auto spin_end = now + looking;
  while (!t.done()) {
    c.progress();
    now = std::chrono::steady_clock::now();
    if (now >= end) return t.done();
    if (now >= spin_end) std::this_thread::sleep_for(looking);
  }
  return true;
}

sucl_status wait(sucl_port_communicator* c, sucl_port_operation* o, std::int64_t milliseconds,
                 std::int32_t* is_done) {
  *is_done = 1;
  return guarded([&] {
    if (milliseconds >= 0) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
      *is_done = wait_until(*c->core, o->ticket, end) ? 1 : 0;
      if (!*is_done) return;
    }
    c->core->wait(o->ticket);
  });
}

const char* late(sucl_port_communicator* c, std::int64_t milliseconds) {
  std::string late;
  (void)guarded([&] { late = c->core->late().ask(std::chrono::milliseconds(milliseconds)); });
  last().text = std::move(late);
  return last().text.c_str();
}

sucl_status arrived(sucl_port_communicator* c, std::int32_t from, std::int32_t tag,
                    std::int32_t* result) {
  return guarded([&] {
    const auto found = c->core->arrived(from, tag);
    *result = found ? static_cast<std::int32_t>(*found) : -1;
  });
}

void forget(sucl_port_operation* o) { delete o; }

void abort_all(sucl_port_communicator* c, const char* why) {
  error_info info;
  info.code = errc::shut_down;
  info.message = why;
  info.hint = "Make a new process group";
  info.rank = c->core->rank();
  (void)guarded([&] { c->core->fail_everywhere(info); });
}

const sucl_port_failure* failure() { return &last().parts; }

void close(sucl_port_communicator* c) {
  (void)guarded([&] {
    const kept_device kept;
    c->group.reset();
    c->core.reset();
    c->on_gpu.reset();
  });
  delete c;
}

void* stream(sucl_port_communicator* c) { return c->stream; }

void begin_group(sucl_port_communicator* c) { c->group.emplace(*c->on_gpu); }

sucl_status end_group(sucl_port_communicator* c) {
  return guarded([&] {
    const kept_device kept;
    group_handle all = std::move(*c->group);
    c->group.reset();
    all.submit({c->on_gpu->mark()});
  });
}

sucl_status check(sucl_port_communicator* c) {
  return guarded([&] { c->core->check(); });
}

constexpr sucl_port table = {
    sizeof(sucl_port), 0,     issue,  done,        wait,      arrived, forget, abort_all,
    failure,           close, stream, begin_group, end_group, check,   late};

// A capsule that was not taken closes its communicator.
void drop(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  auto* handle = static_cast<sucl_port_handle*>(PyCapsule_GetPointer(capsule, name));
  if (std::string(name) == SUCL_PORT_CAPSULE) close(handle->communicator);
  delete handle;
}

// The processes of a job of torch, and SuCL in this one.
class port_job {
 public:
  port_job(const nb::object& object, int rank, int size) {
    if (size < 1 || rank < 0 || rank >= size)
      fail(errc::invalid_rank, "rank " + std::to_string(rank) + " of " + std::to_string(size),
           "Pass ranks from 0 to size - 1");
    const rendezvous_store store = store_of(object);  // ends with the GIL held
    core::program_store calls(store);
    core::launch l;
    l.rank = rank;
    l.size = size;
    l.why = "torch.distributed";
    l.store = calls.table();
    const nb::gil_scoped_release released;
    try {
      m_process = core::process::start(nullptr, nullptr, {}, std::move(l));
    } catch (const error&) {
      calls.rethrow();
      throw;
    }
  }

  [[nodiscard]] bool alive() const { return m_process->alive(); }
  void shut_down() const { m_process->shut_down(); }
  void abandon() const { m_process->abandon("abandoned after an error"); }

  // A communicator of these ranks of the job, which alone call it, with a name of their own.
  [[nodiscard]] nb::object group(const std::string& name, const std::vector<int>& ranks) const {
    auto made = std::make_unique<sucl_port_communicator>();
    {
      const nb::gil_scoped_release released;
      made->job = m_process;
      core::setup_step step(m_process->steps(), "the process group " + name, ranks);
      made->core = core::in_step(step, [&] { return adopted(name, ranks); });
    }
    return capsule_of(std::move(made));
  }

  // The same for memory of the GPU with that number in its vendor's API.
  [[nodiscard]] nb::tuple group_on_gpu(const std::string& name, const std::vector<int>& ranks,
                                       int gpu) const {
    auto made = std::make_unique<sucl_port_communicator>();
    {
      const nb::gil_scoped_release released;
      const kept_device kept;
      made->job = m_process;
      core::setup_step step(m_process->steps(), "the process group " + name + " on GPUs", ranks);
      core::in_step(step, [&] {
        const queue_handle queue = queue_handle::of_gpu(gpu);
        const sucl_members members = members_of(name, ranks);
        made->on_gpu.emplace(m_process, &members, sizeof members, queue, made->core);
        made->stream = queue.native_stream();
      });
    }
    const auto address = reinterpret_cast<std::uintptr_t>(made->stream);
    return nb::make_tuple(capsule_of(std::move(made)), address);
  }

 private:
  static nb::object capsule_of(std::unique_ptr<sucl_port_communicator> made) {
    auto handle = std::make_unique<sucl_port_handle>();
    *handle = {&table, made.get()};
    PyObject* capsule = PyCapsule_New(handle.get(), SUCL_PORT_CAPSULE, drop);
    if (!capsule) throw nb::python_error();
    (void)made.release();
    (void)handle.release();
    return nb::steal(capsule);
  }

  // FNV-1a: the same on every machine.
  static std::uint64_t hash(const std::string& name) {
    std::uint64_t h = 14695981039346656037u;
    for (const unsigned char c : name) h = (h ^ c) * 1099511628211u;
    return h;
  }

  static sucl_members members_of(const std::string& name, const std::vector<int>& ranks) {
    return {sizeof(sucl_members), static_cast<std::int32_t>(ranks.size()), hash(name),
            ranks.data()};
  }

  std::shared_ptr<core::communicator> adopted(const std::string& name,
                                              const std::vector<int>& ranks) const {
    const sucl_members members = members_of(name, ranks);
    return m_process->adopt(&members, sizeof members, {});
  }

  std::shared_ptr<core::process> m_process;
};

}  // namespace

void bind_port(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<port_job>(m, "PortJob")
      .def(nb::init<const nb::object&, int, int>(), "store"_a, "rank"_a, "size"_a)
      .def("alive", &port_job::alive)
      .def("group", &port_job::group, "name"_a, "ranks"_a)
      .def("group_on_gpu", &port_job::group_on_gpu, "name"_a, "ranks"_a, "gpu"_a)
      .def("shut_down", &port_job::shut_down, released())
      .def("abandon", &port_job::abandon, released());
}

}  // namespace sucl::python
