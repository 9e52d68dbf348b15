"""The watch protocol: one JSON object a line, on a response that stays open."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from kube_pyscheduler.objects.decode import NOT_JSON
from kube_pyscheduler.transport import errors


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line. ``type`` is ADDED, MODIFIED, DELETED or BOOKMARK; ``object`` is still encoded."""

    type: str
    object: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(WatchEvent)


class LineSplitter:
    """Cuts a byte stream into lines of any length."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without their ends and without blank ones."""
        first, newline, tail = chunk.partition(b"\n")
        if not newline:
            self._rest.append(chunk)
            return []
        lines = [b"".join((*self._rest, first)), *tail.split(b"\n")]
        rest = lines.pop()
        self._rest = [rest] if rest else []
        return [line for line in lines if line]


class Chunks(Protocol):
    """What a watch is read from: an open response."""

    async def read(self) -> bytes:
        """Some bytes, b"" at the end. Raises NetworkError when the connection breaks or is silent for too long."""

    def close(self) -> None:
        """Give the connection up."""


class WatchStream:
    """An open watch. Close it when done, also after an error."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._lines = LineSplitter()
        self._error: errors.APIError | None = None

    async def read(self) -> list[WatchEvent]:
        """The events that arrived together, at least one; [] when the server ended the stream.

        Raises APIError for an ERROR event or a line that is no event (after the events before it), NetworkError when
        the connection breaks. A line cut off by the end is dropped: the next watch brings it again.
        """
        events: list[WatchEvent] = []
        while not events:
            if self._error is not None:
                raise self._error
            chunk = await self._chunks.read()
            if not chunk:
                break
            for line in self._lines.feed(chunk):
                try:
                    event = _DECODER.decode(line)
                except NOT_JSON as error:
                    self._error = errors.APIError(200, "", f"unreadable line in a watch: {error}")
                    break
                if event.type == "ERROR":
                    self._error = errors.from_status(msgspec.json.decode(event.object))
                    break
                events.append(event)
        return events

    def close(self) -> None:
        self._chunks.close()
