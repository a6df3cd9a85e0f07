// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include "base/names.hpp"
#include "base/setting_values.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace sucl::mock {
namespace {

using names = std::vector<std::string_view>;

// Collectives; it carries no messages.
const names kinds(base::kind_names.begin(), base::kind_names.begin() + SUCL_KIND_EXSCAN + 1);
const names types(base::type_names.begin(), base::type_names.end());
const names ops(base::op_names.begin(), base::op_names.end());
const names memories{"system", "host", "shared"};

std::string listed(const names& known) {
  std::string text;
  for (const auto& name : known) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// "a,b" or "all" as bits.
complaint read_set(std::string_view key, std::string_view value, const names& known,
                   std::uint64_t& bits) {
  const std::string whole(value);
  bits = 0;
  while (!value.empty()) {
    const auto comma = value.find(',');
    std::string_view word = value.substr(0, comma);
    value.remove_prefix(comma == value.npos ? value.size() : comma + 1);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (word == "all") bits = (std::uint64_t{1} << known.size()) - 1;
    bool found = word == "all";
    for (std::size_t i = 0; i < known.size() && !found; ++i) {
      found = known[i] == word;
      if (found) bits |= std::uint64_t{1} << i;
    }
    if (!found)
      return {"backend mock: " + std::string(key) + " = " + whole + " has the unknown entry '" +
                  std::string(word) + "'",
              "Use 'all' or a list of: " + listed(known) + "."};
  }
  return {};
}

constexpr base::bounds<std::uint64_t> any_number{0, std::uint64_t{1} << 60};
constexpr base::bounds<std::uint64_t> delays{0, 3'600'000'000};  // up to an hour
constexpr base::bounds<std::int64_t> rank_numbers{-1, 0x7fffffff};

template <class Number>
complaint read_number(std::string_view key, std::string_view value, base::bounds<Number> range,
                      Number& number) {
  base::value_problem found = base::read_number(std::string(key), value, range, number);
  if (found.message.empty()) return {};
  return {"backend mock: " + found.message, std::move(found.hint)};
}

complaint read_one(std::string_view key, std::string_view value, settings& s) {
  if (key == "kinds") return read_set(key, value, kinds, s.kinds);
  if (key == "types") return read_set(key, value, types, s.types);
  if (key == "ops") return read_set(key, value, ops, s.ops);
  if (key == "memory") return read_set(key, value, memories, s.memory);
  if (key == "wrong") return read_set(key, value, kinds, s.wrong);
  if (key == "max_count") return read_number(key, value, any_number, s.max_count);
  if (key == "delay_us") return read_number(key, value, delays, s.delay_us);
  if (key == "fail_at") return read_number(key, value, any_number, s.fail_at);
  if (key == "stuck_at") return read_number(key, value, any_number, s.stuck_at);
  if (key == "fail_rank") return read_number(key, value, rank_numbers, s.fail_rank);
  if (key == "fail_open") {
    s.fail_open = value;
    return {};
  }
  return {"backend mock does not understand " + std::string(key) + " = " + std::string(value),
          "Its settings are: kinds, types, ops, memory, max_count, delay_us, fail_at, fail_rank, "
          "fail_open, stuck_at, wrong."};
}

}  // namespace

complaint read(const sucl_setting* list, std::uint64_t count, settings& result) {
  for (auto [set, known] : {std::pair{&result.kinds, &kinds}, std::pair{&result.types, &types},
                            std::pair{&result.ops, &ops}, std::pair{&result.memory, &memories}})
    *set = (std::uint64_t{1} << known->size()) - 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    complaint found = read_one(list[i].key, list[i].value, result);
    if (!found.message.empty()) return found;
  }
  return {};
}

const char* kind_name(sucl_kind kind) {
  return kind >= 0 && static_cast<std::size_t>(kind) < kinds.size() ? kinds[kind].data()
                                                                    : "unknown";
}

}  // namespace sucl::mock
