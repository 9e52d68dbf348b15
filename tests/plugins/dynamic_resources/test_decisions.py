"""Which nodes serve claims, which devices are chosen there, and what is said where none can."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.devices import fragments
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.resource import AllocationResult
from tests.builders import make_node
from tests.plugins.dynamic_resources.world import (
    CLASS,
    DRIVER,
    Document,
    World,
    allocation,
    ask,
    ask_first,
    decoded,
    device,
    devices_of,
    make_claim,
    make_class,
    make_pod,
    make_slice,
    reserved,
)

POD = make_pod("p", "c")
MODEL = f'device.attributes["{DRIVER}"].model == "x"'


def names(*wanted: str) -> list[Document]:
    return [device(name) for name in wanted]


def choice(*objects: Object, nodes: int = 1, **pod: Any) -> dict[str, list[str]] | None:
    """What the claim "c" (and others of the pod) gets; None where it gets nothing."""
    world = World(make_class(), *objects, nodes=nodes)
    decision, state = world.decide(make_pod("p", "c", **pod))
    return devices_of(state) if decision.node is not None else None


def result(*objects: Object) -> AllocationResult:
    """The allocation of the claim "c" on the only node."""
    world = World(make_class(), *objects, nodes=1)
    _decision, state = world.decide(POD)
    return state.allocations[0]


def message(*objects: Object, nodes: int = 1) -> tuple[Code, str]:
    """What is said of a pod that gets nothing."""
    world = World(make_class(), *objects, nodes=nodes)
    decision = world.schedule(POD)
    assert decision.node is None
    return decision.status.code, decision.status.message


# Which devices


def test_devices_are_taken_in_the_order_of_pools_and_slices() -> None:
    second = make_slice("b", names("z", "a"), node="n0", pool="p2", count=2)
    first = make_slice("a", names("y"), node="n0", pool="p2", count=2)
    other = make_slice("c", names("x"), node="n0", pool="p1")
    claim = make_claim("c", ask(count=3))
    assert choice(second, first, other, claim) == {"c": ["p1/x", "p2/y", "p2/z"]}


def test_devices_that_have_to_be_waited_for_come_last() -> None:
    waits = make_slice("a", [device("a", bindingConditions=["Ready"])], node="n0", pool="p1")
    ready = make_slice("b", names("b"), node="n0", pool="p2")
    assert choice(waits, ready, make_claim("c")) == {"c": ["p2/b"]}


def test_drivers_are_tried_in_order() -> None:
    later = make_slice("a", names("a"), node="n0", pool="p1", driver="z.example.com")
    assert choice(later, make_slice("b", names("b"), node="n0", pool="p2"), make_claim("c")) == {"c": ["p2/b"]}


def test_other_claims_and_pods_on_their_way_have_their_devices() -> None:
    world = World(make_class(), make_slice("s", names("a", "b", "c"), node="n0"), nodes=1)
    world.put(make_claim("old", status=allocation(("n0", "a"))), *[make_claim(f"c{number}") for number in range(3)])
    found = []
    for number in range(3):
        decision, state = world.decide(make_pod(f"p{number}", f"c{number}"))
        found.append(devices_of(state))
    assert found == [{"c0": ["n0/b"]}, {"c1": ["n0/c"]}, {}]
    assert decision.status.message.startswith("0/1 nodes are available: 1 cannot allocate all claims. still not")


def test_the_claims_of_one_pod_do_not_share() -> None:
    claims = [make_claim("c", ask(count=2)), make_claim("d")]
    two, three = make_slice("s", names("a", "b"), node="n0"), make_slice("s", names("a", "b", "x"), node="n0")
    world = World(make_class(), two, *claims, nodes=1)
    pod = make_pod("p", "c", "d")
    assert world.schedule(pod).node is None
    world.put(three)
    assert devices_of(world.decide(pod)[1]) == {"c": ["n0/a", "n0/b"], "d": ["n0/x"]}


def test_the_search_goes_back_where_a_first_choice_leaves_too_little() -> None:
    picky = ask("b", MODEL)
    devices = [device("a", attributes={"model": "x"}), device("b", attributes={"model": "y"})]
    slices = make_slice("s", devices, node="n0")
    assert choice(slices, make_claim("c", ask(), picky)) == {"c": ["n0/b", "b:n0/a"]}


def test_all_devices_are_those_that_are_selected_and_all_must_be_free() -> None:
    devices = [device("a", attributes={"model": "x"}), device("b", attributes={"model": "y"})]
    slices = make_slice("s", [*devices, device("c", attributes={"model": "x"})], node="n0")
    claim = make_claim("c", ask("a", MODEL, count=0))
    assert choice(slices, claim) == {"c": ["n0/a", "n0/c"]}
    assert choice(slices, claim, make_claim("old", status=allocation(("n0", "b")))) == {"c": ["n0/a", "n0/c"]}
    assert choice(slices, claim, make_claim("old", status=allocation(("n0", "c")))) is None
    assert choice(make_slice("s", devices[1:], node="n0"), claim) is None


def test_administration_takes_nothing_from_anybody() -> None:
    slices = make_slice("s", names("a"), node="n0")
    administering = make_claim("c", ask(adminAccess=True))
    using = make_claim("old", status=allocation(("n0", "a")))
    assert choice(slices, administering, using) == {"c": ["n0/a"]}
    assert result(slices, administering, using).devices.results[0].admin_access is True
    assert choice(slices, make_claim("c"), make_claim("old", status=allocation(("n0", "a"), adminAccess=True)))
    assert choice(slices, make_claim("c", ask(count=2, adminAccess=True))) is None


def test_taints_keep_devices_from_requests_that_do_not_tolerate_them() -> None:
    def tainted(effect: str) -> Object:
        return make_slice("s", [device("a", taints=[{"key": "k", "value": "v", "effect": effect}])], node="n0")

    tolerant = make_claim("c", ask(tolerations=[{"key": "k", "operator": "Equal", "value": "v"}]))
    for effect in ("NoSchedule", "NoExecute"):
        assert choice(tainted(effect), make_claim("c")) is None
        assert choice(tainted(effect), tolerant) == {"c": ["n0/a"]}
    assert choice(tainted("None"), make_claim("c")) == {"c": ["n0/a"]}
    assert [each.key for each in result(tainted("NoExecute"), tolerant).devices.results[0].tolerations] == ["k"]


@pytest.mark.parametrize(
    ("constraint", "devices"),
    [
        ({"matchAttribute": f"{DRIVER}/root"}, ["n0/b", "n0/d"]),
        ({"distinctAttribute": f"{DRIVER}/root", "requests": ["b"]}, ["n0/a", "n0/b"]),
        ({"matchAttribute": "other.example.com/root"}, None),
    ],
)
def test_devices_have_something_in_common_or_not(constraint: Document, devices: list[str] | None) -> None:
    roots = {"a": "x", "b": "y", "c": "z", "d": "y"}
    slices = make_slice("s", [device(name, attributes={"root": root}) for name, root in roots.items()], node="n0")
    found = choice(slices, make_claim("c", ask(count=2), constraints=[constraint]))
    assert (found and found["c"]) == devices


def test_requests_have_distinct_devices() -> None:
    roots = {"a": "x", "b": "x", "c": "z"}
    slices = make_slice("s", [device(name, attributes={"root": root}) for name, root in roots.items()], node="n0")
    distinct = [{"distinctAttribute": f"{DRIVER}/root", "requests": ["a", "b"]}]
    assert choice(slices, make_claim("c", ask(), ask("b"), constraints=distinct)) == {"c": ["n0/a", "b:n0/c"]}
    everything = make_claim("c", ask(), ask("b"), ask("x"), constraints=[{"distinctAttribute": f"{DRIVER}/root"}])
    assert choice(slices, everything) is None


def test_of_several_devices_of_one_request_only_the_last_must_be_distinct_from_the_next() -> None:
    """As in kube-scheduler."""
    roots = {"a": "x", "b": "y", "c": "x"}
    slices = make_slice("s", [device(name, attributes={"root": root}) for name, root in roots.items()], node="n0")
    distinct = [{"distinctAttribute": f"{DRIVER}/root"}]
    assert choice(slices, make_claim("c", ask(count=3), constraints=distinct)) == {"c": ["n0/a", "n0/b", "n0/c"]}


def test_partitions_share_counters() -> None:
    def part(name: str, amount: str) -> Document:
        return device(name, consumesCounters=[{"counterSet": "c", "counters": {"memory": {"value": amount}}}])

    counters = [{"name": "c", "counters": {"memory": {"value": "40Gi"}}}]
    sets = make_slice("sets", [], node="n0", pool="p", count=2, sharedCounters=counters)
    parts = make_slice("parts", [part("a", "30Gi"), part("b", "10Gi"), part("d", "20Gi")], node="n0", pool="p", count=2)
    assert choice(sets, parts, make_claim("c", ask(count=2))) == {"c": ["p/a", "p/b"]}
    assert choice(sets, parts, make_claim("c", ask(count=3))) is None
    using = make_claim("old", status=allocation(("p", "b")))
    assert choice(sets, parts, using, make_claim("c")) == {"c": ["p/a"]}
    using = make_claim("old", status=allocation(("p", "d")))
    assert choice(sets, parts, using, make_claim("c")) == {"c": ["p/b"]}


def test_counters_of_a_device_that_is_refused_stay_taken_during_the_search() -> None:
    """As in kube-scheduler: a later device of the pool may be refused for it."""
    consumes = [{"counterSet": "c", "counters": {"memory": {"value": "30Gi"}}}]
    counters = [{"name": "c", "counters": {"memory": {"value": "40Gi"}}}]
    sets = make_slice("sets", [], node="n0", pool="p", count=2, sharedCounters=counters)
    taints = [{"key": "k", "effect": "NoSchedule"}]
    parts = [device("a", consumesCounters=consumes, taints=taints), device("b", consumesCounters=consumes)]
    assert choice(sets, make_slice("parts", parts, node="n0", pool="p", count=2), make_claim("c")) is None
    parts.reverse()
    assert choice(sets, make_slice("parts", parts, node="n0", pool="p", count=2), make_claim("c")) == {"c": ["p/b"]}


def test_shared_devices_are_shared_as_far_as_they_go() -> None:
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    shared = {
        "name": "a",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
    }
    slices = make_slice("s", [shared], node="n0")

    def claim(amount: str | None) -> Object:
        return make_claim("c", ask() if amount is None else ask(capacity={"requests": {"memory": amount}}))

    for amount, consumed in ((None, "10Gi"), ("11Gi", "20Gi"), ("1Gi", "10Gi"), ("40Gi", "40Gi")):
        (found,) = result(slices, claim(amount)).devices.results
        assert dict(found.consumed_capacity) == {"memory": consumed}
        assert found.share_id
    assert choice(slices, claim("41Gi")) is None
    assert choice(slices, make_claim("c", ask(capacity={"requests": {"cores": "1"}}))) is None
    using = make_claim("old", status=allocation(("n0", "a"), shareID="x", consumedCapacity={"memory": "30Gi"}))
    assert choice(slices, using, claim("10Gi")) == {"c": ["n0/a"]}
    assert choice(slices, using, claim("20Gi")) is None
    assert choice(slices, make_claim("old", status=allocation(("n0", "a"))), claim("10Gi")) is None


# Which nodes


def test_devices_of_the_network_are_reached_from_some_nodes() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    world = World(make_class(), make_claim("c"), make_slice("s", names("a"), nodeSelector=zone, pool="net"))
    world.put(make_node("n0", labels={"zone": "b"}), make_node("n1", labels={"zone": "a"}))
    assert world.fit(POD) == {"n1"}
    _decision, state = world.decide(POD)
    (term,) = state.allocations[0].node_selector.node_selector_terms  # type: ignore[union-attr]
    assert [(each.key, each.values) for each in term.match_expressions] == [("zone", ("a",))]
    world.put(make_node("n0", labels={"zone": "a"}))
    assert world.fit(make_pod("q", "c")) == set()


def test_an_allocation_binds_later_pods_to_its_nodes() -> None:
    slices = make_slice("s", names("a"), node="n1")
    claim = make_claim("c", status={**allocation(("n1", "a"), on="n1"), **reserved("other")})
    world = World(make_class(), slices, claim, nodes=2)
    assert world.fit(POD) == {"n1"}
    status = world.refusals(POD)["n0"]
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("resourceclaim not available on the node",)
    _decision, state = world.decide(POD)
    assert state.allocations == {}


def test_allocations_tell_from_where_the_devices_can_be_reached() -> None:
    here = result(make_slice("s", names("a"), node="n0"), make_claim("c")).node_selector
    assert here is not None
    ((requirement,),) = [term.match_fields for term in here.node_selector_terms]
    assert (requirement.key, requirement.operator, requirement.values) == ("metadata.name", "In", ("n0",))
    assert result(make_slice("s", names("a"), allNodes=True), make_claim("c")).node_selector is None
    bound = make_slice("s", [device("a", bindsToNode=True)], allNodes=True)
    assert result(bound, make_claim("c")).node_selector == here


def test_what_devices_and_classes_say_is_in_the_allocation() -> None:
    parameters = {"opaque": {"driver": DRIVER, "parameters": {"size": 1}}}
    document = {"metadata": {"name": CLASS}, "spec": {"config": [parameters]}}
    device_class = decoded(kinds.DEVICE_CLASS, document)
    waits = device("a", bindingConditions=["Ready"], bindingFailureConditions=["Failed"])
    found = result(make_slice("s", [waits], node="n0"), make_claim("c"), device_class)
    assert found.devices.results[0].binding_conditions == ("Ready",)
    assert found.devices.results[0].binding_failure_conditions == ("Failed",)
    (config,) = found.devices.config
    assert (config.source, config.requests) == ("FromClass", ("a",))
    assert config.opaque is not None


def test_configurations_of_the_claim_follow_those_of_the_class() -> None:
    def opaque(*requests: str) -> Document:
        return {"requests": list(requests), "opaque": {"driver": DRIVER, "parameters": {"for": list(requests)}}}

    claim = make_claim("c", ask(), ask_first("b", ask("x", MODEL), ask("y")))
    document = msgspec.json.decode(msgspec.json.encode(claim))
    said = [opaque(), opaque("a"), opaque("b"), opaque("b/y"), opaque("b/x"), opaque("a", "b")]
    document["spec"]["devices"]["config"] = said
    devices = [device("d", attributes={"model": "z"}), device("e", attributes={"model": "z"})]
    found = result(make_slice("s", devices, node="n0"), decoded(kinds.RESOURCE_CLAIM, document))
    assert [(each.source, each.requests) for each in found.devices.config] == [
        ("FromClaim", ()),
        ("FromClaim", ("a",)),
        ("FromClaim", ("b",)),
        ("FromClaim", ("b/y",)),
        # Once for each request, as in kube-scheduler.
        ("FromClaim", ("a", "b")),
        ("FromClaim", ("a", "b")),
    ]


# Alternatives


def test_the_best_alternative_of_a_node_is_chosen_and_the_best_node_for_it() -> None:
    large = ask("large", f'device.attributes["{DRIVER}"].model == "large"')
    small = ask("small", f'device.attributes["{DRIVER}"].model == "small"', count=2)
    claim = make_claim("c", ask_first("a", large, small))
    two_small = [device("a", attributes={"model": "small"}), device("b", attributes={"model": "small"})]
    world = World(make_class(), claim, make_slice("s0", two_small, node="n0"), nodes=3)
    world.put(make_slice("s1", [device("a", attributes={"model": "large"})], node="n1"))
    assert world.fit(POD) == {"n0", "n1"}
    totals = world.totals(POD)
    assert totals["n1"] - totals["n0"] == 2 * (100 - 700 // 8)
    for _seed in range(5):
        decision, state = world.decide(POD, _seed)
        assert devices_of(state) == {"c": ["a/large:n1/a"]}
        world.give_up(POD, decision)
    world.put(make_claim("old", status=allocation(("n1", "a"))))
    assert devices_of(world.decide(POD)[1]) == {"c": ["a/small:n0/a", "a/small:n0/b"]}


def test_alternatives_that_were_chosen_already_count_on_every_node() -> None:
    claim = make_claim(
        "c",
        ask_first("a", ask("x"), ask("y")),
        status=allocation(("n0", "a"), request="a/y"),
    )
    other = make_claim("d", ask_first("a", ask("x"), ask("y")))
    pod = make_pod("p", "c", "d")
    world = World(make_class(), claim, other, make_slice("s", names("b"), node="n0"), nodes=1)
    assert world.answers(pod) == {"n0": (fragments.FITS, 7 + 8)}


# What is said


def test_where_devices_are_missing_preemption_does_not_help() -> None:
    assert message(make_claim("c"), nodes=3) == (
        Code.UNSCHEDULABLE,
        "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    )


def test_broken_pools_are_told_of_where_nothing_else_helps() -> None:
    twins = make_slice("s", names("a", "a"), node="n0")
    assert "1 invalid resource pools were encountered" in message(make_claim("c"), twins)[1]
    assert choice(twins, make_slice("t", names("a"), node="n0", pool="p"), make_claim("c")) == {"c": ["p/a"]}
    partial = make_slice("s", names("a"), node="n0", count=2)
    assert "1 cannot allocate all claims" in message(make_claim("c"), partial)[1]
    assert message(make_claim("c", ask(count=0)), partial) == (
        Code.ERROR,
        'running "DynamicResources" filter plugin: claim default/c, request a: asks for all devices, but resource pool '
        f"{DRIVER}/n0 is currently being updated",
    )


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (
            make_claim("c", ask("a", "device.nope.x")),
            "claim default/c: selector #0: CEL compile error: must evaluate to bool or the unknown type, not dyn",
        ),
        (
            make_claim("c", ask("a", "true", MODEL)),
            "claim default/c: selector #1: CEL runtime error: no such key: model",
        ),
        (
            make_claim("c", ask("a", device_class="picky")),
            "class picky: selector #0: CEL runtime error: no such key: model",
        ),
        (
            make_claim("c", ask(count=33)),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
        (
            make_claim("c", constraints=[{"requests": ["a"]}]),
            "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
        ),
        (
            make_claim("c", ask(count=0), constraints=[{"matchAttribute": f"{DRIVER}/root"}]),
            f"claim default/c, request a: cannot add device {DRIVER}/n0/a because a claim constraint "
            "would not be satisfied",
        ),
        (
            make_claim("c", ask(allocationMode="Some")),
            "claim default/c, request a: unsupported count mode Some",
        ),
    ],
)
def test_mistakes_fail_the_attempt(claim: Object, problem: str) -> None:
    picky = make_class("picky", MODEL)
    code, text = message(claim, picky, make_slice("s", names("a"), node="n0"), nodes=2)
    assert (code, text) == (Code.ERROR, f'running "DynamicResources" filter plugin: {problem}')


def test_a_claim_has_up_to_32_devices() -> None:
    slices = [
        make_slice(f"s{number}", names(*[f"d{place}" for place in range(20)]), node="n0", pool=f"p{number}")
        for number in range(2)
    ]
    found = choice(*slices, make_claim("c", ask(count=32)))
    assert found is not None
    assert len(found["c"]) == 32
    # The second alternative needs fewer.
    together = make_claim("c", ask(count=20), ask_first("b", ask("x", count=13), ask("y", count=12)))
    found = choice(*slices, together)
    assert found is not None
    assert len(found["c"]) == 32
    assert message(*slices, make_claim("c", ask(count=20), ask_first("b", ask("x", count=13)))) == (
        Code.ERROR,
        'running "DynamicResources" filter plugin: claim default/c: number of requested devices 33 '
        "exceeds the claim limit of 32",
    )


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [device(f"d{place}", attributes={"model": str(place), "root": "x"}) for place in range(20)]
    slices = make_slice("s", devices, node="n0")
    # The last request cannot be served, which is found out anew for every choice before it.
    claim = make_claim("c", ask(count=10), ask("b", MODEL), constraints=[{"matchAttribute": f"{DRIVER}/root"}])
    monkeypatch.setattr(fragments, "MAX_STEPS", 500)
    assert message(slices, claim) == (
        Code.ERROR,
        'running "DynamicResources" filter plugin: node n0: timed out trying to allocate devices',
    )


def test_a_search_is_cut_short_by_a_claim_that_has_no_devices_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    slices = make_slice("s", [device(f"d{place}", attributes={"root": str(place)}) for place in range(20)], node="n0")
    monkeypatch.setattr(fragments, "MAX_STEPS", 5000)
    many = make_claim("many", ask(count=10))
    alike = make_claim("alike", ask(count=2), constraints=[{"matchAttribute": f"{DRIVER}/root"}])
    world = World(make_class(), slices, many, alike, nodes=1)
    status = world.schedule(make_pod("p", "many", "alike")).status
    assert status.code is Code.UNSCHEDULABLE
    assert status.message.startswith("0/1 nodes are available: 1 cannot allocate all claims. still not")


def test_devices_that_have_too_little_in_common_are_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [device(f"d{place}", attributes={"root": str(place // 7)}) for place in range(126)]
    same = [{"matchAttribute": f"{DRIVER}/root"}]
    monkeypatch.setattr(fragments, "MAX_STEPS", 2000)
    for count, code in ((7, fragments.FITS), (8, fragments.CANNOT)):
        claim = make_claim("c", ask(count=count), constraints=same)
        world = World(make_class(), make_slice("s", devices, node="n0"), claim, nodes=1)
        assert world.answers(POD) == {"n0": (code, 0)}


def test_what_an_alternative_took_of_a_shared_device_is_free_again_for_the_next() -> None:
    shared = device("a", "40Gi", allowMultipleAllocations=True)
    large, small = [
        ask(name, capacity={"requests": {"memory": amount}}) for name, amount in (("x", "30Gi"), ("y", "10Gi"))
    ]
    slices = make_slice("s", [shared], node="n0")
    claim = make_claim("c", ask_first("a", large, small), ask("b", capacity={"requests": {"memory": "30Gi"}}))
    assert choice(slices, claim) == {"c": ["a/y:n0/a", "b:n0/a"]}


def test_what_one_attempt_has_no_time_for_the_next_ones_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    slices = [make_slice(f"s{number}", [device("a", f"{number + 1}Gi")], node=f"n{number}") for number in range(20)]
    world = World(make_class(), make_claim("c"), *slices, nodes=20)
    monkeypatch.setattr(fragments, "MAX_STEPS", 30)
    codes: list[Code] = []
    while not codes or codes[-1] is Code.ERROR:
        codes.append(world.schedule(POD).status.code)
    assert codes[-1] is Code.SUCCESS
    assert 2 < len(codes) < 20
