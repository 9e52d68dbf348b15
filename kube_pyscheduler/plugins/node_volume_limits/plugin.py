"""The plugin. Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go."""

from __future__ import annotations

from collections.abc import Sequence

from kube_pyscheduler.columns.csi_nodes import CSINodeColumn
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, PreFilter, PreFilterResult
from kube_pyscheduler.framework.status import SKIP, Status, error, unresolvable
from kube_pyscheduler.plugins.node_volume_limits.attached import AttachedVolumes
from kube_pyscheduler.plugins.node_volume_limits.events import EVENTS
from kube_pyscheduler.plugins.node_volume_limits.kernel import Problem, VolumeLimitsKernel
from kube_pyscheduler.plugins.node_volume_limits.volumes import (
    Broken,
    ClaimRef,
    Counted,
    may_count,
    must_be_registered,
    uses_of,
)


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
        required = frozenset(driver for driver in drivers if must_be_registered(ctx.listers, driver))
        column = ctx.table.attached(CSINodeColumn)
        column.sync(ctx.listers.csi_nodes)
        return VolumeLimitsKernel(ctx.table, column, attached, ctx.listers, volumes, required, problems)

    def events(self) -> Sequence[EventRegistration]:
        return EVENTS
