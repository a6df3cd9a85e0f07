// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/xml.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

void xml_reader::refuse(const std::string& what) const {
  base::fail(errc::invalid_argument, "line " + std::to_string(m_line) + ": " + what,
             "Give elements with attributes, as in <gpu id=\"0\">, and comments.");
}

void xml_reader::move(std::size_t count) {
  for (std::size_t i = 0; i < count && m_at < m_text.size(); ++i)
    if (m_text[m_at++] == '\n') ++m_line;
}

void xml_reader::skip_blanks() {
  while (m_at < m_text.size() && is_blank(m_text[m_at])) move(1);
}

std::string xml_reader::read_name() {
  std::string name;
  for (; is_name(at(m_at)); move(1)) name += at(m_at);
  if (name.empty()) refuse("a name is missing");
  return name;
}

void xml_reader::read_attribute(xml_tag& tag) {
  const std::string name = read_name();
  skip_blanks();
  if (at(m_at) != '=') refuse("'" + name + "' has no value");
  move(1);
  skip_blanks();
  const char quote = at(m_at);
  const std::size_t end =
      quote == '"' || quote == '\'' ? m_text.find(quote, m_at + 1) : std::string_view::npos;
  if (end == std::string_view::npos) refuse("the value of '" + name + "' has no quotes around it");
  tag.attributes.emplace_back(name, std::string(m_text.substr(m_at + 1, end - m_at - 1)));
  move(end + 1 - m_at);
}

xml_tag xml_reader::next() {
  xml_tag tag;
  for (;;) {
    skip_blanks();
    if (m_at >= m_text.size()) return tag;
    if (at(m_at) != '<') refuse("there is text between the elements");
    const bool comment = m_text.substr(m_at, 4) == "<!--";
    if (!comment && at(m_at + 1) != '?') break;
    const std::size_t end = m_text.find(comment ? "-->" : "?>", m_at);
    if (end == std::string_view::npos) refuse("a comment has no end");
    move(end + (comment ? 3 : 2) - m_at);
  }
  tag.line = m_line;
  move(1);
  if (at(m_at) == '/') {
    move(1);
    tag.begins = false;
    tag.ends = true;
  }
  tag.name = read_name();
  for (skip_blanks(); is_name(at(m_at)); skip_blanks()) read_attribute(tag);
  if (at(m_at) == '/') {
    move(1);
    tag.ends = true;
  }
  if (at(m_at) != '>') refuse("<" + tag.name + " has no end");
  move(1);
  return tag;
}

}  // namespace sucl::plan
