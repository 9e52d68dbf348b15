from __future__ import annotations

import asyncio

import msgspec
import pytest

from kube_pyscheduler.daemon.authn import Access, User
from kube_pyscheduler.daemon.wiring import (
    ApiBinder,
    ApiEvictor,
    ApiObjects,
    ApiReader,
    ApiReviews,
    ApiStatus,
    ApiTruth,
)
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import NAMESPACES, PODS
from kube_pyscheduler.framework.handle import StaleObject
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.kinds import NAMESPACE
from kube_pyscheduler.objects.kinds import POD as POD_KIND
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.ports import BindOutcome
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Conflict, NetworkError, ServerError, TooManyRequests
from tests.unit.daemon.cluster import cluster
from tests.unit.scripted_server import Answer, ScriptedServer, reply, session_to, status

NODE, OTHER = "node-00000", "node-00001"
POD = Pod(ObjectMeta(name="a", namespace="default", uid="u-1"))


def with_uid(pod: Pod, uid: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


async def test_a_pod_is_bound_and_binding_it_again_is_a_success() -> None:
    async with cluster() as api:
        api.add_pod("a")
        pod, binder = await api.pod("a"), ApiBinder(api.client)
        for _ in range(2):
            assert (await binder.bind(pod, NODE)).outcome is BindOutcome.BOUND
        assert api.raw_pod("a")["spec"]["nodeName"] == NODE


async def test_what_stands_in_the_way_of_a_binding_is_told_apart() -> None:
    async with cluster() as api:
        binder = ApiBinder(api.client)
        for name in ("taken", "replaced", "gone", "ending"):
            api.add_pod(name)
        api.add_pod("gated", gates=("example.com/wait",))
        taken, replaced, gone, ending, gated = [
            await api.pod(name) for name in ("taken", "replaced", "gone", "ending", "gated")
        ]
        await binder.bind(taken, OTHER)
        api.server.registry.delete(PODS, "default", "gone", DeleteOptions(grace_seconds=0))
        raw = dict(api.raw_pod("ending"))
        api.server.store.update(
            PODS, {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": api.server.registry.now()}}
        )
        assert (await binder.bind(taken, NODE)).outcome is BindOutcome.BOUND_ELSEWHERE
        assert (await binder.bind(with_uid(replaced, "another"), NODE)).outcome is BindOutcome.GONE
        assert (await binder.bind(gone, NODE)).outcome is BindOutcome.GONE
        assert (await binder.bind(ending, NODE)).outcome is BindOutcome.GONE
        assert (await binder.bind(gated, NODE)).outcome is BindOutcome.GATED


async def test_without_the_lease_nothing_is_written() -> None:
    async with cluster() as api:
        api.add_pod("a")
        pod = await api.pod("a")
        follower = Client(api.session, may_write=lambda: False)
        assert (await ApiBinder(follower).bind(pod, NODE)).outcome is BindOutcome.NOT_OURS
        with pytest.raises(NetworkError):
            await ApiStatus(follower).send(pod, {"status": {"nominatedNodeName": NODE}})
        with pytest.raises(NetworkError):
            await ApiEvictor(follower, FakeClock()).evict(pod, "room for a better one")
        assert "nodeName" not in api.raw_pod("a")["spec"]
        assert "nominatedNodeName" not in api.raw_pod("a")["status"]


async def test_a_refused_binding_says_why() -> None:
    async with ScriptedServer() as server, session_to(server.url) as session:
        client = Client(session)
        server.script("POST", "/api/v1/namespaces/default/pods/a/binding", status(422, "Invalid", "no such field"))
        result = await ApiBinder(client).bind(POD, NODE)
        assert result.outcome is BindOutcome.FAILED
        assert "no such field" in result.message


async def test_a_status_is_written_and_a_pod_that_is_gone_is_none_of_our_business() -> None:
    async with cluster() as api:
        api.add_pod("a")
        pod, sender = await api.pod("a"), ApiStatus(api.client)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
        await sender.send(pod, {"status": {"conditions": [condition]}})
        assert condition.items() <= api.raw_pod("a")["status"]["conditions"][0].items()
        await sender.send(with_uid(pod, "another"), {"status": {"nominatedNodeName": NODE}})
        api.server.registry.delete(PODS, "default", "a", DeleteOptions(grace_seconds=0))
        await sender.send(pod, {"status": {"nominatedNodeName": NODE}})


async def test_a_victim_gets_its_condition_and_is_deleted() -> None:
    async with cluster() as api:
        api.add_pod("victim")
        victim, evictor = await api.pod("victim"), ApiEvictor(api.client, FakeClock(0.0))
        await ApiBinder(api.client).bind(victim, NODE)
        await evictor.evict(with_uid(victim, "another"), "room")
        assert "deletionTimestamp" not in api.raw_pod("victim")["metadata"]
        await evictor.evict(victim, "room for a better one")
        ending = api.raw_pod("victim")
        assert "deletionTimestamp" in ending["metadata"]
        (condition,) = (it for it in ending["status"]["conditions"] if it["type"] == "DisruptionTarget")
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        assert condition["message"] == "room for a better one"
        assert condition["lastTransitionTime"] == "1970-01-01T00:00:00Z"
        api.server.registry.delete(PODS, "default", "victim", DeleteOptions(grace_seconds=0))
        await evictor.evict(victim, "once more")


async def test_a_pod_is_read_back_unless_another_one_has_its_name() -> None:
    async with cluster() as api:
        api.add_pod("a")
        pod, reader = await api.pod("a"), ApiReader(api.client)
        assert await reader.read(pod) == pod
        assert await reader.read(with_uid(pod, "another")) is None
        api.server.registry.delete(PODS, "default", "a", DeleteOptions(grace_seconds=0))
        assert await reader.read(pod) is None


async def test_waiting_for_an_object_ends_with_its_change_or_in_time() -> None:
    async with cluster() as api, Tasks() as tasks:
        informers = Informers(api.client, [NAMESPACE])
        objects = ApiObjects(api.client, informers)
        informers.start(tasks)
        await informers.synced()
        assert await objects.until("Namespace", "default", lambda found: found is not None, 5)
        waiting = [
            asyncio.ensure_future(objects.until("Namespace", "later", lambda found: found is not None, 5))
            for _ in range(2)
        ]
        await asyncio.sleep(0)
        api.server.registry.create(NAMESPACES, {"metadata": {"name": "later"}})
        assert await asyncio.gather(*waiting) == [True, True]
        patched = await objects.patch("Namespace", "", "later", {"metadata": {"labels": {"a": "b"}}})
        assert patched.metadata.labels["a"] == "b"
        labelled = objects.until(
            "Namespace", "later", lambda found: found is not None and found.metadata.labels.get("a") == "b", 5
        )
        assert await labelled
        assert not await objects.until("Namespace", "never", lambda found: found is not None, 0.01)


async def test_objects_are_read_made_changed_and_deleted() -> None:
    async with cluster() as api:
        objects = ApiObjects(api.client, Informers(api.client, [NAMESPACE]))
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"generateName": "made-"}}
        made = await objects.create("ResourceClaim", "default", {**body, "spec": {"devices": {}}})
        assert made.name.startswith("made-")
        assert await objects.read("ResourceClaim", "default", made.name) == made
        users = [{"resource": "pods", "name": name, "uid": f"u-{name}"} for name in ("a", "b")]
        version = {"resourceVersion": made.metadata.resource_version}
        patch = {"metadata": version, "status": {"reservedFor": users}}
        used = await objects.patch("ResourceClaim", "default", made.name, patch, status=True)
        assert [user.name for user in used.status.reserved_for] == ["a", "b"]
        with pytest.raises(StaleObject):
            await objects.patch("ResourceClaim", "default", made.name, patch, status=True)
        gone = {"status": {"reservedFor": [{"$patch": "delete", "uid": "u-a"}]}}
        left = await objects.patch("ResourceClaim", "default", made.name, gone, status=True, strategic=True)
        assert [user.name for user in left.status.reserved_for] == ["b"]
        with pytest.raises(Conflict):
            await objects.delete("ResourceClaim", "default", made.name, "another")
        await objects.delete("ResourceClaim", "default", made.name, made.uid)
        assert await objects.read("ResourceClaim", "default", made.name) is None
        await objects.delete("ResourceClaim", "default", made.name, made.uid)


