# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Checks that the approved plans follow the schema, and that the schema refuses damaged ones."""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit("This test needs the Python package jsonschema. Install it with: make setup")


def main(schema_path, folder):
    schema = json.loads(pathlib.Path(schema_path).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted(pathlib.Path(folder).glob("*.json"))
    if not files:
        sys.exit(f"There are no plans in {folder}.")
    for file in files:
        plan = json.loads(file.read_text())
        validator.validate(plan)
        plan["ranks"][0]["channels"][0][0][0] = "jump"
        if validator.is_valid(plan):
            sys.exit(f"The schema passes {file.name} with an unknown instruction.")
        del plan["ranks"]
        if validator.is_valid(plan):
            sys.exit(f"The schema passes {file.name} without ranks.")
    print(f"{len(files)} plans follow the schema.")


main(*sys.argv[1:])
