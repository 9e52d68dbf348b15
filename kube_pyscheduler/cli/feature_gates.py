"""``--feature-gates``: the gates that decide how pods are scheduled, with their values in v1.36.

We decide as v1.36 does with its default gates. Gates of other components are none of our business and taken as they
come, because manifests give all components the same list.
"""

from __future__ import annotations

from collections.abc import Iterable

SCHEDULING_GATES = {
    "CoordinatedLeaderElection": False,
    "DRAAdminAccess": True,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
    "DRADeviceTaintRules": False,
    "DRADeviceTaints": True,
    "DRAExtendedResource": True,
    "DRAListTypeAttributes": False,
    "DRANodeAllocatableResources": False,
    "DRAPartitionableDevices": True,
    "DRAPrioritizedList": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRASchedulerFilterTimeout": True,
    "DRAWorkloadResourceClaims": False,
    "DynamicResourceAllocation": True,
    "GangScheduling": False,
    "GenericWorkload": False,
    "InPlacePodLevelResourcesVerticalScaling": True,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "NodeDeclaredFeatures": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "NominatedNodeNameForExpectation": True,
    "PodLevelResources": True,
    "SchedulerAsyncPreemption": True,
    "SchedulerPopFromBackoffQ": True,
    "SchedulerQueueingHints": True,
    "SidecarContainers": True,
    "StorageCapacityScoring": False,
    "TaintTolerationComparisonOperators": False,
    "TopologyAwareWorkloadScheduling": False,
    "VolumeAttributesClass": True,
    "VolumeLimitScaling": False,
    "WorkloadAwarePreemption": False,
}
"""Source: pkg/features/kube_features.go, for the gates that pkg/scheduler asks about. OpportunisticBatching and
SchedulerAsyncAPICalls are left out: they choose between ways to the same result."""

_WHOLESALE = {"AllAlpha": False, "AllBeta": True}
"""Gates that set all others of a stage: those in beta are on by default, with few exceptions."""


def problems_of(gates: Iterable[str]) -> list[str]:
    """What we cannot do, of gates as given: ``Name=true``, or ``kube:Name=true``."""
    problems: list[str] = []
    for gate in gates:
        name, equals, text = gate.rpartition(":")[2].partition("=")
        name, value = name.strip(), {"true": True, "false": False}.get(text.strip().lower())
        if not equals or value is None:
            problems.append(f"missing or invalid value of feature gate {name}: it must be true or false")
            continue
        ours = (SCHEDULING_GATES | _WHOLESALE).get(name, value)
        if ours != value:
            problems.append(
                f"feature gate {name}={text.strip()} is not supported: pods are scheduled as by Kubernetes v1.36 with "
                f"its default gates, where it is {str(ours).lower()}"
            )
    return problems
