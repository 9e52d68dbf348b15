"""What is written when a pod is bound, and what is taken back when that fails; against a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_pyscheduler.framework.handle import StaleObject
from kube_pyscheduler.framework.status import Code, error
from kube_pyscheduler.objects.resource import FINALIZER
from tests.builders import make_node
from tests.plugins.dynamic_resources.lab import Lab, lab
from tests.plugins.dynamic_resources.world import (
    DRIVER,
    allocation,
    device,
    devices_of,
    make_claim,
    make_class,
    make_pod,
    make_slice,
    reserved,
)
from tests.unit.daemon.cluster import eventually

POD = make_pod("p", "c")
RESULT = {"request": "a", "driver": DRIVER, "pool": "n0", "device": "a"}


def furnish(lab: Lab, *devices: str, extended: str | None = None) -> None:
    """Two devices on n0."""
    slices = make_slice("s", [device(name) for name in devices or ("a", "b")], node="n0")
    lab.world.put(make_node("n0"), make_class(extended=extended), slices)


def users(lab: Lab, name: str) -> list[str]:
    return [each["name"] for each in lab.raw(name).get("status", {}).get("reservedFor", [])]


async def test_allocation_reservation_and_finalizer_are_written() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        assert await there.bind(POD, decision) is None
        written = there.raw("c")
        assert written["metadata"]["finalizers"] == [FINALIZER]
        assert written["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "uid-p"}]
        chosen = written["status"]["allocation"]
        assert chosen["devices"] == {"results": [RESULT]}
        assert chosen["allocationTimestamp"] == "2026-01-01T00:00:00Z"
        here = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
        assert chosen["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [here]}]}
        # The watch may be late: the device is not free before or after it tells.
        await there.add(make_claim("d"))
        assert devices_of(there.world.decide(make_pod("q", "d"))[1]) == {"d": ["n0/b"]}


async def test_what_was_written_counts_before_the_watch_tells_of_it() -> None:
    async with lab() as there:
        furnish(there)
        for name in ("c", "d", "e"):
            await there.add(make_claim(name))
        there.is_deaf = True
        decision, _state = there.world.decide(POD)
        assert await there.bind(POD, decision) is None
        known = there.world.cache.listers.resource_claims
        assert known.get("default/c").allocation is None  # type: ignore[union-attr]
        assert known.latest("default/c").allocation is not None  # type: ignore[union-attr]
        _decision, state = there.world.decide(make_pod("q", "d"))
        assert devices_of(state) == {"d": ["n0/b"]}
        assert there.world.schedule(make_pod("r", "e")).node is None
        # Others may use the claim where it is now.
        again, state = there.world.decide(make_pod("s", "c"))
        assert (again.node, state.allocations) == ("n0", {})
        assert await there.bind(make_pod("s", "c"), again) is None
        assert users(there, "c") == ["p", "s"]


async def test_a_claim_that_has_devices_is_only_reserved() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c", status={**allocation(("n0", "a"), on="n0"), **reserved("other")}))
        decision, _state = there.world.decide(POD)
        assert await there.bind(POD, decision) is None
        assert users(there, "c") == ["other", "p"]
        assert "finalizers" not in there.raw("c")["metadata"]
        again, _state = there.world.decide(POD)
        version = there.raw("c")["metadata"]["resourceVersion"]
        assert await there.bind(POD, again) is None
        assert there.raw("c")["metadata"]["resourceVersion"] == version


async def test_claims_that_somebody_else_writes_are_read_again() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        there.change("c", metadata={"annotations": {"a": "b"}})
        assert await there.bind(POD, decision) is None
        written = there.raw("c")
        assert written["metadata"]["annotations"] == {"a": "b"}
        assert written["status"]["allocation"]["devices"] == {"results": [RESULT]}


NEW, SHARED = None, allocation(("n0", "a"))


@pytest.mark.parametrize(
    ("status", "change", "reason"),
    [
        (NEW, {"status": allocation(("n0", "b"))}, "got allocated elsewhere in the meantime"),
        (SHARED, {"status": {}}, "got deallocated elsewhere in the meantime"),
        (NEW, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "got deleted in the meantime"),
        (SHARED, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "got deleted in the meantime"),
    ],
)
async def test_claims_that_changed_too_much_fail_the_binding(status: Any, change: dict[str, Any], reason: str) -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c", status=status))
        decision, state = there.world.decide(POD)
        there.change("c", **change)
        assert await there.bind(POD, decision) == error(f"claim default/c {reason}")
        assert not state.devices.allocated.is_in_flight(state.claims[0].uid)


@pytest.mark.parametrize("comes_back", [False, True])
async def test_claims_that_are_gone_fail_the_binding(comes_back: bool) -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, state = there.world.decide(POD)
        there.delete("c")
        if comes_back:
            await there.add(make_claim("c"))
        status = await there.bind(POD, decision)
        assert status is not None
        assert status.code is Code.ERROR
        assert not state.devices.allocated.is_in_flight(state.claims[0].uid)
        if comes_back:
            assert status.message == "claim default/c got deleted in the meantime"
            assert "allocation" not in there.raw("c").get("status", {})


async def test_claims_that_never_stay_the_same_fail_the_binding_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        tries = 0

        async def refuse(*_args: Any, **_more: Any) -> None:
            nonlocal tries
            tries += 1
            raise StaleObject("changed")

        monkeypatch.setattr(there.objects, "patch", refuse)
        status = await there.bind(POD, decision)
        assert status == error("add allocation and reservation to claim default/c: changed")
        assert tries == 5


async def test_a_server_that_refuses_fails_the_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, state = there.world.decide(POD)
        patch = there.objects.patch

        async def refuse(*args: Any, status: bool = False, **more: Any) -> Any:
            if status:
                raise OSError("no connection")
            return await patch(*args, status=status, **more)

        monkeypatch.setattr(there.objects, "patch", refuse)
        assert await there.bind(POD, decision) == error(
            "add allocation and reservation to claim default/c: no connection"
        )
        assert not state.devices.allocated.is_in_flight(state.claims[0].uid)
        there.world.give_up(POD, decision)
        # Nobody had written that the pod uses it.
        assert there.world.handle.work == []


# Taking it back


async def test_a_pod_that_is_not_bound_after_all_lets_go_of_its_claims() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c", status={**allocation(("n0", "a")), **reserved("other")}))
        decision, _state = there.world.decide(POD)
        assert await there.bind(POD, decision) is None
        there.world.give_up(POD, decision)
        await there.work()
        assert users(there, "c") == ["other"]
        assert there.raw("c")["status"]["allocation"]


async def test_a_reservation_that_was_not_written_is_not_taken_back() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        there.world.give_up(POD, decision)
        assert there.world.handle.work == []
        assert devices_of(there.world.decide(POD)[1]) == {"c": ["n0/a"]}


# Giving devices back that keep a pod from nodes


async def test_an_allocation_that_nobody_else_uses_is_given_up_for_a_pod_that_fits_elsewhere() -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(make_node("n1"), make_slice("t", [device("x")], node="n1"))
        await there.add(make_claim("c", status={**allocation(("n0", "a"), on="n0"), **reserved("p")}))
        asking = make_pod("p", "c", nodeSelector={"kubernetes.io/hostname": "n1"})
        decision = there.world.schedule(asking)
        assert decision.node is None
        assert "deallocation of ResourceClaim completed" in decision.status.message
        await there.work()
        assert "allocation" not in there.raw("c").get("status", {})
        assert users(there, "c") == []
        await eventually(lambda: there.world.fit(asking) == {"n1"})


async def test_a_claim_that_changed_meanwhile_keeps_its_allocation() -> None:
    async with lab() as there:
        furnish(there)
        await there.add(make_claim("c", status=allocation(("n0", "a"), on="n0")))
        assert there.world.schedule(make_pod("p", "c", nodeName="n7")).node is None
        there.world.put(make_node("n1"))
        asking = make_pod("p", "c", nodeSelector={"kubernetes.io/hostname": "n1"})
        assert there.world.schedule(asking).node is None
        there.change("c", metadata={"annotations": {"a": "b"}})
        with pytest.raises(StaleObject):
            await there.work()
        assert there.raw("c")["status"]["allocation"]


@pytest.mark.parametrize("consumers", [("other",), ("p", "other"), ("other", "another")])
async def test_an_allocation_that_somebody_uses_stays(consumers: tuple[str, ...]) -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(make_node("n1"))
        await there.add(make_claim("c", status={**allocation(("n0", "a"), on="n0"), **reserved(*consumers)}))
        decision = there.world.schedule(make_pod("p", "c", nodeSelector={"kubernetes.io/hostname": "n1"}))
        assert "still not schedulable" in decision.status.message
        assert there.world.handle.work == []


# Extended resources

GPU = "example.com/gpu"


async def test_a_claim_is_made_for_extended_resources() -> None:
    async with lab() as there:
        furnish(there, extended=GPU)
        pod = there.add_pod(make_pod("p", requests={GPU: "2"}))
        decision, state = there.world.decide(pod)
        assert await there.bind(pod, decision) is None
        (name,) = there.claims()
        assert name.startswith("p-extended-resources-")
        made = there.raw(name)
        assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", "p", pod.uid, True)
        (request,) = made["spec"]["devices"]["requests"]
        assert (request["name"], request["exactly"]["count"]) == ("container-0-request-0", 2)
        assert [each["device"] for each in made["status"]["allocation"]["devices"]["results"]] == ["a", "b"]
        assert users(there, name) == ["p"]
        assert there.raw_pod("p")["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": name,
            "requestMappings": [{"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}],
        }
        # Its devices are counted once.
        assert state.extended is not None
        assert not state.devices.allocated.is_in_flight(state.extended.uid)
        assert there.world.fit(make_pod("q", requests={GPU: "1"})) == set()
        # The pod is not bound after all.
        there.world.give_up(pod, decision)
        await there.work()
        assert there.claims() == []
        await eventually(lambda: there.world.fit(make_pod("q", requests={GPU: "2"})) == {"n0"})


async def test_a_claim_that_an_earlier_attempt_left_behind_is_deleted() -> None:
    async with lab() as there:
        furnish(there, extended=GPU)
        pod = there.add_pod(make_pod("p", requests={GPU: "1"}))
        decision, _state = there.world.decide(pod)
        assert await there.bind(pod, decision) is None
        again = there.world.schedule(pod)
        assert again.node is None
        assert "deletion of ResourceClaim completed" in again.status.message
        (name,) = there.claims()
        there.change(name, metadata={"annotations": {**there.raw(name)["metadata"]["annotations"], "a": "b"}})
        await there.work()
        assert there.claims() == []
        await eventually(lambda: there.world.fit(pod) == {"n0"})


async def test_a_pod_that_is_gone_fails_the_binding_and_its_claim_goes_too() -> None:
    async with lab() as there:
        furnish(there, extended=GPU)
        pod = make_pod("p", requests={GPU: "1"})
        decision, _state = there.world.decide(pod)
        status = await there.bind(pod, decision)
        assert status is not None
        assert status.message.startswith("update pod default/p ExtendedResourceClaimStatus: ")
        there.world.give_up(pod, decision)
        await there.work()
        assert there.claims() == []


# Devices that have to be waited for


def waiting_slice() -> Any:
    waits = device("a", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    return make_slice("s", [waits], node="n0")


def report(lab: Lab, *conditions: tuple[str, str]) -> None:
    """The driver says something of the device."""
    said = [
        {"type": kind, "status": status, "reason": "Because", "message": "so", "lastTransitionTime": None}
        for kind, status in conditions
    ]
    status = lab.raw("c")["status"]
    entry = {"driver": DRIVER, "pool": "n0", "device": "a", "conditions": said}
    lab.change("c", status={**status, "devices": [entry]})


async def test_a_pod_waits_until_its_devices_are_ready() -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(waiting_slice())
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        binding = asyncio.ensure_future(there.bind(POD, decision))
        await eventually(lambda: bool(there.events))
        assert there.events == [
            ("p", "Normal", "BindingConditionsPending", "waiting for binding conditions for device on node n0")
        ]
        report(there, ("Ready", "False"))
        await there.heard("c")
        assert not binding.done()
        report(there, ("Ready", "True"), ("Broken", "False"))
        assert await binding is None


async def test_a_device_that_fails_fails_the_binding_and_is_given_up_by_the_next_attempt() -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(waiting_slice())
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        binding = asyncio.ensure_future(there.bind(POD, decision))
        await eventually(lambda: bool(there.events))
        report(there, ("Ready", "True"), ("Broken", "True"))
        assert await binding == error('device binding failed: claim=c, reason=Because, message="so"')
        there.world.give_up(POD, decision)
        await there.work()
        await there.heard("c")
        again = there.world.schedule(POD)
        assert again.node is None
        assert "deallocation of ResourceClaim completed" in again.status.message
        await there.work()
        assert "allocation" not in there.raw("c").get("status", {})
        await eventually(lambda: there.world.fit(POD) == {"n0"})


async def test_devices_that_are_never_ready_fail_the_binding_as_an_error() -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(waiting_slice())
        has = allocation(("n0", "a"), bindingConditions=["Ready"])
        has["allocation"]["allocationTimestamp"] = "2025-12-31T23:50:01Z"
        await there.add(make_claim("c", status={**has, **reserved("p")}))
        there.clock.advance(0.95)
        decision, _state = there.world.decide(POD)
        waiting = asyncio.ensure_future(there.bind(POD, decision))
        await eventually(lambda: bool(there.events))
        there.clock.advance(0.05)
        assert await waiting == error("device binding timeout: claim=c")
        there.world.give_up(POD, decision)
        await there.work()
        await there.heard("c")
        # The next attempt gives them up.
        there.world.handle.time += 1.5
        again = there.world.schedule(POD)
        assert "deallocation of ResourceClaim completed" in again.status.message


async def test_a_claim_that_goes_while_its_devices_are_waited_for() -> None:
    async with lab() as there:
        furnish(there)
        there.world.put(waiting_slice())
        await there.add(make_claim("c"))
        decision, _state = there.world.decide(POD)
        binding = asyncio.ensure_future(there.bind(POD, decision))
        await eventually(lambda: bool(there.events))
        there.delete("c")
        assert await binding == error("could not find a ResourceClaim of the pod")
