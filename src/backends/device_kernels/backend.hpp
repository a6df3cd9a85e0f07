// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that executes collectives, and messages if configured to, by kernels of
/// SuCL's own, on the devices of one node. The owner of the SYCL objects launches them: see
/// kernel_device.
#pragma once

#include "backends/device_kernels/launch_plan.hpp"
#include "backends/device_kernels/memory/peer_buffers.hpp"
#include "backends/device_kernels/message_launch.hpp"
#include "backends/device_kernels/plans/plan_store.hpp"
#include "core/operation/captured.hpp"
#include "core/selection/call_board.hpp"
#include "tune/table/table.hpp"

#include <sucl/export.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// The name of the backend in the configuration.
inline constexpr const char* kernel_backend_name = "kernels";

/// Settings of [backends.kernels].
struct kernel_settings {
  std::uint64_t ll_max_bytes;                ///< largest message of the LL protocol
  std::uint64_t staging;                     ///< staging memory for each peer, of each half
  std::uint64_t ll128_min_bytes = 32 << 10;  ///< smallest and largest message of the LL128
  std::uint64_t ll128_max_bytes;             ///< protocol, where links keep its stores whole;
  std::uint64_t ll128_exchange_max_bytes;    ///< the largest where all ranks send as much
  std::uint64_t ll128_two_shot_max_bytes;    ///< LL128 and
  std::uint64_t ll_two_shot_max_bytes;       ///< LL, where three and more ranks share the work
  std::uint64_t two_shot_min_bytes;    ///< ranks share the work of allreduce, reduce and broadcast
  std::uint64_t direct_min_bytes = 0;  ///< mapped memory is used as such; 0: above LL128
  std::uint64_t groups = kernels::max_groups;
  bool messages = false;  ///< sends and receives too
  /// Compiled plans too; without a value where the memory of devices is the host's.
  std::optional<bool> plans;
  std::uint64_t message_staging;  ///< staging memory of messages for each peer
  std::uint64_t message_ll_bytes =
      4096;                      ///< largest piece of a message that goes by the LL protocol
  std::uint64_t operations = 0;  ///< that count as done; for trying what comes after very many
  bool sized = false;            ///< the sizes of memory are the program's choice

  /// What is good for so many ranks on one node: each sends to all others.
  explicit kernel_settings(int ranks);

  /// Those of communicators whose device has given the large memory to another one: less than 64
  /// MiB of each device.
  kernel_settings of_further_communicators(int ranks) const;

  /// Throws errc::configuration.
  static kernel_settings read(const std::vector<std::pair<std::string, std::string>>& table,
                              int ranks);
  /// Whether such a table has messages = true.
  static bool wants_messages(const std::vector<std::pair<std::string, std::string>>& table);
  /// The same of plans = true.
  static bool wants_plans(const std::vector<std::pair<std::string, std::string>>& table);
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

  /// From here to end_capture() kernels go to a graph: they count from the base that is written
  /// before the graph is launched. Whether that can be.
  bool begin_capture();
  captured_kernels end_capture();
  bool may_replay(const captured_kernels& captured) const;
  graph_base replay(const captured_operations& captured);

  /// The protocols of a tuning table count from now on; null: none. Nothing is in flight.
  void retune(const tune::table* tuned);
  /// The protocol of an operation, human-readable.
  std::string describe(const sucl_operation& operation) const;

  /// The limits that a plan has to fit.
  device_plan_limits plan_limits() const {
    return {m_setting.groups, m_setting.ll_max_bytes, m_setting.ll128_min_bytes,
            m_setting.ll128_exchange_max_bytes};
  }
  plan_store& plans() { return m_plans; }
  bool runs_plans() const { return m_runs_plans; }
  int rank() const { return m_setting.rank; }
  int size() const { return m_setting.ranks; }

  kernel_device& device() const { return m_device; }
  peer_buffers& memory() { return m_memory; }
  bool supports_messages() const { return m_messages.has_value(); }

 private:
  kernels::kernel_control& control() const {
    return *static_cast<kernels::kernel_control*>(m_control.get());
  }
  std::int32_t make_control();
  launch_setting agreed(const kernel_settings& settings, const sucl_oob& oob, int rank, int size);
  void next_epoch();
  void* launch(kernel_launch& kernel, void* target);
  void* start_collective(const sucl_operation& operation, void* target);
  void* start_captured(const sucl_operation& operation, void* target);
  void* start_plan(const sucl_operation& operation, void* target);
  void set_addresses(kernels::collective_args& args);
  void enter(kernels::collective_args& args, bool barrier);
  void enter_capture(kernels::collective_args& args, bool barrier);
  void* start_messages(const sucl_operation& operation, void* target);
  void* copy(void* to, const void* from, std::uint64_t bytes, void* target);
  void* followed(void* first, void* last);
  void forget_those_before(const void* last);
  void* bounce_buffer(std::uint64_t bytes);

  /// What a row of a tuning table has to say.
  struct tuned_protocol {
    base::range bytes;
    kernels::protocol how;
    std::string origin;
  };
  const tuned_protocol* tuned(const sucl_operation& operation) const;

  /// The right to the large memory of a device; given back at the end.
  class large_memory {
   public:
    explicit large_memory(const kernel_device::identity_type& identity);
    ~large_memory();
    large_memory(const large_memory&) = delete;
    large_memory& operator=(const large_memory&) = delete;
    bool is_free() const { return m_free; }
    void keep(bool yes);

   private:
    kernel_device::identity_type m_identity;
    bool m_free = false, m_mine = false;
  };

  kernel_device& m_device;
  large_memory m_large;
  launch_setting m_setting;
  std::shared_ptr<void> m_control;  ///< a kernel_control in the host's memory
  peer_buffers m_memory;
  call_board m_board;
  plan_store m_plans;
  bool m_runs_plans;
  std::optional<message_launcher> m_messages;
  std::array<std::vector<tuned_protocol>, SUCL_KIND_COUNT> m_tuned;
  /// Two launches of one operation, of which the second is the one that is tested.
  struct followed_launch {
    void *first, *last;
  };
  std::vector<followed_launch> m_followed;
  std::vector<std::shared_ptr<void>> m_bounce_buffers;
  std::uint64_t m_bounce_bytes = 0;
  std::uint64_t m_epoch = 0, m_previous = 0;
  std::uint64_t m_plan_epoch = 0;      ///< of the last run of a plan, whose waves share it
  bool m_previous_was_barrier = true;  ///< in the operation before
  unsigned m_calls_since_compare = 0;  ///< since calls were compared
  std::shared_ptr<void> m_base;        ///< a replay_base in memory of the device; null: not yet
  std::optional<captured_kernels> m_captured;  ///< so far, while kernels are captured
};

/// The largest number of ranks.
inline constexpr int max_kernel_ranks = kernels::max_ranks;

/// The table of the backend `kernels`; `state` of its instances is the kernel_comm.
SUCL_CORE_API const sucl_backend& kernel_backend() noexcept;
backend_comm make_kernel_comm(std::unique_ptr<kernel_comm> comm);
kernel_comm& kernels_of(const backend_comm& c);

}  // namespace sucl::core
