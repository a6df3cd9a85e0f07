#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Loses one rank of a job, in every phase, in every way, and judges how the others end.

    kills.py --sucl build/default/bin/sucl --victim build/default/tests/torture_victim --cases 500

Each case is PHASE:ACTION:MPI:RANKS:VICTIM:MICROSECONDS; --case runs one again. Asserted: every
other rank is told, and ends, within the timeout and --slack seconds; what it is told names the lost
rank and no other; the launcher's status is not 0; no process, no file in /dev/shm or in the folder
for temporary files is left. A case that fails may be run again, alone (--again), for machines that
are busy with something else. Prints a line for each case that fails, and a summary as JSON. Exit
status: 0, or 1 if a case failed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# A phase, and how far into it the victim is struck, in microseconds.
PHASES = {"init": 900000, "world": 60000, "allocate": 60000, "dup": 60000, "split": 60000,
          "compile": 60000, "first": 60000, "blocking": 150000, "async": 150000,
          "persistent": 150000, "replay": 150000, "messages": 150000, "group": 150000,
          "deallocate": 60000, "end": 60000, "finalise": 30000}
ACTIONS = ("kill", "stop", "segv", "abort", "throw", "exit")
MPIS = ("openmpi", "mpich", "impi", "local")  # the last is no MPI, but a job without one
# A rank that is named only because it is the other side of a message.
PEERS = re.compile(r"\b(send|recv|sendrecv)\b( #\d+)?( (from|to) rank \d+)+")
# The rank that speaks.
SPEAKER = re.compile(r"\[[^\]]*\brank \d+(, [^\]]*)?\]")
NAMED = re.compile(r"\branks? (\d+(?:(?:, ?|-| and )\d+)*)")

Case = collections.namedtuple("Case", "phase action mpi ranks victim delay")


def times_of(seconds):
    return ", ".join(f"{r}: {s:.2f}" for r, s in sorted(seconds.items())) + " s"


def text_of(case):
    return ":".join(map(str, case))


def draw(options):
    """As many cases as asked for; phases, actions and MPIs each in turn, so that all occur."""
    dice = random.Random(options.seed)
    kinds = [(p, a, m) for p in options.phases for a in options.actions for m in options.mpis]
    dice.shuffle(kinds)
    # Neighbours in the list differ in phase, so that a short list has many.
    earlier = collections.Counter()
    turns = []
    for i, (phase, _, _) in enumerate(kinds):
        turns.append((earlier[phase], i))
        earlier[phase] += 1
    order = [i for _, i in sorted(turns)]
    cases = []
    for i in range(options.cases):
        phase, action, mpi = kinds[order[i % len(kinds)]]
        ranks = dice.choice(options.ranks)
        cases.append(Case(phase, action, mpi, ranks, dice.randrange(ranks),
                          dice.randrange(1, PHASES[phase])))
    return cases


def processes_with(mark):
    """Processes whose environment has this word."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            pass  # it has ended, or belongs to another user
    return found


def is_alive(pid):
    """Whether a process runs or is stopped."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def in_use():
    """Names in /dev/shm that a process has mapped or open."""
    names = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            for line in (entry / "maps").read_text().splitlines():
                if "/dev/shm/" in line:
                    names.add(line.split("/dev/shm/", 1)[1])
            for file in (entry / "fd").iterdir():
                target = os.readlink(file)
                if target.startswith("/dev/shm/"):
                    names.add(target[len("/dev/shm/"):])
        except OSError:
            pass
    return names


def left_in_memory(before):
    """Names that are new in /dev/shm and in use by no process. A job beside this one may be about
    to remove some."""
    deadline = time.monotonic() + 10
    while True:
        kept = set(os.listdir("/dev/shm")) - before
        kept = kept and kept - in_use()
        if not kept or time.monotonic() > deadline:
            return kept
        time.sleep(0.2)


