// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The calls of wrong.cpp, which alone includes this: a row for each wrong argument.
#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

// Open MPI looks at fewer arguments, and reads memory through null.
#if defined(OPEN_MPI)
constexpr bool checks_buffers = false;
#else
constexpr bool checks_buffers = true;
#endif

int g_rank = 0, g_size = 1, g_failures = 0, g_handled = 0;
bool g_usual = true;  // by MPI's usual names, else by those of the library
int g_in[256], g_out[256];
MPI_Datatype g_uncommitted = MPI_DATATYPE_NULL;
const MPI_Datatype no_type = MPI_DATATYPE_NULL;

enum class form { blocking, started, persistent };
const char* const form_names[] = {"", "I", "_init of "};

// A call by whichever name; a request that it makes is completed.
#define SUCL_CALL(name, ...) (g_usual ? MPI_##name(__VA_ARGS__) : PMPI_##name(__VA_ARGS__))

int finish(int code, MPI_Request* r, bool persistent) {
  if (code != MPI_SUCCESS) return code;
  if (persistent) code = SUCL_CALL(Start, r);
  if (code == MPI_SUCCESS) code = SUCL_CALL(Wait, r, MPI_STATUS_IGNORE);
  if (persistent) SUCL_CALL(Request_free, r);
  return code;
}

struct row {
  std::string what;
  std::function<int(form, bool large, MPI_Comm)> call;
};

