"""``pods/eviction``: deleting a pod unless its disruption budget forbids it.

Source: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import POD_DISRUPTION_BUDGETS, PODS
from kube_pyscheduler.devserver.selectors import matches_label_selector
from kube_pyscheduler.devserver.store import Object

BUDGET_CAUSE = "DisruptionBudget"
MAX_DISRUPTED_PODS = 2000


def evict(registry: Registry, namespace: str, name: str, options: DeleteOptions) -> None:
    """Delete the pod if its budget allows it: 404, 409, or 429 with the cause DisruptionBudget; 500 for two budgets."""
    pod = registry.store.get(PODS, namespace, name)
    if pod is None:
        raise errors.not_found("pods", name)
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed", "Pending") and not pod["metadata"].get("deletionTimestamp"):
        _pass_budget(registry, namespace, pod, dry_run=options.dry_run)
    _delete(registry, namespace, name, options)


def _pass_budget(registry: Registry, namespace: str, pod: Object, *, dry_run: bool) -> None:
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in registry.store.list_objects(POD_DISRUPTION_BUDGETS, namespace)
        if matches_label_selector((budget.get("spec") or {}).get("selector"), labels)
    ]
    if len(budgets) > 1:
        raise errors.StatusError(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )
    if not budgets or _unprotected(pod, budgets[0]):
        return
    _check_and_decrement(registry, pod["metadata"]["name"], budgets[0], dry_run=dry_run)


def _unprotected(pod: Object, budget: Object) -> bool:
    """Whether the pod is not ready and its budget does not hold back such pods now."""
    if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ()):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _check_and_decrement(registry: Registry, pod_name: str, budget: Object, *, dry_run: bool) -> None:
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0 or len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        why = (
            "pdb disruptions allowed is negative"
            if allowed < 0
            else "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
        raise errors.forbidden(
            f'poddisruptionbudget.policy "{name}" is forbidden: {why}', resource="poddisruptionbudget.policy", name=name
        )
    if allowed == 0:
        raise _refused(_why_none(name, status))
    if dry_run:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod_name: registry.now()}
    registry.update(
        POD_DISRUPTION_BUDGETS,
        {**budget, "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}},
        subresource="status",
    )


def _why_none(name: str, status: Object) -> str:
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    condition: Object = next((c for c in status.get("conditions") or () if c["type"] == "DisruptionAllowed"), {})
    told = condition.get("status") == "False" and condition.get("message")
    if told and condition.get("reason") == "SyncFailed":
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it failed sync: "
            f"{condition['message']}"
        )
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if told:
        return (
            f"The disruption budget {name} does not allow evicting pods currently ({condition.get('reason')}): "
            f"{condition['message']}"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refused(why: str, *, retry_after: int = 0) -> errors.StatusError:
    return errors.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after=retry_after,
        causes=[errors.Cause(BUDGET_CAUSE, why, "")],
    )


def _delete(registry: Registry, namespace: str, name: str, options: DeleteOptions) -> None:
    if options.dry_run:
        registry.delete(PODS, namespace, name, options)
        return
    now = registry.now()

    def disrupted(pod: Object) -> Object:
        status = pod.get("status") or {}
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        others = [c for c in status.get("conditions") or () if c["type"] != "DisruptionTarget"]
        return {**pod, "status": {**status, "conditions": [*others, condition]}}

    before = registry.store.get(PODS, namespace, name)
    if before is not None and options.resource_version in ("", before["metadata"]["resourceVersion"]):
        marked = registry.modify(PODS, namespace, name, disrupted, subresource="status")
        if options.resource_version:
            options.resource_version = marked["metadata"]["resourceVersion"]
    registry.delete(PODS, namespace, name, options)
