// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reading TOML with the location of every value, for errors. Heavy: sources that read a file
/// format include it, headers do not.
#pragma once

#include "base/config/keys.hpp"
#include "base/config/toml_header.hpp"
#include "base/error.hpp"

#include <string>
#include <vector>

namespace sucl::base {

/// The longest text that is read. The values of it take fifty times as much memory.
inline constexpr std::size_t max_toml_bytes = std::size_t{4} << 20;

/// What a piece of TOML is part of.
struct toml_document {
  std::string name;    ///< "file sucl.toml" or "environment SUCL_RULES"
  unsigned shift = 0;  ///< columns of the first line that are not the user's
};

/// As in "file sucl.toml:3:7".
std::string origin_of(const toml_document& document, const toml::source_region& region);

/// A type of value, in words and as one of accept_string and so on.
struct toml_type {
  toml::node_type type;
  unsigned accepted;
  const char* name;
};
const toml_type& type_of(const toml::node& node);

/// The node as a table, or the error that `key` is none.
const toml::table& table_of(const toml::node& node, const toml_document& document,
                            const std::string& key);

/// One `key = value` of a table.
struct toml_entry {
  std::string key;
  std::string origin;
  const toml::node* node;
};

/// The entries of a table as the file has them.
std::vector<toml_entry> in_order(const toml::table& table, const toml_document& document);

/// Throws errc::configuration at `origin` if there are more than `most` entries, "rules" perhaps.
void check_entries(std::size_t entries, std::size_t most, const char* what,
                   const std::string& origin);

/// Parses a whole text of at most max_toml_bytes; throws errc::configuration that says where it is
/// not TOML.
toml::table parse_toml(std::string_view text, const toml_document& document);

}  // namespace sucl::base
