"""PreEnqueue: who may enter activeQ or backoffQ."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube_pyscheduler.framework.interfaces import PreEnqueue
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduling_queue.observer import QueueObserver
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod

log = Log(__name__)


class Gates:
    """The PreEnqueue plugins of all profiles. ``timer`` gives seconds for what is told to ``observer``."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        listers: Listers,
        observer: QueueObserver,
        timer: Callable[[], float],
    ) -> None:
        self._plugins = {name: profile.pre_enqueue for name, profile in profiles.items()}
        self._listers = listers
        self._observer = observer
        self._timer = timer

    def judge(self, queued: QueuedPod) -> None:
        """Ask the plugins and set ``gating_plugin``: the first that refuses, or "". The one that gates already is
        asked first. Who gates a pod is remembered among those who refused it.

        Source: runPreEnqueuePlugins in pkg/scheduler/backend/queue/scheduling_queue.go.
        """
        plugins = self._plugins.get(queued.profile, ())
        if not plugins:
            queued.gating_plugin = ""
            return
        if queued.gating_plugin:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != queued.gating_plugin))
        start = self._timer()
        code = Code.SUCCESS
        gating = ""
        for plugin in plugins:
            status = self._ask(plugin, queued)
            if status is not None and not status.is_success:
                code, gating = status.code, plugin.name
                break
        queued.gating_plugin = gating
        if gating:
            queued.unschedulable_plugins |= {gating}
        self._observer.extension_point(queued.profile, "PreEnqueue", code.label, self._timer() - start)

    def _ask(self, plugin: PreEnqueue, queued: QueuedPod) -> Status | None:
        try:
            status = plugin.pre_enqueue(queued.pod, self._listers)
        except Exception as raised:
            log.error("PreEnqueue plugin failed", raised, pod=queued.pod_info.key, plugin=plugin.name)
            return error(str(raised))
        if status is not None and not status.is_success:
            if status.code == Code.ERROR:
                log.error("Unexpected error running PreEnqueue plugin", pod=queued.pod_info.key, plugin=plugin.name)
            elif log.v(4):
                log.info(
                    4,
                    "Status after running PreEnqueue plugin",
                    pod=queued.pod_info.key,
                    plugin=plugin.name,
                    status=status.message,
                )
        return status
