from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from kube_pyscheduler.config.args import (
    CPU_AND_MEMORY,
    LEAST_ALLOCATED,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    VolumeBindingArgs,
)
from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import default_config, load_config, load_config_file, load_profile
from kube_pyscheduler.objects.selectors import NodeSelectorRequirement

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(HEADER + dedent(text))
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_configuration_has_the_defaults_of_kube_scheduler() -> None:
    config = load_config(HEADER)
    settings = config.settings
    assert settings.parallelism == 16
    assert (settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds) == (1, 10)
    election = settings.leader_election
    assert election.leader_elect
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (
        Duration(15),
        Duration(10),
        Duration(2),
    )
    assert (election.resource_namespace, election.resource_name) == ("kube-system", "kube-pyscheduler")
    assert (settings.client_connection.qps, settings.client_connection.burst) == (50, 100)
    (profile,) = config.profiles
    assert profile.scheduler_name == "kube-pyscheduler"
    assert profile.percentage_of_nodes_to_score == 0
    assert config == default_config()


def test_zero_durations_and_empty_names_mean_the_default() -> None:
    settings = load_config(
        HEADER
        + dedent("""
        leaderElection: {leaderElect: false, leaseDuration: 0s, resourceName: ""}
        clientConnection: {qps: 0, burst: 0, kubeconfig: /etc/kubernetes/scheduler.conf}
        """)
    ).settings
    assert settings.leader_election.leader_elect is False
    assert settings.leader_election.lease_duration == Duration(15)
    assert settings.leader_election.resource_name == "kube-pyscheduler"
    assert settings.client_connection.qps == 50
    assert settings.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"


def test_all_errors_are_reported_at_once_with_their_paths() -> None:
    assert problems_of("""
        parallelism: 0
        percentageOfNodesToScore: 101
        podInitialBackoffSeconds: 5
        podMaxBackoffSeconds: 4
        paralellism: 3
        leaderElection: {leaseDuration: 10s, renewDeadline: 1x, retryPeriod: 9s}
        clientConnection: {burst: -1}
        profiles:
        - schedulerName: a
          percentageOfNodesToScore: -1
          plugins:
            filter: {enabled: [{name: X, wait: 3}], disable: []}
            score: {enabled: [{weight: 3}, {name: EBSLimits}, {name: Y, weight: -1}]}
          pluginConfig:
          - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}
          - {name: InterPodAffinity}
        - schedulerName: a
        """) == [
        "paralellism: unknown field",
        "leaderElection.renewDeadline: invalid duration \"1x\"",
        "profiles[0].plugins.filter.enabled[0].wait: unknown field",
        "profiles[0].plugins.filter.disable: unknown field",
        "clientConnection.burst: Invalid value: -1: must be non-negative",
        "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than renewDeadline",
        "leaderElection.renewDeadline: Invalid value: \"10s\": must be greater than retryPeriod times 1.2",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds",
        "profiles[1].schedulerName: Duplicate value: \"a\"",
        "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        "profiles[0].plugins.score.enabled[0].name: Required value",
        "profiles[0].plugins.score.enabled[1]: Invalid value: \"EBSLimits\": "
        "was removed before kubescheduler.config.k8s.io/v1",
        "profiles[0].plugins.score.enabled[2].weight: Invalid value: -1: must not be negative",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        "profiles[0].pluginConfig[1]: Duplicate value: \"InterPodAffinity\"",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("parallelism: many", "parallelism: expected int, got str"),
        ("parallelism: 4294967296", "parallelism: expected int <= 2147483647"),
        ("profiles: {}", "profiles: expected a list, got an object"),
        ("profiles: [3]", "profiles[0]: expected an object, got a number"),
        ("leaderElection: yes please", "leaderElection: expected an object, got a string"),
        ("leaderElection: {leaderElect: 1}", "leaderElection.leaderElect: expected bool, got int"),
        ("leaderElection: {retryPeriod: 2}", 'leaderElection.retryPeriod: expected a duration such as "15s", got'),
        ("leaderElection: {resourceLock: endpoints}", 'leaderElection.resourceLock: Unsupported value: "endpoints"'),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
        ("extenders: [{urlPrefix: http://x}]", "extenders[0]: extenders are not supported yet"),
        ("parallelism: 1\nparallelism: 2", 'not YAML: key "parallelism" is given twice'),
        ("a: [", "not YAML: while parsing"),
    ],
)
def test_a_single_mistake_is_named(text: str, problem: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    "text", ["", "[]", "just text", "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3"]
)
def test_another_kind_of_document_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        load_config(text)


