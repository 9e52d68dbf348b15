"""VolumeAttachments as volumes on rows.

Source: getNodeVolumeAttachmentInfo in pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
"""

from __future__ import annotations

from collections.abc import Callable

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.storage import VolumeAttachment
from kube_pyscheduler.plugins.node_volume_limits.volumes import DriverVolume


class Attachments:
    """Tells ``changed(volume, row, ±1)`` of attachments that come and go, in ``sync``."""

    def __init__(self, table: NodeTable, changed: Callable[[DriverVolume, int, int], None]) -> None:
        self._table = table
        self._changed = changed
        self._generation = 0
        self._volumes_seen = 0
        self._facts_seen = 0
        self._known: dict[str, VolumeAttachment] = {}
        self._counted: dict[str, tuple[DriverVolume, int]] = {}
        """By attachment: what was told of it."""
        self._at: dict[tuple[str, str], set[str]] = {}
        """("node" or "volume", name) → attachments."""
        self._row_of: dict[str, int | None] = {}
        """By attachment: the row its node had; None for nodes without one."""
        self._node_at: dict[int, str] = {}
        """The node whose attachments were counted last on a row."""

    def sync(self, listers: Listers) -> None:
        """Cost: the attachments that changed, those of volumes that changed, and those of nodes that moved."""
        attachments, volumes = listers.volume_attachments, listers.persistent_volumes
        changed = attachments.changed_since(self._generation)
        changed_volumes = volumes.changed_since(self._volumes_seen)
        rows = self._table.facts.since(self._facts_seen)
        self._generation, self._volumes_seen = attachments.generation, volumes.generation
        self._facts_seen = self._table.facts.position
        if changed is None or changed_volumes is None or rows is None:
            names = {*self._known, *(attachment.name for attachment in attachments)}
        else:
            names = changed
            for volume in changed_volumes if self._known else ():
                names |= self._at.get(("volume", volume), set())
            for row in rows.tolist() if self._known else ():
                names |= self._moved(row)
        for name in names:
            self._take_back(name)
            attachment = attachments.get(name)
            if attachment is not None:
                self._count(listers, attachment)

    def _moved(self, row: int) -> set[str]:
        """The attachments of nodes that came to a row or left it."""
        names: set[str] = set()
        for node in (self._node_at.get(row, ""), self._table.names[row]):
            now = self._table.row_of.get(node)
            names |= {name for name in self._at.get(("node", node), ()) if self._row_of[name] != now}
        return names

    def _take_back(self, name: str) -> None:
        attachment = self._known.pop(name, None)
        if attachment is None:
            return
        del self._row_of[name]
        counted = self._counted.pop(name, None)
        if counted is not None:
            self._changed(*counted, -1)
        for place in _places(attachment):
            names = self._at[place]
            names.discard(name)
            if not names:
                del self._at[place]

    def _count(self, listers: Listers, attachment: VolumeAttachment) -> None:
        name = attachment.name
        self._known[name] = attachment
        for place in _places(attachment):
            self._at.setdefault(place, set()).add(name)
        node = attachment.spec.node_name
        row = self._row_of[name] = self._table.row_of.get(node)
        if row is None:
            return
        self._node_at[row] = node
        volume = listers.persistent_volumes.get(attachment.spec.source.persistent_volume_name)
        if not attachment.spec.attacher or volume is None or volume.spec.csi is None:
            return
        found = DriverVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)
        self._counted[name] = found, row
        self._changed(found, row, 1)


def _places(attachment: VolumeAttachment) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("node", attachment.spec.node_name), ("volume", attachment.spec.source.persistent_volume_name)