async def test_waiting_for_several_objects() -> None:
    async with cluster() as api, Tasks() as tasks:
        informers = Informers(api.client, [NAMESPACE])
        objects = ApiObjects(api.client, informers)
        informers.start(tasks)
        await informers.synced()
        names = [("Namespace", name) for name in ("one", "two", "one")]
        waiting = asyncio.ensure_future(objects.until_any(names, lambda *found: None not in found, 5))
        await asyncio.sleep(0)
        for name in ("one", "two"):
            assert not waiting.done()
            api.server.registry.create(NAMESPACES, {"metadata": {"name": name}})
        assert await waiting
        with pytest.raises(ZeroDivisionError):
            await objects.until_any(names, lambda *found: bool(1 // 0), 5)


async def test_what_is_waited_for_may_grow_while_one_looks() -> None:
    async with cluster() as api, Tasks() as tasks:
        informers = Informers(api.client, [NAMESPACE])
        objects = ApiObjects(api.client, informers)
        informers.start(tasks)
        await informers.synced()
        watched = [("Namespace", "default")]

        def look(*_found: object) -> bool:
            watched.append(("Namespace", "other"))
            return True

        assert await objects.until_any(watched, look, 5)
        assert len(watched) == 2


async def test_reviews_are_asked_of_the_api_server() -> None:
    async with cluster() as api:
        reviews = ApiReviews(api.client, api.client)
        user = await reviews.token(api.server.token)
        assert user is not None
        assert "system:masters" in user.groups
        assert await reviews.token("nobody's") is None
        assert (await reviews.access(user, "get", "/metrics")).allowed


async def test_reviews_are_read_as_far_as_they_go() -> None:
    async with ScriptedServer() as server, session_to(server.url) as session:
        client = Client(session)
        reviews = ApiReviews(client, client)
        extra = {"authentication.kubernetes.io/pod-name": ["prometheus-0"]}
        known = {"username": "monitor", "uid": "u", "groups": ["g"], "extra": extra}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        server.script("POST", path, reply(201, {"status": {"authenticated": True, "user": known}}), reply(201, {}))
        user = await reviews.token("t")
        assert user == User("monitor", "u", ("g",), extra)
        assert await reviews.token("t") is None
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        server.script(
            "POST",
            path,
            reply(201, {"status": {"allowed": True}}),
            reply(201, {"status": {"allowed": False, "reason": "no rule"}}),
        )
        assert await reviews.access(user, "get", "/metrics") == Access(True)
        assert await reviews.access(user, "get", "/configz") == Access(False, "no rule")
        spec = server.seen[-1].body["spec"]
        assert spec["nonResourceAttributes"] == {"path": "/configz", "verb": "get"}
        assert (spec["user"], spec["groups"], spec["extra"]) == ("monitor", ["g"], extra)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(status(500, "InternalError"), ServerError), (status(429, "TooManyRequests"), TooManyRequests)],
)
async def test_a_status_that_may_be_written_later_is_left_to_the_caller(answer: Answer, error: type[Exception]) -> None:
    async with ScriptedServer() as server, session_to(server.url) as session:
        client = Client(session)
        server.script("PATCH", "/api/v1/namespaces/default/pods/a/status", answer)
        with pytest.raises(error):
            await ApiStatus(client).send(POD, {"status": {}})


