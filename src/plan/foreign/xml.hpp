// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The part of XML that plans of others are written in: elements with attributes, and comments.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sucl::plan {

/// The begin or the end of an element.
struct xml_tag {
  std::string name;  ///< empty: the text is over
  std::vector<std::pair<std::string, std::string>> attributes;
  bool begins = true;
  bool ends = false;  ///< also of one without content, which begins too
  std::size_t line = 0;
};

/// Reads tag by tag. Throws invalid_argument, with the line, where the text is no such XML.
class xml_reader {
 public:
  explicit xml_reader(std::string_view text) : m_text(text) {}
  xml_tag next();

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  char at(std::size_t i) const { return i < m_text.size() ? m_text[i] : '\0'; }
  void move(std::size_t count);
  void skip_blanks();
  std::string read_name();
  void read_attribute(xml_tag& tag);

  std::string_view m_text;
  std::size_t m_at = 0, m_line = 1;
};

}  // namespace sucl::plan
