"""Makes ``definitions.json`` from the OpenAPI documents of Kubernetes: no descriptions, only served kinds.

Run: ``python -m kube_pyscheduler.devserver.schema.build api/openapi-spec``. The v2 document has everything but the
defaults, which come from the v3 documents.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kube_pyscheduler.devserver.resources import BUILTIN, SUBRESOURCE_KINDS
from kube_pyscheduler.devserver.schema.types import DEFINITIONS_FILE, KIND_EXTENSION

_PREFIX = "#/definitions/"


def _without_descriptions(node: Any) -> Any:
    if isinstance(node, dict):
        # A property may itself be called "description"; its value is then an object.
        return {
            key: _without_descriptions(value)
            for key, value in node.items()
            if key != "description" or isinstance(value, dict)
        }
    if isinstance(node, list):
        return [_without_descriptions(item) for item in node]
    return node


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        found = {node["$ref"].removeprefix(_PREFIX)} if isinstance(node.get("$ref"), str) else set()
        return found.union(*map(_references, node.values()))
    if isinstance(node, list):
        return set().union(*map(_references, node))
    return set()


def build(swagger: dict[str, Any]) -> dict[str, Any]:
    """The definitions of the served kinds and everything they refer to, by name."""
    wanted = {(r.group, r.version, r.kind) for r in BUILTIN}
    wanted |= set(SUBRESOURCE_KINDS.values())
    wanted |= {("", "v1", "DeleteOptions"), ("", "v1", "Status")}
    everything = swagger["definitions"]
    pending = [
        name
        for name, definition in everything.items()
        for gvk in definition.get(KIND_EXTENSION, ())
        if (gvk["group"], gvk["version"], gvk["kind"]) in wanted
    ]
    definitions: dict[str, Any] = {}
    while pending:
        name = pending.pop()
        if name in definitions:
            continue
        definition = definitions[name] = _without_descriptions(everything[name])
        kinds = definition.get(KIND_EXTENSION, ())
        if len(kinds) > 1:
            definition[KIND_EXTENSION] = [gvk for gvk in kinds if not gvk["group"]]
        pending += _references(definition)
    return dict(sorted(definitions.items()))


def _add_defaults(definitions: dict[str, Any], directory: Path) -> None:
    """Scalar defaults of fields, as far as they are more than a zero."""
    for file in sorted(directory.glob("*.json")):
        schemas = (json.loads(file.read_text()).get("components") or {}).get("schemas") or {}
        for name in schemas.keys() & definitions.keys():
            for field, node in schemas[name].get("properties", {}).items():
                default = node.get("default")
                if default and not isinstance(default, (dict, list)):
                    definitions[name]["properties"][field]["default"] = default


def main() -> None:
    directory = Path(sys.argv[1])
    definitions = build(json.loads((directory / "swagger.json").read_text()))
    _add_defaults(definitions, directory / "v3")
    lines = [
        f"{json.dumps(name)}:{json.dumps(definition, separators=(',', ':'))}"
        for name, definition in definitions.items()
    ]
    DEFINITIONS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
