"""What a cluster holds from its first second: namespaces, system priority classes, the default roles."""

from __future__ import annotations

from pathlib import Path

import yaml

from kube_pyscheduler.devserver.access.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLES
from kube_pyscheduler.devserver.admission.pod_admission import SYSTEM_PRIORITIES
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import NAMESPACES, PRIORITY_CLASSES
from kube_pyscheduler.devserver.store import Object

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_ROLES_FILE = Path(__file__).parent / "access" / "bootstrap.yaml"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def bootstrap(registry: Registry) -> None:
    """Fill an empty store."""
    for name in SYSTEM_NAMESPACES:
        registry.create(NAMESPACES, {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        registry.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    document = yaml.safe_load(_ROLES_FILE.read_text())
    for name, rules in document["clusterRoles"].items():
        registry.create(CLUSTER_ROLES, {"metadata": _metadata(name), "rules": rules})
    for name, subjects in document["clusterRoleBindings"].items():
        registry.create(CLUSTER_ROLE_BINDINGS, _binding(name, subjects))
    for namespace, roles in document["roles"].items():
        for name, rules in roles.items():
            registry.create(ROLES, {"metadata": {**_metadata(name), "namespace": namespace}, "rules": rules})


def _metadata(name: str) -> Object:
    return {"name": name, "labels": dict(_LABELS)}


def _binding(role: str, subjects: dict[str, list[str]]) -> Object:
    return {
        "metadata": _metadata(role),
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [
            {"kind": kind, "name": name}
            for key, kind in (("groups", "Group"), ("users", "User"))
            for name in subjects.get(key, ())
        ],
    }
