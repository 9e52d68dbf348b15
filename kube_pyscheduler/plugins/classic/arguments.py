"""Arguments of the classic plugins, as ``pluginConfig[].args`` had them up to 1.22.

Source: staging/src/k8s.io/kube-scheduler/config/v1beta1/types_pluginargs.go of 1.22.
"""

from __future__ import annotations

from kube_pyscheduler.config.schema import Struct


class NodeLabelArgs(Struct, frozen=True):
    """Labels by key; their values do not matter. A preference that is named twice counts twice."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class ServiceAffinityArgs(Struct, frozen=True):
    """Node labels by key. ``affinity_labels``: the pods of a service go to nodes that agree in these.
    ``anti_affinity_labels_preference``: they are spread over the values of these; one that is named twice counts twice.
    """

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()
