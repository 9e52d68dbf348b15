"""Pods of many kinds."""

from __future__ import annotations

import random
from typing import Any

from kube_pyscheduler.devserver.seed import ZONES
from tests.faults.ledger import SLOW
from tests.faults.world import SCHEDULER

PRIORITIES = {"low": 0, "middle": 100, "high": 1000}
APPS = tuple(f"app-{number}" for number in range(12))
CPU = ("100m", "250m", "500m", "1", "1500m", "3")
CPU_ODDS = (5, 5, 4, 4, 3, 2)
TAINT = {"key": "example.com/maintenance", "value": "", "effect": "NoSchedule"}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def slow_pod(name: str) -> dict[str, Any]:
    """A small, important pod that the ledger holds."""
    return _pod(name, {"app": APPS[0], SLOW: "true"}, {"cpu": "100m", "memory": "64Mi"}, "high", 0)


def random_pod(rng: random.Random, name: str) -> dict[str, Any]:
    """A pod that may be gated, choosy about its node, sociable or not, or slow. Its volume is a claim of its name."""
    app = rng.choice(APPS)
    requests = {"cpu": rng.choices(CPU, CPU_ODDS)[0], "memory": rng.choice(("64Mi", "512Mi"))}
    priority = rng.choices(tuple(PRIORITIES), (6, 2, 1))[0]
    pod = _pod(name, {"app": app}, requests, priority, rng.choice((0, 1, 5)))
    spec = pod["spec"]
    kind = rng.random()
    if kind < 0.05:
        spec["schedulingGates"] = [{"name": "example.com/hold"}]
    elif kind < 0.15:
        spec["nodeSelector"] = {ZONE: rng.choice((*ZONES, *ZONES, "zone-x"))}
    elif kind < 0.20:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": rng.randrange(8000, 8003)}]
    elif kind < 0.28:
        spec["affinity"] = {"podAntiAffinity": _required(app, HOST)}
    elif kind < 0.32:
        spec["affinity"] = {"podAffinity": _required(rng.choice(APPS), ZONE)}
    elif kind < 0.40:
        spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **_labelled(app)}
        spec["topologySpreadConstraints"] = [spread]
    elif kind < 0.46:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    elif kind < 0.55:
        pod["metadata"]["labels"][SLOW] = "true"
    return pod


def _pod(name: str, labels: dict[str, str], requests: dict[str, str], priority: str, grace: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "schedulerName": SCHEDULER,
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "image": "app:1", "resources": {"requests": requests}}],
        },
    }


def _required(app: str, topology: str) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{**_labelled(app), "topologyKey": topology}]}


def _labelled(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}}
