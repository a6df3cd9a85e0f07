// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The memory through which kernels of different ranks reach each other.
#pragma once

#include "backends/device_kernels/memory/device.hpp"
#include "core/exchange/core_services.hpp"
#include "core/operation/backend_comm.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// Memory of this rank's device that peers have mapped, and theirs.
struct mapped_piece {
  std::shared_ptr<void> own;
  std::uint64_t bytes = 0;
  std::vector<void*> peers;  ///< one entry a rank, this one's own too; null: out of reach
};

/// Memory of every rank that all of them reach. It is given back, once they all have let go of it,
/// when the next such memory is made, or with the communicator.
struct reached_memory {
  std::vector<std::byte*> of_rank;  ///< as this rank's device reaches it
  std::shared_ptr<void> table;      ///< the same addresses, in memory of the device
};

/// Buffers between all ranks of a communicator on one node. A buffer lies in memory of its reader's
/// device where the writer can map that, else in host memory that both reach: the pairs are probed
/// one by one. One thread at a time, but for look-ups of memory, which any may do.
class peer_buffers {
 public:
  /// Collective. Throws sucl::error on every rank if it cannot be had on one, or if the status of
  /// one, of what it has made before, is no success.
  peer_buffers(const backend_comm& memory_provider, const sucl_oob& oob, kernel_device& device,
               int rank, int size, const kernels::buffer_layout& layout,
               std::int32_t status = SUCL_SUCCESS);
  ~peer_buffers();
  peer_buffers(const peer_buffers&) = delete;
  peer_buffers& operator=(const peer_buffers&) = delete;

  const kernels::peer_buffer_table* addresses() const {
    return static_cast<kernels::peer_buffer_table*>(m_buffers.get());
  }
  /// Where there are few ranks, writes the addresses into a kernel's arguments.
  void set_near(kernels::collective_args& args) {
    args.near_out = m_near_out;
    args.near_in = m_near_in;
    args.pair_out = m_near_out[1];
    args.pair_in = m_near_in[1];
  }
  /// Where the peers' pieces are, in memory of the device.
  const std::byte* const* table() const { return static_cast<std::byte* const*>(m_table.get()); }
  /// A little unused memory: barriers have none of their own.
  void* spare() const { return m_spare; }
  /// Whether the buffers of all pairs are in memory of devices.
  bool all_on_devices() const { return m_unmapped == 0; }
  /// How the buffers were made, human-readable.
  std::string description() const;

  /// Allocates memory that all ranks map, after operation `sequence`. Collective. Throws on every
  /// rank.
  void* add(std::uint64_t bytes, std::uint64_t sequence);
  /// The same with memory of the program's, of any size on each rank; whether every rank reaches
  /// that of all others. It stays the program's.
  bool attach(void* memory, std::uint64_t bytes, std::uint64_t sequence);
  /// Collective, with nothing in flight. False if it is of neither.
  bool remove(void* memory);
  /// Whether any was added before an operation: the same on every rank, whenever it gets there.
  bool used_by(std::uint64_t sequence) const;
  /// The key of memory of this rank, 0 if it is in none of the pieces.
  std::uint64_t key_of(const void* memory, std::uint64_t bytes) const;

  /// Makes zeroed memory of `bytes` bytes, the same on every rank: of devices, or of the host where
  /// some do not reach each other. Collective. Throws on every rank.
  std::shared_ptr<const reached_memory> make_reached(std::uint64_t bytes);

  /// Where ranks show each other what they have called, by rank.
  std::vector<std::byte*> boards() const;

  /// The memory stays until the process ends: others may be at work on it.
  void abandon() { m_abandoned = true; }

 private:
  mapped_piece map(std::uint64_t bytes, std::int32_t status = SUCL_SUCCESS);
  std::int32_t make_tables(std::int32_t status);
  std::uint64_t buffer_of(int reader, int writer) const;
  void share(mapped_piece& piece, std::int32_t status);
  bool add(mapped_piece piece, std::uint64_t sequence, bool keeps);
  void unmap(mapped_piece& piece);
  void identify_communicator();
  std::optional<std::vector<std::shared_ptr<void>>> hand_over_memory();
  bool all_leave() const;
  void make_host_buffers();
  void free_host();
  // Memory that was made by make_reached(), of the device or of the host.
  struct shared_piece {
    mapped_piece device;
    sucl_region host{};
    std::vector<void*> pinned;
    std::weak_ptr<const reached_memory> use;
  };
  bool share_device(shared_piece& piece, std::uint64_t bytes);
  void share_host(shared_piece& piece, std::uint64_t bytes);
  void reclaim();
  void give_back(shared_piece& piece);
  template <class T>
  std::vector<T> gather(const T& mine);

  backend_comm m_memory_provider;
  sucl_oob m_oob;
  kernel_device& m_device;
  int m_rank, m_size;
  kernels::buffer_layout m_layout;
  std::pair<std::uint64_t, std::uint64_t>
      m_communicator;    ///< the same in its ranks of this process
  int m_of_process = 0;  ///< ranks
  mapped_piece m_own;
  sucl_region m_host{};
  std::vector<void*> m_pinned;
  std::shared_ptr<void> m_buffers, m_table;
  void* m_spare = nullptr;
  decltype(kernels::collective_args::near_out) m_near_out{};
  decltype(kernels::collective_args::near_in) m_near_in{};
  mutable std::mutex m_mutex;  ///< guards what follows
  std::vector<mapped_piece> m_pieces;
  std::optional<std::uint64_t> m_first_use;
  std::vector<std::unique_ptr<shared_piece>> m_shared;  ///< in the same order on every rank
  int m_unmapped = 0;                                   ///< pairs that go through the host's memory
  bool m_abandoned = false;
};

}  // namespace sucl::core
