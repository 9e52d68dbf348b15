"""Taking a node: Reserve and Permit, their way back, and whether the node is still free. Nothing waits here."""

from __future__ import annotations

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.placement import Placement

log = Log(__name__)


def reserve(placement: Placement) -> Status | None:
    """Ask the Reserve plugins in order; the first that does not agree ends it. None is success.

    Source: RunReservePluginsReserve in pkg/scheduler/framework/runtime/framework.go.
    """
    for plugin in placement.profile.reserve:
        try:
            status = plugin.reserve(placement.ctx, placement.info, placement.node)
        except Exception as raised:
            log.error("Plugin failed", raised, plugin=plugin.name, pod=placement.info.key)
            return error(f'running Reserve plugin "{plugin.name}": {raised}').by(plugin.name)
        if status is not None and not status.is_success:
            if status.is_rejected:
                return status.by(plugin.name)
            return error(f'running Reserve plugin "{plugin.name}": {status.message}').by(plugin.name)
    return None


def permit(placement: Placement) -> tuple[Status | None, dict[str, float]]:
    """Ask the Permit plugins: what refuses the pod, if something does, and how long which of them want it to wait.

    Source: RunPermitPlugins in pkg/scheduler/framework/runtime/framework.go.
    """
    waits: dict[str, float] = {}
    for plugin in placement.profile.permit:
        try:
            status, seconds = plugin.permit(placement.ctx, placement.info, placement.node)
        except Exception as raised:
            log.error("Plugin failed", raised, plugin=plugin.name, pod=placement.info.key)
            return error(f'running Permit plugin "{plugin.name}": {raised}').by(plugin.name), {}
        if status is None or status.is_success:
            continue
        if status.code == Code.WAIT:
            waits[plugin.name] = seconds
        elif status.is_rejected:
            return status.by(plugin.name), {}
        else:
            return error(f'running Permit plugin "{plugin.name}": {status.message}').by(plugin.name), {}
    return None, waits


def take_back(placement: Placement, cache: Cache) -> None:
    """Unreserve in reverse order, then give the node back."""
    for plugin in reversed(placement.profile.reserve):
        try:
            plugin.unreserve(placement.ctx, placement.info, placement.node)
        except Exception as raised:
            log.error("Unreserve failed", raised, plugin=plugin.name, pod=placement.info.key)
    cache.forget(placement.info.uid)


def is_overfull(cache: Cache, node: str) -> bool:
    """Whether more is on the node, assumed pods included, than it can hold. False for unknown nodes."""
    if not cache.has_node(node):
        return False
    table = cache.table
    row = table.row_of[node]
    return bool(
        (table.requested[:, row] > table.allocatable[:, row]).any() or table.pod_count[row] > table.pod_limit[row]
    )


def refusal(status: Status) -> tuple[Status, Diagnosis | None]:
    """How the refusal of the chosen node reads, and whose events may help; errors stay as they are."""
    if not status.is_rejected:
        return status, None
    diagnosis = Diagnosis(1, absent=status)
    diagnosis.blame(status)
    return Status(status.code, (diagnosis.message(),), status.plugin), diagnosis
