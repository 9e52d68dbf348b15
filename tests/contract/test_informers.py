import asyncio
from typing import Any

from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.kinds import KINDS, NODE, POD
from kube_pyscheduler.transport import requests
from tests.contract.cluster import Cluster


async def test_all_kinds_sync_and_a_pods_life_is_told_in_order(cluster: Cluster) -> None:
    informers = Informers(cluster.client, KINDS)
    told: asyncio.Queue[str] = asyncio.Queue()

    def pod_changed(old: Any, new: Any) -> None:
        subject = new or old
        if subject.namespace == cluster.namespace and not (new and new.is_terminating):
            told.put_nowait("gone" if new is None else f"on {new.spec.node_name}" if new.spec.node_name else "pending")

    informers.of(POD).add_handler(pod_changed)
    async with Tasks() as tasks:
        informers.start(tasks)
        await informers.synced()
        assert [informer.problem for informer in informers] == [""] * len(KINDS)
        node = await cluster.create_node()
        pod = await cluster.create_pod("p")
        assert await told.get() == "pending"
        await cluster.client.send(requests.bind_pod(cluster.namespace, "p", pod["metadata"]["uid"], node))
        assert await told.get() == f"on {node}"
        assert informers.of(NODE).store.get(node) is not None
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        await cluster.call("DELETE", f"{cluster.pods}/p", options)
        assert await told.get() == "gone"
