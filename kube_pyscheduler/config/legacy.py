"""KubeSchedulerConfiguration v1alpha1 and v1alpha2, which Policy files were named in: what still has a meaning.

Source: staging/src/k8s.io/kube-scheduler/config/{v1alpha1,v1alpha2}/types.go of 1.10 to 1.19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kube_pyscheduler.config.args import MOST_ALLOCATED
from kube_pyscheduler.config.decode import decode_struct
from kube_pyscheduler.config.errors import ConfigError, Problems
from kube_pyscheduler.config.schema import (
    API_VERSION,
    KIND,
    ClientConnectionConfiguration,
    Extender,
    Int32,
    Int64,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    PluginConfig,
    Struct,
)

API_VERSIONS = (
    "componentconfig/v1alpha1",
    "kubescheduler.config.k8s.io/v1alpha1",
    "kubescheduler.config.k8s.io/v1alpha2",
)

DEFAULT_PROVIDER = "DefaultProvider"
CLUSTER_AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
"""Names for all defaults, and for the defaults with full nodes preferred to empty ones."""

PREEMPTION = "DefaultPreemption"

ReadPolicy = Callable[[str], KubeSchedulerProfile]
"""From the path of a Policy file to the profile it stands for. Raises ConfigError."""


class PolicyFile(Struct, frozen=True):
    path: str = ""


class PolicySource(Struct, frozen=True):
    file: PolicyFile | None = None
    config_map: Any = None
    """Must be absent: only files are read."""


class AlgorithmSource(Struct, frozen=True):
    policy: PolicySource | None = None
    provider: str | None = None


class OldLeaderElection(LeaderElectionConfiguration, frozen=True):
    lock_object_namespace: str = ""
    """The former name of ``resource_namespace``, as the next of ``resource_name``."""
    lock_object_name: str = ""


class OldProfile(Struct, frozen=True):
    scheduler_name: str | None = None
    plugins: Any = None
    plugin_config: Any = None


class OldConfiguration(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    scheduler_name: str | None = None
    algorithm_source: AlgorithmSource = AlgorithmSource()
    hard_pod_affinity_symmetric_weight: Int32 | None = None
    leader_election: OldLeaderElection = OldLeaderElection()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    healthz_bind_address: str = ""
    """Without effect: flags name the ports."""
    metrics_bind_address: str = ""
    """Without effect, as above."""
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    disable_preemption: bool = False
    """No pod makes room for another."""
    percentage_of_nodes_to_score: Int32 | None = None
    bind_timeout_seconds: Int64 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    failure_domains: str = ""
    """Without effect: pods name their topology keys."""
    plugins: Any = None
    plugin_config: Any = None
    profiles: tuple[OldProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()


def read_legacy(document: Mapping[str, Any], read_policy: ReadPolicy, problems: Problems) -> KubeSchedulerConfiguration:
    """The document as a configuration of today."""
    old = decode_struct(OldConfiguration, document, "", problems)
    _refuse_plugins(old.plugins, old.plugin_config, "", problems)
    for index, profile in enumerate(old.profiles):
        _refuse_plugins(profile.plugins, profile.plugin_config, f"profiles[{index}].", problems)
    base = _algorithm(old.algorithm_source, read_policy, problems)
    base = _with_args(base, old)
    if old.disable_preemption:
        base = without_preemption(base)
    names = [profile.scheduler_name for profile in old.profiles] or [old.scheduler_name]
    return KubeSchedulerConfiguration(
        API_VERSION,
        KIND,
        leader_election=_leader_election(old.leader_election),
        client_connection=old.client_connection,
        enable_profiling=old.enable_profiling,
        enable_contention_profiling=old.enable_contention_profiling,
        percentage_of_nodes_to_score=old.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=old.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=old.pod_max_backoff_seconds,
        profiles=tuple(msgspec.structs.replace(base, scheduler_name=name) for name in names),
        extenders=old.extenders,
    )


def provider_profile(provider: str, path: str, problems: Problems) -> KubeSchedulerProfile:
    """The profile that an algorithm provider stands for."""
    if provider == CLUSTER_AUTOSCALER_PROVIDER:
        args = {"scoringStrategy": {"type": MOST_ALLOCATED}}
        return KubeSchedulerProfile(plugin_config=(PluginConfig("NodeResourcesFit", args),))
    if provider != DEFAULT_PROVIDER:
        problems.unsupported(path, provider, (CLUSTER_AUTOSCALER_PROVIDER, DEFAULT_PROVIDER))
    return KubeSchedulerProfile()


def without_preemption(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """The same, but no pod makes room for another."""
    plugins = profile.plugins
    everywhere = plugins.multi_point
    enabled = tuple(plugin for plugin in everywhere.enabled if plugin.name != PREEMPTION)
    everywhere = msgspec.structs.replace(
        everywhere, enabled=enabled, disabled=(*everywhere.disabled, Plugin(PREEMPTION))
    )
    return msgspec.structs.replace(profile, plugins=msgspec.structs.replace(plugins, multi_point=everywhere))


def _algorithm(source: AlgorithmSource, read_policy: ReadPolicy, problems: Problems) -> KubeSchedulerProfile:
    path = "algorithmSource"
    if source.policy is None:
        return provider_profile(source.provider or DEFAULT_PROVIDER, f"{path}.provider", problems)
    if source.provider is not None:
        problems.forbidden(f"{path}.provider", "may not be given together with a policy")
    if source.policy.config_map is not None:
        problems.forbidden(f"{path}.policy.configMap", "policies are read from files; mount the ConfigMap as one")
    elif source.policy.file is None or not source.policy.file.path:
        problems.required(f"{path}.policy.file.path")
    else:
        try:
            return read_policy(source.policy.file.path)
        except ConfigError as error:
            for problem in error.problems:
                problems.add(f"{path}.policy.file.path", f"{source.policy.file.path}: {problem}")
    return KubeSchedulerProfile()


def _with_args(profile: KubeSchedulerProfile, old: OldConfiguration) -> KubeSchedulerProfile:
    """Settings that are arguments of plugins today; those of a Policy win, as they did."""
    args = {config.name: config for config in profile.plugin_config}
    if old.hard_pod_affinity_symmetric_weight is not None:
        weight = {"hardPodAffinityWeight": old.hard_pod_affinity_symmetric_weight}
        args.setdefault("InterPodAffinity", PluginConfig("InterPodAffinity", weight))
    if old.bind_timeout_seconds is not None:
        seconds = {"bindTimeoutSeconds": old.bind_timeout_seconds}
        args.setdefault("VolumeBinding", PluginConfig("VolumeBinding", seconds))
    return msgspec.structs.replace(profile, plugin_config=tuple(args.values()))


def _leader_election(old: OldLeaderElection) -> LeaderElectionConfiguration:
    fields = {name: getattr(old, name) for name in LeaderElectionConfiguration.__struct_fields__}
    fields["resource_namespace"] = old.lock_object_namespace or old.resource_namespace
    fields["resource_name"] = old.lock_object_name or old.resource_name
    return LeaderElectionConfiguration(**fields)


def _refuse_plugins(plugins: Any, plugin_config: Any, path: str, problems: Problems) -> None:
    for name, value in (("plugins", plugins), ("pluginConfig", plugin_config)):
        if value:
            problems.forbidden(f"{path}{name}", f"plugins are configured in {API_VERSION}")
