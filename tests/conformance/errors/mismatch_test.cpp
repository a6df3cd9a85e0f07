// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// With the validate layer, ranks that mean different operations get the same error on every rank,
// whichever rank differs and in whichever form they call, and go on afterwards.
#include "ranks/fixture.hpp"

#include <cstdio>
#include <limits>
#include <map>

namespace sucl::testing {
namespace {

using words = std::vector<std::string>;

struct difference {
  const char* name;
  std::string in_message;
  std::function<void(communicator&)> usual, other;
};

std::vector<int> x(4096, 1), y(4096);
std::vector<float> f(4096, 1);

// A call in both forms.
template <class Call>
std::function<void(communicator&)> in_form(bool blocking, Call call) {
  return [=](communicator& c) {
    if (blocking) {
      auto b = c.blocking();
      call(b);
    } else {
      call(c);
      c.wait();
    }
  };
}

std::vector<difference> differences(std::size_t p, bool blocking) {
  const std::vector<std::size_t> twos(p, 2), threes(p, 3);
  std::vector<std::size_t> displs(p);
  for (std::size_t r = 0; r < p; ++r) displs[r] = 4 * r;
  const auto form = [=](auto call) { return in_form(blocking, call); };
  const auto allreduce = [=](std::size_t n, op o) {
    return form([=](auto& c) { c.allreduce(x.data(), y.data(), n, o); });
  };
  return {
      {"count", "count", allreduce(8, op::sum), allreduce(9, op::sum)},
      {"empty", "count", allreduce(8, op::sum), allreduce(0, op::sum)},
      {"op", "op", allreduce(8, op::sum), allreduce(8, op::max)},
      {"avg", "op", allreduce(8, op::sum), allreduce(8, op::avg)},
      {"type", "type", allreduce(8, op::sum),
       form([](auto& c) { c.allreduce(f.data(), 8, op::sum); })},
      {"element size", "element size", form([](auto& c) {
         c.broadcast(reinterpret_cast<std::array<std::byte, 3>*>(x.data()), 8, 0);
       }),
       form([](auto& c) {
         c.broadcast(reinterpret_cast<std::array<std::byte, 5>*>(x.data()), 8, 0);
       })},
      {"kind", "kind", allreduce(8, op::sum),
       form([](auto& c) { c.reduce(x.data(), y.data(), 8, op::sum, 0); })},
      {"barrier", "kind", form([](auto& c) { c.barrier(); }),
       form([](auto& c) { c.allgather(x.data(), y.data(), 4); })},
      {"root of broadcast", "root", form([](auto& c) { c.broadcast(x.data(), 8, 0); }),
       form([](auto& c) { c.broadcast(x.data(), 8, 1); })},
      {"root of scatter", "root", form([](auto& c) { c.scatter(x.data(), y.data(), 8, 1); }),
       form([](auto& c) { c.scatter(x.data(), y.data(), 8, 0); })},
      {"count of alltoall", "count", form([](auto& c) { c.alltoall(x.data(), y.data(), 8); }),
       form([](auto& c) { c.alltoall(x.data(), y.data(), 7); })},
      {"in place", "in place", allreduce(8, op::sum),
       form([](auto& c) { c.allreduce(x.data(), 8, op::sum); })},
      {"counts of reduce_scatter", "counts",
       form([=](auto& c) { c.reduce_scatter(x.data(), y.data(), twos, op::sum); }),
       form([=](auto& c) { c.reduce_scatter(x.data(), y.data(), threes, op::sum); })},
      {"counts of allgatherv", "counts",
       form([=](auto& c) { c.allgatherv(x.data(), 2, y.data(), twos, displs); }),
       form([=](auto& c) { c.allgatherv(x.data(), 3, y.data(), threes, displs); })},
      {"counts of alltoallv", "rank",
       form([=](auto& c) { c.alltoallv(x.data(), twos, displs, y.data(), twos, displs); }),
       form([=](auto& c) { c.alltoallv(x.data(), threes, displs, y.data(), threes, displs); })},
      {"counts of gatherv", "rank",
       form([=](auto& c) { c.gatherv(x.data(), 2, y.data(), twos, displs, 0); }),
       form([=](auto& c) { c.gatherv(x.data(), 3, y.data(), threes, displs, 0); })},
  };
}

void differ(communicator& comm, communicator aside, int odd, bool blocking) {
  for (const difference& d : differences(static_cast<std::size_t>(comm.size()), blocking)) {
    SCOPED_TRACE(std::string(d.name) + ", rank " + std::to_string(odd) + " differs, " +
                 (blocking ? "blocking" : "event"));
    std::string text = "no error";
    try {
      (comm.rank() == odd ? d.other : d.usual)(comm);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::mismatch) << e.what();
      EXPECT_EQ(e.rank(), comm.rank());
      EXPECT_FALSE(e.hint().empty());
      text = e.message();
    }
    EXPECT_NE(text.find(d.in_message), std::string::npos) << text;
    for (const auto& other : texts_of_ranks(aside, text)) EXPECT_EQ(other, text);
    std::vector<int> v{comm.rank() + 1};
    comm.blocking().allreduce(v.data(), 1, op::sum);
    EXPECT_EQ(v[0], sum_to(comm.size()));
  }
}

TEST(mismatch, on_the_last_rank) {
  auto comm = fixture().world.dup();
  for (const bool blocking : {false, true})
    differ(comm, fixture().aside, comm.size() - 1, blocking);
}

TEST(mismatch, on_the_first_rank) {
  auto comm = fixture().world.dup();
  for (const bool blocking : {false, true}) differ(comm, fixture().aside, 0, blocking);
}

// What one rank can see to be wrong with its own call.
std::vector<difference> mistakes(std::size_t p, bool blocking) {
  const int size = static_cast<int>(p);
  const std::vector<std::size_t> twos(p, 2), longer(p + 1, 2);
  std::vector<std::size_t> displs(p);
  for (std::size_t r = 0; r < p; ++r) displs[r] = 4 * r;
  const auto form = [=](auto call) { return in_form(blocking, call); };
  int* null = nullptr;
  const auto most = std::numeric_limits<std::size_t>::max();
  const auto allreduce = [=](int* memory, std::size_t n, op o) {
    return form([=](auto& c) { c.allreduce(memory, n, o); });
  };
  const auto right = allreduce(x.data(), 8, op::sum);
  const auto on_buffer = [=](std::size_t elements) {
    return form([=](auto& c) {
      sycl::buffer<int, 1> in{sycl::range<1>(2 * elements)}, out{sycl::range<1>(16)};
      c.allgather(block<int, 1>(in, 0, elements), out);
    });
  };
  return {
      {"root", "root " + std::to_string(size), form([](auto& c) { c.broadcast(x.data(), 8, 0); }),
       form([=](auto& c) { c.broadcast(x.data(), 8, size); })},
      {"count", std::to_string(most), right, allreduce(x.data(), most, op::sum)},
      {"null", "null", right, allreduce(null, 8, op::sum)},
      {"op", "minloc", right, allreduce(x.data(), 8, op::minloc)},
      {"kind and null", "null", right,
       form([=](auto& c) { c.reduce_scatter_block(x.data(), null, 8, op::sum); })},
      {"arrays", std::to_string(p + 1) + " entries",
       form([=](auto& c) { c.allgatherv(x.data(), 2, y.data(), twos, displs); }),
       form([=](auto& c) { c.allgatherv(x.data(), 2, y.data(), longer, displs); })},
      {"buffer", "elements of receive memory", on_buffer(1), on_buffer(16)},
      {"share", "cannot be divided", form([](auto& c) { c.barrier(); }), form([=](auto& c) {
         sycl::buffer<int, 1> odd{sycl::range<1>(p + 1)};
         c.allgather(odd);
       })},
  };
}

// An error on every rank, at once, with the reason and the rank that had it.
void one_is_wrong(communicator& comm, communicator aside, int odd, bool blocking) {
  for (const difference& d : mistakes(static_cast<std::size_t>(comm.size()), blocking)) {
    SCOPED_TRACE(std::string(d.name) + " on rank " + std::to_string(odd) +
                 (blocking ? ", blocking" : ", event"));
    const bool mine = comm.rank() == odd;
    errc code{};
    std::string text = "no error";
    try {
      (mine ? d.other : d.usual)(comm);
    } catch (const error& e) {
      code = e.code();
      text = e.message();
      EXPECT_EQ(e.rank(), comm.rank());
    }
    EXPECT_NE(text.find(d.in_message), std::string::npos) << text;
    if (!mine) {
      EXPECT_NE(text.find("wrong argument on rank " + std::to_string(odd)), std::string::npos)
          << text;
    }
    const auto all = texts_of_ranks(aside, std::to_string(static_cast<int>(code)));
    for (const auto& other : all) EXPECT_EQ(other, all[0]);
    int sum = comm.rank() + 1;
    comm.blocking().allreduce(&sum, 1, op::sum);
    EXPECT_EQ(sum, sum_to(comm.size()));
    EXPECT_NO_THROW(comm.check());
  }
}

TEST(mismatch, of_arguments_that_are_wrong_on_one_rank) {
  auto comm = fixture().world.dup();
  for (const bool blocking : {false, true})
    for (const int odd : {0, comm.size() - 1}) one_is_wrong(comm, fixture().aside, odd, blocking);
}

// A size at which ranks may choose different backends.
TEST(mismatch, of_sizes_far_apart) {
  auto comm = fixture().world.dup();
  std::vector<int> large(std::size_t{1} << 20, 1);
  const std::size_t n = comm.rank() == 0 ? 1 : large.size();
  for (const bool blocking : {false, true}) {
    const auto text = expect_error(errc::mismatch, [&] {
      in_form(blocking, [&](auto& c) { c.allreduce(large.data(), n, op::sum); })(comm);
    });
    EXPECT_NE(text.find("count: 1 on rank 0; 1048576 on rank"), std::string::npos) << text;
  }
}

// Wrong for one rank alone: an error there at once; the others learn it too if they wait for it.
TEST(mismatch, of_forms) {
  auto comm = fixture().world.dup();
  std::vector<int> v{1};
  const auto text = expect_error(errc::mismatch, [&] {
    if (comm.rank() == 0) {
      comm.blocking().allreduce(v.data(), 1, op::sum);
    } else {
      comm.allreduce(v.data(), 1, op::sum);
      comm.wait();
    }
  });
  EXPECT_NE(text.find("form"), std::string::npos) << text;
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    sucl::testing::rank_fixture j;
    j.queue = sycl::queue(sycl::cpu_selector_v);
    j.world = rt.world(j.queue);
    j.aside = rt.world();
    return sucl::testing::run_tests(argc, argv, rt, j);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
