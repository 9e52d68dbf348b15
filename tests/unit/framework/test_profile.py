from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.config.args import InterPodAffinityArgs
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_config, load_profile
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, Resource
from kube_pyscheduler.framework.interfaces import Filter, Plugin, Refreshing, Score
from kube_pyscheduler.framework.profile import Profile, build_profile, build_profiles
from kube_pyscheduler.framework.registry import Registry
from tests.unit.framework.stub_plugins import REGISTRY, stub


def build(plugins: dict[str, Any] | None = None, **rest: Any) -> Profile:
    return build_profile(load_profile({"plugins": plugins, **rest}), REGISTRY)


def enabled(*names: str, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    """A plugin set; ``X*3`` is X with weight 3."""
    listed = []
    for name in names:
        plain, _, weight = name.partition("*")
        listed.append({"name": plain, "weight": int(weight)} if weight else {"name": plain})
    return {"enabled": listed, "disabled": [{"name": name} for name in disabled]}


def names(plugins: tuple[Plugin, ...]) -> list[str]:
    return [plugin.name for plugin in plugins]


def scores(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.score}


def problems_of(plugins: dict[str, Any], **rest: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build(plugins, **rest)
    return [str(problem) for problem in caught.value.problems]


DEFAULT_SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def test_the_default_profile_is_that_of_v1_36() -> None:
    profile = build()
    assert profile.name == "kube-pyscheduler"
    assert names(profile.pre_enqueue) == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert profile.queue_sort.name == "PrioritySort"
    assert names(profile.pre_filter) == [
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert names(profile.filter) == ["NodeUnschedulable", "NodeName", "TaintToleration", *names(profile.pre_filter)]
    assert names(profile.post_filter) == ["DynamicResources", "DefaultPreemption"]
    assert names(profile.pre_score) == [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    ]
    assert scores(profile) == DEFAULT_SCORES
    assert list(scores(profile)) == list(DEFAULT_SCORES)
    assert names(profile.reserve) == names(profile.pre_bind) == ["VolumeBinding", "DynamicResources"]
    assert names(profile.permit) == names(profile.post_bind) == []
    assert names(profile.bind) == ["DefaultBinder"]


def test_one_instance_serves_all_extension_points_and_has_its_args() -> None:
    profile = build(pluginConfig=[{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}])
    everywhere: list[Any] = [*profile.pre_filter, *profile.filter, *profile.pre_score, *(it for it, _ in profile.score)]
    found = [plugin for plugin in everywhere if plugin.name == "InterPodAffinity"]
    assert len(found) == 4
    assert len(set(map(id, found))) == 1
    assert found[0].args == InterPodAffinityArgs(7)


def test_a_disabled_default_leaves_its_extension_point_only() -> None:
    profile = build({"score": enabled(disabled=("NodeAffinity",))})
    assert "NodeAffinity" not in scores(profile)
    assert "NodeAffinity" in names(profile.pre_score)
    assert "NodeAffinity" in names(profile.filter)


def test_all_defaults_of_an_extension_point_are_disabled_with_a_star() -> None:
    profile = build({"filter": enabled("NodePorts", "NodeName", disabled=("*",))})
    assert names(profile.filter) == ["NodePorts", "NodeName"]
    assert "NodeAffinity" in names(profile.pre_filter)


def test_a_plugin_disabled_under_multi_point_is_gone() -> None:
    profile = build({"multiPoint": enabled(disabled=("NodeAffinity",))})
    assert "NodeAffinity" not in names(profile.filter) + names(profile.pre_filter) + list(scores(profile))


def test_a_star_under_multi_point_leaves_what_is_listed_in_that_order() -> None:
    profile = build(
        {"multiPoint": enabled("DefaultBinder", "NodePorts", "NodeAffinity*9", "PrioritySort", disabled=("*",))}
    )
    assert names(profile.filter) == ["NodePorts", "NodeAffinity"]
    assert scores(profile) == {"NodeAffinity": 9}


def test_a_weight_under_multi_point_replaces_the_default_in_place() -> None:
    profile = build({"multiPoint": enabled("NodeAffinity*7")})
    assert scores(profile) == DEFAULT_SCORES | {"NodeAffinity": 7}
    assert list(scores(profile)) == list(DEFAULT_SCORES)


def test_no_weight_under_multi_point_means_one_and_not_the_default() -> None:
    assert scores(build({"multiPoint": enabled("TaintToleration")}))["TaintToleration"] == 1


def test_a_specific_weight_wins_and_the_plugin_moves_to_the_front() -> None:
    profile = build({"multiPoint": enabled("ImageLocality*5"), "score": enabled("Everything*4", "ImageLocality*9")})
    assert scores(profile) == DEFAULT_SCORES | {"ImageLocality": 9, "Everything": 4}
    assert next(iter(scores(profile))) == "ImageLocality"
    assert list(scores(profile))[-1] == "Everything"


def test_disabled_and_enabled_again_goes_to_the_end() -> None:
    profile = build({"filter": enabled("NodeName", disabled=("NodeName",))})
    assert names(profile.filter)[0] == "NodeUnschedulable"
    assert names(profile.filter)[-1] == "NodeName"


def test_a_plugin_of_our_own_comes_after_the_defaults() -> None:
    profile = build({"multiPoint": enabled("Everything")})
    for plugins in (profile.filter, profile.permit, profile.post_filter, profile.post_bind):
        assert names(plugins)[-1] == "Everything"
    assert scores(profile)["Everything"] == 1


def test_a_plugin_of_our_own_can_be_kept_out_of_an_extension_point() -> None:
    profile = build({"multiPoint": enabled("Everything"), "score": enabled(disabled=("Everything",))})
    assert "Everything" not in scores(profile)
    assert "Everything" in names(profile.filter)


def test_the_queue_can_be_sorted_otherwise() -> None:
    profile = build({"queueSort": enabled("AnotherSort", disabled=("*",))})
    assert profile.queue_sort.name == "AnotherSort"


def test_a_plugin_that_is_not_registered_stops_with_its_path() -> None:
    assert problems_of({"score": enabled("NodeAffinity", "X"), "multiPoint": enabled("Y")}) == [
        'profiles[0].plugins.multiPoint.enabled[0]: plugin "Y" is not registered',
        'profiles[0].plugins.score.enabled[1]: plugin "X" is not registered',
    ]


def test_a_plugin_that_is_not_registered_may_be_disabled() -> None:
    assert scores(build({"score": enabled(disabled=("Unknown",))})) == DEFAULT_SCORES


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ({"score": enabled("NodeName")}, 'score.enabled[0]: plugin "NodeName" does not implement score'),
        ({"score": enabled("NodeAffinity", "NodeAffinity")}, 'score.enabled[1]: plugin "NodeAffinity" is enabled'),
        ({"multiPoint": enabled("Everything", "Everything")}, 'multiPoint.enabled[1]: plugin "Everything" is enabled'),
        ({"queueSort": enabled("AnotherSort")}, "queueSort: exactly one queue sort plugin is needed, but there are 2"),
        (
            {"queueSort": enabled(disabled=("*",))},
            "queueSort: exactly one queue sort plugin is needed, but there are 0",
        ),
        ({"bind": enabled(disabled=("*",))}, "bind: at least one bind plugin is needed"),
        (
            {"placementScore": enabled("Everything")},
            'placementScore.enabled[0]: plugin "Everything" does not implement',
        ),
    ],
)
def test_what_cannot_run_is_refused(plugins: dict[str, Any], problem: str) -> None:
    assert problems_of(plugins)[0].startswith(f"profiles[0].plugins.{problem}")


def test_arguments_a_plugin_refuses_are_a_configuration_error() -> None:
    def refuse(args: Any) -> Plugin:
        raise ValueError(f"cannot use {args}")

    config = load_profile(
        {"plugins": {"filter": enabled("Theirs")}, "pluginConfig": [{"name": "Theirs", "args": {"a": 1}}]}
    )
    with pytest.raises(ConfigError, match=r"""initializing plugin "Theirs": cannot use {'a': 1}"""):
        build_profile(config, {**REGISTRY, "Theirs": refuse})


def test_whatever_a_constructor_raises_is_a_configuration_error() -> None:
    def broken(args: Any) -> Plugin:
        raise KeyError("disk")

    config = load_profile({"plugins": {"filter": enabled("Theirs")}})
    with pytest.raises(ConfigError, match=r"""profiles\[0\].pluginConfig: initializing plugin "Theirs": 'disk'"""):
        build_profile(config, {**REGISTRY, "Theirs": broken})


def test_a_profile_that_means_the_same_is_taken_as_it_is() -> None:
    before = build({"score": enabled("Everything"), "multiPoint": enabled("Everything")}, schedulerName="a")
    same = load_config(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: b}, "
        "{schedulerName: a, plugins: {score: {enabled: [{name: Everything}]}, multiPoint: {enabled: [{name: Everything}"
        "]}}}]}"
    )
    after = build_profiles(same.profiles, REGISTRY, {"a": before})
    assert after["a"] is before
    assert list(after) == ["b", "a"]
    assert after["b"].queue_sort is not before.queue_sort


