// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Selection tables: which backend executes a message and by which plan, as `sucl tune` measures it
/// and `sucl plan search` predicts it. docs/reference/tuning-table.md describes the format.
#pragma once

#include "base/text.hpp"
#include "plan/algorithms/algorithms.hpp"

#include <sucl/export.hpp>
#include <sucl/types.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::tune {

/// The form of the calls that a row is for.
enum class call_form { any, blocking, event };

/// The memory that a row is for: what the host reads, what the communicator has allocated, or
/// memory that only devices read.
enum class memory_kind { system, symmetric, device };

/// Which backend executes messages of some sizes, and how.
struct table_row {
  sucl::kind what = sucl::kind::allreduce;
  call_form form = call_form::any;
  memory_kind memory = memory_kind::system;
  base::range ranks, nodes, bytes;
  std::string backend;
  plan::recipe how;         ///< of backend "plan"; without an algorithm SuCL chooses
  std::uint64_t slice = 0;  ///< bytes that one run of the plan takes; 0: SuCL chooses
  std::string
      protocol;  ///< of backend "kernels": one of kernels::protocol_names; empty: SuCL chooses
  double seconds = 0;  ///< for a message of `at` bytes; 0: not known
  std::uint64_t at = 0;
  bool verified = false;  ///< the plan was proved right at this size
  std::string origin;     ///< as in "file tuned.toml:12:1"

  /// But for the origin.
  friend bool operator==(const table_row& a, const table_row& b) {
    return a.what == b.what && a.form == b.form && a.memory == b.memory && a.ranks == b.ranks &&
           a.nodes == b.nodes && a.bytes == b.bytes && a.backend == b.backend && a.how == b.how &&
           a.slice == b.slice && a.protocol == b.protocol && a.seconds == b.seconds &&
           a.at == b.at && a.verified == b.verified;
  }
};

/// What times depend on.
struct table_machine {
  std::string name;       ///< host, or the description that was simulated
  std::string processor;  ///< as the system calls it; empty: simulated
  int cores = 0;
  std::string mpi;          ///< the MPI library, without its version; empty: none was measured
  std::string device = {};  ///< whose memory was measured; empty: the host's

  friend bool operator==(const table_machine&, const table_machine&) = default;
};

/// Of the rows that fit a message the first one counts.
struct table {
  std::string author = "sucl tune";  ///< who wrote it
  bool measured = true;              ///< false: times are predicted
  table_machine machine;
  std::vector<table_row> rows;
  std::string file;  ///< where it came from; empty: nowhere
};

/// Reads a table. `origin` stands before line and column in errors. Throws errc::configuration with
/// file, line, column and the nearest known word: for what is no TOML, for unknown keys and names,
/// another version of the format, and recipes and rows that cannot be.
SUCL_CORE_API table table_from_toml(std::string_view text, const std::string& origin);

/// The same from a file; the error for a file that cannot be read says that `named_by` names it.
SUCL_CORE_API table load_table(const std::string& file, const std::string& named_by);

/// Writes what table_from_toml() reads to the same rows.
SUCL_CORE_API std::string to_toml(const table& t);

/// A number that differs where rows do: ranks compare it.
SUCL_CORE_API std::uint64_t hash(const table& t);

/// The processor and cores that this process has, without a name and an MPI library.
SUCL_CORE_API table_machine this_machine();

/// Why the times of a table may not hold on `here`, for a warning; empty if they should. Simulated
/// tables are about no real machine.
SUCL_CORE_API std::string foreign(const table& t, const table_machine& here);

/// The row for a message, or null. `form` must not be any.
SUCL_CORE_API const table_row* find(const table& t, sucl::kind what, call_form form,
                                    memory_kind memory, int ranks, int nodes, std::uint64_t bytes);

/// Turns the best of some sizes, each in a row whose range is that size alone, into rows for all
/// sizes: each holds up to the next one, the first from 0 and the last without end. Neighbours stay
/// apart, as each has its own time. The rows must be of one kind, form, memory, ranks and nodes.
SUCL_CORE_API std::vector<table_row> cover_all_sizes(std::vector<table_row> rows);

/// The memory that a recipe needs: symmetric where ranks touch their peers' inputs and outputs.
SUCL_CORE_API memory_kind memory_of(const plan::recipe& r);

SUCL_CORE_API const char* name(call_form form);
SUCL_CORE_API const char* name(memory_kind memory);

}  // namespace sucl::tune
