"""Limits of the scheduler-wide settings and of profiles as written.

Source: pkg/scheduler/apis/config/validation/validation.go and component-base/config/validation/validation.go.
"""

from __future__ import annotations

from kube_pyscheduler.config.errors import Problems
from kube_pyscheduler.config.schema import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
)
from kube_pyscheduler.config.validate_args import qualified_name

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Source: invalidPluginsByVersion."""


def validate(config: KubeSchedulerConfiguration, problems: Problems) -> None:
    """All but the profiles. ``config`` has its defaults."""
    if config.client_connection.burst < 0:
        problems.invalid("clientConnection.burst", config.client_connection.burst, "must be non-negative")
    _leader_election(config.leader_election, problems)
    if config.parallelism <= 0:
        problems.invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    validate_percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore", problems)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        problems.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        why = "must be greater than or equal to PodInitialBackoffSeconds"
        problems.invalid("podMaxBackoffSeconds", longest, why)
    _extenders(config.extenders, problems)


def validate_percentage(percentage: int | None, path: str, problems: Problems) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        problems.invalid(path, percentage, "not in valid range [0-100]")


def validate_scheduler_names(profiles: tuple[KubeSchedulerProfile, ...], problems: Problems) -> None:
    """Every profile has a name, and no two have the same."""
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path, name = f"profiles[{index}].schedulerName", profile.scheduler_name
        if not name:
            problems.required(path, "with several profiles, each must be named")
        elif name in seen:
            problems.duplicate(path, name)
        else:
            seen[name] = index


def _leader_election(election: LeaderElectionConfiguration, problems: Problems) -> None:
    if not election.leader_elect:
        return
    for name, value in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if value <= 0:
            problems.invalid(f"leaderElection.{name}", str(value), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        why = "must be greater than renewDeadline"
        problems.invalid("leaderElection.leaseDuration", str(election.lease_duration), why)
    if election.renew_deadline <= RENEW_JITTER * election.retry_period:
        # Upstream finds out when it builds the elector; the sooner the better.
        why = f"must be greater than retryPeriod times {RENEW_JITTER}"
        problems.invalid("leaderElection.renewDeadline", str(election.renew_deadline), why)
    if election.resource_lock != "leases":
        problems.unsupported("leaderElection.resourceLock", election.resource_lock, ("leases",))


RENEW_JITTER = 1.2
"""Source: JitterFactor in client-go/tools/leaderelection/leaderelection.go."""


def _extenders(extenders: tuple[Extender, ...], problems: Problems) -> None:
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        problems.add(path, "extenders are not supported yet")
        if extender.prioritize_verb and extender.weight <= 0:
            problems.invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{position}].name"
            qualified_name(resource.name, where, problems)
            if resource.name in seen:
                problems.invalid(where, resource.name, "duplicate extender managed resource name")
            seen.add(resource.name)
    if binders > 1:
        problems.invalid("extenders", f"found {binders} extenders implementing bind", "only one extender can")
