"""Which events repeat: equal ones become a series, and what was not sent yet is overtaken by what is newer.

Pure: it says what is to be written, somebody else writes. An entry is *waiting* to be created, *creating*, or *known*
to the server. Source of the rules for series: client-go/tools/events/event_broadcaster.go.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kube_pyscheduler.recorder.event import Content, Reference, Series

FINISH_AFTER: Final = 360.0
"""Seconds without a repetition after which a series ends. Source: finishTime."""

REFRESH_AFTER: Final = 1800.0
"""Seconds after which a series that goes on is written again, before the server forgets it. Source: refreshTime."""

TABLE_LIMIT: Final = 10_000
"""Events that may turn out to repeat. Beyond that the longest quiet one is forgotten: its repetition is a new Event."""


class Phase(Enum):
    WAITING = "waiting"
    CREATING = "creating"
    KNOWN = "known"


class Entry:
    """An Event, and how often it happened. Times are seconds since the epoch, except ``touched_at`` (monotonic)."""

    __slots__ = (
        "content",
        "count",
        "first_at",
        "last_at",
        "name",
        "phase",
        "queued",
        "touched_at",
        "written",
        "written_at",
    )

    def __init__(self, content: Content, name: str, wall: float, now: float) -> None:
        self.content = content
        self.name = name
        self.phase = Phase.WAITING
        self.queued = False
        self.count = 1
        self.written = 0
        """The count that the server knows; 0 before creation."""
        self.first_at = self.last_at = wall
        self.touched_at = self.written_at = now

    def series(self) -> Series | None:
        return Series(self.count, self.last_at) if self.count > 1 else None


Key = tuple[Reference, str, str, str, str, Reference | None]


class SeriesTable:
    """The events of the last minutes by object, type, reason, action and reporter."""

    def __init__(self, limit: int = TABLE_LIMIT) -> None:
        self._limit = limit
        self._entries: dict[Key, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, content: Content) -> Entry | None:
        """The entry that ``content`` may repeat."""
        return self._entries.get(_key(content))

    def add(self, entry: Entry) -> None:
        """Watch for repetitions of a new entry; it takes the place of an older one with another note."""
        key = _key(entry.content)
        self._entries.pop(key, None)
        if len(self._entries) >= self._limit:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = entry

    def forget(self, entry: Entry) -> None:
        """Its next repetition is to be a new Event."""
        key = _key(entry.content)
        if self._entries.get(key) is entry:
            del self._entries[key]

    def repeat(self, entry: Entry, content: Content, wall: float, now: float) -> bool:
        """Take ``content`` into the entry that ``find`` gave. False where it must become a new Event: the server
        already has this one, with another note."""
        key = _key(content)
        if entry.content.note != content.note:
            if entry.phase is not Phase.WAITING:
                return False
            entry.content, entry.count, entry.first_at = content, 0, wall
        entry.count += 1
        entry.last_at, entry.touched_at = wall, now
        self._entries[key] = self._entries.pop(key)
        return True

    def sweep(self, now: float) -> list[Entry]:
        """Drop what has been quiet for long; return what is to be written (again)."""
        due: list[Entry] = []
        for key, entry in list(self._entries.items()):
            ended = now - entry.touched_at >= FINISH_AFTER
            if ended:
                del self._entries[key]
            unwritten = entry.phase is Phase.KNOWN and entry.count > entry.written
            if unwritten and (ended or now - entry.written_at >= REFRESH_AFTER):
                due.append(entry)
        return due


def _key(content: Content) -> Key:
    """What makes two events the same one. The version of the object is left out: our own status patches change it."""
    about = content.regarding._replace(version="")
    return (about, content.type, content.reason, content.action, content.controller, content.related)
