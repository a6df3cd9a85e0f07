// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tables of wrong arguments, for every public call that they apply to; see errors_test.cpp.
#include "conformance/errors/errors.hpp"

#include <sucl/mpi.hpp>

#include <array>
#include <functional>
#include <limits>

namespace sucl::testing {
namespace {

constexpr auto none = static_cast<int*>(nullptr);
constexpr auto huge = std::numeric_limits<std::size_t>::max();

/// Arguments of a collective of any kind.
struct arguments {
  const int* send;
  int* recv;
  std::size_t count;
  std::vector<std::size_t> counts, displs;
  int root = 0;
  op by = op::sum;
};

// Calls `check(name, call)` for every collective with separate memory; `call(form)` makes it.
template <class Check>
void each_two_sided(const arguments& a, Check&& check) {
  check("reduce", [&a](auto& c) { c.reduce(a.send, a.recv, a.count, a.by, a.root); });
  check("allreduce", [&a](auto& c) { c.allreduce(a.send, a.recv, a.count, a.by); });
  check("scan", [&a](auto& c) { c.scan(a.send, a.recv, a.count, a.by); });
  check("exscan", [&a](auto& c) { c.exscan(a.send, a.recv, a.count, a.by); });
  check("reduce_scatter_block",
        [&a](auto& c) { c.reduce_scatter_block(a.send, a.recv, a.count, a.by); });
  check("allgather", [&a](auto& c) { c.allgather(a.send, a.recv, a.count); });
  check("alltoall", [&a](auto& c) { c.alltoall(a.send, a.recv, a.count); });
  check("gather", [&a](auto& c) { c.gather(a.send, a.recv, a.count, a.root); });
  check("scatter", [&a](auto& c) { c.scatter(a.send, a.recv, a.count, a.root); });
}

// Those with counts of their own.
template <class Check>
void each_with_counts(const arguments& a, Check&& check) {
  check("reduce_scatter", [&a](auto& c) { c.reduce_scatter(a.send, a.recv, a.counts, a.by); });
  check("allgatherv", [&a](auto& c) { c.allgatherv(a.send, a.count, a.recv, a.counts, a.displs); });
  check("alltoallv",
        [&a](auto& c) { c.alltoallv(a.send, a.counts, a.displs, a.recv, a.counts, a.displs); });
  check("gatherv",
        [&a](auto& c) { c.gatherv(a.send, a.count, a.recv, a.counts, a.displs, a.root); });
  check("scatterv",
        [&a](auto& c) { c.scatterv(a.send, a.counts, a.displs, a.recv, a.count, a.root); });
}

template <class Check>
void each_in_place(const arguments& a, Check&& check) {
  check("broadcast", [&a](auto& c) { c.broadcast(a.recv, a.count, a.root); });
  check("reduce", [&a](auto& c) { c.reduce(a.recv, a.count, a.by, a.root); });
  check("allreduce", [&a](auto& c) { c.allreduce(a.recv, a.count, a.by); });
  check("scan", [&a](auto& c) { c.scan(a.recv, a.count, a.by); });
  check("exscan", [&a](auto& c) { c.exscan(a.recv, a.count, a.by); });
  check("reduce_scatter_block", [&a](auto& c) { c.reduce_scatter_block(a.recv, a.count, a.by); });
  check("allgather", [&a](auto& c) { c.allgather(a.recv, a.count); });
  check("alltoall", [&a](auto& c) { c.alltoall(a.recv, a.count); });
  check("gather", [&a](auto& c) { c.gather(a.recv, a.count, a.root); });
  check("scatter", [&a](auto& c) { c.scatter(a.recv, a.count, a.root); });
}

template <class Check>
void each_in_place_with_counts(const arguments& a, Check&& check) {
  check("reduce_scatter", [&a](auto& c) { c.reduce_scatter(a.recv, a.counts, a.by); });
  check("allgatherv", [&a](auto& c) { c.allgatherv(a.recv, a.counts, a.displs); });
  check("alltoallv", [&a](auto& c) { c.alltoallv(a.recv, a.counts, a.displs); });
}

template <class Check>
void each_message(const arguments& a, int tag, Check&& check) {
  check("send", [&a, tag](auto& c) { c.send(a.send, a.count, a.root, tag); });
  check("recv", [&a, tag](auto& c) { c.recv(a.recv, a.count, a.root, tag); });
  check("sendrecv",
        [&a, tag](auto& c) { c.sendrecv(a.send, a.count, a.root, a.recv, a.count, a.root, tag); });
}

class entries : public errors {
 protected:
  arguments usual() { return {x.get(), y.get(), 2, counts, displs, world.rank(), op::sum}; }
  /// Every rank is its own root, so that all memory counts on every rank.
  auto refuses(errc code, const std::string& words) {
    return [this, code, words](const char* name, auto&& call) { refused(code, name, words, call); };
  }
};

TEST_F(entries, refuse_null_memory) {
  const auto check = refuses(errc::invalid_memory, "null");
  arguments a = usual();
  a.recv = none;
  each_two_sided(a, check);
  each_with_counts(a, check);
  each_in_place(a, check);
  each_in_place_with_counts(a, check);
  a = usual();
  a.send = none;
  each_two_sided(a, check);
  each_with_counts(a, check);
  a.recv = none;
  each_two_sided(a, check);
  each_with_counts(a, check);
  each_message(a, 0, check);
}

// Products of which go around to small numbers, among others.
TEST_F(entries, refuse_counts_beyond_any_memory) {
  const auto check = refuses(errc::invalid_count, "");
  arguments a = usual();
  for (const std::size_t count : {huge, huge / 4, huge / 4 + 1, huge / 4 + 2, huge / 2 + 1}) {
    a.count = count;
    each_two_sided(a, check);
    each_in_place(a, check);
    each_message(a, 0, check);
    a.count = 2;
    a.counts.assign(p, count);
    each_with_counts(a, check);
    each_in_place_with_counts(a, check);
    a.counts = counts;
  }
  // Blocks that each fit and together do not, and blocks that begin too far.
  a.displs.assign(p, huge);
  each_in_place_with_counts(a, [&](const char* name, auto&& call) {
    if (name != std::string("reduce_scatter")) check(name, call);
  });
  if (p > 1) {
    a = usual();
    a.counts.assign(p, huge / 8);
    each_in_place_with_counts(a, check);
  }
}

TEST_F(entries, refuse_arrays_of_other_lengths) {
  const auto check = refuses(errc::invalid_count, "entries");
  for (const std::size_t length : {p - 1, p + 1}) {
    if (length == 0) continue;  // as if there were none: see errors.of_arrays
    arguments a = usual();
    a.counts.resize(length, 2);
    each_with_counts(a, check);
    each_in_place_with_counts(a, check);
    a = usual();
    a.displs.resize(length);
    const auto with_displs = [&](const char* name, auto&& call) {
      if (name != std::string("reduce_scatter")) check(name, call);
    };
    each_with_counts(a, with_displs);
    each_in_place_with_counts(a, with_displs);
  }
  arguments a = usual();
  a.counts.clear();
  const auto needs = refuses(errc::invalid_argument, "needs");
  each_with_counts(a, needs);
  each_in_place_with_counts(a, needs);
}

TEST_F(entries, refuse_roots_and_peers) {
  arguments a = usual();
  for (const int root : {-3, size, std::numeric_limits<int>::min()}) {
    a.root = root;
    const auto is_rooted = [&](const char* name) {
      for (const char* known : {"broadcast", "reduce", "gather", "scatter", "gatherv", "scatterv"})
        if (name == std::string(known)) return true;
      return false;
    };
    const auto check = [&](const char* name, auto&& call) {
      if (is_rooted(name)) refuses(errc::invalid_rank, "root " + std::to_string(root))(name, call);
    };
    each_two_sided(a, check);
    each_with_counts(a, check);
    each_in_place(a, check);
    each_message(a, 0, refuses(errc::invalid_rank, "peer " + std::to_string(root)));
  }
}

TEST_F(entries, refuse_tags) {
  const arguments a = usual();
  for (const int tag : {-1, 32767, std::numeric_limits<int>::min()})
    each_message(a, tag, refuses(errc::invalid_argument, "tag " + std::to_string(tag)));
}

TEST_F(entries, refuse_memory_that_overlaps) {
  arguments a = usual();
  a.count = 4;
  a.counts.assign(p, 4);
  a.send = x.get() + 1;
  a.recv = x.get();
  const auto check = refuses(errc::invalid_memory, "overlap");
  each_two_sided(a, check);
  each_with_counts(a, check);
  refused(errc::invalid_memory, "sendrecv", "overlap",
          [&](auto& c) { c.sendrecv(a.send, 4, 0, a.recv, 4, 0); });
}

TEST_F(entries, refuse_ops) {
  arguments a = usual();
  for (const op by : {op::none, op::minloc, static_cast<op>(-1), static_cast<op>(1000)}) {
    a.by = by;
    const auto check = [&](const char* name, auto&& call) {
      for (const char* known :
           {"reduce", "allreduce", "scan", "exscan", "reduce_scatter_block", "reduce_scatter"})
        if (name == std::string(known))
          refuses(errc::invalid_type, "is not defined for elements of type int32")(name, call);
    };
    each_two_sided(a, check);
    each_with_counts(a, check);
    each_in_place(a, check);
    each_in_place_with_counts(a, check);
  }
}

TEST_F(entries, refuse_calls_in_mpis_words) {
  const auto check = [&](errc code, const std::string& operation, const std::string& words,
                         const std::function<void()>& call) {
    refused_once(code, operation, words, call);
  };
  const int here = world.rank();
  check(errc::invalid_memory, "broadcast", "null", [&] { mpi::bcast(q, none, 4, here, world); });
  check(errc::invalid_memory, "allreduce", "null",
        [&] { mpi::allreduce(q, mpi::in_place, none, 4, op::sum, world); });
  check(errc::invalid_memory, "reduce", "null",
        [&] { mpi::reduce(q, none, y.get(), 4, op::sum, here, world); });
  check(errc::invalid_memory, "scan", "null",
        [&] { mpi::scan(q, x.get(), none, 4, op::sum, world); });
  check(errc::invalid_memory, "gather", "null",
        [&] { mpi::gather(q, x.get(), 4, none, 4, here, world); });
  check(errc::invalid_rank, "gatherv", "root",
        [&] { mpi::gatherv(q, x.get(), 2, y.get(), counts, displs, size, world); });
  check(errc::invalid_memory, "scatter", "null",
        [&] { mpi::scatter(q, none, 4, y.get(), 4, here, world); });
  check(errc::invalid_count, "scatterv", "entries", [&] {
    auto longer = counts;
    longer.push_back(1);
    mpi::scatterv(q, x.get(), longer, displs, y.get(), 2, here, world);
  });
  check(errc::invalid_count, "alltoall", "",
        [&] { mpi::alltoall(q, x.get(), huge, y.get(), huge, world); });
  check(errc::invalid_memory, "send", "null", [&] { mpi::send(q, none, 4, here, 0, world); });
  check(errc::invalid_argument, "recv", "tag -4",
        [&] { mpi::recv(q, y.get(), 4, here, -4, world); });
  check(errc::invalid_memory, "sendrecv", "null",
        [&] { mpi::sendrecv(q, x.get(), 4, here, 0, none, 4, here, 0, world); });
}

TEST_F(entries, refuse_memory_for_all) {
  const std::array<std::size_t, 3> counts_of{huge, huge / 4 + 2, huge / 8};
  for (const std::size_t count : counts_of)
    expect_error(errc::out_of_memory, [&] { (void)world.allocate<int>(count); });
  int own = 0;
  for (int* const wrong : {none, &own}) {
    expect_error(errc::invalid_memory, [&] { world.deallocate(wrong); });
    expect_error(errc::invalid_memory, [&] { world.deregister_memory(wrong); });
  }
  int* const shared_by_all = world.allocate<int>(4);
  expect_error(errc::invalid_memory, [&] { world.deregister_memory(shared_by_all); });
  expect_error(errc::invalid_memory, [&] { world.deallocate(shared_by_all + 1); });
  world.deallocate(shared_by_all);
  expect_error(errc::invalid_memory, [&] { world.deallocate(shared_by_all); });

  expect_error(errc::invalid_memory, [&] { (void)world.register_memory(none, 4); });
  expect_error(errc::invalid_count, [&] { (void)world.register_memory(x.get(), huge); });
  (void)world.register_memory(none, 0);
  world.deregister_memory(none);
  (void)world.register_memory(x.get(), n);
  expect_error(errc::invalid_memory, [&] { world.deallocate(x.get()); });
  world.deregister_memory(x.get());
  expect_error(errc::invalid_memory, [&] { world.deregister_memory(x.get()); });
}

// The others are told.
TEST_F(entries, refuse_null_memory_of_one_rank) {
  const int last = size - 1;
  const auto text = expect_error(errc::invalid_memory, [&] {
    (void)world.register_memory(world.rank() == last ? none : x.get(), 4);
  });
  EXPECT_NE(text.find("null"), std::string::npos) << text;
  const std::string culprit = "rank " + std::to_string(last);
  EXPECT_TRUE(world.rank() == last || text.find(culprit) != std::string::npos) << text;
}

TEST_F(entries, refuse_questions_about_what_there_is_not) {
  const auto ask = [&](errc code, kind k, type t, op o) {
    expect_error(code, [&] { (void)world.explain(k, 8, t, o); });
    expect_error(code, [&] { (void)world.selected_backend(k, 8, t, o); });
  };
  ask(errc::invalid_argument, static_cast<kind>(-1), type::fp32, op::sum);
  ask(errc::invalid_argument, static_cast<kind>(1 << 20), type::fp32, op::sum);
  ask(errc::invalid_type, kind::allreduce, static_cast<type>(-1), op::sum);
  ask(errc::invalid_type, kind::allreduce, static_cast<type>(99), op::sum);
  ask(errc::invalid_type, kind::allreduce, type::fp32, static_cast<op>(99));
}

TEST_F(entries, refuse_compositions) {
  composition c(size);
  for (int r = 0; r < size; ++r)
    c.reduction(c.send(4 * static_cast<std::size_t>(r), 4), c.recv(0, 4), all, r, op::sum);
  auto plan = world.compile<int>(c);
  for (const auto& [send, recv] : {std::pair<const int*, int*>{none, y.get()}, {x.get(), none}}) {
    expect_error(errc::invalid_memory, [&, s = send, r = recv] { plan.run(s, r); });
    expect_error(errc::invalid_memory, [&, s = send, r = recv] { (void)plan.start(s, r); });
  }
  expect_error(errc::invalid_memory, [&] { plan.run(y.get() + 1, y.get()); });
  std::vector<float> other(64);
  expect_error(errc::invalid_type, [&] { plan.run(other.data(), other.data() + 32); });
  for (int ranks : {-1, 0, size + 1})
    EXPECT_THROW((void)world.compile<int>(composition(ranks)), error) << ranks << " ranks";
  composition far(size);
  far.multicast(far.send(huge, 4), far.recv(0, 4), 0, all);
  EXPECT_THROW((void)world.compile<int>(far), error);
  compiled_plan nothing;
  expect_error(errc::shut_down, [&] { nothing.run(x.get(), y.get()); });
  expect_error(errc::shut_down, [&] { (void)nothing.send_size(); });
}

TEST_F(entries, refuse_functions_that_are_empty) {
  expect_error(errc::invalid_argument, [&] { (void)world.record(q, nullptr); });
  executable nothing;
  expect_error(errc::shut_down, [&] { (void)nothing.replay(); });
  expect_error(errc::shut_down, [&] { nothing.update([] {}); });
  expect_error(errc::shut_down, [&] { (void)nothing.is_graph(); });
  persistent never;
  expect_error(errc::shut_down, [&] { never.run(); });
  expect_error(errc::shut_down, [&] { (void)never.start(); });
}

TEST_F(entries, refuse_operations_with_ops_of_the_program) {
  const user_op<int> add([](int a, int b) { return a + b; });
  const scaled_sum<int> twice(2);
  const int here = world.rank();
  for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 20}) {
    const auto check = [&](const char* name, const std::function<void()>& call) {
      refused_once(errc::invalid_memory, name, "null", call);
    };
    check("allreduce", [&] { add.allreduce(world, none, y.get(), count); });
    check("allreduce", [&] { add.allreduce(world, x.get(), none, count); });
    check("allreduce", [&] { add.allreduce(world, none, none, count); });
    check("reduce", [&] { add.reduce(world, x.get(), none, count, here); });
    check("reduce_scatter",
          [&] { add.reduce_scatter(world, x.get(), none, std::vector(p, count)); });
    check("scan", [&] { add.scan(world, none, y.get(), count); });
    check("exscan", [&] { add.exscan(world, x.get(), none, count); });
    check("allreduce", [&] { twice.allreduce(world, none, y.get(), count); });
    check("reduce", [&] { twice.reduce(world, x.get(), none, count, here); });
    check("reduce_scatter_block", [&] { twice.reduce_scatter_block(world, x.get(), none, count); });
  }
  for (const std::size_t count : {huge, huge / 4 + 2}) {
    refused_once(errc::invalid_count, "allreduce", "",
                 [&] { add.allreduce(world, x.get(), y.get(), count); });
    refused_once(errc::invalid_count, "reduce_scatter_block", "",
                 [&] { twice.reduce_scatter_block(world, x.get(), y.get(), count); });
  }
  refused_once(errc::invalid_rank, "reduce", "root " + std::to_string(size),
               [&] { add.reduce(world, x.get(), y.get(), 4, size); });
  refused_once(errc::invalid_rank, "reduce", "root -1",
               [&] { twice.reduce(world, x.get(), y.get(), 4, -1); });
  refused_once(errc::invalid_count, "reduce_scatter", "entries", [&] {
    add.reduce_scatter(world, x.get(), y.get(), std::vector(p + 1, std::size_t{1}));
  });
  refused_once(errc::invalid_memory, "allreduce", "overlap",
               [&] { add.allreduce(world, x.get(), x.get() + 1, 4); });
  communicator nowhere;
  expect_error(errc::shut_down, [&] { add.allreduce(nowhere, x.get(), y.get(), 4); });
}

