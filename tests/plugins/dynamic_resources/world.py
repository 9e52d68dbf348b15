"""A cluster with devices, and shorthands for what is in it."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.interfaces import CycleContext, ScoreKernel
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from kube_pyscheduler.plugins.dynamic_resources.plugin import DynamicResources
from kube_pyscheduler.plugins.dynamic_resources.state import STATE, PodState
from tests.builders import make_node
from tests.clusters import Cluster

Document = dict[str, Any]

DRIVER = "gpu.example.com"
CLASS = "gpu"


def decoded(kind: Kind[Any], document: Document) -> Any:
    """The object of a document."""
    return kind.decoder.decode(msgspec.json.encode(document))


def device(name: str, memory: str = "", attributes: Document | None = None, **more: Any) -> Document:
    """Attributes are text, numbers, truth values, or documents."""
    document: Document = {"name": name, **more}
    document["attributes"] = {key: _attribute(value) for key, value in (attributes or {}).items()}
    if memory:
        document["capacity"] = {"memory": {"value": memory}}
    return document


def _attribute(value: Any) -> Document:
    if isinstance(value, dict):
        return value
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def make_slice(
    name: str,
    devices: list[Document],
    node: str | None = None,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> ResourceSlice:
    """A slice of its own pool, for one node, or as ``spec`` says."""
    if node is not None:
        spec["nodeName"] = node
    document = {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool or node or name, "generation": generation, "resourceSliceCount": count},
            "devices": devices,
            **spec,
        },
    }
    made: ResourceSlice = decoded(kinds.RESOURCE_SLICE, document)
    return made


def make_class(name: str = CLASS, *expressions: str, extended: str | None = None, created: str = "") -> DeviceClass:
    spec: Document = {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}
    if extended is not None:
        spec["extendedResourceName"] = extended
    metadata = {"name": name, **({"creationTimestamp": created} if created else {})}
    made: DeviceClass = decoded(kinds.DEVICE_CLASS, {"metadata": metadata, "spec": spec})
    return made


def ask(name: str = "a", *expressions: str, count: int = 1, device_class: str = CLASS, **more: Any) -> Document:
    """A request for so many devices; ``count`` 0 is all."""
    return {"name": name, "exactly": _wanted(expressions, count, device_class, more)}


def ask_first(name: str, *alternatives: Document) -> Document:
    """A request with alternatives, the best first, each as from ``ask``."""
    return {"name": name, "firstAvailable": [{"name": each["name"], **each["exactly"]} for each in alternatives]}


def _wanted(expressions: tuple[str, ...], count: int, device_class: str, more: Document) -> Document:
    mode = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"deviceClassName": device_class, "selectors": selectors, **mode, **more}


def make_claim(
    name: str,
    *requests: Document,
    constraints: list[Document] | None = None,
    status: Document | None = None,
    version: str = "1",
    **metadata: Any,
) -> ResourceClaim:
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": version,
            **metadata,
        },
        "spec": {"devices": {"requests": list(requests) or [ask()], "constraints": constraints or []}},
        "status": status or {},
    }
    made: ResourceClaim = decoded(kinds.RESOURCE_CLAIM, document)
    return made


def allocation(*devices: tuple[str, str], request: str = "a", on: str | None = None, **more: Any) -> Document:
    """The status of a claim that has (pool, device)s, which may be used on node ``on`` alone."""
    results = [{"request": request, "driver": DRIVER, "pool": pool, "device": name, **more} for pool, name in devices]
    document: Document = {"devices": {"results": results}}
    if on is not None:
        here = {"key": "metadata.name", "operator": "In", "values": [on]}
        document["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    return {"allocation": document}


def reserved(*pods: str) -> Document:
    """The status of a claim that these pods use."""
    return {"reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]}


def make_pod(
    name: str = "p",
    *claims: str,
    templates: Document | None = None,
    requests: Document | None = None,
    node: str = "",
    **spec: Any,
) -> Pod:
    """``claims``: by name. ``templates``: claim of the pod → name of the claim that was made for it, None where none is
    needed, ``...`` where none was made yet. ``requests``: of its container."""
    uses: list[Document] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    statuses = []
    for use, made in (templates or {}).items():
        uses.append({"name": use, "resourceClaimTemplateName": "template"})
        if made is not ...:
            statuses.append({"name": use, **({"resourceClaimName": made} if made is not None else {})})
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": node,
            "containers": [
                {"name": "main", "image": "x", "resources": {"requests": requests or {}, "limits": requests or {}}}
            ],
            "resourceClaims": uses,
            **spec,
        },
        "status": {"resourceClaimStatuses": statuses},
    }
    made_pod: Pod = decoded(kinds.POD, document)
    return made_pod


class World(Cluster):
    """A cluster whose claims, slices and classes may be changed."""

    def __init__(self, *objects: Object, nodes: int = 0, profile: Document | None = None) -> None:
        super().__init__([make_node(f"n{number}") for number in range(nodes)], profile=profile)
        (self.plugin,) = [plugin for plugin in self.profile.reserve if isinstance(plugin, DynamicResources)]
        for item in objects:
            self.put(item)

    def _lister(self, item: Object) -> Lister[Any]:
        listers = self.cache.listers
        match item:
            case ResourceClaim():
                return listers.resource_claims
            case ResourceSlice():
                return listers.resource_slices
            case DeviceClass():
                return listers.device_classes
        raise AssertionError(f"nobody looks up a {type(item).__name__}")

    def put(self, *items: Object) -> None:
        """Add or replace objects."""
        for item in items:
            if isinstance(item, Node):
                self.cache.set_node(item)
            else:
                self._lister(item).put(item)

    def drop(self, *items: Object) -> None:
        """Remove objects."""
        for item in items:
            if isinstance(item, Node):
                self.cache.remove_node(item)
            else:
                self._lister(item).remove(item)

    def decide(self, pod: Pod, seed: int = 0) -> tuple[Decision, PodState]:
        """Decide on a pod and, where it fits, reserve."""
        info = PodInfo(pod)
        decision = self.engine.schedule(self.profile, info, random.Random(seed))
        if decision.node is not None:
            status = self.plugin.reserve(decision.ctx, info, decision.node)
            assert status is None, status
        state = decision.ctx.state.read(STATE)
        assert state is not None
        return decision, state

    def answers(self, pod: Pod) -> dict[str, tuple[int, int]]:
        """Node → the code of the plugin's filter, and what the alternatives score that are chosen there."""
        ctx, info = self.context(), PodInfo(pod)
        assert self.plugin.pre_filter(ctx, info) is None
        filtering, scoring = self.plugin.filter_kernel(ctx, info), self.plugin.score_kernel(ctx, info)
        assert filtering is not None
        assert isinstance(scoring, ScoreKernel)
        table = self.cache.table
        codes, scores = filtering.codes(table, table.all_rows), scoring.scores(table, table.all_rows)
        return {table.names[row]: (int(codes[row]), int(scores[row])) for row in table.live_rows().tolist()}

    def context(self) -> CycleContext:
        """That of a new attempt."""
        return CycleContext(self.cache.table, self.cache.listers, CycleState(), self.handle, random.Random(0))

    def give_up(self, pod: Pod, decision: Decision) -> None:
        """Take back what ``decide`` reserved."""
        assert decision.node is not None
        self.plugin.unreserve(decision.ctx, PodInfo(pod), decision.node)

    def finish(self, pod: Pod, state: PodState) -> None:
        """Write what ``decide`` reserved, as PreBind would."""
        for number, chosen in state.allocations.items():
            claim = state.claims[number]
            self.put(allocated(claim, chosen, pod))
            state.devices.allocated.give_back(claim.uid)


def allocated(claim: ResourceClaim, chosen: AllocationResult, pod: Pod) -> ResourceClaim:
    """The claim as it is when it is written."""
    document = msgspec.to_builtins(claim)
    document["status"] = {**reserved(pod.name), "allocation": msgspec.to_builtins(chosen)}
    document["metadata"]["resourceVersion"] = str(int(claim.metadata.resource_version) + 1)
    made: ResourceClaim = decoded(kinds.RESOURCE_CLAIM, document)
    return made


def devices_of(state: PodState) -> dict[str, list[str]]:
    """Claim → pool/device of what was chosen for it, with the request where it is not "a"."""
    found = {}
    for number, chosen in state.allocations.items():
        found[state.claims[number].name if number >= 0 else ""] = [
            ("" if each.request == "a" else f"{each.request}:") + f"{each.pool}/{each.device}"
            for each in chosen.devices.results
        ]
    return found
