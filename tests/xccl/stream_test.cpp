// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators of the core whose operations are posted on streams, with threads as ranks. This
// test plays the SYCL runtime: it calls stream_path::post() when a command would be enqueued.
#include "core/failure/device_errors.hpp"
#include "process/process.hpp"

#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <barrier>
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
  std::optional<core::device_errors> errors;
  int drained = 0;
  std::optional<core::clock::time_point> pending;
  std::size_t unfinished = 1;
};

struct rank_job {
  communicator& comm;
  streams& device;
  std::function<core::device_services()> services;
};

// Plays the functions by which a device is asked for errors.
thread_local int last_error = 0;
std::atomic<int> stream_answer{0};

// A question that a test holds up.
enum class held_question { none, wanted, asked };
std::atomic<held_question> question{held_question::none};

void hold_question() {
  auto wanted = held_question::wanted;
  if (question.compare_exchange_strong(wanted, held_question::asked)) {
    question.notify_all();
    question.wait(held_question::asked);
  }
}

core::device_error_functions error_functions() {
  core::device_error_functions f;
  f.take_last = [] { return std::exchange(last_error, 0); };
  f.name = [](int) { return "the error's name"; };
  f.query_stream = [](void* stream) {
    hold_question();
    return stream == &stream_answer ? stream_answer.load() : 0;
  };
  f.push_context = [](void*) { return 0; };
  f.pop_context = [](void**) { return 0; };
  return f;
}

