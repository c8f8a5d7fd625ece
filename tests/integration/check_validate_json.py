#!/usr/bin/env python3
"""Runs `validate --format json` on the given files, and on what cannot be read, and holds each line against the schema.

usage: check_validate_json.py SENTRY-PROF SCHEMA FILE...
"""

import json
import os
import subprocess
import sys


def make_checker(schema):
    """python3-jsonschema where it is installed, else the part of JSON Schema that our schema uses."""
    try:
        import jsonschema

        validator = jsonschema.validators.validator_for(schema)
        validator.check_schema(schema)
        return lambda value: [e.message for e in validator(schema).iter_errors(value)]
    except ImportError:
        return lambda value: own_errors(value, schema, schema)


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}


def has_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def own_errors(value, schema, root):
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    errors = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(has_type(value, name) for name in types):
        return [f"{value!r} is not of type {types}"]
    if "enum" in schema and value not in schema["enum"]:
        errors.append(f"{value!r} is not one of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        errors.append(f"{value!r} is below {schema['minimum']}")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        errors += [f"{key!r} is missing" for key in schema.get("required", []) if key not in value]
        errors += [f"{key!r} is unknown" for key in value if key not in properties]
        for key in value.keys() & properties.keys():
            errors += own_errors(value[key], properties[key], root)
    if isinstance(value, list):
        for element in value:
            errors += own_errors(element, schema["items"], root)
    return errors


def self_test(checker, good):
    """The checker must be able to fail."""
    for change in ({"kind": "v3"}, {"valid": "yes"}, {"extra": 1}, {"relay": {"valid": True}}, {"summary": {"samples": -1}}):
        if not checker({**good, **change}):
            sys.exit(f"the schema takes {change}")


def main():
    program, schema_path, *files = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        checker = make_checker(json.load(file))
    names = [*files, "/no/such/file", "/", "/dev/null", "/dev/zero", os.devnull]
    problems = []
    for against in ("both", "relay", "documents"):
        run = subprocess.run([program, "validate", "--format", "json", "--against", against, *names],
                             stdout=subprocess.PIPE, timeout=60, check=False)
        lines = run.stdout.decode("utf-8").splitlines()
        if run.returncode != 7 or len(lines) != len(names):
            sys.exit(f"status {run.returncode}, {len(lines)} lines for {len(names)} files")
        for name, line in zip(names, lines):
            value = json.loads(line)
            problems += [f"{name}: {text}" for text in checker(value)]
            if value["file"] != name:
                problems.append(f"{name} is called {value['file']}")
            if ("error" in value) != ("error_kind" in value):
                problems.append(f"{name}: an error of no kind, or a kind without an error")
            if name == "/" and value["error_kind"] != "unreadable":
                problems.append(f"{name} is {value['error_kind']}")
            if (value["relay"]["valid"] is None) != ("error" in value or against == "documents"):
                problems.append(f"{name}: a verdict of a book that was not asked, or none of one that was")
    self_test(checker, json.loads(lines[0]))
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
