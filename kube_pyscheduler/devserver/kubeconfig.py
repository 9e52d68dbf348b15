"""A kubeconfig that points at a server."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, token: str, authority: bytes = b"") -> None:
    """Write a kubeconfig with one context named "devserver", readable by its owner only; replaces the file at once.

    ``authority`` is the PEM text of the CA to trust, for an HTTPS address.
    """
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "devserver", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "devserver", "context": {"cluster": "devserver", "user": "admin"}}],
        "current-context": "devserver",
    }
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    fresh.replace(path)
