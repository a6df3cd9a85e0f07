// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the tensors of one call have to be. Programs and tests know torch's own backends by the
/// words that say what is wrong, so these are here too.
#pragma once

#include "tensors.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sucl::torch {

inline std::string at_index(std::size_t i) { return " at index " + std::to_string(i); }

/// Throws unless tensors have the layout, type and shape of the first.
inline void check_like(const at::Tensor& first, const tensors& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const at::Tensor& t = list[i];
    if (t.layout() != first.layout())
      throw failure(SUCL_ERROR_INVALID_MEMORY,
                    "invalid tensor layout" + at_index(i) + ": " + c10::str(t.layout()) +
                        " after " + c10::str(first.layout()),
                    "Pass tensors of one layout");
    if (t.scalar_type() != first.scalar_type())
      throw failure(SUCL_ERROR_INVALID_TYPE,
                    "invalid tensor type" + at_index(i) + ": " + c10::toString(t.scalar_type()) +
                        ", not " + c10::toString(first.scalar_type()) +
                        " (tensors have different types)",
                    "Pass tensors of one type");
    if (t.sizes() != first.sizes())
      throw failure(SUCL_ERROR_INVALID_COUNT,
                    "invalid tensor size" + at_index(i) + ": " + c10::str(t.sizes()) + ", not " +
                        c10::str(first.sizes()),
                    "Pass tensors of one size");
  }
}

/// Throws where there is none.
inline void check_any(const tensors& list, const char* call) {
  if (list.empty())
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  std::string(call) + " requires non-empty tensor list", "Pass a tensor");
}

/// Throws unless a list, `what`, has one entry.
template <class List>
void check_one(const List& list, const char* call, const char* what) {
  if (list.size() != 1)
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  std::string(call) + " requires a single-element " + what + ", and got " +
                      std::to_string(list.size()) + " elements",
                  "Pass one");
}

/// Throws unless a tensor of the call is the root's.
inline void check_root_tensor(std::int64_t root, const tensors& list) {
  if (root < 0 || root >= static_cast<std::int64_t>(list.size()))
    throw failure(
        SUCL_ERROR_INVALID_ARGUMENT,
        "invalid root tensor: " + std::to_string(root) + " of " + std::to_string(list.size()),
        "Pass the index of a tensor of the call");
}

/// Throws unless a root has one list, with a tensor for each rank, and no other rank has one.
/// `which`: input or output.
inline void check_at_root(const std::vector<tensors>& all, bool is_root, int ranks,
                          const char* call, const std::string& which) {
  if (!is_root) {
    if (!all.empty())
      throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                    std::string(call) + " requires empty " + which + " on non-root",
                    "Pass tensors for all ranks at the root alone");
    return;
  }
  check_one(all, call, (which + " list").c_str());
  if (all[0].size() != static_cast<std::size_t>(ranks)) {
    const std::string number = std::to_string(all[0].size()), wanted = std::to_string(ranks);
    const std::string title = which == "input" ? "Input" : "Output";
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  "Incorrect " + which + " list size " + number + ". " + title +
                      " list size should be " + wanted + ", the number of ranks",
                  "Pass one tensor for each rank");
  }
}

/// Throws unless this rank's block is as large as its part of all ranks' blocks.
inline void check_own_block(const at::Tensor& own, const tensors& of_all, int rank) {
  const auto room = of_all[static_cast<std::size_t>(rank)].numel();
  if (room != own.numel())
    throw failure(SUCL_ERROR_INVALID_COUNT,
                  "invalid tensor size" + at_index(static_cast<std::size_t>(rank)) +
                      ": this rank has " + std::to_string(own.numel()) +
                      " elements, and there is room for " + std::to_string(room) + " of its own",
                  "Pass tensors of the size of each rank's block");
}

/// Throws unless all_gather can put what `in` has into `out`: each list has all ranks' tensors.
inline void check_gather(const std::vector<tensors>& out, const tensors& in, int ranks) {
  if (in.empty())
    throw failure(SUCL_ERROR_INVALID_ARGUMENT, "all_gather requires non-empty input tensor list",
                  "Pass a tensor");
  if (in.size() != out.size())
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  "all_gather requires input/output tensor lists to have the same length: there "
                  "are " +
                      std::to_string(in.size()) + " and " + std::to_string(out.size()),
                  "Pass a list of output tensors for each input");
  const std::size_t wanted = in.size() * static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].size() != wanted)
      throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                    "invalid output tensor list" + at_index(i) + ": it has " +
                        std::to_string(out[i].size()) + " tensors, and should have " +
                        std::to_string(wanted),
                    "Pass one tensor for each input of each rank");
  check_like(in[0], in);
  for (const tensors& list : out) check_types(in[0], list);
}

/// Throws unless outputs are those of one rank's inputs.
inline void check_outputs(const tensors& out, const tensors& in) {
  if (out.size() != in.size())
    throw failure(SUCL_ERROR_INVALID_ARGUMENT,
                  "invalid output size: a list has " + std::to_string(out.size()) +
                      " tensors for " + std::to_string(in.size()) + " inputs",
                  "Pass one output for each input");
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (out[i].sizes() != in[i].sizes())
      throw failure(SUCL_ERROR_INVALID_COUNT,
                    "invalid size of output tensor" + at_index(i) + ": " +
                        c10::str(out[i].sizes()) + ", not " + c10::str(in[i].sizes()),
                    "Pass outputs of the inputs' sizes");
    check_like(in[i], {out[i]});
  }
}

/// Throws unless tensors are dense and of one type, as those that are coalesced.
inline void check_coalesced(const tensors& list) {
  check_any(list, "all_reduce_coalesced");
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].layout() != list[0].layout())
      throw failure(SUCL_ERROR_INVALID_MEMORY,
                    "invalid tensor layout" + at_index(i) + ": " + c10::str(list[i].layout()),
                    "Pass tensors of one layout");
  if (list[0].layout() != at::kStrided)
    throw failure(SUCL_ERROR_INVALID_MEMORY,
                  "unsupported layout: coalesced tensors are " + c10::str(list[0].layout()),
                  "Pass dense tensors: tensor.to_dense()");
  for (const at::Tensor& t : list)
    if (t.scalar_type() != list[0].scalar_type())
      throw failure(SUCL_ERROR_INVALID_TYPE,
                    std::string("tensors must all have the same type: there are ") +
                        c10::toString(list[0].scalar_type()) + " and " +
                        c10::toString(t.scalar_type()),
                    "Call it for those of each type");
}

}  // namespace sucl::torch
