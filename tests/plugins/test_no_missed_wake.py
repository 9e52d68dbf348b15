"""No hint says SKIP to an event after which its plugin takes a pod to a node that it refused before."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.what_if import charges_of
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import NodeFilter, PreFilter, PreFilterResult
from kube_pyscheduler.framework.row_changes import RowChange, StatedChanges
from kube_pyscheduler.framework.status import Code, Status
from kube_pyscheduler.objects.csi_translation import in_tree_plugin
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    claim_class,
)
from kube_pyscheduler.scheduler.event_handlers import KINDS
from kube_pyscheduler.scheduler.node_changes import node_changes
from kube_pyscheduler.scheduling_queue.pod_changes import pod_changes
from tests.builders import make_pod
from tests.clusters import Cluster
from tests.plugins.dynamic_resources.test_agreement import Life
from tests.plugins.inter_pod_affinity.test_agreement import random_spec as random_affinity
from tests.plugins.node_scoped.test_agreement import Mirror, random_spec
from tests.plugins.pod_topology_spread.test_agreement import random_spec as random_spread
from tests.plugins.pod_world import PodWorld, only
from tests.plugins.volume_world import VolumeWorld


class Happening(NamedTuple):
    """A change of one object, and what its events are called."""

    resource: Resource
    actions: Sequence[Action]
    old: Any
    new: Any


def state_of(cluster: Cluster) -> dict[tuple[str, str], Object]:
    """Everything that the scheduler knows, by kind and key; pods by uid."""
    found: dict[tuple[str, str], Object] = {
        ("Node", node.name): node for node in cluster.cache.table.nodes if node is not None
    }
    found.update({("Pod", entry.info.uid): entry.info.pod for entry in cluster.cache.pods()})
    for kind, (lister, _resource) in KINDS.items():
        found.update({(kind, item.key): item for item in getattr(cluster.cache.listers, lister)})
    return found


def happenings(before: dict[tuple[str, str], Object], after: dict[tuple[str, str], Object]) -> Iterator[Happening]:
    """What the scheduler is told of."""
    for key in sorted({*before, *after}):
        old: Any = before.get(key)
        new: Any = after.get(key)
        if old is new:
            continue
        kind = key[0]
        resource = KINDS[kind][1] if kind in KINDS else Resource(kind)
        if resource is None:
            continue
        actions: Sequence[Action]
        if old is None or new is None:
            actions = (Action.ADD if old is None else Action.DELETE,)
        elif kind == "Node":
            actions = node_changes(old, new)
        elif kind == "Pod":
            actions = pod_changes(old, new)
        else:
            actions = (Action.UPDATE,)
        yield Happening(resource, actions, old, new)


def is_allowed(happened: Happening, cluster: Cluster) -> bool:
    """Whether API servers and controllers let that happen: what is said of volumes once stays as it is, what others
    refer to stays, and was there first. (Without its class, a claim does not count for limits; but then it cannot be
    bound, either.)"""
    match happened.old, happened.new:
        case StorageClass() as old, StorageClass() as new:
            return (old.provisioner, old.volume_binding_mode) == (new.provisioner, new.volume_binding_mode)
        case PersistentVolumeClaim() as old, PersistentVolumeClaim() as new:
            is_renamed = old.spec.volume_name and old.spec.volume_name != new.spec.volume_name
            fixed = [(claim_class(claim), claim.spec.access_modes, claim.spec.volume_mode) for claim in (old, new)]
            return not is_renamed and fixed[0] == fixed[1]
        case PersistentVolume() as old, PersistentVolume() as new:
            return old.spec.csi == new.spec.csi and in_tree_plugin(old.spec) == in_tree_plugin(new.spec)
        case VolumeAttachment() as old, VolumeAttachment() as new:
            return old.spec == new.spec
        case ((PersistentVolumeClaim() | PersistentVolume() | StorageClass()), None):
            return False
        case None, PersistentVolume() as new:
            return all(claim.spec.volume_name != new.name for claim in cluster.cache.listers.persistent_volume_claims)
    return True


class Verdict(NamedTuple):
    """The nodes that a plugin takes a pod to as they are, and those where it would if less important pods went."""

    now: set[str]
    cleared: set[str]


def verdict_on(plugin: Any, cluster: Cluster, pod: Pod) -> Verdict | None:
    """None where the attempt fails."""
    cycle, _judged = cluster.engine.cycle(cluster.profile, PodInfo(pod))
    ctx, info, table = cycle.ctx, PodInfo(pod), cluster.cache.table
    rows = table.live_rows()
    names = [table.names[row] for row in rows.tolist()]
    allowed = set(names)
    if isinstance(plugin, PreFilter):
        answer = plugin.pre_filter(ctx, info)
        if isinstance(answer, Status):
            if answer.code == Code.ERROR:
                return None
            allowed &= allowed if answer.code == Code.SKIP else set()
            return Verdict(allowed, allowed)
        if isinstance(answer, PreFilterResult) and answer.nodes is not None:
            allowed &= answer.nodes
    assert isinstance(plugin, NodeFilter)
    kernel = plugin.filter_kernel(ctx, info)
    if kernel is None:
        return Verdict(allowed, allowed)
    codes = kernel.codes(table, table.all_rows)[rows]
    refused = codes != 0
    if refused.any():
        statuses = kernel.explain(table, rows[refused], codes[refused])
        if any(status.code == Code.ERROR for status, _rows in statuses):
            return None
    less = {row: tuple(o for o in table.pods[row].values() if o.pod.priority < pod.priority) for row in rows.tolist()}
    cleared = rows[[bool(less[row]) for row in rows.tolist()]]
    taken = dict(zip(names, codes == 0, strict=True))
    if_cleared = dict(taken)
    with table.what_if(cleared) as world:
        world.remove(charges_of([(row, less[row]) for row in cleared.tolist()], table.resources))
        changes = StatedChanges({row: RowChange(removed=less[row]) for row in cleared.tolist()})
        found = kernel.codes_if(table, cleared, changes) == 0
    if_cleared.update(zip([table.names[row] for row in cleared.tolist()], found.tolist(), strict=True))
    return Verdict({n for n in allowed if taken[n]}, {n for n in allowed if if_cleared[n]})


def wakes(plugin: Any, cluster: Cluster, pod: Pod, happened: Happening) -> bool:
    """Whether one of the plugin's hints wants the pod queued."""
    for action in happened.actions:
        for registration in plugin.events():
            if not registration.event.matches(ClusterEvent(happened.resource, action)):
                continue
            hint = registration.hint
            answer = hint(pod, happened.old, happened.new, cluster.cache.listers) if hint else QueueingHint.QUEUE
            if answer is QueueingHint.QUEUE:
                return True
    return False


