"""How things end: grace, finalizers, dependents, namespaces, evictions."""

from __future__ import annotations

import pytest

from tests.devserver.api import PODS, Api, Object, binding, make_pod

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def bound_pod(api: Api, name: str = "a", **spec: object) -> Object:
    await api.created(PODS, make_pod(name, **spec))
    assert (await api.post(f"{PODS}/{name}/binding", binding(name, "n"))).status == 201
    found: Object = (await api.get(f"{PODS}/{name}")).body
    return found


async def exists(api: Api, path: str) -> bool:
    return (await api.get(path)).status == 200


async def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    created = await api.created(PODS, make_pod())
    answer = await api.delete(f"{PODS}/a")
    assert answer.body["metadata"]["uid"] == created["metadata"]["uid"]
    assert not await exists(api, f"{PODS}/a")


async def test_a_pod_on_a_node_gets_its_grace(api: Api) -> None:
    await bound_pod(api)
    answer = await api.delete(f"{PODS}/a")
    assert answer.status == 200
    metadata = answer.body["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"] > metadata["creationTimestamp"]
    assert metadata["generation"] == 2
    longer = (await api.delete(f"{PODS}/a", gracePeriodSeconds="60")).body["metadata"]
    assert longer["deletionTimestamp"] == metadata["deletionTimestamp"]
    shorter = (await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 5})).body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert shorter["deletionTimestamp"] < metadata["deletionTimestamp"]
    await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert not await exists(api, f"{PODS}/a")


async def test_a_finished_pod_goes_at_once(api: Api) -> None:
    await bound_pod(api)
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/a")
    assert not await exists(api, f"{PODS}/a")


async def test_preconditions(api: Api) -> None:
    created = await api.created(PODS, make_pod())
    wrong = await api.delete(f"{PODS}/a", {"preconditions": {"uid": "other"}})
    assert (wrong.status, wrong.body["reason"]) == (409, "Conflict")
    stale = await api.delete(f"{PODS}/a", {"preconditions": {"resourceVersion": "1"}})
    assert stale.status == 409
    metadata = created["metadata"]
    right = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    assert (await api.delete(f"{PODS}/a", {"preconditions": right})).status == 200


async def test_finalizers_hold_an_object(api: Api) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}})
    answer = await api.delete(f"{CONFIG_MAPS}/c")
    assert answer.body["metadata"]["deletionTimestamp"]
    assert await exists(api, f"{CONFIG_MAPS}/c")
    added = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    assert (await api.patch(f"{CONFIG_MAPS}/c", added)).status == 422
    released = await api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": []}})
    assert released.status == 200
    assert not await exists(api, f"{CONFIG_MAPS}/c")


async def test_kinds_without_a_story_are_answered_with_a_status(api: Api) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "c"}})
    answer = await api.delete(f"{CONFIG_MAPS}/c")
    assert answer.body["kind"] == "Status"
    assert answer.body["details"] == {"name": "c", "kind": "configmaps", "uid": created["metadata"]["uid"]}


@pytest.mark.parametrize("options", [{"propagationPolicy": "Sideways"}, {"gracePeriodSeconds": "soon"}])
async def test_options_that_make_no_sense(api: Api, options: Object) -> None:
    await api.created(PODS, make_pod())
    assert (await api.delete(f"{PODS}/a", options)).status in (400, 422)
    assert await exists(api, f"{PODS}/a")


def owned(name: str, *owners: Object) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}
        for o in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references}}


async def family(api: Api) -> Object:
    """An owner "o" with a child "c" that has a child "g", and a child "s" shared with another owner "p"."""
    owner = await api.created(CONFIG_MAPS, {"metadata": {"name": "o"}})
    other = await api.created(CONFIG_MAPS, {"metadata": {"name": "p"}})
    child = await api.created(CONFIG_MAPS, owned("c", owner))
    await api.created(CONFIG_MAPS, owned("g", child))
    return await api.created(CONFIG_MAPS, owned("s", owner, other))


async def names(api: Api) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.get(CONFIG_MAPS)).body["items"]]


async def test_dependents_follow_in_the_background(api: Api) -> None:
    await family(api)
    await api.delete(f"{CONFIG_MAPS}/o")
    assert await names(api) == ["p", "s"]
    [reference] = (await api.get(f"{CONFIG_MAPS}/s")).body["metadata"]["ownerReferences"]
    assert reference["name"] == "p"


async def test_dependents_go_first_in_the_foreground(api: Api) -> None:
    await family(api)
    async with api.watch(CONFIG_MAPS, resourceVersion=str(api.server.store.revision)) as watch:
        await api.delete(f"{CONFIG_MAPS}/o", {"propagationPolicy": "Foreground"})
        order = [name for kind, name in await watch.names(8) if kind == "DELETED"]
    assert order.index("g") < order.index("c") < order.index("o")


