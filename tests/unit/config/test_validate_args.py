from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_profile


def problems_of(plugin: str, args: dict[str, Any]) -> list[str]:
    """Problems with the common part of the path cut off."""
    try:
        load_profile({"pluginConfig": [{"name": plugin, "args": args}]})
    except ConfigError as error:
        return [str(problem).removeprefix("profiles[0].pluginConfig[0].args.") for problem in error.problems]
    return []


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    listed = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {
        "scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": listed}},
    }


def constraint(**changes: Any) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": "List", "defaultConstraints": [base | changes]}


def added(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


FIT, SPREAD, AFFINITY = "NodeResourcesFit", "PodTopologySpread", "NodeAffinity"
REQUIREMENT = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        (FIT, {"ignoredResources": ["a b"]}, "ignoredResources[0]: Invalid value"),
        (FIT, {"ignoredResourceGroups": ["a.com/b"]}, "ignoredResourceGroups[0]: Invalid value"),
        (FIT, {"scoringStrategy": {"resources": [{"name": "cpu"}]}}, 'scoringStrategy.type: Unsupported value: ""'),
        (FIT, {"scoringStrategy": {"type": "Best"}}, 'scoringStrategy.type: Unsupported value: "Best"'),
        (
            FIT,
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight: Invalid value: 101",
        ),
        (
            FIT,
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio: Required value",
        ),
        (
            FIT,
            {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {}}},
            "scoringStrategy.requestedToCapacityRatio: Forbidden",
        ),
        (FIT, shape(), f"{SHAPE}: Required value"),
        (FIT, shape((5, 0), (5, 1)), f"{SHAPE}[1].utilization: Invalid value: 5: values must be sorted"),
        (FIT, shape((0, 11)), f"{SHAPE}[0].score: Invalid value: 11"),
        (FIT, shape((101, 1)), f"{SHAPE}[0].utilization: Invalid value: 101"),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight: Invalid value: 2: must be 1",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            'resources[1].name: Duplicate value: "cpu"',
        ),
        ("InterPodAffinity", {"hardPodAffinityWeight": -1}, "hardPodAffinityWeight: Invalid value: -1"),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds: Invalid value: -1"),
        ("VolumeBinding", {"shape": []}, "shape: Required value: at least one point must be specified"),
        ("VolumeBinding", {"shape": [{"utilization": 0, "score": 11}]}, "shape[0].score: Invalid value: 11"),
        ("DynamicResources", {"bindingTimeout": "500ms"}, 'bindingTimeout: Invalid value: "500ms"'),
        ("DynamicResources", {"filterTimeout": "-1s"}, 'filterTimeout: Invalid value: "-1s"'),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101",
        ),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute: Invalid value: -1"),
        (SPREAD, constraint(maxSkew=0), "defaultConstraints[0].maxSkew: Invalid value: 0"),
        (SPREAD, constraint(maxSkew=None), "defaultConstraints[0].maxSkew: Invalid value: 0"),
        (SPREAD, constraint(topologyKey=None), "defaultConstraints[0].topologyKey: Required value"),
        (SPREAD, constraint(topologyKey="a/b/c"), "defaultConstraints[0].topologyKey: Invalid value"),
        (SPREAD, constraint(whenUnsatisfiable=None), "defaultConstraints[0].whenUnsatisfiable: Required value"),
        (SPREAD, constraint(whenUnsatisfiable="Try"), "defaultConstraints[0].whenUnsatisfiable: Unsupported value"),
        (SPREAD, constraint(labelSelector={}), "defaultConstraints[0].labelSelector: Forbidden"),
        (SPREAD, constraint() | {"defaultingType": "System"}, "defaultingType: Invalid value"),
        (SPREAD, {"defaultingType": "Maybe"}, "defaultingType: Unsupported value"),
        (AFFINITY, added(key="a", operator="Like"), f"{REQUIREMENT}.operator: Unsupported value"),
        (AFFINITY, added(key="a", operator="In"), f"{REQUIREMENT}.values: Invalid value"),
        (AFFINITY, added(key="a", operator="Exists", values=["x"]), f"{REQUIREMENT}.values: Invalid value"),
        (AFFINITY, added(key="a", operator="Gt", values=["many"]), f"{REQUIREMENT}.values[0]: Invalid value"),
        (AFFINITY, added(key="a", operator="Gt", values=["-4"]), f"{REQUIREMENT}.values[0]: Invalid value"),
        (AFFINITY, added(key="a", operator="Lt", values=["1", "2"]), f"{REQUIREMENT}.values: Invalid value"),
        (AFFINITY, added(key="", operator="Exists"), f"{REQUIREMENT}.key: Invalid value"),
        (AFFINITY, added(key="a", operator="Exists", value="x"), f"{REQUIREMENT}.value: unknown field"),
        (AFFINITY, added(key="a", operator="In", values=["x", "-"]), f"{REQUIREMENT}.values[1]: Invalid value"),
    ],
)
def test_a_wrong_argument_is_named(plugin: str, args: dict[str, Any], problem: str) -> None:
    found = problems_of(plugin, args)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_match_fields_take_one_value_and_two_operators() -> None:
    def field(operator: str, *values: str) -> dict[str, Any]:
        term = {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}
        weighted = [{"weight": 1, "preference": term}]
        return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}

    assert problems_of(AFFINITY, field("NotIn", "node-1")) == []
    assert "must have one element" in problems_of(AFFINITY, field("In", "a", "b"))[0]
    assert "Unsupported value" in problems_of(AFFINITY, field("Exists"))[0]


def test_neither_way_to_choose_candidates_may_be_off_at_the_same_time() -> None:
    found = problems_of("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0})
    assert len(found) == 2


def test_a_constraint_is_not_given_twice() -> None:
    twice = constraint()
    twice["defaultConstraints"] *= 2
    assert problems_of(SPREAD, twice) == ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"']


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        (FIT, {"ignoredResources": ["example.com/widget"], "ignoredResourceGroups": ["example.com"]}),
        (FIT, shape((0, 0), (100, 10))),
        (SPREAD, constraint(minDomains=3, nodeTaintsPolicy="Honor", matchLabelKeys=["a"])),
        (AFFINITY, added(key="cores", operator="Gt", values=["4"])),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0}),
        ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1s"}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}),
    ],
)
def test_arguments_within_the_limits_pass(plugin: str, args: dict[str, Any]) -> None:
    assert problems_of(plugin, args) == []
