#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Does what a page says, from the page itself: run_page.py PAGE PREFIX SOURCE BUILD SCRATCH.

PREFIX is an installation of SuCL, which the page finds in $HOME/sucl; SOURCE has the Makefile, and
BUILD is what has been built of it, $BUILD in commands that readers do not see.

- A fenced block after a paragraph that ends in "`NAME`:" is written to the file NAME.
- An indented block, or a fenced one of sh: its commands are run, one after another, in one shell.
- A fenced block of text: the commands before it have printed each of its lines. "..." is anything,
  and a line that begins with two blanks continues the one before.
- `<!-- page: read -->`: the next block is for reading only.
- `<!-- page: not run: REASON -->`: so are the next commands, which cannot be run by a test.
- `<!-- page: as SED -->`: the next commands are run after this edit by `sed -E`, as with sizes that
  take less time, or without a line that needs what is not there.
- `<!-- page: in FILE before TEXT -->`, or `after`, or `instead of`: the next block is put there in
  the file, at its first line with TEXT; `instead of TEXT until END`: of all lines before one with
  END.
- `<!-- page: run COMMAND -->`: a command that a reader need not see.
- `<!-- page: fails -->`: the last command of the next block ends with a status other than 0.
- `<!-- page: until -->`: the next commands are repeated until they have printed what follows them.

- `<!-- page: all listings read -->`: blocks of other languages that are no files are for reading.
- `<!-- page: all in a clone -->`: the commands are run in a folder with the files of SOURCE, with
  BUILD as build/default.

Any other block is an error, so that no block is left out by mistake. `make` checks that its targets
exist, because what they do has been done.

scripts/check_docs.py sees to it that every page with commands is run, by CMakeLists.txt, or says
`<!-- page: none: REASON -->`.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 240  # seconds: only a command that hangs takes so long
MAKE = """#!/bin/sh
# Only whether the targets exist: they have been made.
cd '{source}' && exec {make} --dry-run "$@" >/dev/null
"""


class Fault(Exception):
    pass


class Block:
    def __init__(self, line, language, text, before, directives):
        self.line, self.language, self.text = line, language, text
        self.before, self.directives = before, directives

    @property
    def is_commands(self):
        return self.language in ("", "sh") and not self.file

    @property
    def file(self):
        named = re.search(r"`([\w./-]+)`:$", self.before)
        return named[1] if named and self.language not in ("", "text") else None


def read_blocks(text):
    """What is said of all blocks, and the blocks in their order, each with what is before it."""
    lines, at, before, directives, blocks, general = text.splitlines(), 0, "", [], [], []
    while at < len(lines):
        line, first = lines[at], at + 1
        at += 1
        if said := re.fullmatch(r"<!-- page: (.*) -->", line):
            (general if said[1].startswith("all ") else directives).append(said[1])
            continue
        if fence := re.fullmatch(r"```(\w*)", line):
            body = []
            while lines[at] != "```":
                body.append(lines[at])
                at += 1
            at += 1
            language = fence[1] or "text"
        elif line.startswith("    ") and (first == 1 or not lines[first - 2]):
            body, language = [line[4:]], ""
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at]):
                body.append(lines[at][4:])
                at += 1
        else:
            before = line if line else before
            continue
        blocks.append(Block(first, language, "\n".join(body).rstrip() + "\n", before, directives))
        before, directives = "", []
    if directives:
        raise Fault(f"nothing follows '{directives[0]}'")
    return general, blocks


def commands_of(text):
    """Complete commands: a line, or several where one goes on."""
    command = ""
    for line in text.splitlines():
        command += line + "\n"
        if line.endswith("\\"):
            continue
        if subprocess.run(["bash", "-n"], input=command, text=True, capture_output=True).returncode:
            continue
        if command.strip():
            yield command
        command = ""
    if command:
        raise Fault(f"this is no complete command: {command}")


