"""ImageLocality: nodes that have the pod's images already, the more of them and the larger, the better."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kube_pyscheduler.columns.arrays import Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, CycleContext, NodeScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import Status

MIB = 1024 * 1024
MIN_THRESHOLD = 23 * MIB
MAX_CONTAINER_THRESHOLD = 1000 * MIB
"""Bounds of a useful sum of image sizes, in bytes; the upper one a container.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""


def normalized_image_name(name: str) -> str:
    """With ``:latest`` where no tag is given."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


class ImageLocalityKernel(ScoreKernel):
    """All rows are scored at once, from the rows that have each image; stale when one of these images, or the number
    of nodes, has changed."""

    reads_usage = False
    dtype = np.int16

    def __init__(self, table: NodeTable, images: tuple[str, ...], containers: int) -> None:
        self._images = images
        self._containers = containers
        self._made_from = self._sources(table)

    def _sources(self, table: NodeTable) -> tuple[object, ...]:
        states = [table.images.get(name) for name in self._images]
        if not any(states):
            return ()
        return (table.node_count, *((id(state), state.generation) for state in states if state is not None))

    def is_stale(self, table: NodeTable) -> bool:
        return self._sources(table) != self._made_from

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        sums = np.zeros(table.high, dtype=np.int64)
        for name in self._images:
            state = table.images.get(name)
            if state is not None:
                spread = len(state.rows) / table.node_count
                sums[state.row_index()] += int(state.size * spread)
        most = MAX_CONTAINER_THRESHOLD * self._containers
        bounded = np.clip(sums[rows], MIN_THRESHOLD, most) - MIN_THRESHOLD
        return MAX_NODE_SCORE * bounded // (most - MIN_THRESHOLD)


class ImageLocality(NodeScore):
    """Source: pkg/scheduler/framework/plugins/imagelocality."""

    name = "ImageLocality"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return _images(pod), _containers(pod)

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return ImageLocalityKernel(ctx.table, _images(pod), _containers(pod))


def _images(pod: PodInfo) -> tuple[str, ...]:
    """Every image as often as it is used; image volumes add score too."""
    spec = pod.pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple([normalized_image_name(name) for name in names])


def _containers(pod: PodInfo) -> int:
    return len(pod.pod.spec.init_containers) + len(pod.pod.spec.containers)