void run(int ranks, const std::function<void(rank_job&)>& body) {
  run_processes(ranks, [&](const sucl_bootstrap& control, int rank) {
    auto p = process::start(settings(), &control);
    {
      const auto device = std::make_shared<streams>();
      // The last rank's device is the one that can fail.
      const bool may_fail = rank == ranks - 1;
      device->errors.emplace(error_functions(), nullptr,
                             may_fail ? static_cast<void*>(&stream_answer) : &device->drained);
      const auto services = [&] {
        core::device_services given;
        given.owner = device;
        given.self.platform = "cuda";
        given.native_device = &rank;
        given.errors = &*device->errors;
        given.streams = {device.get(), [](void* s) { return static_cast<streams*>(s)->pending; },
                         [](void* s) { return static_cast<streams*>(s)->unfinished; },
                         [](void*) { return false; },
                         [](void* s) { ++static_cast<streams*>(s)->drained; }};
        given.allocate = [](void*, std::size_t bytes) { return std::malloc(bytes); };
        given.free = [](void*, void* memory) { std::free(memory); };
        return given;
      };
      auto world = p->world(services());
      rank_job job{*world, *device, services};
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
      auto t = j.comm.streams().issue(sum_of(&mine, &result), {});
      ASSERT_TRUE(t.has_value());
      EXPECT_FALSE(t->done());
      issued.push_back(*t);
    }
    for (const ticket& t : issued) {
      j.comm.streams().post(t, &stream);
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
    auto t = j.comm.streams().issue(sum_of(nullptr, nullptr), {});
    ASSERT_TRUE(t.has_value());
    t->get()->record.send = &mine;
    t->get()->record.recv = &result;
    j.comm.streams().post(*t, &stream);
    EXPECT_EQ(result, 3);
  });
}

TEST(streams, are_not_for_what_the_host_has_to_do) {
  run(2, [](rank_job& j) {
    int mine = 1, result = 0;
    // The library has no scan, and cannot reach system memory.
    EXPECT_FALSE(j.comm.streams().issue(sum_of(&mine, &result, SUCL_KIND_SCAN), {}));
    auto in_system_memory = sum_of(&mine, &result);
    in_system_memory.send_memory = SUCL_MEMORY_SYSTEM;
    EXPECT_FALSE(j.comm.streams().issue(in_system_memory, {}));
    core::layouts gaps;
    gaps.send = base::strided{{4, 4, 1}, {0, 0, 0}, {2, 2, 1}, sizeof(int)};
    EXPECT_FALSE(j.comm.streams().issue(sum_of(&mine, &result), gaps));
  });
}

// An operation that goes through the host and is not ready yet comes first on every rank, so what
// is issued behind it cannot be posted by the caller that has the stream.
TEST(streams, nothing_overtakes_the_host) {
  run(2, [](rank_job& j) {
    int mine = j.comm.rank() + 1, stream = 0;
    int first = 0, second = 0, third = 0;
    auto host = sum_of(&mine, &first, SUCL_KIND_SCAN);
    host.send_memory = host.recv_memory = SUCL_MEMORY_HOST;
    auto waiting = j.comm.issue(host, {}, false, {});
    EXPECT_FALSE(j.comm.streams().issue(sum_of(&mine, &second), {}));
    auto behind = j.comm.issue(sum_of(&mine, &second), {}, true, {});
    EXPECT_FALSE(behind.done);
    j.comm.mark_ready(waiting.operation);
    j.comm.wait(behind.operation);
    j.comm.wait(waiting.operation);
    EXPECT_EQ(first, j.comm.rank() == 0 ? 1 : 3);
    EXPECT_EQ(second, 3);
    auto free_again = j.comm.streams().issue(sum_of(&mine, &third), {});
    ASSERT_TRUE(free_again.has_value());
    // And the other way round: the host waits until the stream has been served.
    auto after = j.comm.issue(sum_of(&mine, &first), {}, true, {});
    EXPECT_FALSE(after.done);
    j.comm.streams().post(*free_again, &stream);
    j.comm.wait(after.operation);
    EXPECT_EQ(third, 3);
    EXPECT_EQ(first, 3);
  });
}

TEST(streams, failures_are_kept_for_the_next_call) {
  run(1, [](rank_job& j) {
    int mine = 1, result = 0, stream = 0;
    auto t = j.comm.streams().issue(sum_of(&mine, &result), {});
    ASSERT_TRUE(t.has_value());
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce", 1);
    j.comm.streams().post(*t, &stream);
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
    auto posted = j.comm.streams().issue(sum_of(&mine, &result), {});
    j.comm.streams().post(*posted, &stream);
    EXPECT_FALSE(j.comm.snapshot().busy);
    j.device.pending = core::clock::now();
    EXPECT_TRUE(j.comm.snapshot().busy);
    EXPECT_EQ(j.comm.snapshot().oldest.kind, SUCL_KIND_ALLREDUCE);
    // By its number others can tell whether they have come to the oldest that is unfinished.
    EXPECT_EQ(j.comm.snapshot().turn, 1U);
    auto second = j.comm.streams().issue(sum_of(&mine, &result), {});
    j.comm.streams().post(*second, &stream);
    EXPECT_EQ(j.comm.snapshot().turn, 2U);
    j.device.unfinished = 2;
    EXPECT_EQ(j.comm.snapshot().turn, 1U);
    auto late = j.comm.streams().issue(sum_of(&mine, &result), {});
    error_info info;
    info.code = errc::timeout;
    info.message = "given up";
    j.comm.fail_all(info);
    EXPECT_TRUE(late->done());
    j.comm.streams().post(*late, &stream);  // its command comes all the same
    EXPECT_THROW(j.comm.check(), error);
    EXPECT_EQ(j.device.drained, 0);
  });
}

// The next call says so, and the other ranks are told who it was.
TEST(device_errors, a_kernel_that_has_failed_ends_the_communicator_on_every_rank) {
  std::barrier all_is_well(3);
  run(3, [&](rank_job& j) {
    int mine = 1, result = 0, stream = 0;
    auto posted = j.comm.streams().issue(sum_of(&mine, &result), {});
    ASSERT_TRUE(posted.has_value());
    j.comm.streams().post(*posted, &stream);
    j.comm.check();
    all_is_well.arrive_and_wait();
    if (j.comm.rank() == 2) stream_answer = 700;
    const auto until = core::clock::now() + std::chrono::seconds(60);
    for (;;) {
      try {
        j.comm.check();
        ASSERT_LT(core::clock::now(), until);
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::native);
        EXPECT_NE(std::string(e.what()).find("a kernel of this process has failed"),
                  std::string::npos)
            << e.what();
        if (j.comm.rank() != 2) {
          EXPECT_NE(std::string(e.what()).find("on rank 2"), std::string::npos) << e.what();
        }
        break;
      }
    }
    EXPECT_THROW(j.comm.streams().issue(sum_of(&mine, &result), {}), error);
  });
  stream_answer = 0;
}

