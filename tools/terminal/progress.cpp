// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "terminal/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace sucl::tools {

progress::progress(std::string what)
    : m_what(std::move(what)), m_terminal(isatty(STDERR_FILENO) != 0) {}

progress::~progress() {
  if (m_shown) std::fputs("\r\033[K", stderr);
}

void progress::at(const std::string& detail) const {
  using namespace std::chrono_literals;
  if (!m_terminal) return;
  const auto now = clock::now();
  if (now - m_start < 300ms || now - m_written < 100ms) return;
  m_written = now;
  m_shown = true;
  std::fprintf(stderr, "\r\033[K%s: %s", m_what.c_str(), detail.c_str());
}

}  // namespace sucl::tools
