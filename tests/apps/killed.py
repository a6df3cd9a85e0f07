# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Kills one rank of an application that runs, in each variant; the job has to end, and to say which
rank it was.

    killed.py SUCL VARIANTS PROGRAM ARGUMENTS...   with arguments that let it run for long

VARIANTS: names with commas between them.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


def descendants(pid):
    """Processes below `pid`, at any depth."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            pass  # it has ended meanwhile
    below, found = {pid}, True
    while found:
        found = {p for p, parent in parents.items() if parent in below} - below
        below |= found
    return below - {pid}


def ranks(pid, program):
    """Rank numbers and processes of the program."""
    result = {}
    for p in descendants(pid):
        try:
            if os.readlink(f"/proc/{p}/exe") != os.path.realpath(program):
                continue
            text = pathlib.Path(f"/proc/{p}/environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        for entry in text.split("\0"):
            name, _, value = entry.partition("=")
            if name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
                result[int(value)] = p
    return result


def wait_until(what, job, log, seconds=60):
    """Waits for something to become true while the job runs."""
    deadline = time.monotonic() + seconds
    while not what():
        assert job.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def kill_one(sucl, program, arguments, variant):
    """Kills rank 1 among the iterations."""
    command = [sucl, "run", "-n", "2", "--timeout", "20", "--", program, "--variant", variant,
               *arguments]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with log.open("w", encoding="utf-8") as file:
            job = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: "all ranks are ready" in log.read_text(errors="replace"), job, log)
            time.sleep(0.2)  # into the iterations
            os.kill(ranks(job.pid, program)[1], signal.SIGKILL)
            status = job.wait(timeout=40)
        finally:
            for p in descendants(job.pid):
                os.kill(p, signal.SIGKILL)
            if job.poll() is None:
                job.kill()
        text = log.read_text(errors="replace")
    print(text)
    assert status != 0, "the job says that all is well"
    name = pathlib.Path(program).name
    assert re.search(rf"{name}: rank 0:.*rank 1", text), "rank 0 does not name the other one"


for kind in sys.argv[2].split(","):
    kill_one(sys.argv[1], sys.argv[3], sys.argv[4:], kind)
