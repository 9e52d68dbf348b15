"""Makes ``numbers.json``, the protobuf field numbers of every definition, from the Go types of Kubernetes.

Run: ``python -m kube_pyscheduler.devserver.schema.build_numbers staging/src/k8s.io``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from kube_pyscheduler.devserver.schema.protobuf import KEEP_ZERO, NUMBERS_FILE
from kube_pyscheduler.devserver.schema.types import definitions

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?P<type>[^/\n`]*?)\s*`json:"(?P<json>[^"]*)"[^`]*?protobuf:"(?P<tag>[^"]*)"')

Numbers = dict[str, Any]
"""Field number → JSON name (after KEEP_ZERO when a zero is meant), or the numbers of an embedded struct."""


def _directory(definition: str, root: Path) -> tuple[Path, str] | None:
    """Where the Go struct of a definition lives, and its name."""
    prefix, _, name = definition.removeprefix("io.k8s.").rpartition(".")
    path = root / prefix.replace(".", "/")
    return (path, name) if path.is_dir() else None


def _structs(directory: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(directory.glob("*.go")):
        if not file.name.startswith(("generated", "zz_")) and not file.name.endswith("_test.go"):
            found.update(_STRUCT.findall(file.read_text()))
    return found


def _numbers(body: str, structs: dict[str, str]) -> Numbers:
    numbers: Numbers = {}
    for line in body.splitlines():
        field = _FIELD.match(line)
        if field is None:
            continue
        number = field["tag"].split(",")[1]
        name, *options = field["json"].split(",")
        go_type = field["type"].split()[-1]
        if "inline" in options:
            numbers[number] = _numbers(structs[go_type], structs)
        else:
            keep = go_type.startswith("*") or "omitempty" not in options
            numbers[number] = (KEEP_ZERO if keep else "") + name
    return numbers


def main() -> None:
    root = Path(sys.argv[1])
    cache: dict[Path, dict[str, str]] = {}
    lines = []
    for definition in definitions():
        place = _directory(definition, root)
        if place is None:
            continue
        directory, name = place
        structs = cache.setdefault(directory, _structs(directory))
        if name in structs and (numbers := _numbers(structs[name], structs)):
            lines.append(f"{json.dumps(definition)}:{json.dumps(numbers, separators=(',', ':'))}")
    NUMBERS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
