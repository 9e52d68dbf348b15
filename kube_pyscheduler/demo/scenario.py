"""The files that a demonstration is made of, and what it must lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

Object = dict[str, Any]
DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "demo"
"""Where the files are in a checkout; installed packages have none."""


class ScenarioError(Exception):
    """A file is missing or not as it must be; the message names it."""


class Separation(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Pods that must never share a node: those with the labels ``pods`` and, if given, equal ``same_label`` labels."""

    title: str
    pods: dict[str, str]
    same_label: str = ""


class Expectations(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``namespace`` is that of all workloads. ``waiting``: name of a pod → words of the reason for which it waits."""

    namespace: str
    waiting: dict[str, str] = {}
    separation: list[Separation] = []


@dataclass(frozen=True, slots=True)
class Scenario:
    """``cluster`` is the seed of the embedded API server; ``workloads`` are (file name, objects), in order."""

    cluster: Path
    workloads: list[tuple[str, list[Object]]]
    expectations: Expectations


def load_scenario(folder: Path) -> Scenario:
    """Read ``cluster.yaml``, ``expectations.yaml`` and ``workloads/*.yaml``. Raises ScenarioError."""
    cluster = folder / "cluster.yaml"
    files = sorted((folder / "workloads").glob("*.yaml"))
    if not cluster.is_file() or not files:
        raise ScenarioError(
            f"{folder} does not hold a demo: cluster.yaml and workloads/*.yaml are needed; --files names another folder"
        )
    return Scenario(
        cluster=cluster,
        workloads=[(file.name, list(_objects(file))) for file in files],
        expectations=_expectations(folder / "expectations.yaml"),
    )


def _objects(file: Path) -> Iterator[Object]:
    for number, document in enumerate(_documents(file), 1):
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
            raise ScenarioError(f"{file}: document {number} is not a Kubernetes object")
        yield document


def _expectations(file: Path) -> Expectations:
    try:
        return msgspec.convert(_documents(file)[0], Expectations)
    except (msgspec.ValidationError, IndexError) as error:
        raise ScenarioError(f"{file}: {error}") from error


def _documents(file: Path) -> list[Any]:
    try:
        return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise ScenarioError(f"{file}: {error}") from error
