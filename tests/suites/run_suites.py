#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Runs test suites of others under MPI alone and under the interposer, and compares what they say.

    run_suites.py FOLDER [--mpi mpich,openmpi] [--suites mpich,mpi4py,programs] [--out results.md]

FOLDER has one folder for each suite, of which nothing is part of SuCL:

    FOLDER/mpich/test/mpi    sources of MPICH: what an interposer of collectives and requests may
                             touch, in C, and in Fortran 77 where the library has a wrapper for it
    FOLDER/mpi4py/test       sources of mpi4py's tests, of the version that is installed: calls that
                             an older one refuses are errors of single ranks, which then differ
    FOLDER/programs.txt      lines `MPI RANKS COMMAND...`: programs that are built already, as OSU's
                             benchmarks with validation, IMB's with checks, LULESH; right: status 0

Modes are `plain` (not interposed), `default`, and `forced` (SuCL executes whatever it can, from the
first collective on). A test differs if its outcome, or that of one of its parts, is not that of
`plain`. Where one fails in both it is the library's. Exit status: 0 if nothing differs.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = {"plain": None, "default": {},
         "forced": {"SUCL_INTERPOSE_AFTER": "0", "SUCL_INTERPOSE_TRIALS": "0"}}
MPICH_FOLDERS = ("coll", "comm", "errors/coll", "errors/comm", "errors/pt2pt", "errors/session",
                 "threads/coll", "threads/comm", "threads/init", "threads/pt2pt", "session",
                 "pt2pt", "attr", "topo", "errhan", "init", "info", "group", "datatype", "part",
                 "rma", "spawn", "io", "perf", "mpi_t", "f77/coll", "f77/comm", "f77/attr",
                 "f77/datatype", "f77/pt2pt", "f77/topo", "f77/info", "f77/rma")
# What configure of MPICH's tests would find out here.
CONFIGURATION = """
#define HAVE_STDIO_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_STDARG_H 1
#define HAVE_UNISTD_H 1
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_GETRUSAGE 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE_PTHREAD_H 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE__BOOL 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
#define THREAD_PACKAGE_NONE 0
#define THREAD_PACKAGE_POSIX 1
#define MTEST_THREAD_PACKAGE_POSIX 1
"""

# Whether all is right, of how many tests, and those that are known to have failed.
Outcome = collections.namedtuple("Outcome", "right tests failed")
# ends_in_error: a right one has an exit status other than 0.
Test = collections.namedtuple("Test", "suite name ranks command variables ends_in_error",
                              defaults=[False])


def run(command, limit, variables=None, folder=None):
    """Returns the exit status, "late" past the limit, and what was printed."""
    environment = dict(os.environ, **(variables or {}))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", env=environment, cwd=folder,
                               start_new_session=True)
    try:
        text, _ = process.communicate(timeout=limit)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 15)
        try:
            text, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            text, _ = process.communicate()
        return "late", text


