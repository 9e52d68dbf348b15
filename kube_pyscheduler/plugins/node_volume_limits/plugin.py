"""The plugin. Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kube_pyscheduler.columns.csi_nodes import CSINodeColumn
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, PreFilter, PreFilterResult
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error, unresolvable
from kube_pyscheduler.objects.csi_translation import in_tree_plugin
from kube_pyscheduler.objects.pod import Pod, Volume
from kube_pyscheduler.objects.storage import (
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
    claim_use,
    claim_uses,
)
from kube_pyscheduler.plugins.node_volume_limits.attached import AttachedVolumes
from kube_pyscheduler.plugins.node_volume_limits.kernel import Problem, VolumeLimitsKernel
from kube_pyscheduler.plugins.node_volume_limits.volumes import Broken, ClaimRef, Counted, uses_of


class NodeVolumeLimits(PreFilter, NodeFilter):
    """Drivers whose CSIDriver asks for it (``preventPodSchedulingIfMissing``) must be registered on the node. Upstream
    does that behind a gate that is off by default; API servers where it is off keep no such wish."""

    name = "NodeVolumeLimits"

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(AttachedVolumes).sync(ctx.listers)
        ctx.table.attached(CSINodeColumn).sync(ctx.listers.csi_nodes)

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        return None if pod.derived(may_count) else SKIP

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        attached = ctx.table.attached(AttachedVolumes)
        attached.sync(ctx.listers)
        volumes: list[Counted] = []
        problems: list[Problem] = []
        for use in pod.derived(uses_of):
            if isinstance(use, ClaimRef) and ctx.listers.persistent_volume_claims.get(use.key) is None:
                name = use.key.partition("/")[2]
                text = f'looking up PVC {use.key}: persistentvolumeclaim "{name}" not found'
                problems.append(Problem(unresolvable(text)))
                break
            found = attached.meaning(ctx.listers, use)
            if isinstance(found, Broken):
                problems.append(Problem(error(found.message), found.is_in_tree))
                if not found.is_in_tree:
                    break
            elif found is not None:
                volumes.append(found)
        if not volumes and not problems:
            return None
        drivers = {counted.volume.driver for counted in volumes}
        required = frozenset(driver for driver in drivers if _must_be_registered(ctx.listers, driver))
        column = ctx.table.attached(CSINodeColumn)
        column.sync(ctx.listers.csi_nodes)
        return VolumeLimitsKernel(ctx.table, column, attached, ctx.listers, volumes, required, problems)

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ClusterEvent(Resource.CSI_NODE, Action.ADD)),
            EventRegistration(ClusterEvent(Resource.CSI_NODE, Action.UPDATE), _limits_changed, _waiting_for),
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _pod_gone, _waiting_for),
            EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), _claim_added, _waiting_for),
            EventRegistration(ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE), _volume_detached, _waiting_for),
        )


def may_count(pod: Pod) -> bool:
    """Whether the pod has a volume of a kind that drivers may attach."""
    return any(_may_count(pod, volume) for volume in pod.spec.volumes)


def _may_count(pod: Pod, volume: Volume) -> bool:
    return claim_use(pod, volume) is not None or in_tree_plugin(volume) is not None


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    return pod.namespace, tuple([(claim_use(pod, volume), in_tree_plugin(volume)) for volume in pod.spec.volumes])


def _must_be_registered(listers: Listers, driver: str) -> bool:
    csi_driver = listers.csi_drivers.get(driver)
    return csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in csi_node.spec.drivers
    }


def _limits_changed(pod: Pod, old: CSINode, new: CSINode, view: Listers) -> QueueingHint:
    before = _limits(old)
    helps = any(count > before.get(driver, 0) for driver, count in _limits(new).items())
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _pod_gone(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    was_placed = bool(old.spec.node_name or old.status.nominated_node_name)
    return QueueingHint.QUEUE if was_placed and may_count(old) else QueueingHint.SKIP


def _claim_added(pod: Pod, old: None, new: PersistentVolumeClaim, view: Listers) -> QueueingHint:
    helps = new.namespace == pod.namespace and any(use.name == new.name for use in claim_uses(pod))
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _volume_detached(pod: Pod, old: VolumeAttachment, new: None, view: Listers) -> QueueingHint:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        plugin = in_tree_plugin(volume)
        if plugin is not None and plugin.driver == old.spec.attacher:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
