"""KubeSchedulerConfiguration of the time of Policy files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import SchedulerConfig, load_config, provider_config
from kube_pyscheduler.config.render import render
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

VERSIONS = [
    "componentconfig/v1alpha1",
    "kubescheduler.config.k8s.io/v1alpha1",
    "kubescheduler.config.k8s.io/v1alpha2",
]


def load(text: str = "", version: str = VERSIONS[1]) -> SchedulerConfig:
    return load_config(f"apiVersion: {version}\nkind: KubeSchedulerConfiguration\n" + dedent(text), "from-flag")


def profile(config: SchedulerConfig) -> Profile:
    return build_profile(config.profiles[0], IN_TREE)


def problems_of(text: str, version: str = VERSIONS[1]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, version)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bare_configuration_means_the_defaults_of_today(version: str) -> None:
    config = load("", version)
    today = load_config("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "from-flag")
    assert config == today


def test_settings_keep_their_meaning() -> None:
    config = load("""
        schedulerName: mine
        algorithmSource: {provider: DefaultProvider}
        hardPodAffinitySymmetricWeight: 7
        bindTimeoutSeconds: 30
        percentageOfNodesToScore: 40
        podInitialBackoffSeconds: 2
        podMaxBackoffSeconds: 60
        failureDomains: kubernetes.io/hostname
        healthzBindAddress: 0.0.0.0:10251
        metricsBindAddress: 0.0.0.0:10251
        clientConnection: {kubeconfig: /k, qps: 5, burst: 7, contentType: application/vnd.kubernetes.protobuf}
        leaderElection:
          leaderElect: false
          leaseDuration: 30s
          renewDeadline: 20s
          resourceLock: leases
          lockObjectNamespace: spaces
          lockObjectName: lock
    """)
    settings = config.settings
    assert (settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds) == (2, 60)
    assert (settings.client_connection.kubeconfig, settings.client_connection.qps) == ("/k", 5)
    election = settings.leader_election
    assert (election.leader_elect, election.lease_duration) == (False, Duration(30))
    assert (election.resource_namespace, election.resource_name) == ("spaces", "lock")
    (only,) = config.profiles
    assert (only.scheduler_name, only.percentage_of_nodes_to_score) == ("mine", 40)
    assert only.args["InterPodAffinity"].hard_pod_affinity_weight == 7
    assert only.args["VolumeBinding"].bind_timeout_seconds == 30


@pytest.mark.parametrize("version", VERSIONS)
def test_disable_preemption_leaves_preemption_out(version: str) -> None:
    config = load("disablePreemption: true", version)
    made = profile(config)
    assert "DefaultPreemption" not in [plugin.name for plugin in made.post_filter]
    assert "DefaultPreemption" in [plugin.name for plugin in profile(load("", version)).post_filter]
    again = load_config(yaml.safe_dump(render(config)))
    assert "DefaultPreemption" not in [plugin.name for plugin in profile(again).post_filter]


def test_without_preemption_nobody_makes_room() -> None:
    nodes, full = [make_node("n")], make_pod("low", node="n", requests={"cpu": "4"})
    urgent = make_pod("high", requests={"cpu": "4"}, priority=100)
    for disabled in (False, True):
        cluster = Cluster(nodes, [full])
        cluster.profile = profile(load(f"disablePreemption: {str(disabled).lower()}"))
        decision = cluster.schedule(urgent)
        assert decision.node is None
        victims = decision.post_filter.victims if decision.post_filter is not None else ()
        assert len(victims) == (0 if disabled else 1)


def policy_file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.cfg"
    path.write_text(text)
    return f"algorithmSource: {{policy: {{file: {{path: {path}}}}}}}\n"


def test_a_policy_is_read_from_its_file(tmp_path: Path) -> None:
    text = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}], "priorities": []}'
    config = load(policy_file(tmp_path, text) + "disablePreemption: true\nhardPodAffinitySymmetricWeight: 9\n")
    made = profile(config)
    assert "NodeName" in [plugin.name for plugin in made.filter]
    assert "NodePorts" not in [plugin.name for plugin in made.filter]
    assert "DefaultPreemption" not in [plugin.name for plugin in made.post_filter]
    assert config.profiles[0].args["InterPodAffinity"].hard_pod_affinity_weight == 9
    assert config.profiles[0].scheduler_name == "from-flag"


def test_what_the_policy_says_wins(tmp_path: Path) -> None:
    text = '{"kind": "Policy", "apiVersion": "v1", "hardPodAffinitySymmetricWeight": 3}'
    config = load(policy_file(tmp_path, text) + "hardPodAffinitySymmetricWeight: 9\n")
    assert config.profiles[0].args["InterPodAffinity"].hard_pod_affinity_weight == 3


def test_mistakes_in_the_policy_are_reported_with_its_file(tmp_path: Path) -> None:
    text = policy_file(tmp_path, '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": ""}], "x": 1}')
    where = f"algorithmSource.policy.file.path: {tmp_path / 'policy.cfg'}: "
    assert problems_of(text) == [f"{where}x: unknown field", f"{where}predicates[0].name: Required value"]
    (missing,) = problems_of("algorithmSource: {policy: {file: {path: /nowhere}}}")
    assert missing.startswith("algorithmSource.policy.file.path: /nowhere: cannot read /nowhere")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "algorithmSource: {provider: BestProvider}",
            'algorithmSource.provider: Unsupported value: "BestProvider": supported values: '
            '"ClusterAutoscalerProvider", "DefaultProvider"',
        ),
        (
            "algorithmSource: {policy: {configMap: {namespace: a, name: b}}}",
            "algorithmSource.policy.configMap: Forbidden: policies are read from files; mount the ConfigMap as one",
        ),
        ("algorithmSource: {policy: {}}", "algorithmSource.policy.file.path: Required value"),
        ("plugins: {filter: {enabled: [{name: A}]}}", "plugins: Forbidden: plugins are configured in "),
        ("pluginConfig: [{name: A}]", "pluginConfig: Forbidden: plugins are configured in "),
        ("leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock: Unsupported value"),
        ("disablePreemtion: true", "disablePreemtion: unknown field"),
    ],
)
def test_what_has_no_meaning_today_is_refused(text: str, expected: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(expected)


def test_profiles_of_v1alpha2_are_names() -> None:
    config = load("profiles: [{schedulerName: a}, {schedulerName: b}]\ndisablePreemption: true", VERSIONS[2])
    assert [made.scheduler_name for made in config.profiles] == ["a", "b"]
    for made in config.profiles:
        names = [plugin.name for plugin in build_profile(made, IN_TREE).post_filter]
        assert "DefaultPreemption" not in names
    (problem,) = problems_of("profiles: [{schedulerName: a, plugins: {score: {}}}]", VERSIONS[2])
    assert problem.startswith("profiles[0].plugins: Forbidden")


def test_a_provider_and_a_policy_are_too_much(tmp_path: Path) -> None:
    text = "algorithmSource: {provider: DefaultProvider, policy: {file: {path: /nowhere}}}"
    assert problems_of(text)[0] == "algorithmSource.provider: Forbidden: may not be given together with a policy"


def test_the_provider_for_autoscalers_prefers_full_nodes() -> None:
    def best(config: SchedulerConfig) -> Any:
        cluster = Cluster([make_node("full"), make_node("free")], [make_pod("q", node="full", requests={"cpu": "2"})])
        cluster.profile = profile(config)
        return cluster.schedule(make_pod()).node

    assert best(provider_config("ClusterAutoscalerProvider")) == "full"
    assert best(provider_config("DefaultProvider")) == "free"
    assert best(load("algorithmSource: {provider: ClusterAutoscalerProvider}")) == "full"
