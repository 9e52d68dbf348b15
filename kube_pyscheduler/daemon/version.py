"""Which version this is, and as which Kubernetes it decides."""

from __future__ import annotations

from importlib.metadata import version

DECIDES_AS = "v1.36"
VERSION = f"v{version('kube-pyscheduler')}"