TEST_F(entries, refuse_neighbours) {
  const int next = (world.rank() + 1) % size, last = (world.rank() + size - 1) % size;
  // The first neighbour is none, so that the first block is not looked at.
  neighborhood around(world, {no_rank, last}, {no_rank, next});
  const auto check = [&](errc code, const std::function<void(std::size_t, const int*, int*)>& call,
                         std::size_t count, const int* send,
                         int* recv) { expect_error(code, [&] { call(count, send, recv); }); };
  const auto in_both_forms = [&](auto&& of) {
    auto blocking = around.blocking();
    of(around);
    of(blocking);
  };
  in_both_forms([&](auto& form) {
    const auto gathers = [&](std::size_t k, const int* s, int* r) { form.allgather(s, r, k); };
    const auto exchanges = [&](std::size_t k, const int* s, int* r) { form.alltoall(s, r, k); };
    const auto by_counts = [&](std::size_t k, const int* s, int* r) {
      form.alltoallv(s, {k, k}, {0, k}, r, {k, k}, {0, k});
    };
    for (const auto& call : std::vector<std::function<void(std::size_t, const int*, int*)>>{
             gathers, exchanges, by_counts}) {
      check(errc::invalid_memory, call, 4, none, y.get());
      check(errc::invalid_memory, call, 4, x.get(), none);
      check(errc::invalid_count, call, huge, x.get(), y.get());
      check(errc::invalid_count, call, huge / 8 + 1, x.get(), y.get());
    }
    expect_error(errc::invalid_count,
                 [&] { form.alltoallv(x.get(), {1}, {0}, y.get(), {1, 1}, {0, 1}); });
    expect_error(errc::invalid_count,
                 [&] { form.alltoallv(x.get(), {1, 1}, {0, huge}, y.get(), {1, 1}, {0, 1}); });
  });
  expect_error(errc::invalid_rank, [&] { neighborhood wrong(world, {size}, {}); });
  expect_error(errc::invalid_argument, [&] { (void)neighborhood::grid(world, {-1, -size}); });
  expect_error(errc::invalid_argument, [&] { (void)neighborhood::grid(world, {size + 1}); });
  expect_error(errc::shut_down, [&] { neighborhood wrong(communicator{}, {}, {}); });
}

