"""A thousand pods that every plugin refused, ten thousand events of all that these plugins listen to, and nothing
moves; then, for each kind of pods, what helps."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import Pod, PodResourceClaimStatus
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.builders import make_budget, make_node, make_pod
from tests.plugins.dynamic_resources import world as dra
from tests.storage import (
    ZONE,
    claim_volumes,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)
from tests.unit.scheduler.world import SCHEDULER, World

PODS = 1000
EVENTS = 10_000
FULL = [f"full-{number}" for number in range(4)]
TAINTED, CORDONED = "tainted", "cordoned"
NODES = [*FULL, TAINTED, CORDONED]
OLD = "2026-01-01T00:00:00Z"
GPU_MODEL = f'device.attributes["{dra.DRIVER}"].model == "large"'


class Stage(World):
    """The daemon's scheduler with the plugins of kube-scheduler, and objects that change."""

    def __init__(self) -> None:
        settings = replace(load_profile({}), scheduler_name=SCHEDULER)
        self.profile = build_profile(settings, IN_TREE)
        super().__init__(self.profile)
        self.objects_by_key: dict[tuple[str, str], Object] = {}
        self._versions = itertools.count(1)

    def tell(self, item: Object) -> None:
        """The watch tells of an object as it is now."""
        meta = msgspec.structs.replace(item.metadata, resource_version=str(next(self._versions)))
        item = msgspec.structs.replace(item, metadata=meta)
        kind = type(item).__name__
        old = self.objects_by_key.get((kind, item.key))
        self.objects_by_key[kind, item.key] = item
        if isinstance(item, Pod):
            self.pods.by_key[item.key] = item
        self.scheduler.handle(kind, old, item)

    def tell_end(self, item: Object) -> None:
        """The watch tells that an object is gone."""
        kind = type(item).__name__
        known = self.objects_by_key.pop((kind, item.key))
        if isinstance(item, Pod):
            del self.pods.by_key[item.key]
        self.scheduler.handle(kind, known, None)

    def known(self, item: Object) -> Any:
        return self.objects_by_key[type(item).__name__, item.key]

    def incoming(self) -> Counter[tuple[Any, ...]]:
        """``scheduler_queue_incoming_pods_total``."""
        return Counter(self.observer.of("queue_incoming"))

    def attempts(self) -> Counter[int]:
        """Waiting pods by how often they were tried."""
        return Counter(queued.attempts for queued in self.scheduler.queue)


def node(name: str, **more: Any) -> Any:
    labels = {ZONE: "b" if name in FULL[2:] else "c" if name in (TAINTED, CORDONED) else "a", "pool": name}
    taints = [{"key": "dedicated", "effect": "NoSchedule"}] if name == TAINTED else []
    given: dict[str, Any] = {"labels": labels, "taints": taints, "unschedulable": name == CORDONED, **more}
    return make_node(name, **given)


def filler(name: str) -> Pod:
    """Takes most of a node, its port, and the only place for a volume; likes nobody who is called unloved."""
    unloved = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "unloved"}}}
    return make_pod(
        f"filler-{name}",
        node=name,
        labels={"app": "filler"},
        containers=[
            {"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "3500m", "memory": "1Gi"}}}
        ],
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [unloved]}},
        volumes=claim_volumes(f"filler-{name}"),
    )


def small(name: str, **more: Any) -> Pod:
    return make_pod(name, requests=more.pop("requests", {"cpu": "10m"}), scheduler=SCHEDULER, **more)


def near(kind: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}
GHOST = {"key": "metadata.name", "operator": "In", "values": ["ghost"]}
EVERYWHERE = [{"operator": "Exists"}]

