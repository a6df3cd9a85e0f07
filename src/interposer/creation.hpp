// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Open MPI 5.0 may wait for ever where two threads of a process make communicators at once. SuCL
/// makes some where it sets itself up for one of the program's, so that is never done at a time at
/// which another thread makes one.
#pragma once

namespace sucl::interposer {

/// One thread sets SuCL up, or is not to: it is another one's turn. To be held only while every
/// rank is known to be setting up the same communicator: others in the process wait for it.
class set_up_turn {
 public:
  explicit set_up_turn(bool wanted);
  ~set_up_turn();
  set_up_turn(const set_up_turn&) = delete;
  set_up_turn& operator=(const set_up_turn&) = delete;
  bool granted() const { return m_granted; }

 private:
  bool m_granted;
};

/// The program makes a communicator: waits while SuCL is set up, and has SuCL put that off.
class creation {
 public:
  creation();
  ~creation();
  creation(const creation&) = delete;
  creation& operator=(const creation&) = delete;
};

}  // namespace sucl::interposer
