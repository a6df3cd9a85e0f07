// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/creation.hpp"

#include <condition_variable>
#include <mutex>

namespace sucl::interposer {
namespace {

struct gate {
  std::mutex mutex;  // guards what follows
  std::condition_variable opened;
  int creations = 0;  // of the program, under way; one may be within another
  bool setting_up = false;
};

gate& the_gate() {
  static gate& one = *new gate;  // threads may outlive the end of main
  return one;
}

}  // namespace

set_up_turn::set_up_turn(bool wanted) : m_granted(false) {
  if (!wanted) return;
  gate& g = the_gate();
  const std::lock_guard lock(g.mutex);
  m_granted = g.creations == 0 && !g.setting_up;
  g.setting_up = g.setting_up || m_granted;
}

set_up_turn::~set_up_turn() {
  if (!m_granted) return;
  gate& g = the_gate();
  const std::lock_guard lock(g.mutex);
  g.setting_up = false;
  g.opened.notify_all();
}

creation::creation() {
  gate& g = the_gate();
  std::unique_lock lock(g.mutex);
  g.opened.wait(lock, [&] { return !g.setting_up; });
  ++g.creations;
}

creation::~creation() {
  gate& g = the_gate();
  const std::lock_guard lock(g.mutex);
  --g.creations;
}

}  // namespace sucl::interposer
