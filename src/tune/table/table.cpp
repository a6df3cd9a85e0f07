// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/table/table.hpp"

#include "base/hash.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <limits>

namespace sucl::tune {
namespace {

// Text that a TOML string can hold as it is.
std::string plain(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

// One key = value a line.
struct writer {
  std::string text;
  void line(const char* key, const std::string& value) {
    text.append(key).append(" = ").append(value).append("\n");
  }
  void word(const char* key, const std::string& value) { line(key, "\"" + plain(value) + "\""); }
};

void write(writer& out, const table_row& r) {
  out.text += "\n[[choice]]\n";
  out.word("collective", sucl::name(r.what));
  if (r.form != call_form::any) out.word("form", name(r.form));
  out.word("memory", name(r.memory));
  if (!r.ranks.everything()) out.word("ranks", base::print_range(r.ranks));
  if (!r.nodes.everything()) out.word("nodes", base::print_range(r.nodes));
  out.word("bytes", base::print_byte_range(r.bytes));
  out.word("backend", r.backend);
  if (!r.how.algorithm.empty()) out.word("recipe", plan::to_text(r.how));
  if (r.slice) out.word("slice", base::print_bytes(r.slice));
  if (!r.protocol.empty()) out.word("protocol", r.protocol);
  if (r.seconds > 0) {
    out.line("us", base::print_fixed(r.seconds * 1e6, 3));
    out.word("at", base::print_bytes(r.at));
  }
  if (r.verified) out.line("verified", "true");
}

}  // namespace

const char* name(call_form form) {
  constexpr std::array<const char*, 3> names{"any", "blocking", "event"};
  return names[static_cast<std::size_t>(form)];
}

const char* name(memory_kind memory) {
  constexpr std::array<const char*, 3> names{"system", "symmetric", "device"};
  return names[static_cast<std::size_t>(memory)];
}

memory_kind memory_of(const plan::recipe& r) {
  constexpr std::array<std::string_view, 5> peers{"one_shot", "two_shot", "peer_exchange",
                                                  "mapped_one_shot", "mapped_two_shot"};
  for (const std::string_view known : peers)
    if (r.algorithm == known) return memory_kind::symmetric;
  return memory_kind::system;
}

std::string to_toml(const table& t) {
  writer out;
  out.text = "# Which backend runs which messages. docs/reference/tuning-table.md describes it.\n";
  out.line("format", "2");
  out.word("author", t.author);
  out.word("times", t.measured ? "measured" : "predicted");
  out.text += "\n[machine]\n";
  out.word("name", t.machine.name);
  if (!t.machine.processor.empty()) out.word("processor", t.machine.processor);
  if (t.machine.cores > 0) out.line("cores", std::to_string(t.machine.cores));
  if (!t.machine.mpi.empty()) out.word("mpi", t.machine.mpi);
  if (!t.machine.device.empty()) out.word("device", t.machine.device);
  for (const table_row& r : t.rows) write(out, r);
  return std::move(out.text);
}

std::uint64_t hash(const table& t) {
  writer out;
  for (const table_row& r : t.rows) write(out, r);
  return base::fnv1a(out.text);
}

table_machine this_machine() {
  table_machine m;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    m.processor = plain(std::string(base::trim(line.substr(line.find(':') + 1))));
    break;
  }
  m.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return m;
}

std::string foreign(const table& t, const table_machine& here) {
  if (!t.measured) return {};
  const auto describe = [](const table_machine& m) {
    return std::to_string(m.cores) + " cores of " +
           (m.processor.empty() ? std::string("an unknown processor") : m.processor);
  };
  if (t.machine.processor != here.processor || t.machine.cores != here.cores)
    return "it was measured on " + describe(t.machine) + ", and this machine has " + describe(here);
  if (!t.machine.mpi.empty() && !here.mpi.empty() && t.machine.mpi != here.mpi)
    return "it was measured with " + t.machine.mpi + ", and this job uses " + here.mpi;
  if (!t.machine.device.empty() && !here.device.empty() && t.machine.device != here.device)
    return "it was measured on " + t.machine.device + ", and this device is " + here.device;
  return {};
}

const table_row* find(const table& t, sucl::kind what, call_form form, memory_kind memory,
                      int ranks, int nodes, std::uint64_t bytes) {
  for (const table_row& r : t.rows)
    if (r.what == what && (r.form == call_form::any || r.form == form) && r.memory == memory &&
        r.ranks.contains(static_cast<std::uint64_t>(ranks)) &&
        r.nodes.contains(static_cast<std::uint64_t>(nodes)) && r.bytes.contains(bytes))
      return &r;
  return nullptr;
}

std::vector<table_row> cover_all_sizes(std::vector<table_row> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].bytes.low = i == 0 ? 0 : rows[i].at;
    rows[i].bytes.high =
        i + 1 < rows.size() ? rows[i + 1].at - 1 : std::numeric_limits<std::uint64_t>::max();
  }
  return rows;
}

}  // namespace sucl::tune
