// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The types and the program's own ops that random collectives draw from.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

/// What a type is filled with, and so which ops are drawn for it: those of bytes are only moved.
enum class content { integer, floating, complex, pair, logical, affine, bytes };

struct element {
  const char* name;
  MPI_Datatype type;
  std::size_t extent;
  content holds;
  std::size_t value = 0;    ///< bytes of a number, of a pair's value
  std::size_t gap = 0;      ///< where there is padding in which a library may leave anything
  std::size_t gap_end = 0;  ///< and where that ends
  bool derived = false;     ///< made by the program
  int ints = 0;             ///< it is as many MPI_INT, which a rank may call it instead
};

/// Types of MPI and of the program: the latter are made once, with the first collective. Those that
/// ops take come first.
const std::vector<element>& all_elements();
/// How many of them ops take.
std::size_t reducible_elements();

/// Small floating numbers, so that every order of the ranks gives the same result. What integers
/// lose at their upper end does not depend on it: `wide` ones have all their bits.
void write_element(char* at, const element& e, bool wide, std::mt19937_64& random);

/// A sum of the program's own, for MPI_INT, and one that does not commute, for `affine`: of maps
/// x -> a x + b one after the other.
MPI_Op own_sum();
MPI_Op own_chain();
/// An op that is defined for the element.
MPI_Op op_for(const element& e, std::uint64_t drawn);
std::string name_of(MPI_Op op);

}  // namespace fuzz
