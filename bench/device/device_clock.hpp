// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Time as a device sees it.
#pragma once

#include <memory>
#include <optional>

namespace sucl::bench {

/// Times work on one stream of a CUDA device by the device's own clock. The stream is held until
/// all of the work is issued, so the time has nothing of what issuing costs the host. Throws
/// sucl::error where the driver fails.
class device_clock {
 public:
  device_clock(int device, void* stream);
  ~device_clock();
  device_clock(const device_clock&) = delete;
  device_clock& operator=(const device_clock&) = delete;

  void hold();     ///< what comes on the stream from now on waits
  void begin();    ///< what comes from now on is timed
  void end();      ///< up to here
  void release();  ///< lets the stream go on
  /// Waits for the end; microseconds. Nothing if the stream went on before it was released.
  std::optional<double> elapsed();

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace sucl::bench
