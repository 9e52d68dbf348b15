"""KubeSchedulerConfiguration as a document has it: ``kubescheduler.config.k8s.io/v1``, field by field.

Defaults of single values stand here; those that depend on other fields, and the plugin lists, are in ``defaults``.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go, pkg/scheduler/apis/config/v1/defaults.go and
staging/src/k8s.io/component-base/config/v1alpha1/{types,defaults}.go.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from kube_pyscheduler.config.decode import Duration

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

DEFAULT_NAME = "kube-pyscheduler"
"""Name of the only profile and of the Lease where a configuration names none. Not the cluster's own names
(``default-scheduler``, ``kube-scheduler``), so that a bare start never competes with the scheduler that is there."""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the structs of the configuration."""


class Plugin(Struct, frozen=True):
    name: str = ""
    weight: Int32 = 0
    """Factor of the plugin's scores; 0 and absent mean 1."""


class PluginSet(Struct, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()
    """Defaults to leave out; ``*`` leaves out all of them."""


class Plugins(Struct, frozen=True):
    """What a profile changes about the default plugins, per extension point."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(Struct, frozen=True):
    name: str = ""
    args: Any = None
    """A struct of ``args`` for the plugins it knows, else the plain value of the document."""


RANDOM, ROUND_ROBIN = "Random", "RoundRobin"


class KubeSchedulerProfile(Struct, frozen=True):
    """The last two fields are ours; kube-scheduler does not know them."""

    scheduler_name: str | None = None
    """Pods with this ``spec.schedulerName`` are ours. May be left out where there is one profile only."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Overrides the setting of the same name one level up."""
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    always_check_all_predicates: bool = False
    """Ask the other filters too when one has refused a node, so that all its reasons are reported."""
    equal_scores: str = RANDOM
    """Which of several best nodes is taken: any, or one after the other as up to 1.15."""


class LeaderElectionConfiguration(Struct, frozen=True):
    """Durations of zero mean the default, as upstream."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    """How long a lease is valid that nobody renews. Must exceed ``renew_deadline``."""
    renew_deadline: Duration = Duration(10)
    """How long the leader tries to renew before it gives up."""
    retry_period: Duration = Duration(2)
    """Pause between two tries."""
    resource_lock: str = "leases"
    resource_name: str = DEFAULT_NAME
    resource_namespace: str = "kube-system"


class ClientConnectionConfiguration(Struct, frozen=True):
    kubeconfig: str = ""
    """Path; "" is the service account of the pod."""
    accept_content_types: str = ""
    """Without effect: JSON is asked for."""
    content_type: str = ""
    """Without effect: JSON is sent."""
    qps: float = 50.0
    """Requests a second, on average; 0 means the default, negative means no limit."""
    burst: Int32 = 100
    """Requests at once; 0 means the default."""


class ExtenderManagedResource(Struct, frozen=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(Struct, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = msgspec.field(name="caFile", default="")
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = msgspec.field(name="caData", default="")


class Extender(Struct, frozen=True):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    parallelism: Int32 = 16
    """Without effect: nodes are judged by array operations."""
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    """Without effect: there is no profiling endpoint."""
    enable_contention_profiling: bool = True
    """Without effect, as above."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Without effect: all nodes are judged and scored."""
    pod_initial_backoff_seconds: Int64 = 1
    """Pause after a pod's first failed attempt; doubles with every further one."""
    pod_max_backoff_seconds: Int64 = 10
    """The longest such pause."""
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    """With leader election: read the cluster only once leading. Saves memory, costs time at a change of leader."""
