"""Preferred terms, of the incoming pod and of pods that are there.

Source: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.topology import NOWHERE, Topologies, Topology
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, ScoreKernel

Wish = tuple[str, int, RowCounts]
"""(topology key, points a pod, pods by row): each of the pods gives so many points to the nodes of its domain."""


class PreferencesKernel(ScoreKernel):
    """Cost: one lookup a topology key and row."""

    def __init__(self, topologies: list[tuple[Topology, Floats]]) -> None:
        self.normalize = preferences_normalised
        self._topologies = topologies

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        total: Floats | None = None
        for topology, points in self._topologies:
            scores = points[topology.domain[rows]]
            total = scores if total is None else total + scores
        assert total is not None
        return total.astype(np.int64)


def preferences_kernel(table: NodeTable, wishes: Iterable[Wish]) -> PreferencesKernel | None:
    """None if there is no wish by any pod that is in a domain."""
    topologies = table.attached(Topologies)
    by_key: dict[str, tuple[Topology, Floats]] = {}
    for key, points, pods in wishes:
        if not pods.total:
            continue
        topology = topologies.get(key)
        sums = topology.sums(pods)
        sums[NOWHERE] = 0
        if not sums.any():
            continue
        _topology, total = by_key.setdefault(key, (topology, np.zeros(topology.size)))
        total += points * sums
    return PreferencesKernel(list(by_key.values())) if by_key else None


def preferences_normalised(raw: Scores) -> Scores:
    """Stretched so that the lowest becomes 0 and the highest 100; all 0 where they are the same."""
    if not len(raw):
        return raw
    least = int(raw.min())
    span = int(raw.max()) - least
    if span == 0:
        return np.zeros_like(raw)
    stretched: Scores = (float(MAX_NODE_SCORE) * ((raw - least) / span)).astype(np.int64)
    return stretched
