"""What the admission plugins of a default API server do to a new pod.

Source: plugin/pkg/admission/{priority,defaulttolerationseconds,serviceaccount,limitranger,runtimeclass,
podtopologylabels} and pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.errors import StatusError, forbidden
from kube_pyscheduler.devserver.resources import NODES, PRIORITY_CLASSES, SERVICE_ACCOUNTS, builtin
from kube_pyscheduler.devserver.store import Store, copy_object

Object = dict[str, Any]

RUNTIME_CLASSES = builtin("runtimeclasses.node.k8s.io")
LIMIT_RANGES = builtin("limitranges")

DEFAULT_TOLERATION_SECONDS = 300
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The two classes every cluster has. Source: pkg/apis/scheduling/v1/helpers.go."""
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def admit_pod(store: Store, pod: Object) -> None:
    """Complete a new pod that the caller owns, after its defaults. 403 when a plugin refuses it."""
    _service_account(store, pod)
    _limit_ranges(store, pod)
    _priority(store, pod)
    default_tolerations(pod["spec"])
    _runtime_class(store, pod)
    if (node_name := pod["spec"].get("nodeName")) and (labels := topology_labels(store, node_name)):
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
    _label_keys(pod)


def _refused(pod: Object, why: str) -> StatusError:
    name = pod["metadata"].get("name", "")
    return forbidden(f'pods "{name}" is forbidden: {why}', resource="pods", name=name)


def topology_labels(store: Store, node_name: str) -> dict[str, str]:
    """The zone and region labels of a node; {} when it has none or does not exist."""
    node = store.get(NODES, "", node_name)
    labels = (node["metadata"].get("labels") or {}) if node else {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def _service_account(store: Store, pod: Object) -> None:
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = pod["metadata"].get("namespace", "")
    if store.get(SERVICE_ACCOUNTS, namespace, name) is None:
        raise _refused(
            pod,
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found',
        )


def _priority(store: Store, pod: Object) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    policy: str | None = "PreemptLowerPriority"
    if name:
        found = store.get(PRIORITY_CLASSES, "", name)
        if found is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
        priority, policy = found["value"], found.get("preemptionPolicy")
    else:
        defaults = [c for c in store.list_objects(PRIORITY_CLASSES) if c.get("globalDefault")]
        if defaults:
            chosen = min(defaults, key=lambda c: int(c["value"]))
            spec["priorityClassName"] = chosen["metadata"]["name"]
            priority, policy = chosen["value"], chosen.get("preemptionPolicy")
        else:
            priority = 0
    if spec.get("priority", priority) != priority:
        raise _refused(
            pod,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {priority} from the given PriorityClass name",
        )
    spec["priority"] = priority
    if policy is None:
        return
    if spec.get("preemptionPolicy", policy) != policy:
        raise _refused(
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def default_tolerations(spec: Object) -> None:
    """Pods stay five minutes on a node that is not ready or unreachable, unless they say otherwise."""
    tolerations = list(spec.get("tolerations") or ())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        said = any(
            t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "")
            for t in spec.get("tolerations") or ()
        )
        if not said:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
                }
            )
    if tolerations:
        spec["tolerations"] = tolerations


def _runtime_class(store: Store, pod: Object) -> None:
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = store.get(RUNTIME_CLASSES, "", name)
    if found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    if overhead := (found.get("overhead") or {}).get("podFixed"):
        if spec.get("overhead", overhead) != overhead:
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        selector = spec.setdefault("nodeSelector", {})
        if selector.setdefault(key, value) != value:
            raise _refused(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}",
            )
    for toleration in scheduling.get("tolerations") or ():
        if toleration not in (spec.get("tolerations") or ()):
            spec.setdefault("tolerations", []).append(dict(toleration))


def _limit_ranges(store: Store, pod: Object) -> None:
    """Default requests and limits of containers; bounds are not enforced."""
    for limit_range in store.list_objects(LIMIT_RANGES, pod["metadata"].get("namespace", "")):
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") != "Container":
                continue
            for container in (*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())):
                resources = container.setdefault("resources", {})
                for key, source in (("limits", "default"), ("requests", "defaultRequest")):
                    if values := item.get(source):
                        resources[key] = {**values, **(resources.get(key) or {})}


def _label_keys(pod: Object) -> None:
    """matchLabelKeys and mismatchLabelKeys become part of the selectors, with the values of the pod's own labels."""
    labels = pod["metadata"].get("labels") or {}
    affinity = pod["spec"].get("affinity") or {}
    terms: list[Object] = []
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        terms += (
            weighted.get("podAffinityTerm") or {}
            for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        )
    for term in (*terms, *(pod["spec"].get("topologySpreadConstraints") or ())):
        if term.get("labelSelector") is None:
            continue
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for keys, operator in ((term.get("matchLabelKeys"), "In"), (term.get("mismatchLabelKeys"), "NotIn"))
            for key in keys or ()
            if key in labels
        ]
        if added:
            selector = copy_object(term["labelSelector"])
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
            term["labelSelector"] = selector