// A library fails as well then, and its error would not say why.
TEST(device_errors, come_before_what_a_library_says) {
  run(1, [](rank_job& j) {
    int mine = 1, result = 0, stream = 0;
    auto t = j.comm.streams().issue(sum_of(&mine, &result), {});
    ASSERT_TRUE(t.has_value());
    stream_answer = 700;
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce", 1);
    j.comm.streams().post(*t, &stream);
    unsetenv("FAKE_NCCL_FAIL");
    ASSERT_TRUE(t->failure());
    EXPECT_EQ(t->failure()->code, errc::native);
    EXPECT_EQ(t->failure()->native_code, 700);
    EXPECT_NE(t->failure()->message.find("a kernel of this process has failed"), std::string::npos)
        << t->failure()->message;
    EXPECT_THROW(j.comm.check(), error);
  });
  stream_answer = 0;
}

TEST(device_errors, of_launches) {
  const core::device_errors errors(error_functions(), nullptr, &stream_answer);
  EXPECT_FALSE(errors.launch());
  last_error = 2;
  const auto memory = errors.launch();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->code, errc::out_of_memory);
  EXPECT_FALSE(errors.launch());
  // Left behind by an allocation that the program has handled, or by a question that came early.
  for (const int handled : {1, 2, 600}) {
    last_error = handled;
    EXPECT_FALSE(errors.clear()) << handled;
    EXPECT_FALSE(errors.launch()) << handled;
  }
  last_error = 719;
  ASSERT_TRUE(errors.clear());
  for (const int answer : {0, 600, 1}) {
    stream_answer = answer;
    EXPECT_FALSE(errors.pending()) << answer;
  }
  stream_answer = 719;
  const auto fault = errors.pending();
  stream_answer = 0;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->code, errc::native);
  EXPECT_EQ(fault->native_code, 719);
}

// What the program lets go of meanwhile ends in its own thread, and the library has room for
// another.
TEST(device_errors, are_asked_for_one_communicator_after_the_other) {
  run(1, [](rank_job& j) {
    auto services = j.services();
    auto owner = std::make_shared<int>();
    const std::weak_ptr<int> kept = owner;
    services.owner = std::move(owner);
    auto another = j.comm.split(0, 0, std::move(services));
    question = held_question::wanted;
    question.wait(held_question::wanted);  // the progress thread asks, and keeps the first
    another.reset();
    EXPECT_TRUE(kept.expired());
    question = held_question::none;
    question.notify_all();
  });
}

// A rank that cannot take part says so where all meet, and what there was goes on.
TEST(device_errors, a_rank_without_memory_is_told_to_all) {
  run(2, [](rank_job& j) {
    for (int round = 0; round < 3; ++round) {
      auto services = j.services();
      if (j.comm.rank() == 1) {
        services.self.failure.emplace();
        services.self.failure->code = errc::out_of_memory;
        services.self.failure->message = "there is no memory";
      }
      try {
        j.comm.split(0, j.comm.rank(), services);
        ADD_FAILURE() << "no error";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::out_of_memory);
        EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos) << e.what();
      }
    }
    EXPECT_NE(j.comm.split(0, j.comm.rank(), j.services()), nullptr);
    int mine = j.comm.rank() + 1, result = 0, stream = 0;
    auto t = j.comm.streams().issue(sum_of(&mine, &result), {});
    j.comm.streams().post(*t, &stream);
    EXPECT_EQ(result, 3);
    j.comm.check();
  });
}

}  // namespace
}  // namespace sucl::testing
