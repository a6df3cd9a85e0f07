// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators of the core whose operations are posted on streams, with threads as ranks. This
// test plays the SYCL runtime: it calls post_on_stream() when a command would be enqueued.
#include "runtime/process.hpp"

#include "support/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sucl::testing {
namespace {

using core::communicator;
using core::process;
using core::ticket;

base::config settings() {
  auto c = base::load_config("/dev/null", {});
  c.default_backend = "mock";
  for (auto& b : c.backends) {
    b.enabled = b.name == "mock" || b.name == "nccl";
    b.platforms = {"*"};
    b.path = SUCL_TEST_MODULES "/libsucl_backend_" + b.name + ".so";
  }
  return c;
}

/// What the device side tells of streams.
struct streams {
  int drained = 0;
  std::optional<core::clock::time_point> pending;
};

struct rank_job {
  communicator& comm;
  streams& device;
};

void run(int ranks, const std::function<void(rank_job&)>& body) {
  run_processes(ranks, [&](const sucl_bootstrap& control, int rank) {
    auto p = process::start(settings(), &control);
    {
      const auto device = std::make_shared<streams>();
      core::device_services services;
      services.owner = device;
      services.self.platform = "cuda";
      services.native_device = &rank;
      services.streams = {device.get(), [](void* s) { return static_cast<streams*>(s)->pending; },
                          [](void* s) { ++static_cast<streams*>(s)->drained; }};
      services.allocate = [](void*, std::size_t bytes) { return std::malloc(bytes); };
      services.free = [](void*, void* memory) { std::free(memory); };
      auto world = p->world(services);
      rank_job job{*world, *device};
      try {
        body(job);
      } catch (const error& e) {
        ADD_FAILURE() << e.what();
      }
    }
    p->shut_down();
  });
}

sucl_operation sum_of(const int* from, int* to, sucl_kind kind = SUCL_KIND_ALLREDUCE) {
  sucl_operation o{};
  o.struct_size = sizeof o;
  o.kind = kind;
  o.type = SUCL_TYPE_INT32;
  o.op = SUCL_OP_SUM;
  o.element_size = sizeof(int);
  o.send = from;
  o.recv = to;
  o.count = 1;
  o.send_memory = o.recv_memory = SUCL_MEMORY_DEVICE;
  return o;
}

TEST(streams, operations_are_posted_when_their_command_is_enqueued) {
  run(2, [](rank_job& j) {
    int mine = j.comm.rank() + 1, stream = 0;
    int results[3] = {};
    std::vector<ticket> issued;
    for (int& result : results) {
      auto t = j.comm.issue_on_stream(sum_of(&mine, &result), {});
      ASSERT_TRUE(t.has_value());
      EXPECT_FALSE(t->done());
      issued.push_back(*t);
    }
    for (const ticket& t : issued) {
      j.comm.post_on_stream(t, &stream);
      EXPECT_TRUE(t.done());
      EXPECT_FALSE(t.failure());
    }
    j.comm.wait_all();
    EXPECT_EQ(j.device.drained, 1);
    for (const int result : results) EXPECT_EQ(result, 3);
  });
}

TEST(streams, take_addresses_that_were_not_known_at_the_call) {
  run(2, [](rank_job& j) {
    int mine = j.comm.rank() + 1, result = 0, stream = 0;
    auto t = j.comm.issue_on_stream(sum_of(nullptr, nullptr), {});
    ASSERT_TRUE(t.has_value());
    t->get()->record.send = &mine;
    t->get()->record.recv = &result;
    j.comm.post_on_stream(*t, &stream);
    EXPECT_EQ(result, 3);
  });
}

TEST(streams, are_not_for_what_the_host_has_to_do) {
  run(2, [](rank_job& j) {
    int mine = 1, result = 0;
    // The library has no scan, and cannot reach system memory.
    EXPECT_FALSE(j.comm.issue_on_stream(sum_of(&mine, &result, SUCL_KIND_SCAN), {}));
    auto in_system_memory = sum_of(&mine, &result);
    in_system_memory.send_memory = SUCL_MEMORY_SYSTEM;
    EXPECT_FALSE(j.comm.issue_on_stream(in_system_memory, {}));
    core::layouts gaps;
    gaps.send = base::strided{{4, 4, 1}, {0, 0, 0}, {2, 2, 1}, sizeof(int)};
    EXPECT_FALSE(j.comm.issue_on_stream(sum_of(&mine, &result), gaps));
  });
}

// An operation that goes through the host and is not ready yet comes first on every rank, so what
// is issued behind it cannot be posted by whoever has the stream.
TEST(streams, nothing_overtakes_the_host) {
  run(2, [](rank_job& j) {
    int mine = j.comm.rank() + 1, stream = 0;
    int first = 0, second = 0, third = 0;
    auto host = sum_of(&mine, &first, SUCL_KIND_SCAN);
    host.send_memory = host.recv_memory = SUCL_MEMORY_HOST;
    auto waiting = j.comm.issue(host, {}, false, {});
    EXPECT_FALSE(j.comm.issue_on_stream(sum_of(&mine, &second), {}));
    auto behind = j.comm.issue(sum_of(&mine, &second), {}, true, {});
    EXPECT_FALSE(behind.done);
    j.comm.mark_ready(waiting.operation);
    j.comm.wait(behind.operation);
    j.comm.wait(waiting.operation);
    EXPECT_EQ(first, j.comm.rank() == 0 ? 1 : 3);
    EXPECT_EQ(second, 3);
    auto free_again = j.comm.issue_on_stream(sum_of(&mine, &third), {});
    ASSERT_TRUE(free_again.has_value());
    // And the other way round: the host waits until the stream has been served.
    auto after = j.comm.issue(sum_of(&mine, &first), {}, true, {});
    EXPECT_FALSE(after.done);
    j.comm.post_on_stream(*free_again, &stream);
    j.comm.wait(after.operation);
    EXPECT_EQ(third, 3);
    EXPECT_EQ(first, 3);
  });
}

TEST(streams, failures_are_kept_for_the_next_call) {
  run(1, [](rank_job& j) {
    int mine = 1, result = 0, stream = 0;
    auto t = j.comm.issue_on_stream(sum_of(&mine, &result), {});
    ASSERT_TRUE(t.has_value());
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce", 1);
    j.comm.post_on_stream(*t, &stream);
    unsetenv("FAKE_NCCL_FAIL");
    EXPECT_TRUE(t->done());
    ASSERT_TRUE(t->failure());
    EXPECT_EQ(t->failure()->backend, "nccl");
    try {
      j.comm.check();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::native);
    }
    j.comm.check();
  });
}

TEST(streams, the_watchdog_sees_them_and_can_end_them) {
  run(1, [](rank_job& j) {
    int mine = 1, result = 0, stream = 0;
    auto posted = j.comm.issue_on_stream(sum_of(&mine, &result), {});
    j.comm.post_on_stream(*posted, &stream);
    EXPECT_FALSE(j.comm.snapshot().busy);
    j.device.pending = core::clock::now();
    EXPECT_TRUE(j.comm.snapshot().busy);
    EXPECT_EQ(j.comm.snapshot().oldest.kind, SUCL_KIND_ALLREDUCE);
    auto late = j.comm.issue_on_stream(sum_of(&mine, &result), {});
    error_info info;
    info.code = errc::timeout;
    info.message = "given up";
    j.comm.fail_all(info);
    EXPECT_TRUE(late->done());
    j.comm.post_on_stream(*late, &stream);  // its command comes all the same
    EXPECT_THROW(j.comm.check(), error);
    EXPECT_EQ(j.device.drained, 0);
  });
}

}  // namespace
}  // namespace sucl::testing
