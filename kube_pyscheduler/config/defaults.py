"""Defaults that take more than a value: the plugins that run, and settings where zero means "the usual"."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kube_pyscheduler.config.args import (
    CPU_AND_MEMORY,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
)
from kube_pyscheduler.config.schema import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    Plugin,
    Plugins,
    PluginSet,
    Struct,
)

S = TypeVar("S", bound=Struct)

V1_36_PLUGINS = (
    Plugin("SchedulingGates"),
    Plugin("PrioritySort"),
    Plugin("NodeUnschedulable"),
    Plugin("NodeName"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    Plugin("DynamicResources", 2),
    Plugin("DefaultPreemption"),
    Plugin("NodeResourcesBalancedAllocation", 1),
    Plugin("ImageLocality", 1),
    Plugin("DefaultBinder"),
    Plugin("NodeDeclaredFeatures"),
)
"""The default plugins of v1.36 with its default feature gates, in their order.

Source: getDefaultPlugins and applyFeatureGates in pkg/scheduler/apis/config/v1/default_plugins.go."""


def default_plugins() -> Plugins:
    """What a profile starts from."""
    return Plugins(multi_point=PluginSet(V1_36_PLUGINS))


def complete_args(args: Struct) -> Struct:
    """Arguments with empty lists of resources and zero weights replaced.

    Source: SetDefaults_NodeResourcesFitArgs and SetDefaults_NodeResourcesBalancedAllocationArgs in
    pkg/scheduler/apis/config/v1/defaults.go."""
    match args:
        case NodeResourcesFitArgs(scoring_strategy=strategy):
            strategy = msgspec.structs.replace(strategy, resources=_weighted(strategy.resources))
            return msgspec.structs.replace(args, scoring_strategy=strategy)
        case NodeResourcesBalancedAllocationArgs(resources=resources):
            return msgspec.structs.replace(args, resources=_weighted(resources))
    return args


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(spec.name, spec.weight or 1) for spec in resources) or CPU_AND_MEMORY


def complete(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Empty and zero settings replaced by their defaults; profiles are left alone.

    Source: SetDefaults_KubeSchedulerConfiguration in pkg/scheduler/apis/config/v1/defaults.go."""
    return msgspec.structs.replace(
        config,
        leader_election=_with_defaults_for_zero(config.leader_election, LeaderElectionConfiguration()),
        client_connection=_with_defaults_for_zero(config.client_connection, ClientConnectionConfiguration()),
    )


def _with_defaults_for_zero(given: S, defaults: S) -> S:
    """``given`` with what is 0 or "" taken from ``defaults``; booleans are kept."""
    missing = {
        name: getattr(defaults, name)
        for name in given.__struct_fields__
        if not getattr(given, name) and not isinstance(getattr(given, name), bool)
    }
    return msgspec.structs.replace(given, **missing)
