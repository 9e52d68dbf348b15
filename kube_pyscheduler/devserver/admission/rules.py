"""Which rules hold for which kind: the one table the registry asks."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube_pyscheduler.devserver.admission import pod_validation, services, storage, workloads
from kube_pyscheduler.devserver.admission.definitions import check_definition
from kube_pyscheduler.devserver.admission.events import check_event
from kube_pyscheduler.devserver.admission.metadata import check_labels
from kube_pyscheduler.devserver.admission.pod_admission import SYSTEM_PRIORITIES, admit_pod, default_tolerations
from kube_pyscheduler.devserver.admission.pod_affinity_validation import check_selector
from kube_pyscheduler.devserver.admission.pod_defaults import default_pod_spec, default_template_spec, qos_class
from kube_pyscheduler.devserver.admission.pod_updates import check_pod_update
from kube_pyscheduler.devserver.errors import forbidden
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import PRIORITY_CLASSES, Resource
from kube_pyscheduler.devserver.store import Store

Object = dict[str, Any]


def _nothing(*_: Any) -> None:
    """No rule of this sort."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How objects of a kind are completed and checked. All functions work on an object the caller owns."""

    default: Callable[[Object], None] = _nothing
    """Fill in defaults; for new and for changed objects."""
    admit: Callable[[Store, Object], None] = _nothing
    """Complete a new object from others; raises when it is refused."""
    first_status: Callable[[Object], Object | None] | None = None
    """The status of a new object (None for none); without this rule the given one is kept."""
    carry_over: Callable[[Object, Object], None] = _nothing
    """Take from (old) into (new) what an update can't remove."""
    check: Callable[[Object, Problems], None] = _nothing
    check_update: Callable[[Object, Object, Problems], None] = _nothing
    generation: bool = False
    """metadata.generation counts the changes of everything but metadata and status."""
    unconditional_update: bool = True
    """An update may leave out metadata.resourceVersion."""
    create_on_update: bool = False
    """An update of an absent object creates it."""


def _default_pod(pod: Object) -> None:
    default_pod_spec(pod.setdefault("spec", {}))


def _first_pod_status(pod: Object) -> Object:
    status: Object = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def _keep_pod_fields(new: Object, old: Object) -> None:
    for key in ("priority", "preemptionPolicy"):
        if key in old["spec"]:
            new["spec"].setdefault(key, old["spec"][key])
    default_tolerations(new["spec"])


def _empty(_: Object) -> Object:
    return {}