async def test_the_truth_is_what_the_server_has_whatever_the_watch_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube_pyscheduler.informers.reflector.PAGE_SIZE", 2)
    async with cluster() as api, Tasks() as tasks:
        for name in ("a", "b", "c"):
            api.add_pod(name)
        informers = Informers(api.client, [POD_KIND])
        truth = ApiTruth(informers)
        informers.start(tasks)
        await informers.synced()
        told = truth.told("Pod")
        api.server.store.delete(PODS, "default", "a")
        api.add_pod("d")
        listed = await truth.list("Pod")
        assert listed.version == str(api.server.store.revision)
        assert list(listed.objects) == ["default/b", "default/c", "default/d"]
        raw = api.raw_pod("d")["metadata"]
        assert listed.objects["default/d"] == (raw["uid"], raw["resourceVersion"])
        await ApiBinder(api.client).bind(await api.pod("d"), NODE)
        assert list((await truth.waiting()).objects) == ["default/b", "default/c"]
        await truth.relist("Pod")
        assert sorted(pod.key for pod in told) == ["default/b", "default/c", "default/d"]


async def test_finished_pods_are_no_part_of_the_truth_as_the_watch_does_not_tell_of_them() -> None:
    async with cluster() as api:
        api.add_pod("done")
        raw = api.raw_pod("done")
        status = {**raw["status"], "phase": "Succeeded"}
        api.server.registry.update(PODS, {**raw, "status": status}, subresource="status")
        assert (await ApiTruth(Informers(api.client, [POD_KIND])).list("Pod")).objects == {}