// Of one width: `suffix` is nothing, or _c.
#define SUCL_IN_WIDTH(name, small, suffix, ...)                                \
  MPI_Request r = MPI_REQUEST_NULL;                                            \
  if (f == form::blocking) return SUCL_CALL(name##suffix, __VA_ARGS__, c);     \
  if (f == form::started)                                                      \
    return finish(SUCL_CALL(I##small##suffix, __VA_ARGS__, c, &r), &r, false); \
  return finish(SUCL_CALL(name##_init##suffix, __VA_ARGS__, c, MPI_INFO_NULL, &r), &r, true);
#if MPI_VERSION >= 4
#define SUCL_ROW(what, name, small, ...)                 \
  {#name ": " what, [](form f, bool large, MPI_Comm c) { \
     if (large) {                                        \
       SUCL_IN_WIDTH(name, small, _c, __VA_ARGS__)       \
     } else {                                            \
       SUCL_IN_WIDTH(name, small, , __VA_ARGS__)         \
     }                                                   \
   }}
constexpr int widths = 2;
#else
#define SUCL_ROW(what, name, small, ...)                                                        \
  {                                                                                             \
    #name ": " what, [](form f, bool, MPI_Comm c) { SUCL_IN_WIDTH(name, small, , __VA_ARGS__) } \
  }
constexpr int widths = 1;
#endif

// The numbers begin, begin + step, ... as an array of whichever type is asked for.
struct numbers {
  int begin, step;
  template <class Number>
  operator const Number*() const {
    static std::map<std::pair<int, int>, std::vector<Number>> kept;  // some are used after the call
    std::vector<Number>& all = kept[{begin, step}];
    for (int i = int(all.size()); i < 64; ++i) all.push_back(Number(begin + i * step));
    return all.data();
  }
};
numbers right_counts() { return {2, 0}; }
numbers negative_counts() { return {-1, 0}; }
numbers no_counts() { return {0, 0}; }
numbers steps() { return {0, 2}; }
const MPI_Datatype* all_of(MPI_Datatype type) {
  static std::map<MPI_Datatype, std::vector<MPI_Datatype>> kept;
  return kept.try_emplace(type, 64, type).first->second.data();
}

std::vector<row> reductions() {
  std::vector<row> rows{
      SUCL_ROW("count", Allreduce, allreduce, g_in, g_out, -1, MPI_INT, MPI_SUM),
      SUCL_ROW("type", Allreduce, allreduce, g_in, g_out, 2, no_type, MPI_SUM),
      SUCL_ROW("op", Allreduce, allreduce, g_in, g_out, 2, MPI_INT, MPI_OP_NULL),
      SUCL_ROW("into in place", Allreduce, allreduce, g_in, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM),
      SUCL_ROW("uncommitted", Allreduce, allreduce, g_in, g_out, 2, g_uncommitted, MPI_SUM),
      SUCL_ROW("sum of bytes", Allreduce, allreduce, g_in, g_out, 8, MPI_BYTE, MPI_SUM),
      SUCL_ROW("bits of doubles", Allreduce, allreduce, g_in, g_out, 2, MPI_DOUBLE, MPI_BAND),
      SUCL_ROW("logic of doubles", Allreduce, allreduce, g_in, g_out, 2, MPI_DOUBLE, MPI_LAND),
      SUCL_ROW("minloc of ints", Allreduce, allreduce, g_in, g_out, 2, MPI_INT, MPI_MINLOC),
      SUCL_ROW("most of complex", Allreduce, allreduce, g_in, g_out, 2, MPI_C_DOUBLE_COMPLEX,
               MPI_MAX),
      SUCL_ROW("sum of pairs", Allreduce, allreduce, g_in, g_out, 2, MPI_2INT, MPI_SUM),
      SUCL_ROW("count", Reduce, reduce, g_in, g_out, -1, MPI_INT, MPI_SUM, 0),
      SUCL_ROW("negative root", Reduce, reduce, g_in, g_out, 2, MPI_INT, MPI_SUM, -5),
      SUCL_ROW("large root", Reduce, reduce, g_in, g_out, 2, MPI_INT, MPI_SUM, g_size),
      SUCL_ROW("type", Reduce, reduce, g_in, g_out, 2, no_type, MPI_SUM, 0),
      SUCL_ROW("op", Reduce, reduce, g_in, g_out, 2, MPI_INT, MPI_OP_NULL, 0),
      SUCL_ROW("count", Reduce_scatter_block, reduce_scatter_block, g_in, g_out, -1, MPI_INT,
               MPI_SUM),
      SUCL_ROW("type", Reduce_scatter_block, reduce_scatter_block, g_in, g_out, 2, no_type,
               MPI_SUM),
      SUCL_ROW("op", Reduce_scatter_block, reduce_scatter_block, g_in, g_out, 2, MPI_INT,
               MPI_OP_NULL),
      SUCL_ROW("counts", Reduce_scatter, reduce_scatter, g_in, g_out, negative_counts(), MPI_INT,
               MPI_SUM),
      SUCL_ROW("type", Reduce_scatter, reduce_scatter, g_in, g_out, right_counts(), no_type,
               MPI_SUM),
      SUCL_ROW("op", Reduce_scatter, reduce_scatter, g_in, g_out, right_counts(), MPI_INT,
               MPI_OP_NULL),
      SUCL_ROW("count", Scan, scan, g_in, g_out, -1, MPI_INT, MPI_SUM),
      SUCL_ROW("type", Scan, scan, g_in, g_out, 2, no_type, MPI_SUM),
      SUCL_ROW("op", Scan, scan, g_in, g_out, 2, MPI_INT, MPI_OP_NULL),
      SUCL_ROW("count", Exscan, exscan, g_in, g_out, -1, MPI_INT, MPI_SUM),
      SUCL_ROW("type", Exscan, exscan, g_in, g_out, 2, no_type, MPI_SUM),
      SUCL_ROW("op", Exscan, exscan, g_in, g_out, 2, MPI_INT, MPI_OP_NULL)};
  if (!checks_buffers) return rows;
  const std::vector<row> more{
      SUCL_ROW("alias", Allreduce, allreduce, g_in, g_in, 2, MPI_INT, MPI_SUM),
      SUCL_ROW("from null", Allreduce, allreduce, nullptr, g_out, 2, MPI_INT, MPI_SUM),
      SUCL_ROW("into null", Allreduce, allreduce, g_in, nullptr, 2, MPI_INT, MPI_SUM),
      SUCL_ROW("from null", Reduce, reduce, nullptr, g_out, 2, MPI_INT, MPI_SUM, 0),
      SUCL_ROW("alias", Reduce_scatter_block, reduce_scatter_block, g_in, g_in, 2, MPI_INT,
               MPI_SUM),
      SUCL_ROW("alias", Reduce_scatter, reduce_scatter, g_in, g_in, right_counts(), MPI_INT,
               MPI_SUM),
      SUCL_ROW("alias", Scan, scan, g_in, g_in, 2, MPI_INT, MPI_SUM),
      SUCL_ROW("alias", Exscan, exscan, g_in, g_in, 2, MPI_INT, MPI_SUM)};
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::vector<row> moves_of_equal_blocks() {
  return {
      SUCL_ROW("count", Bcast, bcast, g_out, -1, MPI_INT, 0),
      SUCL_ROW("type", Bcast, bcast, g_out, 2, no_type, 0),
      SUCL_ROW("uncommitted", Bcast, bcast, g_out, 2, g_uncommitted, 0),
      SUCL_ROW("negative root", Bcast, bcast, g_out, 2, MPI_INT, -5),
      SUCL_ROW("large root", Bcast, bcast, g_out, 2, MPI_INT, g_size),
      SUCL_ROW("count", Allgather, allgather, g_in, -1, MPI_INT, g_out, 2, MPI_INT),
      SUCL_ROW("other count", Allgather, allgather, g_in, 2, MPI_INT, g_out, -1, MPI_INT),
      SUCL_ROW("type", Allgather, allgather, g_in, 2, no_type, g_out, 2, MPI_INT),
      SUCL_ROW("other type", Allgather, allgather, g_in, 2, MPI_INT, g_out, 2, no_type),
      SUCL_ROW("uncommitted", Allgather, allgather, g_in, 2, g_uncommitted, g_out, 2, MPI_INT),
      SUCL_ROW("into in place", Allgather, allgather, g_in, 2, MPI_INT, MPI_IN_PLACE, 2, MPI_INT),
      SUCL_ROW("count", Alltoall, alltoall, g_in, -1, MPI_INT, g_out, 2, MPI_INT),
      SUCL_ROW("other count", Alltoall, alltoall, g_in, 2, MPI_INT, g_out, -1, MPI_INT),
      SUCL_ROW("type", Alltoall, alltoall, g_in, 2, no_type, g_out, 2, MPI_INT),
      SUCL_ROW("other type", Alltoall, alltoall, g_in, 2, MPI_INT, g_out, 2, no_type),
      SUCL_ROW("into in place", Alltoall, alltoall, g_in, 2, MPI_INT, MPI_IN_PLACE, 2, MPI_INT),
      SUCL_ROW("negative root", Gather, gather, g_in, 2, MPI_INT, g_out, 2, MPI_INT, -5),
      SUCL_ROW("large root", Gather, gather, g_in, 2, MPI_INT, g_out, 2, MPI_INT, g_size),
      SUCL_ROW("count", Gather, gather, g_in, -1, MPI_INT, g_out, 2, MPI_INT, 0),
      SUCL_ROW("type", Gather, gather, g_in, 2, no_type, g_out, 2, MPI_INT, 0),
      SUCL_ROW("negative root", Scatter, scatter, g_in, 2, MPI_INT, g_out, 2, MPI_INT, -5),
      SUCL_ROW("large root", Scatter, scatter, g_in, 2, MPI_INT, g_out, 2, MPI_INT, g_size),
      SUCL_ROW("count", Scatter, scatter, g_in, 2, MPI_INT, g_out, -1, MPI_INT, 0),
      SUCL_ROW("type", Scatter, scatter, g_in, 2, MPI_INT, g_out, 2, no_type, 0)};
}

std::vector<row> moves_of_unequal_blocks() {
  return {SUCL_ROW("counts", Allgatherv, allgatherv, g_in, 2, MPI_INT, g_out, negative_counts(),
                   steps(), MPI_INT),
          SUCL_ROW("count", Allgatherv, allgatherv, g_in, -1, MPI_INT, g_out, right_counts(),
                   steps(), MPI_INT),
          SUCL_ROW("type", Allgatherv, allgatherv, g_in, 2, MPI_INT, g_out, right_counts(), steps(),
                   no_type),
          SUCL_ROW("other type", Allgatherv, allgatherv, g_in, 2, no_type, g_out, right_counts(),
                   steps(), MPI_INT),
          SUCL_ROW("counts", Alltoallv, alltoallv, g_in, negative_counts(), steps(), MPI_INT, g_out,
                   right_counts(), steps(), MPI_INT),
          SUCL_ROW("other counts", Alltoallv, alltoallv, g_in, right_counts(), steps(), MPI_INT,
                   g_out, negative_counts(), steps(), MPI_INT),
          SUCL_ROW("type", Alltoallv, alltoallv, g_in, right_counts(), steps(), no_type, g_out,
                   right_counts(), steps(), MPI_INT),
          SUCL_ROW("other type", Alltoallv, alltoallv, g_in, right_counts(), steps(), MPI_INT,
                   g_out, right_counts(), steps(), no_type),
          SUCL_ROW("type of nothing", Alltoallv, alltoallv, g_in, no_counts(), steps(), no_type,
                   g_out, no_counts(), steps(), no_type),
          SUCL_ROW("types", Alltoallw, alltoallw, g_in, right_counts(), steps(), all_of(no_type),
                   g_out, right_counts(), steps(), all_of(MPI_INT)),
          SUCL_ROW("other types", Alltoallw, alltoallw, g_in, right_counts(), steps(),
                   all_of(MPI_INT), g_out, right_counts(), steps(), all_of(no_type)),
          SUCL_ROW("counts", Alltoallw, alltoallw, g_in, negative_counts(), steps(),
                   all_of(MPI_INT), g_out, right_counts(), steps(), all_of(MPI_INT)),
          SUCL_ROW("types of nothing", Alltoallw, alltoallw, g_in, no_counts(), steps(),
                   all_of(no_type), g_out, no_counts(), steps(), all_of(no_type)),
          SUCL_ROW("negative root", Gatherv, gatherv, g_in, 2, MPI_INT, g_out, right_counts(),
                   steps(), MPI_INT, -5),
          SUCL_ROW("large root", Gatherv, gatherv, g_in, 2, MPI_INT, g_out, right_counts(), steps(),
                   MPI_INT, g_size),
          SUCL_ROW("count", Gatherv, gatherv, g_in, -1, MPI_INT, g_out, right_counts(), steps(),
                   MPI_INT, 0),
          SUCL_ROW("type", Gatherv, gatherv, g_in, 2, no_type, g_out, right_counts(), steps(),
                   MPI_INT, 0),
          SUCL_ROW("negative root", Scatterv, scatterv, g_in, right_counts(), steps(), MPI_INT,
                   g_out, 2, MPI_INT, -5),
          SUCL_ROW("count", Scatterv, scatterv, g_in, right_counts(), steps(), MPI_INT, g_out, -1,
                   MPI_INT, 0),
          SUCL_ROW("type", Scatterv, scatterv, g_in, right_counts(), steps(), MPI_INT, g_out, 2,
                   no_type, 0)};
}

std::vector<row> moves() {
  std::vector<row> rows = moves_of_equal_blocks();
  const std::vector<row> unequal = moves_of_unequal_blocks();
  rows.insert(rows.end(), unequal.begin(), unequal.end());
  if (!checks_buffers) return rows;
  const std::vector<row> more{
      SUCL_ROW("null", Bcast, bcast, nullptr, 2, MPI_INT, 0),
      SUCL_ROW("from null", Allgather, allgather, nullptr, 2, MPI_INT, g_out, 2, MPI_INT),
      SUCL_ROW("into null", Allgather, allgather, g_in, 2, MPI_INT, nullptr, 2, MPI_INT),
      SUCL_ROW("alias", Allgather, allgather, g_out + 2 * g_rank, 2, MPI_INT, g_out, 2, MPI_INT),
      SUCL_ROW("alias", Allgatherv, allgatherv, g_out + 2 * g_rank, 2, MPI_INT, g_out,
               right_counts(), steps(), MPI_INT),
      SUCL_ROW("alias", Alltoall, alltoall, g_in, 2, MPI_INT, g_in, 2, MPI_INT),
      SUCL_ROW("from null", Alltoall, alltoall, nullptr, 2, MPI_INT, g_out, 2, MPI_INT),
      SUCL_ROW("into null", Alltoall, alltoall, g_in, 2, MPI_INT, nullptr, 2, MPI_INT)};
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace
