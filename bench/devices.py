"""Devices for a measurement: eight on every node, and a claim for each pod.

The claims of a template ask, by its number modulo 4, for: one device; two with much memory; one of a model, or else one
of another; two on the same root.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.state import STATE

Document = dict[str, Any]

DRIVER = "gpu.example.com"
CLASS = "gpu"
PER_NODE = 8


def add_devices(cache: Cache) -> None:
    """The devices of all nodes. The nodes must be there."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    _put(
        cache.listers.device_classes,
        kinds.DEVICE_CLASS,
        {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}},
    )
    for number, node in enumerate(cache.table.names):
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(number, place) for place in range(PER_NODE)],
        }
        _put(cache.listers.resource_slices, kinds.RESOURCE_SLICE, {"metadata": {"name": f"{node}-gpu"}, "spec": spec})


def _device(node: int, place: int) -> Document:
    attributes = {
        "model": {"string": "large" if node % 3 else "small"},
        "uuid": {"string": f"{node}-{place}"},
        "root": {"string": f"pci{place // 4}"},
    }
    return {
        "name": f"gpu-{place}",
        "attributes": attributes,
        "capacity": {"memory": {"value": f"{(node % 4 + 1) * 20}Gi"}},
    }


class Claims:
    """One claim a pod, of its name. What is bound is written at once."""

    def before(self, cache: Cache, template: int, pod: Document) -> None:
        """Make the claim of a pod; one that is on a node already has a device there, while there are any."""
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        pod["spec"]["resourceClaims"] = [{"name": "devices", "resourceClaimName": name}]
        claim: Document = {
            "metadata": {"name": name, "namespace": "bench", "uid": f"claim-{name}"},
            "spec": {"devices": _wanted(template % 4)},
        }
        place = len(cache.table.pods[cache.table.row_of[node]]) if node else PER_NODE
        if place < PER_NODE:
            result = {"request": "a", "driver": DRIVER, "pool": node, "device": f"gpu-{place}"}
            claim["status"] = {"allocation": {"devices": {"results": [result]}}}
        _put(cache.listers.resource_claims, kinds.RESOURCE_CLAIM, claim)

    def bound(self, cache: Cache, pod: Pod, decision: Decision) -> None:
        """What PreBind would write."""
        state = decision.ctx.state.read(STATE)
        assert state is not None
        claims = cache.listers.resource_claims
        for number, allocation in state.allocations.items():
            claim: ResourceClaim = state.claims[number]
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            claims.put(msgspec.structs.replace(claim, status=status))
            state.devices.allocated.give_back(claim.uid)

    def gone(self, cache: Cache, uid: str) -> None:
        """The pod's claim goes with it."""
        claim = cache.listers.resource_claims.get(f"bench/{uid}")
        assert claim is not None
        cache.listers.resource_claims.remove(claim)


def _wanted(kind: int) -> Document:
    exactly: Document = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1 + kind % 2}
    if kind == 1:
        much = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
        exactly["selectors"] = [{"cel": {"expression": much}}]
    if kind != 2:
        same = [{"requests": ["a"], "matchAttribute": f"{DRIVER}/root"}]
        return {"requests": [{"name": "a", "exactly": exactly}], "constraints": same if kind == 3 else []}
    alternatives = [
        {
            **exactly,
            "name": model,
            "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}],
        }
        for model in ("large", "small")
    ]
    return {"requests": [{"name": "a", "firstAvailable": alternatives}]}


def _put(lister: Lister[Any], kind: Kind[Any], document: Document) -> None:
    lister.put(kind.decoder.decode(msgspec.json.encode(document)))