async def test_orphans_stay(api: Api) -> None:
    await family(api)
    await api.delete(f"{CONFIG_MAPS}/o", {"propagationPolicy": "Orphan"})
    assert await names(api) == ["c", "g", "p", "s"]
    assert "ownerReferences" not in (await api.get(f"{CONFIG_MAPS}/c")).body["metadata"]


async def test_a_foreground_deletion_waits_for_what_is_held(api: Api) -> None:
    owner = await api.created(CONFIG_MAPS, {"metadata": {"name": "o"}})
    child = owned("c", owner)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    await api.created(CONFIG_MAPS, child)
    await api.delete(f"{CONFIG_MAPS}/o", {"propagationPolicy": "Foreground"})
    assert await names(api) == ["c", "o"]
    await api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": []}})
    assert await names(api) == []


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name in "abc":
        await api.created(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"n": name}}})
    answer = await api.delete(CONFIG_MAPS, labelSelector="n!=b")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert await names(api) == ["b"]


async def test_a_namespace_goes_when_it_is_empty(api: Api) -> None:
    await api.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
    pods = "/api/v1/namespaces/x/pods"
    await api.created("/api/v1/namespaces/x/configmaps", {"metadata": {"name": "c"}})
    await api.created(pods, make_pod())
    await api.post(f"{pods}/a/binding", binding("a", "n"))
    await api.delete("/api/v1/namespaces/x")
    namespace = (await api.get("/api/v1/namespaces/x")).body
    assert namespace["status"]["phase"] == "Terminating"
    assert (await api.get("/api/v1/namespaces/x/configmaps")).body["items"] == []
    refused = await api.post(pods, make_pod("b"))
    assert (refused.status, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    await api.delete(f"{pods}/a", gracePeriodSeconds="0")
    assert not await exists(api, "/api/v1/namespaces/x")


def eviction(name: str, **options: object) -> Object:
    body: Object = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


async def running_pod(api: Api, name: str, *, ready: bool = True) -> None:
    await bound_pod(api, name)
    await api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "a"}}})
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    await api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [condition]}})


async def budget(api: Api, *, allowed: int, observed: int = 1, name: str = "b", **spec: object) -> None:
    selector = {"matchLabels": {"app": "a"}}
    await api.created(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **spec}})
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "observedGeneration": observed,
    }
    assert (await api.patch(f"{BUDGETS}/{name}/status", {"status": status})).status == 200


async def test_an_eviction_is_a_deletion_with_a_condition(api: Api) -> None:
    await running_pod(api, "a")
    answer = await api.post(f"{PODS}/a/eviction", eviction("a", gracePeriodSeconds=7))
    assert (answer.status, answer.body["status"]) == (201, "Success")
    pod = (await api.get(f"{PODS}/a")).body
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    assert pod["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    assert (await api.post(f"{PODS}/x/eviction", eviction("x"))).status == 404
    assert (await api.post(f"{PODS}/a/eviction", eviction("b"))).status == 400


async def test_a_budget_is_spent_and_then_holds(api: Api) -> None:
    await running_pod(api, "a")
    await running_pod(api, "c")
    await budget(api, allowed=1)
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 201
    status = (await api.get(f"{BUDGETS}/b")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    held = await api.post(f"{PODS}/c/eviction", eviction("c"))
    assert (held.status, held.body["reason"]) == (429, "TooManyRequests")
    assert held.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert held.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b does not allow evicting pods currently",
        }
    ]
    assert "deletionTimestamp" not in (await api.get(f"{PODS}/c")).body["metadata"]


async def test_a_budget_that_was_not_looked_at_yet_holds(api: Api) -> None:
    await running_pod(api, "a")
    await budget(api, allowed=1, observed=0)
    held = await api.post(f"{PODS}/a/eviction", eviction("a"))
    assert held.status == 429
    assert held.headers["Retry-After"] == "10"
    assert "still being processed" in held.body["details"]["causes"][0]["message"]


async def test_two_budgets_are_one_too_many(api: Api) -> None:
    await running_pod(api, "a")
    await budget(api, allowed=1)
    await budget(api, allowed=1, name="b2")
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 500


async def test_pods_that_are_not_up_may_go_by_policy(api: Api) -> None:
    await running_pod(api, "a", ready=False)
    await bound_pod(api, "pending")
    await api.patch(f"{PODS}/pending", {"metadata": {"labels": {"app": "a"}}})
    await budget(api, allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert (await api.post(f"{PODS}/pending/eviction", eviction("pending"))).status == 201
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 201


async def test_a_dry_run_evicts_nobody(api: Api) -> None:
    await running_pod(api, "a")
    await budget(api, allowed=1)
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"), dryRun="All")).status == 201
    assert "deletionTimestamp" not in (await api.get(f"{PODS}/a")).body["metadata"]
    assert (await api.get(f"{BUDGETS}/b")).body["status"]["disruptionsAllowed"] == 1
