"""Policy files, as kube-scheduler 1.9 to 1.22 read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import SchedulerConfig, load_config, load_policy_file
from kube_pyscheduler.config.policy_names import DEFAULT_PRIORITIES, PREDICATES, PRIORITIES
from kube_pyscheduler.config.render import render
from kube_pyscheduler.framework.profile import EXTENSION_POINTS, Profile, build_profile
from kube_pyscheduler.plugins import IN_TREE

SCORE_POINTS = ("preScore", "score")
NEWER = ("DynamicResources", "NodeDeclaredFeatures")
"""Plugins for fields of pods that came after Policy files; always there."""
MANDATORY = ["NodeUnschedulable", "TaintToleration"]


def policy(predicates: Any = (), priorities: Any = (), **more: Any) -> str:
    """A Policy as JSON; lists that are None are left out."""
    document = {"kind": "Policy", "apiVersion": "v1", "predicates": predicates, "priorities": priorities, **more}
    return json.dumps({key: value for key, value in document.items() if value is not None})


def named(*names: str, weight: int = 0) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} if weight else {"name": name} for name in names]


def profile(text: str) -> Profile:
    return build_profile(load_config(text).profiles[0], IN_TREE)


def filters(text: str) -> list[str]:
    return [plugin.name for plugin in profile(text).filter if plugin.name not in NEWER]


def scores(text: str) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile(text).score if plugin.name not in NEWER}


def args_of(text: str, plugin: str) -> Any:
    return load_config(text).profiles[0].args[plugin]


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    return [str(problem) for problem in caught.value.problems]


# The lists


def test_what_an_absent_list_means_and_what_an_empty_one() -> None:
    assert filters(policy()) == MANDATORY
    assert scores(policy()) == {}
    assert filters(policy(None, None)) == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "NodeVolumeLimits",
        "MaxAzureDiskVolumeCount",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert scores(policy(None, None)) == {
        PRIORITIES[priority]: weight for priority, weight in DEFAULT_PRIORITIES.items()
    }
    assert scores(policy(None, None))["NodePreferAvoidPods"] == 10000


def test_null_is_absent() -> None:
    text = '{"kind": "Policy", "apiVersion": "v1", "predicates": null, "priorities": null}'
    assert profile(text).filter != ()
    assert scores(text) == scores(policy(None, None))


@pytest.mark.parametrize("predicate", sorted(set(PREDICATES) - {"CheckNodeLabelPresence", "CheckServiceAffinity"}))
def test_every_predicate_is_served(predicate: str) -> None:
    served = filters(policy(named(predicate)))
    assert set(served) == {*PREDICATES[predicate], *MANDATORY}


@pytest.mark.parametrize("priority", sorted(PRIORITIES))
def test_every_priority_is_served_with_its_weight(priority: str) -> None:
    assert scores(policy((), named(priority, weight=7))) == {PRIORITIES[priority]: 7}


def test_a_plugin_serves_all_points_of_the_side_that_is_named() -> None:
    made = profile(policy(None, None))
    points: dict[str, set[str]] = {
        "preFilter": {plugin.name for plugin in made.pre_filter},
        "filter": {plugin.name for plugin in made.filter},
        "reserve": {plugin.name for plugin in made.reserve},
        "preBind": {plugin.name for plugin in made.pre_bind},
        "preScore": {plugin.name for plugin in made.pre_score},
        "score": {plugin.name for plugin, _weight in made.score},
    }
    for name in {*points["filter"], *points["score"]} - {*NEWER}:
        sides = (
            (points["filter"], [point for point in EXTENSION_POINTS if point not in SCORE_POINTS]),
            (points["score"], SCORE_POINTS),
        )
        plugin = next(p for p in (*made.filter, *(p for p, _w in made.score)) if p.name == name)
        for members, side in sides:
            if name in members:
                implemented = {point for point in side if isinstance(plugin, EXTENSION_POINTS[point])}
                assert {point for point in points if name in points[point]} >= implemented, name


def test_plugins_run_in_the_order_of_predicates_whatever_the_order_of_the_file() -> None:
    names = ["MatchInterPodAffinity", "CheckNodeCondition", "NoDiskConflict", "PodFitsResources", "HostName"]
    expected = [
        "CheckNodeCondition",
        "NodeUnschedulable",
        "NodeName",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
        "InterPodAffinity",
    ]
    assert filters(policy(named(*names))) == expected
    assert filters(policy(named(*reversed(names), "HostName"))) == expected


def test_what_is_neither_predicate_nor_priority_is_always_there() -> None:
    made = profile(policy())
    assert made.queue_sort.name == "PrioritySort"
    assert [plugin.name for plugin in made.bind] == ["DefaultBinder"]
    assert [plugin.name for plugin in made.post_filter if plugin.name not in NEWER] == ["DefaultPreemption"]
    assert "SchedulingGates" in [plugin.name for plugin in made.pre_enqueue]


# Whole files. What they come to is what 1.21 said of the same files, but for the plugins that are ours.

FILE_OF_1_0 = """
{
  "kind": "Policy",
  "apiVersion": "v1",
  "predicates": [
    {"name": "MatchNodeSelector"},
    {"name": "PodFitsResources"},
    {"name": "PodFitsPorts"},
    {"name": "NoDiskConflict"},
    {"name": "Regional", "argument": {"serviceAffinity": {"labels": ["region"]}}},
    {"name": "Foo", "argument": {"labelsPresence": {"labels": ["foo"], "presence": true}}}
  ],
  "priorities": [
    {"name": "LeastRequestedPriority", "weight": 1},
    {"name": "ServiceSpreadingPriority", "weight": 2},
    {"name": "Zonal", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
    {"name": "Bar", "weight": 4, "argument": {"labelPreference": {"label": "bar", "presence": true}}}
  ]
}
"""


def test_a_file_of_1_0() -> None:
    assert filters(FILE_OF_1_0) == [
        "NodeUnschedulable",
        "NodePorts",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeLabel",
        "ServiceAffinity",
    ]
    assert scores(FILE_OF_1_0) == {
        "NodeResourcesFit": 1,
        "ServiceSpreading": 2,
        "NodeLabel": 4,
        "ServiceAffinity": 3,
    }
    assert args_of(FILE_OF_1_0, "NodeLabel") == {
        "presentLabels": ["foo"],
        "absentLabels": [],
        "presentLabelsPreference": ["bar"],
        "absentLabelsPreference": [],
    }
    assert args_of(FILE_OF_1_0, "ServiceAffinity") == {
        "affinityLabels": ["region"],
        "antiAffinityLabelsPreference": ["zone"],
    }


FILE_OF_1_16 = """
kind: Policy
apiVersion: v1
predicates:
- name: MatchNodeSelector
- name: PodFitsResources
- name: PodFitsHostPorts
- name: HostName
- name: NoDiskConflict
- name: NoVolumeZoneConflict
- name: PodToleratesNodeTaints
- name: MaxEBSVolumeCount
- name: MaxGCEPDVolumeCount
- name: MaxAzureDiskVolumeCount
- name: MaxCSIVolumeCountPred
- name: MaxCinderVolumeCount
- name: MatchInterPodAffinity
- name: CheckVolumeBinding
- {name: First, argument: {serviceAffinity: {labels: [region]}}}
- {name: Second, argument: {labelsPresence: {labels: [foo], presence: true}}}
- {name: Third, argument: {labelsPresence: {labels: [bar, baz], presence: false}}}
priorities:
- {name: EqualPriority, weight: 2}
- {name: ImageLocalityPriority, weight: 2}
- {name: LeastRequestedPriority, weight: 2}
- {name: BalancedResourceAllocation, weight: 2}
- {name: SelectorSpreadPriority, weight: 2}
- {name: NodePreferAvoidPodsPriority, weight: 2}
- {name: NodeAffinityPriority, weight: 2}
- {name: TaintTolerationPriority, weight: 2}
- {name: InterPodAffinityPriority, weight: 2}
- {name: MostRequestedPriority, weight: 2}
- name: RequestedToCapacityRatioPriority
  weight: 2
  argument:
    requestedToCapacityRatioArguments:
      shape: [{utilization: 0, score: 0}, {utilization: 50, score: 7}]
      resources: [{name: intel.com/foo, weight: 3}, {name: intel.com/bar, weight: 5}]
hardPodAffinitySymmetricWeight: 10
alwaysCheckAllPredicates: true
"""


def test_a_file_of_1_16() -> None:
    assert filters(FILE_OF_1_16) == [
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeLabel",
        "ServiceAffinity",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "NodeVolumeLimits",
        "MaxAzureDiskVolumeCount",
        "MaxCinderVolumeCount",
        "VolumeBinding",
        "VolumeZone",
        "InterPodAffinity",
    ]
    assert scores(FILE_OF_1_16) == dict.fromkeys(
        (
            "EqualPriority",
            "ImageLocality",
            "NodeResourcesFit",
            "BalancedResourceAllocation",
            "SelectorSpread",
            "NodePreferAvoidPods",
            "NodeAffinity",
            "TaintToleration",
            "InterPodAffinity",
            "NodeResourcesMostAllocated",
            "RequestedToCapacityRatio",
        ),
        2,
    )
    assert args_of(FILE_OF_1_16, "NodeLabel")["absentLabels"] == ["bar", "baz"]
    assert args_of(FILE_OF_1_16, "InterPodAffinity").hard_pod_affinity_weight == 10
    assert args_of(FILE_OF_1_16, "RequestedToCapacityRatio") == {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 7}],
        "resources": [{"name": "intel.com/foo", "weight": 3}, {"name": "intel.com/bar", "weight": 5}],
    }
    assert profile(FILE_OF_1_16).checks_all
    assert not profile(FILE_OF_1_0).checks_all
    assert args_of(FILE_OF_1_0, "InterPodAffinity").hard_pod_affinity_weight == 1


def test_spreading_by_constraints_brings_no_default_constraints() -> None:
    text = policy(named("EvenPodsSpread"), named("EvenPodsSpreadPriority", "SelectorSpreadPriority", weight=2))
    assert args_of(text, "PodTopologySpread").defaulting_type == "List"
    assert scores(text) == {"PodTopologySpread": 2, "SelectorSpread": 2}


# Arguments


def custom(argument: str, value: Any, weight: int = 0) -> dict[str, Any]:
    return {"name": "Custom", "argument": {argument: value}, **({"weight": weight} if weight else {})}


def test_several_preferences_of_one_weight_share_a_plugin_that_weighs_as_much_as_all_of_them() -> None:
    text = policy(
        (),
        [
            custom("labelPreference", {"label": "bar", "presence": True}, 4),
            custom("labelPreference", {"label": "foo", "presence": False}, 4),
            custom("serviceAntiAffinity", {"label": "zone"}, 3),
            custom("serviceAntiAffinity", {"label": "region"}, 3),
        ],
    )
    assert scores(text) == {"NodeLabel": 8, "ServiceAffinity": 6}
    assert args_of(text, "NodeLabel")["presentLabelsPreference"] == ["bar"]
    assert args_of(text, "NodeLabel")["absentLabelsPreference"] == ["foo"]
    assert args_of(text, "ServiceAffinity")["antiAffinityLabelsPreference"] == ["zone", "region"]


def test_a_preference_that_weighs_more_counts_more() -> None:
    preferences = [("a", 2), ("b", 4), ("c", 6)]
    text = policy((), [custom("labelPreference", {"label": key, "presence": True}, w) for key, w in preferences])
    assert scores(text) == {"NodeLabel": 12}
    assert args_of(text, "NodeLabel")["presentLabelsPreference"] == ["a", "b", "b", "c", "c", "c"]


def test_weights_that_one_score_cannot_tell_apart_are_refused() -> None:
    text = policy((), [custom("serviceAntiAffinity", {"label": key}, w) for key, w in (("a", 1), ("b", 100))])
    why = "the weights of all serviceAntiAffinity priorities must be told apart in 100 parts of 101 altogether"
    assert problems_of(text) == [f"priorities: {why}"]


def test_a_ratio_without_arguments_is_least_requested() -> None:
    text = policy((), named("RequestedToCapacityRatioPriority", weight=1))
    assert scores(text) == {"RequestedToCapacityRatio": 1}


def test_of_priorities_that_are_named_twice_the_last_one_counts() -> None:
    names = [*named("ImageLocalityPriority", weight=2), *named("ImageLocalityPriority", weight=5)]
    assert scores(policy((), names)) == {"ImageLocality": 5}


# Mistakes


def test_all_mistakes_are_reported_at_once() -> None:
    text = policy(
        [
            {"name": "PodFitsEverything"},
            {"name": ""},
            {"name": "CheckNodeLabelPresence"},
            {"name": "Both", "argument": {"serviceAffinity": {"labels": []}, "labelsPresence": {"labels": []}}},
            {"name": "Neither", "argument": {}},
            {"name": "HostName", "weight": 1},
        ],
        [
            {"name": "HostName", "weight": 1},
            {"name": "EqualPriority"},
            {"name": "EqualPriority", "weight": -1},
            {"name": "EqualPriority", "weight": "many"},
            {"name": "", "weight": 2**31},
            custom("requestedToCapacityRatioArguments", {"shape": [{"utilization": 0}]}, 1),
            custom("requestedToCapacityRatioArguments", {"shape": [{"utilization": 0}]}, 1),
        ],
        hardPodAffinitySymmetricWeight=101,
        extenders=[{"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "filter", "httpTimeout": 130000000}],
        alwaysCheckAll=True,
    )
    found = problems_of(text)
    known = "supported values: "
    expected = [
        r"predicates\[5\]\.weight: unknown field",
        r"priorities\[3\]\.weight: expected .*int.*",
        r"priorities\[4\]\.weight: expected .*int.*",
        r"alwaysCheckAll: unknown field",
        r"extenders: extenders are not supported yet",
        r"hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range \[0-100\]",
        rf'predicates\[0\]\.name: Unsupported value: "PodFitsEverything": {known}.*"GeneralPredicates".*',
        r"predicates\[1\]\.name: Required value",
        r"predicates\[2\]\.argument: Required value: labelsPresence or serviceAffinity",
        r"predicates\[3\]\.argument: exactly one argument is required, but there are 2",
        r"predicates\[4\]\.argument: exactly one argument is required, but there are 0",
        rf'priorities\[0\]\.name: Unsupported value: "HostName": {known}.*"LeastRequestedPriority".*',
        r"priorities\[1\]\.weight: Invalid value: 0: must be positive",
        r"priorities\[2\]\.weight: Invalid value: -1: must be positive",
        r"priorities\[3\]\.weight: Invalid value: 0: must be positive",
        r"priorities\[4\]\.weight: Invalid value: 0: must be positive",
        r"priorities\[6\]: requestedToCapacityRatioArguments are given twice",
    ]
    assert len(found) == len(expected), found
    for problem, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, problem), (problem, pattern)


def test_a_shape_that_makes_no_sense_stops_the_profile() -> None:
    shape = [{"utilization": 10, "score": 0}, {"utilization": 5, "score": 20}]
    text = policy((), [custom("requestedToCapacityRatioArguments", {"shape": shape}, 1)])
    with pytest.raises(ConfigError, match='initializing plugin "RequestedToCapacityRatio"'):
        profile(text)


def test_the_kind_and_its_version_are_looked_at(tmp_path: Path) -> None:
    assert filters(policy(apiVersion="kubescheduler.config.k8s.io/v1")) == MANDATORY
    assert problems_of(policy(apiVersion="v2")) == [
        'apiVersion: Unsupported value: "v2": supported values: "v1", "kubescheduler.config.k8s.io/v1"'
    ]
    other = tmp_path / "config.yaml"
    other.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    with pytest.raises(ConfigError) as caught:
        load_policy_file(other)
    assert [str(problem) for problem in caught.value.problems] == [
        'kind: Unsupported value: "KubeSchedulerConfiguration": supported values: "Policy"'
    ]


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_policy_file(tmp_path / "missing")


# What comes out


@pytest.mark.parametrize("text", [FILE_OF_1_0, FILE_OF_1_16, policy(None, None), policy()])
def test_a_policy_is_written_as_a_configuration_that_means_the_same(text: str) -> None:
    config = load_config(text, "classic")
    again = load_config(yaml.safe_dump(render(config)))
    assert _meaning(again) == _meaning(config)
    assert again.profiles[0].scheduler_name == "classic"


def _meaning(config: SchedulerConfig) -> Any:
    made = build_profile(config.profiles[0], IN_TREE)
    names = {point: [plugin.name for plugin in getattr(made, point)] for point in ("pre_filter", "filter", "reserve")}
    weights = [(plugin.name, weight) for plugin, weight in made.score]
    return names, weights, made.checks_all, config.profiles[0].args
