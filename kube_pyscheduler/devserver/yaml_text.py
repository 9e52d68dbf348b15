"""YAML as Kubernetes reads it: JSON values only, so timestamps stay text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml


class _Loader(yaml.CSafeLoader):
    """Without the implicit timestamps of YAML 1.1."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str | bytes) -> Any:
    """One document. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)


def load_all_yaml(text: str | bytes) -> Iterator[Any]:
    """All documents of a stream. Raises yaml.YAMLError."""
    return yaml.load_all(text, Loader=_Loader)
