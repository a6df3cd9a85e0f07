// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Runs a fuzzer's target over files, so that what was found once is tested by every compiler, and
// over damaged ones:
//
//   driver [--mutations N] [--seed N] [--keep FILE] FOLDER...
//
// With --mutations the files are damaged at random, N times in all; one that takes more than a
// second or a GiB ends the run, as one does that breaks the reader. --keep: where it lies then.
#include "fuzz/target.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using input = std::vector<char>;
constexpr std::size_t max_bytes = 16384;

struct options {
  std::uint64_t mutations = 0, seed = 1;
  std::string keep;
  std::vector<std::string> folders;
};

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--mutations")
      o.mutations = std::strtoull(value, nullptr, 10), ++i;
    else if (word == "--seed")
      o.seed = std::strtoull(value, nullptr, 10), ++i;
    else if (word == "--keep")
      o.keep = value, ++i;
    else
      o.folders.emplace_back(word);
  }
  return o;
}

void run(const input& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// Lies in a file that is still there when the process is not.
class last_input {
 public:
  explicit last_input(const std::string& name) : m_name(name) {
    if (name.empty()) return;
    m_file = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (m_file < 0) std::exit(2);
  }
  void set(const input& bytes) const {
    if (m_file < 0) return;
    const auto size = static_cast<::ssize_t>(bytes.size());
    if (pwrite(m_file, bytes.data(), bytes.size(), 0) != size || ftruncate(m_file, size) != 0)
      std::exit(2);
  }
  void remove() const {
    if (m_file >= 0) std::filesystem::remove(m_name);
  }

 private:
  std::string m_name;
  int m_file = -1;
};

class damage {
 public:
  damage(const std::vector<input>& files, std::uint64_t seed) : m_files(files), m_dice(seed) {}

  input next() {
    input bytes = m_files[below(m_files.size())];
    bytes.resize(std::min(bytes.size(), max_bytes));
    for (std::size_t n = 1 + below(4); n > 0; --n) change(bytes);
    bytes.resize(std::min(bytes.size(), max_bytes));
    return bytes;
  }

 private:
  std::size_t below(std::size_t n) { return m_dice() % std::max<std::size_t>(n, 1); }
  std::ptrdiff_t at(const input& bytes) {
    return static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
  }

  void change(input& bytes) {
    // clang-format off
    static constexpr std::string_view words[] = {
        "0", "-1", "1", "2147483647", "2147483648", "4294967296", "9223372036854775807",
        "18446744073709551616", "1e308", "1e-308", "nan", "inf", "-inf", "0x", "\"", "'", "[", "]",
        "{", "}", "=", "\n", "#", ".", ",", "\xff\xfe", "[[", "]]", "true", "null"};
    // clang-format on
    switch (below(8)) {
      case 0:
        if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(m_dice());
        break;
      case 2: bytes.resize(below(bytes.size() + 1)); break;
      case 3: {  // a part again, elsewhere
        const std::size_t from = below(bytes.size()), n = below(bytes.size() - from);
        const input part(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                         bytes.begin() + static_cast<std::ptrdiff_t>(from + n));
        bytes.insert(bytes.begin() + at(bytes), part.begin(), part.end());
        break;
      }
      case 4: {  // a part less
        const std::size_t from = below(bytes.size()), n = below(bytes.size() - from);
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                    bytes.begin() + static_cast<std::ptrdiff_t>(from + n));
        break;
      }
      case 5: {  // another file from here on
        const input& other = m_files[below(m_files.size())];
        const std::size_t from = below(other.size());
        bytes.resize(below(bytes.size() + 1));
        bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        break;
      }
      case 6: replace_number(bytes, words[below(std::size(words))]); break;
      default: {
        const auto word = words[below(std::size(words))];
        bytes.insert(bytes.begin() + at(bytes), word.begin(), word.end());
      }
    }
  }

  void replace_number(input& bytes, std::string_view word) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto first = std::find_if(bytes.begin() + at(bytes), bytes.end(), is_digit);
    if (first == bytes.end()) return;
    const auto last = std::find_if_not(first, bytes.end(), is_digit);
    const auto at = bytes.erase(first, last);
    bytes.insert(at, word.begin(), word.end());
  }

  const std::vector<input>& m_files;
  std::mt19937_64 m_dice;
};

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double peak_mebibytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

// What a machine with many other things to do still has; a loop without end is ended too.
void limit() {
  const rlimit memory{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
  if (std::getenv("ASAN_OPTIONS") == nullptr) setrlimit(RLIMIT_AS, &memory);
}

int run_damaged(const options& o, const std::vector<input>& files) {
  limit();
  damage from(files, o.seed);
  const last_input last(o.keep);
  double slowest = 0;
  for (std::uint64_t i = 0; i < o.mutations; ++i) {
    const input bytes = from.next();
    last.set(bytes);
    alarm(60);
    const double begun = processor_seconds();
    run(bytes);
    const double took = processor_seconds() - begun;
    slowest = std::max(slowest, took);
    if (took > 1 || peak_mebibytes() > 1024) {
      std::fprintf(stderr, "input %llu takes %.2f s and %.0f MiB\n",
                   static_cast<unsigned long long>(i), took, peak_mebibytes());
      return 1;
    }
  }
  last.remove();
  std::printf("{\"inputs\": %llu, \"slowest_ms\": %.1f, \"peak_MiB\": %.0f}\n",
              static_cast<unsigned long long>(o.mutations), slowest * 1000, peak_mebibytes());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  std::vector<input> files;
  for (const std::string& folder : o.folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      if (o.mutations > 0) continue;
      std::fprintf(stderr, "%s\n", entry.path().c_str());
      run(files.back());
    }
  if (files.empty()) return 1;
  // The order of a folder is the file system's.
  std::sort(files.begin(), files.end());
  if (o.mutations > 0) return run_damaged(o, files);
  std::printf("%zu inputs\n", files.size());
  return 0;
}
