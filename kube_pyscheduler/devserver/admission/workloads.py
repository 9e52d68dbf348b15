"""Defaults and checks of the workload kinds: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs.

Source: pkg/apis/{apps,batch}/v1/defaults.go and the strategies in pkg/registry/{apps,batch}.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.admission.pod_affinity_validation import check_selector
from kube_pyscheduler.devserver.admission.pod_defaults import default_template_spec
from kube_pyscheduler.devserver.admission.pod_validation import check_pod_spec
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.selectors import matches_label_selector

Object = dict[str, Any]


def _default_template(template: Object) -> None:
    template.setdefault("metadata", {})
    default_template_spec(template.setdefault("spec", {}))


def default_deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _rolling_update(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _default_template(spec.setdefault("template", {}))


def _rolling_update(strategy: Object, values: Object) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        for key, value in values.items():
            rolling.setdefault(key, value)


def default_replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _default_template(spec.setdefault("template", {}))
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not (obj["metadata"].get("labels")):
        obj["metadata"]["labels"] = dict(labels)


def default_replication_controller(obj: Object) -> None:
    default_replica_set(obj)
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
    if labels:
        obj["spec"].setdefault("selector", dict(labels))


def default_stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podManagementPolicy", "OrderedReady")
    _rolling_update(spec.setdefault("updateStrategy", {}), {"partition": 0})
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    _default_template(spec.setdefault("template", {}))
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["kind"] = "PersistentVolumeClaim"
        claim["apiVersion"] = "v1"
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {"phase": "Pending"})


def default_daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _rolling_update(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})
    spec.setdefault("revisionHistoryLimit", 10)
    _default_template(spec.setdefault("template", {}))


def default_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    template = spec.setdefault("template", {})
    _default_template(template)
    if not spec.get("manualSelector"):
        spec.setdefault("manualSelector", False)
    template_labels = template["metadata"].get("labels")
    if template_labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(template_labels)


def select_job_pods(obj: Object) -> None:
    """A new Job's selector and pod labels are made from its UID unless they are set by hand."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata["name"]
    labels = spec["template"]["metadata"].setdefault("labels", {})
    labels.update(
        {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
    )
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})["batch.kubernetes.io/controller-uid"] = uid


def default_cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _default_template(job.setdefault("spec", {}).setdefault("template", {}))


def check_workload(obj: Object, problems: Problems) -> None:
    """A kind with a selector and a pod template whose pods run for ever."""
    spec = obj["spec"]
    _check_count(spec, "replicas", problems)
    selector = spec.get("selector")
    if selector is None:
        problems.required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.invalid("spec.selector", selector, "empty selector is invalid for workloads")
    else:
        check_selector(selector, "spec.selector", problems)
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not matches_label_selector(selector, labels):
            problems.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    check_pod_spec(_with_claim_volumes(spec), "spec.template.spec", problems)
    if spec["template"]["spec"].get("restartPolicy") != "Always":
        problems.unsupported("spec.template.spec.restartPolicy", spec["template"]["spec"]["restartPolicy"], ("Always",))


def _with_claim_volumes(spec: Object) -> Object:
    """The spec of the template with the volumes that a StatefulSet's pods get for its claim templates."""
    template: Object = spec["template"]["spec"]
    claims = {(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()}
    if not claims:
        return template
    own = [volume for volume in template.get("volumes") or () if volume.get("name") not in claims]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)]
    return {**template, "volumes": [*own, *made]}


def _check_count(spec: Object, key: str, problems: Problems) -> None:
    if spec.get(key, 0) < 0:
        problems.invalid(f"spec.{key}", spec[key], "must be greater than or equal to 0")


def check_workload_update(new: Object, old: Object, problems: Problems) -> None:
    problems.immutable("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


_STATEFUL_SET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def check_stateful_set_update(new: Object, old: Object, problems: Problems) -> None:
    def fixed(spec: Object) -> Object:
        return {key: value for key, value in spec.items() if key not in _STATEFUL_SET_MUTABLE}

    if fixed(new["spec"]) != fixed(old["spec"]):
        names = ", ".join(f"'{name}'" for name in _STATEFUL_SET_MUTABLE[:-1])
        problems.forbidden(
            "spec", f"updates to statefulset spec for fields other than {names} and 'minReadySeconds' are forbidden"
        )


def check_replication_controller(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    _check_count(spec, "replicas", problems)
    if not spec.get("selector"):
        problems.required("spec.selector")
    check_pod_spec(spec["template"]["spec"], "spec.template.spec", problems)


def check_job(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    for key in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        _check_count(spec, key, problems)
    _check_job_template(spec, "spec", problems)


def _check_job_template(spec: Object, path: str, problems: Problems) -> None:
    template = spec["template"]["spec"]
    check_pod_spec(template, f"{path}.template.spec", problems)
    if template.get("restartPolicy") not in ("OnFailure", "Never"):
        problems.unsupported(
            f"{path}.template.spec.restartPolicy", template.get("restartPolicy"), ("OnFailure", "Never")
        )


def check_job_update(new: Object, old: Object, problems: Problems) -> None:
    for key in ("selector", "completionMode"):
        problems.immutable(f"spec.{key}", new["spec"].get(key), old["spec"].get(key))
    if not (old["spec"].get("suspend") and not (old.get("status") or {}).get("startTime")):
        problems.immutable("spec.template", new["spec"].get("template"), old["spec"].get("template"))
    if new["spec"].get("completionMode") != "Indexed":
        problems.immutable("spec.completions", new["spec"].get("completions"), old["spec"].get("completions"))


def check_cron_job(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    if not spec.get("schedule"):
        problems.required("spec.schedule")
    _check_job_template(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", problems)