class Run:
    """One case, from start to end."""

    def __init__(self, case, options):
        self.case, self.options = case, options
        self.failures = []
        self.ended = {}  # rank: seconds after the strike
        self.heard = {}  # the same, of when it was told
        self.told = {}
        self.strike = None
        self.output = ""
        self.status = None

    def fail(self, text):
        self.failures.append(text)

    def execute(self):
        case, options = self.case, self.options
        with tempfile.TemporaryDirectory(prefix="torture") as folder:
            self.folder = pathlib.Path(folder)
            temporary = self.folder / "tmp"
            temporary.mkdir()
            mark = f"TORTURE_FOLDER={folder}"
            environment = dict(os.environ, TORTURE_FOLDER=folder, TMPDIR=str(temporary),
                               OMPI_MCA_btl="^ofi")
            before = set(os.listdir("/dev/shm"))
            how = ["--launcher", "local"] if case.mpi == "local" else ["--mpi", case.mpi]
            command = [options.sucl, "run", "-n", str(case.ranks), *how, "--timeout",
                       str(options.timeout), "--", options.victim, case.phase, case.action,
                       str(case.victim), str(case.delay)]
            with open(self.folder / "log", "wb") as log:
                job = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)
                try:
                    self.watch(job)
                    self.finish(job, mark.encode())
                finally:
                    self.clear(job, mark.encode())
            self.output = (self.folder / "log").read_text(errors="replace")
            self.judge(temporary, before)
        return self

    def pids(self):
        found = {}
        for rank in range(self.case.ranks):
            try:
                found[rank] = int((self.folder / f"rank.{rank}").read_text())
            except (OSError, ValueError):
                pass
        return found

    def watch(self, job):
        """Until every survivor has ended, or has had far more time than it should need."""
        begun = time.monotonic()
        limit = self.options.timeout + self.options.slack
        while True:
            if self.strike is None:
                try:
                    self.strike = float((self.folder / "strike").read_text())
                except (OSError, ValueError):
                    if time.monotonic() > begun + 90:
                        return self.fail("the victim was never struck")
            pids = self.pids()
            waiting = False
            for rank in range(self.case.ranks):
                if rank == self.case.victim or rank in self.ended:
                    continue
                if rank in pids and not is_alive(pids[rank]):
                    self.ended[rank] = time.monotonic() - (self.strike or time.monotonic())
                elif job.poll() is None:
                    waiting = True
            if not waiting and (self.strike is not None or job.poll() is not None):
                return None
            if self.strike is not None and time.monotonic() > self.strike + limit + 10:
                return None
            time.sleep(0.01)

    def finish(self, job, mark):
        """The launcher has to end by itself, except for a victim that is stopped."""
        stopped = self.pids().get(self.case.victim) if self.case.action == "stop" else None
        try:
            self.status = job.wait(timeout=1.5 if stopped else 15)
        except subprocess.TimeoutExpired:
            if stopped:
                try:
                    os.kill(stopped, signal.SIGKILL)
                except OSError:
                    pass
            try:
                self.status = job.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.fail("the launcher does not end")
        deadline = time.monotonic() + 5
        while processes_with(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = processes_with(mark)
        if left:
            self.fail(f"{len(left)} processes are left: " + ", ".join(map(name_of, left)))

    def clear(self, job, mark):
        for pid in processes_with(mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if job.poll() is None:
            job.kill()
            job.wait()

    def judge(self, temporary, before):
        case = self.case
        if not (self.folder / "strike").exists() and not self.failures:
            lines = self.log().strip().splitlines()
            self.fail("the job ended before the victim was struck" +
                      (f": {lines[-1]}" if lines else ""))
        for rank in range(case.ranks):
            if rank != case.victim:
                self.judge_survivor(rank)
        if self.status == 0:
            self.fail("the status of the job is 0")
        kept = left_in_memory(before)
        if kept:
            self.fail("left in /dev/shm: " + ", ".join(sorted(kept)))
        rest = sorted(str(p.relative_to(temporary)) for p in temporary.rglob("*"))
        if rest:
            self.fail("left among temporary files: " + ", ".join(rest[:5]))
        for file in self.folder.glob("other.*"):
            if int(file.suffix[1:]) != case.victim:
                self.fail(f"rank {file.suffix[1:]}: {file.read_text(errors='replace')}")

    def judge_survivor(self, rank):
        case, options = self.case, self.options
        limit = options.timeout + options.slack
        if rank not in self.ended:
            if self.strike is not None and (self.folder / f"rank.{rank}").exists():
                self.fail(f"rank {rank} does not end")
            return
        self.note_heard(rank)
        if self.heard.get(rank, 0) > limit:
            self.fail(f"rank {rank} was told {self.heard[rank]:.1f} s after the strike")
        if self.ended[rank] > limit:
            self.fail(f"rank {rank} ended {self.ended[rank]:.1f} s after the strike")
        try:
            text = (self.folder / f"told.{rank}").read_text(errors="replace")
        except OSError:
            # Ended by the launcher, or through with everything.
            if not (self.folder / f"through.{rank}").exists():
                self.told[rank] = None
                if not re.search(rf"\brank {case.victim}\b", self.log()):
                    self.fail(f"rank {rank} was ended, and nothing names rank {case.victim}")
            return
        self.told[rank] = text
        named = ranks_in(text)
        if named != {case.victim}:
            self.fail(f"rank {rank} is told of ranks {sorted(named)}: {text.strip()}")

    def note_heard(self, rank):
        """From the times of the files, which one clock gives."""
        strike = self.folder / "strike"
        for name in "heard", "told":
            file = self.folder / f"{name}.{rank}"
            if file.exists() and strike.exists():
                self.heard[rank] = file.stat().st_mtime - strike.stat().st_mtime
                return

    def log(self):
        return (self.folder / "log").read_text(errors="replace")


def ranks_in(text):
    """The ranks that an error blames."""
    named = set()
    for names in NAMED.findall(PEERS.sub("", SPEAKER.sub("", text))):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", names):
            named.update(range(int(first), int(last or first) + 1))
    return named


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return str(pid)


def execute(case, options, lock):
    """A case, and again alone where that is asked for."""
    run = Run(case, options).execute()
    for _ in range(options.again):
        if not run.failures:
            break
        with lock:
            run = Run(case, options).execute()
    return run


def list_of(known):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(known)}")
        return names
    return parse


def options_of(arguments):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sucl", required=True, help="the program sucl")
    p.add_argument("--victim", required=True, help="the program torture_victim")
    p.add_argument("--cases", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", action="append", default=[], help="run this one alone")
    p.add_argument("--phases", type=list_of(PHASES), default=list(PHASES))
    p.add_argument("--actions", type=list_of(ACTIONS), default=list(ACTIONS))
    p.add_argument("--mpis", type=list_of(MPIS), default=list(MPIS))
    p.add_argument("--ranks", type=lambda t: [int(n) for n in t.split(",")], default=[2, 3, 4])
    p.add_argument("--timeout", type=float, default=3, help="seconds, of SuCL's watchdog")
    p.add_argument("--slack", type=float, default=2, help="seconds after it")
    p.add_argument("--again", type=int, default=0, help="times that a failed case is run again")
    p.add_argument("--jobs", type=int, default=1, help="cases at once")
    p.add_argument("--seconds", type=float, default=0, help="begin no case after that time")
    p.add_argument("--json", help="file for the summary")
    p.add_argument("--verbose", action="store_true", help="also print what survivors were told")
    return p.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    cases = [Case(*(int(w) if w.isdigit() else w for w in text.split(":")))
             for text in options.case] or draw(options)
    begun = time.monotonic()
    lock = threading.Lock()
    failed, done, slowest, latest = [], 0, 0.0, 0.0
    by_phase = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as threads:
        def one(case):
            if options.seconds and time.monotonic() - begun > options.seconds:
                return None
            return execute(case, options, lock)
        for run in threads.map(one, cases):
            if run is None:
                continue
            done += 1
            by_phase[run.case.phase] += 1
            slowest = max([slowest, *run.ended.values()])
            latest = max([latest, *run.heard.values()])
            if run.failures:
                failed.append({"case": text_of(run.case), "failures": run.failures})
                print(f"FAILED {text_of(run.case)}: " + "; ".join(run.failures), flush=True)
            elif options.verbose:
                print(f"ok {text_of(run.case)}", flush=True)
            if options.verbose:
                print(f"  told after {times_of(run.heard)}; ended after {times_of(run.ended)}")
                print("\n".join(f"  rank {r}: {t}" for r, t in run.told.items()))
                print(run.output)
    summary = {"cases": done, "failed": len(failed), "seed": options.seed,
               "timeout": options.timeout, "slowest": round(slowest, 2),
               "told": round(latest, 2),
               "seconds": round(time.monotonic() - begun, 1), "phases": dict(by_phase),
               "failures": failed}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps({k: v for k, v in summary.items() if k != "failures"}))
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