def _first_budget_status(_: Object) -> Object:
    return {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _phase(name: str) -> Callable[[Object], Object]:
    return lambda _: {"phase": name}


def _default_node(obj: Object) -> None:
    status = obj.setdefault("status", {})
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


def _check_node(obj: Object, problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"spec.taints[{index}]"
        check_labels({taint.get("key", ""): taint.get("value", "")}, path, problems)
        problems.one_of(f"{path}.effect", taint.get("effect"), ("NoSchedule", "PreferNoSchedule", "NoExecute"))
        pair = (taint.get("key", ""), taint.get("effect", ""))
        if pair in seen:
            problems.duplicate(path, taint)
        seen.add(pair)


def _default_namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _default_secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    if given := obj.pop("stringData", None):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _default_priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


MAX_USER_PRIORITY = 1_000_000_000
"""Source: pkg/apis/scheduling/types.go."""


def _check_priority_class(obj: Object, problems: Problems) -> None:
    name = obj["metadata"]["name"]
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != obj.get("value"):
            why = "priority class names with 'system-' prefix are reserved for system use only"
            problems.forbidden("metadata.name", f"{why}. error: {name} is not a known system priority class")
    elif obj.get("value", 0) > MAX_USER_PRIORITY:
        problems.forbidden("value", f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}")
    problems.one_of("preemptionPolicy", obj.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))


def _admit_priority_class(store: Store, obj: Object) -> None:
    if not obj.get("globalDefault"):
        return
    for other in store.list_objects(PRIORITY_CLASSES):
        if other.get("globalDefault"):
            name, taken = obj["metadata"]["name"], other["metadata"]["name"]
            raise forbidden(
                f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: PriorityClass {taken} is already marked as '
                "default. Only one default can exist",
                resource=PRIORITY_CLASSES.key,
                name=name,
            )


def _check_priority_class_update(new: Object, old: Object, problems: Problems) -> None:
    if new.get("value", 0) != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    problems.immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _check_budget(obj: Object, problems: Problems) -> None:
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        problems.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    check_selector(spec.get("selector") or {}, "spec.selector", problems)


def _check_lease(obj: Object, problems: Problems) -> None:
    spec = obj.get("spec") or {}
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        problems.invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        problems.invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")


def _default_role_binding(obj: Object) -> None:
    obj.setdefault("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _check_role_binding(obj: Object, problems: Problems) -> None:
    reference = obj["roleRef"]
    problems.one_of("roleRef.kind", reference.get("kind"), ("Role", "ClusterRole"))
    if not reference.get("name"):
        problems.required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        path = f"subjects[{index}]"
        problems.one_of(f"{path}.kind", subject.get("kind"), ("ServiceAccount", "User", "Group"))
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            problems.required(f"{path}.namespace")


def _check_role_binding_update(new: Object, old: Object, problems: Problems) -> None:
    if new["roleRef"] != old["roleRef"]:
        problems.invalid("roleRef", new["roleRef"], "cannot change roleRef")


def _check_fixed_spec(new: Object, old: Object, problems: Problems) -> None:
    problems.immutable("spec", new.get("spec"), old.get("spec"))


def _default_csi_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("volumeLifecycleModes", ["Persistent"]),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(key, value)


def _default_pod_template(obj: Object) -> None:
    default_template_spec(obj.setdefault("template", {}).setdefault("spec", {}))


def _workload(default: Callable[[Object], None], **changes: Any) -> Rules:
    settings: dict[str, Any] = {
        "first_status": _empty,
        "check": workloads.check_workload,
        "check_update": workloads.check_workload_update,
        "generation": True,
        **changes,
    }
    return Rules(default=default, **settings)


_PLAIN = Rules()
_COUNTED = Rules(generation=True)
_ROLE_BINDING = Rules(
    default=_default_role_binding,
    check=_check_role_binding,
    check_update=_check_role_binding_update,
    create_on_update=True,
)
_RULES: dict[str, Rules] = {
    "pods": Rules(
        default=_default_pod,
        admit=admit_pod,
        first_status=_first_pod_status,
        carry_over=_keep_pod_fields,
        check=pod_validation.check_pod,
        check_update=check_pod_update,
        generation=True,
    ),
    "nodes": Rules(default=_default_node, check=_check_node),
    "namespaces": Rules(default=_default_namespace, first_status=_phase("Active")),
    "secrets": Rules(default=_default_secret),
    "services": Rules(
        default=services.default_service,
        admit=services.admit_service,
        first_status=lambda _: {"loadBalancer": {}},
        carry_over=services.keep_addresses,
        check=services.check_service,
        create_on_update=True,
        check_update=services.check_service_update,
    ),
    "events": Rules(check=check_event, create_on_update=True),
    "podtemplates": Rules(default=_default_pod_template, generation=True),
    "replicationcontrollers": _workload(
        workloads.default_replication_controller,
        check=workloads.check_replication_controller,
        check_update=_nothing,
    ),
    "persistentvolumes": Rules(
        default=storage.default_volume, first_status=_phase("Pending"), check=storage.check_volume
    ),
    "persistentvolumeclaims": Rules(
        default=storage.default_claim,
        admit=storage.admit_claim,
        first_status=_phase("Pending"),
        check=storage.check_claim,
        check_update=storage.check_claim_update,
    ),
    "deployments.apps": _workload(workloads.default_deployment),
    "replicasets.apps": _workload(workloads.default_replica_set),
    "statefulsets.apps": _workload(workloads.default_stateful_set, check_update=workloads.check_stateful_set_update),
    "daemonsets.apps": _workload(workloads.default_daemon_set),
    "jobs.batch": _workload(
        workloads.default_job,
        admit=lambda _, job: workloads.select_job_pods(job),
        check=workloads.check_job,
        check_update=workloads.check_job_update,
    ),
    "cronjobs.batch": _workload(workloads.default_cron_job, check=workloads.check_cron_job, check_update=_nothing),
    "poddisruptionbudgets.policy": Rules(
        check=_check_budget, first_status=_first_budget_status, generation=True, unconditional_update=False
    ),
    "leases.coordination.k8s.io": Rules(check=_check_lease, unconditional_update=False, create_on_update=True),
    "priorityclasses.scheduling.k8s.io": Rules(
        default=_default_priority_class,
        admit=_admit_priority_class,
        check=_check_priority_class,
        check_update=_check_priority_class_update,
        generation=True,
    ),
    "storageclasses.storage.k8s.io": Rules(
        default=storage.default_class, check=storage.check_class, check_update=storage.check_class_update
    ),
    "csinodes.storage.k8s.io": Rules(unconditional_update=False),
    "csidrivers.storage.k8s.io": Rules(default=_default_csi_driver, generation=True, unconditional_update=False),
    "csistoragecapacities.storage.k8s.io": Rules(unconditional_update=False),
    "volumeattachments.storage.k8s.io": Rules(first_status=_empty, unconditional_update=False),
    "runtimeclasses.node.k8s.io": Rules(unconditional_update=False, create_on_update=True),
    "roles.rbac.authorization.k8s.io": Rules(create_on_update=True),
    "clusterroles.rbac.authorization.k8s.io": Rules(create_on_update=True),
    "limitranges": Rules(create_on_update=True),
    "endpoints": Rules(create_on_update=True),
    "rolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "resourceclaims.resource.k8s.io": Rules(first_status=_empty, check_update=_check_fixed_spec),
    "resourceclaimtemplates.resource.k8s.io": Rules(check_update=_check_fixed_spec),
    "resourceslices.resource.k8s.io": _COUNTED,
    "deviceclasses.resource.k8s.io": _COUNTED,
    "endpointslices.discovery.k8s.io": _COUNTED,
    "ingresses.networking.k8s.io": Rules(first_status=_empty, generation=True),
    "ingressclasses.networking.k8s.io": _COUNTED,
    "networkpolicies.networking.k8s.io": _COUNTED,
    "horizontalpodautoscalers.autoscaling": Rules(first_status=_empty),
    "customresourcedefinitions.apiextensions.k8s.io": Rules(
        first_status=_empty, check=check_definition, generation=True, unconditional_update=False
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Rules(generation=True, unconditional_update=False),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Rules(generation=True, unconditional_update=False),
}
_CUSTOM = Rules(generation=True, unconditional_update=False)


def rules_for(resource: Resource, *, custom: bool = False) -> Rules:
    """The rules of a kind; custom resources share one set."""
    return _CUSTOM if custom else _RULES.get(resource.key, _PLAIN)
