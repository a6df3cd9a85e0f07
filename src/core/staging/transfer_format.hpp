// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a backend is given instead of an operation's own type and op: the same on every rank.
#pragma once

#include "core/host_ops/fold.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/staging/convert.hpp"

#include <sucl/export.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace sucl::core {

/// How one backend executes operations of one kind, type and op. It follows from the backend's
/// answers alone, never from where a rank's memory is, so it is the same on every rank.
struct transfer_format {
  bool supported = false;  ///< whether it can be executed at all
  sucl_type type = SUCL_TYPE_BYTES;
  sucl_op op = SUCL_OP_NONE;
  std::uint64_t element_size = 0;
  const conversion* convert = nullptr;  ///< null: type and op are the operation's own, or bytes
  std::uint32_t memories = 0;           ///< bit m: the backend reads and writes memory kind m
  std::uint64_t max_count = 0;          ///< over all those memories; 0: no limit
  bool groups = false;                  ///< of messages: a group of them is executed too
  bool pairs = false;                   ///< of messages: sendrecv is executed too
  bool streams = false;                 ///< orders on a native stream
  /// The fold of a reduction that the backend may not execute as one, because it combines in an
  /// order of its own: contributions are moved to the ranks that need the result by an operation of
  /// this kind, and folded there in order of rank. Null: not so.
  fold_function fold = nullptr;
  sucl_kind moved = SUCL_KIND_ALLGATHER;

  bool reaches(sucl_memory memory) const noexcept { return (memories >> memory & 1u) != 0; }
};

/// Queries what a backend executes, and caches the answers. One thread at a time.
class transfer_formats {
 public:
  using query_function = std::function<sucl_capability(const sucl_query&)>;

  /// `name` is the backend's, for messages.
  SUCL_CORE_API transfer_formats(std::string name, query_function query);
  /// `platform` is that of this rank's device. `folds_above`: where the order of operands matters,
  /// the backend only moves them.
  SUCL_CORE_API transfer_formats(const backend_comm& below, std::string platform,
                                 bool folds_above = false);

  /// From now on the backend only moves operands whose order matters. Before the first question.
  void fold_above() noexcept { m_folds_above = true; }

  /// How operations of this kind, type and op are executed. Sends, receives and sendrecvs have one
  /// answer, because they match each other. The reference stays valid.
  SUCL_CORE_API const transfer_format& of(sucl_kind kind, sucl_type type, sucl_op op,
                                          std::uint64_t element_size);

  const std::string& name() const noexcept { return m_name; }

 private:
  struct entry {
    sucl_kind kind;
    sucl_type type;
    sucl_op op;
    std::uint64_t element_size;
    transfer_format found;
  };
  transfer_format find(sucl_kind kind, sucl_type type, sucl_op op,
                       std::uint64_t element_size) const;
  transfer_format find_moved(sucl_kind kind, sucl_type type, sucl_op op,
                             std::uint64_t element_size) const;
  transfer_format query(sucl_kind kind, sucl_type type, sucl_op op,
                        std::uint64_t element_size) const;
  transfer_format query_messages(sucl_type type, std::uint64_t element_size) const;

  std::string m_name;
  query_function m_query;
  bool m_folds_above = false;
  std::deque<entry> m_entries;
};

/// Whether this kind is a send, a receive, or both.
constexpr bool is_message(sucl_kind kind) noexcept {
  return kind == SUCL_KIND_SEND || kind == SUCL_KIND_RECV || kind == SUCL_KIND_SENDRECV;
}

}  // namespace sucl::core
