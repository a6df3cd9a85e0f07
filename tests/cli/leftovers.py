# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Whatever way the program and its jobs end, nothing stays in /dev/shm and the folder for temporary
files: leftovers.py SUCL FLAVOUR LEAVER. FLAVOUR is an MPI, or "info" for the program alone.

Runs in a mount namespace of its own, so that what is there is its own. Exit status 77: this cannot
be done here."""

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


def hidden():
    """Starts this script again where /dev/shm is empty."""
    flags = ["--mount"] if os.getuid() == 0 else ["--mount", "--map-root-user"]
    if subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL).returncode:
        print("skipped: there are no mount namespaces for this user")
        sys.exit(77)
    script = 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"'
    os.environ["SUCL_TEST_HIDDEN"] = "1"
    os.execvp("unshare", ["unshare", *flags, "sh", "-c", script, "sh", sys.executable, *sys.argv])


def left(folder):
    return [str(path) for where in ("/dev/shm", folder) for path in Path(where).iterdir()]


def wait_for(files, process):
    until = time.monotonic() + LIMIT
    while not all(Path(f).exists() for f in files):
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def call(name, arguments, code=None, after=None, number=signal.SIGTERM, ready=None):
    """Runs sucl; sends a signal after some seconds, or once both ranks are `ready`, if asked to.
    Returns whether nothing is left."""
    with tempfile.TemporaryDirectory(prefix="sucl_left_") as folder:
        environment = dict(os.environ, TMPDIR=folder)
        process = subprocess.Popen([PROGRAM, *arguments], env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        began = True
        if ready is not None:
            began = wait_for([f"{ready}.{rank}" for rank in range(2)], process)
        if after is not None:
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
        print(f"{name}: {'nothing left' if not problems else problems}", flush=True)
        return not problems


def main():
    if FLAVOUR == "info":
        good = [call("info", ["info"], code=0),
                call("info of a wrong file", ["info", "--config", "/nowhere"], code=1)]
        for number in (signal.SIGTERM, signal.SIGINT):
            for after in (0.3, 0.6, 1.0, 1.5):
                good.append(call(f"info and signal {number} after {after} s", ["info"],
                                 after=after, number=number))
        return all(good)
    run = ["run", "-n", "2", "--mpi", FLAVOUR, "--", LEAVER]
    good = [call("return", [*run, "return"], code=0)]
    good += [call(how, [*run, how]) for how in ("exit", "throw", "abort", "segv")]
    for number in (signal.SIGTERM, signal.SIGINT):
        with tempfile.TemporaryDirectory(prefix="sucl_ready_") as folder:
            file = f"{folder}/ready"
            good.append(call(f"signal {number}", [*run, "wait", file], number=number, ready=file))
    good.append(call("bench", ["bench", "allreduce", "-n", "2", "--mpi", FLAVOUR, "--sizes", "4",
                               "--iterations", "2"], code=0))
    return all(good)


if __name__ == "__main__":
    if os.environ.get("SUCL_TEST_HIDDEN") != "1":
        hidden()
    sys.exit(0 if main() else 1)
