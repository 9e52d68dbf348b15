"""Which taints a pod tolerates."""

from __future__ import annotations

from collections.abc import Sequence

from kube_pyscheduler.objects.node import Taint
from kube_pyscheduler.objects.pod import Toleration

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What tolerating a cordoned node means."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Source: ToleratesTaint in k8s.io/api/core/v1/toleration.go; Gt and Lt are off in v1.36."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def has_untolerated(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    """Whether some taint keeps the pod away: NoSchedule or NoExecute, not tolerated."""
    return any(taint.effect in ("NoSchedule", "NoExecute") and not tolerated(tolerations, taint) for taint in taints)


def count_untolerated_soft(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> int:
    """How many PreferNoSchedule taints are not tolerated, by tolerations that may speak of that effect."""
    soft = [t for t in tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(soft, taint) for taint in taints)