WAITING: dict[str, Callable[[str], Pod]] = {
    "large": lambda n: small(n, requests={"cpu": "100"}),
    "tight": lambda n: small(n, requests={"cpu": "2"}),
    "extended": lambda n: small(n, requests={"example.com/fpga": "1"}),
    "taint": lambda n: small(n, nodeSelector={"pool": TAINTED}),
    "cordon": lambda n: small(n, nodeSelector={"pool": CORDONED}),
    "selector": lambda n: small(n, nodeSelector={"disk": "ssd"}),
    "ghost": lambda n: small(
        n,
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [GHOST]}]}
            }
        },
    ),
    "port": lambda n: small(n, containers=[{"name": "c", "ports": [{"hostPort": 80}]}], tolerations=EVERYWHERE),
    "feature": lambda n: small(n, hostNetwork=True, hostUsers=False),
    "spread": lambda n: small(n, labels={"app": "spread"}, topologySpreadConstraints=[SPREAD]),
    "near": lambda n: small(n, affinity=near("podAffinity", "nobody")),
    "far": lambda n: small(n, affinity=near("podAntiAffinity", "filler"), tolerations=EVERYWHERE),
    "unloved": lambda n: small(n, labels={"app": "unloved"}, tolerations=EVERYWHERE),
    "claimless": lambda n: small(n, volumes=claim_volumes(f"missing-{n}")),
    "immediate": lambda n: small(n, volumes=claim_volumes("immediate")),
    "zonal": lambda n: small(n, volumes=claim_volumes("zonal")),
    "zone-label": lambda n: small(n, volumes=claim_volumes("labelled")),
    "room": lambda n: small(n, volumes=claim_volumes("roomy")),
    "limit": lambda n: small(n, volumes=claim_volumes("limited"), tolerations=EVERYWHERE),
    "exclusive": lambda n: small(n, volumes=claim_volumes("exclusive"), tolerations=EVERYWHERE),
    "device": lambda n: small(
        n, resourceClaims=[{"name": "c", "resourceClaimName": "devices"}], tolerations=EVERYWHERE
    ),
    "class": lambda n: small(n, resourceClaims=[{"name": "c", "resourceClaimName": "classless"}]),
    "unmade": lambda n: small(n, resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}]),
    "gate": lambda n: small(n, schedulingGates=[{"name": "example.com/hold"}]),
}
"""Kind → a pod of it."""

GATED = {"unmade", "gate"}
"""Kinds that are not even tried."""

LIMITED_DRIVER = "limited.example"


def set_up(stage: Stage) -> None:
    stage.tell(make_class("now", mode="Immediate"))
    stage.tell(make_class("roomy", provisioner="roomy.example"))
    stage.tell(make_class("limited", provisioner=LIMITED_DRIVER))
    stage.tell(make_driver("roomy.example", storageCapacity=True))
    stage.tell(make_driver("other.example", storageCapacity=True))
    stage.tell(make_claim("immediate", storage_class="now"))
    stage.tell(make_claim("roomy", storage_class="roomy", size="5Gi"))
    for name, more in (("zonal", {"nodes": {ZONE: ["x"]}}), ("labelled", {"labels": {ZONE: "x"}}), ("exclusive", {})):
        modes = ("ReadWriteOncePod",) if name == "exclusive" else ("ReadWriteOnce",)
        claim = make_claim(name, volume=f"pv-{name}", modes=modes)
        stage.tell(claim)
        stage.tell(make_volume(f"pv-{name}", claim=claim, modes=modes, **more))
    for name in ("limited", *(f"filler-{each}" for each in NODES)):
        claim = make_claim(name, volume=f"pv-{name}", storage_class="limited")
        stage.tell(claim)
        source = {"csi": {"driver": LIMITED_DRIVER, "volumeHandle": name}}
        stage.tell(make_volume(f"pv-{name}", claim=claim, storage_class="limited", source=source))
    stage.tell(dra.make_class())
    stage.tell(dra.make_claim("devices", dra.ask("a", GPU_MODEL)))
    stage.tell(dra.make_claim("classless", dra.ask("a", device_class="nowhere")))
    for name in NODES:
        stage.tell(node(name))
        stage.tell(make_csi_node(name, limits={LIMITED_DRIVER: 1}))
        stage.tell(small_devices(name))
        stage.tell(filler(name))
    for number, name in enumerate(("full-0", "full-2")):
        stage.tell(make_pod(f"spread-there-{number}", node=name, labels={"app": "spread"}, requests={}))
    stage.tell(make_pod("user", node="full-0", requests={}, volumes=claim_volumes("exclusive")))


def small_devices(name: str, count: int = 1) -> Any:
    devices = [dra.device(f"d{number}", attributes={"model": "small"}) for number in range(count)]
    return dra.make_slice(name, devices, node=name)


def passer_by(number: int, **more: Any) -> Pod:
    """A pod that somebody else runs here and there."""
    more.setdefault("requests", {"cpu": "20m"})
    return make_pod(f"passer-{number % 7}", node=NODES[number % len(NODES)], labels={"app": "passer"}, **more)


