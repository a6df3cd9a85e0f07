# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Kills one rank of an application that runs; the job has to end, and to say which rank it was."""

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


def main():
    sucl, program = sys.argv[1:3]
    command = [sucl, "run", "-n", "2", "--timeout", "3", "--", program, "--size", "16x16x16",
               "--iterations", "10000000"]
    with tempfile.TemporaryFile() as log:
        job = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 60
            started = {}
            while time.monotonic() < deadline and job.poll() is None and len(started) < 2:
                time.sleep(0.2)
                started = ranks(job.pid, program)
            assert len(started) == 2, f"the ranks did not start: {started}"
            time.sleep(4)  # into the iterations; earlier is right too
            os.kill(started[1], signal.SIGKILL)
            status = job.wait(timeout=40)
        finally:
            for p in descendants(job.pid):
                os.kill(p, signal.SIGKILL)
            if job.poll() is None:
                job.kill()
        log.seek(0)
        text = log.read().decode(errors="replace")
    print(text)
    assert status != 0, "the job says that all is well"
    assert re.search(r"halo: rank 0:.*rank 1", text), "rank 0 does not name the other one"


main()
