import json
from typing import Any

import pytest

from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.recorder.event import Reference
from kube_pyscheduler.recorder.recorder import Recorder
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.errors import AlreadyExists, APIError, NotFound
from tests.contract.cluster import Cluster, refused


def about(cluster: Cluster, pod: dict[str, Any]) -> Reference:
    metadata = pod["metadata"]
    return Reference("v1", "Pod", cluster.namespace, "p", metadata["uid"], metadata["resourceVersion"])


async def events_of(cluster: Cluster) -> list[dict[str, Any]]:
    found = await cluster.call("GET", f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
    items: list[dict[str, Any]] = found["items"]
    return items


async def test_an_event_shows_in_both_apis(cluster: Cluster, pod: dict[str, Any]) -> None:
    async with Tasks() as tasks:
        recorder = Recorder(cluster.client, tasks, host="host")
        recorder.event(about(cluster, pod), "Normal", "Scheduled", "Binding", "to n1", controller="contract-tests")
        await recorder.drain()
        assert (recorder.counts.written, recorder.counts.failed) == (1, 0)
    (event,) = await events_of(cluster)
    assert (event["reason"], event["action"], event["note"], event["type"]) == (
        "Scheduled",
        "Binding",
        "to n1",
        "Normal",
    )
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    core = await cluster.call("GET", f"/api/v1/namespaces/{cluster.namespace}/events")
    (same,) = core["items"]
    assert same["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert same["message"] == "to n1"
    assert same["reportingComponent"] == "contract-tests"


async def test_repetitions_become_a_series(cluster: Cluster, pod: dict[str, Any]) -> None:
    async with Tasks() as tasks:
        recorder = Recorder(cluster.client, tasks, host="host")
        for _ in range(2):
            recorder.event(
                about(cluster, pod), "Warning", "FailedScheduling", "Scheduling", "no", controller="contract-tests"
            )
            await recorder.drain()
        assert (recorder.counts.written, recorder.counts.failed) == (2, 0)
    (event,) = await events_of(cluster)
    assert event["series"]["count"] == 2
    assert event["note"] == "no"


async def test_the_longest_note_is_accepted(cluster: Cluster, pod: dict[str, Any]) -> None:
    async with Tasks() as tasks:
        recorder = Recorder(cluster.client, tasks, host="host")
        recorder.event(about(cluster, pod), "Warning", "Failed", "Scheduling", "€" * 5_000, controller="contract-tests")
        await recorder.drain()
        assert recorder.counts.written == 1
    (event,) = await events_of(cluster)
    assert event["note"].endswith("€ ...")


async def test_an_event_without_namespace_lives_in_default(cluster: Cluster, node: str) -> None:
    async with Tasks() as tasks:
        recorder = Recorder(cluster.client, tasks, host="host")
        recorder.event(Reference("v1", "Node", "", node, "u"), "Normal", "R", "A", "n", controller="contract-tests")
        await recorder.drain()
        assert recorder.counts.written == 1


async def test_names_are_taken_once_and_namespaces_must_exist(cluster: Cluster, pod: dict[str, Any]) -> None:
    body = _event(cluster.namespace, pod)
    await cluster.client.send(requests.create_event(cluster.namespace, body))
    error = await refused(cluster.client.send(requests.create_event(cluster.namespace, body)))
    assert isinstance(error, AlreadyExists)
    elsewhere = f"{cluster.namespace}-none"
    error = await refused(cluster.client.send(requests.create_event(elsewhere, _event(elsewhere, pod))))
    assert isinstance(error, NotFound)


async def test_a_series_of_no_event(cluster: Cluster) -> None:
    body = json.dumps({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}).encode()
    error = await refused(cluster.client.send(requests.patch_event(cluster.namespace, "none", body)))
    assert isinstance(error, NotFound)


@pytest.mark.parametrize(
    "missing", ["action", "reportingController", "reportingInstance", "reason", "eventTime", "type"]
)
async def test_what_an_event_must_say(cluster: Cluster, pod: dict[str, Any], missing: str) -> None:
    event = json.loads(_event(cluster.namespace, pod))
    del event[missing]
    body = json.dumps(event).encode()
    error = await refused(cluster.client.send(requests.create_event(cluster.namespace, body)))
    assert isinstance(error, APIError)
    assert (error.code, error.reason) == (422, "Invalid")


def _event(namespace: str, pod: dict[str, Any]) -> bytes:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "contract-tests",
        "reportingInstance": "contract-tests-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "p", "uid": pod["metadata"]["uid"]},
        "note": "to n1",
        "type": "Normal",
    }
    return json.dumps(event).encode()
