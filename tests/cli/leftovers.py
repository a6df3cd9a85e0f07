# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Whatever way the program and its jobs end, nothing stays in /dev/shm and the folder for temporary
files: leftovers.py SUCL FLAVOUR LEAVER. FLAVOUR is an MPI, or "info" for the program alone.

Needs a /dev/shm of its own (own_shm.sh), so that what is there is its own. Exit status 77: there
is none."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, FLAVOUR, LEAVER = sys.argv[1:4]
LIMIT = 120  # seconds for one call
SETTLE = 20  # seconds until the last process of a job must have cleaned up


def left(folder):
    return [str(path) for where in ("/dev/shm", folder) for path in Path(where).iterdir()]


def wait_for(files, process):
    until = time.monotonic() + LIMIT
    while not all(Path(f).exists() for f in files):
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def wait_for_memory(process):
    """Until something is in /dev/shm, which may be there for a few milliseconds only."""
    while process.poll() is None and not os.listdir("/dev/shm"):
        time.sleep(0.0005)


def call(name, arguments, code=None, after=None, number=signal.SIGTERM, ready=None, cut=False):
    """Runs sucl; sends a signal after some seconds, once both ranks are `ready`, or while there is
    shared memory (after="memory"), if asked to; `cut`: long before it ends, so that its status may
    not be 0. Returns whether nothing is left and the status is right."""
    with tempfile.TemporaryDirectory(prefix="sucl_left_") as folder:
        environment = dict(os.environ, TMPDIR=folder)
        process = subprocess.Popen([PROGRAM, *arguments], env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        began = True
        if ready is not None:
            began = wait_for([f"{ready}.{rank}" for rank in range(2)], process)
        if after == "memory":
            wait_for_memory(process)
        elif after is not None:
            time.sleep(after)
        if after is not None or ready is not None:
            process.send_signal(number)
        status = process.wait(LIMIT)
        until = time.monotonic() + SETTLE
        while left(folder) and time.monotonic() < until:
            time.sleep(0.1)
        problems = left(folder)
        if not began:
            problems.append("the ranks never began")
        if code is not None and status != code:
            problems.append(f"status {status}, not {code}")
        if cut and status == 0:
            problems.append("status 0")
        print(f"{name}: {'nothing left' if not problems else problems}", flush=True)
        return not problems


def main():
    if FLAVOUR == "info":
        good = [call("info", ["info"], code=0),
                call("info of a wrong file", ["info", "--config", "/nowhere"], code=1)]
        for number in (signal.SIGTERM, signal.SIGINT):
            for after in (0.3, 1.0, "memory", "memory"):
                good.append(call(f"info and signal {number} after {after}", ["info"],
                                 after=after, number=number))
        return all(good)
    run = ["run", "-n", "2", "--mpi", FLAVOUR, "--", LEAVER]
    good = [call("return", [*run, "return"], code=0)]
    good += [call(how, [*run, how]) for how in ("exit", "throw", "abort", "segv")]
    for number in (signal.SIGTERM, signal.SIGINT):
        with tempfile.TemporaryDirectory(prefix="sucl_ready_") as folder:
            file = f"{folder}/ready"
            good.append(call(f"signal {number}", [*run, "wait", file], number=number, ready=file))
    for after in (0.06, 0.1, 0.14):  # while the launcher starts the ranks
        good.append(call(f"signal after {after}", [*run, "wait", "/nowhere/ready"], after=after,
                         cut=True))
    good.append(call("bench", ["bench", "allreduce", "-n", "2", "--mpi", FLAVOUR, "--sizes", "4",
                               "--iterations", "2"], code=0))
    return all(good)


if __name__ == "__main__":
    if os.environ.get("SUCL_TEST_OWN_SHM") != "1":
        print("skipped: this user can make no /dev/shm of its own")
        sys.exit(77)
    sys.exit(0 if main() else 1)
