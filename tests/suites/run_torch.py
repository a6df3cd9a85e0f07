#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Runs tests of PyTorch with gloo, and with sucl instead, and compares what they say.

    run_torch.py FOLDER [FILE...] [--only NAMES] [--backends gloo,sucl] [--logs FOLDER]

FOLDER is test/distributed of PyTorch's sources, of which nothing is part of SuCL, and a FILE one of
its tests. The Python that runs this has torch, sucl, pytest, expecttest and hypothesis. It prints a
row of a table for each file, and each test that gloo passes and sucl does not. Exit status: 0 if
there is none.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
FILES = ("test_c10d_gloo.py", "test_c10d_object_collectives.py", "test_c10d_spawn_gloo.py",
         "test_functional_api.py", "algorithms/test_join.py", "_composable/test_replicate.py",
         "test_c10d_common.py", "test_device_mesh.py", "test_pg_wrapper.py",
         "test_collective_utils.py", "test_backends.py", "_tensor/test_dtensor.py",
         "_tensor/test_redistribute.py", "_tensor/test_api.py", "_tensor/test_matrix_ops.py",
         "_tensor/test_tensor_ops.py", "_tensor/test_utils.py",
         "tensor/parallel/test_parallelize_api.py", "tensor/parallel/test_tp_style.py")


@contextlib.contextmanager
def sucl_for_gloo():
    """A folder for PYTHONPATH with which torch takes sucl for gloo."""
    with tempfile.TemporaryDirectory() as folder:
        about = pathlib.Path(folder, "sucl_in_place_of_gloo-1.dist-info")
        about.mkdir()
        (about / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: sucl-in-place-of-gloo\nVersion: 1\n")
        (about / "entry_points.txt").write_text(
            "[torch.backends]\nin_place_of_gloo = torch_in_place_of_gloo:install\n")
        yield folder


def outcome(case):
    if case.find("skipped") is not None:
        return "skipped"
    return "passed" if case.find("failure") is None and case.find("error") is None else "failed"


def run(file, backend, options):
    """What became of each test of a file."""
    logs = pathlib.Path(options.logs).resolve()
    logs.mkdir(parents=True, exist_ok=True)
    stem = f"{file.replace('/', '.')}.{backend}"
    report, log = logs / f"{stem}.xml", logs / f"{stem}.log"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "torch_forks",
               f"--junitxml={report}", *(["-k", options.only] if options.only else []), file]
    with sucl_for_gloo() as folder, open(log, "w") as out:
        path = [str(HERE), os.environ.get("PYTHONPATH", "")]
        if backend == "sucl":
            path.insert(0, folder)
        path.insert(0, str(pathlib.Path(options.folder).resolve()))  # test_c10d_common
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in path if p),
               "CUDA_VISIBLE_DEVICES": ""}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=options.folder, env=env, stdout=out, stderr=out,
                           timeout=options.timeout)
    if not report.exists():
        return {}
    return {f"{c.get('classname').split('.')[-1]}.{c.get('name')}": outcome(c)
            for c in xml.parse(report).iter("testcase")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--only", help="tests whose names have this, as of pytest -k")
    parser.add_argument("--backends", default="gloo,sucl")
    parser.add_argument("--logs", default="torch-tests", help="a folder for what they print")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for each file")
    options = parser.parse_intermixed_args()
    backends = options.backends.split(",")
    worse = []
    print("| file | tests | " + " | ".join(f"{b} passes" for b in backends) + " |")
    print("|---|---|" + "---|" * len(backends))
    for file in options.files or FILES:
        found = {b: run(file, b, options) for b in backends}
        names = {name for one in found.values() for name in one}
        counts = {b: collections.Counter(found[b].values()) for b in backends}
        print(f"| {file} | {len(names)} | " +
              " | ".join(str(counts[b]["passed"]) for b in backends) + " |", flush=True)
        if len(backends) == 2:
            worse += [f"{file}: {name}: {found[backends[1]].get(name, 'has not run')}"
                      for name in sorted(names) if found[backends[0]].get(name) == "passed"
                      and found[backends[1]].get(name) != "passed"]
    print("\n".join(["", *worse]))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
