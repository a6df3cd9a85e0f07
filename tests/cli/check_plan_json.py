# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Checks the JSON that `sucl plan` writes against the schemas in docs/reference/schema."""

import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    sys.exit("This test needs the Python package jsonschema. Install it with: make setup")

SMALL = ["--machine", "delta", "--ranks", "8"]
COMMANDS = {
    "search": [[*SMALL, "--sizes", "0,8:1Ki:16"],
               [*SMALL, "--collective", "gather", "--bytes", "64"]],
    "compare": [
        [*SMALL, "--sizes", "8:1Ki:16", "--recipe", "ring", "--recipe", "search"],
        ["--paper", "leaders", "--bytes", "1Mi", "--effort", "1e4"],
    ],
    "simulate": [
        [*SMALL, "--bytes", "1Ki", "--recipe", "ring"],
        [*SMALL, "--bytes", "0", "--recipe", "ring"],
    ],
    "machines": [[]],
}


def main(sucl, folder):
    for command, calls in COMMANDS.items():
        schema = json.loads((pathlib.Path(folder) / f"{command}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for arguments in calls:
            run = [sucl, "plan", command, *arguments, "--json", "-"]
            output = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
            validator.validate(output)
            first = output[0] if isinstance(output, list) else output
            first.pop(sorted(first)[0])
            if validator.is_valid(output):
                sys.exit(f"The schema of {command} passes what lacks a field.")
    print(f"{sum(map(len, COMMANDS.values()))} outputs follow their schemas.")


main(*sys.argv[1:])