TEST_F(entries, refuse_lists_of_other_lengths) {
  const std::vector<communicator> ranks{world};
  const std::vector<int*> two(2);
  expect_error(errc::invalid_argument, [&] { communicator::deallocate(ranks, two); });
  expect_error(errc::invalid_argument, [&] { (void)communicator::split(ranks, {0, 0}); });
  expect_error(errc::invalid_argument, [&] { (void)communicator::split(ranks, {0}, {0, 0}); });
  group nothing;
  EXPECT_THROW((void)nothing.submit(), error);
  group of_none;
  of_none.send(x.get(), 1, 0);
  expect_error(errc::shut_down, [&] { of_none.run(); });
}

TEST_F(entries, refuse_what_was_moved_from) {
  auto comm = world.dup();
  auto moved = std::move(comm);
  expect_error(errc::shut_down, [&] { comm.barrier(); });
  expect_error(errc::shut_down, [&] { (void)comm.allocate<int>(4); });
  expect_error(errc::shut_down, [&] { (void)comm.register_memory(x.get(), 4); });
  expect_error(errc::shut_down, [&] { (void)comm.persistent(); });
  expect_error(errc::shut_down, [&] { (void)comm.record(q, [] {}); });
  expect_error(errc::shut_down, [&] { comm.use_tuning(""); });
  expect_error(errc::shut_down, [&] { (void)comm.compile<int>(composition(size)); });
  expect_error(errc::shut_down, [&] { (void)comm.explain(kind::allreduce, 8); });
  auto made = moved.persistent().allreduce(x.get(), 1, op::max);
  auto other = std::move(made);
  expect_error(errc::shut_down, [&] { made.run(); });
  other.run();
}

}  // namespace
}  // namespace sucl::testing
