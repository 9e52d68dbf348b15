import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_pyscheduler.transport.errors import APIError, Gone, NetworkError
from kube_pyscheduler.transport.watch import LineSplitter, WatchStream


class Chunks:
    """Chunks from a list; an exception in it is raised."""

    def __init__(self, *chunks: bytes | Exception) -> None:
        self._chunks = list(chunks)
        self.closed = False

    async def read(self) -> bytes:
        chunk = self._chunks.pop(0) if self._chunks else b""
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        self.closed = True


def _line(kind: str, obj: Any) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def _types(stream: WatchStream) -> list[str]:
    return [event.type for event in await stream.read()]


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    splitter, got = LineSplitter(), []
    while whole:
        cut = data.draw(st.integers(1, len(whole)))
        got += splitter.feed(whole[:cut])
        whole = whole[cut:]
    assert got == [line for line in lines if line]


async def test_a_line_may_be_megabytes_long() -> None:
    line = _line("ADDED", {"x": "y" * 5_000_000})
    pieces = [line[start : start + 65_536] for start in range(0, len(line), 65_536)]
    assert await _types(WatchStream(Chunks(*pieces))) == ["ADDED"]


async def test_events_that_arrive_together_come_together() -> None:
    stream = WatchStream(
        Chunks(_line("ADDED", {}) + _line("MODIFIED", {}) + b'{"type": "DEL', b'ETED", "object": {}}\n')
    )
    assert await _types(stream) == ["ADDED", "MODIFIED"]
    assert await _types(stream) == ["DELETED"]
    assert await _types(stream) == []


async def test_an_error_event_comes_after_the_events_before_it() -> None:
    stream = WatchStream(Chunks(_line("ADDED", {}) + _line("ERROR", {"kind": "Status", "code": 410, "metadata": {}})))
    assert await _types(stream) == ["ADDED"]
    with pytest.raises(Gone):
        await stream.read()


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"\xff\n",
        b'{"type": null, "object": {}}\n',
        b'{"type": "ADDED"}\n',
        b'{"type": "ADDED", "object": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    ],
)
async def test_a_line_that_is_no_event_ends_the_watch(line: bytes) -> None:
    stream = WatchStream(Chunks(_line("ADDED", {}) + line))
    assert await _types(stream) == ["ADDED"]
    with pytest.raises(APIError, match="unreadable line"):
        await stream.read()


async def test_a_line_cut_off_by_the_end_is_dropped() -> None:
    assert await _types(WatchStream(Chunks(b'{"type": "ADDED", "object"'))) == []


async def test_a_broken_connection_is_said() -> None:
    stream = WatchStream(Chunks(NetworkError("reset", sent=True)))
    with pytest.raises(NetworkError):
        await stream.read()


def test_closing_reaches_the_connection() -> None:
    chunks = Chunks()
    WatchStream(chunks).close()
    assert chunks.closed