def test_null_is_absent() -> None:
    assert load_config(HEADER + "profiles: null\nleaderElection:\nparallelism: null\n") == default_config()


def test_json_is_yaml() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 8}'
    assert load_config(text).settings.parallelism == 8


def test_the_given_scheduler_name_is_taken_where_the_only_profile_has_none() -> None:
    assert load_config(HEADER, "mine").profiles[0].scheduler_name == "mine"
    named = load_config(HEADER + "profiles: [{schedulerName: theirs}]", "mine")
    assert named.profiles[0].scheduler_name == "theirs"


def test_a_profile_overrides_the_percentage_of_nodes() -> None:
    config = load_config(
        HEADER
        + "percentageOfNodesToScore: 40\n"
        + "profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 0}]"
    )
    assert [profile.percentage_of_nodes_to_score for profile in config.profiles] == [40, 0]


def test_queue_sort_must_be_the_same_for_all_profiles() -> None:
    assert problems_of("""
        profiles:
        - schedulerName: a
        - schedulerName: b
          plugins: {queueSort: {disabled: [{name: "*"}], enabled: [{name: Mine}]}}
        """) == ["profiles[1].plugins.queueSort: must be the same for all profiles"]


def test_a_file_that_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_config_file(tmp_path / "missing.yaml")


def test_arguments_of_all_plugins_have_defaults() -> None:
    args = default_config().profiles[0].args
    fit = args["NodeResourcesFit"]
    assert fit == NodeResourcesFitArgs()
    assert (fit.scoring_strategy.type, fit.scoring_strategy.resources) == (LEAST_ALLOCATED, CPU_AND_MEMORY)
    assert args["InterPodAffinity"] == InterPodAffinityArgs(1, False)
    assert args["VolumeBinding"] == VolumeBindingArgs(600)
    assert args["DynamicResources"] == DynamicResourcesArgs()
    assert (args["DynamicResources"].filter_timeout, args["DynamicResources"].binding_timeout) == (10, 600)


def test_zero_weights_mean_one_and_no_resources_mean_cpu_and_memory() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}, {"name": "x/y", "weight": 7}]}
    args = load_profile({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}).args
    assert args["NodeResourcesFit"].scoring_strategy.resources == (ResourceSpec("cpu", 1), ResourceSpec("x/y", 7))
    empty = {"pluginConfig": [{"name": "NodeResourcesBalancedAllocation", "args": {"resources": []}}]}
    assert load_profile(empty).args["NodeResourcesBalancedAllocation"].resources == CPU_AND_MEMORY


def test_arguments_of_plugins_that_are_not_ours_stay_as_they_are() -> None:
    profile = load_profile({"pluginConfig": [{"name": "Theirs", "args": {"any": ["thing"]}}, {"name": "NodePorts"}]})
    assert profile.args["Theirs"] == {"any": ["thing"]}
    assert profile.args["NodePorts"] is None


def test_arguments_may_say_what_they_are() -> None:
    def load(kind: str) -> NodeAffinityArgs:
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
            }
        }
        args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": kind, "addedAffinity": affinity}
        loaded = load_profile({"pluginConfig": [{"name": "NodeAffinity", "args": args}]}).args["NodeAffinity"]
        assert isinstance(loaded, NodeAffinityArgs)
        return loaded

    added = load("NodeAffinityArgs").added_affinity
    assert added is not None
    assert added.required is not None
    (term,) = added.required.node_selector_terms
    assert term.match_expressions == (NodeSelectorRequirement("disk", "In", ("ssd",)),)
    with pytest.raises(ConfigError, match=r'args.kind: Unsupported value: "InterPodAffinityArgs"'):
        load("InterPodAffinityArgs")
