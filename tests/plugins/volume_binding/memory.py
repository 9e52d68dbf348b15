"""An API server, its watch and its volume controllers, in memory and step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import CycleContext
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.clusters import Cluster
from tests.storage import put, remove

Step = Callable[[], None]


class MemoryHandle:
    """A binding handle. ``stored``: what the API server has; the cluster's listers: what the watch told of it.

    ``steps`` happen one after the other while somebody waits; when there are none left, the wait is over in vain.
    """

    def __init__(self, cluster: Cluster, *stored: Object) -> None:
        self.listers: Listers = cluster.cache.listers
        self.stored: dict[tuple[str, str], Object] = {}
        self.patches: list[tuple[str, str, dict[str, Any]]] = []
        self.steps: list[Step] = []
        self.time = 0.0
        self._cluster = cluster
        self._version = 100
        for item in stored:
            self.stored[type(item).__name__, item.key] = item
            self.tell(item)

    def tell(self, *items: Object) -> None:
        """The watch tells of these, or of what is stored under their names."""
        for item in items:
            latest = self.stored.get((type(item).__name__, item.key), item)
            if isinstance(latest, Node):
                self._cluster.cache.set_node(latest)
            else:
                put(self.listers, latest)

    def lose(self, item: Object) -> None:
        """The object is gone, and the watch tells of it."""
        self.stored.pop((type(item).__name__, item.key), None)
        if isinstance(item, Node):
            self._cluster.cache.remove_node(item)
        else:
            remove(self.listers, item)

    def change(self, item: Object, told: bool = True, **fields: Any) -> Any:
        """Somebody changes fields of ``metadata``, ``spec`` or ``status`` of what is stored, named by their path."""
        latest = self.stored[type(item).__name__, item.key]
        document = msgspec.json.decode(msgspec.json.encode(latest))
        for path, value in fields.items():
            part, _, name = path.partition("__")
            document.setdefault(part, {})[name] = value
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)
        changed: Object = msgspec.convert(document, type(latest))
        self.stored[type(item).__name__, item.key] = changed
        if told:
            self.tell(changed)
        return changed

    async def bind(self, pod: Pod, node: str) -> Status | None:
        raise AssertionError("volumes are bound before pods")

    async def read(self, kind: str, namespace: str, name: str) -> Any:
        raise AssertionError("volumes are read from informers")

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> Any:
        raise AssertionError("provisioners make volumes")

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        raise AssertionError("nothing is deleted for a pod")

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        raise AssertionError("binding volumes is silent")

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        status: bool = False,
        strategic: bool = False,
    ) -> Any:
        key = f"{namespace}/{name}" if namespace else name
        self.patches.append((kind, key, patch))
        latest = self.stored[kind, key]
        if patch["metadata"]["resourceVersion"] != latest.metadata.resource_version:
            raise RuntimeError(f"the object {key} has been modified")
        annotations = {**latest.metadata.annotations, **patch["metadata"].get("annotations", {})}
        return self.change(
            latest,
            told=False,
            metadata__annotations=annotations,
            **{f"spec__{k}": v for k, v in patch.get("spec", {}).items()},
        )

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        return await self.until_any([(kind, key)], predicate, timeout)

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        while not predicate(*[self._told(kind, key) for kind, key in watched]):
            if not self.steps:
                self.time += timeout
                return False
            self.steps.pop(0)()
        return True

    def now(self) -> float:
        return self.time

    def wall_time(self) -> float:
        return self.time

    def _told(self, kind: str, key: str) -> Any:
        match kind:
            case "Node":
                row = self._cluster.cache.table.row_of.get(key)
                return None if row is None else self._cluster.cache.table.nodes[row]
            case "PersistentVolume":
                return self.listers.persistent_volumes.get(key)
        return self.listers.persistent_volume_claims.get(key)


class Attempt:
    """One pod on its way to a node, as far as its volumes go."""

    def __init__(self, cluster: Cluster, plugin: VolumeBinding, pod: Pod) -> None:
        self.plugin = plugin
        self.info = PodInfo(pod)
        cycle, _judged = cluster.engine.cycle(cluster.profile, self.info)
        self.ctx: CycleContext = cycle.ctx
        self.answer = plugin.pre_filter(self.ctx, self.info)
        self.kernel = None if isinstance(self.answer, Status) else plugin.filter_kernel(self.ctx, self.info)

    @property
    def fits(self) -> set[str]:
        """The nodes it may go to."""
        assert self.kernel is not None
        table = self.ctx.table
        rows = table.live_rows()
        return {table.names[row] for row in rows[self.kernel.codes(table, rows) == 0].tolist()}

    def reserve(self, node: str) -> Status | None:
        return self.plugin.reserve(self.ctx, self.info, node)

    def unreserve(self, node: str) -> None:
        self.plugin.unreserve(self.ctx, self.info, node)

    def pre_flight(self, node: str) -> Status | None:
        return self.plugin.pre_bind_pre_flight(self.ctx.state, self.info, node)

    async def pre_bind(self, handle: MemoryHandle, node: str) -> str:
        """ "" for success, else the text of the error."""
        status = await self.plugin.pre_bind(handle, self.ctx.state, self.info, node)
        return "" if status is None else status.message
