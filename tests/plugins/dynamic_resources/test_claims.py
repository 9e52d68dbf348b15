"""Before nodes are looked at: which claims a pod has, and whether they are ready."""

from __future__ import annotations

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.interfaces import ZERO_SCORES
from kube_pyscheduler.framework.status import SKIP, Code, Status
from kube_pyscheduler.objects.pod import Pod
from tests.plugins.dynamic_resources.world import (
    World,
    ask,
    device,
    devices_of,
    make_claim,
    make_class,
    make_pod,
    make_slice,
)

OWNER = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]


def enqueue(world: World, pod: Pod) -> Status | None:
    return world.plugin.pre_enqueue(pod, world.cache.listers)


def pre_filter(world: World, pod: Pod) -> Status | None:
    answer = world.plugin.pre_filter(world.context(), PodInfo(pod))
    assert answer is None or isinstance(answer, Status)
    return answer


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (make_pod("p", "gone"), 'could not find ResourceClaim "default/gone"'),
        (make_pod("p", "ending"), 'resourceclaim "ending" is being deleted'),
        (make_pod("p", templates={"c": ...}), 'pod "default/p": ResourceClaim not created yet'),
        (
            make_pod("p", templates={"c": "stranger"}),
            "ResourceClaim default/stranger was not created for Pod default/p (Pod is not owner)",
        ),
        (make_pod("p", templates={"c": "gone"}), 'could not find ResourceClaim "default/gone"'),
        (
            make_pod("p", resourceClaims=[{"name": "c"}]),
            'pod "default/p", spec.resourceClaim "c": none of the supported fields are set',
        ),
    ],
)
def test_pods_wait_for_their_claims(pod: Pod, reason: str) -> None:
    stranger = make_claim("stranger", ownerReferences=[{**OWNER[0], "uid": "another"}])
    world = World(stranger, make_claim("ending", deletionTimestamp="2026-01-01T00:00:00Z"))
    for answer in (enqueue(world, pod), pre_filter(world, pod)):
        assert answer == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_claims_that_are_there_let_the_pod_in() -> None:
    world = World(make_class(), make_claim("mine", ownerReferences=OWNER), make_claim("shared"), nodes=1)
    pod = make_pod("p", "shared", templates={"a": "mine", "b": None})
    assert enqueue(world, pod) is None
    assert pre_filter(world, pod) is None


def test_pods_without_claims_are_none_of_its_business() -> None:
    world = World(make_class(), nodes=2)
    ctx, info = world.context(), PodInfo(make_pod(templates={"a": None}))
    assert world.plugin.pre_filter(ctx, info) is SKIP
    assert world.plugin.filter_kernel(ctx, info) is None
    assert world.plugin.score_kernel(ctx, info) is ZERO_SCORES
    assert world.plugin.post_filter(ctx, info, Diagnosis(2)) == (
        None,
        Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",)),
    )
    assert world.plugin.reserve(ctx, info, "n0") is None
    assert world.plugin.pre_bind_pre_flight(ctx.state, info, "n0") is SKIP
    world.plugin.unreserve(ctx, info, "n0")
    assert world.handle.work == []


def test_a_claim_that_is_being_allocated_cannot_be_waited_for() -> None:
    world = World(make_class(), make_claim("c"), make_slice("s", [device("a")], node="n0"), nodes=1)
    decision, state = world.decide(make_pod("p", "c"))
    assert devices_of(state) == {"c": ["n0/a"]}
    reason = "resource claim default/c is in the process of being allocated"
    assert pre_filter(world, make_pod("q", "c")) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    world.give_up(make_pod("p", "c"), decision)
    assert pre_filter(world, make_pod("q", "c")) is None


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (
            ask(device_class="none"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request a: device class none does not exist",
        ),
        (
            {"name": "a", "firstAvailable": [{"name": "x", "deviceClassName": "none"}]},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request a/x: device class none does not exist",
        ),
        (
            {"name": "a"},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/c, request a: unknown request type",
        ),
        (ask(device_class=""), Code.ERROR, "request a: unsupported request type"),
    ],
)
def test_requests_that_nobody_can_serve(request_: dict[str, object], code: Code, reason: str) -> None:
    world = World(make_class(), make_claim("c", request_))
    assert pre_filter(world, make_pod("p", "c")) == Status(code, (reason,))


def test_a_claim_that_has_its_devices_needs_no_class() -> None:
    claim = make_claim("c", ask(device_class="none"), status={"allocation": {"devices": {"results": []}}})
    world = World(claim, nodes=1)
    assert world.fit(make_pod("p", "c")) == {"n0"}


def test_what_was_written_counts_before_the_watch_tells_of_it() -> None:
    world = World(make_class(), make_claim("c"), nodes=1)
    ending = make_claim("c", deletionTimestamp="2026-01-01T00:00:00Z", version="2")
    world.cache.listers.resource_claims.assume(ending)
    answer = pre_filter(world, make_pod("p", "c"))
    assert answer is not None
    assert answer.reasons == ('resourceclaim "c" is being deleted',)