class Mpich:
    """MPICH's tests, built with the wrapper of each MPI. What does not build is left out."""

    def __init__(self, folder, options):
        self.root = folder / "mpich/test/mpi"
        self.options = options

    def compiler(self, mpi, wrapper="mpicc"):
        return str(self.options.mpis / mpi / "bin" / wrapper)

    def variables(self, mpi):
        return {"I_MPI_ROOT": str(self.options.mpis / mpi)}  # for Intel MPI's wrapper

    def flags(self, made):
        # A folder in `made`: a header of theirs includes "../dtpoolsconf.h".
        return ["-O1", "-w", "-I", str(made), "-I", str(made / "dtpools"),
                "-I", str(self.root / "include"), "-I", str(self.root / "dtpools/include")]

    def common(self, mpi, made):
        """The objects that all tests have, and those of tests without a main()."""
        (made / "dtpools").mkdir(parents=True, exist_ok=True)
        (made / "mpitestconf.h").write_text(CONFIGURATION)
        (made / "dtpoolsconf.h").write_text("")
        (made / "mtest_mpix.h").write_text("")
        objects = []
        sources = [self.root / f"util/{name}.c"
                   for name in ("mtest", "mtest_common", "mtest_thread", "dtypes", "run_mpitests")]
        for source in [*sources, *sorted(self.root.glob("dtpools/src/*.c"))]:
            target = made / f"{source.stem}.o"
            status, text = run([self.compiler(mpi), *self.flags(made), "-c", str(source), "-o",
                                str(target)], 120, self.variables(mpi))
            if status != 0:
                sys.exit(f"run_suites: {source} cannot be compiled:\n{text}")
            objects.append(str(target))
        with_main = str(made / "run_mpitests.o")
        return [o for o in objects if o != with_main], [with_main]

    def fortran_command(self, mpi, made, folder, name, target):
        """A program of Fortran 77, whose headers with sizes configure would make."""
        for header in self.root.glob(f"{folder}/*.h.in"):
            text = re.sub("@F77_MPI_[A-Z]+@", "integer*8", header.read_text())
            (target.parent / header.stem).write_text(text)
        return [self.compiler(mpi, "mpif77"), "-O1", "-w", "-fallow-argument-mismatch",
                "-I", str(target.parent), "-I", str(self.root / folder),
                str(self.root / folder / f"{name}.f"), str(self.root / "util/mtest_f77.f"),
                "-o", str(target)]

    def lines(self):
        for folder in MPICH_FOLDERS:
            listed = [p for p in (self.root / folder / n for n in ("testlist.in", "testlist"))
                      if p.exists()]
            # `@...@` before a name is where configure may leave the test out.
            for line in listed[0].read_text().splitlines() if listed else []:
                words = re.sub("@[a-z_]+@", "", line.split("#")[0]).split()
                if len(words) < 2 or not words[1].isdigit():
                    continue
                given = [w[4:] for w in words[2:] if w.startswith("arg=")]
                variables = dict(w[4:].split("=", 1) for w in words[2:] if w.startswith("env="))
                memory = sum(float(w[4:]) for w in words[2:] if w.startswith("mem="))  # GB
                if memory > self.options.memory:
                    continue
                fails = "resultTest=TestStatus" in words or "resultTest=TestErrFatal" in words
                yield folder, words[0], int(words[1]), given, variables, fails

    def tests(self, mpi):
        made = self.options.build / mpi / "mpich"
        least, most = self.options.min_ranks, self.options.max_ranks
        wanted = [line for line in self.lines() if least <= line[2] <= most
                  and re.search(self.options.only, f"{line[0]}/{line[1]}")]
        common, with_main = self.common(mpi, made)

        def build(key):
            folder, name = key
            fortran = folder.startswith("f77/")
            source = self.root / folder / f"{name}{'.f' if fortran else '.c'}"
            target = made / folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not source.exists() or (fortran and
                                       not os.path.exists(self.compiler(mpi, "mpif77"))):
                return key, False
            if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
                return key, True
            runs = "int run(const char" in source.read_text(errors="replace")
            command = [self.compiler(mpi), *self.flags(made), str(source), *common,
                       *(with_main if runs else []), "-o", str(target), "-lpthread", "-lm"]
            if fortran:
                command = self.fortran_command(mpi, made, folder, name, target)
            status, _ = run(command, 120, self.variables(mpi))
            if status != 0:
                print(f"{mpi} mpich {folder}/{name} is left out: it cannot be built", flush=True)
            return key, status == 0

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            built = dict(pool.map(build, sorted({line[:2] for line in wanted})))
        for folder, name, ranks, given, variables, fails in wanted:
            if built[folder, name]:
                yield Test("mpich", " ".join([f"{folder}/{name}", *given]), ranks,
                           [str(made / folder / name), *given], variables, fails)

    @staticmethod
    def outcome(test, status, text):
        if test.ends_in_error:
            return Outcome(status not in (0, "late"), 1, set())
        return Outcome(status == 0 and "No Errors" in text, 1, set())


class Mpi4py:
    """mpi4py's tests, each file as one program."""

    def __init__(self, folder, options):
        self.root = folder / "mpi4py/test"
        self.options = options

    def tests(self, mpi):
        for path in sorted(self.root.glob("test_*.py")):
            if path.stem in ("test_spawn", "test_dynproc") or not re.search(self.options.only,
                                                                            path.stem):
                continue
            for ranks in self.options.ranks:
                yield Test("mpi4py", path.stem, ranks,
                           [sys.executable, "-B", str(self.root / "main.py"), "-v", "--no-threads",
                            "-i", path.stem + r"\b"], {})

    @staticmethod
    def outcome(_, status, text):
        ran = [int(n) for n in re.findall(r"^Ran (\d+) test", text, re.MULTILINE)]
        names = re.findall(r"^(?:FAIL|ERROR): (\w+ \(\S+\))", text, re.MULTILINE)
        return Outcome(status == 0 and min(ran, default=0) > 0, min(ran, default=1), set(names))


class Programs:
    """Programs that are built already."""

    def __init__(self, folder, options):
        self.file = folder / "programs.txt"
        self.options = options

    def tests(self, mpi):
        for line in self.file.read_text().splitlines():
            words = shlex.split(line, comments=True)
            if len(words) > 2 and words[0] == mpi and re.search(self.options.only, line):
                yield Test("programs", " ".join(words[2:]), int(words[1]), words[2:], {})

    @staticmethod
    def outcome(_, status, text):
        # IMB with checks prints in the last column of a table how much results differ.
        defects = {float(found) for table in text.split(" defects\n")[1:] for found in
                   re.findall(r"^ +\d+ .* ([\d.]+)$", table.split("\n\n")[0], re.MULTILINE)}
        return Outcome(status == 0 and "FAIL" not in text and not defects - {0}, 1, set())


