"""Spread constraints as the plugin works with them.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from kube_pyscheduler.columns.label_matcher import LabelMatcher, selector_matcher
from kube_pyscheduler.objects.pod import Pod, TopologySpreadConstraint

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Constraint:
    """``selector``: which pods of the namespace are counted. ``honor_affinity`` and ``honor_taints``: whether nodes
    that the pod's node affinity or tolerations rule out are left out of the count."""

    max_skew: int
    topology_key: str
    selector: LabelMatcher
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


Constraints = tuple[Constraint, ...]

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""Source: systemDefaultConstraints in podtopologyspread/plugin.go."""


def parse(given: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str) -> Constraints:
    """The constraints with this ``whenUnsatisfiable``, for a pod with these labels. Raises ValueError."""
    return tuple([_parsed(constraint, labels) for constraint in given if constraint.when_unsatisfiable == action])


def _parsed(given: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
    selector = selector_matcher(given.label_selector)
    same = {key: labels[key] for key in given.match_label_keys if key in labels}
    return Constraint(
        max_skew=given.max_skew,
        topology_key=given.topology_key,
        selector=selector.and_labels(same),
        min_domains=1 if given.min_domains is None else given.min_domains,
        honor_affinity=given.node_affinity_policy in (None, HONOR),
        honor_taints=given.node_taints_policy == HONOR,
    )


@dataclass(frozen=True, slots=True)
class OwnConstraints:
    """A pod's own constraints of one kind, or the problem they have."""

    constraints: Constraints = ()
    problem: str = ""


def own_hard(pod: Pod) -> OwnConstraints:
    """Those that may not be violated."""
    return _own(pod, DO_NOT_SCHEDULE)


def own_soft(pod: Pod) -> OwnConstraints:
    """Those that make nodes less welcome."""
    return _own(pod, SCHEDULE_ANYWAY)


NO_CONSTRAINTS = OwnConstraints()

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(tuple[TopologySpreadConstraint, ...])


def _own(pod: Pod, action: str) -> OwnConstraints:
    """One object for all pods that say the same."""
    given = pod.spec.topology_spread_constraints
    if not given:
        return NO_CONSTRAINTS
    labels = pod.metadata.labels
    read = [(key, labels[key]) for constraint in given for key in constraint.match_label_keys if key in labels]
    return _parse(_ENCODER.encode(given), tuple(read), action)


@lru_cache(maxsize=16384)
def _parse(encoded: bytes, labels: tuple[tuple[str, str], ...], action: str) -> OwnConstraints:
    try:
        return OwnConstraints(parse(_DECODER.decode(encoded), dict(labels), action))
    except ValueError as error:
        return OwnConstraints(problem=str(error))


def with_selector(constraints: Constraints, selector: LabelMatcher) -> Constraints:
    """Default constraints for pods that ``selector`` finds."""
    return tuple(
        [
            Constraint(c.max_skew, c.topology_key, selector, c.min_domains, c.honor_affinity, c.honor_taints)
            for c in constraints
        ]
    )


def has_all_keys(labels: Mapping[str, str], constraints: Constraints) -> bool:
    """Whether a node with these labels is in a domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)
