// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include "base/bounds.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace sucl {
namespace {

std::string compose(const error_info& info) {
  std::string text = "sucl: ";
  if (!info.operation.empty()) text += info.operation + ": ";
  text += info.message;
  text += " [" + std::string(name(info.code));
  if (info.rank >= 0) text += ", rank " + std::to_string(info.rank);
  if (!info.backend.empty()) text += ", backend " + info.backend;
  if (info.native_code != 0) text += ", native code " + std::to_string(info.native_code);
  text += "]";
  if (!info.hint.empty()) text += ". " + info.hint;
  return text;
}

}  // namespace

const char* name(errc code) noexcept {
  switch (code) {
    case errc::success: return "success";
    case errc::invalid_argument: return "invalid_argument";
    case errc::invalid_rank: return "invalid_rank";
    case errc::invalid_count: return "invalid_count";
    case errc::invalid_type: return "invalid_type";
    case errc::invalid_memory: return "invalid_memory";
    case errc::mismatch: return "mismatch";
    case errc::configuration: return "configuration";
    case errc::unavailable: return "unavailable";
    case errc::unsupported: return "unsupported";
    case errc::native: return "native";
    case errc::timeout: return "timeout";
    case errc::peer_lost: return "peer_lost";
    case errc::shut_down: return "shut_down";
    case errc::out_of_memory: return "out_of_memory";
    case errc::internal: return "internal";
  }
  return "unknown";
}

error::error(error_info info) : std::runtime_error(compose(info)), m_info(std::move(info)) {}

namespace base {

void fail(errc code, std::string message, std::string hint) {
  error_info info;
  info.code = code;
  info.message = std::move(message);
  info.hint = std::move(hint);
  throw error(std::move(info));
}

namespace {

// Levenshtein's distance, one row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

void refuse(const std::string& origin, const std::string& message, const std::string& hint) {
  constexpr std::string_view file = "file ";
  const bool in_file = origin.compare(0, file.size(), file) == 0;
  fail(errc::configuration, (in_file ? origin.substr(file.size()) : origin) + ": " + message, hint);
}

std::string bounds_text(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}
std::string bounds_text(std::uint64_t value) { return std::to_string(value); }
std::string bounds_text(std::int64_t value) { return std::to_string(value); }

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return "Did you mean '" + near + "'?";
  std::string text = "Known names: ";
  for (std::size_t i = 0; i < candidates.size(); ++i) text += (i == 0 ? "" : ", ") + candidates[i];
  return candidates.empty() ? std::string("There are none.") : text + ".";
}

}  // namespace base
}  // namespace sucl
