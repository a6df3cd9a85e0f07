// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/serialization/json_line.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace sucl::plan {
namespace {

using nlohmann::json;

// Characters for the parser, which copies iterators: how far it has come is noted outside of them.
class noted_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  noted_iterator(const char* at, const char*& noted) : m_at(at), m_noted(&noted) {}
  const char& operator*() const { return *m_at; }
  noted_iterator& operator++() {
    *m_noted = ++m_at;
    return *this;
  }
  noted_iterator operator++(int) {
    noted_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const noted_iterator& a, const noted_iterator& b) {
    return a.m_at == b.m_at;
  }
  friend bool operator!=(const noted_iterator& a, const noted_iterator& b) { return !(a == b); }

 private:
  const char* m_at;
  const char** m_noted;
};

// Follows the parser with the path at hand. Of several members of one name the last one counts, as
// for the parser.
class finder : public nlohmann::json_sax<json> {
 public:
  finder(std::string_view text, const std::string& path)
      : m_text(text), m_wanted(path), m_noted(text.data()) {}

  std::size_t find() {
    const char* const end = m_text.data() + m_text.size();
    json::sax_parse(noted_iterator(m_text.data(), m_noted), noted_iterator(end, m_noted), this);
    return m_line;
  }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return begin(false); }
  bool start_array(std::size_t) override { return begin(true); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    m_path.resize(m_open.back().length);
    m_path += (m_path.empty() ? "" : ".") + name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct list {
    std::size_t length;  // of its path
    bool array;
    std::size_t elements = 0;
  };

  bool value() {
    if (!m_open.empty() && m_open.back().array) {
      m_path.resize(m_open.back().length);
      m_path += "[" + std::to_string(m_open.back().elements++) + "]";
    }
    // The parser has read one character more than a number has.
    if (m_path == m_wanted && m_noted != m_text.data())
      m_line = 1 + static_cast<std::size_t>(std::count(m_text.data(), m_noted - 1, '\n'));
    return true;
  }
  bool begin(bool array) {
    value();
    m_open.push_back({m_path.size(), array});
    return true;
  }
  bool end() {
    m_path.resize(m_open.back().length);
    m_open.pop_back();
    return true;
  }

  std::string_view m_text;
  const std::string& m_wanted;
  const char* m_noted;
  std::string m_path;
  std::vector<list> m_open;
  std::size_t m_line = 0;
};

}  // namespace

std::string to_text(const json_path& path) {
  if (path.above == nullptr) return {};
  const std::string above = to_text(*path.above);
  if (path.key.empty()) return above + "[" + std::to_string(path.index) + "]";
  return above + (above.empty() ? "" : ".") + std::string(path.key);
}

std::size_t line_in_json(std::string_view text, const std::string& path) {
  return finder(text, path).find();
}

}  // namespace sucl::plan
