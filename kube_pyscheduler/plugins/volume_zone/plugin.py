"""The plugin. Source: pkg/scheduler/framework/plugins/volumezone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import ABSENT, Membership
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, PreFilter, PreFilterResult
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, unresolvable
from kube_pyscheduler.objects.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claim_class,
)

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_GA_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class Topology(NamedTuple):
    """A label that nodes must have, with one of these values."""

    key: str
    values: frozenset[str]


TOPOLOGIES: StateKey[tuple[Topology, ...]] = StateKey("VolumeZone")


class VolumeZoneKernel(FilterKernel):
    """Two lookups a topology. Nodes without any topology label take every volume."""

    reads_usage = False
    statuses = (unresolvable("node(s) had no available volume zone"),)

    def __init__(self, table: NodeTable, topologies: tuple[Topology, ...]) -> None:
        self._columns = [table.label_column(key) for key in TOPOLOGY_LABELS]
        self._tests = []
        for key, values in topologies:
            column, ga_column = table.label_column(key), table.label_column(_GA_LABEL.get(key, key))
            tests = Membership(column.vocabulary, values), Membership(ga_column.vocabulary, values)
            self._tests.append((column, ga_column, *tests))

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        refused = np.zeros(len(table.alive[rows]), dtype=np.bool_)
        for column, ga_column, matches, ga_matches in self._tests:
            ids = column.ids[rows]
            fits = matches.take(ids)
            if ga_column is not column:
                fits |= (ids == ABSENT) & ga_matches.take(ga_column.ids[rows])
            refused |= ~fits
        placed = np.zeros(len(refused), dtype=np.bool_)
        for column in self._columns:
            placed |= column.ids[rows] != ABSENT
        return (refused & placed).astype(np.uint8)


class VolumeZone(PreFilter, NodeFilter):
    name = "VolumeZone"

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        topologies = _topologies(ctx.listers, pod.pod.namespace, pod.derived(claim_names))
        if isinstance(topologies, Status):
            return topologies
        if not topologies:
            return SKIP
        ctx.state.write(TOPOLOGIES, topologies)
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        topologies = ctx.state.read(TOPOLOGIES)
        return VolumeZoneKernel(ctx.table, topologies) if topologies else None

    def events(self) -> Sequence[EventRegistration]:
        change = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), _class_added, _waiting_for),
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), _node_changed, _waiting_for
            ),
            EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, change), _claim_changed, _waiting_for),
            EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, change), _volume_changed, _waiting_for),
        )


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The claims a pod names; those of its ephemeral volumes are not looked at."""
    volumes = pod.spec.volumes
    return tuple([v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim is not None])


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    return pod.namespace, claim_names(pod)


def topologies_of(volume: PersistentVolume) -> list[Topology]:
    """What the labels of a volume ask of nodes: ``a__b`` means a or b. Labels with an empty part say nothing.

    Source: getPVTopologies, and LabelZonesToSet in cloud-provider/volume/helpers.
    """
    found = []
    for key in TOPOLOGY_LABELS:
        text = volume.metadata.labels.get(key)
        if text is None:
            continue
        values = frozenset(part.strip() for part in text.split("__"))
        if "" not in values:
            found.append(Topology(key, values))
    return found


def _topologies(listers: Listers, namespace: str, names: tuple[str, ...]) -> tuple[Topology, ...] | Status:
    """What the volumes of the claims ask of nodes, or what keeps the pod away from all of them."""
    found: dict[Topology, None] = {}
    for name in names:
        volume = _volume_of(listers, namespace, name)
        if isinstance(volume, Status):
            return volume
        if volume is not None:
            found.update(dict.fromkeys(topologies_of(volume)))
    return tuple(found)


def _volume_of(listers: Listers, namespace: str, name: str) -> PersistentVolume | Status | None:
    """The volume a claim is bound to; None if the claim may wait for the pod, else what keeps the pod away."""
    if not name:
        return unresolvable("PersistentVolumeClaim had no name")
    claim = listers.persistent_volume_claims.get(f"{namespace}/{name}")
    if claim is None:
        return unresolvable(f'persistentvolumeclaim "{name}" not found')
    if not claim.spec.volume_name:
        return _unbound(listers, claim)
    volume = listers.persistent_volumes.get(claim.spec.volume_name)
    return volume if volume is not None else unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')


def _unbound(listers: Listers, claim: PersistentVolumeClaim) -> Status | None:
    class_name = claim_class(claim)
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = listers.storage_classes.get(class_name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    if not storage_class.volume_binding_mode:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    return unresolvable("PersistentVolume had no name")


def _claims(pod: Pod, view: Listers) -> list[PersistentVolumeClaim]:
    """Those of the pod's claims that exist."""
    found = [view.persistent_volume_claims.get(f"{pod.namespace}/{name}") for name in claim_names(pod)]
    return [claim for claim in found if claim is not None]


def _class_added(pod: Pod, old: None, new: StorageClass, view: Listers) -> QueueingHint:
    if new.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return QueueingHint.SKIP
    return queue_if(any(claim_class(claim) == new.name for claim in _claims(pod, view)))


def _claim_changed(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, view: Listers
) -> QueueingHint:
    if new.namespace != pod.namespace or new.name not in claim_names(pod):
        return QueueingHint.SKIP
    return queue_if(old is None or (old.spec.volume_name, claim_class(old)) != (new.spec.volume_name, claim_class(new)))


def _volume_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume, view: Listers) -> QueueingHint:
    if old is not None and topologies_of(old) == topologies_of(new):
        return QueueingHint.SKIP
    return queue_if(any(claim.spec.volume_name == new.name for claim in _claims(pod, view)))


def _node_changed(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    topologies = _topologies(view, pod.namespace, claim_names(pod))
    if isinstance(topologies, Status):
        return QueueingHint.SKIP
    return queue_if(_is_there(new, topologies) and (old is None or not _is_there(old, topologies)))


def _is_there(node: Node, topologies: tuple[Topology, ...]) -> bool:
    """Whether a node is where the volumes are; the plain form of the kernel."""
    labels = node.metadata.labels
    if not any(key in labels for key in TOPOLOGY_LABELS):
        return True
    return all(labels.get(key, labels.get(_GA_LABEL.get(key, key))) in values for key, values in topologies)