def one_round(stage: Stage, number: int) -> list[Callable[[], None]]:
    """Events that help nobody, of every kind."""
    name, tick = NODES[number % len(NODES)], str(number)
    there = stage.known(node(name))
    return [
        # Nodes
        lambda: stage.tell(with_conditions(there, Ready="True", MemoryPressure="False", heartbeat=tick)),
        lambda: stage.tell(with_conditions(there, Ready="True", MemoryPressure="True", heartbeat=tick)),
        lambda: stage.tell(node(name, metadata={"annotations": {"tick": tick}})),
        lambda: stage.tell(node(name, labels={**there.metadata.labels, "tick": tick})),
        lambda: stage.tell(node(name, allocatable={"memory": "7Gi"})),
        lambda: stage.tell(node(name, allocatable={"cpu": "4100m", "example.com/gpu": tick})),
        lambda: stage.tell(node(name, taints=[*taints_of(name), {"key": "odd", "effect": "PreferNoSchedule"}])),
        lambda: stage.tell(node(TAINTED, taints=[*taints_of(TAINTED), {"key": "odd", "effect": "NoExecute"}])),
        lambda: stage.tell(node(TAINTED)),
        lambda: stage.tell(node(name, features=[f"feature-{tick}"])),
        lambda: stage.tell(node(name)),
        # Pods elsewhere
        lambda: stage.tell(passer_by(number)),
        lambda: stage.tell(passer_by(number, metadata={"annotations": {"tick": tick}})),
        lambda: stage.tell(relabelled(passer_by(number), tick=tick)),
        lambda: stage.tell(passer_by(number, requests={"cpu": "10m"})),
        lambda: stage.tell(passer_by(number, requests={"cpu": "10m"}, metadata={"deletionTimestamp": OLD})),
        lambda: stage.tell_end(passer_by(number)),
        # Such as count for affinity and spread, where others like them stay
        lambda: stage.tell(make_pod("more", node="full-1", labels={"app": "spread"}, requests={})),
        lambda: stage.tell_end(make_pod("more")),
        lambda: stage.tell(make_pod("too", node=name, labels={"app": "filler"}, requests={})),
        lambda: stage.tell_end(make_pod("too")),
        lambda: stage.tell(make_pod("of-others", scheduler="another", status={"phase": "Pending"})),
        lambda: stage.tell_end(make_pod("of-others", scheduler="another")),
        # The waiting pods: what we write ourselves, and what others do
        lambda: stage.tell(refused(stage, number)),
        lambda: stage.tell(annotated(stage, number)),
        # Volumes
        lambda: stage.tell(make_claim("other", storage_class="other")),
        lambda: stage.tell(make_claim("other", storage_class="other", metadata={"labels": {"tick": tick}})),
        lambda: stage.tell(with_annotation(stage.known(make_claim("roomy")), tick)),
        lambda: stage.tell_end(make_claim("other")),
        lambda: stage.tell(make_volume("spare", storage_class="other")),
        lambda: stage.tell(make_volume("spare", storage_class="other", labels={"tick": tick})),
        lambda: stage.tell(with_annotation(stage.known(make_volume("pv-zonal")), tick)),
        lambda: stage.tell_end(make_volume("spare")),
        lambda: stage.tell(make_volume("tiny", storage_class="roomy", size="1Mi")),
        lambda: stage.tell_end(make_volume("tiny")),
        lambda: stage.tell(make_class("other", mode="WaitForFirstConsumer")),
        lambda: stage.tell(make_class("other", topologies=[{"tick": [tick]}])),
        lambda: stage.tell_end(make_class("other")),
        lambda: stage.tell(make_csi_node(name, limits={LIMITED_DRIVER: 1, "other.example": number})),
        lambda: stage.tell(make_csi_node(name, limits={LIMITED_DRIVER: 1})),
        lambda: stage.tell(make_csi_node(f"gone-{tick}", limits={LIMITED_DRIVER: 1})),
        lambda: stage.tell(make_driver("other.example", storageCapacity=False)),
        lambda: stage.tell(make_driver("other.example", storageCapacity=True)),
        lambda: stage.tell(make_capacity("tiny", storage_class="roomy", capacity="1Mi")),
        lambda: stage.tell(make_capacity("tiny", storage_class="roomy", capacity=f"{number % 9 + 1}Mi")),
        lambda: stage.tell(make_capacity("others", storage_class="other", capacity="9Ti")),
        lambda: stage.tell_end(make_capacity("others")),
        lambda: stage.tell(make_attachment("other", name, "x", "other.example")),
        lambda: stage.tell_end(make_attachment("other", name, "x")),
        # Devices
        lambda: stage.tell(dra.make_claim("taken")),
        lambda: stage.tell(dra.make_claim("taken", status=dra.allocation((name, "d0")))),
        lambda: stage.tell(dra.make_claim("taken")),
        lambda: stage.tell_end(dra.make_claim("taken")),
        lambda: stage.tell(dra.make_claim("devices", dra.ask("a", GPU_MODEL), finalizers=[tick])),
        lambda: stage.tell(small_devices(name, number % 3 + 2)),
        lambda: stage.tell(dra.make_slice("others", [dra.device("d")], node=name, driver="other.example")),
        lambda: stage.tell_end(dra.make_slice("others", [])),
        lambda: stage.tell(dra.make_class("other-devices")),
        lambda: stage.tell(dra.make_class("other-devices", "true")),
        lambda: stage.tell_end(dra.make_class("other-devices")),
        # The rest
        lambda: stage.tell(make_budget("b", {"matchLabels": {"app": "filler"}}, allowed=number % 2)),
        lambda: stage.tell(plain(kinds.NAMESPACE, "default", labels={"tick": tick})),
        lambda: stage.tell(plain(kinds.NAMESPACE, f"space-{tick}")),
        lambda: stage.tell(plain(kinds.SERVICE, "s", spec={"selector": {"tick": tick}})),
    ]


