// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/plan_backend.hpp"

#include "runtime/core_services.hpp"
#include "runtime/exec/runner.hpp"

#include <new>

namespace sucl::core {
namespace {

runner& of(sucl_backend_comm* comm) { return *reinterpret_cast<runner*>(comm); }
execution* of(sucl_request* request) { return reinterpret_cast<execution*>(request); }

template <class Work>
sucl_status guarded(Work work) noexcept {
  try {
    work();
    return SUCL_SUCCESS;
  } catch (const error& e) {
    return keep(e.info());
  } catch (const std::bad_alloc&) {
    return services().fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for a plan",
                           "Use fewer different sizes at once");
  } catch (const std::exception& e) {
    return services().fail(SUCL_ERROR_INTERNAL, 0, e.what(), nullptr);
  }
}

sucl_status post(sucl_backend_comm* comm, const sucl_operation* o, sucl_request** request) {
  return guarded([&] {
    runner& r = of(comm);
    execution* e = r.start(*o);
    if (o->flags & SUCL_FLAG_MAY_BLOCK)
      r.finish(e);
    else
      r.progress(0);
    *request = nullptr;
    if (e->done())
      r.recycle(e);
    else
      *request = reinterpret_cast<sucl_request*>(e);
  });
}

sucl_status test(sucl_backend_comm* comm, sucl_request* request, std::int32_t* done) {
  return guarded([&] {
    runner& r = of(comm);
    execution* e = of(request);
    if (!e->done()) r.progress(0);
    *done = e->done();
    if (*done) r.recycle(e);
  });
}

sucl_status query(sucl_state*, const sucl_query* q, sucl_capability* answer) {
  answer->supported = plans_carry(q->kind) && q->memory != SUCL_MEMORY_DEVICE &&
                      (!reduces(static_cast<kind>(q->kind)) || find_fold(q->type, q->op));
  answer->flags = 0;
  answer->max_count = 0;
  return SUCL_SUCCESS;
}

sucl_backend make_table() {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = plan_backend_name;
  t.description = "SuCL's own plans through memory that the ranks of a node share";
  t.query = query;
  t.comm_destroy = [](sucl_backend_comm* c) { delete &of(c); };
  t.post = post;
  t.test = test;
  t.abort = [](sucl_backend_comm*) {};
  return t;
}

}  // namespace

const sucl_backend& plan_backend() noexcept {
  static const sucl_backend table = make_table();
  return table;
}

sucl_region make_mapped(const channel& lender, int rank, std::uint64_t bytes) {
  sucl_region region{};
  region.struct_size = sizeof region;
  if (const auto status = lender.table->memory_create(lender.comm, bytes, &region))
    throw_last(status, lender.table->name, "allocate", rank);
  return region;
}

void add_mapped(const channel& plans, const sucl_region& region, std::uint64_t number,
                std::uint64_t sequence) {
  of(plans.comm).add({region, number}, sequence);
}

bool remove_mapped(const channel& plans, const channel& lender, void* base) {
  mapped_memory m;
  if (!of(plans.comm).remove(base, m)) return false;
  lender.table->memory_destroy(lender.comm, &m.region);
  return true;
}

channel plan_channel(const channel& memory, int rank, int size, std::string* obstacle) {
  if (size > most_plan_ranks) {
    *obstacle = "it is for up to " + std::to_string(most_plan_ranks) + " ranks";
    return {};
  }
  auto made = std::make_unique<runner>(memory, rank, size, sharing{});
  if (!made->memory().complete()) {
    *obstacle = "some ranks share no memory: they are on several nodes";
    return {};
  }
  return {&plan_backend(), nullptr, reinterpret_cast<sucl_backend_comm*>(made.release())};
}

}  // namespace sucl::core