@dataclass
class Scene:
    """``candidate`` makes a pod that might wait."""

    cluster: Cluster
    step: Callable[[], None]
    candidate: Callable[[], Pod]


def affinity(seed: int) -> Scene:
    world = PodWorld(random.Random(seed), only("InterPodAffinity"), random_affinity)
    return Scene(world.cluster, world.step, world.new_pod)


def spread(seed: int) -> Scene:
    world = PodWorld(random.Random(seed), only("PodTopologySpread"), random_spread)
    return Scene(world.cluster, world.step, world.new_pod)


def volumes(seed: int) -> Scene:
    world = VolumeWorld(random.Random(seed))
    return Scene(world.cluster, world.step, lambda: world.rng.choice([world.new_pod, world.new_claimant])())


def devices(seed: int) -> Scene:
    life = Life(seed)

    def candidate() -> Pod:
        pod, claims = life.pod()
        life.world.put(*claims)
        return pod

    return Scene(life.world, life.step, candidate)


def crowd(seed: int) -> Scene:
    world = Mirror(random.Random(seed))
    return Scene(world.cluster, world.step, lambda: make_pod("waiting", priority=5, **random_spec(world.rng)))


SCENES: dict[Callable[[int], Scene], tuple[str, ...]] = {
    affinity: ("InterPodAffinity",),
    spread: ("PodTopologySpread",),
    volumes: ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    devices: ("DynamicResources",),
    crowd: (
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ),
}
STEPS = 250


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
def test_what_helps_wakes(make: Callable[[int], Scene], seed: int) -> None:
    scene = make(seed)
    cluster = scene.cluster
    plugins = [plugin for plugin in cluster.profile.filter if plugin.name in SCENES[make]]
    assert len(plugins) == len(SCENES[make])
    helped: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    waiting: list[Pod] = []
    for number in range(STEPS):
        if number % 10 == 0:
            waiting = [scene.candidate() for _ in range(6)]
        asked = [(plugin, pod) for plugin in plugins for pod in waiting]
        nodes = {name for kind, name in state_of(cluster) if kind == "Node"}
        before, verdicts = state_of(cluster), [verdict_on(plugin, cluster, pod) for plugin, pod in asked]
        scene.step()
        happened = list(happenings(before, state_of(cluster)))
        for (plugin, pod), verdict in zip(asked, verdicts, strict=True):
            woken = any(wakes(plugin, cluster, pod, each) for each in happened)
            skipped[plugin.name] += not woken
            after = verdict_on(plugin, cluster, pod)
            if verdict is None or after is None or verdict.now == nodes:
                # The plugin did not refuse the pod.
                continue
            if not all(is_allowed(each, cluster) for each in happened):
                continue
            gained = after.now - verdict.now
            if plugin.name != "NodePorts":
                # What two pods have of a port, as pods that were not scheduled may, a what-if takes for free too early.
                gained |= after.cleared - verdict.cleared
            helped[plugin.name] += bool(gained)
            assert woken or not gained, (plugin.name, gained, [(each.resource, each.actions) for each in happened], pod)
    assert set(helped) == set(skipped) == set(SCENES[make])
