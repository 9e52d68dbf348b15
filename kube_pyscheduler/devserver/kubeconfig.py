"""A kubeconfig that points at a server."""

from __future__ import annotations

import os
from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """Write a kubeconfig with one context named "devserver", readable by its owner only."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "devserver", "cluster": {"server": url}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "devserver", "context": {"cluster": "devserver", "user": "admin"}}],
        "current-context": "devserver",
    }
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
