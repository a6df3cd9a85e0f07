// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/algorithms.hpp"

#include <initializer_list>

namespace sucl::plan {
namespace {

using kinds = std::vector<kind>;
using table = std::vector<algorithm_info>;

kinds union_of(std::initializer_list<kinds> lists) {
  kinds all;
  for (const kinds& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

kinds allreduce_alone() { return {kind::allreduce}; }
kinds whole_vectors() { return {kind::allreduce, kind::reduce, kind::broadcast}; }
kinds halves_of_allreduce() {
  return {kind::allgather, kind::allgatherv, kind::reduce_scatter, kind::reduce_scatter_block};
}
kinds rooted_and_alltoall() {
  return {kind::gather,   kind::gatherv,  kind::scatter,
          kind::scatterv, kind::alltoall, kind::alltoallv};
}
kinds prefixes() { return {kind::scan, kind::exscan}; }
kinds all_but_prefixes() {
  return union_of({whole_vectors(), halves_of_allreduce(), rooted_and_alltoall()});
}
kinds every_kind() { return union_of({all_but_prefixes(), prefixes()}); }

table algorithms_of_vectors() {
  const kinds vectors = union_of({allreduce_alone(), halves_of_allreduce()});
  return {
      {"ring", "neighbours pass chunks on around a ring", vectors, {"pipeline", "stagger"}},
      {"exchange",
       "recursive exchange: halving and doubling with any radices",
       vectors,
       {"radices", "split", "ports", "pipeline", "stagger"}},
      {"doubling",
       "recursive doubling of whole vectors, any number of ranks",
       allreduce_alone(),
       {"radices", "ports", "pipeline", "stagger"}},
      {"cyclic",
       "cyclic shift (Bruck): few steps for any number of ranks",
       vectors,
       {"radices", "ports", "pipeline", "stagger"}},
  };
}

table algorithms_of_roots_and_blocks() {
  const kinds direct = union_of({allreduce_alone(), rooted_and_alltoall(), halves_of_allreduce()});
  const kinds trees{kind::allreduce, kind::reduce,  kind::broadcast, kind::gather,
                    kind::gatherv,   kind::scatter, kind::scatterv};
  return {
      {"direct", "every message at once, without detours", direct, {"ports", "pipeline"}},
      {"tree", "binomial or k-nomial tree", trees, {"radices", "pipeline", "stagger"}},
      {"bine",
       "binomial tree of negabinary distances, of which fewer cross between groups",
       whole_vectors(),
       {"pipeline", "stagger"}},
      {"chain",
       "a chain of ranks, pipelined in segments",
       {kind::broadcast, kind::reduce},
       {"segments", "pipeline"}},
      {"scatter_allgather",
       "the root scatters, the others gather",
       {kind::broadcast},
       {"inner", "ports", "pipeline"}},
      {"scatter_gather",
       "reduce-scatter, then gather to the root",
       {kind::reduce},
       {"inner", "ports", "pipeline"}},
      {"pairwise", "one partner a step", {kind::alltoall, kind::alltoallv}, {}},
      {"bruck",
       "few steps, blocks are forwarded by the digits of their distance",
       {kind::alltoall},
       {"radices"}},
  };
}

table algorithms_of_peer_memory() {
  return {
      {"one_shot",
       "every rank reads what it needs from its peers' memory",
       all_but_prefixes(),
       {"pipeline"}},
      {"two_shot",
       "reduce a chunk from peers' memory, then read the results",
       allreduce_alone(),
       {"pipeline"}},
      {"peer_exchange",
       "recursive exchange through peers' memory with flags in each phase",
       allreduce_alone(),
       {"radices", "pipeline"}},
  };
}

table algorithms_of_hierarchies() {
  return {
      {"hierarchical",
       "groups reduce, their leaders do so across, the groups gather",
       allreduce_alone(),
       {"hierarchy", "via", "inner", "outer", "leaders", "ports", "pipeline", "stagger"}},
      {"composed",
       "multicasts and reductions, factorised along the machine (HiCCL)",
       all_but_prefixes(),
       {"steps", "hierarchy", "via", "stripe", "ring", "pipeline", "fuse", "stagger"}},
  };
}

// Algorithms that the executor runs, on memory of the host.
table algorithms_of_shared_memory() {
  return {
      {"staged_one_shot",
       "every rank stages its input in its scratch and reads the others there",
       every_kind(),
       {}},
      {"staged_two_shot",
       "reduce a chunk from what peers have staged, then read their results",
       allreduce_alone(),
       {}},
      {"mapped_two_shot",
       "combine a chunk of all inputs in scratch, then read the others' results",
       allreduce_alone(),
       {}},
      {"mapped_one_shot",
       "every rank reads its peers' inputs once all are there",
       every_kind(),
       {}},
      {"read_two_shot",
       "copy a chunk of all inputs, combine it, then copy the others' results",
       allreduce_alone(),
       {}},
      {"read_one_shot",
       "every rank copies what it needs of its peers' inputs",
       all_but_prefixes(),
       {}},
      {"node_shot",
       "nodes put together what other nodes need, and send it in one step",
       every_kind(),
       {"nodes", "leaders"}},
      {"two_level",
       "nodes combine and spread through shared scratch, their leaders exchange messages",
       whole_vectors(),
       {"nodes", "leaders", "outer", "radices", "ports"}},
  };
}

table algorithms_of_digits_and_prefixes() {
  const kinds equal_blocks{kind::allgather, kind::reduce_scatter_block, kind::alltoall};
  return {
      {"digits",
       "every rank exchanges along each digit of its number, all alike",
       union_of({allreduce_alone(), equal_blocks}),
       {"hierarchy", "via", "split", "pipeline", "stagger"}},
      {"packed_digits",
       "the same, so that what crosses between nodes crosses once",
       {kind::allgather, kind::reduce_scatter_block},
       {"hierarchy", "via"}},
      {"recursive_scan", "recursive doubling of prefixes", prefixes(), {}},
  };
}

table make_table() {
  table all;
  for (const table& part : {algorithms_of_vectors(), algorithms_of_roots_and_blocks(),
                            algorithms_of_peer_memory(), algorithms_of_hierarchies(),
                            algorithms_of_shared_memory(), algorithms_of_digits_and_prefixes()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

const std::vector<algorithm_info>& algorithms() {
  static const table all = make_table();
  return all;
}

}  // namespace sucl::plan
