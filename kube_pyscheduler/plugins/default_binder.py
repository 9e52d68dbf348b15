"""DefaultBinder: posts the Binding."""

from __future__ import annotations

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import Bind
from kube_pyscheduler.framework.status import Status


class DefaultBinder(Bind):
    """Source: pkg/scheduler/framework/plugins/defaultbinder."""

    name = "DefaultBinder"

    async def bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        return await handle.bind(pod.pod, node)
