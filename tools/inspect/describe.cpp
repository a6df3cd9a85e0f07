// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <sucl/version.hpp>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// Manual pages and completion for shells, from what the commands say of themselves in --help.
namespace sucl::tools {
namespace {

namespace fs = std::filesystem;

struct described_option {
  words longs, shorts;  // without dashes
  std::string value, help;
  bool positional = false;
};

struct described_command {
  std::string name, summary, description, footer;  // "plan build"
  std::vector<described_option> options;
  std::vector<command_entry> parts;
};

described_option describe_option(const CLI::Option& o) {
  described_option d;
  d.longs = o.get_lnames();
  d.shorts = o.get_snames();
  d.help = o.get_description();
  d.positional = o.get_positional();
  if (d.positional)
    d.value = o.get_name(true);
  else if (o.get_items_expected_max() > 0)
    d.value = o.get_type_name().empty() ? "VALUE" : o.get_type_name();
  return d;
}

described_command describe_leaf(const std::string& name, const command_entry& c) {
  described_command d;
  d.name = name;
  d.summary = c.summary;
  read_apps([&](const CLI::App& app) {
    d.description = app.get_description();
    d.footer = app.get_footer();
    for (const CLI::Option* o : app.get_options())
      if (!o->get_group().empty()) d.options.push_back(describe_option(*o));
  });
  c.run({"--help"});
  read_apps({});
  return d;
}

std::vector<described_command> describe_all() {
  std::vector<described_command> all;
  described_command top;
  top.summary = "collectives and point-to-point for SYCL programs";
  top.parts = top_commands();
  all.push_back(top);
  for (const command_entry& c : top.parts) {
    const std::string name = c.name;
    if (name == "help") continue;
    if (name != "plan" && name != "trace") {
      all.push_back(describe_leaf(name, c));
      continue;
    }
    described_command group;
    group.name = name;
    group.summary = c.summary;
    group.parts = name == "plan" ? plan_commands() : trace_commands();
    all.push_back(group);
    for (const command_entry& p : group.parts) all.push_back(describe_leaf(name + " " + p.name, p));
  }
  return all;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush())
    throw exit_error(exit_code::failure, "cannot write '" + path.string() +
                                             "'. Name a folder that this user may write to.");
}

// ---- manual pages

// Of a line of text: no character has a meaning to the formatter.
std::string roff(const std::string& text) {
  std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (!safe.empty() && (safe[0] == '.' || safe[0] == '\'')) safe = "\\&" + safe;
  return safe;
}

std::string dashed(const std::string& name) { return replaced(name, " ", "-"); }
std::string page_of(const std::string& name) {
  return name.empty() ? "sucl" : "sucl-" + dashed(name);
}

std::string roff_lines(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    result += (line.empty() ? ".sp" : roff(line)) + "\n";
    at = end + 1;
  }
  return result;
}

std::string manual_options(const described_command& c) {
  std::string text;
  for (const described_option& o : c.options) {
    std::string names;
    for (const auto& s : o.shorts) names += (names.empty() ? "" : ", ") + ("-" + s);
    for (const auto& l : o.longs) names += (names.empty() ? "" : ", ") + ("--" + l);
    text += ".TP\n";
    if (!o.positional) text += "\\fB" + roff(names) + "\\fR" + (o.value.empty() ? "" : " ");
    if (!o.value.empty()) text += "\\fI" + roff(o.value) + "\\fR";
    text += "\n" + roff(o.help) + "\n";
  }
  return text;
}

std::string manual_page(const described_command& c) {
  const std::string page = page_of(c.name);
  std::string text = ".TH " + page + " 1 \"\" \"SuCL " + SUCL_VERSION_STRING + "\"\n.SH NAME\n" +
                     roff(page) + " \\- " + roff(c.summary) + "\n.SH SYNOPSIS\n\\fBsucl" +
                     (c.name.empty() ? "" : " " + roff(c.name)) + "\\fR " +
                     (c.parts.empty() ? "" : "\\fICOMMAND\\fR ") + "[options]";
  for (const described_option& o : c.options)
    if (o.positional) text += " \\fI" + roff(o.value) + "\\fR";
  text += "\n";
  if (!c.description.empty()) text += ".SH DESCRIPTION\n" + roff_lines(c.description);
  if (!c.parts.empty()) text += ".SH COMMANDS\n";
  for (const command_entry& p : c.parts)
    text += ".TP\n\\fB" + roff(p.name) + "\\fR\n" + roff(p.summary) + "\n";
  if (!c.options.empty()) text += ".SH OPTIONS\n" + manual_options(c);
  if (!c.footer.empty()) text += ".SH NOTES\n.nf\n" + roff_lines(c.footer) + ".fi\n";
  return text;
}

