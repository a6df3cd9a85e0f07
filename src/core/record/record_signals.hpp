// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Signals that end the process have its records written first.
#pragma once

namespace sucl::core {

class flight_recorder;

/// Notes what the program does with signals itself, once. Before libraries are begun that install
/// handlers.
void note_own_signals() noexcept;
/// From now on: for crashes, which are then handed on, and for requests to end. Never for what the
/// program handles, or ignores, itself, nor for requests that a library does.
void write_on_signals(flight_recorder& record) noexcept;
/// No more, of this one. After the last one signals do again what they did.
void forget_on_signals(flight_recorder& record) noexcept;
/// Whether a signal that comes from outside is handled, by anything but SuCL and compilers that a
/// SYCL runtime has loaded: a handler in any other library may be the program's.
bool handles_signals_from_outside() noexcept;

}  // namespace sucl::core