def test_of_a_profile_that_changed_the_plugins_with_the_same_arguments_stay() -> None:
    def weighing(weight: int, **args: Any) -> Any:
        given = {"plugins": {"multiPoint": enabled(f"Everything*{weight}")}}
        return load_profile({**given, "pluginConfig": [{"name": "NodeAffinity", "args": args}]})

    preferred = {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    before = build_profile(weighing(2), REGISTRY)
    after = build_profile(weighing(3, **preferred), REGISTRY, before)
    assert (scores(before)["Everything"], scores(after)["Everything"]) == (2, 3)
    assert before.plugins.keys() == after.plugins.keys()
    assert [name for name, plugin in after.plugins.items() if plugin is not before.plugins[name]] == ["NodeAffinity"]
    gone = build_profile(load_profile({}), REGISTRY, after)
    assert "Everything" not in gone.plugins


def test_profiles_that_stay_and_those_that_come_must_sort_the_queue_alike() -> None:
    def sorting(name: str) -> Any:
        return load_profile({"schedulerName": name, "plugins": {"queueSort": enabled("AnotherSort", disabled=("*",))}})

    kept = load_profile({"schedulerName": "a"})
    with pytest.raises(ConfigError, match="must be the same for all profiles"):
        build_profiles([kept, sorting("b")], REGISTRY, {"a": build_profile(kept, REGISTRY)})


def test_events_matter_to_plugins_that_refuse_pods() -> None:
    registration = EventRegistration(ClusterEvent(Resource.NODE, Action.ADD))
    picky = stub("Picky", Filter)
    picky.events = lambda self: [registration]  # type: ignore[method-assign]
    registry: Registry = {
        **REGISTRY,
        "Picky": picky,
        "Scorer": stub("Scorer", Score),
        "Outside": stub("Outside", Filter, Refreshing),
    }
    profile = build_profile(load_profile({"plugins": {"multiPoint": enabled("Picky", "Scorer", "Outside")}}), registry)
    assert profile.events["Picky"] == (registration,)
    assert profile.events["SchedulingGates"] == ()
    assert "Scorer" not in profile.events
    assert "PrioritySort" not in profile.events
    assert "ImageLocality" not in profile.events
    assert names(profile.refreshing) == ["Outside"]
    assert names(profile.filter)[-2:] == ["Picky", "Outside"]
    assert list(scores(profile))[-1] == "Scorer"


def test_profiles_are_found_by_scheduler_name() -> None:
    config = load_config(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: ["
        "{schedulerName: a, percentageOfNodesToScore: 30}, "
        "{schedulerName: b, plugins: {score: {disabled: [{name: '*'}]}}}]}"
    )
    profiles = build_profiles(config.profiles, REGISTRY)
    assert list(profiles) == ["a", "b"]
    assert profiles["a"].percentage_of_nodes_to_score == 30
    assert profiles["b"].score == ()


def test_the_problems_of_all_profiles_are_reported() -> None:
    config = load_config(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: ["
        "{schedulerName: a, plugins: {filter: {enabled: [{name: X}]}}}, "
        "{schedulerName: b, plugins: {filter: {enabled: [{name: Y}]}}}]}"
    )
    with pytest.raises(ConfigError) as caught:
        build_profiles(config.profiles, REGISTRY)
    assert [problem.path for problem in caught.value.problems] == [
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[1].plugins.filter.enabled[0]",
    ]


def test_all_profiles_order_the_queue_alike() -> None:
    config = load_config(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: ["
        "{schedulerName: a}, "
        "{schedulerName: b, plugins: "
        "{multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: AnotherSort}]}}}]}"
    )
    with pytest.raises(ConfigError, match="must be the same for all profiles"):
        build_profiles(config.profiles, REGISTRY)
