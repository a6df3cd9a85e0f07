// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that carries collectives, and messages if it is told to, by kernels of
/// SuCL's own, on the devices of one node. Who has the SYCL objects launches them: see
/// kernel_device.
#pragma once

#include "backends/device_kernels/launch_plan.hpp"
#include "backends/device_kernels/message_launch.hpp"
#include "backends/device_kernels/peer_buffers.hpp"
#include "core/selection/call_board.hpp"
#include "tune/table.hpp"

#include <sucl/export.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// Its name in the configuration.
inline constexpr const char* kernel_backend_name = "kernels";

/// Settings of [backends.kernels].
struct kernel_settings {
  std::uint64_t small;                 ///< largest message that goes in lines with flags
  std::uint64_t staging;               ///< staging memory for each peer, of each half
  std::uint64_t wide_from = 32 << 10;  ///< smallest and largest message that goes in wide lines,
  std::uint64_t wide;                  ///< where links keep them whole;
  std::uint64_t wide_from_all;         ///< the largest where all ranks send as much
  std::uint64_t shared;                ///< the same where three and more ranks share the work
  std::uint64_t two_shot;    ///< from here ranks share the work of allreduce, reduce and broadcast
  std::uint64_t direct = 0;  ///< from here mapped memory is used as such; 0: above wide lines
  std::uint64_t groups = kernels::most_groups;
  bool messages = false;              ///< sends and receives too
  std::uint64_t message_staging;      ///< staging memory of messages for each peer
  std::uint64_t message_line = 4096;  ///< largest piece of a message that goes in lines
  std::uint64_t operations = 0;       ///< that count as done; for trying what comes after very many
  bool sized = false;                 ///< the sizes of memory are the program's choice

  /// What is good for so many ranks on one node: each sends to all others.
  explicit kernel_settings(int ranks);

  /// Those of communicators whose device has lent the large memory to another one: less than 64 MiB
  /// of each device.
  kernel_settings of_further_communicators(int ranks) const;

  /// Throws errc::configuration.
  static kernel_settings read(const std::vector<std::pair<std::string, std::string>>& table,
                              int ranks);
  /// Whether such a table has messages = true.
  static bool wants_messages(const std::vector<std::pair<std::string, std::string>>& table);
};

/// A communicator's kernels.
class kernel_comm {
 public:
  /// Collective; throws sucl::error.
  kernel_comm(const backend_comm& memory_provider, const sucl_oob& oob, kernel_device& device,
              int rank, int size, const kernel_settings& settings);
  ~kernel_comm();
  kernel_comm(const kernel_comm&) = delete;
  kernel_comm& operator=(const kernel_comm&) = delete;

  /// Throws errc::mismatch once a kernel has found a message that is not the one it waits for, or
  /// ranks have called different operations.
  void check();
  /// Compares what ranks have called, as far as they have come: kernels do not. All kernels end
  /// soon if that differs.
  void compare_calls();
  const call_board& board() const { return m_board; }

  /// Launches the kernels of an operation; `target` as of kernel_device::launch().
  void* start(const sucl_operation& operation, void* target);
  bool test(void* token);
  /// All kernels end soon, whatever they wait for.
  void abort();

  /// The ways of a tuning table count from now on; null: none. Nothing is in flight.
  void retune(const tune::table* tuned);
  /// The way of an operation, for people.
  std::string describe(const sucl_operation& operation) const;

  kernel_device& device() const { return m_device; }
  peer_buffers& memory() { return m_memory; }
  bool carries_messages() const { return m_messages.has_value(); }

 private:
  kernels::kernel_control& control() const {
    return *static_cast<kernels::kernel_control*>(m_control.get());
  }
  std::int32_t make_control();
  job_setting agreed(const kernel_settings& settings, const sucl_oob& oob, int rank, int size);
  void next_epoch();
  void* launch(kernel_launch& kernel, void* target);
  void* start_collective(const sucl_operation& operation, void* target);
  void* start_messages(const sucl_operation& operation, void* target);
  void* copy(void* to, const void* from, std::uint64_t bytes, void* target);
  void finish(void* token);
  void* bounce_buffer(std::uint64_t bytes);

  /// What a row of a tuning table has to say.
  struct tuned_way {
    base::range bytes;
    kernels::way how;
    std::string origin;
  };
  const tuned_way* tuned(const sucl_operation& operation) const;

  /// The right to the large memory of a device; given back at the end.
  class large_memory {
   public:
    explicit large_memory(const kernel_device::identity_type& who);
    ~large_memory();
    large_memory(const large_memory&) = delete;
    large_memory& operator=(const large_memory&) = delete;
    bool is_free() const { return m_free; }
    void keep(bool yes);

   private:
    kernel_device::identity_type m_who;
    bool m_free = false, m_mine = false;
  };

  kernel_device& m_device;
  large_memory m_large;
  job_setting m_setting;
  std::shared_ptr<void> m_control;  ///< a kernel_control in the host's memory
  peer_buffers m_memory;
  call_board m_board;
  std::optional<message_jobs> m_messages;
  std::array<std::vector<tuned_way>, SUCL_KIND_COUNT> m_tuned;
  std::vector<std::shared_ptr<void>> m_bounce_buffers;
  std::uint64_t m_bounce_bytes = 0;
  std::uint64_t m_epoch = 0, m_previous = 0;
  bool m_heard_all = true;  ///< in the operation before
  unsigned m_looks = 0;     ///< since calls were compared
};

/// The largest number of ranks.
inline constexpr int most_kernel_ranks = kernels::most_ranks;

/// Its table; `state` of its channels is the kernel_comm.
SUCL_CORE_API const sucl_backend& kernel_backend() noexcept;
backend_comm make_kernel_comm(std::unique_ptr<kernel_comm> comm);
kernel_comm& kernels_of(const backend_comm& c);

}  // namespace sucl::core