class Shell:
    """A shell that lives as long as the page, so that variables and jobs do."""

    def __init__(self, folder, variables):
        self.folder, self.output = folder, folder / "../output"
        self.result, end = os.pipe()
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, cwd=folder, env=variables,
                                        pass_fds=[end], start_new_session=True)
        self.status_to = end
        self.command = folder / "../command"

    def run(self, command):
        """Its status; what it prints is added to the output."""
        self.command.write_text(command)
        said = f". '{self.command}' >>'{self.output}' 2>&1 </dev/null; echo $? >&{self.status_to}\n"
        self.process.stdin.write(said.encode())
        self.process.stdin.flush()
        if not select.select([self.result], [], [], LIMIT)[0]:
            raise Fault(f"it has not ended in {LIMIT} s")
        return int(os.read(self.result, 100).split()[0])

    def close(self):
        """Ends it and what it has started: all are of its session."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.stdin.close()
        self.process.wait()


def expected_lines(text):
    lines = []
    for line in text.splitlines():
        if line.startswith("  ") and lines:
            lines[-1] += " " + line
        elif line.strip():
            lines.append(line)
    return [" ".join(line.split()) for line in lines]


def missing_line(expected, output):
    squeezed = " ".join(output.split())
    for line in expected:
        if not re.search(re.escape(line).replace(r"\.\.\.", ".*?"), squeezed):
            return line
    return None


def make_clone(folder, source, build):
    """What a reader has after `make build`, of links, so that what a page writes stays here."""
    (folder / "build").mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in ("build", "sucl", ".git", ".venv"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build/default").symlink_to(build)
    (folder / "sucl").symlink_to(build / "bin/sucl")


class Page:
    def __init__(self, path, prefix, source, build, scratch):
        self.path = path
        self.home, self.done = scratch / "home", 0
        self.general, self.blocks = read_blocks(path.read_text(encoding="utf-8"))
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "bin").mkdir(parents=True)
        self.home.mkdir()
        (self.home / "sucl").symlink_to(prefix)
        make = scratch / "bin/make"
        make.write_text(MAKE.format(source=source, make=shutil.which("make")))
        make.chmod(0o755)
        keep = {name: os.environ[name] for name in ("CCACHE_DIR", "LANG", "OMPI_MCA_btl")
                if name in os.environ}
        self.folder = self.home
        if "all in a clone" in self.general:
            self.folder = scratch / "clone"
            make_clone(self.folder, source, build)
        self.shell = Shell(self.folder, keep | {
            "HOME": str(self.home), "BUILD": str(build),
            "PATH": f"{scratch / 'bin'}:/usr/local/bin:/usr/bin:/bin"})

    def run(self):
        try:
            for block, after in zip(self.blocks, [*self.blocks[1:], None]):
                try:
                    self.do(block, after)
                except Fault as fault:
                    output = self.printed()
                    raise Fault(f"{self.path}:{block.line}: {fault}\n"
                                f"--- the block\n{block.text}--- printed\n{output}") from None
        finally:
            self.shell.close()
        return self.done

    def printed(self):
        return self.shell.output.read_text() if self.shell.output.exists() else ""

    def do(self, block, after):
        reading = any(d == "read" or d.startswith("not run: ") for d in block.directives)
        for directive in block.directives:
            if directive.startswith("run ") and self.shell.run(directive[4:] + "\n"):
                raise Fault(f"'{directive[4:]}' fails")
        edit = next((d for d in block.directives if d.startswith("in ")), None)
        if reading or block.language == "text":
            self.done += not reading  # text was looked for with its commands
        elif not block.is_commands and not block.file and not edit and (
                "all listings read" in self.general):
            pass
        elif edit:
            self.edit(block, edit)
        elif block.file:
            target = self.folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
            self.done += 1
        elif block.is_commands:
            self.commands(block, after)
        else:
            raise Fault("it is neither a file nor commands, and no comment says what it is")

    @staticmethod
    def line_with(text, lines, begin, name):
        at = next((i for i in range(begin, len(lines)) if text in lines[i]), None)
        if at is None:
            raise Fault(f"no line of {name} has '{text}'")
        return at

    def edit(self, block, directive):
        said = re.fullmatch(r"in (\S+) (before|after|instead of) (.*?)(?: until (.*))?", directive)
        if not said:
            raise Fault(f"'{directive}' is no edit")
        target = self.folder / said[1]
        lines = target.read_text().splitlines()
        at = self.line_with(said[3], lines, 0, said[1])
        end = at + (said[2] != "before")
        if said[4]:
            end = self.line_with(said[4], lines, end, said[1])
        lines[at + (said[2] == "after"):end] = block.text.splitlines()
        target.write_text("\n".join(lines) + "\n")
        self.done += 1

    def once(self, block, expected):
        """What is wrong after the commands of a block have been run; None if nothing is."""
        self.shell.output.write_text("")
        status, text = 0, block.text
        for directive in block.directives:
            if directive.startswith("as "):
                text = subprocess.run(["sed", "-E", directive[3:]], input=text, text=True,
                                      capture_output=True, check=True).stdout
        for command in commands_of(text):
            if status:
                return f"a command before '{command.strip()}' ended with status {status}"
            status = self.shell.run(command)
        if (status != 0) != ("fails" in block.directives):
            return f"it ended with status {status}"
        missing = missing_line(expected, self.printed())
        return missing and f"it has not printed: {missing}"

    def commands(self, block, after):
        expected = expected_lines(after.text) if after and after.language == "text" else []
        ends = time.monotonic() + LIMIT
        wrong = self.once(block, expected)
        while wrong and "until" in block.directives and time.monotonic() < ends:
            time.sleep(0.2)
            wrong = self.once(block, expected)
        if wrong:
            raise Fault(wrong)
        self.done += 1


def main(*arguments):
    try:
        page = Page(*(Path(argument).resolve() for argument in arguments))
        done = page.run()
    except Fault as fault:
        sys.exit(f"FAILED: {fault}")
    print(f"{page.path.name}: {done} blocks")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
