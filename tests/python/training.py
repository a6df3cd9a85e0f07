# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The example of training: with two ranks its losses are those of gloo, bit for bit."""

import subprocess
import sys

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)


def losses(backend):
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         sys.argv[1], "--backend", backend, "--steps", "4", "--batch", "4"],
        stdout=subprocess.PIPE, text=True, check=True)
    found = [line for line in run.stdout.splitlines() if line.startswith("step ")]
    assert len(found) == 4 and "steps/s" in run.stdout, run.stdout
    return found


wanted, found = losses("gloo"), losses("sucl")
assert found == wanted, f"{found}, with gloo {wanted}"
assert found[0].split()[-1] != found[-1].split()[-1], f"nothing is learnt: {found}"
print(found[-1])
