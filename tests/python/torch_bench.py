# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The comparison of all_reduce with gloo: it checks sums and has a time for each round."""

import json
import os
import subprocess
import sys
import tempfile

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: torch cannot be imported: {error}")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "rounds.json")
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         sys.argv[1], "--sizes", "4", "65536", "--rounds", "2", "--seconds", "0.001",
         "--json", file],
        stdout=subprocess.PIPE, text=True, check=True)
    with open(file) as written:
        found = json.load(written)
assert found["ranks"] == 2 and list(found["seconds"]) == ["4", "65536"], found
for rounds in found["seconds"].values():
    assert list(rounds) == ["sucl", "gloo"], rounds
    assert all(len(times) == 2 and min(times) > 0 for times in rounds.values()), rounds
assert "| 64 KiB |" in run.stdout and "| geometric mean |" in run.stdout, run.stdout
print(run.stdout)
