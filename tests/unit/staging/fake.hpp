// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A backend that plays every rank in one process, and a device whose memory the host misreads.
#pragma once

#include "bench/reference/delivery.hpp"
#include "core/staging/staged_operation.hpp"

#include <sucl/types.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace sucl::test {

using bytes = std::vector<unsigned char>;

inline bool in_place(const sucl_operation& op) { return (op.flags & SUCL_FLAG_IN_PLACE) != 0; }

/// What each rank gets, its pieces one after the other, from what each contributes, its blocks one
/// after the other. `ops` is one operation a rank.
std::vector<bytes> solve(const std::vector<sucl_operation>& ops, const std::vector<bytes>& in);

struct fake_world;

struct fake_rules {
  std::uint32_t memories = 1u << SUCL_MEMORY_SYSTEM;
  std::uint64_t max_count = 0;
  int max_delay = 3;
  /// Kind, type and op; all if empty.
  std::function<bool(sucl_kind, sucl_type, sucl_op)> supports;
};

/// Memory of one rank. Device memory is stored scrambled: a reader or writer of it other than
/// through the copier gets it wrong.
struct fake_memory {
  bytes storage;
  bool device = false;
};

constexpr unsigned char scrambler = 0x5a;

/// Copies that are done only when they are tested often enough.
class fake_copier {
 public:
  explicit fake_copier(unsigned seed) : m_random(seed) {}
  void add(const fake_memory& memory) {
    if (memory.device) m_devices.push_back(&memory);
  }
  core::device_copier table();
  int started = 0;
  int pending = 0;

 private:
  struct token {
    unsigned char* to;
    const unsigned char* from;
    std::size_t size;
    int delay;
  };
  bool on_device(const void* at) const;
  void finish(const token& t) const;

  std::mt19937 m_random;
  std::vector<const fake_memory*> m_devices;
};

}  // namespace sucl::test

struct sucl_backend_comm {
  sucl::test::fake_world* world;
  int rank;
  std::size_t collectives = 0;
};

struct sucl_request {
  sucl_operation op{};
  bool matched = false;
  int delay = 0;
  std::vector<std::pair<unsigned char*, sucl::test::bytes>> results;  ///< written when it is done
  std::vector<std::unique_ptr<sucl_request>> parts;
};

namespace sucl::test {

/// All ranks of the fake backend. Collectives match by order, messages by order, peer and tag;
/// what does not match is kept in `error`.
struct fake_world {
  fake_world(int ranks, fake_rules given, unsigned seed);
  fake_world(const fake_world&) = delete;
  fake_world& operator=(const fake_world&) = delete;
  ~fake_world();

  core::backend_comm channel_of(int rank);
  sucl_capability answer(const sucl_query& question) const;
  core::transfer_formats formats();
  /// Empty if every operation that was posted was matched.
  std::string leftovers() const;

  int p;
  fake_rules rules;
  std::mt19937 random;
  std::string error;
  int posts = 0;
  int groups = 0;
  std::vector<sucl_backend_comm> comms;

  sucl_status post(sucl_backend_comm& comm, const sucl_operation& op, sucl_request** request);
  bool test(sucl_request& request);
  void end(sucl_request* request);

 private:
  using message_key = std::tuple<int, int, int>;  // from, to, tag
  void start(int rank, sucl_request& request);
  void check(int rank, const sucl_operation& op);
  void match_collective(int rank, sucl_request& request);
  void match_message(const message_key& key);
  void complete(std::vector<sucl_request*>& all);
  void ready(sucl_request& request);
  void complain(const std::string& what);

  std::set<sucl_request*> m_requests;
  std::deque<std::vector<sucl_request*>> m_collectives;
  std::map<message_key, std::pair<std::deque<sucl_request*>, std::deque<sucl_request*>>> m_messages;
};

/// The elements of some blocks of an array, one block after the other.
bytes gather(const void* array, const std::vector<reference::block>& blocks, std::uint64_t size);

}  // namespace sucl::test