// ---- completion

std::string words_of(const described_command& c) {
  std::string text;
  for (const command_entry& p : c.parts) text += std::string(p.name) + " ";
  for (const described_option& o : c.options)
    for (const auto& l : o.longs) text += "--" + l + " ";
  if (c.name.empty()) text += "--help --version ";
  if (!text.empty()) text.pop_back();
  return text;
}

// The names of commands that come before the cursor choose the list.
std::string bash_completion(const std::vector<described_command>& all) {
  std::string text =
      "# Completion of sucl for bash.\n"
      "_sucl() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} name= list= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --) compopt -o default; return ;;\n"
      "      -*) ;;\n"
      "      *) case \"$name\" in '' | plan) name=${name:+$name }${COMP_WORDS[i]} ;; esac ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$name\" in\n";
  for (const described_command& c : all)
    text += "    '" + c.name + "') list='" + words_of(c) + "' ;;\n";
  return text +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$list\" -- \"$word\"))\n"
         "  [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default\n"
         "}\n"
         "complete -F _sucl sucl\n";
}

// Within single quotes; `also` has no other meaning there.
std::string escaped_quotes(const std::string& text) { return replaced(text, "'", "'\\''"); }

std::string zsh_completion(const std::vector<described_command>& all) {
  std::string text =
      "#compdef sucl\n"
      "# Completion of sucl for zsh.\n"
      "local name= i\n"
      "local -a list\n"
      "for ((i = 2; i < CURRENT; i++)); do\n"
      "  case ${words[i]} in\n"
      "    --) _default; return ;;\n"
      "    -*) ;;\n"
      "    *) case \"$name\" in '' | plan) name=${name:+$name }${words[i]} ;; esac ;;\n"
      "  esac\n"
      "done\n"
      "case \"$name\" in\n";
  const auto entry = [](const std::string& word, const std::string& help) {
    return " '" + escaped_quotes(replaced(word, ":", "\\:")) + ":" + escaped_quotes(help) + "'";
  };
  for (const described_command& c : all) {
    text += "  '" + c.name + "') list=(";
    for (const command_entry& p : c.parts) text += entry(p.name, p.summary);
    for (const described_option& o : c.options)
      for (const auto& l : o.longs) text += entry("--" + l, o.help);
    text += " ) ;;\n";
  }
  return text + "esac\n_describe sucl list || _default\n";
}

std::string fish_completion(const std::vector<described_command>& all) {
  std::string text = "# Completion of sucl for fish.\n";
  const auto fish = [](const std::string& t) {
    return "'" + replaced(replaced(t, "\\", "\\\\"), "'", "\\'") + "'";
  };
  for (const described_command& c : all) {
    std::string when;
    const auto blank = c.name.find(' ');
    if (c.name.empty())
      when = "__fish_use_subcommand";
    else if (blank == c.name.npos)
      when = "__fish_seen_subcommand_from " + c.name;
    else
      when = "__fish_seen_subcommand_from " + c.name.substr(0, blank) +
             "; and __fish_seen_subcommand_from " + c.name.substr(blank + 1);
    for (const command_entry& p : c.parts)
      text +=
          "complete -c sucl -n " + fish(when) + " -a " + p.name + " -d " + fish(p.summary) + "\n";
    for (const described_option& o : c.options)
      for (const auto& l : o.longs)
        text += "complete -c sucl -n " + fish(when) + " -l " + l + (o.value.empty() ? "" : " -r") +
                " -d " + fish(o.help) + "\n";
  }
  return text;
}

}  // namespace

int describe_command(const words& arguments) {
  if (arguments.size() != 1)
    wrong_usage("describe needs a folder: it writes what belongs into share/ of an installation.");
  const fs::path to = arguments.front();
  const auto all = describe_all();
  for (const described_command& c : all)
    write_file(to / "man" / "man1" / (page_of(c.name) + ".1"), manual_page(c));
  write_file(to / "bash-completion" / "completions" / "sucl", bash_completion(all));
  write_file(to / "zsh" / "site-functions" / "_sucl", zsh_completion(all));
  write_file(to / "fish" / "vendor_completions.d" / "sucl.fish", fish_completion(all));
  return exit_code::success;
}

}  // namespace sucl::tools
