#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What programs that are compiled already need of SuCL's libraries, as text that is compared with
the description of the version: describe_abi.py DESCRIPTION TYPES LIBRARY... [--update].

- The symbols of each LIBRARY with the version of the interface, by `nm`. Those with the version
  SUCL_PRIVATE are not for programs.
- Sizes of the public classes, offsets of their members, and values of enumerations, by `abidw` from
  the debug information of TYPES, which is public_types.cpp. They hold for the SYCL implementation
  and the standard library that the description was made with. Where `abidw` is not installed (of
  Debian's abigail-tools) only symbols are compared.

What is gone or has changed breaks programs, and is an error. What is new is listed; --update writes
it down, so that it is not lost later.
"""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

BREAKS = """{} lines of {} are gone or have changed, so programs that are compiled already break.
Take that back, or raise the minor version (docs/reference/versions.md) and begin its description
with --update: {}"""
GROWS = "{} lines are new; --update writes them down."


def symbols(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                            capture_output=True, text=True, check=True).stdout
    soname = re.search(r"\(SONAME\).*\[(.+)\]", subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)[1]
    for line in listed.splitlines():
        if found := re.fullmatch(r"[0-9a-f]+ [TVWBDRui] (\w+)@@(SUCL_[0-9.]+)", line):
            yield f"{soname} {found[1]} {found[2]}"


def layouts(types):
    """Of what is in the namespace sucl."""
    command = ["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", types]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def walk(node, scope):
        for child in node:
            name = f"{scope}::{child.get('name')}" if scope else child.get("name", "")
            if child.tag in ("abi-instr", "member-type"):
                yield from walk(child, scope)
            elif child.tag == "namespace-decl" and (scope or name == "sucl"):
                yield from walk(child, name)
            elif child.tag in ("class-decl", "enum-decl") and scope.startswith("sucl"):
                yield from described(child, name)

    def described(node, name):
        if node.tag == "enum-decl":
            for value in node.findall("enumerator"):
                yield f"{name} {value.get('name')} = {value.get('value')}"
            return
        if node.get("is-declaration-only") == "yes":
            return
        yield f"{name} has {node.get('size-in-bits')} bits"
        for member in node.findall("data-member"):
            if member.get("layout-offset-in-bits"):
                what = member.find("var-decl").get("name")
                yield f"{name}::{what} at bit {member.get('layout-offset-in-bits')}"
        yield from walk(node, name)

    yield from walk(xml.fromstring(text), "")


def main(description, types, *libraries, update):
    now = {line for library in libraries for line in symbols(library)}
    if len(now) < 100:
        sys.exit(f"FAILED: {len(now)} symbols, which cannot be all")
    path, has_layouts = Path(description), shutil.which("abidw") is not None
    if has_layouts:
        now |= set(layouts(types))
    elif update:
        sys.exit("FAILED: abidw is not installed")
    if update:
        path.write_text("".join(f"{line}\n" for line in sorted(now)))
        print(f"{path}: {len(now)} lines")
        return 0
    then = {line for line in path.read_text().splitlines() if has_layouts or line[:3] == "lib"}
    gone, new = sorted(then - now), sorted(now - then)
    for line in [*(f"- {line}" for line in gone), *(f"+ {line}" for line in new)]:
        print(line)
    if gone:
        sys.exit("FAILED: " + BREAKS.format(len(gone), path.name, " ".join(sys.argv)))
    if new:
        print(GROWS.format(len(new)))
    print(f"{len(now)} lines, all of {path.name} among them"
          f"{'' if has_layouts else '; without layouts, because abidw is not installed'}")
    return 0


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--update"]
    sys.exit(main(*words, update="--update" in sys.argv))