def useless(stage: Stage) -> Iterator[Callable[[], None]]:
    """Such events without end."""
    for number in itertools.count():
        yield from one_round(stage, number)


def taints_of(name: str) -> list[dict[str, str]]:
    return [{"key": "dedicated", "effect": "NoSchedule"}] if name == TAINTED else []


def with_conditions(item: Any, heartbeat: str, **statuses: str) -> Any:
    document = msgspec.to_builtins(item)
    conditions = [{"type": kind, "status": status, "reason": heartbeat} for kind, status in statuses.items()]
    document["status"]["conditions"] = conditions
    return kinds.NODE.decoder.decode(msgspec.json.encode(document))


def with_annotation(item: Any, tick: str) -> Any:
    annotations = {**item.metadata.annotations, "tick": tick}
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, annotations=annotations))


def relabelled(pod: Pod, **labels: str) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, labels={**pod.metadata.labels, **labels})
    return msgspec.structs.replace(pod, metadata=meta)


def waiting_pod(stage: Stage, number: int) -> Pod:
    queued = list(stage.scheduler.queue)
    return queued[number % len(queued)].pod


def refused(stage: Stage, number: int) -> Pod:
    """The watch brings back what we wrote into the status of a pod."""
    document = msgspec.to_builtins(waiting_pod(stage, number))
    document["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": f"in vain {number}"}]
    pod: Pod = kinds.POD.decoder.decode(msgspec.json.encode(document))
    return pod


def annotated(stage: Stage, number: int) -> Pod:
    pod: Pod = with_annotation(waiting_pod(stage, number), str(number))
    return pod