SUITES = {"mpich": (Mpich, "mpich/test/mpi"), "mpi4py": (Mpi4py, "mpi4py/test"),
          "programs": (Programs, "programs.txt")}


def start(test, mpi, mode, options):
    command = [str(options.sucl), "run", "-n", str(test.ranks), "--mpi", mpi]
    if MODES[mode] is not None:
        command.append("--interpose")
    return run([*command, "--", *test.command], options.limit,
               {**test.variables, **(MODES[mode] or {})}, options.build)


def compare(test, mpi, suite, options, counts):
    """Prints and returns how the interposed outcomes differ from the plain one."""
    differences = []
    plain_status, text = start(test, mpi, "plain", options)
    plain = suite.outcome(test, plain_status, text)
    counts["tests"] += plain.tests
    counts["plain"] += max(len(plain.failed), not plain.right)
    for mode in options.modes:
        status, text = start(test, mpi, mode, options)
        found = suite.outcome(test, status, text)
        different = sorted(found.failed - plain.failed)
        if not found.right and not different and (plain.right or
                                                  (status == "late") > (plain_status == "late")):
            different = [f"status {status}"]
        counts["better"] += len(plain.failed - found.failed) + (found.right and not plain.right and
                                                                not plain.failed)
        counts[mode] += len(different)
        for name in different:
            differences.append(f"{mpi} {mode} {test.suite} {test.name} -n {test.ranks} {name}")
        if different:
            log = options.build / "logs" / f"{mpi}-{mode}-{len(list_of(options))}.txt"
            log.write_text(f"{differences[-1]}\nstatus {status}\n{text}")
    return differences


def list_of(options):
    logs = options.build / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    return list(logs.iterdir())


def options_of(arguments):
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--mpi", default="openmpi,mpich,impi", help="flavours, as sucl run has them")
    p.add_argument("--suites", default=",".join(SUITES))
    p.add_argument("--modes", default="default,forced")
    p.add_argument("--only", default="", help="a regular expression for names")
    p.add_argument("--ranks", default="2,3", help="of mpi4py's tests; others say it themselves")
    p.add_argument("--min-ranks", type=int, default=1, help="tests with fewer are left out")
    p.add_argument("--max-ranks", type=int, default=4, help="tests with more are left out")
    p.add_argument("--memory", type=float, default=4, help="GB: tests of MPICH's "
                   "with more are left out")
    p.add_argument("--limit", type=float, default=300, help="seconds for one test")
    p.add_argument("--minutes", type=float, help="of one suite's tests: start none after that")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/suites")
    p.add_argument("--sucl", type=pathlib.Path, default=ROOT / "build/default/bin/sucl")
    p.add_argument("--mpis", type=pathlib.Path, default=ROOT / ".venv/mpi")
    p.add_argument("--out", type=pathlib.Path, help="file for the table")
    options = p.parse_args(arguments)
    options.folder = options.folder.resolve()
    options.build = options.build.resolve()
    options.sucl = options.sucl.resolve()
    options.modes = options.modes.split(",")
    options.ranks = [int(r) for r in options.ranks.split(",")]
    return options


def main(arguments):
    options = options_of(arguments)
    list_of(options)
    rows, differences = [], []
    for mpi in options.mpi.split(","):
        for name in options.suites.split(","):
            kind, folder = SUITES[name]
            if not (options.folder / folder).exists():
                continue
            suite = kind(options.folder, options)
            counts = collections.Counter()
            until = None
            for test in suite.tests(mpi):
                until = until or time.monotonic() + 60 * (options.minutes or float("inf"))
                if time.monotonic() > until:
                    break
                alone = counts["plain"]
                found = compare(test, mpi, suite, options, counts)
                same = "the same" if counts["plain"] == alone else "fails alone"
                print("\n".join(found) or f"{mpi} {name} {test.name} -n {test.ranks}: {same}",
                      flush=True)
                differences += found
            rows.append([mpi, name, counts["tests"], counts["plain"],
                         *(counts[m] for m in options.modes), counts["better"]])
    head = ["MPI", "suite", "tests", "fail alone", *(f"fail only {m}" for m in options.modes),
            "fail only alone"]
    table = "\n".join("| " + " | ".join(map(str, row)) + " |"
                      for row in [head, ["---"] * len(head), *rows]) + "\n"
    print(table)
    if options.out:
        options.out.write_text(table)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
