"""Whether the demonstration went as it must: what is still awaited, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from kube_pyscheduler.demo.picture import Picture, why_waiting
from kube_pyscheduler.demo.scenario import Expectations, Separation
from kube_pyscheduler.objects.pod import Pod

Object = dict[str, Any]


def awaited(workload: Object) -> str:
    """What a Deployment, StatefulSet, DaemonSet or Job still lacks, as "3 of 6 pods ready"; "" when nothing."""
    spec, status = workload["spec"], workload.get("status") or {}
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0) and workload["kind"] != "Job":
        return "not seen by its controller yet"
    match workload["kind"]:
        case "Deployment" | "StatefulSet":
            ready, wanted = status.get("readyReplicas", 0), spec.get("replicas", 1)
        case "DaemonSet":
            ready, wanted = status.get("numberReady", 0), max(1, status.get("desiredNumberScheduled", 0))
        case "Job":
            ready = status.get("succeeded", 0) + status.get("ready", 0)
            wanted = spec.get("completions", 1)
        case _:
            return ""
    return "" if ready >= wanted else f"{ready} of {wanted} pods ready"


def unsettled(pod: Pod, expectations: Expectations) -> str:
    """Why the pod is not yet where it should be; "" when it is."""
    words = expectations.waiting.get(pod.name)
    if words is None:
        if pod.status.phase in ("Running", "Succeeded"):
            return ""
        if pod.spec.node_name:
            return f"is {pod.status.phase or 'new'} on {pod.spec.node_name}"
        return f"should run but waits: {why_waiting(pod) or 'nobody has looked at it yet'}"
    if pod.spec.node_name:
        return f"should wait ({words}) but is on {pod.spec.node_name}"
    message = why_waiting(pod)
    if words not in message:
        return f'should wait for "{words}" but says: {message or "nothing yet"}'
    return ""


@dataclass(frozen=True, slots=True)
class SeparationResult:
    """``together``: pairs of pods that share a node and must not, each with that node's name."""

    separation: Separation
    pods: list[Pod]
    together: list[tuple[str, str, str]]


def check_separation(separation: Separation, pods: list[Pod]) -> SeparationResult:
    """Look at all pods of a set that are on nodes."""
    wanted = separation.pods.items()
    members = [pod for pod in pods if wanted <= pod.metadata.labels.items() and pod.spec.node_name]
    groups: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in members:
        same = pod.metadata.labels.get(separation.same_label, "") if separation.same_label else ""
        groups[same, pod.spec.node_name].append(pod)
    together = [
        (one.name, other.name, node) for (_, node), group in groups.items() for one, other in combinations(group, 2)
    ]
    return SeparationResult(separation, members, together)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problems`` make the demo fail; ``remarks`` say what could not be asked of this daemon."""

    separations: list[SeparationResult]
    problems: list[str]
    remarks: list[str]


def judge(picture: Picture, workloads: list[Object], expectations: Expectations, plugins: frozenset[str]) -> Verdict:
    """The verdict on a settled cluster; ``plugins`` are the names of those that the daemon has."""
    problems = waiting_for(picture, workloads, expectations)
    remarks = []
    separations = [check_separation(separation, picture.pods) for separation in expectations.separation]
    for result in separations:
        title = result.separation.title
        if len(result.pods) < 2:
            problems.append(f"{title}: only {len(result.pods)} pods found, nothing to compare")
        if "InterPodAffinity" in plugins:
            problems += [f"{title}: {a} and {b} are both on {node}" for a, b, node in result.together]
    if separations and "InterPodAffinity" not in plugins:
        remarks.append(
            "The plugin InterPodAffinity is not built yet: required anti-affinity is not enforced, so pods that must "
            "be apart are so by chance only."
        )
    unbound = [claim.name for claim in picture.claims if not claim.spec.volume_name]
    if unbound and "VolumeBinding" in plugins:
        problems.append(f"claims without a volume: {', '.join(unbound)}")
    elif unbound:
        remarks.append(
            f"The plugin VolumeBinding is not built yet: {len(unbound)} claims wait for somebody to choose their node."
        )
    return Verdict(separations, problems, remarks)


def waiting_for(picture: Picture, workloads: list[Object], expectations: Expectations) -> list[str]:
    """Everything that is not yet as expected, one line each; [] when the cluster has settled."""
    missing = expectations.waiting.keys() - {pod.name for pod in picture.pods}
    lacking = ((f"{w['kind']} {w['metadata']['name']}", awaited(w)) for w in workloads)
    stray = ((pod.name, unsettled(pod, expectations)) for pod in picture.pods)
    return [
        *(f"{name}: there is no such pod" for name in sorted(missing)),
        *(f"{name}: {lack}" for name, lack in lacking if lack),
        *(f"{name} {why}" for name, why in stray if why),
    ]
