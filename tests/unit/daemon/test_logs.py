from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
from collections.abc import Iterator

import pytest
from aiohttp import web

from kube_pyscheduler.daemon.logs import LogFormat, set_up
from kube_pyscheduler.daemon.serving import Listener
from kube_pyscheduler.kit.verbosity import Log

HEADER = rf"{{letter}}\d{{{{4}}}} \d\d:\d\d:\d\d\.\d{{{{6}}}} +{os.getpid()} test_logs\.py:\d+\] "


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def lines(format_: LogFormat, verbosity: int = 2) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    set_up(verbosity, format_, stream)
    return Log("some.module"), stream


def matches(letter: str, rest: str, text: str) -> bool:
    return re.fullmatch(HEADER.format(letter=letter) + re.escape(rest) + "\n", text) is not None


def test_text_has_klogs_header_and_pairs() -> None:
    log, stream = lines("text")
    log.info(2, "Pod is bound", pod="default/a", node="n-1", evaluated=5000, ok=True, seconds=0.25, tags=["a"], at=None)
    rest = '"Pod is bound" pod="default/a" node="n-1" evaluated=5000 ok=true seconds=0.25 tags=["a"] at=null'
    assert matches("I", rest, stream.getvalue())


def test_text_quotes_what_would_break_the_line() -> None:
    log, stream = lines("text")
    log.info(0, 'say "hi"', note="two\nlines")
    assert stream.getvalue().endswith(r'"say \"hi\"" note="two\nlines"' + "\n")


def test_plain_records_of_libraries_are_not_quoted() -> None:
    _, stream = lines("text")
    logging.getLogger("library").warning("%d tries", 3)
    assert matches("W", "3 tries", stream.getvalue())


def test_lines_above_the_verbosity_are_not_written() -> None:
    log, stream = lines("text", verbosity=2)
    log.info(3, "Too much")
    assert stream.getvalue() == ""
    assert log.v(2)
    assert not log.v(3)
    logging.getLogger("aiohttp.access").info("a request")
    assert stream.getvalue() == ""


def test_errors_carry_the_exception_and_its_traceback() -> None:
    log, stream = lines("text")
    try:
        raise ValueError("no such thing")
    except ValueError as error:
        log.error("It failed", error, pod="a/b")
    head, *trace = stream.getvalue().splitlines()
    assert head.startswith("E")
    assert head.endswith('"It failed" err="no such thing" pod="a/b"')
    assert trace[0] == "Traceback (most recent call last):"


def test_an_exception_that_was_not_raised_has_no_traceback() -> None:
    log, stream = lines("text")
    log.error("It failed", RuntimeError())
    assert matches("E", '"It failed" err="RuntimeError"', stream.getvalue())


def test_json_has_klogs_members() -> None:
    log, stream = lines("json", verbosity=4)
    log.info(4, "Pod is bound", pod="default/a", nodes={"n-1"})
    line = json.loads(stream.getvalue())
    assert line.pop("ts") > 1_600_000_000_000
    assert re.fullmatch(r"test_logs\.py:\d+", line.pop("caller"))
    assert line == {"msg": "Pod is bound", "v": 4, "pod": "default/a", "nodes": ["n-1"]}


def test_json_errors_have_err_and_no_verbosity() -> None:
    log, stream = lines("json")
    try:
        raise OSError("gone")
    except OSError as error:
        log.error("It failed", error)
    line = json.loads(stream.getvalue())
    assert line["err"] == "gone"
    assert "Traceback" in line["stacktrace"]
    assert "v" not in line


@pytest.mark.parametrize(
    ("sent", "is_said"),
    [
        (b"nonsense\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\na: " + b"a" * 9000 + b"\r\n\r\n", False),
        (b"GET /broken HTTP/1.0\r\n\r\n", True),
    ],
)
async def test_what_strangers_send_is_not_logged_but_our_own_mistakes_are(sent: bytes, is_said: bool) -> None:
    async def broken(_request: web.Request) -> web.Response:
        raise ZeroDivisionError("oops")

    _, stream = lines("text")
    app = web.Application()
    app.router.add_get("/broken", broken)
    listener = Listener(app)
    reader, writer = await asyncio.open_connection(*await listener.start("127.0.0.1", 0))
    writer.write(sent)
    assert await reader.readline() in (b"HTTP/1.0 400 Bad Request\r\n", b"HTTP/1.0 500 Internal Server Error\r\n")
    writer.close()
    await listener.stop()
    assert ("oops" in stream.getvalue()) is is_said
    assert bool(stream.getvalue()) is is_said
