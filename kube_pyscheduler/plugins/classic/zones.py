"""Zones of nodes: region and zone labels together."""

from __future__ import annotations

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.objects.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.plugins.classic.node_facts import NodeFacts

NOWHERE = ("", "")


def zone_of(node: Node) -> tuple[str, str]:
    """(region, zone); the beta labels win. Source: GetZoneKey in pkg/util/node/node.go of 1.22."""
    labels = node.metadata.labels
    return labels.get(BETA_REGION, labels.get(REGION, "")), labels.get(BETA_ZONE, labels.get(ZONE, ""))


class Zones(NodeFacts[tuple[str, str]]):
    """Get it with ``table.attached(Zones)``. ``nowhere`` is the id of nodes without both labels."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, zone_of)
        self.nowhere = self.vocabulary.intern(NOWHERE)
