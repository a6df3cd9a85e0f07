#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Fails where a tracked or new file has a word that scripts/words.txt keeps out."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = "scripts/words.txt"
KINDS = (".c", ".cff", ".cmake", ".cpp", ".def", ".h", ".hpp", ".in", ".json", ".md", ".py", ".sh",
         ".toml", ".txt", ".yml", ".ci/run", ".ci/nightly", "Containerfile", "Makefile")
ROW = re.compile(r"(?P<old>.+?) => (?P<new>[^\[]+?)(?: \[(?P<excepted>.+)\])?$")


class Word:
    def __init__(self, line):
        row = ROW.match(line)
        if not row:
            sys.exit(f"{LIST}: not 'REGEX => WORD [PATHS: reason]': {line}")
        self.old, self.new = row["old"], row["new"]
        self.pattern = re.compile(rf"\b(?:{self.old})(?!\w)", re.IGNORECASE)
        reasons = (row["excepted"] or "").split("; ")
        self.excepted = [re.compile(reason.partition(": ")[0]) for reason in reasons if reason]

    def allowed_in(self, path):
        return any(paths.match(path) for paths in self.excepted)


def words():
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    return [Word(line) for line in lines if line and not line.startswith("#")]


def files():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [f for f in listed.stdout.splitlines()
            if f.endswith(KINDS) and f != LIST and (ROOT / f).is_file()]


def main():
    all_words = words()
    any_word = re.compile(r"\b(?:" + "|".join(w.old for w in all_words) + r")(?!\w)", re.IGNORECASE)
    found = 0
    for path in files():
        text = path + "\n" + (ROOT / path).read_text(encoding="utf-8", errors="replace")
        if not any_word.search(text):
            continue
        for number, line in enumerate(text.splitlines()):
            for word in all_words if any_word.search(line) else ():
                match = word.pattern.search(line)
                if match and not word.allowed_in(path):
                    where = f"{path}:{number}" if number else path
                    print(f"{where}: '{match[0]}'; write: {word.new}", file=sys.stderr)
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
