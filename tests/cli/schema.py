# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""As much of JSON Schema as the schemas here use, so that the tests need no package."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}
KNOWN = {"$schema", "$defs", "$ref", "title", "type", "required", "additionalProperties",
         "properties", "items", "enum", "pattern", "minimum"}


def is_of(value, name):
    # Python's booleans are integers, JSON's are not.
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def violations(value, schema, root=None, path="$"):
    """What is wrong with a value, as a list of sentences."""
    root = root or schema
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"the schema uses {unknown}, which this validator does not know")
    if "$ref" in schema:
        return violations(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, path)
    found = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of(value, name) for name in types):
        return [f"{path} is {value!r}, not {' or '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path} is {value!r}, not one of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path} is {value!r}, which does not match {schema['pattern']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path} is {value!r}, less than {schema['minimum']}")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{path}.{name} is missing" for name in schema.get("required", [])
                  if name not in value]
        for name, part in value.items():
            if name in properties:
                found += violations(part, properties[name], root, f"{path}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{path}.{name} is not in the schema")
    if isinstance(value, list) and "items" in schema:
        for i, part in enumerate(value):
            found += violations(part, schema["items"], root, f"{path}[{i}]")
    return found
