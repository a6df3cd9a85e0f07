# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The application that trains, with two ranks: its losses are those of gloo, and with --strict
those of another run, bit for bit."""

import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)
STEPS = 4


def losses(*options):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "losses.json")
        run = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
             sys.argv[1], "--steps", str(STEPS), "--batch", "4", "--json", file, *options],
            stdout=subprocess.PIPE, text=True, check=True)
        with open(file) as written:
            found = json.load(written)
    assert len(found["losses"]) == len(found["seconds"]) == STEPS, found
    assert f"step 0 loss {found['losses'][0]!r}\n" in run.stdout, run.stdout
    assert f"{found['per_second']:.1f} {found['unit']}/s on 2 ranks" in run.stdout, run.stdout
    return found["losses"]


def close(found, wanted):
    return all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(found, wanted))


# Two contributions have one sum: nothing is rounded differently.
wanted, found = losses("--backend", "gloo"), losses("--backend", "sucl")
assert found == wanted, f"{found}, with gloo {wanted}"
assert found[0] != found[-1], f"nothing is learnt: {found}"

GPT = ("--model", "gpt", "--layers", "1", "--width", "32", "--context", "16")
of_ddp = losses("--backend", "gloo", *GPT)
for parallel in ("ddp", "fsdp2"):
    found = losses("--backend", "sucl", *GPT, "--parallel", parallel, "--strict")
    assert close(found, of_ddp), f"{parallel}: {found}, with gloo and ddp {of_ddp}"
    again = losses("--backend", "sucl", *GPT, "--parallel", parallel, "--strict")
    assert again == found, f"{parallel}: {found}, then {again}"
print(found[-1])