def plain(kind: Any, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Any:
    namespaced = {"namespace": "default"} if kind is kinds.SERVICE else {}
    document = {"metadata": {"name": name, "labels": labels or {}, **namespaced}, **fields}
    return kind.decoder.decode(msgspec.json.encode(document))


async def refuse_everybody(stage: Stage, kinds_of_pods: Iterable[str]) -> None:
    """A pod of each of these kinds comes and is tried once, if it may."""
    set_up(stage)
    for number, kind in enumerate(kinds_of_pods):
        stage.tell(WAITING[kind](f"{kind}-{number}"))
    while any(queued.place is Place.ACTIVE for queued in stage.scheduler.queue):
        await stage.settle()


async def test_what_helps_nobody_wakes_nobody() -> None:
    stage = Stage()
    mixed = list(itertools.islice(itertools.cycle(WAITING), PODS))
    await refuse_everybody(stage, mixed)
    gated = sum(kind in GATED for kind in mixed)
    assert stage.attempts() == {0: gated, 1: PODS - gated}
    plugins = {name for name, events in stage.profile.events.items() if events}
    refused_by = {plugin for _profile, plugin in stage.scheduler.queue.rejections}
    # Nothing is refused by the name of its node, and nobody preempts anybody here.
    assert refused_by == plugins - {"NodeName", "DefaultPreemption"}
    before = stage.incoming()
    for number, change in enumerate(itertools.islice(useless(stage), EVENTS)):
        change()
        if number % 100 == 0:
            await stage.after(0.5)
    await stage.after(60)
    assert stage.incoming() == before
    assert stage.attempts() == {0: gated, 1: PODS - gated}
    answers = {(plugin, answer) for plugin, _event, answer, _seconds in stage.observer.of("hint")}
    # Gates are opened by updates of the pods themselves, which here open none.
    assert answers == {(plugin, "QueueSkip") for plugin in refused_by - {"SchedulingGates"}}


HELP: dict[str, Callable[[Stage, Pod], None]] = {
    "large": lambda stage, _pod: stage.tell(node("full-0", allocatable={"cpu": "200"})),
    "tight": lambda stage, _pod: stage.tell_end(filler("full-0")),
    "extended": lambda stage, _pod: stage.tell(node("full-0", allocatable={"example.com/fpga": "1"})),
    "taint": lambda stage, _pod: stage.tell(node(TAINTED, taints=[])),
    "cordon": lambda stage, _pod: stage.tell(node(CORDONED, unschedulable=False)),
    "selector": lambda stage, _pod: stage.tell(node("full-0", labels={"disk": "ssd"})),
    "ghost": lambda stage, _pod: stage.tell(node("ghost")),
    "port": lambda stage, _pod: stage.tell_end(filler("full-0")),
    "feature": lambda stage, _pod: stage.tell(node("full-0", features=["UserNamespacesHostNetworkSupport"])),
    "spread": lambda stage, _pod: stage.tell_end(make_pod("spread-there-0")),
    "near": lambda stage, _pod: stage.tell(make_pod("friend", node="full-0", labels={"app": "nobody"}, requests={})),
    "far": lambda stage, _pod: stage.tell_end(filler("full-0")),
    "unloved": lambda stage, _pod: stage.tell_end(filler("full-0")),
    "claimless": lambda stage, pod: stage.tell(make_claim(f"missing-{pod.name}", volume="pv-exclusive")),
    "immediate": lambda stage, _pod: stage.tell(make_claim("immediate", volume="pv-exclusive")),
    "zonal": lambda stage, _pod: stage.tell(node("full-0", labels={ZONE: "x"})),
    "zone-label": lambda stage, _pod: stage.tell(node("full-0", labels={ZONE: "x"})),
    "room": lambda stage, _pod: stage.tell(make_capacity("k", storage_class="roomy", topology={}, capacity="9Gi")),
    "limit": lambda stage, _pod: stage.tell(make_csi_node("full-0", limits={LIMITED_DRIVER: 2})),
    "exclusive": lambda stage, _pod: stage.tell_end(make_pod("user")),
    "device": lambda stage, _pod: stage.tell(
        dra.make_slice("full-0", [dra.device("d", attributes={"model": "large"})], node="full-0")
    ),
    "class": lambda stage, _pod: stage.tell(dra.make_class("nowhere")),
    "unmade": lambda stage, pod: stage.tell(
        msgspec.structs.replace(
            pod,
            status=msgspec.structs.replace(pod.status, resource_claim_statuses=(PodResourceClaimStatus("c"),)),
        )
    ),
    "gate": lambda stage, pod: stage.tell(
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=()))
    ),
}
"""Kind → what makes a node fit for its pods."""


@pytest.mark.parametrize("kind", WAITING)
async def test_what_helps_wakes(kind: str) -> None:
    stage = Stage()
    await refuse_everybody(stage, [kind])
    (queued,) = stage.scheduler.queue
    pod, tries = queued.pod, queued.attempts
    for change in one_round(stage, 0):
        change()
    await stage.after(30)
    assert queued.attempts == tries
    HELP[kind](stage, pod)
    await stage.after(30)
    assert queued.attempts == tries + 1
    # It found a node; writing claims is beyond this stage.
    assert queued.place in (Place.IN_FLIGHT, Place.ERROR_BACKOFF)
