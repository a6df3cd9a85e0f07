// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans of timetables.
#pragma once

#include "plan/ir/builder.hpp"
#include "tune/graph/timetable.hpp"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace sucl::tune {

/// Writes the programs of all ranks. Each link by which a rank sends has a track, a channel of its
/// own in which the rank sends by that link in order and others take in what comes by it. Flags of
/// a rank to itself say what may be sent on, so that nothing but data and the order of links makes
/// a rank wait.
class assembly {
 public:
  using address_of = std::function<plan::address(const parcel&, int root, int rank)>;

  /// `by_pair`: each pair of ranks has a track for each tree instead, so that a message waits for
  /// no other one but that before it along its tree; the links are shared. `strict`: what comes by
  /// one link from several ranks is taken in by the timetable: a message is let in when what was to
  /// be there before it is. A message that takes longer than its latency ends with a part that
  /// takes as long, so that the latency of the next one passes meanwhile.
  assembly(plan::builder& b, bool by_pair, bool strict)
      : m_builder(b), m_by_pair(by_pair), m_strict(strict), m_tracks_of(rank_count()) {}

  /// Data goes from the roots outwards. `at` says where a rank has a parcel.
  void spread(const std::vector<tree>& trees, const std::vector<parcel>& parcels,
              const timetable& t, const address_of& at);

  /// Data goes to the roots and is reduced on the way. The trees and the timetable are those of
  /// spreading in the graph with all links the other way round, and are followed backwards.
  /// `own` says where a rank has its part, `result` where the root gets the reduction. What
  /// is then spread of a root's data waits for that.
  void gather(const std::vector<tree>& trees, const std::vector<parcel>& parcels,
              const timetable& t, const address_of& own, const address_of& result);

  /// Each root's own copy, where it belongs elsewhere too.
  void keep(int rank, plan::address to, plan::address from, std::uint64_t bytes);

  /// Writes it all to the builder.
  void finish();

 private:
  enum class action : std::uint8_t { send, receive, local };
  struct local_step {
    bool reduces = false;
    plan::address dst, src;
  };
  struct item {
    action what = action::local;
    int peer = -1;
    plan::address at;
    std::uint64_t bytes = 0;
    double ready = 0, done = 0;      // of receives: when they are to be posted and are there
    std::vector<local_step> before;  // done first, of so many bytes
    std::uint64_t before_bytes = 0;
    std::vector<std::pair<int, std::uint32_t>> needs;    // track and item that must be done
    std::vector<std::pair<int, std::uint64_t>> waiters;  // tracks, and the signal of theirs
  };
  struct track {
    int rank = 0;
    std::vector<item> items;
  };
  using arrival = std::pair<int, std::uint32_t>;  // track, item

  std::size_t rank_count() const { return static_cast<std::size_t>(m_builder.ranks()); }
  static constexpr std::uint64_t no_line = ~std::uint64_t{0};
  std::uint64_t line_of(std::uint32_t link, std::uint32_t tree, int from, int to) const;
  int track_of(int rank, std::uint64_t line);
  arrival add(int track, item i);
  arrival add_receive(std::uint32_t link, int track, item i);
  arrival add_message(std::uint32_t link, bool is_shared, int from, int to, item out, item in,
                      double latency);
  void await(int number, const item& i);
  void need_results(item& i, int root, const parcel& p) const;
  void number_signals();
  void choose_channels();
  std::uint64_t flag_of(int from, int to);
  void write(const track& l, int number);
  void write_receives(const track& l, int number);
  void signal_waiters(const track& l, int number, const item& i);

  plan::builder& m_builder;
  bool m_by_pair;
  bool m_strict;
  std::vector<std::map<std::uint64_t, int>> m_tracks_of;  // by rank and line
  std::vector<track> m_tracks;
  std::map<std::uint64_t, std::vector<int>> m_tracks_by;    // by line: a link or a pair
  std::vector<int> m_channel;                               // by track
  std::map<std::uint32_t, std::vector<arrival>> m_inbound;  // by link: what comes by it, in order
  std::vector<double> m_gathered;  // by track: when its last receive of what is gathered ends
  std::map<std::pair<int, int>, std::uint64_t> m_flags;
  std::vector<std::uint64_t> m_next_flag;
  std::map<std::pair<int, int>, std::uint64_t> m_taken;  // by tracks: signals taken
  // What roots have reduced, by root and offset, until where.
  std::map<std::pair<int, std::uint64_t>, std::pair<std::uint64_t, arrival>> m_results;
};

}  // namespace sucl::tune
