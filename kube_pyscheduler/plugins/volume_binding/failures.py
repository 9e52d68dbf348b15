"""Nodes where no volume could be provisioned for a claim, so that another one is tried next time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from kube_pyscheduler.objects.storage import PersistentVolumeClaim

KEEP = 1024
"""Claims remembered at most; the one that failed longest ago goes first."""


class ProvisioningFailures:
    """By uid of the claim."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[str, set[str]] = OrderedDict()

    def note(self, claim: PersistentVolumeClaim, node: str) -> None:
        """It failed again. A node that failed before is only tried again when all others did: they get another chance
        then."""
        uid = claim.metadata.uid
        before = self._nodes.pop(uid, set())
        self._nodes[uid] = {node} if node in before else before | {node}
        if len(self._nodes) > KEEP:
            self._nodes.popitem(last=False)

    def forget(self, claims: Iterable[PersistentVolumeClaim]) -> None:
        """These have their volumes."""
        for claim in claims:
            self._nodes.pop(claim.metadata.uid, None)

    def nodes(self, claims: Iterable[PersistentVolumeClaim]) -> set[str]:
        """Where it failed for one of these."""
        found: set[str] = set()
        for claim in claims:
            found |= self._nodes.get(claim.metadata.uid, set())
        return found
